"""`njit` for every kernel of the package: compiled by numba when it is first called, and not loaded before."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher
import numpy as np

Function = TypeVar("Function", bound=Callable)


def read_only(array: np.ndarray, dtype=None) -> np.ndarray:
    """A read-only view in C order, of type `dtype` if given; a copy if necessary. Kernels then need one specialisation.

    >>> view = read_only(np.array([[1, 2], [3, 4]]).T, np.int32)
    >>> view.flags.c_contiguous, view.flags.writeable, view.dtype.name
    (True, False, 'int32')
    """
    view = np.ascontiguousarray(array, dtype).view()
    view.setflags(write=False)
    return view


# Importing numba takes as long as everything else that a short command does, and a module has kernels next to what such
# a command needs. So a decorated function is a `Kernel`, a thin stand-in: its first call, or the first access to an
# attribute of numba's, imports numba and creates the compiled function, with the cache of `kernel_cache.py`.
#
# Invariant: before numba sees a kernel, the compiled kernels replace their stand-ins in everything that it refers to,
# directly or not: the globals of its module, and the variables of enclosing functions. So for numba, everything looks
# as if decorated by its own decorators: it inlines, caches and types as usual. A kernel may refer to other kernels by
# name, but not through a module (`module.kernel`), whose attributes are not replaced.
#
# `intrinsic` and `register_jitable` are numba's, in the same way. The cost of a stand-in that Python keeps calling,
# from a module that imported it, is 0.1 us a call; in its own module, it is replaced by the compiled function.
class Kernel:
    """A function that numba compiles on first use, and whose attributes are those of the compiled function.

    `function` is the decorated function, `make` compiles it (and may import numba).
    """

    def __init__(self, function: Callable, make: Callable[[Callable], Callable]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.make = make
        self.compiled_function: Callable | None = None  # set under numba's lock
        self.ready: Callable | None = None  # the same, once all that it names is in place
        self.interpreted_entries = 0  # by Python, see `for_size`

    def __call__(self, *args):
        return (self.ready or compiled(self))(*args)

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.ready or compiled(self), name)


_max_interpreted_entries = 50_000  # of one kernel, for which Python takes less time than the compiler
LOADING = 10  # so many times faster is it to load a kernel that is kept compiled


def for_size(kernel: Function, entries: int) -> Function:
    """A kernel for a call that passes once over so many entries: as Python runs it while those of all calls are few,
    compiled from then on, or loaded earlier where it is kept. So a small survey does not wait for the compiler.

    Only for loops with the same result in Python: no whole numbers that overflow, nothing in the compiler's language.
    """
    return kernel if is_worth_compiling(kernel, entries) else cast(Function, _interpreted(cast(Kernel, kernel)))


def is_worth_compiling(kernel: Callable, entries: int) -> bool:
    """Whether a kernel is to be called where Python has another way to do it, in which a step takes as long as passing
    over so many entries: once those of all calls are many, or the kernel is loaded."""
    if not isinstance(kernel, Kernel) or kernel.ready is not None:
        return True
    kernel.interpreted_entries += entries
    passed = kernel.interpreted_entries
    return passed > _max_interpreted_entries or (passed * LOADING > _max_interpreted_entries and _is_kept(kernel))


def _is_kept(kernel: Kernel) -> bool:
    """Whether numba is there, and the compiled code of a kernel."""
    if "stream_engine.data.kernel_cache" not in sys.modules:
        return False
    from stream_engine.data.kernel_cache import is_kept

    return is_kept(kernel.function)


@contextmanager
def all_compiled() -> Iterator[None]:
    """Meanwhile, `for_size` compiles every kernel."""
    global _max_interpreted_entries
    before, _max_interpreted_entries = _max_interpreted_entries, -1
    try:
        yield
    finally:
        _max_interpreted_entries = before


def _interpreted(kernel: Kernel) -> Callable:
    """The function of a kernel for Python, and those of the kernels that it calls."""
    function: Any = kernel.function
    namespace = dict(function.__globals__)
    for name in _names(function.__code__):
        if isinstance(value := namespace.get(name), Kernel):
            namespace[name] = _interpreted(value)
    return FunctionType(function.__code__, namespace, function.__name__)


def njit(
    *, cache: bool = True, nogil: bool = False, inline: Literal["never", "always"] = "never", fastmath: bool = False
) -> "Callable[[Function], Dispatcher[Function]]":
    """`numba.njit` with these options, the compiled code kept from one process to the next (`cache`)."""
    # by LLVM: numba's own inlining copies and types a function again wherever it is called
    options = {"nogil": nogil, "forceinline": inline == "always", "fastmath": fastmath}

    def make(function: Callable) -> Callable:
        from stream_engine.data.kernel_cache import cached_kernel

        return cached_kernel(function, cache, options)

    def decorate(function: Callable) -> Kernel:
        function.options = options  # type: ignore[attr-defined]  # part of what its compiled code depends on
        return Kernel(function, make)

    return decorate  # type: ignore[return-value]  # it has the attributes of the other


def intrinsic(function: Callable) -> Any:
    """`numba.extending.intrinsic`: for kernels, code that the function writes itself, in the compiler's language."""

    def make(function: Callable) -> Callable:
        from numba import extending

        return extending.intrinsic(function)

    return Kernel(function, make)


def register_jitable(function: Function) -> Function:
    """The function itself, which kernels may call, too (`numba.extending.register_jitable`)."""
    _JITABLE[function] = False
    return function


_JITABLE: dict[Callable, bool] = {}  # and whether numba knows


_IMPORTING = threading.RLock()  # numba in sys.modules may still be half imported, by another thread


# Two slow imports are avoided, a third of a second of the start of a short command. numba imports `coverage` if it is
# installed, for a setting that is off; and all of `scipy.linalg` when it loads or compiles its first kernel, to detect
# BLAS. Coverage is imported only if its setting is on, and BLAS is detected when a kernel multiplies matrices, as numba
# repeats it then. Undocumented name of numba: `numba.np.linalg.ensure_blas`, which `numba.np.arraymath` calls only on
# import.
def import_numba() -> None:
    """Import numba, before anything else does; nothing is done where it was imported already. For any thread."""
    with _IMPORTING:
        if "numba" not in sys.modules:
            _import_numba()


def _import_numba() -> None:
    without_coverage = "coverage" not in sys.modules and not os.environ.get("NUMBA_JIT_COVERAGE")
    if without_coverage:
        sys.modules["coverage"] = None  # type: ignore[assignment]  # Python's way to say that there is none
    try:
        from numba.np import linalg
    finally:
        if without_coverage:
            del sys.modules["coverage"]
    if "scipy.linalg" not in sys.modules:
        ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
        try:
            import numba.np.arraymath  # noqa: F401
        finally:
            linalg.ensure_blas = ensure_blas


def nothing_is_compiled() -> bool:
    """Whether this process compiles the kernels, as the first one: that takes most of the time of a short command."""
    import_numba()
    from stream_engine.data.kernel_cache import is_empty

    return is_empty()


def compiled(kernel: Kernel) -> Callable:
    """The compiled function of a kernel, with everything that it names in place. For any thread."""
    import_numba()
    from numba.core.compiler_lock import global_compiler_lock
    from numba.extending import typeof_impl

    with global_compiler_lock:  # no thread compiles what is half in place
        if Kernel not in typeof_impl.registry:
            typeof_impl.register(Kernel)(
                lambda argument, context: typeof_impl(compiled(argument), context)
            )  # an argument
        if kernel.ready is None:
            _put_in_place(kernel)
    assert kernel.ready is not None
    return kernel.ready


def _put_in_place(kernel: Kernel) -> None:
    """Compile a kernel and all that it calls, directly or not, and replace the stand-ins by them."""
    todo: list[Callable] = [kernel]
    named_functions: dict[Callable, None] = {kernel: None}  # kernels, and functions for kernels
    while todo:
        for value in _named(_function(todo.pop())):
            if value not in named_functions:
                named_functions[value] = None
                todo.append(value)
    kernels = [kernel_to_make for kernel_to_make in named_functions if isinstance(kernel_to_make, Kernel)]
    for kernel_to_make in kernels:
        kernel_to_make.compiled_function = kernel_to_make.compiled_function or kernel_to_make.make(
            kernel_to_make.function
        )
    for function in named_functions:
        _register(function)
        _replace(_function(function))
    for kernel_to_make in kernels:
        kernel_to_make.ready = kernel_to_make.compiled_function


def _function(kernel: Callable) -> Any:
    return kernel.function if isinstance(kernel, Kernel) else kernel


def _register(function: Callable) -> None:
    if _JITABLE.get(function) is False:
        from numba import extending

        extending.register_jitable(function)
        _JITABLE[function] = True


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function's code looks up, with those of the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _named(function: Any) -> Iterator[Callable]:
    """The stand-ins, and the functions for kernels, that a function names: globals and outer variables."""
    namespace = function.__globals__
    values = [namespace.get(name) for name in _names(function.__code__)]
    for value in values + [cell.cell_contents for cell in function.__closure__ or ()]:
        if isinstance(value, Kernel) or (isinstance(value, FunctionType) and value in _JITABLE):
            yield value


def _replace(function: Any) -> None:
    """Put compiled kernels where a function names their stand-ins, and its own in its module."""
    namespace = function.__globals__
    for name in [*_names(function.__code__), function.__name__]:
        if isinstance(value := namespace.get(name), Kernel) and value.compiled_function is not None:
            namespace[name] = value.compiled_function
    for cell in function.__closure__ or ():
        if isinstance(value := cell.cell_contents, Kernel) and value.compiled_function is not None:
            cell.cell_contents = value.compiled_function
