"""Confidence equals its definitions on dense little worlds; noise and planted structure are told apart."""

import numpy as np
from scipy.stats import beta

from stream_engine.counts import confidence


def test_majority_is_the_posterior_of_a_beta():
    rng = np.random.default_rng(0)
    n_lo, n_hi = rng.integers(0, 40, (2, 200))
    expected = [1 - beta(1 + max(a, b), 1 + min(a, b)).cdf(0.5) for a, b in zip(n_lo, n_hi)]
    np.testing.assert_allclose(confidence.majority(n_lo, n_hi), expected, atol=1e-12)


def test_predicted_grows_with_the_margin_and_turns_round():
    rng = np.random.default_rng(0)
    margin = rng.integers(-30, 31, 4000)
    truth = np.where(margin == 0, 0.5, 0.5 + 0.4 * np.tanh(margin / 10))
    n_lo = rng.binomial(5, truth)
    found = confidence.predicted(margin, n_lo, 5 - n_lo)
    assert np.abs(found - truth).max() < 0.06
    np.testing.assert_allclose(confidence.predicted(-margin, 5 - n_lo, n_lo), 1 - found)
    order = np.argsort(margin, kind="stable")
    assert (np.diff(found[order]) >= -1e-12).all() and (found[margin == 0] == 0.5).all()
    assert (confidence.predicted(np.zeros(3, int), n_lo[:3], n_lo[:3]) == 0.5).all()
