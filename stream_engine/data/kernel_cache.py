"""Compiled kernels on first use (see `compiled.py`): numba's, with a cache that follows the sources.

numba's own cache checks whether the file of a function has changed. But the machine code of a kernel also contains the
kernels that it calls and the constants that it uses, from other files, and would not be updated when those change.

Invariant: compiled code is loaded only by a process with the same kernel sources (`kernel_sources`), versions of
Python, numpy, numba and llvmlite, and settings of numba as those that compiled it. One digest of them all, `key()`,
names the folder of the cache and is part of every entry; numba itself adds the processor. The digest is computed when
the first kernel is called. A process whose sources change while it runs saves nothing from then on; if they changed
before its first kernel, or cannot be read, it loads nothing either.

The folder `stream-engine-KEY` is in NUMBA_CACHE_DIR if that is set, else in the package's `__pycache__`, else in
numba's cache folder of the user: the first of these that is writable. If earlier, read-only candidates contain such a
folder (filled when an image was built, for example), it is read first. If nothing is writable, every process compiles.

Cleaning: a process that uses its folder for the first time, or for the first time in an hour, deletes folders of other
sources or versions next to it that no process has started with for a week, or for an hour if `KEPT` others were used
later. A running program whose folder is deleted keeps what it has loaded and compiles what is missing.

Undocumented names of numba are used only in this file: `_Cache`, `_CacheLocator`, `CompileResultCacheImpl` and
`FunctionCache` of `numba.core.caching`, `numba.misc.appdirs`, and the attribute `_cache` of a compiled function; and
its lock in `compiled.py`.
"""

import contextlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple

import llvmlite
import numba
import numpy as np
from numba.core import caching
from numba.misc.appdirs import AppDirs

from stream_engine.data.kernel_sources import IMPORTED, KernelSources

PACKAGE = Path(__file__).parent.parent
SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")  # what the compiler is told
VERSIONS = (platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__)

KEPT = 8
HOUR, WEEK = 3600.0, 7 * 24 * 3600.0
_FOLDER = re.compile(r"stream-engine-[0-9a-f]{32}")


def cached_kernel(
    function: Callable, *, keep: bool, nogil: bool, inline: Literal["never", "always"], fastmath: bool
) -> Callable:
    """`numba.njit` with these options; `keep`: the compiled code is kept from one process to the next."""
    kernel = numba.njit(nogil=nogil, inline=inline, fastmath=fastmath)(function)
    if keep and not _setting("DISABLE_JIT"):
        kernel._cache = _KernelCache(function)  # type: ignore[attr-defined]  # not documented by numba
    return kernel


def key() -> str:
    """What compiled code depends on, as 32 hexadecimal digits."""
    return _sources().digest(VERSIONS, [(name, str(_setting(name))) for name in SETTINGS])


def is_empty() -> bool:
    """Whether nothing is kept that was compiled from these sources."""
    return not any(next(folder.rglob("*.nbc"), None) for folder in _folders().to_read)


def _setting(name: str) -> object:
    """A setting of numba: the environment variable NUMBA_(name), a file, or its default."""
    return getattr(numba.config, name)


@cache
def _sources() -> KernelSources:
    return KernelSources(PACKAGE)


class _KernelCache(caching._Cache):
    """The compiled code of one function: looked for in each of the folders, saved in the last if that is writable."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._enabled = True

    @cached_property
    def _caches(self) -> list[caching.FunctionCache]:
        return [_cache_in(folder)(self._function) for folder in _folders().to_read]

    @property
    def cache_path(self) -> str | None:
        return self._caches[-1].cache_path if self._caches else None

    def load_overload(self, sig, target_context):
        for each in self._caches if self._enabled else ():
            if (loaded := each.load_overload(sig, target_context)) is not None:
                return loaded
        return None

    def save_overload(self, sig, data) -> None:
        if self._enabled and _folders().last_is_writable and _sources().unchanged_since(IMPORTED):
            with contextlib.suppress(OSError):  # a full disk, a folder just cleaned: the next process compiles again
                self._caches[-1].save_overload(sig, data)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        if _folders().last_is_writable:
            self._caches[-1].flush()


@cache
def _cache_in(folder: Path) -> type[caching.FunctionCache]:
    """numba's cache of a function, below a folder that we name."""

    class Locator(caching._CacheLocator):
        """Below `folder`, by room; stamped with the digest of all kernel sources."""

        def __init__(self, function: Callable, file: str) -> None:
            self._py_file = file
            self._line = function.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            return os.path.join(folder, _room_and_digest(self._py_file)[0])

        def get_source_stamp(self) -> str:
            return _room_and_digest(self._py_file)[1]

        def get_disambiguator(self) -> str:
            return str(self._line)

        @classmethod
        def from_function(cls, function: Callable, file: str) -> "Locator":
            return cls(function, file)

    class Implementation(caching.CompileResultCacheImpl):
        """numba's, with that locator and no other."""

        _locator_classes = [Locator]  # noqa: RUF012  numba's name, a list there

    class Cache(caching.FunctionCache):
        """numba's, with that implementation."""

        _impl_class = Implementation

        def _index_key(self, sig, codegen):
            return (*super()._index_key(sig, codegen), folder.name)  # for NUMBA_CACHE_LOCATOR_CLASSES: other folders

    return Cache


@cache
def _room_and_digest(file: str) -> tuple[str, str]:
    """The folder for the kernels of a file, below the cache's, and a digest of what is not known by the key."""
    room = os.path.relpath(os.path.dirname(os.path.abspath(file)), PACKAGE)
    if not room.startswith(os.pardir):
        return room, ""
    return caching._CacheLocator.get_suitable_cache_subpath(file), blake2b(Path(file).read_bytes()).hexdigest()


class _Folders(NamedTuple):
    to_read: list[Path]  # in this order
    last_is_writable: bool


@cache
def _folders() -> _Folders:
    """Where compiled code of this process is; no folders if the sources have changed since it started, or are not
    to be read."""
    readable: list[Path] = []
    try:
        name = f"stream-engine-{key()}"
    except OSError:  # the sources cannot be read, as in a zip file
        return _Folders(readable, False)
    if not _sources().unchanged_since(IMPORTED):
        return _Folders(readable, False)
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
    """Make the folder if it is missing, note that it is used, and clean beside it. OSError if it is read-only."""
    new = not folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    now = time.time()
    if new or folder.stat().st_mtime < now - HOUR:
        os.utime(folder)
        for old in superfluous(folder, now):
            shutil.rmtree(old, ignore_errors=True)  # another process may be at it, too
        if folder.parent == PACKAGE / "__pycache__":
            _delete_numbas_own(PACKAGE)


def superfluous(folder: Path, now: float) -> Iterable[Path]:
    """The caches of other sources or versions beside `folder` that nobody has used for a week, or for an hour if `KEPT`
    others were used later. The time of a folder is when it was last used."""
    others = []
    for other in folder.parent.iterdir():
        if _FOLDER.fullmatch(other.name) and other != folder:
            with contextlib.suppress(OSError):  # just cleaned by another process
                others.append((now - other.stat().st_mtime, other))
    for rank, (idle, other) in enumerate(sorted(others)):
        if idle > WEEK or (rank >= KEPT and idle > HOUR):
            yield other


def _delete_numbas_own(package: Path) -> None:
    """Earlier versions left their compiled code to numba's own cache, beside the sources. Nothing reads it any more."""
    for left in package.rglob("__pycache__/*.nb[ic]"):
        left.unlink(missing_ok=True)
