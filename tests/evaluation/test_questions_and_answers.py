"""What a row asks, and who answers: every way to write a question, every reason why it is none, and the model's word
about what it could not answer. In process; the command itself is in tests/commands/test_predict.py."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize

from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation import NoModel
from stream_engine.evaluation.answering import answered
from stream_engine.evaluation.count_models import similarity_of
from stream_engine.evaluation.platt import calibrated, features
from stream_engine.evaluation.questions import NOTHING, BadQuestion, QuestionReader
from stream_engine.formats.options import EventOptions, UnusableOptions
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.facts import states
from tests.support.generators import decoded


def asked(row, options=None, text=False):
    asking = QuestionReader(options or EventOptions(), text)
    asking.add(row, "row 0")
    return asking.questions().names


def four(anchor, one, other):
    return anchor, one, anchor, other


ABC = four("a", "b", "c")


@pytest.mark.parametrize(
    ("row", "questions"),
    [
        ({"anchor": "a", "left": "b", "right": "c"}, [ABC]),
        ({"anchor": "a", "near": "b", "far": "c"}, [ABC]),
        ({"anchor": "a", "left": "b", "right": "c", "near": "x", "far": "y"}, [ABC]),
        ({"anchor": 7, "left": 8, "right": 9.0}, [four("7", "8", "9")]),
        ({"type": "triplet", "anchor": "a", "near": "b", "far": "c"}, [ABC]),
        ({"type": "", "anchor": "a", "near": "b", "far": "c", "shown": "", "ranked": None}, [ABC]),
        ({"anchor": "a", "shown": ["b", "c"], "chosen": ["c"]}, [ABC]),
        ({"anchor": "a", "shown": "b|c"}, [ABC]),
        ({"anchor": "a", "ranked": ["b", "c", "d"]}, [ABC, four("a", "b", "d"), four("a", "c", "d")]),
        ({"type": "pick", "anchor": "a", "shown": ["d", "c", "b"]}, [four("a", *two) for two in ("dc", "db", "cb")]),
        ({"objects": ["a", "b", "c"]}, [ABC, four("b", "a", "c"), four("c", "a", "b")]),
        ({"type": "odd_one_out", "objects": "a|b|c", "odd": "c"}, [ABC, four("b", "a", "c"), four("c", "a", "b")]),
        ({"type": "most_central", "objects": ["a", "b", "c"]}, [ABC, four("b", "a", "c"), four("c", "a", "b")]),
        ({"type": "pick", "objects": ["x", "y", "z"], "anchor": "a", "shown": ["b", "c"]}, [ABC]),
        ({"near": ["a", "b"], "far": ["c", "d"]}, [("a", "b", "c", "d")]),
        ({"near": ["a", "b"], "far": ["b", "c"]}, [("a", "b", "b", "c")]),
        ({"near_i": "a", "near_j": "b", "far_i": "c", "far_j": "d"}, [("a", "b", "c", "d")]),
        ({"type": "quadruplet", "anchor": "z", "near": "a|b", "far": "c|d"}, [("a", "b", "c", "d")]),
    ],
)
def test_what_a_row_asks(row, questions):
    assert asked(row) == questions
    told = QuestionReader(EventOptions())
    told.add(row, "row 0")
    several = [each.get("asked_anchor") for each in told.questions().rows]
    assert several == ([i for i, *_ in questions] if len(questions) > 1 else [None])
    assert told.questions().note == ""


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([1], "\\[1\\]"),
        ({}, "anchor.*near, far"),
        ({"near": ["a", "b"], "x": 1}, "got fields near, x; expected anchor"),
        ({"anchor": "a", "left": "b"}, "right is missing"),
        ({"anchor": "a", "near": "b", "far": ""}, "far is missing"),
        ({"anchor": None, "left": "b", "right": "c"}, "anchor is missing"),
        ({"anchor": "", "near": "b", "far": "c", "left": None, "right": None}, "anchor is missing"),
        ({"anchor": "a", "left": None, "right": ""}, "left is missing"),
        ({"near_i": "a", "near_j": None, "far_i": "b", "far_j": "c"}, "near_j is missing"),
        ({"anchor": "a", "left": "a", "right": "b"}, "anchor 'a'.*'a'.*'b'"),
        ({"type": "duel", "anchor": "a"}, "type.*'duel'"),
        ({"type": "label", "object": "a", "label": "x"}, "label"),
        ({"objects": ["a", "b"]}, "objects: got \\['a', 'b'\\], expected 3 names"),
        ({"anchor": "a", "shown": ["b"]}, "shown.*\\['b'\\]"),
        ({"anchor": "a", "shown": ["b", "a"]}, "shown.*anchor 'a'"),
        ({"anchor": "a", "ranked": ["b", "b"]}, "ranked"),
        ({"near": ["a", "a"], "far": ["c", "d"]}, "'a', 'a'.*'c', 'd'"),
        ({"near": ["a", "b"], "far": ["b", "a"]}, "pairs"),
    ],
)
def test_why_a_row_asks_nothing(row, why):
    with pytest.raises(BadQuestion, match=f"^row 0: .*{why}"):
        asked(row)


def test_fields_stand_where_the_options_say():
    of_pick = EventOptions("pick", {"anchor": ("probe",), "shown": ("A", "B"), "chosen": ("said",)})
    assert asked({"probe": "a", "A": "b", "B": "c", "said": "A", "anchor": "z"}, of_pick) == [ABC]
    with pytest.raises(BadQuestion, match="shown: got nothing"):
        asked({"probe": "a", "A": "b", "B": None}, of_pick)
    sides = EventOptions(None, {"anchor": ("x",), "left": ("y",), "right": ("z",)})
    assert asked({"x": "a", "y": "b", "z": "c"}, sides) == [ABC]
    assert asked({"anchor": "1.0", "near": "2", "far": "3"}, text=True) == [four("1", "2", "3")]
    assert asked({"anchor": "1.0", "near": "2", "far": "3"}) == [four("1.0", "2", "3")]
    with pytest.raises(UnusableOptions):
        QuestionReader(EventOptions(None, {"nonsense": ("x",)}))


def test_rows_that_are_left_out_are_not_counted_and_those_that_ask_nothing_are():
    asking = QuestionReader(EventOptions(where={"kept": "yes", "day": "1"}))
    good, bad = {"anchor": "a", "left": "b", "right": "c"}, {"anchor": "a", "left": "b"}
    for row in (
        {**good, "kept": "yes", "day": 1},
        {**good, "kept": "no", "day": 1},
        {**good, "kept": "yes"},
        {**bad, "kept": "yes", "day": 1},
        {**good, "kept": "yes", "day": 1},
    ):
        asking.add(row, f"row {len(asking._rows)}")
    found = asking.questions()
    assert found.names == [ABC, NOTHING, ABC] and [row["kept"] for row in found.rows] == ["yes"] * 3
    assert found.note.startswith("1 of 3 rows ")
    asking.refuse("the line is no JSON", "row 9")
    with pytest.raises(BadQuestion, match="^row 1: right"):  # half of them: these are no questions at all
        asking.questions()
    several = QuestionReader(EventOptions())  # a row that asks two questions is one row
    for row in ({"type": "pick", "anchor": "a", "shown": ["b", "c", "d"], "chosen": ["b"]}, good, bad):
        several.add(row, "row")
    assert len(several.questions().names) == 5 and several.questions().note.startswith("1 of 3 rows ")
    assert QuestionReader(EventOptions()).questions() == ([], [], "")
    of_flag = EventOptions(where={"kept": "true"})
    assert asked({**good, "kept": True}, of_flag) == [ABC] and asked({**good, "kept": False}, of_flag) == []


# --- who answers --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published():
    """Objects 0 to 3 of which 3 was never asked about."""
    engine = Engine(("adds3", "triplet_counts"))
    engine.learn(decoded(np.array([[0, 1, 2]] * 5 + [[1, 0, 2], [3, 0, 1]]), 4))
    x = np.array([[0.0], [0.5], [2.0], [3.0]])
    arrays = {"X": x, "asked": np.array([True, True, True, False]), "lapse": np.array(0.2)}
    embedding = Artifact("embedding", "", 1, {}, 0, arrays, {"alpha": 0.0, "log_loss": 0.25})
    return Published(engine.snapshot(), {"embedding": embedding})


KNOWN, UNASKED, NEW, STRANGER = (four("0", "1", each) for each in ("2", "3", "new", "nobody"))


def test_the_best_model_answers_what_it_knows(published):
    found = answered(published, [KNOWN, UNASKED, NEW, STRANGER])
    of_embedding = 0.1 + 0.8 / (1 + np.exp(0.5**2 - 2.0**2))
    np.testing.assert_allclose(found.p, [of_embedding, np.nan, np.nan, np.nan])
    assert set(found.by) == {"embedding"} and re.search(r"^4.*\(held-out.*0.250\); 3", found.about)
    turned = answered(published, [(i, l, k, j) for i, j, k, l in (KNOWN, UNASKED, NEW)])
    np.testing.assert_allclose(turned.p, 1 - found.p[:3])


def test_a_model_that_is_asked_for_by_name_answers_alone(published):
    found = answered(published, [KNOWN, UNASKED, NEW], "embedding")
    assert np.isnan(found.p).tolist() == [False, True, True] and set(found.by) == {"embedding"}
    assert re.search(r"^3.*\(held-out.*0.250\); 2", found.about)


def test_two_pairs_that_share_an_object_are_the_triplets_question(published):
    found = answered(published, [KNOWN, ("1", "0", "2", "0"), ("1", "0", "0", "2"), ("0", "1", "2", "0")], "adds3")
    assert len(set(found.p)) == 1 and found.p[0] > 0.5
    assert np.isnan(answered(published, [("0", "1", "2", "3")], "adds3").p[0])


# --- calibration and scores, by their definitions -----------------------------------------------------------------


def test_a_calibration_is_the_optimum_of_what_it_says_it_minimises():
    """-sum t log sigma(w phi(x)) - log sigma(w phi(1)) - log sigma(-w phi(1)) + |w|^2 / 200."""
    rng = np.random.default_rng(0)
    x, times = rng.normal(0.4, 1, 300), rng.integers(1, 5, 300).astype(float)

    def objective(w):
        loss = lambda z: np.logaddexp(0, -z)  # noqa: E731
        one = features(np.ones(1))[0] @ w
        return times @ loss(features(x) @ w) + loss(one) + loss(-one) + 0.005 * (w**2).sum()

    best = minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(calibrated(x, times).weights, best.x, atol=2e-5)


def test_sums_that_are_not_kept_predict_nothing():
    engine = Engine(("adds3", "triplet_counts"))
    engine.learn(decoded(np.array([[0, 1, 2]]), 4))
    assert similarity_of(engine.snapshot(), "adds4") is None
    counted = engine.snapshot()._replace(counters={**engine.snapshot().counters, "quadruplets": 3})
    assert similarity_of(counted, "adds4") is None
    assert similarity_of(counted, "adds3") is not None


def test_a_participant_answers_by_their_own_weights_and_anybody_else_by_the_groups(published):
    held = published.artifacts["embedding"]
    own = {"worker_lapse": np.array([0.1, 0.4]), "worker_weights": np.array([[4.0], [1.0]])}
    own |= {"worker_group": np.array([0, -1]), **pack_names(["ann", "bob"])}
    report = {"alpha": 0.0, "log_loss": 0.25, "knowing_worker": {"log_loss": 0.125}}
    report["individual_differences"] = {"scale": 0.5}
    people = published._replace(artifacts={"embedding": held._replace(arrays={**held.arrays, **own}, report=report)})
    ann = answered(people, [KNOWN, NEW], participant="ann")
    np.testing.assert_allclose(ann.p, [0.05 + 0.9 / (1 + np.exp(0.5 * 4 * (0.5**2 - 2.0**2))), np.nan])
    assert states(ann.about, "0.125 … ann")
    bob = answered(people, [KNOWN], "embedding", participant="bob")
    np.testing.assert_allclose(bob.p, 0.2 + 0.6 / (1 + np.exp(0.5**2 - 2.0**2)))
    assert "bob" in bob.about and "ann" not in bob.about
    stranger = answered(people, [KNOWN], participant="eve")
    np.testing.assert_array_equal(stranger.p, answered(people, [KNOWN], "embedding").p)
    assert "the group's weights" in stranger.about and "0.250" in stranger.about
    with pytest.raises(NoModel, match="adds3"):
        answered(people, [KNOWN], "adds3", participant="ann")
