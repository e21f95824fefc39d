"""Every accumulator is a commutative monoid that agrees with its slow definition: exactly, or to the tolerance it
states.

The laws run over the registry, so a new accumulator is tested by being registered; and over variants whose limits are
so low that little worlds cross every one of them: logs of a few events, dense to sparse, packed to wide keys. Laws
alone cannot catch a wrong statistic (two swapped columns are still a monoid): `definition` does. What they do not
cover is scale: see tests/accumulators/test_triplet_counts.py.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.accumulators import ACCUMULATORS, BY_ARRIVAL, Forgetting, accumulator
from stream_engine.accumulators.adds_similarity import AddS3, AddS4
from stream_engine.accumulators.decayed_counts import DecayedAddS3, DecayedTripletCountsByArrival
from stream_engine.accumulators.judgements import Judgements
from stream_engine.accumulators.quadruplet_counts import QuadrupletCounts
from stream_engine.accumulators.triplet_counts import TripletCounts
from stream_engine.accumulators.weighted_counts import WeightedAddS3, WeightedTripletCounts
from stream_engine.accumulators.worker_votes import WorkerVotes
from stream_engine.data import container
from stream_engine.data.comparisons import Batch, empty_batch
from stream_engine.data.name_hashes import hashes_of_numbers
from stream_engine.data.symmetric_matrices import dense_matrix
from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.state.snapshot import frozen
from tests.support.generators import concatenated, dense_batch, taken, with_provenance


class FewJudgements(Judgements):
    """A reservoir that overflows in every world."""

    bound, most = 7, 3


class HardlyAnyJudgements(Judgements):
    """One that holds nothing after two."""

    bound, most = 1, 1


VARIANTS = {  # each takes `allocation` where its counts can be kept on disk
    **{name: accumulator(name) for name in ACCUMULATORS if not accumulator(name).forgets},
    "adds3 sparse": partial(AddS3, dense_limit=2, log_floor=3),
    "adds3 dense to sparse": partial(AddS3, dense_limit=5, log_floor=2),
    "adds4 dense to sparse": partial(AddS4, dense_limit=5, log_floor=7),
    "triplet_counts, short log": partial(TripletCounts, log_floor=2),
    "triplet_counts, wide": partial(TripletCounts, key_bits=1, log_floor=3),
    "triplet_counts, packed to wide": partial(TripletCounts, key_bits=8, log_floor=3),  # wide from five objects on
    "quadruplet_counts, short log": partial(QuadrupletCounts, log_floor=2),
    "quadruplet_counts, packed to wide": partial(QuadrupletCounts, key_bits=10, log_floor=3),
    # half-lives so short that every world rescales, windows that cut
    "adds3_decayed, by time": partial(accumulator("adds3_decayed"), half_life=0.4),
    "triplet_counts_decayed, by time": partial(accumulator("triplet_counts_decayed"), half_life=30.0),
    "window, by time": partial(accumulator("window"), window=9.0),
    "adds3_decayed, by count": partial(accumulator("adds3_decayed", Forgetting("count")), half_life=3.0),
    "window, by count": partial(accumulator("window", Forgetting("count")), window=7.0),
    "adds3_weighted dense to sparse": partial(WeightedAddS3, dense_limit=5, log_floor=3),
    "worker_votes, short log": partial(WorkerVotes, log_floor=2),
    "worker_votes, packed to wide": partial(WorkerVotes, key_bits=10, log_floor=3),
    "triplet_counts_weighted, short log": partial(WeightedTripletCounts, log_floor=2),
    "adds3_decayed by time, sparse": partial(DecayedAddS3, 0.4, dense_limit=2, log_floor=3),
    "judgements, few": FewJudgements,
    "judgements, hardly any": HardlyAnyJudgements,
    "triplet_counts_decayed by count, short log": partial(DecayedTripletCountsByArrival, 3.0, log_floor=2),
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
        stream.append(with_provenance(rng, dense_batch(rng, n, size)))
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
        left, right = ({k: a for k, a in state.items() if k not in made.arrival} for state in (left, right))
    if not made.tolerance:
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
    return type(made).definition(batch, **{field: float(state[field]) for field in made.forgets})


@every_variant
@laws
@given(stream=worlds())
def test_equals_its_definition(make, stream):
    made = learned(make, stream)
    state = made.state()
    assert alike(made, state, definition(made, concatenated(stream)))
    container.encode("test", {}, state)  # plain arrays that a snapshot can hold
    lengths = {field: float(state[field]) for field in made.forgets}
    made.check_state(state, max(batch.n_objects for batch in stream), **lengths)  # what a reader of it holds it against


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1), looks=st.booleans())
def test_neither_order_nor_batching_matter(make, stream, seed, looks):
    whole, rng = concatenated(stream), np.random.default_rng(seed)
    made = make()
    triplets, quadruplets = np.arange(len(whole.triplets)), np.arange(len(whole.quadruplets))
    if made.mergeable:
        triplets, quadruplets = rng.permutation(triplets), rng.permutation(quadruplets)
    for rows in np.split(triplets, np.sort(rng.integers(0, len(triplets) + 1, 3))):
        made.update(taken(whole, rows, quadruplets[:0]))
        if looks:
            made.state()  # looking at it changes nothing
    catches = whole.provenance._replace(
        **{
            key: getattr(taken(whole, triplets[:0], quadruplets[:0]).provenance, key)
            for key in ("of_triplet", "of_quadruplet", "kind", "worker", "weight", "time")
        }
    )
    made.update(taken(whole, triplets[:0], quadruplets[:0])._replace(provenance=catches))
    for row in quadruplets:
        made.update(taken(whole, triplets[:0], np.array([row])))
    assert alike(made, made.state(), learned(make, stream).state(), arrival=False)


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1))
def test_merge_is_the_whole_whatever_the_grouping(make, stream, seed):
    if not make().mergeable:  # a ledger
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
    if not make().mergeable:  # a ledger
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
    """A pause copies only what it must: arrays handed over are taken as they are, so none may be memory still in
    use."""
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
    w = dense_matrix(**learned(make, stream).state(), n_objects=max(batch.n_objects for batch in stream))
    assert w.sum() == 0 and np.array_equal(w, w.T) and not w.diagonal().any()


@pytest.mark.parametrize("name", ["worker_reliability", *BY_ARRIVAL])
def test_ledgers_are_not_merged(name):
    ledger = accumulator(name, Forgetting("count"))
    assert not ledger.mergeable and ACCUMULATORS.keys() >= BY_ARRIVAL.keys()
    engines = [Engine((name,), guard=None) for _ in range(2)]
    assert type(engines[0].accumulators[name]) is ledger
    with pytest.raises(OverlappingStates, match=f"{name} depends on the order of arrival") as refused:
        engines[0].merge(engines[1])
    assert ('forgetting.by = "time" can' in str(refused.value)) == (name in BY_ARRIVAL)


@pytest.mark.parametrize("name", BY_ARRIVAL)
def test_what_forgets_by_time_is_merged(name):
    by_time = Forgetting("time")
    assert accumulator(name, by_time).mergeable and accumulator(name, by_time) is accumulator(name)
    engine = Engine((name,), guard=None, forgetting=by_time)
    engine.merge(Engine((name,), guard=None, forgetting=by_time))
    assert engine.settings()["forgetting"].keys() == {"by", *accumulator(name).forgets}
