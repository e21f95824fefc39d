"""Figures against their definitions, one answer at a time; the ceiling against counting by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from stream_engine import Engine, Triplet
from stream_engine.evaluation import held_out, noise_ceiling, participants, responses
from stream_engine.evaluation.hash_split import name_hashes
from tests.support.judged_worlds import world


def answers(rng, m=200):
    """Margins with ties, how often, and clusters."""
    margin = np.round(rng.normal(0.5, 1, m), 1)
    return margin, rng.integers(1, 4, m).astype(float), rng.integers(0, 12, m)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_figures_are_their_definitions(seed):
    rng = np.random.default_rng(seed)
    margin, times, cluster = answers(rng)
    slope = rng.uniform(0.1, 3)
    got = held_out.figures(margin, slope, times, cluster)
    each = [(m, c) for m, t, c in zip(margin, times, cluster) for _ in range(int(t))]
    right = np.array([1.0 if m > 0 else 0.5 if m == 0 else 0.0 for m, _ in each])
    p = np.array([1 / (1 + np.exp(-slope * m)) for m, _ in each])
    assert got.accuracy == pytest.approx(right.mean()) and got.comparisons == len(each)
    assert got.log_loss == pytest.approx(-np.log(p).mean())
    sure, off = np.maximum(p, 1 - p), 0.0
    for low in np.arange(10) / 20 + 0.5:
        inside = (sure >= low - 1e-12) & (sure < low + 0.05 - 1e-12) | ((low == 0.95) & (sure >= 1))
        off += abs((right[inside] - sure[inside]).sum()) / len(each)
    assert got.calibration_error == pytest.approx(off, abs=2e-3)
    sums = {c: sum(r - got.accuracy for r, (_, d) in zip(right, each) if d == c) for c in set(cluster.tolist())}
    k = len(sums)
    assert got.clusters == k
    assert got.standard_error == pytest.approx(np.sqrt(k / (k - 1) * sum(s * s for s in sums.values())) / len(each))


@pytest.mark.parametrize("clusters", range(1, 9))
def test_of_few_clusters_no_standard_error_is_known(clusters):
    """One worker's spread is none, and that of two or three says little: unknown, not 0."""
    margin = np.random.default_rng(clusters).normal(0.3, 1, 800)
    got = held_out.figures(margin, 1.0, np.ones(800), np.arange(800) % clusters)
    assert got.clusters == clusters and 0 < got.accuracy < 1
    assert (got.standard_error is None) == (clusters < held_out.MIN_CLUSTERS)
    assert got.standard_error is None or got.standard_error > 0


@pytest.mark.parametrize("margin", [1.0, -1.0])
def test_where_all_are_right_or_all_are_wrong_the_interval_is_wilsons(margin):
    got = held_out.figures(np.full(60, margin), 1.0, np.ones(60), np.arange(60))
    low, high = participants.wilson(np.array(got.accuracy), np.array(60))
    bound = got.accuracy - margin * 1.96 * got.standard_error
    assert bound == pytest.approx(low if margin > 0 else high)


def test_the_standard_error_is_that_of_judgements_not_of_comparisons():
    """Forty judgements of twenty answers that are right or wrong together: as sure as forty answers, not 800."""
    rng = np.random.default_rng(0)
    spread, told = [], []
    for _ in range(300):
        margin = np.repeat(np.where(rng.random(40) < 0.8, 1.0, -1.0), 20)
        got = held_out.figures(margin, 1.0, np.ones(800), np.repeat(np.arange(40), 20))
        spread.append(got.accuracy)
        told.append(got.standard_error)
    assert np.mean(told) == pytest.approx(np.std(spread), rel=0.15) and np.mean(told) > 0.05


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_the_slope_has_the_least_log_loss(seed):
    """Also where all comes as expected, or nothing does; margins of any size."""
    rng = np.random.default_rng(seed)
    margin, times, _ = answers(rng, int(rng.integers(1, 60)))
    margin = margin * 10.0 ** rng.integers(-6, 6)
    margin = {0: margin, 1: np.abs(margin) + 1e-9, 2: -np.abs(margin)}[int(rng.integers(0, 3))]
    got, size = held_out.slope_of(margin, times), np.sqrt(times @ margin**2 / times.sum())
    if size == 0 or times @ margin <= 0:
        assert got == 0.0
        return
    loss = lambda s: times @ np.logaddexp(0, -s * margin / size) + np.logaddexp(0, -s) + np.logaddexp(0, s)  # noqa: E731
    best = minimize_scalar(loss, bounds=(0, 200), method="bounded", options={"xatol": 1e-9})
    assert 0 < got < np.inf and loss(got * size) <= best.fun * (1 + 1e-9)


def told(made, **changed):
    kept = made.judgements._replace(**changed)
    return noise_ceiling.ceiling(responses.of_judgements(kept, name_hashes(made.names, 0), 0))


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_the_ceiling_counts_by_hand(seed):
    """The majority of the others' answers to the same comparison, and of one's own other answers; ties one half."""
    made = world(seed, n=5, screens=80, shown=4, workers=5, repeats=0.4)
    kept = made.judgements
    each = []  # (key, direction, who, whether named), once an answer
    for row, number in zip(kept.rows.tolist(), kept.judgement.tolist()):
        near, far = sorted(row[:2]), sorted(row[2:])
        worker = int(kept.worker[number])
        for copy in range(int(kept.times[number])):
            who = ("worker", worker) if worker >= 0 else ("judgement", number, copy)  # nobody named: somebody else
            each.append(((*min(near, far), *max(near, far)), 1 if near < far else -1, who, worker >= 0))
    others, own = [], []
    for place, (key, way, who, named) in enumerate(each):
        rest = [w for k, w, v, _ in each if k == key and v != who]
        same = [w for at, (k, w, v, _) in enumerate(each) if k == key and v == who and at != place]
        for votes, into in ((rest, others), (same if named else [], own)):
            if votes:
                into.append(0.5 if sum(votes) == 0 else float(sum(votes) * way > 0))
    got = told(made)
    assert (got.answers, got.own_answers) == (len(others), len(own))
    assert got.others == pytest.approx(np.mean(others))
    assert got.themselves == (pytest.approx(np.mean(own)) if len(own) >= noise_ceiling.MIN_CEILING_ANSWERS else None)
    agree, weight = [], []
    for key in {key for key, *_ in each}:
        of = [(way, who) for k, way, who, _ in each if k == key]
        pairs = [a == b for a, one in of for b, other in of if one != other]
        if pairs:
            agree.append(np.mean(pairs))
            weight.append(len(of))
    two = np.average(agree, weights=weight)
    error = 1.96 * np.sqrt(np.square(weight) @ np.square(np.subtract(agree, two))) / np.sum(weight)
    low, best, high = ((1 + np.sqrt(np.clip(2 * each - 1, 0, 1))) / 2 for each in (two - error, two, two + error))
    assert got.at_most == (pytest.approx(best) if high - low <= 2 * noise_ceiling.MAX_CEILING_HALF_WIDTH else None)


def test_answers_that_name_nobody_and_no_time_agree_as_far_as_people_do():
    """Thirty questions answered twelve times, three in four alike: equal answers are one judgement, given often."""
    lines = [(f"a{i}", f"b{i}", f"c{i}") for i in range(30)]
    engine = Engine()
    engine.learn_many([Triplet(a, *((b, c) if place % 4 else (c, b))) for a, b, c in lines for place in range(12)])
    got = noise_ceiling.ceiling(responses.responses_of(engine.snapshot(), 0))
    assert (got.answers, got.own_answers, got.themselves) == (360, 0, None) and got.others == pytest.approx(0.75)
    two = (9 * 8 + 3 * 2) / (12 * 11)
    assert got.at_most == pytest.approx((1 + np.sqrt(2 * two - 1)) / 2)
    found = responses.responses_of(engine.snapshot(), 0)
    assert noise_ceiling.ceiling(found._replace(votes=None)) == got, "judgement by judgement it is the same"
    sampled = found._replace(answers=found.answers.of_responses(found.draw < 0.3))
    assert noise_ceiling.ceiling(sampled) == got, (
        "equal answers are in a sample together; so agreement is of all answers"
    )


def test_in_a_sample_answers_that_come_with_all_equal_ones_say_nothing_of_agreement():
    made = world(2, n=5, screens=200, shown=4, workers=5, repeats=0.4)
    kept = made.judgements
    named = (kept.worker >= 0) | ~np.isnan(kept.time)
    number = np.cumsum(named) - 1
    rows = named[kept.judgement]
    alone = kept._replace(
        rows=kept.rows[rows],
        judgement=number[kept.judgement[rows]].astype(np.int32),
        times=kept.times[named],
        worker=kept.worker[named],
        time=kept.time[named],
        sampler=kept.sampler[named],
    )
    assert 0 < named.sum() < len(named)
    assert told(made, complete=False) == told(made._replace(judgements=alone)) != told(made)


def test_where_hardly_anything_is_asked_twice_there_is_no_ceiling():
    made = world(0, n=60, screens=40, repeats=0.0)
    got = told(made)
    assert got.others is None and got.answers < noise_ceiling.MIN_CEILING_ANSWERS
    assert (
        noise_ceiling.ceiling(
            responses.of_judgements(
                made.judgements._replace(rows=made.judgements.rows[:0], judgement=made.judgements.judgement[:0]),
                name_hashes(made.names, 0),
                0,
            )
        )
        is None
    )
