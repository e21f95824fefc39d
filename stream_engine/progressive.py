"""Test, then train: how well the serving similarity predicts comparisons before they are learned (river).

The serving similarity is AddS-3 of the last snapshot. For a triplet (anchor, near, far) it is right when
W[anchor, near] > W[anchor, far], undecided when they are equal. Totals are exact integers over every triplet whose
objects it knows, and part of the state; the rolling accuracy and the drift detector see a sample of each block and are
an observer: a crash may lose them, never a count.
"""

from typing import Any

import numpy as np
from river import drift, metrics, utils

from stream_engine.comparisons import Batch
from stream_engine.snapshot import Snapshot

DENSE_LIMIT = 4096  # objects; above it nothing is predicted (summary: no `progressive`)
SAMPLE = 256  # comparisons of a block that the rolling accuracy and the drift detector see
WINDOW = 10_000


class Progressive:
    """Accuracy before learning of the similarity in `serve`; `drifted` tells of a change once."""

    def __init__(self) -> None:
        self._w: np.ndarray | None = None
        self.rolling = utils.Rolling(metrics.Accuracy, window_size=WINDOW)
        self._detector = drift.ADWIN()
        self.drifts = 0

    def serve(self, snapshot: Snapshot) -> None:
        """Predict with this snapshot from now on. O(n²) memory up to the dense limit."""
        state, n = snapshot.room("adds3"), len(snapshot.objects)
        if not state or not 3 <= n <= DENSE_LIMIT:
            self._w = None
            return
        self._w = np.zeros((n, n), np.int64)
        self._w[state["i"], state["j"]] = self._w[state["j"], state["i"]] = state["w"]

    def observe(self, batch: Batch, totals: dict[str, Any]) -> bool:
        """Predict a batch that what is served has not seen, adding to `totals["adds3"]`: tested, correct, undecided.
        Returns whether there was anything to predict."""
        if self._w is None or not len(batch.triplets):
            return False
        known = batch.triplets[(batch.triplets < len(self._w)).all(axis=1)]
        anchor, near, far = known.T
        margin = self._w[anchor, near] - self._w[anchor, far]
        mine = totals.setdefault("adds3", {"tested": 0, "correct": 0, "undecided": 0})
        mine["tested"] += len(known)
        mine["correct"] += int(np.count_nonzero(margin > 0))
        mine["undecided"] += int(np.count_nonzero(margin == 0))
        for right in (margin[:: max(1, len(margin) // SAMPLE)] > 0).tolist():
            self.rolling.update(True, right)
            self._detector.update(not right)
            self.drifts += self._detector.drift_detected
        return bool(len(known))
