"""The disk operations that promises of durability are made of, one method each.

Everything that must survive a crash (dead letters, snapshots, artifacts) goes through a `Disk`, so that a test can put
a simulated disk in its place that loses what was not synced and crashes before every operation. The invariant that the
callers rely on: content is durable after `fsync(path)` returned, a *name* (created, renamed or removed) is durable
after `fsync_dir` of its directory returned, and nothing else is promised. `write_whole` is the one way to publish a
file, `FolderLock` the one way to own a folder.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable

Path = str | os.PathLike[str]
Chunks = Iterable[bytes | memoryview]


class Disk:
    """The operating system's files. No state: any two of them are the same disk."""

    def exists(self, path: Path) -> bool:
        return os.path.lexists(path)

    def listdir(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(path))

    def read(self, path: Path, offset: int = 0, size: int = -1) -> bytes:
        """`size` bytes from `offset` on (all that is there when -1)."""
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(size)

    def size(self, path: Path) -> int:
        return os.stat(path).st_size

    def append(self, path: Path, chunks: Chunks) -> None:
        """Write at the end of a file, which is made when it is missing. After an error a part may have been written."""
        with open(path, "ab") as file:
            for chunk in chunks:
                file.write(chunk)

    def write_new(self, path: Path, chunks: Chunks) -> None:
        """Make a file that must not exist yet (`FileExistsError`). After an error a part may have been written."""
        with open(path, "xb") as file:
            for chunk in chunks:
                file.write(chunk)

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file to its first `size` bytes."""
        os.truncate(path, size)

    def fsync(self, path: Path) -> None:
        """Make the content of a file durable.

        A fresh descriptor is enough: fsync is about the file, not about who wrote, and Linux reports a write-back error
        that nobody has seen yet to descriptors opened later as well.
        """
        _fsync(path, os.O_RDONLY)

    def fsync_dir(self, path: Path) -> None:
        """Make the names in a directory durable: files made, renamed or removed in it."""
        _fsync(path, os.O_RDONLY | os.O_DIRECTORY)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name at once; a file of that name is replaced."""
        os.replace(source, target)

    def link(self, source: Path, target: Path) -> bool:
        """Give a file a second name; False where the file system cannot."""
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
        """Make one directory inside an existing one (`FileExistsError`, `FileNotFoundError`)."""
        os.mkdir(path)


def write_whole(disk: Disk, path: Path, fill: Chunks | Callable[[Path], object], durable: bool = True) -> None:
    """Make a file (or a folder of files) of that name durable, whole or not at all: no reader ever sees a part of it.

    Written beside its place under a name that readers pass over, synced, renamed, and the name synced. `fill` is the
    content of a file, or a function that writes a file or a folder at the path that it is given. Folders on the way
    are made. After an error nothing is left. `durable=False` syncs nothing, for what can be made again: whole or not
    at all for readers still, but a power cut may take it. O(bytes).
    """
    folder, name = os.path.split(os.fspath(path))
    make_folders(disk, folder or ".")
    temporary = os.path.join(folder, f".{name}.{os.getpid()}")
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


def make_folders(disk: Disk, folder: Path) -> None:
    """Make a folder and those above it, each with its name synced."""
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
    """Another process owns the folder; `owner` is its number, "unknown" where it did not say."""

    def __init__(self, folder: Path, owner: str):
        super().__init__(f"{folder}: in use by process {owner}")
        self.owner = owner


class FolderLock:
    """Ownership of a folder by one process; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path):
        """Take the folder, which is made when it is missing. Raises `FolderInUse`, `OSError`."""
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
        """Give the folder up."""
        os.close(self._file)


def is_owned(folder: Path) -> bool:
    """Whether a process owns the folder now; the file that a process has left behind when it ended means nothing."""
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
