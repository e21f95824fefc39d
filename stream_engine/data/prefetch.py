"""`prefetch(array, row)`: ask the processor to load a row into its cache, and continue without waiting.

A kernel that accesses arrays larger than the caches at random waits about 100 ns for each row. If it knows the rows of
its next steps, it can request them ahead, and many are loaded at once. Only a hint: it changes no result, and a row
that does not exist is not an error.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from stream_engine.data.compiled import intrinsic


def _prefetch(typing_context, array, row):
    from llvmlite import ir
    from numba.core import cgutils, types

    number = ir.IntType(32)
    hint_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])

    def code(context, builder, signature, arguments):
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        row = context.cast(builder, arguments[1], signature.args[1], types.intp)
        first = builder.bitcast(held.data, cgutils.voidptr_t)
        place = builder.gep(first, [builder.mul(row, cgutils.unpack_tuple(builder, held.strides)[0])])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], hint_type)
        read, keep, data = (ir.Constant(number, n) for n in (0, 3, 1))
        builder.call(hint, [place, read, keep, data])
        return context.get_dummy_value()

    return types.none(array, row), code


# Inside a kernel: ask for row `row` of a borrowed array (see borrowed_arrays), the 64 bytes that it begins in.
prefetch = cast(Callable[[np.ndarray, Any], None], intrinsic(_prefetch))
