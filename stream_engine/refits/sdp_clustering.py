"""Clustering by semidefinite programming from comparisons alone (Perrot, Esser & Ghoshdastidar 2020, sec. 3 and 5).

One test decides whether there are clusters and how many (`cluster_verdict`); if there are, the labels are the tested
groups. Where k is given, follows from lambda or is chosen by SPUR, as it is where there are no clusters to be told, the
partition is the SDP's own where the SDP is tight, else k-means on the rows of X. The similarity is AddS-3 or AddS-4 as
the stream accumulated it, or a multiplicative kernel made from the counts. Every artifact carries objective, upper
bound, gap and residuals of SDP-k, whether it is certified and by what: that the optimisation is solved, not that there
are clusters. Labels keep their meaning from one snapshot to the next. `solve` and `spur` work on any matrix.
"""

from functools import partial
from typing import Annotated, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import label_matching, partition, similarity_of_snapshot, warm_start
from stream_engine.clustering.admm import State
from stream_engine.clustering.cascade import Solution, solve
from stream_engine.clustering.factored_kernel import Factored
from stream_engine.clustering.spur import spur
from stream_engine.clustering.stability import Replicates, again
from stream_engine.counts.kernels import KERNEL_LIMIT
from stream_engine.data.available_memory import TooLarge
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.refits.cluster_verdict import Verdict, halves, not_tested, verdict
from stream_engine.refits.sdp_clustering_artifact import KIND, Answer, Clustering, Task, of_found, of_nothing
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import SDP_CLUSTERING
from stream_engine.state.snapshot import Snapshot

__all__ = ["Params", "refit", "solve", "spur"]

AXES = SDP_CLUSTERING.axes
TESTED_UP_TO = 500  # maximum number of objects for the test and the stability


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to cluster.

    similarity: one of `similarity_of_snapshot.SIMILARITIES`: adds3, adds4, k1 (= mulk3), mulk4; adds3 or k1 of what is
        recent or weighted (adds3_window, k1_decayed, ...). For the kernels SPUR chooses k on AddS, as in the paper
    k: number of clusters; default: by `k_by`
    lam: solve SDP-lambda instead
    k_by: "test": the number from the test against a continuum if it finds clusters, otherwise from SPUR; or "spur"
    tol: target gap, relative to <W, X>
    max_iterations: of the solver; when they run out the artifact says that it is not certified
    min_links: an object with a nonzero similarity to fewer others gets label -1
    test: simulations of each null model in the test for clusters; 0: no test
    stability: random splits of the responses into halves, for the stability
    objects: cluster only these names, or the given number of objects with the most answers
    rest: the other objects get no cluster ("none"), or the nearest one by mean similarity ("nearest")
    """

    similarity: str = "adds3"
    k: Annotated[int, msgspec.Meta(ge=1)] | None = None
    lam: float | None = None
    k_by: Literal["test", "spur"] = "test"
    tol: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-3
    max_iterations: Annotated[int, msgspec.Meta(ge=1)] = 2000
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    test: Annotated[int, msgspec.Meta(ge=0)] = 39
    stability: Annotated[int, msgspec.Meta(ge=0)] = 10
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "nearest"] = "none"

    def __post_init__(self):
        similarity_of_snapshot.recipe(self.similarity)
        if self.k is not None and self.lam is not None:
            raise ValueError(f"k and lam: got k={self.k} and lam={self.lam}, expected at most one of them")


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Cluster a snapshot's objects. Pure in (snapshot, params, seed, previous).

    Arrays: labels (n,) int32, -1 where an object is not clustered; k, lam (NaN when no lambda was used), objective,
    upper_bound, gap of SDP-k; criterion, criterion_k and criterion_converged, one per k that SPUR tried; residuals (row
    sums, trace, most negative entry, least eigenvalue); p_coins, p_continuum (NaN where not tested) and crowding of the
    verdict; tested_k, tested_crowding and tested_p of every number of groups that was tested; stability (n,), the share
    of halves that put an object into its cluster (0 where not clustered), second (n,) int32, the cluster that it is in
    most often besides (-1: none), together (n, n) and stability_ari, the agreement of the two halves of each split;
    warm_* for the next refit. Raises `CannotRefit`.
    """
    with threadpool_limits(1):
        try:
            task = _task(snapshot, params, seed)
            if not len(task.ids):
                return of_nothing(task)
            starts = warm_start.states(previous, params, task.ids)
            said = _verdict(task)
            answer = _solved(task, said, starts, progress)
            labels = _labels(task, answer, said)
            stable = _stability(task, said, labels)
            if params.rest == "nearest":
                labels = label_matching.with_nearest_cluster(labels, task.similarity.W)
        except (TooLarge, similarity_of_snapshot.NoCounts) as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        return of_found(task, previous, Clustering(answer, labels, said, stable))


def _task(snapshot: Snapshot, params: Params, seed: int) -> Task:
    """The objects to cluster and their similarity. Raises `CannotRefit` where this is too much, or k too many."""
    similarity = similarity_of_snapshot.similarity(snapshot, params.similarity)
    ids = similarity_of_snapshot.subset_ids(snapshot, similarity.W, params.min_links, params.objects)
    W = similarity_of_snapshot.restricted(similarity.W, ids)
    if isinstance(W, Factored):
        raise CannotRefit(
            f"{KIND}: {params.similarity} of {len(ids):,} objects - expected at most {KERNEL_LIMIT:,} - "
            "choose objects (--set objects=500, or --objects FILE), or refit spectral"
        )
    ids = ids[label_matching.canonical_order(W)]
    if params.k is not None and len(ids) and params.k > len(ids):
        raise CannotRefit(
            f"{KIND}: got k={params.k}, but only {len(ids)} of {len(snapshot.objects)} objects have comparisons that "
            "do not cancel; lower k or read more comparisons"
        )
    return Task(snapshot, params, seed, similarity, ids)


def _solved(task: Task, said: Verdict, starts: dict[int, State], progress: Progress) -> Answer:
    """SDP-lambda or SDP-k as asked for; else SPUR, on AddS, and SDP-k of the similarity at the k that was tested, where
    there are clusters, or that SPUR chose."""
    params, W = task.params, task.restricted(task.similarity.W)
    solve_sdp = partial(
        solve,
        tol=params.tol,
        max_iterations=params.max_iterations,
        seed=task.seed,
        progress=progress,
    )
    if params.lam is not None:
        solution = solve_sdp(W, lam=params.lam, start=starts.get(0))
        return Answer(solution, int(np.rint(solution.trace)), params.lam, None, "lam", _states({0: solution}))
    if params.k is not None:
        solution = solve_sdp(W, k=params.k, start=starts.get(params.k))
        return Answer(solution, params.k, None, None, "given", _states({params.k: solution}))
    additive = similarity_of_snapshot.recipe(params.similarity).additive
    base = task.similarity
    if additive != params.similarity:
        base = similarity_of_snapshot.similarity(task.snapshot, additive)
    choice = spur(
        task.restricted(base.W),
        base.comparisons,
        starts=starts,
        tol=params.tol,
        max_iterations=params.max_iterations,
        seed=task.seed,
        progress=progress,
    )
    at_lam = {} if choice.at_lam is None else {0: choice.at_lam}
    k, k_by = (said.k, "test") if params.k_by == "test" and said.clusters and said.k else (choice.k, "spur")
    if base is task.similarity and k == choice.k:
        solution = choice.solution
        if choice.nothing_seen:
            solution = solution._replace(certified=False, certified_by="")  # no program was solved
    else:
        solution = solve_sdp(W, k=k, start=starts.get(k))
    return Answer(solution, k, choice.lam, choice, k_by, _states(at_lam | {k: solution}))


def _states(solutions: dict[int, Solution]) -> dict[int, State]:
    return {k: s.state for k, s in solutions.items() if s.state is not None}


def _labels(task: Task, answer: Answer, said: Verdict) -> np.ndarray:
    """(n,) int32: the groups that were tested, the SDP's own partition, or k-means on the rows of X; numbered by first
    appearance."""
    labels, ids = np.full(len(task.snapshot.objects), -1, np.int32), task.ids
    if answer.k_by == "test" and said.labels is not None:
        labels[ids] = said.labels
    else:
        labels[ids] = _rounded(answer.solution, answer.k, task.seed) if answer.k > 1 else 0
    labels[np.sort(ids)] = partition.compact(labels[np.sort(ids)])
    return labels


def _rounded(solution: Solution, k: int, seed: int) -> np.ndarray:
    """The partition that a solution is, or else k-means on its rows."""
    return partition.k_means(solution.rows, k, seed) if solution.labels is None else solution.labels


def _verdict(task: Task) -> Verdict:
    """Clusters, a continuum, or cannot tell; or why that was not tested."""
    params, n = task.params, len(task.ids)
    if not params.test:
        return not_tested("it was not requested")
    if n > TESTED_UP_TO:
        return not_tested(f"{n:,} objects")
    if similarity_of_snapshot.recipe(params.similarity).form != "plain":
        return not_tested("answers have different weights")
    splits = params.stability if params.k_by == "test" and params.k is None and params.lam is None else 0
    return verdict(task.snapshot, task.ids, params.test, splits, task.seed)


def _stability(task: Task, said: Verdict, labels: np.ndarray) -> Replicates | None:
    """Of the labels, in the order of the objects that are clustered; None where it was not asked for or cannot be."""
    params, ids = task.params, task.ids
    if not params.stability or not 4 <= len(ids) <= TESTED_UP_TO:
        return None
    own = labels[ids]
    if said.replicates is not None:
        return said.replicates.renumbered(own)
    if similarity_of_snapshot.recipe(params.similarity).form != "plain" or params.similarity == "embedding":
        return None
    pairs = []
    for one, other in halves(task.snapshot, ids, params.stability, task.seed):
        W = [similarity_of_snapshot.of_answers(*half, len(ids), params.similarity) for half in (one, other)]
        pairs.append((again(W[0], own, task.seed), again(W[1], own, task.seed)))
    return Replicates.of(own, pairs) if pairs else None
