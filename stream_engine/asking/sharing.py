"""How questions are shared between a model, in proportion to its accuracy, and a random sampler, which always has a
share.

The random share is independent of the model: a model chooses what it is uncertain about, so answers to its questions
cannot evaluate it fairly; those to random questions can (`evaluation.responses`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.asking.knowledge import Knowledge, questions_left, with_pending
from stream_engine.asking.model import model_share

RANDOM_SHARE = 0.15  # default share of random questions
BY_MODEL = ("uncertainty", "information-gain")  # strategies that choose by a model
RANDOM = "random"  # the strategy that has the random share
Ask = Callable[[Knowledge, int, np.random.Generator], np.ndarray]


class ChosenQuestions(NamedTuple):
    """Questions in the order in which they should be asked."""

    rows: np.ndarray  # (m, 3) int32: anchor, b, c
    sampler: np.ndarray  # (m,) text: the strategy that chose it
    # (m,) float64: the probability of this question at its place, given those before; NaN for designs, which do not
    # depend on the answers' content
    propensity: np.ndarray

    def of(self, selection: slice | np.ndarray) -> "ChosenQuestions":
        """The questions of an index, a slice or a mask."""
        return ChosenQuestions(self.rows[selection], self.sampler[selection], self.propensity[selection])


def concatenated(parts: Sequence[ChosenQuestions]) -> ChosenQuestions:
    """All questions of these parts, in this order.

    >>> concatenated(()).rows.shape
    (0, 3)
    """
    empty = ChosenQuestions(np.empty((0, 3), np.int32), np.empty(0, "U16"), np.empty(0))
    return ChosenQuestions(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))


def choose_mixed(
    knowledge: Knowledge, n: int, strategy: str, ask: Mapping[str, Ask], random_share: float, rng: np.random.Generator
) -> ChosenQuestions:
    """n questions (fewer if the strategy is a design that is complete), b and c in random order. `ask` has the function
    of the strategy, and for one by a model that of `random`, too."""
    if strategy not in BY_MODEL:
        return random_sides(_questions(ask[strategy](knowledge, n, rng), strategy, knowledge, 1.0), rng)
    # The model has the part of the non-random share that its accuracy justifies (`model_share`); all others are random.
    # Random questions are chosen first, so that they are uniform over all questions that are left.
    random_part = 1.0 - (1.0 - random_share) * model_share(knowledge.model)
    at_random = places(n, n * random_part, rng)
    random_questions = _questions(ask[RANDOM](knowledge, int(at_random.sum()), rng), RANDOM, knowledge, random_part)
    knowledge, n_model = with_pending(knowledge, random_questions.rows), n - len(random_questions.rows)
    model_questions = _model_questions(knowledge, n_model, strategy, ask[strategy], 1.0 - random_part, rng)
    # where the model has fewer questions than its part, random ones replace them
    knowledge, n_missing = with_pending(knowledge, model_questions.rows), n_model - len(model_questions.rows)
    missing = ask[RANDOM](knowledge, n_missing, rng) if n_missing else model_questions.rows[:0]
    replacements = _questions(missing, RANDOM, knowledge, random_part)
    order = np.empty(n, np.int64)
    order[at_random] = np.arange(len(random_questions.rows))
    order[~at_random] = len(random_questions.rows) + np.arange(len(model_questions.rows) + n_missing)
    return random_sides(concatenated((random_questions, model_questions, replacements)).of(order), rng)


def places(n: int, count: float, rng: np.random.Generator) -> np.ndarray:
    """(n,) bool: `count` of n places, rounded up or down, evenly spread, each with equal probability.

    >>> [int(places(100, 15, np.random.default_rng(seed)).sum()) for seed in range(3)]
    [15, 15, 15]
    """
    return np.diff(np.floor(np.arange(n + 1) * count / max(n, 1) + rng.random())) > 0


def _model_questions(
    knowledge: Knowledge, n: int, strategy: str, ask: Ask, propensity: float, rng: np.random.Generator
) -> ChosenQuestions:
    """n questions of a model, with the model's part as their propensity: it is certain which question it chooses."""
    questions = _questions(ask(knowledge, n, rng) if n else np.empty((0, 3), np.int32), strategy, knowledge, 1.0)
    return questions._replace(propensity=np.full(len(questions.rows), propensity))


def _questions(rows: np.ndarray, sampler: str, knowledge: Knowledge, share: float) -> ChosenQuestions:
    """Rows of one sampler; the propensity of a random one is its `share` of the places, uniform over the questions that
    were left at each."""
    n_left = questions_left(knowledge) - np.arange(len(rows))
    propensity = share / n_left if sampler == RANDOM else np.full(len(rows), np.nan)
    return ChosenQuestions(np.asarray(rows, np.int32), np.full(len(rows), sampler, "U16"), propensity)


def random_sides(questions: ChosenQuestions, rng: np.random.Generator) -> ChosenQuestions:
    """The questions with b and c exchanged at random, so that their sides carry no information."""
    rows = questions.rows.copy()
    swap = rng.random(len(rows)) < 0.5
    rows[swap, 1:] = rows[swap, 2:0:-1]
    return questions._replace(rows=rows)
