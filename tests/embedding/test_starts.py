"""Points grow by the columns in which the objective falls most."""

import numpy as np
import pytest

from stream_engine.embedding import questions, starts
from stream_engine.embedding.fit import alpha_of, fit
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.questions import of_rows
from tests.support import embedding_reference as reference
from tests.support.generators import planted_triplets


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
def test_the_curvature_is_the_second_order_term_of_new_columns(alpha):
    """L([X Y]) = L(X) + tr(Y' S(X) Y) + O(Y^4), with triplets and comparisons of four, several workers."""
    rng, asked = np.random.default_rng(0), reference.questions(2)
    for _ in range(10):
        points, new = rng.normal(size=(7, 2)), 1e-3 * rng.normal(size=(7, 3))
        lapse = rng.uniform(0, 0.9, asked.n_workers)
        s, loss = starts.curvature(points, asked, lapse, alpha).toarray(), Loss(asked, alpha)
        more = loss(np.hstack([points, new]), lapse)[0] - loss(points, lapse)[0]
        assert more == pytest.approx(np.trace(new.T @ s @ new), rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
def test_grown_points_are_better_at_once_and_never_worse(kernel):
    rng = np.random.default_rng(3)
    rows = planted_triplets(rng, rng.normal(size=(30, 4)), 4000, 0.1)[:, [0, 1, 0, 2]]
    asked, lapse, ridge, alpha = of_rows(rows, 30), np.full(1, 0.1), 0.3, alpha_of(kernel, 4)
    loss = Loss(asked, alpha)

    def objective(points):
        return loss(points, lapse)[0] + ridge * (points**2).sum()

    few = fit(asked, 2, ridge, kernel=kernel).points
    more = starts.grown(few, 4, asked, loss, lapse, ridge, alpha)
    assert more.shape == (30, 4) and np.array_equal(more[:, :2], few)
    best = fit(asked, 4, ridge, kernel=kernel, tolerance=1e-9)
    assert objective(more) < objective(few) - 0.05 * (objective(few) - best.objective)
    full = starts.grown(best.points, 8, asked, loss, lapse, 1e6, alpha)
    assert objective(full) == objective(best.points) and not full[:, 4:].any()
    assert np.array_equal(starts.grown(few, 1, asked, loss, lapse, ridge, alpha), few)


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_sums_by_pair_are_those_by_question(alpha, monkeypatch):
    asked, points = reference.questions(2), np.random.default_rng(0).normal(size=(7, 2))
    lapse = np.full(asked.n_workers, 0.1)
    by_question = starts.curvature(points, asked, lapse, alpha).toarray()
    monkeypatch.setattr(starts, "DENSE", 1)
    assert 4 * len(asked.rows) >= 7 * 7
    assert starts.curvature(points, asked, lapse, alpha).toarray() == pytest.approx(by_question, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("best", [0, 3, 4, 5, len(starts.SCALES) - 1])
def test_the_best_scale_is_found_wherever_on_the_grid_it_is(best):
    scale, cost = starts._best_scale(lambda scale: abs(np.log(scale / starts.SCALES[best])))
    assert (scale, cost) == (starts.SCALES[best], 0.0)


def test_questions_are_in_the_same_order_by_one_number_as_by_columns():
    columns = np.random.default_rng(0).integers(5, size=(5, 300))
    for n_objects in (5, 10**6):
        assert questions._order(columns, n_objects, 5).tolist() == np.lexsort(columns[::-1]).tolist()
