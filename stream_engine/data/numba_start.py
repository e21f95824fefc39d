"""numba, imported without what it only looks for: of a short command's start a third of a second.

numba imports `coverage` where that is installed, for a setting that is off; and all of `scipy.linalg` when it loads or
compiles its first kernel, to know whether there is a BLAS. Both are passed over here: coverage unless its setting is
on, and the question for a BLAS until a kernel multiplies matrices, for which numba asks again.

Names of numba that it does not document: `numba.np.linalg.ensure_blas`, which `numba.np.arraymath` calls when it is
imported and keeps no other use of. Where numba was imported before by someone else nothing is done.
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
