"""A log of lines, durable before the caller is told so: one writer, group commit.

Lines given during a sync are written and synced together by the next one. A line whose future is True survives; after
an exception, `lines` says what is there; opening the log cuts off a partial last line.
"""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

import msgspec

from connectors import UnusableSource
from connectors.disk import Disk, make_folders

LONG = 5.0  # seconds in which any group is durable where nothing is wrong


class LogBroken(RuntimeError):
    """The log takes no more until the process begins anew; one line: where, what, next step."""


class PendingLine(NamedTuple):
    """A line, its future, and whether that waits until the line is durable, not only until it is written."""

    line: bytes
    done: Future
    synced: bool


_PIECE = 1 << 20  # bytes that are looked at together for the end of the last whole line


class LineLog:
    """A file of lines with one thread that writes. `size` is how many bytes of it were written whole: all of them are
    durable once a line that is to be synced is. `problem`: why it takes no more."""

    def __init__(self, path: Path, disk: Disk | None = None, at_least: int = 0):
        """Open the log, made when it is missing; a torn last line goes. Raises OSError.

        Where a reader is `at_least` so many bytes on, it has read what a power cut then took before it was durable:
        empty lines fill the gap, so that no later line lies where that reader has been."""
        self.path, self._disk, self.problem = path, disk or Disk(), ""
        make_folders(self._disk, path.parent)
        if not self._disk.exists(path):
            self._disk.append(path, [])
            self._disk.fsync_dir(path.parent)
        self.torn = _cut_torn_line(self._disk, path)
        self.gap = max(at_least - self._disk.size(path), 0)
        if self.gap:
            self._disk.append(path, [b"\n" * self.gap])
        self._disk.fsync(path)
        self.size = self._disk.size(path)
        self._since: float | None = None  # when the group that is under way began
        self._waiting: list[PendingLine] = []
        self._wake, self._end = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name=f"log {path}", daemon=True)
        self._thread.start()

    @property
    def delay(self) -> str:
        """Why what was given has to wait for longer than it ever should, or ""."""
        since = self._since
        waited = 0.0 if since is None else time.monotonic() - since
        return f"{self.path}: no write was durable for {waited:.0f} s" if waited > LONG else ""

    def append(self, line: bytes, synced: bool = True) -> Future:
        """Add a line (without its end). The future gives True once it is durable, or with `synced` false once it is
        written: then a kill leaves it there, a power cut may not. It raises `LogBroken`, or OSError where nothing is
        known to be durable. O(1) for the caller."""
        pending = PendingLine(line, Future(), synced)
        with self._wake:
            if self.problem or self._end:
                pending.done.set_exception(LogBroken(self.problem or f"{self.path}: closed"))
            else:
                self._waiting.append(pending)
                self._wake.notify()
        return pending.done

    def close(self) -> None:
        """Write what was given, and end the thread."""
        with self._wake:
            self._end = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._end)
                batch, self._waiting = self._waiting, []
            if not batch:
                return
            self._since = time.monotonic()
            try:
                self._commit(batch)
            except Exception as error:  # nobody may wait for what no thread will write
                self._break(f"{self.path}: {type(error).__name__}: {error}; restart `collect`", batch)
            self._since = None

    def _commit(self, batch: list[PendingLine]) -> None:
        try:
            self._disk.append(self.path, [pending.line + b"\n" for pending in batch])
        except OSError as error:  # a full disk: a part may be there
            self._undo(batch, error)
            return
        for pending in batch:
            if not pending.synced:
                pending.done.set_result(True)
        if any(pending.synced for pending in batch):  # else nobody has to wait behind a sync
            try:
                self._disk.fsync(self.path)
            except OSError as error:  # the system may have given up these pages: nobody knows what is on the disk
                self._break(f"{self.path}: cannot sync: {error}; check the disk, then restart `collect`", batch)
                return
        self.size += sum(len(pending.line) + 1 for pending in batch)
        for pending in batch:
            if pending.synced:
                pending.done.set_result(True)

    def _undo(self, batch: list[PendingLine], error: OSError) -> None:
        """Nothing of a batch that could not be written whole stays, or the log is broken.

        A reader may have seen whole lines of it; so lines that were written whole stay and are durable."""
        try:
            _cut_torn_line(self._disk, self.path)
            self._disk.fsync(self.path)
            written = self._disk.size(self.path) - self.size
        except OSError as again:
            self._break(f"{self.path}: cannot write: {error}; cannot truncate: {again}", batch)
            return
        for pending in batch:
            written -= len(pending.line) + 1
            if written >= 0:
                self.size += len(pending.line) + 1
                pending.done.set_result(True)
            else:
                pending.done.set_exception(OSError(error.errno, error.strerror, str(self.path)))

    def lines(self) -> Iterator[bytes]:
        return lines_of(self.path)

    def _break(self, problem: str, batch: list[PendingLine]) -> None:
        with self._wake:
            self.problem = problem
            batch, self._waiting = batch + self._waiting, []
        for pending in batch:
            if not pending.done.done():
                pending.done.set_exception(LogBroken(problem))


def lines_of(path: Path) -> Iterator[bytes]:
    """The whole lines of a log, without their ends; nothing where there is no file."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


def _cut_torn_line(disk: Disk, path: Path) -> int:
    """Cut a file behind its last line end; returns how many bytes went."""
    size = end = disk.size(path)
    while end > 0:
        start = max(end - _PIECE, 0)
        at = disk.read(path, start, end - start).rfind(b"\n")
        if at >= 0:
            end = start + at + 1
            break
        end = start
    if end < size:
        disk.truncate(path, end)
    return size - end


class _Id(msgspec.Struct):
    id: str


def of_study(lines: Iterable[bytes], study: str, where: str) -> Iterator[bytes]:
    """The lines, each of which is an answer of this study. Raises `UnusableSource`."""
    decode = msgspec.json.Decoder(_Id).decode
    for line in lines:
        if line:
            try:
                ours = decode(line).id.startswith(f"{study}-")
            except msgspec.MsgspecError:
                ours = False
            if not ours:
                raise UnusableSource(
                    f"{where}: holds {line[:60]!r}, which is not an answer of this study; expected a log of its own"
                )
        yield line
