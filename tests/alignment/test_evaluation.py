"""Figures of feature sets: definitions, what is held out, coverage of intervals, and random features at chance."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from stream_engine.alignment import answers as tested
from stream_engine.alignment import evaluation
from stream_engine.alignment.answers import Units, object_folds_of, over_objects, units_of
from stream_engine.alignment.evaluation import AS_IS, LINEAR, WEIGHTS, Evaluated, Models
from stream_engine.alignment.feature_files import FeatureTable
from stream_engine.alignment.feature_sets import MEASURES, joined
from tests.support.feature_worlds import world


def evaluated(study, tables, linear=True, seed=0):
    snapshot = study.snapshot()
    sets = joined(tables, snapshot.objects)
    found = tested.tested_responses(snapshot, seed)
    with threadpool_limits(1):
        return Evaluated(
            Models(sets.sets, found, linear), found, list(snapshot.objects), seed, lambda done, total: None
        )


@pytest.fixture(scope="module")
def study():
    return world(0)


@pytest.fixture(scope="module")
def figures(study):
    noise = np.random.default_rng(9).normal(size=(40, 4))
    return evaluated(study, {"true": study.table, "noise": FeatureTable(study.names, noise)})


def test_sets_as_they_are_are_right_as_often_as_by_the_definitions(study, figures):
    x = study.features
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similar = {
        "cosine": lambda a, b: (unit[a] * unit[b]).sum(axis=1),
        "euclidean": lambda a, b: -((x[a] - x[b]) ** 2).sum(axis=1),
        "dot product": lambda a, b: (x[a] * x[b]).sum(axis=1),
    }
    i, j, k, l = study.rows.T
    for measure in MEASURES:
        expected = np.mean(similar[measure](i, j) > similar[measure](k, l))
        assert figures.as_is("true", measure).accuracy == pytest.approx(expected, abs=1e-12)
    best = max(figures.as_is(name, measure).accuracy for name in ("true", "noise") for measure in MEASURES)
    told = figures.behind("noise", "cosine")
    assert told.accuracy == pytest.approx(best - figures.as_is("noise", "cosine").accuracy)
    assert 0 < told.standard_error < 0.05


def test_equal_similarities_are_half_right():
    study = world(1, n=12, m=300)
    table = FeatureTable(study.names, (study.features[:, :2] > 0).astype(float))
    x = table.values
    near, far = (((x[study.rows[:, a]] - x[study.rows[:, b]]) ** 2).sum(axis=1) for a, b in ((0, 1), (2, 3)))
    expected = np.mean((near < far) + 0.5 * (near == far))
    assert evaluated(study, {"x": table}, False).as_is("x", "euclidean").accuracy == pytest.approx(expected)


def test_learning_helps_where_it_can_and_combinations_prefer_what_predicts(figures):
    told = {kind: figures.response_figures(figures.by_response["true", kind]) for kind in (AS_IS, WEIGHTS, LINEAR)}
    assert told[WEIGHTS][1] < told[AS_IS][1] - 0.01 and told[LINEAR][1] < told[AS_IS][1]
    assert told[WEIGHTS][0].accuracy > told[AS_IS][0].accuracy
    by_object = figures.object_figures(("true", WEIGHTS))
    assert by_object["accuracy"] > figures.object_figures(("noise", WEIGHTS))["accuracy"] + 0.1
    mixture = figures.models.mixture(figures.settings)
    assert mixture.sum() == pytest.approx(1.0) and mixture[0] > 0.9
    assert figures.adds("true").accuracy > 4 * figures.adds("true").standard_error
    assert abs(figures.adds("noise").accuracy) < 0.02


def test_nothing_that_is_tested_was_learned_from(study):
    """Answers that are held out are turned round: what is fitted to the others stays."""
    rows = tested.tested_responses(study.snapshot(), 0).answers.rows
    names = [f"o{i}" for i in range(40)]
    for fold in object_folds_of(names, rows, 0):
        apart = {part: set(rows[getattr(fold, part)][:, [1, 3]].ravel()) for part in ("validation", "tested")}
        for of, part in ((fold.training, "validation"), (fold.training, "tested"), (fold.outside, "tested")):
            assert of.any() and not set(rows[of].ravel()) & apart[part]
        assert not (fold.tested & fold.outside).any() and not (fold.training & ~fold.outside).any()
    covered = np.sum([fold.tested for fold in object_folds_of(names, rows, 0)], axis=0)
    assert set(covered.tolist()) == {0, 1}
    assert object_folds_of(names[:8], rows[:0], 0) == []


def test_what_is_tested_on_new_objects_was_fitted_without_them(monkeypatch):
    study, fits, fit = world(1, n=30, m=600), [], Models.fit

    def fit_and_note(models, training, settings, tested):
        fits.append((training, tested))
        return fit(models, training, settings, tested)

    monkeypatch.setattr(Models, "fit", fit_and_note)
    rows = evaluated(study, {"true": study.table}, linear=False).answers.rows
    folds = len(object_folds_of(study.names, rows, 0))
    new = [not set(rows[training].ravel()) & set(rows[tested][:, [1, 3]].ravel()) for training, tested in fits]
    assert new == [False] * (len(fits) - folds) + [True] * folds
    assert not any((training & tested).any() for training, tested in fits)


@pytest.mark.parametrize("by", ["response", "object"])
def test_random_features_are_at_chance_also_after_learning(by):
    """The leak detector: answers hang on true features, sets know nothing of these. Over several worlds, as the answers
    of one share its objects. By response, what is learned knows the objects; so there answers are a coin's."""
    off = {kind: [] for kind in (AS_IS, WEIGHTS, LINEAR)}
    for seed in range(5):
        study = world(seed, n=30, m=1000, weights=(2.0, 2.0) if by == "object" else (0.0, 0.0))
        x = np.random.default_rng([seed, 1]).normal(size=(30, 4))
        told = evaluated(study, {"random": FeatureTable(study.names, x)}, seed=seed)
        for kind in off:
            prediction = getattr(told, f"by_{by}")["random", kind]
            off[kind].append(float(prediction.right.mean()) - 0.5)
    for values in off.values():
        assert abs(np.mean(values)) < 3.5 * max(np.std(values, ddof=1), 0.01) / np.sqrt(5)


def test_a_leak_is_detected():
    """Random features, learned from the answers that they are tested on: far above chance."""
    study = world(0, n=30, m=1500, weights=(0.0, 0.0))
    x = np.random.default_rng(1).normal(size=(30, 6))
    told = evaluated(study, {"random": FeatureTable(study.names, x)})
    everything = np.ones(1500, bool)
    honest = told.by_response["random", LINEAR]
    weakest = [setting._replace(linear=1e-3) for setting in told.settings]
    cheated = told.models.fit(everything, weakest, everything)["random", LINEAR]
    assert np.mean(cheated > 0) > 0.53 and abs(honest.right.mean() - 0.5) < 0.05


def units(response, question, participant=None, times=None):
    return Units(np.ones(len(response)) if times is None else times, response, question, participant)


@pytest.mark.parametrize("by", ["response", "participant", "both"])
def test_intervals_cover(by):
    """Responses of four answers that are right or wrong together; participants of different accuracy; 95 % of intervals
    hold the share over all."""
    rng, covered, size = np.random.default_rng(3), [], 400
    for _ in range(600):
        response = np.repeat(np.arange(100), 4)
        participant = np.arange(100)[response] % 15
        share = np.full(size, 0.65)
        if by != "response":
            share = (0.65 + rng.choice([-0.2, 0.2], 15))[participant]
        draw = rng.random(100)[response] if by != "participant" else rng.random(size)
        told = units(response, np.arange(size), participant).accuracy((draw < share).astype(float))
        covered.append(told.low <= 0.65 <= told.high)
    assert 0.92 <= np.mean(covered) <= 0.99


def test_errors_of_participants_and_of_questions_add_up():
    """Where both differ, the variance is that of Cameron, Gelbach & Miller (2011): either less that of responses."""
    rng = np.random.default_rng(8)
    participant, question = (each.ravel() for each in np.meshgrid(np.arange(20), np.arange(20)))
    share = 0.6 + rng.choice([-0.2, 0.2], 20)[participant] + rng.choice([-0.15, 0.15], 20)[question]
    right = (rng.random(400) < share).astype(float)

    def variance(cluster):
        sums = np.bincount(cluster, right - right.mean())
        return len(sums) / (len(sums) - 1) * (sums @ sums) / 400**2

    told = units(np.arange(400), question, participant).accuracy(right)
    expected = variance(participant) + variance(question) - variance(np.arange(400))
    assert told.standard_error == pytest.approx(np.sqrt(expected))


def test_the_interval_over_objects_covers():
    """Answers about pairs, each object with an effect of its own on all of its answers."""
    rng, covered, n = np.random.default_rng(4), [], 40
    for _ in range(300):
        rows = np.argsort(rng.random((400, n)), axis=1)[:, [0, 1, 0, 2]]
        effect = rng.choice([-0.08, 0.08], n)
        share = 0.6 + effect[rows[:, 0]] + effect[rows[:, 1]] + effect[rows[:, 3]]
        told = over_objects((rng.random(400) < share).astype(float), rows, np.ones(400), n)
        covered.append(told.low <= 0.6 <= told.high)
    assert 0.92 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("wrong", [0, 1])
def test_an_interval_that_ends_at_one_is_widened_by_its_other_end(wrong):
    one_each = np.arange(12)
    found = Units(np.ones(12), one_each, one_each, None).accuracy((one_each >= wrong).astype(float))
    assert found.high == 1.0 and found.widened(1.5).high == 1.0
    assert found.accuracy - found.widened(1.5).low == pytest.approx(1.5 * (found.accuracy - found.low))
    assert found.accuracy - found.low == pytest.approx(2.201 * found.standard_error, rel=1e-3)  # Student's, 11 df


def test_all_right_on_few_objects_is_not_certain():
    rows = np.array([[i, (i + 1) % 9, i, (i + 2) % 9] for i in range(9)])
    told = over_objects(np.ones(9), rows, np.ones(9), 9)
    assert told.high == told.accuracy == 1.0 and 0.2 < told.low < 0.8


def test_agreement_leaves_the_answer_itself_out(study):
    rows = np.array([[0, 1, 0, 2], [0, 1, 0, 2], [2, 0, 0, 1], [3, 1, 3, 2]])
    numbers = units(np.arange(4), np.array([0, 0, 0, 1]))
    others, one_way, other_way = tested.agreement(numbers, rows)
    np.testing.assert_array_equal(others, [0.5, 0.5, 0.0, np.nan])
    assert one_way.tolist() == [2, 2, 1, 1] and other_way.tolist() == [1, 1, 2, 0]


def test_of_many_answers_the_counts_are_tested_by_participant(study, monkeypatch):
    """A state that keeps a sample of the responses: all answers all the same, in the same shares."""
    whole = study.snapshot()
    kept = {key: each for key, each in whole.arrays.items() if not key.startswith("judgements/")}
    one, other = (tested.tested_responses(each, 0) for each in (whole, whole._replace(arrays=kept)))
    assert one.by == "judgements"
    assert other.answers.times.sum() == one.answers.times.sum() == 2000
    assert not other.complete
    by = [np.bincount(found.answers.participant, found.answers.times).tolist() for found in (one, other)]
    assert by[0] == by[1]
    nobody = {key: each for key, each in kept.items() if not key.startswith("worker_votes/")}
    counted = tested.tested_responses(whole._replace(arrays=nobody), 0)
    assert counted.answers.times.sum() == 2000 and (counted.participant == -1).all()
    told = units_of(counted.answers)
    assert told.participant is None
    objects = np.sort(counted.answers.rows[:, [0, 1, 3]], axis=1)
    assert len(np.unique(objects, axis=0)) == told.response.max() + 1


def test_weights_and_the_map_have_a_ridge_each(monkeypatch):
    """That with the least loss: here the second one of weights, and the first one of the map."""
    study = world(1, n=12, m=300)
    sets = joined({"true": study.table}, study.snapshot().objects)
    found = tested.tested_responses(study.snapshot(), 0)
    models = Models(sets.sets, found, True)

    def path(thetas):
        return lambda x, answers, ridges, gain: [size * thetas(x.shape[1]) for size in (0.0, 1.0, 0.0, 0.0)]

    monkeypatch.setattr(evaluation.transforms, "weights", path(np.ones))
    monkeypatch.setattr(
        evaluation.transforms, "linear_maps", lambda x, *_, **__: [np.eye(x.shape[1]), 0 * np.eye(x.shape[1])]
    )
    units = np.arange(int(found.answers.response.max()) + 1) % 2 == 0
    (setting,) = models.choose(units, ~units)
    assert (setting.weights, setting.linear) == (evaluation.RIDGES[1], evaluation.RIDGES[0])
