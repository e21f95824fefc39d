"""The programs of Heim et al. 2014 and McFee & Lanckriet 2011 in cvxpy, each declared by one function and solved by an
interior-point method."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.data.interior_point import require_at_most, solve
from stream_engine.kernel_learning import pair_lists
from stream_engine.kernel_learning.gram_comparisons import triplet_rows

# A distance is a variable for each pair that some comparison names, so that a comparison has two coefficients however
# many comparisons there are.
MAX_OBJECTS = 100  # of one PSD matrix over the objects: a minute and 1.6 GB
MAX_DIMENSIONS = 60  # of features or kernels, each of whose distances has a coefficient for every entry of W
MAX_COLUMNS = 1000  # of a linear program: weights of kernels and objects
MAX_COMPARISONS = 20_000
NEXT_STEP = "use solver 'engine', or choose objects"


class Optimum(NamedTuple):
    """The interior-point method's solution, feasible up to its accuracy; `kernel` is K0 of RCKL."""

    kernel: np.ndarray | None  # (n, n)
    weights: list[np.ndarray]  # W^p (r, r), diagonal: (r,); RCKL: mu
    y: np.ndarray  # (m,) multipliers of the comparisons: of the hinge's constraints, of STE by its slope
    iterations: int


def rckl(
    triplets: np.ndarray,
    n: int,
    kernels: Sequence[np.ndarray],
    form: str,
    loss: str,
    lambda1: float,
    lambda2: float,
    weight: np.ndarray,
) -> Optimum:
    """Heim et al. 2014, eq. 3, 6 or 9: K'' = K0 + sum_a mu_a K_a, E(K'', T) + lambda1 tr K0 + lambda2 sum mu."""
    require_at_most("RCKL over so many objects", n, MAX_OBJECTS, NEXT_STEP)
    import cvxpy as cp

    K, cost = cp.Constant(np.zeros((n, n))), cp.Constant(0.0)
    K0, mu = cp.Variable((n, n), PSD=True), cp.Variable(max(len(kernels), 1), nonneg=True)
    if form != "mkl":
        K, cost = K + K0, cost + lambda1 * cp.trace(K0)
    if form != "t" and len(kernels):
        K = K + sum(mu[a] * kernel for a, kernel in enumerate(kernels))
        cost = cost + lambda2 * cp.sum(mu)
    y, iterations = _minimise(triplet_rows(triplets), n, weight, loss, cost, [], [partial(_distance, K)])
    weights = [] if mu.value is None else [np.asarray(mu.value)]
    return Optimum(None if K0.value is None else np.asarray(K0.value), weights, y, iterations)


def full(rows: np.ndarray, n: int, points: Sequence[np.ndarray | None], weight: np.ndarray) -> Optimum:
    """McFee & Lanckriet 2011: sum_p tr W^p, d(i, j) = sum_p (x^p_i - x^p_j)' W^p (x^p_i - x^p_j).

    `points[p]` (n, r) are features, as in Algorithm 2 (LPOE), or a factor R of a kernel K = R R': then W stands for
    R' W R of Algorithms 3 and 4, with tr(W K) = tr(R' W R), in which a kernel of small eigenvalues is well conditioned.
    None: K = I, which is GNMDS (sec. 3.3). `weight` (m,) sums to beta.
    """
    require_at_most("a partial order embedding of so many objects", n, MAX_OBJECTS, NEXT_STEP)
    widest = max((features.shape[1] for features in points if features is not None), default=0)
    require_at_most(
        "a partial order embedding by features or kernels of so many dimensions", widest, MAX_DIMENSIONS, NEXT_STEP
    )
    import cvxpy as cp

    W = [cp.Variable((n, n) if features is None else (features.shape[1],) * 2, PSD=True) for features in points]
    distances = [partial(_distance, w) if x is None else partial(_mahalanobis, x, w) for x, w in zip(points, W)]
    y, iterations = _minimise(rows, n, weight, "hinge", sum(cp.trace(w) for w in W), [], distances)
    return Optimum(None, [np.asarray(w.value) for w in W], y, iterations)


def diagonal(
    rows: np.ndarray, points: Sequence[np.ndarray], costs: Sequence[np.ndarray], weight: np.ndarray
) -> Optimum:
    """The same with diagonal W^p (sec. 4.4), a linear program: `points[p]` are features or K^p itself, and
    `costs[p]` what a unit of each weight costs, 1 or the diagonal of K^p."""
    width = sum(map(len, costs))
    require_at_most("a linear program of so many weights", width, MAX_COLUMNS, NEXT_STEP)
    import cvxpy as cp

    W = [cp.Variable(len(cost)) for cost in costs]  # not nonneg=True: its bounds make cvxpy 1.9 multiply by infinity
    distances = [partial(_by_axes, x, w) for x, w in zip(points, W)]
    cost = sum(cost @ w for cost, w in zip(costs, W))
    y, iterations = _minimise(rows, len(points[0]), weight, "hinge", cost, [w >= 0 for w in W], distances)
    return Optimum(None, [np.maximum(np.asarray(w.value), 0.0) for w in W], y, iterations)


def _distance(K: Any, i: np.ndarray, j: np.ndarray) -> Any:
    """K_ii + K_jj - 2 K_ij."""
    import cvxpy as cp

    diagonal = cp.diag(K)
    return diagonal[i] + diagonal[j] - 2 * K[i, j]


def _mahalanobis(points: np.ndarray, W: Any, i: np.ndarray, j: np.ndarray) -> Any:
    """(x_i - x_j)' W (x_i - x_j)."""
    import cvxpy as cp

    differences = points[i] - points[j]
    return np.einsum("pa,pb->pab", differences, differences).reshape(len(i), -1) @ cp.vec(W, order="C")


def _by_axes(points: np.ndarray, w: Any, i: np.ndarray, j: np.ndarray) -> Any:
    """sum_a w_a (x_ia - x_ja)^2."""
    return (points[i] - points[j]) ** 2 @ w


def _minimise(
    rows: np.ndarray,
    n: int,
    weight: np.ndarray,
    loss: str,
    cost: Any,
    rules: list[Any],
    distances: Sequence[Callable[[np.ndarray, np.ndarray], Any]],
) -> tuple[np.ndarray, int]:
    """Minimise cost + sum_t w_t loss(d_near - d_far); `(y, iterations)`."""
    import cvxpy as cp

    require_at_most("so many comparisons", len(rows), MAX_COMPARISONS, NEXT_STEP)
    lists = pair_lists.of_rows(rows, n)
    d = cp.Variable(len(lists.i))
    rules = [*rules, d == sum(distance(lists.i, lists.j) for distance in distances)]
    x = d[lists.near] - d[lists.far]
    if loss == "ste":
        iterations = solve(cp.Problem(cp.Minimize(cost + weight @ cp.logistic(x)), rules))
        return weight * expit(np.asarray(x.value)), iterations
    slack = cp.Variable(len(rows), nonneg=True)
    margin = 1 + x <= slack
    iterations = solve(cp.Problem(cp.Minimize(cost + weight @ slack), [*rules, margin]))
    return np.asarray(margin.dual_value), iterations
