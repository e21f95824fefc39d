"""Triplets in the four formats of cblearn (Künstle & von Luxburg 2024), from any of them to any of them.

    list-order     (m, 3): anchor, near, far
    list-boolean   (m, 3) and (m,) bool: whether the second is nearer than the third
    list-count     (m, 3) and (m,) int: votes for the second less votes for the third
    tensor-count   T[i, j, k]: votes that j is nearer to i than k less votes that k is. Made as scipy's coo_matrix of
                   shape (n, n n), entry (i, j n + k), which cblearn takes; read as that, as `sparse.COO`, or as an
                   array (n, n, n)

Objects are whole numbers from 0 on. Lists of answers are sorted so that j < k, as in cblearn, and equal rows stay;
a tensor holds the sum of each question's votes, so that a question on which votes are even is not in it.
"""

from typing import Any

import numpy as np
from scipy import sparse

FORMATS = ("list-order", "list-boolean", "list-count", "tensor-count")


def triplets_as(format: str, X: Any, y: Any = None, n_objects: int | None = None) -> Any:
    """Convert triplets to one of cblearn's formats, and back. O(m log m).

    Parameters
    ----------
    format : str
        The format of the result, such as "list-order", "list-boolean" or "tensor-count".
    X : array, shape (m, 3), or sparse matrix
        Triplets.
    y : array, shape (m,), or tensor, optional
        Answers; by default, the triplets are in order (anchor, near, far).
    n_objects : int, optional
        Number of objects, for tensors.

    Returns
    -------
    array, tuple or sparse matrix
        An array, a pair (triplets, answers), or a sparse matrix, depending on `format`.

    Raises
    ------
    ValueError
        With the row, the value and what was expected.

    Examples
    --------
    >>> triplets_as("list-boolean", [[0, 2, 1], [1, 0, 2]])
    (array([[0, 1, 2],
           [1, 0, 2]]), array([False,  True]))
    >>> triplets_as("list-order", *triplets_as("list-boolean", [[0, 2, 1]])).tolist()
    [[0, 2, 1]]
    """
    if format not in FORMATS:
        raise ValueError(f"triplets_as: got format {format!r}, expected one of {', '.join(FORMATS)}")
    if isinstance(X, tuple) and len(X) == 2 and y is None:
        X, y = X
    ordered, n = _ordered(X, y)
    if format == "list-order":
        return ordered
    turned = ordered[:, 1] > ordered[:, 2]
    rows, votes = np.where(turned[:, None], ordered[:, [0, 2, 1]], ordered), np.where(turned, -1, 1)
    if format == "list-boolean":
        return rows, ~turned
    if format == "list-count":
        return rows, votes
    n = n_objects or n
    if len(rows) and rows.max() >= n:
        raise ValueError(f"triplets_as: got object {rows.max()}, expected numbers below n_objects = {n}")
    made = sparse.coo_matrix((votes, (rows[:, 0], rows[:, 1] * n + rows[:, 2])), shape=(n, n * n))
    made.sum_duplicates()
    made.eliminate_zeros()
    return made


def _ordered(X: Any, y: Any) -> tuple[np.ndarray, int]:
    """(m, 3) int64 anchor, near, far, a row for each vote, and how many objects there are."""
    n = None
    if sparse.issparse(X) or hasattr(X, "coords") or np.ndim(X) == 3:
        X, y, n = _entries(X)
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.dtype.kind not in "iu":
        raise ValueError(f"X: got {rows.dtype} of shape {rows.shape}, expected (m, 3) integers")
    rows = rows.astype(np.int64)
    if len(odd := np.flatnonzero((rows < 0).any(axis=1))):
        raise ValueError(f"X row {odd[0]}: got {rows[odd[0]].tolist()}, expected objects as integers from 0")
    n = int(rows.max(initial=-1)) + 1 if n is None else n
    if y is None:
        return rows, n
    answers = np.asarray(y)
    if answers.shape != (len(rows),) or answers.dtype.kind not in "biuf" or (answers != np.rint(answers)).any():
        raise ValueError(f"y: got {answers.dtype} of shape {answers.shape}, expected a boolean or a count for each row")
    votes = np.where(answers, 1, -1) if answers.dtype.kind == "b" else answers.astype(np.int64)
    if len(undecided := np.flatnonzero(votes == 0)):
        raise ValueError(f"y row {undecided[0]}: got 0 votes, expected a nonzero number: a tie has no order")
    ordered = np.where((votes > 0)[:, None], rows, rows[:, [0, 2, 1]])
    return np.repeat(ordered, np.abs(votes), axis=0), n


def _entries(tensor: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """The entries of a tensor that are not 0: (m, 3) triplets, (m,) votes, the number of objects."""
    if sparse.issparse(tensor):
        flat = sparse.coo_array(tensor)
        if len(flat.shape) == 2:
            n = flat.shape[0]
            if flat.shape != (n, n * n):
                raise ValueError(f"X: got a sparse matrix of shape {flat.shape}, expected (n, n n)")
            rows = np.stack([flat.row.astype(np.int64), flat.col // n, flat.col % n], axis=1)
            return _decided(rows, flat.data, n)
    if len(set(tensor.shape)) != 1 or len(tensor.shape) != 3:
        raise ValueError(f"X: got a tensor of shape {tensor.shape}, expected (n, n, n)")
    coords = np.stack(np.nonzero(tensor) if isinstance(tensor, np.ndarray) else tuple(tensor.coords))
    votes = tensor[tuple(coords)] if isinstance(tensor, np.ndarray) else tensor.data
    return _decided(coords.T.astype(np.int64), votes, tensor.shape[0])


def _decided(rows: np.ndarray, votes: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    kept = np.asarray(votes) != 0
    return rows[kept], np.asarray(votes)[kept], int(n)
