"""Programs that tests need and fetch on first use: a cache outside the repository, filled by one process at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def cache(name: str) -> Iterator[Path]:
    """The folder of that name in the user's cache, created; held while the block runs, so that of several test
    processes one fetches and the others wait and find it there."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stream-engine" / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
