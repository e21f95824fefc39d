"""Comparisons as scikit-learn's estimators take them (X and y), checked, and as the snapshot that refits learn from."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, validate_data

from stream_engine.data.answers import Answers
from stream_engine.data.comparisons import DecodedEvents, InvalidEvent, Kinds, Provenance, canonical_quadruplet
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot

COUNT, POSITIVE = Interval(Integral, 1, None, closed="left"), Interval(Real, 0, None, closed="neither")
RandomState = int | np.random.RandomState | None
# The columns of a comparison, which are taken from a frame; other columns are ignored.
COLUMNS = (("anchor", "near", "far"), ("anchor", "left", "right"), ("near_i", "near_j", "far_i", "far_j"))


def rows_of(estimator: Any, X: Any, y: Any = None, reset: bool = False) -> np.ndarray:
    """(m, 3) or (m, 4) int64 or text, the nearer object or pair first. Raises ValueError: which row, got, expected.

    X is (m, 3): anchor, b, c, or (m, 4): the pairs {i, j} and {k, l}; an array, a list or a frame. Without y, b is
    nearer than c. With y, that is so for 1 or True, and the opposite for -1 or False (as in cblearn's lists, whose pair
    (comparisons, answers) is also taken as X). `estimator` (or None) remembers the width of X if `reset`.
    """
    if isinstance(X, tuple) and len(X) == 2 and y is None:
        X, y = X
    X = _comparison_columns(X)
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2 and X.size:
        X = values_of(X)  # before scikit-learn, which cannot compare the NA of pandas
    X = check_array(X, dtype=None) if estimator is None else validate_data(estimator, X, reset=reset, dtype=None)
    if X.shape[1] not in (3, 4):
        raise ValueError(f"X has {X.shape[1]} features, but comparisons have 3 (anchor, b, c) or 4 (i, j, k, l)")
    rows = values_of(X)
    if y is None:
        return rows
    answers = np.asarray(y)
    if answers.shape != (len(rows),) or not np.isin(answers, (-1, 1) if answers.dtype != bool else (False, True)).all():
        raise ValueError(
            f"y: got {answers.shape} values {np.unique(answers)[:5].tolist()}, expected one answer per row of X: 1 or "
            "True if the first object is nearer, -1 or False if the second is"
        )
    reversed_rows = rows[:, [0, 2, 1]] if rows.shape[1] == 3 else rows[:, [2, 3, 0, 1]]
    return np.where((answers > 0)[:, None], rows, reversed_rows)


def _comparison_columns(X: Any) -> Any:
    """The columns of a comparison as an array: near and far in `fit` may be left and right in `predict`. A frame whose
    columns are only numbered, and anything else, is returned unchanged. Raises ValueError for other columns."""
    names = getattr(X, "column_names", getattr(X, "columns", ()))
    names = names if hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__") else ()
    names_of_columns = next((list(columns) for columns in COLUMNS if {*columns} <= {*map(str, names)}), None)
    if names_of_columns is None and [*map(str, names)] != [*map(str, range(len(names)))]:
        raise ValueError(
            f"X: got columns {', '.join(map(str, names))}, expected {'; or '.join(map(', '.join, COLUMNS))}. Rename "
            "them, or pass an array"
        )
    if names_of_columns is None:
        return np.asarray(X) if len(names) else X
    return np.asarray(X.select(names_of_columns) if hasattr(X, "column_names") else X[names_of_columns])


def values_of(X: np.ndarray) -> np.ndarray:
    """Objects as int64 if all are whole numbers, else as text. Raises ValueError for anything else.

    >>> values_of(np.array([["lemon", 7, 2.0]], object)).tolist()
    [['lemon', '7', '2']]
    """
    if X.dtype.kind in "OT":
        flat = [_name_or_number(value) for value in X.ravel().tolist()]
        if (first_bad := next((position for position, value in enumerate(flat) if value is None), None)) is not None:
            raise _no_object(first_bad // X.shape[1], X)
        has_text = any(isinstance(value, str) for value in flat)
        return np.array([str(value) for value in flat] if has_text else flat).reshape(X.shape)
    if X.dtype.kind in "US":
        return X.astype(np.str_)
    rows = X.astype(np.int64)
    if len(bad_rows := np.flatnonzero((rows != X).any(axis=1))):
        raise _no_object(bad_rows[0], X)
    return rows


def _name_or_number(value: Any) -> str | int | None:
    if isinstance(value, str) and value:
        return value
    is_whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
    return int(value) if is_whole else None


def _no_object(row: int, X: np.ndarray) -> ValueError:
    return ValueError(f"X row {row}: got {X[row].tolist()}, expected objects: names (text) or integers")


def answers_of(rows: np.ndarray, n_objects: int | None, weight: np.ndarray | None = None) -> tuple[Answers, np.ndarray]:
    """`(the answers of checked rows, the objects (n,), sorted, by id)`. A response is a row of X, given as often as its
    weight; a quadruplet whose pairs share an object is a triplet. The objects are those of the rows, or 0 ... n_objects
    - 1. Raises ValueError for a row whose objects are not distinct, or not below n_objects."""
    times = np.ones(len(rows)) if weight is None else weight.astype(np.float64)
    counted_rows = np.flatnonzero(times)
    objects, ids = _numbered(rows[counted_rows], n_objects)
    comparisons: list[tuple[int, ...]] = []
    for number, row in zip(counted_rows.tolist(), ids.tolist()):
        try:
            comparison = _canonical(row)
        except InvalidEvent:
            raise ValueError(f"X row {number}: {_fault(rows[number].tolist())}") from None
        comparisons.append(comparison if len(comparison) == 4 else (*comparison[:2], comparison[0], comparison[2]))
    answer_rows = np.array(comparisons, np.int32).reshape(-1, 4)
    nobody = np.full(len(answer_rows), -1, np.int32)
    return Answers(answer_rows, times[counted_rows], nobody, counted_rows, len(objects)), objects


def _canonical(row: list[Any]) -> tuple[Any, ...]:
    return canonical_quadruplet(row[0], row[1], row[0] if len(row) == 3 else row[2], row[-1])


def _fault(row: list[Any]) -> str:
    """The error message for objects that are no comparison."""
    try:
        return str(_canonical(row))
    except InvalidEvent as error:
        return str(error)


def _numbered(rows: np.ndarray, n_objects: int | None) -> tuple[np.ndarray, np.ndarray]:
    if n_objects is None:
        objects, ids = np.unique(rows, return_inverse=True)
        return objects, ids.reshape(rows.shape)
    is_outside = (rows < 0) | (rows >= n_objects) if rows.dtype.kind == "i" else np.ones(rows.shape, bool)
    if is_outside.any():
        row = rows[is_outside.any(axis=1).argmax()].tolist()
        raise ValueError(f"X: got {row}, expected integers from 0, below n_objects = {n_objects}")
    return np.arange(n_objects), rows


def known_positions(rows: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """As `positions_in`, with one warning about unknown objects, which are predicted at chance level."""
    positions = positions_in(rows, objects)
    if (positions < 0).any():
        unknown_objects = np.unique(rows[positions < 0])
        warnings.warn(
            f"X: {(positions < 0).any(axis=1).sum()} of {len(rows)} rows contain objects that are not in the training "
            f"data ({', '.join(map(str, unknown_objects[:3].tolist()))}{', ...' if len(unknown_objects) > 3 else ''}); "
            "their answers are predicted at chance level",
            stacklevel=4,
        )
    return positions


def positions_in(rows: np.ndarray, objects: np.ndarray) -> np.ndarray:
    """The position of each object in `objects`, -1 if it is not there; a number equals its text. O(m log n).

    >>> positions_in(np.array([["7", "12", "x"]]), np.array([2, 7, 12])).tolist()
    [[1, 2, -1]]
    """
    order = np.arange(len(objects))
    if rows.dtype.kind != objects.dtype.kind:
        rows, objects = rows.astype(np.str_), objects.astype(np.str_)
        order = np.argsort(objects, kind="stable")
    index = np.minimum(np.searchsorted(objects[order], rows), len(objects) - 1)
    return np.where(objects[order][index] == rows, order[index], -1)


def weights_of(sample_weight: Any, m: int) -> np.ndarray | None:
    """The number of times that each row of X counts. Raises ValueError.

    >>> weights_of([2, 0], 2).tolist(), weights_of(None, 5)
    ([2, 0], None)
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    if weights.shape != (m,):
        raise ValueError(f"sample_weight: got shape {weights.shape}, expected ({m},), one number per row of X")
    if weights.dtype.kind not in "iufb" or (weights < 0).any() or (weights != np.rint(weights)).any():
        raise ValueError(
            f"sample_weight: got {weights.dtype} values such as {weights[:3].tolist()}, expected integers from 0: the "
            "number of times that each row of X was answered"
        )
    if len(weights) and not weights.any():
        raise ValueError("sample_weight: got only zero weights, expected at least one above zero")
    return weights.astype(np.int64)


def groups_of(groups: Any, m: int) -> np.ndarray | None:
    """The participant of each row of X, as text. Raises ValueError.

    >>> groups_of([7, "ann"], 2).tolist(), groups_of(None, 5)
    (['7', 'ann'], None)
    """
    if groups is None:
        return None
    participants = np.asarray(groups)
    if participants.shape != (m,):
        raise ValueError(f"groups: got shape {participants.shape}, expected ({m},), the participant of each row of X")
    return participants.astype(np.str_)


def snapshot_of(
    answers: Answers, objects: np.ndarray, accumulators: tuple[str, ...], groups: np.ndarray | None = None
) -> Snapshot:
    """The snapshot of an engine that has learned these answers; object i has the name str(objects[i]) and the id i.
    `groups`: the participant of each row of X (`groups_of`)."""
    single_answers = answers.of(np.repeat(np.arange(len(answers.rows)), answers.times.astype(np.int64)))
    triplets, quadruplets = single_answers.triplets(), single_answers.quadruplets()
    provenance = kinds = None
    if groups is not None:  # the row of X that an answer comes from is its event
        names, worker = np.unique(groups, return_inverse=True)
        e, response = len(groups), (triplets.response.astype(np.int32), quadruplets.response.astype(np.int32))
        kind, unset = np.zeros(e, np.int8), np.full(e, np.nan)
        provenance = Provenance(*response, kind, worker.astype(np.int32), names.tolist(), np.ones(e), unset)
        kinds = Kinds(*response, kind)
    engine = Engine(accumulators if groups is None else (*accumulators, "worker_votes"), guard=False)
    engine.learn(
        DecodedEvents(
            [str(single_answers) for single_answers in objects.tolist()],
            triplets.rows.take((0, 1, 3), axis=1),
            quadruplets.rows,
            np.zeros(len(quadruplets.rows), np.int64),
            [],
            {},
            [],
            provenance=provenance,
            kinds=kinds,
        )
    )
    return engine.snapshot()


def only_triplets(answers: Answers, user: str) -> None:
    """Raises ValueError if there are comparisons of four objects; `user` names what takes only triplets."""
    if n_quadruplets := len(answers.quadruplets().rows):
        raise ValueError(
            f"X: got {n_quadruplets} comparisons of four objects, expected triplets: {user} uses only triplets"
        )


def with_names(tags: Any) -> Any:
    """scikit-learn's tags of an estimator that takes text."""
    tags.input_tags.string = True
    return tags


def seed_of(random_state: Any) -> int:
    """A seed for a refit, from what scikit-learn calls a random state."""
    return int(check_random_state(random_state).randint(2**31))
