"""Lapse rates with which a fit predicts held-out answers, and the log loss of these."""

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import NOBODY, Questions
from stream_engine.evaluation.answer_probabilities import LARGEST


def population_lapse(lapse: np.ndarray, questions: Questions) -> float:
    """The lapse of an unknown participant: the mean over the answers.

    >>> from stream_engine.embedding.questions import of_rows
    >>> asked = of_rows(np.array([[0, 1, 0, 2], [0, 1, 0, 2]]), 3, worker=np.array([0, 1]))
    >>> population_lapse(np.array([0.5, 0.0, 0.2]), asked)
    0.1
    """
    answers = np.bincount(questions.worker, questions.near + questions.far, len(lapse))
    return float(answers @ lapse / answers.sum()) if answers.sum() else float(lapse[NOBODY])


def known_lapses(lapse: np.ndarray, questions: Questions, unknown: float | None = None) -> np.ndarray:
    """(w,) the lapses; of participants without answers, `unknown` if it is given, which then is also that of answers
    without a participant, or else the lapse of an unknown participant (`population_lapse`).

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


def unit_losses(p: np.ndarray, answers: Answers, number: np.ndarray) -> np.ndarray:
    """(u,) log loss of each unit, `number` (m,) in 0 .. u - 1 of each answer."""
    return np.bincount(number, -answers.times * np.log(np.maximum(p, np.exp(-LARGEST))))
