"""Every figure of how well something predicts is of answers, or labels, that neither fitted nor chose.

`SOURCES` are all paths that report such figures; each report is searched for them by name, and one that neither
`CHANCE` nor `BESIDE` registers fails. Each runs in worlds where nothing can be predicted: answers are coins (`noise`),
or each coin is told twice in one session (`copied`) or in another one by the same participant (`again`: for figures of
participants who were never heard), and labels are shuffled everywhere, also where answers tell of places (`places`: for
figures of labels). A figure of what was fitted is far above chance, one of what chose the best of several a little:
pooled over worlds both show.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score

from stream_engine import estimators
from stream_engine.api.online import ComparisonClassifier, as_stream
from stream_engine.boosting import nested
from stream_engine.evaluation.count_models import count_figures
from stream_engine.evaluation.hash_split import name_hashes, object_folds
from stream_engine.evaluation.observer import Observer
from stream_engine.evaluation.participants import check_participants
from stream_engine.evaluation.worker_reliability import REPORTING_FOLDS
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.refits import REFITS, beta_choice, refit_module
from stream_engine.report.material import material
from stream_engine.report.sections import learning
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.refits.laws import PARAMS
from tests.support.learned import snapshot_of_rows

N, ANSWERS, WIDE, WORKERS = 12, 480, 1200, 12
SLOW = ("embedding", "learning curve", "embedding with weights", "ComparisonKernel", "partial_order_embedding",
        "ComparisonEmbedding")  # fmt: skip
SEEDS = dict.fromkeys(SLOW, 2) | {"learning curve": 1}  # worlds; else six
OFF = 0.35  # standard deviation of an answer's log loss, at most
EACH = ANSWERS / WORKERS
MEASURE = re.compile("accuracy|error|loss|agree|right|score|calibration|ceiling")
CHANCE = {  # the end of the path to a share of right answers -> beside it, of how many; "": of all; below, its log loss
    "by_worker.accuracy": "comparisons",
    "knowing_worker.accuracy": "comparisons",
    "own.accuracy": "comparisons",
    "one_map.accuracy": "comparisons",
    "picture.accuracy": "",
    "dimensions_tested.accuracy.*": "",
    "held_out.accuracy": "objects",
    "test_part.accuracy": "objects",
    "models.*.accuracy": "objects",
    "rows.*.accuracy": "answers",
    "triplet_accuracy": "held_out_responses",
    "predictor_agreement": "predictor_tested_on",
    "total.accuracy": "tested",
    "accuracy": "held_out_comparisons",
    "right": "of",
}
BESIDE = {
    "error": "one less the accuracy",
    "*standard_error": "tested in test_chance.py",
    "*_error": "tested in test_chance.py",
    "*calibration_error": "of the answers that the log loss is of",
    "*abstained": "a share of all",
    "theorem*": "bounds of what was fitted",
    "*fitted*": "of what was fitted, and says so",
    "train_error": "of what was fitted, and says so",
    "tried.*": "of what chose, and says so",
    "*ceiling*": "of people, not of a model",
    "accuracy_10_50_90.*": "an estimate of participants",
    "agreement_with_others": "of people",
    "predictor_agreement_that_chose": "of what chose, and says so",
    "*majority_class_accuracy": "below one half: who is held out is missed among the others",
    "odd_one_out_*": "chance is one third: tests/refits/test_dimensions.py",
    "*.rolling.*": "the last of `total`",
    "*.reliability.*": "parts of `total`",
    "drift.*": "the last of `total`",
}
QUICK = {"triplet_boost": {"rounds": 300}, "partial_order_embedding": {"tolerance": 1e-2}}
PEOPLE = ("by_worker.accuracy", "predictor_agreement", "right")  # of participants who were never heard
LABELS = ("held_out.accuracy", "test_part.accuracy", "models.*.accuracy", "right")


class World(NamedTuple):
    """Answers as rows (anchor, near, far) with their participants, and labels."""

    snapshot: Snapshot
    rows: np.ndarray
    who: np.ndarray
    label: np.ndarray
    place: np.ndarray
    seed: int


@cache
def world(kind: str, seed: int, answers: int = ANSWERS) -> World:
    rng = np.random.default_rng([seed, 77])
    rows = np.array([rng.permutation(N)[:3] for _ in range(answers // (1 if kind in ("noise", "places") else 2))])
    place = rng.normal(size=(N, 2))
    if kind == "places":
        near, far = (((place[rows[:, 0]] - place[rows[:, c]]) ** 2).sum(axis=1) for c in (1, 2))
        rows = np.where((near > far)[:, None], rows[:, [0, 2, 1]], rows)
    who = np.arange(len(rows)) % WORKERS
    times = np.zeros(len(rows))
    if kind in ("copied", "again"):
        rows, who = np.tile(rows, (2, 1)), np.tile(who, 2)
        times = np.repeat([0.0, 1.0 if kind == "again" else 0.0], len(who) // 2)
    snapshot = snapshot_of_rows(rows, who, times)
    label = rng.permutation(np.arange(N) % 2)
    labels = {f"o{i}": "xy"[each] for i, each in enumerate(label.tolist())}
    return World(snapshot._replace(labels=labels), rows, who, label, place, seed)


def refitted(kind: str, **more: Any):
    def report(world: World) -> dict[str, Any]:
        module = refit_module(kind)
        params = {**PARAMS.get(kind, {}), **QUICK.get(kind, {}), **more}
        return module.refit(world.snapshot, msgspec.convert(params, module.Params), world.seed).report

    return report


def by_counts(world: World) -> dict[str, Any]:
    return {name: told.report() for name, told in count_figures(world.snapshot, world.seed).items() if name != "chance"}


def of_participants(world: World) -> dict[str, Any]:
    found = check_participants(Published(world.snapshot, {}), False)
    return {"right": float(found.accuracy.mean()), "of": len(world.rows)}


def learning_curve(world: World) -> dict[str, Any]:
    module = refit_module("embedding")
    made = module.refit(world.snapshot, module.Params(dimensions=2, kernel="ste", ridge=0.3, lapse="none"), world.seed)
    steps, _, right = learning.curve(material(Published(world.snapshot, {"embedding": made})), made)
    told = [{"right": each.figures.accuracy, "of": each.figures.comparisons} for each in steps]
    return {"steps": told, "last": {"right": float(right.mean()), "of": len(right)}}


def progressive(world: World) -> dict[str, Any]:
    half = len(world.rows) // 2
    engine, observer = Engine(("adds3", "adds4", "triplet_counts"), False), Observer(0.2)
    for rows in (world.rows[:half], world.rows[half:]):
        text = "\n".join(json.dumps(dict(zip(("anchor", "near", "far"), map(str, row)))) for row in rows.tolist())
        decoded = decoder("json", EventOptions())(text.encode())
        learned = engine.learn(decoded)
        if rows is not world.rows:
            observer.observe(learned, {})
        observer.serve(engine.snapshot())
    observer.test()
    return observer.figures()


def by_estimator(name: str):
    def score(world: World) -> dict[str, Any]:
        if name == "TripletBoostClassifier":
            model = estimators.TripletBoostClassifier(world.rows, rounds=100, folds=0)
            share = cross_val_score(model, np.arange(N)[:, None], world.label, cv=N // 2)
            return {"right": float(share.mean()), "of": N}
        model, rows = getattr(estimators, name)(), world.rows
        share = cross_val_score(model, rows, np.ones(len(rows)), groups=world.who, cv=GroupKFold(4))
        return {"right": float(share.mean()), "of": len(rows)}

    return score


def online(world: World) -> dict[str, Any]:
    model, right = ComparisonClassifier(), []
    for x, y in as_stream([tuple(row) for row in world.rows.tolist()], seed=world.seed):
        right.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    return {"right": float(np.mean(right)), "of": len(right)}


ESTIMATORS = ("OrdinalEmbedding", "ComparisonKernel", "ComparisonEmbedding", "TripletBoostClassifier")
SOURCES = {
    **{kind: refitted(kind) for kind in REFITS},
    "embedding with weights": refitted("embedding", dimensions=3, kernel="ste", ridge=0.3, participants="weights"),
    "dimensions of little sparsity": refitted("dimensions", sparsity=0.3, dimensions=6),
    "counts": by_counts,
    "participants": of_participants,
    "learning curve": learning_curve,
    "progressive": progressive,
    **{name: by_estimator(name) for name in ESTIMATORS},
    "ComparisonClassifier": online,
}
OF_LABELS = ("triplet_boost", "classify", "TripletBoostClassifier")
IN_ORDER = ("progressive", "ComparisonClassifier")  # these may know what was told before
OF_PEOPLE = ("reliability", "kernel_learning", "partial_order_embedding", "embedding with weights", "counts",
             "participants", *ESTIMATORS[:3])  # fmt: skip
WORLDS = {"noise": [*SOURCES], "copied": [name for name in SOURCES if name not in (*IN_ORDER, *SLOW[:2])],
          "again": OF_PEOPLE, "places": OF_LABELS}  # fmt: skip
ONLY = {"again": PEOPLE, "places": LABELS}  # of what is told in these worlds


def leaves(value: Any, *path: str) -> Iterator[tuple[str, Any]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
    yield from [(".".join(path), value)] if inside is None else chain(*(leaves(v, *path, str(k)) for k, v in inside))


def matches(path: str, patterns) -> str | None:
    return next((each for each in patterns if fnmatchcase(path, each) or fnmatchcase(path, f"*.{each}")), None)


def figure_of(path: str) -> str | None:
    """Which of `CHANCE` it is."""
    return None if matches(path, BESIDE) else matches(path.replace("log_loss", "accuracy"), CHANCE)


@cache
def reports(name: str, kind: str) -> list[dict[str, Any]]:
    """By path, what the source tells of each world."""
    answers = WIDE if name.startswith("dimensions") else ANSWERS
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(beta_choice, "MULTIPLES", (2.0, 8.0))
        patched.setattr(learning, "SHARES", (0.3, 1.0))
        return [dict(leaves(SOURCES[name](world(kind, seed, answers)))) for seed in range(SEEDS.get(name, 6))]


def pooled(name: str, kind: str) -> dict[str, tuple[float, float]]:
    """Path of each figure -> its mean over worlds, and of how many answers or labels that is."""
    sums: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for report in reports(name, kind):
        for path, value in report.items():
            if isinstance(value, float) and (end := figure_of(path)) and end in ONLY.get(kind, CHANCE):
                beside = f"{path.rpartition('.')[0]}.{CHANCE[end]}".lstrip(".")
                many = report[beside if CHANCE[end] else "held_out_comparisons"]
                sums[path] += np.array([value, 1.0]) * many * (EACH if end == "predictor_agreement" else 1)
    return {path: (total / many, many) for path, (total, many) in sums.items()}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in WORLDS.items() for name in names])
def test_what_cannot_be_foretold_is_not(kind, name):
    """Shares of right answers are one half, within three standard errors, and no log loss is below a coin's."""
    for path, (mean, many) in pooled(name, kind).items():
        unit = np.sqrt((2 if kind in ("copied", "again") else 1) / many)  # two copies are one answer
        if path.endswith("log_loss"):
            assert mean > np.log(2) - 3 * OFF * unit, (path, mean, many)
        else:
            assert abs(mean - 0.5) < 3 * 0.5 * unit, (path, mean, many)


@pytest.mark.parametrize("name", SOURCES)
def test_every_figure_is_registered(name):
    """What is called by such a name is tested above, or `BESIDE` says why not."""
    for report in reports(name, "noise"):
        for path, value in report.items():
            if MEASURE.search(path) and isinstance(value, int | float | None):
                assert figure_of(path) or matches(path, BESIDE), path


def test_every_registered_figure_is_told():
    paths = [path for name in SOURCES for path in pooled(name, "noise")]
    assert {figure_of(path) for path in paths} == CHANCE.keys()
    assert all(any(matches(path, [each]) for name in SOURCES for path in reports(name, "noise")[0]) for each in BESIDE)
    assert {*ESTIMATORS, "ComparisonClassifier", "ComparisonClustering", "as_stream"} == {*estimators.__all__}


def test_answers_that_are_held_out_move_nothing_but_their_figure():
    """These are turned round: what chose is as it was, and what was right is wrong."""
    one, figure = world("places", 0), "predictor_agreement"
    out = (
        object_folds(name_hashes([f"w{i}" for i in range(WORKERS)], 0), REPORTING_FOLDS)[one.who] == REPORTING_FOLDS - 1
    )
    rows = np.where(out[:, None], one.rows[:, [0, 2, 1]], one.rows)
    tell = refitted("reliability")
    then, now = tell(one), tell(one._replace(snapshot=snapshot_of_rows(rows, one.who, 0 * one.who)))
    assert 0 < out.mean() < 1 and then[figure] != 0.5
    assert now[figure] == pytest.approx(1 - then[figure]) and now.get("tried") == then.get("tried")


def test_classes_of_which_nothing_is_known_have_the_shares_of_the_others():
    """By the definition: of the labels outside the fold, each counted half a time more."""
    rng = np.random.default_rng(3)
    labels = (rng.random(43) < 0.3).astype(int)
    silent = nested.Model(
        "silent", (1.0,), lambda _, train, asked: (np.zeros((len(asked), 2)), np.full(len(asked), True))
    )
    found = nested.choose([silent], labels, 2, np.arange(43), rng.random(43), 300, 2000, lambda *_, **__: None)
    others = [labels[found.fold != fold] for fold in found.fold]
    share = np.array([((each == mine).sum() + 0.5) / (len(each) + 1) for each, mine in zip(others, labels)])
    assert found.best.log_loss == pytest.approx(-np.log(share).mean()) and found.best.abstained == 1
    assert found.best.accuracy == found.majority == (share > 0.5).mean()


def test_a_leak_would_show():
    """Of answers of participants who are heard again some other time, the counts know more; and of those it was fitted
    to, an embedding."""
    report = pooled("counts", "again")
    assert not any(path.endswith(".accuracy") and "worker" not in path for path in report)
    told = [by_counts(world("again", seed)) for seed in range(3)]
    assert np.mean([each["adds3"]["accuracy"] for each in told]) > 0.5 + 3 * 0.5 * np.sqrt(2 / (3 * ANSWERS))
    model = estimators.OrdinalEmbedding(n_components=2, kernel="ste", ridge=0.3)
    rows = [world("noise", seed).rows for seed in range(3)]
    assert np.mean([model.fit(each).score(each) for each in rows]) > 0.5 + 3 * 0.5 / np.sqrt(3 * ANSWERS)
