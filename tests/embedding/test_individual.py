"""Weights of participants: the gradient is that of finite differences, planted weights and axes are recovered, people
who are alike get one map, and people who differ are predicted better."""

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.differences import (
    ALIKE,
    DIFFER,
    _objects_that_gain,
    combined_log_odds,
    differences,
    fit_parts,
)
from stream_engine.embedding.ellipses import covariances, radius, score_gaps
from stream_engine.embedding.fit import Setting, fit, fit_carefully
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.individual import Weights, fit_weights, fit_with, weighted_loss, weighted_margins
from stream_engine.embedding.own_map_selection import cautious_settings
from stream_engine.embedding.own_maps import AVERAGE, DRAWS, SETTINGS, own_maps, selected_maps
from stream_engine.embedding.participant_folds import mean_gain
from stream_engine.embedding.participant_groups import dip, participant_groups
from stream_engine.embedding.questions import of_answers
from stream_engine.embedding.score_test import _add_stretching, score_tests
from stream_engine.embedding.stacking import losses as stacking_losses
from stream_engine.embedding.stacking import stack_coefficients
from stream_engine.evaluation.answer_probabilities import margins, probability
from tests.support.embedding_worlds import covered
from tests.support.individual_worlds import split, world


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_weights_of_1_are_one_map(alpha):
    made = world(1, people=5, each=100)
    questions, lapse = of_answers(made.answers), np.full(6, 0.1)
    value, slope, _, lapse_slope = weighted_loss(questions, alpha)(made.points, np.zeros((6, 2)), lapse)
    expected = Loss(questions, alpha)(made.points, lapse)
    for one, other in zip((value, slope, lapse_slope), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    rows, who = made.answers.rows, made.answers.participant + 1
    seen = weighted_margins(made.points, made.weights, rows, who, alpha)
    for person in range(1, 6):
        own = margins(made.points * np.sqrt(made.weights[person]), rows[who == person], alpha)
        np.testing.assert_allclose(seen[who == person], own, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel, alpha, each", [("ste", 0.0, 500), ("t-ste", 1.0, 2000)])
def test_planted_weights_and_axes_are_recovered(kernel, alpha, each):
    made = world(2, people=12, each=each, alpha=alpha)
    questions = of_answers(made.answers)
    one, _ = fit_carefully(questions, 2, 0.1, kernel=kernel)
    found = fit_with(questions, one, Weights(3.0))
    axes = np.abs(np.corrcoef(found.embedding.points.T, made.points.T)[:2, 2:])
    match = axes.argmax(axis=0)
    assert sorted(match) == [0, 1] and axes.max(axis=0).min() > 0.97  # no rotation is left over
    logs, planted = np.log(found.weights[1:, match]), np.log(made.weights[1:])
    assert np.corrcoef(logs[:, 0] - logs[:, 1], planted[:, 0] - planted[:, 1])[0, 1] > 0.95
    least = 0.9 if kernel == "ste" else 0.8  # t-STE flattens: how sharply somebody distinguishes is told less well
    assert min(np.corrcoef(logs[:, k], planted[:, k])[0, 1] for k in range(2)) > least
    assert found.weights[0].tolist() == [1.0, 1.0]
    np.testing.assert_allclose(logs.mean(axis=0), 0.0, atol=1e-9)


def test_a_fit_that_begins_on_the_axes_of_another_is_shorter():
    made = world(2, people=12, each=300, d=3)
    questions, other = (of_answers(world(2, people=12, each=each, d=3).answers) for each in (300, 250))
    one, few = (fit_carefully(each, 3, 0.1)[0] for each in (questions, other))
    axes = fit_with(other, few, Weights(3.0)).embedding.points
    assert np.abs(np.corrcoef(axes.T, made.points.T)[:3, 3:]).max(axis=0).min() > 0.9
    by_itself, on_axes = fit_with(questions, one, Weights(3.0)), fit_with(questions, one, Weights(3.0), axes)
    assert on_axes.embedding.evaluations < by_itself.embedding.evaluations
    assert on_axes.embedding.objective < by_itself.embedding.objective * 1.001


def test_more_shrinkage_draws_weights_to_the_groups():
    questions = of_answers(world(3, people=6, each=150).answers)
    one = fit(questions, 2, 0.3)
    spread = [float(np.log(fit_weights(questions, one, each).weights[1:]).std()) for each in (1e6, 100.0, 3.0)]
    assert spread[0] < 1e-3 < spread[1] < spread[2]


def parts(answers, d=2, ridge=0.3, **more):
    """What is selected for a training set and its fit, and the fit of one map."""
    setting = Setting("ste", d, ridge)
    one = fit_carefully(of_answers(answers), d, ridge)[0]
    return differences(answers, one, setting, **more), one


def losses(made, test):
    """Mean log loss on test answers of one map, and of the selected models."""
    one, who = made.group_map, test.participant
    alike = np.log(probability(margins(one.points, test.rows, one.alpha), one.lapse[who + 1]))
    if made.individual is not None:
        found = made.individual.embedding
        delta = weighted_margins(found.points, made.individual.weights, test.rows, who + 1, found.alpha)
        p = probability(made.differences.weights.scale * delta, found.lapse[who + 1])
    else:
        p = np.exp(alike)
    odds = np.log(p / (1 - p))
    if made.own_maps is not None:
        odds = combined_log_odds(odds, made.own_maps.log_odds(test.rows, who), made.differences.stack[who])
    return -alike.mean(), np.log1p(np.exp(-odds)).mean()


def test_the_gain_of_an_answer_is_a_ratio_of_units_with_different_numbers_of_answers():
    """Cochran 1977, eq. 6.9: residuals are of a unit's gain from that of as many answers."""
    gain, answers = np.array([1.0, 5.0, 2.0, 0.5]), np.array([1.0, 3.0, 2.0, 2.0])
    ratio = 8.5 / 8
    off = [1 - ratio, 5 - 3 * ratio, 2 - 2 * ratio, 0.5 - 2 * ratio]
    error = np.sqrt(4 / 3 * np.square(off).sum()) / 8
    assert mean_gain(gain, answers) == pytest.approx((ratio, error, scipy.stats.norm.sf(ratio / error)))


def test_people_who_differ_are_found_and_predicted_better():
    training, _, test = split(world(4, people=12, each=200).answers, shares=(0.8, 0.8))
    made, one = parts(training)
    assert made.verdict == DIFFER
    assert 0 < made.p_value == 2 * min(test.pooled for test in score_tests(one, training)) < 0.01
    assert made.weights
    assert len(made.differing_participants)
    alike, own = losses(fit_parts(made, training, of_answers(training), one), test)
    assert own < alike - 0.02
    assert all(len(each) == 3 for each in made.objects) and (made.gain[made.differing_participants] > 0).all()


@pytest.mark.parametrize("seed", [4, 5])
def test_who_is_not_known_is_predicted_by_one_map_and_the_weights_of_the_group(seed):
    """Better than by these weights alone, whose axes few use, if all answers of some participants are held out."""
    answers = world(seed, people=14, each=150).answers
    is_new = answers.participant >= 9
    training, new = answers.of(~is_new), answers.of(is_new)
    found, one = parts(training, d=2)
    assert found.weights.map_share in (0.5, 1.0)
    made = fit_parts(found, training, of_answers(training), one)
    of_map = Calibration(1.0, float(one.lapse.mean()))
    shown, alike = (
        probability(of.scale * margins(fitted.points, new.rows, fitted.alpha), of.lapse)
        for fitted, of in ((made.embedding, found.weights.calibration), (one, of_map))
    )
    both = made.probabilities(new.rows, found.weights.calibration, of_map)
    np.testing.assert_allclose(both, shown + found.weights.map_share * (alike - shown), rtol=1e-12)
    assert -np.log(both).mean() < -np.log(shown).mean()


def one_of_another_mind(m=300, n=20, others=2000):
    """Answers of participant 0, m of them, with a map that has nothing to do with that of participants 1 and 2."""
    rng = np.random.default_rng(3)
    maps, rows, who = rng.normal(size=(2, n, 2)), [], []
    for person, count in ((0, m), (1, others), (2, others // 4)):
        asked = np.argsort(rng.random((count, n)), axis=1)[:, [0, 1, 0, 2]].astype(np.int32)
        asked[:, 2] = asked[:, 0]
        turned = rng.random(count) > probability(margins(maps[min(person, 1)], asked), 0.05)
        asked[turned] = asked[turned][:, [2, 3, 0, 1]]
        rows.append(asked)
        who.append(np.full(count, person, np.int32))
    rows, who = np.concatenate(rows), np.concatenate(who)
    return Answers(rows, np.ones(len(rows)), who, np.arange(len(rows)), n, tuple("abc"))


def test_a_map_of_their_own_is_stacked_for_who_sees_other_things():
    answers = one_of_another_mind(600)
    test = answers.of((answers.participant == 0) & (np.arange(len(answers.rows)) >= 300))
    training = answers.of((answers.participant != 0) | (np.arange(len(answers.rows)) < 300))
    made, one = parts(training)
    of_map, _ = score_tests(one, training)
    assert of_map.p_value[0] < 0.02 < of_map.p_value[2]
    assert made.differing_participants.tolist() == [0]
    assert made.map_owners.tolist()[0] == 0
    assert made.stack[0, 1] > 0.5
    alike, own = losses(fit_parts(made, training, of_answers(training), one), test)
    assert own < alike - 0.1


def test_maps_of_blocks_are_those_of_each_alone():
    """Whichever others there are; a block without an object cannot predict answers about it."""
    answers = one_of_another_mind(300, others=400)
    together = list(own_maps(answers.rows, answers.times, answers.participant, 3, 20))[1]
    for person in range(2):
        some = answers.of(answers.participant == person)
        alone = list(own_maps(some.rows, some.times, np.zeros(len(some.rows), int), 1, 20))[1]
        one, other = (
            each.log_odds(some.rows, np.full(len(some.rows), block)) for each, block in ((together, person), (alone, 0))
        )
        assert np.corrcoef(one, other)[0, 1] > 0.99
    assert np.isnan(together.log_odds(np.array([[0, 1, 0, 25]], np.int32), np.array([0]))).all()
    picked = selected_maps(answers.rows, answers.times, answers.participant, np.array([1, -1, 4]), 20)
    assert set(np.unique(picked.block)) == {0, 2} and picked.points.shape[1] == 5
    assert (picked.points[picked.block == 0, 2:] == 0).all()


def test_few_answers_are_averaged_over_draws():
    """By a loop over the draws of each block; draws are less sure than one fit, and predict new answers better."""
    answers, n = one_of_another_mind(1200, others=200), 20
    test = answers.of((answers.participant == 0) & (np.arange(len(answers.rows)) >= 200))
    kept = answers.of((answers.participant != 0) | (np.arange(len(answers.rows)) < 200))
    setting = np.array([AVERAGE, SETTINGS.index((3, 0.3)), -1])
    maps = selected_maps(kept.rows, kept.times, kept.participant, setting, n)
    one = selected_maps(kept.rows, kept.times, kept.participant, np.array([SETTINGS.index((3, 0.3)), -1, -1]), n)
    assert set(maps.draw[maps.block == 0]) == set(range(DRAWS)) and set(maps.draw[maps.block == 1]) == {0}
    rows, p = test.rows[:50], []
    for draw in range(DRAWS):
        points = maps.points[(maps.block == 0) & (maps.draw == draw)]
        p.append(probability(margins(points, rows), maps.lapse[0]))
    odds = maps.log_odds(rows, np.zeros(50, int))
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), np.mean(p, axis=0), atol=1e-9)
    loss = [stacking_losses(each.log_odds(test.rows, np.zeros(len(test.rows), int))).mean() for each in (maps, one)]
    assert loss[0] < loss[1] - 0.05


def test_the_setting_of_an_own_map_is_the_most_cautious_within_a_standard_error():
    rng, who = np.random.default_rng(0), np.repeat([0, 1], 400)
    loss = np.full((len(SETTINGS), 800), 2.0) + rng.normal(size=(len(SETTINGS), 800)) * 0.01
    close, best = SETTINGS.index((3, 1.0)), SETTINGS.index((5, 0.3))
    loss[best] = 1.0
    loss[close] = np.where(who == 0, 1.0 + 0.1 * rng.normal(size=800), 1.1)
    loss[close, who == 0] -= loss[close, who == 0].mean() - 1.002  # within one standard error, .005
    picked = cautious_settings(loss, np.ones(800), who, 2)
    assert picked.tolist() == [close, best]


def test_coefficients_stay_at_the_groups_map_unless_answers_say_otherwise():
    rng = np.random.default_rng(0)

    def person(m, base, own):
        odds = rng.normal(size=(m, 2)) * 2
        truth = rng.random(m) < 1 / (1 + np.exp(-(base * odds[:, 0] + own * odds[:, 1])))
        return odds * np.where(truth, 1, -1)[:, None]

    def coefficients(people):
        number = np.repeat(np.arange(len(people)), [len(each) for each in people])
        odds = np.concatenate(people)
        return stack_coefficients(odds[:, 0], odds[:, 1], np.ones(len(odds)), number, len(people))

    alike = [person(60, 1.0, 0.0) for _ in range(20)]
    assert np.abs(coefficients(alike) - [1, 0]).max() < 0.4
    made = coefficients([*alike[:10], person(400, 0.0, 1.0)])
    assert np.abs(made[-1] - [0, 1]).max() < 0.25 and np.abs(made[:-1] - [1, 0]).max() < 0.5


def test_few_answers_that_a_timid_map_predicts_are_not_multiplied():
    own, group = np.full(40, 0.2), np.tile([0.5, -0.5], 20)  # all predicted, with hardly any certainty
    (coefficients,) = stack_coefficients(group, own, np.ones(40), np.zeros(40, np.int64), 1)
    assert 0.5 < coefficients[1] <= 1.0


def test_slopes_in_a_stretched_map_are_those_of_finite_differences():
    answers = world(5, people=2, each=5).answers
    one = fit(of_answers(answers), 2, 0.3, max_iterations=5)
    points, (i, j, k, l), lapse = one.points, answers.rows.T, one.lapse[answers.participant + 1]
    near, far = score_gaps(one, answers)
    slopes = np.zeros((len(i), 3))
    ends = np.arange(len(i) + 1)
    _add_stretching(near, points[i] - points[j], far, points[k] - points[l], ends, slopes)
    for column, (a, b) in enumerate(zip(*np.triu_indices(2), strict=True)):
        stretched = np.zeros((2, 2))
        stretched[a, b] = stretched[b, a] = 1e-5
        more, less = (
            np.log(probability(margins(points + sign * points @ stretched, answers.rows), lapse)) for sign in (1, -1)
        )
        np.testing.assert_allclose(slopes[:, column], (more - less) / 2e-5, rtol=1e-5, atol=1e-7)


def test_score_tests_have_their_level():
    """Of people who see the same map, p-values of the score tests are not too small."""
    p, pooled = [], []
    for seed in range(12):
        answers = world(seed, people=8, each=80, spread=0.0).answers
        for each in score_tests(fit(of_answers(answers), 2, 0.3), answers):
            p += each.p_value.tolist()
            pooled.append(each.pooled)
    assert 0.01 < np.mean(np.array(p) < 0.1) < 0.17 and np.mean(np.array(pooled) < 0.05) < 0.2


def test_answers_of_several_participants_to_one_question_are_a_unit_each():
    answers = world(0, people=6, each=60, spread=0.0).answers
    one = fit(of_answers(answers), 2, 0.3)
    own, shared = (
        differences(answers._replace(response=unit), one, Setting("ste", 2, 0.3))
        for unit in (np.arange(360), np.arange(360) % 60)
    )
    assert own.verdict == shared.verdict == ALIKE
    assert own.p_value == pytest.approx(shared.p_value) and own.p_value < 1


def test_weights_have_the_number_of_dimensions_that_predicts_best_with_them():
    """Half of the participants hardly see the second axis, the others hardly see the first."""
    made = world(5, people=6, each=250)
    weights = np.where((np.arange(7) < 4)[:, None], [3.0, 0.2], [0.2, 3.0])
    rows = made.answers.rows.copy()
    p = probability(weighted_margins(made.points, weights, rows, made.answers.participant + 1, 0.0), 0.05)
    turned = np.random.default_rng(0).random(len(rows)) > p
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    found, _ = parts(made.answers._replace(rows=rows), d=4)
    assert found.verdict == DIFFER
    assert found.weights.d < 4


def test_two_groups_who_see_things_the_other_way_round_are_not_taken_for_guessers():
    """To one map with lapse rates of their own, the smaller group guesses."""
    made = world(6, people=12, each=200)
    weights = np.where((np.arange(13) < 6)[:, None], [9.0, 0.1], [0.1, 9.0])
    rng, rows = np.random.default_rng(0), made.answers.rows.copy()
    p = probability(weighted_margins(made.points, weights, rows, made.answers.participant + 1, 0.0), 0.0)
    turned = rng.random(len(rows)) > p
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    answers = made.answers._replace(rows=rows)
    found, one = parts(answers, d=1, ridge=0.03)
    assert (one.lapse > 0.5).sum() >= 5, "the world is not the one that is meant"
    assert found.verdict == DIFFER
    assert found.weights.d >= 2
    assert found.weights.pooled
    own = fit_parts(found, answers, of_answers(answers), one).individual
    assert own.embedding.lapse.max() < 0.3
    assert participant_groups(own.weights[1:]).groups == 2


def test_people_who_are_alike_get_exactly_one_map():
    for seed, (people, each) in enumerate([(4, 25), (10, 25), (6, 100), (20, 100), (3, 600)]):
        made, _ = parts(world(seed, people=people, each=each, spread=0.0).answers)
        assert made.weights is None
        assert not len(made.differing_participants)
        assert made.verdict == ALIKE


def test_weights_can_be_asked_for():
    made, _ = parts(world(0, people=6, each=60, spread=0.0).answers, given_d=True, always=True)
    assert made.weights
    assert made.weights.shrinkage >= 3
    assert made.verdict == ALIKE


def test_groups_of_participants_are_found():
    rng = np.random.default_rng(0)
    logs = 0.3 * rng.normal(size=(30, 3))
    planted = np.arange(30) % 3 == 0
    logs[planted, 0] += 1.5
    logs[~planted, 1] += 1.5
    found = participant_groups(np.exp(logs))
    assert found.groups == 2 and found.p_value <= 0.05
    assert (found.group == planted).sum() >= 28  # the larger group is the first
    assert "not tested" in participant_groups(np.exp(logs[:5])).verdict


def test_a_few_participants_far_from_all_others_are_no_group():
    rng = np.random.default_rng(0)
    logs = 0.2 * rng.normal(size=(60, 3)) * np.sqrt(2 / rng.chisquare(2, 60))[:, None]
    assert scipy.stats.kurtosis(logs).max() > 5
    assert participant_groups(np.exp(logs)).groups == 1


@pytest.mark.parametrize("seed", [0, 1])
def test_the_dip_is_the_distance_from_the_nearest_distribution_with_one_mode(seed):
    """A distribution function that rises ever faster up to a mode and ever slower beyond, by linear programming."""
    x = np.sort(np.random.default_rng(seed).normal(size=9) + 3 * (np.arange(9) % 2))
    ranks, best = np.arange(9) / 9, 1.0
    for mode in range(9):
        rows, room = [], []
        for at in range(7):
            steps = np.diff(x[at : at + 3])
            bend = np.zeros(10)
            bend[at : at + 3] = np.array([-1 / steps[0], 1 / steps[0] + 1 / steps[1], -1 / steps[1]])
            if at + 1 != mode:
                rows.append(bend if at + 1 < mode else -bend)
                room.append(0.0)
        for sign in (1, -1):
            rows += [np.append(sign * one, -1.0) for one in np.eye(9)]
            room += (sign * ranks).tolist()
        best = min(best, scipy.optimize.linprog(np.eye(10)[9], rows, room, bounds=[(None, None)] * 10).fun)
    assert dip(x) == pytest.approx(best, abs=1e-9)


def test_ellipses_cover_planted_points_of_people_who_differ():
    hits = []
    for seed in range(6):
        made = world(seed, people=12, each=300)
        questions = of_answers(made.answers)
        own = fit_with(questions, fit_carefully(questions, 2, 0.1)[0], Weights(3.0))
        covariance = covariances(own.embedding, made.answers, weights=own.weights)
        hits.append(covered(made.points, own.embedding.points, covariance, radius(2)))
        assert not np.allclose(covariance, covariances(own.embedding, made.answers))
    assert 0.85 < np.mean(hits) < 0.99


def test_the_objects_are_named_about_which_a_participant_gains_most():
    """By the sum over their own answers that name the object, once each."""
    rng = np.random.default_rng(3)
    rows = np.array([rng.permutation(7)[[0, 1, 0, 2]] if at % 2 else rng.permutation(7)[:4] for at in range(60)])
    who, gain = rng.integers(3, size=60).astype(np.int32), rng.normal(size=60)
    answers = Answers(rows.astype(np.int32), np.ones(60), who, np.arange(60), 7, ("a", "b", "c"))
    total = [sum(gain[at] for at in range(60) if who[at] == 1 and i in rows[at]) for i in range(7)]
    assert _objects_that_gain(answers, gain, 1) == sorted(range(7), key=lambda i: -total[i])[:3]
