"""The embedding as a similarity: points of a snapshot's objects, for what clusters or classifies by distances.

Setting chosen as the refit `embedding` chooses it (`choice`) but from fewer answers, then one fit to all answers;
nothing is held back to be reported, and no tests, ellipses or figures are made. It does not take that refit's artifact,
which may be there or not: the same snapshot and parameters give the same answer (DESIGN.md, guarantee 5).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.embedding import choice
from stream_engine.embedding.fit import with_setting
from stream_engine.embedding.questions import asked_about, of_answers
from stream_engine.evaluation.answers import answers_of
from stream_engine.evaluation.responses import CHOOSE, FIT, parts
from stream_engine.state.snapshot import Snapshot

VALIDATION_SHARE = 0.2  # share of the judgements that chooses the setting
MAX_SEARCHED_ANSWERS, SEARCHED_ANSWERS_PER_OBJECT = (
    100_000,
    200,
)  # answers that a setting is searched with: so many, or so many an object
MIN_SQUARED_DISTANCE = 1e-6  # squared distances below make no odds: all answers cancel, and nothing is known


class Points(NamedTuple):
    """Where objects lie, those of whom nothing is known at 0."""

    X: np.ndarray  # (n, d) float64
    asked: np.ndarray  # (n,) bool: of whom something is known


def points(snapshot: Snapshot, seed: int = 0) -> Points:
    """The points of a snapshot's objects; O(20 m d iterations). Without any answer all lie at 0."""
    n = len(snapshot.objects)
    responses, answers = answers_of(snapshot, seed)
    if not len(answers.rows):
        return Points(np.zeros((n, 1)), np.zeros(n, bool))
    part = parts(responses, np.zeros(len(responses.draw), bool), VALIDATION_SHARE)
    searched = answers.without(part != FIT).sample(max(MAX_SEARCHED_ANSWERS, SEARCHED_ANSWERS_PER_OBJECT * n))
    chosen = choice.choose(of_answers(searched), answers.of_responses(part == CHOOSE))
    questions = of_answers(answers)
    embedding = with_setting(questions, chosen.setting, chosen.starts)
    if float((embedding.points**2).sum(axis=1).max()) < MIN_SQUARED_DISTANCE:
        return Points(np.zeros((n, 1)), np.zeros(n, bool))
    return Points(embedding.points, asked_about(questions))
