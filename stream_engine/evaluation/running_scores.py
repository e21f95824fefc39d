"""Accuracy, log loss and calibration of a predictor on a stream, in total and over the recent past.

All three come from one table of sums by type of event and bin of confidence. They equal river's Accuracy and LogLoss,
which take one comparison at a time (a microsecond for each metric, predictor and window), in one pass over a block.
"""

from collections import deque
from typing import Any

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES

KINDS = tuple(kind for kind in EVENT_TYPES if kind != "label")
BINS = 10  # bins of the predicted probability of the expected answer, of equal width from 1/2 to 1
# Columns of the sums of a bin: comparisons; those predicted correctly, an undecided one counting half, as of a coin;
# probabilities; log losses.
TESTED, RIGHT, CONFIDENCE, LOSS = range(4)
_SHAPE = len(KINDS), BINS, 4


def table(margin: np.ndarray, probability: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """(kinds, bins, 4) sums over comparisons: `probability` (m,) is that of the given answer, `margin` (m,) > 0 where
    it was predicted; `kind` (m,) indexes KINDS."""
    expected = np.where(margin >= 0, probability, 1 - probability)
    right = np.where(margin > 0, 1.0, np.where(margin == 0, 0.5, 0.0))
    loss = -np.log(np.clip(probability, 1e-15, 1.0))
    entry = kind.astype(np.int64) * BINS + np.clip(((expected - 0.5) * 2 * BINS).astype(np.int64), 0, BINS - 1)
    size = len(KINDS) * BINS
    sums = [np.bincount(entry, weights, size) for weights in (None, right, expected, loss)]
    return np.stack(sums, axis=-1).astype(float).reshape(_SHAPE)


def figures(sums: np.ndarray) -> dict[str, Any]:
    """The figures of (bins, 4) sums. `calibration_error`: mean over comparisons of |share right - mean
    confidence| of the bin (expected calibration error, Guo et al. 2017, eq. 3); `reliability`: the bins themselves.

    >>> f = figures(table(np.array([1., 1., -1.]), np.array([.9, .9, .1]), np.zeros(3, int))[0])
    >>> f["tested"], round(f["accuracy"], 3), round(f["calibration_error"], 3), len(f["reliability"])
    (3, 0.667, 0.233, 1)
    """
    n = sums[:, TESTED].sum()
    occupied = sums[sums[:, TESTED] > 0]
    return {
        "tested": int(n),
        "accuracy": float(sums[:, RIGHT].sum() / n),
        "log_loss": float(sums[:, LOSS].sum() / n),
        "calibration_error": float(np.abs(occupied[:, RIGHT] - occupied[:, CONFIDENCE]).sum() / n),
        "reliability": [
            {
                "confidence": float(row[CONFIDENCE] / row[TESTED]),
                "right": float(row[RIGHT] / row[TESTED]),
                "n": int(row[TESTED]),
            }
            for row in occupied
        ],
    }


# Comparisons of the rolling figures. The window moves in steps of a part, so it holds up to a part more.
WINDOW, WINDOW_PARTS = 10_000, 20


class Scores:
    """The sums of one predictor: in total, over the last WINDOW comparisons (rolling), and over those of them that the
    current predictor was tested on, not its predecessors of earlier snapshots (current)."""

    def __init__(self) -> None:
        self.total = np.zeros(_SHAPE)
        self._current = np.zeros(_SHAPE)
        self._parts: deque[np.ndarray] = deque()

    def add(self, sums: np.ndarray) -> None:
        """Add the sums of newer comparisons; parts that have left the window are removed."""
        self.total += sums
        self._current += sums
        if self._parts and _tested(self._parts[-1]) < WINDOW // WINDOW_PARTS:
            self._parts[-1] = self._parts[-1] + sums
        else:
            self._parts.append(sums)
        n_window = sum(map(_tested, self._parts))
        while n_window - _tested(self._parts[0]) >= WINDOW:
            n_window -= _tested(self._parts.popleft())

    def renew(self) -> None:
        """Start the current figures again: the predictor was replaced by one of a newer snapshot."""
        self._current[:] = 0.0

    @property
    def current(self) -> np.ndarray:
        """(kinds, bins, 4) sums of the current predictor, of the window at most."""
        return self._current if _tested(self._current) < WINDOW else self.rolling

    @property
    def rolling(self) -> np.ndarray:
        """(kinds, bins, 4) sums of the window."""
        return sum(self._parts, np.zeros(_SHAPE))

    def figures(self) -> dict[str, dict[str, Any]]:
        """kind (and "all") -> window -> figures, if any comparison was tested."""
        by_kind: dict[str, dict[str, Any]] = {}
        for window, sums in (("total", self.total), ("rolling", self.rolling), ("current", self.current)):
            for kind, part in zip(("all", *KINDS), (sums.sum(axis=0), *sums), strict=True):
                if part[:, TESTED].any():
                    by_kind.setdefault(kind, {})[window] = figures(part)
        return by_kind


def _tested(sums: np.ndarray) -> float:
    return sums[..., TESTED].sum()
