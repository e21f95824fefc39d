"""Import numba without two slow imports: a third of a second of the start of a short command.

numba imports `coverage` if it is installed, for a setting that is off; and all of `scipy.linalg` when it loads or
compiles its first kernel, to detect BLAS. Both are avoided here: coverage unless its setting is on, and the detection
of BLAS until a kernel multiplies matrices, when numba repeats it.

Undocumented name of numba: `numba.np.linalg.ensure_blas`, which `numba.np.arraymath` calls only when it is imported. If
numba was already imported, nothing is done.
"""

import os
import sys

_BEFORE = "numba" in sys.modules
_WITHOUT_COVERAGE = not _BEFORE and "coverage" not in sys.modules and not os.environ.get("NUMBA_JIT_COVERAGE")

if _WITHOUT_COVERAGE:
    sys.modules["coverage"] = None  # type: ignore[assignment]  # Python's way to say that there is none
try:
    import numba  # noqa: F401
finally:
    if _WITHOUT_COVERAGE:
        del sys.modules["coverage"]


def _pass_over_blas() -> None:
    from numba.np import linalg

    asks, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = asks


if not _BEFORE and "scipy.linalg" not in sys.modules:
    _pass_over_blas()
