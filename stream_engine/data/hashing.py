"""Hashes of integers and names that are the same in every process and on every machine, forever; and hash tables in
plain arrays, for compiled kernels."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from stream_engine.data.compiled import intrinsic, njit, read_only, register_jitable
from stream_engine.data.intrinsics import first_bytes, word_at
from stream_engine.data.packed_names import pack_names


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


# `mix64`, the finaliser of SplitMix64, is a permutation of the 64-bit integers in which every bit of the input changes
# half the bits of the output (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", with the
# constants of Stafford's Mix13). It is the same function in compiled kernels and on NumPy arrays. Which examples are
# held out, ties of TripletBoost and the canonical order of objects follow from its values: they must never change.
GOLDEN_GAMMA = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, odd: the step between states of a SplitMix64 generator


@register_jitable
def mix64(x):
    """The finaliser of SplitMix64 of a uint64, or of each entry of an array of them.

    >>> [hex(z) for z in mix64(np.array([0, 1, GOLDEN_GAMMA], np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5', '0xe220a8397b1dcdaf']
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def splitmix64(state):
    """What a SplitMix64 generator gives next in these states, uint64: `mix64` without a special role of 0."""
    return mix64(state + np.uint64(GOLDEN_GAMMA))


def _multiply(typing_context, a, b):
    from llvmlite import ir
    from numba import types

    def code(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        upper = builder.lshr(product, ir.Constant(wide, 64))
        return builder.trunc(builder.xor(product, upper), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), code


# Inside a kernel: both halves of the product of two uint64, one xor the other.
folded_product = cast(Callable[[Any, Any], Any], intrinsic(_multiply))


@njit(cache=True, nogil=True, inline="always")
def hash_bytes(data, begin, end, seed):
    """A uint64 hash of data[begin:end], keyed by `seed` (uint64); for compiled kernels.

    Eight bytes at a time, each word mixed in by a folded product (wyhash, Wang Yi 2019): every bit of the state depends
    on the seed, so differences that cancel for every seed cannot be written down. O(bytes / 8).
    """
    length = end - begin
    h = seed ^ np.uint64(length) * np.uint64(0xA0761D6478BD642F)
    while length > 0:
        word = word_at(data, begin)
        if length < 8:
            word = first_bytes(word, length)
        h = folded_product(h ^ word, np.uint64(0xE7037ED1A0B428DB))
        begin, length = begin + 8, length - 8
    return mix64(h)


# `Interner` has hashes of its own, with a new key in every process, so that no input can be constructed whose names
# collide; these are for values that are stored. Code that needs certainty compares the names if hashes are equal.
_SEED = np.uint64(0x6A75646765642121)  # must never change


@njit(cache=True, nogil=True)
def _hashes(utf8, offsets, out):
    for i in range(len(out)):
        out[i] = hash_bytes(utf8, offsets[i], offsets[i + 1], _SEED)


def name_hashes(names: Sequence[str]) -> np.ndarray:
    """(n,) uint64: the hash of each name's UTF-8 bytes. O(bytes).

    >>> [hex(h) for h in name_hashes(["car-1", "car-2"]).tolist()]
    ['0xa328262e0e707fc', '0x865807e830c79161']
    """
    packed = pack_names(names)
    out = np.empty(len(packed["offsets"]) - 1, np.uint64)
    _hashes(read_only(packed["utf8"]), read_only(packed["offsets"], np.int64), out)
    return out


def hashes_of_numbers(n: int) -> np.ndarray:
    """(n,) uint64: the hashes of the names of unnamed objects: "0", "1", and so on."""
    return name_hashes([str(i) for i in range(n)])


class NameHashes:
    """The hashes of a growing sequence of names, each computed once."""

    def __init__(self) -> None:
        self._n, self._hashes = 0, np.empty(64, np.uint64)

    def of(self, names: Sequence[str]) -> np.ndarray:
        """(len(names),) uint64, read-only; all but the new ones at the end must be the names of the call before.
        O(bytes of the new ones), amortised."""
        n = len(names)
        if n > self._n:
            if n > len(self._hashes):
                longer = np.empty(n + n // 2, np.uint64)
                longer[: self._n] = self._hashes[: self._n]
                self._hashes = longer
            self._hashes[self._n : n] = name_hashes(names[self._n :])
            self._n = n
        return read_only(self._hashes[:n])
