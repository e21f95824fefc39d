"""Questions as the events that answer them, without the answer: what an experiment shows, and sends back with it."""

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from stream_engine import asking
from stream_engine.asking.known import CannotAsk, Knowledge, check_room, questions_left
from stream_engine.state.artifact import figure

TYPES = ("pick", "triplet", "odd_one_out")


def check_type(kind: str) -> None:
    """Raises `CannotAsk` for a type of event that no question is made for."""
    if kind not in TYPES:
        raise CannotAsk(f"ask: got type {kind!r}, expected one of {', '.join(TYPES)}")


def chosen_for(
    kind: str, known: Knowledge, n: int, strategy: str, seed: int, random_share: float
) -> asking.ChosenQuestions:
    """n questions that an event of this type answers. Raises `CannotAsk`. Costs what the strategy does."""
    check_type(kind)
    choose = _odd_one_outs if kind == "odd_one_out" else asking.questions
    return choose(known, n, strategy, seed, random_share)


def events(chosen: asking.ChosenQuestions, known: Knowledge, kind: str) -> Iterator[dict[str, Any]]:
    """The questions in their order, each as its event. `id` is a hash of the snapshot and the question. O(1) each."""
    encode, names = msgspec.json.Encoder().encode, known.names
    for row, sampler, propensity in zip(*(column.tolist() for column in chosen), strict=True):
        a, b, c = (names[i] for i in row)
        body: dict[str, Any] = {"type": kind}
        body |= {"objects": [a, b, c]} if kind == "odd_one_out" else {"anchor": a, "shown": [b, c]}
        digest = hashlib.blake2b(known.digest.encode() + encode(body), digest_size=8).hexdigest()
        said = {} if math.isnan(propensity) else {"propensity": propensity}
        yield {"id": digest, **body, "sampler": sampler, **said}


def instead(chosen: asking.ChosenQuestions, known: Knowledge, strategy: str, random_share: float) -> str:
    """What to say where random questions stand in for a model's; nothing where they do not."""
    at_random = np.count_nonzero(chosen.sampler == "random")
    if strategy not in asking.BY_MODEL or at_random <= math.ceil(random_share * len(chosen.rows)):
        return ""
    why = "there is no embedding yet"
    if known.learned is not None:
        right = figure(known.learned.report, "accuracy")
        why = (
            "the accuracy of the embedding is unknown"
            if right is None
            else f"the embedding predicts {right:.0%} of held-out answers"
        )
    return f"ask: {why}: {at_random:,} of {len(chosen.rows):,} questions are random instead of by {strategy}"


def _odd_one_outs(known: Knowledge, n: int, strategy: str, seed: int, random_share: float) -> asking.ChosenQuestions:
    """The first n distinct sets of three objects among the questions of the strategy, in its order."""
    check_room(known, 1)
    left = questions_left(known)
    wanted = min(2 * n, left)
    while True:
        made = asking.questions(known, wanted, strategy, seed, random_share)
        first = np.sort(np.unique(np.sort(made.rows, axis=1), axis=0, return_index=True)[1])
        if len(first) >= n:
            return made.of(first[:n])
        if wanted == left:
            raise CannotAsk(
                f"ask: got n = {n}, expected at most {len(first)}: the number of sets of three objects with an "
                "unanswered question"
            )
        wanted = min(2 * wanted, left)
