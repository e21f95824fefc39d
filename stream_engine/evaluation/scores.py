"""Accuracy, log loss and calibration as sums over bins of confidence, in total and over the recent past.

One table of sums holds all three: for each type of event and each bin of the predicted probability of the expected
answer, how many were tested, how many came as expected (half for an undecided one, as of a coin), the sum of the
probabilities and of the log losses. Equal to river's Accuracy and LogLoss (tested), which take one comparison at a
time: a microsecond for each metric, predictor and window, where a whole block is one pass here.
"""

from collections import deque
from typing import Any

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES

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
    """The sums of one predictor: all of them, and those of the last WINDOW comparisons."""

    def __init__(self) -> None:
        self.total = np.zeros(_SHAPE)
        self._parts: deque[np.ndarray] = deque()

    def add(self, sums: np.ndarray) -> None:
        """Sums of newer comparisons. What has left the window is forgotten."""
        self.total += sums
        if self._parts and _tested(self._parts[-1]) < WINDOW // PARTS:
            self._parts[-1] = self._parts[-1] + sums
        else:
            self._parts.append(sums)
        held = sum(map(_tested, self._parts))
        while held - _tested(self._parts[0]) >= WINDOW:
            held -= _tested(self._parts.popleft())

    @property
    def rolling(self) -> np.ndarray:
        """(kinds, bins, 4) of the window."""
        return sum(self._parts, np.zeros(_SHAPE))

    def figures(self) -> dict[str, dict[str, Any]]:
        """kind (and "all") -> window -> figures, where there is something to tell."""
        by_kind: dict[str, dict[str, Any]] = {}
        for window, sums in (("total", self.total), ("rolling", self.rolling)):
            for kind, part in zip(("all", *KINDS), (sums.sum(axis=0), *sums), strict=True):
                if part[:, TESTED].any():
                    by_kind.setdefault(kind, {})[window] = figures(part)
        return by_kind


def _tested(sums: np.ndarray) -> float:
    return sums[..., TESTED].sum()
