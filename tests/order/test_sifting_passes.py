"""Each step of the canonical order where it decides: every pass of sifting that is allowed and none after them, and the
last step, which takes back what the order is against but which closes no cycle."""

import numpy as np
import pytest

from stream_engine.order import canonical_order as module
from stream_engine.order.canonical_order import DistinctEdges, by_first_appearance, order_of_votes
from stream_engine.order.pair_rows import canonical, numbered
from stream_engine.order.sifting import MAX_PASSES, sifted


def random_votes(seed, pairs, share=1.0, most=3):
    """`(rows, net)`: so many pairs of objects, this share of all two of them compared, either way, by 1 .. most - 1."""
    rng = np.random.default_rng(seed)
    n = next(n for n in range(2, 99) if n * (n - 1) // 2 >= pairs)
    named = np.stack(np.triu_indices(n, 1), axis=1)[:pairs]
    i, j = np.triu_indices(pairs, 1)
    taken = rng.random(len(i)) < share
    i, j = i[taken], j[taken]
    turned = rng.random(len(i)) < 0.5
    i, j = np.where(turned, j, i), np.where(turned, i, j)
    return canonical(np.hstack([named[i], named[j]]).astype(np.int32), rng.integers(1, most, len(i)))


def greedy(rows, net):
    """`(edges, order)`: numbered rows, and the nodes in an order that the greedy comparisons agree with."""
    edges, heaviest = numbered(rows), np.argsort(-net, kind="stable")
    near, far = edges.near[heaviest], edges.far[heaviest]
    guard = DistinctEdges(by_first_appearance(near, far, len(edges.key)), near, far)
    guard.offer(near, far)
    return edges, guard.order()


def agreeing(order, edges, net):
    place = np.argsort(order)
    return int(net[place[edges.near] < place[edges.far]].sum())


def slow_passes(edges, net, order, passes):
    """By the definition: each node in the order they begin in goes to the slot, counted among those that it is compared
    with, where most net votes agree; of equally good slots to the nearest, then to the one in front."""
    votes = {}
    for p, q, v in zip(edges.near.tolist(), edges.far.tolist(), net.tolist()):
        votes.setdefault(p, {})[q], votes.setdefault(q, {})[p] = v, -v
    order, first = order.tolist(), order.tolist()
    for _ in range(passes):
        before = list(order)
        for x in first:
            others = [y for y in order if y in votes[x]]
            place = sum(1 for y in order[: order.index(x)] if y in votes[x])
            slots = range(len(others) + 1)
            worth = [sum(votes[x][y] * (1 if at >= k else -1) for at, y in enumerate(others)) for k in slots]
            best = max(slots, key=lambda k: (worth[k], -abs(k - place), -k))
            if worth[best] > worth[place]:
                order.remove(x)
                at = order.index(others[best]) if best < place else order.index(others[best - 1]) + 1
                order.insert(at, x)
        if order == before:
            break
    return order


@pytest.mark.parametrize(("seed", "pairs", "share"), [(0, 12, 1.0), (1, 20, 0.4), (2, 30, 0.2), (3, 30, 1.0)])
@pytest.mark.parametrize("passes", [0, 1, MAX_PASSES])
def test_sifting_is_its_definition_whatever_the_number_of_passes(seed, pairs, share, passes):
    rows, net = random_votes(seed, pairs, share, most=9)
    edges, begin = greedy(rows, net)
    order, agrees = sifted(edges, net, begin, passes)
    assert order.tolist() == slow_passes(edges, net, begin, passes)
    place = np.argsort(order)
    assert np.array_equal(agrees, place[edges.near] < place[edges.far])


def test_the_last_pass_that_is_allowed_decides_and_there_is_none_after_it():
    """150 pairs, each compared with each at random: 11 passes until nothing moves, of which 8 are made."""
    rows, net = random_votes(3, 150)
    edges, begin = greedy(rows, net)
    made = sifted(edges, net, begin)[0]
    kept, worth = order_of_votes(rows, net).weight.kept, []
    for passes in range(MAX_PASSES + 6):
        worth.append(agreeing(sifted(edges, net, begin, passes)[0], edges, net))
    assert worth[MAX_PASSES - 1] < worth[MAX_PASSES] < worth[MAX_PASSES + 1] < worth[-1]
    assert worth == sorted(worth) and worth[-1] == worth[-2] == worth[-3]
    assert agreeing(made, edges, net) == worth[MAX_PASSES] <= kept


@pytest.mark.parametrize("seed", range(6))
def test_what_the_order_is_against_is_kept_where_it_closes_no_cycle(seed):
    """q before x, y before p, and a vote for p before q in the order q x y p: no single node can move, yet y p q x is
    an order of all three. The last step finds it; in a net of few votes it does so again and again."""
    rows, net = random_votes(seed, 60, 0.2)
    edges, begin = greedy(rows, net)
    order, agrees = sifted(edges, net, begin)
    kept, _ = module.kept_of_votes(rows, net)
    found = order_of_votes(rows, net)
    assert (kept >= agrees).all() and kept.sum() > agrees.sum()
    assert np.array_equal(found.kept, rows[kept]) and found.weight == (net[kept].sum(), net.sum())
    place = {tuple(pair): at for at, pair in enumerate(found.order.tolist())}
    assert all(place[a, b] < place[c, d] for a, b, c, d in found.kept.tolist())
    assert module.is_acyclic(found.kept)
    for left in np.flatnonzero(~kept):
        assert not module.is_acyclic(canonical(np.concatenate([found.kept, rows[left : left + 1]]))[0])
