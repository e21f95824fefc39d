"""The online estimator in river's conventions: every check of river's on comparisons, and what it says against the
engine."""

import functools
import pickle

import numpy as np
import pytest
from river import checks, evaluate, metrics

from stream_engine.data.comparisons import InvalidEvent, Triplet
from stream_engine.estimators import ComparisonClassifier, as_stream
from stream_engine.state.engine import Engine
from tests.conftest import ROOT
from tests.support.generators import planted_triplets

MODEL = ComparisonClassifier(dimensions=2)
EXCLUDED = {  # river's check -> why it cannot hold for comparisons; each is seen to fail for that reason
    "check_emerging_features": "a question without its anchor, left or right is none: it is refused, not guessed",
    "check_disappearing_features": "the same",
    "check_radically_disappearing_features": "the same",
}


def triplets(size: int, flip: float = 0.1, seed: int = 0) -> list[Triplet]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 2))
    return [Triplet(*(f"o{i}" for i in row)) for row in planted_triplets(rng, points, size, flip).tolist()]


class Stream:
    """A data set that can be read again and again, as river's are."""

    def __init__(self, size: int, kind=bool):
        self.rows = [(x, kind(y)) for x, y in as_stream(triplets(size))]

    def __iter__(self):
        return iter([(dict(x), y) for x, y in self.rows])


def on_comparisons(check):
    """The same check with comparisons for river's rows of numbers."""
    if not isinstance(check, functools.partial):
        return [check]
    longer = 400 if check.__name__ == "check_bounded_memory_growth" else 60
    return [functools.partial(check.func, dataset=Stream(longer, kind)) for kind in (bool, np.bool_)]


CHECKS = {check.__name__: check for check in checks.yield_checks(ComparisonClassifier())}


@pytest.mark.parametrize("name", CHECKS)
def test_rivers_checks(name):
    for check in on_comparisons(CHECKS[name]):
        if name in EXCLUDED:
            with pytest.raises(InvalidEvent, match="object"):
                check(MODEL.clone())
        else:
            check(MODEL.clone())


def test_the_checks_as_river_runs_them():
    model = ComparisonClassifier()
    on_rows = {name for name, check in CHECKS.items() if isinstance(check, functools.partial)}
    assert model._unit_test_skips() == on_rows, "only what feeds rows of numbers is skipped there"
    assert len(CHECKS) - len(on_rows) >= 14


def test_turning_a_question_round_turns_the_answer_round():
    model = MODEL.clone()
    for x, y in as_stream(triplets(90)):
        turned = x | {"left": x["right"], "right": x["left"]}
        assert model.predict_one(x) != model.predict_one(turned)
        assert model.predict_proba_one(x)[True] == pytest.approx(model.predict_proba_one(turned)[False])
        model.learn_one(x, y)
    one, other = model.clone(), model.clone()
    for x, y in as_stream(triplets(90)):  # the same answers, said the other way round
        one.learn_one(x, y)
        other.learn_one(x | {"left": x["right"], "right": x["left"]}, not y)
    assert all(one.predict_proba_one(x) == other.predict_proba_one(x) for x, _ in as_stream(triplets(30, seed=5)))


def test_the_embedding_depends_on_the_seed():
    stream = list(as_stream(triplets(60)))
    models = [ComparisonClassifier(seed=seed) for seed in (0, 0, 1)]
    for model in models:
        for x, y in stream:
            model.learn_one(x, y)
    one, again, other = ([model.predict_proba_one(x)[True] for x, _ in stream] for model in models)
    assert one == again != other


def test_it_learns_and_its_probabilities_are_calibrated():
    stream = list(as_stream(triplets(1500, flip=0.1)))
    score = evaluate.progressive_val_score(stream, ComparisonClassifier(), metrics.Accuracy() + metrics.LogLoss())
    assert score[0].get() > 0.75 and score[1].get() < 0.66


def test_the_engine_inside_counts_like_any_other():
    model, engine = ComparisonClassifier(), Engine(("adds3", "triplet_counts"), guard=False)
    said = triplets(120)
    for x, y in as_stream(said):
        model.learn_one(x, y)
    engine.learn_many(said)
    mine, theirs = model.engine.snapshot(), engine.snapshot()
    assert mine.objects == theirs.objects and mine.counters["triplets"] == 120
    assert all(np.array_equal(mine.arrays[name], theirs.arrays[name]) for name in theirs.arrays)


def test_a_pickled_model_goes_on_like_the_other():
    model = MODEL.clone()
    stream = list(as_stream(triplets(130)))
    for x, y in stream[:70]:
        model.learn_one(x, y)
    again = pickle.loads(pickle.dumps(model))
    for x, y in stream[70:]:
        assert model.predict_proba_one(x) == again.predict_proba_one(x)
        model.learn_one(x, y)
        again.learn_one(x, y)


@pytest.mark.parametrize(
    "x, says",
    [
        ({"anchor": "a", "left": "b"}, r"x\['right'\]"),
        ({"anchor": 1.5, "left": "b", "right": "c"}, r"x\['anchor'\]: got 1.5, expected"),
        ({"anchor": "a", "left": "", "right": "c"}, r"x\['left'\]: got '', expected"),
        ({"anchor": 1, "left": "1", "right": "c"}, "anchor '1'.*'1'.*'c'"),
    ],
)
def test_what_is_no_question(x, says):
    model = ComparisonClassifier()
    for call in (model.predict_one, model.predict_proba_one, lambda x: model.learn_one(x, True)):
        with pytest.raises(InvalidEvent, match=says):
            call(x)
    assert model.engine.counters["events"] == 0


def test_libraries_are_loaded_on_use():
    import subprocess
    import sys

    code = "import sys, stream_engine.estimators; print([m for m in ('river', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
