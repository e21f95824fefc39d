"""The observer of a run: exact totals of AddS-3, and a sample of each block put to all predictors and detectors.

Totals are exact integers over every triplet whose objects AddS-3 of the last snapshot knows, and part of the state. All
else is seen through a sample of each block (`sampled` of `seen`) and is lossy: a crash may lose it, never a count.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, Batch
from stream_engine.data.compiled_arguments import read_only
from stream_engine.prediction import Predictor
from stream_engine.prediction.calibration import Calibration
from stream_engine.prediction.drift import SIGNALS, Worsening
from stream_engine.prediction.margins import tally
from stream_engine.prediction.repeats import repeats
from stream_engine.prediction.scores import KINDS, Scores, table
from stream_engine.prediction.similarities import adds4, by_similarity, matrix, only
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

ALL = 1024  # comparisons that are all in the sample; after s of them, one in s / ALL is,
SHARE = 32  # and at last one in so many
WAIT = 512  # sampled comparisons that are put to the predictors at once; small blocks wait for each other
_KIND = np.array([KINDS.index(kind) if kind in KINDS else -1 for kind in EVENT_TYPES])
_TRIPLET, _QUADRUPLET = KINDS.index("triplet"), KINDS.index("quadruplet")


class Observer:
    """`serve` at each snapshot, `use` when predictors were made, `observe` each batch; `figures` gives the scores.

    `delta` of the detectors (None: none); for `cooldown` comparisons after an alarm the same signal gives no other one:
    what is noticed meanwhile raises its alarm when they are over.
    """

    def __init__(self, delta: float | None = 0.2, cooldown: int = 0, seed: int = 0) -> None:
        self._w: np.ndarray | None = None
        self.predictors: dict[str, Predictor] = {}
        self.scores: dict[str, Scores] = {}
        self._calibration: dict[str, Calibration] = {}
        self.detectors = {} if delta is None else {signal: Worsening(delta) for signal in SIGNALS}
        self.alarms = dict.fromkeys(self.detectors, 0)
        self._cooldown, self._cool_at = cooldown, dict.fromkeys(self.detectors, 0)
        self._noticed: set[str] = set()  # signals whose alarm waits for the end of the cooldown
        self.seen = self.sampled = 0
        self._owed = 0.0  # of a comparison that is to be drawn, by blocks too small for a whole one
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        self._rng = np.random.default_rng(seed)
        self._alarms: list[str] = []

    def serve(self, snapshot: Snapshot) -> None:
        """Predict with this snapshot's AddS and repeats from now on: what totals and alarms are made of depends on
        nothing but snapshots. O(n²) memory up to the dense limit."""
        self.test()  # what waits was drawn when the snapshot before was served
        w = matrix(snapshot, "adds3")
        self._w = None if w is None else smaller(w)
        adds3 = None if w is None else only(by_similarity(w), triplets=True)
        published = Published(snapshot, {})
        self.use({"adds3": adds3, "adds4": adds4(published), "repeats": repeats(published)})

    def use(self, predictors: Mapping[str, Predictor | None]) -> None:
        """Put these predictors in place of those of the same names (None: there is none any more). They are of the
        snapshot that is served, or of an earlier one: what waits to be tested is new to them too."""
        for name, predictor in predictors.items():
            self.predictors.pop(name, None)
            if predictor is not None:
                self.predictors[name] = predictor

    def observe(self, batch: Batch, totals: dict[str, Any]) -> list[str]:
        """Predict a batch that what is served has not seen, adding to `totals["adds3"]`: tested, correct, undecided.
        Returns the signals that alarm. O(triplets), and the sample for every predictor."""
        self._count(batch, totals)
        if self.predictors and len(batch.triplets) + len(batch.quadruplets):
            rows, kind = self._drawn(batch)
            self.seen += len(batch.triplets) + len(batch.quadruplets)
            self.sampled += len(rows)
            if len(rows):
                self._waiting.append((rows, kind))
            if sum(len(rows) for rows, _ in self._waiting) >= WAIT:
                self.test()
        alarms, self._alarms = self._alarms, []
        return alarms

    @property
    def waiting(self) -> bool:
        """Whether comparisons were drawn that no predictor was asked about yet."""
        return bool(self._waiting)

    def _count(self, batch: Batch, totals: dict[str, Any]) -> None:
        if self._w is None or not len(batch.triplets):
            return
        mine = totals.setdefault("adds3", {"tested": 0, "correct": 0, "undecided": 0})
        block = tally(read_only(self._w), read_only(batch.triplets, np.int32))
        for name, n in zip(("tested", "correct", "undecided"), block, strict=True):
            mine[name] += int(n)

    def _drawn(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """A sample of the block in its order, one from each of equal stretches: rows (s, 4), kinds (s,)."""
        m, q = len(batch.triplets), len(batch.quadruplets)
        self._owed += drawn_of(self.seen, m + q)
        size = min(m + q, int(self._owed))
        self._owed -= size
        if not size:
            return np.empty((0, 4), np.int32), np.empty(0, np.int64)
        drawn = ((np.arange(size) + self._rng.random(size)) * (m + q) / size).astype(np.int64)
        place = batch.quadruplet_at + np.arange(q)  # of each quadruplet among all comparisons
        before = np.searchsorted(place, drawn)
        four = (before < q) & (place[np.minimum(before, q - 1)] == drawn) if q else np.zeros(size, bool)
        rows, kind = np.empty((size, 4), np.int32), np.where(four, _QUADRUPLET, _TRIPLET)
        three = drawn[~four] - before[~four]
        rows[~four] = batch.triplets[three][:, [0, 1, 0, 2]]
        rows[four] = batch.quadruplets[before[four]]
        if batch.kinds is not None:
            kind[~four] = _KIND[batch.kinds.kind[batch.kinds.of_triplet[three]]]
            kind[four] = _KIND[batch.kinds.kind[batch.kinds.of_quadruplet[before[four]]]]
        return rows, kind

    def test(self) -> None:
        """Put what waits to every predictor; then, and only then, let calibration and detectors learn from it. When
        that happens depends on comparisons and snapshots alone, so that no alarm depends on the clock."""
        if not self._waiting:
            return
        rows, kind = (np.concatenate(part) for part in zip(*self._waiting, strict=True))
        self._waiting = []
        margins = {}
        for name, predictor in self.predictors.items():
            margins[name] = margin = predictor.margins(rows)
            predicted = ~np.isnan(margin)
            if predicted.any():
                x = margin[predicted] / predictor.scale
                calibration = self._calibration.setdefault(name, Calibration())
                self.scores.setdefault(name, Scores()).add(table(x, calibration.probability(x), kind[predicted]))
                calibration.learn(x)
        wrong = signals(margins, len(rows)) if self.detectors else {}
        for signal, detector in self.detectors.items():
            if detector.update(wrong[signal][~np.isnan(wrong[signal])].tolist()):
                self._noticed.add(signal)
            if signal in self._noticed and self.seen >= self._cool_at[signal]:
                self._noticed.discard(signal)
                self._cool_at[signal] = self.seen + self._cooldown
                self.alarms[signal] += 1
                self._alarms.append(signal)

    def figures(self) -> dict[str, Any]:
        """Everything that was tested by now: JSON values."""
        return {
            "seen": self.seen,
            "sampled": self.sampled,
            "drift": {
                signal: {"alarms": self.alarms[signal], "level": each.level} for signal, each in self.detectors.items()
            },
            "predictors": {name: each.figures() for name, each in self.scores.items()},
        }


def drawn_of(seen: int, m: int) -> float:
    """How many of m comparisons that come after `seen` others are drawn: the same in all, whatever the blocks.

    >>> drawn_of(0, 1024), round(drawn_of(1024, 1024 * 9)), round(drawn_of(10_000_000, 32_000))
    (1024.0, 2358, 1000)
    """

    def until(s: int) -> float:
        whole, last = min(s, ALL), max(0, s - ALL * SHARE)
        return whole + ALL * np.log(max(ALL, s - last) / ALL) + last / SHARE

    return float(until(seen + m) - until(seen))


def smaller(whole: np.ndarray) -> np.ndarray:
    """The same whole numbers in the smallest type that holds them, so that more of them stay near the processor."""
    most = np.abs(whole).max(initial=0)
    kind = np.int16 if most < 1 << 15 else np.int32 if most < 1 << 31 else np.float64
    return whole.astype(kind)


def signals(margins: Mapping[str, np.ndarray], size: int) -> dict[str, np.ndarray]:
    """signal -> (size,) 1 where the prediction was wrong, 0 where right, NaN where there was none: `loss` of AddS-3 and
    AddS-4, `contradictions` of the majority of earlier answers to the same question."""
    predictors = {"loss": ("adds3", "adds4"), "contradictions": ("repeats",)}
    by_signal = {}
    for signal, names in predictors.items():
        wrong = np.full(size, np.nan)
        for margin in (margins[name] for name in names if name in margins):
            decided = (margin > 0) | (margin < 0)
            wrong[decided] = margin[decided] < 0
        by_signal[signal] = wrong
    return by_signal
