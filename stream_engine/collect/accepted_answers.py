"""Whether an answer is accepted: does it answer a question that this person was asked?

    {"id": ..., "worker": ..., "chosen": name or [names]}     "odd" or "near" say the same for their types

The first answer to a screen counts; a repeated one gets the same reply. `REASONS` of rejection: a status, a counted
reason, and a line that says what to do.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from stream_engine.collect.screens import CatchResult, Screen, event
from stream_engine.collect.sessions import Sessions

# reason -> HTTP status
REASONS = {
    "not_json": 400,
    "not_an_answer": 400,  # no id, no worker, nothing chosen
    "not_shown": 422,  # chosen what was not shown, or not so many
    "not_asked": 404,
    "other_study": 409,
    "late": 410,
    "stranger": 403,  # without the key of his link, or to what another was asked
    "too_large": 413,
    "too_many": 429,
    "no_media": 404,
    "bad_object": 422,
    "not_durable": 503,
}


class Rejection(Exception):
    """Nothing was done; one line: what, got, expected."""

    def __init__(self, reason: str, why: str):
        super().__init__(why)
        self.reason, self.status = reason, REASONS[reason]


MAX_ANSWERS = 200  # answers of one request
MAX_WORKER_LENGTH = 128  # characters of a worker code
_ANSWER_FIELDS = {"odd_one_out": "odd", "triplet": "near", "pick": "chosen"}


class AcceptedAnswer(NamedTuple):
    """An answer that is to be written: an event, or with `caught` the outcome of a catch trial."""

    screen: Screen
    event: dict[str, Any] | None
    caught: CatchResult | None = None


def answers_in(body: bytes) -> list[Any]:
    """The answers of a request: one, or a list. Raises `Rejection`."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejection("not_json", f"got {body[:40]!r}, expected JSON: {error}") from None
    many = decoded if isinstance(decoded, list) else [decoded]
    if not 1 <= len(many) <= MAX_ANSWERS:
        raise Rejection("not_an_answer", f"got {len(many)} answers, expected 1 to {MAX_ANSWERS}")
    return many


def check_worker(worker: Any) -> str:
    """A worker code. Raises `Rejection`.

    >>> check_worker(7), check_worker("P-1")
    ('7', 'P-1')
    """
    if isinstance(worker, int) and not isinstance(worker, bool):
        worker = str(worker)
    if not isinstance(worker, str) or not 1 <= len(worker) <= MAX_WORKER_LENGTH or not worker.isprintable():
        shown = repr(worker)[:50]
        raise Rejection("not_an_answer", f"worker: got {shown}, expected a code of 1 to {MAX_WORKER_LENGTH} characters")
    return worker


def accept(answer: Any, sessions: Sessions, study: str, now: float) -> AcceptedAnswer | None:
    """The line to write for an answer; None if it is counted already. Updates the sessions. Raises `Rejection`."""
    if not isinstance(answer, Mapping):
        raise Rejection("not_an_answer", f"got {repr(answer)[:50]}, expected an object with id, worker and chosen")
    key, worker = answer.get("id"), check_worker(answer.get("worker"))
    if not isinstance(key, str):
        raise Rejection("not_an_answer", f"id: got {repr(key)[:50]}, expected the id of a question")
    if before := sessions.answered.get(key):
        if before != worker:
            raise Rejection("stranger", f"{key}: was sent to another participant")
        return None
    screen = sessions.open.get(key)
    if screen is None:
        raise _unknown(key, sessions, study)
    if screen.worker != worker:
        raise Rejection("stranger", f"{key}: was sent to another participant")
    chosen = _chosen_names(answer, screen)
    if screen.right:
        passed = chosen == [screen.right]
        sessions.take(screen, now, passed)
        return AcceptedAnswer(screen, None, CatchResult(screen.id, worker, passed, round(now, 3)))
    event_of_answer = event(screen, chosen, now, _seconds(answer.get("seconds")))
    sessions.take(screen, now)
    return AcceptedAnswer(screen, event_of_answer)


def _unknown(key: str, sessions: Sessions, study: str) -> Rejection:
    if key in sessions.given_up:
        return Rejection("late", f"{key}: has expired; request new questions")
    if not key.startswith(f"{study}-"):
        return Rejection("other_study", f"{key[:40]}: is not a question of this study, whose ids begin with {study}-")
    return Rejection("not_asked", f"{key[:40]}: was never sent")


def _chosen_names(answer: Mapping[str, Any], screen: Screen) -> list[str]:
    """What was chosen, in the order given."""
    field = _ANSWER_FIELDS[screen.type]
    choice = answer.get("chosen", answer.get(field))
    chosen = choice if isinstance(choice, list) else [choice]
    if choice is None or not all(isinstance(name, str) for name in chosen):
        raise Rejection("not_an_answer", f"{screen.id}: got {field} {repr(choice)[:50]}, expected a name or names")
    wanted = 1 if screen.right else screen.choose
    if len(set(chosen)) != wanted or len(chosen) != wanted or not set(chosen) <= set(screen.shown):
        raise Rejection(
            "not_shown", f"{screen.id}: got {repr(chosen)[:80]}, expected {wanted} of {repr(list(screen.shown))[:200]}"
        )
    return chosen


def _seconds(seconds: Any) -> float | None:
    """How long it took, where that is a number that can be."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not math.isfinite(seconds) or seconds < 0:
        return None
    return round(min(float(seconds), 1e6), 3)
