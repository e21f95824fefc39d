"""Basic terms: comparisons, events, and the result of decoding a block of events."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

# A triplet (anchor, near, far) states d(anchor, near) < d(anchor, far). A quadruplet (i, j, k, l) states d(i, j) < d(k,
# l). Both are edges {near pair} -> {far pair} of McFee & Lanckriet's similarity graph, whose vertices are unordered
# pairs of objects. A triplet and its reversal contradict each other. An event is the content of one line or message:
# one response, which expands to any number of comparisons.
MAX_NAME_BYTES = 1024  # of UTF-8
MAX_WEIGHT = 1e100  # of an event: sums of weights, and of their squares, are finite
MAX_LIST = 10_000  # entries of a list in an event

EVENT_TYPES = (
    "triplet",
    "quadruplet",
    "odd_one_out",
    "most_central",
    "pick",
    "ranking",
    "label",
)  # as they are counted
# types that are counted as one of these -> "module:attribute" of a `formats.event_types.DerivedType`
DERIVED_TYPES = {"pick_farthest": "stream_engine.formats.pick_farthest:PICK_FARTHEST"}
READABLE_TYPES = (*EVENT_TYPES, *DERIVED_TYPES)

# The closed set of rejection codes: keys of `rejected` in summary.json and values of a metric label.
REASONS = {
    "not_parseable": "the bytes are not an event of this format",
    "unknown_type": "`type` is unknown",
    "missing_field": "a field that this type requires is missing",
    "wrong_type": "a field has the wrong type",
    "empty_name": "an object name is empty",
    "name_too_long": f"a name is over {MAX_NAME_BYTES} bytes of UTF-8",
    "list_too_long": f"a list is over {MAX_LIST} entries",
    "not_distinct": "objects that must be distinct are not",
    "not_shown": "`odd`, `central` or `chosen` is not among those shown",
    "nothing_chosen": "`chosen` is empty, or `ranked` has fewer than two objects",
    "everything_chosen": "`chosen` contains all objects shown",
    "bad_weight": "`weight` is not a number from 0 to 1e100",
    "bad_votes": "`n_near` or `n_far` is not an integer from 0 to 1,000,000",
    "bad_time": "`time` is neither RFC 3339 nor epoch seconds, or too far in the future (`input.max_time_ahead`)",
    "incomplete": "the source could not deliver the complete event",
    "decoder_failed": "the decoder raised an exception, which is a bug",
    "process_died": "the process crashed three times while processing it",
    "too_large": "a decompressed line, message or row exceeds `input.max_message_bytes` or a million events",
}


class Triplet(NamedTuple):
    r"""A comparison of two pairs that share an object.

    .. math:: d(\mathrm{anchor}, \mathrm{near}) < d(\mathrm{anchor}, \mathrm{far})

    Parameters
    ----------
    anchor : str
        The shared object.
    near : str
        The object nearer to the anchor.
    far : str
        The object farther from the anchor; all three are distinct.

    Examples
    --------
    >>> Triplet("lemon", near="lime", far="bread")
    Triplet(anchor='lemon', near='lime', far='bread')
    """

    anchor: str
    near: str
    far: str


class Quadruplet(NamedTuple):
    r"""A comparison of two different pairs.

    .. math:: d(\mathrm{near}_0, \mathrm{near}_1) < d(\mathrm{far}_0, \mathrm{far}_1)

    Parameters
    ----------
    near : tuple of str
        The nearer pair: two distinct objects.
    far : tuple of str
        The farther pair: two distinct objects.

    Examples
    --------
    >>> Quadruplet(near=("lemon", "lime"), far=("lemon", "bread")).far
    ('lemon', 'bread')
    """

    near: tuple[str, str]
    far: tuple[str, str]


class Label(NamedTuple):
    """The class of an object; the most recent one is valid.

    Parameters
    ----------
    object : str
        Name of the object.
    label : str or None
        The class; None removes the label.

    Examples
    --------
    >>> Label("lemon", "fruit").label, Label("lemon", None).label
    ('fruit', None)
    """

    object: str
    label: str | None


class Rejected(NamedTuple):
    """One rejected event: `index` is its number in the record's value, `start` its first byte there."""

    index: int  # type: ignore[assignment]  # shadows tuple.index, which is not used
    start: int
    reason: str
    message: str
    value: bytes


class Provenance(NamedTuple):
    """Who answered, when, and with what weight; arrays run over the accepted events, `of_*` map comparisons to them."""

    of_triplet: np.ndarray  # (m,) int32
    of_quadruplet: np.ndarray  # (q,) int32
    kind: np.ndarray  # (e,) int8 index into EVENT_TYPES
    worker: np.ndarray  # (e,) int32 into `workers`, -1 if not given
    workers: list[str]
    weight: np.ndarray  # (e,) float64, 1.0 if not given
    time: np.ndarray  # (e,) float64 epoch seconds, NaN if not given
    catch_worker: np.ndarray = np.empty(0, np.int32)  # (c,) who answered each catch trial, -1 if not given
    catch_passed: np.ndarray = np.empty(0, bool)  # (c,) whether it was passed
    continues: bool = False  # the first event continues the last one of the previous block
    sampler: np.ndarray = np.empty(0, np.int32)  # (e,) int32 into `samplers`, -1 if not given; or empty
    samplers: Sequence[str] = ()  # how questions were chosen
    seconds: np.ndarray = np.empty(0)  # (e,) float64 response time, NaN if not given; or empty
    shown: np.ndarray = np.empty(0, np.int32)  # (e,) int32 objects of which one was chosen, else 0; or empty
    position: np.ndarray = np.empty(0, np.int32)  # (e,) int32 where the chosen one stood among them, from 0; or empty
    catch_key: np.ndarray = np.empty(0, np.uint64)  # (c,) the same for copies of a catch trial, 0 if unknown; or empty


class Kinds(NamedTuple):
    """The event type of each comparison; `of_*` map comparisons to the accepted events."""

    of_triplet: np.ndarray  # (m,) int32
    of_quadruplet: np.ndarray  # (q,) int32
    kind: np.ndarray  # (e,) int8 index into EVENT_TYPES
    continues: bool = False  # the first event continues the last one of the previous block
    goes_on: bool = False  # the last event continues in the next block


class ExternalCounts(NamedTuple):
    """Counts from elsewhere, over the names of a block: states of accumulators, net votes for the guard, totals."""

    states: dict[str, dict[str, np.ndarray]]  # accumulator -> its state
    votes: np.ndarray  # (r, 4) int32 rows near_i, near_j, far_i, far_j, each in the direction of its net vote
    records: int
    triplets: int
    quadruplets: int
    labels: int


class DecodedEvents(NamedTuple):
    """A block of events as columns.

    Indices refer to `names`, which holds the names of this block's comparisons in order of first appearance (the order
    of the contract: event by event, comparison by comparison, anchor, near, far or near_i, near_j, far_i, far_j).
    """

    names: Sequence[str]
    triplets: np.ndarray  # (m, 3) int32: anchor, near, far
    quadruplets: np.ndarray  # (q, 4) int32, four distinct objects each: near_i, near_j, far_i, far_j
    quadruplet_at: np.ndarray  # (q,) int64: how many triplets of this block come before each quadruplet
    labels: list[Label]
    events: dict[str, int]  # accepted events by type
    rejected: list[Rejected]
    filtered: int = 0  # excluded by --where
    empty: int = 0  # blank lines are not counted; empty values and tombstones are
    unknown_fields: frozenset[str] = frozenset()
    provenance: Provenance | None = None
    kinds: Kinds | None = None
    counted: ExternalCounts | None = None  # in addition to, or instead of, comparisons
    values: int | None = None  # of `many` values, how many these are; None: all
    # further comparisons of the same events, too many for memory at once: created on iteration
    rest: Iterable["DecodedEvents"] = ()
    repeated: int = 0  # responses that were sent twice, and not in a previous block


class Batch(NamedTuple):
    """Comparisons by object id, in order. A single event is a batch of one."""

    triplets: np.ndarray  # (m, 3) int32: anchor, near, far
    quadruplets: np.ndarray  # (q, 4) int32, four distinct objects each
    quadruplet_at: np.ndarray  # (q,) int64: how many triplets come before each quadruplet
    n_objects: int  # ids are 0 .. n_objects - 1
    provenance: Provenance | None = None  # provenance, if an accumulator in use needs it
    kinds: Kinds | None = None  # event types, if events were decoded
    name_hashes: np.ndarray | None = (
        None  # (n_objects,) uint64 hashes of the objects' names, if something in use needs them
    )


class InvalidEvent(ValueError):
    """An event that breaks the contract; `reason` is a key of REASONS, the message one line for people."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


def canonical_quadruplet(i, j, k, l):
    """A quadruplet over two pairs that share exactly one object is the triplet with that object as anchor.

    Returns `(anchor, near, far)` in that case, `(i, j, k, l)` when the four are distinct; raises `InvalidEvent` for a
    pair of one object or for the same pair twice. Works on names and on ids.

    >>> canonical_quadruplet("b", "a", "a", "c"), canonical_quadruplet(0, 1, 2, 3)
    (('a', 'b', 'c'), (0, 1, 2, 3))
    """
    if i == j or k == l:
        repeated_object = i if i == j else k
        raise InvalidEvent("not_distinct", f"a pair holds {repeated_object!r} twice; a pair needs two distinct objects")
    if {i, j} == {k, l}:
        raise InvalidEvent("not_distinct", f"near and far are the same pair ({i!r}, {j!r})")
    for anchor, near in ((i, j), (j, i)):
        if anchor == k:
            return anchor, near, l
        if anchor == l:
            return anchor, near, k
    return i, j, k, l


def empty_batch(n_objects: int = 0) -> Batch:
    """No comparisons over `n_objects` objects."""
    return Batch(np.empty((0, 3), np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int64), n_objects)


def triplet_weights(batch: Batch) -> np.ndarray:
    """(m,) float64: the weight of each triplet's event, 1 where it gives none."""
    provenance = batch.provenance
    return np.ones(len(batch.triplets)) if provenance is None else provenance.weight[provenance.of_triplet]


def triplet_times(batch: Batch) -> np.ndarray:
    """(m,) float64: epoch seconds of each triplet's event, NaN where it gives none."""
    provenance = batch.provenance
    return np.full(len(batch.triplets), np.nan) if provenance is None else provenance.time[provenance.of_triplet]


def interleaved(batch: Batch) -> np.ndarray:
    """All comparisons of a batch in their order as (m + q, 4) int32 rows near_i, near_j, far_i, far_j.

    >>> b = Batch(np.array([[0, 1, 2]], np.int32), np.array([[0, 1, 2, 3]], np.int32), np.array([0]), 4)
    >>> interleaved(b).tolist()
    [[0, 1, 2, 3], [0, 1, 0, 2]]
    """
    anchor, near, far = batch.triplets.T
    rows = np.stack([anchor, near, anchor, far], axis=1)
    return np.insert(rows, batch.quadruplet_at, batch.quadruplets, axis=0) if len(batch.quadruplets) else rows
