"""Counts at the edges that little worlds do not reach: key widths, huge counts, memory; and the sort."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.counts import adds_similarity, radix
from stream_engine.counts.adds_similarity import AddS3
from stream_engine.counts.quadruplet_counts import QuadrupletCounts
from stream_engine.counts.sorted_counts import TooManyCounts
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.counts.window import TRIM_FLOOR, WindowByArrival
from stream_engine.data.comparisons import empty_batch
from stream_engine.data.symmetric_matrices import sparse_matrix
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.testing.accumulators import same
from tests.counts.definitions import definition
from tests.support.generators import as_batch


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=80), st.integers(0, 63), st.integers(1, 64), st.booleans())
def test_radix_sort_sorts_the_bits_asked_for(keys, first, width, few):
    keys = np.array(keys, np.uint64) & np.uint64(0xFF00FF if few else 2**64 - 1)
    end = min(64, first + width)
    part = (keys >> np.uint64(first)) & np.uint64(2 ** (end - first) - 1)
    mine = keys.copy()
    (_, low), _ = radix.sort((mine, mine), (np.empty_like(mine),) * 2, len(mine), (0, 0), (first, end))
    assert np.array_equal(low, keys[np.argsort(part, kind="stable")])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 31), st.integers(1, 4))
def test_argsort_is_lexicographic_in_every_layout(seed, rows, bits, fields):
    rng = np.random.default_rng(seed)
    below = rng.integers(1, 2**bits, fields, endpoint=True)
    columns = [rng.integers(0, limit, rows) for limit in below]
    assert np.array_equal(radix.argsort(columns, bits), np.lexsort(tuple(reversed(columns))))


def stream_at(n: int, size: int, rng) -> np.ndarray:
    """Triplets among the highest ids below n and the lowest ones, repeated and reversed."""
    ids = np.array(sorted({0, 1, 2, n // 2, n - 3, n - 2, n - 1}))
    return np.array([rng.choice(ids, 3, replace=False) for _ in range(size)], np.int32)


@pytest.mark.parametrize("n", [2**20, 2**21 - 1, 2**21, 2**21 + 1, 2**22, 2**31 - 1])
@pytest.mark.parametrize("log_floor", [16, 1 << 16])
def test_no_overflow_around_the_widest_packed_key(n, log_floor):
    rng = np.random.default_rng(n)
    small, large = stream_at(n // 2, 200, rng), stream_at(n, 200, rng)
    counts = TripletCounts(log_floor=log_floor)
    counts.update(as_batch(small, n // 2))
    counts.update(as_batch(large, n))
    assert counts._counts.wide == (n > 2**21)
    assert same(counts.state(), definition(TripletCounts, as_batch(np.concatenate([small, large]), n)))
    again = TripletCounts.from_state(counts.state())
    assert again._counts.wide == counts._counts.wide and same(again.state(), counts.state())
    again.merge(counts)
    assert same(again.state(), definition(TripletCounts, as_batch(np.concatenate([small, large] * 2), n)))


@pytest.mark.parametrize("n", [2**15, 2**15 + 1, 2**31 - 1])
def test_quadruplet_keys_around_the_widest_packed_one(n):
    rng = np.random.default_rng(n)
    ids = [0, 1, 2, n // 2, n - 3, n - 2, n - 1]
    rows = np.array([rng.choice(ids, 4, replace=False) for _ in range(300)], np.int32)
    batch = empty_batch(n)._replace(quadruplets=rows, quadruplet_at=np.zeros(300, np.int64))
    counts = QuadrupletCounts(log_floor=64)
    counts.update(batch)
    assert counts._counts.wide == (n > 2**15)
    assert same(counts.state(), definition(QuadrupletCounts, batch))
    twice = QuadrupletCounts.from_state(counts.state())
    twice.merge(counts)
    assert same(twice.state(), {name: counts.state()[name] * (1 + name.startswith("n_")) for name in counts.state()})


def test_more_objects_than_ids():
    with pytest.raises(ValueError, match=r"n_objects.*2147483649.*2\*\*31.*1"):
        TripletCounts().update(empty_batch(2**31 + 1))


def with_counts(n_lo: list[int], n_hi: list[int]) -> TripletCounts:
    k = len(n_lo)
    start = np.array([0, k], np.int64)
    return TripletCounts.from_state(
        {
            "lo": np.array([0]),
            "hi": np.array([1]),
            "start": start,
            "anchor": np.arange(2, 2 + k, dtype=np.int32),
            "n_lo": np.array(n_lo, np.int64),
            "n_hi": np.array(n_hi, np.int64),
        }
    )


LAST = 2**30 - 1  # the largest count that an int32 state holds


@pytest.mark.parametrize("repeats", [1, 3])
def test_counts_are_promoted_before_they_overflow(repeats):
    counts = with_counts([LAST - 1, 5], [7, LAST - 1])
    assert counts.state()["n_lo"].dtype == np.int32
    counts.update(as_batch(np.array([[2, 0, 1], [3, 1, 0]] * repeats, np.int32), 4))
    state = counts.state()
    assert state["n_lo"].dtype == state["n_hi"].dtype == (np.int32 if repeats == 1 else np.int64)
    assert state["n_lo"].tolist() == [LAST - 1 + repeats, 5] and state["n_hi"].tolist() == [7, LAST - 1 + repeats]
    counts.update(as_batch(np.array([[5, 0, 1], [2, 0, 1]], np.int32), 6))  # on as int64, with a new key
    assert counts.state()["n_lo"].tolist() == [LAST + repeats, 5, 1]
    assert same(TripletCounts.from_state(counts.state()).state(), counts.state())


@pytest.mark.parametrize("mine,theirs", [(LAST, LAST), (2**40, 3), (3, 2**40), (2**40, 2**62)])
def test_merged_counts_are_promoted(mine, theirs):
    one, other = with_counts([mine, 1], [0, 1]), with_counts([theirs], [4])
    one.merge(other)
    assert one.state()["n_lo"].tolist() == [mine + theirs, 1] and one.state()["n_hi"].tolist() == [4, 1]
    assert one.state()["n_lo"].dtype == np.int64
    assert other.state()["n_lo"].tolist() == [theirs]


@pytest.mark.parametrize("mine,theirs", [(2**62, 2**62), (2**62 - 1, 2**62 + 1)])
def test_a_sum_past_64_bits_is_refused_and_changes_nothing(mine, theirs):
    one = with_counts([mine, 1], [0, 1])
    before = one.state()
    with pytest.raises(TooManyCounts, match=f"{mine:,} and {theirs:,}"):
        one.merge(with_counts([theirs], [4]))
    assert same(one.state(), before)
    one.merge(with_counts([2**63 - 1 - mine], [0]))
    assert one.state()["n_lo"].tolist() == [2**63 - 1, 1]


@pytest.mark.parametrize("w", [2**62, -(2**62) - 1])
def test_adds_past_64_bits_is_refused(w):
    made = [AddS3.from_state({"i": np.array([0]), "j": np.array([1]), "w": np.array([w])}) for _ in range(2)]
    with pytest.raises(TooManyCounts):
        made[0].merge(made[1])
    assert made[0].state()["w"].tolist() == [w]


def test_sparse_adds_counts_past_two_to_the_thirty(monkeypatch):
    monkeypatch.setattr(adds_similarity, "DENSE_LIMIT", 2)
    w = AddS3.from_state({"i": np.array([0, 0]), "j": np.array([1, 2]), "w": np.array([2**40, -(2**40)])})
    w.update(as_batch(np.array([[0, 1, 2]], np.int32), 3))
    assert w.state()["w"].tolist() == [2**40 + 1, -(2**40) - 1]


def test_no_n_squared_allocation():
    w, n = AddS3(), 2_000_000
    w.update(as_batch(np.array([[0, 1, 2], [n - 1, 5, 0]], np.int32), n))
    assert w.nbytes < 2**20
    assert w.state()["w"].tolist() == [1, -1, -1, 1]
    sparse = sparse_matrix(**w.state(), n_objects=n)
    assert sparse.sum() == 0
    assert sparse[n - 1, 5] == 1
    assert sparse.dtype == np.int64


def test_a_window_lets_go_of_what_has_left():
    window = WindowByArrival(10)
    for _ in range(4):
        window.update(as_batch(np.array([[0, 1, 2]] * TRIM_FLOOR, np.int32), 3))
    assert window.nbytes < 24 * (TRIM_FLOOR + 20) and len(window.state()["rows"]) == 10


def test_sixteen_bytes_a_key_at_rest_and_forty_at_the_peak():
    n, size, rng = 150, 900_000, np.random.default_rng(0)
    triplets = rng.integers(n, size=(size, 3), dtype=np.int32)
    triplets = triplets[
        (triplets[:, 0] != triplets[:, 1]) & (triplets[:, 0] != triplets[:, 2]) & (triplets[:, 1] != triplets[:, 2])
    ]
    TripletCounts().update(as_batch(triplets[:10], n))  # compiled before memory is watched
    tracemalloc.start()
    counts = TripletCounts(log_floor=1 << 10)
    for begin in range(0, len(triplets), 10_000):
        counts.update(as_batch(triplets[begin : begin + 10_000], n))
    counts._counts.settle()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    state = counts.state()
    keys = len(state["anchor"])
    assert counts.nbytes <= 16 * keys
    assert peak <= 40 * keys + 200_000
    assert same(state, dict(zip(state, columns_from_triplets(triplets, n))))
