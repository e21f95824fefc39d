"""SPUR for comparisons: how many clusters? (Perrot et al. 2020, sec. 5 and App. D; Yan et al. 2018.)

    lambda_min = f sqrt(c ln n / n),  lambda_max = f c / n,  c comparisons, f = 2 (f = 1: the paper's letter)
    for k = max(2, k_lambda_max) .. k_lambda_min + 2:  criterion(k) = sum_{i <= k} sigma_i(X_k) / tr X_k,  X_k of SDP-k

and the k with the largest criterion (1 at most, at a partition) is kept. f = 2 by default because <W, X> here counts
both triangles of W: it is what the published experiments ran. The literal lambda_min lies below the noise edge (about
4 sqrt(c / n)) and gives high rank and too many clusters. k_lambda_max needs no solve: one eigenvalue shows that
X = 1 1'/n is optimal there. Certify first: a partition that is proven optimal for SDP-k, with a multiplier of the trace
between lambda_min and lambda_max, has a k in that range and criterion 1, the maximum, so nothing is solved at all.

Three departures from the paper. Look first: where the leading eigenvalue of W does not stand above those of random
answers (`parallel_analysis`), nor clearly above lambda_min, k is 1 and nothing is solved; the paper's search always
ends with two clusters at least. And of more than `SEARCH_UP_TO` objects, whose SDPs take long, not all k are searched
but those from the spectral one downwards (one more than the eigenvalues that stand out: so many clusters the answers
can show) while the criterion rises. And the search ends at the first k whose criterion exceeds .99: no other can be
better by more than .01. Each k says whether it was solved to `SEARCH_TOL`, for so many objects `COMPARED_TOL`; then the
chosen one is solved on to `LARGE_TOL`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering.admm import State
from stream_engine.clustering.cascade import Solution, proven, solve
from stream_engine.clustering.parallel_analysis import LEAST, ParallelAnalysis, parallel_analysis
from stream_engine.clustering.partition import MOST
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts.spectral import top_eigenpairs

SEARCH_TOL = 1e-3  # of all that are compared
COMPARED_TOL, LARGE_TOL = 5e-2, 1e-2  # the same, and of the chosen one, for more than SEARCH_UP_TO objects
CLEAR = 1.25  # of lambda_min: an eigenvalue above is searched for clusters whatever random answers give
SEARCH_UP_TO = 500  # objects: every k in the range is tried; of more only those next to the spectral one


class Choice(NamedTuple):
    """The number of clusters found and how: `criterion[t]` belongs to `tried[t]` clusters."""

    k: int
    solution: Solution  # of SDP-k at the chosen k
    tried: np.ndarray  # (t,) int64
    criterion: np.ndarray  # (t,) float64
    converged: np.ndarray  # (t,) bool: the SDP was solved to the tolerance before its iterations ran out
    margin: float | None  # by how much the criterion beats the second best; None when only one k was tried
    lam: float  # lambda_min
    at_lam: Solution | None  # of SDP-lambda there; None when a partition was proven optimal before it was needed
    k_range: tuple[int, int]  # what was searched
    iterations: int  # ADMM iterations in all
    analysis: ParallelAnalysis | None = None  # before anything was solved; None where there was no need to look

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
        highest, search_tol, tell = factor * n_comparisons / n, max(tol, SEARCH_TOL), _Told(progress)
        proof = _proven(W, lam, highest, seed)
        if proof:
            k = int(proof.trace)
            return Choice(k, proof, np.array([k]), np.array([1.0]), np.ones(1, bool), None, lam, None, (k, k), 0)
        seen = parallel_analysis(W, MOST, seed) if n >= LEAST else None
        if seen and seen.k == 1 and seen.eigenvalues[0] <= CLEAR * lam:
            return Choice(
                1, solve_sdp(k=1), np.array([1]), np.array([1.0]), np.ones(1, bool), None, lam, None, (1, 1), 0, seen
            )
        if seen and seen.k > 1 and n > SEARCH_UP_TO:
            return _downwards(solve_sdp, seen, lam, early_exit, tol, starts, tell)
        at_lam = solve_sdp(lam=lam, tol=search_tol, start=starts.get(0), progress=tell.stage(0, 2))
        rank = int(np.rint(at_lam.trace))
        if n < 4:
            return _small(solve_sdp, min(max(rank, 1), n), at_lam, lam, tol)
        low = max(2, _clusters_at(W, highest, solve_sdp))
        high = max(low, min(rank + 2, n - 1))
        tried: list[float] = []
        solutions: list[Solution] = []
        for k in range(low, high + 1):
            falling = len(tried) > 1 and tried[-1] < tried[-2]
            start = starts.get(k, solutions[-1].state if falling else None)
            solution = solve_sdp(k=k, tol=search_tol, start=start, progress=tell.stage(k, high - k))
            if tell.stopped and solutions:
                break
            solutions.append(solution)
            tried.append(solution.criterion(k))
            if tried[-1] > early_exit or tell.stopped:
                break
        best = int(np.argmax(tried))
        k, solution = low + best, solutions[best]
        spent = at_lam.iterations + sum(s.iterations for s in solutions)
        if tol < SEARCH_TOL and solution.gap > tol and not tell.stopped:
            solution = solve_sdp(k=k, tol=tol, start=solution.state, progress=tell.stage(k))
            spent += solution.iterations
    margin = float(tried[best] - max(tried[:best] + tried[best + 1 :])) if len(tried) > 1 else None
    searched = np.arange(low, low + len(tried))
    converged = np.array([each.certified for each in solutions])
    return Choice(k, solution, searched, np.array(tried), converged, margin, lam, at_lam, (low, high), spent, seen)


def _downwards(
    solve_sdp: Callable[..., Solution],
    seen: ParallelAnalysis,
    lam: float,
    early_exit: float,
    tol: float,
    starts: Mapping[int, State],
    tell: "_Told",
) -> Choice:
    """The choice among k = spectral k, one less, ... 2, as long as the criterion rises."""
    solutions: dict[int, Solution] = {}
    for k in range(seen.k, 1, -1):
        progress = tell.stage(k, int(k == seen.k > 2))
        solution = solve_sdp(k=k, tol=max(tol, COMPARED_TOL), start=starts.get(k), progress=progress)
        if tell.stopped and solutions:
            break
        solutions[k] = solution
        now, before = solution.criterion(k), solutions[k + 1].criterion(k + 1) if k < seen.k else -1.0
        if now > early_exit or now < before or tell.stopped:
            break
    tried = sorted(solutions)
    criterion = np.array([solutions[k].criterion(k) for k in tried])
    converged = np.array([solutions[k].certified for k in tried])
    best = int(np.argmax(criterion))
    k, spent = tried[best], sum(s.iterations for s in solutions.values())
    solution = solutions[k]
    if solution.gap > max(tol, LARGE_TOL) and not tell.stopped:
        solution = solve_sdp(k=k, tol=max(tol, LARGE_TOL), start=solution.state, progress=tell.stage(k))
        spent += solution.iterations
    if solution.gap > tol:  # the gap is said as it is
        solution = solution._replace(certified=False, certified_by="")
    margin = float(criterion[best] - np.delete(criterion, best).max()) if len(tried) > 1 else None
    return Choice(
        k, solution, np.array(tried), criterion, converged, margin, lam, None, (tried[0], seen.k), spent, seen
    )


def _proven(W, lowest: float, highest: float, seed: int) -> Solution | None:
    """A partition that is proven optimal for SDP-k and for SDP-lambda at some lambda between lambda_min and lambda_max.

    Its k lies in the range of the search, because k falls with lambda, and its criterion is 1, which none can beat.
    """
    n = W.shape[0]
    if n < 4:
        return None
    most = min(n - 1, MOST)
    leading = int((top_eigenpairs(W, most, tol=1e-4)[0] > lowest).sum())
    for k in range(2, min(leading + 1, most) + 1):
        solution = proven(W, k, seed, (lowest, highest))
        if solution:
            return solution
    return None


def _small(solve_sdp: Callable[..., Solution], k: int, at_lam: Solution, lam: float, tol: float) -> Choice:
    solution = solve_sdp(k=k, tol=tol)
    tried, criterion = np.array([k]), np.array([solution.criterion(k)])
    converged = np.array([solution.certified])
    return Choice(
        k, solution, tried, criterion, converged, None, lam, at_lam, (k, k), at_lam.iterations + solution.iterations
    )


def _clusters_at(W, lam: float, solve_sdp: Callable[..., Solution]) -> int:
    """round(tr X) of SDP-lambda; one eigenvalue when it shows that all objects in one cluster is optimal."""
    if top_eigenpairs(W, 1, tol=1e-6)[0][0] <= lam:
        return 1
    return int(np.rint(solve_sdp(lam=lam, tol=SEARCH_TOL).trace))


class _Told:
    """Progress of one solve after the other, as iterations of all of them. `stopped`: whoever listens has enough."""

    def __init__(self, progress: Callable[..., bool | None] | None):
        self.progress, self.stopped, self._before, self._now = progress, False, 0, 0

    def stage(self, k: int, more: int = 0) -> Callable[..., bool] | None:
        """The progress callback of the solve with k clusters (0: of SDP-lambda), after which about so many more are to
        come; None where nobody listens."""
        progress = self.progress
        if progress is None:
            return None
        self._before += self._now
        self._now = 0

        def tell(done: int, total: int, **figures: float) -> bool:
            self._now = done
            self.stopped |= bool(progress(self._before + done, self._before + total * (1 + more), k=k, **figures))
            return self.stopped

        return tell
