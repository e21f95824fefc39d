"""SPUR for comparisons: the number of clusters with the largest objective of the SDP solution over its trace (Perrot et
al. 2020, sec. 5 and App. D; Yan et al. 2018)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering.admm import State
from stream_engine.clustering.cascade import Solution, solve, solve_by_certificate
from stream_engine.clustering.parallel_analysis import MIN_OBJECTS, ParallelAnalysis, parallel_analysis
from stream_engine.clustering.partition import MAX_CLUSTERS
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts.spectral import top_eigenpairs

#   lambda_min = f sqrt(c ln n / n),  lambda_max = f c / n,  c comparisons, f = 2 (f = 1: the paper's letter)
#   for k = max(2, k_lambda_max) .. k_lambda_min + 2:  criterion(k) = sum_{i <= k} sigma_i(X_k) / tr X_k,  X_k of SDP-k
#
# and the k with the largest criterion (1 at most, at a partition) is chosen. f = 2 by default because <W, X> here
# counts both triangles of W: it is what the published experiments ran. The literal lambda_min lies below the noise edge
# (about 4 sqrt(c / n)) and gives high rank and too many clusters. k_lambda_max needs no solve: one eigenvalue shows
# that X = 1 1'/n is optimal there. A partition that is proven optimal for SDP-k, with a multiplier of the trace between
# lambda_min and lambda_max, has a k in that range and criterion 1, the maximum, so then nothing is solved at all.
#
# Three departures from the paper:
# 1. If the leading eigenvalue of W is neither above those of random answers (`parallel_analysis`) nor clearly above
#    lambda_min, k is 1 and nothing is solved; the paper's search always ends with at least two clusters.
# 2. Of more than SEARCH_UP_TO objects, whose SDPs take long, not all k are searched but those from the spectral one
#    downwards (one more than the eigenvalues that stand out: so many clusters the answers can show) while the criterion
#    rises.
# 3. The search ends at the first k whose criterion exceeds .99: no other can be better by more than .01.
#
# `Choice.converged` says of each k whether it was solved to its tolerance.
SEARCH_TOL = 1e-3  # of every k that is compared
COMPARED_TOL, LARGE_TOL = 5e-2, 1e-2  # of more than SEARCH_UP_TO objects: of every k, and of the chosen one
CLEAR_EIGENVALUE = 1.25  # of lambda_min: above it, clusters are searched for whatever random answers give
SEARCH_UP_TO = 500  # objects up to which every k in the range is tried


class Choice(NamedTuple):
    """The number of clusters and how it was chosen: `criterion[t]` belongs to `tried[t]` clusters."""

    k: int
    solution: Solution  # of SDP-k at the chosen k
    tried: np.ndarray  # (t,) int64
    criterion: np.ndarray  # (t,) float64
    converged: np.ndarray  # (t,) bool: the SDP was solved to the tolerance before its iterations ran out
    margin: float | None  # of the criterion over the second best; None when only one k was tried
    lam: float  # lambda_min
    at_lam: Solution | None  # of SDP-lambda there; None when a partition was proven optimal before it was needed
    k_range: tuple[int, int]  # of the search
    iterations: int  # ADMM iterations in all
    analysis: ParallelAnalysis | None = None  # before anything was solved; None if it was not needed

    @property
    def nothing_seen(self) -> bool:
        """Whether k is 1 because the comparisons show no more than random answers would."""
        return self.analysis is not None and self.k == 1


def spur(
    W,
    n_comparisons: int,
    factor: float = 2.0,
    early_exit: float = 0.99,
    tol: float = 1e-4,
    max_iterations: int = 3000,
    seed: int = 0,
    starts: Mapping[int, State] | None = None,
    progress: Callable[..., bool | None] | None = None,
) -> Choice:
    """Select the number of clusters with SPUR.

    The search ends at the first k whose criterion exceeds `early_exit`, or where `progress` returns True: with the k
    that were solved, or the best point of the first one. Each k starts from its own partition and dual,
    which is closer to its optimum than the solution of the previous k, until the criterion decreases: from there on,
    the previous solution is closer. The programs of the search are solved to a gap of `SEARCH_TOL`, the selected one to
    `tol`. For fewer than 4 objects, k is the rounded trace of SDP-lambda.

    Parameters
    ----------
    W : array or scipy sparse matrix, shape (n, n)
        Symmetric similarities.
    n_comparisons : int
        Number of comparisons from which W was computed.
    factor : float
        Factor of the default lambda.
    early_exit : float
        Criterion at which the search ends.
    tol : float
        Relative gap to reach.
    max_iterations : int
        Maximum number of iterations of each program.
    seed : int
        Random seed.
    starts : mapping of int to State, optional
        States of an earlier selection by k (0: of SDP-lambda).
    progress : callable, optional
        See `solve`.

    Returns
    -------
    Choice
        The number of clusters, the criterion of each k, and the solution.

    Raises
    ------
    ValueError
        As `solve`.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.full((3, 3), 4)) - 2.
    >>> choice = spur(W, 60)
    >>> choice.k, choice.criterion.tolist(), choice.solution.X[0].round(3).tolist()
    (2, [1.0], [0.333, 0.333, 0.333, 0.0, 0.0, 0.0])
    """
    if n_comparisons < 0 or factor <= 0:
        raise ValueError(f"spur: got n_comparisons={n_comparisons}, factor={factor}, expected >= 0 and > 0")
    W, starts = checked(W), starts or {}
    n = W.shape[0]
    if n == 0:
        raise ValueError("spur: got no objects, expected at least one")
    solve_sdp = partial(solve, W, max_iterations=max_iterations, seed=seed)
    with threadpool_limits(1):
        lam = float(factor * np.sqrt(n_comparisons * np.log(n) / n))
        lambda_max, search_progress = factor * n_comparisons / n, _SearchProgress(progress)
        proof = _proof_in_range(W, lam, lambda_max, seed)
        if proof:
            return _choice_of_one(proof, int(proof.trace), lam, None)
        analysis = parallel_analysis(W, MAX_CLUSTERS, seed) if n >= MIN_OBJECTS else None
        if analysis and analysis.k == 1 and analysis.eigenvalues[0] <= CLEAR_EIGENVALUE * lam:
            return _choice_of_one(solve_sdp(k=1), 1, lam, analysis)
        if analysis and analysis.k > 1 and n > SEARCH_UP_TO:
            return _downwards(solve_sdp, analysis, lam, early_exit, tol, starts, search_progress)
        at_lam = solve_sdp(lam=lam, tol=max(tol, SEARCH_TOL), start=starts.get(0), progress=search_progress.stage(0, 2))
        rank = int(np.rint(at_lam.trace))
        if n < 4:
            return _choice_of_few_objects(solve_sdp, min(max(rank, 1), n), at_lam, lam, tol)
        low = max(2, _clusters_at(W, lambda_max, solve_sdp))
        k_range = low, max(low, min(rank + 2, n - 1))
        return _upwards(solve_sdp, k_range, at_lam, analysis, lam, early_exit, tol, starts, search_progress)


def _choice_of_one(solution: Solution, k: int, lam: float, analysis: ParallelAnalysis | None) -> Choice:
    """The choice where no other number of clusters needs to be tried."""
    return Choice(k, solution, np.array([k]), np.array([1.0]), np.ones(1, bool), None, lam, None, (k, k), 0, analysis)


def _upwards(
    solve_sdp: Callable[..., Solution],
    k_range: tuple[int, int],
    at_lam: Solution,
    analysis: ParallelAnalysis | None,
    lam: float,
    early_exit: float,
    tol: float,
    starts: Mapping[int, State],
    search_progress: "_SearchProgress",
) -> Choice:
    """The choice among all k in the range, or up to the first whose criterion exceeds `early_exit`."""
    low, high = k_range
    criteria: list[float] = []
    solutions: list[Solution] = []
    for k in range(low, high + 1):
        falling = len(criteria) > 1 and criteria[-1] < criteria[-2]
        start = starts.get(k, solutions[-1].state if falling else None)
        progress = search_progress.stage(k, high - k)
        solution = solve_sdp(k=k, tol=max(tol, SEARCH_TOL), start=start, progress=progress)
        if search_progress.stopped and solutions:
            break
        solutions.append(solution)
        criteria.append(solution.criterion(k))
        if criteria[-1] > early_exit or search_progress.stopped:
            break
    best = int(np.argmax(criteria))
    k, solution = low + best, solutions[best]
    iterations = at_lam.iterations + sum(each.iterations for each in solutions)
    if tol < SEARCH_TOL and solution.gap > tol and not search_progress.stopped:
        solution = solve_sdp(k=k, tol=tol, start=solution.state, progress=search_progress.stage(k))
        iterations += solution.iterations
    margin = float(criteria[best] - max(criteria[:best] + criteria[best + 1 :])) if len(criteria) > 1 else None
    ks = np.arange(low, low + len(criteria))
    converged = np.array([each.certified for each in solutions])
    return Choice(k, solution, ks, np.array(criteria), converged, margin, lam, at_lam, k_range, iterations, analysis)


def _downwards(
    solve_sdp: Callable[..., Solution],
    analysis: ParallelAnalysis,
    lam: float,
    early_exit: float,
    tol: float,
    starts: Mapping[int, State],
    search_progress: "_SearchProgress",
) -> Choice:
    """The choice among k = spectral k, one less, ... 2, as long as the criterion rises (departure 2)."""
    solutions: dict[int, Solution] = {}
    for k in range(analysis.k, 1, -1):
        progress = search_progress.stage(k, int(k == analysis.k > 2))
        solution = solve_sdp(k=k, tol=max(tol, COMPARED_TOL), start=starts.get(k), progress=progress)
        if search_progress.stopped and solutions:
            break
        solutions[k] = solution
        current, previous = solution.criterion(k), solutions[k + 1].criterion(k + 1) if k < analysis.k else -1.0
        if current > early_exit or current < previous or search_progress.stopped:
            break
    ks = sorted(solutions)
    criterion = np.array([solutions[k].criterion(k) for k in ks])
    converged = np.array([solutions[k].certified for k in ks])
    best = int(np.argmax(criterion))
    k, iterations = ks[best], sum(s.iterations for s in solutions.values())
    solution = solutions[k]
    if solution.gap > max(tol, LARGE_TOL) and not search_progress.stopped:
        solution = solve_sdp(k=k, tol=max(tol, LARGE_TOL), start=solution.state, progress=search_progress.stage(k))
        iterations += solution.iterations
    if solution.gap > tol:  # it was solved to a looser tolerance: the gap is reported as it is
        solution = solution._replace(certified=False, certified_by="")
    margin = float(criterion[best] - np.delete(criterion, best).max()) if len(ks) > 1 else None
    return Choice(
        k, solution, np.array(ks), criterion, converged, margin, lam, None, (ks[0], analysis.k), iterations, analysis
    )


def _proof_in_range(W, lowest: float, highest: float, seed: int) -> Solution | None:
    """A partition that is proven optimal for SDP-k and for SDP-lambda at some lambda between lambda_min and lambda_max.

    Its k lies in the range of the search, because k falls with lambda, and its criterion is 1, which none can beat.
    """
    n = W.shape[0]
    if n < 4:
        return None
    max_clusters = min(n - 1, MAX_CLUSTERS)
    leading = int((top_eigenpairs(W, max_clusters, tol=1e-4)[0] > lowest).sum())
    for k in range(2, min(leading + 1, max_clusters) + 1):
        solution = solve_by_certificate(W, k, seed, (lowest, highest))
        if solution:
            return solution
    return None


def _choice_of_few_objects(
    solve_sdp: Callable[..., Solution], k: int, at_lam: Solution, lam: float, tol: float
) -> Choice:
    solution = solve_sdp(k=k, tol=tol)
    ks, criterion = np.array([k]), np.array([solution.criterion(k)])
    converged = np.array([solution.certified])
    return Choice(
        k, solution, ks, criterion, converged, None, lam, at_lam, (k, k), at_lam.iterations + solution.iterations
    )


def _clusters_at(W, lam: float, solve_sdp: Callable[..., Solution]) -> int:
    """round(tr X) of SDP-lambda; one eigenvalue when it shows that all objects in one cluster is optimal."""
    if top_eigenpairs(W, 1, tol=1e-6)[0][0] <= lam:
        return 1
    return int(np.rint(solve_sdp(lam=lam, tol=SEARCH_TOL).trace))


class _SearchProgress:
    """Progress of a series of solves, as iterations of all of them. `stopped`: the callback has asked to end the
    search."""

    def __init__(self, progress: Callable[..., bool | None] | None):
        self.progress, self.stopped, self._earlier, self._current = progress, False, 0, 0

    def stage(self, k: int, n_later: int = 0) -> Callable[..., bool] | None:
        """The progress callback of the solve with k clusters (0: of SDP-lambda), with about `n_later` solves after it;
        None if there is no callback."""
        progress = self.progress
        if progress is None:
            return None
        self._earlier += self._current
        self._current = 0

        def report(n_done: int, n_total: int, **figures: float) -> bool:
            self._current = n_done
            self.stopped |= bool(
                progress(self._earlier + n_done, self._earlier + n_total * (1 + n_later), k=k, **figures)
            )
            return self.stopped

        return report
