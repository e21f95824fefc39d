"""One memory budget for a run, `memory_gb`: how much each part may use, and what happens near the limit.

The budget covers this process and its refits. The state comes first and takes what it needs. Of the rest below `NEAR`
of the budget, exports may use at most a quarter of the budget, and each refit an equal part. Near the limit, the stream
waits while a snapshot or a refit is running, since that releases memory when it ends; refits that delay it for
`PATIENCE` seconds are cancelled. If nothing is running, the state itself is that large: the run logs it and continues
in small blocks. It never waits for something that cannot happen.

`raised_limit`, `connections_allowed`: how many files and sockets this process may open.
"""

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from structlog.typing import FilteringBoundLogger

from stream_engine.data import available_memory
from stream_engine.service.metrics import Metrics


def one_heap() -> None:
    """Let all threads use one heap of the C library, where that can be said (glibc): memory that one thread gives back
    then serves the others, and an idle run holds 192 MB instead of 277."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX


NEAR = 0.85  # of the budget
EXPORTS = 0.25  # of the budget, at most
LEAST_REFIT = 300_000_000  # bytes: a process of its own, before it has read anything
PATIENCE = 60.0  # seconds that the stream waits for refits
LOOK_SECONDS = 0.5  # between two looks at what is held
_UNKNOWN = 1 << 60  # bytes, where the system does not tell
BLOCK_SHARE = 256  # part of what is left that the messages of a block may be: what is made of them is so much more,
# and while one is learned others are decoded or wait


class Memory:
    """The memory budget of a run; `limit` in bytes, None: no limit. `workers` returns the ids of processes that refit
    or export."""

    def __init__(
        self,
        limit: int | None,
        metrics: Metrics,
        log: FilteringBoundLogger,
        workers: Callable[[], Collection[int]] = tuple,
        held: Callable[[int | str], int] = available_memory.resident,
    ):
        self._given, self._metrics, self._log = limit, metrics, log
        self._workers, self._held = workers, held
        self._looked = float("-inf")
        self._resident = self._refits = self._limit = 0
        self._said: set[str] = set()  # work that was reported as short of memory, and still is
        self.look(0.0)

    def look(self, older_than: float = LOOK_SECONDS) -> None:
        """Measure memory use, unless it was measured within the last `older_than` seconds."""
        now = time.monotonic()
        if now - self._looked < older_than:
            return
        self._looked = now
        self._resident, self._refits = self._held("self"), sum(map(self._held, self._workers()))
        if self._given is None:
            free = available_memory.available()
            self._limit = _UNKNOWN if free is None else self._resident + self._refits + free
        else:
            self._limit = self._given
        sizes = {"limit": self._limit, "resident": self._resident, "refits": self._refits}
        for of, size in sizes.items():
            self._metrics.memory.labels(of).set(size)

    @property
    def is_given(self) -> bool:
        """Whether a budget was set."""
        return self._given is not None

    def left(self) -> int:
        """Unused bytes below `NEAR` of the budget; negative above it."""
        self.look()
        return int(NEAR * self._limit) - self._resident - self._refits

    def for_export(self) -> int:
        """Bytes that all exports together may use now."""
        return max(0, min(self.left(), int(EXPORTS * self._limit)))

    def for_refit(self, kinds: int) -> int:
        """Bytes for a refit that starts now, if refits of this many kinds share what is left."""
        self.look(0.0)
        room = int(NEAR * self._limit) - self._resident
        return min(self.left(), room // max(1, kinds))

    def block_bytes(self, most: int) -> int:
        """Bytes of messages to decode together: at most `most`, less near the limit."""
        return max(most // 64, min(most, self.left() // BLOCK_SHARE))

    def wait(
        self,
        what: str,
        needed: int,
        under_way: Callable[[], list[str]],
        pause: Callable[[float], bool],
        cancel_refits: Callable[[], object],
    ) -> None:
        """Wait before `what` ("poll", "snapshot") until `needed` bytes are available.

        Waits for running work (`under_way`: "snapshot", kinds of refits) to end. `pause(since)` waits a moment and
        returns whether to continue waiting. Also returns if the bytes can never become available; that is logged.
        """
        if self.left() >= needed:
            self._said.discard(what)
            return
        began = time.monotonic()
        waiting = under_way()
        if waiting and what not in self._said:
            self._log.warning("near the memory budget, waiting", what=what, waiting_for=waiting, **self._figures())
        while waiting and self.left() < needed and pause(began):
            if time.monotonic() - began > PATIENCE and waiting != ["snapshot"]:
                self._log.warning(
                    "cancelled refits because the stream needs their memory", cancelled=waiting, **self._figures()
                )
                cancel_refits()
            waiting = under_way()
            self.look(0.0)
        self._metrics.memory_wait_seconds.inc(time.monotonic() - began)
        if self.left() < needed:
            self._give_back()
        if self.left() < needed and not waiting and what not in self._said:
            self._log.error(
                "the state is near the memory budget; continuing; raise memory_gb, or keep counts on disk "
                "(counts.on_disk_above)",
                what=what,
                **self._figures(),
            )
        self._said.add(what)

    def _give_back(self) -> None:
        """Return freed memory to the system."""
        gc.collect()
        if (arrow := sys.modules.get("pyarrow")) is not None:  # a run on text never loads it
            arrow.default_memory_pool().release_unused()
        self.look(0.0)

    def _figures(self) -> dict[str, int]:
        return {"limit": self._limit, "resident": self._resident, "refits": self._refits}
