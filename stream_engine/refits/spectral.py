"""Spectral clustering of the similarity: the SDP without X >= 0, rounded. A refit of its own, no stand-in for the SDP.

k - 1 leading eigenvectors of PWP (P = I - 1 1'/n), k-means, then batch kernel-k-means on sum_a B_aa / n_a. Sparse
throughout: O(nnz) a Lanczos step, seconds at 50,000 objects. Without k: one cluster more than the eigenvalues before
the largest eigengap, among those above SPUR's lambda_min (the rank of SDP-lambda without X >= 0; Perrot et al. 2020,
sec. 3 names spectral clustering as the alternative to k-means on X); one cluster when none is above it. k1 of more than
16,384 objects is clustered in feature space (`sdp.factored`): the same objective, found from its leading axes.
"""

from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import factored_kernel, label_matching, partition, similarity_of_snapshot
from stream_engine.clustering.factored_kernel import Factored
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_axes import OBJECTS, numbers, speaks
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics.spectral import top_eigenpairs

KIND = "spectral"
AXES = {"labels": speaks(OBJECTS), **numbers("k", "objective", "eigenvalues", "edge")}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`similarity`: adds3, adds4, k1 (= mulk3), mulk4; adds3 or k1 of what is recent or weighted, adds3_window, k1_window,
    ..._decayed, ..._weighted, ..._trusted. `k`: the number of clusters; none: by eigenvalues, at most
    `most`, of AddS. `lambda_factor`: of sqrt(c ln n / n), the edge they must exceed. `refine`: kernel-k-means after
    k-means. `min_links`: an object with a nonzero similarity to fewer others gets label -1 (k1 of more than 16,384 objects:
    one that answered fewer questions). `objects`: cluster these names
    only, or so many with the most evidence; `rest`: the others then get no cluster, or the nearest by mean similarity."""

    similarity: Literal[similarity_of_snapshot.SOURCES] = "adds3"
    k: Annotated[int, msgspec.Meta(ge=1)] | None = None
    most: Annotated[int, msgspec.Meta(ge=2)] = 32
    lambda_factor: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    refine: bool = True
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "nearest"] = "none"


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Cluster a snapshot's objects. Arrays: labels (n,) int32 (-1: not clustered), k, objective (sum_a B_aa / n_a),
    eigenvalues (k_max,) and edge where k was chosen by them. Raises `CannotRefit`."""
    n = len(snapshot.objects)
    labels, edge, values = np.full(n, -1, np.int32), np.nan, np.empty(0)
    with threadpool_limits(1):
        try:
            found = similarity_of_snapshot.similarity(snapshot, params.similarity)
            ids = similarity_of_snapshot.chosen(snapshot, found.W, params.min_links, params.objects)
        except similarity_of_snapshot.NoCounts as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        W, k, objective = similarity_of_snapshot.part(found.W, ids), 0, 0.0
        if not isinstance(W, Factored):
            order = label_matching.canonical_order(W)
            ids, W = ids[order], similarity_of_snapshot.part(W, order)
        if len(ids):
            k, edge, values = _clusters(snapshot, params, found, ids)
            labels[ids], objective = _clustered(W, k, seed, params.refine, progress)
            at = np.sort(ids)
            labels[at] = partition.compact(labels[at])
        labels = label_matching.joined(labels, found.W) if params.rest == "nearest" else labels
        progress(3, 3)
    labels, ari = label_matching.continued(labels, previous)
    arrays = {
        "labels": labels,
        "k": np.array(k),
        "objective": np.array(objective),
        "eigenvalues": values,
        "edge": np.array(edge),
    }
    report: dict[str, Any] = {
        "objects": n,
        "clustered": len(ids),
        "comparisons": found.comparisons,
        "k": k,
        "k_by": "given" if params.k is not None else "eigenvalues",
        "objective": objective,
        "ari_to_previous": ari,
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, msgspec.to_builtins(params), seed, arrays, report)


def _clustered(W, k: int, seed: int, refine: bool, progress) -> tuple[np.ndarray, float]:
    """Labels and their value."""
    if isinstance(W, Factored):
        return factored_kernel.clustered(W, k, seed, refine, progress)
    progress(1, 3, k=k)
    found = partition.spectral_partition(W, k, seed)
    progress(2, 3, k=k)
    found = partition.refined(W, found) if refine else found
    return found, partition.value(W, found)


def _clusters(snapshot, params: Params, found, ids) -> tuple[int, float, np.ndarray]:
    """k, the edge and the eigenvalues it was compared with (NaN and none when k was given)."""
    if params.k is not None:
        if params.k > len(ids):
            raise CannotRefit(
                f"{KIND}: got k={params.k}, but only {len(ids)} of {len(snapshot.objects)} objects have "
                "comparisons that do not cancel; lower k or feed more comparisons"
            )
        return params.k, np.nan, np.empty(0)
    additive = similarity_of_snapshot.ADDITIVE[params.similarity]
    base = found if additive == params.similarity else similarity_of_snapshot.similarity(snapshot, additive)
    n = len(ids)
    edge = float(params.lambda_factor * np.sqrt(base.comparisons * np.log(max(n, 2)) / n))
    if n < 2:
        return 1, edge, np.empty(0)
    values = top_eigenpairs(similarity_of_snapshot.part(base.W, ids), min(n - 1, params.most - 1), tol=1e-4)[0]
    above = int((values > edge).sum())
    gaps = values[:above] - np.append(values[1:], edge)[:above]
    return 1 + (int(np.argmax(gaps)) + 1 if above else 0), edge, values
