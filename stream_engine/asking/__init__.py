"""Questions to ask next (`stream-engine ask`): from a published snapshot to the questions that the next answers settle.

A question is a row (anchor, b, c): is b or c nearer to the anchor? `prepare` makes a model ready once, and `take` gives
the next k questions and what is ready for the next ones:

    ready = prepare(knowledge, seed=7)
    asked, ready = take(ready, 10)
"""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np

from stream_engine.asking.across import ACROSS
from stream_engine.asking.across import ask as ask_across
from stream_engine.asking.knowledge import CannotAsk, Knowledge, check_room, questions_left, with_pending
from stream_engine.asking.model import model_of
from stream_engine.asking.sharing import (
    BY_MODEL,
    RANDOM_SHARE,
    ChosenQuestions,
    choose_mixed,
    concatenated,
    random_sides,
)

# One strategy, one file: `ask(knowledge, n, rng)` returns (m, 3) int32 distinct questions without an answer, the first
# one to ask in the first row; fewer than n only if a model or a design has no more. Strategies are pure: the same
# snapshot, artifact, names and seed give the same questions.
STRATEGIES = {
    "random": "stream_engine.asking.at_random",
    "uncertainty": "stream_engine.asking.uncertainty",
    "information-gain": "stream_engine.asking.information_gain",
    "landmark": "stream_engine.asking.landmark",
    "landmark-k2": "stream_engine.asking.landmark_k2",
    "coverage": "stream_engine.asking.coverage",
}
DEFAULT = "coverage"
BLOCK = 500  # questions that are chosen at a time

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
    """Questions to take from, and what further ones are chosen by. No question comes twice; answers that arrive are in
    the next snapshot, by which questions are prepared again."""

    knowledge: Knowledge  # with the model
    queue: ChosenQuestions  # chosen and not yet taken
    strategy: str
    random_share: float
    seed: Sequence[int]  # of the next block


def prepare(
    knowledge: Knowledge, strategy: str = DEFAULT, seed: int = 0, random_share: float = RANDOM_SHARE, first: int = BLOCK
) -> PreparedQuestions:
    """Choose the `first` questions, or all there are. Raises `CannotAsk` for fewer than 3 objects, an unknown strategy,
    or an invalid share. The cost is that of the strategy."""
    if strategy not in STRATEGIES:
        raise CannotAsk(f"ask: got strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
    if not 0.0 <= random_share <= 1.0:
        raise CannotAsk(f"ask: got random share {random_share:g}, expected 0 to 1")
    check_room(knowledge, 1)
    if strategy in BY_MODEL and knowledge.embedding is not None:
        knowledge = knowledge._replace(model=model_of(knowledge.embedding, knowledge.columns))
    return _filled(PreparedQuestions(knowledge, concatenated(()), strategy, random_share, (seed, 0)), first)


def take(ready: PreparedQuestions, k: int) -> tuple[ChosenQuestions, PreparedQuestions]:
    """`(the next k questions, what is ready after them)`. Raises `CannotAsk` if fewer are left. O(k), and once in BLOCK
    questions the cost of a new block."""
    if k > len(ready.queue.rows):
        ready = _filled(ready, max(k - len(ready.queue.rows), BLOCK))
    if not 1 <= k <= len(ready.queue.rows):
        raise CannotAsk(
            f"ask: {ready.strategy}: got n = {k}, expected 1 to {len(ready.queue.rows)}: the number of questions "
            "left; use another strategy for more"
        )
    return ready.queue.of(slice(k)), ready._replace(queue=ready.queue.of(slice(k, None)))


def questions(
    knowledge: Knowledge, n: int, strategy: str = DEFAULT, seed: int = 0, random_share: float = RANDOM_SHARE
) -> ChosenQuestions:
    """n questions, the most informative first; b and c in random order, so that sides carry no information.

    Raises `CannotAsk` as `prepare`, and for more questions than are left.
    """
    check_room(knowledge, n)
    return take(prepare(knowledge, strategy, seed, random_share, n), n)[0]


def _filled(ready: PreparedQuestions, n: int) -> PreparedQuestions:
    """With up to n additional questions in the queue."""
    n = min(n, questions_left(ready.knowledge))
    if n < 1:
        return ready
    rng = np.random.default_rng(ready.seed)
    if ready.knowledge.sets is not None:
        across = _across(ready.knowledge, n, rng)
        ready = ready._replace(
            knowledge=with_pending(ready.knowledge, across.rows), queue=concatenated((ready.queue, across))
        )
        if len(across.rows) == n:
            return ready._replace(seed=(ready.seed[0], ready.seed[1] + 1))
        n -= len(across.rows)
    ask = {
        name: import_module(module).ask
        for name, module in STRATEGIES.items()
        if name in _strategies_used(ready.strategy)
    }
    additional = choose_mixed(ready.knowledge, n, ready.strategy, ask, ready.random_share, rng)
    return ready._replace(
        knowledge=with_pending(ready.knowledge, additional.rows),
        queue=concatenated((ready.queue, additional)),
        seed=(ready.seed[0], ready.seed[1] + 1),
    )


def _across(knowledge: Knowledge, n: int, rng: np.random.Generator) -> ChosenQuestions:
    rows = ask_across(knowledge, n, rng)
    return random_sides(ChosenQuestions(rows, np.full(len(rows), ACROSS), np.full(len(rows), np.nan)), rng)


def _strategies_used(strategy: str) -> tuple[str, ...]:
    return (strategy, "random") if strategy in BY_MODEL else (strategy,)
