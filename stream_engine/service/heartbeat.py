"""Whether the main loop of a run is alive. Written by the main loop, read by any thread."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

LONG = 900.0  # seconds that a step marked as long may take


class Heartbeat:
    """`after`: the number of seconds without a tick after which the loop counts as wedged."""

    def __init__(self, after: float = 60.0):
        self.after = after
        self._what = ""  # the current long step
        self.warm = False  # set once a block was learned; before that, code may need compiling
        self._ticked = time.monotonic()
        self.time = time.time()  # of the last tick, in seconds since the epoch

    def tick(self) -> None:
        """Record that the loop made progress."""
        self._ticked, self.time = time.monotonic(), time.time()

    @contextmanager
    def long(self, what: str) -> Iterator[None]:
        """Mark a step that may take longer than others."""
        self.tick()
        self._what = what
        try:
            yield
        finally:
            self.tick()
            self._what = ""

    def block(self) -> AbstractContextManager[None]:
        """Mark the decoding or learning of a block. The first block may take long because its code is compiled."""
        self.tick()
        return nullcontext() if self.warm else self.long("its first block, which compiles code")

    @property
    def compiling(self) -> bool:
        """Whether the first block is at work."""
        return bool(self._what) and not self.warm

    def wedged(self) -> str:
        """Why the loop counts as wedged, in one line; "" while it is alive."""
        silent = time.monotonic() - self._ticked
        what = self._what
        allowed = max(LONG, self.after) if what else self.after
        if silent <= allowed:
            return ""
        doing = f" in {what}" if what else ""
        return f"the loop has not ticked for {silent:.0f} s{doing}, expected within {allowed:g} s"
