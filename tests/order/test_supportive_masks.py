"""The masks of supportive nodes as they are chosen: which nodes, by their definition, and for every node exactly those
that reach it and that it reaches. (That they are never wrong as the graph changes is in test_partial_order.)"""

import numpy as np
import pytest

from stream_engine.order.graph import FROM, OUT, SUPPORT, TO, in_order
from stream_engine.order.partial_order import PartialOrder
from stream_engine.order.reachability_masks import choose
from tests.order.invariants import blocks
from tests.support.generators import planted_triplets


def chosen(seed, n, m):
    """`(graph, successors, order)` of a guard with masks chosen just now."""
    rng = np.random.default_rng(seed)
    triplets = planted_triplets(rng, rng.random((n, 2)), m, flip=0.1)
    rows = np.concatenate([np.sort(triplets[:, :2], axis=1), np.sort(triplets[:, [0, 2]], axis=1)], axis=1)
    guard = PartialOrder()
    guard.judge_rows(rows.astype(np.int32))
    choose(guard.graph)
    successors = {x: [] for x in range(1, guard.graph.n_nodes + 1)}
    for u, v in blocks(guard.graph, int(OUT)):
        successors[u].append(v)
    return guard.graph, successors, in_order(guard.graph.link, guard.graph.n_nodes).tolist()


def central(successors, order):
    """For each node, the product of the weighted numbers of paths of short edges that lead to it and away from it."""
    at = {x: k for k, x in enumerate(order)}
    near = {x: [y for y in successors[x] if at[y] - at[x] < len(order) // 8 + 1] for x in order}
    weight = min(1.0, len(order) / max(sum(map(len, near.values())), 1))
    above, below = dict.fromkeys(order, 1.0), dict.fromkeys(order, 1.0)
    for x in order:
        for y in near[x]:
            above[y] += weight * above[x]
    for x in reversed(order):
        for y in near[x]:
            below[x] += weight * below[y]
    return {x: above[x] * below[x] for x in order}


def supports(successors, order):
    """Of 64 stretches with equally many nodes that have neighbours on both sides, the first of the most central."""
    entered, score = set().union(*successors.values()), central(successors, order)
    inner = [x for x in order if x in entered and successors[x]]
    best = {}
    stretch = 0
    for seen, x in enumerate(inner, 1):
        if score[x] > best.get(stretch, (0, 0))[0]:
            best[stretch] = score[x], x
        while 64 * seen >= (stretch + 1) * len(inner) and stretch < 63:
            stretch += 1
    return [best.get(i, (0, 0))[1] for i in range(64)]


@pytest.mark.parametrize(("seed", "n", "m"), [(0, 4, 8), (1, 6, 25), (2, 12, 90), (3, 25, 500), (4, 3, 1)])
def test_masks_are_exact_when_they_are_chosen(seed, n, m):
    graph, successors, order = chosen(seed, n, m)
    expected = supports(successors, order)
    assert graph.book[SUPPORT : SUPPORT + 64].tolist() == expected
    reached = {}  # x -> all that it reaches, and itself
    for x in reversed(order):
        reached[x] = {x}.union(*(reached[y] for y in successors[x]))
    for x in order:
        to = sum(1 << i for i, s in enumerate(expected) if s and s in reached[x])
        back = sum(1 << i for i, s in enumerate(expected) if s and x in reached[s])
        assert (int(graph.node[x, TO]) % 2**64, int(graph.node[x, FROM]) % 2**64) == (to, back)
    if n > 10:
        assert sum(s > 0 for s in expected) > 20
