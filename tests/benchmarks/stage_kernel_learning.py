"""Kernel learning: whole refits, seconds to a certified gap beside cvxpy.

The rival's value is compared with ours in the notes: ours must not be above it by more than its own tolerance. cvxpy is
timed with modelling, since that is what replaces our call.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.kernel_learning import linear, mkpoe, rckl
from stream_engine.kernel_learning.pair_lists import satisfied
from stream_engine.refits import kernel_learning, partial_order_embedding
from tests.benchmarks.rows import row, timed
from tests.support import kernel_reference as reference
from tests.support.generators import planted_triplets

STAGE = "kernel_learning"


def beside_cvxpy(case: str, ours: Callable, rival: Callable, rival_name: str, target: str = "") -> dict:
    found, mine = timed(ours)
    said, theirs = timed(rival)
    value = said[0] if isinstance(said, tuple) else said
    notes = f"gap {found.gap:.1e}, objective {found.objective:.6g} (rival {value:.6g}), {found.iterations} its"
    return row(STAGE, case, mine, "s", theirs, rival_name, target, notes)


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
            rival = partial(reference.rckl, triplets, n, [], "t", loss, 2.0, 0.0, solver="SCS", eps=1e-4)
            case, target = f"RCKL-T {loss} n={n} m={m} gap 1e-4", ">= 2" if (loss, n) == ("ste", 100) else ""
            yield beside_cvxpy(case, partial(ours, tolerance=1e-4), rival, "cvxpy SCS 1e-4", target)


def poe_rows(quick: bool) -> Iterator[dict]:
    for seed, (n, m, p), form, times, tolerance, solver, target in (
        (0, (100, 2000, 4) if quick else (200, 5000, 8), "diagonal", 20, {}, "HIGHS", ">= 5"),
        (1, (15, 200, 2) if quick else (30, 500, 3), "full", 10, {"tolerance": 1e-3}, "CLARABEL", ">= 8"),
    ):
        points, triplets = reference.planted(seed, n, m)
        rows, kernels, diagonal = reference.rows_of(triplets), views(points, p), form == "diagonal"
        beta = times * mkpoe.smallest_beta(rows, np.ones(len(rows)), kernels, diagonal=diagonal)
        mkpoe.fit(rows[:50], kernels, 1.0, diagonal=diagonal)  # compile
        ours = partial(mkpoe.fit, rows, kernels, beta, diagonal=diagonal, **tolerance)
        case = f"MKPOE {form} n={n} m={m} kernels={p}"
        rival = partial(reference.mkpoe, rows, kernels, beta, diagonal, solver=solver)
        yield beside_cvxpy(case, ours, rival, f"cvxpy {solver}", target)


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
        return [row for part in (refit_rows, rckl_rows, poe_rows) for row in part(quick)]
