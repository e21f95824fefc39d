"""Records of arrays that compiled kernels pass to each other without reference counting.

numba counts references whenever an array is taken out of a record or passed to another function: two atomic
instructions per array, up to 50 ns a call, as much as the work of a small kernel. `borrowed(record)` returns the same
arrays without an owner, which are not counted. The caller owns them, and keeps them until the kernel returns; so a
kernel never returns a borrowed array, nor a view of one.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from stream_engine.data.compiled import intrinsic

Record = TypeVar("Record", bound=tuple)


def _borrowed(typing_context, record):
    from numba.core import cgutils

    def without_owners(context, builder, signature, arguments):
        (value,) = arguments
        for position, array_type in enumerate(record.types):
            array = context.make_array(array_type)(context, builder, builder.extract_value(value, position))
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            value = builder.insert_value(value, array._getvalue(), position)
        return value

    return record(record), without_owners


# Inside a kernel: the tuple or named tuple of arrays that it was given, the same arrays without an owner.
borrowed = cast(Callable[[Record], Record], intrinsic(_borrowed))
