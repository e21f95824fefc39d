"""Lines that are made durable in groups, by one thread: all that was given while one group was under way is the next.

What the lines are kept in (a file: `line_log`; a Kafka topic: `topic_log`) says what `_commit` does.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple

LONG = 5.0  # seconds in which any group is durable where nothing is wrong


class LogBroken(RuntimeError):
    """The log takes no more until the process begins anew; one line: where, what, next step."""


class PendingLine(NamedTuple):
    """A line, its future, and whether that waits until the line is durable, not only until it is written."""

    line: bytes
    done: Future
    synced: bool


class GroupCommit:
    """`name` is what messages call it. A subclass sets up its place, and then calls `_begin`."""

    patience: float | None = None  # seconds that `close` waits; None: as long as it takes

    def __init__(self, name: str):
        self.name = name
        self.problem = ""  # why it takes no more
        self._since: float | None = None  # when the group that is under way began
        self._waiting: list[PendingLine] = []
        self._wake, self._end = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name=f"log {name}", daemon=True)

    @property
    def delay(self) -> str:
        """Why what was given has to wait for longer than it ever should, or ""."""
        since = self._since
        waited = 0.0 if since is None else time.monotonic() - since
        return f"{self.name}: no write was durable for {waited:.0f} s" if waited > LONG else ""

    def _begin(self) -> None:
        self._thread.start()

    def append(self, line: bytes, synced: bool = True) -> Future:
        """Add a line (without its end). The future gives True once it is durable, or with `synced` false once it is
        written: then a kill leaves it there, a power cut may not. It raises `LogBroken`, or OSError where nothing is
        known to be durable. O(1) for the caller."""
        given = PendingLine(line, Future(), synced)
        with self._wake:
            if self.problem or self._end:
                given.done.set_exception(LogBroken(self.problem or f"{self.name}: closed"))
            else:
                self._waiting.append(given)
                self._wake.notify()
        return given.done

    def close(self) -> None:
        """Write what was given, and end the thread; what cannot be written now is left after some seconds."""
        with self._wake:
            self._end = True
            self._wake.notify()
        self._thread.join(self.patience)

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
                self._break(f"{self.name}: {type(error).__name__}: {error}; restart `collect`", batch)
            self._since = None

    def lines(self) -> Iterator[bytes]:
        """All lines that are there now, without their ends."""
        raise NotImplementedError

    def _commit(self, batch: list[PendingLine]) -> None:
        """Give every future of the batch its result."""
        raise NotImplementedError

    def _break(self, problem: str, batch: list[PendingLine]) -> None:
        with self._wake:
            self.problem = problem
            batch, self._waiting = batch + self._waiting, []
        for each in batch:
            if not each.done.done():
                each.done.set_exception(LogBroken(problem))
