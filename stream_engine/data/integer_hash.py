"""The one way in which this project makes random-looking numbers of integers and names: the finaliser of SplitMix64.

`mix64` is a permutation of the 64-bit integers in which every bit of the input changes half the bits of the output
(Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators", with the constants of Stafford's Mix13). It
is the same function in compiled kernels and on NumPy arrays, and the same on every machine. Which examples are held
out, ties of TripletBoost and the canonical order of objects follow from its values: they must never change.
"""

import numpy as np
from numba.extending import register_jitable

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
    """What a SplitMix64 generator gives next in these states, uint64: `mix64` for numbers of which 0 is not special."""
    return mix64(state + np.uint64(GOLDEN_GAMMA))


@register_jitable
def hash_bytes(data, begin, end, seed):
    """A uint64 hash of data[begin:end], keyed by `seed` (uint64); for compiled kernels."""
    h = seed ^ np.uint64(end - begin)
    for i in range(begin, end):
        h = (h ^ np.uint64(data[i])) * np.uint64(GOLDEN_GAMMA)
        h ^= h >> np.uint64(29)
    return h ^ h >> np.uint64(32)
