"""Questions, the form in which answers are fitted: each once a worker, with how often either pair was nearer.

A question is (i, j, k, l): is d(i, j) < d(k, l)? A triplet's anchor stands at i and k. Each is turned so that equal
questions are equal rows, and rows are sorted, so that neighbours in memory share objects: O(m log m) once, and an
evaluation costs by the number of different questions, not by that of answers.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.triplet_columns import Columns, first_of_equal, pair_of_entry

NOBODY = 0  # the lapse rate of answers that name no worker, and of those who answered too little


class Questions(NamedTuple):
    """Different questions, each with its answers; (q,) each."""

    rows: np.ndarray  # (q, 4) int32
    near: np.ndarray  # float64: how often d(i, j) < d(k, l) was said
    far: np.ndarray  # float64: how often the opposite was
    worker: np.ndarray  # int32: which lapse rate counts, below n_workers
    n_objects: int
    n_workers: int = 1

    @property
    def answers(self) -> float:
        """How many answers there are."""
        return float(self.near.sum() + self.far.sum())


def of_rows(
    rows: np.ndarray, n_objects: int, times: np.ndarray | None = None, worker: np.ndarray | None = None
) -> Questions:
    """Questions from (m, 4) answers d(i, j) < d(k, l), each `times` over, by `worker` (-1 is nobody: row 0 of the
    lapse rates; worker w is row w + 1). O(m log m).

    >>> q = of_rows(np.array([[0, 1, 0, 2], [0, 2, 0, 1], [1, 0, 2, 0]]), 3)
    >>> q.rows.tolist(), q.near.tolist(), q.far.tolist()
    ([[0, 1, 0, 2]], [2.0], [1.0])
    """
    rows, is_opposite = _ordered(np.asarray(rows, np.int32).reshape(-1, 4))
    times = np.ones(len(rows)) if times is None else np.asarray(times, np.float64)
    who = np.zeros(len(rows), np.int32) if worker is None else np.asarray(worker, np.int32) + 1
    n_workers = 1 + (int(who.max(initial=0)) if worker is not None else 0)
    order = _order(np.stack([rows[:, 0], rows[:, 2], rows[:, 1], rows[:, 3], who]), n_objects, n_workers)
    rows, is_opposite, times, who = rows[order], is_opposite[order], times[order], who[order]
    begins = np.flatnonzero(first_of_equal(*rows.T, who))
    if len(rows) == 0:
        return Questions(rows, np.zeros(0), np.zeros(0), who, n_objects, n_workers)
    near = np.add.reduceat(np.where(is_opposite, 0.0, times), begins)
    far = np.add.reduceat(np.where(is_opposite, times, 0.0), begins)
    return Questions(np.ascontiguousarray(rows[begins]), near, far, who[begins], n_objects, n_workers)


def _order(columns: np.ndarray, n_objects: int, n_workers: int) -> np.ndarray:
    """The order of rows by (5, m) columns of four objects and a worker, by one number a row where these are integers of
    64 bits."""
    if float(n_objects) ** 4 * n_workers >= 2.0**63:
        return np.lexsort(columns[::-1])
    key = columns[0].astype(np.int64)
    for column in columns[1:4]:
        key = key * n_objects + column
    return np.argsort(key * n_workers + columns[4], kind="stable")


def of_answers(answers: Answers) -> Questions:
    """Questions from answers; participant p has row p + 1 of the lapse rates. O(m log m)."""
    questions = of_rows(answers.rows, answers.n_objects, answers.times, answers.participant)
    return questions._replace(n_workers=1 + len(answers.participants))


def _ordered(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in their one form, and whether the near pair became the far one. Where the pairs share one object it stands
    at i and k; of two other objects, or two pairs, the smaller comes first."""
    i, j, k, l = (column.copy() for column in rows.T)
    for low, high in ((i, j), (k, l)):
        swap = low > high
        low[swap], high[swap] = high[swap], low[swap].copy()
    shared = np.select([(i == k) | (i == l), (j == k) | (j == l)], [i, j], -1)
    has = shared >= 0
    first, second = np.where(i == shared, j, i), np.where(k == shared, l, k)
    i, k = np.where(has, shared, i), np.where(has, shared, k)
    j, l = np.where(has, first, j), np.where(has, second, l)
    is_opposite = np.where(has, j > l, (i > k) | ((i == k) & (j > l)))
    ordered = np.where(is_opposite[:, None], np.stack([k, l, i, j], 1), np.stack([i, j, k, l], 1))
    return ordered.astype(np.int32), is_opposite


def of_columns(columns: Columns) -> Questions:
    """Questions from triplet counts, by nobody in particular. O(K log K)."""
    pair = pair_of_entry(columns)
    anchor, lo, hi = columns.anchor, columns.lo[pair], columns.hi[pair]
    order = np.lexsort((hi, lo, anchor))
    rows = np.stack([anchor, lo, anchor, hi], axis=1)[order].astype(np.int32)
    near, far = (np.asarray(counts, np.float64)[order] for counts in (columns.n_lo, columns.n_hi))
    return Questions(rows, near, far, np.zeros(len(rows), np.int32), columns.n_objects)


def asked_about(questions: Questions) -> np.ndarray:
    """(n,) bool: whether an object is in any answer."""
    asked = np.zeros(questions.n_objects, bool)
    asked[questions.rows.ravel()] = True
    return asked
