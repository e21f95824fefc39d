"""The process that chooses questions by the model: `python -m stream_engine.collect.question_maker`.

It is separate from the HTTP side, so that nobody waits for a choice. From standard input it learns what was asked and
which objects have come; it answers with the most useful questions, and ends when its input does.
"""

import sys
from typing import Any

import msgspec
import numpy as np
from scipy.special import gammaincinv

from stream_engine import asking
from stream_engine.asking.knowledge import knowledge_of, no_knowledge, with_objects
from stream_engine.asking.queue import QuestionQueue
from stream_engine.data.container import Corrupt
from stream_engine.state.artifact import Artifact
from stream_engine.state.store import NoSuchSnapshot, Store

CONFIDENCE_LEVEL = 0.95


# Size of the 95 % regions in a map: the stop rule that ends a study when the map is certain enough.
def ellipse_size(learned: Artifact | None) -> float | None:
    """The median over objects of the longest half-axis of the region that holds an object with 95 %, as a share of the
    root mean square distance of objects from their centre; None where nothing is known.

        median_i sqrt(chi2_d(0.95) lambda_max(covariance_i)) / sqrt(mean_i |x_i - mean x|^2)

    O(n d^3).
    """
    if learned is None or "covariance" not in learned.arrays:
        return None
    points = np.asarray(learned.arrays["X"], np.float64)
    covariance = np.asarray(learned.arrays["covariance"], np.float64)
    if points.ndim != 2 or not points.size or covariance.shape != (*points.shape, points.shape[1]):
        return None
    spread = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())
    if not spread > 0:
        return None
    quantile = 2 * gammaincinv(points.shape[1] / 2, CONFIDENCE_LEVEL)
    longest = np.linalg.eigvalsh(covariance)[:, -1]
    return float(np.median(np.sqrt(np.maximum(quantile * longest, 0.0))) / spread)


class MakerSettings(msgspec.Struct):
    """The first line: what does not change."""

    state: str
    type: str
    strategy: str
    start: str  # until there is an embedding
    random_share: float
    seed: int


class Request(msgspec.Struct):
    """Every other line."""

    now: float
    n: int  # questions wanted; 0: only where there is a newer model
    names: list[str] = []  # objects that have come
    asked: list[tuple[float, tuple[str, ...]]] = []  # when, and the three objects: since the last request


class Reply(msgspec.Struct):
    """`fresh`: these are instead of all that were given before."""

    snapshot: int
    fresh: bool
    about: str
    ellipse: float | None
    questions: list[tuple[tuple[str, str, str], str, float | None]]


class Maker:
    """What is known, and the questions that are ready."""

    def __init__(self, settings: MakerSettings):
        self._store = Store(settings.state, tell=lambda line: None)
        self._names: dict[str, None] = {}
        self._of: tuple[int, ...] = (-1,)
        self._queue = QuestionQueue(
            settings.strategy,
            settings.start,
            settings.random_share,
            settings.seed,
            in_threes=settings.type == "odd_one_out",
        )
        self._knowledge = no_knowledge()
        self._ellipse: float | None = None

    def answer(self, request: Request) -> Reply:
        """Questions, as asked for."""
        self._names |= dict.fromkeys(request.names)
        for time, three in request.asked:
            self._queue.note_asked(time, three)
        fresh = self._look() or bool(request.names)
        if fresh or not self._queue.is_ready:
            knowledge = with_objects(self._knowledge, self._names)
            self._queue.adopt(self._queue.choose(knowledge, max(self._of[0], 0), request.now))
        n = max(request.n, asking.BLOCK) if fresh else request.n
        questions = self._take(n) if n else []
        learned = self._knowledge.embedding
        about = f"snapshot {self._of[0]}" if self._of[0] >= 0 else "no snapshot yet"
        about += f", embedding of {learned.sequence}" if learned else ", no embedding yet"
        return Reply(self._of[0], fresh, about, self._ellipse, questions)

    def _look(self) -> bool:
        """Whether there is a newer snapshot or embedding; it is read then."""
        sequences, artifacts = self._store.sequences(), self._store.artifact_sequences("embedding")
        newest = (sequences[-1] if sequences else -1, artifacts[-1] if artifacts else -1)
        if newest == self._of:
            return False
        try:
            if sequences:
                published = self._store.published()
                self._knowledge = knowledge_of(published.snapshot, published.artifacts.get("embedding"))
                self._ellipse = ellipse_size(self._knowledge.embedding)
        except (OSError, Corrupt, NoSuchSnapshot):  # pruned a moment ago, or being repaired: the next look tells
            return False
        self._of = newest
        return True

    def _take(self, n: int) -> list[tuple[tuple[str, str, str], str, float | None]]:
        """Up to n questions about objects of the study; fewer where fewer are left."""
        questions: list[tuple[tuple[str, str, str], str, float | None]] = []
        while len(questions) < n and len((some := self._queue.take(n)).rows):
            names = self._queue.knowledge.names
            for row, sampler, propensity in zip(*(column.tolist() for column in some), strict=True):
                three = (names[row[0]], names[row[1]], names[row[2]])
                if all(name in self._names for name in three):
                    questions.append((three, sampler, None if np.isnan(propensity) else propensity))
        return questions


def main() -> None:
    """Answer requests until the input ends."""
    lines: Any = sys.stdin.buffer
    maker = Maker(msgspec.json.decode(lines.readline(), type=MakerSettings))
    decode = msgspec.json.Decoder(Request).decode
    for line in lines:
        sys.stdout.buffer.write(msgspec.json.encode(maker.answer(decode(line))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
