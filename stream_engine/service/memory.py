"""One budget of memory for a run, `memory_gb`: who may take how much of it, and what happens near it.

What counts is what this process and its refits hold. The state comes first: what it needs it takes. Of what it leaves
below `NEAR` of the budget, exports may take a quarter of the budget at most, and each refit an equal part. Near the
budget the stream waits while a snapshot or a refit is under way, since that ends and gives its memory back; refits that
hold it up for `PATIENCE` seconds are cancelled. Where nothing is under way that could end, the state itself is that
large: that is said, and the stream goes on in small blocks. It never waits for what cannot come.
"""

import gc
import sys
import time
from collections.abc import Callable, Collection

from structlog.typing import FilteringBoundLogger

from stream_engine.data import available_memory
from stream_engine.service.metrics import Metrics

NEAR = 0.85  # of the budget
EXPORTS = 0.25  # of the budget, at most
LEAST_REFIT = 300_000_000  # bytes: a process of its own, before it has read anything
PATIENCE = 60.0  # seconds that the stream waits for refits
LOOK_SECONDS = 0.5  # between two looks at what is held
_UNKNOWN = 1 << 60  # bytes, where the system does not tell
BLOCK_SHARE = 256  # part of what is left that the messages of a block may be: what is made of them is so much more,
# and while one is learned others are decoded or wait


class Memory:
    """The budget of a run; `limit` in bytes, None: whatever there is. `workers` gives the ids of processes that refit
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
        self._said: set[str] = set()  # what was told to be short of memory, and still is
        self.look(0.0)

    def look(self, older_than: float = LOOK_SECONDS) -> None:
        """Find out what is held, unless that was done less than so many seconds ago."""
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
        told = {"limit": self._limit, "resident": self._resident, "refits": self._refits}
        for of, size in told.items():
            self._metrics.memory.labels(of).set(size)

    @property
    def is_given(self) -> bool:
        """Whether a budget was set."""
        return self._given is not None

    def left(self) -> int:
        """Bytes below `NEAR` of the budget that nobody holds; negative beyond it."""
        self.look()
        return int(NEAR * self._limit) - self._resident - self._refits

    def for_export(self) -> int:
        """Bytes that exports may take now, all of them together."""
        return max(0, min(self.left(), int(EXPORTS * self._limit)))

    def for_refit(self, kinds: int) -> int:
        """Bytes that a refit may take that is started now, where refits of so many kinds share what is left."""
        self.look(0.0)
        left = int(NEAR * self._limit) - self._resident
        return min(self.left(), left // max(1, kinds))

    def block_bytes(self, most: int) -> int:
        """Bytes of messages to decode at once: `most` of them, fewer near the budget."""
        return max(most // 64, min(most, self.left() // BLOCK_SHARE))

    def wait(
        self,
        what: str,
        needed: int,
        under_way: Callable[[], list[str]],
        pause: Callable[[float], bool],
        cancel_refits: Callable[[], object],
    ) -> None:
        """Before `what` ("poll", "snapshot") takes so many bytes: where they are not left, wait for what is under way
        ("snapshot", kinds of refits) to end. `pause(since)` passes a moment and tells whether to go on waiting. Returns
        also when they never will be left: then that is said."""
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
                    "refits cancelled, the stream needs their memory", cancelled=waiting, **self._figures()
                )
                cancel_refits()
            waiting = under_way()
            self.look(0.0)
        self._metrics.memory_wait_seconds.inc(time.monotonic() - began)
        if self.left() < needed:
            self._give_back()
        if self.left() < needed and not waiting and what not in self._said:
            self._log.error(
                "the state is near the memory budget, going on; raise memory_gb, or keep counts on disk "
                "(counts.on_disk_above)",
                what=what,
                **self._figures(),
            )
        self._said.add(what)

    def _give_back(self) -> None:
        """Give the system back what was freed."""
        gc.collect()
        if (arrow := sys.modules.get("pyarrow")) is not None:  # a run on text never loads it
            arrow.default_memory_pool().release_unused()
        self.look(0.0)

    def _figures(self) -> dict[str, int]:
        return {"limit": self._limit, "resident": self._resident, "refits": self._refits}
