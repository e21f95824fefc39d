"""The questions that lie ready in memory, and which of them each person gets.

Questions of `question_maker` are handed out in order; if none is ready that a person was not asked before, one is drawn
uniformly among those. So nothing waits for a model, and no question repeats unless a repeat share is set.
"""

import math
import random
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from stream_engine.collect.screens import CATCH, REPEAT, Screen, new_id, question_key
from stream_engine.collect.sessions import ParticipantSession
from stream_engine.collect.study import Study

MAX_DRAWS = 50  # random draws that a person may have been asked before, until all questions are listed
MAX_LISTED_QUESTIONS = 200_000  # questions up to which they are listed
MAX_POOL_DRAWS = 20  # questions of the pool that a person may have been asked before, until one is drawn


class Question(NamedTuple):
    """From the maker: an anchor and two objects, or three objects."""

    objects: tuple[str, str, str]
    sampler: str
    propensity: float | None


class NothingLeft(LookupError):
    """A person has been asked every question that there is."""


class QuestionPool:
    """`names` is the growing list of objects; `ready` may be refilled from another thread."""

    def __init__(self, study: Study, names: Sequence[str], key: str, seed: int | None = None):
        self._study, self._names, self._key = study, names, key
        self._random = random.Random(seed)  # sides and draws: nothing that must not be guessed
        self.ready: deque[Question] = deque()

    @property
    def n_questions(self) -> int:
        """Number of questions that one person can be asked."""
        n = len(self._names)
        if self._study.asking.type == "odd_one_out":
            return math.comb(n, 3)
        return n * math.comb(n - 1, min(self._study.asking.shown, n - 1))

    def all_asked(self, person: ParticipantSession) -> bool:
        """Whether a person has been asked every question."""
        if not len(person.screen_keys) >= self.n_questions <= MAX_LISTED_QUESTIONS:
            return False
        if self._study.asking.type == "odd_one_out":
            every: Iterable[tuple[str, ...]] = (("", *three) for three in combinations(self._names, 3))
        else:
            shown = min(self._study.asking.shown, len(self._names) - 1)
            every = (
                (anchor, *others)
                for anchor in self._names
                for others in combinations([name for name in self._names if name != anchor], shown)
            )
        return all(question_key(anchor, others) in person.screen_keys for anchor, *others in every)

    def refill(self, questions: Iterable[Question]) -> None:
        """Better ones are there: these instead of what lies ready."""
        self.ready = deque(questions)

    def screen(self, worker: str, person: ParticipantSession, now: float) -> Screen:
        """What to ask this person next. Raises `NothingLeft`."""
        asking, catching = self._study.asking, self._study.catching
        if self._study.catch and catching.every and person.since_catch >= catching.every:
            return self._catch(worker, now)
        if len(person.last) > asking.repeat_after and self._random.random() < asking.repeat_share:
            return self._repeat(worker, person, now)
        for _ in range(min(MAX_POOL_DRAWS, len(self.ready))):
            try:
                question = self.ready.popleft()
            except IndexError:
                break
            screen = self._of(question, worker, now)
            if screen.key() not in person.screen_keys:
                return screen
            self.ready.append(question)  # for another person
        return self._draw(worker, person, now)

    def _of(self, question: Question, worker: str, now: float) -> Screen:
        """A screen of a question: sides at random, and random objects beside where more than two are shown."""
        asking, (first, *others) = self._study.asking, question.objects
        propensity = question.propensity
        if asking.type == "odd_one_out":
            others, first = [first, *others], ""
        more = min(asking.shown, len(self._names) - 1) - 2
        if asking.type == "pick" and more > 0:
            there = set(question.objects)
            others = [*others, *self._random.sample([name for name in self._names if name not in there], more)]
            propensity = None  # of the two, not of all that are shown
        self._random.shuffle(others)
        choose = min(asking.choose, len(others) - 1)
        return Screen(
            new_id(self._key), worker, asking.type, tuple(others), now, first, question.sampler, propensity, choose
        )

    def _catch(self, worker: str, now: float) -> Screen:
        trial = self._random.choice(self._study.catch)
        shown = self._random.sample(trial.shown, len(trial.shown))
        kind = self._study.asking.type
        return Screen(new_id(self._key), worker, kind, tuple(shown), now, trial.anchor, CATCH, None, 1, trial.right)

    def _repeat(self, worker: str, person: ParticipantSession, now: float) -> Screen:
        """One of the last answers but the very last, sides anew."""
        old = self._random.choice(list(person.last)[: len(person.last) - self._study.asking.repeat_after])
        shown = tuple(self._random.sample(old.shown, len(old.shown)))
        return Screen(
            new_id(self._key),
            worker,
            old.type,
            shown,
            now,
            old.anchor,
            REPEAT,
            None,
            old.choose,
            "",
            old.repeats or old.id,
        )

    def _draw(self, worker: str, person: ParticipantSession, now: float) -> Screen:
        names, odd = self._names, self._study.asking.type == "odd_one_out"
        total = math.comb(len(names), 3) * (1 if odd else 3)
        n_open = total - len(person.screen_keys)  # catch trials and repetitions among them: a few too few
        propensity = 1 / n_open if n_open > 0 and self._study.asking.shown == 2 else None
        for _ in range(MAX_DRAWS):
            first, one, other = self._random.sample(names, 3)
            screen = self._of(Question((first, one, other), "random", propensity), worker, now)
            if screen.key() not in person.screen_keys:
                return screen
        if total > MAX_LISTED_QUESTIONS:
            raise NothingLeft
        every = [
            question
            for a, b, c in combinations(names, 3)
            for question in (((a, b, c),) if odd else ((a, b, c), (b, a, c), (c, a, b)))
        ]
        self._random.shuffle(every)
        for question in every:
            screen = self._of(Question(question, "random", propensity), worker, now)
            if screen.key() not in person.screen_keys:
                return screen
        raise NothingLeft
