"""Predictors by the entries of a similarity matrix S, whose margin is S[near pair] - S[far pair]."""

from functools import lru_cache

import numpy as np

from stream_engine.counts import kernels
from stream_engine.data.compiled import njit, read_only
from stream_engine.data.symmetric_matrices import DENSE_LIMIT, dense_matrix
from stream_engine.evaluation import Predictor
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns


def differences(similarity: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) float64 S[near pair] - S[far pair] of (m, 4) rows; NaN where an object is not in S."""
    margin = np.full(len(rows), np.nan)
    inside = (rows < len(similarity)).all(axis=1)
    i, j, k, l = rows[inside].T
    margin[inside] = similarity[i, j] - similarity[k, l]
    return margin


@njit(cache=True, nogil=True)
def tally(similarity, triplets):
    """(tested, correct, undecided) over the (m, 3) triplets whose objects all have a row in S, of any dtype."""
    n, tested, correct, undecided = np.uint32(len(similarity)), 0, 0, 0
    for t in range(len(triplets)):
        a, b, c = np.uint32(triplets[t, 0]), np.uint32(triplets[t, 1]), np.uint32(triplets[t, 2])
        if a < n and b < n and c < n:
            near, far = similarity[a, b], similarity[a, c]
            tested += 1
            correct += near > far
            undecided += near == far
    return tested, correct, undecided


def by_similarity(similarity: np.ndarray) -> Predictor:
    """The predictor by an (n, n) similarity matrix.

    >>> p = by_similarity(np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0.]]))
    >>> p.margins(np.array([[0, 1, 0, 2], [2, 0, 2, 1], [0, 1, 0, 3]])).tolist()
    [1.0, 0.0, nan]
    """
    matrix = read_only(similarity, np.float64)
    return Predictor(lambda rows: differences(matrix, read_only(rows, np.int32)), _scale(similarity))


_SCALE_SAMPLE = 4096  # random pairs of entries that the scale is estimated from


def _scale(similarity: np.ndarray) -> float:
    """Root mean square of the differences between random entries of a row; 1 if all are equal."""
    a, b, c = _entries_of_rows(len(similarity))
    differences = (similarity[a, b] - similarity[a, c]).astype(float)
    return float(np.sqrt(np.mean(differences**2))) or 1.0 if len(differences) else 1.0


@lru_cache(maxsize=1)
def _entries_of_rows(n: int) -> tuple[np.ndarray, ...]:
    """Row and columns of two random entries of a row, outside of the diagonal."""
    a, b, c = np.random.default_rng(0).integers(max(n, 1), size=(3, _SCALE_SAMPLE if n else 0))
    distinct = (a != b) & (a != c) & (b != c)
    return a[distinct], b[distinct], c[distinct]


def restricted(predictor: Predictor, triplets: bool) -> Predictor:
    """The predictor for triplets alone, or for comparisons of four objects alone; NaN for the others."""

    def margins(rows: np.ndarray) -> np.ndarray:
        margin = predictor.margins(rows)
        margin[(rows[:, 0] == rows[:, 2]) != triplets] = np.nan
        return margin

    return Predictor(margins, predictor.scale)


def dense_adds(snapshot: Snapshot, accumulator: str) -> np.ndarray | None:
    """AddS as (n, n) float64 (whole numbers, exact up to 2^53); None if it is not kept, or has too few or too many
    objects."""
    state, n = snapshot.section(accumulator), len(snapshot.objects)
    if not state or not 3 <= n <= DENSE_LIMIT:
        return None
    return dense_matrix(state["i"], state["j"], state["w"], n, np.float64)


def adds3(published: Published) -> Predictor | None:
    """AddS-3, for triplets."""
    w = dense_adds(published.snapshot, "adds3")
    return None if w is None else restricted(by_similarity(w), triplets=True)


def adds4(published: Published) -> Predictor | None:
    """AddS-4, for comparisons of four objects; None before the first of them, as it then equals AddS-3."""
    w = dense_adds(published.snapshot, "adds4") if published.snapshot.counters["quadruplets"] else None
    return None if w is None else restricted(by_similarity(w), triplets=False)


def k1(published: Published) -> Predictor | None:
    """k1 (Kleindessner & von Luxburg 2017)."""
    return _kernel(published, kernels.k1)


def k2(published: Published) -> Predictor | None:
    """k2 (Kleindessner & von Luxburg 2017)."""
    return _kernel(published, kernels.k2)


MAX_KERNEL_OBJECTS, MAX_KERNEL_KEYS = 1000, 5_000_000  # above either, k1 and k2 are not computed for predictors


def _kernel(published: Published, kernel) -> Predictor | None:
    columns = triplet_columns(published.snapshot)
    if not 0 < len(columns.anchor) <= MAX_KERNEL_KEYS or columns.n_objects > MAX_KERNEL_OBJECTS:
        return None
    return by_similarity(kernel(columns))
