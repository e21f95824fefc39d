"""A fit that is cut short: no more iterations than it may take, the best points so far with their own objective, and
the refit's report says that it did not converge."""

import numpy as np
import pytest

from stream_engine.embedding import lapse_prior
from stream_engine.embedding.fit import fit, fit_carefully
from tests.support import embedding_reference as reference


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
def test_a_budget_is_held_and_more_of_it_never_gives_less(kernel):
    asked, before = reference.questions(2), np.inf
    for most in (1, 2, 3, 8, 20):
        told = []
        found = fit(
            asked, 2, 0.1, kernel=kernel, tolerance=1e-15, max_iterations=most,
            progress=lambda *at, told=told, **_: told.append(at),
        )  # fmt: skip
        assert found.iterations == most and not found.converged
        assert told[-1] == (most, most) and all(done <= most == total for done, total in told)
        alpha = 0.0 if kernel == "ste" else 1.0
        objective = reference.loss(found.points, asked, found.lapse, alpha) + 0.1 * (found.points**2).sum()
        objective += lapse_prior.cost(found.lapse, found.guessers)[0]
        assert found.objective == pytest.approx(objective, rel=1e-9) and found.objective < before
        before = found.objective
    whole = fit(asked, 2, 0.1, kernel=kernel, max_iterations=1000)
    assert whole.converged and whole.iterations < 1000
    enough = fit(asked, 2, 0.1, kernel=kernel, max_iterations=whole.iterations + 1)
    assert enough.converged and enough.objective == whole.objective
    assert fit_carefully(asked, 2, 0.1, kernel=kernel, tolerance=1e-15, max_iterations=3)[0].iterations == 3
