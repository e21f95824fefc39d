"""The guard against the slow truth: depth-first reachability over Python sets, on worlds of 3 to 6 objects.

Caught here: a missed or invented cycle, a wrong verdict, edges lost in an adjacency, a wrong reorder, unjustified
masks, state that is not the whole state. Not caught here: slowness (tests/benchmarks/stage_guard.py).
"""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from stream_engine.data.comparisons import Batch, interleaved
from stream_engine.guard import graph, order_maintenance, reachability_masks
from stream_engine.guard.invariants import check_sequence
from stream_engine.guard.pair_nodes import AT_ONCE
from stream_engine.guard.pair_rows import sorted_edges
from stream_engine.guard.partial_order import POLICIES, VERDICTS, PartialOrder, Verdicts, topological_order
from tests.support.generators import as_batch, dense_batch, planted_triplets

EXACT = ("first", "drop-both", "majority")


class Reference:
    """The three exact policies from their definitions: a dict of sets, and a depth-first search a comparison."""

    def __init__(self, policy):
        self.policy, self.after, self.seen, self.net = policy, {}, set(), Counter()

    def reaches(self, a, b):
        stack, met = [a], {a}
        while stack:
            x = stack.pop()
            if x == b:
                return True
            new = self.after.get(x, set()) - met
            met |= new
            stack += new
        return False

    def keeps(self, p, q):
        return q in self.after.get(p, ())

    def attempt(self, p, q):
        if self.reaches(q, p):
            return "cycle"
        self.after.setdefault(p, set()).add(q)
        return "accepted"

    def offer(self, p, q, weight=1):
        same, opposite = self.keeps(p, q), self.keeps(q, p)
        if self.policy == "drop-both":
            self.seen.add((p, q))
            if (q, p) in self.seen:
                self.after.get(q, set()).discard(p)
                return "contradiction"
        if self.policy == "majority":
            self.net[p, q] += weight
            self.net[q, p] -= weight
            if opposite and self.net[p, q] >= 0:
                self.after[q].discard(p)
                if self.net[p, q] > 0:
                    self.attempt(p, q)
            if not same and not opposite and self.net[p, q] <= 0:
                return "contradiction"
        if same:
            return "duplicate"
        return "contradiction" if opposite else self.attempt(p, q)

    def kept(self):
        return sorted((*p, *q) for p, after in self.after.items() for q in after)


def pairs_of(row):
    i, j, k, l = (int(x) for x in row)
    return (min(i, j), max(i, j)), (min(k, l), max(k, l))


def reference_run(policy, rows):
    reference = Reference(policy)
    return reference, [reference.offer(*pairs_of(row)) for row in rows]


def same_state(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and np.array_equal(a[k], b[k]) for k in a)


def chain(n, quadruplets=True):
    """{0,1} < {2,3} < {4,5} < ... as quadruplets."""
    at = 2 * np.arange(n, dtype=np.int32)
    quads = np.stack([at, at + 1, at + 2, at + 3], axis=1)
    return Batch(np.empty((0, 3), np.int32), quads, np.zeros(n, np.int64), 2 * n + 2)


@pytest.mark.parametrize("policy", EXACT)
def test_every_verdict_is_that_of_a_depth_first_search(policy):
    """1,500 little worlds a policy: same verdicts in the same order, same kept set."""
    reached = Counter()
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        batch = dense_batch(rng, 3 + seed % 4, 10 + seed % 60, quadruplets=0.4)
        guard, rows = PartialOrder(policy), interleaved(batch)
        reference, expected = reference_run(policy, rows)
        got = [VERDICTS[c] for c in guard.judge(batch)]
        assert got == expected, (seed, rows.tolist())
        assert [tuple(r) for r in guard.kept().tolist()] == reference.kept(), seed
        reached.update(got)
        if seed % 10 == 0:
            guard.check()
    assert min(reached[v] for v in VERDICTS) > 500, reached


@pytest.mark.parametrize("policy", POLICIES)
def test_invariants_hold_after_every_comparison(policy):
    """check() after each step, with supports re-chosen at every turn so that masks are always at work."""
    for seed in range(12):
        guard = PartialOrder(policy)
        for row in interleaved(dense_batch(np.random.default_rng(seed), 5, 60)):
            if policy != "sift":
                reachability_masks.choose(guard._guard.graph)
            guard._judge_rows(row[None], np.empty(0, np.int64))
            guard.check()
            kept = guard.kept()
            assert len(topological_order(kept)) == len(np.unique(kept.reshape(-1, 2), axis=0))


@pytest.mark.parametrize("policy", EXACT)
def test_denser_worlds_with_supports_and_growing_pools(policy):
    """14 to 24 objects, thousands of comparisons: blocks move, tables grow, supports are chosen, masks end searches."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = 14 + 2 * seed
        points = rng.random((n, 2))
        rows = interleaved(as_batch(planted_triplets(rng, points, 3000, flip=0.15), n))
        reference, expected = reference_run(policy, rows)
        guard = PartialOrder(policy)
        got = guard._judge_rows(rows, np.empty(0, np.int64))
        assert [VERDICTS[c] for c in got] == expected, seed
        assert [tuple(r) for r in guard.kept().tolist()] == reference.kept()
        assert guard._guard.graph.book[graph.SUPPORT :].any(), "no supports were ever chosen: nothing tested"
        guard.check()


def test_first_refuses_only_what_closes_a_cycle_in_the_final_order():
    rng = np.random.default_rng(5)
    batch = as_batch(planted_triplets(rng, rng.random((12, 2)), 4000, flip=0.3), 12)
    guard = PartialOrder()
    refused = interleaved(batch)[guard.judge(batch) >= VERDICTS.index("contradiction")]
    final = Reference("first")
    for near_i, near_j, far_i, far_j in guard.kept().tolist():
        final.after.setdefault((near_i, near_j), set()).add((far_i, far_j))
    assert len(refused) > 500
    for row in np.unique(refused, axis=0):
        p, q = pairs_of(row)
        assert final.reaches(q, p), row


def test_agrees_with_rustworkx_on_a_food_like_stream():
    import rustworkx

    rng = np.random.default_rng(1)
    batch = as_batch(planted_triplets(rng, rng.random((60, 3)), 12_000, flip=0.15), 60)
    rival, node_of, expected = rustworkx.PyDiGraph(check_cycle=True, multigraph=False), {}, []
    for row in interleaved(batch):
        u, v = (node_of[p] if p in node_of else node_of.setdefault(p, rival.add_node(p)) for p in pairs_of(row))
        if rival.has_edge(u, v):
            expected.append("duplicate")
        elif rival.has_edge(v, u):
            expected.append("contradiction")
        else:
            try:
                rival.add_edge(u, v, None)
                expected.append("accepted")
            except rustworkx.DAGWouldCycle:
                expected.append("cycle")
    assert [VERDICTS[c] for c in PartialOrder().judge(batch)] == expected
    assert min(Counter(expected)[v] for v in VERDICTS) > 50


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("backward", [False, True])
def test_long_chains_are_kept_whole(policy, backward):
    batch = chain(2000)
    if backward:
        batch = batch._replace(quadruplets=batch.quadruplets[::-1].copy())
    guard = PartialOrder(policy)
    verdicts = guard.offer(batch)
    if policy == "sift":  # a total order that moves one pair at a time owes nothing to consistency of long chains
        assert sum(verdicts) == 2000
    else:
        assert verdicts == (2000, 0, 0, 0)
        closing = np.array([[4000, 4001, 0, 1]], np.int32)
        again = batch._replace(quadruplets=closing, quadruplet_at=np.zeros(1, np.int64))
        assert guard.offer(again) == (0, 0, 0, 1)
    guard.check()


def test_reversed_merge_of_chains_costs_little_and_stays_exact():
    """Chains are joined last to first, so that whole blocks must move: the reorder of the two-way search."""
    rows = []
    for block in range(30):
        rows += [[1000 * block + i, 900_000, 1000 * block + i + 1, 900_000] for i in range(30)]
    rows += [[1000 * b + 30, 900_000, 1000 * (b - 1), 900_000] for b in range(1, 30)]
    guard = PartialOrder()
    assert set(guard._judge_rows(np.array(rows, np.int32), np.empty(0, np.int64))) == {0}
    guard.check()
    assert guard._judge_rows(np.array([[30, 900_000, 29_000, 900_000]], np.int32), np.empty(0, np.int64)) == [3]


def test_one_comparison_of_each_verdict_by_hand():
    """{0,1} < {0,2} < {0,3}: said again, turned round, closed to a triangle; then what each policy makes of it."""
    triplets = [[0, 1, 2], [0, 2, 3], [0, 1, 2], [0, 2, 1], [0, 3, 1], [0, 2, 1], [0, 2, 1], [0, 3, 1]]
    expected = {
        "first": "accepted accepted duplicate contradiction cycle contradiction contradiction cycle",
        # 0,2,1 strikes {01},{02}: the way from {01} to {03} is gone, so 0,3,1 is accepted
        "drop-both": "accepted accepted duplicate contradiction accepted contradiction contradiction duplicate",
        # net of {01}<{02}: 1, 2, 1, then 0 (taken away), then -1: turned round, as nothing leads back any more
        "majority": "accepted accepted duplicate contradiction cycle contradiction accepted accepted",
    }
    for policy, verdicts in expected.items():
        guard = PartialOrder(policy)
        got = [VERDICTS[c] for c in guard.judge(as_batch(triplets, 4))]
        assert got == verdicts.split(), policy
    kept = PartialOrder("drop-both")
    kept.offer(as_batch(triplets, 4))
    assert kept.kept().tolist() == [[0, 2, 0, 3], [0, 3, 0, 1]]


@pytest.mark.parametrize("policy", POLICIES)
def test_resumed_equals_uninterrupted_at_every_cut(policy):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        batch = dense_batch(rng, 4 + seed % 3, 70)
        rows = interleaved(batch)
        whole = PartialOrder(policy)
        codes = whole._judge_rows(rows, np.empty(0, np.int64))
        for cut in rng.integers(0, len(rows) + 1, 5):
            part = PartialOrder(policy)
            part._judge_rows(rows[:cut], np.empty(0, np.int64))
            state = part.state()
            resumed = PartialOrder.from_state(state, policy)
            resumed.check()
            assert same_state(resumed.state(), state)
            captured = resumed.capture()
            assert np.array_equal(resumed._judge_rows(rows[cut:], np.empty(0, np.int64)), codes[cut:])
            assert same_state(resumed.state(), whole.state())
            assert same_state(captured(), state), "what was captured changed with the guard"


@pytest.mark.parametrize("policy", POLICIES)
def test_batching_changes_nothing(policy):
    batch = dense_batch(np.random.default_rng(3), 5, 200)
    rows, one = interleaved(batch), PartialOrder(policy)
    for row in rows:
        one._judge_rows(row[None], np.empty(0, np.int64))
    whole = PartialOrder(policy)
    assert sum(whole.offer(batch)) == len(rows)
    assert same_state(one.state(), whole.state())


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_found_ahead_change_nothing(policy):
    """New pairs all along, in blocks longer than those whose nodes are found at once: not even the live sequence is
    another than that of comparisons one by one, though tables and pools grow in the midst of a block."""
    for seed, (n, flip) in enumerate([(70, 0.15), (40, 0.4), (1500, 0.0)]):
        rng = np.random.default_rng(seed)
        rows = interleaved(as_batch(planted_triplets(rng, rng.random((n, 2)), 2 * AT_ONCE + 500, flip=flip), n))
        one, whole, some = PartialOrder(policy), PartialOrder(policy), PartialOrder(policy)
        codes = np.concatenate([one._judge_rows(row[None], np.empty(0, np.int64)) for row in rows])
        assert np.array_equal(whole._judge_rows(rows, np.empty(0, np.int64)), codes)
        for part in np.array_split(rows, 5):
            some._judge_rows(part, np.empty(0, np.int64))
        for guard in (whole, some):
            assert np.array_equal(guard._guard.order(), one._guard.order())
            assert same_state(guard.state(), one.state())
        whole.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_renaming_commutes_with_offering(policy):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = interleaved(dense_batch(rng, 5, 80))
        new_id = rng.permutation(9)[:5].astype(np.int32)
        plain, renamed = PartialOrder(policy), PartialOrder(policy)
        codes = plain._judge_rows(rows, np.empty(0, np.int64))
        assert np.array_equal(renamed._judge_rows(new_id[rows], np.empty(0, np.int64)), codes)
        assert same_state(PartialOrder.renamed(plain.state(), new_id, policy), renamed.state())


@pytest.mark.parametrize("policy", POLICIES)
def test_merge_offers_what_the_other_holds(policy):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        rows, more = interleaved(dense_batch(rng, 5, 60)), interleaved(dense_batch(rng, 5, 60))
        new_id = rng.permutation(5).astype(np.int32)
        ours, theirs = PartialOrder(policy), PartialOrder(policy)
        ours._judge_rows(rows, np.empty(0, np.int64))
        theirs._judge_rows(more, np.empty(0, np.int64))
        before = theirs.state()
        verdicts = ours.merge_from(theirs, new_id)
        ours.check()
        assert same_state(theirs.state(), before)
        assert isinstance(verdicts, Verdicts) and sum(verdicts) >= len(theirs.kept())
        if policy in ("majority", "sift"):  # net votes add up exactly
            net = Counter()
            for row in np.concatenate([rows, new_id[more]]):
                p, q = pairs_of(row)
                net[p, q] += 1
                net[q, p] -= 1
            state = ours.state()
            said = [state[k] for k in (("kept", "refused") if policy == "majority" else ("voted",))]
            votes = [state[k] for k in (("kept_net", "refused_net") if policy == "majority" else ("net",))]
            found = {pairs_of(r): int(v) for r, v in zip(np.concatenate(said), np.concatenate(votes))}
            assert found == {edge: v for edge, v in net.items() if v > 0}
        if policy == "drop-both":
            said = {pairs_of(r) for r in np.concatenate([rows, new_id[more]])}
            both = {frozenset(edge) for edge in said if edge[::-1] in said}
            assert {frozenset(pairs_of(r)) for r in ours.state()["struck"]} == both
        if policy == "first":
            reference, _ = reference_run(policy, np.concatenate([rows, PartialOrder.renamed(before, new_id)["kept"]]))
            assert [tuple(r) for r in ours.kept().tolist()] == reference.kept()


def test_heavy_votes_turn_an_edge_round_at_once():
    """Only merging says a comparison many times over: majority then takes the old edge away and keeps the new one."""
    ours, theirs = PartialOrder("majority"), PartialOrder("majority")
    ours.offer(as_batch([[0, 1, 2]], 3))
    theirs.offer(as_batch([[0, 2, 1]] * 3, 3))
    assert ours.merge_from(theirs) == (0, 0, 1, 0)
    assert ours.kept().tolist() == [[0, 2, 0, 1]] and ours.state()["kept_net"].tolist() == [2]
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = interleaved(dense_batch(rng, 4, 60))
        weights = rng.integers(1, 4, len(rows))
        reference, guard = Reference("majority"), PartialOrder("majority")
        expected = [reference.offer(*pairs_of(row), int(w)) for row, w in zip(rows, weights)]
        assert [VERDICTS[c] for c in guard._judge_rows(rows, weights)] == expected
        assert [tuple(r) for r in guard.kept().tolist()] == reference.kept()
        guard.check()


def sift_reference(rows):
    """The sift policy in plain Python: a list as order, dicts of net votes, the best slot by trying all of them."""
    order, net, debt, votes, verdicts = [], Counter(), Counter(), Counter(), []
    for row in rows:
        p, q = pairs_of(row)
        order += [x for x in (p, q) if x not in order]
        before = net[p, q]
        net[p, q] += 1
        net[q, p] -= 1
        votes.update((p, q))
        agrees = order.index(p) < order.index(q)
        for x in () if agrees else (p, q):
            debt[x] += 1
            if 50 * debt[x] > votes[x]:
                debt[x] = 0
                sift_one(order, net, x)
        if before > 0 and agrees:
            verdicts.append("duplicate")
        elif (before < 0 and not agrees) or net[p, q] <= 0:
            verdicts.append("contradiction")
        else:
            verdicts.append("accepted" if order.index(p) < order.index(q) else "cycle")
    kept = sorted((*p, *q) for (p, q), v in net.items() if v > 0 and order.index(p) < order.index(q))
    return order, debt, verdicts, kept


def sift_one(order, net, x):
    near = [y for y in order if y != x and net[x, y] != 0]
    place = sum(order.index(y) < order.index(x) for y in near)

    def agreeing(k):
        return sum(max(net[y, x], 0) for y in near[:k]) + sum(max(net[x, y], 0) for y in near[k:])

    best = max(range(len(near) + 1), key=lambda k: (agreeing(k), -abs(k - place), -k))
    if agreeing(best) > agreeing(place):
        order.remove(x)
        order.insert(order.index(near[best - 1]) + 1 if best > place else order.index(near[best]), x)


def test_sift_is_its_definition():
    reached = Counter()
    for seed in range(160):
        # up to hundreds of votes a pair: a node must owe several before it is moved
        batch = dense_batch(np.random.default_rng(seed), *((4, 500) if seed % 8 == 0 else (4 + seed % 3, 120)))
        guard = PartialOrder("sift")
        codes = guard.judge(batch)
        order, debt, verdicts, kept = sift_reference(interleaved(batch))
        assert [VERDICTS[c] for c in codes] == verdicts, seed
        assert [tuple(p) for p in guard.topological_order().tolist()] == order, seed
        assert guard.state()["debt"].tolist() == [debt[p] for p in order]
        reached["in debt"] += sum(debt.values()) > 0
        assert [tuple(r) for r in guard.kept().tolist()] == kept
        reached.update(verdicts)
    assert min(reached[v] for v in VERDICTS) > 200 and reached["in debt"] > 10, reached


def test_a_sifted_order_resumes_with_its_debts():
    """Hundreds of votes a pair, so that debts are pending at the cuts."""
    owing = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = interleaved(as_batch(planted_triplets(rng, rng.random((5, 2)), 1500, flip=0.4), 5))
        whole = PartialOrder("sift")
        codes = whole._judge_rows(rows, np.empty(0, np.int64))
        for cut in rng.integers(600, 1400, 6):
            part = PartialOrder("sift")
            part._judge_rows(rows[:cut], np.empty(0, np.int64))
            owing += part.state()["debt"].sum() > 0
            resumed = PartialOrder.from_state(part.state(), "sift")
            assert np.array_equal(resumed._judge_rows(rows[cut:], np.empty(0, np.int64)), codes[cut:])
            assert same_state(resumed.state(), whole.state())
    assert owing > 60


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
                order_maintenance.insert_one(node, link, after, np.int64(new[0]))
            else:
                order_maintenance.insert_after(node, link, after, work, np.int64(1), np.int64(size))
            expected[at:at] = new
            x += size
            follower = expected[at + size] if at + size < len(expected) else None
            labels = [int(node[y, 0]) for y in (after, *new)] + [
                int(node[follower, 0]) if follower else order_maintenance.END
            ]
            assert all(a < b for a, b in pairwise(labels)), labels
        check_sequence(node, link, n)
        assert order_maintenance.in_order(link, n).tolist() == expected


def test_object_ids_up_to_the_last_int32():
    top = 2**31 - 1
    rows = np.array([[top, top - 1, top, 0], [0, top, top - 2, top], [top - 2, top, top - 1, top]], np.int32)
    guard = PartialOrder()
    assert guard._judge_rows(rows, np.empty(0, np.int64)).tolist() == [0, 0, 3]
    assert guard.kept().tolist() == [[0, top, top - 2, top], [top - 1, top, 0, top]]
    guard.check()


def test_a_senseless_comparison_stops_the_whole_batch_with_its_place():
    guard = PartialOrder()
    for bad in ([0, 1, 1], [0, 0, 1], [0, 1, 0], [0, -1, 2]):
        with pytest.raises(ValueError, match=r"comparison 1: \(.*nothing was offered"):
            guard.offer(as_batch([[0, 1, 2], bad], 3))
    assert len(guard.kept()) == 0
    with pytest.raises(ValueError, match="guard policy 'last' is unknown; known: first, drop-both, majority, sift"):
        PartialOrder("last")
    with pytest.raises(ValueError, match="cannot merge a guard with policy 'sift' into one with 'first'"):
        guard.merge_from(PartialOrder("sift"))


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_offered(policy):
    guard = PartialOrder(policy)
    assert guard.offer(as_batch(np.empty((0, 3)), 0)) == (0, 0, 0, 0)
    assert guard.kept().shape == guard.topological_order().repeat(2, axis=1).shape == (0, 4)
    assert same_state(PartialOrder.from_state(guard.state(), policy).state(), guard.state())
    assert same_state(PartialOrder.from_state({}, policy).state(), guard.state())
    guard.check()


@pytest.mark.parametrize("policy", POLICIES)
def test_state_is_not_tied_to_the_guard(policy):
    """No array of a state changes with the guard, and a restored guard does not write to what it was given."""
    rng = np.random.default_rng(0)
    first, later = dense_batch(rng, 5, 60), dense_batch(rng, 5, 60)
    guard = PartialOrder(policy)
    guard.offer(first)
    state = guard.state()
    copies = {k: v.copy() for k, v in state.items()}
    for array in state.values():
        array.setflags(write=False)
    PartialOrder.from_state(state, policy).offer(later)
    guard.offer(later)
    assert same_state(state, copies)


def test_check_prints_the_structure_when_it_is_broken():
    guard = PartialOrder()
    guard.offer(dense_batch(np.random.default_rng(0), 5, 30))
    g = guard._guard.graph
    u = int(np.flatnonzero(g.node[:, graph.OUT_LEN])[0])
    g.node[u, graph.FROM] |= np.int64(1) << 40
    with pytest.raises(AssertionError, match="unjustified bits"):
        guard.check()
    g.node[u, graph.FROM] = 0
    g.node[u, graph.LABEL] = order_maintenance.END - 1
    with pytest.raises(AssertionError, match="labels do not increase"):
        guard.check()


@pytest.mark.data
def test_real_food_judgements(judgements):
    import pyarrow.csv

    table = pyarrow.csv.read_csv(judgements / "food100" / "triplets.csv.gz")
    names, at = {}, []
    for column in ("anchor", "near", "far"):
        at.append([names.setdefault(x, len(names)) for x in table[column].to_pylist()])
    batch = as_batch(np.array(at, np.int32).T, len(names))
    guard = PartialOrder()
    verdicts = guard.offer(batch)
    assert sum(verdicts) == 250_320 and min(verdicts) > 0 and len(names) == 100
    assert len(guard.kept()) == verdicts.accepted and verdicts.contradiction < 250_320 // 10
    assert len(topological_order(guard.kept())) <= 4950


@pytest.mark.parametrize("most", [5, 60, 2**31 - 1])
def test_edges_are_sorted_by_their_pairs_however_sparse_the_ids(most):
    """Pairs in any order, over ids as many as pairs and over ids far apart: their rows as Python sorts them."""
    rng = np.random.default_rng(most)
    pairs = {tuple(sorted(rng.choice(min(most, 2**20), 2, replace=False).tolist())) for _ in range(40)}
    pairs |= {(0, most)}
    pairs = [pair for _, pair in sorted(zip(rng.random(len(pairs)).tolist(), pairs, strict=True))]
    edges = [(a, b) for a in range(len(pairs)) for b in range(len(pairs)) if a != b and rng.random() < 0.2]
    edges = rng.permutation(edges).astype(np.int32)
    votes = rng.permutation(len(edges))
    keys = np.array([lo << 31 | hi for lo, hi in pairs])
    rows, beside = sorted_edges(keys, edges, votes)
    wanted = sorted((*pairs[a], *pairs[b], vote) for (a, b), vote in zip(edges.tolist(), votes.tolist(), strict=True))
    assert np.column_stack([rows, beside]).tolist() == [list(row) for row in wanted]
    assert (sorted_edges(keys, edges)[0] == rows).all()


@pytest.mark.parametrize("policy", EXACT)
def test_what_was_captured_does_not_change_while_more_is_judged(policy):
    rng, guard = np.random.default_rng(1), PartialOrder(policy)
    guard.offer(dense_batch(rng, 8, 200))
    before, later = guard.state(), guard.capture()
    for _ in range(4):
        guard.offer(as_batch(planted_triplets(rng, rng.normal(size=(40, 2)), 500, 0.2), 40))
    after = later()
    assert before.keys() == after.keys() and all((before[name] == after[name]).all() for name in before)
    assert len(guard.state()["kept"]) > len(before["kept"])
