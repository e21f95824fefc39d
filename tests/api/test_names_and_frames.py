"""Estimators on names, any numbers and frames: what is learned does not depend on how objects are called."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import cross_val_score

from stream_engine.estimators import (
    ComparisonClustering,
    ComparisonEmbedding,
    ComparisonKernel,
    OrdinalEmbedding,
    TripletBoostClassifier,
)
from tests.support.generators import planted_triplets
from tests.support.individual_worlds import split
from tests.support.individual_worlds import world as differing

N = 9
MODELS = [
    ComparisonKernel("k1"),
    OrdinalEmbedding(2, kernel="ste", ridge=0.1),
    ComparisonEmbedding(2, lambda1=1.0),
    ComparisonClustering(3),
]


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    points = np.array([[0, 0], [6, 0], [0, 6]])[np.arange(N) % 3] + rng.normal(size=(N, 2))
    return planted_triplets(rng, points, 400), planted_triplets(rng, points, 60)


def learned(model):
    return model.labels_ if hasattr(model, "labels_") else model.transform()


CALLED = {  # how objects 0 ... 8 are called, in the order of their names
    "letters": np.array(list("abcdefghi"), object),
    "words": np.array([f"object {i}" for i in range(N)]),
    "large numbers": np.arange(N) * 1000 - 3000,
    "floats": np.arange(N) * 2.0,
}


@pytest.mark.parametrize("called", CALLED)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_names_change_nothing(model, called, world):
    triplets, test = world
    names = CALLED[called]
    plain = model.fit(triplets)
    wanted, said, p = learned(plain), plain.predict(test) if hasattr(plain, "predict") else None, None
    assert plain.objects_.tolist() == list(range(N))
    rows = names[triplets]
    frame = pd.DataFrame(rows, columns=["anchor", "near", "far"])
    mixed = frame.assign(rt=1.5)[["far", "rt", "near", "anchor"]]  # other columns, another order
    forms = [rows, rows.tolist(), frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), mixed]
    if model is not MODELS[0]:  # the quickest is given each form of all names; to the others, these take turns
        forms = [*forms, *forms][2 * list(CALLED).index(called) :][:2]
    for given in forms:
        fitted = type(model)(**model.get_params()).fit(given)
        assert fitted.objects_.tolist() == [int(n) if called == "floats" else n for n in names.tolist()]
        np.testing.assert_allclose(learned(fitted), wanted, atol=1e-6)
        if said is not None:
            assert np.array_equal(fitted.predict(names[test]), said) and fitted.score(names[test]) == plain.score(test)
            p = fitted.predict_proba(names[test]) if p is None else p  # who calibrates is drawn by names
            asked = pd.DataFrame(names[test], columns=["anchor", "left", "right"])
            np.testing.assert_array_equal(fitted.predict_proba(asked), p)


@pytest.mark.parametrize("model", MODELS[:3], ids=lambda model: type(model).__name__)
def test_frames_come_out_where_they_are_asked_for(model, world):
    rows = CALLED["letters"][world[0]]
    fitted = type(model)(**model.get_params()).fit(rows)
    columns = fitted.get_feature_names_out()
    assert columns.tolist() == (list("abcdefghi") if isinstance(model, ComparisonKernel) else ["axis_1", "axis_2"])
    frame = fitted.set_output(transform="pandas").transform(pd.DataFrame(rows))
    assert frame.index.tolist() == list("abcdefghi") and frame.columns.tolist() == columns.tolist()
    np.testing.assert_array_equal(frame, fitted._object_values())
    other = fitted.set_output(transform="polars").transform(rows)
    assert isinstance(other, pl.DataFrame)
    assert other.columns == columns.tolist()
    assert other.shape[0] == N
    assert isinstance(fitted.set_output(transform="default").transform(rows), np.ndarray)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_weight_says_how_often(model, world):
    triplets = world[0]
    times = np.random.default_rng(1).integers(0, 4, len(triplets))
    one = learned(type(model)(**model.get_params()).fit(triplets, sample_weight=times))
    np.testing.assert_array_equal(
        one, learned(type(model)(**model.get_params()).fit(np.repeat(triplets, times, axis=0)))
    )
    for wrong, words in (
        (times[:3], r"got shape \(3,\), expected \(400,\)"),
        (times + 0.5, "got float64"),
        (-times, "got int64"),
        (0 * times, "zero"),
    ):
        with pytest.raises(ValueError, match=f"sample_weight: .*{words}"):
            model.fit(triplets, sample_weight=wrong)


def test_who_answered_is_believed_as_far_as_it_deserves(world):
    """One of three guesses: a lapse rate of one's own is found, and every other one is not held against the others."""
    rng = np.random.default_rng(2)
    triplets = np.concatenate([world[0]] * 3)
    who = np.array(["ann", "bob", "eve"])[np.arange(len(triplets)) % 3]
    turned = (who == "eve") & (rng.random(len(triplets)) < 0.5)
    rows = np.where(turned[:, None], triplets[:, [0, 2, 1]], triplets)
    model = OrdinalEmbedding(2, kernel="ste", ridge=0.1).fit(rows, groups=who)
    lapse = model.worker_lapse_
    assert set(lapse) == {"ann", "bob", "eve"} and lapse["eve"] > 0.5 > 0.2 > max(lapse["ann"], lapse["bob"])
    assert OrdinalEmbedding(2, kernel="ste", ridge=0.1).fit(rows).worker_lapse_ == {}
    assert ComparisonKernel().fit(rows, groups=who).kernel_.shape == (N, N)
    for where in (model.fit, model.predict_proba, model.score, ComparisonKernel("k1").fit):
        for wrong in (who[:2], np.append(who, "ann"), who[:, None], "ann"):
            with pytest.raises(ValueError, match=rf"^groups: got shape \(.*\), expected \({len(rows)},\), "):
                where(rows, groups=wrong)


def test_who_sees_it_differently_is_predicted_by_weights_of_their_own():
    made = differing(1, people=8, each=300, n=14)
    training, test = split(made.answers, shares=(0.8, 1.0))[:2]
    rows, who = training.rows[:, [0, 1, 3]], np.array([f"p{each}" for each in range(8)])[training.participant]
    model = OrdinalEmbedding(2, kernel="ste", ridge=0.3).fit(rows, groups=who)
    assert set(model.participant_weights_) <= set(who)  # others are predicted by a map of their own
    fresh, theirs = test.rows[:, [0, 1, 3]], np.array([f"p{each}" for each in range(8)])[test.participant]
    assert model.score(fresh, groups=theirs) > model.score(fresh) + 0.005
    p = model.predict_proba(fresh[:4], groups=["p0", "p1", "nobody", "p0"])
    np.testing.assert_array_equal(p[2], model.predict_proba(fresh[:4])[2])
    assert not np.array_equal(p[0], model.predict_proba(fresh[:4])[0])
    alike = OrdinalEmbedding(2, kernel="ste", ridge=0.3, participants="alike").fit(rows, groups=who)
    assert alike.participant_weights_ == {}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_frame_is_read_by_its_names(model, world):
    rows = world[0]
    for names in (["x", "y", "z"], ["winner", "loser", "head"], ["near", "far", "anchors"]):
        for frame in (pd.DataFrame, lambda data, columns: pl.DataFrame(data, columns, orient="row")):
            with pytest.raises(ValueError, match=f"^X: got columns {', '.join(names)}, expected anchor, near, far; or"):
                model.fit(frame(rows, columns=names))
    numbered = learned(model.fit(pd.DataFrame(rows)))
    np.testing.assert_array_equal(numbered, learned(model.fit(rows)))
    lacking = pd.DataFrame(CALLED["words"][rows], columns=["anchor", "near", "far"]).astype("string")
    lacking.loc[3, "far"] = pd.NA
    with pytest.raises(ValueError, match=r"^X row 3: got \['object .*<NA>\], expected objects: names"):
        model.fit(lacking)


def test_objects_that_nobody_saw_are_a_coins(world):
    model = ComparisonKernel("k1").fit(CALLED["letters"][world[0]])
    with pytest.warns(UserWarning, match=r"X: 1 of 2 rows .* \(zz\)"):
        p = model.predict_proba([["a", "d", "c"], ["a", "zz", "c"]])
    assert p[1].tolist() == [0.5, 0.5] and p[0, 1] > 0.5
    numbers = ComparisonKernel("k1").fit(world[0])
    np.testing.assert_array_equal(numbers.predict(world[1]), numbers.predict(world[1].astype(str)))


def test_boosting_takes_names(world):
    names, classes = CALLED["words"], np.array(["x", "y", "z"])[np.arange(N) % 3]
    plain = TripletBoostClassifier(world[0], 500).fit(np.arange(6)[:, None], classes[:6])
    model = TripletBoostClassifier(names[world[0]], 500).fit(names[:6, None], classes[:6])
    assert model.predict(names[:, None]).tolist() == plain.predict(np.arange(N)[:, None]).tolist()
    frame = pd.DataFrame({"object": names})
    assert TripletBoostClassifier(names[world[0]], 500).fit(frame[:6], classes[:6]).score(frame, classes) > 0.6
    with pytest.raises(ValueError, match=r"row 1.*\['nobody'\].*9 objects"):
        model.predict([["object 1"], ["nobody"]])
    assert np.isfinite(cross_val_score(model, frame, classes, cv=3)).all()
