"""An exact sliding window over the triplets: its content is the state, AddS-3 and counts are computed from it.

By arrival, the last `window` triplets: a ledger. By time, the triplets answered at t > T - window seconds, T the newest
time seen: as T only grows, the content does not depend on the order of arrival, and windows merge.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator, Ledger, Statistic
from stream_engine.counts.removal import Removal, window_without
from stream_engine.data.array_checks import ArraySpec, check_rising, check_rows, counts, figures, flags, ids
from stream_engine.data.comparisons import Batch, triplet_times
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation

TRIM_FLOOR = 1 << 12  # triplets


# A triplet that is outside on arrival is counted in `late`, one without a time in `untimed`. 12 bytes per triplet, 20
# by time, at most twice that before a trim. AddS-3 and counts cost O(window) at an export or refit, not in the loop.
class _Recent(Statistic):
    """The triplets held, in pieces until the next trim; what has left, and in which order they stand, differs."""

    BY_TIME: ClassVar[bool]
    needs_provenance = True
    forgets = ("window",)
    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {
        "rows": ids("rows", 3),
        "time": figures("times"),
        "newest": figures(finite=False),
        "window": figures(),
        **{name: counts() for name in ("late", "untimed")},
        "by_time": flags(),
    }

    def __init__(self, window: float = 1e6):
        self._window = float(window)
        self._rows, self._time = [np.empty((0, 3), np.int32)], [np.empty(0)]
        self._stored, self._live = 0, 0
        self._newest, self._late, self._untimed = -np.inf, 0, 0

    def _hold(self, rows: np.ndarray, time: np.ndarray) -> None:
        self._rows.append(rows)
        self._time.append(time)
        self._stored += len(rows)
        if self._stored > 2 * self._live + TRIM_FLOOR or len(self._rows) > TRIM_FLOOR:
            self._trim()

    def _trim(self) -> None:
        """Let go of what has left."""
        rows, time = self._inside(np.concatenate(self._rows), np.concatenate(self._time))
        self._rows, self._time = [rows], [time]
        self._stored = self._live = len(rows)

    @abstractmethod
    def _inside(self, rows: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is still in the window, as arrays that hold nothing else."""

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        self._newest = max(self._newest, float(state["newest"]))
        self._late += int(state["late"])
        self._untimed += int(state["untimed"])
        self._hold(np.array(state["rows"], np.int32), np.array(state["time"], float))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(piece.nbytes for piece in self._rows) + sum(piece.nbytes for piece in self._time)

    def state(self) -> dict[str, np.ndarray]:
        """`rows` (k, 3) int32 anchor, near, far: in order of arrival, or by `time` (k,) float64 and then by ids;
        `newest` (-inf: nothing yet), `late`, `untimed`, `window`, `by_time`."""
        self._trim()
        rows, time = self._in_order(self._rows[0], self._time[0])
        return {
            "rows": rows,
            "time": time,
            "newest": np.array(self._newest),
            "late": np.array(self._late),
            "untimed": np.array(self._untimed),
            "window": np.array(self._window),
            "by_time": np.array(self.BY_TIME),
        }

    @staticmethod
    @abstractmethod
    def _in_order(rows: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and times in the canonical order."""

    @classmethod
    def check_state(
        cls, state: Mapping[str, np.ndarray], n_objects: int, window: float = 1e6, **forgetting: Any
    ) -> None:
        """Raise `Corrupt` unless rows are triplets in order, inside a window of this length and clock."""
        super().check_state(state, n_objects, **forgetting)
        of_state = float(state["window"]), bool(state["by_time"])
        if of_state != (window, cls.BY_TIME):
            raise Corrupt(f"window, by_time: got {of_state}, expected {(window, cls.BY_TIME)} by the settings")
        anchor, near, far = state["rows"].T

        def three(part: slice) -> np.ndarray:
            return (anchor[part] != near[part]) & (anchor[part] != far[part]) & (near[part] != far[part])

        check_rows("rows", len(anchor), three, "three objects in each")
        cls._check_times(state, float(state["newest"]), window)

    @classmethod
    @abstractmethod
    def _check_times(cls, state: Mapping[str, np.ndarray], newest: float, window: float) -> None:
        """Raise `Corrupt` unless the rows are those of a window, in its order."""

    @classmethod
    def answers(cls, state: Mapping[str, np.ndarray]) -> float:
        """Those in the window, and those that never were."""
        return len(state["rows"]) + float(state["late"]) + float(state["untimed"])

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The window that has this state, its length included, in memory."""
        recent = cls(float(state["window"]))
        recent._load(state)
        return recent

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        in_order = Window._in_order if state["by_time"] else WindowByArrival._in_order
        rows, time = in_order(np.asarray(new_id, np.int32)[state["rows"]], np.array(state["time"]))
        clock = {key: np.array(state[key]) for key in ("newest", "late", "untimed", "window", "by_time")}
        return {"rows": rows, "time": time, **clock}


class Window(_Recent, Accumulator):
    """The triplets answered in the last `window` seconds."""

    BY_TIME = True
    arrival = ("late",)

    @property
    def newest_time(self) -> float:
        """The newest time that was counted (-inf: nothing yet)."""
        return self._newest

    def update(self, batch: Batch) -> None:
        """Take in the triplets of a batch. O(comparisons) amortised."""
        rows, time = batch.triplets, triplet_times(batch)
        timed = ~np.isnan(time)
        self._untimed += int(len(time) - timed.sum())
        rows, time = rows[timed], time[timed]
        newest = np.maximum.accumulate(np.append(self._newest, time))  # as each arrives, whatever the batches
        inside = time > newest[1:] - self._window
        self._late += int(len(time) - inside.sum())
        self._newest = float(newest[-1])
        self._hold(rows[inside], time[inside])

    def _inside(self, rows: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = time > self._newest - self._window
        return rows[inside], time[inside]

    @staticmethod
    def _in_order(rows: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(time, kind="stable")
        if (np.diff(time[order]) == 0).any():  # one sort is enough where no two share a time
            order = np.lexsort((*rows.T[::-1], time))
        return rows[order], time[order]

    @classmethod
    def _check_times(cls, state: Mapping[str, np.ndarray], newest: float, window: float) -> None:
        time = state["time"]
        if len(time) != len(state["rows"]) or not (np.isfinite(newest) or (newest == -np.inf and not len(time))):
            raise Corrupt(f"time: got {len(time)} for {len(state['rows'])} rows, the newest {newest}")
        inside = newest - window
        check_rows(
            "time", len(time), lambda part: (time[part] > inside) & (time[part] <= newest), "times in the window"
        )
        check_rising("time, rows", time, *state["rows"].T, twice=True)

    def merge(self, other: Self) -> None:
        """Take in another window over the same clock."""
        self._load(other.state())

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The window without the triplets of an object. O(window)."""
        return window_without(state, leaving)


class WindowByArrival(_Recent, Ledger):
    """The last `window` triplets.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> w = WindowByArrival(window=1)
    >>> w.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [1, 0, 2]], np.int32)))
    >>> w.state()["rows"].tolist()
    [[1, 0, 2]]
    """

    BY_TIME = False

    def update(self, batch: Batch) -> None:
        """Take in the triplets of a batch. O(comparisons) amortised."""
        self._hold(batch.triplets.copy(), np.empty(0))

    @classmethod
    def _check_times(cls, state: Mapping[str, np.ndarray], newest: float, window: float) -> None:
        if len(state["rows"]) > window or len(state["time"]) or newest != -np.inf or state["late"] or state["untimed"]:
            raise Corrupt(f"rows: got {len(state['rows'])} by arrival with times, expected at most {window:g} without")

    def _inside(self, rows: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows[max(0, len(rows) - int(self._window)) :].copy(), time

    @staticmethod
    def _in_order(rows: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rows, time
