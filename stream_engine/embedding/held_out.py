"""Answers held out from a fit, and how likely an embedding thinks them."""

from typing import NamedTuple

import numpy as np

from stream_engine.embedding.questions import NOBODY, Questions, of_rows
from stream_engine.evaluation.answer_probabilities import LARGEST


class Answers(NamedTuple):
    """Answers d(i, j) < d(k, l), each of a unit that is held out or fitted to as a whole: a judgement, or a question
    where judgements are not kept."""

    rows: np.ndarray  # (m, 4) int32
    times: np.ndarray  # (m,) float64: how often
    worker: np.ndarray  # (m,) int32; -1: nobody
    unit: np.ndarray  # (m,) int64
    n_objects: int
    n_workers: int = 0  # named ones

    def of(self, mask: np.ndarray) -> "Answers":
        """Those of a (m,) bool mask."""
        return self._replace(
            rows=self.rows[mask], times=self.times[mask], worker=self.worker[mask], unit=self.unit[mask]
        )

    def questions(self) -> Questions:
        """The same to fit to. O(m log m)."""
        made = of_rows(self.rows, self.n_objects, self.times, self.worker)
        return made._replace(n_workers=1 + self.n_workers)


def population_lapse(lapse: np.ndarray, questions: Questions) -> float:
    """The lapse of somebody unknown: the mean over the answers.

    >>> from stream_engine.embedding.questions import of_rows
    >>> asked = of_rows(np.array([[0, 1, 0, 2], [0, 1, 0, 2]]), 3, worker=np.array([0, 1]))
    >>> population_lapse(np.array([0.5, 0.0, 0.2]), asked)
    0.1
    """
    answers = np.bincount(questions.worker, questions.near + questions.far, len(lapse))
    return float(answers @ lapse / answers.sum()) if answers.sum() else float(lapse[NOBODY])


def known_lapses(lapse: np.ndarray, questions: Questions, unknown: float | None = None) -> np.ndarray:
    """(w,) the lapses, that of somebody unknown (`population_lapse`) for whoever answered nothing; or what is given for
    somebody `unknown`, which then counts for nobody in particular, too.

    >>> from stream_engine.embedding.questions import of_rows
    >>> asked = of_rows(np.array([[0, 1, 0, 2], [0, 1, 0, 2]]), 3, worker=np.array([0, -1]))._replace(n_workers=3)
    >>> lapse = np.array([0.4, 0.2, 0.7])
    >>> known_lapses(lapse, asked).round(1).tolist(), known_lapses(lapse, asked, 0.1).tolist()
    ([0.4, 0.2, 0.3], [0.1, 0.2, 0.1])
    """
    answers = np.bincount(questions.worker, questions.near + questions.far, len(lapse))
    if unknown is None:
        return np.where(answers > 0, lapse, population_lapse(lapse, questions))
    return np.where((answers > 0) & (np.arange(len(lapse)) != NOBODY), lapse, unknown)


def unit_losses(p: np.ndarray, held: Answers, number: np.ndarray) -> np.ndarray:
    """(u,) log loss of each unit, `number` (m,) in 0 .. u - 1 of each answer."""
    return np.bincount(number, -held.times * np.log(np.maximum(p, np.exp(-LARGEST))))
