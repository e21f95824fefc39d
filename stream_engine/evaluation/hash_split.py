"""Hashes that decide what is held out: of object names and a seed, never of ids or of the order of arrival.

So a comparison stays on its side of a split while the stream grows, and so do all of its repetitions.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from stream_engine.data.hashing import mix64


def name_hashes(objects: Sequence[str], seed: int) -> np.ndarray:
    """(n,) uint64: a keyed hash of every name. O(n).

    >>> a, b = name_hashes(["x", "y"], 0), name_hashes(["y", "x"], 0)
    >>> bool((a == b[::-1]).all()), bool((a == name_hashes(["x", "y"], 1)).any())
    (True, False)
    """
    key = int(seed).to_bytes(16, "little", signed=True)
    return np.array(
        [int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, key=key).digest(), "little") for name in objects],
        np.uint64,
    )


def comparison_draws(rows: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """(m,) float64 in [0, 1): the draw of a comparison of two pairs; both answers to it have the same. O(m).

    >>> h = name_hashes(["a", "b", "c"], 0)
    >>> len(set(comparison_draws(np.array([[0, 1, 0, 2], [0, 2, 0, 1], [1, 0, 2, 0]]), h).tolist()))
    1
    """
    i, j, k, l = (hashes[column] for column in np.asarray(rows).T)
    pairs = mix64(i + j) + mix64(k + l)
    return (mix64(pairs) >> np.uint64(11)) / float(1 << 53)


def object_folds(hashes: np.ndarray, folds: int) -> np.ndarray:
    """(n,) int64 in 0 .. folds - 1: objects in folds of equal size (up to one), in the order of their hashes. O(n log
    n).

    >>> sorted(object_folds(name_hashes(list("abcde"), 3), 2).tolist())
    [0, 0, 0, 1, 1]
    """
    fold = np.empty(len(hashes), np.int64)
    fold[np.argsort(hashes, kind="stable")] = np.arange(len(hashes)) % folds
    return fold
