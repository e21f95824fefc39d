"""One memory budget for a run, `memory_gb`: how much each part may use, and what happens near the limit."""

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from structlog.typing import FilteringBoundLogger

from stream_engine.data import available_memory
from stream_engine.service.metrics import Metrics

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of malloc.h


def one_heap() -> None:
    """Let all threads use one heap of the C library, where that can be set (glibc): memory that one thread gives back
    then serves the others, and an idle run holds 192 MB instead of 277. Arrays of more than 4 MB stay outside: else the
    library would put those of up to 32 MB into the heap, which keeps the holes that they leave."""
    with suppress(AttributeError, OSError):
        for option, value in ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, 4 << 20), (M_TRIM_THRESHOLD, 8 << 20)):
            ctypes.CDLL(None).mallopt(option, value)


USABLE_SHARE = 0.85  # of the budget
EXPORT_SHARE = 0.25  # of the budget, at most
MIN_REFIT_BYTES = 300_000_000  # bytes: a process of its own, before it has read anything
PATIENCE = 60.0  # seconds that the stream waits for refits
MEASURE_SECONDS = 0.5  # between two looks at what is held
_UNLIMITED = 1 << 60  # bytes, where the system does not tell
BLOCK_SHARE = 256  # part of what is left that the messages of a block may be: what is made of them is so much more,
# and while one is learned others are decoded or wait


# The state comes first and takes what it needs. Of the budget that it leaves, below USABLE_SHARE, exports may use at
# most a quarter of the budget, and each refit an equal part. Near the limit, the stream waits while a snapshot or a
# refit is running, since that releases memory when it ends; refits that delay it for PATIENCE seconds are cancelled. If
# nothing is running, the state itself is that large: the run logs it and continues in small blocks. It never waits for
# something that cannot happen.
class Memory:
    """The memory budget of a run, which covers this process and its refits; `limit` in bytes, None: no limit. `workers`
    returns the ids of processes that refit or export."""

    def __init__(
        self,
        limit: int | None,
        metrics: Metrics,
        log: FilteringBoundLogger,
        workers: Callable[[], Collection[int]] = tuple,
        resident_of: Callable[[int | str], int] = available_memory.resident,
    ):
        self._budget, self._metrics, self._log = limit, metrics, log
        self._workers, self._resident_of = workers, resident_of
        self._measured_at = float("-inf")
        self._resident = self._refits = self._limit = 0
        self._reported: set[str] = set()  # work that was reported as short of memory, and still is
        self.measure(0.0)

    def measure(self, older_than: float = MEASURE_SECONDS) -> None:
        """Measure memory use, unless it was measured within the last `older_than` seconds."""
        now = time.monotonic()
        if now - self._measured_at < older_than:
            return
        self._measured_at = now
        self._resident, self._refits = self._resident_of("self"), sum(map(self._resident_of, self._workers()))
        if self._budget is None:
            free = available_memory.available()
            self._limit = _UNLIMITED if free is None else self._resident + self._refits + free
        else:
            self._limit = self._budget
        sizes = {"limit": self._limit, "resident": self._resident, "refits": self._refits}
        for part, size in sizes.items():
            self._metrics.memory.labels(part).set(size)

    @property
    def is_given(self) -> bool:
        return self._budget is not None

    def left(self) -> int:
        """Unused bytes below `USABLE_SHARE` of the budget; negative above it."""
        self.measure()
        return int(USABLE_SHARE * self._limit) - self._resident - self._refits

    def for_export(self) -> int:
        """Bytes that all exports together may use now."""
        return max(0, min(self.left(), int(EXPORT_SHARE * self._limit)))

    def for_refit(self, kinds: int) -> int:
        """Bytes for a refit that starts now, if refits of this many kinds share what is left."""
        self.measure(0.0)
        room = int(USABLE_SHARE * self._limit) - self._resident
        return min(self.left(), room // max(1, kinds))

    def block_bytes(self, max_bytes: int) -> int:
        """Bytes of messages to decode together: at most `max_bytes`, less near the limit."""
        return max(max_bytes // 64, min(max_bytes, self.left() // BLOCK_SHARE))

    def wait(
        self,
        purpose: str,
        n_bytes: int,
        under_way: Callable[[], list[str]],
        pause: Callable[[float], bool],
        cancel_refits: Callable[[], object],
    ) -> None:
        """Wait before `purpose` ("poll", "snapshot") until `n_bytes` bytes are available.

        Waits for running work (`under_way`: "snapshot", kinds of refits) to end. `pause(since)` waits a moment and
        returns whether to continue waiting. Also returns if the bytes can never become available; that is logged.
        """
        if self.left() >= n_bytes:
            self._reported.discard(purpose)
            return
        began = time.monotonic()
        waiting = under_way()
        if waiting and purpose not in self._reported:
            self._log.warning("near the memory budget, waiting", what=purpose, waiting_for=waiting, **self._figures())
        while waiting and self.left() < n_bytes and pause(began):
            if time.monotonic() - began > PATIENCE and waiting != ["snapshot"]:
                self._log.warning(
                    "cancelled refits because the stream needs their memory", cancelled=waiting, **self._figures()
                )
                cancel_refits()
            waiting = under_way()
            self.measure(0.0)
        self._metrics.memory_wait_seconds.inc(time.monotonic() - began)
        if self.left() < n_bytes:
            self._give_back()
        if self.left() < n_bytes and not waiting and purpose not in self._reported:
            self._log.error(
                "the state is near the memory budget; continuing; raise memory_gb, or keep counts on disk "
                "(counts.on_disk_above)",
                what=purpose,
                **self._figures(),
            )
        self._reported.add(purpose)

    def _give_back(self) -> None:
        """Return freed memory to the system."""
        gc.collect()
        if (arrow := sys.modules.get("pyarrow")) is not None:  # a run on text never loads it
            arrow.default_memory_pool().release_unused()
        self.measure(0.0)

    def _figures(self) -> dict[str, int]:
        return {"limit": self._limit, "resident": self._resident, "refits": self._refits}
