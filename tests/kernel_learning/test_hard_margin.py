"""Hard margin with K = I: optimal by cvxpy and by certificate, feasible always, the best where it is cut short."""

import numpy as np
import pytest

from stream_engine.guard.partial_order import canonical_order, transitive_reduction
from stream_engine.kernel_learning import constant_shift, hard_margin, pair_lists
from stream_engine.kernel_learning.distance_operator import adjoint, excess
from stream_engine.state.snapshot import triplet_columns
from tests.support import kernel_reference as reference


def order(seed: int, n: int, m: int) -> np.ndarray:
    triplets = reference.planted(seed, n, m)[1]
    return canonical_order(triplet_columns(reference.snapshot_of(triplets, n))).kept


@pytest.mark.parametrize(("seed", "n", "m"), [(0, 6, 25), (1, 15, 80), (2, 12, 150), (5, 8, 8)])
def test_as_good_as_cvxpy_and_proven(seed, n, m):
    """1e-3 of the optimum, every comparison held by 1, the dual feasible; what follows need not be given."""
    rows = order(seed, n, m)
    value = reference.hard_margin(rows, n)
    found = hard_margin.fit(transitive_reduction(rows), n, tolerance=1e-3)
    objective, bound, dual = found.certificate
    assert found.converged and bound <= value * (1 + 1e-5) and value * (1 - 1e-5) <= objective <= 1.0011 * value
    assert (excess(found.gram, rows) <= -1 + 1e-9).all() and np.linalg.eigvalsh(found.gram)[0] > -1e-9 * value
    assert np.trace(found.gram) == pytest.approx(objective)
    feasible = np.eye(n) + adjoint(dual, transitive_reduction(rows), n)
    assert (dual >= 0).all() and np.linalg.eigvalsh(feasible)[0] >= -1e-6 and dual.sum() == pytest.approx(bound)


def test_margins_scale_the_answer():
    """Every margin 3: three times the trace. One margin alone changes what it should."""
    rows = transitive_reduction(order(0, 6, 25))
    one = hard_margin.fit(rows, 6, tolerance=1e-4).certificate.objective
    three = hard_margin.fit(rows, 6, margin=3.0, tolerance=1e-4).certificate.objective
    assert three == pytest.approx(3 * one, rel=1e-3)
    margins = np.where(np.arange(len(rows)) % 2, 0.2, 1.0)
    mixed = hard_margin.fit(rows, 6, margin=margins, tolerance=1e-4)
    assert (excess(mixed.gram, rows) <= -margins + 1e-9).all() and 0.2 * one < mixed.certificate.objective < one


def test_cut_short_it_is_feasible_and_says_its_gap():
    rows = transitive_reduction(order(1, 15, 80))
    for most in (0, 5, 100):
        found = hard_margin.fit(rows, 15, tolerance=1e-9, max_iterations=most)
        assert not found.converged and found.iterations <= most and (excess(found.gram, rows) <= -1 + 1e-9).all()
        assert 0 < found.certificate.gap <= 1
    assert hard_margin.fit(rows, 15).certificate.objective < constant_shift.embed_order(rows, 15).gram.trace()


def test_multipliers_of_zero_prove_zero():
    rows = np.array([[0, 1, 0, 2], [1, 2, 0, 2]], np.int32)
    bound, dual, directions = hard_margin._bound(rows, 4, pair_lists.of_rows(rows, 4), np.ones(2), np.zeros(2))
    assert bound == 0.0 and not dual.any() and directions.shape == (4, 0)


def test_nothing_to_satisfy_and_a_cycle():
    empty = hard_margin.fit(np.empty((0, 4), np.int32), 4)
    assert not empty.gram.any() and empty.converged and empty.certificate.objective == 0
    with pytest.raises(constant_shift.Cyclic):
        hard_margin.fit(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [1, 2, 0, 1]]), 3)
