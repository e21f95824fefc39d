"""The prior of the lapses: its formula and slopes, and what two populations are for."""

import numpy as np
import pytest
from scipy.special import expit

from stream_engine.embedding import lapse_prior
from stream_engine.embedding.fit import Setting, with_setting
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation.answer_probabilities import margins
from tests.support.generators import planted_triplets


def slow(lapse, share):
    """Straight from the formula: a product over the workers, nobody's of one population."""
    a, b = lapse_prior.PRIOR

    def kernel(x):
        return x**a * (1 - x) ** b

    density = kernel(lapse[0])
    for one in lapse[1:]:
        density *= (1 - share) * kernel(one) + share * kernel(1 - one)
    return -np.log(density * (kernel(share) if len(lapse) > 1 else 1.0))


@pytest.mark.parametrize("workers", [0, 1, 6])
def test_the_cost_and_its_slopes_are_those_of_the_formula(workers):
    rng, h = np.random.default_rng(workers), 1e-6
    for _ in range(20):
        at, share_at = rng.normal(0, 2, 1 + workers), rng.normal()
        value, slope, share_slope = lapse_prior.cost(expit(at), expit(share_at))
        assert value == pytest.approx(slow(expit(at), expit(share_at)))
        for w in range(1 + workers):
            step = h * (np.arange(1 + workers) == w)
            up, down = (slow(expit(at + by * step), expit(share_at)) for by in (1, -1))
            assert slope[w] == pytest.approx((up - down) / (2 * h), abs=1e-4)
        up, down = (slow(expit(at), expit(share_at + by * h)) for by in (1, -1))
        assert share_slope == pytest.approx((up - down) / (2 * h), abs=1e-4)


def test_few_answers_are_enough_to_tell_guessers_where_many_guess():
    """25 answers a worker: a guesser's lapse is near 1, not halfway back to that of those who know."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(25, 2))
    rows, who = planted_triplets(rng, points, 1500, 0.05)[:, [0, 1, 0, 2]], np.repeat(np.arange(60), 25)
    guesser = np.arange(60) < 18
    coin = guesser[who] & (rng.random(1500) < 0.5)
    rows[coin] = rows[coin][:, [2, 3, 0, 1]]
    found = with_setting(of_rows(rows, 25, worker=who), Setting("ste", 2, 0.3))
    assert np.median(found.lapse[1:][guesser]) > 0.85 and np.median(found.lapse[1:][~guesser]) < 0.1
    assert 0.15 < found.guessers < 0.45
    test = planted_triplets(rng, points, 3000)[:, [0, 1, 0, 2]]
    alone = with_setting(of_rows(rows[~guesser[who]], 25), Setting("ste", 2, 0.3))
    right, best = ((margins(each.points, test) > 0).mean() for each in (found, alone))
    assert right > best - 0.02


def test_who_is_not_named_or_fixed_has_no_share():
    rows = planted_triplets(np.random.default_rng(0), np.random.default_rng(1).normal(size=(9, 2)), 300)[
        :, [0, 1, 0, 2]
    ]
    assert with_setting(of_rows(rows, 9), Setting("ste", 2, 0.3)).guessers == 0.0
    named = of_rows(rows, 9, worker=np.arange(300) % 4)
    assert with_setting(named, Setting("ste", 2, 0.3), fixed_lapse=True).guessers == 0.0
    honest = with_setting(named, Setting("ste", 2, 0.3))
    assert honest.guessers < 0.2 and honest.lapse.max() < 0.2
