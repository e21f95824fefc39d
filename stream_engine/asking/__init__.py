"""What to ask next: `stream-engine ask`. From a published snapshot to questions that the next answers should settle.

A question is a row (anchor, b, c): is b or c nearer to the anchor? One strategy, one file: `ask(known, n, rng)` returns
(m, 3) int32 distinct questions that have no answer, the one to ask first in the first row; fewer than n only where a
model knows no more. Registered here. Pure: the same snapshot, artifact, names and seed give the same questions.

`prepare` makes a model ready once, `take` gives the next k questions of it at once, and what is ready for the next:

    ready = prepare(known, seed=7)
    asked, ready = take(ready, 10)

No question comes twice. Those whose answers arrive are in the next snapshot, of which one prepares anew.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np

from stream_engine.asking.known import CannotAsk, Knowledge, check_room, questions_left, waiting
from stream_engine.asking.model import delivered
from stream_engine.asking.sharing import BY_MODEL, RANDOM_SHARE, ChosenQuestions, joined, mixed

STRATEGIES = {
    "random": "stream_engine.asking.at_random",
    "uncertainty": "stream_engine.asking.uncertainty",
    "information-gain": "stream_engine.asking.information_gain",
    "landmark": "stream_engine.asking.landmark",
    "landmark-k2": "stream_engine.asking.landmark_k2",
    "coverage": "stream_engine.asking.coverage",
}
DEFAULT = "coverage"
BLOCK = 500  # questions that are chosen at once when some are taken again and again

__all__ = [
    "BY_MODEL",
    "DEFAULT",
    "RANDOM_SHARE",
    "STRATEGIES",
    "CannotAsk",
    "ChosenQuestions",
    "Knowledge",
    "PreparedQuestions",
    "prepare",
    "questions",
    "take",
]


class PreparedQuestions(NamedTuple):
    """What questions are taken from: `known` with the model, what was chosen and not yet taken, and the settings."""

    known: Knowledge
    queue: ChosenQuestions
    strategy: str
    random_share: float
    seed: Sequence[int]  # of the next block


def prepare(
    known: Knowledge, strategy: str = DEFAULT, seed: int = 0, random_share: float = RANDOM_SHARE, first: int = BLOCK
) -> PreparedQuestions:
    """Ready to be taken from, with the `first` questions chosen, or all there are. Raises `CannotAsk`: fewer than 3
    objects, an unknown strategy, a share that is none. Costs what the strategy does."""
    if strategy not in STRATEGIES:
        raise CannotAsk(f"ask: got strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
    if not 0.0 <= random_share <= 1.0:
        raise CannotAsk(f"ask: got random share {random_share:g}, expected 0 to 1")
    check_room(known, 1)
    if strategy in BY_MODEL and known.learned is not None:
        known = known._replace(model=delivered(known.learned, known.columns))
    return _filled(PreparedQuestions(known, joined(()), strategy, random_share, (seed, 0)), first)


def take(ready: PreparedQuestions, k: int) -> tuple[ChosenQuestions, PreparedQuestions]:
    """The next k questions, and what is ready after them. Raises `CannotAsk` where so many are not left. O(k); once in
    BLOCK questions what a new block costs."""
    if k > len(ready.queue.rows):
        ready = _filled(ready, max(k - len(ready.queue.rows), BLOCK))
    if not 1 <= k <= len(ready.queue.rows):
        raise CannotAsk(
            f"ask: {ready.strategy}: got n = {k}, expected 1 to {len(ready.queue.rows)}: the number of questions "
            "left; use another strategy for more"
        )
    return ready.queue.of(slice(k)), ready._replace(queue=ready.queue.of(slice(k, None)))


def questions(
    known: Knowledge, n: int, strategy: str = DEFAULT, seed: int = 0, random_share: float = RANDOM_SHARE
) -> ChosenQuestions:
    """n questions, most wanted first; b and c in random order, so that sides say nothing.

    Raises `CannotAsk`: as `prepare`, and for more questions than are left.
    """
    check_room(known, n)
    return take(prepare(known, strategy, seed, random_share, n), n)[0]


def _filled(ready: PreparedQuestions, n: int) -> PreparedQuestions:
    """With up to n more in the queue."""
    n = min(n, questions_left(ready.known))
    if n < 1:
        return ready
    rng = np.random.default_rng(ready.seed)
    ask = {name: import_module(module).ask for name, module in STRATEGIES.items() if name in _needed(ready.strategy)}
    more = mixed(ready.known, n, ready.strategy, ask, ready.random_share, rng)
    return ready._replace(
        known=waiting(ready.known, more.rows),
        queue=joined((ready.queue, more)),
        seed=(ready.seed[0], ready.seed[1] + 1),
    )


def _needed(strategy: str) -> tuple[str, ...]:
    return (strategy, "random") if strategy in BY_MODEL else (strategy,)
