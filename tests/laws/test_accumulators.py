"""Every accumulator is a commutative monoid that agrees with its slow definition: exactly, or to the tolerance it states.

The laws run over the registry, so a new accumulator is tested by being registered; and over variants whose limits are
so low that little worlds cross every one of them: logs of a few events, dense to sparse, packed to wide keys. Laws
alone cannot catch a wrong statistic (two swapped columns are still a monoid): `definition` does. What they do not
cover is scale: see tests/accumulators/test_triplet_counts.py.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.accumulators import ACCUMULATORS, accumulator
from stream_engine.accumulators.adds_similarity import AddS3, AddS4, matrix
from stream_engine.accumulators.decayed_counts import DecayedAddS3, DecayedTripletCounts
from stream_engine.accumulators.quadruplet_counts import QuadrupletCounts
from stream_engine.accumulators.triplet_counts import TripletCounts
from stream_engine.accumulators.weighted_counts import WeightedAddS3, WeightedTripletCounts
from stream_engine.accumulators.worker_votes import WorkerVotes
from stream_engine.data import container
from stream_engine.data.comparisons import Batch, empty_batch
from stream_engine.state.snapshot import frozen
from tests.support.generators import concatenated, dense_batch, judged, taken

VARIANTS = {
    **{name: accumulator(name) for name in ACCUMULATORS if not hasattr(accumulator(name), "forgets")},
    "adds3 sparse": lambda: AddS3(dense_limit=2, log_floor=3),
    "adds3 dense to sparse": lambda: AddS3(dense_limit=5, log_floor=2),
    "adds4 dense to sparse": lambda: AddS4(dense_limit=5, log_floor=7),
    "triplet_counts, short log": lambda: TripletCounts(log_floor=2),
    "triplet_counts, wide": lambda: TripletCounts(key_bits=1, log_floor=3),
    "triplet_counts, packed to wide": lambda: TripletCounts(key_bits=8, log_floor=3),  # wide from five objects on
    "quadruplet_counts, short log": lambda: QuadrupletCounts(log_floor=2),
    "quadruplet_counts, packed to wide": lambda: QuadrupletCounts(key_bits=10, log_floor=3),
}
PARAMETERS = {  # of accumulators that forget: half-lives so short that every world rescales, windows that cut
    "adds3_decayed": {"by": "time", "half_life": 0.4},
    "triplet_counts_decayed": {"by": "time", "half_life": 30.0},
    "window": {"by": "time", "window": 9.0},
}
BY_COUNT = {"adds3_decayed": {"by": "count", "half_life": 3.0}, "window": {"by": "count", "window": 7.0}}
VARIANTS |= {
    f"{name}, by {p['by']}": (lambda name=name, p=p: accumulator(name)(**p))
    for table in (PARAMETERS, BY_COUNT)
    for name, p in table.items()
}
VARIANTS |= {
    "adds3_weighted dense to sparse": lambda: WeightedAddS3(dense_limit=5, log_floor=3),
    "worker_votes, short log": lambda: WorkerVotes(log_floor=2),
    "worker_votes, packed to wide": lambda: WorkerVotes(key_bits=10, log_floor=3),
    "triplet_counts_weighted, short log": lambda: WeightedTripletCounts(log_floor=2),
    "adds3_decayed by time, sparse": lambda: DecayedAddS3("time", 0.4, dense_limit=2, log_floor=3),
    "triplet_counts_decayed by count, short log": lambda: DecayedTripletCounts("count", 3.0, log_floor=2),
}
every_variant = pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)
laws = settings(max_examples=25, deadline=None)


@st.composite
def worlds(draw) -> list[Batch]:
    """A stream in batches over ever more objects, few enough for repeats and contradictions."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=1, max_size=5))
    rng, n, stream = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), 3, []
    for more, size in steps:
        n += more
        stream.append(judged(rng, dense_batch(rng, n, size)))
    return stream


def learned(make, stream: list[Batch]):
    made = make()
    for batch in stream:
        made.update(batch)
    return made


def same(left, right) -> bool:
    return list(left) == list(right) and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key]) for key in left
    )


def entries(state) -> dict:
    """Float sums by key, whatever the layout."""
    if "w" in state:
        return dict(zip(zip(state["i"].tolist(), state["j"].tolist()), state["w"].tolist()))
    if "odds" in state:
        keys = zip(*(state[key].tolist() for key in ("lo", "hi", "anchor")))
        return dict(zip(keys, state["odds"].tolist())) | dict(enumerate(state["right"].tolist()))
    sizes = np.diff(state["start"])
    keys = zip(np.repeat(state["lo"], sizes).tolist(), np.repeat(state["hi"], sizes).tolist(), state["anchor"].tolist())
    return {
        (*key, side): value
        for key, pair in zip(keys, zip(state["n_lo"].tolist(), state["n_hi"].tolist()))
        for side, value in enumerate(pair)
    }


def alike(made, left, right, arrival=True) -> bool:
    """Equal as far as the accumulator promises; without `arrival`, what depends on the order of arrival is left out."""
    if not arrival:
        left, right = (
            {k: a for k, a in state.items() if k not in getattr(made, "arrival", ())} for state in (left, right)
        )
    if not hasattr(made, "tolerance"):
        return same(left, right)
    size = float(max(sum(map(abs, entries(right).values())), 1.0))
    one, two = entries(left), entries(right)
    scalars = [key for key in left if left[key].ndim == 0]
    return (
        list(left) == list(right)
        and all(left[key].dtype == right[key].dtype for key in left)
        and all(abs(one.get(key, 0.0) - two.get(key, 0.0)) <= made.tolerance * size for key in one.keys() | two.keys())
        and all(np.isclose(left[key], right[key], rtol=made.tolerance, atol=made.tolerance) for key in scalars)
    )


def definition(made, batch: Batch):
    """The definition with the parameters that this accumulator was made with."""
    state = made.state()
    if not hasattr(made, "forgets"):
        return type(made).definition(batch)
    other = made.forgets[1]
    return type(made).definition(batch, "time" if state["by_time"] else "count", float(state[other]))


def order_matters(made) -> bool:
    """By count an accumulator is about arrival order: neither shuffling nor merging applies, and merging says so."""
    return not getattr(made, "mergeable", True)


@every_variant
@laws
@given(stream=worlds())
def test_equals_its_definition(make, stream):
    made = learned(make, stream)
    state = made.state()
    assert alike(made, state, definition(made, concatenated(stream)))
    container.encode("test", {}, state)  # plain arrays that a snapshot can hold


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1), looks=st.booleans())
def test_neither_order_nor_batching_matter(make, stream, seed, looks):
    whole, rng = concatenated(stream), np.random.default_rng(seed)
    made = make()
    triplets, quadruplets = np.arange(len(whole.triplets)), np.arange(len(whole.quadruplets))
    if not order_matters(made):
        triplets, quadruplets = rng.permutation(triplets), rng.permutation(quadruplets)
    for rows in np.split(triplets, np.sort(rng.integers(0, len(triplets) + 1, 3))):
        made.update(taken(whole, rows, quadruplets[:0]))
        if looks:
            made.state()  # looking at it changes nothing
    catches = whole.judges._replace(
        **{
            key: getattr(taken(whole, triplets[:0], quadruplets[:0]).judges, key)
            for key in ("of_triplet", "of_quadruplet", "kind", "worker", "weight", "time")
        }
    )
    made.update(taken(whole, triplets[:0], quadruplets[:0])._replace(judges=catches))
    for row in quadruplets:
        made.update(taken(whole, triplets[:0], np.array([row])))
    assert alike(made, made.state(), learned(make, stream).state(), arrival=False)


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1))
def test_merge_is_the_whole_whatever_the_grouping(make, stream, seed):
    if order_matters(make()):
        with pytest.raises(ValueError, match="cannot be merged"):
            make().merge(make())
        return
    shard = np.random.default_rng(seed).integers(0, 3, len(stream))
    parts = [[batch for batch, of in zip(stream, shard) if of == s] for s in range(3)]
    whole = learned(make, stream).state()
    (a, b, c), (x, y, z) = ([learned(make, part) for part in parts] for _ in range(2))
    b_before = frozen(b.state())
    a.merge(b)
    a.merge(c)
    y.merge(z)
    y.merge(x)
    assert alike(a, a.state(), whole, arrival=False) and alike(y, y.state(), whole, arrival=False)
    assert same(b.state(), b_before), "merge changed the other one"
    a.update(stream[-1])
    assert same(b.state(), b_before), "merge shares memory with the other one"


@every_variant
@laws
@given(stream=worlds())
def test_empty_is_the_identity(make, stream):
    if order_matters(make()):
        return
    left, right = learned(make, stream), make()
    left.merge(make())
    right.merge(learned(make, stream))
    assert alike(left, left.state(), learned(make, stream).state()) and alike(left, right.state(), left.state())


@every_variant
@laws
@given(stream=worlds(), after=st.integers(0, 5))
def test_resumed_equals_uninterrupted(make, stream, after):
    first = frozen(learned(make, stream[:after]).state())
    resumed = type(make()).from_state(first)
    assert alike(resumed, resumed.state(), first)
    for batch in stream[after:]:
        resumed.update(batch)
    assert alike(resumed, resumed.state(), learned(make, stream).state())


@every_variant
@laws
@given(stream=worlds())
def test_keeps_no_array_that_it_was_given(make, stream):
    made = learned(make, stream)
    arrays = {key: np.array(array) for key, array in made.state().items()}
    resumed = type(made).from_state(arrays)
    batch = concatenated(stream)
    made.update(batch)
    expected = frozen(made.state())
    for array in (*arrays.values(), *batch[:3]):
        array[...] = 1
    assert alike(made, resumed.state(), learned(make, stream).state()) and same(made.state(), expected)


def arrays_within(thing) -> list[np.ndarray]:
    """All arrays that an object holds, directly or through what it is made of."""
    if isinstance(thing, np.ndarray):
        return [thing]
    parts = (
        thing.values()
        if isinstance(thing, dict)
        else thing
        if isinstance(thing, (tuple, list))
        else vars(thing).values()
        if hasattr(thing, "__dict__")
        else ()
    )
    return [array for part in parts for array in arrays_within(part)]


@every_variant
@laws
@given(stream=worlds())
def test_what_is_frozen_shares_nothing_with_what_lives(make, stream):
    """A pause copies only what it must: arrays handed over are taken as they are, so none may be memory still in use."""
    live = learned(make, stream)
    state = frozen(live.state())
    live.state()  # settles and shrinks whatever the first call left behind
    for name, array in state.items():
        assert not array.flags.writeable
        assert not any(np.may_share_memory(array, other) for other in arrays_within(live) if other.size), name
    before = {name: array.copy() for name, array in state.items()}
    for batch in stream:
        live.update(batch)
        live.state()
    assert same(state, before)


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1), spare=st.integers(0, 20))
def test_renaming_commutes_with_updating(make, stream, seed, spare):
    n = max(batch.n_objects for batch in stream)
    new_id = np.random.default_rng(seed).permutation(n + spare)[:n].astype(np.int32)
    renamed = [
        batch._replace(triplets=new_id[batch.triplets], quadruplets=new_id[batch.quadruplets], n_objects=n + spare)
        for batch in stream
    ]
    made = learned(make, stream)
    assert alike(made, type(made).renamed(frozen(made.state()), new_id), learned(make, renamed).state())


@every_variant
def test_nothing_seen(make):
    empty = make()
    assert same(empty.state(), definition(empty, empty_batch()))
    empty.update(empty_batch(0))
    empty.update(empty_batch(7))
    assert same(empty.state(), definition(empty, empty_batch(7)))
    assert same(type(empty).renamed(empty.state(), np.empty(0, np.int32)), empty.state())


@pytest.mark.parametrize("make", [VARIANTS[name] for name in VARIANTS if name.startswith(("adds3 ", "adds4"))])
@laws
@given(stream=worlds())
def test_adds_sums_to_zero(make, stream):
    w = matrix(learned(make, stream).state(), max(batch.n_objects for batch in stream))
    assert w.sum() == 0 and np.array_equal(w, w.T) and not w.diagonal().any()
