"""The embedding that follows a stream: its steps are the formula's, blocks do not matter, no answer is lost, nothing
that comes makes it lose its numbers."""

from itertools import pairwise

import numpy as np
import pytest

from stream_engine.embedding import online, online_step
from stream_engine.embedding.fit import fit
from stream_engine.embedding.online import OnlineEmbedding, PublishedFit
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation.answer_probabilities import margins, probability
from tests.support import embedding_reference as reference
from tests.support import individual_worlds
from tests.support.generators import planted_triplets

MASK = (1 << 64) - 1


def mixed(x: int) -> int:
    """SplitMix64's finaliser in Python's integers."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> shift)) * factor & MASK
    return x ^ (x >> 31)


class Slow:
    """The same learner from the formulas: slopes by complex steps of log p (Squire & Trapp 1998), which lose no
    digits; one answer after the other."""

    def __init__(self, points, alpha, ridge, noise):
        self.points, self.mean, self.alpha, self.ridge, self.noise = points.copy(), points.copy(), alpha, ridge, noise
        self.h, self.answers = np.full(len(points), online_step.FLOOR), np.zeros(len(points))
        self.lapse_counts, self.ring, self.replay_debt, self.drawn, self.known = {0: [0.5, 5.0]}, [], 0.0, 0, 0

    def lapse(self, who):
        if who not in self.lapse_counts:
            of_all = self.lapse_counts[0]
            self.lapse_counts[who] = [online_step.PRIOR_ANSWERS * of_all[0] / of_all[1], online_step.PRIOR_ANSWERS]
        return self.lapse_counts[who][0] / self.lapse_counts[who][1]

    def step(self, row, who, rate, fresh, ridge):
        lapse = self.lapse(who)

        def loss(points):
            return -np.log(reference.likelihood(points, [row], [lapse], self.alpha)[0])

        p = np.exp(-loss(self.points))
        slopes = {}
        for i in dict.fromkeys(row):
            slope = np.empty(self.points.shape[1])
            for c in range(len(slope)):
                aside = self.points.astype(complex)
                aside[i, c] += 1e-30j
                slope[c] = loss(aside).imag / 1e-30
            slopes[i] = slope
        for i, slope in slopes.items():
            h = self.h[i] + (slope**2).mean()
            if fresh:
                self.h[i] = h
            self.points[i] = (self.points[i] - rate / h * slope) / (1 + rate / h * 2 * ridge / max(self.answers[i], 1))
            window = (online_step.WINDOW + online_step.WINDOW_PER_REPLAY * self.replays) * self.answers[i]
            self.mean[i] = self.mean[i] + (self.points[i] - self.mean[i]) / (1 + window)
        return lapse / 2 / p

    def learn(self, row, who):
        i, j = row[0], row[1]
        self.known = max(self.known, *(each + 1 for each in row))
        for new, beside in ((j, i), (i, j)):
            if self.answers[new] == 0 and self.answers[beside] > 0:
                self.points[new] += self.points[beside]
                self.mean[new] = self.points[new]
                break
        for each in set(row):
            self.answers[each] += 1
        self.ring.append((row, who))
        m = len(self.ring)
        ridge = self.ridge + self.noise * np.sqrt(3 * m / self.known)
        self.replays = min(online_step.MAX_REPLAYS, online_step.BUDGET / m)
        coin = self.step(row, who, online_step.NEW_RATE, True, ridge)
        for each in {0, who}:
            self.lapse_counts[each] = [self.lapse_counts[each][0] + coin, self.lapse_counts[each][1] + 1]
        self.replay_debt += self.replays
        while self.replay_debt >= 1:
            self.replay_debt -= 1
            self.drawn += 1
            again = self.ring[mixed(self.drawn * 0x9E3779B97F4A7C15 & MASK) % m]
            self.step(*again, online_step.REPLAY_RATE, False, ridge)


def rows_of(seed, n=7, m=40, workers=3):
    rows, _, worker = reference.world(seed, n=n, m=m, workers=workers)
    straight = np.array([len({*row}) == (3 if row[0] == row[2] else 4) for row in rows.tolist()])
    return rows[straight], worker[straight] + 1


@pytest.mark.parametrize(
    "seed, d, alpha, ridge", [(0, 2, 0.0, 0.1), (1, 2, 1.0, None), (2, 1, 1.0, 0.2), (3, 3, 0.0, None)]
)
def test_online_steps_are_the_formula(seed, d, alpha, ridge):
    rows, worker = rows_of(seed, n=7, m=14)
    fast = OnlineEmbedding(d, "t-ste" if alpha else "ste", ridge, seed=seed)
    fast.setting[0] = alpha
    fast.grow(7)
    slow = Slow(fast.points[:7], alpha, ridge or 0.0, 0.0 if ridge else online.NOISE)
    for row, who in zip(rows.tolist(), worker.tolist(), strict=True):
        slow.learn(row, who)
    fast.learn(rows, worker)
    np.testing.assert_allclose(fast.points[:7], slow.points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.mean[:7], slow.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.squares[:7], slow.h, rtol=1e-9)
    assert np.array_equal(fast.answers[:7], slow.answers)
    for who, counts in slow.lapse_counts.items():
        np.testing.assert_allclose(fast.lapse_counts[who], counts, rtol=1e-9)
    assert fast.n_learned == len(rows) and fast.numbers[online_step.DRAWN] == slow.drawn


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_online_weights_follow_the_slope_of_each_answer(alpha):
    """One answer: the step of the log weights is their slope, by complex steps, over prior and expected information;
    the objects move down their slopes as this participant sees them."""
    rng = np.random.default_rng(int(alpha))
    points, row = rng.normal(size=(5, 2)), np.array([[0, 1, 0, 2]])
    weights = np.exp(rng.normal(size=2))
    fitted = PublishedFit(points, np.ones(5, bool), 0.1, {1: 0.1}, alpha, 0.0, 1.0, 1e9, {1: weights}, 3.0, 1.5)
    made = OnlineEmbedding(2)
    assert made.reset_to_fit(fitted, 0)
    before, lapse = made.points[:5].copy(), float(made.lapse[1])

    def loss(logs):
        seen = before.astype(complex) * np.exp(logs / 2)
        return -np.log(reference.likelihood(seen, row.tolist(), [lapse], alpha)[0])

    steps = np.eye(2) * 1e-30j
    slope = np.array([loss(np.log(weights) + step).imag / 1e-30 for step in steps])
    p = np.exp(-loss(np.log(weights)).real)
    information = 2 * 3.0 + slope**2 * p / (1 - p)
    made.learn(row, np.array([1]))
    np.testing.assert_allclose(np.log(made.weights[1] / weights), -slope / information, rtol=1e-9)
    np.testing.assert_allclose(made.information[1], information, rtol=1e-9)
    np.testing.assert_array_equal(made.weights[0], [1.0, 1.0])
    seen = made.mean[:5] * np.sqrt(made.weights[1])
    odds = probability(1.5 * margins(seen, row, alpha), made.lapse[1])
    np.testing.assert_allclose(made.margins(row, 1), np.log(odds / (1 - odds)), rtol=1e-9)


def test_online_a_new_participant_begins_at_the_group_and_becomes_predictable():
    """Of 12 participants who weigh two axes differently the fit knows ten. The other two's answers refine their
    weights; who answered nothing keeps the group's."""
    world = individual_worlds.world(5, people=12, each=500, spread=1.5)
    rows, who = world.answers.rows, world.answers.participant + 1
    weights = {person: world.weights[person] for person in range(1, 11)}
    fitted = PublishedFit(
        world.points, np.ones(20, bool), 0.05, dict.fromkeys(weights, 0.05), 0.0, 0.1, 1.0, 4e5, weights, 0.5
    )
    made, alike = OnlineEmbedding(2), OnlineEmbedding(2)
    assert made.reset_to_fit(fitted, 0) and alike.reset_to_fit(fitted._replace(weights={}, shrinkage=0.0), 0)
    for person in (11, 12):
        own = rows[who == person]
        assert len(made.weights) <= person
        for each in (made, alike):
            each.learn(own[:300], np.full(300, person, np.int32))
        assert np.abs(np.log(made.weights[person] / world.weights[person])).max() < 1.0
        log_loss = [np.log1p(np.exp(-each.margins(own[300:], person))).mean() for each in (made, alike)]
        assert log_loss[0] < log_loss[1] - 0.02
    np.testing.assert_allclose([made.weights[k] for k in weights], world.weights[1:11], rtol=1e-9)
    assert len(alike.weights) == 1


def test_online_states_without_weights_open():
    rows, worker = rows_of(3, n=9, m=100)
    made, again = OnlineEmbedding(2), OnlineEmbedding(2)
    made.learn(rows, worker)
    old = {name: array for name, array in made.state().items() if name not in ("weights", "information", "weighting")}
    again.resume(old)
    assert same(made, again)


def same(one, other):
    ours, theirs = one.state(), other.state()
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_online_blocks_do_not_matter(monkeypatch):
    """Nor does a ring that is full, nor going on from a state that was written."""
    monkeypatch.setattr(online, "RING", 128)
    rows, worker = rows_of(3, n=9, m=600)
    whole, parts, again = (OnlineEmbedding(2) for _ in range(3))
    whole.learn(rows, worker)
    cuts = [0, 1, 2, 60, 64, 65, 200, len(rows)]
    for begin, end in pairwise(cuts):
        parts.learn(rows[begin:end], worker[begin:end])
        again.learn(rows[begin:end], worker[begin:end])
        state, again = again.state(), OnlineEmbedding(2)
        again.resume(state)
    assert same(whole, parts)
    assert same(whole, again)
    assert len(whole.ring) == 128
    assert not same(whole, OnlineEmbedding(2)) and whole.n_learned == len(rows)


def test_online_a_question_turned_round_is_answered_turned_round():
    rows, _ = rows_of(4, m=80)
    made = OnlineEmbedding(2)
    made.learn(rows)
    np.testing.assert_array_equal(made.margins(rows), -made.margins(rows[:, [2, 3, 0, 1]]))
    np.testing.assert_array_equal(made.margins(rows), made.margins(rows[:, [1, 0, 3, 2]]))
    assert np.isnan(made.margins(np.array([[0, 1, 0, 99], [-1, 1, 0, 2]]))).all()


def fitted_to(rows, n, d=2, kernel="t-ste", ridge=0.5):
    found = fit(of_rows(rows, n), d, ridge, kernel=kernel)
    asked = np.bincount(rows.ravel(), minlength=n) > 0
    return PublishedFit(found.points, asked, float(found.lapse[0]), {}, found.alpha, ridge, 1.0, float(len(rows)))


@pytest.mark.parametrize("room, whole", [(1 << 17, True), (1024, False)])
def test_online_no_answer_is_lost_when_a_fit_takes_over(monkeypatch, room, whole):
    """What came after the fit's snapshot is learned again, once: as by one who had the fit at that moment. Where the
    ring has not all of it, the fit is not taken."""
    monkeypatch.setattr(online, "RING", room)
    rng = np.random.default_rng(0)
    rows = planted_triplets(rng, rng.normal(size=(20, 2)), 3000)[:, [0, 1, 0, 2]]
    made, other = OnlineEmbedding(2), OnlineEmbedding(2)
    made.learn(rows)
    before = made.state()
    assert made.reset_to_fit(fitted_to(rows[:1000], 20), 1000) == whole
    if not whole:
        assert all(np.array_equal(before[name], array) for name, array in made.state().items())
        return
    other.learn(rows[:1000])
    assert other.reset_to_fit(fitted_to(rows[:1000], 20), 1000)
    other.numbers[online_step.DRAWN] = before["numbers"][online_step.DRAWN]
    other.replay_debt[:] = before["owed"]
    other.learn(rows[1000:])
    assert made.n_learned == 3000 and np.array_equal(made.answers[:20], other.answers[:20])
    np.testing.assert_allclose(made.mean[:20], other.mean[:20], rtol=1e-6)


def test_online_a_fit_of_a_long_stream_is_not_drowned_by_a_few_answers():
    """It knows of a million answers what this learner never had: three contrary ones hardly move it."""
    points = np.random.default_rng(0).normal(size=(10, 2))
    long = PublishedFit(points, np.ones(10, bool), 0.05, {3: 0.9}, 1.0, 0.5, 2.0, 1e6)
    made = OnlineEmbedding(3)
    assert made.reset_to_fit(long, 0)
    assert made.scale == 2.0
    assert made.lapse[3] == pytest.approx(0.9)
    near = np.array([[0, 1, 0, 2]] * 3)
    made.learn(near if margins(points, near)[0] < 0 else near[:, [2, 3, 0, 1]])
    assert np.abs(made.mean[:10] - points).max() < 1e-3
    short = OnlineEmbedding(3)
    short.reset_to_fit(long._replace(answers=3.0), 0)
    short.learn(near if margins(points, near)[0] < 0 else near[:, [2, 3, 0, 1]])
    assert np.abs(short.mean[:10] - points).max() > 0.05


def test_online_new_objects_and_workers():
    """A new object lies beside the one that it was said to be near, and is soon predicted; a new worker lapses like
    all, a guesser is found out."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(41, 2))
    rows = planted_triplets(rng, points, 12_000)[:, [0, 1, 0, 2]]
    late = (rows == 40).any(axis=1)
    made = OnlineEmbedding(2)
    made.learn(rows[~late])
    test = planted_triplets(rng, points, 20_000)[:, [0, 1, 0, 2]]
    of_new = test[(test == 40).any(axis=1)]
    assert np.isnan(made.margins(of_new)).all()
    made.learn(rows[late][:60])
    assert (made.margins(of_new) > 0).mean() > 0.8
    first = made.lapse[0]
    flipped = rng.random(400) < 0.5
    made.learn(np.where(flipped[:, None], rows[:400][:, [2, 3, 0, 1]], rows[:400]), np.full(400, 2, np.int32))
    made.learn(rows[400:800], np.full(400, 3, np.int32))
    assert made.lapse[2] > 2 * made.lapse[3] and made.lapse[1] == made.lapse[0] > first


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
def test_online_is_close_to_the_fit(kernel):
    """Within .01 in error on what was not learned, from nothing and from a fit to the first half."""
    n, rng = 100, np.random.default_rng(100)
    points = rng.normal(size=(n, 2))
    rows = planted_triplets(rng, points, 60 * n, 0.1)[:, [0, 1, 0, 2]]
    test = planted_triplets(rng, points, 20_000, 0.1)[:, [0, 1, 0, 2]]
    ridge, half = online.NOISE * np.sqrt(3 * 60), 30 * n
    whole = fit(of_rows(rows, n), 2, ridge, kernel=kernel)
    least = float((margins(whole.points, test, whole.alpha) <= 0).mean())
    nothing, going = OnlineEmbedding(2, kernel), OnlineEmbedding(2, kernel)
    nothing.learn(rows)
    going.learn(rows[:half])
    going.reset_to_fit(fitted_to(rows[:half], n, kernel=kernel, ridge=ridge), half)
    going.learn(rows[half:])
    for made in (nothing, going):
        assert (made.margins(test) <= 0).mean() < least + 0.01


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
@pytest.mark.parametrize("ridge", [0.2, 30.0, 1e6])
def test_online_a_large_ridge_throws_no_object_across_the_mean(kernel, ridge):
    """Contrary answers, which say nothing: only the ridge is left, which brings all to 0."""
    made = OnlineEmbedding(2, kernel, ridge)
    both = np.array([[0, 1, 0, 2], [0, 2, 0, 1], [1, 0, 1, 2], [1, 2, 1, 0]])
    sizes = []
    for _ in range(6):
        made.learn(both)
        sizes.append(np.abs(made.points[:3]).max())
    assert max(sizes) < 1.5 and sizes[-1] < (0.5 if ridge < 1.0 else 0.1)


def test_online_nothing_breaks_its_numbers():
    """Points far away, on one place, huge ones; the same answer ten thousand times, and both ways."""
    for points in (np.zeros((5, 2)), np.full((5, 2), 1e300), np.random.default_rng(0).normal(size=(5, 2)) * 1e150):
        for alpha, ridge in ((0.0, 0.0), (1.0, 1e6), (0.0, 1e6)):
            made = OnlineEmbedding(2)
            asked = np.array([True, True, True, True, False])
            assert made.reset_to_fit(PublishedFit(points, asked, np.nan, {1: 2.0}, alpha, ridge, 1.0, 0.0), 0)
            made.learn(
                np.tile([[0, 1, 0, 2], [0, 2, 0, 1], [0, 1, 2, 3], [4, 1, 4, 0]], (100, 1)), np.ones(400, np.int32)
            )
            made.learn(np.tile([[0, 1, 0, 2]], (2000, 1)))
            assert all(np.isfinite(array).all() for array in made.state().values())
            assert np.abs(made.mean).max() <= online_step.MAX_COORDINATE * (
                1 + 1e-9
            )  # a mean of such, and its rounding
    assert not OnlineEmbedding(2).reset_to_fit(
        PublishedFit(np.full((3, 2), np.inf), np.ones(3, bool), 0.1, {}, 0.0, 0.0, 1.0, 3.0), 0
    )


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_information_of_answers_is_the_squared_slope_of_each_object(alpha):
    points, rows = np.random.default_rng(0).normal(size=(6, 2)), np.array([[0, 1, 0, 2], [3, 4, 5, 0]], np.int32)
    sums, times, lapse = np.zeros(6), np.zeros(6), np.full(2, 0.1)
    online_step.information(
        rows, np.zeros(2, np.int32), lapse, points, np.ones((1, 2)), np.zeros((1, 2)), alpha, sums, times
    )
    expected = np.zeros(6)
    for row in rows:
        for i in set(row.tolist()):
            for c in range(2):
                aside = points.astype(complex)
                aside[i, c] += 1e-30j
                slope = np.log(reference.likelihood(aside, [row], [0.1], alpha)[0]).imag / 1e-30
                expected[i] += slope**2 / 2
    np.testing.assert_allclose(sums, expected)
    assert times.tolist() == [2, 1, 1, 1, 1, 1]
