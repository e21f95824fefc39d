"""TripletBoost against the paper's own steps: every round, the sampler's distribution, totals, votes, parts, the refit.

Oracles are in tests/support/boosting_reference.py. What they cannot see (digits lost over 10^5 rounds, weights out of
range) is tested by invariants of the state.
"""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.boosting import labels, votes
from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import bytes_needed, codes_from_columns
from stream_engine.boosting.references import draw
from stream_engine.data import available_memory
from stream_engine.data.compiled import njit
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.exports.label_predictions import predictions
from stream_engine.refits import CannotRefit, triplet_boost
from stream_engine.state import artifact as artifacts
from stream_engine.state import snapshot as snapshots
from stream_engine.state.published import Published
from tests.support import generators
from tests.support.boosting_reference import Round, paper_prediction, paper_rounds

SLOW = settings(max_examples=20, deadline=None)


def little_world(seed: int, n: int, n_labels: int, multi: bool, size: int = 300):
    """Few objects, many triplets: repeats, contradictions and exact ties occur; the last object has no label."""
    rng = np.random.default_rng(seed)
    batch = generators.dense_batch(rng, n, size, quadruplets=0.0)
    sets = np.zeros((n, n_labels), bool)
    sets[np.arange(n), rng.integers(n_labels, size=n)] = True
    if multi:
        sets |= rng.random(sets.shape) < 0.3
    sets[-1] = False
    return columns_from_triplets(batch.triplets, n), sets, rng


def random_pairs(rng, n: int, size: int) -> np.ndarray:
    """Pairs of different examples, also of the same group (for which there is no classifier)."""
    j = rng.integers(n, size=size)
    return np.stack([j, (j + rng.integers(1, n, size=size)) % n], axis=1)


def classes_of(packed: np.ndarray) -> frozenset:
    return frozenset(np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist())


def as_rounds(held: boosting.Classifiers, name: np.ndarray) -> list[Round]:
    return [
        Round(int(name[j]), int(name[k]), classes_of(o_j), classes_of(o_k), float(alpha), 0.0)
        for j, k, alpha, o_j, o_k in zip(*held)
    ]


def laid_out(columns, sets):
    groups = labels.group(sets, np.flatnonzero(sets.any(axis=1)))
    return groups, codes_from_columns(columns, groups, groups.example)


def check(state: boosting.State) -> None:
    """Every sum is the sum of what it is about; signs and confidences agree with the weights."""
    weights = np.abs(state.v)
    assert np.allclose(state.mass, weights.sum(axis=1), rtol=1e-12, atol=0)
    for g, (a, b) in enumerate(zip(state.first_block, state.first_block[1:])):
        members = state.group == g
        assert np.isclose(state.group_sum[g], state.mass[members].sum(), rtol=1e-10, atol=0)
        for block in range(a, b):
            inside = state.mass[state.first_example[block] : state.first_example[block + 1]].sum()
            assert abs(state.block_sum[block] - inside) <= 1e-10 * state.group_sum[g]
    assert np.isclose(state.total[0], state.mass.sum(), rtol=1e-10, atol=0)
    assert ((state.v > 0) == state.positive).all()
    true = np.log2(weights) + state.lag - np.log2(weights[state.lag == 0].max())
    assert ((state.lag == 0) | (true < boosting.MIN_LOG_WEIGHT + boosting.DRIFT + 2)).all()


# Rounds ---------------------------------------------------------------------------------------------------------------


@SLOW
@given(seed=st.integers(0, 10**6), n=st.integers(4, 9), n_labels=st.sampled_from([1, 2, 3, 5, 70]), multi=st.booleans())
def test_rounds_equal_the_papers_when_fed_the_same_pairs(seed, n, n_labels, multi):
    columns, sets, rng = little_world(seed, n, n_labels, multi)
    groups, codes = laid_out(columns, sets)
    pairs = random_pairs(rng, len(groups.example), 40)
    state = boosting.start(groups, seed=0)
    held = boosting.advance(state, codes, 0, pairs)
    truth = {int(x): classes_of(np.packbits(sets[x], bitorder="little")) for x in groups.example}
    differ = lambda j, k: truth[j] != truth[k]  # noqa: E731
    asked = [(int(groups.example[j]), int(groups.example[k])) for j, k in pairs]
    expected, weights = paper_rounds(columns, truth, range(n_labels), [p for p in asked if differ(*p)])
    stored = [r for r in expected if r.alpha]
    ours = as_rounds(held, groups.example)
    assert [r[:4] for r in ours] == [r[:4] for r in stored]
    assert np.allclose([r.alpha for r in ours], [r.alpha for r in stored], rtol=0, atol=1e-12)
    total = state.mass.sum()
    for number, x in enumerate(groups.example):
        for y in range(n_labels):
            assert abs(state.v[number, y]) / total == pytest.approx(weights[int(x), y], rel=1e-10)
    bound = n_labels / 2 * np.prod([r.z for r in expected])
    assert np.exp(boosting.log_bound(state)) == pytest.approx(bound, rel=1e-10)
    check(state)


def planted(n: int, n_labels: int, size: int, seed: int = 0, flip: float = 0.1, spread: float = 0.3):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_labels, size=n)
    angle = 2 * np.pi * y / n_labels
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(0, spread, (n, 2))
    return columns_from_triplets(generators.planted_triplets(rng, points, size, flip), n), y


def test_the_sampler_does_not_degenerate_as_the_weights_shrink():
    """The trap of a running total: after 10^5 rounds classifiers must be found as often as at first, and signs hold."""
    columns, y = planted(150, 3, 60_000, flip=0.0, spread=0.2)
    groups, codes = laid_out(columns, labels.label_sets(y, 150))
    state = boosting.start(groups, seed=2)
    at_first = len(boosting.advance(state, codes, 5000).alpha)
    boosting.advance(state, codes, 90_000)
    check(state)
    assert boosting.log_bound(state) < -500  # far beyond what a float64 total holds without care
    at_last = boosting.advance(state, codes, 5000)
    assert len(at_last.alpha) > 0.9 * at_first
    assert (np.bincount(np.append(at_last.j, at_last.k), minlength=150) > 0).mean() > 0.2
    weight = votes.add(votes.no_votes(150, 3), boosting.advance(boosting.start(groups, seed=2), codes, 100_000), codes)
    assert np.allclose(weight.confidence, boosting.confidences(state), rtol=1e-9, atol=1e-9)


def left_by(groups, seed, confidence):
    """The state whose weights are those that classifiers with these confidences (n, Y) have led to."""
    state = boosting.start(groups, seed)
    log = -state.v * confidence
    state.lag[:] = np.floor(log / np.log(2.0))
    state.v[:] *= np.exp(log - state.lag * np.log(2.0))
    boosting._refresh(state)
    return state


def test_negligible_weights_come_back():
    """Weights far out of range are kept by their logarithms, and count again when the others have shrunk to them."""
    groups = labels.group(labels.label_sets([0, 0, 1, 1], 4), np.arange(4))
    confidence = np.array([[2000.0, -2000.0], [0.0, 0.0], [-1990.0, 1990.0], [-5.0, 5.0]])
    state = left_by(groups, 0, confidence)
    check(state)
    assert 2.0**-801 <= state.v[0, 0] < 2.0**-800
    assert state.lag[0, 0] < -1000
    assert 1 <= abs(state.v[1, 0]) < 2
    assert np.allclose(boosting.confidences(state), confidence, rtol=1e-12, atol=1e-12)
    for _ in range(67):  # thousands of rounds in which the other two are answered well
        state.v[[1, 3]] *= np.exp(-30.0)
        boosting._refresh(state)
        check(state)
    assert 1 <= state.v[2, 1] < 2 and np.abs(state.v[0] / state.v[2]) == pytest.approx(np.exp(-10.0))
    assert np.abs(state.v[[1, 3], 0] / state.v[2]) == pytest.approx(np.exp([-20.0, -25.0]), rel=1e-9)


def test_rounds_in_several_calls_are_the_same_rounds():
    columns, y = planted(40, 2, 8000)
    groups, codes = laid_out(columns, labels.label_sets(y, 40))
    whole, parted = boosting.start(groups, 7), boosting.start(groups, 7)
    once = boosting.advance(whole, codes, 9000)
    often = boosting.concatenate([boosting.advance(parted, codes, size) for size in (1, 0, 4500, 4499)])
    assert all(a.tobytes() == b.tobytes() for a, b in zip([*once, *whole], [*often, *parted]))
    other = boosting.advance(boosting.start(groups, 8), codes, 9000)
    assert not np.array_equal(once.j[:100], other.j[:100])


# Sampler --------------------------------------------------------------------------------------------------------------


@njit(cache=True)
def _draws(state, size):
    pairs = np.empty((size, 2), np.int64)
    for i in range(size):
        j = draw(state, -1)
        pairs[i] = j, draw(state, state.group[j])
    return pairs


@pytest.mark.parametrize("sizes", [(90, 40, 5), (1, 70)])
def test_the_distribution_is_draw_j_then_redraw_k_until_the_labels_differ(sizes):
    """Chi-square of 200,000 drawn pairs against P(j) P(k) / (1 - P(group of j)), blocks of uneven weight included."""
    rng = np.random.default_rng(4)
    n, y = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    sets = labels.label_sets(rng.permutation(y), n)
    groups = labels.group(sets, np.arange(n))
    state = left_by(groups, 11, rng.normal(0, 1.5, (n, len(sizes))))
    pairs = _draws(state, 200_000)
    p = state.mass / state.mass.sum()
    other = state.group[:, None] != state.group
    expected = 200_000 * np.where(other, p[:, None] * p / (other * p).sum(axis=1, keepdims=True), 0.0)
    seen = np.zeros((n, n))
    np.add.at(seen, tuple(pairs.T), 1)
    assert (seen[~other] == 0).all()
    margins = [(expected.sum(axis=axis), seen.sum(axis=axis)) for axis in (0, 1)]
    for mean, counted in ((expected, seen), *margins):
        often = mean >= 5
        freedom = often.sum()
        chi = ((counted[often] - mean[often]) ** 2 / mean[often]).sum()
        assert abs(chi - freedom) < 5 * np.sqrt(2 * freedom)
        assert abs(counted[~often].sum() - mean[~often].sum()) < 5 * np.sqrt(mean[~often].sum() + 1)


def test_one_group_has_no_classifier():
    groups, codes = laid_out(columns_from_triplets([[0, 1, 2]], 3), labels.label_sets([0, 0, 0], 3))
    assert len(boosting.advance(boosting.start(groups, 0), codes, 100).alpha) == 0


# Columns --------------------------------------------------------------------------------------------------------------


@SLOW
@given(seed=st.integers(0, 10**6), n=st.integers(3, 12), size=st.integers(0, 200), multi=st.booleans())
def test_codes_hold_exactly_what_the_classifiers_know(seed, n, size, multi):
    columns, sets, rng = little_world(seed, n, 3, multi, size)
    groups = labels.group(sets, np.flatnonzero(sets.any(axis=1)))
    anchors = rng.permutation(n)[: rng.integers(1, n + 1)]
    codes = codes_from_columns(columns, groups, anchors)
    found = set()
    for a in range(len(groups.example)):
        for b in range(a + 1, len(groups.example)):
            column = boosting.find(codes, a, b)
            for code in codes.code[codes.start[column] : codes.start[column + 1]] if column >= 0 else ():
                near, far = groups.example[[b, a] if code & 1 else [a, b]]
                found.add((int(anchors[code >> 1]), int(near), int(far)))
    n_near = {}
    for p, (lo, hi) in enumerate(zip(columns.lo, columns.hi)):
        for e in range(columns.start[p], columns.start[p + 1]):
            n_near[columns.anchor[e], lo, hi], n_near[columns.anchor[e], hi, lo] = columns.n_lo[e], columns.n_hi[e]
    expected = {
        (int(x), int(j), int(k))
        for (x, j, k), count in n_near.items()
        if x in anchors and sets[[j, k]].any(axis=1).all() and (sets[j] != sets[k]).any() and count > n_near[x, k, j]
    }
    assert found == expected and len(codes.code) == len(expected)
    assert codes.nbytes <= bytes_needed(columns, len(groups.example), len(anchors)) + 16 * (n + 2)


def test_more_anchors_than_two_bytes_can_number():
    n = 40_000
    columns = columns_from_triplets([[x, x % 2, 1 - x % 2] for x in range(2, n)], n)
    y = np.full(n, -1)
    y[:4] = np.arange(4) % 2
    booster = triplet_boost.fit(columns, y, rounds=200)
    predicted = triplet_boost.predict(booster, columns)
    assert (predicted.label[2:] == np.arange(2, n) % 2).all() and not predicted.abstained[2:].any()


# Votes ----------------------------------------------------------------------------------------------------------------


@SLOW
@given(seed=st.integers(0, 10**6), n_labels=st.sampled_from([2, 3, 70]), multi=st.booleans())
def test_predictions_equal_equation_5(seed, n_labels, multi):
    columns, sets, rng = little_world(seed, 9, n_labels, multi, size=60)
    booster = triplet_boost.fit(columns, sets, rounds=30, seed=seed)
    asked = rng.permutation(9)[:5]
    predicted, everyone = triplet_boost.predict(booster, columns, asked), triplet_boost.predict(booster, columns)
    held = as_rounds(booster.classifiers, np.arange(9))
    for at, x in enumerate(asked):
        weight, abstains = paper_prediction(columns, held, range(n_labels), x)
        best = max(weight.values())
        assert predicted.abstained[at] == abstains
        assert weight[int(predicted.label[at])] == pytest.approx(best)
        assert predicted.score[at] == pytest.approx(best)
        voted = sum(r.alpha for r in held if _speaks(columns, r, x))
        second = sorted(weight.values())[-2]
        assert predicted.margin[at] == pytest.approx((best - second) / voted if voted else 0.0, abs=1e-12)
        assert all(column[at] == whole[x] for column, whole in zip(predicted, everyone))


def _speaks(columns, r: Round, x: int) -> bool:
    return not paper_prediction(columns, [r], range(99), x)[1]


def test_ties_and_abstentions_fall_uniformly_and_by_the_seed():
    n, ids = 9000, np.arange(9000)
    weight = np.tile([0.0, 1.0, 1.0, 1.0], (n, 1))
    weight[::2] = 0.0
    one = votes.decide(votes.LabelVotes(weight, weight.max(axis=1)), ids, seed=1)
    two = votes.decide(votes.LabelVotes(weight, weight.max(axis=1)), ids, seed=2)
    guessed, tied = np.bincount(one.label[::2], minlength=4), np.bincount(one.label[1::2], minlength=4)
    assert one.abstained[::2].all() and not one.abstained[1::2].any()
    assert (abs(guessed - 1125) < 150).all()
    assert tied[0] == 0
    assert (abs(tied[1:] - 1500) < 170).all()
    assert 0.6 < (one.label[::2] != two.label[::2]).mean() < 0.9


# Curves, early stopping, going on -------------------------------------------------------------------------------------


def test_the_bound_holds_and_falls_along_the_rounds():
    columns, y = planted(60, 3, 20_000, flip=0.2)
    booster = triplet_boost.fit(columns, y, rounds=3000, seed=1, checks=60)
    rounds, log_bound, train_error, _ = booster.curve
    assert rounds.tolist() == [50 * i for i in range(61)]
    assert log_bound[0] == pytest.approx(np.log(3 / 2)) and (np.diff(log_bound) <= 1e-12).all()
    assert (train_error <= np.exp(log_bound)).all()
    assert train_error[0] == 1.0
    assert train_error[-1] == 0.0
    watch = np.arange(0, 60, 3)
    some = triplet_boost.fit(columns, y, rounds=100, seed=1, watch=watch, checks=2)
    wrong = triplet_boost.predict(some, columns, watch).label != y[watch]
    assert 0.0 < some.curve.watched_error[-1] == wrong.mean() < some.curve.watched_error[1]


# Parts ----------------------------------------------------------------------------------------------------------------


@SLOW
@given(seed=st.integers(0, 10**6), test=st.sampled_from([0.0, 0.2, 0.5]))
def test_parts_are_shares_of_every_class_and_leave_one_to_train_on(seed, test):
    rng = np.random.default_rng(seed)
    y = rng.integers(-1, 5, size=rng.integers(1, 60))
    parts = labels.split(labels.label_sets(y, len(y)), test, seed)
    assert ((parts == labels.UNLABELLED) == (y < 0)).all()
    for c in range(y.max(initial=-1) + 1):
        size = (y == c).sum()
        sizes = [(parts[y == c] == part).sum() for part in (labels.TRAIN, labels.TEST)]
        assert sizes[1] == int(test * size + 1e-9) and (size == 0 or sizes[0] > 0)


@SLOW
@given(seed=st.integers(0, 10**6), test=st.sampled_from([0.1, 0.2, 0.34, 0.9]))
def test_folds_ask_every_labelled_object_once(seed, test):
    """But the only one of its class; every class keeps an example to train on in every fold."""
    rng = np.random.default_rng(seed)
    y = rng.integers(-1, 5, size=rng.integers(1, 60))
    inside = rng.random(len(y)) < 0.8
    made = np.stack(labels.folds(labels.label_sets(y, len(y)), test, seed, inside))
    assert len(made) == max(round(1 / test), 2) and (made[:, (y >= 0) & ~inside] == labels.OUTSIDE).all()
    assert (made[:, y < 0] == labels.UNLABELLED).all()
    for c in range(y.max(initial=-1) + 1):
        here = made[:, (y == c) & inside]
        asked = (here == labels.TEST).sum(axis=0)
        assert (asked == (here.shape[1] > 1)).all()
        if here.shape[1]:
            assert ((here == labels.TRAIN).sum(axis=1) > 0).all()
            tested = (here == labels.TEST).sum(axis=1)
            assert tested.max() - tested.min() <= 1


def test_few_objects_are_all_asked_by_classifiers_that_never_had_them(monkeypatch):
    """Against a fit of each fold by hand; the published model is the same without."""
    columns, y, said = taste_world(n=40, size=6000)
    world = a_snapshot(columns, said)
    made = triplet_boost.refit(world, params(rounds=800, test=0.25), seed=4)
    with monkeypatch.context() as patched:
        patched.setattr(triplet_boost, "CROSS_FIT_BELOW", 0)
        alone = triplet_boost.refit(world, params(rounds=800, test=0.25), seed=4)
    assert all(np.array_equal(array, alone.arrays[name]) for name, array in made.arrays.items())
    assert alone.report["held_out"] == alone.report["test_part"] == made.report["test_part"]
    all_learned = triplet_boost.refit(world, params(rounds=50, test=0.0), seed=4).report
    assert all_learned["test_part"]["objects"] == 0 and all_learned["held_out"] == all_learned["test_part"]
    given = made.arrays["given"]
    right = []
    for parts in labels.folds(labels.label_sets(given, 40), 0.25, 4, np.ones(40, bool)):
        booster = triplet_boost.fit(columns, np.where(parts == labels.TRAIN, given, -1), 800, 4)
        out = np.flatnonzero(parts == labels.TEST)
        right += (triplet_boost.predict(booster, columns, out).label == given[out]).tolist()
    told = made.report["held_out"]
    assert told["objects"] == len(right) == len(said) and told["fits"] == 4
    assert told["accuracy"] == np.mean(right) and 0 < told["error"] < 0.5
    assert told["standard_error"] == pytest.approx(np.std(right, ddof=1) / np.sqrt(len(right)))


# The refit ------------------------------------------------------------------------------------------------------------


def a_snapshot(columns, said: dict[int, str], sequence: int = 1) -> snapshots.Snapshot:
    room = {f"triplet_counts/{k}": v for k, v in columns._asdict().items() if k != "n_objects"}
    names = tuple(f"o{i}" for i in range(columns.n_objects))
    said_by_name = {names[i]: text for i, text in said.items()}
    return snapshots.encode(snapshots.Snapshot(sequence, {}, names, said_by_name, {}, {}, snapshots.frozen(room)))[1]


def params(**given) -> triplet_boost.Params:
    return msgspec.convert(given, triplet_boost.Params)


def taste_world(n=60, size=30_000, seed=0, flip=0.05):
    columns, y = planted(n, 3, size, seed, flip)
    return columns, y, {i: ["sour", "sweet", "bitter"][c] for i, c in enumerate(y) if i % 6}


def test_a_refit_predicts_everything_and_says_how_well():
    columns, y, said = taste_world()
    made = triplet_boost.refit(a_snapshot(columns, said), params(rounds=5000), seed=4)
    report, arrays = made.report, made.arrays
    assert report["classes"] == ["bitter", "sour", "sweet"]
    assert report["labelled"] == 50
    assert report["predicted"] == 60
    names = np.array(report["classes"])
    assert [names[c] if c >= 0 else None for c in arrays["given"]] == [said.get(i) for i in range(60)]
    truth = np.array(["sour", "sweet", "bitter"])[y]
    fresh = arrays["part"] == labels.UNLABELLED
    assert (names[arrays["predicted"][fresh]] == truth[fresh]).mean() >= 0.8 and not arrays["abstained"].any()
    held_out = report["test_part"]
    test = arrays["part"] == labels.TEST
    assert held_out["objects"] == test.sum() > 5
    assert held_out["accuracy"] == np.mean(names[arrays["predicted"][test]] == truth[test]) == 1 - held_out["error"]
    train = arrays["part"] == labels.TRAIN
    usual = max(sorted(set(truth)), key=lambda c: (truth[train] == c).sum())
    assert held_out["accuracy"] > held_out["majority_class_accuracy"] == np.mean(truth[test] == usual)
    assert report["train_error"] <= report["bound"] and report["rounds"] == 5000
    assert report["stored"] == len(arrays["alpha"]) and report["trained_on"] == train.sum()
    assert report["log_bound"] == pytest.approx(arrays["log_bound"][-1], abs=1e-8)
    assert np.allclose(arrays["bound"], np.exp(arrays["log_bound"]))


def test_the_majority_class_is_that_of_the_training_set():
    sets = np.eye(3, dtype=bool)[[0, 0, 1, 2, 1, 1, 0]]
    parts = np.array([labels.TRAIN] * 3 + [labels.UNLABELLED] + [labels.TEST] * 3, np.int8)
    data = triplet_boost.TrainingData(None, sets, ["x", "y", "z"], 3, parts, np.arange(7))
    decided = votes.Predictions(np.ones(7, np.int32), np.ones(7), np.ones(7), np.zeros(7, bool))
    assert triplet_boost._outcomes(decided, data, labels.TEST).by_majority.tolist() == [False, False, True]


def test_the_artifacts_arrays_are_enough_to_predict():
    columns, y, said = taste_world()
    made = triplet_boost.refit(a_snapshot(columns, said), params(rounds=3000), seed=4)
    a = artifacts.decode(b"".join(artifacts.encode(made)[0])).arrays
    held = as_rounds(boosting.Classifiers(*(a[name] for name in boosting.Classifiers._fields)), np.arange(60))
    for x in (0, 1, 6, 59):
        weight, _ = paper_prediction(columns, held, range(3), x)
        assert a["predicted"][x] == max(weight, key=weight.get) and a["score"][x] == pytest.approx(max(weight.values()))


def test_held_out_labels_do_not_reach_the_classifiers():
    columns, _, said = taste_world()
    made = triplet_boost.refit(a_snapshot(columns, said), params(rounds=2000), seed=4)
    test = np.flatnonzero(made.arrays["part"] == labels.TEST)
    assert not np.isin(np.append(made.arrays["j"], made.arrays["k"]), test).any()
    sets = labels.label_sets(np.where(made.arrays["part"] == labels.TRAIN, made.arrays["given"], -1), 60)
    alone = triplet_boost.fit(columns, sets, 2000, 4)
    assert all(a.tobytes() == made.arrays[name].tobytes() for name, a in alone.classifiers._asdict().items())


def test_one_class_is_predicted_with_abstention():
    columns, _, said = taste_world()
    made = triplet_boost.refit(a_snapshot(columns, dict.fromkeys(said, "sweet")), params(rounds=100), 0)
    assert (made.arrays["predicted"] == 0).all()
    assert made.arrays["abstained"].all()
    assert len(made.arrays["alpha"]) == 0
    assert made.report["held_out"]["accuracy"] == made.report["held_out"]["majority_class_accuracy"] == 1.0


def test_several_labels_an_object():
    columns, y, said = taste_world(n=90, size=60_000)
    genre = {i: text + "|" + ("liquid" if text in ("sour", "sweet") else "solid") for i, text in said.items()}
    made = triplet_boost.refit(a_snapshot(columns, genre), params(rounds=8000, multi_label=True), seed=1)
    report, arrays = made.report, made.arrays
    assert report["classes"] == ["bitter", "liquid", "solid", "sour", "sweet"] and report["multi_label"]
    given_sets, predicted = (
        np.unpackbits(arrays[name], axis=1, count=5, bitorder="little") for name in ("given_sets", "predicted_sets")
    )
    for i in range(90):
        assert {report["classes"][c] for c in np.flatnonzero(given_sets[i])} == set(genre.get(i, "").split("|")) - {""}
    train, fresh = arrays["part"] == labels.TRAIN, arrays["part"] == labels.UNLABELLED
    assert (given_sets[train] == predicted[train]).all() and report["train_error"] <= report["bound"] < 1e-3
    published = Published(a_snapshot(columns, genre), {"triplet_boost": made})
    labels_of = predictions(published)["predictions"].tables["predictions"]["label"]
    assert [set(text.split("|")) for text in labels_of] == [set(genre.get(i, "").split("|")) for i in range(90)]
    truth = np.zeros((90, 5), bool)
    truth[np.arange(90), np.array([3, 4, 0])[y]] = truth[np.arange(90), np.array([1, 1, 2])[y]] = True
    assert (truth[fresh] == predicted[fresh]).mean() > 0.8
    assert truth[fresh, arrays["predicted"][fresh]].mean() > 0.8 and report["held_out"]["accuracy"] > 0.8


def test_a_cancelled_refit_stops_at_the_next_check():
    columns, _, said = taste_world()
    calls = []

    def progress(done, total, **figures):
        calls.append((done, total, figures))
        if done >= 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        triplet_boost.refit(a_snapshot(columns, said), params(rounds=10_000), 0, progress=progress)
    assert [done for done, *_ in calls] == [0, 100, 200, 300] and all(total == 10_000 for _, total, _ in calls)
    assert calls[-1][2].keys() == {"log_bound", "train_error", "watched_error"}


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"y": [0, 1]}, r"\(2,\).*int64.*\(3,\)"),
        ({"y": [0, -2, 1]}, "-2"),
        ({"y": [-1, -1, -1]}, "label"),
        ({"y": [0, 1, -1], "watch": [2]}, "watch"),
        ({"y": [0, 1, 1], "checks": 0}, "checks 0"),
    ],
)
def test_unusable_arguments_are_named(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        triplet_boost.fit(columns_from_triplets([[0, 1, 2]], 3), **arguments)


def test_a_refit_that_cannot_fit_says_so_with_the_numbers(monkeypatch):
    columns, _, said = taste_world()
    numbers = r"60 objects, 3 classes, \d+ .* 50000000 .* \d+\.\d GB.*0\.001 GB"
    monkeypatch.setattr(available_memory, "available", lambda: 2**20)
    with pytest.raises(CannotRefit, match=numbers):
        triplet_boost.refit(a_snapshot(columns, said), params(rounds=50_000_000), 0)
    monkeypatch.setattr(available_memory, "available", lambda: 2**22)
    assert triplet_boost.refit(a_snapshot(columns, said), params(rounds=1000), 0).report["rounds"] == 1000
