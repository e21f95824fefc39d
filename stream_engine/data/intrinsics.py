"""Code of compiled kernels in the compiler's own language: words of bytes, prefetching, borrowed arrays."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from stream_engine.data.compiled import intrinsic, njit

Record = TypeVar("Record", bound=tuple)


def _load(typing_context, data, at):
    from llvmlite import ir
    from numba import types

    def code(context, builder, signature, arguments):
        array = context.make_array(data)(context, builder, arguments[0])
        first = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        place = builder.bitcast(builder.gep(first, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(data, types.int64), code


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
def same_bytes(a, at, b, place, length):
    """Whether one[at : at + length] and other[place : place + length] are equal."""
    while length > 8:
        if word_at(a, at) != word_at(b, place):
            return False
        at, place, length = at + 8, place + 8, length - 8
    return length == 0 or first_bytes(word_at(a, at) ^ word_at(b, place), length) == 0


def _prefetch(typing_context, array, row):
    from llvmlite import ir
    from numba.core import cgutils, types

    number = ir.IntType(32)
    hint_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])

    def code(context, builder, signature, arguments):
        array_struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        row = context.cast(builder, arguments[1], signature.args[1], types.intp)
        first = builder.bitcast(array_struct.data, cgutils.voidptr_t)
        place = builder.gep(first, [builder.mul(row, cgutils.unpack_tuple(builder, array_struct.strides)[0])])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], hint_type)
        read, keep, data = (ir.Constant(number, n) for n in (0, 3, 1))
        builder.call(hint, [place, read, keep, data])
        return context.get_dummy_value()

    return types.none(array, row), code


# Inside a kernel: ask the processor to load row `row` of a borrowed array (the 64 bytes that it begins in) into its
# cache, and continue without waiting. A kernel that accesses arrays larger than the caches at random waits about 100 ns
# for each row. If it knows the rows of its next steps, it can request them ahead, and many are loaded at once. Only a
# hint: it changes no result, and a row that does not exist is not an error.
prefetch = cast(Callable[[np.ndarray, Any], None], intrinsic(_prefetch))


def _borrowed(typing_context, record):
    from numba.core import cgutils

    def code(context, builder, signature, arguments):
        (value,) = arguments
        for position, array_type in enumerate(record.types):
            array = context.make_array(array_type)(context, builder, builder.extract_value(value, position))
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            value = builder.insert_value(value, array._getvalue(), position)
        return value

    return record(record), code


# Inside a kernel: the same tuple or named tuple of arrays, without owners. numba counts references whenever an array is
# taken out of a record or passed to another function: two atomic instructions per array, up to 50 ns a call, as much as
# the work of a small kernel. Borrowed arrays are not counted. The caller owns them, and keeps them until the kernel
# returns; so a kernel never returns a borrowed array, nor a view of one.
borrowed = cast(Callable[[Record], Record], intrinsic(_borrowed))
