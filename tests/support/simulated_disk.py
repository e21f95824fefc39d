"""A disk in memory with two images, live and durable, that loses power before any operation.

It has the methods of `connectors.disk.Disk`. What may be found after a power cut (`images`): content that was synced,
and of the content that was not any part: nothing, the first writes, half of a write, its length with zeros; names that
were synced, and of those that were not any subset of the operations, each of them (a rename is one) whole or not at
all. Files in directories that are gone are gone. Few assumptions: nothing is ordered that was not synced in between.
"""

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

MOST_NAMES = 4  # unsynced operations on names of which all subsets are tried
MOST_CONTENTS = 48  # combinations of contents of which all are tried


class PowerCut(BaseException):
    """Nothing that runs in the process can catch it and go on, hence no `Exception`."""


class Inode:
    """A file's content: what is durable, and the writes since."""

    def __init__(self, durable: bytes = b""):
        self.durable, self.live = durable, bytearray(durable)
        self.writes: list[bytes] = []  # the content after each unsynced write

    def changed(self) -> None:
        self.writes.append(bytes(self.live))

    def survivals(self) -> list[bytes]:
        """What may be found of it after a power cut."""
        found, before = [self.durable], self.durable
        for after in self.writes if len(self.writes) < 4 else [self.writes[0], *self.writes[-2:]]:
            if len(after) > len(before):
                torn = len(before) + (len(after) - len(before) + 1) // 2
                found += [after[:torn], before + bytes(len(after) - len(before))]
            found.append(after)
            before = after
        return list(dict.fromkeys(found))


DIRECTORY = Inode()


class SimDisk:
    """Directories and files under absolute paths. `crash_at` counts operations that change or sync something."""

    def __init__(
        self,
        files: dict[str, bytes] | None = None,
        directories: tuple[str, ...] = ("/state",),
        crash_at: int | None = None,
        capacity: int | None = None,
    ):
        self.live: dict[str, Inode] = {"/": DIRECTORY}
        for path in directories:
            self.live[os.path.normpath(path)] = DIRECTORY
        for path, content in (files or {}).items():
            self.live[os.path.normpath(path)] = Inode(content)
        self.durable = dict(self.live)
        self.unsynced: list[tuple[str, dict[str, Inode | None]]] = []  # (directory, names it gave or took)
        self.crash_at, self.capacity, self.operations, self.dead = crash_at, capacity, 0, False
        self.log: list[str] = []

    # -- the methods of Disk ---------------------------------------------------------------------------------------

    def exists(self, path) -> bool:
        return self._alive(path) in self.live

    def is_file(self, path) -> bool:
        return self.live.get(self._alive(path), DIRECTORY) is not DIRECTORY

    def is_folder(self, path) -> bool:
        return self.live.get(self._alive(path)) is DIRECTORY

    def listdir(self, path) -> list[str]:
        directory = self._directory(self._alive(path))
        return sorted(os.path.basename(name) for name in self.live if os.path.dirname(name) == directory != name)

    def read(self, path, offset: int = 0, size: int = -1) -> bytes:
        content = bytes(self._file(self._alive(path)).live)[offset:]
        return content if size < 0 else content[:size]

    def size(self, path) -> int:
        return len(self._file(self._alive(path)).live)

    def append(self, path, chunks) -> None:
        path = self._operation("append", path)
        if path not in self.live:
            self._name({path: Inode()})
        self._write(self._file(path), b"".join(chunks))

    def write_new(self, path, chunks) -> None:
        path = self._operation("write_new", path)
        if path in self.live:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._name({path: Inode()})
        self._write(self._file(path), b"".join(chunks))

    def truncate(self, path, size: int) -> None:
        inode = self._file(self._operation("truncate", path))
        inode.live[:] = bytes(inode.live[:size]).ljust(size, b"\0")
        inode.changed()

    def fsync(self, path) -> None:
        inode = self._file(self._operation("fsync", path))
        inode.durable, inode.writes = bytes(inode.live), []

    def fsync_dir(self, path) -> None:
        directory = self._directory(self._operation("fsync_dir", path))
        for _, names in (entry for entry in self.unsynced if entry[0] == directory):
            _apply(self.durable, names)
        self.unsynced = [entry for entry in self.unsynced if entry[0] != directory]

    def rename(self, source, target) -> None:
        source, target = self._operation("rename", source), os.path.normpath(os.fspath(target))
        assert os.path.dirname(source) == os.path.dirname(target), "renames across directories are not simulated"
        self._name({source: None, target: self._file(source)})

    def link(self, source, target) -> bool:
        self._name({self._operation("link", target): self._file(self._alive(source))})
        return True

    def remove(self, path) -> None:
        path = self._operation("remove", path)
        self._file(path)
        self._name({path: None})

    def mkdir(self, path) -> None:
        path = self._operation("mkdir", path)
        if path in self.live:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._name({path: DIRECTORY})

    # -- how they work ---------------------------------------------------------------------------------------------

    def _alive(self, path) -> str:
        if self.dead:
            raise PowerCut
        return os.path.normpath(os.fspath(path))

    def _operation(self, name: str, path) -> str:
        path = self._alive(path)
        if self.operations == self.crash_at:
            self.dead = True
            raise PowerCut
        self.operations += 1
        self.log.append(f"{name} {path}")
        return path

    def _file(self, path: str) -> Inode:
        inode = self.live.get(path)
        if inode is None or inode is DIRECTORY:
            code = errno.ENOENT if inode is None else errno.EISDIR
            raise OSError(code, os.strerror(code), path)
        return inode

    def _directory(self, path: str) -> str:
        if self.live.get(path) is not DIRECTORY:
            code = errno.ENOTDIR if path in self.live else errno.ENOENT
            raise OSError(code, os.strerror(code), path)
        return path

    def _name(self, names: dict[str, Inode | None]) -> None:
        directory = self._directory(os.path.dirname(next(iter(names))))
        _apply(self.live, names)
        self.unsynced.append((directory, names))

    def _write(self, inode: Inode, data: bytes) -> None:
        used = sum(len(each.live) for each in set(self.live.values()))
        fits = len(data) if self.capacity is None else max(0, min(len(data), self.capacity - used))
        inode.live += data[:fits]
        inode.changed()
        if fits < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # -- what may be found after a power cut -----------------------------------------------------------------------

    def contents(self) -> dict[str, bytes]:
        """The live files."""
        return {path: bytes(inode.live) for path, inode in self.live.items() if inode is not DIRECTORY}

    def copy(self) -> "SimDisk":
        """A disk on which all that is live here is durable."""
        return SimDisk(self.contents(), tuple(path for path, inode in self.live.items() if inode is DIRECTORY))

    def images(self) -> Iterator["SimDisk"]:
        """Every disk that may be found, each once."""
        seen = set()
        for names in self._surviving_names():
            inodes = sorted({inode for inode in names.values() if inode is not DIRECTORY}, key=id)
            options = [inode.survivals() for inode in inodes]
            directories = tuple(path for path, inode in names.items() if inode is DIRECTORY)
            for found in _combinations(options):
                content = dict(zip(inodes, found))
                files = {path: content[inode] for path, inode in names.items() if inode is not DIRECTORY}
                key = tuple(sorted(files.items())), tuple(sorted(directories))
                if key not in seen:
                    seen.add(key)
                    yield SimDisk(files, directories)

    def _surviving_names(self) -> Iterator[dict[str, Inode]]:
        n = len(self.unsynced)
        if n <= MOST_NAMES:
            choices = list(itertools.product((False, True), repeat=n))
        else:
            choices = [tuple(i < k for i in range(n)) for k in range(n + 1)] + [
                tuple(i == k for i in range(n)) for k in range(n)
            ]
        for choice in choices:
            names = dict(self.durable)
            for kept, (_, change) in zip(choice, self.unsynced):
                if kept:
                    _apply(names, change)
            yield {path: inode for path, inode in names.items() if _reachable(path, names)}


def _apply(names: dict[str, Inode], change: dict[str, Inode | None]) -> None:
    for path, inode in change.items():
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _reachable(path: str, names: dict[str, Inode]) -> bool:
    parent = os.path.dirname(path)
    return path == "/" or (names.get(parent) is DIRECTORY and _reachable(parent, names))


def _combinations(options: list[list[bytes]]) -> Iterator[tuple[bytes, ...]]:
    """All of them when they are few; else all first, all last, and each file's own with the others first or last."""
    total = 1
    for each in options:
        total *= len(each)
    if total <= MOST_CONTENTS:
        yield from itertools.product(*options)
        return
    for rest in (0, -1):
        base = [each[rest] for each in options]
        for i, each in enumerate(options):
            for choice in each:
                yield (*base[:i], choice, *base[i + 1 :])


def crash_images(
    run: Callable[[SimDisk, list], Any], make: Callable[[], SimDisk] = SimDisk
) -> Iterator[tuple[int, list, SimDisk]]:
    """Run on a new disk, cut the power before its n-th operation, for every n and once after the last one.

    Yields `(n, promises, image)` for every image that may be found; `promises` is the list that `run(disk, promises)`
    filled until then.
    """
    for n in itertools.count():
        disk, promises, finished = make(), [], False
        disk.crash_at = n
        try:
            run(disk, promises)
            finished = True
        except PowerCut:
            pass
        for image in disk.images():
            yield n, promises, image
        if finished:
            return
