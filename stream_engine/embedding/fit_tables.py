"""What fits to the same questions share: the numbers of their pairs, and where descents from scratch begin."""

import numpy as np

from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.questions import Questions
from stream_engine.embedding.starts import Directions, Scales, directions
from stream_engine.evaluation.answer_probabilities import STE


class FitTables:
    """Made when they are first asked for, and kept."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self._loss: Loss | None = None
        self._directions: Directions | None = None
        self._scales: dict[tuple[int, float, bytes], Scales] = {}

    def loss(self, alpha: float) -> Loss:
        """With a number of degrees of freedom. O(q) the first time."""
        self._loss = self._loss or Loss(self.questions, STE)
        return self._loss.with_alpha(alpha)

    def directions(self, d: int) -> Directions:
        """The d steepest ones (`starts.directions`)."""
        if self._directions is None or self._directions.points.shape[1] < d:
            self._directions = directions(self.questions, d)
        return self._directions._replace(points=self._directions.points[:, :d])

    def start(self, d: int, alpha: float, lapse: np.ndarray, ridge: float) -> np.ndarray:
        """(n, d) the steepest directions at the scale with the smallest objective."""
        key = d, alpha, lapse.tobytes()
        if key not in self._scales:
            self._scales[key] = Scales(self.directions(d).points, self.loss(alpha), lapse)
        return self._scales[key].best(ridge)
