"""The project's hash function for integers and names: the finaliser of SplitMix64.

`mix64` is a permutation of the 64-bit integers in which every bit of the input changes half the bits of the output
(Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", with the constants of Stafford's Mix13). It
is the same function in compiled kernels and on NumPy arrays, and the same on every machine. Which examples are held
out, ties of TripletBoost and the canonical order of objects follow from its values: they must never change.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from stream_engine.data.byte_words import first_bytes, word_at
from stream_engine.data.compiled import intrinsic, njit, register_jitable

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


def _multiply(typing_context, one, other):
    from llvmlite import ir
    from numba import types

    def folded(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        upper = builder.lshr(product, ir.Constant(wide, 64))
        return builder.trunc(builder.xor(product, upper), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), folded


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
