"""Exponentially decayed AddS-3 and triplet counts: what was said long ago counts less.

    weight of a comparison said at t = 2^(-(T - t) / half_life),   T = the newest t seen

`by = "time"`: t is the event's time in seconds. The weight depends on T and t alone, so late and out-of-order events
count exactly what they would have counted in order: a commutative monoid up to rounding, mergeable. An event without a
time is not counted here, and counted in `untimed`. `by = "count"`: t is the number of triplets so far; a statement about
arrival order, so it has no merge.

Sums are kept as w 2^((t - reference) / half_life), so an event touches its own entries only; every 40 half-lives all are
multiplied back, and what fell below 2^-40 is forgotten. Tolerance: 1e-9 of the sum of absolute weights, resumed or not.
Memory: as `sums`, of the keys of the last 80 half-lives.
"""

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from stream_engine.accumulators.float_sums import KeySums, PairSums
from stream_engine.data.comparisons import Batch

RESCALE = 40.0  # half-lives between reference and newest
FLOOR = 2.0**-40


class _Decayed:
    """What is summed is all that differs. `by` is "count" or "time", `half_life` in triplets or seconds."""

    SUMS: ClassVar[type]
    judged = True
    forgets = ("by", "half_life")
    tolerance = 1e-9

    def __init__(self, by: str = "count", half_life: float = 1e6, **limits: int):
        self._by_time, self._half_life = by == "time", float(half_life)
        self._sums = self.SUMS(**limits)
        self._newest, self._reference = -np.inf, 0.0
        self._untimed = 0
        self.mergeable = self._by_time

    def update(self, batch: Batch) -> None:
        """Add the triplets of a batch. O(comparisons) amortised."""
        triplets, t = batch.triplets, self._times(batch)
        if self._by_time:
            known = ~np.isnan(t)
            self._untimed += int(len(t) - known.sum())
            triplets, t = triplets[known], t[known]
        if not len(t):
            return
        self._advance(float(t.max()))
        weight = np.exp2((t - self._reference) / self._half_life)
        self._sums.add(triplets, weight, batch.n_objects)

    def _times(self, batch: Batch) -> np.ndarray:
        m = len(batch.triplets)
        if not self._by_time:
            before = max(self._newest, 0.0)  # minus infinity before the first
            return before + np.arange(1, m + 1, dtype=float)
        return np.full(m, np.nan) if batch.judges is None else batch.judges.time[batch.judges.of_triplet]

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

    def merge(self, other: Self) -> None:
        """Add what another one saw over the same clock."""
        if not (self.mergeable and other.mergeable):
            raise ValueError("decay by count is about the order of arrival in one stream; it cannot be merged")
        self._load(other.state())

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
            "by_time": np.array(self._by_time),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The accumulator that has this state, its parameters included."""
        made = cls("time" if state["by_time"] else "count", float(state["half_life"]))
        made._load(state)
        return made

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        kept = {key: np.array(state[key]) for key in ("newest", "untimed", "half_life", "by_time")}
        return {**cls.SUMS.renamed(state, new_id), **kept}

    @classmethod
    def definition(cls, batch: Batch, by: str = "count", half_life: float = 1e6) -> dict[str, np.ndarray]:
        """By the formula, comparison by comparison."""
        said, untimed = [], 0
        for e, triplet in enumerate(batch.triplets.tolist()):
            t = (
                e + 1.0
                if by == "count"
                else float("nan")
                if batch.judges is None
                else float(batch.judges.time[batch.judges.of_triplet[e]])
            )
            if t == t:
                said.append((triplet, t))
            else:
                untimed += 1
        newest = max((t for _, t in said), default=-np.inf)
        weight = [2.0 ** (-(newest - t) / half_life) for _, t in said]
        return {
            **cls.SUMS.definition([triplet for triplet, _ in said], weight, batch.n_objects),
            "newest": np.array(newest),
            "untimed": np.array(untimed),
            "half_life": np.array(float(half_life)),
            "by_time": np.array(by == "time"),
        }


class DecayedAddS3(_Decayed):
    """W of the triplets, decayed.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> w = DecayedAddS3("count", half_life=1)
    >>> w.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [1, 0, 2]], np.int32)))
    >>> w.state()["w"].tolist()
    [1.5, -0.5, -1.0]
    """

    SUMS = PairSums


class DecayedTripletCounts(_Decayed):
    """Triplet counts, decayed."""

    SUMS = KeySums
