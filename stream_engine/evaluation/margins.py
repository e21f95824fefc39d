"""Compiled: margins of many comparisons over a similarity, and the exact tally of a whole block."""

import numpy as np

from stream_engine.data.compiled import njit


@njit(cache=True, nogil=True)
def differences(similarity, known, rows):
    """(m,) float64 S[near pair] - S[far pair] of (m, 4) rows; NaN where an object is not `known` (n,), or not in S."""
    n = len(similarity)
    margin = np.full(len(rows), np.nan)
    for r in range(len(rows)):
        i, j, k, l = rows[r, 0], rows[r, 1], rows[r, 2], rows[r, 3]
        if max(i, j, k, l) < n and known[i] and known[j] and known[k] and known[l]:
            margin[r] = similarity[i, j] - similarity[k, l]
    return margin


@njit(cache=True, nogil=True)
def tally(similarity, triplets):
    """(tested, correct, undecided) over (m, 3) triplets whose objects all have a row in S, of any kind of numbers."""
    n, tested, correct, undecided = np.uint32(len(similarity)), 0, 0, 0
    for t in range(len(triplets)):
        a, b, c = np.uint32(triplets[t, 0]), np.uint32(triplets[t, 1]), np.uint32(triplets[t, 2])
        if a < n and b < n and c < n:
            near, far = similarity[a, b], similarity[a, c]
            tested += 1
            correct += near > far
            undecided += near == far
    return tested, correct, undecided
