"""The live figures since a run began, a few hundred moments of them."""

import threading
from collections.abc import Callable
from typing import Any

MAX_MOMENTS = 240  # moments that are kept at most, at least half as many once the run is long
FIRST_SECONDS = 2.0  # seconds between two moments at the start
SERIES = ("time", "events", "refused", "lag", "accuracy", "drifts")  # of each moment; events and refused are totals


class History:
    """The figures since the run began: a few hundred moments, whatever the run's length. When there are `MAX_MOMENTS`,
    every second one goes and the next come half as often. `figures()` gives those of now; `close` ends the thread."""

    def __init__(self, figures: Callable[[], dict[str, Any]], every: float = FIRST_SECONDS):
        self._figures, self._every = figures, every
        self._moments: list[tuple[Any, ...]] = []
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="history", daemon=True)
        self._thread.start()

    def take(self) -> None:
        figures = self._figures()
        moment = tuple(figures[name] for name in SERIES)
        with self._lock:
            self._moments.append(moment)
            if len(self._moments) >= MAX_MOMENTS:
                self._moments = self._moments[:-1:2] + self._moments[-1:]  # the oldest and the newest stay
                self._every *= 2

    def so_far(self) -> dict[str, list[Any]]:
        """Each series, all of one length, the oldest moment first; None where nothing was known."""
        with self._lock:
            moments = list(self._moments)
        return {name: [moment[number] for moment in moments] for number, name in enumerate(SERIES)}

    def close(self) -> None:
        self._end.set()
        self._thread.join(5)

    def _follow(self) -> None:
        while not self._end.is_set():
            self.take()
            self._end.wait(self._every)
