"""Whether the main loop of a run is alive. Written by the main loop, read by any thread."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

LONG_STEP_SECONDS = 900.0  # that a step marked as long may take


class Heartbeat:
    """Ticks at every poll and block of the main loop, and during every known wait.

    A loop that waits for a full disk or an unreachable broker ticks, so it is alive. A loop that hangs does not. Steps
    that may take long (copying a large state, compiling code on first use) announce it and get more time, but never
    unlimited time. `wedged_after`: the number of seconds without a tick after which the loop counts as wedged.
    """

    def __init__(self, wedged_after: float = 60.0):
        self.wedged_after = wedged_after
        self._long_step = ""  # the current long step
        self.warm = False  # set once a block was learned; before that, code may need compiling
        self._last_tick = time.monotonic()
        self.time = time.time()  # of the last tick, in seconds since the epoch

    def tick(self) -> None:
        """Record that the loop made progress."""
        self._last_tick, self.time = time.monotonic(), time.time()

    @contextmanager
    def long(self, step: str) -> Iterator[None]:
        """Mark a step that may take longer than others."""
        self.tick()
        self._long_step = step
        try:
            yield
        finally:
            self.tick()
            self._long_step = ""

    def block(self) -> AbstractContextManager[None]:
        """Mark the decoding or learning of a block. The first block may take long because its code is compiled."""
        self.tick()
        return nullcontext() if self.warm else self.long("its first block, which compiles code")

    @property
    def compiling(self) -> bool:
        """Whether the first block is at work."""
        return bool(self._long_step) and not self.warm

    def wedged(self) -> str:
        """Why the loop counts as wedged, in one line; "" while it is alive."""
        silent = time.monotonic() - self._last_tick
        step = self._long_step
        limit = max(LONG_STEP_SECONDS, self.wedged_after) if step else self.wedged_after
        if silent <= limit:
            return ""
        in_step = f" in {step}" if step else ""
        return f"the loop has not ticked for {silent:.0f} s{in_step}, expected within {limit:g} s"
