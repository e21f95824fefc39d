"""How fast a run reads events, by the clock of the reader and not of those who ask."""

import time

WINDOW_SECONDS = 10  # seconds that the rate is a mean of


class EventRate:
    """`add` events in one thread; another may ask."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._second, self._n = [-WINDOW_SECONDS] * WINDOW_SECONDS, [0] * WINDOW_SECONDS  # by second, in turns

    def add(self, n: int) -> None:
        """Count n events that were accepted now; 0 where all of them were rejected."""
        self._last = now = time.monotonic()
        place = int(now) % len(self._n)
        if self._second[place] != int(now):
            self._second[place], self._n[place] = int(now), 0
        self._n[place] += n

    def per_second(self) -> float:
        """Mean of the last `WINDOW_SECONDS` seconds (the last of them has just begun), or of those since the start."""
        now = time.monotonic()
        first = int(now) - WINDOW_SECONDS + 1
        n = sum(n for second, n in zip(self._second, self._n, strict=True) if second >= first)
        return n / max(now - max(self._began, first), 1.0)

    def seconds_since_last(self) -> float:
        """Seconds since the last event, or since the start."""
        return time.monotonic() - self._last
