"""The observer of a run: exact totals of AddS-3, and a sample of each block put to all predictors and drift detectors.

Totals are exact integers over every triplet whose objects AddS-3 of the last snapshot knows, and part of the state. All
else is seen through a sample of the stream (`sampled` of `seen`) and is lossy: a crash may lose it, never a count.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, Batch
from stream_engine.data.compiled import read_only
from stream_engine.evaluation import Predictor
from stream_engine.evaluation.drift import SIGNALS, Worsening
from stream_engine.evaluation.platt import Calibration
from stream_engine.evaluation.repetitions import repeats
from stream_engine.evaluation.running_scores import KINDS, Scores, table
from stream_engine.evaluation.similarities import adds4, by_similarity, dense_adds, restricted, tally
from stream_engine.evaluation.stream_sample import numbers_drawn
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot


class Sample(NamedTuple):
    """Comparisons of the sample, in the order of the stream."""

    rows: np.ndarray  # (s, 4) int32
    kind: np.ndarray  # (s,) index into KINDS
    number: np.ndarray  # (s,) int64: number of the comparison in the stream


# Sampled comparisons are put to the predictors in batches: of an eighth of those before, within these limits.
MIN_BATCH, MAX_BATCH = 512, 2048
_KIND = np.array([KINDS.index(kind) if kind in KINDS else -1 for kind in EVENT_TYPES])
_TRIPLET, _QUADRUPLET = KINDS.index("triplet"), KINDS.index("quadruplet")


class Observer:
    """`serve` each snapshot, `use` new predictors, `observe` each batch; `figures` are the scores.

    What is sampled, tested in one batch and learned depends on the numbers of comparisons and on snapshots alone, never
    on the blocks of the stream. `delta`: of the detectors (None: no detectors). For `cooldown` comparisons after an
    alarm, the same signal raises no other one; what is detected meanwhile raises its alarm at the end.
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
        self._n_tested = 0  # of the sample
        self._next_draw = 0  # number of the next comparison that will be sampled
        self._waiting: list[Sample] = []
        self._seed = np.uint64(seed)
        self._alarms: list[str] = []

    def serve(self, snapshot: Snapshot) -> None:
        """Predict with this snapshot's AddS and repeats from now on, so that totals and alarms depend on snapshots
        alone. O(n²) memory up to the dense limit."""
        self.test()  # comparisons that wait came before this snapshot
        w = dense_adds(snapshot, "adds3")
        self._w = None if w is None else smaller(w)
        adds3 = None if w is None else restricted(by_similarity(w), triplets=True)
        published = Published(snapshot, {})
        self.use({"adds3": adds3, "adds4": adds4(published), "repeats": repeats(published)})

    def use(self, predictors: Mapping[str, Predictor | None]) -> None:
        """Replace the predictors of these names (None: remove). They are of the served snapshot or of an earlier one,
        so comparisons that wait to be tested are new to them."""
        for name, predictor in predictors.items():
            if self.predictors.pop(name, None) is not None and name in self.scores:
                self.scores[name].renew()
            if predictor is not None:
                self.predictors[name] = predictor

    def observe(self, batch: Batch, totals: dict[str, Any]) -> list[str]:
        """Predict a batch that came after the served snapshot, adding to `totals["adds3"]`: tested, correct, undecided.
        Returns the signals that raise an alarm. O(triplets), and O(sample) for every predictor."""
        self._count(batch, totals)
        if self.predictors and len(batch.triplets) + len(batch.quadruplets):
            m = len(batch.triplets) + len(batch.quadruplets)
            if self._next_draw < self.seen + m:
                self._waiting.append(self._drawn(batch))
                self.sampled += len(self._waiting[-1].number)
            self.seen += m
            while self.sampled - self._n_tested >= (size := min(max(MIN_BATCH, self._n_tested // 8), MAX_BATCH)):
                self._test(size)
        alarms, self._alarms = self._alarms, []
        return alarms

    @property
    def waiting(self) -> bool:
        """Whether sampled comparisons wait to be tested."""
        return bool(self._waiting)

    @property
    def tested(self) -> int:
        """All comparisons with a lower number were tested or are not in the sample."""
        return int(self._waiting[0].number[0]) if self._waiting else self.seen

    def _count(self, batch: Batch, totals: dict[str, Any]) -> None:
        if self._w is None or not len(batch.triplets):
            return
        totals_of_adds3 = totals.setdefault("adds3", {"tested": 0, "correct": 0, "undecided": 0})
        block = tally(read_only(self._w), read_only(batch.triplets, np.int32))
        for name, n in zip(("tested", "correct", "undecided"), block, strict=True):
            totals_of_adds3[name] += int(n)

    def _drawn(self, batch: Batch) -> Sample:
        """The comparisons of the batch that are in the sample, in order."""
        m, q = len(batch.triplets), len(batch.quadruplets)
        number, self._next_draw = numbers_drawn(self.seen, m + q, self._seed)
        drawn, n_drawn = number - self.seen, len(number)
        place = batch.quadruplet_at + np.arange(q)  # of each quadruplet among all comparisons
        before = np.searchsorted(place, drawn)
        is_quadruplet = (before < q) & (place[np.minimum(before, q - 1)] == drawn) if q else np.zeros(n_drawn, bool)
        rows, kind = np.empty((n_drawn, 4), np.int32), np.where(is_quadruplet, _QUADRUPLET, _TRIPLET)
        triplet = drawn[~is_quadruplet] - before[~is_quadruplet]
        rows[~is_quadruplet] = batch.triplets[triplet][:, [0, 1, 0, 2]]
        rows[is_quadruplet] = batch.quadruplets[before[is_quadruplet]]
        if batch.kinds is not None:
            kind[~is_quadruplet] = _KIND[batch.kinds.kind[batch.kinds.of_triplet[triplet]]]
            kind[is_quadruplet] = _KIND[batch.kinds.kind[batch.kinds.of_quadruplet[before[is_quadruplet]]]]
        return Sample(rows, kind, number)

    def test(self) -> None:
        """Test every predictor on all comparisons that wait."""
        if self._waiting:
            self._test(self.sampled - self._n_tested)

    def _test(self, size: int) -> None:
        """Test every predictor on the first `size` comparisons that wait, and only then update calibrations and
        detectors by them."""
        waiting = Sample(*(np.concatenate(part) for part in zip(*self._waiting, strict=True)))
        rows, kind, number = (part[:size] for part in waiting)
        self._waiting = [Sample(*(part[size:] for part in waiting))] if size < len(waiting.number) else []
        self._n_tested += size
        margins = {}
        for name, predictor in self.predictors.items():
            margins[name] = margin = predictor.margins(rows)
            predicted = ~np.isnan(margin)
            if predicted.any():
                x = margin[predicted] / predictor.scale
                calibration = self._calibration.setdefault(name, Calibration())
                self.scores.setdefault(name, Scores()).add(table(x, calibration.probability(x), kind[predicted]))
                calibration.learn(x)
        self._watch(signals(margins, len(rows)) if self.detectors else {}, int(number[-1]) + 1)

    def _watch(self, wrong: Mapping[str, np.ndarray], now: int) -> None:
        """Update the detectors by the wrong predictions, up to comparison `now`."""
        for signal, detector in self.detectors.items():
            if detector.update(wrong[signal][~np.isnan(wrong[signal])].tolist()):
                self._noticed.add(signal)
            if signal in self._noticed and now >= self._cool_at[signal]:
                self._noticed.discard(signal)
                self._cool_at[signal] = now + self._cooldown
                self.alarms[signal] += 1
                self._alarms.append(signal)

    def figures(self) -> dict[str, Any]:
        """All scores and alarms so far, as JSON values."""
        return {
            "seen": self.seen,
            "sampled": self.sampled,
            "drift": {
                signal: {"alarms": self.alarms[signal], "level": part.level} for signal, part in self.detectors.items()
            },
            "predictors": {name: part.figures() for name, part in self.scores.items()},
        }


def smaller(whole: np.ndarray) -> np.ndarray:
    """The same whole numbers in the smallest dtype that can represent them, so that more of them fit into caches."""
    largest = np.abs(whole).max(initial=0)
    dtype = np.int16 if largest < 1 << 15 else np.int32 if largest < 1 << 31 else np.float64
    return whole.astype(dtype)


def signals(margins: Mapping[str, np.ndarray], size: int) -> dict[str, np.ndarray]:
    """signal -> (size,) 1 where the prediction was wrong, 0 where correct, NaN where there was none: `loss` of AddS-3
    and AddS-4, `contradictions` of the majority of earlier answers to the same question."""
    predictors = {"loss": ("adds3", "adds4"), "contradictions": ("repeats",)}
    by_signal = {}
    for signal, names in predictors.items():
        wrong = np.full(size, np.nan)
        for margin in (margins[name] for name in names if name in margins):
            decided = (margin > 0) | (margin < 0)
            wrong[decided] = margin[decided] < 0
        by_signal[signal] = wrong
    return by_signal
