"""What the estimators and `kernels` return for small studies: every attribute and the answer of every method."""

import warnings

import numpy as np
import pandas
import pytest

from stream_engine import estimators, kernels
from stream_engine.data.triplet_columns import columns_from_triplets
from tests.support.approved import number, outline, unchanging
from tests.support.approved_answers import by_distance, coin, picks, places

PEOPLE = {"ann": (170, by_distance(1.0)), "bob": (120, by_distance(1.0, 2.0, 0.3)), "cho": (60, coin)}
EVENTS = picks(places((4, 3, 2), 6), PEOPLE, 61, again=0.2)
ROWS = [(event["anchor"], event["chosen"][0], *({*event["shown"]} - {*event["chosen"]})) for event in EVENTS]
WHO = [event["worker"] for event in EVENTS]
Y = np.where(np.arange(len(ROWS)) % 3 == 1, -1, 1)  # whether the first or the second of a row was chosen
X = [row if y > 0 else (row[0], row[2], row[1]) for row, y in zip(ROWS, Y)]
WEIGHTS = 1 + np.arange(len(ROWS)) % 5 % 3
NEW = [("bird0", "bird1", "fish2"), ("fish1", "tree0", "bird2"), ("tree1", "fish0", "tree0"), ("bird0", "fish3", "?")]
FOUR = [(a, b, a, c) if number % 4 else (b, a, c, a) for number, (a, b, c) in enumerate(ROWS)]
FOUR += [(a, b, c, d) for (a, b, _), (c, _, d) in zip(ROWS[::3], ROWS[1::3]) if len({a, b, c, d}) == 4]
NEW_FOUR = [(*NEW[0][:2], "fish1", "tree0"), ("fish0", "fish1", "tree1", "tree0"), ("?", "fish1", "tree1", "tree0")]
SKIPPED = {
    "error",
    "accuracy",
    "standard_error",
    "log_loss",
    "calibration_error",
    "probability_slope",
    "iterations",
    "evaluations",
    "slope",
    "gap",
    "bound",
}  # how a solver came there
COUNTED = {"columns_", "booster_"}  # arrays of their own


def returned(model, new=NEW, **more) -> list[str]:
    """The attributes of a fitted estimator, and what its methods say of questions."""
    lines = []
    for name, value in sorted(vars(model).items()):
        if name.endswith("_") and not name.startswith("_") and name not in COUNTED:
            lines += _said(name, value)
    for name in ("predict", "predict_proba", "votes"):
        if hasattr(model, name):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                lines += _said(name, getattr(model, name)(new))
            lines += [f"  ! {each.message}" for each in warned]
    if hasattr(model, "transform"):
        values = model.transform()
        same = [name for name in ("embedding_", "kernel_") if getattr(model, name, None) is values]
        lines += [f"transform: {same[0]}"] if len(same) == 1 else _said("transform", values)
        lines += _said("get_feature_names_out", model.get_feature_names_out())
    return [*lines, *(line for name, value in more.items() for line in _said(name, value))]


def _said(name: str, value) -> list[str]:
    if isinstance(value, dict):
        return [f"{name}:", *outline({key: each for key, each in value.items() if key not in SKIPPED}, 1)]
    if isinstance(value, pandas.DataFrame):
        return [f"{name}:", f"  {' | '.join(map(str, value.columns))}",
                *(f"  {index}: {number(row)}" for index, row in zip(value.index, value.to_numpy()))]  # fmt: skip
    array = np.asarray(value)
    if array.ndim < 2:
        return [f"{name}: {number(array)}"]
    return [f"{name} {array.shape}:", *(f"  {number(_settled(row))}" for row in array)]


def _settled(row: np.ndarray) -> np.ndarray:
    """A row in which what is zero but for rounding is zero."""
    return np.where(np.abs(row) < 1e-9, 0.0, row) if row.dtype.kind == "f" else row


def embedding() -> list[str]:
    model = estimators.OrdinalEmbedding(2, ridge=0.5, kernel="ste", participants="alike")
    model.set_output(transform="pandas").fit(X, Y, WEIGHTS, WHO)
    proba, score = model.predict_proba(NEW[:3], groups=["ann", "zoe", "cho"]), model.score(X, Y, groups=WHO)
    return returned(model, of_people=proba, score=model.score(X, Y), score_of_people=score,
                    score_by_weight=model.score(X, Y, WEIGHTS))  # fmt: skip


def embedding_of_pairs() -> list[str]:
    model = estimators.OrdinalEmbedding(1, ridge=2.0, kernel="t-ste", lapse=False).fit(FOUR)
    return returned(model, NEW_FOUR, score=model.score(FOUR))


def kernel(name: str) -> list[str]:
    model = estimators.ComparisonKernel(name).fit(X, Y, WEIGHTS)
    return returned(model, score=model.score(X, Y), score_by_weight=model.score(X, Y, WEIGHTS))


def kernel_of_people() -> list[str]:
    model = estimators.ComparisonKernel(random_state=5).fit(X, Y, groups=WHO)
    assert np.allclose(model.kernel_, model.kernel_.T)
    return returned(model, score=model.score(X, Y))


def kernel_learning() -> list[str]:
    model = estimators.ComparisonEmbedding(2, lambda1=0.02, tolerance=1e-5).fit(X, Y, WEIGHTS)
    whole = estimators.ComparisonEmbedding(None, loss="hinge", lambda1=0.1, tolerance=1e-5).fit(X, Y)
    return [*returned(model, score=model.score(X, Y)), "", "## the whole kernel, hinge", *returned(whole)]


def clustering() -> list[str]:
    lines = []
    for how, data in (
        ({"n_clusters": 3}, (X, Y, WEIGHTS)),
        ({"similarity": "k1"}, (X, Y)),
        ({"n_clusters": 4, "max_iterations": 1}, (X, Y)),  # ends before it is certain
        ({"n_clusters": 2}, (FOUR,)),
    ):
        model = estimators.ComparisonClustering(**how).fit(*data)
        lines += [f"{how}, {len(data[0][0])} columns", *(f"  {line}" for line in returned_of_groups(model)), ""]
    return lines


def returned_of_groups(model) -> list[str]:
    return [line for name, value in sorted(vars(model).items()) if name.endswith("_") for line in _said(name, value)]


def boosting() -> list[str]:
    given = {name: name[:4] for name in sorted({row[0] for row in ROWS}) if name not in ("bird0", "fish2")}
    objects, classes = np.array([[name] for name in given]), [*given.values()]
    model = estimators.TripletBoostClassifier((X, Y), rounds=60, folds=3, random_state=2).fit(objects, classes)
    sure = estimators.TripletBoostClassifier(X, rounds=20, folds=0).fit(objects, classes)
    hidden = [["bird0"], ["fish2"], ["tree1"]]
    assert not hasattr(sure, "predict_proba")
    lines = returned(model, hidden, score=model.score(hidden, ["bird", "fish", "bird"]))
    return [*lines, "", "## without folds", *returned(sure, hidden)]


def classifier() -> list[str]:
    model, lines = estimators.ComparisonClassifier(dimensions=2, seed=3), []
    for at, (question, left) in enumerate(estimators.as_stream(ROWS, seed=1)):
        if at % 70 == 69:
            lines.append(f"{at}: {question} {left} {number(list(model.predict_proba_one(question).items()))}")
        model.learn_one(question, left)
    for anchor, left, right in NEW:
        question = {"anchor": anchor, "left": left, "right": right}
        probabilities = number(list(model.predict_proba_one(question).items()))
        lines.append(f"{anchor} {left} {right}: {model.predict_one(question)} {probabilities}")
    return [*lines, *outline({key: each for key, each in model.engine.counters.items() if key != "guard"})]


def of_counts() -> list[str]:
    """The functions of `kernels`, of six objects one of which nobody was asked about."""
    names = ["bird0", "bird1", "fish0", "fish1", "tree0"]
    rows = [[names.index(name) for name in row] for row in ROWS if {*row} <= {*names}]
    columns, lines = columns_from_triplets(np.array(rows), 6), []
    for name in ("k1", "k2"):
        lines += _said(name, getattr(kernels, name)(columns))
    for name in ("features1", "features2"):
        features = getattr(kernels, name)(columns)
        lines += _said(name, features.toarray() if hasattr(features, "toarray") else features)
    lines += _said("eigenvalues", kernels.eigenpairs(kernels.features1(columns), 3)[0])
    return [*lines, *_said("shift", kernels.shift(kernels.k1(columns)[:5, :5])[0])]


WRONG = {
    "one column": ([["a"], ["b"]], None),
    "yes and no": (np.array([[True, "b", "c"]], object), None),
    "parts": ([[0.5, 1.0, 2.0]], None),
    "an object twice": ([["a", "a", "c"], ["a", "b", "c"]], None),
    "an empty name": (np.array([["a", "b", ""]], object), None),
    "too few answers": ([["a", "b", "c"], ["b", "a", "c"]], [1]),
    "answers that are none": ([["a", "b", "c"], ["b", "a", "c"]], [1, 2]),
    "nothing": ([], None),
    "wrong weights": ([["a", "b", "c"]], None, [-1]),
    "wrong participants": ([["a", "b", "c"]], None, None, ["p", "q"]),
    "four of them for k1": ([["a", "b", "c", "d"]], None),
}


def refused() -> list[str]:
    """What is said of comparisons that cannot be used."""
    lines = []
    for name, data in WRONG.items():
        model = estimators.ComparisonKernel("k1") if "k1" in name else estimators.OrdinalEmbedding(1, ridge=1.0)
        try:
            model.fit(*data)
            lines.append(f"{name}: taken")
        except (ValueError, TypeError) as error:
            lines.append(f"{name}: {type(error).__name__}: {error}")
    return lines


CASES = {
    "refused": refused,
    "embedding": embedding,
    "embedding of pairs": embedding_of_pairs,
    "k1": lambda: kernel("k1"),
    "k2": lambda: kernel("k2"),
    "kernel of people": kernel_of_people,
    "kernel learning": kernel_learning,
    "clustering": clustering,
    "boosting": boosting,
    "classifier": classifier,
    "counts": of_counts,
}


@pytest.mark.parametrize("name", CASES)
def test_returned(name, approved):
    assert unchanging("\n".join(CASES[name]())) == approved
