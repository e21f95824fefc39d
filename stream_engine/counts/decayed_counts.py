"""Exponentially decayed AddS-3 and triplet counts: old answers count less.

    weight of a comparison made at t = 2^(-(T - t) / half_life),   T = the newest t seen

By time, this is a commutative monoid up to rounding; by arrival (t = number of triplets so far), a ledger.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator, Ledger, Statistic
from stream_engine.counts.float_sums import KeySums, PairSums
from stream_engine.counts.removal import Removal, sums_without
from stream_engine.data.array_checks import LARGEST_COUNT, check_arrays, counts, figures, flags
from stream_engine.data.comparisons import Batch, triplet_times
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation

RESCALE = 40.0  # half-lives between reference and newest
FLOOR = 2.0**-40
_HOLDS = {"newest": figures(finite=False), "untimed": counts(), "half_life": figures(), "by_time": flags()}


# The weight depends on T and t alone, so late events count what they would have counted in order; events without a time
# are counted in `untimed` only. Sums are stored as w 2^((t - reference) / half_life), so an event touches its own
# entries; every 40 half-lives all are rescaled, and what fell below 2^-40 is dropped. Tolerance: 1e-9 of the sum of
# absolute weights. Memory: as `float_sums`, of the keys of the last 80 half-lives.
class _Decayed(Statistic):
    """What is summed, and what the age of a comparison is, are all that differs. `half_life` in seconds or triplets."""

    SUMS: ClassVar[type[PairSums] | type[KeySums]]
    BY_TIME: ClassVar[bool]
    needs_provenance = True
    forgets = ("half_life",)
    tolerance = 1e-9

    def __init__(self, half_life: float = 1e6, **limits: int):
        self._half_life = float(half_life)
        self._sums = self.SUMS(**limits)
        self._newest, self._reference = -np.inf, 0.0
        self._untimed = 0

    @abstractmethod
    def _dated(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The triplets of a batch that are counted, and the t of each."""

    def update(self, batch: Batch) -> None:
        """Add the triplets of a batch. O(comparisons) amortised."""
        triplets, t = self._dated(batch)
        if not len(t):
            return
        self._advance(float(t.max()))
        weight = np.exp2((t - self._reference) / self._half_life)
        self._sums.add(triplets, weight, batch.n_objects)

    def _advance(self, newest: float) -> None:
        if self._newest == -np.inf:
            self._reference = newest
        self._newest = max(self._newest, newest)
        if self._newest - self._reference > RESCALE * self._half_life:
            self._sums.scale(self._now(), FLOOR)
            self._reference = self._newest

    def _now(self) -> float:
        """By what a sum is multiplied to be the value at the newest time."""
        return 0.0 if self._newest == -np.inf else float(np.exp2((self._reference - self._newest) / self._half_life))

    def _load(self, state: Mapping[str, np.ndarray]) -> None:
        newest = float(state["newest"])
        self._untimed += int(state["untimed"])
        if newest == -np.inf:
            return
        self._advance(newest)
        self._sums.load(state, float(np.exp2((newest - self._reference) / self._half_life)))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._sums.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """The sums at the newest time, and `newest` (-inf: nothing yet), `untimed`, `half_life`, `by_time`."""
        return {
            **self._sums.state(self._now()),
            "newest": np.array(self._newest),
            "untimed": np.array(self._untimed),
            "half_life": np.array(self._half_life),
            "by_time": np.array(self.BY_TIME),
        }

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, half_life: float = 1e6, **_: Any) -> None:
        """Raise `Corrupt` unless the arrays are the sums that they should be, of this half-life and clock."""
        check_arrays({**cls.SUMS.HOLDS, **_HOLDS}, state, objects=n_objects)
        cls.SUMS.check(state)
        newest, of_state = float(state["newest"]), (float(state["half_life"]), bool(state["by_time"]))
        if of_state != (half_life, cls.BY_TIME):
            raise Corrupt(f"half_life, by_time: got {of_state}, expected {(half_life, cls.BY_TIME)} by the settings")
        if not cls.BY_TIME and newest != -np.inf and not (0 <= newest < LARGEST_COUNT and newest == int(newest)):
            raise Corrupt(f"newest: got {newest}, expected a number of triplets")
        if not (np.isfinite(newest) if len(state["n_lo" if "n_lo" in state else "w"]) else newest < np.inf):
            raise Corrupt(f"newest: got {newest}, expected the newest time")

    @classmethod
    def answers(cls, state: Mapping[str, np.ndarray]) -> float:
        """Those without a time."""
        return float(state["untimed"])

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The sums that have this state, the half-life included, in memory."""
        decayed = cls(float(state["half_life"]))
        decayed._load(state)
        return decayed

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        clock = {key: np.array(state[key]) for key in ("newest", "untimed", "half_life", "by_time")}
        return {**cls.SUMS.renamed(state, new_id), **clock}


class _ByTime(_Decayed, Accumulator):
    BY_TIME = True

    @property
    def newest_time(self) -> float:
        """The newest time that was counted (-inf: nothing yet)."""
        return self._newest

    def _dated(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        t = triplet_times(batch)
        timed = ~np.isnan(t)
        self._untimed += int(len(t) - timed.sum())
        return batch.triplets[timed], t[timed]

    def merge(self, other: Self) -> None:
        """Add what another one saw over the same clock."""
        self._load(other.state())

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """Sums by key without those of an object, at the newest time that was seen; sums over pairs cannot be told
        apart. O(keys)."""
        clock = {key: np.array(state[key]) for key in ("newest", "untimed", "half_life", "by_time")}
        return sums_without(state, leaving, cls.SUMS is KeySums) | clock


class _ByArrival(_Decayed, Ledger):
    BY_TIME = False

    def _dated(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        before = max(self._newest, 0.0)  # minus infinity before the first
        return batch.triplets, before + np.arange(1, len(batch.triplets) + 1, dtype=float)


class DecayedAddS3(_ByTime):
    """W of the triplets, decayed by the time of their events."""

    SUMS = PairSums


class DecayedTripletCounts(_ByTime):
    """Triplet counts, decayed by the time of their events."""

    SUMS = KeySums


class DecayedAddS3ByArrival(_ByArrival):
    """W of the triplets, decayed by how many came since.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> w = DecayedAddS3ByArrival(half_life=1)
    >>> w.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [1, 0, 2]], np.int32)))
    >>> w.state()["w"].tolist()
    [1.5, -0.5, -1.0]
    """

    SUMS = PairSums


class DecayedTripletCountsByArrival(_ByArrival):
    """Triplet counts, decayed by how many came since."""

    SUMS = KeySums
