"""Hash tables in plain arrays, for compiled kernels."""

import numpy as np

from stream_engine.data.compiled import njit, register_jitable


# Open addressing with linear probing (Knuth, TAOCP 6.4, Alg. L). A table is an array of 2^k slots; 0 marks an empty
# one. What a slot contains is its owner's business: a key itself, or the number of a row elsewhere that has the key.
# Entries are never removed; a larger table is filled again. Invariant: at least one slot is empty, and an entry is
# found from its hash by walking on from slot `hash mod 2^k` to the first empty slot. O(1) expected a look-up.
@njit(cache=True, nogil=True, inline="always")
def find_slot(slots, first, holds, sought):
    """The slot whose entry satisfies `holds(entry, sought)`, or the empty slot where such an entry belongs.

    `first` is the hash of what is sought (int64 or uint64), `holds` a compiled function.
    """
    mask = np.uint64(len(slots) - 1)
    slot = np.uint64(first) & mask
    while slots[slot] != 0 and not holds(slots[slot], sought):
        slot = (slot + np.uint64(1)) & mask
    return slot


@register_jitable
def fits(items, slots):
    """Whether a table of so many slots holds so many items while at most 5/8 full."""
    return 8 * items <= 5 * len(slots)


def table_size(items: int) -> int:
    """The power of two that holds `items` at most 5/8 full (and is at least 16).

    >>> table_size(10), table_size(11), table_size(1000)
    (16, 32, 2048)
    """
    size = 16
    while 5 * size < 8 * items:
        size *= 2
    return size
