"""Hierarchies from comparisons: average and complete linkage on a similarity, scored by the comparison-based revenue.

    revenue(H) = sum over triplets (i, j, k) of |H(i v k)| - |H(i v j)| = - sum_{i < j} W_ij |H(i v j)|,   W = AddS-3

where |H(i v j)| is the number of objects below the lowest node that contains both; the same with AddS-4 for quadruplets
(Mandal, Perrot & Ghoshdastidar 2023, "A Revenue Function for Comparison-Based Hierarchical Clustering"). Higher is
better: near pairs should meet at a low node. O(n^2) time and n^2 / 2 doubles.
"""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from threadpoolctl import threadpool_limits

from stream_engine.clustering import similarity_of_snapshot
from stream_engine.clustering.canonical_order import canonical_order
from stream_engine.clustering.kernel_factors import KernelFactor
from stream_engine.clustering.similarity_of_snapshot import SimilarityInput
from stream_engine.counts.kernels import KERNEL_LIMIT
from stream_engine.counts.spectral import dense
from stream_engine.data import available_memory
from stream_engine.evaluation.connection import are_connected, components
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import HIERARCHY
from stream_engine.state.snapshot import Snapshot

KIND = "hierarchy"
METHODS = ("average", "complete")
AXES = HIERARCHY.axes


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    similarity : str
        One of `similarity_of_snapshot.SIMILARITIES`: adds3, adds4, k1 (= mulk3), k2, mulk4, embedding; adds3, k1 or k2
        of what is recent or weighted (adds3_window, k2_decayed, ...).
    method : {'average', 'best', 'complete'}
        Average, complete, or best: the one with the larger revenue.
    min_links : int
        An object with a nonzero similarity to fewer others is excluded.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    """

    similarity: str = "adds3"
    method: Literal["average", "complete", "best"] = "best"
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None

    def __post_init__(self):
        similarity_of_snapshot.recipe(self.similarity)


class Tree(NamedTuple):
    """One dendrogram, and its comparison-based revenue (Mandal, Perrot & Ghoshdastidar 2023)."""

    method: str
    linkage: np.ndarray  # (m - 1, 4) float64, scipy's format
    revenue: float


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Build a tree of the objects by linkage; sets that were never compared with each other are joined last.

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
        Arrays: `linkage` (m - 1, 4) in scipy's format, where leaf t is the object `leaves[t]` (m,) int32; `revenue` and
        `revenue_bound`.

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    """
    with threadpool_limits(1):
        try:
            similarity = similarity_of_snapshot.similarity(snapshot, params.similarity)
            ids = similarity_of_snapshot.subset_ids(snapshot, similarity.W, params.min_links, params.objects)
            available_memory.require(
                f"linkage of {len(ids):,} objects",
                available_memory.matrices(3 if _is_additive(params) else 4, len(ids)),
                "raise --memory-gb, or choose objects (--set objects=5000)",
            )
            additive_input = _additive_similarity(snapshot, params, similarity)
            if params.objects is not None:
                additive_input = similarity_of_snapshot.counted_among(additive_input, ids)
        except (available_memory.TooLarge, similarity_of_snapshot.NoCounts) as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        W = similarity_of_snapshot.restrict(similarity.W, ids)
        if isinstance(W, KernelFactor):
            raise CannotRefit(
                f"{KIND}: {params.similarity} of {len(ids):,} objects, expected at most {KERNEL_LIMIT:,}; choose "
                "objects (--set objects=5000)"
            )
        order = canonical_order(W)
        ids, W = ids[order], dense(similarity_of_snapshot.restrict(W, order))
        additive = W if _is_additive(params) else dense(similarity_of_snapshot.restrict(additive_input.W, ids))
        if (sets := components(snapshot)) is not None and not are_connected(sets):
            W = _below_across(W, sets[ids])
        trees = []
        for method in METHODS if params.method == "best" else (params.method,):
            trees.append(tree(W, method, additive, similarity_of_snapshot.self_similarity(params.similarity, W)))
            progress(len(trees), len(METHODS), revenue=trees[-1].revenue)
        best = max(trees, key=lambda t: t.revenue)
    bound = revenue_bound(additive)
    arrays = {
        "linkage": best.linkage,
        "leaves": ids.astype(np.int32),
        "revenue": np.array(best.revenue),
        "revenue_bound": np.array(bound),
    }
    report: dict[str, Any] = {
        "objects": len(snapshot.objects),
        "leaves": len(ids),
        "comparisons": additive_input.comparisons,
        "method": best.method,
        "revenue": {t.method: t.revenue for t in trees},
        "revenue_per_comparison": best.revenue / additive_input.comparisons if additive_input.comparisons else 0.0,
        "share_of_bound": best.revenue / bound if bound else None,
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _below_across(W: np.ndarray, set_of: np.ndarray) -> np.ndarray:
    """W (m, m) with less similarity between objects of two sets than within any, so that sets are joined last: nothing
    is known of them together. O(m^2)."""
    low, high = float(W.min()), float(W.max())
    return np.where(set_of[:, None] == set_of, W, low - max(high - low, 1.0))


def _is_additive(params: Params) -> bool:
    return similarity_of_snapshot.recipe(params.similarity).additive == params.similarity


def _additive_similarity(snapshot: Snapshot, params: Params, similarity: SimilarityInput) -> SimilarityInput:
    """The AddS of a tree's revenue: the revenue is about comparisons, so it always uses AddS."""
    additive = similarity_of_snapshot.recipe(params.similarity).additive
    return similarity if _is_additive(params) else similarity_of_snapshot.similarity(snapshot, additive)


def tree(W: np.ndarray, method: str, additive: np.ndarray | None = None, of_itself: float | None = None) -> Tree:
    """Linkage of a similarity (m, m) and its revenue on AddS (`additive`; None: W). `of_itself`: the similarity of an
    object to itself, at least every entry; None: the largest entry. O(m^2).

    Linkage uses the dissimilarities `of_itself` - W, which merge in the order of W. For k1 and k2 that is 1 - W, half
    the squared distance in feature space (Kleindessner & von Luxburg 2017, sec. 4.1: complete linkage of the food data
    on k1); for the embedding it is 0 - W, the squared distance.

    >>> W = np.array([[0, 2, -1], [2, 0, -1], [-1, -1, 0.]])
    >>> average = tree(W, "average")
    >>> average.linkage[:, :2].astype(int).tolist(), average.linkage[:, 3].tolist(), average.revenue
    ([[0, 1], [2, 3]], [2.0, 3.0], 2.0)
    """
    if len(W) < 2:
        return Tree(method, np.empty((0, 4)), 0.0)
    distance = np.maximum((W.max() if of_itself is None else of_itself) - W, 0.0)
    np.fill_diagonal(distance, 0.0)
    merges = linkage(squareform(distance, checks=False), method)
    return Tree(method, merges, revenue(W if additive is None else additive, merges))


def revenue(W: np.ndarray, merges: np.ndarray) -> float:
    """- sum_{i < j} W_ij |H(i v j)|, minus Dasgupta's cost on W, for a linkage in scipy's format. O(m^2) time and
    memory.

    >>> revenue(np.array([[0, 2, -1], [2, 0, -1], [-1, -1, 0.]]), np.array([[0, 2, 1., 2], [1, 3, 2., 3]]))
    -1.0
    """
    sums = W.copy()  # row and column of a cluster's representative: sums of W towards every other cluster's objects
    representative = list(range(len(W)))
    total = 0.0
    for left, right, _, size in merges:
        a, b = representative[int(left)], representative[int(right)]
        total -= sums[a, b] * size
        sums[a] += sums[b]
        sums[:, a] += sums[:, b]
        representative.append(a)
    return float(total)


def revenue_bound(W: np.ndarray) -> float:
    """An upper bound of the revenue of all trees: positive pairs meet at size 2 at best, negative ones at the root.
    Loose, but free."""
    upper = W[np.triu_indices(len(W), 1)]
    return float(-2 * upper[upper > 0].sum() - len(W) * upper[upper < 0].sum())
