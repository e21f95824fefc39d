"""Kernel PCA: a map of the objects from a similarity, without numerical optimisation.

    HKH = V diag(l) V^T,  H = I - 1 1^T / n,  coordinates = V_d diag(l_d)^(1/2)

(Schoelkopf, Smola & Mueller 1999; Kleindessner & von Luxburg 2017, sec. 4.1, on k1 and k2.) With `shift`, K is replaced
by K - lambda_min I (sec. 2.1, diagonal dominance): the eigenvectors stay the same and the eigenvalues decrease by
lambda_min, so only the lengths of the axes and the explained shares change. If the similarity is not a kernel (AddS),
lambda_min is that of HKH, which is negative, and the shift makes it a kernel. For the embedding, K is minus half the
squared distance, and HKH is the Gram matrix of its points. k1 and k2 of too many objects for a matrix use their factor.
Cost: O(n^2 d) per Lanczos step; O(n^3) for lambda_min of a matrix, which is little compared with k1 up to a few
thousand objects.
"""

from typing import Annotated, Any

import msgspec
import numpy as np
from scipy.linalg import eigvalsh
from threadpoolctl import threadpool_limits

from stream_engine.clustering import similarity_of_snapshot
from stream_engine.clustering.similarity_of_snapshot import Factored
from stream_engine.counts import kernels
from stream_engine.counts.spectral import centred, dense, top_eigenpairs
from stream_engine.data import available_memory
from stream_engine.exports import Content
from stream_engine.exports.declarations import OBJECT, array, figure, number
from stream_engine.exports.learned import artifact_of, names_of
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import KERNEL_PCA
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

KIND = "kernel_pca"
AXES = KERNEL_PCA.axes
EXPORTED = {
    "coordinates": array("n, d", "f", "coordinates of the objects", within=KIND),
    "mapped": array("n", "b", "whether the object is on the map; the others are at 0", within=KIND),
    "eigenvalues": array("d", "f", "eigenvalue of each axis", "axes"),
    "lambda_min": figure("smallest eigenvalue; the shift of the kernel, if requested"),
}
COLUMNS = {
    "object": OBJECT,
    "mapped": number("whether it is on the map; otherwise its coordinates are 0", "b"),
    "axis_*": number("its coordinates"),
}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    similarity : str
        One of `similarity_of_snapshot.SIMILARITIES`: k1, k2, adds3, adds4, mulk4, embedding; adds3, k1 or k2 of what is
        recent or weighted (k1_window, k2_decayed, ...).
    dimensions : int
        Number of axes.
    shift : bool
        Subtract the smallest eigenvalue from the diagonal.
    min_links : int
        An object with a nonzero similarity to fewer others is at 0, like an object without answers.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    """

    similarity: str = "k1"
    dimensions: Annotated[int, msgspec.Meta(ge=1)] = 2
    shift: bool = True
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None

    def __post_init__(self):
        similarity_of_snapshot.recipe(self.similarity)


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Map a snapshot's objects by kernel PCA.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, not used.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: `coordinates` (n, d) float64, 0 where `mapped` (n,) bool is False; `eigenvalues` (d,) of the centred
        kernel, after the shift; `lambda_min` () of the kernel (NaN without a shift).

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    """
    n, d = len(snapshot.objects), params.dimensions
    coordinates, eigenvalues, mapped = np.zeros((n, d)), np.zeros(d), np.zeros(n, bool)
    smallest, total = np.nan, 0.0
    with threadpool_limits(1):
        try:
            similarity = similarity_of_snapshot.similarity(snapshot, params.similarity)
            ids = similarity_of_snapshot.subset_ids(snapshot, similarity.W, params.min_links, params.objects)
            if not isinstance(similarity.W, Factored):
                available_memory.require(
                    f"kernel PCA of {len(ids):,} objects",
                    available_memory.matrices(3, len(ids)),
                    "raise --memory-gb, or choose objects (--set objects=5000)",
                )
        except (available_memory.TooLarge, similarity_of_snapshot.NoCounts) as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        W = similarity_of_snapshot.restricted(similarity.W, ids)
        progress(1, 2)
        if len(ids) > 1:
            vectors, values, smallest, total = _axes(W, params)
            eigenvalues[: len(values)] = values
            coordinates[ids, : len(values)] = vectors * np.sqrt(values)
            mapped[ids] = True
        progress(2, 2)
    arrays = {
        "coordinates": coordinates,
        "mapped": mapped,
        "eigenvalues": eigenvalues,
        "lambda_min": np.array(smallest),
    }
    report: dict[str, Any] = {
        "objects": n,
        "mapped": int(mapped.sum()),
        "comparisons": similarity.comparisons,
        "lambda_min": None if np.isnan(smallest) else float(smallest),
        "explained": (eigenvalues / total).tolist() if total > 0 else [0.0] * d,
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _axes(W, params: Params) -> tuple[np.ndarray, np.ndarray, float, float]:
    """`(vectors (m, r), values (r,) >= 0, lambda_min, sum of all eigenvalues)` of the centred kernel."""
    m, r = W.shape[0], min(params.dimensions, W.shape[0] - 1)
    if isinstance(W, Factored):
        return _axes_of_factor(W, r, params.shift)
    statistic = similarity_of_snapshot.recipe(params.similarity).statistic
    if statistic in similarity_of_snapshot.KERNELS:  # W is without its diagonal of ones
        K = dense(W) + np.eye(m)
        whole = K
    else:
        K = dense(W) / 2 if statistic == "embedding" else dense(W)
        whole = centred(K)
    smallest = float(eigvalsh(whole, subset_by_index=[0, 0])[0]) if params.shift else np.nan
    values, vectors = top_eigenpairs(K, r)
    up = -smallest if params.shift else 0.0
    total = float(np.trace(K) - K.sum() / m + (m - 1) * up)
    return vectors, np.maximum(values + up, 0.0), smallest, total


def _axes_of_factor(W: Factored, r: int, shift: bool) -> tuple[np.ndarray, np.ndarray, float, float]:
    m, width = W.phi.shape
    if shift and width >= m:
        raise CannotRefit(
            f"{KIND}: the shift of {m:,} objects, expected at most {kernels.KERNEL_LIMIT:,} for a matrix; set shift to "
            "false, or choose objects (--set objects=5000)"
        )
    values, vectors = kernels.eigenpairs(W.phi, r, centred=True)
    mean = np.asarray(W.phi.mean(axis=0)).reshape(-1)
    total = float((W.phi.data**2).sum() - m * mean @ mean)
    return vectors, np.maximum(values, 0.0), 0.0 if shift else np.nan, total  # fewer features than objects: no shift


def export(published: Published) -> dict[str, Content]:
    """coordinates (n, d) float64, mapped (n,) bool (the others lie at 0), eigenvalues (d,), lambda_min; CSV
    object,mapped,axis_1 ... axis_d."""
    arrays = artifact_of(published, KIND).arrays
    points = np.asarray(arrays["coordinates"])
    axes = {f"axis_{number + 1}": points[:, number] for number in range(points.shape[1])}
    names = names_of(published, KIND, len(points))
    table = {"object": names, "mapped": arrays["mapped"], **axes}
    return {KIND: Content(dict(arrays), {KIND: table}, objects=tuple(names))}
