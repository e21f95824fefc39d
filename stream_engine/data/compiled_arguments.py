"""Arrays as compiled functions take them: read-only views in C order, so that one specialisation serves every
caller."""

import numpy as np


def read_only(array: np.ndarray, dtype=None) -> np.ndarray:
    """A read-only view in C order, of another type where `dtype` says so (then, and where it must, a copy).

    >>> view = read_only(np.array([[1, 2], [3, 4]]).T, np.int32)
    >>> view.flags.c_contiguous, view.flags.writeable, view.dtype.name
    (True, False, 'int32')
    """
    view = np.ascontiguousarray(array, dtype).view()
    view.setflags(write=False)
    return view
