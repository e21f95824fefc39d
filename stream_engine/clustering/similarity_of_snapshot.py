"""From a snapshot's counts, or from answers, to the similarity matrix that is clustered.

AddS-3 and AddS-4 are read as they stand (Perrot et al. 2020, sec. 4); k1 = MulK-3, MulK-4 (App. A) and k2
(Kleindessner & von Luxburg 2017) are made from the counts; `embedding` is minus the squared distance in the embedding,
fitted anew. An object is clustered when W links it, with a nonzero entry, to enough others: one about which nothing is
known, or whose answers all cancel, gets no cluster rather than a coin toss.

k1 or k2 of many objects as its factor: K = Phi Phi^T is never made whole, only multiplied by, or made for a subset
of them. Of a landmark design for k2 the factor is the adapted, narrow one (`counts.landmark_designs`).

Kernel k-means in feature space is what Kleindessner & von Luxburg 2017 (sec. 4.2) cluster with, there to 10,000
objects: k-means on the rows of F, K ~ F F^T on its AXES leading centred axes; means do not matter to k-means.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy import sparse as sp

from stream_engine.clustering import partition
from stream_engine.clustering.similarity_matrix import checked, from_triangle
from stream_engine.counts import kernels, landmark_designs
from stream_engine.data.mapped_arrays import blocks
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.data.triplet_columns import Columns
from stream_engine.evaluation import weighted_counts
from stream_engine.evaluation.subset import UnknownObjects, ids_of_names
from stream_engine.state.snapshot import Snapshot, triplet_columns

AXES = 32  # at least, for k-means


class Factored(NamedTuple):
    """A kernel with a zero diagonal in place of an (n, n) array; it has a shape, a restriction to some objects, and
    products with few columns."""

    phi: sp.csc_array  # (n, features), rows of length 1 or 0

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return (self.phi.shape[0],) * 2

    def answered(self) -> np.ndarray:
        """(n,) how many decided questions each object has answered; for k2, beside how many others it was seen from
        anchors. O(entries)."""
        return np.bincount(self.phi.indices[self.phi.data != 0], minlength=self.shape[0])

    def restricted(self, ids: np.ndarray) -> "np.ndarray | Factored":
        """Among these objects, in this order: as an array up to KERNEL_LIMIT of them, else as a factor. O(entries) and
        the product: in BLAS with few features, as in a landmark design."""
        phi = self.phi[ids]
        if len(ids) > kernels.KERNEL_LIMIT:
            return Factored(phi)
        phi = phi.toarray() if phi.shape[1] <= kernels.MAX_FEATURE_COLUMNS else phi
        product = phi @ phi.T
        return checked(product.toarray() if sp.issparse(product) else product)

    def __matmul__(self, other: sp.csr_array) -> np.ndarray:
        """K @ other for few columns, with the diagonal of K. O(entries * columns)."""
        return (self.phi @ (self.phi.T @ other)).toarray()


def of_counts(columns: Columns, which: str) -> "np.ndarray | Factored":
    """k1 or k2 (`which`) with a zero diagonal, whole up to KERNEL_LIMIT objects."""
    if columns.n_objects <= kernels.KERNEL_LIMIT:
        return checked(kernels.k1(columns) if which == "k1" else kernels.k2(columns))
    return Factored(factor(columns, which))


def factor(columns: Columns, which: str) -> sp.csc_array:
    """Phi of k1 or k2 (`which`), as narrow as the design allows."""
    if which == "k1":
        return kernels.features1(columns)
    marks = landmark_designs.landmarks2(columns)
    return landmark_designs.features2(columns, marks) if len(marks) else kernels.features2(columns)


def clustered(
    W: Factored, k: int, seed: int, refine: bool, progress: Callable[..., bool | None]
) -> tuple[np.ndarray, float]:
    """Labels (n,) of k clusters and their value sum_a B_aa / n_a, of k-means on k - 1 eigenvectors of HKH; `refine`:
    and of k-means on F from there, where that is better. O(entries) for F with few features, and k-means.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> rows = np.array([[a, 4, 5] for a in (0, 1)] + [[a, 5, 4] for a in (2, 3)])
    >>> K = Factored(kernels.features1(columns_from_triplets(rows, 6))[:4])
    >>> labels, value = clustered(K, 2, 0, True, lambda *_, **__: None)
    >>> labels.tolist(), round(value, 6)
    ([0, 0, 1, 1], 2.0)
    """
    n = W.shape[0]
    if k <= 1 or k >= n:
        labels = np.zeros(n, np.int32) if k <= 1 else np.arange(n, dtype=np.int32)
        return labels, value(W, labels)
    axes = min(max(AXES, k), n - 1, max(W.phi.shape[1], k))
    values, vectors = kernels.eigenpairs(W.phi, axes, centred=True)
    progress(1, 3, k=k)
    labels = partition.k_means(vectors[:, : k - 1], k, seed, partition.STARTS)
    reached = value(W, labels)
    progress(2, 3, k=k, objective=reached)
    if refine:
        better = partition.k_means_from(vectors * np.sqrt(values), labels)
        if value(W, better) > reached:
            labels, reached = better, value(W, better)
    return labels, reached


def value(W: Factored, labels: np.ndarray) -> float:
    """sum_a B_aa / n_a, the diagonal of W being 0: |sum of Phi_i|^2 - (objects that answered), over n_a. O(entries)."""
    sizes = np.bincount(labels)
    inside = sp.csr_array((np.ones(len(labels)), labels, np.arange(len(labels) + 1)), shape=(len(labels), len(sizes)))
    sums = (W.phi.T @ inside).toarray()
    answering = np.bincount(labels, W.answered() > 0)
    return float((((sums**2).sum(axis=0) - answering) / sizes).sum())


class Recipe(NamedTuple):
    """How a similarity is read from a snapshot."""

    statistic: str  # adds3, adds4, k1, k2, mulk4 or embedding
    form: str  # of the comparisons: "plain" (each counts once), or a form of `weighted_counts`
    additive: str  # the AddS, of the same form, on which the number of clusters is chosen


EMBEDDER = "stream_engine.embedding.of_snapshot"  # loaded by its text: its room is above this one
KERNELS = {"k1": kernels.k1, "k2": kernels.k2}  # of triplet counts
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
        for form in weighted_counts.HOWS
    },
}


class NoCounts(ValueError):
    """The snapshot does not keep what a similarity is made from; one line."""


class SimilarityInput(NamedTuple):
    """W (n, n), zero diagonal (k1 and k2 of many objects: their factor), and how many comparisons it was made from
    (weighted: the sum of squared weights)."""

    W: np.ndarray | sparse.csr_array | Factored
    comparisons: int


def recipe(name: str) -> Recipe:
    """How the similarity of this name is read. Raises ValueError, which lists the known names.

    >>> recipe("k1_window").additive
    'adds3_window'
    """
    if name not in SIMILARITIES:
        raise ValueError(f"similarity: got {name!r}, expected one of {', '.join(SIMILARITIES)}")
    return SIMILARITIES[name]


def of_itself(name: str, W) -> float:
    """How similar an object counts to itself, so that `of_itself - W` are dissimilarities: 1 for k1 and k2, 0 for the
    embedding, the largest entry for what has no such scale."""
    statistic = recipe(name).statistic
    if statistic in KERNELS or statistic == "embedding":
        return float(statistic in KERNELS)
    return float(W.max()) if W.shape[0] else 0.0


def similarity(snapshot: Snapshot, name: str) -> SimilarityInput:
    """The similarity of this name. O(nnz) for AddS, as `kernels` says otherwise. Raises NoCounts, ValueError."""
    statistic, form, _ = recipe(name)
    if form != "plain":
        return _weighted(snapshot, name)
    n, comparisons = len(snapshot.objects), int(snapshot.counters.get("triplets", 0))
    if statistic in ("adds4", "mulk4"):  # triplets are quadruplets too
        comparisons += int(snapshot.counters.get("quadruplets", 0))
    if statistic == "mulk4":
        return SimilarityInput(
            checked(kernels.mulk4(_counts(snapshot, "quadruplet_counts", name, comparisons), n)), comparisons
        )
    if statistic == "embedding":
        return SimilarityInput(_embedded(snapshot), comparisons)
    if statistic in KERNELS:
        _counts(snapshot, "triplet_counts", name, comparisons)
        return SimilarityInput(of_counts(triplet_columns(snapshot), statistic), comparisons)
    entries = _counts(snapshot, statistic, name, comparisons)
    return SimilarityInput(from_triangle(entries["i"], entries["j"], entries["w"], n), comparisons)


def _weighted(snapshot: Snapshot, name: str) -> SimilarityInput:
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


def _embedded(snapshot: Snapshot) -> np.ndarray:
    """W_ij = -|x_i - x_j|^2 of the objects that something was asked about, 0 elsewhere. <W, X> is then twice the
    centred Gram matrix's for every X with rows that sum to 1: kernel k-means on it is k-means of the points."""
    n = len(snapshot.objects)
    if n > DENSE_LIMIT:
        raise NoCounts(
            f"similarity embedding: got {n:,} objects, expected at most {DENSE_LIMIT:,} for a matrix of distances; "
            "take adds3, or refit embedding and cluster its points"
        )
    found = import_module(EMBEDDER).points(snapshot)
    squares = (found.X**2).sum(axis=1)
    W = np.minimum(2 * found.X @ found.X.T - squares - squares[:, None], 0.0)
    W[~found.asked] = W[:, ~found.asked] = 0.0
    return checked((W + W.T) / 2)


def _counts(snapshot: Snapshot, accumulator: str, name: str, comparisons: int) -> dict[str, np.ndarray]:
    """The state of an accumulator; an empty one where there was nothing to count. Raises NoCounts."""
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


def linked(W, minimum: int) -> np.ndarray:
    """Ids of the objects with a nonzero similarity to at least `minimum` others (at least 1), increasing;
    of a factor: those that answered so many questions.

    >>> linked(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.]]), 1).tolist()
    [0, 1]
    """
    if isinstance(W, Factored):
        return np.flatnonzero(W.answered() >= max(minimum, 1))
    degree = np.diff(W.indptr) if sparse.issparse(W) else np.count_nonzero(W, axis=1)
    return np.flatnonzero(degree >= max(minimum, 1))


def subset_ids(snapshot: Snapshot, W, minimum: int, objects: int | tuple[str, ...] | None) -> np.ndarray:
    """Ids of the objects to be clustered, increasing: those `linked`; with a number the so many of them with the
    largest sum of |W_ij| over j (ties by id), with names these only; and of such a subset those that it links. O(nnz).

    Raises `NoCounts` for a name that no comparison has named.
    """
    ids = linked(W, minimum)
    if objects is None:
        return ids
    if isinstance(objects, int):
        ids = np.sort(ids[np.argsort(-_sizes(W)[ids], kind="stable")[:objects]])
    else:
        try:
            ids = np.intersect1d(ids, ids_of_names(snapshot.objects, objects))
        except UnknownObjects as error:
            raise NoCounts(str(error)) from None
    return ids[linked(restricted(W, ids), minimum)]


def _sizes(W) -> np.ndarray:
    """(n,) sum of |W_ij| over j, of a factor the questions answered; in blocks of entries where W is sparse."""
    if isinstance(W, Factored):
        return W.answered()
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
    share = float(_sizes(restricted(similarity.W, ids)).sum()) / votes if votes else 0.0
    return similarity._replace(comparisons=round(share * similarity.comparisons))


def restricted(W, ids: np.ndarray):
    """W restricted to these objects, in this order."""
    if isinstance(W, Factored):
        return W.restricted(ids)
    return W[ids][:, ids] if sparse.issparse(W) else W[np.ix_(ids, ids)]
