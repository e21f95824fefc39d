"""What to ask next: every strategy keeps the contract of a question; the loop from a snapshot to questions to answers
and back, through the command line."""

import json
import math
import re

import numpy as np
import pytest
from scipy.stats import chisquare

from stream_engine import asking
from stream_engine.__main__ import main
from stream_engine.asking import coverage, landmark, landmark_k2
from stream_engine.asking.knowledge import (
    CannotAsk,
    Knowledge,
    answered_codes,
    codes,
    count_questions,
    knowledge_of,
    no_knowledge,
    unanswered,
    with_objects,
)
from stream_engine.commands import ask
from stream_engine.counts import kernels, landmark_designs
from stream_engine.data.comparisons import Triplet
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.refits.embedding import Params, refit
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.asking.worlds import artifact, taught, world
from tests.support.facts import states, stating
from tests.support.generators import planted_triplets

STRATEGIES = list(asking.STRATEGIES)


# ---- every strategy


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("known", [world(12, 0)[1], world(12, 100)[1], taught(12, 0), taught(12, 100)])
def test_questions_are_distinct_and_have_no_answer(strategy, known):
    rows = asking.questions(known, 40, strategy, seed=3).rows
    assert rows.shape == (40, 3)
    assert rows.min() >= 0
    assert rows.max() < 12
    assert (rows[:, 0] != rows[:, 1]).all()
    assert (rows[:, 0] != rows[:, 2]).all()
    assert (rows[:, 1] != rows[:, 2]).all()
    assert len(np.unique(codes(rows, 12))) == 40
    assert not np.isin(codes(rows, 12), answered_codes(known)).any()
    assert np.array_equal(rows, asking.questions(known, 40, strategy, seed=3).rows)
    assert not np.array_equal(rows, asking.questions(known, 40, strategy, seed=4).rows)
    assert 8 < np.count_nonzero(rows[:, 1] < rows[:, 2]) < 32, "sides say something"


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if not s.startswith("landmark")])
def test_all_questions_that_are_left_can_be_asked_and_no_more(strategy):
    known = taught(6, 30)
    left = count_questions(6) - len(known.columns.anchor)
    rows = asking.questions(known, left, strategy).rows
    every = np.concatenate([codes(rows, 6), answered_codes(known)])
    assert len(np.unique(every)) == len(every) == count_questions(6) == 60
    with pytest.raises(CannotAsk, match=f"got n = {left + 1}, expected 1 to {left}:.* 60 "):
        asking.questions(known, left + 1, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_objects_that_nobody_compared_are_asked_about(strategy):
    known = taught(12, 300)
    rows = asking.questions(with_objects(known, ["o3", "fresh"]), 55, strategy).rows
    assert (rows == 12).any() and rows.max() == 12


@pytest.mark.parametrize("n", [30, 250])  # all listed, and drawn
def test_random_questions_are_uniform_over_those_without_an_answer(n):
    _, known = world(n, 2000)
    rows = unanswered(known, 8000, np.random.default_rng(1))
    assert len(np.unique(codes(rows, n))) == 8000 and not np.isin(codes(rows, n), answered_codes(known)).any()
    free = count_questions(n) // n - np.bincount(known.columns.anchor, minlength=n)
    assert chisquare(np.bincount(rows[:, 0], minlength=n), free * (8000 / free.sum())).pvalue > 1e-4


# ---- the designs


def test_coverage_asks_where_evidence_is_least():
    triplets = np.array([[a, b, c] for a in range(6) for b in range(6) for c in range(b) if a not in (b, c)][:40])
    known = Knowledge(tuple("abcdefgh"), columns_from_triplets(triplets, 8))
    asked = np.bincount(triplets[:, 0], minlength=8)
    for row in asking.questions(known, 50, "coverage").rows:
        assert asked[row[0]] == asked.min()
        asked[row[0]] += 1


def test_coverage_shows_what_the_anchor_was_least_compared_with():
    """Before what was shown least beside the others."""
    triplets = [[0, 1, 2], [1, 3, 4], [1, 0, 3], [2, 3, 4], [2, 0, 4], [3, 0, 4], [3, 4, 1], [4, 0, 3], [4, 3, 2]]
    known = Knowledge(tuple("abcde"), columns_from_triplets(np.array(triplets), 5))
    assert asking.questions(known, 1, "coverage").rows.tolist() == [[0, 3, 4]]


def test_coverage_asks_about_rare_objects_beside_well_known_ones():
    """A comparison of rare objects with each other places none of them; new objects are rare, too."""
    triplets = [[a, b, c] for a in range(12) for b in range(12) for c in range(b) if a not in (b, c)]
    triplets += [[12, 0, 1], [13, 2, 3], [4, 14, 5]]
    known = Knowledge(tuple("abcdefghijklmno"), columns_from_triplets(np.array(triplets), 15))
    rows = asking.questions(with_objects(known, ["new"]), 60, "coverage").rows
    assert set(rows[:, 0].tolist()) == {12, 13, 14, 15} and rows[:, 1:].max() < 12


def test_landmark_questions_make_a_landmark_design():
    known = with_objects(no_knowledge(), [f"o{i}" for i in range(64)])
    marks = landmark.landmarks(known.names)
    assert len(marks) == 16
    design = 16 * 15 // 2 * 62
    rows = asking.questions(known, design, "landmark").rows
    assert set(rows[:, 1:].ravel().tolist()) == set(marks.tolist())
    assert (np.diff(np.unique(np.sort(rows[:62, 1:], axis=1), axis=0, return_counts=True)[1]) == 0).all()
    assert len(np.unique(np.sort(rows[:62, 1:], axis=1), axis=0)) == 1, "pair by pair"
    assert kernels.landmarks(columns_from_triplets(rows, 64)).tolist() == sorted(marks.tolist())
    half = Knowledge(known.names, columns_from_triplets(rows[: 10 * 62 + 20], 64))
    again = asking.questions(half, 42, "landmark").rows
    assert len(np.unique(np.sort(again[:, 1:], axis=1), axis=0)) == 1, "a pair that was begun is finished first"
    with pytest.raises(CannotAsk, match=stating("landmark … 7441 … 1 … 7440")):
        asking.questions(known, design + 1, "landmark")


def test_landmark_questions_for_k2_make_its_design():
    known = with_objects(no_knowledge(), [f"o{i}" for i in range(80)])
    marks = np.sort(landmark_k2.chosen_landmarks(known.names))
    design = len(marks) * (len(marks) - 1) * (80 - len(marks)) + len(marks) * math.comb(len(marks) - 1, 2)
    rows = asking.questions(known, design, "landmark-k2").rows
    columns = columns_from_triplets(rows, 80)
    assert landmark_designs.landmarks2(columns).tolist() == marks.tolist()
    assert not len(kernels.landmarks(columns)), "it is none for k1"
    with pytest.raises(CannotAsk, match=f"landmark-k2: got n = {design + 1}, expected 1 to {design}"):
        asking.questions(known, design + 1, "landmark-k2")


@pytest.mark.parametrize("seed", range(4))
def test_landmark_questions_for_k2_are_those_of_the_slow_listing(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 18))
    known = with_objects(no_knowledge(), [f"o{i}" for i in range(n)])
    marks = sorted(landmark_k2.chosen_landmarks(known.names).tolist())
    listed = {(j, *sorted((i, k))) for j in marks for k in marks for i in range(n) if len({i, j, k}) == 3}
    done = [row for row in sorted(listed) if rng.random() < 0.6]
    done += [(a, c, b) for a in range(n) for b in range(n) for c in range(b) if len({a, b, c}) == 3][:20]
    known = known._replace(columns=columns_from_triplets(np.array(done), n))
    left = listed - set(done)
    if left:
        rows = landmark_k2.ask(known, len(left), np.random.default_rng(seed))
        assert {(a, *sorted((b, c))) for a, b, c in rows.tolist()} == left and len(rows) == len(left)
        assert landmark_k2.ask(known, 1, np.random.default_rng(seed)).shape == (1, 3)


@pytest.mark.parametrize("seed", range(4))
def test_landmark_questions_are_those_of_the_slow_listing(seed):
    """Every question about two landmarks, listed one by one; the pair with the fewest left first, whole pairs alike."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 14))
    known = with_objects(no_knowledge(), [f"o{i}" for i in range(n)])
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
        known = knowledge_of(snapshot)
        number = {name: i for i, name in enumerate(known.names)}
        rows = [[number[name] for name in (q["anchor"], *q["shown"])] for q in found]
        assert np.isin(codes(np.array(rows), 9), answered_codes(known)).all()
        again = asked(capfd, "--state", state / "state", "--n", 12, "--type", kind)
        assert not {q["id"] for q in found} & {q["id"] for q in again}


def test_a_question_says_how_it_was_chosen_and_its_answer_keeps_it(state, capfd):
    found = asked(capfd, "--state", state / "state", "--n", 20, "--strategy", "random")
    assert {q["sampler"] for q in found} == {"random"}
    left = 252 - Store(state / "state").latest().snapshot.section("triplet_counts")["anchor"].size
    assert [q["propensity"] for q in found] == pytest.approx([1 / (left - i) for i in range(20)])
    design = asked(capfd, "--state", state / "state", "--n", 5)
    assert {q["sampler"] for q in design} == {"coverage"} and not any("propensity" in q for q in design)
    (state / "answers.jsonl").write_text("".join(json.dumps(q | {"chosen": [q["shown"][0]]}) + "\n" for q in found))
    assert main(["run", str(state / "answers.jsonl"), "--state", str(state / "state"), "--no-refits"]) == 0
    kept = kept_responses(Store(state / "state").latest().snapshot)
    assert [kept.sampler_names[number] for number in kept.sampler if number >= 0] == ["random"] * 20


def test_the_newest_embedding_is_the_one_that_asks(tmp_path, capfd):
    engine, points = Engine(), world(9, 0)[0]
    rows = planted_triplets(np.random.default_rng(0), points, 200)
    engine.learn_many([Triplet(*(f"o{i}" for i in row)) for row in rows.tolist()])
    store = Store(tmp_path)
    snapshot, _ = store.publish(engine.snapshot())
    learned = refit(snapshot, Params(dimensions=2, kernel="ste", ridge=0.3), seed=0)
    store.publish_artifact(learned._replace(report=learned.report | {"accuracy": 0.9}))
    made = ask.ask(store, 20, "information-gain", "pick", 0, None, "latest")
    assert made.instead == "" and states(made.about, "20 … information-gain … 9 … 1 … 200")
    samplers = [json.loads(line)["sampler"] for line in made.lines]
    assert sorted(samplers) == ["information-gain"] * 17 + ["random"] * 3
    moved = artifact(3 * points)._replace(digest=learned.digest)
    store.publish_artifact(learned._replace(arrays=learned.arrays | {"X": 3 * points[:, :2]}, report=moved.report))
    assert ask.ask(store, 20, "information-gain", "pick", 0, None, "latest").lines != made.lines


def test_that_all_is_random_while_there_is_no_embedding_is_said_in_one_line(state, capfd):
    assert main(["ask", "--state", str(state / "state"), "--n", "20", "--strategy", "information-gain"]) == 0
    assert re.fullmatch("ask: .* 20 of 20 .*\n", capfd.readouterr().err)
    assert main(["ask", "--state", str(state / "state"), "--n", "20"]) == 0
    assert capfd.readouterr().err == ""


def test_a_study_can_begin_with_names_alone(tmp_path, capfd):
    (tmp_path / "names.txt").write_text("ä\nb\n\nc d\nb\n")
    found = asked(capfd, "--state", tmp_path / "none", "--objects", tmp_path / "names.txt", "--n", 3)
    assert {q["anchor"] for q in found} == {"ä", "b", "c d"}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "arguments, status, line",
    [
        (
            ["--n", "300"],
            2,
            "ask.*= 300.*1.*9 objects.*252",
        ),
        (["--n", "85", "--type", "odd_one_out"], 2, "= 85"),
        (["--strategy", "clever"], 2, "'clever'"),
        (["--type", "ranking"], 2, "'ranking'.*odd_one_out"),
        (["--objects", "missing.txt"], 2, "--objects missing.txt: cannot be read"),
        (["--out", "q.csv"], 2, "q.csv.*JSON lines.*jsonl"),
        (["--snapshot", "7"], 1, "no snapshot 7; kept are 1"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, status, line, state, capfd):
    capfd.readouterr()
    assert main(["ask", "--state", str(state / "state"), *arguments]) == status
    said = capfd.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert re.search(line, said.err)


@pytest.mark.parametrize("seed", range(3))
def test_coverage_knows_what_it_has_just_shown(seed):
    """Of a batch that asks about each object once, all are shown beside the others about as often."""
    rows = coverage.ask(with_objects(no_knowledge(), [f"o{i}" for i in range(30)]), 30, np.random.default_rng(seed))
    assert sorted(rows[:, 0].tolist()) == list(range(30))
    assert np.ptp(np.bincount(rows[:, 1:].ravel(), minlength=30)) <= 2
