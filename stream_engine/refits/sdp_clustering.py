"""Clustering by semidefinite programming from comparisons alone (Perrot, Esser & Ghoshdastidar 2020, sec. 3 and 5).

The similarity is AddS-3 or AddS-4 as the stream accumulated it, or a multiplicative kernel made from the counts. The
number of clusters is given, or follows from lambda, or is chosen by SPUR; the partition is the SDP's own where the SDP
is tight, else k-means on the rows of X. Every artifact carries objective, upper bound, gap, residuals, whether it is
certified and by what. Labels keep their meaning from one snapshot to the next. `solve` and `spur` work on any matrix.
"""

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import label_matching, partition, similarity_of_snapshot, warm_start
from stream_engine.clustering.admm import State
from stream_engine.clustering.cascade import Solution, solve
from stream_engine.clustering.factored_kernel import Factored
from stream_engine.clustering.similarity_of_snapshot import SimilarityInput
from stream_engine.clustering.spur import Choice, spur
from stream_engine.clustering.stability import stability
from stream_engine.data.available_memory import TooLarge, limit_in_bytes
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import SDP_CLUSTERING
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics.kernels import KERNEL_LIMIT

__all__ = ["Params", "refit", "solve", "spur"]

KIND = "sdp_clustering"
AXES = SDP_CLUSTERING.axes


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to cluster.

    similarity: one of `similarity_of_snapshot.SIMILARITIES`: adds3, adds4, k1 (= mulk3), mulk4; adds3 or k1 of what is
        recent or weighted (adds3_window, k1_decayed, ...). For the kernels SPUR chooses k on AddS, as in the paper
    k: the number of clusters
    lam: solve SDP-lambda instead; neither of the two: SPUR
    tol: gap to reach, relative to <W, X>; when `max_iterations` run out the artifact says that it is not certified
    solver: admm, or cvxpy (slow, the reference)
    lambda_factor: of sqrt(c ln n / n) for SPUR's smallest lambda (1: the paper's letter)
    early_exit: SPUR stops at the first k whose criterion exceeds this
    min_links: an object with a nonzero similarity to fewer others gets label -1
    bootstrap: replicates that say how often SPUR would choose this k, for up to `bootstrap_up_to` objects
    stability: replicates that say how stable each object's place in its cluster is, k fixed, for up to
        `stability_up_to` objects
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


class Task(NamedTuple):
    """What is clustered: a snapshot's objects `ids`, in an order that does not depend on their numbers, by
    `similarity`."""

    snapshot: Snapshot
    params: Params
    seed: int
    similarity: SimilarityInput
    ids: np.ndarray

    def restricted(self, W):
        """A similarity of all objects among those that are clustered."""
        return similarity_of_snapshot.restricted(W, self.ids)


class Answer(NamedTuple):
    """What was solved, over the clustered objects in canonical order."""

    solution: Solution
    k: int
    lam: float | None
    choice: Choice | None
    states: dict[int, State]  # by k, 0: SDP-lambda


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Cluster a snapshot's objects. Pure in (snapshot, params, seed, previous).

    Arrays: labels (n,) int32, -1 where an object is not clustered; k, lam (NaN when no lambda was used), objective,
    upper_bound, gap; criterion and criterion_k, one per k tried; residuals (row sums, trace, most negative entry,
    least eigenvalue); stability (n,) in [0, 1] (0 where not clustered), together (n, n) and stability_ari of the
    bootstrap, where there was one; warm_* for the next refit. Raises `CannotRefit`.
    """
    with threadpool_limits(1):
        try:
            task = _task(snapshot, params, seed)
            if not len(task.ids):
                return _nothing(task)
            starts = warm_start.states(previous, params, task.ids)
            answer = _solved(task, starts, progress)
            labels = _labels(answer, task.ids, len(snapshot.objects), seed)
            bootstrap = _bootstrap(task, labels, answer, progress)
            stable = _stability(task, labels)
            if params.rest == "nearest":
                labels = label_matching.with_nearest_cluster(labels, task.similarity.W)
        except (TooLarge, similarity_of_snapshot.NoCounts) as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        return _artifact(task, previous, answer, labels, bootstrap, stable)


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


def _nothing(task: Task) -> Artifact:
    """The artifact when no object is similar to another: every label -1."""
    n = len(task.snapshot.objects)
    arrays = {
        "labels": np.full(n, -1, np.int32),
        "k": np.array(0),
        "lam": np.array(np.nan),
        "objective": np.array(0.0),
        "upper_bound": np.array(0.0),
        "gap": np.array(0.0),
        "criterion": np.empty(0),
        "criterion_k": np.empty(0, np.int64),
        "residuals": np.zeros(4),
    }
    report = {
        "objects": n,
        "clustered": 0,
        "comparisons": task.similarity.comparisons,
        "k": 0,
        "note": "no object has comparisons that do not cancel: nothing is clustered",
    }
    return _artifact_of(task, arrays, report)


def _artifact_of(task: Task, arrays: dict[str, np.ndarray], report: dict[str, Any]) -> Artifact:
    params = plain_params(task.params)
    return Artifact(KIND, task.snapshot.digest, task.snapshot.sequence, params, task.seed, arrays, report)


def _artifact(
    task: Task,
    previous: Artifact | None,
    answer: Answer,
    labels: np.ndarray,
    bootstrap: dict[str, Any] | None,
    stable: dict[str, np.ndarray],
) -> Artifact:
    solution, choice, ids = answer.solution, answer.choice, task.ids
    labels, ari = label_matching.continued(labels, previous)
    tried = np.array([answer.k]) if choice is None else choice.tried
    criterion = np.array([solution.criterion(answer.k)]) if choice is None else choice.criterion
    kept = warm_start.arrays(answer.states, ids) if len(ids) <= task.params.warm_up_to else {}
    arrays = {
        "labels": labels,
        "k": np.array(answer.k),
        "lam": np.array(np.nan if answer.lam is None else answer.lam),
        "objective": np.array(solution.objective),
        "upper_bound": np.array(solution.upper_bound),
        "gap": np.array(solution.gap),
        "criterion": criterion,
        "criterion_k": tried.astype(np.int64),
        "residuals": np.array(solution.residuals),
        **stable,
        **kept,
    }
    report = _report(task, answer, labels, tried, criterion)
    report["stability"] = None
    if stable:
        means = {"mean": float(stable["stability"][ids].mean()), "ari": float(stable["stability_ari"].mean())}
        report["stability"] = means
    report |= {"ari_to_previous": ari, "bootstrap": bootstrap, "warm_bytes": int(sum(a.nbytes for a in kept.values()))}
    return _artifact_of(task, arrays, report)


def _report(task: Task, answer: Answer, labels: np.ndarray, tried: np.ndarray, criterion: np.ndarray) -> dict[str, Any]:
    params, solution, choice = task.params, answer.solution, answer.choice
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    return {
        "objects": len(labels),
        "clustered": len(task.ids),
        "comparisons": task.similarity.comparisons,
        "k": answer.k,
        "k_by": "lam" if params.lam is not None else "given" if params.k is not None else "spur",
        "sizes": {str(number): int(size) for number, size in zip(clusters, sizes)},
        "criterion": {str(k): round(float(c), 6) for k, c in zip(tried, criterion)},
        "margin": None if choice is None else choice.margin,
        "objective": solution.objective,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "certified": solution.certified,
        "certified_by": solution.certified_by,
        "residuals": solution.residuals._asdict(),
        "trace": solution.trace,
        "lam": answer.lam,
        "iterations": solution.iterations if choice is None else choice.iterations,
        **_evidence(task, choice),
    }


def _evidence(task: Task, choice: Choice | None) -> dict[str, Any]:
    """What was seen before anything was solved, and a line about it where that was no clusters."""
    if choice is None or choice.evidence is None:
        return {}
    seen = choice.evidence
    figures = {"eigenvalues": [round(float(value), 4) for value in seen.eigenvalues[:8]], "edge": round(seen.edge, 4)}
    if not choice.nothing_seen:
        return {"evidence": {**figures, "most_clusters": seen.k}}
    n, comparisons = len(task.ids), task.similarity.comparisons
    return {
        "evidence": {**figures, "most_clusters": 1},
        "note": f"too little evidence of clusters: {comparisons:,} comparisons about {n:,} objects "
        f"({comparisons / n:.1f} an object) stand out no more than random answers would (eigenvalue "
        f"{seen.eigenvalues[0]:.4g}, edge {seen.edge:.4g}); nothing was solved, so there is no certificate; "
        "feed more comparisons, or give k",
    }
