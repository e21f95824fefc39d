"""What the HTTP side does for participants: ask them, take their answers, count both, in the server's event loop.

Invariant: an answer is confirmed only after the log has it durable; a question is sent only after the log of sessions
has it, so that an answer to it is known after a kill.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from stream_engine.collect.accepted_answers import AcceptedAnswer, Rejection, accept
from stream_engine.collect.access import Access
from stream_engine.collect.line_log import LineLog, LogBroken
from stream_engine.collect.question_pool import NothingLeft, QuestionPool
from stream_engine.collect.screens import Consent, Screen
from stream_engine.collect.sessions import ParticipantSession, Sessions
from stream_engine.collect.study import Study

MAX_QUESTIONS = 100  # questions of one request
MAX_REFUSED_BYTES = 10_000_000  # of refused answers
MAX_EXCERPT_BYTES = 2000  # bytes of one of them
MAX_WAIT_SECONDS = 25.0  # seconds until who waits for his answer to be durable is told to send it again


_encode = msgspec.json.Encoder().encode


class Logs(NamedTuple):
    """The answers, which the engine follows; what was asked; what was refused."""

    answers: LineLog
    sessions: LineLog
    refused: LineLog

    def close(self) -> None:
        """Write what was given."""
        for log in self:
            log.close()


class ParticipantService:
    """All that is asked and answered. `ellipse` is set from outside, as the maker tells it."""

    def __init__(
        self,
        study: Study,
        access: Access,
        sessions: Sessions,
        pool: QuestionPool,
        logs: Logs,
    ):
        self.study, self.sessions, self.pool, self.access = study, sessions, pool, access
        self._logs = logs
        self.ellipse: float | None = None
        self.paused = False  # nobody gets new questions; those who have some may answer them
        self.asked_since: deque[tuple[float, tuple[str, ...]]] = deque()  # for the maker
        self.counts: Counter[str] = Counter()
        self._being_written: dict[str, Future] = {}
        for screen in sessions.open.values():
            self._tell_maker(screen)

    def enough(self) -> str:
        """Why nobody is asked any more, or ""."""
        quota = self.study.quota
        if quota.total and self.sessions.total >= quota.total:
            return "total"
        if quota.ellipse and self.ellipse is not None and self.ellipse <= quota.ellipse:
            return "ellipse"
        return ""

    def end_of(self, person: ParticipantSession) -> str:
        """Why this person is asked no more: "done", "excluded", or ""."""
        failing = self.study.catching.most_failed
        if failing and person.failed > failing:
            return "excluded"
        quota = self.study.quota.person
        nothing_left = person.takes_part and not person.open and self.pool.all_asked(person)
        return "done" if (quota and person.answered >= quota) or self.enough() or nothing_left else ""

    async def questions(self, worker: str, n: int, again: bool) -> dict[str, Any]:
        """n questions for a person; with `again` those that he was sent and has not answered, where there are some.
        Where there are none, `why` says so, unless the study has ended for him.

        Raises `Rejection`."""
        now, person = time.time(), self.sessions.person(worker)
        self.sessions.late(now, self.study.quota.answer_within)
        ended = self.end_of(person)
        if self.study.texts.consent and not person.consented:
            return {"questions": [], "consent": "needed", **self.progress(worker, person, ended)}
        if self.paused and not ended:
            return {"questions": [], "paused": True, **self.progress(worker, person)}
        screens: list[Screen] = [] if ended or not again else list(person.open.values())[:n]
        written: list[Future] = []
        waiting = len(person.open)
        quota = self.study.quota.person
        catching = sum(bool(screen.right) for screen in person.open.values())
        room = quota - person.answered - waiting + catching if quota else n
        limit = self.study.access.most_open - waiting
        if not ended and not screens and limit <= 0:
            raise Rejection("too_many", f"{waiting} questions are unanswered, expected fewer than {waiting}")
        while not ended and len(screens) < n and room > 0 and limit > 0:
            try:
                screen = self.pool.screen(worker, person, now)
            except NothingLeft:
                ended = "" if person.open else "done"
                break
            self.sessions.add_question(screen)
            screens.append(screen)
            room, limit = room - (not screen.right), limit - 1
            written.append(self._logs.sessions.append(_encode(screen), synced=False))
            self._tell_maker(screen)
        await _all(written)
        self.counts["asked"] += len(written)
        content = {"questions": [screen.public() for screen in screens], **self.progress(worker, person, ended)}
        if not screens and not ended:
            content["why"] = f"no other questions are left; get the unanswered ones ({waiting}) again with again=1"
        return content

    def progress(self, worker: str, person: ParticipantSession, ended: str = "") -> dict[str, Any]:
        """How far a participant is, with their completion code when they have done all. Catch trials count like other
        screens, so that nothing tells them apart."""
        ended = ended or self.end_of(person)
        quota, catching = self.study.quota.person, self.study.catching.every if self.study.catch else 0
        if not self.study.asking.repeat_share:
            quota = min(quota, self.pool.n_questions)
        screens = quota + (quota - 1) // catching if quota and catching else quota
        content: dict[str, Any] = {
            "answered": person.answered + person.passed + person.failed,
            "of": screens or None,
            "ended": ended,
        }
        if ended == "done":
            content["code"] = self.study.texts.code or self.access.completion_code(worker)
        return content

    async def answers(self, many: Sequence[Any], check: Callable[[Any], None]) -> tuple[int, dict[str, Any]]:
        """Take answers; an HTTP status, 200 only where all are counted and durable, and what is said.

        `check` raises `Rejection` for who may not answer. One that is sent again while it is being written waits, too.
        """
        now = time.time()
        self.sessions.late(now, self.study.quota.answer_within)
        outcomes = [self._take(answer, check, now) for answer in many]
        if futures := {asyncio.wrap_future(outcome) for outcome in outcomes if isinstance(outcome, Future)}:
            await asyncio.wait(futures, timeout=MAX_WAIT_SECONDS)
        refused: list[dict[str, Any]] = []
        for at, outcome in enumerate(outcomes):
            if isinstance(outcome, Future) and (not outcome.done() or outcome.exception() is not None):
                outcome = Rejection("not_durable", "could not be stored; send it again")
            if isinstance(outcome, Rejection):
                refused.append({"at": at, "refused": outcome.reason, "why": str(outcome), "status": outcome.status})
        status = min((refusal["status"] for refusal in refused), default=200)
        counted = len(many) - len(refused)
        again = sum(outcome is None for outcome in outcomes)
        content: dict[str, Any] = {"counted": counted, "again": again}
        return status, content | ({"refused": refused, "why": refused[0]["why"]} if refused else {})

    def _take(self, answer: Any, check: Callable[[Any], None], now: float) -> Future | Rejection | None:
        """What is written, why not, or None for what was counted before."""
        try:
            check(answer)
            counted = accept(answer, self.sessions, self.access.study, now)
        except Rejection as error:
            self.refuse(error.reason, answer)
            return error
        if counted is None:
            self.counts["again"] += 1
            return self._being_written.get(answer["id"])
        log, line = self._logs.answers, counted.event
        future = log.append(_encode(line)) if line else self._logs.sessions.append(_encode(counted.caught))
        key, loop = counted.screen.id, asyncio.get_running_loop()
        self._being_written[key] = future
        future.add_done_callback(lambda done: loop.call_soon_threadsafe(self._note_written, counted, done))
        return future

    def _note_written(self, counted: AcceptedAnswer, done: Future) -> None:
        """It is durable, or was not written: then it waits for an answer again."""
        self._being_written.pop(counted.screen.id, None)
        if done.exception() is None:
            self.counts["answers" if counted.event else "catch trials"] += 1
        else:
            self.sessions.forget(counted.screen, counted.caught.passed if counted.caught else None)

    async def consent(self, worker: str) -> None:
        """A person agrees; durable when this returns."""
        person = self.sessions.person(worker)
        if not person.consented:
            await _all([self._logs.sessions.append(_encode(Consent(worker, round(time.time(), 3))))])
            person.consented = True

    def refuse(self, reason: str, answer: Any = None) -> None:
        """Count something that is refused, and keep it while there is room."""
        self.counts[f"refused {reason}"] += 1
        if self._logs.refused.size < MAX_REFUSED_BYTES and not self._logs.refused.problem:
            text = answer if isinstance(answer, bytes) else _encode(answer)
            excerpt = text[:MAX_EXCERPT_BYTES].decode("utf-8", "replace")
            line = {"time": round(time.time(), 3), "reason": reason, "given": excerpt}
            self._logs.refused.append(_encode(line), synced=False)

    def broken(self) -> str:
        """Why answers are not taken now, or ""."""
        return self._logs.answers.problem or self._logs.sessions.problem or self._logs.answers.delay

    def _tell_maker(self, screen: Screen) -> None:
        if not screen.right:
            self.asked_since.append((screen.time, screen.objects()[:3]))


async def _all(written: Sequence[Future]) -> None:
    """Wait for lines to be written. Raises `Rejection`."""
    try:
        for future in written:
            await asyncio.wrap_future(future)
    except (OSError, LogBroken):
        raise Rejection("not_durable", "answers cannot be stored at the moment; try again later") from None
