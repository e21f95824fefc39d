"""Every accumulator is a commutative monoid of exact integers that agrees with its slow definition.

The laws run over the registry, so a new accumulator is tested by being registered; and over variants whose limits are
so low that little worlds cross every one of them: logs of a few events, dense to sparse, packed to wide keys. Laws
alone cannot catch a wrong statistic (two swapped columns are still a monoid): `definition` does. What they do not
cover is scale: see tests/test_triplet_counts.py.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine import container
from stream_engine.accumulators import ACCUMULATORS, accumulator
from stream_engine.accumulators.adds import AddS3, AddS4, matrix
from stream_engine.accumulators.quadruplet_counts import QuadrupletCounts
from stream_engine.accumulators.triplet_counts import TripletCounts
from stream_engine.comparisons import Batch, empty_batch
from stream_engine.snapshot import frozen
from tests.generators import dense_batch

VARIANTS = {
    **{name: accumulator(name) for name in ACCUMULATORS},
    "adds3 sparse": lambda: AddS3(dense_limit=2, log_floor=3),
    "adds3 dense to sparse": lambda: AddS3(dense_limit=5, log_floor=2),
    "adds4 dense to sparse": lambda: AddS4(dense_limit=5, log_floor=7),
    "triplet_counts, short log": lambda: TripletCounts(log_floor=2),
    "triplet_counts, wide": lambda: TripletCounts(key_bits=1, log_floor=3),
    "triplet_counts, packed to wide": lambda: TripletCounts(key_bits=8, log_floor=3),  # wide from five objects on
    "quadruplet_counts, short log": lambda: QuadrupletCounts(log_floor=2),
    "quadruplet_counts, packed to wide": lambda: QuadrupletCounts(key_bits=10, log_floor=3),
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
        stream.append(dense_batch(rng, n, size))
    return stream


def joined(stream: list[Batch]) -> Batch:
    before = np.cumsum([0] + [len(batch.triplets) for batch in stream])
    return Batch(np.concatenate([batch.triplets for batch in stream]),
                 np.concatenate([batch.quadruplets for batch in stream]),
                 np.concatenate([batch.quadruplet_at + at for batch, at in zip(stream, before)]),
                 max(batch.n_objects for batch in stream))


def learned(make, stream: list[Batch]):
    made = make()
    for batch in stream:
        made.update(batch)
    return made


def same(left, right) -> bool:
    return list(left) == list(right) and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key]) for key in left)


@every_variant
@laws
@given(stream=worlds())
def test_equals_its_definition(make, stream):
    state = learned(make, stream).state()
    assert same(state, type(make()).definition(joined(stream)))
    container.encode("test", {}, state)  # plain arrays that a snapshot can hold


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1), looks=st.booleans())
def test_neither_order_nor_batching_matter(make, stream, seed, looks):
    whole, rng = joined(stream), np.random.default_rng(seed)
    shuffled = whole._replace(triplets=rng.permutation(whole.triplets), quadruplets=rng.permutation(whole.quadruplets))
    made = make()
    cut = np.sort(rng.integers(0, len(whole.triplets) + 1, 3))
    for rows in np.split(shuffled.triplets, cut):
        made.update(empty_batch(whole.n_objects)._replace(triplets=rows))
        if looks:
            made.state()  # looking at it changes nothing
    for row in shuffled.quadruplets:
        made.update(empty_batch(whole.n_objects)._replace(quadruplets=row[None], quadruplet_at=np.zeros(1, np.int64)))
    assert same(made.state(), learned(make, stream).state())


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1))
def test_merge_is_the_whole_whatever_the_grouping(make, stream, seed):
    shard = np.random.default_rng(seed).integers(0, 3, len(stream))
    parts = [[batch for batch, of in zip(stream, shard) if of == s] for s in range(3)]
    whole = learned(make, stream).state()
    (a, b, c), (x, y, z) = ([learned(make, part) for part in parts] for _ in range(2))
    b_before = frozen(b.state())
    a.merge(b)
    a.merge(c)
    y.merge(z)
    y.merge(x)
    assert same(a.state(), whole) and same(y.state(), whole)
    assert same(b.state(), b_before), "merge changed the other one"
    a.update(stream[-1])
    assert same(b.state(), b_before), "merge shares memory with the other one"


@every_variant
@laws
@given(stream=worlds())
def test_empty_is_the_identity(make, stream):
    left, right = learned(make, stream), make()
    left.merge(make())
    right.merge(learned(make, stream))
    assert same(left.state(), learned(make, stream).state()) and same(right.state(), left.state())


@every_variant
@laws
@given(stream=worlds(), after=st.integers(0, 5))
def test_resumed_equals_uninterrupted(make, stream, after):
    first = frozen(learned(make, stream[:after]).state())
    resumed = type(make()).from_state(first)
    assert same(resumed.state(), first)
    for batch in stream[after:]:
        resumed.update(batch)
    assert same(resumed.state(), learned(make, stream).state())


@every_variant
@laws
@given(stream=worlds())
def test_keeps_no_array_that_it_was_given(make, stream):
    made = learned(make, stream)
    arrays = {key: np.array(array) for key, array in made.state().items()}
    resumed = type(made).from_state(arrays)
    batch = Batch(*(np.array(part) for part in joined(stream)[:3]), joined(stream).n_objects)
    made.update(batch)
    expected = frozen(made.state())
    for array in (*arrays.values(), *batch[:3]):
        array[...] = 1
    assert same(resumed.state(), learned(make, stream).state()) and same(made.state(), expected)


@every_variant
@laws
@given(stream=worlds(), seed=st.integers(0, 2**32 - 1), spare=st.integers(0, 20))
def test_renaming_commutes_with_updating(make, stream, seed, spare):
    n = max(batch.n_objects for batch in stream)
    new_id = np.random.default_rng(seed).permutation(n + spare)[:n].astype(np.int32)
    renamed = [batch._replace(triplets=new_id[batch.triplets], quadruplets=new_id[batch.quadruplets],
                              n_objects=n + spare) for batch in stream]
    made = learned(make, stream)
    assert same(type(made).renamed(frozen(made.state()), new_id), learned(make, renamed).state())


@every_variant
def test_nothing_seen(make):
    empty = make()
    assert same(empty.state(), type(empty).definition(empty_batch()))
    empty.update(empty_batch(0))
    empty.update(empty_batch(7))
    assert same(empty.state(), type(empty).definition(empty_batch(7)))
    assert same(type(empty).renamed(empty.state(), np.empty(0, np.int32)), empty.state())


@pytest.mark.parametrize("make", [VARIANTS[name] for name in VARIANTS if name.startswith("adds")])
@laws
@given(stream=worlds())
def test_adds_sums_to_zero(make, stream):
    w = matrix(learned(make, stream).state(), max(batch.n_objects for batch in stream))
    assert w.sum() == 0 and np.array_equal(w, w.T) and not w.diagonal().any()
