"""The disk operations that durability depends on, one method each, so that tests can simulate a disk that crashes.

Content is durable after `fsync(path)`, a name (created, renamed, removed) after `fsync_dir` of its folder; nothing else
is guaranteed. `write_whole` is the only way to publish a file, `FolderLock` the only way to own a folder.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable

Path = str | os.PathLike[str]
Chunks = Iterable[bytes | memoryview]

_UNFINISHED = re.compile(r"\.(.+)\.([0-9]{1,10})")


class Disk:
    """The operating system's files. Stateless."""

    def exists(self, path: Path) -> bool:
        """Whether something has this name, be it a broken link."""
        return os.path.lexists(path)

    def is_file(self, path: Path) -> bool:
        """Whether this is a file, or a link to one. A pipe would be waited for, a device has no end."""
        return os.path.isfile(path)

    def is_folder(self, path: Path) -> bool:
        """Whether this is a folder, or a link to one."""
        return os.path.isdir(path)

    def listdir(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(path))

    def read(self, path: Path, offset: int = 0, size: int = -1) -> bytes:
        """`size` bytes from `offset` on (all that is there when -1)."""
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(size)

    def size(self, path: Path) -> int:
        """The size of a file in bytes."""
        return os.stat(path).st_size

    def append(self, path: Path, chunks: Chunks) -> None:
        """Append to a file, which is created if missing. After an error, a part may have been written."""
        with open(path, "ab") as file:
            for chunk in chunks:
                file.write(chunk)

    def write_new(self, path: Path, chunks: Chunks) -> None:
        """Create a file that must not exist yet (`FileExistsError`). After an error, a part may have been written."""
        with open(path, "xb") as file:
            for chunk in chunks:
                file.write(chunk)

    def truncate(self, path: Path, size: int) -> None:
        """Truncate a file to its first `size` bytes."""
        os.truncate(path, size)

    def fsync(self, path: Path) -> None:
        """Make the content of a file durable.

        A new descriptor is sufficient: fsync concerns the file, not the writer, and Linux reports an unseen write-back
        error to descriptors opened later as well.
        """
        _fsync(path, os.O_RDONLY)

    def fsync_dir(self, path: Path) -> None:
        """Make the names in a directory durable: created, renamed or removed files."""
        _fsync(path, os.O_RDONLY | os.O_DIRECTORY)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file atomically; an existing file of that name is replaced."""
        os.replace(source, target)

    def link(self, source: Path, target: Path) -> bool:
        """Create a hard link; False if the file system cannot."""
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:
            return False
        return True

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Create one directory in an existing one (`FileExistsError`, `FileNotFoundError`)."""
        os.mkdir(path)


def is_plain_file(path: Path) -> bool:
    """Whether this is a file, and no link to one. A pipe would be waited for, a device has no end."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def write_whole(disk: Disk, path: Path, fill: Chunks | Callable[[Path], object], durable: bool = True) -> None:
    """Publish a file (or a folder of files) atomically and durably: no reader ever sees a part of it.

    It is written next to its destination under a name that readers skip, synced, renamed, and the name synced. `fill`
    is the content of a file, or a function that writes a file or folder at a given path. Missing parent folders are
    created. After an error, nothing remains. `durable=False` syncs nothing, for files that can be recreated: still
    atomic for readers, but a power failure may lose them. O(bytes).
    """
    folder, name = os.path.split(os.fspath(path))
    make_folders(disk, folder or ".")
    temporary = os.path.join(folder, f".{name}.{os.getpid()}")  # see `unfinished`
    _remove_whole(disk, temporary)  # left by a dead process of our number, as in a restarted container
    try:
        if callable(fill):
            fill(temporary)
        else:
            disk.write_new(temporary, fill)
        if durable:
            _sync_whole(disk, temporary)
        disk.rename(temporary, path)
    except OSError:
        _remove_whole(disk, temporary)
        raise
    if durable:
        disk.fsync_dir(folder or ".")


def unfinished(name: str) -> tuple[str, int] | None:
    """What a file would have been called if `write_whole` had finished it, and the process that wrote it; None for
    other names.

    >>> unfinished(".000000000001.snapshot.4711"), unfinished(".DS_Store"), unfinished("a.1")
    (('000000000001.snapshot', 4711), None, None)
    """
    match = _UNFINISHED.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def make_folders(disk: Disk, folder: Path) -> None:
    """Create a folder and its parents, each with its name synced."""
    missing = []
    folder = os.fspath(folder)
    while folder and not disk.exists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for new in reversed(missing):
        disk.mkdir(new)
        disk.fsync_dir(os.path.dirname(new) or ".")


def _sync_whole(disk: Disk, path: str) -> None:
    for inner, _, names in os.walk(path, topdown=False):
        for name in names:
            disk.fsync(os.path.join(inner, name))
        disk.fsync_dir(inner)
    if not os.path.isdir(path):
        disk.fsync(path)


def _remove_whole(disk: Disk, path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif disk.exists(path):
        disk.remove(path)


class FolderInUse(RuntimeError):
    """Another process owns the folder; `owner` is its process id, "unknown" if not stated."""

    def __init__(self, folder: Path, owner: str):
        super().__init__(f"{folder}: in use by process {owner}")
        self.owner = owner


class FolderLock:
    """Ownership of a folder by one process; the system releases it when the process ends. A folder that was made for it
    is removed on release if nothing came into it."""

    def __init__(self, folder: Path):
        """Lock the folder, which is created if missing. Raises `FolderInUse`, `OSError`."""
        self._new_folder = None if os.path.isdir(folder) else folder
        os.makedirs(folder, exist_ok=True)
        self._file = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(self._file, 32).decode().strip() or "unknown"
            os.close(self._file)
            raise FolderInUse(folder, owner) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        if self._new_folder is not None:
            with contextlib.suppress(OSError):
                if os.listdir(self._new_folder) == ["lock"]:
                    os.unlink(os.path.join(self._new_folder, "lock"))
                    os.rmdir(self._new_folder)
        os.close(self._file)


def is_owned(folder: Path) -> bool:
    """Whether a process owns the folder now; a lock file left by a finished process has no effect."""
    try:
        file = os.open(os.path.join(folder, "lock"), os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # of the file opened here: closing it gives that back
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
