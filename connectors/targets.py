"""Where copies of files go, and where they come back from: a folder, or an object store.

A target holds whole files in flat folders, by name. Invariant: a file that `write` was told to make is there whole, or
not at all, for every reader at every moment; one that is there already is replaced at once. A folder is written through
a `Disk`, so what is there after a power cut is known; object stores (s3, gs, abfs, hdfs, and whatever fsspec knows as
fsspec+NAME://) are pyarrow's, which reads their credentials where each of them is used to find them.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from connectors import UnusableSource, split_uri
from connectors.disk import Disk, write_whole

PIECE = 4 << 20  # bytes that are read at once
KNOWN = "a folder, s3://, gs://, abfs://, hdfs:// or fsspec+NAME://"
_BY_KEY = ("s3", "gcs", "abfs")  # no folders there: a name with slashes is a name


class Target(Protocol):
    """A place for whole files. Names have one folder at most ("manifest.json", "files/7.snapshot")."""

    def sizes(self, folder: str) -> dict[str, int]:
        """The files of a folder, "folder/name", with their bytes; none where there is no such folder."""
        ...

    def read(self, name: str) -> Iterator[bytes]:
        """The content of a file in pieces. Raises `OSError`."""
        ...

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Make or replace a file; what `pieces` raises is raised, and nothing is written then. Raises `OSError`."""

    def remove(self, name: str) -> None:
        """Raises `OSError`."""


def pieces_of(disk: Disk, path: str | os.PathLike[str], size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file, or all that it has."""
    begin = 0
    while begin < size and (piece := disk.read(path, begin, min(PIECE, size - begin))):
        yield piece
        begin += len(piece)


class Folder:
    """A folder as a target; it is made when it is missing."""

    def __init__(self, folder: str | os.PathLike[str], disk: Disk | None = None):
        self._folder, self._disk = os.fspath(folder), disk or Disk()

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def sizes(self, folder: str) -> dict[str, int]:
        """See `Target`."""
        if not self._disk.exists(self._path(folder)):
            return {}
        names = [f"{folder}/{name}" for name in self._disk.listdir(self._path(folder))]
        return {name: self._disk.size(self._path(name)) for name in names}

    def read(self, name: str) -> Iterator[bytes]:
        """See `Target`."""
        return pieces_of(self._disk, self._path(name), self._disk.size(self._path(name)))

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """See `Target`; durable when it returns."""

        def fill(path: Any) -> None:
            try:
                self._disk.write_new(path, pieces)
            except Exception:
                with contextlib.suppress(OSError):
                    self._disk.remove(path)
                raise

        write_whole(self._disk, self._path(name), fill)

    def remove(self, name: str) -> None:
        """See `Target`."""
        self._disk.remove(self._path(name))


class ObjectStore:
    """A `pyarrow.fs.FileSystem` below one path as a target."""

    def __init__(self, filesystem: Any, base: str):
        self._files, self._base = filesystem, base.rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def sizes(self, folder: str) -> dict[str, int]:
        """See `Target`."""
        from pyarrow.fs import FileSelector

        found = self._files.get_file_info(FileSelector(self._path(folder), allow_not_found=True))
        return {f"{folder}/{each.base_name}": each.size for each in found if each.is_file}

    def read(self, name: str) -> Iterator[bytes]:
        """See `Target`."""
        with self._files.open_input_stream(self._path(name)) as file:
            while piece := file.read(PIECE):
                yield piece

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """See `Target`. Written under another name first: not every store shows a file only when it is whole."""
        beside = self._path(name) + ".new"
        if self._files.type_name not in _BY_KEY:
            self._files.create_dir(os.path.dirname(beside), recursive=True)
        try:
            with self._files.open_output_stream(beside) as file:
                for piece in pieces:
                    file.write(piece)
            self._files.move(beside, self._path(name))
        except Exception:
            with contextlib.suppress(OSError):
                self._files.delete_file(beside)
            raise

    def remove(self, name: str) -> None:
        """See `Target`."""
        self._files.delete_file(self._path(name))


def open_target(uri: str, lock: Callable[[str], object] | None = None) -> Target:
    """The target that a person names: a folder, file://FOLDER, or an object store's SCHEME://BUCKET/PATH. `lock` is
    called with a folder before it is used. Raises `UnusableSource`.

    >>> open_target("s4://bucket/copies")
    Traceback (most recent call last):
    connectors.UnusableSource: s4://bucket/copies: unknown scheme 's4'; name a folder, s3://, gs://, abfs://, hdfs:// \
or fsspec+NAME://
    """
    scheme, rest = split_uri(uri)
    if scheme in ("file", "stdin"):
        if not rest or scheme == "stdin" or (os.path.lexists(rest) and not os.path.isdir(rest)):
            raise UnusableSource(f"{uri}: no folder; name {KNOWN}")
        if lock:
            lock(rest)
        return Folder(rest)
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem

    try:
        filesystem, base = FileSystem.from_uri(uri)
    except ImportError as error:
        raise UnusableSource(f"{uri}: {' '.join(str(error).split())} `pip install fsspec` brings it") from None
    except ArrowInvalid as error:
        why = " ".join(str(error).split())
        unknown = "Unrecognized" in why
        raise UnusableSource(f"{uri}: {f'unknown scheme {scheme!r}' if unknown else why}; name {KNOWN}") from None
    except (OSError, ValueError) as error:
        raise UnusableSource(f"{uri}: {' '.join(str(error).split())}; name {KNOWN}") from None
    return ObjectStore(filesystem, base)
