"""Triplet counts of a snapshot as what kernel learning takes: rows with multiplicities, and what is left of them."""

import numpy as np

from stream_engine.data.triplet_columns import Columns, pair_of_entry


def weighted_triplets(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """`((m, 3) int32 anchor, near, far; (m,) float64 how often)`: every direction that was seen. O(K).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> t, w = weighted_triplets(columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [0, 1, 2]]), 3))
    >>> t.tolist(), w.tolist()
    ([[0, 1, 2], [0, 2, 1]], [2.0, 1.0])
    """
    pair = pair_of_entry(columns)
    lo, hi = columns.lo[pair], columns.hi[pair]
    triplets = np.concatenate([np.stack([columns.anchor, lo, hi], axis=1), np.stack([columns.anchor, hi, lo], axis=1)])
    weight = np.concatenate([columns.n_lo, columns.n_hi]).astype(np.float64)
    return triplets[weight > 0].astype(np.int32), weight[weight > 0]


def net_triplets(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """`((m, 3) int32, (m,) float64)`: the majority's direction of every key and by how many votes; ties are left out.
    O(K).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> net_triplets(columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [1, 2, 0]]), 3))[0].tolist()
    [[1, 2, 0]]
    """
    pair, net = pair_of_entry(columns), columns.n_lo - columns.n_hi
    lo, hi = columns.lo[pair], columns.hi[pair]
    near, far = np.where(net > 0, lo, hi), np.where(net > 0, hi, lo)
    triplets = np.stack([columns.anchor, near, far], axis=1).astype(np.int32)
    return triplets[net != 0], np.abs(net[net != 0]).astype(np.float64)
