"""The table of models: who stands in it, in what order, and which figures are left empty, counted by hand."""

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.exports.models import MIN_NEW_PARTICIPANTS, fits, table
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published


def made(kind, log_loss, sequence=3, seed=0, **report):
    told = {"held_out": "judgements", "log_loss": log_loss, "accuracy": 0.7, "standard_error": 0.01} | report
    return Artifact(kind, "", sequence, {}, seed, {}, told)


def published(*artifacts, seconds=()):
    snapshot = Engine(("triplet_counts",), False).snapshot()
    return Published(snapshot, {each.kind: each for each in artifacts}, seconds=dict(seconds))


COUNTED = {"k1": {"log_loss": 0.55, "accuracy": 0.66}, "chance": {"log_loss": None, "accuracy": 0.5}}
NOTED = {"models": COUNTED, "snapshot": 3, "seed": 0}


def test_the_least_log_loss_comes_first_then_those_that_say_none():
    state = published(
        made("embedding", 0.5), made("kernel_learning", None), made("spectral", 0.6), seconds={"embedding": 1.5}
    )
    found = table(state, NOTED)
    assert [row["model"] for row in found] == ["embedding", "k1", "spectral", "chance", "kernel_learning"]
    assert [row["seconds"] for row in found] == [1.5, None, None, None, None]
    assert [row["log_loss"] for row in found] == [0.5, 0.55, 0.6, None, None]
    assert found[0]["accuracy"] == 0.7
    assert found[0]["standard_error"] == 0.01
    assert found[0]["ceiling"] is None


def test_who_says_nothing_of_what_was_held_out_has_no_row():
    quiet = made("spectral", 0.1)._replace(report={"log_loss": 0.1})
    other = made("hierarchy", 0.1)._replace(report={"held_out": "judgements"})
    assert [row["model"] for row in table(published(made("embedding", 0.5), quiet, other), NOTED)] == [
        "embedding",
        "k1",
        "chance",
    ]


@pytest.mark.parametrize("people", [None, 0, MIN_NEW_PARTICIPANTS - 1, MIN_NEW_PARTICIPANTS, MIN_NEW_PARTICIPANTS + 1])
def test_the_accuracy_of_a_few_people_is_no_figure(people):
    by = {"accuracy": 0.6, "standard_error": 0.1, "clusters": people}
    row = table(published(made("embedding", 0.5, by_worker=by, ceiling={"others": 0.8, "at_most": 0.9})), NOTED)[0]
    assert row["accuracy_by_worker"] == (0.6 if people and people >= 5 else None) and row["workers"] == people
    assert (row["ceiling"], row["ceiling_at_most"], row["standard_error_by_worker"]) == (0.8, 0.9, 0.1)


def test_what_was_noted_counts_for_the_answers_that_are_reported_on_alone():
    state = published(made("embedding", 0.5, seed=7), made("kernel_learning", 0.4, seed=7), made("spectral", 0.3))
    assert fits(state, {"snapshot": 3, "seed": 7})  # the seed that most have
    for noted in ({"snapshot": 4, "seed": 7}, {"snapshot": 3, "seed": 0}, {}, {"snapshot": 3}):
        assert not fits(state, noted)
    of_others = {"snapshot": 3, "seed": 7, "excluded": ["w1"]}  # who gave as many answers as those who are excluded now
    now = [state._replace(excluded=names) for names in ((), ("w1",), ("w2",))]
    assert [fits(each, of_others) for each in now] == [False, True, False]
    other = {**NOTED, "seed": 7, "models": {**COUNTED, "oracle": {"log_loss": 0.0}}}
    assert "k1" not in [row["model"] for row in table(state, other)]  # not what it writes itself: made anew, of nothing
    assert "k1" in [row["model"] for row in table(state, {**NOTED, "seed": 7})]


def test_a_state_without_models_has_nothing_to_export():
    bare = published()
    assert table(bare) == []
    with pytest.raises(exports.NothingToExport, match="refit --state DIR kernel_learning"):
        exports.contents("models", bare)
    arrays = exports.contents("models", published(made("embedding", 0.5), made("kernel_learning", None)))
    held = arrays["models"].arrays
    assert held["model"].tolist() == ["embedding", "kernel_learning"] and np.isnan(held["log_loss"][1])
    assert held["accuracy"].tolist() == [0.7, 0.7] and np.isnan(held["seconds"]).all()
