"""Questions that are handed out one after the other while answers arrive; none is repeated while it waits for its
answer.

`collect` asks its participants from such a queue, and a run those who request questions over HTTP.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine import asking
from stream_engine.asking.knowledge import CannotAsk, Knowledge, codes, no_knowledge, questions_left
from stream_engine.asking.sharing import ChosenQuestions, concatenated


class Waiting(NamedTuple):
    """A question that waits for an answer."""

    time: float  # when it was asked
    objects: tuple[str, ...]  # the anchor first
    participant: str = ""


class Selection(NamedTuple):
    """Questions that were chosen for the queue."""

    knowledge: Knowledge
    ready: asking.PreparedQuestions | None  # None: no question was left
    n_asked: int  # number of questions that had been asked when these were chosen


MAX_WAITING = 100_000  # questions that wait for an answer; with more, the oldest may be asked again
EXPIRY_SECONDS = 1800.0  # after which an unanswered question may be asked of another participant


class QuestionQueue:
    """Questions chosen by `strategy` once there is an embedding, and by `start` before. `in_threes`: a question is
    about three objects in equal roles, so it asks about each of them as an anchor."""

    def __init__(self, strategy: str, start: str, random_share: float, seed: int = 0, in_threes: bool = False):
        self._strategy, self._start = strategy, start
        self._random_share, self._seed, self._in_threes = random_share, seed, in_threes
        self._waiting: deque[Waiting] = deque(maxlen=MAX_WAITING)
        self._count = self._block = 0  # numbers of questions that were asked, and of blocks that were chosen
        self._ready: asking.PreparedQuestions | None = None
        self.knowledge = no_knowledge()

    @property
    def is_ready(self) -> bool:
        """Whether questions were chosen: not before `adopt`, and not if none were left."""
        return self._ready is not None

    @property
    def n_ready(self) -> int:
        """Number of questions that can be taken without choosing further ones."""
        return len(self._ready.queue.rows) if self._ready else 0

    def note_asked(self, now: float, objects: tuple[str, ...], participant: str = "") -> None:
        """Note that a question, anchor first, was asked of this participant at the time `now`."""
        self._waiting.append(Waiting(now, objects, participant))
        self._count += 1

    def choose(self, knowledge: Knowledge, sequence: int, now: float, first: int = asking.BLOCK) -> Selection:
        """Choose `first` questions by the knowledge of the snapshot `sequence`, without those that wait for an answer.
        The cost is that of the strategy; another thread can take questions at the same time."""
        n_asked = self._count
        waiting = [question for question in list(self._waiting) if question.time >= now - EXPIRY_SECONDS]
        knowledge = knowledge._replace(pending=self._codes(knowledge, waiting))
        self._block += 1
        strategy = self._strategy if knowledge.embedding is not None else self._start
        seed = self._seed + 1_000_003 * sequence + self._block
        try:
            return Selection(knowledge, asking.prepare(knowledge, strategy, seed, self._random_share, first), n_asked)
        except CannotAsk:  # no question is left
            return Selection(knowledge, None, n_asked)

    def adopt(self, selection: Selection) -> None:
        """Use these questions from now on, without those that were asked while they were chosen."""
        self.knowledge, self._ready, n_since = selection.knowledge, selection.ready, self._count - selection.n_asked
        if self._ready is not None and n_since:
            code = self._codes(self.knowledge, list(self._waiting)[-n_since:])
            queue, knowledge = self._ready.queue, self._ready.knowledge
            is_left = ~np.isin(codes(queue.rows, len(knowledge.names)), code)
            knowledge = knowledge._replace(pending=np.union1d(knowledge.pending, code))
            self._ready = self._ready._replace(queue=queue.of(is_left), knowledge=knowledge)

    def take(self, n: int) -> ChosenQuestions:
        """The next n questions, with the ids of `knowledge`; fewer if fewer are left. O(n), and once in `asking.BLOCK`
        questions the cost of a new block."""
        parts: list[ChosenQuestions] = []
        while n > 0 and self._ready is not None:
            try:
                taken, self._ready = asking.take(self._ready, min(n, max(len(self._ready.queue.rows), 1)))
            except CannotAsk:
                break
            parts.append(taken)
            n -= len(taken.rows)
        return concatenated(parts)

    def random_for(self, participant: str, answered: np.ndarray, n: int) -> ChosenQuestions:
        """Up to n random questions that the participant has neither answered (codes) nor been asked, even if others
        have: for use when all questions have been asked once."""
        own_questions = [question for question in list(self._waiting) if question.participant == participant]
        columns = no_knowledge().columns._replace(n_objects=len(self.knowledge.names))
        excluded = np.union1d(answered, self._codes(self.knowledge, own_questions))
        knowledge = Knowledge(self.knowledge.names, columns, digest=self.knowledge.digest, pending=excluded)
        self._block += 1
        n = min(n, questions_left(knowledge))
        return asking.questions(knowledge, n, "random", self._seed + self._block) if n > 0 else concatenated(())

    def clear(self) -> None:
        """Drop the chosen questions; questions that wait for an answer are kept."""
        self._ready, self.knowledge = None, no_knowledge()

    def _codes(self, knowledge: Knowledge, waiting: Sequence[Waiting]) -> np.ndarray:
        """Codes, ascending, of the questions whose objects are all known."""
        ids = {name: i for i, name in enumerate(knowledge.names)}
        object_names = [question.objects for question in waiting if all(name in ids for name in question.objects)]
        rows = [tuple(ids[name] for name in names) for names in object_names]
        if self._in_threes:
            rows = [(row[i], *row[:i], *row[i + 1 :]) for row in rows for i in range(3)]
        if not rows:
            return np.empty(0, np.int64)
        code = np.sort(codes(np.array(rows, np.int64), len(knowledge.names)))
        return code[np.diff(code, prepend=-1) > 0]
