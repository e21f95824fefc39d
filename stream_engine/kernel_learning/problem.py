"""The one convex problem behind both papers, its exact dual bound, and the scaling that solvers work in.

    P(u) = sum_p c_p tr A_p + e'mu + sum_t w_t loss(x_t),    x = sum_p s_p <R_p A_p R_p', B> + D mu,    A_p PSD, mu >= 0
    D(y) = -sum_t w_t loss*(y_t / w_t)    for 0 <= y <= w with  c_p I + s_p R_p' B*(y) R_p PSD  and  e + D'y >= 0

Any y in [0, w] becomes feasible when it is shrunk towards 0 (both constraints hold at 0 and are linear): one smallest
eigenvalue a block. So every iterate carries a certificate: P(u) - D(shrunk y) bounds its distance from the optimum,
whatever solver it came from. hinge: loss(x) = max(0, m_t + x) with a margin m_t > 0, 1 where nothing is said, and
loss*(q) = -m_t q. STE: loss(x) = log(1 + e^x), loss*(q) = q log q + (1 - q) log(1 - q). A point is one flat vector:
the A_p row by row, then mu.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.special import entr, expit

from stream_engine.kernel_learning.distance_operator import adjoint, excess


class Problem(NamedTuple):
    """`factors[p]` is R_p, (n, r_p), or None for the identity; n objects, m comparisons, P blocks, A columns."""

    n: int
    rows: np.ndarray  # (m, 4) int32
    weight: np.ndarray  # (m,) float64 > 0
    loss: str  # "hinge" or "ste"
    factors: tuple[np.ndarray | None, ...]
    trace_cost: np.ndarray  # (P,) float64 > 0: c
    block_scale: np.ndarray  # (P,) float64: s
    columns: np.ndarray  # (m, A) float64: D
    column_cost: np.ndarray  # (A,) float64 > 0: e
    margin: np.ndarray | float = 1.0  # (m,) float64 > 0, or one for all: of the hinge


class Certificate(NamedTuple):
    """`objective` is attained, `bound` is below the optimum; `dual` is the feasible y behind the bound."""

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


def point_size(problem: Problem) -> int:
    """The length of a flat point."""
    return sum(r * r for r in block_sizes(problem)) + problem.columns.shape[1]


def parts(problem: Problem, u: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """`([A_p views], mu view)` of a flat point."""
    blocks, at = [], 0
    for r in block_sizes(problem):
        blocks.append(u[at : at + r * r].reshape(r, r))
        at += r * r
    return blocks, u[at:]


def cost_vector(problem: Problem) -> np.ndarray:
    """The linear cost as a flat point: c_p I, then e."""
    u = np.zeros(point_size(problem))
    blocks, mu = parts(problem, u)
    for block, cost in zip(blocks, problem.trace_cost):
        np.fill_diagonal(block, cost)
    mu[:] = problem.column_cost
    return u


def linear_cost(problem: Problem, u: np.ndarray) -> float:
    """sum_p c_p tr A_p + e'mu. O(sum r)."""
    blocks, mu = parts(problem, u)
    return float(sum(c * np.trace(a) for c, a in zip(problem.trace_cost, blocks)) + problem.column_cost @ mu)


def gram(problem: Problem, u: np.ndarray) -> np.ndarray:
    """(n, n): sum_p s_p R_p A_p R_p', the part of the Gram matrix that the blocks make. O(sum n^2 r)."""
    total = np.zeros((problem.n, problem.n))
    for factor, scale, block in zip(problem.factors, problem.block_scale, parts(problem, u)[0]):
        total += scale * (block if factor is None else factor @ block @ factor.T)
    return total


def forward(problem: Problem, u: np.ndarray) -> np.ndarray:
    """(m,): the excess of every comparison at u."""
    x = problem.columns @ parts(problem, u)[1]
    return x + excess(gram(problem, u), problem.rows) if problem.factors else x


def backward(problem: Problem, y: np.ndarray) -> np.ndarray:
    """The adjoint of `forward` as a flat point: s_p R_p' B*(y) R_p, then D'y."""
    out = np.empty(point_size(problem))
    blocks, mu = parts(problem, out)
    if blocks:
        s = adjoint(y, problem.rows, problem.n)
        for block, factor, scale in zip(blocks, problem.factors, problem.block_scale):
            block[:] = scale * (s if factor is None else factor.T @ (s @ factor))
    mu[:] = problem.columns.T @ y
    return out


def losses(problem: Problem, x: np.ndarray) -> float:
    """sum_t w_t loss(x_t)."""
    each = np.maximum(0.0, problem.margin + x) if problem.loss == "hinge" else np.logaddexp(0.0, x)
    return float(problem.weight @ each)


def slope(problem: Problem, x: np.ndarray) -> np.ndarray:
    """(m,): w_t loss'(x_t), the dual point that belongs to x (a subgradient for the hinge)."""
    return problem.weight * ((x > -problem.margin) if problem.loss == "hinge" else expit(x))


def dual_value(problem: Problem, y: np.ndarray) -> float:
    """-sum_t w_t loss*(y_t / w_t) for 0 <= y <= w."""
    if problem.loss == "hinge":
        return float((y * problem.margin).sum())
    q = y / problem.weight
    return float(problem.weight @ (entr(q) + entr(1.0 - q)))


def certify(problem: Problem, u: np.ndarray, x: np.ndarray, y: np.ndarray, back: np.ndarray) -> Certificate:
    """The certificate of a feasible u with excess x and of any y in [0, w] with back = backward(y).

    y is multiplied by the largest s <= 1 that makes it feasible. One smallest eigenvalue a block, O(sum r^3).
    """
    blocks, mu = parts(problem, back)
    s = 1.0
    for block, cost in zip(blocks, problem.trace_cost):
        least = smallest_eigenvalue(block)
        if least < -cost:
            s = min(s, -cost / least)
    over = mu < -problem.column_cost
    if over.any():
        s = min(s, float(np.min(-problem.column_cost[over] / mu[over])))
    objective = linear_cost(problem, u) + losses(problem, x)
    return Certificate(objective, max(0.0, dual_value(problem, s * y)), s * y)


def smallest_eigenvalue(matrix: np.ndarray) -> float:
    """The smallest eigenvalue of a symmetric matrix. O(n^3), a fraction of a full decomposition."""
    if len(matrix) < 32:
        return float(np.linalg.eigvalsh(matrix)[0])
    return float(eigh(matrix, eigvals_only=True, subset_by_index=(0, 0), driver="evr", check_finite=False)[0])


def project_psd(matrix: np.ndarray, rank: int) -> tuple[np.ndarray, int]:
    """`(nearest PSD matrix, its rank)`: eigenvalues clipped at 0. `rank` is a guess that picks the cheaper routine.

    >>> project_psd(np.diag([2.0, -1.0]), 1)
    (array([[2., 0.],
           [0., 0.]]), 1)
    """
    n = len(matrix)
    if n >= 96 and rank <= n // 6:  # few positive eigenvalues: only those
        values, vectors = eigh(matrix, subset_by_value=(0.0, np.inf), driver="evr", check_finite=False)
    else:
        values, vectors = np.linalg.eigh(matrix)
    positive = values > 0
    count = int(positive.sum())
    if count <= len(values) // 2 or len(values) < n:
        root = vectors[:, positive] * np.sqrt(values[positive])
        return root @ root.T, count
    root = vectors[:, ~positive] * np.sqrt(-values[~positive])
    return (matrix + matrix.T) / 2 + root @ root.T, count


def project(problem: Problem, u: np.ndarray, ranks: list[int]) -> list[int]:
    """Project a flat point onto the cone in place; returns the ranks, the guesses for the next call."""
    blocks, mu = parts(problem, u)
    new_ranks = []
    for block, rank in zip(blocks, ranks):
        block[:], rank = project_psd(block, rank)
        new_ranks.append(rank)
    np.maximum(mu, 0.0, out=mu)
    return new_ranks


def scaled(problem: Problem) -> tuple[Problem, np.ndarray]:
    """`(the problem in units where every block and column has the same size, t)`; the original point is t * u.

    Auxiliary kernels of unit trace make mu of order 100 beside entries of K0 of order 1; one step size for both is
    hopeless (PERFORMANCE.md, pitfall 10). Blocks are measured by the norm of their map to comparisons (power
    iteration), columns by their own.
    """
    root = np.sqrt(problem.weight)
    norms = [
        block_norm(problem._replace(factors=(factor,), block_scale=problem.block_scale[p : p + 1]), root)
        for p, factor in enumerate(problem.factors)
    ]
    t_block = 1.0 / np.maximum(np.array(norms), 1e-300)
    length = np.linalg.norm(root[:, None] * problem.columns, axis=0)
    t_column = 1.0 / np.where(length > 0, length, 1.0)
    t = np.concatenate([np.repeat(t_block, [r * r for r in block_sizes(problem)]), t_column])
    return problem._replace(
        trace_cost=problem.trace_cost * t_block,
        block_scale=problem.block_scale * t_block,
        columns=problem.columns * t_column,
        column_cost=problem.column_cost * t_column,
    ), t


def block_norm(problem: Problem, root: np.ndarray, steps: int = 12) -> float:
    """The norm of the (weighted) map of all blocks to comparisons, from below, by power iteration; columns left out."""
    alone = problem._replace(columns=np.empty((len(problem.rows), 0)), column_cost=np.empty(0))
    return map_norm(alone, root, steps)


def map_norm(problem: Problem, root: np.ndarray, steps: int = 12) -> float:
    """The norm of u -> root * forward(u), from below, by power iteration from a fixed start; 0 for the zero map."""
    y = 1.0 + 0.5 * np.cos(np.arange(len(problem.rows)) * 2.399963)  # deterministic, no symmetry to get stuck in
    value = 0.0
    for _ in range(steps):
        length = np.linalg.norm(y)
        if length == 0:
            return 0.0
        y = root * forward(problem, backward(problem, root * (y / length)))
        value = np.sqrt(np.linalg.norm(y))
    return float(value)
