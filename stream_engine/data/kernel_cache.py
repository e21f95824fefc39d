"""Compiled kernels on first use (see `compiled.py`): numba's, with a cache that follows the sources.

The machine code of a kernel also contains the kernels that it calls and the constants that it uses, from other files.
numba's own cache checks only whether the file of the function has changed, and has one index of signatures for each
function: two processes that fill it at the same time can leave an index in which one signature has the code of another,
which then reads integers as floats, for example, and counts wrongly without an error.

Invariant: compiled code is loaded only by a process with the same kernel sources, versions of Python, numpy, numba and
llvmlite, and settings of numba as those that compiled it, and only for the signature that it was compiled for. One
digest of the former, `key()`, names the folder of the cache. Each signature has its own file, written under another
name and renamed, which contains the signature; there is no index. The digest is computed when the first kernel is
called. A process whose sources change while it runs saves nothing from then on; if they changed before its first
kernel, or cannot be read, it loads nothing either.

The folder `stream-engine-KEY` is in NUMBA_CACHE_DIR if that is set, else in the package's `__pycache__`, else in
numba's cache folder of the user: the first of these that is writable. If earlier, read-only candidates contain such a
folder (filled when an image was built, for example), it is read first. If nothing is writable, every process compiles.

Cleaning: a process that uses its folder for the first time, or for the first time in an hour, deletes folders of other
sources or versions next to it that no process has started with for a week, or for an hour if `KEPT` others were used
later. A running program whose folder is deleted keeps what it has loaded and compiles what is missing.

Undocumented names of numba are used only in this file: `_Cache` of `numba.core.caching`, `dumps` of
`numba.core.serialize`, `numba.misc.appdirs`, the attribute `_cache` of a compiled function, and the methods `_reduce`
and `_rebuild` of the compiler's result; and its lock in `compiled.py`.
"""

import contextlib
import os
import pickle
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import llvmlite
import numba
import numpy as np
from numba.core import caching
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from stream_engine.data import IMPORTED

PACKAGE = Path(__file__).parent.parent
SETTINGS = ("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")  # what the compiler is told
VERSIONS = (platform.python_version(), np.__version__, numba.__version__, llvmlite.__version__)

KEPT = 8
HOUR, WEEK = 3600.0, 7 * 24 * 3600.0
_FOLDER = re.compile(r"stream-engine-[0-9a-f]{32}")
_NAME = re.compile(rb"\w+")


def cached_kernel(
    function: Callable, *, keep: bool, nogil: bool, inline: Literal["never", "always"], fastmath: bool
) -> Callable:
    """`numba.njit` with these options; `keep`: the compiled code is kept from one process to the next."""
    kernel = numba.njit(nogil=nogil, inline=inline, fastmath=fastmath)(function)
    if keep and not _setting("DISABLE_JIT"):
        kernel._cache = KernelCache(function)  # type: ignore[attr-defined]  # not documented by numba
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


class KernelCache(caching._Cache):
    """The compiled code of one function: read from the first folder that has it, saved in the last if that is writable.
    A file contains the signature, which is compared, and the code for it."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        file = Path(function.__code__.co_filename).absolute()
        inside = file.is_relative_to(PACKAGE)
        self._room = file.parent.relative_to(PACKAGE).as_posix() if inside else "outside"
        self._file = b"" if inside else blake2b(file.read_bytes()).digest()  # not known by the key

    @property
    def cache_path(self) -> str | None:
        """The folder of the compiled files."""
        folders = _folders().to_read
        return str(folders[-1] / self._room) if folders else None

    def _path(self, folder: Path, sig: Any, codegen: Any) -> Path:
        """The file for a signature and a processor. The values in closures are part of its name."""
        function = self._function
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        where = function.__module__, function.__qualname__, function.__code__.co_firstlineno
        what = dumps(cells) if cells else b"", self._file, function.__code__.co_code
        name = blake2b(repr((where, what, sig, codegen.magic_tuple())).encode(), digest_size=16).hexdigest()
        return folder / self._room / f"{where[0].rpartition('.')[2]}.{function.__name__}-{name}.nbc"

    def load_overload(self, sig, target_context):
        """The compiled code of a signature; None where there is none."""
        target_context.refresh()
        for folder in _folders().to_read:
            with contextlib.suppress(OSError):
                made_for, code = pickle.loads(self._path(folder, sig, target_context.codegen()).read_bytes())
                if made_for == sig:
                    return CompileResult._rebuild(target_context, *code)
        return None

    def save_overload(self, sig, data) -> None:
        """Keep the compiled code of a signature."""
        folders = _folders()
        if (
            not folders.last_is_writable
            or data.library.has_dynamic_globals
            or any(not x.can_cache for x in data.lifted)
        ):
            return
        if not _sources().unchanged_since(IMPORTED):
            return
        path = self._path(folders.to_read[-1], sig, data.codegen)
        with contextlib.suppress(OSError):  # a full disk, a folder just cleaned: the next process compiles again
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


# ---- where it is


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


# ---- which sources decide what a compiled kernel does


@cache
def _sources() -> "KernelSources":
    return KernelSources(PACKAGE)


class KernelSources:
    """The files below `package` that can change a kernel, as they are when this is made: those that define kernels
    (they name `njit`) and all files of the package that those import, directly or not."""

    def __init__(self, package: Path) -> None:
        self._package = package
        texts = {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}
        self._texts = _decisive(texts, package.name)

    def files(self) -> list[str]:
        """Their paths relative to the package, sorted."""
        return sorted(self._texts)

    def digest(self, *more: object) -> str:
        """32 hexadecimal digits of the names and bytes of the files, and of `more` by its repr."""
        whole = blake2b(repr(more).encode(), digest_size=16)
        for name in self.files():
            whole.update(blake2b(name.encode()).digest() + blake2b(self._texts[name]).digest())
        return whole.hexdigest()

    def unchanged_since(self, seconds: float) -> bool:
        """Whether no file was written, replaced or deleted after this time: else what a process has imported may not be
        what the digest says. Decided by the time of the last change of status, which nobody can set back."""
        now = time.time()  # later ones are of a clock that went wrong
        try:
            return not any(seconds < (self._package / name).stat().st_ctime <= now for name in self._texts)
        except FileNotFoundError:
            return False


def _decisive(texts: Mapping[str, bytes], package: str) -> dict[str, bytes]:
    """The files that define kernels, and those that they import from the package.

    >>> texts = {"a.py": b"from p.b import X\\n@njit", "b.py": b"X = 1", "c.py": b"from p import a"}
    >>> sorted(_decisive(texts, "p"))
    ['a.py', 'b.py']
    """
    target = rb" " + re.escape(package.encode()) + rb"\b([\w.]*)(?: import (\([^)]*\)|.*))?"
    imports = [re.compile(keyword + target) for keyword in (b"from", b"import")]
    todo = [name for name, text in texts.items() if b"njit" in text]
    decisive = set(todo)
    while todo:
        text = texts[todo.pop()]
        for module, names in (found for pattern in imports for found in pattern.findall(text)):
            path = module.decode().lstrip(".").replace(".", "/")
            paths = [path, *(f"{path}/{name.decode()}".lstrip("/") for name in _NAME.findall(names))]
            for file in [f"{each}/__init__.py".lstrip("/") for each in paths] + [f"{each}.py" for each in paths]:
                if file in texts and file not in decisive:
                    decisive.add(file)
                    todo.append(file)
    return {name: texts[name] for name in decisive}
