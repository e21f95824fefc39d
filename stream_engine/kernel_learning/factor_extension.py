"""Out-of-sample extension of a kernel learned over a subset, as a factor over all objects: K ~ F F', never n by n."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import Columns
from stream_engine.evaluation.subset import renumbering
from stream_engine.kernel_learning.out_of_sample import AnchorTriplets, answers_of, extend

NO_DATA, IN_SUBSET, PLACED = range(3)  # where an object's row of the factor comes from
MIN_RELATIVE_EIGENVALUE = 1e-9  # smaller ones count as 0


# A learned kernel is Y Y' + G G' over the subset, G from auxiliary kernels. Another object has its row of G from these
# kernels (Nystrom: K(x, subset) (G')^+, exact towards the subset, or g(x) of McFee & Lanckriet's eq. 9), and its row of
# Y from its own comparisons (`out_of_sample`). F keeps the leading directions of [Y G] over the subset. O((r + s) d +
# `out_of_sample`) an object, in blocks; each block is one pass over the keys.


class Model(NamedTuple):
    """A kernel learned over a subset of n' objects, as coordinates, and how other objects get theirs."""

    trace: float  # of the learned kernel, of which Y and G may hold the largest directions only
    Y: np.ndarray  # (n', r)
    G: np.ndarray  # (n', s)
    g: Callable[[np.ndarray], np.ndarray]  # ids (q,) of other objects -> (q, s) their rows of G, zeros without data
    has_g: np.ndarray  # (n,) bool: whether an object has such a row
    ridge: float
    loss: str
    votes: Callable[[AnchorTriplets], AnchorTriplets] = lambda answers: answers  # weights of the answers


class Extension(NamedTuple):
    """`factor` (n, d) float32, zeros for objects without data; `source` (n,) int8: NO_DATA, IN_SUBSET or PLACED."""

    factor: np.ndarray
    source: np.ndarray
    report: dict[str, Any]


def root(gram: np.ndarray, max_directions: int) -> np.ndarray:
    """(n, r) with root root' ~ gram: its r <= `max_directions` largest positive directions. O(n^3).

    >>> root(np.diag([4.0, 0.0, 1.0]), 1).round(3).tolist()
    [[2.0], [0.0], [0.0]]
    """
    values, vectors = np.linalg.eigh(gram)
    keep = np.flatnonzero(values > MIN_RELATIVE_EIGENVALUE * max(values[-1], 0.0))[::-1][:max_directions]
    vectors = vectors[:, keep] * np.sqrt(values[keep])
    largest_entry = np.argmax(np.abs(vectors), axis=0) if len(keep) else keep
    return vectors * np.where(vectors[largest_entry, np.arange(len(keep))] < 0, -1.0, 1.0)


BLOCK_SIZE = 1 << 15  # objects that are placed at once


def extension(columns: Columns, ids: np.ndarray, model: Model, directions: int, tolerance: float) -> Extension:
    """The factor over all of the snapshot's objects, whose triplet counts are `columns`; the subset are `ids`."""
    n, other_ids = columns.n_objects, np.setdiff1d(np.arange(columns.n_objects), ids)
    subset_points = np.concatenate([model.Y, model.G], axis=1)
    _, sizes, axes = np.linalg.svd(subset_points, full_matrices=False)
    axes = axes[sizes > np.sqrt(MIN_RELATIVE_EIGENVALUE) * sizes.max(initial=0.0)][:directions].T
    factor, source = np.zeros((n, axes.shape[1]), np.float32), np.full(n, NO_DATA, np.int8)
    factor[ids], source[ids] = subset_points @ axes, IN_SUBSET
    number, largest_gap, n_unfinished = renumbering(ids, n), 0.0, 0
    for begin in range(0, len(other_ids), BLOCK_SIZE):
        block_ids = other_ids[begin : begin + BLOCK_SIZE]
        answers = model.votes(answers_of(columns, number, renumbering(block_ids, n), len(block_ids)))
        g = model.g(block_ids)
        points, gap = extend(model.Y, model.G, g, answers, model.ridge, model.loss, tolerance)
        is_placed = model.has_g[block_ids] | ((np.diff(answers.start) > 0) & (model.Y.shape[1] > 0))
        factor[block_ids] = np.concatenate([points, g], axis=1) @ axes
        source[block_ids[is_placed]] = PLACED
        largest_gap, n_unfinished = (
            max(largest_gap, float(gap.max(initial=0.0))),
            n_unfinished + int((gap > tolerance).sum()),
        )
    n_placed = int((source == PLACED).sum())
    report = {
        "placed": n_placed,
        "nothing_known": len(other_ids) - n_placed,
        "directions": axes.shape[1],
        "directions_share": float((factor[ids].astype(float) ** 2).sum() / max(model.trace, 1e-300)),
        "placed_gap": largest_gap,
        "placed_unfinished": n_unfinished,
    }
    return Extension(factor, source, report)
