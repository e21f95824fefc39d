"""What the figures of learning online are made of, on small worlds: the benchmarks measure what they say."""

import numpy as np

from tests.benchmarks import confidence, forgetting, learning_online, river_curves
from tests.conftest import ROOT


def test_forgetting_costs_before_a_change_and_wins_after_it(monkeypatch):
    monkeypatch.setattr(forgetting, "SIZE", 60_000)
    monkeypatch.setattr(forgetting, "MEMORIES", (3_000, 10_000))
    monkeypatch.setattr(forgetting, "OBJECTS", 30)
    at, found = forgetting.curves(forgetting.made(1 / 3, 0))
    assert found.shape == (len(forgetting.methods()), len(at), 2) and at[-1] == 55_000
    name = {each: i for i, (each, _, _) in enumerate(forgetting.methods())}
    before, end = list(at).index(25_000), -1
    for recent in ("half-life 3,000", "window 3,000"):
        assert found[name[recent], before, 0] < found[name["all"], before, 0] - 0.02
    for recent in ("half-life 10,000", "window 10,000"):
        assert found[name[recent], end, 0] > found[name["all"], end, 0] + 0.02
        assert found[name[recent], end, 1] > found[name["all"], end, 1] + 0.04  # about those that moved
    lines = forgetting.table(
        "made", np.arange(5_000, 205_000 + 200_000, 5_000), np.full((len(name), 80, 2), 0.7), 200_000
    )
    assert len(lines) == 4 + len(name) + 1 and "not in this stream" not in "".join(lines)


def test_reliability_is_of_single_answers():
    rng = np.random.default_rng(0)
    said = rng.uniform(0.5, 1, 50_000)
    bins = confidence.binned(said, (rng.random(50_000) < said).astype(float), np.linspace(0.5, 1, 11))
    sure = confidence.binned(said, (rng.random(50_000) < said - 0.1).astype(float), np.linspace(0.5, 1, 11))
    assert bins.answers.sum() == 50_000 and confidence.off(bins) < 0.02 and 0.08 < confidence.off(sure) < 0.12
    assert confidence.off(confidence.made_majorities()) < 0.01


def test_every_point_has_its_module_and_figure():
    assert sorted(learning_online.POINTS) == list(range(1, 8))
    for module, _, _, drawn in learning_online.POINTS.values():
        text = (ROOT / "tests" / "benchmarks" / f"{module}.py").read_text()
        assert (drawn in text or module == "asking") and "def main()" in text  # asking is told the figure's path


def test_a_model_of_river_is_given_the_same_question():
    x = {"anchor": "b", "left": "a", "right": "c"}
    assert river_curves.pairs(x) == {("a", "b"): 1.0, ("b", "c"): -1.0}
    stream = [("a", "b", "c")] * 90
    at, total, recent, _ = river_curves.curve(river_curves.models()["adds3"](), stream, 90)
    assert at[-1] == 90 and abs(np.dot(recent, np.diff([0, *at])) - 90 * total[-1]) < 1e-6
