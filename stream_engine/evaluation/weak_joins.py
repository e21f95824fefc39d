"""Sets of objects that few questions join: how such sets lie to each other is as good as unknown.

A set in d dimensions has d (d + 1) / 2 + 1 degrees of freedom beside another one: a translation, a rotation and a
scale. Fewer than `MIN_QUESTIONS` different questions about both do not fix them. So objects stay in one set where every
division of the set is crossed by at least as many. Objects that are asked about seldom are no set of their own: they
belong to the set that most of their questions are about.

Objects are merged in maximum adjacency orders (Nagamochi & Ibaraki 1992, "Computing Edge-Connectivity in Multigraphs
and Capacitated Graphs"): whoever reaches the bound in such an order cannot be cut off the objects before by fewer.
"""

from collections.abc import Sequence

import numpy as np

MIN_QUESTIONS = 10  # different questions across, from which on two sets are one
MIN_OBJECTS = 3  # of a set; fewer are objects that are asked about seldom
MAX_OBJECTS = 1000  # of which it is looked for: it needs O(n^2) time
MAX_STEPS = 12_000  # nodes in all orders, after which the nodes that are left are taken as one: a tenth of a second
_VISITED = -(1 << 30)


def well_joined(questions: Sequence[Sequence[np.ndarray]], n: int) -> np.ndarray:
    """(n,) int: which set each object is in, by the number of an object of it; -1 where it is connected to none of
    them. All -1 unless there are several sets, and for more than `MAX_OBJECTS` objects. `questions` are columns of the
    three or four objects of different questions. O(q + n^2).

    >>> rows = [(a, b, c) for of in (range(5), range(5, 10)) for a in of for b in of for c in of if a != b < c != a]
    >>> across = [(0, 1, 5), (2, 6, 7)]
    >>> well_joined([np.array(rows + across).T], 10).tolist()
    [0, 0, 0, 0, 0, 5, 5, 5, 5, 5]
    """
    if n > MAX_OBJECTS:
        return np.full(n, -1)
    weights = _weights(questions, n)
    merged = _merged(weights)
    _, inverse, sizes = np.unique(merged, return_inverse=True, return_counts=True)
    label = np.where(sizes[inverse] >= MIN_OBJECTS, merged, -1)
    if len(set(label[label >= 0].tolist())) < 2:
        return np.full(n, -1)
    _attach(label, weights)
    while True:  # what was attached may join two sets
        alone = np.where(label < 0, n, label)
        sets, number = np.unique(alone, return_inverse=True)
        merged = _merged(_summed(weights, number))
        label = np.where(label < 0, -1, sets[merged][number])
        if len(set(merged.tolist())) == len(sets):
            return label


def _weights(questions: Sequence[Sequence[np.ndarray]], n: int) -> np.ndarray:
    """(n, n) int32: a cycle through the objects of each question, of which a division of the objects cuts two edges if
    it divides the question (four if it divides both pairs of a question about four); more than the bound is as
    good as the bound."""
    edges = np.zeros(n * n, np.int64)
    for columns in questions:
        for one, other in zip(columns, (*columns[1:], columns[0])):
            edges += np.bincount(np.asarray(one, np.int64) * n + other, minlength=n * n)
    one_way = edges.reshape(n, n)
    weights = np.minimum(one_way + one_way.T, 2 * MIN_QUESTIONS).astype(np.int32)
    np.fill_diagonal(weights, 0)
    return weights


def _merged(weights: np.ndarray) -> np.ndarray:
    """(n,) int: the same number, a node of them, for nodes that no division with less than the bound separates."""
    bound, label = 2 * MIN_QUESTIONS, np.arange(len(weights))
    nodes, steps = label.copy(), 0  # those that may still be merged
    while True:
        kept = _after_peeling(weights, bound)
        nodes, weights = nodes[kept], weights[np.ix_(kept, kept)]
        if len(nodes) < 2:
            return label
        steps += len(nodes)
        first = _first_reached(weights, bound) if steps <= MAX_STEPS else np.zeros(len(nodes), int)
        label = _renamed(label, nodes, nodes[first])
        groups, number = np.unique(first, return_inverse=True)
        nodes, weights = nodes[groups], _summed(weights, number)


def _after_peeling(weights: np.ndarray, bound: int) -> np.ndarray:
    """The nodes that are left after removing, again and again, those with less than the bound."""
    total, kept = weights.sum(axis=1), np.ones(len(weights), bool)
    while len(weak := np.flatnonzero(kept & (total < bound))):
        kept[weak] = False
        total -= weights[weak].sum(axis=0)
    return np.flatnonzero(kept)


def _first_reached(weights: np.ndarray, bound: int) -> np.ndarray:
    """(m,) int: the first node of the group of each in a maximum adjacency order; the last two are always a group where
    every node has at least `bound`."""
    reach, group = np.zeros(len(weights), np.int32), np.arange(len(weights))
    for _ in range(len(weights)):
        node = int(reach.argmax())
        reach[node] = _VISITED
        further = reach + weights[node]
        group[(reach < bound) & (further >= bound)] = group[node]
        reach = further
    return group


def _renamed(label: np.ndarray, nodes: np.ndarray, names: np.ndarray) -> np.ndarray:
    name_of = np.arange(len(label))
    name_of[nodes] = names
    return name_of[label]


def _summed(weights: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Weights between groups of nodes, `number`ed from 0 without a gap."""
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(int(number.max()) + 1))
    sums = np.add.reduceat(np.add.reduceat(weights[order], starts, axis=0)[:, order], starts, axis=1)
    np.fill_diagonal(sums, 0)
    return sums


def _attach(label: np.ndarray, weights: np.ndarray) -> None:
    """Give each object without a set (-1) the one that most of its questions are about, in place; in rounds, as it may
    be asked about only with others that have none."""
    while len(rest := np.flatnonzero(label < 0)):
        sets = np.array(sorted(set(label[label >= 0].tolist())))
        to_set = np.stack([weights[rest][:, label == one].sum(axis=1) for one in sets], axis=1)
        found = to_set.max(axis=1) > 0
        if not found.any():
            return
        label[rest[found]] = sets[to_set[found].argmax(axis=1)]
