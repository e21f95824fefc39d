"""Partial order embedding (McFee & Lanckriet 2011): LPOE, KPOE, MKPOE, full and diagonal; GNMDS is KPOE with K = I."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import dual_proof, factored, linear, pair_lists, programs
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.gram_comparisons import adjoint, satisfied
from stream_engine.kernel_learning.problem import Certificate, Problem

#     min  sum_p tr(W^p K^p) + beta / |C| sum_t w_t max(0, 1 + d(i, j) - d(k, l))
#     with d(i, j) = sum_p (K^p_i - K^p_j)' W^p (K^p_i - K^p_j)
#
# over W^p PSD (full, Algorithm 4) or diagonal and non-negative (sec. 4.4). |C| = sum w. With K = R R' and A = R' W R
# the full problem reads tr(W K) = tr A, K W K = R A R': whitened coordinates, in which the identity is the right metric
# for steps and LPOE (R = X, W = A) is the same program. Solved to an exact dual gap: `factored` (full), `linear`
# (diagonal). The embedding is g(x) = (N^p K^p_x)_p with W^p = N^p' N^p (eq. 9), for training objects and new ones
# alike.
MIN_RELATIVE_EIGENVALUE = 1e-9  # of a kernel; smaller ones are treated as 0


class Embedding(NamedTuple):
    """A learned embedding. `maps[p]` is N^p, (d_p, n): g(x) = concatenation of N^p K^p_x.

    Full: `weights[p]` is W^p (n, n). Diagonal: its diagonal (n,). For LPOE columns of X take the place of K_x.
    """

    maps: list[np.ndarray]
    weights: list[np.ndarray]
    gram: np.ndarray  # (n, n): sum_p K^p W^p K^p
    satisfied: float  # GAUC on the training comparisons
    objective: float
    bound: float
    iterations: int
    converged: bool
    dual: np.ndarray  # (m,)

    @property
    def gap(self) -> float:
        """(objective - bound) / objective."""
        return Certificate(self.objective, self.bound, self.dual).gap


class Factor(NamedTuple):
    """K = root root', and `inverse` = its pseudo-inverse: root = V sqrt(L), inverse = V / sqrt(L) transposed."""

    root: np.ndarray  # (n, r)
    inverse: np.ndarray  # (r, n)


def factor(kernel: np.ndarray) -> Factor:
    """The factor of a PSD kernel, without directions below 1e-9 of the largest. O(n^3).

    >>> factor(np.diag([4.0, 0.0, 1.0])).root.shape
    (3, 2)
    """
    if _is_identity(kernel):
        return Factor(np.eye(len(kernel)), np.eye(len(kernel)))
    values, vectors = np.linalg.eigh((kernel + kernel.T) / 2)
    keep = np.flatnonzero(values > MIN_RELATIVE_EIGENVALUE * max(values[-1], 0.0))[::-1]
    root = np.sqrt(values[keep])
    return Factor(np.ascontiguousarray(vectors[:, keep] * root), (vectors[:, keep] / root).T)


def _is_identity(matrix: np.ndarray) -> bool:
    return matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(len(matrix)))


def fit(
    rows: np.ndarray,
    kernels: Sequence[np.ndarray],
    beta: float,
    *,
    diagonal: bool = False,
    weight: np.ndarray | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    solver: str = "engine",
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Embedding:
    """MKPOE over (m, 4) comparisons near_i, near_j, far_i, far_j and m >= 1 kernels (n, n); KPOE for one kernel.

    `weight` (m,) are votes. Stops at a relative dual gap of `tolerance`. `solver` "cvxpy" solves the program as
    `programs` declares it, for few objects; raises `TooLarge` and `NotSolved`.

    >>> e = fit(np.array([[0, 1, 0, 2]]), [np.eye(3)], beta=10.0)
    >>> round(e.objective, 3), e.satisfied          # GNMDS: the far pair needs d = 1 + d(near)
    (0.577, 1.0)
    """
    rows, weight = _check_arguments(rows, weight, beta)
    if diagonal:
        contiguous, limits = [np.ascontiguousarray(k, dtype=float) for k in kernels], (tolerance, max_iterations)
        return _fit_diagonal(rows, contiguous, weight, limits, solver, progress)
    factors = [factor(np.asarray(k, float)) for k in kernels]
    roots = [None if _is_identity(f.root) else f.root for f in factors]
    problem = _problem(rows, len(kernels[0]), roots, weight)
    if solver == "cvxpy":
        solution = _by_cvxpy(problem, tolerance)
    else:
        solution = factored.solve(problem, None, None, tolerance, max_iterations, progress)
    halves = [_principal_half(root) for root in solution.point.roots]
    maps = [n_p @ f.inverse for n_p, f in zip(halves, factors)]
    weights = [n_p.T @ n_p for n_p in maps]
    return _embedding(rows, weight, solution, maps, weights, form.gram(problem, solution.point.roots))


def fit_linear(
    rows: np.ndarray,
    features: np.ndarray,
    beta: float,
    *,
    diagonal: bool = False,
    weight: np.ndarray | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    solver: str = "engine",
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Embedding:
    """LPOE, Algorithm 2: W (D, D) over features (n, D) with tr W as the regulariser; new objects embed by their
    features.

    >>> e = fit_linear(np.array([[0, 1, 0, 2]]), np.array([[0.0], [1.0], [2.0]]), beta=10.0)
    >>> e.weights[0].round(3).tolist()              # d(0, 2) - d(0, 1) = 3 W >= 1
    [[0.333]]
    """
    rows, weight = _check_arguments(rows, weight, beta)
    features = np.ascontiguousarray(features, dtype=float)
    if not diagonal:
        problem = _problem(rows, len(features), [features], weight)
        if solver == "cvxpy":
            solution = _by_cvxpy(problem, tolerance)
        else:
            solution = factored.solve(problem, None, None, tolerance, max_iterations, progress)
        half = _principal_half(solution.point.roots[0])
        return _embedding(rows, weight, solution, [half], [half.T @ half], form.gram(problem, solution.point.roots))
    i, j, k, l = rows.T
    columns = (features[i] - features[j]) ** 2 - (features[k] - features[l]) ** 2
    map_of = linear.dense_map(columns, np.ones(features.shape[1]))
    if solver == "cvxpy":
        program = _diagonal_by_cvxpy(map_of, rows, [features], [map_of.cost], weight, tolerance)
    else:
        program = linear.solve(map_of, weight, tolerance, None, max_iterations, progress)
    axes = np.flatnonzero(program.mu > 0)
    map_matrix = np.zeros((len(axes), features.shape[1]))
    map_matrix[np.arange(len(axes)), axes] = np.sqrt(program.mu[axes])
    coordinates = features @ map_matrix.T
    return _embedding(rows, weight, program, [map_matrix], [program.mu.copy()], coordinates @ coordinates.T)


def embed(embedding: Embedding, columns: Sequence[np.ndarray]) -> np.ndarray:
    """(q, d) coordinates of q objects from their kernel columns K^p_x, (n, q) per kernel (eq. 9); LPOE: features', (D,
    q).

    Squared distances between rows are the learned d. O(q n d).
    """
    return np.concatenate([n_p @ k_x for n_p, k_x in zip(embedding.maps, columns, strict=True)], axis=0).T


def smallest_beta(
    rows: np.ndarray,
    weight: np.ndarray,
    kernels: Sequence[np.ndarray],
    *,
    diagonal: bool = False,
    features: np.ndarray | None = None,
) -> float | None:
    """The beta up to which W = 0 is optimal: the scale for grids. None: it is optimal at every beta. O(sum n^3).

    y = beta w / |C| is the dual point at W = 0, and feasible exactly up to that beta. `features` (LPOE) replace
    kernels.

    >>> round(smallest_beta(np.array([[0, 1, 0, 2]]), np.ones(1), [np.eye(3)]), 3)
    0.577
    """
    s = adjoint(weight / weight.sum(), rows, len(kernels[0]) if features is None else len(features))
    largest_violation = 0.0
    if features is not None:
        g = features.T @ s @ features
        largest_violation = float(np.max(-np.diag(g))) if diagonal else -form.smallest_eigenvalue(g)
    for kernel in kernels if features is None else []:
        if diagonal:
            cost, back = np.diag(kernel), ((kernel @ s) * kernel).sum(axis=1)
            largest_violation = max(largest_violation, float(np.max(-back[cost > 0] / cost[cost > 0])))
        elif _is_identity(kernel):
            lists = pair_lists.of_rows(rows, len(kernel))
            sparse = pair_lists.laplacian(lists, pair_lists.shares(lists, weight / weight.sum()))
            largest_violation = max(largest_violation, -float(dual_proof.smallest_eigenvalues(sparse, 1)[0][0]))
        else:
            root = factor(kernel).root
            largest_violation = max(largest_violation, -form.smallest_eigenvalue(root.T @ s @ root))
    return 1.0 / largest_violation if largest_violation > 1e-12 else None


def _check_arguments(rows, weight, beta) -> tuple[np.ndarray, np.ndarray]:
    """(m, 4) int32 rows, and (m,) weights that sum to beta."""
    if not beta > 0 or len(rows) == 0:
        raise ValueError(
            f"mkpoe: got beta {beta} and {len(rows)} comparisons; expected beta > 0 and at least one comparison"
        )
    rows = np.ascontiguousarray(rows, dtype=np.int32)
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, float)
    return rows, weight * (beta / weight.sum())


def _problem(rows, n, roots, weight) -> Problem:
    p, none = len(roots), np.empty((len(rows), 0))
    return Problem(n, rows, weight, "hinge", tuple(roots), np.ones(p), np.ones(p), none, np.empty(0))


def _by_cvxpy(problem: Problem, tolerance: float) -> factored.Solution:
    """cvxpy's solution by factors, with the proof of how good it is."""
    optimum = programs.full(problem.rows, problem.n, problem.factors, problem.weight)
    roots = [factored.pivoted_cholesky(w, MIN_RELATIVE_EIGENVALUE) for w in optimum.weights]
    return factored.certify(problem, factored.Point(roots, np.empty(0)), optimum.y, optimum.iterations, tolerance)


def _diagonal_by_cvxpy(columns: linear.ColumnMap, rows, points, costs, weight, tolerance) -> linear.LinearSolution:
    """cvxpy's solution of the linear program, with the proof of how good it is."""
    optimum = programs.diagonal(rows, points, costs, weight)
    mu = np.concatenate(optimum.weights)
    mu[mu <= MIN_RELATIVE_EIGENVALUE * mu.max(initial=0.0)] = 0.0
    return linear.certify(columns, weight, mu, optimum.y, optimum.iterations, tolerance)


def _principal_half(root: np.ndarray) -> np.ndarray:
    """(rank, r): N with N'N = L L', largest direction first, from L (r, k)."""
    vectors, sizes, _ = np.linalg.svd(root, full_matrices=False)
    keep = sizes > 1e-6 * max(sizes.max(initial=0.0), 1e-300)
    return (vectors[:, keep] * sizes[keep]).T


def _embedding(rows, weight, solution: factored.Solution | linear.LinearSolution, maps, weights, gram) -> Embedding:
    c = solution.certificate
    return Embedding(
        maps,
        weights,
        gram,
        satisfied(gram, rows, weight) or 0.0,
        c.objective,
        c.bound,
        solution.iterations,
        solution.converged,
        c.dual,
    )


def diagonal_map(rows: np.ndarray, kernels: Sequence[np.ndarray]) -> linear.ColumnMap:
    """Column (p, i): (K^p_i,near_i - K^p_i,near_j)^2 - (K^p_i,far_i - K^p_i,far_j)^2, the excess per unit of W^p_ii.

    D'y for all columns at once is diag(K S K), S = sum y_t B_t: O(n^3) a kernel, whatever m.
    """
    n = len(kernels[0])
    i, j, k, l = rows.T
    cost = np.concatenate([np.diag(kernel) for kernel in kernels])

    def take(numbers):
        out = np.empty((len(rows), len(numbers)))
        for q, column in enumerate(numbers):
            v = kernels[column // n][column % n]
            out[:, q] = (v[i] - v[j]) ** 2 - (v[k] - v[l]) ** 2
        return out

    def back(y):
        s = adjoint(y, rows, n)
        return np.concatenate([((kernel @ s) * kernel).sum(axis=1) for kernel in kernels])

    return linear.ColumnMap(len(rows), np.where(cost > 0, cost, 1.0), take, back)  # K_ii = 0: the column is 0 anyway


def _fit_diagonal(rows, kernels, weight, limits, solver, progress) -> Embedding:
    n, (tolerance, max_iterations), columns = len(kernels[0]), limits, diagonal_map(rows, kernels)
    if solver == "cvxpy":
        costs = [columns.cost[p * n : (p + 1) * n] for p in range(len(kernels))]
        program = _diagonal_by_cvxpy(columns, rows, kernels, costs, weight, tolerance)
    else:
        program = linear.solve(columns, weight, tolerance, None, max_iterations, progress)
    weights = [program.mu[p * n : (p + 1) * n].copy() for p in range(len(kernels))]
    maps = [np.sqrt(w[w > 0])[:, None] * np.eye(n)[w > 0] for w in weights]
    gram = sum(((k * w) @ k for k, w in zip(kernels, weights)), np.zeros((n, n)))
    return _embedding(rows, weight, program, maps, weights, gram)
