"""What Perrot & von Luxburg (2019) prove: Theorems 1, 4 and 5.

Their figures are rows of `python -m tests.benchmarks papers`.
"""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from stream_engine.data.triplet_columns import columns_from_triplets
from tests.benchmarks import boosting_paper
from tests.benchmarks.boosting_worlds import sampled_codes, sampled_columns
from tests.support.generators import dense_batch


def test_theorem_1_no_other_label_sets_err_less():
    """All 2^|Y| sets on both sides, by the weights before the round; and alpha is 0 exactly without an advantage."""
    rng = np.random.default_rng(0)
    columns = columns_from_triplets(dense_batch(rng, 8, 400, quadruplets=0.0).triplets, 8)
    groups = group(label_sets(rng.integers(3, size=8), 8), np.arange(8))
    codes = codes_from_columns(columns, groups, groups.example)
    state, every_set, strict = boosting.start(groups, 1), list(itertools.product([False, True], repeat=3)), 0
    for j, k in rng.permutation([(j, k) for j in range(8) for k in range(8) if state.group[j] != state.group[k]]):
        column = boosting.find(codes, min(j, k), max(j, k))
        code = codes.code[codes.start[column] : codes.start[column + 1]] if column >= 0 else codes.code[:0]
        w, positive = np.abs(state.v) / state.total[0], state.positive
        least = 0.0
        for side in (0, 1):
            x = code[code & 1 == side] >> 1
            least += min((w[x] * (positive[x] != np.array(said))).sum() for said in every_set)
        touched = w[code >> 1].sum()
        held = boosting.advance(state, codes, 0, np.array([[j, k]]))
        alpha = np.log((touched - least + 1 / 8) / (least + 1 / 8)) / 2
        assert alpha == pytest.approx(held.alpha[0] if len(held.alpha) else 0.0, abs=1e-12)
        assert least <= touched / 2 + 1e-12 and (least < touched / 2 - 1e-12) == (len(held.alpha) == 1)
        strict += len(held.alpha)
    assert 5 < strict < 100


@pytest.mark.parametrize("k", [1.0, 1.4, 1.5, 1.6, 2.0])
def test_theorem_4_the_booster_abstains_as_often_as_the_formula_says(k):
    """At least as often (Theorem 4); as often, since hardly any classifier has weight 0 (Theorem 5)."""
    outcomes = np.array([boosting_paper.abstention(100, k, seed) for seed in range(8)])
    seen, formula = outcomes.mean(axis=0)
    error = outcomes[:, 0].std() / np.sqrt(8) + np.sqrt(max(formula * (1 - formula), 1e-4) / 8000)
    assert abs(seen - formula) < 5 * error


@pytest.mark.parametrize("own", [False, True])
def test_triplets_drawn_into_codes_are_those_of_counts(own):
    """All triplets: the same as through counts. A fifth of them, a third wrong: as many as that, within chance."""
    rng = np.random.default_rng(0)
    y, points = rng.integers(3, size=20), rng.normal(size=(32, 2))
    groups = group(label_sets(y, 20), np.arange(20))
    anchors = groups.example if own else np.arange(20, 32)
    distances = cdist(points[groups.example], points[anchors])
    whole = codes_from_columns(sampled_columns(cdist(points, points[:20]), 1.0), groups, anchors)
    drawn = [sampled_codes(distances, groups, *how, own=own) for how in ((1.0,), (0.2, 0.3, 5))]
    every, some = (
        set(
            zip(
                np.repeat(np.arange(len(codes.start) - 1), np.diff(codes.start.astype(int))).tolist(),
                codes.code.tolist(),
            )
        )
        for codes in (drawn[0], drawn[1])
    )
    assert len(every) == len(whole.code) == len(drawn[0].code)
    for name in ("first", "row", "partner", "start"):
        np.testing.assert_array_equal(getattr(drawn[0], name), getattr(whole, name))
        assert getattr(drawn[1], name).dtype == getattr(whole, name).dtype
    sums = np.repeat(np.arange(len(whole.start) - 1), np.diff(whole.start.astype(int)))
    assert every == set(zip(sums.tolist(), whole.code.tolist()))
    assert abs(len(some) / len(every) - 0.2) < 5 * np.sqrt(0.16 / len(every))
    assert abs(len(some - every) / len(some) - 0.3) < 5 * np.sqrt(0.21 / len(some))


@pytest.mark.data
def test_food_sweet_dishes_are_told_from_others(judgements):
    """73 dishes with tastes, ten folds. Sweet ones are told by their pictures; the larger class has 52 %."""
    (made,) = boosting_paper.tastes(judgements, 20_000, ("sweet",))
    assert made["dishes"] == 73
    assert made["larger class"] < 0.53
    assert made["accuracy"] > made["larger class"] + 0.08
