"""Where large arrays live: in memory, or in files without a name that the kernel may page out.

An array on disk is an ordinary one over a shared mapping of a file that was unlinked before it was mapped: it goes when
the array goes, and nothing is left however the process ends. Its blocks are reserved first, so that a full disk is an
error here and not a signal in the middle of a sort. Values, and so bytes of state, are the same either way.
"""

import contextlib
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

BLOCK = 1 << 16  # entries: what is worked on at a time where a temporary of the whole would be too much

_folder: Path | None = None
_above = 0


class NoRoom(RuntimeError):
    """The folder for arrays on disk takes no more, or cannot be used. One line."""


class _Pages(mmap.mmap):
    """The mapping behind one array made by `room`."""


def keep_on_disk(folder: str | os.PathLike, above: int) -> None:
    """From now on `room` puts arrays of more than `above` bytes (at least 1) into `folder`, which is made if it is
    missing, and rid of files that are there: it must be this process's alone. Raises `NoRoom`."""
    global _folder, _above
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.iterdir():  # file systems without O_TMPFILE give a name for a moment
            left.unlink()
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise NoRoom(
            f"{folder}: counts cannot be kept there ({error.strerror}); give it a folder that can be written, or "
            "set counts.on_disk_above = 0"
        ) from None
    _folder, _above = folder, max(above, 1)


def keep_in_memory() -> None:
    """From now on `room` uses memory, as it does from the start; the folder is removed. Arrays stay where they are."""
    global _folder
    if _folder is not None:
        with contextlib.suppress(OSError):
            _folder.rmdir()
    _folder = None


def room(shape: int | tuple[int, ...], dtype) -> np.ndarray:
    """An array with any content, in memory or on disk by its size. Raises `NoRoom`."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if _folder is None or nbytes <= _above:
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(dir=_folder) as file:
            os.posix_fallocate(file.fileno(), 0, nbytes)
            return np.ndarray(shape, dtype, _Pages(file.fileno(), nbytes))
    except OSError as error:
        raise NoRoom(
            f"{_folder}: no room for {nbytes:,} bytes of counts ({error.strerror}); nothing since the last snapshot "
            "is kept; make room and run again"
        ) from None


def copied(array: np.ndarray, dtype=None) -> np.ndarray:
    """A copy in C order, where `room` puts it, of the same type or another."""
    copy = room(array.shape, array.dtype if dtype is None else dtype)
    copy[...] = array
    return copy


def is_whole(array: np.ndarray) -> bool:
    """Whether the array is all of its memory: it owns it, or it is what `room` made; never a view of another."""
    return array.base is None or isinstance(array.base, _Pages)


def blocks(size: int) -> Iterator[slice]:
    """`size` entries, BLOCK at a time.

    >>> [(part.start, part.stop) for part in blocks(BLOCK + 1)]
    [(0, 65536), (65536, 65537)]
    """
    return (slice(begin, min(begin + BLOCK, size)) for begin in range(0, size, BLOCK))


def repeated(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """values[p] at the places start[p] .. start[p + 1] - 1, where `room` puts it: `np.repeat(values, np.diff(start))`.

    >>> repeated(np.array([7, 8], np.int32), np.array([0, 2, 3])).tolist()
    [7, 7, 8]
    """
    made = room(int(start[-1]), values.dtype)
    for part in blocks(len(made)):
        first, end = np.searchsorted(start, part.start, "right") - 1, np.searchsorted(start, part.stop, "left")
        made[part] = np.repeat(values[first:end], np.diff(np.clip(start[first : end + 1], part.start, part.stop)))
    return made
