"""Which comparisons of a stream are in a sample that becomes sparser, decided by their number alone."""

import math

import numpy as np

from stream_engine.data.hashing import splitmix64

# The first comparisons are all in the sample; after s of them, one in s / SAMPLED_WHOLE is; and finally one in so many.
SAMPLED_WHOLE, SAMPLED_ONE_IN = 1024, 32


def drawn_until(s: int) -> float:
    """How many of the first s comparisons are drawn; it does not depend on the blocks in which they come.

    >>> drawn_until(1024), round(drawn_until(1024 * 10) - drawn_until(1024))
    (1024.0, 2358)
    """
    complete, last = min(s, SAMPLED_WHOLE), max(0, s - SAMPLED_WHOLE * SAMPLED_ONE_IN)
    return complete + SAMPLED_WHOLE * math.log(max(SAMPLED_WHOLE, s - last) / SAMPLED_WHOLE) + last / SAMPLED_ONE_IN


def _number_at(drawn: np.ndarray) -> np.ndarray:
    """The inverse of `drawn_until`: the number of comparisons of which so many are drawn."""
    growing = SAMPLED_WHOLE * np.exp(np.clip(drawn / SAMPLED_WHOLE - 1, 0, math.log(SAMPLED_ONE_IN)))
    last = np.maximum(drawn - SAMPLED_WHOLE * (1 + math.log(SAMPLED_ONE_IN)), 0)
    return np.where(drawn < SAMPLED_WHOLE, drawn, growing + last * SAMPLED_ONE_IN)


def numbers_drawn(seen: int, m: int, seed: np.uint64) -> tuple[np.ndarray, int]:
    """`(int64 numbers in [seen, seen + m) of the comparisons that are drawn, the next number that is)`: one from each
    stretch in which `drawn_until` grows by one, at a place in it that is given by a hash of the stretch.

    >>> numbers_drawn(5, 3, np.uint64(0))
    (array([5, 6, 7]), 8)
    """
    k = np.arange(max(int(drawn_until(seen)) - 1, 0), int(drawn_until(seen + m)) + 2)
    within = (splitmix64(k.astype(np.uint64) ^ (seed << np.uint64(40))) >> np.uint64(11)) * 2.0**-53
    number = np.where(k < SAMPLED_WHOLE, k, _number_at(k + within)).astype(np.int64)
    first, after = np.searchsorted(number, [seen, seen + m])
    return number[first:after], int(number[after])
