"""The guard against the slow truth: depth-first reachability over Python sets, on worlds of 3 to 6 objects.

Caught here: a missed or invented cycle, a wrong verdict, edges lost in an adjacency, a wrong reorder, unjustified
masks, state that is not the whole state. Not caught here: slowness (tests/benchmarks/stage_parts.py).
"""

import copy
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from stream_engine.data.comparisons import Batch, interleaved
from stream_engine.order import graph, reachability_masks
from stream_engine.order.judging import MAX_NODES_AT_ONCE
from stream_engine.order.partial_order import VERDICTS, PartialOrder, Verdicts, topological_order
from tests.order.invariants import check_guard, check_sequence, reaches, sequence
from tests.support.generators import as_batch, dense_batch, planted_triplets


class Reference:
    """The guard from its definition: a dict of sets, and a depth-first search a comparison."""

    def __init__(self):
        self.after = {}

    def offer(self, p, q):
        if q in self.after.get(p, ()):
            return "duplicate"
        if p in self.after.get(q, ()):
            return "contradiction"
        if reaches(self.after, q, p):
            return "cycle"
        self.after.setdefault(p, set()).add(q)
        return "accepted"

    def kept(self):
        return sorted((*p, *q) for p, after in self.after.items() for q in after)


def pairs_of(row):
    i, j, k, l = (int(x) for x in row)
    return (min(i, j), max(i, j)), (min(k, l), max(k, l))


def reference_run(rows):
    reference = Reference()
    return reference, [reference.offer(*pairs_of(row)) for row in rows]


def same_state(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and np.array_equal(a[k], b[k]) for k in a)


def chain(n, quadruplets=True):
    """{0,1} < {2,3} < {4,5} < ... as quadruplets."""
    at = 2 * np.arange(n, dtype=np.int32)
    quads = np.stack([at, at + 1, at + 2, at + 3], axis=1)
    return Batch(np.empty((0, 3), np.int32), quads, np.zeros(n, np.int64), 2 * n + 2)


def test_every_verdict_is_that_of_a_depth_first_search():
    """600 little worlds: same verdicts in the same order, same kept set."""
    reached = Counter()
    for seed in range(600):
        rng = np.random.default_rng(seed)
        batch = dense_batch(rng, 3 + seed % 4, 10 + seed % 60, quadruplets=0.4)
        guard, rows = PartialOrder(), interleaved(batch)
        reference, expected = reference_run(rows)
        got = [VERDICTS[c] for c in guard.judge(batch)]
        assert got == expected, (seed, rows.tolist())
        assert [tuple(r) for r in guard.kept().tolist()] == reference.kept(), seed
        reached.update(got)
        if seed % 10 == 0:
            check_guard(guard)
    assert min(reached[v] for v in VERDICTS) > 200, reached


def test_invariants_hold_after_every_comparison():
    """check() after each step, with supports re-chosen at every turn so that masks are always at work."""
    for seed in range(12):
        guard = PartialOrder()
        for row in interleaved(dense_batch(np.random.default_rng(seed), 5, 60)):
            reachability_masks.choose(guard.graph)
            guard.judge_rows(row[None])
            check_guard(guard)
            kept = guard.kept()
            assert len(topological_order(kept)) == len(np.unique(kept.reshape(-1, 2), axis=0))


def test_denser_worlds_with_supports_and_growing_pools():
    """14 to 24 objects, thousands of comparisons: blocks move, tables grow, supports are chosen, masks end searches."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 14 + 2 * seed
        points = rng.random((n, 2))
        rows = interleaved(as_batch(planted_triplets(rng, points, 3000, flip=0.15), n))
        reference, expected = reference_run(rows)
        guard = PartialOrder()
        got = guard.judge_rows(rows)
        assert [VERDICTS[c] for c in got] == expected, seed
        assert [tuple(r) for r in guard.kept().tolist()] == reference.kept()
        assert guard.graph.book[graph.SUPPORT :].any(), "no supports were ever chosen: nothing tested"
        check_guard(guard)


@pytest.mark.parametrize("seed", range(3))
def test_supports_are_the_nodes_on_most_paths_nearby(seed):
    """Of each stretch of nodes with neighbours on both sides; paths of short edges, by matrices."""
    rng, n, most = np.random.default_rng(seed), 80, 6
    edges = np.triu(rng.random((n, n)) < 0.3, 1)
    edges[:, rng.integers(n, size=9)] = False
    near = np.triu(edges, 1) & ~np.triu(edges, n // reachability_masks.NEAR_BY + 1)
    paths = np.linalg.inv(np.eye(n) - near * min(1.0, reachability_masks.BRANCHING * n / near.sum()))
    through = paths.sum(axis=0) * paths.sum(axis=1)
    inner = np.flatnonzero(edges.any(axis=0) & edges.any(axis=1))
    start = np.append(0, np.cumsum(edges.sum(axis=1)))
    found = reachability_masks.central(start, np.nonzero(edges)[1].astype(np.int32), most)
    stretches = [inner[most * np.arange(len(inner)) // len(inner) == s] for s in range(most)]
    assert found.tolist() == [stretch[np.argmax(through[stretch])] for stretch in stretches]


@pytest.mark.parametrize("seed, arcs", [(0, 1122), (1, 1055)])
def test_supports_spare_searches(seed, arcs):
    """Arcs walked in the second half of a stream, supports being chosen after the first: no more than a tenth above
    what it took when this was written."""
    rng = np.random.default_rng(seed)
    rows = interleaved(as_batch(planted_triplets(rng, rng.random((60, 2)), 6000, flip=0.1), 60))
    guard = PartialOrder()
    guard.judge_rows(rows[:3000])
    reachability_masks.choose(guard.graph)
    guard.judge_rows(rows[3000:])
    assert 0 < guard.graph.book[graph.WALKED] <= 1.1 * arcs


@pytest.mark.parametrize("backward", [False, True])
def test_long_chains_are_kept_whole(backward):
    batch = chain(2000)
    if backward:
        batch = batch._replace(quadruplets=batch.quadruplets[::-1].copy())
    guard = PartialOrder()
    verdicts = guard.offer(batch)
    assert verdicts == (2000, 0, 0, 0)
    closing = np.array([[4000, 4001, 0, 1]], np.int32)
    again = batch._replace(quadruplets=closing, quadruplet_at=np.zeros(1, np.int64))
    assert guard.offer(again) == (0, 0, 0, 1)
    check_guard(guard)


def test_reversed_merge_of_chains_costs_little_and_stays_exact():
    """Chains are joined last to first, so that whole blocks must move: the reorder of the two-way search."""
    rows = []
    for block in range(30):
        rows += [[1000 * block + i, 900_000, 1000 * block + i + 1, 900_000] for i in range(30)]
    rows += [[1000 * b + 30, 900_000, 1000 * (b - 1), 900_000] for b in range(1, 30)]
    guard = PartialOrder()
    assert set(guard.judge_rows(np.array(rows, np.int32))) == {0}
    check_guard(guard)
    assert guard.judge_rows(np.array([[30, 900_000, 29_000, 900_000]], np.int32)) == [3]


def test_resumed_equals_uninterrupted_at_every_cut():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        batch = dense_batch(rng, 4 + seed % 3, 70)
        rows = interleaved(batch)
        whole = PartialOrder()
        codes = whole.judge_rows(rows)
        for cut in rng.integers(0, len(rows) + 1, 5):
            part = PartialOrder()
            part.judge_rows(rows[:cut])
            state = part.state()
            resumed = PartialOrder.from_state(state)
            check_guard(resumed)
            assert same_state(resumed.state(), state)
            captured = resumed.capture()
            assert np.array_equal(resumed.judge_rows(rows[cut:]), codes[cut:])
            assert same_state(resumed.state(), whole.state())
            assert same_state(captured(), state), "what was captured changed with the guard"


def test_nodes_found_ahead_change_nothing(monkeypatch):
    """New pairs all along, in blocks longer than those whose nodes are found at once: not even the live sequence is
    another than that of comparisons one by one, though tables and pools grow in the midst of a block, and nodes move in
    pieces that are given back."""
    monkeypatch.setattr(graph, "COPIED_ROWS", 1024)  # a page of the shortest
    for seed, (n, flip) in enumerate([(40, 0.4), (1500, 0.0)]):
        rng = np.random.default_rng(seed)
        rows = interleaved(
            as_batch(planted_triplets(rng, rng.random((n, 2)), 2 * MAX_NODES_AT_ONCE + 500, flip=flip), n)
        )
        one, whole, some = PartialOrder(), PartialOrder(), PartialOrder()
        codes = np.concatenate([one.judge_rows(row[None]) for row in rows])
        assert np.array_equal(whole.judge_rows(rows), codes)
        for part in np.array_split(rows, 5):
            some.judge_rows(part)
        for guard in (whole, some):
            assert np.array_equal(sequence(guard), sequence(one))
            assert same_state(guard.state(), one.state())
        check_guard(whole)


def test_a_pair_with_a_full_block_of_neighbours_takes_more_after_a_restart():
    guard = PartialOrder()
    guard.judge_rows(np.array([(0, 1, 0, far) for far in range(2, 66)], np.int32))
    restored = PartialOrder.from_state(guard.state())
    assert restored.judge_rows(np.array([[0, 1, 0, 66]])).tolist() == [VERDICTS.index("accepted")]


def test_a_copied_guard_grows_as_the_other():
    rows = interleaved(
        as_batch(planted_triplets(np.random.default_rng(3), np.random.default_rng(4).random((40, 2)), 900), 40)
    )
    guard = PartialOrder()
    guard.judge_rows(rows[:100])
    copied = copy.deepcopy(guard)
    assert np.array_equal(copied.judge_rows(rows[100:]), guard.judge_rows(rows[100:]))
    assert same_state(copied.state(), guard.state())


def test_renaming_commutes_with_offering():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = interleaved(dense_batch(rng, 5, 80))
        new_id = rng.permutation(9)[:5].astype(np.int32)
        plain, renamed = PartialOrder(), PartialOrder()
        codes = plain.judge_rows(rows)
        assert np.array_equal(renamed.judge_rows(new_id[rows]), codes)
        assert same_state(PartialOrder.renamed(plain.state(), new_id), renamed.state())


def test_merge_offers_what_the_other_holds():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        rows, more = interleaved(dense_batch(rng, 5, 60)), interleaved(dense_batch(rng, 5, 60))
        new_id = rng.permutation(5).astype(np.int32)
        ours, theirs = PartialOrder(), PartialOrder()
        ours.judge_rows(rows)
        theirs.judge_rows(more)
        before = theirs.state()
        verdicts = ours.merge_from(theirs, new_id)
        check_guard(ours)
        assert same_state(theirs.state(), before)
        assert isinstance(verdicts, Verdicts) and sum(verdicts) >= len(theirs.kept())
        reference, _ = reference_run(np.concatenate([rows, PartialOrder.renamed(before, new_id)["kept"]]))
        assert [tuple(r) for r in ours.kept().tolist()] == reference.kept()


def test_sequence_under_hostile_insertions():
    """Always at the front, always at the same place, in blocks: labels run out again and again."""
    for where in ("front", "middle", "random"):
        n, rng = 3000, np.random.default_rng(0)
        node, link = np.zeros((n + 1, 8), np.int64), np.zeros((n + 1, 2), np.int32)
        work = np.zeros((4, n + 1), np.int32)
        expected, x = [], 0
        while x < n:
            size = min(int(rng.integers(1, 9)), n - x)
            at = {"front": 0, "middle": len(expected) // 2, "random": int(rng.integers(len(expected) + 1))}[where]
            after = np.int64(expected[at - 1] if at else 0)
            new = list(range(x + 1, x + size + 1))
            work[1, :size] = new
            if size == 1:
                graph.insert_one(node, link, after, np.int64(new[0]))
            else:
                graph.insert_after(node, link, after, work, np.int64(1), np.int64(size))
            expected[at:at] = new
            x += size
            follower = expected[at + size] if at + size < len(expected) else None
            labels = [int(node[y, 0]) for y in (after, *new)] + [int(node[follower, 0]) if follower else graph.END]
            assert all(a < b for a, b in pairwise(labels)), labels
        check_sequence(node, link, n)
        assert graph.in_order(link, n).tolist() == expected


def test_object_ids_up_to_the_last_int32():
    top = 2**31 - 1
    rows = np.array([[top, top - 1, top, 0], [0, top, top - 2, top], [top - 2, top, top - 1, top]], np.int32)
    guard = PartialOrder()
    assert guard.judge_rows(rows).tolist() == [0, 0, 3]
    assert guard.kept().tolist() == [[0, top, top - 2, top], [top - 1, top, 0, top]]
    check_guard(guard)


def test_a_senseless_comparison_stops_the_whole_batch_with_its_place():
    guard = PartialOrder()
    for bad in ([0, 1, 1], [0, 0, 1], [0, 1, 0], [0, -1, 2]):
        with pytest.raises(ValueError, match=r"comparison 1: \("):
            guard.offer(as_batch([[0, 1, 2], bad], 3))
    assert len(guard.kept()) == 0


def test_nothing_offered():
    guard = PartialOrder()
    assert guard.offer(as_batch(np.empty((0, 3)), 0)) == (0, 0, 0, 0)
    assert guard.kept().shape == (0, 4) and topological_order(guard.kept()).shape == (0, 2)
    assert same_state(PartialOrder.from_state(guard.state()).state(), guard.state())
    assert same_state(PartialOrder.from_state({}).state(), guard.state())
    check_guard(guard)
