"""Arrays that a compiled kernel borrows from its caller: a record of arrays handed from kernel to kernel costs nothing.

numba counts references whenever an array is taken out of a record or handed to another function: two atomic
instructions an array, up to 50 ns a call, as much as the work of a small kernel. `borrowed(record)` gives the same
arrays without an owner, and what has no owner is not counted. The caller owns them, and keeps them, until the kernel
returns; so a kernel never returns a borrowed array nor a view of one.
"""

from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def borrowed(typingctx, record):
    """Inside a kernel: the named tuple of arrays that it was given, the same arrays without an owner."""

    def without_owners(context, builder, signature, arguments):
        (value,) = arguments
        for position, array_type in enumerate(record.types):
            array = context.make_array(array_type)(context, builder, builder.extract_value(value, position))
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            value = builder.insert_value(value, array._getvalue(), position)
        return value

    return record(record), without_owners
