"""Files and standard input as sources, dead letters in files as a sink.

Here: the files that a path or glob names, and files that can never be read.
"""

import glob
import os
import stat
from collections.abc import Collection, Iterable

from connectors import UnusableSource


def expand(pattern: str, known_paths: Collection[str] = ()) -> list[str]:
    """The files that a path or glob names, sorted. A path that exists is taken as it is, whatever it contains.

    Paths in `known_paths` are files, as far as the caller cares."""
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [pattern]
    return sorted(
        path for path in glob.iglob(pattern, recursive=True) if path in known_paths or not os.path.isdir(path)
    )


def named_twice(sources: Iterable[str]) -> str:
    """A file that two of these paths or globs name; "" if there is none."""
    all_files: set[str] = set()
    for pattern in sources:
        files = {os.path.realpath(path) for path in expand(pattern)}
        if both := all_files & files:
            return min(both)
        all_files |= files
    return ""


def check_readable(path: str) -> None:
    """Raises `UnusableSource`, one line, for a file that can never be read."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise UnusableSource(f"{path}: is a directory; name the files in it, as in {path.rstrip('/')}/*.jsonl")
        if not stat.S_ISREG(mode):
            raise UnusableSource(f"{path}: is not a regular file; pipe it to standard input and name that: -")
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        raise UnusableSource(f"{path}: {error.strerror}; nothing was read") from error
