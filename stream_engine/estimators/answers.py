"""Lists of comparisons as scikit-learn's estimators take them, checked once, as the snapshot that refits learn from.

X is (m, 3) whole numbers: anchor, b, c, or (m, 4): the pairs {i, j} and {k, l}. Without y the answers are in the order:
b is nearer than c, {i, j} nearer than {k, l}. With y, 1 or True says so, -1 or False says the opposite (as in cblearn's
lists, where also X = (comparisons, answers) may come as one). Objects are 0 ... n_objects - 1.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from stream_engine.data.comparisons import Decoded, InvalidEvent, canonical_quadruplet
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot


class Answers(NamedTuple):
    """Comparisons with the nearer pair first; a quadruplet whose pairs share an object is a triplet here."""

    triplets: np.ndarray  # (m, 3) int32
    quadruplets: np.ndarray  # (q, 4) int32
    n_objects: int


def rows_of(estimator: Any, X: Any, y: Any = None, reset: bool = False) -> np.ndarray:
    """(m, 3) or (m, 4) int64, the nearer one first; `estimator` (or None) remembers how wide X was when `reset`. Raises
    ValueError: which row, what, expected."""
    if isinstance(X, tuple) and len(X) == 2 and y is None:
        X, y = X
    X = check_array(X) if estimator is None else validate_data(estimator, X, reset=reset)
    if X.shape[1] not in (3, 4):
        raise ValueError(f"X has {X.shape[1]} features, but comparisons have 3 (anchor, b, c) or 4 (i, j, k, l)")
    rows = X.astype(np.int64)
    odd = np.flatnonzero((rows != X).any(axis=1) | (rows < 0).any(axis=1))
    if len(odd):
        raise ValueError(f"X row {odd[0]}: got {X[odd[0]].tolist()}, expected objects as whole numbers from 0 on")
    if y is None:
        return rows
    answers = np.asarray(y)
    if answers.shape != (len(rows),) or not np.isin(answers, (-1, 1) if answers.dtype != bool else (False, True)).all():
        raise ValueError(
            f"y: got {answers.shape} values {np.unique(answers)[:5].tolist()}, expected one answer a row of X: 1 or "
            "True where the first is nearer, -1 or False where the second is"
        )
    turned = rows[:, [0, 2, 1]] if rows.shape[1] == 3 else rows[:, [2, 3, 0, 1]]
    return np.where((answers > 0)[:, None], rows, turned)


def answers_of(rows: np.ndarray, n_objects: int | None) -> Answers:
    """Comparisons from checked rows. Raises ValueError for a row of objects that are not distinct, or too large."""
    triplets: list[tuple[int, ...]] = []
    quadruplets: list[tuple[int, ...]] = []
    for number, row in enumerate(rows.tolist()):
        try:
            comparison = canonical_quadruplet(row[0], row[1], row[0] if len(row) == 3 else row[2], row[-1])
        except InvalidEvent as error:
            raise ValueError(f"X row {number}: {error}") from None
        (triplets if len(comparison) == 3 else quadruplets).append(comparison)
    largest = int(rows.max(initial=-1))
    if n_objects is not None and largest >= n_objects:
        raise ValueError(f"X: got object {largest}, expected numbers below n_objects = {n_objects}")
    return Answers(
        np.array(triplets, np.int32).reshape(-1, 3),
        np.array(quadruplets, np.int32).reshape(-1, 4),
        n_objects or largest + 1,
    )


def snapshot_of(answers: Answers, accumulators: tuple[str, ...]) -> Snapshot:
    """What an engine knows after these comparisons; object i has the name str(i) and the id i."""
    engine = Engine(accumulators, guard=None)
    engine.learn(
        Decoded(
            [str(i) for i in range(answers.n_objects)],
            answers.triplets,
            answers.quadruplets,
            np.zeros(len(answers.quadruplets), np.int64),
            [],
            {},
            [],
        )
    )
    return engine.snapshot()


def only_triplets(answers: Answers, what: str) -> None:
    """Raises ValueError where there are quadruplets of four objects."""
    if len(answers.quadruplets):
        raise ValueError(
            f"X: got {len(answers.quadruplets)} comparisons of four objects, expected triplets: {what} is made of "
            "them alone"
        )


def seed_of(random_state: Any) -> int:
    """A seed for a refit, from what scikit-learn calls a random state."""
    return int(check_random_state(random_state).randint(2**31))
