"""Whether the loop of a run is alive: it ticks at every poll and block, and while it waits for what it knows.

A loop that waits for a full disk or a broker away ticks, and is alive. One that hangs, or turns in a circle, does not.
Steps that may rightly take long (the copy of a large state, code that is compiled on first use) say so and get more
time, never an unlimited one. Written by the loop, read by any thread.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

LONG = 900.0  # seconds that a step may take which says that it is a long one


class Heartbeat:
    """`after` is how many seconds the loop may go without a tick."""

    def __init__(self, after: float = 60.0):
        self.after = after
        self._what = ""  # the long step that is being taken
        self.warm = False  # set once a first block was learned: until then code may have to be compiled
        self._ticked = time.monotonic()
        self.time = time.time()  # of the last tick, in seconds since the epoch

    def tick(self) -> None:
        """The loop goes on."""
        self._ticked, self.time = time.monotonic(), time.time()

    @contextmanager
    def long(self, what: str) -> Iterator[None]:
        """A step that may take longer than others."""
        self.tick()
        self._what = what
        try:
            yield
        finally:
            self.tick()
            self._what = ""

    def block(self) -> AbstractContextManager[None]:
        """A block that is decoded or learned: the first may take long, code is compiled for it."""
        self.tick()
        return nullcontext() if self.warm else self.long("its first block, for which code is compiled")

    def wedged(self) -> str:
        """Why the loop counts as wedged, in one line; "" while it is alive."""
        silent = time.monotonic() - self._ticked
        what = self._what
        allowed = max(LONG, self.after) if what else self.after
        if silent <= allowed:
            return ""
        doing = f" in {what}" if what else ""
        return f"the loop has not ticked for {silent:.0f} s{doing}, expected within {allowed:g} s"
