"""Out-of-sample extension of a kernel learned over a subset, as a factor over all objects: K ~ F F', never n by n.

A learned kernel is Y Y' + G G' over the subset, G from auxiliary kernels. Another object has its row of G from these
kernels (Nystrom: K(x, subset) (G')^+, exact towards the subset, or g(x) of McFee & Lanckriet's eq. 9), and its row of Y
from its own comparisons (`out_of_sample`). F keeps the leading directions of [Y G] over the subset.
O((r + s) d + `out_of_sample`) an object, in blocks; each block is one pass over the keys.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import Columns
from stream_engine.evaluation.subset import renumbering
from stream_engine.kernel_learning.out_of_sample import Answers, answers_of, extend

BLOCK = 1 << 15  # objects that are joined at once
SMALL = 1e-9  # eigenvalues below this fraction of the largest are 0
NOTHING, LEARNED, EXTENDED = range(3)  # what is known of an object


class Model(NamedTuple):
    """What was learned over a subset of n' objects, and how others join."""

    trace: float  # of the learned kernel, of which Y and G may hold the largest directions only
    free: np.ndarray  # (n', r): Y
    fixed: np.ndarray  # (n', s): G
    given: Callable[[np.ndarray], np.ndarray]  # ids (q,) -> (q, s): rows of G, zeros where nothing is known
    has_given: np.ndarray  # (n,) bool: who has such a row
    ridge: float
    loss: str
    votes: Callable[[Answers], Answers] = lambda answers: answers  # what of the answers counts, and how much


class Extension(NamedTuple):
    """`factor` (n, d) float32, zeros where nothing is known; `known` (n,) int8: NOTHING, LEARNED or EXTENDED."""

    factor: np.ndarray
    known: np.ndarray
    report: dict[str, Any]


def root(gram: np.ndarray, most: int) -> np.ndarray:
    """(n, r) with root root' ~ gram: its r <= `most` largest positive directions. O(n^3).

    >>> root(np.diag([4.0, 0.0, 1.0]), 1).round(3).tolist()
    [[2.0], [0.0], [0.0]]
    """
    values, vectors = np.linalg.eigh(gram)
    keep = np.flatnonzero(values > SMALL * max(values[-1], 0.0))[::-1][:most]
    vectors = vectors[:, keep] * np.sqrt(values[keep])
    largest = np.argmax(np.abs(vectors), axis=0) if len(keep) else keep
    return vectors * np.where(vectors[largest, np.arange(len(keep))] < 0, -1.0, 1.0)


def extension(columns: Columns, ids: np.ndarray, model: Model, directions: int, tolerance: float) -> Extension:
    """The factor over all of the snapshot's objects, whose triplet counts are `columns`; the subset are `ids`."""
    n, rest = columns.n_objects, np.setdiff1d(np.arange(columns.n_objects), ids)
    learned = np.concatenate([model.free, model.fixed], axis=1)
    _, sizes, axes = np.linalg.svd(learned, full_matrices=False)
    axes = axes[sizes > np.sqrt(SMALL) * sizes.max(initial=0.0)][:directions].T
    factor, known = np.zeros((n, axes.shape[1]), np.float32), np.full(n, NOTHING, np.int8)
    factor[ids], known[ids] = learned @ axes, LEARNED
    number, worst, beyond = renumbering(ids, n), 0.0, 0
    for begin in range(0, len(rest), BLOCK):
        here = rest[begin : begin + BLOCK]
        answers = model.votes(answers_of(columns, number, renumbering(here, n), len(here)))
        given = model.given(here)
        points, gap = extend(model.free, model.fixed, given, answers, model.ridge, model.loss, tolerance)
        joined = model.has_given[here] | ((np.diff(answers.start) > 0) & (model.free.shape[1] > 0))
        factor[here] = np.concatenate([points, given], axis=1) @ axes
        known[here[joined]] = EXTENDED
        worst, beyond = max(worst, float(gap.max(initial=0.0))), beyond + int((gap > tolerance).sum())
    extended = int((known == EXTENDED).sum())
    report = {
        "placed": extended,
        "nothing_known": len(rest) - extended,
        "directions": axes.shape[1],
        "directions_share": float((factor[ids].astype(float) ** 2).sum() / max(model.trace, 1e-300)),
        "placed_gap": worst,
        "placed_unfinished": beyond,
    }
    return Extension(factor, known, report)


def net(answers: Answers) -> Answers:
    """Each question with its net vote, for the side that more answers are for; ties count for none.

    >>> one = np.ones(2)
    >>> found = net(Answers(np.array([0, 2]), one, one, np.array([3.0, 1.0]), np.array([1.0, 1.0])))
    >>> found.start.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1], [2.0], [0.0])
    """
    one, votes = majority(answers), np.abs(answers.n_lo - answers.n_hi)
    votes = votes[votes > 0]
    return one._replace(n_lo=one.n_lo * votes, n_hi=one.n_hi * votes)


def majority(answers: Answers) -> Answers:
    """One vote a question, for the side that more answers are for; ties count for none.

    >>> one = np.ones(2)
    >>> found = majority(Answers(np.array([0, 2]), one, one, np.array([3.0, 1.0]), np.array([1.0, 1.0])))
    >>> found.start.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1], [1.0], [0.0])
    """
    decided = answers.n_lo != answers.n_hi
    start = np.append(0, np.cumsum(decided))[answers.start].astype(np.int64)
    lo_wins = (answers.n_lo > answers.n_hi)[decided]
    return Answers(start, answers.lo[decided], answers.hi[decided], lo_wins.astype(float), (~lo_wins).astype(float))
