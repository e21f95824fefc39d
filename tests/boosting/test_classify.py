"""Neighbours, machines, probabilities and nested choice against the formulas written out; planted classes recovered."""

import math

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from stream_engine.boosting import nearest_neighbours, nested, probabilities, vector_machine
from stream_engine.boosting.nested import Model
from stream_engine.counts import kernels
from stream_engine.data import available_memory
from stream_engine.data.triplet_columns import net_triplets
from stream_engine.refits import CannotRefit, classify
from stream_engine.state.snapshot import triplet_columns
from tests.support.facts import stating
from tests.support.generators import planted_triplets
from tests.support.planted_similarities import snapshot_of


def world(n: int = 60, size: int = 4000, classes: int = 3, apart: float = 3.0, seed: int = 0, unlabelled: int = 6):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % classes
    points = rng.normal(size=(n, 2)) + apart * np.stack([np.cos(truth * 2.1), np.sin(truth * 2.1)], axis=1)
    snapshot = snapshot_of(planted_triplets(rng, points, size, 0.05))
    truth = truth[[int(name[1:]) for name in snapshot.objects]]
    labels = {name: "abc"[truth[i]] for i, name in enumerate(snapshot.objects) if int(name[1:]) >= unlabelled}
    return snapshot._replace(labels=labels), truth


def slow_shares(row: np.ndarray, labels: np.ndarray, classes: int, k: int) -> list[float]:
    """The mean over all ways to break ties among equally near objects."""
    kth = sorted(row, reverse=True)[k - 1]
    sure = [label for value, label in zip(row, labels) if value > kth]
    tied = [label for value, label in zip(row, labels) if value == kth]
    left = k - len(sure)
    return [(sure.count(c) + left * tied.count(c) / len(tied)) / k for c in range(classes)]


def test_neighbours_share_votes_where_they_tie():
    rng = np.random.default_rng(0)
    for _ in range(30):
        L = int(rng.integers(1, 12))
        near, labels = rng.integers(-2, 3, (5, L)).astype(float), rng.integers(0, 3, L)
        for k in (1, 2, 3, 7):
            found = nearest_neighbours.vote_shares(near, labels, 3, k)
            np.testing.assert_allclose(found, [slow_shares(row, labels, 3, min(k, L)) for row in near], atol=1e-12)
    X, labels = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    theirs = KNeighborsClassifier(5).fit(X[:30], labels[:30]).predict_proba(X[30:])
    np.testing.assert_allclose(nearest_neighbours.vote_shares(-distances[30:, :30], labels[:30], 3, 5), theirs)
    nobody = nearest_neighbours.vote_shares(np.empty((2, 0)), np.empty(0, int), 3, 5)
    np.testing.assert_allclose(nobody, np.full((2, 3), 1 / 3))


def test_the_machine_is_libsvms_on_the_shifted_kernel():
    rng = np.random.default_rng(1)
    F = rng.normal(size=(30, 50))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    K, labels, ids = F @ F.T, rng.integers(0, 3, 20), rng.permutation(30)[:20]
    made = vector_machine.prepare_kernel(K[:, ids], ids)
    block = K[np.ix_(ids, ids)]
    lowest = np.linalg.eigvalsh(block)[0]
    half_distance = np.mean([1 - K[a, b] for a in ids for b in ids if a != b])
    np.testing.assert_allclose(made[ids], (block - lowest * np.eye(20)) / half_distance)
    assert abs(np.linalg.eigvalsh(made[ids])[0]) < 1e-9
    train, asked = np.arange(3, 20), np.setdiff1d(np.arange(30), ids)
    found = vector_machine.scores(made, (ids[train], train), labels[train], asked, 3, 2.0)
    theirs = SVC(C=2.0, kernel="precomputed", break_ties=True).fit(
        (block - lowest * np.eye(20))[3:, 3:] / half_distance, labels[3:]
    )
    assert (found.argmax(axis=1) == theirs.predict(K[np.ix_(asked, ids[train])] / half_distance)).all()
    two = vector_machine.scores(made, (ids[train], train), np.where(labels[train] == 1, 0, 2), asked, 3, 2.0)
    assert (two[:, 1] < two[:, [0, 2]].min(axis=1) + 1e-12).all() and np.allclose(two[:, 0], -two[:, 2])
    one = vector_machine.scores(made, (ids[train], train), np.full(17, 2), asked, 3, 2.0)
    assert (one.argmax(axis=1) == 2).all()


def test_the_temperature_has_the_least_log_loss():
    rng = np.random.default_rng(2)
    for _ in range(2):
        truth, scores = rng.integers(0, 4, 200), rng.normal(size=(200, 4))
        scores[np.arange(200), truth] += rng.random() * 3
        t = probabilities.temperature(scores, truth)
        nobody, prior = np.zeros(200, bool), np.full(4, 0.25)
        margin = np.sort(scores, axis=1)
        m = math.sqrt(np.mean((margin[:, -1] - margin[:, -2]) ** 2))

        def loss(at, m=m, scores=scores, truth=truth, nobody=nobody, prior=prior):
            own = probabilities.losses(scores, at, nobody, prior, truth).sum()
            return own + math.log1p(math.exp(at * m)) + math.log1p(math.exp(-at * m))

        grid = np.linspace(0, 5, 1001)
        assert abs(t - grid[np.argmin([loss(each) for each in grid])]) <= 5e-3
        P = probabilities.of_scores(scores, t, nobody, prior)
        np.testing.assert_allclose(probabilities.losses(scores, t, nobody, prior, truth), -np.log(P[range(200), truth]))
    sure = np.eye(3)[[0, 1, 2, 0]]
    assert 0 < probabilities.temperature(sure, np.array([0, 1, 2, 0])) < 10  # all right: still finite
    assert probabilities.temperature(sure, np.array([1, 2, 0, 1])) == 0.0  # worse than nothing
    assert probabilities.temperature(np.zeros((3, 2)), np.array([0, 1, 1])) == 0.0


def test_folds_have_every_class_evenly():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [40, 17, 5])
    fold = nested.folds_of(labels, rng.permutation(62))
    for c in range(3):
        counts = np.bincount(fold[labels == c], minlength=5)
        assert counts.max() - counts.min() <= 1
    order = rng.permutation(62)
    draws = rng.permutation(62)
    assert (nested.folds_of(labels[order], draws[order]) == nested.folds_of(labels, draws)[order]).all()


@pytest.mark.parametrize("up_to, outer", [(100, 5), (10, 1)])
def test_what_chose_never_had_what_is_reported(up_to, outer):
    """Every fit is recorded: the figures of a fold come from fits and choices that never saw its labels."""
    rng = np.random.default_rng(4)
    ids, labels = rng.permutation(200)[:50], np.arange(50) % 2
    draws, fitted, told = rng.permutation(50), [], []

    def score(setting, train, asked, wrong):
        fitted.append((set(train.tolist()), set(asked.tolist())))
        truth = {int(i): int(label) for i, label in zip(ids, labels)}
        says = np.array([truth[int(i)] for i in asked]) if not wrong else rng.integers(0, 2, len(asked))
        return np.eye(2)[says] * setting, np.zeros(len(asked), bool)

    knows = Model("knows", (1.0, 2.0), lambda *given: score(*given, wrong=False))
    guesses = Model("guesses", (1.0,), lambda *given: score(*given, wrong=True))
    found = nested.choose(
        [guesses, knows], labels, 2, ids, draws, up_to, 1000, lambda done, total, log_loss: told.append((done, total))
    )
    assert told == [(done, 2 * outer) for done in range(1, 2 * outer + 1)]
    for train, asked in fitted:
        assert not {int(ids[t]) for t in train} & asked
        folds = {int(f) for f in found.fold[list(train)]}
        assert len(folds) in (3, 4)
    assert found.model.name == "knows" and found.best.accuracy == found.figures_by_model["knows"].accuracy == 1.0
    assert 0.2 < found.figures_by_model["guesses"].accuracy < 0.8 and found.best.objects == found.is_reported.sum()
    assert found.is_reported.sum() == (50 if outer == 5 else 10) and len(fitted) == (40 if outer == 5 else 14)
    assert 0.3 <= found.majority <= 0.6


def test_planted_classes_are_found_and_probabilities_mean_something():
    snapshot, truth = world()
    made = classify.refit(snapshot, classify.Params(rounds=2000), 0)
    report, arrays = made.report, made.arrays
    held = report["held_out"]
    assert held["accuracy"] > 0.9 > 0.45 > held["majority_class_accuracy"] and held["objects"] == 54
    right = arrays["predicted"] == truth
    assert right[arrays["given"] < 0].all() and right.mean() > 0.9
    np.testing.assert_allclose(arrays["probability"].sum(axis=1), 1)
    assert (arrays["score"] == arrays["probability"].max(axis=1)).all()
    assert abs(arrays["score"].mean() - right.mean()) < 0.1
    names = [row["model"] for row in report["models"]]
    assert len(names) == 11 and [row["model"] for row in report["models"] if row["best"]] == [report["model"]]
    assert {"nearest neighbours, k1", "support vectors, embedding", "triplet_boost"} <= set(names)
    assert all(row["accuracy"] > 0.6 for row in report["models"])


def test_adds_of_chosen_objects_is_that_of_the_comparisons_among_them():
    snapshot, _ = world(20, 2000)
    names = tuple(snapshot.objects)[:14]
    params = classify.Params(similarities=("adds3",), neighbours=(3,), penalties=(), rounds=0, objects=names)
    made = classify.refit(snapshot, params, 0)
    assert [row["model"] for row in made.report["models"]] == ["nearest neighbours, adds3"]
    assert not made.report["without"]
    columns = triplet_columns(snapshot)
    triplets, times = net_triplets(columns)
    inside = (triplets < 14).all(axis=1)
    alone = snapshot_of(np.repeat(triplets[inside], times[inside].astype(int), axis=0))
    place = [alone.objects.index(f"o{i}") for i in range(14)]
    expected = classify.view(alone, "adds3", np.array(place), 0).near[place]
    chosen = classify._restrict(snapshot, names).snapshot
    np.testing.assert_array_equal(classify.view(chosen, "adds3", np.arange(14), 0).near, expected)


def test_a_label_in_doubt_shows():
    """What is said of an object with a label comes from fits that had not seen it."""
    snapshot, _ = world()
    wrong = next(iter(snapshot.labels))
    moved = snapshot._replace(labels={**snapshot.labels, wrong: {"a": "b", "b": "c", "c": "a"}[snapshot.labels[wrong]]})
    params = classify.Params(similarities=("embedding",), rounds=0)
    made = classify.refit(moved, params, 0)
    at = snapshot.objects.index(wrong)
    assert made.report["classes"][made.arrays["predicted"][at]] == snapshot.labels[wrong]


@pytest.mark.parametrize("name", ["k1", "k2", "adds3", "embedding", "k1_window"])
def test_a_view_is_the_similarity_seen_from_the_labelled(name):
    snapshot, _ = world(20, 400)
    labelled = np.array([7, 2, 11])
    seen = classify.view(snapshot, name, labelled, 0)
    assert seen.near.shape == seen.kernel.shape == seen.linked.shape == (20, 3)
    if name in ("k1", "k2"):
        np.testing.assert_allclose(seen.near, getattr(kernels, name)(triplet_columns(snapshot))[:, labelled])
    assert np.linalg.eigvalsh(seen.kernel[labelled])[0] > -1e-9
    assert (seen.near[labelled].argmax(axis=1) == np.arange(3)).all() or name == "adds3"


def test_what_cannot_be_is_said_in_one_line(monkeypatch):
    snapshot, _ = world(20, 400)
    with pytest.raises(CannotRefit, match="classify.*20, 1 labels"):
        classify.refit(snapshot._replace(labels={"nobody": "a"}), classify.Params(), 0)
    with (
        monkeypatch.context() as patched,
        pytest.raises(CannotRefit, match=stating("classify … 20 … 14 … objects")),
    ):
        patched.setattr(available_memory, "available", lambda: 1)
        classify.refit(snapshot, classify.Params(), 0)
    with pytest.raises(ValueError, match="similarities.*'k3'.*adds3, adds4, k1"):
        classify.Params(similarities=("k3",))
    with pytest.raises(ValueError, match="^similarities, neighbours, penalties, rounds: "):
        classify.Params(similarities=(), rounds=0)
    monkeypatch.setattr(classify, "MAX_LEARNED_OBJECTS", 5)
    made = classify.refit(snapshot, classify.Params(similarities=("adds4", "learned"), rounds=100), 0)
    assert list(made.report["without"]) == ["learned"]
    few = snapshot._replace(labels=dict(list(snapshot.labels.items())[:5]))
    made = classify.refit(few, classify.Params(similarities=("k1",)), 0)
    assert made.report["held_out"] == {"objects": 0, "accuracy": None} and not made.report["models"]
    assert (made.arrays["predicted"] >= 0).all() and not made.arrays["reported"].any()


def test_the_standard_error_is_that_of_a_mean():
    for m in (2, 3, 17):
        right = np.arange(m) % 3 > 0
        made = nested.Figures.of(right, np.full(m, 0.7), np.zeros(m))
        assert made.standard_error == pytest.approx(right.std(ddof=1) / math.sqrt(m)) and made.objects == m
    one = nested.Figures.of(np.array([True]), np.ones(1), np.ones(1))
    assert one.standard_error == pytest.approx(0.405, abs=1e-3)  # as of Wilson's interval


def test_objects_without_an_answer_count_in_the_loss_and_not_in_the_temperature():
    right, losses, silent = (
        np.array([True, False, True, True]),
        np.array([0.1, 2.0, 0.3, 0.4]),
        np.array([0, 0, 1, 0]) > 0,
    )
    made = nested.Figures.of(right, losses, silent)
    assert made.log_loss == pytest.approx(0.7)
    assert made.abstained == 0.25
    labels = np.arange(24) % 2
    scores = np.eye(2)[np.where(np.arange(24) % 5 == 1, 1 - labels, labels)] * 3.0  # some are wrong
    nothing = np.arange(24) % 7 == 0

    def score(setting, train, asked):
        return np.where(nothing[asked, None], 9.0 * np.eye(2)[1 - labels[asked]], scores[asked]), nothing[asked]

    ids = np.arange(24)
    found = nested.choose([nested.Model("one", (1.0,), score)], labels, 2, ids, ids, 100, 1000, lambda *_, **__: None)
    told = nested.score_all(found, labels, 2, ids, 24)
    assert told.temperature == pytest.approx(probabilities.temperature(scores[~nothing], labels[~nothing]))
    assert (told.abstained == nothing).all()


@pytest.mark.parametrize("model", ["neighbours", "machine"])
def test_who_is_linked_to_anybody_learned_from_is_classified(model):
    """Nothing is known of an object only where it is linked to none of those that are learned from."""
    ids, truth, train = np.array([0, 1, 2, 3]), np.array([0, 1, 0, 1]), np.array([0, 1, 2])
    points = np.random.default_rng(0).normal(size=(7, 3))
    kernel = points @ points[ids].T
    linked = np.zeros((7, 4), bool)
    linked[4] = True
    linked[5, 1] = True
    linked[6, 3] = True  # to one that is left out
    seen = classify.View("k1", kernel, kernel, linked)
    asked = np.array([4, 5, 6, 3])
    if model == "neighbours":
        _, unknown = classify._neighbours(seen, truth, 2, 1.0, train, asked)
    else:
        _, unknown = classify._machine(seen, ids, truth, 2, 1.0, train, asked)
    assert unknown.tolist() == [not any(linked[i, j] for j in train) for i in asked] == [False, False, True, True]
