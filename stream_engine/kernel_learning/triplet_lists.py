"""Triplet counts of a snapshot as what kernel learning takes: rows with multiplicities."""

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
