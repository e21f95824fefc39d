"""The disk operations that promises of durability are made of, one method each.

Everything that must survive a crash (dead letters, snapshots, artifacts) goes through a `Disk`, so that a test can put
a simulated disk in its place that loses what was not synced and crashes before every operation. The invariant that the
callers rely on: content is durable after `fsync(path)` returned, a *name* (created, renamed or removed) is durable
after `fsync_dir` of its directory returned, and nothing else is promised.
"""

import os
from collections.abc import Iterable

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

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make one directory inside an existing one (`FileExistsError`, `FileNotFoundError`)."""
        os.mkdir(path)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
