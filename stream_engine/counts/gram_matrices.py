"""Gram matrices of sparse feature columns: K = Phi Phi^T, exact to rounding, symmetric.

Columns that list few objects are added pair by pair; those that list many are gathered into a dense strip and
multiplied by BLAS (Kleindessner & von Luxburg 2017, sec. 2.4).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data import available_memory
from stream_engine.data.compiled import njit, read_only

# Only the upper triangle is computed; `_finish` scales and mirrors it. No BLAS call gets more than BLOCK_ROWS rows: one
# large `D @ D.T` crashes OpenBLAS with two threads from about 20,000 rows of float64 on (numpy issue 19685). Memory:
# the result and a strip of dense columns, at most STRIP bytes or an eighth of the result.
BLOCK_ROWS = 4096  # rows of the result that one BLAS call computes: smaller ones keep several BLAS threads waiting
TILE = 64  # rows that are mirrored at once
STRIP = 64 << 20  # bytes of dense columns that are multiplied at once
DENSE_FILL = 0.125  # a column that lists a larger share of the objects is cheaper in BLAS
MIN_DENSE_COLUMNS = 8  # fewer dense columns than this do not pay for a pass over the whole result


class Features(NamedTuple):
    """Column p lists object[start[p]:start[p + 1]], increasing within a column, with their values. Not yet scaled."""

    start: np.ndarray  # (C + 1,) int64
    object: np.ndarray  # (E,) int32
    value: np.ndarray  # (E,) float64
    n_objects: int


def features(start, objects, value, n_objects: int) -> Features:
    """`Features` of these arrays, by view where their dtypes allow."""
    return Features(read_only(start, np.int64), read_only(objects, np.int32), read_only(value, np.float64), n_objects)


def lengths(phi: Features) -> tuple[np.ndarray, np.ndarray]:
    """(n,) squared length of every object's feature vector, and 1 / length, 0 for the zero vector."""
    squares, scale = np.bincount(phi.object, phi.value**2, phi.n_objects), np.zeros(phi.n_objects)
    np.divide(1.0, np.sqrt(squares), out=scale, where=squares > 0)
    return squares, scale


@njit(cache=True, nogil=True)
def _add_pairs(start, object, value, fill, place, gram):
    """Add the products of all pairs of entries of every column of at most `fill` entries.

    Without `place`: to gram[a, b], a < b. With it: to gram[place[a], b] for every a with place[a] >= 0, and every b.
    """
    for p in range(len(start) - 1):
        begin, end = start[p], start[p + 1]
        if end - begin > fill:
            continue
        if len(place) == 0:
            for x in range(begin, end - 1):
                v, row = value[x], gram[object[x]]
                for y in range(x + 1, end):
                    row[object[y]] += v * value[y]
        else:
            for x in range(begin, end):
                if place[object[x]] >= 0:
                    v, row = value[x], gram[place[object[x]]]
                    for y in range(begin, end):
                        row[object[y]] += v * value[y]


def _finish(gram: np.ndarray, scale: np.ndarray, diagonal: np.ndarray) -> None:
    """Scale the upper triangle by rows and columns, set the diagonal, mirror; rows by rows, to stay in the cache."""
    for top in range(0, len(gram), TILE):
        rows, below = slice(top, top + TILE), slice(top + TILE, None)
        right = gram[rows, top:]
        right *= scale[rows, None]
        right *= scale[top:]
        gram[below, rows] = gram[rows, below].T
        square = np.triu(gram[rows, rows], 1)
        gram[rows, rows] = square + square.T
    np.fill_diagonal(gram, diagonal)


def gram(
    phi: Features, rows: np.ndarray | None = None, *, unit: bool, dense_fill: float = DENSE_FILL, where: str = "gram"
) -> np.ndarray:
    """K = Phi Phi^T, (n, n) float64, or its `rows` (distinct ids), (len(rows), n).

    `unit` scales every object's feature vector to length 1 (zero stays zero, the diagonal is exactly 0 or 1).
    `dense_fill` = 0 sends all columns to BLAS, infinity none. Raises ValueError when memory would not suffice.

    >>> gram(features([0, 2], [0, 2], [1.0, 0.5], 3), unit=False).tolist()
    [[1.0, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.25]]
    """
    n = phi.n_objects
    if rows is not None:
        rows = np.asarray(rows, np.int64)
        if len(np.unique(rows)) != len(rows) or (len(rows) and not 0 <= rows.min() <= rows.max() < n):
            raise ValueError(
                f"{where} - rows - got an id twice, or outside 0 .. {n - 1} - expected distinct object "
                "ids - pass np.unique(rows)"
            )
    height, fill = n if rows is None else len(rows), int(min(dense_fill, 1.0) * n)
    chosen = np.flatnonzero(phi.start[1:] - phi.start[:-1] > fill)
    if dense_fill and len(chosen) < MIN_DENSE_COLUMNS:
        chosen, fill = chosen[:0], n
    width = min(len(chosen), max(STRIP, height * n) // (8 * max(n, 1)) + 1)
    check_memory(8 * n * (height + width), f"{where} - {height} x {n} float64 kernel entries")
    product, place = np.empty((height, n)), np.empty(0, np.int64)
    _multiply_strips(phi, chosen, width, rows, product)
    if rows is not None:
        place = np.full(n, -1)
        place[rows] = np.arange(height)
    _add_pairs(*phi[:3], fill, place, product)
    squares, scale = lengths(phi)
    diagonal = (squares > 0).astype(np.float64) if unit else squares
    scale = scale if unit else np.ones(n)
    if rows is None:
        _finish(product, scale, diagonal)
    else:
        product *= scale[rows][:, None]
        product *= scale
        product[np.arange(height), rows] = diagonal[rows]
    return product


def _multiply_strips(phi: Features, chosen: np.ndarray, width: int, rows, product: np.ndarray) -> None:
    """product = sum over strips of chosen columns of strip[:, rows]^T strip, upper triangle only when rows is None."""
    if not len(chosen):
        product[...] = 0.0
        return
    strip = np.empty((width, phi.n_objects))
    for begin in range(0, len(chosen), width):
        part = strip[: len(chosen[begin : begin + width])]
        part[...] = 0.0
        for row, p in zip(part, chosen[begin : begin + width].tolist()):
            entries = slice(phi.start[p], phi.start[p + 1])
            row[phi.object[entries]] = phi.value[entries]
        factor = part if rows is None else part[:, rows]
        for top in range(0, len(product), BLOCK_ROWS):
            for left_edge in range(top if rows is None else 0, phi.n_objects, BLOCK_ROWS):
                block = product[top : top + BLOCK_ROWS, left_edge : left_edge + BLOCK_ROWS]
                factors = factor[:, top : top + BLOCK_ROWS].T, part[:, left_edge : left_edge + BLOCK_ROWS]
                if begin == 0:
                    np.matmul(*factors, out=block)
                else:
                    block += factors[0] @ factors[1]


def check_memory(needed: int, what: str) -> None:
    """Raise `available_memory.TooLarge`, one line, if `needed` bytes are more than there are."""
    if needed >= 1 << 24:
        next_step = "ask for some rows (rows=...), or use the factor (kernels.features1, kernels.features2)"
        available_memory.require(what, needed, next_step)
