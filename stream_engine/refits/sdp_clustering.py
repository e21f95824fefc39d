"""Clustering by semidefinite programming from comparisons alone (Perrot, Esser & Ghoshdastidar 2020, sec. 3 and 5).

The similarity is AddS-3 or AddS-4 as the stream accumulated it, or a multiplicative kernel made from the counts. The
number of clusters is given, or follows from lambda, or is chosen by SPUR; the partition is the SDP's own where the SDP
is tight, else k-means on the rows of X. Every artifact carries objective, upper bound, gap, residuals, whether it is
certified and by what: that the optimisation is solved, which says nothing about the world. Whether there are clusters
at all is its verdict (`cluster_verdict`). Labels keep their meaning from one snapshot to the next. `solve` and `spur`
work on any matrix.
"""

from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import label_matching, partition, similarity_of_snapshot, warm_start
from stream_engine.clustering.admm import State
from stream_engine.clustering.cascade import Solution, solve
from stream_engine.clustering.factored_kernel import Factored
from stream_engine.clustering.levels import Levels, levels
from stream_engine.clustering.spur import SEARCH_TOL, spur
from stream_engine.clustering.stability import stability
from stream_engine.data.available_memory import TooLarge, limit_in_bytes
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.refits.cluster_verdict import CANNOT_TELL, CONTINUUM, Verdict, not_tested, verdict
from stream_engine.refits.sdp_clustering_artifact import KIND, Answer, Found, Task, of_found, of_nothing
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import SDP_CLUSTERING
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics.kernels import KERNEL_LIMIT

__all__ = ["Params", "refit", "solve", "spur"]

AXES = SDP_CLUSTERING.axes
LAWS_PARAMS = {"test": 19, "bootstrap": 2}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to cluster.

    similarity: one of `similarity_of_snapshot.SIMILARITIES`: adds3, adds4, k1 (= mulk3), mulk4; adds3 or k1 of what is
        recent or weighted (adds3_window, k1_decayed, ...). For the kernels SPUR chooses k on AddS, as in the paper
    k: the number of clusters
    lam: solve SDP-lambda instead; neither of the two: SPUR
    tol: gap to reach, relative to <W, X>
    max_iterations: of the solver (cvxpy's cost little: it may take 20,000); when they run out the artifact says that it
        is not certified
    solver: admm, or cvxpy (slow, the reference)
    lambda_factor: of sqrt(c ln n / n) for SPUR's smallest lambda (1: the paper's letter)
    early_exit: SPUR stops at the first k whose criterion exceeds this
    min_links: an object with a nonzero similarity to fewer others gets label -1
    bootstrap: replicates that say how often SPUR would choose this k
    bootstrap_up_to: objects up to which that is done
    test: draws of each null model that say whether there are clusters at all, or a continuum, or nobody can tell; 0:
        not tested
    test_up_to: objects up to which that is tested
    levels_up_to: objects up to which the criterion is computed for every number of clusters, and finer levels are shown
    stability: replicates that say how stable each object's place in its cluster is, k fixed
    stability_up_to: objects up to which that is done
    warm_up_to: the solver's state is kept for a warm start of the next refit for up to this many objects (4 n^2 bytes)
    memory_gb: what the solver may use; none: what is free
    objects: cluster these names only, or the so many objects with the most answers
    rest: the others then get no cluster ("none"), or the nearest by mean similarity ("nearest")
    """

    similarity: str = "adds3"
    k: Annotated[int, msgspec.Meta(ge=1)] | None = None
    lam: float | None = None
    tol: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-3
    max_iterations: Annotated[int, msgspec.Meta(ge=1)] = 2000
    solver: Literal["admm", "cvxpy"] = "admm"
    lambda_factor: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    early_exit: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.99
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    bootstrap: Annotated[int, msgspec.Meta(ge=0)] = 5
    bootstrap_up_to: Annotated[int, msgspec.Meta(ge=0)] = 120
    test: Annotated[int, msgspec.Meta(ge=0)] = 99
    test_up_to: Annotated[int, msgspec.Meta(ge=0)] = 500
    levels_up_to: Annotated[int, msgspec.Meta(ge=0)] = 120
    stability: Annotated[int, msgspec.Meta(ge=0)] = 10
    stability_up_to: Annotated[int, msgspec.Meta(ge=0)] = 500
    warm_up_to: Annotated[int, msgspec.Meta(ge=0)] = 1000
    memory_gb: Annotated[float, msgspec.Meta(gt=0)] | None = None
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
    upper_bound, gap; criterion and criterion_k, one per k tried; residuals (row sums, trace, most negative entry,
    least eigenvalue); stability (n,) in [0, 1] (0 where not clustered), together (n, n) and stability_ari of the
    bootstrap, where there was one; p_coins, p_continuum (NaN where not tested) and crowding of the verdict; level_k,
    level_criterion, level_peak and level_ari of `levels`, where SPUR chose; warm_* for the next refit. Raises
    `CannotRefit`.
    """
    with threadpool_limits(1):
        try:
            task = _task(snapshot, params, seed)
            if not len(task.ids):
                return of_nothing(task)
            starts = warm_start.states(previous, params, task.ids)
            answer = _solved(task, starts, progress)
            labels = _labels(answer, task.ids, len(snapshot.objects), seed)
            said = _verdict(task, answer.k)
            looked = _levels(task, answer, said)
            bootstrap = None if said.said == CANNOT_TELL else _bootstrap(task, labels, answer, progress)
            stable = _stability(task, labels)
            if params.rest == "nearest":
                labels = label_matching.with_nearest_cluster(labels, task.similarity.W)
        except (TooLarge, similarity_of_snapshot.NoCounts) as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        return of_found(task, previous, Found(answer, labels, said, looked, bootstrap, stable))


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
            f"{KIND}: got k={params.k}, but only {len(ids)} of {len(snapshot.objects)} objects "
            "have comparisons that do not cancel; lower k or feed more comparisons"
        )
    return Task(snapshot, params, seed, similarity, ids)


def _solved(task: Task, starts: dict[int, State], progress: Progress) -> Answer:
    """SDP-lambda or SDP-k as asked for; else SPUR, on AddS, and SDP-k of the similarity at the k that it chose."""
    params, W = task.params, task.restricted(task.similarity.W)
    limit = limit_in_bytes(params.memory_gb)
    solve_sdp = partial(
        solve,
        tol=params.tol,
        max_iterations=params.max_iterations,
        solver=params.solver,
        seed=task.seed,
        progress=progress,
        memory_limit=limit,
    )
    if params.lam is not None:
        solution = solve_sdp(W, lam=params.lam, start=starts.get(0))
        return Answer(solution, int(np.rint(solution.trace)), params.lam, None, _states({0: solution}))
    if params.k is not None:
        solution = solve_sdp(W, k=params.k, start=starts.get(params.k))
        return Answer(solution, params.k, None, None, _states({params.k: solution}))
    additive = similarity_of_snapshot.recipe(params.similarity).additive
    base = task.similarity
    if additive != params.similarity:
        base = similarity_of_snapshot.similarity(task.snapshot, additive)
    choice = spur(
        task.restricted(base.W),
        base.comparisons,
        factor=params.lambda_factor,
        early_exit=params.early_exit,
        starts=starts,
        tol=params.tol,
        max_iterations=params.max_iterations,
        solver=params.solver,
        seed=task.seed,
        progress=progress,
        memory_limit=limit,
    )
    solution = choice.solution if base is task.similarity else solve_sdp(W, k=choice.k)
    if choice.nothing_seen:
        solution = solution._replace(certified=False, certified_by="")  # no program was solved
    at_lam = {} if choice.at_lam is None else {0: choice.at_lam}
    return Answer(solution, choice.k, choice.lam, choice, _states(at_lam | {choice.k: solution}))


def _states(solutions: dict[int, Solution]) -> dict[int, State]:
    return {k: s.state for k, s in solutions.items() if s.state is not None}


def _labels(answer: Answer, ids: np.ndarray, n: int, seed: int) -> np.ndarray:
    """(n,) int32: the SDP's own partition, or k-means on the rows of X; numbered by first appearance."""
    labels = np.full(n, -1, np.int32)
    labels[ids] = _rounded(answer.solution, answer.k, seed) if answer.k > 1 else np.zeros(len(ids), np.int32)
    labels[np.sort(ids)] = partition.compact(labels[np.sort(ids)])
    return labels


def _rounded(solution: Solution, k: int, seed: int) -> np.ndarray:
    """The partition that a solution is, or else k-means on its rows."""
    return partition.k_means(solution.rows, k, seed) if solution.labels is None else solution.labels


def _bootstrap(task: Task, labels: np.ndarray, answer: Answer, progress: Progress) -> dict[str, Any] | None:
    """SPUR again on resampled comparisons: which k they choose, and how well their partitions agree with this one."""
    params, ids, counters = task.params, task.ids, task.snapshot.counters
    if answer.choice is None or not params.bootstrap or not 4 <= len(ids) <= params.bootstrap_up_to:
        return None
    ks: list[int] = []
    agreements: list[float | None] = []
    additive = similarity_of_snapshot.recipe(params.similarity).additive
    for replicate in range(params.bootstrap):
        W = similarity_of_snapshot.resampled(task.snapshot, additive, np.random.default_rng([task.seed, replicate]))
        if W is None:
            return None
        comparisons = int(counters["triplets"]) + int(counters.get("quadruplets", 0) if additive == "adds4" else 0)
        again = spur(
            task.restricted(W),
            comparisons,
            factor=params.lambda_factor,
            early_exit=params.early_exit,
            tol=1e-3,
            max_iterations=params.max_iterations,
            seed=task.seed,
        )
        ks.append(again.k)
        other = np.full(len(labels), -1, np.int32)
        other[ids] = _rounded(again.solution, again.k, task.seed)
        agreements.append(label_matching.agreement(other, labels))
        progress(replicate + 1, params.bootstrap, replicate_k=again.k)
    mean = float(np.mean([ari for ari in agreements if ari is not None]))
    return {"k": ks, "same_k": ks.count(answer.k) / len(ks), "mean_ari": mean}


def _verdict(task: Task, k: int) -> Verdict:
    """Clusters, a continuum, or cannot tell; or why that was not tested."""
    params, n = task.params, len(task.ids)
    if not params.test:
        return not_tested("it was not asked for")
    if n > params.test_up_to:
        return not_tested(f"{n:,} objects")
    if similarity_of_snapshot.recipe(params.similarity).form != "plain":
        return not_tested("not all answers count alike")
    return verdict(task.snapshot, task.ids, k, params.test, task.seed)


def _levels(task: Task, answer: Answer, said: Verdict) -> Levels | None:
    """The criterion of other numbers of clusters; those that SPUR did not try only where there may be clusters."""
    params = task.params
    if answer.choice is None or answer.k < 2:
        return None
    further = len(task.ids) <= params.levels_up_to and said.said not in (CANNOT_TELL, CONTINUUM)
    additive = similarity_of_snapshot.recipe(params.similarity).additive
    W = task.restricted(similarity_of_snapshot.similarity(task.snapshot, additive).W)

    def resampled(rng: np.random.Generator):
        again = similarity_of_snapshot.resampled(task.snapshot, additive, rng)
        return None if again is None else task.restricted(again)

    solve_sdp = partial(solve, W, tol=SEARCH_TOL, max_iterations=params.max_iterations, seed=task.seed)
    return levels(W, answer.choice, solve_sdp, resampled, further, task.seed)


def _stability(task: Task, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays `stability`, `together`, `stability_ari` over all objects; none where it was not asked for or cannot
    be."""
    params, ids, n = task.params, task.ids, len(labels)
    if not params.stability or not 4 <= len(ids) <= params.stability_up_to:
        return {}

    def resampled(rng: np.random.Generator):
        W = similarity_of_snapshot.resampled(task.snapshot, params.similarity, rng)
        return None if W is None else task.restricted(W)

    replicates = stability(resampled, partition.compact(labels[ids]), params.stability, task.seed)
    if replicates is None:
        return {}
    of_object, together = np.zeros(n), np.zeros((n, n), np.float32)
    of_object[ids], together[np.ix_(ids, ids)] = replicates.object, replicates.together
    return {"stability": of_object, "together": together, "stability_ari": replicates.ari}
