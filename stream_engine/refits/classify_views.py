"""What classifiers look at: how near every object is to each labelled one, in one similarity, and as kernel values.

k1 and k2 are computed for the labelled objects' rows alone, the embedding for distances to them; a learned kernel and
AddS come from their matrix. Nothing but what is said here is n by n.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.boosting import vector_machine
from stream_engine.clustering import similarity_of_snapshot
from stream_engine.clustering.similarity_of_snapshot import Factored
from stream_engine.counts.spectral import dense
from stream_engine.embedding.of_snapshot import points
from stream_engine.evaluation import coordinates as embedding
from stream_engine.evaluation import weighted_counts
from stream_engine.refits import CannotRefit, SolverFailed, kernel_learning
from stream_engine.state.snapshot import Snapshot

LEARNED = "learned"  # the kernel of the refit kernel_learning
NAMES = (*similarity_of_snapshot.SIMILARITIES, LEARNED)


class View(NamedTuple):
    """One similarity, seen from the labelled objects."""

    name: str
    near: np.ndarray  # (n, L): larger is nearer
    kernel: np.ndarray  # (n, L): for a support vector machine, see `vector_machine.prepared`
    linked: np.ndarray  # (n, L) bool: whether anything is known of the two together


class NoView(LookupError):
    """A similarity that this snapshot has nothing for; one line."""


def view(snapshot: Snapshot, name: str, labelled: np.ndarray, seed: int) -> View:
    """The view of this name on labelled objects (ids, L). Raises `NoView`, and `available_memory.TooLarge` where k1 or
    k2 do not fit. Cost as of the similarity, memory 3 n L."""
    if name == "embedding":
        found = points(snapshot, seed)
        return _of_distances(name, _squared(found.X, labelled), found.asked, labelled)
    if name == LEARNED:
        return _learned(snapshot, labelled, seed)
    near = _rows(snapshot, name, labelled)
    return View(name, near, vector_machine.prepared(near, labelled), near != 0)


def _rows(snapshot: Snapshot, name: str, labelled: np.ndarray) -> np.ndarray:
    """(n, L) of a similarity."""
    statistic, form, _ = similarity_of_snapshot.recipe(name)
    try:
        if statistic in similarity_of_snapshot.KERNELS:
            kernel = similarity_of_snapshot.KERNELS[statistic](weighted_counts.counts(snapshot, form), rows=labelled)
            return np.ascontiguousarray(kernel.T)
        W = similarity_of_snapshot.similarity(snapshot, name).W
    except (similarity_of_snapshot.NoCounts, weighted_counts.NotKept) as error:
        raise NoView(str(error)) from None
    assert not isinstance(W, Factored)  # only k1 and k2 have one
    return dense(W[:, labelled])


def _learned(snapshot: Snapshot, labelled: np.ndarray, seed: int) -> View:
    try:
        made = kernel_learning.refit(snapshot, kernel_learning.Params(), seed, evaluate=False)
    except (CannotRefit, SolverFailed) as error:
        raise NoView(str(error)) from None
    distances = embedding.squared_distances(np.asarray(made.arrays["K"]))[:, labelled]
    return _of_distances(LEARNED, distances, np.ones(len(distances), bool), labelled)


def _squared(X: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    some = X[labelled]
    return np.maximum((X**2).sum(axis=1)[:, None] + (some**2).sum(axis=1) - 2 * X @ some.T, 0.0)


def _of_distances(name: str, squared: np.ndarray, known: np.ndarray, labelled: np.ndarray) -> View:
    """Of squared distances (n, L): neighbours by them, and the kernel exp(-D^2 / 2 m), m the mean among labelled ones.
    What is not known is not linked."""
    among = squared[labelled][np.ix_(known[labelled], known[labelled])]
    mean = float(among.sum()) / max(len(among) * (len(among) - 1), 1) or 1.0
    linked = known[:, None] & known[labelled]
    near = np.where(linked, -squared, -np.inf)
    kernel = np.where(linked, np.exp(-squared / (2 * mean)), 0.0)
    kernel[labelled, np.arange(len(labelled))] = 1.0
    return View(name, near, vector_machine.prepared(kernel, labelled), linked)
