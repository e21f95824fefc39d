"""Whether all objects were compared with each other, directly or through others.

Distances between sets of objects that no comparison joins are arbitrary: the sets have no common scale.
"""

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.state.snapshot import Snapshot, triplet_columns


def components(snapshot: Snapshot) -> np.ndarray | None:
    """(n,) the component of each object in the graph whose edges join the objects of each comparison: 0 is the largest
    component, -1 an object without comparisons. None if some comparisons are only summed. O(questions)."""
    counted = {"triplets": "triplet_counts", "quadruplets": "quadruplet_counts"}
    if any(snapshot.counters[kind] and not snapshot.section(counts) for kind, counts in counted.items()):
        return None
    n, columns = len(snapshot.objects), triplet_columns(snapshot)
    pair = pair_of_entry(columns)
    edges = [(columns.anchor, columns.lo[pair]), (columns.anchor, columns.hi[pair])]
    if quadruplets := snapshot.section("quadruplet_counts"):
        edges += [(quadruplets["i"], quadruplets[second]) for second in ("j", "k", "l")]
    first, second = (np.concatenate([np.asarray(edge[side], np.int64) for edge in edges]) for side in (0, 1))
    return joined(first, second, n)


def are_connected(sets: np.ndarray | None) -> bool:
    """Whether no object is known to be in another component (of `components`) than the rest."""
    return sets is None or bool(sets.max(initial=0) == 0)


def members(sets: np.ndarray | None, ids: np.ndarray) -> list[np.ndarray]:
    """The objects `ids` by component, the largest component first; objects without comparisons, if any, come last. All
    of them together where nothing is known of components.

    >>> [ids.tolist() for ids in members(np.array([0, 1, 0, -1, 1]), np.array([4, 0, 2, 3]))]
    [[0, 2], [4], [3]]
    """
    if sets is None or are_connected(sets):
        return [ids]
    order = np.argsort(np.where(sets[ids] < 0, len(sets), sets[ids]), kind="stable")
    starts = np.flatnonzero(np.diff(sets[ids][order])) + 1
    return np.split(ids[order], starts)


def joined(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """(n,) the component of each node in the graph with edges (first, second): 0 is the largest, -1 has no edge.

    >>> joined(np.array([4, 0, 1]), np.array([3, 1, 2]), 6).tolist()
    [0, 0, 0, 1, 1, -1]
    """
    compared = np.zeros(n, bool)
    compared[first] = compared[second] = True
    label = smallest_reachable(first, second, n)
    labels, sizes = np.unique(label[compared], return_counts=True)
    rank = np.full(n, -1)
    rank[labels[np.argsort(-sizes, kind="stable")]] = np.arange(len(labels))
    return np.where(compared, rank[label], -1) if n else np.empty(0, int)


def smallest_reachable(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """(n,) the smallest node that can be reached from each of n nodes."""
    # Labels decrease until no edge joins two of them, in each round also to the labels of labels. scipy has this, too;
    # loading it takes longer than `inspect`.
    label = np.arange(n)
    while True:
        lower = np.minimum(label[first], label[second])
        previous = label.copy()
        np.minimum.at(label, previous[first], lower)
        np.minimum.at(label, previous[second], lower)
        label = label[label]
        if np.array_equal(label, previous):
            return label
