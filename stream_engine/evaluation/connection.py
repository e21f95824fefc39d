"""Whether all objects were compared with each other, directly or through others.

Two sets of objects that no comparison joins have no common scale: their distance on a map, and everything that is said
across them, is arbitrary. Components of the graph with an edge between the objects of each comparison. O(questions).
"""

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.state.snapshot import Snapshot, triplet_columns


def components(snapshot: Snapshot) -> np.ndarray | None:
    """(n,) which component each object is in, the largest 0; -1 for an object that was never compared. None where
    comparisons of four objects are not kept one by one."""
    if snapshot.counters["quadruplets"] and not snapshot.section("quadruplet_counts"):
        return None
    n, columns = len(snapshot.objects), triplet_columns(snapshot)
    pair = pair_of_entry(columns)
    ends = [(columns.anchor, columns.lo[pair]), (columns.anchor, columns.hi[pair])]
    if four := snapshot.section("quadruplet_counts"):
        ends += [(four["i"], four[other]) for other in ("j", "k", "l")]
    one, other = (np.concatenate([np.asarray(each[side], np.int64) for each in ends]) for side in (0, 1))
    return joined(one, other, n)


def joined(one: np.ndarray, other: np.ndarray, n: int) -> np.ndarray:
    """(n,) which component of a graph with these edges each node is in, the largest 0; -1 for one without an edge.

    >>> joined(np.array([4, 0, 1]), np.array([3, 1, 2]), 6).tolist()
    [0, 0, 0, 1, 1, -1]
    """
    compared = np.zeros(n, bool)
    compared[one] = compared[other] = True
    label = smallest_reached(one, other, n)
    found, sizes = np.unique(label[compared], return_counts=True)
    rank = np.full(n, -1)
    rank[found[np.argsort(-sizes, kind="stable")]] = np.arange(len(found))
    return np.where(compared, rank[label], -1) if n else np.empty(0, int)


def smallest_reached(one: np.ndarray, other: np.ndarray, n: int) -> np.ndarray:
    """(n,) the smallest number that each of n nodes is joined with by edges: labels fall until no edge joins two of
    them, each round also through the labels of labels. scipy has this too; loading it takes longer than `inspect`."""
    label = np.arange(n)
    while True:
        low = np.minimum(label[one], label[other])
        before = label.copy()
        np.minimum.at(label, before[one], low)
        np.minimum.at(label, before[other], low)
        label = label[label]
        if np.array_equal(label, before):
            return label
