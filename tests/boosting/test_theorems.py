"""Theorems 3 and 4 in a booster's report, against the paper's formulas written out."""

import numpy as np
import pytest

from stream_engine.boosting import fit as fitting
from stream_engine.boosting import theorems
from stream_engine.data.triplet_columns import columns_from_triplets, pair_of_entry
from tests.support import generators


def fitted(seed: int, multi: bool = False, rounds: int = 300):
    rng = np.random.default_rng(seed)
    columns = columns_from_triplets(generators.dense_batch(rng, 12, 400, quadruplets=0.0).triplets, 12)
    sets = np.zeros((12, 3), bool)
    sets[np.arange(12), rng.integers(3, size=12)] = True
    if multi:
        sets |= rng.random(sets.shape) < 0.3
    sets[-2:] = False
    booster = fitting.fit(columns, sets, rounds, seed)
    return booster, columns, sets, fitting.votes_of(booster, columns, np.arange(12))


@pytest.mark.parametrize("multi", [False, True])
def test_margins_are_the_lead_of_the_own_label_and_their_bound_holds(multi):
    wrong = 0
    for seed in range(6):
        booster, columns, sets, votes = fitted(seed, multi, rounds=(4, 300)[seed % 2])
        weight = booster.classifiers.alpha.sum()
        expected = []
        for x in range(10):
            said = votes.for_label[x]  # eq. (5)
            outside = [said[y] for y in range(3) if not sets[x, y]]
            best = max(said[y] for y in range(3) if sets[x, y])
            expected.append((best - max(outside)) / weight if outside else 1.0)
        order = booster.groups.example
        positive = sets[order]
        held = theorems.margins(votes.confidence[order], positive, weight)
        assert held == pytest.approx(np.array(expected)[order], abs=1e-12)
        wrong += (held < 0).sum()
        made = theorems.figures(booster, columns, votes.confidence)["theorem_3"]
        assert [made["quantiles"][q] for q in ("0", "0.5", "1")] == pytest.approx(
            [np.min(held), np.median(held), np.max(held)]
        )
        log_bound = booster.curve.log_bound[-1]  # (|Y| / 2) prod Z_c, followed along the rounds
        for row in made["shares"]:
            assert row["share"] == np.mean(held <= row["theta"]) <= row["bound"] + 1e-12
            assert row["bound"] == pytest.approx(min(1.0, np.exp(log_bound + row["theta"] * weight)), rel=1e-6)
    assert wrong


def test_theorem_3_starts_at_the_size_of_the_classifiers():
    """All 4^|Y| label sets of all pairs of differently labelled examples, counted one by one."""
    positive = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1]], bool)
    pairs = sum((positive[a] != positive[b]).any() for a in range(4) for b in range(a))
    assert theorems.least_theta(positive) == pytest.approx(np.sqrt(np.log(pairs * 4**3) / (16 * 9 * 4)))
    assert theorems.least_theta(np.ones((3, 1), bool)) > 0


@pytest.mark.parametrize("n, classifiers, share", [(99, 4950, 0.5), (99, 10, 0.01), (3000, 10**5, 0.1), (3, 1, 0.9)])
def test_fewer_triplets_than_needed_leave_more_abstention(n, classifiers, share):
    needed = theorems.triplets_needed(n, classifiers, share)
    assert theorems.abstention_bound(n, 2 * needed / n**3, classifiers) <= share
    assert theorems.abstention_bound(n, 2 * (needed - 1) / n**3, classifiers) > share


def test_theorem_4_counts_triplets_and_pairs_of_references():
    booster, columns, _, votes = fitted(3)
    made = theorems.figures(booster, columns, votes.confidence)["theorem_4"]
    pair = pair_of_entry(columns)
    triplets = sum(
        max(int(x), int(columns.lo[p]), int(columns.hi[p])) < 10 and a != b
        for x, p, a, b in zip(columns.anchor, pair, columns.n_lo, columns.n_hi)
    )
    c = booster.classifiers
    pairs = {frozenset(each) for each in zip(c.j.tolist(), c.k.tolist())}
    assert made["triplets"] == triplets > 100 and made["classifiers"] == len(pairs) < len(c.alpha)
    assert made["probability"] == triplets / (10 * 9 * 8 / 2)
    assert made["abstains_at_least"] == theorems.abstention_bound(10, made["probability"], len(pairs))
    needed = list(made["triplets_needed"].values())
    assert needed == sorted(needed) and needed[0] < needed[-1]


def test_a_booster_without_classifiers_has_figures_too():
    booster, columns, _, votes = fitted(0, rounds=0)
    made = theorems.figures(booster, columns, votes.confidence)
    assert set(made["theorem_3"]["quantiles"].values()) == {0.0} and made["theorem_4"]["abstains_at_least"] == 1.0
    assert set(made["theorem_4"]["triplets_needed"].values()) == {None}
