"""The one convex problem behind Heim et al. 2014 and McFee & Lanckriet 2011, and its exact dual bound."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import entr, expit

# For comparison t = (i, j; k, l), x_t = d(i, j) - d(k, l) = <sum_p s_p R_p A_p R_p', B_t> + (D mu)_t, and
#
#   P(u) = sum_p c_p tr A_p + e'mu + sum_t w_t loss(x_t),    x = sum_p s_p <R_p A_p R_p', B> + D mu,   A_p PSD, mu >= 0
#   D(y) = -sum_t w_t loss*(y_t / w_t)    for 0 <= y <= w with  c_p I + s_p R_p' B*(y) R_p PSD  and  e + D'y >= 0
#
# The two papers differ in the factors R_p (I; a square root of a kernel; features), the columns D and the weights.
#
# Any y in [0, w] becomes feasible when it is shrunk towards 0 (both constraints hold at 0 and are linear): one smallest
# eigenvalue a block. So every iterate carries a certificate: P(u) - D(shrunk y) bounds its distance from the optimum.
# hinge: loss(x) = max(0, 1 + x), and loss*(q) = -q. STE: loss(x) = log(1 + e^x), loss*(q) = q log q + (1 - q) log(1 -
# q).


class Problem(NamedTuple):
    """One problem of this form; `factors[p]` is R_p, (n, r_p), or None for I. n objects, m comparisons, P blocks, A
    columns."""

    n: int
    rows: np.ndarray  # (m, 4) int32
    weight: np.ndarray  # (m,) float64 > 0
    loss: str  # "hinge" or "ste"
    factors: tuple[np.ndarray | None, ...]
    trace_cost: np.ndarray  # (P,) float64 > 0: c
    block_scale: np.ndarray  # (P,) float64: s
    columns: np.ndarray  # (m, A) float64: D
    column_cost: np.ndarray  # (A,) float64 > 0: e


class Certificate(NamedTuple):
    """Proof of how good a point is: `objective` is attained, `bound` is a lower bound of the optimum, by the feasible
    `dual`."""

    objective: float
    bound: float
    dual: np.ndarray

    @property
    def gap(self) -> float:
        """(P - D) / P, at most 1; 0 when both are 0."""
        return (self.objective - self.bound) / self.objective if self.objective > 0 else 0.0


def block_sizes(problem: Problem) -> list[int]:
    """r_p of every block."""
    return [problem.n if factor is None else factor.shape[1] for factor in problem.factors]


def gram(problem: Problem, roots: list[np.ndarray]) -> np.ndarray:
    """(n, n): sum_p s_p R_p L_p L_p' R_p', the part of the Gram matrix that the blocks make. O(sum n^2 k)."""
    total = np.zeros((problem.n, problem.n))
    for factor, scale, root in zip(problem.factors, problem.block_scale, roots):
        points = root if factor is None else factor @ root
        total += scale * (points @ points.T)
    return total


def losses(problem: Problem, x: np.ndarray) -> float:
    """sum_t w_t loss(x_t)."""
    loss = np.maximum(0.0, 1.0 + x) if problem.loss == "hinge" else np.logaddexp(0.0, x)
    return float(problem.weight @ loss)


def slope(problem: Problem, x: np.ndarray) -> np.ndarray:
    """(m,): w_t loss'(x_t), the dual point that belongs to x (a subgradient for the hinge)."""
    return problem.weight * ((x > -1.0) if problem.loss == "hinge" else expit(x))


def dual_value(problem: Problem, y: np.ndarray) -> float:
    """-sum_t w_t loss*(y_t / w_t) for 0 <= y <= w."""
    if problem.loss == "hinge":
        return float(y.sum())
    q = y / problem.weight
    return float(problem.weight @ (entr(q) + entr(1.0 - q)))


def largest_share(cost: np.ndarray, back: np.ndarray) -> float:
    """The largest s <= 1 with cost + s back >= 0, for positive costs.

    >>> largest_share(np.array([1.0, 2.0]), np.array([-4.0, 1.0]))
    0.25
    """
    is_violated = back < -cost
    return min(1.0, float(np.min(-cost[is_violated] / back[is_violated]))) if is_violated.any() else 1.0


def smallest_eigenvalue(matrix: np.ndarray) -> float:
    """The smallest eigenvalue of a symmetric matrix. O(n^3), a fraction of a full decomposition."""
    if len(matrix) < 32:
        return float(np.linalg.eigvalsh(matrix)[0])
    return float(eigh(matrix, eigvals_only=True, subset_by_index=(0, 0), driver="evr", check_finite=False)[0])
