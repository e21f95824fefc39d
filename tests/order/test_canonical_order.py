"""The canonical order: acyclic, maximal, independent of arrival and sharding, and worth more than the arrival order.

Oracles: brute force over all total orders of four pairs; the planted distances on larger worlds.
"""

from collections import Counter

import numpy as np
import pytest

from stream_engine.data.comparisons import interleaved
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.order.canonical_order import Quadruplets, net_votes, votes_of
from stream_engine.order.graph import ALL_ARCS, create_nodes
from stream_engine.order.hash_tables import key_columns
from stream_engine.order.pair_rows import numbered
from stream_engine.order.partial_order import PartialOrder, canonical_order, weight_kept
from stream_engine.order.sifting import sifted
from tests.order.invariants import reaches, sequence
from tests.support.generators import dense_batch, planted_triplets


def slow_nets(rows):
    """{(near pair, far pair): net vote > 0} straight from the comparisons."""
    net = Counter()
    for row in rows.tolist():
        p, q = tuple(sorted(row[:2])), tuple(sorted(row[2:]))
        net[p, q] += 1
        net[q, p] -= 1
    return {edge: v for edge, v in net.items() if v > 0}


def quadruplets_of(batch):
    return Quadruplets(batch.quadruplets, np.ones(len(batch.quadruplets), np.int64))


def edges_of(rows):
    return {((a, b), (c, d)) for a, b, c, d in rows.tolist()}


@pytest.mark.parametrize("with_quadruplets", [False, True])
def test_net_votes_and_weight_are_their_definitions(with_quadruplets):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        batch = dense_batch(rng, 5, 80, quadruplets=0.5 * with_quadruplets)
        columns = columns_from_triplets(batch.triplets, 5)
        quads = quadruplets_of(batch) if with_quadruplets else None
        expected = slow_nets(interleaved(batch))
        rows, net = net_votes(columns, quads)
        edges = zip(map(tuple, rows[:, :2].tolist()), map(tuple, rows[:, 2:].tolist()))
        assert dict(zip(edges, net.tolist())) == expected
        assert rows.tolist() == sorted(rows.tolist())
        guard = PartialOrder()
        guard.offer(batch)
        kept = edges_of(guard.kept())
        weight = weight_kept(guard.kept(), columns, quads)
        assert weight == (sum(v for edge, v in expected.items() if edge in kept), sum(expected.values()))
        assert weight.fraction == weight.kept / weight.total


@pytest.mark.parametrize("with_quadruplets", [False, True])
def test_it_is_acyclic_maximal_and_follows_the_net_votes(with_quadruplets):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        batch = dense_batch(rng, 5, 90, quadruplets=0.5 * with_quadruplets)
        columns = columns_from_triplets(batch.triplets, 5)
        quads = quadruplets_of(batch) if with_quadruplets else None
        found, nets = canonical_order(columns, quads), slow_nets(interleaved(batch))
        kept = edges_of(found.kept)
        assert kept <= nets.keys()
        place = {tuple(p): at for at, p in enumerate(found.order.tolist())}
        assert all(place[p] < place[q] for p, q in kept)
        assert found.kept.tolist() == sorted(found.kept.tolist())
        after = {p: {v for u, v in kept if u == p} for p, _ in kept}
        for p, q in nets.keys() - kept:
            assert reaches(after, q, p), f"{p} -> {q} could still be kept"
        assert found.weight == (sum(nets[e] for e in kept), sum(nets.values()))


def by_the_guard(rows, net):
    """The order as its description says, each step by the live guard: every row is judged."""
    heaviest = np.argsort(-net, kind="stable")
    greedy = PartialOrder()
    greedy.graph.book[ALL_ARCS] = 1
    greedy.judge_rows(rows[heaviest])
    edges = numbered(rows)
    order, agrees = sifted(edges, net, np.searchsorted(edges.key, sequence(greedy)))
    whole = PartialOrder(max(64, len(order)))
    whole.graph.book[ALL_ARCS] = 1
    create_nodes(whole.graph, edges.key[order])
    whole.judge_rows(rows[agrees])
    whole.judge_rows(rows[heaviest])
    return whole.kept(), key_columns(sequence(whole))


@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_the_guard_makes_of_it_row_by_row(seed):
    rng = np.random.default_rng(seed)
    n = 5 + 2 * seed
    triplets = planted_triplets(rng, rng.random((n, 3)), 60 * n, flip=0.05 * (1 + seed % 6))
    columns = columns_from_triplets(triplets, n)
    found, expected = canonical_order(columns), by_the_guard(*net_votes(columns))
    assert np.array_equal(found.kept, expected[0]) and np.array_equal(found.order, expected[1])


def test_arrival_order_and_sharding_change_nothing():
    rng = np.random.default_rng(1)
    triplets = planted_triplets(rng, rng.random((15, 2)), 4000, flip=0.2)
    found = canonical_order(columns_from_triplets(triplets, 15))
    for other in (triplets[::-1], rng.permutation(triplets), np.concatenate([triplets[2000:], triplets[:2000]])):
        again = canonical_order(columns_from_triplets(other, 15))
        assert np.array_equal(again.kept, found.kept) and np.array_equal(again.order, found.order)
        assert again.weight == found.weight


def test_renamed_objects_give_the_same_order_when_no_two_weights_are_equal():
    """Ties go by object numbers, hence 'up to the numbering': without ties the numbering does not matter."""
    rng = np.random.default_rng(2)
    n = 6
    keys = [(a, b, c) for a in range(n) for b in range(n) for c in range(b + 1, n) if len({a, b, c}) == 3]
    votes = rng.permutation(np.arange(1, len(keys) + 1))
    turned = rng.random(len(keys)) < 0.5
    rows = [(a, c, b) if t else (a, b, c) for (a, b, c), t in zip(keys, turned)]
    triplets = np.repeat(np.array(rows, np.int32), votes, axis=0)
    new_id = rng.permutation(n).astype(np.int32)
    plain = canonical_order(columns_from_triplets(triplets, n))
    renamed = canonical_order(columns_from_triplets(new_id[triplets], n))
    assert plain.weight == renamed.weight and plain.weight.total == votes.sum()
    assert edges_of(renamed.kept) == edges_of(PartialOrder.renamed({"kept": plain.kept}, new_id)["kept"])
    assert np.array_equal(renamed.order, np.sort(new_id[plain.order], axis=1))


@pytest.mark.parametrize("rows", [np.empty((0, 3), np.int32), np.array([[0, 1, 2], [0, 2, 1]], np.int32)])
def test_nothing_and_only_contradictions(rows):
    found = canonical_order(columns_from_triplets(rows, 3))
    assert found.kept.shape == (0, 4) and found.order.shape == (0, 2)
    assert found.weight == (0, 0) and found.weight.fraction == 1.0


def test_net_votes_of_each_row():
    """Rows that were voted for, against, tied or never asked, in an order and without any."""
    columns = columns_from_triplets(np.array([[0, 1, 2]] * 3 + [[0, 2, 1], [1, 2, 0], [1, 0, 2], [2, 1, 0]]), 4)
    rows, net = net_votes(columns)  # the counts of {1; 0, 2} tie
    asked = np.array([[0, 1, 0, 2], [0, 1, 0, 3], [0, 1, 1, 2], [0, 2, 0, 1], [1, 2, 0, 2], [2, 3, 0, 3]], np.int32)
    assert votes_of(asked, rows, net).tolist() == [2, 0, 0, 0, 1, 0]
    assert votes_of(asked[:0], rows, net).tolist() == [] and not votes_of(asked, rows[:0], net[:0]).any()
