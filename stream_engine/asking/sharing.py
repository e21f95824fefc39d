"""Who chooses which question: the model as many as it is believed, but for a share that is always random.

A random share is asked whatever the model thinks: answers to questions that a model chose say nothing fair about that
model, since it chooses what it is uncertain about; only the random ones evaluate it (`evaluation.responses`). A
question carries its `sampler` and its `propensity`, the probability with which this question was asked at its place,
given those before: r / L for a random one of L that are left, r being the part of the questions that is random, and
1 - r for one that a model chose; not said of coverage and landmark designs, which depend on no answer's content.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.asking.known import Knowledge, questions_left, waiting
from stream_engine.asking.model import believed

RANDOM_SHARE = 0.15
RANDOM = "random"
BY_MODEL = ("uncertainty", "information-gain")
Ask = Callable[[Knowledge, int, np.random.Generator], np.ndarray]


class ChosenQuestions(NamedTuple):
    """Questions in the order in which they should be asked."""

    rows: np.ndarray  # (m, 3) int32: anchor, b, c
    sampler: np.ndarray  # (m,) text: which strategy chose it
    propensity: np.ndarray  # (m,) float64, NaN where not said

    def of(self, which: slice | np.ndarray) -> "ChosenQuestions":
        """Some of them."""
        return ChosenQuestions(self.rows[which], self.sampler[which], self.propensity[which])


def joined(parts: Sequence[ChosenQuestions]) -> ChosenQuestions:
    """All of them, in this order.

    >>> joined(()).rows.shape
    (0, 3)
    """
    empty = ChosenQuestions(np.empty((0, 3), np.int32), np.empty(0, "U16"), np.empty(0))
    return ChosenQuestions(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))


def mixed(
    known: Knowledge, n: int, strategy: str, ask: Mapping[str, Ask], random_share: float, rng: np.random.Generator
) -> ChosenQuestions:
    """n questions (fewer where the strategy is a design that is complete). b and c are in random order. `ask` holds the
    strategy, and for one by a model `random` too."""
    if strategy not in BY_MODEL:
        return _sides(_questions(ask[strategy](known, n, rng), strategy, known, 1.0), rng)
    shared = 1.0 - (1.0 - random_share) * believed(known.model)
    at_random = places(n, n * shared, rng)
    first = _questions(ask[RANDOM](known, int(at_random.sum()), rng), RANDOM, known, shared)
    known = waiting(known, first.rows)
    chosen = _chosen(known, n - len(first.rows), strategy, ask[strategy], 1.0 - shared, rng)
    known, missing = waiting(known, chosen.rows), n - len(first.rows) - len(chosen.rows)
    rest = _questions(ask[RANDOM](known, missing, rng) if missing else chosen.rows[:0], RANDOM, known, shared)
    order = np.empty(n, np.int64)
    order[at_random] = np.arange(len(first.rows))
    order[~at_random] = len(first.rows) + np.arange(len(chosen.rows) + missing)
    return _sides(joined((first, chosen, rest)).of(order), rng)


def places(n: int, count: float, rng: np.random.Generator) -> np.ndarray:
    """(n,) bool: evenly spread places, `count` of n, rounded up or down, each as likely as any other.

    >>> [int(places(100, 15, np.random.default_rng(seed)).sum()) for seed in range(3)]
    [15, 15, 15]
    """
    return np.diff(np.floor(np.arange(n + 1) * count / max(n, 1) + rng.random())) > 0


def _chosen(
    known: Knowledge, n: int, strategy: str, ask: Ask, propensity: float, rng: np.random.Generator
) -> ChosenQuestions:
    made = _questions(ask(known, n, rng) if n else np.empty((0, 3), np.int32), strategy, known, 1.0)
    return made._replace(propensity=np.full(len(made.rows), propensity))


def _questions(rows: np.ndarray, sampler: str, known: Knowledge, share: float) -> ChosenQuestions:
    """Rows of one sampler; random ones are as likely as any that were left."""
    left = questions_left(known) - np.arange(len(rows))
    propensity = share / left if sampler == RANDOM else np.full(len(rows), np.nan)
    return ChosenQuestions(np.asarray(rows, np.int32), np.full(len(rows), sampler, "U16"), propensity)


def _sides(made: ChosenQuestions, rng: np.random.Generator) -> ChosenQuestions:
    rows = made.rows.copy()
    swap = rng.random(len(rows)) < 0.5
    rows[swap, 1:] = rows[swap, 2:0:-1]
    return made._replace(rows=rows)
