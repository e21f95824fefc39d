"""Who was asked what, who answered, and what each person may still be asked; in memory, restored from the two logs.

`answers.jsonl` holds answers, the events that the engine follows; `sessions.jsonl` questions, catch trials and
consents. An answer is known here before it is durable; `forget` takes back what could not be written.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from stream_engine.collect.screens import REPEAT, CatchResult, Consent, Line, Screen
from stream_engine.collect.study import Kind

MAX_REPEATABLE = 100  # of a person's last answers, those that may be asked again


@dataclass(slots=True)
class ParticipantSession:
    """One worker. `screen_keys`: of the questions that they were asked."""

    screen_keys: set[int] = field(default_factory=set)
    open: dict[str, Screen] = field(default_factory=dict)  # waiting for an answer, the oldest first
    answered: int = 0  # without catch trials
    passed: int = 0
    failed: int = 0
    repeats: int = 0  # asked
    since_catch: int = 0  # screens asked since the last catch trial
    consented: bool = False
    last: deque[Screen] = field(default_factory=lambda: deque(maxlen=MAX_REPEATABLE))
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
        return {worker: person for worker, person in self.people.items() if person.takes_part}

    def person(self, worker: str) -> ParticipantSession:
        """Of that name, made when new."""
        session = self.people.get(worker)
        if session is None:
            session = self.people[worker] = ParticipantSession()
        return session

    def add_question(self, screen: Screen) -> None:
        """It was sent to its worker."""
        person = self.person(screen.worker)
        self.open[screen.id] = person.open[screen.id] = screen
        person.screen_keys.add(screen.key())
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
    result, decode, line = Sessions(), msgspec.json.Decoder(_Answer).decode, msgspec.json.Decoder(Line)
    caught = []
    for text in sessions:
        entry = line.decode(text) if text else None
        if isinstance(entry, Screen):
            result.add_question(entry)
        elif isinstance(entry, CatchResult):
            caught.append(entry)
        elif isinstance(entry, Consent):
            result.person(entry.worker).consented = True
    for text in answers:
        if not text:
            continue
        answer = decode(text)
        if answer.id in result.answered:
            continue
        screen = result.open.get(answer.id) or Screen(
            answer.id,
            answer.worker,
            answer.type,
            answer.shown or answer.objects,
            answer.time,
            answer.anchor,
            answer.sampler,
        )
        result.take(screen, answer.time)
    for entry in caught:
        if entry.id in result.open:
            result.take(result.open[entry.id], entry.time, entry.passed)
    return result
