"""Held-out answers do not decide how they are predicted: turned round, they get the same log odds the other way."""

import numpy as np
import pytest

from stream_engine.embedding.choice import Choice
from stream_engine.embedding.fit import Setting
from stream_engine.refits.embedding_models import ModelOptions, ParticipantModels
from stream_engine.refits.embedding_predictions import KIND, ONE_MAP, WITH_PARTICIPANT, FoldPredictor
from tests.support.individual_worlds import world

OPTIONS = ModelOptions("worker", "test", given_dimensions=False, given_setting=True)


def predictor_of(answers):
    return FoldPredictor(answers, ParticipantModels(answers, OPTIONS), 0)


def given_setting(group):
    return Choice(Setting("ste", 2, 0.3), "given", [], (), test_units=group)


@pytest.fixture(scope="module")
def answers():
    return world(1, people=10, each=120, n=10, d=3, spread=1.5).answers


def turned(answers, out):
    rows = answers.rows.copy()
    rows[out] = rows[out][:, [2, 3, 0, 1]]
    return answers._replace(rows=rows)


def test_models_of_participants_are_not_selected_by_the_responses_that_they_predict(answers):
    group = np.arange(len(answers.rows)) % 5 == 0
    chosen = given_setting(group)
    out = group & (np.arange(len(group)) % 2 == 0)  # one of two folds of the group
    as_given, the_other_way = predictor_of(answers), predictor_of(turned(answers, out))
    odds, other = as_given.response(chosen, out), the_other_way.response(chosen, out)
    assert np.abs(odds[WITH_PARTICIPANT] - odds[ONE_MAP]).max() > 0.5  # there are models of participants
    for model in (KIND, ONE_MAP, WITH_PARTICIPANT):
        np.testing.assert_allclose(odds[model], -other[model], rtol=1e-9, atol=1e-9)


def test_models_of_others_are_not_selected_by_the_participants_whom_they_predict(answers):
    group = answers.participant < 2
    chosen = given_setting(group)
    as_given, the_other_way = predictor_of(answers), predictor_of(turned(answers, group))
    odds, other = (each.participant(chosen, group)[KIND] for each in (as_given, the_other_way))
    np.testing.assert_allclose(odds, -other, rtol=1e-9, atol=1e-9)
