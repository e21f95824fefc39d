"""What to ask next, over HTTP: questions lie ready, and more are chosen in a thread before they run out."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from stream_engine import asking
from stream_engine.asking.as_events import events
from stream_engine.asking.knowledge import Knowledge
from stream_engine.asking.queue import QuestionQueue

N_CHOSEN, MIN_AT_HAND = 2000, 500  # questions that are chosen at once, and how few are left when more are
MIN_SECONDS_BETWEEN, TIMES_LAST_CHOICE = (
    10.0,
    20.0,
)  # seconds between choices where one would do, or times that the last one took


class LiveQuestions:
    """A queue of questions, and what they were chosen from. Used from one event loop."""

    def __init__(self) -> None:
        self._queue = QuestionQueue(asking.DEFAULT, asking.DEFAULT, asking.RANDOM_SHARE)
        self._knowledge: Knowledge | None = None
        self.sequence = 0  # of the snapshot
        self._choosing: asyncio.Task[None] | None = None
        self._chosen_at = self._took = 0.0  # when they were chosen last, and how long that took
        self._is_short = False  # whether there were no more
        self._repeating = asyncio.Lock()

    async def hand_out(
        self, knowledge: Knowledge, sequence: int, answered_by: Callable[[str], np.ndarray], n: int, participant: str
    ) -> list[dict[str, Any]]:
        """Up to n questions, each once until it is given up; when none are left, a participant gets those that they
        were not asked themselves and have not `answered_by`."""
        while (choosing := self._choose_if_due(knowledge, sequence, n)) and n > self._queue.n_ready:
            await asyncio.shield(choosing)
        questions = self._hand_out(self._queue.take(min(n, self._queue.n_ready)), participant)
        if len(questions) < n and participant:
            async with self._repeating:
                answered_codes = await run_in_threadpool(answered_by, participant)
                repeats = await run_in_threadpool(
                    self._queue.random_for, participant, answered_codes, n - len(questions)
                )
                questions += self._hand_out(repeats, participant)
        return questions

    def clear(self) -> bool:
        """Let go of what is known, unless questions are being chosen; whether that was done."""
        if self._choosing is not None and not self._choosing.done():
            return False
        self._knowledge = None
        self._queue.clear()
        return True

    def _hand_out(self, questions: asking.ChosenQuestions, participant: str) -> list[dict[str, Any]]:
        knowledge, now = self._queue.knowledge, time.time()
        for row in questions.rows.tolist():
            self._queue.note_asked(now, tuple(knowledge.names[i] for i in row), participant)
        participant_field = {"worker": participant} if participant else {}
        return [question | participant_field for question in events(questions, knowledge, "pick")]

    def _choose_if_due(self, knowledge: Knowledge, sequence: int, n: int) -> asyncio.Task[None] | None:
        """The choice that is under way, if one is. Questions are chosen because few are left, because some may have
        been given up since none were, or because there is a newer snapshot; the last two not all the time."""
        if self._choosing is not None and not self._choosing.done():
            return self._choosing
        due = time.monotonic() - self._chosen_at > max(MIN_SECONDS_BETWEEN, TIMES_LAST_CHOICE * self._took)
        is_short = due and n > self._queue.n_ready if self._is_short else self._queue.n_ready < MIN_AT_HAND
        if self._knowledge is None or is_short or (due and knowledge is not self._knowledge):
            self._choosing = asyncio.create_task(self._choose(knowledge, sequence))
            return self._choosing
        return None

    async def _choose(self, knowledge: Knowledge, sequence: int) -> None:
        began = time.monotonic()
        self._queue.adopt(await run_in_threadpool(self._queue.choose, knowledge, sequence, time.time(), N_CHOSEN))
        self._knowledge, self.sequence, self._is_short = knowledge, sequence, self._queue.n_ready < MIN_AT_HAND
        self._chosen_at = time.monotonic()
        self._took = self._chosen_at - began
