"""Questions that are handed out one after the other while answers arrive, none again while it waits for its answer.

`collect` asks its participants from such a queue, and a run those who ask it over HTTP.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine import asking
from stream_engine.asking.known import CannotAsk, Knowledge, codes, nothing_known, questions_left
from stream_engine.asking.sharing import ChosenQuestions, joined

GIVEN_UP = 1800.0  # seconds after which a question that was asked may be asked of another
MOST_WAITING = 100_000  # questions that wait for an answer; of more, the oldest may be asked again


class Waiting(NamedTuple):
    """A question that was asked: when, its objects with the anchor first, and of whom."""

    time: float
    three: tuple[str, ...]
    participant: str = ""


class Chosen(NamedTuple):
    """Questions chosen from what is known; `asked` counts those that had been asked when they were."""

    known: Knowledge
    ready: asking.PreparedQuestions | None  # None: nothing was left
    asked: int


class QuestionQueue:
    """Chosen by `strategy` once there is an embedding, by `start` before. `in_threes`: a question is about three
    objects alike, so that asking it asks about each of them as an anchor."""

    def __init__(self, strategy: str, start: str, random_share: float, seed: int = 0, in_threes: bool = False):
        self._strategy, self._start = strategy, start
        self._random_share, self._seed, self._in_threes = random_share, seed, in_threes
        self._waiting: deque[Waiting] = deque(maxlen=MOST_WAITING)
        self._count = self._block = 0  # questions that were asked, blocks that were chosen
        self._ready: asking.PreparedQuestions | None = None
        self.known = nothing_known()

    @property
    def is_ready(self) -> bool:
        """Whether questions were chosen; not before `adopt`, nor where none were left."""
        return self._ready is not None

    @property
    def at_hand(self) -> int:
        """How many questions lie ready, so that taking them costs next to nothing."""
        return len(self._ready.queue.rows) if self._ready else 0

    def asked(self, now: float, three: tuple[str, ...], participant: str = "") -> None:
        """A question, anchor first, was asked at the time `now`, of this participant."""
        self._waiting.append(Waiting(now, three, participant))
        self._count += 1

    def choose(self, known: Knowledge, sequence: int, now: float, first: int = asking.BLOCK) -> Chosen:
        """`first` questions from what is known at the snapshot `sequence`, less those that wait for an answer. Costs
        what the strategy does; another thread may go on asking meanwhile."""
        mark, waiting = self._count, [each for each in list(self._waiting) if each.time >= now - GIVEN_UP]
        known = known._replace(asked=self._codes(known, waiting))
        self._block += 1
        strategy = self._strategy if known.learned is not None else self._start
        seed = self._seed + 1_000_003 * sequence + self._block
        try:
            return Chosen(known, asking.prepare(known, strategy, seed, self._random_share, first), mark)
        except CannotAsk:  # nothing is left
            return Chosen(known, None, mark)

    def adopt(self, chosen: Chosen) -> None:
        """Take from these from now on, less those that were asked while they were chosen."""
        self.known, self._ready, since = chosen.known, chosen.ready, self._count - chosen.asked
        if self._ready is not None and since:
            code = self._codes(self.known, list(self._waiting)[-since:])
            queue, known = self._ready.queue, self._ready.known
            left = ~np.isin(codes(queue.rows, len(known.names)), code)
            asked = np.union1d(known.asked, code)
            self._ready = self._ready._replace(queue=queue.of(left), known=known._replace(asked=asked))

    def take(self, n: int) -> ChosenQuestions:
        """The next n questions, ids as in `known`; fewer where fewer are left. O(n); once in `asking.BLOCK` questions
        what a new block costs."""
        parts: list[ChosenQuestions] = []
        while n > 0 and self._ready is not None:
            try:
                some, self._ready = asking.take(self._ready, min(n, max(len(self._ready.queue.rows), 1)))
            except CannotAsk:
                break
            parts.append(some)
            n -= len(some.rows)
        return joined(parts)

    def others(self, participant: str, answered: np.ndarray, n: int) -> ChosenQuestions:
        """Up to n random questions that a participant has neither answered (codes) nor waits to answer, whoever else
        has: for when all have been asked once. As `asking.known.unanswered`."""
        mine = [each for each in list(self._waiting) if each.participant == participant]
        columns = nothing_known().columns._replace(n_objects=len(self.known.names))
        own = np.union1d(answered, self._codes(self.known, mine))
        known = Knowledge(self.known.names, columns, digest=self.known.digest, asked=own)
        self._block += 1
        most = min(n, questions_left(known))
        return asking.questions(known, most, "random", self._seed + self._block) if most > 0 else joined(())

    def clear(self) -> None:
        """Let go of what was chosen; what waits for an answer stays known."""
        self._ready, self.known = None, nothing_known()

    def _codes(self, known: Knowledge, waiting: Sequence[Waiting]) -> np.ndarray:
        """Of questions about objects that are known, ascending."""
        ids = {name: i for i, name in enumerate(known.names)}
        threes = [each.three for each in waiting if all(name in ids for name in each.three)]
        rows = [tuple(ids[name] for name in three) for three in threes]
        if self._in_threes:
            rows = [(row[i], *row[:i], *row[i + 1 :]) for row in rows for i in range(3)]
        if not rows:
            return np.empty(0, np.int64)
        code = np.sort(codes(np.array(rows, np.int64), len(known.names)))
        return code[np.diff(code, prepend=-1) > 0]
