"""Clustering by semidefinite programming from comparisons alone (Perrot, Esser & Ghoshdastidar 2020, sec. 3 and 5).

k is given, follows from lambda, or is selected by SPUR. The partition is that of the SDP if the SDP is tight, and
otherwise k-means on the rows of X. Every artifact contains the objective, the upper bound, the gap and the residuals of
SDP-k, and whether and how it is certified. A certificate proves that the optimisation is solved, not that there are
clusters: that is the question of the refit `clusters`. `solve` and `spur` work on any matrix.
"""

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import partition, sdp_by_cvxpy, similarity_of_snapshot, stability, warm_start
from stream_engine.clustering.admm import State
from stream_engine.clustering.canonical_order import canonical_order
from stream_engine.clustering.cascade import Solution, solve
from stream_engine.clustering.kernel_factors import KernelFactor
from stream_engine.clustering.similarity_of_snapshot import SimilarityInput
from stream_engine.clustering.spur import Choice, spur
from stream_engine.counts.kernels import KERNEL_LIMIT
from stream_engine.data.available_memory import TooLarge
from stream_engine.refits import CannotRefit, Progress, no_progress, second_solver
from stream_engine.refits.second_solver import Solver
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import SDP_CLUSTERING
from stream_engine.state.snapshot import Snapshot

__all__ = ["Params", "refit", "solve", "spur"]

KIND = "sdp_clustering"
AXES = SDP_CLUSTERING.axes
_GRADED = "the refit clusters grades the separation of groups, without parameters; remove this key"
FORMER = {  # parameters of earlier versions -> what replaced them
    "test": _GRADED,
    "stability": _GRADED,
    "k_by": f"k is SPUR's unless k or lam is given; {_GRADED}",
}


class Task(NamedTuple):
    """The input of a clustering: a snapshot's objects `ids`, in an order that does not depend on their numbers, and
    their `similarity`."""

    snapshot: Snapshot
    params: Any  # `sdp_clustering.Params`
    seed: int
    similarity: SimilarityInput
    ids: np.ndarray

    def restricted(self, W):
        """A similarity of all objects, restricted to those that are clustered."""
        return similarity_of_snapshot.restrict(W, self.ids)


class Answer(NamedTuple):
    """The solution, over the clustered objects in canonical order."""

    solution: Solution
    k: int
    lam: float | None
    choice: Choice | None  # SPUR's, which chose k
    k_by: str  # "given", "lam" or "spur"
    states: dict[int, State]  # by k, 0: SDP-lambda
    solver: Solver = "engine"


def _empty_artifact(task: Task) -> Artifact:
    """The artifact if no object is similar to another: every label is -1."""
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
        "criterion_converged": np.empty(0, bool),
        "residuals": np.zeros(4),
    }
    report = {
        "objects": n,
        "clustered": 0,
        "comparisons": task.similarity.comparisons,
        "k": 0,
        "note": "the comparisons of every object cancel: no object is clustered",
    }
    return _artifact(task, arrays, report)


def _artifact(task: Task, arrays: dict[str, np.ndarray], report: dict[str, Any]) -> Artifact:
    params = plain_params(task.params)
    return Artifact(KIND, task.snapshot.digest, task.snapshot.sequence, params, task.seed, arrays, report)


MAX_WARM_OBJECTS = 1000  # objects up to which the solver's state is stored for the next refit (4 n^2 bytes)


def _artifact_of_answer(task: Task, previous: Artifact | None, answer: Answer, labels: np.ndarray) -> Artifact:
    """The artifact of a solution."""
    solution, choice, ids = answer.solution, answer.choice, task.ids
    labels, ari = stability.keep_numbers(labels, previous)
    tried_k = np.array([answer.k]) if choice is None else choice.tried
    criterion = np.array([solution.criterion(answer.k)]) if choice is None else choice.criterion
    converged = np.array([solution.certified]) if choice is None else choice.converged
    warm_arrays = warm_start.warm_arrays(answer.states, ids) if len(ids) <= MAX_WARM_OBJECTS else {}
    arrays = {
        "labels": labels,
        "k": np.array(answer.k),
        "lam": np.array(np.nan if answer.lam is None else answer.lam),
        "objective": np.array(solution.objective),
        "upper_bound": np.array(solution.upper_bound),
        "gap": np.array(solution.gap),
        "criterion": criterion,
        "criterion_k": tried_k.astype(np.int64),
        "criterion_converged": converged,
        "residuals": np.array(solution.residuals),
        **warm_arrays,
    }
    report = _report(task, answer, labels, tried_k, criterion, converged)
    report["ari_to_previous"] = ari
    report["warm_bytes"] = int(sum(array.nbytes for array in warm_arrays.values()))
    return _artifact(task, arrays, report)


def _report(
    task: Task, answer: Answer, labels: np.ndarray, tried_k: np.ndarray, criterion: np.ndarray, converged: np.ndarray
) -> dict[str, Any]:
    solution, choice = answer.solution, answer.choice
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    return {
        "objects": len(labels),
        "clustered": len(task.ids),
        "comparisons": task.similarity.comparisons,
        "k": answer.k,
        "k_by": answer.k_by,
        "spur_k": None if choice is None else choice.k,
        "sizes": {str(number): int(size) for number, size in zip(clusters, sizes)},
        "criterion": {str(k): round(float(c), 6) for k, c in zip(tried_k, criterion)},
        "criterion_not_converged": tried_k[~converged].tolist(),
        "margin": None if choice is None else choice.margin,
        "objective": solution.objective,
        "upper_bound": solution.upper_bound,
        "gap": solution.gap,
        "solved": solution.solved,
        "certified": solution.certified,
        "certified_by": solution.certified_by,
        "solver": answer.solver,
        "residuals": solution.residuals._asdict(),
        "trace": solution.trace,
        "lam": answer.lam,
        "iterations": solution.iterations if choice is None else choice.iterations,
        **_evidence(task, choice),
    }


def _evidence(task: Task, choice: Choice | None) -> dict[str, Any]:
    """The evidence of clusters before anything was solved, and a note if there was none."""
    if choice is None or choice.analysis is None:
        return {}
    analysis = choice.analysis
    figures = {
        "eigenvalues": [round(float(value), 4) for value in analysis.eigenvalues[:8]],
        "edge": round(analysis.edge, 4),
    }
    if not choice.nothing_seen:
        return {"evidence": {**figures, "most_clusters": analysis.k}}
    n, comparisons = len(task.ids), task.similarity.comparisons
    return {
        "evidence": {**figures, "most_clusters": 1},
        "note": f"too little evidence of clusters: {comparisons:,} comparisons about {n:,} objects "
        f"({comparisons / n:.1f} per object) show no more structure than random answers (eigenvalue "
        f"{analysis.eigenvalues[0]:.4g}, edge {analysis.edge:.4g}); no program was solved, so there is no certificate; "
        "collect more comparisons, or set k",
    }


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    similarity : str
        One of `similarity_of_snapshot.SIMILARITIES`: adds3, adds4, k1 (= mulk3), mulk4; adds3 or k1 of what is recent
        or weighted (adds3_window, k1_decayed, ...). For the kernels SPUR chooses k on AddS, as in the paper.
    k : int, optional
        Number of clusters; default: selected by SPUR.
    lam : float, optional
        Solve SDP-lambda instead.
    tol : float
        Target gap, relative to <W, X>.
    max_iterations : int
        Maximum for the solver; if it is reached and cvxpy comes no closer, the artifact is marked as not certified.
    solver : {'engine', 'cvxpy'}
        What solves the published program: "engine", or "cvxpy" (Clarabel, an interior-point method) for a second
        opinion on up to 100 objects (the search for k remains the engine's). If the engine misses
        the tolerance, cvxpy is tried as well, up to that size.
    min_links : int
        An object with a nonzero similarity to fewer others gets label -1.
    objects : int or tuple of str, optional
        Cluster only these names, or the given number of objects with the most answers.
    rest : {'nearest', 'none'}
        The other objects get no cluster ("none"), or the nearest one by mean similarity ("nearest").
    """

    similarity: str = "adds3"
    k: Annotated[int, msgspec.Meta(ge=1)] | None = None
    lam: float | None = None
    tol: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-3
    max_iterations: Annotated[int, msgspec.Meta(ge=1)] = 2000
    solver: Solver = "engine"
    min_links: Annotated[int, msgspec.Meta(ge=1)] = 1
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "nearest"] = "none"

    def __post_init__(self):
        similarity_of_snapshot.recipe(self.similarity)
        if self.k is not None and self.lam is not None:
            raise ValueError(f"k and lam: got k={self.k} and lam={self.lam}, expected at most one of them")


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Cluster a snapshot's objects by AddS and semidefinite programming.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, to start from.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: `labels` (n,) int32, -1 if not clustered; `k`, `lam` (NaN if no lambda was used), `objective`,
        `upper_bound`, `gap` of SDP-k; `criterion`, `criterion_k` and `criterion_converged`, one per k that SPUR tried;
        `residuals` (row sums, trace, most negative entry, smallest eigenvalue); `warm_*` for the next refit.

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    """
    with threadpool_limits(1):
        try:
            task = _task(snapshot, params, seed)
            if not len(task.ids):
                return _empty_artifact(task)
            starts = warm_start.warm_states(previous, params, task.ids)
            endable = second_solver.EndableProgress(progress)
            answer = _by_solver(task, _solved(task, starts, endable), endable)
            labels = _labels(task, answer)
            if params.rest == "nearest":
                labels = stability.with_nearest_cluster(labels, task.similarity.W)
        except (TooLarge, similarity_of_snapshot.NoCounts) as error:
            raise CannotRefit(f"{KIND}: {error}") from error
        return _artifact_of_answer(task, previous, answer, labels)


def _task(snapshot: Snapshot, params: Params, seed: int) -> Task:
    """The objects to cluster and their similarity. Raises `CannotRefit` if there are too many, or k is too large."""
    similarity = similarity_of_snapshot.similarity(snapshot, params.similarity)
    ids = similarity_of_snapshot.subset_ids(snapshot, similarity.W, params.min_links, params.objects)
    W = similarity_of_snapshot.restrict(similarity.W, ids)
    if isinstance(W, KernelFactor):
        raise CannotRefit(
            f"{KIND}: {params.similarity} of {len(ids):,} objects - expected at most {KERNEL_LIMIT:,} - "
            "choose objects (--set objects=500, or --objects FILE), or refit spectral"
        )
    ids = ids[canonical_order(W)]
    if params.k is not None and len(ids) and params.k > len(ids):
        raise CannotRefit(
            f"{KIND}: got k={params.k}, but only {len(ids)} of {len(snapshot.objects)} objects have comparisons that "
            "do not cancel; lower k or read more comparisons"
        )
    additive = similarity_of_snapshot.recipe(params.similarity).additive
    if params.objects is not None and additive == params.similarity:
        similarity = similarity_of_snapshot.counted_among(similarity, ids)
    return Task(snapshot, params, seed, similarity, ids)


def _solved(task: Task, starts: dict[int, State], progress: Progress) -> Answer:
    """SDP-lambda or SDP-k as requested; else SPUR on AddS, and SDP-k of the similarity at the k that it selected."""
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
        base = base if params.objects is None else similarity_of_snapshot.counted_among(base, task.ids)
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
    solution = choice.solution if base is task.similarity else solve_sdp(W, k=choice.k, start=starts.get(choice.k))
    if choice.nothing_seen:
        solution = solution._replace(certified=False, certified_by="")  # no program was solved
    return Answer(solution, choice.k, choice.lam, choice, "spur", _states(at_lam | {choice.k: solution}))


def _by_solver(task: Task, answer: Answer, progress: second_solver.EndableProgress) -> Answer:
    """The same program by cvxpy, on request, or if that comes closer than the engine."""
    if answer.k in (1, len(task.ids)):
        return answer
    params, constraint = task.params, {"lam": answer.lam} if answer.k_by == "lam" else {"k": answer.k}
    solution, solver = second_solver.solve_by(
        KIND,
        params.solver,
        lambda _: answer.solution,
        partial(sdp_by_cvxpy.solve, task.restricted(task.similarity.W), tol=params.tol, **constraint),
        lambda solution: solution.certified or progress.ended,
        progress,
    )
    k = int(np.rint(solution.trace)) if answer.k_by == "lam" else answer.k
    return answer._replace(solution=solution, k=k, solver=solver)


def _states(solutions: dict[int, Solution]) -> dict[int, State]:
    return {k: s.state for k, s in solutions.items() if s.state is not None}


def _labels(task: Task, answer: Answer) -> np.ndarray:
    """(n,) int32: the SDP's own partition, or k-means on the rows of X; numbered by first appearance."""
    labels, ids = np.full(len(task.snapshot.objects), -1, np.int32), task.ids
    labels[ids] = _rounded(answer.solution, answer.k, task.seed) if answer.k > 1 else 0
    labels[np.sort(ids)] = partition.compact(labels[np.sort(ids)])
    return labels


def _rounded(solution: Solution, k: int, seed: int) -> np.ndarray:
    """The partition of a tight solution, or else k-means on its rows."""
    return partition.k_means(solution.rows, k, seed) if solution.labels is None else solution.labels
