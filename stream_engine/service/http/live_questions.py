"""What to ask next, over HTTP: questions lie ready, and more are chosen in a thread before they run out."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from stream_engine import asking
from stream_engine.asking.as_events import events
from stream_engine.asking.known import Knowledge
from stream_engine.asking.queue import QuestionQueue

AT_ONCE, LOW = 2000, 500  # questions that are chosen at once, and how few are left when more are
AGAIN, SHARE = 10.0, 20.0  # seconds between choices where one would do, or times that the last one took


class LiveQuestions:
    """A queue of questions, and what they were chosen from. Used from one event loop."""

    def __init__(self) -> None:
        self._queue = QuestionQueue(asking.DEFAULT, asking.DEFAULT, asking.RANDOM_SHARE)
        self._of: Knowledge | None = None
        self.sequence = 0  # of the snapshot
        self._choosing: asyncio.Task[None] | None = None
        self._chosen = self._took = 0.0  # when they were chosen last, and how long that took
        self._is_short = False  # whether there were no more
        self._repeating = asyncio.Lock()

    async def hand_out(
        self, known: Knowledge, sequence: int, answered: Callable[[str], np.ndarray], n: int, participant: str
    ) -> list[dict[str, Any]]:
        """Up to n questions, each once until it is given up; when none are left, a participant gets those that they
        were not asked themselves and have not `answered`."""
        while (choosing := self._choose_if_due(known, sequence, n)) and n > self._queue.at_hand:
            await asyncio.shield(choosing)
        questions = self._noted(self._queue.take(min(n, self._queue.at_hand)), participant)
        if len(questions) < n and participant:
            async with self._repeating:
                answered_codes = await run_in_threadpool(answered, participant)
                repeated = await run_in_threadpool(self._queue.others, participant, answered_codes, n - len(questions))
                questions += self._noted(repeated, participant)
        return questions

    def clear(self) -> bool:
        """Let go of what is known, unless questions are being chosen; whether that was done."""
        if self._choosing is not None and not self._choosing.done():
            return False
        self._of = None
        self._queue.clear()
        return True

    def _noted(self, chosen: asking.ChosenQuestions, participant: str) -> list[dict[str, Any]]:
        known, now = self._queue.known, time.time()
        for row in chosen.rows.tolist():
            self._queue.asked(now, tuple(known.names[i] for i in row), participant)
        participant_field = {"worker": participant} if participant else {}
        return [question | participant_field for question in events(chosen, known, "pick")]

    def _choose_if_due(self, known: Knowledge, sequence: int, n: int) -> asyncio.Task[None] | None:
        """The choice that is under way, if one is. Questions are chosen because few are left, because some may have
        been given up since none were, or because there is a newer snapshot; the last two not all the time."""
        if self._choosing is not None and not self._choosing.done():
            return self._choosing
        due = time.monotonic() - self._chosen > max(AGAIN, SHARE * self._took)
        is_short = due and n > self._queue.at_hand if self._is_short else self._queue.at_hand < LOW
        if self._of is None or is_short or (due and known is not self._of):
            self._choosing = asyncio.create_task(self._choose(known, sequence))
            return self._choosing
        return None

    async def _choose(self, known: Knowledge, sequence: int) -> None:
        began = time.monotonic()
        self._queue.adopt(await run_in_threadpool(self._queue.choose, known, sequence, time.time(), AT_ONCE))
        self._of, self.sequence, self._is_short = known, sequence, self._queue.at_hand < LOW
        self._chosen = time.monotonic()
        self._took = self._chosen - began
