"""Eight bytes at a time, for compiled kernels that compare, scan or hash text: little-endian words at any offset.

`word_at(data, at)` is the word of data[at : at + 8]; bytes beyond the end of the data are 0. So a kernel that reads
past the end sees zeros, which occur in no text that it searches for. O(1).
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from stream_engine.data.compiled import intrinsic, njit


def _load(typing_context, data, at):
    from llvmlite import ir
    from numba import types

    def unaligned(context, builder, signature, arguments):
        array = context.make_array(data)(context, builder, arguments[0])
        first = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        place = builder.bitcast(builder.gep(first, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(data, types.int64), unaligned


# Inside a kernel: the eight bytes of a uint8 array from a place on, which must all be there.
_eight_bytes = cast(Callable[[Any, Any], Any], intrinsic(_load))


@njit(cache=True, nogil=True, inline="always")
def word_at(data, at):
    """The word of data[at : at + 8], a uint64 whose lowest byte is the first; 0 for what is beyond the end."""
    if at + 8 <= len(data):
        return _eight_bytes(data, at)
    word = np.uint64(0)
    for place in range(len(data) - 1, at - 1, -1):
        word = word << np.uint64(8) | np.uint64(data[place])
    return word


def _zeros(typing_context, word):
    from llvmlite import ir
    from numba import types

    def trailing(context, builder, signature, arguments):
        return builder.lshr(builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1)), ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), trailing


# Inside a kernel: which byte of a word, 0 to 7, is the first that is not 0; the word must not be 0.
first_byte_set = cast(Callable[[Any], Any], intrinsic(_zeros))


@njit(cache=True, nogil=True, inline="always")
def first_bytes(word, count):
    """The word with all but its first `count` bytes, 1 to 8, made 0."""
    return word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * count))


@njit(cache=True, nogil=True, inline="always")
def same_bytes(one, at, other, place, length):
    """Whether one[at : at + length] and other[place : place + length] are equal."""
    while length > 8:
        if word_at(one, at) != word_at(other, place):
            return False
        at, place, length = at + 8, place + 8, length - 8
    return length == 0 or first_bytes(word_at(one, at) ^ word_at(other, place), length) == 0
