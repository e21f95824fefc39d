"""The observer of a run: exact totals of AddS-3, and a sample of each block put to all predictors and detectors.

Totals are exact integers over every triplet whose objects AddS-3 of the last snapshot knows, and part of the state. All
else is seen through a sample of the stream (`sampled` of `seen`) and is lossy: a crash may lose it, never a count. What
is drawn, tested together and learned depends on the number of a comparison and on snapshots, never on the blocks.

Accuracy, log loss and calibration as sums over bins of confidence, in total and over the recent past.

One table of sums holds all three: for each type of event and each bin of the predicted probability of the expected
answer, how many were tested, how many came as expected (half for an undecided one, as of a coin), the sum of the
probabilities and of the log losses. Equal to river's Accuracy and LogLoss (tested), which take one comparison at a
time: a microsecond for each metric, predictor and window, where a whole block is one pass here.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, Batch
from stream_engine.data.compiled import read_only
from stream_engine.data.hashing import splitmix64
from stream_engine.evaluation import Predictor
from stream_engine.evaluation.answer_probabilities import Calibration
from stream_engine.evaluation.drift import SIGNALS, Worsening
from stream_engine.evaluation.similarities import adds4, by_similarity, matrix, only, repeats, tally
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

KINDS = tuple(kind for kind in EVENT_TYPES if kind != "label")
BINS = 10  # of equal width from 1/2 to 1
WINDOW = 10_000  # comparisons of the rolling figures, and at most a PART more
PARTS = 20  # the window moves in steps of a twentieth
TESTED, RIGHT, CONFIDENCE, LOSS = range(4)
_SHAPE = len(KINDS), BINS, 4


def table(margin: np.ndarray, probability: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """(kinds, bins, 4) sums: `probability` (m,) is of the answer that came, `margin` (m,) says which was expected."""
    expected = np.where(margin >= 0, probability, 1 - probability)
    right = np.where(margin > 0, 1.0, np.where(margin == 0, 0.5, 0.0))
    loss = -np.log(np.clip(probability, 1e-15, 1.0))
    entry = kind.astype(np.int64) * BINS + np.clip(((expected - 0.5) * 2 * BINS).astype(np.int64), 0, BINS - 1)
    size = len(KINDS) * BINS
    sums = [np.bincount(entry, weights, size) for weights in (None, right, expected, loss)]
    return np.stack(sums, axis=-1).astype(float).reshape(_SHAPE)


def figures(sums: np.ndarray) -> dict[str, Any]:
    """The figures that sums of (bins, 4) give. `calibration_error`: mean over comparisons of |share right - mean
    confidence| of the bin (expected calibration error, Guo et al. 2017, eq. 3); `reliability`: the bins themselves.

    >>> f = figures(table(np.array([1., 1., -1.]), np.array([.9, .9, .1]), np.zeros(3, int))[0])
    >>> f["tested"], round(f["accuracy"], 3), round(f["calibration_error"], 3), len(f["reliability"])
    (3, 0.667, 0.233, 1)
    """
    n = sums[:, TESTED].sum()
    there = sums[sums[:, TESTED] > 0]
    return {
        "tested": int(n),
        "accuracy": float(sums[:, RIGHT].sum() / n),
        "log_loss": float(sums[:, LOSS].sum() / n),
        "calibration_error": float(np.abs(there[:, RIGHT] - there[:, CONFIDENCE]).sum() / n),
        "reliability": [
            {
                "confidence": float(row[CONFIDENCE] / row[TESTED]),
                "right": float(row[RIGHT] / row[TESTED]),
                "n": int(row[TESTED]),
            }
            for row in there
        ],
    }


class Scores:
    """The sums of one predictor: all of them, those of the last WINDOW comparisons, and of these the ones that the
    present predictor was tested on, which those of earlier snapshots were not."""

    def __init__(self) -> None:
        self.total = np.zeros(_SHAPE)
        self._current = np.zeros(_SHAPE)
        self._parts: deque[np.ndarray] = deque()

    def add(self, sums: np.ndarray) -> None:
        """Sums of newer comparisons. What has left the window is forgotten."""
        self.total += sums
        self._current += sums
        if self._parts and _tested(self._parts[-1]) < WINDOW // PARTS:
            self._parts[-1] = self._parts[-1] + sums
        else:
            self._parts.append(sums)
        held = sum(map(_tested, self._parts))
        while held - _tested(self._parts[0]) >= WINDOW:
            held -= _tested(self._parts.popleft())

    def renew(self) -> None:
        """The predictor was replaced by one of a newer snapshot."""
        self._current[:] = 0.0

    @property
    def current(self) -> np.ndarray:
        """(kinds, bins, 4) of the present predictor, at most of the window."""
        return self._current if _tested(self._current) < WINDOW else self.rolling

    @property
    def rolling(self) -> np.ndarray:
        """(kinds, bins, 4) of the window."""
        return sum(self._parts, np.zeros(_SHAPE))

    def figures(self) -> dict[str, dict[str, Any]]:
        """kind (and "all") -> window -> figures, where there is something to tell."""
        by_kind: dict[str, dict[str, Any]] = {}
        for window, sums in (("total", self.total), ("rolling", self.rolling), ("current", self.current)):
            for kind, part in zip(("all", *KINDS), (sums.sum(axis=0), *sums), strict=True):
                if part[:, TESTED].any():
                    by_kind.setdefault(kind, {})[window] = figures(part)
        return by_kind


def _tested(sums: np.ndarray) -> float:
    return sums[..., TESTED].sum()


ALL = 1024  # comparisons that are all in the sample; after s of them, one in s / ALL is,
SHARE = 32  # and at last one in so many
WAIT = 512  # sampled comparisons that are put to the predictors at once: an eighth of those before, so many at least,
MAX_BATCH = 2048  # so many at most
_KIND = np.array([KINDS.index(kind) if kind in KINDS else -1 for kind in EVENT_TYPES])
_TRIPLET, _QUADRUPLET = KINDS.index("triplet"), KINDS.index("quadruplet")


class Sample(NamedTuple):
    """Comparisons of the sample, in order."""

    rows: np.ndarray  # (s, 4) int32
    kind: np.ndarray  # (s,) index into KINDS
    number: np.ndarray  # (s,) int64, counted from the first comparison that was seen


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
        self._put = 0  # of the sample, to the predictors
        self._next = 0  # no comparison before this one is drawn that was not seen
        self._waiting: list[Sample] = []
        self._seed = np.uint64(seed)
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
            if self.predictors.pop(name, None) is not None and name in self.scores:
                self.scores[name].renew()
            if predictor is not None:
                self.predictors[name] = predictor

    def observe(self, batch: Batch, totals: dict[str, Any]) -> list[str]:
        """Predict a batch that what is served has not seen, adding to `totals["adds3"]`: tested, correct, undecided.
        Returns the signals that alarm. O(triplets), and the sample for every predictor."""
        self._count(batch, totals)
        if self.predictors and len(batch.triplets) + len(batch.quadruplets):
            m = len(batch.triplets) + len(batch.quadruplets)
            if self._next < self.seen + m:
                self._waiting.append(self._drawn(batch))
                self.sampled += len(self._waiting[-1].number)
            self.seen += m
            while self.sampled - self._put >= (size := min(max(WAIT, self._put // 8), MAX_BATCH)):
                self._test(size)
        alarms, self._alarms = self._alarms, []
        return alarms

    @property
    def waiting(self) -> bool:
        """Whether comparisons were drawn that no predictor was asked about yet."""
        return bool(self._waiting)

    @property
    def tested(self) -> int:
        """All comparisons of a lower number, counted from the first that was seen, were tested or are not drawn."""
        return int(self._waiting[0].number[0]) if self._waiting else self.seen

    def _count(self, batch: Batch, totals: dict[str, Any]) -> None:
        if self._w is None or not len(batch.triplets):
            return
        mine = totals.setdefault("adds3", {"tested": 0, "correct": 0, "undecided": 0})
        block = tally(read_only(self._w), read_only(batch.triplets, np.int32))
        for name, n in zip(("tested", "correct", "undecided"), block, strict=True):
            mine[name] += int(n)

    def _drawn(self, batch: Batch) -> Sample:
        """What of the block is in the sample, in its order."""
        m, q = len(batch.triplets), len(batch.quadruplets)
        number, self._next = numbers_drawn(self.seen, m + q, self._seed)
        drawn, size = number - self.seen, len(number)
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
        return Sample(rows, kind, number)

    def test(self) -> None:
        """Put all that waits to every predictor."""
        if self._waiting:
            self._test(self.sampled - self._put)

    def _test(self, size: int) -> None:
        """Put the first `size` that wait to every predictor; then, and only then, let calibration and detectors learn
        from them. When that happens depends on comparisons and snapshots alone, so that no alarm depends on the clock
        or on how the stream was cut into blocks."""
        together = Sample(*(np.concatenate(part) for part in zip(*self._waiting, strict=True)))
        rows, kind, number = (part[:size] for part in together)
        self._waiting = [Sample(*(part[size:] for part in together))] if size < len(together.number) else []
        self._put += size
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
        """Let the detectors see which predictions were wrong, up to comparison `now`."""
        for signal, detector in self.detectors.items():
            if detector.update(wrong[signal][~np.isnan(wrong[signal])].tolist()):
                self._noticed.add(signal)
            if signal in self._noticed and now >= self._cool_at[signal]:
                self._noticed.discard(signal)
                self._cool_at[signal] = now + self._cooldown
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


def drawn_until(s: int) -> float:
    """How many of the first s comparisons are drawn, whatever the blocks.

    >>> drawn_until(1024), round(drawn_until(1024 * 10) - drawn_until(1024))
    (1024.0, 2358)
    """
    whole, last = min(s, ALL), max(0, s - ALL * SHARE)
    return whole + ALL * math.log(max(ALL, s - last) / ALL) + last / SHARE


def _number_at(drawn: np.ndarray) -> np.ndarray:
    """The inverse of `drawn_until`: how many comparisons have passed when so many are drawn."""
    growing = ALL * np.exp(np.clip(drawn / ALL - 1, 0, math.log(SHARE)))
    last = np.maximum(drawn - ALL * (1 + math.log(SHARE)), 0)
    return np.where(drawn < ALL, drawn, growing + last * SHARE)


def numbers_drawn(seen: int, m: int, seed: np.uint64) -> tuple[np.ndarray, int]:
    """int64 numbers in [seen, seen + m) of the comparisons that are drawn, and the next one: one from each stretch in
    which `drawn_until` grows by one, at a place that a hash of the stretch gives.

    >>> numbers_drawn(5, 3, np.uint64(0))
    (array([5, 6, 7]), 8)
    """
    k = np.arange(max(int(drawn_until(seen)) - 1, 0), int(drawn_until(seen + m)) + 2)
    within = (splitmix64(k.astype(np.uint64) ^ (seed << np.uint64(40))) >> np.uint64(11)) * 2.0**-53
    number = np.where(k < ALL, k, _number_at(k + within)).astype(np.int64)
    first, after = np.searchsorted(number, [seen, seen + m])
    return number[first:after], int(number[after])


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
