"""Spectral clustering of a similarity: the semidefinite program without X >= 0, rounded.

It uses the k - 1 leading eigenvectors of PWP (P = I - 1 1'/n), k-means, and then batch kernel k-means on sum_a B_aa /
n_a (on a kernel, this is kernel k-means, Dhillon et al. 2001, as in Kleindessner & von Luxburg 2017, sec. 4.2). Without
k, the number of clusters is one more than the number of eigenvalues before the largest eigengap, among those above
SPUR's lambda_min; if there are none, there is one cluster. All steps are sparse: O(nnz) per Lanczos step, seconds for
50,000 objects.
"""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import kernel_factors, partition, similarity_of_snapshot, stability
from stream_engine.clustering.canonical_order import canonical_order
from stream_engine.clustering.kernel_factors import KernelFactor
from stream_engine.clustering.similarity_of_snapshot import SimilarityInput
from stream_engine.counts.spectral import top_eigenpairs
from stream_engine.exports import Content
from stream_engine.exports.array_types import OBJECT, array, figure, number
from stream_engine.exports.learned import artifact_of, names_of
from stream_engine.exports.object_places import numbers
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import SPECTRAL
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

KIND = "spectral"
AXES = SPECTRAL.axes
EXPORTED = {
    "labels": array("n", "i", "cluster of each object; -1 means not clustered", within=KIND),
    "k": figure("number of clusters"),
    "objective": figure("total similarity within clusters"),
    "eigenvalues": array("e", "f", "eigenvalues that determine k, largest first"),
    "edge": figure("threshold for these eigenvalues; NaN if k was given"),
}
COLUMNS = {
    "object": OBJECT,
    "cluster": number("cluster, from 1, the largest first; -1 means not clustered", "i"),
    "cluster_label": number("the same cluster by its value in `labels`", "i"),
}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    similarity : str
        One of `similarity_of_snapshot.SIMILARITIES`: adds3, adds4, k1 (= mulk3), k2, mulk4, embedding; adds3, k1 or k2
        of what is recent or weighted (adds3_window, k2_decayed, ...).
    k : int, optional
        Number of clusters; default: from the eigenvalues of AddS.
    refine : bool
        Kernel-k-means after k-means.
    min_links : int
        An object with a nonzero similarity to fewer others gets label -1 (k1, k2 of more than 16,384 objects: one that
        answered fewer questions).
    objects : int or tuple of str, optional
        Cluster only these names, or the given number of objects with the most answers.
    rest : {'nearest', 'none'}
        The other objects get no cluster ("none"), or the nearest one by mean similarity ("nearest").
    """

    similarity: str = "adds3"
    k: Annotated[int, msgspec.Meta(ge=1)] | None = None
    refine: bool = True
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "nearest"] = "none"

    def __post_init__(self):
        similarity_of_snapshot.recipe(self.similarity)


class Clusters(NamedTuple):
    """The number of clusters, and the eigenvalues and their threshold by which it was selected; none and NaN if k was
    given."""

    k: int
    edge: float
    eigenvalues: np.ndarray


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Cluster a snapshot's objects by the leading eigenvectors of a similarity.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, so that equal clusters keep their labels.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: `labels` (n,) int32 (-1: not clustered), `k`, `objective` (sum_a B_aa / n_a), `eigenvalues` (k_max,) and
        `edge` if they determined k.

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    """
    n = len(snapshot.objects)
    labels, clusters, objective = np.full(n, -1, np.int32), Clusters(0, np.nan, np.empty(0)), 0.0
    with threadpool_limits(1):
        try:
            similarity = similarity_of_snapshot.similarity(snapshot, params.similarity)
            ids = similarity_of_snapshot.subset_ids(snapshot, similarity.W, params.min_links, params.objects)
        except similarity_of_snapshot.NoCounts as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        W = similarity_of_snapshot.restrict(similarity.W, ids)
        if not isinstance(W, KernelFactor):
            order = canonical_order(W)
            ids, W = ids[order], similarity_of_snapshot.restrict(W, order)
        additive = similarity_of_snapshot.recipe(params.similarity).additive
        if params.objects is not None and additive == params.similarity:
            similarity = similarity_of_snapshot.counted_among(similarity, ids)
        if len(ids):
            clusters = _clusters(snapshot, params, similarity, ids)
            labels[ids], objective = _clustered(W, clusters.k, seed, params.refine, progress)
            labels[np.sort(ids)] = partition.compact(labels[np.sort(ids)])
        if params.rest == "nearest":
            labels = stability.with_nearest_cluster(labels, similarity.W)
        progress(3, 3)
    labels, ari = stability.keep_numbers(labels, previous)
    arrays = {
        "labels": labels,
        "k": np.array(clusters.k),
        "objective": np.array(objective),
        "eigenvalues": clusters.eigenvalues,
        "edge": np.array(clusters.edge),
    }
    report: dict[str, Any] = {
        "objects": n,
        "clustered": len(ids),
        "comparisons": similarity.comparisons,
        "k": clusters.k,
        "k_by": "given" if params.k is not None else "eigenvalues",
        "objective": objective,
        "ari_to_previous": ari,
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _clustered(W, k: int, seed: int, refine: bool, progress: Progress) -> tuple[np.ndarray, float]:
    """`(labels, objective)`. k1 and k2 of more than 16,384 objects are clustered in feature space, from the leading
    axes."""
    # Subtracting lambda_min from the diagonal (Kleindessner & von Luxburg 2017, sec. 2.1) lowers the objective of every
    # partition into k clusters by k lambda_min, so the shift has no effect and is omitted.
    if isinstance(W, KernelFactor):
        return kernel_factors.kernel_k_means(W, k, seed, refine, progress)
    progress(1, 3, k=k)
    labels = partition.spectral_partition(W, k, seed)
    progress(2, 3, k=k)
    labels = partition.refine(W, labels) if refine else labels
    return labels, partition.value(W, labels)


MAX_CLUSTERS = 32  # if k is not set
# The threshold of the eigenvalues is this multiple of sqrt(c ln n / n), SPUR's lambda_min: so their number is the rank
# of SDP-lambda without X >= 0 (Perrot et al. 2020, sec. 3, name spectral clustering as the alternative to k-means on
# X).
LAMBDA_FACTOR = 2.0


def _clusters(snapshot: Snapshot, params: Params, similarity: SimilarityInput, ids: np.ndarray) -> Clusters:
    """The given number of clusters, or that of the largest eigengap of AddS among `ids`."""
    if params.k is not None:
        if params.k > len(ids):
            raise CannotRefit(
                f"{KIND}: got k={params.k}, but only {len(ids)} of {len(snapshot.objects)} objects have comparisons "
                "that do not cancel; lower k or read more comparisons"
            )
        return Clusters(params.k, np.nan, np.empty(0))
    additive, base, n = similarity_of_snapshot.recipe(params.similarity).additive, similarity, len(ids)
    if additive != params.similarity:
        base = similarity_of_snapshot.similarity(snapshot, additive)
        base = base if params.objects is None else similarity_of_snapshot.counted_among(base, ids)
    edge = float(LAMBDA_FACTOR * np.sqrt(base.comparisons * np.log(max(n, 2)) / n))
    if n < 2:
        return Clusters(1, edge, np.empty(0))
    values = top_eigenpairs(similarity_of_snapshot.restrict(base.W, ids), min(n - 1, MAX_CLUSTERS - 1), tol=1e-4)[0]
    above = int((values > edge).sum())
    gaps = values[:above] - np.append(values[1:], edge)[:above]
    return Clusters(1 + (int(np.argmax(gaps)) + 1 if above else 0), edge, values)


def export(published: Published) -> dict[str, Content]:
    """labels (n,) int32 (-1: not clustered), k, objective, eigenvalues, edge; CSV object, cluster (counted from 1),
    cluster_label."""
    stored_arrays = artifact_of(published, KIND).arrays
    arrays = {name: array for name, array in stored_arrays.items() if name != "criterion"}  # of version 0.1.0
    names = names_of(published, KIND, len(arrays["labels"]))
    table = {"object": names, "cluster": numbers(arrays["labels"]), "cluster_label": arrays["labels"]}
    return {KIND: Content(arrays, {KIND: table}, objects=tuple(names))}
