"""Confidence equals its definitions on dense little worlds; noise and planted structure are told apart."""

import numpy as np
import pytest
from scipy.stats import beta

from stream_engine.clustering.stability import Replicates, improved_partition
from stream_engine.counts import confidence
from stream_engine.refits.sdp_clustering import Params, refit
from stream_engine.state.engine import Engine
from tests.evaluation.test_observer import decoded
from tests.support.generators import planted_triplets


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


@pytest.fixture(scope="module")
def groups():
    """Three far groups of ten, the last object between two of them."""
    rng = np.random.default_rng(0)
    points = np.array([[0, 0], [6, 0], [0, 6]])[np.arange(30) % 3] + rng.normal(0, 0.5, (30, 2))
    points[29] = 3.0, 0.0
    engine = Engine(("adds3", "triplet_counts"), False)
    engine.learn(decoded(planted_triplets(rng, points, 6000, 0.1), 30))
    return engine.snapshot()


def test_an_object_between_two_clusters_is_the_least_stable(groups):
    made = refit(groups, Params(k=3, stability=20), 0)
    firm, together, labels = (made.arrays[name] for name in ("stability", "together", "labels"))
    assert firm.argmin() == 29 and firm[29] < 0.95 and np.delete(firm, 29).min() > 0.95
    assert (np.diag(together) == 1).all() and (together == together.T).all()
    inside = np.delete(np.arange(30), 29)
    same = labels[inside][:, None] == labels[inside]
    np.testing.assert_allclose(together[np.ix_(inside, inside)], same, atol=0.11)
    assert len(made.arrays["stability_ari"]) == 20 and made.report["stability"]["ari"] > 0.8
    off = refit(groups, Params(k=3, stability=0), 0)
    assert "stability" not in off.arrays and (off.arrays["labels"] == labels).all()
    kernel = refit(groups, Params(k=3, similarity="k1", stability=5), 0)
    assert kernel.arrays["stability"].mean() > 0.9


def test_noise_is_not_stable_and_the_same_matrix_is():
    labels, rng = np.arange(24) % 3, np.random.default_rng(0)

    def noise():
        w = np.triu(rng.normal(size=(24, 24)), 1)
        return improved_partition(w + w.T, labels, 0)

    found = Replicates.of(labels, [(noise(), noise()) for _ in range(6)])
    own = found.share[np.arange(24), labels]
    assert (found.stability == own).all() and (own < found.share.max(axis=1)).any(), "some are more often elsewhere"
    assert found.stability.mean() < 0.7 and np.abs(found.agreement).max() < 0.3 and found.between.mean() > 0.8
    for k in (1, 2, 3):
        groups = np.arange(24) % k
        planted = (groups[:, None] == groups) - 0.3 - 0.7 * np.eye(24)
        same = improved_partition(planted, groups, 0)
        made = Replicates.of(groups, [(same, same)] * 3)
        assert (made.stability == 1).all() and (made.agreement == 1).all() and (made.second == -1).all()
