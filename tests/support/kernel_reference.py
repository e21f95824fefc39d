"""Small worlds for both papers' programs, and their definitions from whole matrices."""

import numpy as np

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.constraints import Constraints, of_mask
from stream_engine.kernel_learning.gram_comparisons import adjoint, excess, satisfied, triplet_rows
from stream_engine.state.snapshot import Snapshot
from tests.support.generators import planted_triplets


def planted(seed, n, m, flip=0.1, dimensions=3):
    """`(points, triplets)` of a Euclidean world."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, dimensions))
    return points, planted_triplets(rng, points, m, flip)


def rbf(features):
    """A unit-trace Gaussian kernel at the median distance."""
    d = ((features[:, None] - features[None]) ** 2).sum(-1)
    k = np.exp(-d / np.median(d[d > 0]))
    return k / np.trace(k)


def helpful_kernels(points, seed=1):
    """Two kernels that know one axis each and one of noise, unit trace."""
    noise = np.random.default_rng(seed).normal(size=(len(points), 2))
    return [rbf(points[:, :1]), rbf(points[:, 1:2]), rbf(noise)]


def rows_of(triplets):
    return triplet_rows(triplets)


def snapshot_of(triplets, n, names=None, **arrays):
    """A snapshot that holds these triplets' counts, and whatever other arrays are given (room__name)."""
    counts = columns_from_triplets(triplets, n)._asdict()
    counts.pop("n_objects")
    held = {f"triplet_counts/{name}": array for name, array in counts.items()}
    held |= {name.replace("__", "/"): array for name, array in arrays.items()}
    names = tuple(f"o{i}" for i in range(n)) if names is None else tuple(names)
    return Snapshot(1, {}, names, {}, {"comparisons": len(triplets)}, {"guard": "first"}, held, "0" * 64)


def gauc(coordinates: np.ndarray, rows: np.ndarray) -> float | None:
    """Fraction of comparisons that coordinates (n, d) satisfy (McFee & Lanckriet 2011, App. C); None for none."""
    return satisfied(coordinates @ coordinates.T, rows)


def inside(comparisons: Constraints, mask: np.ndarray) -> Constraints:
    """Only comparisons all of whose objects are in the (n,) bool mask."""
    return of_mask(comparisons, mask[comparisons.rows].all(axis=1))


def excess_of(problem, roots, mu):
    """(m,): what a point of the common form exceeds, from whole matrices."""
    gram = np.zeros((problem.n, problem.n))
    for r, scale, root in zip(problem.factors, problem.block_scale, roots):
        points = root if r is None else r @ root
        gram += scale * points @ points.T
    return excess(gram, problem.rows) + problem.columns @ mu


def objective_of(problem, point):
    """The objective of the common form from its definition."""
    x = excess_of(problem, *point)
    loss = np.maximum(0, 1.0 + x) if problem.loss == "hinge" else np.logaddexp(0, x)
    trace = sum(c * (root**2).sum() for c, root in zip(problem.trace_cost, point.roots))
    return trace + problem.column_cost @ point.mu + problem.weight @ loss


def dual_blocks(problem, y):
    """`(s_p R_p' B*(y) R_p of every block, D'y)`, whose eigenvalues and entries a dual point bounds."""
    s = adjoint(y, problem.rows, problem.n)
    factors = [np.eye(problem.n) if r is None else r for r in problem.factors]
    return [scale * r.T @ s @ r for r, scale in zip(factors, problem.block_scale)], problem.columns.T @ y


def random_problem(rng, loss, n=7, m=25, columns=2):
    """An identity block, a low-rank block with a scale, columns, weights, and pairs that occur many times."""
    rows = np.stack([rng.choice(n, 2, replace=False) for _ in range(2 * m)]).reshape(m, 4).astype(np.int32)
    return form.Problem(
        n,
        rows,
        rng.integers(1, 4, m).astype(float),
        loss,
        (None, rng.normal(size=(n, 3))),
        rng.uniform(0.5, 2, 2),
        rng.uniform(0.5, 2, 2),
        rng.normal(size=(m, columns)),
        rng.uniform(0.5, 2, columns),
    )
