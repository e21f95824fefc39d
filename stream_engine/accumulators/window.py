"""An exact sliding window over the triplets: its content is the state, AddS-3 and counts of it are read from that.

`by = "count"`: the last `window` triplets, in the order of arrival; so it has no merge. `by = "time"`: the triplets said
at t > T - window seconds, T the newest time seen. T only grows, so a triplet that arrives late enough to be outside is
outside for ever: the content depends on what was seen and not on the order, and windows can be merged. A triplet that is
outside on arrival is not counted in the window and counted in `late`, one without a time in `untimed`.

To subtract later what leaves, a window must hold what entered, so nothing else is held: counts that were kept beside it
would be a second copy of the same thing. 12 bytes a triplet, 20 by time, at most twice that before a trim; a few
nanoseconds an event. AddS-3 and counts of the window cost O(window) at an export or a refit, not in the loop.
"""

from collections.abc import Mapping
from typing import Self

import numpy as np

from stream_engine.data.comparisons import Batch

TRIM_FLOOR = 1 << 12  # triplets


class Window:
    """The triplets of the recent past.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> w = Window("count", window=1)
    >>> w.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [1, 0, 2]], np.int32)))
    >>> w.state()["rows"].tolist()
    [[1, 0, 2]]
    """

    judged = True
    forgets = ("by", "window")
    arrival = ("late",)

    def __init__(self, by: str = "count", window: float = 1e6):
        self._by_time, self._window = by == "time", float(window)
        self._rows, self._time = [np.empty((0, 3), np.int32)], [np.empty(0)]
        self._held, self._live = 0, 0
        self._newest, self._late, self._untimed = -np.inf, 0, 0
        self.mergeable = self._by_time

    def update(self, batch: Batch) -> None:
        """Take in the triplets of a batch. O(comparisons) amortised."""
        rows = batch.triplets
        time = np.empty(0)
        if self._by_time:
            time = np.full(len(rows), np.nan) if batch.judges is None else batch.judges.time[batch.judges.of_triplet]
            known = ~np.isnan(time)
            self._untimed += int(len(time) - known.sum())
            rows, time = rows[known], time[known]
            newest = np.maximum.accumulate(np.append(self._newest, time))  # as each arrives, whatever the batches
            inside = time > newest[1:] - self._window
            self._late += int(len(time) - inside.sum())
            self._newest = float(newest[-1])
            rows, time = rows[inside], time[inside]
        self._hold(rows.copy(), time.copy())

    def _hold(self, rows: np.ndarray, time: np.ndarray) -> None:
        self._rows.append(rows)
        self._time.append(time)
        self._held += len(rows)
        if self._held > 2 * self._live + TRIM_FLOOR or len(self._rows) > TRIM_FLOOR:
            self._trim()

    def _trim(self) -> None:
        """Let go of what has left."""
        rows, time = np.concatenate(self._rows), np.concatenate(self._time)
        if self._by_time:
            inside = time > self._newest - self._window
            rows, time = rows[inside], time[inside]
        else:
            rows = rows[max(0, len(rows) - int(self._window)) :].copy()
        self._rows, self._time = [rows], [time]
        self._held = self._live = len(rows)

    def merge(self, other: Self) -> None:
        """Take in another window over the same clock."""
        if not (self.mergeable and other.mergeable):
            raise ValueError("a window by count is about the order of arrival in one stream; it cannot be merged")
        self._load(other.state())

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._newest = max(self._newest, float(state["newest"]))
        self._late += int(state["late"])
        self._untimed += int(state["untimed"])
        self._hold(np.array(state["rows"], np.int32), np.array(state["time"], float))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in (*self._rows, *self._time))

    def state(self) -> dict[str, np.ndarray]:
        """`rows` (k, 3) int32 anchor, near, far: in order of arrival, or by `time` (k,) float64 and then by ids; `newest`
        (-inf: nothing yet), `late`, `untimed`, `window`, `by_time`."""
        self._trim()
        return self._canonical(
            self._rows[0],
            self._time[0],
            dict(
                newest=np.array(self._newest),
                late=np.array(self._late),
                untimed=np.array(self._untimed),
                window=np.array(self._window),
                by_time=np.array(self._by_time),
            ),
        )

    @staticmethod
    def _canonical(rows, time, rest) -> dict[str, np.ndarray]:
        if rest["by_time"]:
            order = np.argsort(time, kind="stable")
            if (np.diff(time[order]) == 0).any():  # one sort is enough where no two share a time
                order = np.lexsort((*rows.T[::-1], time))
            rows, time = rows[order], time[order]
        return {"rows": rows, "time": time, **rest}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The window that has this state, its parameters included."""
        made = cls("time" if state["by_time"] else "count", window=float(state["window"]))
        made._load(state)
        return made

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        rest = {key: np.array(state[key]) for key in ("newest", "late", "untimed", "window", "by_time")}
        rows = np.asarray(new_id, np.int32)[state["rows"]]
        return Window._canonical(rows, np.array(state["time"]), rest)

    @staticmethod
    def definition(batch: Batch, by: str = "count", window: float = 1e6) -> dict[str, np.ndarray]:
        """One triplet after the other, all of them looked at again each time."""
        held: list[tuple[float, list[int]]] = []
        newest, late, untimed = -np.inf, 0, 0
        for e, triplet in enumerate(batch.triplets.tolist()):
            if by == "count":
                held = [*held, (float(e), triplet)][-int(window) :]
                continue
            t = float("nan") if batch.judges is None else float(batch.judges.time[batch.judges.of_triplet[e]])
            if t != t:
                untimed += 1
                continue
            newest = max(newest, t)
            late += t <= newest - window
            held = [(s, row) for s, row in [*held, (t, triplet)] if s > newest - window]
        if by == "time":
            held.sort()
        return {
            "rows": np.array([row for _, row in held], np.int32).reshape(-1, 3),
            "time": np.array([t for t, _ in held] if by == "time" else [], float),
            "newest": np.array(newest),
            "late": np.array(late),
            "untimed": np.array(untimed),
            "window": np.array(float(window)),
            "by_time": np.array(by == "time"),
        }
