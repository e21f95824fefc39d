"""The laws of accumulators: commutative monoids whose state is the meaning. Ledgers keep those of one order."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from stream_engine.counts import Statistic
from stream_engine.data import container
from stream_engine.data.comparisons import Batch, empty_batch
from stream_engine.data.hashing import hashes_of_numbers
from stream_engine.data.mapped_arrays import IN_MEMORY
from stream_engine.state.snapshot import frozen
from stream_engine.testing.batches import batch_of, concatenated, random_stream, stream_in_pieces

State = Mapping[str, np.ndarray]
Make = Callable[[], Any]
Definition = Callable[[Batch], State] | None


def check_accumulator(make: Make, definition: Definition = None, seeds: Iterable[int] = range(20)) -> None:
    """Check that an accumulator or a ledger keeps the laws, on generated streams.

    Parameters
    ----------
    make : callable
        Gives an accumulator that has counted nothing: the class, or a `functools.partial` with its parameters.
    definition : callable, optional
        `definition(batch)` is the state after one batch, straight from the formula. Without it nothing says whether the
        statistic is the right one.
    seeds : iterable of int
        A generated stream for each.

    Raises
    ------
    AssertionError
        With the law that does not hold, and the seed of the stream.

    Examples
    --------
    >>> from stream_engine.counts.triplet_counts import TripletCounts
    >>> check_accumulator(TripletCounts, seeds=range(2))
    """
    _nothing(make, definition)
    for seed in seeds:
        for law in LAWS:
            try:
                law(make, definition, np.random.default_rng(seed))
            except AssertionError as error:
                name = (law.__doc__ or "").strip()
                raise AssertionError(f"seed {seed}: broken law: {name} {error}".strip()) from error


def _learned(make: Make, stream: Iterable[Batch]) -> Any:
    made = make()
    for batch in stream:
        made.update(batch)
    return made


def same(left: State, right: State) -> bool:
    """Whether two states are the same arrays, bit for bit."""
    return list(left) == list(right) and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key]) for key in left
    )


def _entries(state: State) -> dict[Any, float]:
    """Float sums by key, whatever the layout."""
    if "w" in state:
        return dict(zip(zip(state["i"].tolist(), state["j"].tolist()), state["w"].tolist()))
    if "odds" in state:
        keys: Any = zip(*(state[key].tolist() for key in ("lo", "hi", "anchor")))
        return dict(zip(keys, state["odds"].tolist())) | dict(enumerate(state["right"].tolist()))
    sizes = np.diff(state["start"])
    keys = zip(np.repeat(state["lo"], sizes).tolist(), np.repeat(state["hi"], sizes).tolist(), state["anchor"].tolist())
    return {
        (*key, side): value
        for key, pair in zip(keys, zip(state["n_lo"].tolist(), state["n_hi"].tolist()))
        for side, value in enumerate(pair)
    }


def _alike(made: Statistic, left: State, right: State, arrival: bool = True) -> bool:
    """Equal as far as the accumulator promises; without `arrival`, what depends on the order of arrival is ignored."""
    if not arrival:
        left, right = ({k: a for k, a in state.items() if k not in made.arrival} for state in (left, right))
    if not made.tolerance:
        return same(left, right)
    one, two = _entries(left), _entries(right)
    off = made.tolerance * float(max(sum(map(abs, two.values())), 1.0))
    scalars = [key for key in left if left[key].ndim == 0]
    return (
        list(left) == list(right)
        and all(left[key].dtype == right[key].dtype for key in left)
        and all(abs(one.get(key, 0.0) - two.get(key, 0.0)) <= off for key in one.keys() | two.keys())
        and all(np.isclose(left[key], right[key], rtol=made.tolerance, atol=made.tolerance) for key in scalars)
    )


def _equals_its_definition(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """The state is that of the definition, plain arrays that a snapshot can hold, and passes `check_state`."""
    stream = random_stream(rng)
    made = _learned(make, stream)
    state = made.state()
    if definition is not None:
        assert _alike(made, state, definition(concatenated(stream)))
    container.encode("test", {}, state)
    lengths = {field: float(state[field]) for field in made.forgets}
    made.check_state(state, max(batch.n_objects for batch in stream), **lengths)
    assert made.answers(state) <= sum(len(batch.triplets) + len(batch.quadruplets) for batch in stream)


def _order_and_batches(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """Neither order nor batches matter (of a ledger: no batches), nor does looking at the state."""
    stream = random_stream(rng)
    whole, made = concatenated(stream), make()
    triplets, quadruplets = np.arange(len(whole.triplets)), np.arange(len(whole.quadruplets))
    if made.mergeable:
        triplets, quadruplets = rng.permutation(triplets), rng.permutation(quadruplets)
    looks = rng.random() < 0.5
    for rows in np.split(triplets, np.sort(rng.integers(0, len(triplets) + 1, 3))):
        made.update(batch_of(whole, rows, quadruplets[:0]))
        if looks:
            made.state()
    none, told = batch_of(whole, triplets[:0], quadruplets[:0]), whole.provenance
    assert none.provenance is not None and told is not None
    catches = none.provenance._replace(catch_worker=told.catch_worker, catch_passed=told.catch_passed)
    made.update(none._replace(provenance=catches))
    for row in quadruplets:
        made.update(batch_of(whole, triplets[:0], np.array([row])))
    assert _alike(made, made.state(), _learned(make, stream).state(), arrival=False)


def _pieces_of_an_event(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """An event that comes in pieces (`Provenance.continues`) is one event."""
    most = getattr(make(), "most", 1)  # comparisons of an event up to which an accumulator looks at it as a whole
    whole, pieces = stream_in_pieces(rng, min(most, 8) + 1)
    if most <= 8:
        made = _learned(make, pieces)
        assert _alike(made, made.state(), _learned(make, [whole]).state(), arrival=False)
        if definition is not None:
            assert _alike(made, made.state(), definition(whole), arrival=False)


def _merging(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """Merging parts gives the whole, however they are grouped, and leaves the other one as it was."""
    if not make().mergeable:
        return
    stream = random_stream(rng)
    shard = rng.integers(0, 3, len(stream))
    parts = [[batch for batch, of in zip(stream, shard) if of == s] for s in range(3)]
    whole = _learned(make, stream).state()
    (a, b, c), (x, y, z) = ([_learned(make, part) for part in parts] for _ in range(2))
    b_before = frozen(b.state())
    a.merge(b)
    a.merge(c)
    y.merge(z)
    y.merge(x)
    assert _alike(a, a.state(), whole, arrival=False) and _alike(y, y.state(), whole, arrival=False)
    assert same(b.state(), b_before), "merge changed the other one"
    a.update(stream[-1])
    assert same(b.state(), b_before), "merge shares memory with the other one"


def _identity(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """One that has counted nothing changes nothing in a merge."""
    if not make().mergeable:
        return
    stream = random_stream(rng)
    left, right = _learned(make, stream), make()
    left.merge(make())
    right.merge(_learned(make, stream))
    assert _alike(left, left.state(), _learned(make, stream).state()) and _alike(left, right.state(), left.state())


def _resuming(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """ResumedState from a state equals uninterrupted."""
    stream, after = random_stream(rng), int(rng.integers(0, 6))
    first = frozen(_learned(make, stream[:after]).state())
    resumed = type(make()).from_state(first, IN_MEMORY)
    assert _alike(resumed, resumed.state(), first)
    for batch in stream[after:]:
        resumed.update(batch)
    assert _alike(resumed, resumed.state(), _learned(make, stream).state())


def _keeps_nothing(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """It keeps no array that it was given."""
    stream = random_stream(rng)
    made = _learned(make, stream)
    arrays = {key: np.array(array) for key, array in made.state().items()}
    resumed = type(made).from_state(arrays, IN_MEMORY)
    batch = concatenated(stream)
    made.update(batch)
    expected = frozen(made.state())
    for array in (*arrays.values(), *batch[:3]):
        array[...] = 1
    assert _alike(made, resumed.state(), _learned(make, stream).state()) and same(made.state(), expected)


def _arrays_within(thing: Any) -> list[np.ndarray]:
    """All arrays that an object holds, directly or through what it is made of."""
    if isinstance(thing, np.ndarray):
        return [thing]
    parts: Iterable[Any] = ()
    if isinstance(thing, dict):
        parts = thing.values()
    elif isinstance(thing, (tuple, list)):
        parts = thing
    elif hasattr(thing, "__dict__"):
        parts = vars(thing).values()
    return [array for part in parts for array in _arrays_within(part)]


def _frozen_for_good(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """A frozen state shares no memory with the live one: arrays handed over are taken as they are."""
    stream = random_stream(rng)
    live = _learned(make, stream)
    state = frozen(live.state())
    live.state()  # settles and shrinks whatever the first call left behind
    for name, array in state.items():
        assert not array.flags.writeable, name
        assert not any(np.may_share_memory(array, other) for other in _arrays_within(live) if other.size), name
    before = {name: array.copy() for name, array in state.items()}
    for batch in stream:
        live.update(batch)
        live.state()
    assert same(state, before)


def _renaming(make: Make, definition: Definition, rng: np.random.Generator) -> None:
    """Renaming objects and then counting equals counting and then renaming."""
    stream, spare = random_stream(rng), int(rng.integers(0, 21))
    n = max(batch.n_objects for batch in stream)
    new_id = rng.permutation(n + spare)[:n].astype(np.int32)
    hashes = np.zeros(n + spare, np.uint64)
    hashes[new_id] = hashes_of_numbers(n)  # another number, the same name
    renamed = [
        batch._replace(
            triplets=new_id[batch.triplets],
            quadruplets=new_id[batch.quadruplets],
            n_objects=n + spare,
            name_hashes=hashes,
        )
        for batch in stream
    ]
    made = _learned(make, stream)
    assert _alike(made, type(made).renamed(frozen(made.state()), new_id), _learned(make, renamed).state())


def _nothing(make: Make, definition: Definition) -> None:
    """Batches without comparisons leave the empty state."""
    empty = make()
    before = frozen(empty.state())
    for n in (0, 7):
        batch = empty_batch(n)
        empty.update(batch)
        assert same(empty.state(), before if definition is None else definition(batch)), "nothing counted is not empty"
    assert same(type(empty).renamed(empty.state(), np.empty(0, np.int32)), empty.state()), "renaming nothing"


LAWS = (
    _equals_its_definition,
    _order_and_batches,
    _pieces_of_an_event,
    _merging,
    _identity,
    _resuming,
    _keeps_nothing,
    _frozen_for_good,
    _renaming,
)
