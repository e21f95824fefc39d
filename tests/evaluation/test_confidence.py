"""Confidence equals its definitions on dense little worlds; noise and planted structure are told apart."""

import numpy as np
import pytest
from scipy.stats import beta

from stream_engine.clustering.stability import Replicates, improved_partition
from stream_engine.counts import confidence
from stream_engine.data.triplet_columns import columns_from_triplets, pair_of_entry
from stream_engine.refits.sdp_clustering import Params, refit
from stream_engine.state.engine import Engine
from tests.evaluation.test_observer import decoded
from tests.support.generators import dense_batch, planted_triplets
from tests.support.planted_similarities import adds3


def test_majority_is_the_posterior_of_a_beta():
    rng = np.random.default_rng(0)
    n_lo, n_hi = rng.integers(0, 40, (2, 200))
    expected = [1 - beta(1 + max(a, b), 1 + min(a, b)).cdf(0.5) for a, b in zip(n_lo, n_hi)]
    np.testing.assert_allclose(confidence.majority(n_lo, n_hi), expected, atol=1e-12)


def world(seed=0, n=6, size=250):
    return dense_batch(np.random.default_rng(seed), n, size, quadruplets=0).triplets


def rows(columns):
    """anchor, lo, hi of every key."""
    pair = pair_of_entry(columns)
    return list(zip(columns.anchor.tolist(), columns.lo[pair].tolist(), columns.hi[pair].tolist()))


def test_left_one_out_is_adds_of_the_others():
    triplets = world()
    columns = columns_from_triplets(triplets, 6)
    found = confidence.left_one_out(columns)
    for (a, lo, hi), margin in zip(rows(columns), found.tolist()):
        others = np.array([t for t in triplets.tolist() if (t[0], *sorted(t[1:])) != (a, lo, hi)])
        w = adds3(others, 6)
        assert margin == w[a, lo] - w[a, hi]


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


def test_evidence_equals_a_plain_count():
    rng = np.random.default_rng(1)
    batch = dense_batch(rng, 7, 300)
    engine = Engine(("triplet_counts", "quadruplet_counts"), False)
    engine.learn(decoded(batch.triplets, 7)._replace(quadruplets=batch.quadruplets, quadruplet_at=batch.quadruplet_at))
    snapshot = engine.snapshot()
    columns = columns_from_triplets(batch.triplets, 7)
    found = confidence.answers_by_object(columns, snapshot.section("quadruplet_counts"))
    margin = dict(zip(rows(columns), confidence.left_one_out(columns).tolist()))
    for o in range(7):
        mine = [tuple(t) for t in batch.triplets.tolist() if o in t]
        four = [tuple(q) for q in batch.quadruplets.tolist() if o in q]
        assert found.answers[o] == len(mine) + len(four)
        assert found.as_anchor[o] == sum(t[0] == o for t in mine)
        asked = {(a, *sorted((b, c))) for a, b, c in mine}
        pairs = [tuple(sorted([tuple(sorted(q[:2])), tuple(sorted(q[2:]))])) for q in four]
        assert found.questions[o] == len(asked) + len(set(pairs))
        turned = {q: [tuple(sorted(s[:2])) == q[0] for s, p in zip(four, pairs) if p == q] for q in set(pairs)}
        assert found.contradicted[o] == sum(
            min(mine.count((a, lo, hi)), mine.count((a, hi, lo))) for a, lo, hi in asked
        ) + sum(min(sum(t), len(t) - sum(t)) for t in turned.values())
        right = sum(0.5 if not (m := margin[a, *sorted((b, c))]) else float((m > 0) == (b < c)) for a, b, c in mine)
        assert found.agreement[o] == pytest.approx(right / len(mine))
    assert found.contradicted.min() > 0


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
    assert found.stability.mean() < 0.7 and np.abs(found.agreement).max() < 0.3 and found.between.mean() > 0.8
    for k in (1, 2, 3):
        groups = np.arange(24) % k
        planted = (groups[:, None] == groups) - 0.3 - 0.7 * np.eye(24)
        same = improved_partition(planted, groups, 0)
        made = Replicates.of(groups, [(same, same)] * 3)
        assert (made.stability == 1).all() and (made.agreement == 1).all() and (made.second == -1).all()
