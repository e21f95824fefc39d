"""Whether predictions are averaged over draws from the posterior is decided by answers that neither they nor the fit
know."""

import numpy as np
import pytest

from stream_engine.data.answers import Answers
from stream_engine.embedding.choice import Split, choose
from stream_engine.embedding.posterior import MAX_AVERAGED_ANSWERS, posterior
from stream_engine.embedding.questions import of_answers
from stream_engine.evaluation.answer_probabilities import probabilities
from stream_engine.refits.embedding_models import ModelOptions, scale_of_draws

OPTIONS = ModelOptions("all", "alike", given_dimensions=False, given_setting=False)
N = 30


def answers_in_responses(seed, responses, each, jitter=0.0):
    """`responses` of `each` comparisons about a planted map, which every response sees with an error of its own."""
    rng = np.random.default_rng(seed)
    points, rows = np.random.default_rng(7).normal(size=(N, 2)), []
    for _ in range(responses):
        seen = points + jitter * rng.normal(size=points.shape)
        for anchor, near, far in (rng.permutation(N)[:3] for _ in range(each)):
            delta = ((seen[anchor] - seen[far]) ** 2).sum() - ((seen[anchor] - seen[near]) ** 2).sum()
            is_expected = rng.random() < 1 / (1 + np.exp(-delta))
            rows.append([anchor, near, anchor, far] if is_expected else [anchor, far, anchor, near])
    rows = np.array(rows, np.int32)
    return Answers(rows, np.ones(len(rows)), np.full(len(rows), -1, np.int32), np.repeat(np.arange(responses), each), N)


def split_of(answers, part):
    in_validation = answers.response % 5 == part
    return Split(of_answers(answers.of(~in_validation)), answers.of(in_validation))


def chosen_and_splits(answers):
    splits = [split_of(answers, part) for part in range(5)]
    return choose(*splits[0], further=splits[1:]), splits


def test_averages_of_few_answers_predict_new_ones_better():
    gains = []
    for seed in (2, 3, 4, 6):
        answers, test = answers_in_responses(seed, 300, 1), answers_in_responses(100 + seed, 2000, 1)
        chosen, splits = chosen_and_splits(answers)
        scale, embedding, calibration = scale_of_draws(chosen, splits, OPTIONS), chosen.embedding, chosen.calibration
        by_draws = posterior(splits[0].questions, embedding.points, 0).scaled(scale).probabilities(test.rows)
        by_fit = probabilities(embedding.points, test.rows, calibration.lapse, embedding.alpha, scale=calibration.scale)
        gains.append(np.log(by_draws).mean() - np.log(by_fit).mean())
    assert np.mean(gains) > 0.02


def test_the_fit_stays_where_it_predicts_clearly_better():
    """A fit is given the answers that it predicts."""
    answers = answers_in_responses(0, 300, 1)
    chosen, splits = chosen_and_splits(answers)
    known = choose(of_answers(answers), splits[0].validation)
    assert scale_of_draws(chosen, splits[:1], OPTIONS) is not None
    assert scale_of_draws(known, splits[:1], OPTIONS) is None


def test_less_is_tolerated_where_responses_have_several_comparisons():
    """The draws take them for independent: the same excess of their loss is then more than an error."""
    kept = []
    for seed in range(6):
        chosen, splits = chosen_and_splits(answers_in_responses(seed, 60, 20, jitter=1.0))
        kept.append(scale_of_draws(chosen, splits, OPTIONS) is None)
    assert sum(kept) >= 3


def test_without_a_validation_set_few_answers_are_averaged_as_they_are():
    answers = answers_in_responses(0, 60, 1)
    chosen, splits = chosen_and_splits(answers)
    assert chosen.embedding is None and scale_of_draws(chosen, splits[:1], OPTIONS) == 1.0


@pytest.mark.parametrize(
    "options", [OPTIONS._replace(given_setting=True), OPTIONS._replace(lapse="none")], ids=["given", "no lapse"]
)
def test_a_model_that_was_given_is_not_averaged(options):
    chosen, splits = chosen_and_splits(answers_in_responses(0, 300, 1))
    assert scale_of_draws(chosen, splits, options) is None


def test_many_answers_are_not_averaged():
    answers = answers_in_responses(0, 300, 1)
    chosen, (first, *_) = chosen_and_splits(answers)
    many = first.questions._replace(near=np.full(len(first.questions.rows), MAX_AVERAGED_ANSWERS))
    assert scale_of_draws(chosen, [first._replace(questions=many)], OPTIONS) is None
