"""From a snapshot's counts, or from answers, to the similarity matrix that is clustered."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.clustering.kernel_factors import KernelFactor, of_counts
from stream_engine.clustering.similarity_matrix import checked, from_triangle
from stream_engine.counts import kernels
from stream_engine.data.mapped_arrays import blocks
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.evaluation import weighted_counts
from stream_engine.evaluation.subset import UnknownObjects, ids_of_names
from stream_engine.state.snapshot import Snapshot, triplet_columns

KERNELS = {"k1": kernels.k1, "k2": kernels.k2}  # of triplet counts


class Recipe(NamedTuple):
    """How a similarity is read from a snapshot."""

    statistic: str  # adds3, adds4, k1, k2, mulk4 or embedding
    form: str  # of the comparisons: "plain" (each counts once), or a form of `weighted_counts`
    additive: str  # the AddS, of the same form, on which the number of clusters is chosen


# AddS-3 and AddS-4 are read as they stand (Perrot et al. 2020, sec. 4); k1 = MulK-3, MulK-4 (App. A) and k2
# (Kleindessner & von Luxburg 2017) are computed from the counts; `embedding` is minus the squared distance in a new
# embedding.
SIMILARITIES = {
    "adds3": Recipe("adds3", "plain", "adds3"),
    "adds4": Recipe("adds4", "plain", "adds4"),
    "k1": Recipe("k1", "plain", "adds3"),
    "k2": Recipe("k2", "plain", "adds3"),
    "mulk3": Recipe("k1", "plain", "adds3"),
    "mulk4": Recipe("mulk4", "plain", "adds4"),
    "embedding": Recipe("embedding", "plain", "adds3"),
    **{
        f"{statistic}_{form}": Recipe(statistic, form, f"adds3_{form}")
        for statistic in ("adds3", "k1", "k2")
        for form in weighted_counts.WEIGHTINGS
    },
}


class NoCounts(ValueError):
    """The snapshot lacks the counts that a similarity is computed from."""


class SimilarityInput(NamedTuple):
    """W (n, n), zero diagonal (k1 and k2 of many objects: their factor), and how many comparisons it was made from
    (weighted: the sum of squared weights)."""

    W: np.ndarray | sparse.csr_array | KernelFactor
    comparisons: int


def recipe(name: str) -> Recipe:
    """How the similarity of this name is read. Raises ValueError, which lists the known names.

    >>> recipe("k1_window").additive
    'adds3_window'
    """
    if name not in SIMILARITIES:
        raise ValueError(f"similarity: got {name!r}, expected one of {', '.join(SIMILARITIES)}")
    return SIMILARITIES[name]


def self_similarity(name: str, W) -> float:
    """The similarity of an object to itself, so that `self_similarity - W` are dissimilarities.

    It is 1 for k1 and k2, 0 for the embedding, and the largest entry of W for AddS and MulK-4, which have no such
    scale.
    """
    statistic = recipe(name).statistic
    if statistic in KERNELS or statistic == "embedding":
        return float(statistic in KERNELS)
    return float(W.max()) if W.shape[0] else 0.0


def similarity(snapshot: Snapshot, name: str) -> SimilarityInput:
    """The similarity of this name. O(nnz) for AddS; for the others see `kernels`. Raises NoCounts, ValueError."""
    statistic, form, _ = recipe(name)
    if form != "plain":
        return _weighted_similarity(snapshot, name)
    n, comparisons = len(snapshot.objects), int(snapshot.counters.get("triplets", 0))
    if statistic in ("adds4", "mulk4"):  # triplets are quadruplets too
        comparisons += int(snapshot.counters.get("quadruplets", 0))
    if statistic == "mulk4":
        return SimilarityInput(
            checked(kernels.mulk4(_counts_of(snapshot, "quadruplet_counts", name, comparisons), n)), comparisons
        )
    if statistic == "embedding":
        return SimilarityInput(_embedding_similarity(snapshot), comparisons)
    if statistic in KERNELS:
        _counts_of(snapshot, "triplet_counts", name, comparisons)
        return SimilarityInput(of_counts(triplet_columns(snapshot), statistic), comparisons)
    entries = _counts_of(snapshot, statistic, name, comparisons)
    return SimilarityInput(from_triangle(entries["i"], entries["j"], entries["w"], n), comparisons)


def _weighted_similarity(snapshot: Snapshot, name: str) -> SimilarityInput:
    """A similarity in which not every comparison counts once."""
    statistic, form, _ = SIMILARITIES[name]
    try:
        if statistic in KERNELS:
            kernel = of_counts(weighted_counts.counts(snapshot, form), statistic)
            return SimilarityInput(kernel, int(snapshot.counters.get("triplets", 0)))
        adds = weighted_counts.adds3(snapshot, form)
    except weighted_counts.NotKept as error:
        raise NoCounts(f"similarity {name}: {error}") from None
    return SimilarityInput(from_triangle(adds.i, adds.j, adds.w, len(snapshot.objects)), adds.comparisons)


def _embedding_similarity(snapshot: Snapshot) -> np.ndarray:
    """W_ij = -|x_i - x_j|^2 of the objects with answers, 0 elsewhere.

    <W, X> is then twice that of the centred Gram matrix for every X with rows that sum to 1, so kernel k-means on W is
    k-means on the points.
    """
    from stream_engine.embedding import of_snapshot  # with its kernels, which the other similarities do not need

    n = len(snapshot.objects)
    if n > DENSE_LIMIT:
        raise NoCounts(
            f"similarity embedding: got {n:,} objects, expected at most {DENSE_LIMIT:,} for a matrix of distances; "
            "take adds3, or refit embedding and cluster its points"
        )
    embedding = of_snapshot.points(snapshot)
    squares = (embedding.X**2).sum(axis=1)
    W = np.minimum(2 * embedding.X @ embedding.X.T - squares - squares[:, None], 0.0)
    W[~embedding.asked] = W[:, ~embedding.asked] = 0.0
    return checked((W + W.T) / 2)


def _counts_of(snapshot: Snapshot, accumulator: str, name: str, comparisons: int) -> dict[str, np.ndarray]:
    """The state of an accumulator; an empty one if there was nothing to count. Raises NoCounts."""
    arrays = snapshot.section(accumulator)
    if not arrays and comparisons:
        raise NoCounts(
            f"similarity {name}: the snapshot has no {accumulator}; add it to `accumulators`, or choose another "
            "similarity"
        )
    return arrays or {
        "i": np.empty(0, np.int32),
        "j": np.empty(0, np.int32),
        "k": np.empty(0, np.int32),
        "l": np.empty(0, np.int32),
        "w": np.empty(0, np.int64),
        "n_lo": np.empty(0, np.int64),
        "n_hi": np.empty(0, np.int64),
    }


def linked_ids(W, minimum: int) -> np.ndarray:
    """Ids of the objects with a nonzero similarity to at least `minimum` others (at least 1), increasing; of a kernel
    factor, of those with so many decided questions.

    Only these are clustered: an object without answers, or whose answers all cancel, gets no cluster rather than a
    random one.

    >>> linked_ids(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.]]), 1).tolist()
    [0, 1]
    """
    if isinstance(W, KernelFactor):
        return np.flatnonzero(W.n_answered() >= max(minimum, 1))
    degree = np.diff(W.indptr) if sparse.issparse(W) else np.count_nonzero(W, axis=1)
    return np.flatnonzero(degree >= max(minimum, 1))


def subset_ids(snapshot: Snapshot, W, minimum: int, objects: int | tuple[str, ...] | None) -> np.ndarray:
    """Ids of the objects to be clustered, increasing: `linked_ids`, or a subset of them that is linked within itself.

    `objects` is the number of objects with the largest sum of |W_ij| over j (ties by id), or their names. O(nnz).
    Raises `NoCounts` for a name that is in no comparison.
    """
    ids = linked_ids(W, minimum)
    if objects is None:
        return ids
    if isinstance(objects, int):
        ids = np.sort(ids[np.argsort(-_sizes(W)[ids], kind="stable")[:objects]])
    else:
        try:
            ids = np.intersect1d(ids, ids_of_names(snapshot.objects, objects))
        except UnknownObjects as error:
            raise NoCounts(str(error)) from None
    return ids[linked_ids(restrict(W, ids), minimum)]


def _sizes(W) -> np.ndarray:
    """(n,) sum of |W_ij| over j; of a kernel factor, the number of decided questions. A sparse W is read in blocks."""
    if isinstance(W, KernelFactor):
        return W.n_answered()
    if not sparse.issparse(W):
        return np.abs(W).sum(axis=1)
    sums = np.zeros(W.shape[0])
    for entries in blocks(W.nnz):
        first, end = np.searchsorted(W.indptr, (entries.start, entries.stop - 1), "right") - 1
        start = np.maximum(W.indptr[first : end + 1], entries.start) - entries.start
        rows = np.repeat(np.arange(first, end + 1), np.diff(start, append=entries.stop - entries.start))
        sums[first : end + 1] += np.bincount(rows - first, np.abs(W.data[entries]), end + 1 - first)
    return sums


def counted_among(similarity: SimilarityInput, ids: np.ndarray) -> SimilarityInput:
    """An AddS with the number of comparisons that it has about these objects: their share of its votes. O(nnz).

    >>> one = SimilarityInput(np.array([[0, 2, -1], [2, 0, 1], [-1, 1, 0.0]]), 8)
    >>> counted_among(one, np.array([0, 1])).comparisons
    4
    """
    votes = float(_sizes(similarity.W).sum())
    share = float(_sizes(restrict(similarity.W, ids)).sum()) / votes if votes else 0.0
    return similarity._replace(comparisons=round(share * similarity.comparisons))


def restrict(W, ids: np.ndarray):
    """W restricted to these objects, in this order."""
    if isinstance(W, KernelFactor):
        return W.among(ids)
    return W[ids][:, ids] if sparse.issparse(W) else W[np.ix_(ids, ids)]
