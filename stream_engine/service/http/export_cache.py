"""Exports on disk, each made once for all who ask for it: DIR/served, emptied at the start, never part of the state.

Asked for from one event loop only, so there are no locks. What belongs to an older snapshot goes as soon as nobody is
being sent it; of the newest, what was asked for longest ago goes when there are more bytes than allowed.
"""

import asyncio
import hashlib
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from stream_engine.service.http.export_builds import Builder, NoRoom, size_of
from stream_engine.state.published import Published

_DIGEST_BYTES = 1 << 20  # of a file read at a time


class Busy(RuntimeError):
    """Too much is asked for at once; the message says what."""


class Key(NamedTuple):
    """One export: what was published, what of it, and how it is written."""

    published: str
    what: str
    format: str


class Entry(NamedTuple):
    """The files of an export that is made, with the ETag of each."""

    folder: Path
    etags: dict[str, str]
    size: int


def fingerprint(published: Published) -> str:
    """What distinguishes a snapshot with its artifacts from all others."""
    digests = sorted(f"{kind} {artifact.digest}" for kind, artifact in published.artifacts.items())
    return hashlib.sha256("\n".join([published.snapshot.digest, *digests]).encode()).hexdigest()[:32]


class ExportCache:
    """At most `most_bytes` on disk (what is being sent may hold more back), `most_builds` made at once; `changed` is
    told the bytes whenever they change."""

    def __init__(
        self,
        builder: Builder,
        most_bytes: int,
        most_builds: int,
        changed: Callable[[int], None] = lambda size: None,
    ):
        self._folder = builder.state / "served"
        shutil.rmtree(self._folder, ignore_errors=True)  # left by a process that was killed
        self._builder = builder
        self._most_bytes, self._most_builds, self._changed = most_bytes, most_builds, changed
        self._entries: dict[Key, Entry] = {}  # made, the longest unasked first
        self._wanted: Counter[Key] = Counter()  # how many wait for it or are being sent it
        self._building: dict[Key, asyncio.Task[Entry]] = {}
        self._pool = ThreadPoolExecutor(most_builds, "export")
        self._sweeper = ThreadPoolExecutor(1, "served")  # removing a large file takes long
        self._newest = ""  # the fingerprint that was asked for last
        self.made = 0  # how many were begun

    @asynccontextmanager
    async def served(self, published: Published, what: str, format: str) -> AsyncIterator[Entry]:
        """An export, made if nobody has asked for it yet; its files stay until the end of the `async with`.

        Raises `NothingToExport`, `SnapshotGone`, `NoRoom`, `Busy`, `Stopped`.
        """
        key = Key(fingerprint(published), what, format)
        self._wanted[key] += 1
        self._newest = key.published
        try:
            if key in self._entries:
                self._entries[key] = self._entries.pop(key)  # the last to go
                yield self._entries[key]
            else:
                if key not in self._building:
                    self._start(key, published)
                yield await asyncio.shield(self._building[key])
        finally:
            self._wanted[key] -= 1
            self._drop_surplus()

    def _start(self, key: Key, published: Published) -> None:
        if len(self._building) >= self._most_builds:
            raise Busy(f"{self._most_builds} other exports are being made")
        self._building[key] = task = asyncio.create_task(self._build(key, published))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # told to those who wait, if any

    async def _build(self, key: Key, published: Published) -> Entry:
        self.made += 1
        folder = self._folder / str(self.made)
        loop = asyncio.get_running_loop()
        try:
            entry = await loop.run_in_executor(self._pool, self._build_here, published, key, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            del self._building[key]
        self._entries[key] = entry
        self._drop_surplus()
        return entry

    def _build_here(self, published: Published, key: Key, folder: Path) -> Entry:
        self._builder.build(published, key.what, key.format, folder)
        try:
            return Entry(folder, {path.name: _etag(path) for path in sorted(folder.iterdir())}, size_of(folder))
        except OSError as error:
            raise NoRoom(f"{key.what}: cannot be read back: {error.strerror}") from None

    def _drop_surplus(self) -> None:
        """Remove what belongs to something older than the newest, and what is too much; never what is wanted."""
        self._wanted = +self._wanted
        size = sum(entry.size for entry in self._entries.values())
        for key, entry in list(self._entries.items()):
            if key not in self._wanted and (key.published != self._newest or size > self._most_bytes):
                del self._entries[key]
                self._sweeper.submit(shutil.rmtree, entry.folder, ignore_errors=True)
                size -= entry.size
        self._changed(size)

    def close(self) -> None:
        """End what is being made, and remove the folder."""
        self._builder.stop.set()
        self._pool.shutdown()
        self._sweeper.shutdown()
        shutil.rmtree(self._folder, ignore_errors=True)


def _etag(path: Path) -> str:
    """The content's digest: equal content has an equal tag, whatever made it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_DIGEST_BYTES):
            digest.update(piece)
    return f'"{digest.hexdigest()[:32]}"'
