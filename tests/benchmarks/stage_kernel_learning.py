"""Kernel learning: whole refits, seconds to a certified gap beside cvxpy, growth.

The rival's value is compared with ours in the notes: ours must not be above it by more than its own tolerance. cvxpy is
timed around `solve()`, modelling included, since that is what replaces our call; its canonicalisation alone is in the
notes.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.kernel_learning import linear, mkpoe, rckl
from stream_engine.kernel_learning.distance_operator import satisfied
from stream_engine.refits import kernel_learning, partial_order_embedding
from tests.benchmarks.rows import row, timed
from tests.support import kernel_reference as reference
from tests.support.generators import planted_triplets

STAGE = "kernel_learning"


def beside_cvxpy(case: str, ours: Callable, rival: Callable, rival_name: str, target: str = "") -> dict:
    found, mine = timed(ours)
    (value, compiling), theirs = timed(rival)
    notes = f"gap {found.gap:.1e}, objective {found.objective:.6g} (rival {value:.6g}), {found.iterations} its, "
    notes += f"rival canonicalises {compiling:.2f} s"
    return row(STAGE, case, mine, "s", theirs, rival_name, target, notes)


def solved(cost, constraints=(), **options) -> tuple[float, float]:
    """`(value, seconds of canonicalisation)`."""
    import cvxpy as cp

    problem = cp.Problem(cp.Minimize(cost), list(constraints))
    with warnings.catch_warnings():  # cvxpy 1.9 multiplies bounds by infinity on its way to HiGHS
        warnings.simplefilter("ignore", RuntimeWarning)
        problem.solve(**options)
    return problem.value, problem.compilation_time


def cvxpy_rckl(triplets, n, loss, lambda1):
    """RCKL-T by cvxpy."""
    import cvxpy as cp

    k = cp.Variable((n, n), PSD=True)
    a, b, c = triplets.T
    own = cp.diag(k)
    x = own[b] - 2 * k[a, b] - own[c] + 2 * k[a, c]
    cost = cp.sum(cp.logistic(x) if loss == "ste" else cp.pos(1 + x)) + lambda1 * cp.trace(k)
    return solved(cost, solver="SCS", eps=1e-4)


def cvxpy_full(rows, kernels, beta):
    """MKPOE in whitened coordinates by cvxpy (in W it is too ill-conditioned for a first-order solver)."""
    import cvxpy as cp

    i, j, k, l = rows.T
    cost, x = 0, 0
    for kernel in kernels:
        root = mkpoe.factor(kernel).root
        a = cp.Variable((root.shape[1],) * 2, PSD=True)
        near, far = root[i] - root[j], root[k] - root[l]
        outer = (near[:, :, None] * near[:, None, :] - far[:, :, None] * far[:, None, :]).reshape(len(rows), -1)
        cost, x = cost + cp.trace(a), x + outer @ cp.vec(a, order="C")
    return solved(cost + beta / len(rows) * cp.sum(cp.pos(1 + x)), solver="SCS", eps=1e-4)


def highs_diagonal(rows, kernels, beta):
    """The diagonal form by HiGHS through cvxpy."""
    import cvxpy as cp

    columns = mkpoe.diagonal_map(rows, kernels)
    d, w = columns.take(np.arange(len(columns.cost))), cp.Variable(len(columns.cost))
    cost = columns.cost @ w + beta / len(rows) * cp.sum(cp.pos(1 + d @ w))
    return solved(cost, [w >= 0], solver=cp.HIGHS)


def views(points, kernels: int) -> list[np.ndarray]:
    """Unit-trace kernels: one per axis, then noise."""
    rng = np.random.default_rng(0)
    axes = [points[:, [a]] for a in range(points.shape[1])]
    return [reference.rbf(w) for w in [*axes, *(rng.normal(size=(len(points), 3)) for _ in range(kernels))][:kernels]]


def rckl_rows(quick: bool) -> Iterator[dict]:
    for n, m in ((100, 2000),) if quick else ((100, 2000), (300, 6000)):
        _, triplets = reference.planted(0, n, m)
        for loss in ("ste", "hinge"):
            ours = partial(rckl.fit, triplets, n, loss=loss, form="t", lambda1=2.0)
            ours(tolerance=1e-1)  # compile
            rival = partial(cvxpy_rckl, triplets, n, loss, 2.0)
            case, target = f"RCKL-T {loss} n={n} m={m} gap 1e-4", ">= 2" if (loss, n) == ("ste", 100) else ""
            yield beside_cvxpy(case, partial(ours, tolerance=1e-4), rival, "cvxpy SCS 1e-4", target)


def poe_rows(quick: bool) -> Iterator[dict]:
    full = (50, 1000, 3) if quick else (50, 1000, 5)
    for seed, (n, m, p), form, times, tolerance, rival, name, target in (
        (0, (100, 2000, 4) if quick else (200, 5000, 8), "diagonal", 20, {}, highs_diagonal, "cvxpy HiGHS", ">= 5"),
        (1, full, "full", 10, {"tolerance": 1e-3}, cvxpy_full, "cvxpy SCS 1e-4", ">= 8"),
    ):
        points, triplets = reference.planted(seed, n, m)
        rows, kernels, diagonal = reference.rows_of(triplets), views(points, p), form == "diagonal"
        beta = times * mkpoe.smallest_beta(rows, np.ones(len(rows)), kernels, diagonal=diagonal)
        mkpoe.fit(rows[:50], kernels, 1.0, diagonal=diagonal)  # compile
        ours = partial(mkpoe.fit, rows, kernels, beta, diagonal=diagonal, **tolerance)
        case = f"MKPOE {form} n={n} m={m} kernels={p}"
        yield beside_cvxpy(case, ours, partial(rival, rows, kernels, beta), name, target)


def growth_rows(quick: bool) -> Iterator[dict]:
    """Seconds to a gap of 1e-3, one thing growing at a time."""
    sizes = [(50, 1000, 0), (100, 1000, 0), (100, 4000, 0), (100, 4000, 8)]
    sizes += [] if quick else [(200, 4000, 0), (400, 8000, 0), (400, 32_000, 0), (1000, 20_000, 0)]
    for n, m, a in sizes:
        points, triplets = reference.planted(2, n, m)
        kernels = views(points, a)
        for loss in ("ste", "hinge"):
            most = rckl.largest_lambdas(rckl.build(triplets, None, kernels, n, "ak", loss, 1.0, 1.0))
            lambdas = {"lambda1": 0.1 * most[0], "lambda2": max(0.1 * most[1], 1e-9)}
            found, seconds = timed(partial(rckl.fit, triplets, n, kernels, loss=loss, tolerance=1e-3, **lambdas))
            notes = f"{found.iterations} its, gap {found.gap:.1e}, rank {found.rank}"
            yield row(STAGE, f"RCKL-AK {loss} n={n} m={m} kernels={a}", seconds, "s", notes=notes)


def refit_rows(quick: bool) -> Iterator[dict]:
    """Whole refits with the default parameters, lambda or beta chosen, pictures made."""
    cases = [(kernel_learning, 400, 9000, 0.1), (partial_order_embedding, 400, 9000, 0.1)]
    for room, n, m, flip in cases + ([] if quick else [(kernel_learning, 1500, 220_000, 0.15)]):
        points, triplets = reference.planted(0, n, m, flip)
        test = reference.rows_of(planted_triplets(np.random.default_rng(99), points, 50_000))
        made, seconds = timed(room.refit, reference.snapshot_of(triplets, n), room.Params(), 0)
        error = 1 - (satisfied(made.arrays["K"], test) or 0.0)
        notes = f"gap {made.report['gap']:.1e}, {len(made.report['tried'])} tried, held-out error {error:.4f}"
        yield row(STAGE, f"refit {room.KIND} n={n} m={m}, defaults", seconds, "s", notes=notes)


def rows(quick: bool = True) -> list[dict]:
    """All rows of this stage."""
    with threadpool_limits(1):
        linear.solve(linear.dense_map(-np.ones((2, 1)), np.ones(1)), np.ones(2))  # compile
        return [row for part in (refit_rows, rckl_rows, poe_rows, growth_rows) for row in part(quick)]
