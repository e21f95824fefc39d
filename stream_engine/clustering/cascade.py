"""Solves the SDPs of clustering, cheapest step first: a partition, a proof that it is optimal, and the ADMM from there
if there is no such proof."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from threadpoolctl import threadpool_limits

from stream_engine.clustering import admm, certificate, partition
from stream_engine.clustering.admm import State
from stream_engine.clustering.similarity_matrix import blocks, checked
from stream_engine.counts.spectral import dense, spectral_size
from stream_engine.data import available_memory

#     SDP-lambda:  max <W, X> - lambda tr X   s.t.  X >= 0, X psd, X 1 = 1
#     SDP-k:       max <W, X>                 s.t.  X >= 0, X psd, X 1 = 1, tr X = k
#
# W is symmetric with a zero diagonal and enters <W, X> = sum_ij W_ij X_ij with both of its triangles. (The authors'
# published code counts each off-diagonal pair once, so a lambda given to it acts like 2 lambda here.) At a clustering,
# X_ij = 1/|C| for i, j in the same cluster C and 0 elsewhere, and tr X is the number of clusters.
FIRST_PENALTY = 10.0  # rho of the first iteration, for W scaled to unit norm
ADMM_MATRICES = 10  # (n, n) matrices that the ADMM and its bounds hold at most, ...
ACCELERATED_ADMM_MATRICES = 18  # ... with the history of Anderson acceleration
EIGENVALUES_UP_TO = 1500  # objects up to which the least eigenvalue of X is computed; for more it is bounded
MIN_UNIT = 1e-2  # share of the norm of W that a gap is measured against at least


class Residuals(NamedTuple):
    """How far X is from each constraint, 0 where it holds."""

    row_sums: float  # max |X 1 - 1|
    trace: float  # |tr X - k| for SDP-k, 0 for SDP-lambda
    most_negative: float  # min(0, min X)
    least_eigenvalue: float  # min(0, a lower bound on lambda_min(X))


class Solution(NamedTuple):
    """A feasible point of the SDP with a rigorous upper bound on the optimum: objective <= optimum <= upper_bound.

    The point is either the partition `labels` (X is then its normalised matrix and is not stored) or `matrix`.
    `factor` (n, r) and `x` (r,) are the last iterate, 1 1'/n + factor diag(x) factor', for rounding and the criterion.
    `gap` = (upper_bound - objective) / max(|<W, X>|, |lambda| tr X, 0.01 |W|): relative to the objective's own terms,
    which for SDP-lambda may nearly cancel.
    """

    labels: np.ndarray | None  # (n,) int32
    matrix: np.ndarray | None  # (n, n)
    factor: np.ndarray
    x: np.ndarray
    trace: float
    objective: float
    upper_bound: float
    gap: float
    residuals: Residuals
    certified: bool  # gap <= the tolerance asked for
    certified_by: str  # "partition", "partition, Lanczos", "dual bound", "only feasible point" or "" when not certified
    iterations: int
    state: State | None  # for a warm start; None where nothing was iterated

    @property
    def X(self) -> np.ndarray:
        """The feasible point as an (n, n) array."""
        if self.matrix is not None:
            return self.matrix
        if self.labels is None:
            raise AssertionError("a solution is a partition or a matrix")
        return partition.normalised_matrix(self.labels)

    @property
    def rows(self) -> np.ndarray:
        """(n, r) rows whose distances are those between the rows of the iterate X."""
        return self.factor * self.x

    @property
    def solved(self) -> str:
        """How well the optimisation is solved, as a phrase; it says nothing about whether the clusters are real."""
        if not self.certified:
            return f"not to the requested tolerance: gap {self.gap:.2g}" if self.iterations else "no program was solved"
        how = "exactly" if self.certified_by.startswith(("partition", "only")) else f"to a gap of {self.gap:.2g}"
        return f"{how} (certified by {self.certified_by}); a certified solution does not imply that there are clusters"

    def criterion(self, k: int) -> float:
        """SPUR: the sum of the k largest eigenvalues of X over its trace; 1 exactly for a partition into k clusters."""
        return float((1 + np.sort(self.x)[::-1][: k - 1].sum()) / (1 + self.x.sum()))


def solve(
    W,
    k: int | None = None,
    lam: float | None = None,
    tol: float = 1e-4,
    max_iterations: int = 3000,
    start: State | None = None,
    seed: int = 0,
    progress: Callable[..., bool | None] | None = None,
) -> Solution:
    r"""Solve the semidefinite program of a clustering, SDP-k (k given) or SDP-lambda (lam given), to a certified gap.

    .. math:: \max_X \; \langle W, X \rangle - \lambda \operatorname{tr} X \quad\text{or}\quad \max_X \; \langle W, X
    \rangle, \; \operatorname{tr} X = k \qquad \text{subject to } X \ge 0,\; X \succeq 0,\; X 1 = 1

    The inner product counts both triangles of W. (lambda in the authors' published code acts like half of this one.)

    Parameters
    ----------
    W : array or scipy sparse matrix, shape (n, n)
        Symmetric similarities; the diagonal is ignored.
    k : int, optional
        Number of clusters.
    lam : float, optional
        lambda.
    tol : float
        Relative gap to reach.
    max_iterations : int
        Maximum number of iterations; then the result has `certified=False`, and its gap is still rigorous.
    start : State, optional
        The `state` of an earlier solution.
    seed : int
        Random seed.
    progress : callable, optional
        Called as `progress(iteration, expected, gap=, objective=, bound=)`, with the iterations that are expected to be
        needed; True ends the solution at the best point so far, with its gap.

    Returns
    -------
    Solution
        The solution with its bound.

    Raises
    ------
    ValueError
        For an invalid W, neither or both of k and lam, or k outside 1 .. n.
    TooLarge
        If the program does not fit into memory.

    Notes
    -----
    A certificate costs O(n^3 / 3) with a small constant; ADMM O(n^2 r) to O(n^3) per iteration, and about 10 n^2
    floats. BLAS runs on one thread.

    References
    ----------
    Perrot, Esser & Ghoshdastidar 2020, sec. 3 and 5.

    Examples
    --------
    >>> W = [[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0]]
    >>> s = solve(W, k=2)
    >>> s.labels.tolist(), s.objective, s.certified_by, s.iterations
    ([0, 0, 1, 1], 4.0, 'partition', 0)
    """
    W = checked(W)
    n = W.shape[0]
    _check_arguments(n, k, lam)
    with threadpool_limits(1):
        if n == 1 or k in (1, n):
            labels_of_one = np.arange(n) if k == n else np.zeros(n, int)
            return _partition_solution(W, labels_of_one.astype(np.int32), lam, 0.0, "only feasible point")
        labels = best_partition(W, k, lam, seed)
        proof = certificate.certify(W, labels, lam) if k is None or labels.max() + 1 == k else None
        if proof:
            return _partition_solution(W, labels, lam, proof.upper_bound, proof.by)
        _require_memory(ACCELERATED_ADMM_MATRICES if n <= admm.ACCELERATE_UP_TO else ADMM_MATRICES, n)
        return _by_admm(W, k, lam, labels, tol, max_iterations, start, progress)


def solve_by_certificate(W, k: int, seed: int, lam_range: tuple[float, float]) -> Solution | None:
    """SDP-k by certificate alone, with a multiplier of the trace in `lam_range`; None when there is no such proof."""
    labels = best_partition(W, k, None, seed)
    proof = certificate.certify(W, labels, None, lam_range) if labels.max() + 1 == k else None
    return _partition_solution(W, labels, None, proof.upper_bound, proof.by) if proof else None


def best_partition(W, k: int | None, lam: float | None, seed: int) -> np.ndarray:
    """A partition of large value: spectral start and refinement, over several k for SDP-lambda."""
    if k is not None:
        return partition.refine(W, partition.spectral_partition(W, k, seed))
    penalty = lam or 0.0
    partitions = partition.candidates(W, penalty, seed)
    return max(partitions, key=lambda labels: partition.value(W, labels) - penalty * (labels.max() + 1))


def _require_memory(matrices: int, n: int) -> None:
    """Raise `TooLarge` unless so many (n, n) matrices fit."""
    available_memory.require(
        f"sdp of {n:,} objects ({matrices} matrices of {n} x {n})",
        available_memory.matrices(matrices, n),
        "raise --memory-gb, choose objects (objects=5000), or use the refit `spectral`",
    )


def _check_arguments(n: int, k: int | None, lam: float | None) -> None:
    if (k is None) == (lam is None):
        raise ValueError(f"sdp: got k={k} and lam={lam}, expected exactly one of them")
    if n == 0:
        raise ValueError("sdp: got no objects, expected at least one")
    if k is not None and not 1 <= k <= n:
        raise ValueError(f"sdp: got k={k} for {n} objects, expected 1 to {n}")
    if lam is not None and not np.isfinite(lam):
        raise ValueError(f"sdp: got lam={lam}, expected a finite number")


def _partition_solution(W, labels: np.ndarray, lam: float | None, bound: float, by: str) -> Solution:
    """The solution that is a partition, proven optimal."""
    k = int(labels.max()) + 1
    objective = partition.value(W, labels) - (lam or 0.0) * k
    bound = max(bound, objective) if by != "only feasible point" else objective
    factor, x = partition_factor(labels)
    gap = (bound - objective) / gap_unit(objective, lam, float(k), 1.0 if bound == objective else spectral_size(W))
    return Solution(
        labels, None, factor, x, float(k), objective, bound, gap, Residuals(0.0, 0.0, 0.0, 0.0), True, by, 0, None
    )


def partition_factor(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X_P - 1 1'/n as factor diag(1) factor': orthonormal, orthogonal to 1. O(n k)."""
    sizes = np.bincount(labels).astype(float)
    k = len(sizes)
    roots = np.sqrt(sizes / len(labels))  # coordinates of 1 / sqrt(n) in the basis of unit cluster indicators
    around = np.linalg.qr(np.column_stack([roots, np.eye(k)]))[0][:, 1:k]
    return (around / np.sqrt(sizes)[:, None])[labels], np.ones(k - 1)


def gap_unit(objective: float, lam: float | None, trace: float, norm: float) -> float:
    """What a gap is measured against: the size of the objective's terms."""
    penalty = (lam or 0.0) * trace
    return max(abs(objective + penalty), abs(penalty), MIN_UNIT * norm)


def _by_admm(W, k, lam, labels, tol, max_iterations, start, progress) -> Solution:
    """The solution by ADMM, or the partition `labels` if the ADMM finds none better, with the ADMM's bound."""
    scale = spectral_size(W, lam or 0.0)
    C = dense(W) / scale
    C[np.diag_indices(len(C))] -= (lam or 0.0) / scale
    scaled_lam = None if lam is None else lam / scale
    partition_objective = (partition.value(W, labels) - (lam or 0.0) * (labels.max() + 1)) / scale
    if k is not None and labels.max() + 1 != k:
        partition_objective = -np.inf

    def unit(X, objective):
        return gap_unit(objective, scaled_lam, float(np.trace(X)), 1.0)

    start_state = start or _start(W, labels, lam, scale)

    gaps: list[float] = []

    def report_progress(iteration: int, gap: float, objective: float, bound: float) -> bool | None:
        gaps.append(gap)
        n_expected = min(iteration * _growth_factor(gaps, tol), max_iterations)
        return progress(iteration, int(n_expected), gap=gap, objective=objective, bound=bound)

    run = admm.run(
        C, k, scale, unit, tol, max_iterations, start_state, partition_objective, report_progress if progress else None
    )
    if partition_objective * scale >= run.objective:
        solution = _partition_solution(W, labels, lam, run.upper_bound, "dual bound")
        # the iterate is on its way to the partition: a later run starts from the partition, with this dual
        state = State(partition.normalised_matrix(labels) + np.minimum(run.state.V, 0.0), run.state.rho)
        solution = solution._replace(factor=run.factor, x=run.x, iterations=run.iterations, state=state)
    else:
        trace = float(np.trace(run.X))
        gap = max(0.0, run.upper_bound - run.objective) / gap_unit(run.objective, lam, trace, scale)
        solution = Solution(
            None,
            run.X,
            run.factor,
            run.x,
            trace,
            run.objective,
            max(run.upper_bound, run.objective),
            gap,
            residuals(run.X, k),
            True,
            "dual bound",
            run.iterations,
            run.state,
        )
    return solution if solution.gap <= tol * (1 + 1e-9) else solution._replace(certified=False, certified_by="")


def _growth_factor(gaps: list[float], tol: float) -> float:
    """The expected number of checks in all over the number so far, if the gap goes on falling as in their second half.

    >>> _growth_factor([0.8, 0.4, 0.2, 0.1], 0.025)
    1.5
    """
    half = (len(gaps) - 1) // 2
    log_fall = np.log(max(gaps[half], tol) / max(gaps[-1], tol))
    if gaps[-1] <= tol:
        return 1.0
    checks_left = np.log(gaps[-1] / tol) / log_fall * (len(gaps) - 1 - half) if log_fall > 0 else np.inf
    return float(1.0 + checks_left / len(gaps))


def _start(W, labels: np.ndarray, lam: float | None, scale: float) -> State:
    """The first state, from a partition and its clipped rank-one dual: V = X_P - N / (rho scale)."""
    block_sums = blocks(W, labels, int(labels.max()) + 1)
    if lam is None:
        largest = certificate.largest_lambda(labels, block_sums)
        lam = certificate.bulk(W, labels, block_sums, largest) if np.isfinite(largest) else 0.0
    V = partition.normalised_matrix(labels)
    V -= certificate.multiplier(certificate.dual(labels, block_sums, lam)) / (FIRST_PENALTY * scale)
    return State(V, FIRST_PENALTY)


def residuals(X: np.ndarray, k: int | None) -> Residuals:
    """How far X is from the constraints. O(n^3); for many objects lambda_min is bounded by a Cholesky factorisation."""
    smallest = _least_eigenvalue(X) if len(X) > EIGENVALUES_UP_TO else float(np.linalg.eigvalsh(X)[0])
    return Residuals(
        float(np.abs(X.sum(axis=1) - 1).max()),
        0.0 if k is None else abs(float(np.trace(X)) - k),
        min(0.0, float(X.min())),
        min(0.0, smallest),
    )


def _least_eigenvalue(X: np.ndarray) -> float:
    """-1e-9 when that is proven to be a lower bound, else the eigenvalue itself."""
    lifted_X = X.copy()
    lifted_X[np.diag_indices(len(X))] += 1e-9
    try:
        cholesky(lifted_X, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return float(np.linalg.eigvalsh(X)[0])
    return -1e-9
