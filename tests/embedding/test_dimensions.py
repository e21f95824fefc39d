"""How many dimensions at least: planted ones are found, noise adds none, and the tests are those of the papers."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from stream_engine import exports
from stream_engine.data.answers import Answers
from stream_engine.embedding import dimensions
from stream_engine.embedding.dimensions import FOLDS, REST, corrected_test, dimensions_at_least, folds_of
from stream_engine.exports.object_places import of_supported
from stream_engine.refits import embedding
from stream_engine.state.artifact_checks import check_artifact
from stream_engine.state.published import Published
from tests.support.generators import planted_triplets
from tests.support.kernel_reference import snapshot_of


def planted(seed, d, n=14, m=1200, flip=0.1):
    rng = np.random.default_rng(seed)
    rows = planted_triplets(rng, rng.normal(size=(n, d)), m, flip)[:, [0, 1, 0, 2]]
    return Answers(rows, np.ones(m), np.full(m, -1, np.int32), np.arange(m), n)


@pytest.mark.parametrize("d", [1, 2])
def test_planted_dimensions_are_found(d):
    answers = planted(d, d, m=900 * d)
    made = dimensions_at_least(answers, folds_of(answers.response, FOLDS))
    assert made.at_least == d and len(made.accuracy) == d + 1
    assert all(each <= 0.05 for each in made.p_values[:-1]) and made.p_values[-1] > 0.05
    assert made == dimensions_at_least(answers, folds_of(answers.response, FOLDS))


def test_coins_show_one_dimension_and_few_objects_allow_no_more():
    for seed in range(5):
        answers = planted(seed, 2, m=400, flip=0.5)
        assert dimensions_at_least(answers, folds_of(answers.response, FOLDS)).at_least == 1
    answers = planted(0, 2, n=3, m=100)
    made = dimensions_at_least(answers, folds_of(answers.response, FOLDS))
    assert made.at_least <= 2 and len(made.accuracy) <= 2


def test_the_test_is_that_of_nadeau_and_bengio():
    rng = np.random.default_rng(0)
    x = rng.normal(0.3, 1, 10)
    t = x.mean() / np.sqrt((1 / 10 + 1 / 9) * x.var(ddof=1))
    assert corrected_test(x) == pytest.approx(1 - stats.t.cdf(t, 9))
    assert corrected_test(np.zeros(10)) == 1.0 and corrected_test(np.full(10, 0.25)) == 0.0
    plain = stats.ttest_1samp(x, 0, alternative="greater").pvalue
    assert corrected_test(x) > plain


@pytest.mark.parametrize("p, at_least", [([0.04, 0.2, 0.001], 2), ([0.06], 1), ([0.04, 0.05, 0.9], 3)])
def test_each_step_has_the_whole_level_and_the_first_that_is_not_shown_is_the_last(monkeypatch, p, at_least):
    steps = iter(p)
    monkeypatch.setattr(dimensions, "_accuracy", lambda *_: 0.5)
    monkeypatch.setattr(dimensions, "corrected_test", lambda difference: next(steps))
    answers = planted(0, 2, m=100)
    made = dimensions_at_least(answers, folds_of(answers.response, FOLDS))
    assert made.at_least == at_least and made.p_values == p[:at_least]


def test_groups_are_not_torn_and_the_rest_is_never_held_out():
    group = np.random.default_rng(0).integers(0, 50, 400)
    fold = folds_of(group, FOLDS)
    assert all(len(np.unique(fold[group == each])) == 1 for each in np.unique(group))
    groups = [len(np.unique(group[fold == each])) for each in range(FOLDS)]
    assert max(groups) - min(groups) <= 1
    answers = planted(3, 1, m=300)
    fold = folds_of(answers.response, FOLDS)
    fold[:150] = REST
    some = dimensions_at_least(answers, fold)
    assert (
        some.at_least == 1 and some.accuracy != dimensions_at_least(answers, folds_of(answers.response, FOLDS)).accuracy
    )


def test_the_refit_says_both_numbers_of_dimensions():
    rng = np.random.default_rng(4)
    triplets = planted_triplets(rng, rng.normal(size=(12, 2)), 1500, 0.05)
    made = snapshot_of(triplets, 12)
    report = embedding.refit(made, embedding.Params(kernel="ste", ridge=0.3), 0).report
    assert report["dimensions_at_least"] == 2 <= report["d"]
    assert report["dimensions_tested"]["by"] == "comparisons" and len(report["dimensions_tested"]["p_values"]) >= 2
    low, high = report["dimensions_interval"]
    assert low <= report["d"] <= high
    given = embedding.refit(made, embedding.Params(kernel="ste", ridge=0.3, dimensions=3), 0).report
    assert "dimensions_at_least" not in given
    assert "dimensions_interval" not in given
    few = embedding.refit(snapshot_of(triplets[:20], 12), embedding.Params(), 0).report
    assert few["dimensions_at_least"] is None and few["dimensions_tested"].startswith("no: too few")


def test_no_number_of_dimensions_is_that_of_sets_that_nothing_joins():
    """Two planes beside each other, and the same with a few questions across."""
    rng = np.random.default_rng(4)
    one, other = (planted_triplets(rng, rng.normal(size=(10, 2)), 500, 0.05) for _ in range(2))
    for across in ([], [(0, 1, 12), (14, 15, 3)]):
        rows = np.concatenate([one, np.asarray(other) + 10, np.array(across, int).reshape(-1, 3)])
        artifact = embedding.refit(snapshot_of(rows, 20), embedding.Params(kernel="ste", ridge=0.3), 0, evaluate=False)
        names = ("dimensions_at_least", "dimensions_interval", "dimensions_tied")
        assert [artifact.report[name] for name in names] == [None] * 3
        assert artifact.report["dimensions_tested"].startswith("no: ") and "supported" not in artifact.arrays


def test_fewer_supported_dimensions_are_published_too(monkeypatch):
    """Where more dimensions predict better than can be shown, the embedding has these, and `supported` the others."""
    told = {"dimensions_at_least": 1, "dimensions_tested": "by this test"}
    monkeypatch.setattr(embedding.dimensions, "report_of", lambda *_, **__: dict(told))
    rng = np.random.default_rng(4)
    made = snapshot_of(planted_triplets(rng, rng.normal(size=(12, 2)), 1500, 0.05), 12)
    artifact = embedding.refit(made, embedding.Params(kernel="ste", ridge=0.3), 0, evaluate=False)
    published = Published(made, {"embedding": artifact})
    assert artifact.arrays["X"].shape[1] == 2 and artifact.arrays["supported"].shape == (12, 1)
    check_artifact(artifact, 12)
    table = exports.contents("embedding", published)["embedding"].tables["embedding"]
    np.testing.assert_array_equal(table["supported_1"], artifact.arrays["supported"][:, 0])
    assert of_supported(published, 12).points.shape == (12, 1)


@pytest.mark.parametrize("people, by", [(24, "workers"), (8, "judgements")])
def test_it_is_said_whether_participants_or_answers_were_held_out(people, by):
    rng = np.random.default_rng(0)
    who = np.arange(96) % people
    answers = planted(3, 1, m=96)._replace(
        participant=who.astype(np.int32), participants=tuple(f"w{i}" for i in range(people)), response=np.arange(96)
    )
    group, told = dimensions._groups(SimpleNamespace(by="judgements", draw=rng.random(96)), answers, 0)
    assert told == by and len({*group.tolist()}) == (people if by == "workers" else 96)
