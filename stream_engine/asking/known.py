"""What is known when a question is chosen: the objects, the answers counted so far, and which questions are left.

A question {anchor; b, c} has the code (anchor n + min(b, c)) n + max(b, c): one int64 for up to two million objects.

Which questions need no asking: those that the accepted order answers, said or not (T-infinity of Heim et al. 2014).

The order is the one that the state's guard keeps; where none is kept nothing is known to follow.
What follows from people's answers is as right as these are: a model leaves such questions out, the random share does
not. The order is made ready when the first question comes, O(kept words), then some ns to us a question.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

from stream_engine.asking.model import Model
from stream_engine.counts.worker_votes import names_of
from stream_engine.data.container import Corrupt
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from stream_engine.order.implied import Order, answers, order_of
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot, triplet_columns

MAX_BLOCKED_COMPARISONS = 2_000_000  # accepted comparisons; of a larger order nothing is excluded


def follows(snapshot: Snapshot) -> Callable[[np.ndarray], np.ndarray] | None:
    """(m, 3) rows anchor, b, c -> (m,) bool: whether the order says which of b and c is nearer; None where the snapshot
    has no order, or one of more than `MAX_BLOCKED_COMPARISONS`. The function raises `Corrupt` for an invalid order."""
    state = snapshot.section("partial_order")
    if not state or max(map(len, state.values())) > MAX_BLOCKED_COMPARISONS:
        return None

    @cache
    def order() -> Order:
        try:
            return order_of(state["kept"])
        except ValueError as error:
            raise Corrupt(f"partial_order: {error}") from None

    return lambda rows: answers(order(), rows) != 0


MOST_OBJECTS = 2_000_000  # so that a code fits an int64
MAX_LISTED_QUESTIONS = 4_000_000  # questions up to which they are listed one by one


class CannotAsk(ValueError):
    """These questions cannot be chosen from this state; one line: what, got, expected, next step."""


class Knowledge(NamedTuple):
    """`names` by id, those that no comparison has named last."""

    names: tuple[str, ...]
    columns: Columns  # n_objects = len(names)
    learned: Artifact | None = None  # the newest artifact `embedding`, where there is one
    digest: str = ""  # of the snapshot
    model: Model | None = None  # made of `learned` for the strategies that ask by it
    asked: np.ndarray = np.empty(0, np.int64)  # codes, ascending, of questions that wait for an answer
    implied: Callable[[np.ndarray], np.ndarray] | None = None  # (m, 3) rows -> (m,) bool: what follows already


def nothing_known() -> Knowledge:
    """No object, no answer: where a study begins."""
    none = np.empty(0, np.int32)
    return Knowledge((), Columns(none, none, np.zeros(1, np.int64), none, none, none, 0))


def known_from(snapshot: Snapshot, learned: Artifact | None = None) -> Knowledge:
    """What a snapshot knows, what follows from the order that it keeps, and an artifact `embedding`. Raises
    `CannotAsk`."""
    if "triplet_counts" not in snapshot.settings["accumulators"]:
        raise CannotAsk(
            f"ask: snapshot {snapshot.sequence} has no triplet counts, so answered questions are unknown; add "
            "triplet_counts to `accumulators`"
        )
    known = Knowledge(tuple(snapshot.objects), triplet_columns(snapshot), learned, snapshot.digest)
    return known._replace(implied=follows(snapshot))


def with_objects(known: Knowledge, names: Iterable[str]) -> Knowledge:
    """`known` with more objects, that nobody has compared yet; names that it has already are passed over.

    >>> with_objects(nothing_known(), ["a", "b", "a"]).names
    ('a', 'b')
    """
    every = tuple(dict.fromkeys((*known.names, *names)))
    return known._replace(names=every, columns=known.columns._replace(n_objects=len(every)))


def check_room(known: Knowledge, n: int) -> None:
    """Raises `CannotAsk` unless n >= 1 questions over these objects are left to ask."""
    objects, answered = len(known.names), len(known.columns.anchor)
    if objects < 3:
        raise CannotAsk(
            f"ask: got {objects} objects, expected at least 3; read comparisons, or name objects with --objects"
        )
    if objects > MOST_OBJECTS:
        raise CannotAsk(f"ask: got {objects} objects, expected at most {MOST_OBJECTS}")
    left = questions_left(known)
    if not 1 <= n <= left:
        raise CannotAsk(
            f"ask: got n = {n}, expected 1 to {left}: {objects} objects give {how_many(objects)} questions, of which "
            f"{answered} have answers"
        )


def questions_left(known: Knowledge) -> int:
    """Questions that neither have an answer nor wait for one."""
    return how_many(len(known.names)) - len(known.columns.anchor) - len(known.asked)


def how_many(objects: int) -> int:
    """Questions over so many objects: n (n - 1) (n - 2) / 2.

    >>> how_many(3), how_many(4)
    (3, 12)
    """
    return objects * (objects - 1) * (objects - 2) // 2


def codes(rows: np.ndarray, objects: int) -> np.ndarray:
    """(m,) int64: one number a question, the same for both orders of b and c."""
    anchor, b, c = np.asarray(rows, np.int64).T
    return (anchor * objects + np.minimum(b, c)) * objects + np.maximum(b, c)


def answered(known: Knowledge) -> np.ndarray:
    """Codes of the questions that have an answer or wait for one, ascending. O(K log K)."""
    columns, pair = known.columns, pair_of_entry(known.columns)
    done = codes(np.stack([columns.anchor, columns.lo[pair], columns.hi[pair]], axis=1), columns.n_objects)
    return np.sort(np.concatenate([done, known.asked]))


def answered_by(snapshot: Snapshot, participant: str) -> np.ndarray:
    """Codes of the questions that a participant has answered, ascending; none where the snapshot does not keep who
    answered what. O(K)."""
    votes = snapshot.section("worker_votes")
    names = names_of(votes) if votes else ()
    if participant not in names:
        return np.empty(0, np.int64)
    mine = votes["worker"] == names.index(participant)
    return np.sort(codes(np.stack([votes[key][mine] for key in ("anchor", "lo", "hi")], axis=1), len(snapshot.objects)))


def waiting(known: Knowledge, rows: np.ndarray) -> Knowledge:
    """`known` with (m, 3) questions that have been asked: they are not asked again while they wait. O(K log K)."""
    code = np.sort(np.concatenate([known.asked, codes(rows, len(known.names))]))
    return known._replace(asked=code[np.diff(code, prepend=-1) > 0])  # np.unique would load numpy.ma


def candidates(known: Knowledge, most: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32 questions that a model may choose from: at most `most` of those that are left, in random order, less
    what follows from the comparisons that were accepted (`known.implied`). O(most). Raises `CannotAsk`."""
    rows = unanswered(known, most, rng)
    try:
        return rows if known.implied is None else rows[~known.implied(rows)]
    except Corrupt as error:
        raise CannotAsk(f"ask: {error}") from None


def by_model(
    known: Knowledge, n: int, most: int, best: Callable[[Model, np.ndarray, int, np.random.Generator], np.ndarray], rng
) -> np.ndarray:
    """(m, 3) int32: of `most` candidates those that `best(model, rows, n, rng)` (indices) chooses, in its order; m < n
    where there is no model or it knows no more."""
    if known.model is None:
        return np.empty((0, 3), np.int32)
    rows = candidates(known, most, rng)
    return rows[best(known.model, rows, n, rng)]


def unanswered(known: Knowledge, most: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32 distinct questions without an answer in random order, uniform among all of them; m = `most`, or all
    that are left when those are fewer. O(most), or O(n^3) while all questions are fewer than FEW.

    >>> rows = unanswered(with_objects(nothing_known(), "abc"), 10, np.random.default_rng(0))
    >>> sorted(map(tuple, rows.tolist()))
    [(0, 1, 2), (1, 0, 2), (2, 0, 1)]
    """
    n, done = len(known.names), answered(known)
    total = how_many(n)
    if total <= max(MAX_LISTED_QUESTIONS, 3 * (len(done) + most)):
        left = np.setdiff1d(_every(n), done, assume_unique=True)
        code = rng.permutation(left)[:most]
    else:
        code = np.empty(0, np.int64)
        while len(code) < most:  # few of all questions are wanted or answered: nearly every draw counts
            rows = rng.integers(n, size=(int(1.1 * (most - len(code))) + 64, 3))
            rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
            fresh = codes(rows, n)
            both = np.concatenate([code, fresh[~contained(fresh, done)]])
            code = both[np.sort(np.unique(both, return_index=True)[1])]
        code = code[:most]
    return np.stack([code // n // n, code // n % n, code % n], axis=1).astype(np.int32)


def _every(n: int) -> np.ndarray:
    lo, hi = np.triu_indices(n, 1)
    code = (np.arange(n)[:, None] * n + lo) * n + hi
    return code[(np.arange(n)[:, None] != lo) & (np.arange(n)[:, None] != hi)]


def contained(code: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """(m,) bool: whether a code is one of the ascending ones. O(m log K)."""
    place = np.searchsorted(ascending, code)
    place[place == len(ascending)] = 0
    return ascending[place] == code if len(ascending) else np.zeros(len(code), bool)
