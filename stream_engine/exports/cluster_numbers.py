"""Numbers of clusters as people read them: from 1, the largest first.

The labels of an artifact keep the identity of a cluster from one refit to the next (`clustering.stability`), in
whatever order; programs go on reading them (`labels` of the export `clusters`, `cluster_label` of its tables).
"""

import numpy as np


def by_size(labels: np.ndarray) -> np.ndarray:
    """(n,) int: 0 for members of the largest cluster, 1 for those of the second ...; -1 stays. Of equal sizes the one
    with the first object comes first. O(n log n).

    >>> by_size(np.array([4, 2, 2, -1, 0, 0])).tolist()
    [2, 0, 0, -1, 1, 1]
    """
    return _map(labels)[labels]


def numbers(labels: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """(n,) int: the clusters of objects, or other labels `of` the same clusters, counted from 1; -1 stays.

    >>> numbers(np.array([4, 2, 2, -1])).tolist(), numbers(np.array([4, 2, 2]), np.array([2, -1, 4])).tolist()
    ([2, 1, 1, -1], [1, -1, 2])
    """
    ranks, given = _map(labels), labels if of is None else of
    found = ranks[np.where(given < len(ranks), given, -1)]
    return np.where(found >= 0, found + 1, -1)


def _map(labels: np.ndarray) -> np.ndarray:
    """(k + 1,) the rank of each label; the last entry, which -1 takes, is -1."""
    known, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    rank = np.full(int(known.max(initial=-1)) + 2, -1)
    rank[known[np.lexsort((first, -sizes))]] = np.arange(len(known))
    return rank
