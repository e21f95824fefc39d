"""Radix sort of packed keys, lowest digit first: linear, and equally fast on every machine (np.sort is not).

A key is one uint64, or two (`high`, then `low`); a packed key is passed as `high is low`. Every pass keeps the order of
equal digits. O(keys * digits), with one spare buffer.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from stream_engine.data.compiled import njit

Keys = tuple[np.ndarray, np.ndarray]  # high and low words, the same array twice when keys are packed
DIGIT_BITS = 11  # 2,048 buckets: their write positions stay in the first-level cache


@njit(cache=True, nogil=True)
def _digit_pass(high, low, to_high, to_low, wide, size, by_high, shift, position):
    """Stable scatter by one digit; False when all keys share it and nothing was moved. `position` holds a zero a
    digit."""
    digits = high if by_high else low
    shift = np.uint64(shift)
    mask = np.uint64(len(position) - 1)
    for i in range(size):
        position[(digits[i] >> shift) & mask] += 1
    total = 0
    for digit in range(len(position)):
        count = position[digit]
        if count == size:
            return False
        position[digit] = total
        total += count
    for i in range(size):
        digit = (digits[i] >> shift) & mask
        place = position[digit]
        position[digit] = place + 1
        to_low[place] = low[i]
        if wide:
            to_high[place] = high[i]
    return True


def _digits(first_bit: int, end_bit: int) -> list[tuple[int, int]]:
    """`(shift, width)` of as few, as narrow digits as cover the bits first_bit .. end_bit - 1."""
    bits = end_bit - first_bit
    passes = -(-bits // DIGIT_BITS)
    edges = [first_bit + bits * p // passes for p in range(passes + 1)] if passes else [first_bit]
    return [(a, b - a) for a, b in pairwise(edges)]


def sort(
    keys: Keys, spare: Keys, size: int, high_bits: tuple[int, int], low_bits: tuple[int, int]
) -> tuple[Keys, Keys]:
    """Sort the first `size` keys; returns `(keys, spare)` with the sorted ones first (the two may have changed places).

    `keys` and `spare` are `(high, low)` pairs of uint64 arrays, the same array twice when keys are packed. Only the
    bits `first .. end - 1` of each word are looked at: bits below `first` travel along unsorted.

    >>> a, b = np.array([6, 3, 5, 2], np.uint64), np.empty(4, np.uint64)
    >>> sort((a, a), (b, b), 4, (0, 0), (1, 3))[0][1].tolist()  # bit 0 is not a part of the key
    [3, 2, 5, 6]
    """
    wide = keys[0] is not keys[1]
    for by_high, bits in ((False, low_bits), (True, high_bits)):
        for shift, width in _digits(*bits):
            position = np.zeros(1 << width, np.int64)
            if _digit_pass(*keys, *spare, wide, size, by_high, shift, position):
                keys, spare = spare, keys
    return keys, spare


def argsort(fields: Sequence[np.ndarray], bits: int) -> np.ndarray:
    """Order of rows by several id columns, first column first; ids below 2**bits. O(rows * fields * bits / 11).

    >>> argsort([np.array([1, 0, 1]), np.array([0, 5, 2])], 3).tolist()
    [1, 0, 2]
    """
    size = len(fields[0])
    if len(fields) * bits > 64:
        return np.lexsort(tuple(reversed(fields)))
    key = np.zeros(size, np.uint64)
    for field in fields:
        key = key << np.uint64(bits) | field.astype(np.uint64)
    keys = key, np.arange(size, dtype=np.uint64)
    spare = np.empty(size, np.uint64), np.empty(size, np.uint64)
    (_, order), _ = sort(keys, spare, size, (0, len(fields) * bits), (0, 0))
    return order.astype(np.int64)
