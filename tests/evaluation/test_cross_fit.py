"""Cross-fitting: every answer is predicted once, by what never had it; until the interval is narrow enough."""

import numpy as np
import pytest

from stream_engine.evaluation import cross_fit, held_out
from stream_engine.evaluation import responses as folds
from stream_engine.evaluation.hash_split import name_hashes
from tests.support.judged_worlds import world


def evidence(seed: int = 0, **more) -> folds.Responses:
    made = world(seed, **more)
    return folds.of_judgements(made.judgements, name_hashes(made.names, 0), 0)


def held(groups: list[cross_fit.Group]) -> np.ndarray:
    """(F, U) who is out in each fit."""
    return np.array([out for group in groups for out in group.folds])


def test_a_small_study_is_predicted_whole():
    """Every response in one fold, every named participant in one of the others; what chooses is never predicted."""
    found = evidence(screens=300, workers=14)
    plan = cross_fit.plan(found)
    assert (held(plan.responses).sum(axis=0) == 1).all() and len(held(plan.responses)) == cross_fit.FOLDS
    assert np.array_equal(held(plan.participants).sum(axis=0), found.participant >= 0)
    for group in plan.responses + plan.participants:
        chooses = group.part == folds.CHOOSE
        assert 0.1 < chooses.mean() < 0.25 and not any((out & chooses).any() for out in group.folds)
        assert all((group.part[out] == folds.HELD).all() for out in group.folds)


def test_a_large_study_is_predicted_until_the_interval_is_narrow():
    """At worst two points wide at either side: 2,401 independent answers, all of which every model is tested on."""
    found = evidence(screens=30_000, shown=2, near=1, workers=0, repeats=0.0)
    out = held(cross_fit.plan(found).responses)
    assert len(out) == 1 and 2401 <= found.answers.times[out[0][found.answers.response]].sum() < 4000
    fewer = evidence(screens=9_000, shown=2, near=1, workers=0, repeats=0.0)
    assert len(held(cross_fit.plan(fewer).responses)) == 3


def test_five_folds_of_many_comparisons_share_a_setting_that_saw_none_of_them(monkeypatch):
    found = evidence(screens=300, workers=14)
    monkeypatch.setattr(cross_fit, "MANY_COMPARISONS", len(found.answers.rows))
    plan = cross_fit.plan(found)
    assert [len(group.folds) for group in plan.responses + plan.participants] == [5, 5, 5, 5]
    for group in plan.responses + plan.participants:
        assert np.array_equal(group.part == folds.HELD, np.any(group.folds, axis=0))
    monkeypatch.setattr(cross_fit, "MANY_COMPARISONS", len(found.answers.rows) + 1)
    assert {len(group.folds) for group in cross_fit.plan(found).responses} == {cross_fit.FOLDS_A_GROUP}


def test_comparisons_of_one_response_count_as_one():
    found = evidence(screens=3_000, shown=6, near=3, workers=0, repeats=0.0)
    assert len(held(cross_fit.plan(found).responses)) > 7, "27,000 comparisons, but 3,000 responses"


def test_participants_are_predicted_until_there_are_enough(monkeypatch):
    found = evidence(screens=3_000, shown=2, near=1, workers=400)
    out = held(cross_fit.plan(found).participants)
    people = [len(np.unique(found.participant[each])) for each in out]
    assert sum(people) >= cross_fit.ENOUGH_PARTICIPANTS > sum(people[:-1])
    monkeypatch.setattr(cross_fit, "MAX_FITTED_COMPARISONS", 1)
    assert len(held(cross_fit.plan(found).participants)) == 1, "the first fold whatever it costs"


def test_nothing_is_held_out_where_no_figures_are_wanted():
    plan = cross_fit.plan(evidence(screens=200), evaluate=False)
    assert not len(held(plan.responses))
    assert not plan.participants
    assert folds.HELD not in plan.responses[0].part


def test_the_figures_are_those_of_all_predictions_together():
    """Each group with a setting of its own, each fold with what was fitted outside it."""
    found, rng = evidence(screens=200), np.random.default_rng(1)
    plan, said = cross_fit.plan(found), rng.normal(0.4, 1.0, len(found.answers.rows))
    guess = rng.normal(size=len(found.answers.rows))
    groups = iter(range(100))

    def choose(part: np.ndarray) -> int:
        return next(groups)

    asked = []

    def predict(setting: int, out: np.ndarray) -> dict[str, np.ndarray]:
        asked.append((setting, out))
        mine = out[found.answers.response]
        return {"one": said[mine], "guess": guess[mine], "coin": np.zeros(np.count_nonzero(mine))}

    got = cross_fit.evaluate(found, plan, -1, choose, predict)
    whole = held_out.figures(said, 1.0, found.answers.times, found.answers.response)
    asked_again: dict[frozenset, int] = {}
    question = [
        asked_again.setdefault(frozenset((frozenset((i, j)), frozenset((k, l)))), len(asked_again))
        for i, j, k, l in found.answers.rows.tolist()
    ]
    by_question = held_out.figures(said, 1.0, found.answers.times, np.array(question)).standard_error
    assert got["one"].judgement.accuracy == pytest.approx(whole.accuracy)
    assert got["one"].judgement.standard_error == pytest.approx(max(whole.standard_error, by_question))
    assert got["one"].judgement.comparisons == found.answers.times.sum() and got["coin"].judgement.accuracy == 0.5
    guessed = max(
        held_out.figures(guess, 1.0, found.answers.times, by).standard_error
        for by in (found.answers.response, np.array(question))
    )
    for fitted, wider in ((True, np.sqrt(1 + 10 / 9)), (False, 1.0)):  # counts are not fitted to each other's answers
        again = cross_fit.evaluate(found, plan, -1, choose, predict, fitted=fitted)["guess"].judgement
        assert again.standard_error == pytest.approx(guessed * wider)
    named = found.answers.participant >= 0
    by = held_out.figures(said[named], 1.0, found.answers.times[named], found.answers.participant[named])
    again = held_out.figures(said[named], 1.0, found.answers.times[named], np.array(question)[named])
    assert got["one"].worker.standard_error == pytest.approx(max(by.standard_error, again.standard_error))
    assert [setting for setting, _ in asked[:4]] == [-1, -1, 0, 0]


def test_few_answers_are_predicted_in_several_divisions_and_counted_once():
    """Figures are means over divisions, in each of which every answer is predicted once; their number is no other."""
    found = evidence(screens=40, shown=2, near=1, workers=0, repeats=0.0)
    n = len(found.answers.rows)
    plan, rng = cross_fit.plan(found, max_divisions=5), np.random.default_rng(2)
    assert len(cross_fit.plan(found).responses) * 5 == len(plan.responses)
    out = held(plan.responses)
    assert (out.sum(axis=0) == 5).all() and len({each.tobytes() for each in out}) > 4 * cross_fit.FOLDS
    said = {each.tobytes(): rng.normal(0.3, 1.0, n) for each in out}

    def predict(setting: None, fold: np.ndarray) -> dict[str, np.ndarray]:
        return {"one": said[fold.tobytes()][fold[found.answers.response]]}

    got = cross_fit.evaluate(found, plan, None, lambda part: None, predict, fitted=False)["one"].judgement
    times, mine = found.answers.times, [fold[found.answers.response] for fold in out]
    right = sum(times[which] @ (said[fold.tobytes()] > 0)[which] for fold, which in zip(out, mine)) / 5
    assert got.accuracy == pytest.approx(right / times.sum())
    assert got.comparisons == times.sum() and got.clusters == len(found.draw)
    assert 0 < got.standard_error < np.sqrt(0.25 / n), "less than that of one division"
    many = evidence(screens=cross_fit.REPEATED_COMPARISONS + 1, shown=2, near=1, workers=0, repeats=0.0)
    assert len(cross_fit.plan(many, max_divisions=5).responses) == len(cross_fit.plan(many).responses)
