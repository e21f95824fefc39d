"""Storage of large arrays: in memory, or in unnamed files that the kernel may page out."""

import contextlib
import mmap
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

PREFIX = ".stream-engine-counts-"  # of the names that files have for a moment, on file systems without O_TMPFILE
_LEFT_FILE = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")
BLOCK = 1 << 16  # entries at a time, if a temporary array of the full size would be too large


class NoRoom(RuntimeError):
    """The folder for arrays on disk is full or cannot be used. One line."""


class _Pages(mmap.mmap):
    """The mapping behind one array on disk."""


# An array on disk is an ordinary one over a shared mapping of a file that was unlinked before it was mapped: it is
# deleted with the array, and nothing remains however the process ends. Its blocks are reserved first, so that a full
# disk is an error here and not a signal in the middle of a sort. Values, and therefore bytes of state, are the same
# either way. An engine has one allocation and passes it to its accumulators, so two engines of one process may differ.
class Allocation(NamedTuple):
    """Arrays of more than `above` bytes go into unnamed files in `folder`; without a folder all are in memory."""

    folder: Path | None = None
    above: int = 0

    def allocate(self, shape: int | tuple[int, ...], dtype) -> np.ndarray:
        """An array with any content, in memory or on disk by its size. Raises `NoRoom`."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if self.folder is None or nbytes <= self.above:
            return np.empty(shape, dtype)
        try:
            with tempfile.TemporaryFile(prefix=PREFIX, dir=self.folder) as file:
                os.posix_fallocate(file.fileno(), 0, nbytes)
                return np.ndarray(shape, dtype, _Pages(file.fileno(), nbytes))
        except OSError as error:
            raise NoRoom(
                f"{self.folder}: no space for {nbytes:,} bytes of counts ({error.strerror}); nothing after the last "
                "snapshot is kept; free some space and run again"
            ) from None

    def copied(self, array: np.ndarray, dtype=None) -> np.ndarray:
        """A copy in C order, allocated here, of the same type or another."""
        copy = self.allocate(array.shape, array.dtype if dtype is None else dtype)
        copy[...] = array
        return copy

    def repeated(self, values: np.ndarray, start: np.ndarray) -> np.ndarray:
        """values[p] at the places start[p] .. start[p + 1] - 1, allocated here: `np.repeat(values, np.diff(start))`.

        >>> IN_MEMORY.repeated(np.array([7, 8], np.int32), np.array([0, 2, 3])).tolist()
        [7, 7, 8]
        """
        result = self.allocate(int(start[-1]), values.dtype)
        for part in blocks(len(result)):
            first, end = np.searchsorted(start, part.start, "right") - 1, np.searchsorted(start, part.stop, "left")
            result[part] = np.repeat(values[first:end], np.diff(np.clip(start[first : end + 1], part.start, part.stop)))
        return result

    def close(self) -> None:
        """Remove the folder. Arrays stay where they are; none can be allocated on disk any more."""
        if self.folder is not None:
            with contextlib.suppress(OSError):
                self.folder.rmdir()


IN_MEMORY = Allocation()


def on_disk(folder: str | os.PathLike, above: int) -> Allocation:
    """Arrays of more than `above` bytes (at least 1) in `folder`, which is made if it is missing. Files that a killed
    process left there are removed, and no others: the folder may be a link, or somebody's. Raises `NoRoom`."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            if _LEFT_FILE.fullmatch(file.name) and file.is_file() and not file.is_symlink():
                file.unlink(missing_ok=True)
        tempfile.TemporaryFile(prefix=PREFIX, dir=folder).close()
    except OSError as error:
        raise NoRoom(
            f"{folder}: cannot keep counts there ({error.strerror}); use a writable folder, or "
            "set counts.on_disk_above = 0"
        ) from None
    return Allocation(folder, max(above, 1))


def is_whole(array: np.ndarray) -> bool:
    """Whether the array is all of its memory: it owns it, or it is an allocated one on disk; never a view of
    another."""
    return array.base is None or isinstance(array.base, _Pages)


def blocks(size: int) -> Iterator[slice]:
    """`size` entries, BLOCK at a time.

    >>> [(part.start, part.stop) for part in blocks(BLOCK + 1)]
    [(0, 65536), (65536, 65537)]
    """
    return (slice(begin, min(begin + BLOCK, size)) for begin in range(0, size, BLOCK))
