"""Kernel learning: whole refits, seconds to a certified gap beside cvxpy, growth.

The rival's value is compared with ours in the notes: ours must not be above it by more than its own tolerance. cvxpy is
timed around `solve()`, modelling included, since that is what replaces our call; its canonicalisation alone is in the
notes.
"""

import time
import warnings
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.kernel_learning import linear, mkpoe, rckl
from stream_engine.kernel_learning.distance_operator import satisfied
from stream_engine.refits import kernel_learning, partial_order_embedding
from tests.support import kernel_reference as reference
from tests.support.generators import planted_triplets


def timed(call):
    """`(CPU seconds, what it returned)`."""
    began = time.process_time()
    out = call()
    return time.process_time() - began, out


def against_cvxpy(case: str, ours, rival, rival_name: str, target: float | None) -> dict:
    mine, found = timed(ours)
    theirs, (value, compiling) = timed(rival)
    return {
        "stage": "kernel_learning",
        "case": case,
        "ours": mine,
        "rival": theirs,
        "unit": "s",
        "ratio": theirs / mine,
        "target": target,
        "rival_name": rival_name,
        "notes": f"gap {found.gap:.1e}, objective {found.objective:.6g} (rival {value:.6g}), {found.iterations} its, "
        f"rival canonicalises {compiling:.2f} s",
    }


def cvxpy_rckl(triplets, n, loss, lambda1, **options):
    """RCKL-T by cvxpy: `(value, seconds of canonicalisation)`."""
    import cvxpy as cp

    k = cp.Variable((n, n), PSD=True)
    a, b, c = triplets.T
    own = cp.diag(k)
    x = own[b] - 2 * k[a, b] - own[c] + 2 * k[a, c]
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.logistic(x) if loss == "ste" else cp.pos(1 + x)) + lambda1 * cp.trace(k))
    )
    problem.solve(**options)
    return problem.value, problem.compilation_time


def cvxpy_full(rows, kernels, beta, **options):
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
    problem = cp.Problem(cp.Minimize(cost + beta / len(rows) * cp.sum(cp.pos(1 + x))))
    problem.solve(**options)
    return problem.value, problem.compilation_time


def highs_diagonal(rows, kernels, beta):
    """The diagonal form by HiGHS through cvxpy."""
    import cvxpy as cp

    columns = mkpoe.diagonal_map(rows, kernels)
    d = columns.take(np.arange(len(columns.cost)))
    w = cp.Variable(len(columns.cost))
    problem = cp.Problem(cp.Minimize(columns.cost @ w + beta / len(rows) * cp.sum(cp.pos(1 + d @ w))), [w >= 0])
    with warnings.catch_warnings():  # cvxpy 1.9 multiplies bounds by infinity on its way to HiGHS
        warnings.simplefilter("ignore", RuntimeWarning)
        problem.solve(solver=cp.HIGHS)
    return problem.value, problem.compilation_time


def views(points, kernels, seed=0):
    """Unit-trace kernels: one per axis, then noise."""
    rng = np.random.default_rng(seed)
    wide = [points[:, [a]] for a in range(points.shape[1])] + [
        rng.normal(size=(len(points), 3)) for _ in range(kernels)
    ]
    return [reference.rbf(w) for w in wide[:kernels]]


def rckl_rows(quick: bool) -> list[dict]:
    out = []
    for n, m in ((100, 2000),) if quick else ((100, 2000), (300, 6000)):
        _, triplets = reference.planted(0, n, m)
        for loss in ("ste", "hinge"):
            rckl.fit(triplets, n, loss=loss, form="t", lambda1=2.0, tolerance=1e-1)  # compile
            for tolerance, eps in ((1e-4, 1e-4),):
                ours = partial(rckl.fit, triplets, n, loss=loss, form="t", lambda1=2.0, tolerance=tolerance)
                rival = partial(cvxpy_rckl, triplets, n, loss, 2.0, solver="SCS", eps=eps)
                case = f"RCKL-T {loss} n={n} m={m} gap {tolerance:g}"
                target = 2.0 if (loss, n) == ("ste", 100) else None
                out.append(against_cvxpy(case, ours, rival, f"cvxpy SCS {eps:g}", target))
    return out


def poe_rows(quick: bool) -> list[dict]:
    n, m, p = (100, 2000, 4) if quick else (200, 5000, 8)
    points, triplets = reference.planted(0, n, m)
    rows, kernels = reference.rows_of(triplets), views(points, p)
    least = _least(rows, kernels, True)
    mkpoe.fit(rows[:50], kernels, 1.0, diagonal=True)  # compile
    out = [
        against_cvxpy(
            f"MKPOE diagonal n={n} m={m} kernels={p}",
            lambda: mkpoe.fit(rows, kernels, 20 * least, diagonal=True),
            lambda: highs_diagonal(rows, kernels, 20 * least),
            "cvxpy HiGHS",
            5.0,
        )
    ]
    points, triplets = reference.planted(1, 50, 1000)
    rows, kernels = reference.rows_of(triplets), views(points, 3 if quick else 5)
    least = _least(rows, kernels, False)
    out.append(
        against_cvxpy(
            f"MKPOE full n=50 m=1000 kernels={len(kernels)} gap 1e-3",
            lambda: mkpoe.fit(rows, kernels, 10 * least, tolerance=1e-3),
            lambda: cvxpy_full(rows, kernels, 10 * least, solver="SCS", eps=1e-4),
            "cvxpy SCS 1e-4",
            8.0,
        )
    )
    return out


def _least(rows, kernels, diagonal) -> float:
    return mkpoe.smallest_beta(rows, np.ones(len(rows)), kernels, diagonal=diagonal)


def growth_rows(quick: bool) -> list[dict]:
    """Seconds to a gap of 1e-3, one thing growing at a time."""
    sizes = [(50, 1000, 0), (100, 1000, 0), (100, 4000, 0), (100, 4000, 8)]
    sizes += [] if quick else [(200, 4000, 0), (400, 8000, 0), (400, 32_000, 0), (1000, 20_000, 0)]
    out = []
    for n, m, a in sizes:
        points, triplets = reference.planted(2, n, m)
        kernels = views(points, a)
        for loss in ("ste", "hinge"):
            most = rckl.largest_lambdas(rckl.build(triplets, None, kernels, n, "ak", loss, 1.0, 1.0))
            lambda2 = max(0.1 * most[1], 1e-9)
            solve = partial(rckl.fit, triplets, n, kernels, loss=loss, lambda1=0.1 * most[0], lambda2=lambda2)
            seconds, found = timed(partial(solve, tolerance=1e-3))
            notes = f"{found.iterations} its, gap {found.gap:.1e}, rank {found.rank}"
            out.append(alone(f"RCKL-AK {loss} n={n} m={m} kernels={a}", seconds, notes))
    return out


def alone(case: str, seconds: float, notes: str) -> dict:
    """A row without a rival."""
    return {
        "stage": "kernel_learning",
        "case": case,
        "ours": seconds,
        "rival": None,
        "unit": "s",
        "ratio": None,
        "target": None,
        "rival_name": "",
        "notes": notes,
    }


def refit_rows(quick: bool) -> list[dict]:
    """Whole refits with the default parameters, lambda or beta chosen, pictures made."""
    out = []
    cases = [(kernel_learning, 400, 9000, 0.1), (partial_order_embedding, 400, 9000, 0.1)]
    for room, n, m, flip in cases + ([] if quick else [(kernel_learning, 1500, 220_000, 0.15)]):
        points, triplets = reference.planted(0, n, m, flip)
        test = reference.rows_of(planted_triplets(np.random.default_rng(99), points, 50_000))
        seconds, made = timed(partial(room.refit, reference.snapshot_of(triplets, n), room.Params(), 0))
        error = 1 - (satisfied(made.arrays["K"], test) or 0.0)
        notes = f"gap {made.report['gap']:.1e}, {len(made.report['tried'])} tried, held-out error {error:.4f}"
        out.append(alone(f"refit {room.KIND} n={n} m={m}, defaults", seconds, notes))
    return out


def rows(quick: bool = True) -> list[dict]:
    """All rows of this stage."""
    with threadpool_limits(1):
        linear.solve(linear.dense_map(-np.ones((2, 1)), np.ones(1)), np.ones(2))
        return refit_rows(quick) + rckl_rows(quick) + poe_rows(quick) + growth_rows(quick)
