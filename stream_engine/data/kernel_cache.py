"""Compiled kernels on first use (see `compiled.py`): numba's, with a cache that is keyed by what a kernel contains."""

import contextlib
import dis
import fcntl
import os
import pickle
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba.core import caching, types
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

PACKAGE = Path(__file__).parent.parent
SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")  # of the compiler
VERSIONS = (platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__)

HOUR, DAY, WEEK = 3600.0, 24 * 3600.0, 7 * 24 * 3600.0
_FOLDER = re.compile(r"stream-engine-[0-9a-f]{32}")


# numba's own cache checks only whether the file of the function has changed, although machine code also contains the
# kernels that it calls and the constants that it uses, from other files; and it has one index of signatures for each
# function: two processes that fill it at the same time can leave an index in which one signature has the code of
# another.
#
# Invariant: compiled code is loaded only for a kernel with the same code, constants and compiler options, in itself and
# in everything that it calls (`contents`), for the same signature, processor, versions and settings. Each signature has
# its own file, written under another name and renamed; there is no index. One process compiles it while others that
# need it wait (an advisory lock, which ends with its process). The code in memory is compared, so sources that change
# while a process runs, or that move, change nothing.
#
# The folder `stream-engine-KEY`, one for each set of versions and settings, is in NUMBA_CACHE_DIR if that is set, else
# in the package's `__pycache__`, else in numba's cache folder of the user: the first of these that is writable. If
# earlier, read-only candidates contain such a folder (filled when an image was built, for example), it is read first.
# If nothing is writable, every process compiles.
#
# Cleaning: a process that uses its folder for the first time, or for the first time in an hour, deletes files that no
# process has loaded for a week, and folders of other versions that no process has used for a week.
#
# Undocumented names of numba are used only in this file: `_Cache` of `numba.core.caching`, `dumps` of
# `numba.core.serialize`, `numba.misc.appdirs`, the attributes `_cache` of a compiled function and `_defn` of an
# intrinsic, and the methods `_reduce` and `_rebuild` of the compiler's result; and its lock in `compiled.py`.
def cached_kernel(function: Callable, keep: bool, options: Mapping[str, Any]) -> Callable:
    """`numba.njit` with these options; `keep`: the compiled code is kept from one process to the next."""
    options = {**options, "no_cfunc_wrapper": True}  # for callers in C, of whom there are none: 4 % of compiling
    kernel = numba.njit(**options)(function)
    if keep and not _setting("DISABLE_JIT"):
        kernel._cache = KernelCache(function)
    return kernel


def key() -> str:
    """The versions and settings that compiled code depends on, as 32 hexadecimal digits."""
    settings = [(name, str(_setting(name))) for name in SETTINGS]
    return blake2b(repr((VERSIONS, settings)).encode(), digest_size=16).hexdigest()


def is_empty() -> bool:
    """Whether no compiled code is kept for these versions and settings."""
    return not any(next(folder.rglob("*.nbc"), None) for folder in _folders().to_read)


@cache
def is_kept(function: Callable) -> bool:
    """Whether any compiled code of a function of this name is kept, most likely that of this function: then it is
    loaded, which takes much less time than compiling."""
    name = f"{_file_name(function)}-*.nbc"
    return any(next((folder / _room(function)).glob(name), None) for folder in _folders().to_read)


def _room(function: Callable) -> str:
    """The subfolder for the compiled code of a function."""
    file = Path(function.__code__.co_filename).absolute()
    return file.parent.relative_to(PACKAGE).as_posix() if file.is_relative_to(PACKAGE) else "outside"


def _file_name(function: Callable) -> str:
    """How the names of its files begin."""
    return f"{str(function.__module__).rpartition('.')[2]}.{function.__name__}"


def _setting(name: str) -> object:
    """A setting of numba: the environment variable NUMBA_(name), a file, or its default."""
    return getattr(numba.config, name)


class KernelCache(caching._Cache):
    """The compiled code of one function: read from the first folder that has it, saved in the last if that is writable.
    A file contains the signature, which is compared, and the code for it."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._room = _room(function)
        self._contents: str | None = None
        self._turn = contextlib.ExitStack()  # closed when what is compiled is kept

    @property
    def cache_path(self) -> str | None:
        """The folder of the compiled files."""
        folders = _folders().to_read
        return str(folders[-1] / self._room) if folders else None

    def _path(self, folder: Path, sig: Any, codegen: Any) -> Path:
        """The file for a signature and a processor. Raises `NotCacheable`."""
        function = self._function
        self._contents = self._contents or contents(function)
        contents_of_name = (
            function.__module__,
            function.__qualname__,
            self._contents,
            sig,
            _fields(sig),
            codegen.magic_tuple(),
        )
        name = blake2b(repr(contents_of_name).encode(), digest_size=16).hexdigest()
        return folder / self._room / f"{_file_name(function)}-{name}.nbc"

    def load_overload(self, sig, target_context):
        """The compiled code of a signature; None where there is none. Then this process has the turn to compile it:
        others wait for it, and load what it kept."""
        target_context.refresh()
        code = self._load_code(sig, target_context)
        if code is None:
            self._turn.close()
            self._turn.enter_context(self._first(sig, target_context.codegen()))
            code = self._load_code(sig, target_context)
            if code is not None:
                self._turn.close()
        return code

    @contextlib.contextmanager
    def _first(self, sig: Any, codegen: Any) -> Iterator[None]:
        """One process at a time, of those that compile this signature; no order where nothing can be locked."""
        folders = _folders()
        with contextlib.ExitStack() as stack:
            if folders.last_is_writable:
                with contextlib.suppress(OSError, NotCacheable):
                    path = self._path(folders.to_read[-1], sig, codegen).with_suffix(".lock")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context(path.open("w"))
                    fcntl.flock(file, fcntl.LOCK_EX)
                    stack.callback(fcntl.flock, file, fcntl.LOCK_UN)  # also for children, which share the file
                    stack.callback(path.unlink, missing_ok=True)
            yield

    def _load_code(self, sig, target_context):
        for folder in _folders().to_read:
            with contextlib.suppress(OSError, NotCacheable):
                path = self._path(folder, sig, target_context.codegen())
                compiled_for, code = pickle.loads(path.read_bytes())
                if compiled_for == sig:
                    _note_use(path)
                    return CompileResult._rebuild(target_context, *code)
        return None

    def save_overload(self, sig, data) -> None:
        """Keep the compiled code of a signature."""
        with self._turn:
            self._save(sig, data)

    def _save(self, sig, data) -> None:
        folders = _folders()
        if (
            not folders.last_is_writable
            or data.library.has_dynamic_globals
            or any(not x.can_cache for x in data.lifted)
        ):
            return
        with contextlib.suppress(OSError, NotCacheable):  # a full disk, a folder just cleaned: compiled again next time
            path = self._path(folders.to_read[-1], sig, data.codegen)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(dumps((sig, data._reduce())))
            part.replace(path)

    def enable(self) -> None:
        """Nothing: it always is."""

    def disable(self) -> None:
        """Nothing: what is not to be kept has no such cache."""

    def flush(self) -> None:
        """Nothing: what is kept never changes."""


class _Folders(NamedTuple):
    to_read: list[Path]  # in this order
    last_is_writable: bool


@cache
def _folders() -> _Folders:
    """Where compiled code of this process is."""
    readable: list[Path] = []
    name = f"stream-engine-{key()}"
    override = str(_setting("CACHE_DIR"))  # NUMBA_CACHE_DIR
    places = [PACKAGE / "__pycache__", Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)]
    for folder in [place / name for place in ([Path(override)] if override else []) + places]:
        try:
            _use(folder)
            return _Folders([*readable, folder], True)
        except OSError:
            if folder.is_dir():
                readable.append(folder)
    return _Folders(readable, False)


def _use(folder: Path) -> None:
    """Make the folder if it is missing, note that it is used, and clean in it and beside it. OSError if it is
    read-only."""
    new = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    now = time.time()
    if new or folder.stat().st_mtime < now - HOUR:
        os.utime(folder)
        for old in unused(folder, now):
            with contextlib.suppress(OSError):  # another process may be at it, too
                shutil.rmtree(old) if old.is_dir() else old.unlink()


def _note_use(path: Path) -> None:
    """Once a day, so that cleaning knows which files are in use."""
    with contextlib.suppress(OSError):  # a cache that can only be read
        if path.stat().st_mtime < time.time() - DAY:
            os.utime(path)


def unused(folder: Path, now: float) -> Iterable[Path]:
    """The compiled files in `folder`, and the folders of other versions beside it, that were last used a week ago."""
    other_folders = [path for path in folder.parent.iterdir() if _FOLDER.fullmatch(path.name) and path != folder]
    for path in [*other_folders, *folder.glob("*/*")]:
        with contextlib.suppress(OSError):  # just cleaned by another process
            if path.stat().st_mtime < now - WEEK:
                yield path


class NotCacheable(Exception):
    """A kernel refers to an object whose effect on the machine code is not known."""


def contents(function: Callable) -> str:
    """A digest of all that the machine code of a function is made of: its code and constants, the values that it reads
    from its module and from enclosing functions, and the same of every function that it refers to, directly or not.

    Raises `NotCacheable` where it refers to something else. Names of files and numbers of lines do not matter.
    """
    todo, all_functions = [function], {function}
    digests = []
    while todo:
        parts, callees = _own_contents(todo.pop())
        digests.append(blake2b(repr(parts).encode()).digest())
        todo += [callee for callee in callees if callee not in all_functions]
        all_functions.update(callees)
    return blake2b(digests[0] + b"".join(sorted(digests[1:])), digest_size=16).hexdigest()


@cache
def _own_contents(function: Any) -> tuple[list, list[Callable]]:
    """What one function contains itself, and the functions that it refers to."""
    values = dict(_global_values(function))
    values |= zip(function.__code__.co_freevars, [cell.cell_contents for cell in function.__closure__ or ()])
    parts, callees = [_code(function.__code__), function.__defaults__, getattr(function, "options", None)], []
    for name, value in sorted(values.items()):
        if callable(callee := _python_function(value)):
            callees.append(callee)
            parts.append((name, callee.__module__, callee.__qualname__))
        else:
            parts.append((name, _value(value, f"{function.__module__}.{function.__qualname__}: {name}")))
    return parts, callees


def _global_values(function: Any) -> Iterator[tuple[str, Any]]:
    """The names that a function reads from its module, with their values; not those of Python itself."""
    todo = [function.__code__]
    while todo:
        code = todo.pop()
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for instruction in dis.get_instructions(code):
            if instruction.opname == "LOAD_GLOBAL" and instruction.argval in function.__globals__:
                yield instruction.argval, function.__globals__[instruction.argval]


def _code(code: CodeType) -> tuple:
    """A piece of code with those inside it, without places in files."""
    constants = [
        _code(constant) if isinstance(constant, CodeType) else _constant(constant) for constant in code.co_consts
    ]
    variables = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, variables, code.co_argcount, code.co_flags, getattr(code, "co_exceptiontable", b"")


def _constant(value: Any) -> Any:
    """Sets of text have another order in each process."""
    return ("set", sorted(map(repr, value))) if isinstance(value, frozenset) else (type(value).__name__, repr(value))


def _python_function(value: Any) -> Any:
    """The function behind a compiled kernel, an intrinsic, a stand-in for one, or a function for kernels."""
    if isinstance(value, FunctionType):
        return value
    for name in ("py_func", "_defn", "function"):
        if isinstance(inner := vars(value).get(name) if hasattr(value, "__dict__") else None, FunctionType):
            return inner
    return None


def _value(value: Any, where: str) -> Any:
    """What stands for a value that machine code may contain."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return type(value).__name__, repr(value)
    if isinstance(value, (np.generic, np.ndarray)):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            return type(value).__name__, array.dtype.descr, array.shape, array.tobytes(), np.isfortran(array)
    if isinstance(value, tuple):
        return type(value).__name__, getattr(value, "_fields", ()), [_value(entry, where) for entry in value]
    if isinstance(value, (np.dtype, types.Type)):
        return repr(value)
    if isinstance(value, ModuleType) and not value.__name__.startswith(PACKAGE.name):
        return value.__name__
    if isinstance(value, type) and (value.__module__ in ("builtins", "numpy") or hasattr(value, "_fields")):
        return value.__module__, value.__qualname__, getattr(value, "_fields", ())
    if isinstance(value, (np.ufunc, type(len))):
        return value.__name__
    raise NotCacheable(f"{where} is a {type(value).__name__}")


def _fields(signature: Iterable) -> list:
    """The names of the fields of records in a signature, whose types do not show them."""
    names = []
    for kind in signature:
        if isinstance(kind, (types.NamedTuple, types.NamedUniTuple)):
            names.append((kind.instance_class.__module__, kind.instance_class.__qualname__, kind.fields))
        if isinstance(kind, (types.Tuple, types.UniTuple, types.NamedTuple, types.NamedUniTuple)):
            names += _fields(kind.types)
    return names
