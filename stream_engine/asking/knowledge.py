"""The input of every strategy: the objects, the answers counted so far, and which questions are left.

A question {anchor; b, c} has the code (anchor n + min(b, c)) n + max(b, c): one int64 for up to two million objects.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from stream_engine.asking.implied_questions import implied_questions
from stream_engine.asking.model import Model
from stream_engine.counts.worker_votes import names_of
from stream_engine.data.container import Corrupt
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from stream_engine.evaluation.connection import are_connected, components
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot, triplet_columns


class CannotAsk(ValueError):
    """These questions cannot be chosen; the message is one line: what, got, expected, next step."""


class Knowledge(NamedTuple):
    """What strategies choose questions by."""

    names: tuple[str, ...]  # by id; objects without comparisons are the last ones
    columns: Columns  # n_objects = len(names)
    embedding: Artifact | None = None  # the newest artifact `embedding`, if there is one
    digest: str = ""  # of the snapshot
    model: Model | None = None  # made of `embedding`, for the strategies that choose by it
    pending: np.ndarray = np.empty(0, np.int64)  # codes, ascending, of questions that wait for an answer
    implied: Callable[[np.ndarray], np.ndarray] | None = None  # see `implied_questions`
    sets: np.ndarray | None = None  # see `evaluation.connection.components`, where there are several


def no_knowledge() -> Knowledge:
    """No objects and no answers: the beginning of a study."""
    nobody = np.empty(0, np.int32)
    return Knowledge((), Columns(nobody, nobody, np.zeros(1, np.int64), nobody, nobody, nobody, 0))


def knowledge_of(snapshot: Snapshot, embedding: Artifact | None = None) -> Knowledge:
    """The knowledge of a snapshot, with the questions implied by its order, and of an artifact `embedding`. Raises
    `CannotAsk`."""
    if "triplet_counts" not in snapshot.settings["accumulators"]:
        raise CannotAsk(
            f"ask: snapshot {snapshot.sequence} has no triplet counts, so answered questions are unknown; add "
            "triplet_counts to `accumulators`"
        )
    knowledge = Knowledge(tuple(snapshot.objects), triplet_columns(snapshot), embedding, snapshot.digest)
    sets = components(snapshot)
    return knowledge._replace(implied=implied_questions(snapshot), sets=None if are_connected(sets) else sets)


def with_objects(knowledge: Knowledge, names: Iterable[str]) -> Knowledge:
    """`knowledge` with further objects, which have no comparisons yet; names that it has already are skipped.

    >>> with_objects(no_knowledge(), ["a", "b", "a"]).names
    ('a', 'b')
    """
    all_names = tuple(dict.fromkeys((*knowledge.names, *names)))
    return knowledge._replace(names=all_names, columns=knowledge.columns._replace(n_objects=len(all_names)))


MAX_OBJECTS = 2_000_000  # so that a code fits into an int64


def check_room(knowledge: Knowledge, n: int) -> None:
    """Raises `CannotAsk` unless n >= 1 and so many questions are left."""
    objects, n_answered = len(knowledge.names), len(knowledge.columns.anchor)
    if objects < 3:
        raise CannotAsk(
            f"ask: got {objects} objects, expected at least 3; read comparisons, or name objects with --objects"
        )
    if objects > MAX_OBJECTS:
        raise CannotAsk(f"ask: got {objects} objects, expected at most {MAX_OBJECTS}")
    n_left = questions_left(knowledge)
    if not 1 <= n <= n_left:
        raise CannotAsk(
            f"ask: got n = {n}, expected 1 to {n_left}: {objects} objects give {count_questions(objects)} questions, "
            f"of which {n_answered} have answers"
        )


def questions_left(knowledge: Knowledge) -> int:
    """Number of questions that neither have an answer nor wait for one."""
    return count_questions(len(knowledge.names)) - len(knowledge.columns.anchor) - len(knowledge.pending)


def count_questions(objects: int) -> int:
    """Number of questions about so many objects: n (n - 1) (n - 2) / 2.

    >>> count_questions(3), count_questions(4)
    (3, 12)
    """
    return objects * (objects - 1) * (objects - 2) // 2


def codes(rows: np.ndarray, objects: int) -> np.ndarray:
    """(m,) int64: one number a question, the same for both orders of b and c."""
    anchor, b, c = np.asarray(rows, np.int64).T
    return (anchor * objects + np.minimum(b, c)) * objects + np.maximum(b, c)


def answered_codes(knowledge: Knowledge) -> np.ndarray:
    """Codes of the questions that have an answer or wait for one, ascending. O(K log K)."""
    columns, pair = knowledge.columns, pair_of_entry(knowledge.columns)
    counted = codes(np.stack([columns.anchor, columns.lo[pair], columns.hi[pair]], axis=1), columns.n_objects)
    return np.sort(np.concatenate([counted, knowledge.pending]))


def codes_answered_by(snapshot: Snapshot, participant: str) -> np.ndarray:
    """Codes of the questions that a participant has answered, ascending; none if the snapshot does not keep answers by
    participant. O(K)."""
    votes = snapshot.section("worker_votes")
    names = names_of(votes) if votes else ()
    if participant not in names:
        return np.empty(0, np.int64)
    by_participant = votes["worker"] == names.index(participant)
    return np.sort(
        codes(np.stack([votes[key][by_participant] for key in ("anchor", "lo", "hi")], axis=1), len(snapshot.objects))
    )


def with_pending(knowledge: Knowledge, rows: np.ndarray) -> Knowledge:
    """`knowledge` with (m, 3) further questions that wait for an answer, and are not asked again. O(K log K)."""
    code = np.sort(np.concatenate([knowledge.pending, codes(rows, len(knowledge.names))]))
    return knowledge._replace(pending=code[np.diff(code, prepend=-1) > 0])  # np.unique would load numpy.ma


def candidates(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32 questions that a model may choose from: at most n of those that are left, in random order, without
    those that `knowledge.implied` answers. O(n). Raises `CannotAsk`."""
    rows = unanswered(knowledge, n, rng)
    try:
        return rows if knowledge.implied is None else rows[~knowledge.implied(rows)]
    except Corrupt as error:
        raise CannotAsk(f"ask: {error}") from None


def by_model(
    knowledge: Knowledge,
    n: int,
    n_candidates: int,
    best: Callable[[Model, np.ndarray, int, np.random.Generator], np.ndarray],
    rng,
) -> np.ndarray:
    """(m, 3) int32: of `n_candidates` candidates those that `best(model, rows, n, rng)` (indices) chooses, in its
    order; fewer than n without a model, or if it has fewer."""
    if knowledge.model is None:
        return np.empty((0, 3), np.int32)
    rows = candidates(knowledge, n_candidates, rng)
    return rows[best(knowledge.model, rows, n, rng)]


MAX_LISTED_QUESTIONS = 4_000_000  # questions up to which all are listed; of more, some are drawn


def unanswered(knowledge: Knowledge, max_questions: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32 distinct questions without an answer in random order, uniform among all of them; m =
    `max_questions`, or the number that is left. O(max_questions), or O(n^3) for few objects.

    >>> rows = unanswered(with_objects(no_knowledge(), "abc"), 10, np.random.default_rng(0))
    >>> sorted(map(tuple, rows.tolist()))
    [(0, 1, 2), (1, 0, 2), (2, 0, 1)]
    """
    n, excluded = len(knowledge.names), answered_codes(knowledge)
    total = count_questions(n)
    if total <= max(MAX_LISTED_QUESTIONS, 3 * (len(excluded) + max_questions)):
        available = np.setdiff1d(_all_codes(n), excluded, assume_unique=True)
        code = rng.permutation(available)[:max_questions]
    else:
        code = np.empty(0, np.int64)
        while (
            len(code) < max_questions
        ):  # a small share of all questions is requested or answered, so nearly every draw is new
            rows = rng.integers(n, size=(int(1.1 * (max_questions - len(code))) + 64, 3))
            rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
            drawn = codes(rows, n)
            merged = np.concatenate([code, drawn[~contained(drawn, excluded)]])
            code = merged[np.sort(np.unique(merged, return_index=True)[1])]
        code = code[:max_questions]
    return np.stack([code // n // n, code // n % n, code % n], axis=1).astype(np.int32)


def _all_codes(n: int) -> np.ndarray:
    lo, hi = np.triu_indices(n, 1)
    code = (np.arange(n)[:, None] * n + lo) * n + hi
    return code[(np.arange(n)[:, None] != lo) & (np.arange(n)[:, None] != hi)]


def contained(code: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """(m,) bool: whether each code is in an ascending array. O(m log K)."""
    position = np.searchsorted(ascending, code)
    position[position == len(ascending)] = 0
    return ascending[position] == code if len(ascending) else np.zeros(len(code), bool)
