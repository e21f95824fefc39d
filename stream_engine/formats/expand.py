"""Events to comparisons: checks names and distinctness, then lists the comparisons in the contract's order.

One set of compiled loops for all formats. An event yields all of its comparisons, or none and one fault.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import MAX_NAME_BYTES, InvalidEvent
from stream_engine.data.compiled import for_size, njit
from stream_engine.data.packed_names import pack_names
from stream_engine.formats.event_fields import (
    MOST_CENTRAL,
    ODD_ONE_OUT,
    PICK,
    QUADRUPLET,
    RANKING,
    TRIPLET,
    member_name,
    place_of,
)
from stream_engine.formats.field_values import quoted

FINE, EMPTY, TOO_LONG, SAME, SAME_PAIR, NOT_SHOWN, NONE_CHOSEN, ALL_CHOSEN = range(8)
_REASON = {
    EMPTY: "empty_name",
    TOO_LONG: "name_too_long",
    SAME: "not_distinct",
    SAME_PAIR: "not_distinct",
    NOT_SHOWN: "not_shown",
    NONE_CHOSEN: "nothing_chosen",
    ALL_CHOSEN: "everything_chosen",
}
_DISTINCT = {
    TRIPLET: "a triplet needs three distinct objects",
    ODD_ONE_OUT: "odd_one_out needs three distinct objects",
    MOST_CENTRAL: "most_central needs three distinct objects",
    PICK: "the anchor and the objects shown must be distinct, and each can be chosen only once",
    RANKING: "the anchor and the objects ranked must be distinct",
}


def explain(
    fault: int, kind: int, members: list[str], split: int, first: int, second: int, inputs: tuple[str, ...] = ()
) -> InvalidEvent:
    """The one-line reason of a fault; `split`, `first` and `second` count from the event's first member; `inputs`: the
    columns in which the objects stand that are answered about.

    >>> str(explain(SAME, TRIPLET, ["car-12", "car-12", "car-3"], 2, 0, 1))
    "anchor equals near ('car-12'); a triplet needs three distinct objects"
    """
    name, role = quoted(members[first]) if members else "", member_name(kind, split, first)
    if fault == EMPTY:
        message = f"{role} is empty; a name needs at least one character"
    elif fault == TOO_LONG:
        size = len(members[first].encode())
        message = f"{role} is a name of {size:,} bytes ({name}); the limit is {MAX_NAME_BYTES:,}"
    elif fault == SAME and kind == QUADRUPLET:
        message = f"{'near' if first < 2 else 'far'} holds {name} twice; a pair needs two distinct objects"
    elif fault == SAME:
        message = f"{role} equals {member_name(kind, split, second)} ({name}); {_DISTINCT[kind]}"
    elif fault == SAME_PAIR:
        message = f"near and far are the same pair ({name}, {quoted(members[second])}); two different pairs are needed"
    elif fault == NOT_SHOWN:
        shown = split - (kind == PICK)
        message = f"{role} ({name}) is not among the {'objects shown' if kind == PICK else 'objects'}"
        if 0 <= place_of(members[first], inputs, 0) <= shown:
            message += "; if answers are positions (1) or columns (left), use --answers-by position"
    elif fault == NONE_CHOSEN:
        message = (
            "chosen is empty; a pick needs at least one chosen object"
            if kind == PICK
            else f"ranked holds {len(members) - 1} objects; a ranking needs at least two"
        )
    else:
        message = f"chosen holds all {split - 1} objects shown; at least one must not be chosen"
    return InvalidEvent(_REASON[fault], message)


class Comparisons(NamedTuple):
    """The comparisons of a block of events, as indices into `members`, and the faults of its events."""

    fault: np.ndarray  # (e,) int8, FINE or the fault
    fault_members: np.ndarray  # (e, 2) int64: the event's members that the fault concerns
    triplets: np.ndarray  # (m, 3) int32
    quadruplets: np.ndarray  # (q, 4) int32
    quadruplet_at: np.ndarray  # (q,) int64
    of_triplet: np.ndarray  # (m,) int32: which event
    of_quadruplet: np.ndarray  # (q,) int32


def name_flags(names: Sequence[str]) -> np.ndarray:
    """(n,) uint8: FINE, EMPTY or TOO_LONG for each name, by its bytes.

    >>> name_flags(["a", "", "x" * 1025]).tolist() == [FINE, EMPTY, TOO_LONG]
    True
    """
    flags = np.zeros(len(names), np.uint8)
    lengths = np.diff(pack_names(names)["offsets"])
    flags[lengths == 0] = EMPTY
    flags[lengths > MAX_NAME_BYTES] = TOO_LONG
    return flags


class Faults(NamedTuple):
    """The faults of a block's events, and the number of comparisons of each of the others."""

    fault: np.ndarray  # (e,) int8, FINE or the fault
    members: np.ndarray  # (e, 2) int64: the event's members that the fault concerns; undefined for valid events
    size: np.ndarray  # (e, 2) int64: triplets and quadruplets; 0 for a faulty event


def faults_of(
    kind: np.ndarray,
    start: np.ndarray,
    split: np.ndarray,
    members: np.ndarray,
    flags: np.ndarray,
    votes: np.ndarray | None = None,
) -> Faults:
    """The faults of events, for the arguments of `expand`. O(members)."""
    size, fault_members = np.empty((len(kind), 2), np.int64), np.empty((len(kind), 2), np.int64)
    fault = for_size(_faults, len(members))(kind, start, split, members, flags, bool(flags.any()), size, fault_members)
    if votes is not None:
        size *= votes.sum(axis=1, keepdims=True)
    return Faults(fault, fault_members, size)


# An event is a slice of `members` (indices of names); its last field begins at `split`:
#
#     triplet anchor near far | quadruplet i j k l | odd_one_out a b c, odd | most_central a b c, central
#     pick anchor shown..., chosen... | ranking anchor ranked... | label object, label (absent: removed)
#
# The expansions are those of Heikinheimo & Ukkonen (odd one out) and Kleindessner & von Luxburg (most central); a
# quadruplet whose pairs share one object is the triplet with that object as anchor. Duplicates are found with a mark
# per name, so the cost is O(members + comparisons).
def expand(
    kind: np.ndarray,
    start: np.ndarray,
    split: np.ndarray,
    members: np.ndarray,
    flags: np.ndarray,
    faults: Faults | None = None,
    votes: np.ndarray | None = None,
) -> Comparisons:
    """All comparisons of the valid events, event by event, and the faults of the others.

    kind (e,) int8, start (e + 1,) int64, split (e,) int64, members (f,) int32 indices into flags (n,) uint8; `faults`
    if already known. An event with votes (e, 2) int64, which must be one comparison, yields it votes[0] times, and its
    opposite votes[1] times.

    >>> one = lambda kind, split, *m: expand(np.array([kind], np.int8), np.array([0, len(m)]), np.array([split]),
    ...                                      np.array(m, np.int32), np.zeros(9, np.uint8))
    >>> one(PICK, 4, 0, 1, 2, 3, 3).triplets.tolist()
    [[0, 3, 1], [0, 3, 2]]
    >>> one(QUADRUPLET, 2, 5, 4, 4, 6).triplets.tolist(), one(TRIPLET, 2, 5, 4, 4).fault.tolist() == [SAME]
    ([[4, 5, 6]], True)
    """
    fault, fault_members, size = faults or faults_of(kind, start, split, members, flags)
    if votes is not None:
        size = faults_of(kind, start, split, members, flags).size
    m, q = int(size[:, 0].sum()), int(size[:, 1].sum())  # along the columns: ten times as fast as sum(axis=0)
    out = Comparisons(
        fault,
        fault_members,
        np.empty((m, 3), np.int32),
        np.empty((q, 4), np.int32),
        np.empty(q, np.int64),
        np.empty(m, np.int32),
        np.empty(q, np.int32),
    )
    for_size(_fill, len(members) + m + q)(kind, start, split, members, fault, len(flags), *out[2:])
    return out if votes is None else _repeated(out, votes[fault == FINE])


def chosen_at(
    kind: np.ndarray, start: np.ndarray, split: np.ndarray, members: np.ndarray, among: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`(of how many objects one was chosen, where it stood among them)` of events, for the arguments of `expand`; zeros
    where not one was chosen, and for events that are not `among` (e,) bool them. O(members).

    >>> shown, position = chosen_at(np.array([PICK, TRIPLET]), np.array([0, 5, 8]), np.array([4, 7]),
    ...                             np.array([0, 1, 2, 3, 3, 4, 5, 6]), np.array([True, True]))
    >>> shown.tolist(), position.tolist()
    ([3, 0], [2, 0])
    """
    one = (kind == PICK) | (kind == ODD_ONE_OUT) | (kind == MOST_CENTRAL)
    if not one.any():
        nowhere = np.broadcast_to(np.int32(0), len(kind))
        return nowhere, nowhere
    one &= among & (start[1:] - split == 1)
    first = start[:-1] + (kind == PICK)
    shown = np.where(one, split - first, 0).astype(np.int32)
    position = np.zeros(len(kind), np.int32)
    for size in np.unique(shown[one]).tolist():
        rows = np.flatnonzero(shown == size)
        objects = members[first[rows, None] + np.arange(size)]
        position[rows] = (objects == members[split[rows], None]).argmax(axis=1)
    return shown, position


def _repeated(one: Comparisons, votes: np.ndarray) -> Comparisons:
    """Every comparison votes[0] times, then its opposite votes[1] times; `votes` (a, 2) of accepted events.

    >>> once = Comparisons(np.zeros(1), np.zeros((1, 2)), np.array([[0, 1, 2]]), np.empty((0, 4), np.int32),
    ...                    np.empty(0, np.int64), np.zeros(1, np.int32), np.empty(0, np.int32))
    >>> _repeated(once, np.array([[2, 1]])).triplets.tolist()
    [[0, 1, 2], [0, 1, 2], [0, 2, 1]]
    """
    of_triplets, of_quads = votes[one.of_triplet], votes[one.of_quadruplet]
    times, quad_times = of_triplets.sum(axis=1), of_quads.sum(axis=1)
    triplets, quads = np.repeat(one.triplets, times, axis=0), np.repeat(one.quadruplets, quad_times, axis=0)
    opposite = _opposite(of_triplets)
    triplets[opposite] = triplets[opposite][:, [0, 2, 1]]
    opposite = _opposite(of_quads)
    quads[opposite] = quads[opposite][:, [2, 3, 0, 1]]
    before = np.concatenate([[0], np.cumsum(times)])
    return one._replace(
        triplets=triplets,
        quadruplets=quads,
        quadruplet_at=np.repeat(before[one.quadruplet_at], quad_times),
        of_triplet=np.repeat(one.of_triplet, times),
        of_quadruplet=np.repeat(one.of_quadruplet, quad_times),
    )


def _opposite(votes: np.ndarray) -> np.ndarray:
    """Which comparisons of events with these votes are opposite answers."""
    return np.repeat(np.tile([False, True], len(votes)), votes.reshape(-1))


@njit(cache=True)
def _faults(kind, start, split, members, flags, any_flag, size, fault_members):
    fault = np.zeros(len(kind), np.int8)
    mark = np.full(len(flags), -1, np.int64)  # the last member that had this name
    for e in range(len(kind)):
        lo, mid, hi = start[e], split[e], start[e + 1]
        wrong, p, q = FINE, lo, lo
        if any_flag:
            for m in range(lo, hi):
                if flags[members[m]] != FINE:
                    wrong, p = flags[members[m]], m
                    break
        if wrong == FINE:
            if kind[e] == TRIPLET:
                wrong, p, q = _fault_of_three(members, lo)
            elif kind[e] == QUADRUPLET:
                wrong, p, q = _fault_of_pairs(members, lo)
            elif kind[e] == ODD_ONE_OUT or kind[e] == MOST_CENTRAL:
                wrong, p, q = _fault_of_three(members, lo)
                if wrong == FINE and not (
                    members[lo + 3] == members[lo]
                    or members[lo + 3] == members[lo + 1]
                    or members[lo + 3] == members[lo + 2]
                ):
                    wrong, p = NOT_SHOWN, lo + 3
            elif kind[e] == PICK:
                wrong, p, q = _fault_of_pick(members, lo, mid, hi, mark)
            elif kind[e] == RANKING:
                wrong, p, q = _fault_of_ranking(members, lo, hi, mark)
        fault[e], size[e, 0], size[e, 1] = wrong, 0, 0
        if wrong == FINE:
            size[e, 0], size[e, 1] = _size(kind[e], members, lo, mid, hi)
        else:
            fault_members[e, 0], fault_members[e, 1] = p - lo, q - lo
    return fault


@njit(cache=True)
def _fault_of_three(members, lo):
    for p in range(lo, lo + 2):
        for q in range(p + 1, lo + 3):
            if members[p] == members[q]:
                return SAME, p, q
    return FINE, lo, lo


@njit(cache=True)
def _fault_of_pairs(members, lo):
    i, j, k, l = members[lo], members[lo + 1], members[lo + 2], members[lo + 3]
    if i == j:
        return SAME, lo, lo + 1
    if k == l:
        return SAME, lo + 2, lo + 3
    if (i == k and j == l) or (i == l and j == k):
        return SAME_PAIR, lo, lo + 1
    return FINE, lo, lo


@njit(cache=True)
def _fault_of_ranking(members, lo, hi, mark):
    if hi - lo < 3:
        return NONE_CHOSEN, lo, lo
    for m in range(lo, hi):
        if mark[members[m]] >= lo:
            return SAME, mark[members[m]], m
        mark[members[m]] = m
    return FINE, lo, lo


@njit(cache=True)
def _fault_of_pick(members, lo, mid, hi, mark):
    if mid == hi:
        return NONE_CHOSEN, lo, lo
    for m in range(lo, mid):
        if mark[members[m]] >= lo:
            return SAME, mark[members[m]], m
        mark[members[m]] = m
    for m in range(mid, hi):
        before = mark[members[m]]
        if before <= lo:  # never shown, or the anchor itself
            return NOT_SHOWN, m, m
        if before >= mid:
            return SAME, before, m
        mark[members[m]] = m
    if hi - mid == mid - lo - 1:
        return ALL_CHOSEN, lo, lo
    return FINE, lo, lo


@njit(cache=True)
def _size(kind, members, lo, mid, hi):
    """The number of triplets and quadruplets of a valid event."""
    if kind == TRIPLET:
        return 1, 0
    if kind == QUADRUPLET:
        i, j, k, l = members[lo], members[lo + 1], members[lo + 2], members[lo + 3]
        return (1, 0) if i in (k, l) or j in (k, l) else (0, 1)
    if kind in (ODD_ONE_OUT, MOST_CENTRAL):
        return 2, 0
    if kind == PICK:
        return (hi - mid) * (mid - lo - 1 - (hi - mid)), 0
    if kind == RANKING:
        return (hi - lo - 1) * (hi - lo - 2) // 2, 0
    return 0, 0


@njit(cache=True)
def _fill(kind, start, split, members, fault, n, triplets, quads, quad_at, of_triplet, of_quad):
    mark = np.full(n, -1, np.int64)
    t, q, n_fine = np.int64(0), np.int64(0), 0  # a literal 0 would be a type of its own: kernels compiled twice
    for e in range(len(kind)):
        if fault[e] != FINE:
            continue
        lo, mid, hi = start[e], split[e], start[e + 1]
        before, before_q = t, q
        if kind[e] == TRIPLET:
            triplets[t, 0], triplets[t, 1], triplets[t, 2] = members[lo], members[lo + 1], members[lo + 2]
            t += 1
        elif kind[e] == QUADRUPLET:
            t, q = _fill_pairs(members, lo, triplets, t, quads, q, quad_at)
        elif kind[e] == ODD_ONE_OUT or kind[e] == MOST_CENTRAL:
            t = _fill_three(kind[e] == ODD_ONE_OUT, members, lo, triplets, t)
        elif kind[e] == PICK:
            t = _fill_pick(members, lo, mid, hi, mark, triplets, t)
        elif kind[e] == RANKING:
            for s in range(lo + 1, hi):
                for far in range(s + 1, hi):
                    triplets[t, 0], triplets[t, 1], triplets[t, 2] = members[lo], members[s], members[far]
                    t += 1
        of_triplet[before:t] = n_fine
        of_quad[before_q:q] = n_fine
        n_fine += 1


@njit(cache=True)
def _fill_pairs(members, lo, triplets, t, quads, q, quad_at):
    i, j, k, l = members[lo], members[lo + 1], members[lo + 2], members[lo + 3]
    if i in (k, l):
        triplets[t, 0], triplets[t, 1], triplets[t, 2] = i, j, l if i == k else k
        return t + 1, q
    if j in (k, l):
        triplets[t, 0], triplets[t, 1], triplets[t, 2] = j, i, l if j == k else k
        return t + 1, q
    quads[q, 0], quads[q, 1], quads[q, 2], quads[q, 3] = i, j, k, l
    quad_at[q] = t
    return t, q + 1


@njit(cache=True)
def _fill_three(odd, members, lo, triplets, t):
    """Odd one out: (a, b, odd), (b, a, odd). Most central: (b, central, c), (c, central, b)."""
    special = members[lo + 3]
    first = second = np.int32(-1)
    for m in range(lo, lo + 3):
        if members[m] != special:
            if first < 0:
                first = members[m]
            else:
                second = members[m]
    near_first, far_first = (second, special) if odd else (special, second)
    near_second, far_second = (first, special) if odd else (special, first)
    triplets[t, 0], triplets[t, 1], triplets[t, 2] = first, near_first, far_first
    triplets[t + 1, 0], triplets[t + 1, 1], triplets[t + 1, 2] = second, near_second, far_second
    return t + 2


@njit(cache=True)
def _fill_pick(members, lo, mid, hi, mark, triplets, t):
    for m in range(mid, hi):
        mark[members[m]] = m
    for chosen in range(mid, hi):
        for other in range(lo + 1, mid):
            if mark[members[other]] < mid:
                triplets[t, 0], triplets[t, 1], triplets[t, 2] = members[lo], members[chosen], members[other]
                t += 1
    return t


@njit(cache=True)
def first_appearance(triplets, quads, quad_at, n):
    """Renumber the names 0 ... n - 1 of comparisons, in place, by first appearance; returns the old numbers in the
    new order, without names that occur in no comparison."""
    new = np.full(n, -1, np.int32)
    order = np.empty(n, np.int32)
    count = 0
    q = 0
    for t in range(len(triplets) + 1):
        while q < len(quads) and quad_at[q] == t:
            for column in range(4):
                old = quads[q, column]
                if new[old] < 0:
                    new[old], order[count] = count, old
                    count += 1
                quads[q, column] = new[old]
            q += 1
        if t < len(triplets):
            for column in range(3):
                old = triplets[t, column]
                if new[old] < 0:
                    new[old], order[count] = count, old
                    count += 1
                triplets[t, column] = new[old]
    return order[:count]
