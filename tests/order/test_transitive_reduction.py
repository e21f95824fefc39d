"""Transitive reduction against its definition: drop every edge that a longer path replaces, one search an edge."""

import numpy as np
import pytest

from stream_engine.order.pair_rows import numbered
from stream_engine.order.partial_order import PartialOrder, topological_order, transitive_reduction
from stream_engine.order.reachability_masks import Supports
from tests.order.invariants import reaches
from tests.support.generators import as_batch, dense_batch, planted_triplets


def slowly(rows):
    """The edges u -> v without a path of two or more edges from u to v."""
    after = {}
    for near_i, near_j, far_i, far_j in rows.tolist():
        after.setdefault((near_i, near_j), set()).add((far_i, far_j))

    return sorted([*u, *v] for u in after for v in after[u] if not any(reaches(after, w, v) for w in after[u] - {v}))


def kept_of(rng, n, size):
    guard = PartialOrder()
    guard.offer(as_batch(planted_triplets(rng, rng.random((n, 3)), size, 0.1), n))
    return guard.kept()


def without_supports(start, targets):
    n = len(start) - 1
    return Supports(np.zeros((n, 1), np.uint64), np.zeros((n, 1), np.uint64), np.full(n, -1, np.int32))


@pytest.fixture(params=[0, 1, 16])
def words(request, monkeypatch):
    """No support at all, so that the search alone decides; some nodes; every node, so that the masks alone do."""
    if request.param == 0:
        monkeypatch.setattr("stream_engine.order.transitive_reduction.supports_of", without_supports)
    else:
        monkeypatch.setattr("stream_engine.order.reachability_masks.MAX_WORDS", request.param)
        monkeypatch.setattr("stream_engine.order.reachability_masks.MIN_WORDS", 1)
    return request.param


def test_it_is_its_definition(words):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        guard = PartialOrder()
        guard.offer(dense_batch(rng, 4 + seed % 5, 20 + seed))
        assert transitive_reduction(guard.kept()).tolist() == slowly(guard.kept()), seed
    for seed in range(4):
        kept = kept_of(np.random.default_rng(seed), 14 + 2 * seed, 1500)
        reduced = transitive_reduction(kept)
        assert len(numbered(kept).key) > 64 and len(reduced) < 0.8 * len(kept)
        assert reduced.tolist() == slowly(kept), seed


def test_laws(words):
    """Idempotent; independent of the order of rows; nothing but kept rows; the same closure."""
    rng = np.random.default_rng(0)
    kept = kept_of(rng, 30, 4000)
    reduced = transitive_reduction(kept)
    assert np.array_equal(transitive_reduction(reduced), reduced)
    assert np.array_equal(transitive_reduction(rng.permutation(kept)), reduced)
    assert {tuple(r) for r in reduced.tolist()} <= {tuple(r) for r in kept.tolist()}
    guard = PartialOrder()
    guard.judge_rows(reduced)
    gone = {tuple(r) for r in kept.tolist()} - {tuple(r) for r in reduced.tolist()}
    turned = np.array(sorted(gone), np.int32)[:, [2, 3, 0, 1]]
    assert set(guard.judge_rows(turned).tolist()) == {3}  # each follows from what is left


def test_a_complete_order_leaves_a_chain_and_a_chain_stays():
    n = 150
    pairs = np.stack([np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32)], axis=1)
    a, b = np.triu_indices(n, 1)
    chain = np.concatenate([pairs[:-1], pairs[1:]], axis=1)
    assert np.array_equal(transitive_reduction(np.concatenate([pairs[a], pairs[b]], axis=1)), chain)
    assert np.array_equal(transitive_reduction(chain), chain)


def test_nothing_and_cycles():
    assert transitive_reduction(np.empty((0, 4), np.int32)).shape == (0, 4)
    assert topological_order(np.empty((0, 4), np.int32)).shape == (0, 2)
    cycle = np.array([[0, 1, 0, 2], [0, 2, 0, 3], [0, 3, 0, 1]], np.int32)
    with pytest.raises(ValueError, match="transitive_reduction.*3 pairs"):
        transitive_reduction(cycle)
    with pytest.raises(ValueError, match="topological_order.*3 pairs"):
        topological_order(cycle)


def test_topological_order_respects_every_row():
    kept = kept_of(np.random.default_rng(3), 12, 800)
    place = {tuple(p): at for at, p in enumerate(topological_order(kept).tolist())}
    assert len(place) == len(np.unique(kept.reshape(-1, 2), axis=0))
    assert all(place[a, b] < place[c, d] for a, b, c, d in kept.tolist())
