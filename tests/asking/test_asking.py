"""What to ask next: every strategy keeps the contract of a question; the model and its scores against their formulas;
the loop from a snapshot to questions to answers and back, through the command line."""

import json
import re

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import chisquare, norm

from stream_engine import asking
from stream_engine.__main__ import main
from stream_engine.asking import information_gain, landmark, model
from stream_engine.asking.known import (
    CannotAsk,
    Known,
    answered,
    codes,
    how_many,
    known_from,
    nothing_known,
    unanswered,
    with_objects,
)
from stream_engine.commands import ask
from stream_engine.data.comparisons import Triplet
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.refits.kernel_learning import Params, refit
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from stream_engine.statistics import kernels
from tests.support.generators import planted_triplets

STRATEGIES = list(asking.STRATEGIES)


def world(n: int, size: int, seed: int = 0, dimensions: int = 2) -> tuple[np.ndarray, Known]:
    """Planted points and what some noisy answers about them tell."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, dimensions))
    triplets = planted_triplets(rng, points, size, 0.1) if size else np.empty((0, 3), np.int32)
    return points, Known(tuple(f"o{i}" for i in range(n)), columns_from_triplets(triplets, n))


# ---- every strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [0, 100])
def test_questions_are_distinct_and_have_no_answer(strategy, size):
    _, known = world(12, size)
    rows = asking.questions(known, 40, strategy, seed=3)
    assert rows.shape == (40, 3) and rows.min() >= 0 and rows.max() < 12
    assert (rows[:, 0] != rows[:, 1]).all() and (rows[:, 0] != rows[:, 2]).all() and (rows[:, 1] != rows[:, 2]).all()
    assert len(np.unique(codes(rows, 12))) == 40
    assert not np.isin(codes(rows, 12), answered(known)).any()
    assert np.array_equal(rows, asking.questions(known, 40, strategy, seed=3))
    assert not np.array_equal(rows, asking.questions(known, 40, strategy, seed=4))
    assert 8 < np.count_nonzero(rows[:, 1] < rows[:, 2]) < 32, "sides say something"


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "landmark"])
def test_all_questions_that_are_left_can_be_asked_and_no_more(strategy):
    _, known = world(6, 30)
    left = how_many(6) - len(known.columns.anchor)
    rows = asking.questions(known, left, strategy)
    every = np.concatenate([codes(rows, 6), answered(known)])
    assert len(np.unique(every)) == len(every) == how_many(6) == 60
    with pytest.raises(CannotAsk, match=f"got n = {left + 1}, expected 1 to {left}: 6 objects make 60 questions"):
        asking.questions(known, left + 1, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_objects_that_nobody_compared_are_asked_about(strategy):
    _, known = world(12, 300)
    rows = asking.questions(with_objects(known, ["o3", "fresh"]), 60, strategy)
    assert (rows == 12).any() and rows.max() == 12


@pytest.mark.parametrize("n", [30, 250])  # all listed, and drawn
def test_random_questions_are_uniform_over_those_without_an_answer(n):
    _, known = world(n, 2000)
    rows = unanswered(known, 8000, np.random.default_rng(1))
    assert len(np.unique(codes(rows, n))) == 8000 and not np.isin(codes(rows, n), answered(known)).any()
    free = how_many(n) // n - np.bincount(known.columns.anchor, minlength=n)
    assert chisquare(np.bincount(rows[:, 0], minlength=n), free * (8000 / free.sum())).pvalue > 1e-4


# ---- the model


def test_the_gradient_of_the_posterior():
    points, known = world(7, 60)
    triplets, weight = model.weighted_triplets(known.columns)
    gradient = np.zeros((7, 2))
    model._loss(points, triplets, weight, gradient)

    def loss(flat):
        x = flat.reshape(7, 2)
        a, b, c = (x[triplets[:, i]] for i in range(3))
        difference = ((a - c) ** 2).sum(1) - ((a - b) ** 2).sum(1)
        return -weight @ np.log(model.LAPSE / 2 + (1 - model.LAPSE) / (1 + np.exp(-difference)))

    assert model._loss(points, triplets, weight, np.zeros((7, 2))) == pytest.approx(loss(points.ravel()))
    assert np.allclose(gradient.ravel(), approx_fprime(points.ravel(), loss), atol=1e-4)


def test_the_precision_is_the_fisher_information_of_each_object():
    points, known = world(6, 40)
    triplets, weight = model.weighted_triplets(known.columns)
    found = model._precision(points, triplets, weight)
    for i in range(6):
        expected = model.PRIOR * np.eye(2)
        for (a, b, c), w in zip(triplets, weight):
            p, slope = model.chance(model.difference(points, a, b, c))

            def x(at, i=i, a=a, b=b, c=c):
                moved = points.copy()
                moved[i] = at
                return ((moved[a] - moved[c]) ** 2).sum() - ((moved[a] - moved[b]) ** 2).sum()

            g = approx_fprime(points[i], x)
            expected += w * slope**2 / (p * (1 - p)) * np.outer(g, g)
        assert np.allclose(found[i], expected, rtol=1e-3, atol=1e-3)


def test_it_finds_where_objects_lie_and_in_how_many_dimensions():
    points, known = world(40, 4000, dimensions=1)
    found = model.posterior(known, np.random.default_rng(0))
    fresh = planted_triplets(np.random.default_rng(9), points, 2000)
    assert found.points.shape[1] == 1 and found.right > 0.8
    assert (model.differences(found.points, fresh) > 0).mean() > 0.93
    assert model.believed(found, 10) == 10


def test_a_learned_kernel_is_where_it_starts():
    points, known = world(10, 500)
    triplets, weight = model.weighted_triplets(known.columns)
    at = model.start(known._replace(coordinates=points[:8]), triplets, weight, 2, np.random.default_rng(0))
    assert np.corrcoef(at[:8, 0], points[:8, 0])[0, 1] > 0.95 and np.abs(at[8:]).max() < 1


def test_the_newest_learned_kernel_is_taken_from_the_state(tmp_path):
    engine, points = Engine(), world(9, 0)[0]
    engine.learn_many(
        [Triplet(*(f"o{i}" for i in row)) for row in planted_triplets(np.random.default_rng(0), points, 200).tolist()]
    )
    store = Store(tmp_path)
    snapshot, _ = store.publish(engine.snapshot())
    without = ask.ask(str(tmp_path), 20, "information-gain", "pick", 0, None, "latest")
    learned = refit(snapshot, Params(), seed=0)
    coordinates = {"coordinates": 5 * learned.arrays["coordinates"]}
    store.publish_artifact(learned._replace(arrays=learned.arrays | coordinates))
    assert ask.ask(str(tmp_path), 20, "information-gain", "pick", 0, None, "latest") != without
    assert ask.ask(str(tmp_path), 20, "coverage", "pick", 0, None, "latest").about.startswith(
        "20 questions by coverage over 9"
    )


# ---- the score


def posterior_of(n: int, d: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    root = rng.normal(0, 0.4, (n, d, d))
    return rng.normal(size=(n, d)), root @ root.transpose(0, 2, 1)


@pytest.mark.parametrize("scale", [1.0, 0.1])  # places far apart, or so near that their spreads make the variance
def test_the_moments_of_a_question(scale):
    at, spread = posterior_of(3, 2)
    at = at * scale
    rng = np.random.default_rng(1)
    a, b, c = (rng.multivariate_normal(at[i], spread[i], 400_000) for i in range(3))
    x = ((a - c) ** 2).sum(1) - ((a - b) ** 2).sum(1)
    mean, variance = model.moments(at, spread, np.array([0, 1, 2], np.int32))
    assert mean == pytest.approx(x.mean(), abs=0.02) and variance == pytest.approx(x.var(), rel=0.02)


@pytest.mark.parametrize("mean, variance", [(0.0, 0.0), (0.0, 1.0), (0.0, 9.0), (1.5, 2.0), (-4.0, 4.0)])
def test_the_gain_is_the_mutual_information(mean, variance):
    x = np.linspace(-12, 12, 20_001) * np.sqrt(variance) + mean if variance else np.array([mean])
    density = norm.pdf(x, mean, np.sqrt(variance)) if variance else np.array([1.0])
    density /= density.sum()
    p = model.LAPSE / 2 + (1 - model.LAPSE) / (1 + np.exp(-x))

    def bits(p):
        return -p * np.log2(p) - (1 - p) * np.log2(1 - p)

    gain, information = information_gain.gain(mean, variance)
    assert gain == pytest.approx(bits(density @ p) - density @ bits(p), abs=0.02)
    slope = (1 - model.LAPSE) * np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2
    assert information == pytest.approx(density @ (slope**2 / (p * (1 - p))), abs=0.02)  # Fisher's, of p at x


def test_each_question_taken_is_the_best_one_and_narrows_its_objects():
    at, spread = posterior_of(8, 2)
    rows = unanswered(world(8, 0)[1], 168, np.random.default_rng(0))
    left, now, found = list(range(168)), spread.copy(), []
    for _ in range(6):  # the slow way: score all, take the best, add its information to the precision of its objects
        scores = information_gain.gains(at, now, rows[left])
        best = left[int(np.argmax(scores))]
        found.append(best)
        left.remove(best)
        a, b, c = rows[best]
        h = information_gain.gain(*model.moments(at, now, rows[best]))[1]
        after = now.copy()
        for i, g in ((a, at[b] - at[c]), (b, at[a] - at[b]), (c, at[c] - at[a])):
            after[i] = np.linalg.inv(np.linalg.inv(now[i]) + 4 * h * np.outer(g, g))
        now = after
    narrowed = spread.copy()
    assert information_gain.greedily(at, narrowed, rows, 6).tolist() == found
    assert np.allclose(narrowed, now)


def test_a_batch_does_not_ask_one_thing_a_hundred_times():
    _, known = world(30, 1500)
    rows = asking.questions(known, 60, "information-gain")
    assert len(np.unique(rows)) >= 25


def test_a_model_that_knows_nothing_is_not_asked():
    rng = np.random.default_rng(0)
    coin = Known(
        tuple("abcdefghijkl"), columns_from_triplets(planted_triplets(rng, rng.normal(size=(12, 2)), 200, 0.5), 12)
    )
    found = model.posterior(coin, np.random.default_rng(0))
    assert model.believed(found._replace(right=0.5), 50) == 0 and found.right < 0.75


# ---- the designs


def test_coverage_asks_where_evidence_is_least():
    triplets = np.array([[a, b, c] for a in range(6) for b in range(6) for c in range(b) if a not in (b, c)][:40])
    known = Known(tuple("abcdefgh"), columns_from_triplets(triplets, 8))
    asked = np.bincount(triplets[:, 0], minlength=8)
    for row in asking.questions(known, 50, "coverage"):
        assert asked[row[0]] == asked.min()
        asked[row[0]] += 1


def test_landmark_questions_make_a_landmark_design():
    known = with_objects(nothing_known(), [f"o{i}" for i in range(64)])
    marks = landmark.landmarks(known.names)
    assert len(marks) == 16
    design = 16 * 15 // 2 * 62
    rows = asking.questions(known, design, "landmark")
    assert set(rows[:, 1:].ravel().tolist()) == set(marks.tolist())
    assert (np.diff(np.unique(np.sort(rows[:62, 1:], axis=1), axis=0, return_counts=True)[1]) == 0).all()
    assert len(np.unique(np.sort(rows[:62, 1:], axis=1), axis=0)) == 1, "pair by pair"
    assert kernels.landmarks(columns_from_triplets(rows, 64)).tolist() == sorted(marks.tolist())
    half = Known(known.names, columns_from_triplets(rows[: 10 * 62 + 20], 64))
    again = asking.questions(half, 42, "landmark")
    assert len(np.unique(np.sort(again[:, 1:], axis=1), axis=0)) == 1, "a pair that was begun is finished first"
    with pytest.raises(CannotAsk, match="landmark: got n = 7441, expected at most 7440"):
        asking.questions(known, design + 1, "landmark")


@pytest.mark.parametrize("seed", range(12))
def test_landmark_questions_are_those_of_the_slow_listing(seed):
    """Every question about two landmarks, listed one by one; the pair with the fewest left first, whole pairs alike."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    known = with_objects(nothing_known(), [f"o{i}" for i in range(n)])
    marks = sorted(landmark.landmarks(known.names).tolist())
    listed = [(a, b, c) for b in marks for c in marks if b < c for a in range(n) if a not in (b, c)]
    done = [row for row in listed if rng.random() < 0.6]
    done += [(a, b, c) for a in range(n) for b in range(n) for c in range(b) if len({a, b, c}) == 3][:20]
    known = known._replace(columns=columns_from_triplets(np.array(done), n))
    left = {row for row in listed if row not in done and (row[0], row[2], row[1]) not in done}
    if left:
        rows = landmark.ask(known, len(left), np.random.default_rng(seed))
        assert set(map(tuple, rows.tolist())) == left and len(rows) == len(left)
        of_pair = [sum(other[1:] == tuple(row[1:]) for other in left) for row in rows.tolist()]
        assert of_pair == sorted(of_pair)
        assert landmark.ask(known, 1, np.random.default_rng(seed)).shape == (1, 3)


def test_no_more_dimensions_are_tried_than_the_answers_can_place():
    known = world(40, 70)[1]
    triplets, weight = model.weighted_triplets(known.columns)
    assert model.dimensions(known, triplets, weight, np.random.default_rng(0))[0] == 1


# ---- the command


@pytest.fixture
def state(tmp_path):
    """A state of 200 answers about 9 objects."""
    points, _ = world(9, 0)
    rows = planted_triplets(np.random.default_rng(0), points, 200)
    (tmp_path / "events.jsonl").write_text(
        "".join(
            json.dumps(dict(zip(("anchor", "near", "far"), (f"o{i}" for i in row)))) + "\n" for row in rows.tolist()
        )
    )
    assert main(["run", str(tmp_path / "events.jsonl"), "--state", str(tmp_path / "state"), "--no-refits"]) == 0
    return tmp_path


def asked(capfd, *arguments) -> list[dict]:
    capfd.readouterr()
    assert main(["ask", *map(str, arguments)]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


ANSWERS = {
    "pick": lambda q: q | {"chosen": [q["shown"][0]]},
    "triplet": lambda q: q | dict(zip(("near", "far"), q["shown"])),
    "odd_one_out": lambda q: q | {"odd": q["objects"][2]},
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_question_with_its_answer_is_an_event(kind, state, capfd):
    found = asked(capfd, "--state", state / "state", "--n", 12, "--type", kind)
    assert len({q["id"] for q in found}) == 12
    assert found == asked(capfd, "--state", state / "state", "--n", 12, "--type", kind)
    answers = state / "answers.jsonl"
    answers.write_text("".join(json.dumps(ANSWERS[kind](q)) + "\n" for q in found))
    assert main(["run", str(answers), "--state", str(state / "state"), "--no-refits"]) == 0
    snapshot = Store(state / "state").latest().snapshot
    assert snapshot.counters["kinds"] == {
        **({"triplet": 200} | {kind: 12}),
        "triplet": 212 if kind == "triplet" else 200,
    }
    assert snapshot.counters["rejected"] == {}
    if kind != "odd_one_out":
        known = known_from(snapshot)
        number = {name: i for i, name in enumerate(known.names)}
        rows = [[number[name] for name in (q["anchor"], *q["shown"])] for q in found]
        assert np.isin(codes(np.array(rows), 9), answered(known)).all()
        again = asked(capfd, "--state", state / "state", "--n", 12, "--type", kind)
        assert not {q["id"] for q in found} & {q["id"] for q in again}


def test_a_study_can_begin_with_names_alone(tmp_path, capfd):
    (tmp_path / "names.txt").write_text("ä\nb\n\nc d\nb\n")
    found = asked(capfd, "--state", tmp_path / "none", "--objects", tmp_path / "names.txt", "--n", 3)
    assert {q["anchor"] for q in found} == {"ä", "b", "c d"}
    assert not (tmp_path / "none").exists()


def test_questions_go_to_a_file(state, capfd):
    assert main(["ask", "--state", str(state / "state"), "--n", "5", "--out", str(state / "q.jsonl")]) == 0
    assert "5 questions by information-gain over 9 objects, snapshot 1: 200 comparisons" in capfd.readouterr().out
    assert len((state / "q.jsonl").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    "arguments, status, line",
    [
        (["--n", "0"], 2, "got n = 0, expected 1 to "),
        (
            ["--n", "300"],
            2,
            "ask: got n = 300, expected 1 to .*: 9 objects make 252 questions, .* of them have answers",
        ),
        (["--n", "85", "--type", "odd_one_out"], 2, "got n = 85, expected at most .*: the sets of three objects"),
        (["--strategy", "clever"], 2, "got strategy 'clever', expected one of random, uncertainty, information-gain"),
        (["--type", "ranking"], 2, "got type 'ranking', expected one of pick, triplet, odd_one_out"),
        (["--objects", "missing.txt"], 1, "No such file .*missing.txt"),
        (["--snapshot", "7"], 1, "no snapshot 7; kept are 1"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, status, line, state, capfd):
    capfd.readouterr()
    assert main(["ask", "--state", str(state / "state"), *arguments]) == status
    said = capfd.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert re.search(line, said.err)


def test_too_little_to_ask_about(tmp_path, capfd):
    assert main(["ask", "--state", str(tmp_path / "none")]) == 1
    assert "no snapshot there" in capfd.readouterr().err
    (tmp_path / "names.txt").write_text("a\nb\n")
    assert main(["ask", "--state", str(tmp_path / "none"), "--objects", str(tmp_path / "names.txt")]) == 2
    assert "got 2 objects, expected at least 3" in capfd.readouterr().err
    engine = Engine(["adds3"])
    Store(tmp_path / "state").publish(engine.snapshot())
    assert main(["ask", "--state", str(tmp_path / "state")]) == 2
    assert "snapshot 1 counts no triplets" in capfd.readouterr().err
    (tmp_path / "names.txt").write_bytes(b"a\n\xff\n")
    assert main(["ask", "--state", str(tmp_path / "none"), "--objects", str(tmp_path / "names.txt")]) == 2
    assert "byte 2 is not UTF-8" in capfd.readouterr().err
