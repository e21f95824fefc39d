"""Questions as events without their answer: an experiment shows them, and sends them back with it."""

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from stream_engine import asking
from stream_engine.asking.knowledge import CannotAsk, Knowledge, check_room, questions_left
from stream_engine.state.artifact import figure

TYPES = ("pick", "triplet", "odd_one_out")


def check_type(kind: str) -> None:
    """Raises `CannotAsk` for a type of event that cannot be asked."""
    if kind not in TYPES:
        raise CannotAsk(f"ask: got type {kind!r}, expected one of {', '.join(TYPES)}")


def choose_for_type(
    kind: str, knowledge: Knowledge, n: int, strategy: str, seed: int, random_share: float
) -> asking.ChosenQuestions:
    """n questions for events of this type. Raises `CannotAsk`. The cost is that of the strategy."""
    check_type(kind)
    choose = _odd_one_outs if kind == "odd_one_out" else asking.questions
    return choose(knowledge, n, strategy, seed, random_share)


def events(chosen: asking.ChosenQuestions, knowledge: Knowledge, kind: str) -> Iterator[dict[str, Any]]:
    """The questions in their order, each as an event. `id` is a hash of the snapshot and the question. O(1) each."""
    encode, names = msgspec.json.Encoder().encode, knowledge.names
    for row, sampler, propensity in zip(*(column.tolist() for column in chosen), strict=True):
        a, b, c = (names[i] for i in row)
        body: dict[str, Any] = {"type": kind}
        body |= {"objects": [a, b, c]} if kind == "odd_one_out" else {"anchor": a, "shown": [b, c]}
        digest = hashlib.blake2b(knowledge.digest.encode() + encode(body), digest_size=8).hexdigest()
        propensity_field = {} if math.isnan(propensity) else {"propensity": propensity}
        yield {"id": digest, **body, "sampler": sampler, **propensity_field}


def note_on_random(chosen: asking.ChosenQuestions, knowledge: Knowledge, strategy: str, random_share: float) -> str:
    """A note if random questions replace those of a model; "" if not."""
    at_random = np.count_nonzero(chosen.sampler == "random")
    if strategy not in asking.BY_MODEL or at_random <= math.ceil(random_share * len(chosen.rows)):
        return ""
    reason = "there is no embedding yet"
    if knowledge.embedding is not None:
        accuracy = figure(knowledge.embedding.report, "accuracy")
        reason = (
            "the accuracy of the embedding is unknown"
            if accuracy is None
            else f"the embedding predicts {accuracy:.0%} of held-out answers"
        )
    return f"ask: {reason}: {at_random:,} of {len(chosen.rows):,} questions are random instead of by {strategy}"


def _odd_one_outs(
    knowledge: Knowledge, n: int, strategy: str, seed: int, random_share: float
) -> asking.ChosenQuestions:
    """The first n distinct sets of three objects among the questions of the strategy, in its order."""
    check_room(knowledge, 1)
    n_left = questions_left(knowledge)
    n_requested = min(2 * n, n_left)
    while True:
        requested = asking.questions(knowledge, n_requested, strategy, seed, random_share)
        first_of_set = np.sort(np.unique(np.sort(requested.rows, axis=1), axis=0, return_index=True)[1])
        if len(first_of_set) >= n:
            return requested.of(first_of_set[:n])
        if n_requested == n_left:
            raise CannotAsk(
                f"ask: got n = {n}, expected at most {len(first_of_set)}: the number of sets of three objects with an "
                "unanswered question"
            )
        n_requested = min(2 * n_requested, n_left)
