"""Who was asked what, who answered, and what each person may still be asked: memory, made anew from the two logs.

`answers.jsonl` holds the answers, events that the engine follows; `sessions.jsonl` what was asked, catch trials and
consents. Both are written by one process. What is known here of an answer is known before it is durable, so that one
sent twice at once counts once; `forget` takes back what could not be written.

Is this an answer, to what was asked of whom? The one place where an answer is judged; O(1) each.

    {"id": ..., "worker": ..., "chosen": name or [names]}     "odd" or "near" say the same for their types

`seconds`, how long the person took, is kept; everything else is known already and ignored. The first answer to a screen
stands: one that comes again is none the less told that it is counted.

`REASONS` of refusals: a status, a reason that is counted, and a line that says what to do.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from stream_engine.collect.study import REPEAT, CatchResult, Consent, Kind, Line, Screen, event

MOST_REPEATED = 100  # of a person's last answers, those that may be asked again


@dataclass(slots=True)
class ParticipantSession:
    """One worker. `seen` holds the keys of the questions that he was asked."""

    seen: set[int] = field(default_factory=set)
    open: dict[str, Screen] = field(default_factory=dict)  # waiting for an answer, the oldest first
    answered: int = 0  # without catch trials
    passed: int = 0
    failed: int = 0
    repeats: int = 0  # asked
    since_catch: int = 0  # screens asked since the last catch trial
    consented: bool = False
    last: deque[Screen] = field(default_factory=lambda: deque(maxlen=MOST_REPEATED))
    first: float = 0.0  # when he was asked for the first time
    latest: float = 0.0  # when he answered last

    @property
    def takes_part(self) -> bool:
        """Whether he was sent a question: who only saw the consent form, or declined, was not."""
        return bool(self.first or self.latest)


class Sessions:
    """All people of a study. Used by one thread."""

    def __init__(self) -> None:
        self.people: dict[str, ParticipantSession] = {}
        self.open: dict[str, Screen] = {}
        self.answered: dict[str, str] = {}  # id -> worker
        self.given_up: set[str] = set()  # ids that were answered too late, or never
        self.total = 0  # answers, without catch trials

    def participants(self) -> dict[str, ParticipantSession]:
        """Everybody who takes part, by worker."""
        return {worker: each for worker, each in self.people.items() if each.takes_part}

    def person(self, worker: str) -> ParticipantSession:
        """Of that name, made when new."""
        found = self.people.get(worker)
        if found is None:
            found = self.people[worker] = ParticipantSession()
        return found

    def asked(self, screen: Screen) -> None:
        """It was sent to its worker."""
        person = self.person(screen.worker)
        self.open[screen.id] = person.open[screen.id] = screen
        person.seen.add(screen.key())
        person.first = person.first or screen.time
        person.repeats += screen.sampler == REPEAT
        person.since_catch = 0 if screen.right else person.since_catch + 1

    def take(self, screen: Screen, time: float, passed: bool | None = None) -> None:
        """It was answered; `passed` where it is a catch trial."""
        person = self.person(screen.worker)
        self.open.pop(screen.id, None)
        person.open.pop(screen.id, None)
        self.answered[screen.id] = screen.worker
        person.latest = max(person.latest, time)
        if passed is None:
            person.answered += 1
            self.total += 1
            person.last.append(screen)
        else:
            person.passed += passed
            person.failed += not passed

    def forget(self, screen: Screen, passed: bool | None = None) -> None:
        """Its answer could not be written: it waits for one again."""
        person = self.person(screen.worker)
        self.answered.pop(screen.id, None)
        self.open[screen.id] = person.open[screen.id] = screen
        if passed is None:
            person.answered -= 1
            self.total -= 1
            if screen in person.last:
                person.last.remove(screen)
        else:
            person.passed -= passed
            person.failed -= not passed

    def late(self, now: float, within: float) -> int:
        """Give up what was asked too long ago; returns how many. O(those), for the oldest come first."""
        gone = []
        for screen in self.open.values():
            if screen.time + within > now:
                break
            gone.append(screen)
        for screen in gone:
            del self.open[screen.id]
            del self.people[screen.worker].open[screen.id]
            self.given_up.add(screen.id)
        return len(gone)


class _Answer(msgspec.Struct):
    """What is read of an event of the log of answers."""

    id: str
    type: Kind
    worker: str
    time: float
    anchor: str = ""
    shown: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    repeats: str = ""
    sampler: str = ""


def restored(answers: Iterable[bytes], sessions: Iterable[bytes]) -> Sessions:
    """Sessions as the two logs tell them. Raises `msgspec.MsgspecError` for a line that nobody here has written."""
    made, decode, line = Sessions(), msgspec.json.Decoder(_Answer).decode, msgspec.json.Decoder(Line)
    caught = []
    for text in sessions:
        each = line.decode(text) if text else None
        if isinstance(each, Screen):
            made.asked(each)
        elif isinstance(each, CatchResult):
            caught.append(each)
        elif isinstance(each, Consent):
            made.person(each.worker).consented = True
    for text in answers:
        if not text:
            continue
        said = decode(text)
        if said.id in made.answered:
            continue
        screen = made.open.get(said.id) or Screen(
            said.id, said.worker, said.type, said.shown or said.objects, said.time, said.anchor, said.sampler
        )
        made.take(screen, said.time)
    for each in caught:
        if each.id in made.open:
            made.take(made.open[each.id], each.time, each.passed)
    return made


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


MOST = 200  # answers of one request
LONGEST_WORKER = 128  # characters of a worker code
_SAID = {"odd_one_out": "odd", "triplet": "near", "pick": "chosen"}


class AcceptedAnswer(NamedTuple):
    """An answer that is to be written: an event, or with `caught` the outcome of a catch trial."""

    screen: Screen
    event: dict[str, Any] | None
    caught: CatchResult | None = None


def answers_in(body: bytes) -> list[Any]:
    """The answers of a request: one, or a list. Raises `Rejection`."""
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejection("not_json", f"got {body[:40]!r}, expected JSON: {error}") from None
    many = given if isinstance(given, list) else [given]
    if not 1 <= len(many) <= MOST:
        raise Rejection("not_an_answer", f"got {len(many)} answers, expected 1 to {MOST}")
    return many


def check_worker(worker: Any) -> str:
    """A worker code. Raises `Rejection`.

    >>> check_worker(7), check_worker("P-1")
    ('7', 'P-1')
    """
    if isinstance(worker, int) and not isinstance(worker, bool):
        worker = str(worker)
    if not isinstance(worker, str) or not 1 <= len(worker) <= LONGEST_WORKER or not worker.isprintable():
        shown = repr(worker)[:50]
        raise Rejection("not_an_answer", f"worker: got {shown}, expected a code of 1 to {LONGEST_WORKER} characters")
    return worker


def accept(given: Any, sessions: Sessions, study: str, now: float) -> AcceptedAnswer | None:
    """The line to write for an answer; None if it is counted already. Updates the sessions. Raises `Rejection`."""
    if not isinstance(given, Mapping):
        raise Rejection("not_an_answer", f"got {repr(given)[:50]}, expected an object with id, worker and chosen")
    key, worker = given.get("id"), check_worker(given.get("worker"))
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
    chosen = _chosen(given, screen)
    if screen.right:
        passed = chosen == [screen.right]
        sessions.take(screen, now, passed)
        return AcceptedAnswer(screen, None, CatchResult(screen.id, worker, passed, round(now, 3)))
    told = event(screen, chosen, now, _seconds(given.get("seconds")))
    sessions.take(screen, now)
    return AcceptedAnswer(screen, told)


def _unknown(key: str, sessions: Sessions, study: str) -> Rejection:
    if key in sessions.given_up:
        return Rejection("late", f"{key}: has expired; request new questions")
    if not key.startswith(f"{study}-"):
        return Rejection("other_study", f"{key[:40]}: is not a question of this study, whose ids begin with {study}-")
    return Rejection("not_asked", f"{key[:40]}: was never sent")


def _chosen(given: Mapping[str, Any], screen: Screen) -> list[str]:
    """What was chosen, in the order given."""
    field = _SAID[screen.type]
    said = given.get("chosen", given.get(field))
    chosen = said if isinstance(said, list) else [said]
    if said is None or not all(isinstance(each, str) for each in chosen):
        raise Rejection("not_an_answer", f"{screen.id}: got {field} {repr(said)[:50]}, expected a name or names")
    wanted = 1 if screen.right else screen.choose
    if len(set(chosen)) != wanted or len(chosen) != wanted or not set(chosen) <= set(screen.shown):
        raise Rejection(
            "not_shown", f"{screen.id}: got {repr(chosen)[:80]}, expected {wanted} of {repr(list(screen.shown))[:200]}"
        )
    return chosen


def _seconds(given: Any) -> float | None:
    """How long it took, where that is a number that can be."""
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not math.isfinite(given) or given < 0:
        return None
    return round(min(float(given), 1e6), 3)
