"""Weights of participants: the gradient is that of finite differences, planted weights and axes are recovered, people
who are alike get one map, and people who differ are predicted better."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_score

from stream_engine.embedding.choice import Choice
from stream_engine.embedding.differences import ALIKE, DIFFER, SHARPNESS, differences, with_differences
from stream_engine.embedding.ellipses import covariances, radius
from stream_engine.embedding.fit import Setting, fit, fit_carefully
from stream_engine.embedding.gradient import loss_of
from stream_engine.embedding.held_out import known_lapses
from stream_engine.embedding.individual import fit_series, fit_weights, weighted_loss, weighted_margins
from stream_engine.embedding.participant_groups import participant_groups
from stream_engine.evaluation.answer_probabilities import margins, probability
from tests.support.embedding_worlds import covered
from tests.support.individual_worlds import split, world


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_weights_of_1_are_one_map(alpha):
    made = world(1, people=5, each=100)
    questions, lapse = made.answers.questions(), np.full(6, 0.1)
    value, slope, _, lapse_slope = weighted_loss(questions, alpha)(made.points, np.zeros((6, 2)), lapse)
    expected = loss_of(questions, alpha)(made.points, lapse)
    for one, other in zip((value, slope, lapse_slope), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    rows, who = made.answers.rows, made.answers.worker + 1
    seen = weighted_margins(made.points, made.weights, rows, who, alpha)
    for person in range(1, 6):
        own = margins(made.points * np.sqrt(made.weights[person]), rows[who == person], alpha)
        np.testing.assert_allclose(seen[who == person], own, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel, alpha, each", [("ste", 0.0, 500), ("t-ste", 1.0, 2000)])
def test_planted_weights_and_axes_are_recovered(kernel, alpha, each):
    made = world(2, people=12, each=each, alpha=alpha)
    questions = made.answers.questions()
    one, _ = fit_carefully(questions, 2, 0.1, kernel=kernel)
    found = fit_series(questions, one, 3.0)
    axes = np.abs(np.corrcoef(found.embedding.points.T, made.points.T)[:2, 2:])
    match = axes.argmax(axis=0)
    assert sorted(match) == [0, 1] and axes.max(axis=0).min() > 0.97  # no rotation is left over
    logs, planted = np.log(found.weights[1:, match]), np.log(made.weights[1:])
    assert np.corrcoef(logs[:, 0] - logs[:, 1], planted[:, 0] - planted[:, 1])[0, 1] > 0.95
    least = 0.9 if kernel == "ste" else 0.8  # t-STE flattens: how sharply somebody distinguishes is told less well
    assert min(np.corrcoef(logs[:, k], planted[:, k])[0, 1] for k in range(2)) > least
    assert found.weights[0].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(logs.mean(axis=0), 0.0, atol=1e-9)


def test_more_shrinkage_draws_weights_to_the_groups():
    questions = world(3, people=6, each=150).answers.questions()
    one = fit(questions, 2, 0.3)
    spread = [float(np.log(fit_weights(questions, one, each).weights[1:]).std()) for each in (1e6, 100.0, 3.0)]
    assert spread[0] < 1e-3 < spread[1] < spread[2]


@pytest.mark.parametrize("each", [120, 500])
def test_people_who_differ_are_found_and_predicted_better(each):
    training, validation, test = split(world(4, people=12, each=each).answers)
    questions = training.questions()
    one = fit_carefully(questions, 2, 0.3)[0]
    made = differences(one, questions, validation)
    assert made.verdict == DIFFER and made.p_value < 0.01 and made.gain > 2 * made.standard_error
    own = fit_series(questions, one, made.weights.shrinkage)

    def loss_on_test(fitted, weights, scale):
        delta = weighted_margins(fitted.points, weights, test.rows, test.worker + 1, fitted.alpha)
        lapse = known_lapses(fitted.lapse, questions)[test.worker + 1]
        return -np.log(probability(scale * delta, lapse)).mean(), (delta > 0).mean()

    alike = loss_on_test(one, np.ones_like(own.weights), 1.0)
    weighted = loss_on_test(own.embedding, own.weights, made.weights.scale)
    assert weighted[0] < alike[0] - 0.02 and weighted[1] > alike[1]


def test_two_groups_who_see_things_the_other_way_round_are_not_taken_for_guessers():
    """To one map with lapse rates of their own, the smaller group guesses."""
    made = world(6, people=12, each=200)
    weights = np.where((np.arange(13) < 6)[:, None], [9.0, 0.1], [0.1, 9.0])
    rng, rows = np.random.default_rng(0), made.answers.rows.copy()
    p = probability(weighted_margins(made.points, weights, rows, made.answers.worker + 1, 0.0), 0.0)
    turned = rng.random(len(rows)) > p
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    training, validation, _ = split(made.answers._replace(rows=rows))
    questions = training.questions()
    one = fit_carefully(questions, 1, 0.03)[0]
    assert (one.lapse > 0.5).sum() >= 5, "the world is not the one that is meant"
    chosen = Choice(one_setting := Setting("ste", 1, 0.03), "given", [], (), found=one)
    more, found = with_differences(chosen, questions, validation)
    assert found.verdict == DIFFER and more.setting.d >= 2 and more.weights.pooled
    own = fit_series(questions, fit(questions, more.setting.d, one_setting.ridge), found.weights.shrinkage, pooled=True)
    assert own.embedding.lapse.max() < 0.3
    assert participant_groups(own.weights[1:]).groups == 2


def test_people_who_are_alike_get_exactly_one_map():
    """At few answers and at many. The level of the test is 1 %."""
    for seed, (people, each) in enumerate([(4, 25), (10, 25), (40, 25), (6, 100), (20, 100), (3, 1000), (10, 500)]):
        training, validation, _ = split(world(seed, people=people, each=each, spread=0.0).answers)
        chosen = Choice(Setting("ste", 2, 0.3), "given", [], ())
        same, made = with_differences(chosen, training.questions(), validation)
        assert same is chosen and made.weights is None and made.report()["shrinkage"] is None
        assert made.verdict == ALIKE or made.gain is None


def test_weights_can_be_asked_for():
    training, validation, _ = split(world(0, people=6, each=60, spread=0.0).answers)
    chosen = Choice(Setting("ste", 2, 0.3), "given", [], ())
    more, made = with_differences(chosen, training.questions(), validation, given_d=True, always=True)
    assert made.weights and made.verdict == ALIKE and more.setting == chosen.setting
    nothing = with_differences(chosen, training.questions(), validation.of(validation.times < 0), always=True)[1]
    assert nothing.weights.shrinkage == 10.0 and nothing.gain is None


def test_a_dimension_that_only_some_attend_to_is_added():
    """Two thirds of the participants ignore the third axis, and all weigh the others differently."""
    made = world(5, people=12, each=700, d=3)
    weights = made.weights.copy()
    weights[:, 2] = np.where(np.arange(13) % 3 == 0, 4.0, 0.05)
    rng, rows, who = np.random.default_rng(0), made.answers.rows.copy(), made.answers.worker + 1
    p = 1 / (1 + np.exp(-weighted_margins(made.points, weights, rows, who, 0.0)))
    turned = rng.random(len(rows)) > p
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    training, validation, _ = split(made.answers._replace(rows=rows))
    chosen = Choice(Setting("ste", 2, 0.3), "given", [], ())
    more, found = with_differences(chosen, training.questions(), validation)
    assert found.weights and more.weights.calibration is not None and more.setting.d == 3


def test_groups_of_participants_are_found():
    rng = np.random.default_rng(0)
    logs = 0.3 * rng.normal(size=(30, 3))
    planted = np.arange(30) % 3 == 0
    logs[planted, 0] += 1.5
    logs[~planted, 1] += 1.5
    found = participant_groups(np.exp(logs))
    assert found.groups == 2 and found.p_value <= 0.05
    shares = logs - logs.mean(axis=1, keepdims=True)
    assert found.silhouette == pytest.approx(silhouette_score(shares, found.group))
    assert (found.group == planted).sum() >= 28  # the larger group is the first
    assert "not tested" in participant_groups(np.exp(logs[:5])).verdict


def test_ellipses_cover_planted_points_of_people_who_differ():
    hits = []
    for seed in range(6):
        made = world(seed, people=12, each=300)
        questions = made.answers.questions()
        own = fit_series(questions, fit_carefully(questions, 2, 0.1)[0], 3.0)
        covariance = covariances(own.embedding, made.answers, weights=own.weights)
        hits.append(covered(made.points, own.embedding.points, covariance, radius(2)))
        assert not np.allclose(covariance, covariances(own.embedding, made.answers))
    assert 0.85 < np.mean(hits) < 0.99


def test_who_only_distinguishes_more_sharply_gets_a_slope():
    made = world(7, people=12, each=400, spread=0.0)
    weights = np.where(np.arange(13) % 2 == 0, 0.4, 2.5)[:, None] * np.ones(2)
    rng, rows = np.random.default_rng(0), made.answers.rows.copy()
    turned = rng.random(len(rows)) > probability(
        weighted_margins(made.points, weights, rows, made.answers.worker + 1, 0.0), 0.0
    )
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    training, validation, _ = split(made.answers._replace(rows=rows))
    questions = training.questions()
    one = fit_carefully(questions, 2, 0.3)[0]
    found = differences(one, questions, validation)
    assert found.verdict == SHARPNESS and found.weights.slopes and found.p_of_weights >= 0.01 > found.p_value
    own = fit_series(questions, one, found.weights.shrinkage, slopes=True).weights[1:]
    assert np.ptp(own, axis=1).max() < 1e-9 and own[::2].min() > own[1::2].max()
