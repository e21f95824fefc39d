"""`Study`: what it says is what refits, exports and the report say; it comes in the frames that were read."""

import io
import re
import warnings
from functools import partial

import matplotlib

from tests.support.facts import states, stating

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import fcluster

import stream_engine as se
from stream_engine.asking.knowledge import CannotAsk
from stream_engine.evaluation import NoModel
from stream_engine.exports import contents
from stream_engine.refits import clusters, embedding
from stream_engine.report import writing
from stream_engine.state.artifact import plain_params
from stream_engine.state.exclusion import excluded_of
from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support.exported_bytes import encode as files_of
from tests.support.generators import planted_triplets

GROUPS = 3
QUICK = {"dimensions": 2, "kernel": "ste", "ridge": 0.3}


@pytest.fixture(scope="module")
def answers():
    """12 named objects in three groups, 900 answers of 5 workers, the last of whom guesses."""
    rng = np.random.default_rng(0)
    points = np.array([[0, 0], [6, 0], [0, 6]])[np.arange(12) % GROUPS] + rng.normal(size=(12, 2)) / 2
    rows = planted_triplets(rng, points, 900)
    worker = rng.integers(5, size=900)
    turned = (worker == 4) & (rng.random(900) < 0.5)
    rows = np.where(turned[:, None], rows[:, [0, 2, 1]], rows)
    names = np.array([f"object {i}" for i in range(12)], object)
    columns = dict(zip(("anchor", "near", "far"), names[rows].T))
    return pd.DataFrame(columns | {"worker": [f"w{each}" for each in worker]})


@pytest.fixture(scope="module")
def study(answers):
    """These answers, and the embedding that was fitted because a map was asked for."""
    study = se.read(answers, seed=3)
    assert study.fitted == () and "embedding" not in repr(study)
    assert study.map(None).d == study.published.artifacts["embedding"].arrays["X"].shape[1]
    assert study.fitted == ("embedding",) and repr(study).endswith("fitted: embedding")
    return study


def test_what_is_asked_for_is_fitted_once_and_kept(study):
    before, artifact = study.fitted, study.published.artifacts["embedding"]
    assert study.map(None).points is not None and study.published.artifacts["embedding"] is artifact
    given = artifact.params, artifact.seed, artifact.snapshot
    assert given == (plain_params(embedding.Params()), 3, study.snapshot.digest)
    assert study.map(1).d == 1
    assert study.fitted == before and study.published.artifacts["embedding"] is artifact
    assert study.details("embedding")["kernel"] in ("ste", "t-ste")
    assert study.map(np.int64(1)).d == 1
    for d in (0, -1, 1.5, True, "two"):
        with pytest.raises(ValueError, match=f"^map: d: got {d!r}, expected an integer from 1, or None$"):
            study.map(d)
    with pytest.raises(ValueError, match="^clusters: k: got 0, expected"):
        study.clusters(0)


def test_a_fit_with_parameters_replaces_the_one_before(answers):
    study = se.read(answers).fit("embedding", **QUICK, participants="alike")
    assert study.map().d == 2 and study.published.artifacts["embedding"].arrays["X"].shape == (12, 2)
    drawn = [len(study.map().plot(Figure().subplots(), regions=each).get_children()) for each in (None, True, False)]
    assert drawn[0] == drawn[1] > drawn[2], "regions are drawn by default, and not where they are not wanted"
    study.fit("embedding", **QUICK | {"dimensions": 1}, participants="alike")
    assert study.fitted == ("embedding",) and study.published.artifacts["embedding"].arrays["X"].shape == (12, 1)


def test_clusters_are_those_of_the_refit(study):
    found = study.clusters()
    made = clusters.refit(study.snapshot, clusters.Params(), 3, needed=study.published.artifacts["embedding"])
    pairs = set(zip(found["cluster"].tolist(), made.arrays["labels"].tolist()))
    assert {cluster for cluster, _ in pairs} == {1, 2, 3} and len(pairs) == 3, "the same groups, counted from 1"
    assert found["object"].tolist() == list(study.snapshot.objects)
    assert (
        set(found["grade"])
        == {made.report["grade"]}
        == set(contents("clusters", study.published)["clusters"].tables["clusters"]["grade"])
    )
    group = found["object"].str.removeprefix("object ").astype(int) % GROUPS
    assert found.groupby("cluster")["object"].count().tolist() == [4, 4, 4]
    assert found.assign(group=group).groupby("cluster")["group"].nunique().tolist() == [1, 1, 1]
    sizes = study.clusters(2)["cluster"].value_counts()
    assert set(sizes.index) == {1, 2} and sizes[1] >= sizes[2]


def test_the_hierarchy_is_that_of_the_refit_and_its_leaves_are_named(study):
    tree = study.hierarchy()
    wanted = contents("hierarchy", study.published)["hierarchy"]
    assert tree.names == wanted.arrays["names"].tolist() and np.array_equal(tree.linkage, wanted.arrays["linkage"])
    assert_same(tree.to_frame().replace({"": None}), exported(study, "hierarchy"))
    groups = [set(), set(), set()]
    for name, cluster in zip(tree.names, fcluster(tree.linkage, GROUPS, "maxclust").tolist()):
        groups[cluster - 1].add(int(name.removeprefix("object ")) % GROUPS)
    assert sorted(map(sorted, groups)) == [[0], [1], [2]]
    assert states(repr(tree), f"12 … {tree.method}")
    ticks = [text.get_text() for text in tree.plot(Figure().subplots()).get_yticklabels()]
    assert sorted(ticks) == sorted(tree.names)
    assert not np.array_equal(study.hierarchy("k1").linkage, tree.linkage)
    with pytest.raises(ValueError, match="'k9'"):
        study.hierarchy("k9")


def test_workers_have_their_names_and_the_guesser_the_least_weight(study):
    found = study.workers().set_index("worker")
    assert found.index.tolist() == [f"w{i}" for i in range(5)] and found["events"].sum() == 900
    assert found["weight"].idxmin() == found["lapse"].idxmax() == "w4"
    table = contents("workers", study.published)["workers"].tables["workers"]
    assert np.array_equal(found["accuracy"], table["accuracy"])
    with pytest.raises(ValueError, match="^workers: .* worker"):
        se.read([("a", "b", "c")]).workers()


def test_models_stand_in_a_table(study):
    found = study.models()
    assert found["model"][0] == "embedding" and {"adds3", "k1", "chance"} <= set(found["model"])
    by = found.set_index("model")
    assert by.loc["chance", "accuracy"] == 0.5 < by.loc["embedding", "accuracy"] <= 1.0
    assert by.loc["embedding", "seconds"] > 0 and found["log_loss"].is_monotonic_increasing


def test_the_map_is_drawn_and_told(study):
    shown = study.map()
    assert states(repr(shown), "12 … 2") and shown.d == 2
    axes = shown.plot()
    named = {text.get_text() for text in axes.texts}  # those that would lie on others are left out
    assert isinstance(axes, Axes) and named <= set(shown.names)
    points = np.concatenate(
        [np.asarray(each.get_offsets()) for each in axes.collections if len(each.get_offsets()) > 1]
    )
    assert {tuple(row) for row in np.round(shown.points, 9)} <= {tuple(row) for row in np.round(points, 9)}
    figure = Figure()
    mine = figure.subplots()
    assert study.map(1).plot(mine) is mine
    values = np.arange(12.0)
    drawn = shown.plot(
        figure.subplots(), c=values, s=values + 1, labels=[f"no. {i}" for i in range(12)], cmap="cividis"
    )
    (points,) = (each for each in drawn.collections if len(each.get_offsets()) == 12)
    assert points.get_array().tolist() == values.tolist() and points.get_sizes().tolist() == (values + 1).tolist()
    assert "no. 3" in {text.get_text() for text in drawn.texts}
    assert not shown.plot(figure.subplots(), c="black", labels=False).texts
    for given in ({"c": [1.0, 2.0]}, {"s": np.ones(13)}, {"labels": ["a"]}):
        with pytest.raises(ValueError, match=stating(f"{next(iter(given))} … 12")):
            shown.plot(**given)
    told = shown.to_frame()
    errors = ["sd_x", "sd_y"] if shown.covariance is not None else []
    assert told.columns.tolist() == ["object", "x", "y", *errors]
    assert np.array_equal(told[["x", "y"]], shown.points)
    assert study.map(1).to_frame().columns.tolist() == ["object", "x", "sd_x"]
    assert not errors or np.allclose(told["sd_y"] ** 2, shown.covariance[:, 1, 1])


def test_tables_name_objects_of_pictures_as_the_answers_do(answers):
    """Names stand on maps without a suffix; tables can be joined all the same."""
    called = answers.head(200).assign(**{each: answers[each] + ".png" for each in ("anchor", "near", "far")})
    study = se.read(called).fit("embedding", **QUICK | {"dimensions": 1, "participants": "alike"})
    shown = study.map()
    assert shown.names[0] + ".png" == shown.to_frame()["object"][0]
    assert shown.to_frame()["object"].tolist() == list(study.snapshot.objects)


def test_predictions(study, tmp_path):
    nearer, unknown = ("object 0", "object 3", "object 1"), ("object 0", "nobody", "object 1")
    found = study.predict([nearer, (nearer[0], *nearer[:0:-1]), unknown])
    assert found["p"][0] > 0.8
    assert found["p"][1] == pytest.approx(1 - found["p"][0])
    assert np.isnan(found["p"][2])
    wanted = found.iloc[:1]
    row = dict(zip(("anchor", "left", "right"), nearer))
    for given in ([row], pd.DataFrame([row]), pl.DataFrame([row]), pa.Table.from_pylist([row]), np.array([nearer])):
        assert study.predict(given).equals(wanted), type(given)
    pairs = study.predict([{"near": list(nearer[:2]), "far": [nearer[0], nearer[2]], "id": 7}])
    assert pairs["p"][0] == found["p"][0] and pairs["id"][0] == 7
    assert study.predict([nearer], "adds3")["model"][0] == "adds3"
    survey = pd.DataFrame([nearer, nearer[:1] + nearer[:0:-1], nearer], columns=["probe", "L", "R"]).assign(
        said=["L", "2", "1"], ok=[True, True, False]
    )
    options = dict(type="pick", columns={"anchor": "probe", "shown": ["L", "R"], "chosen": "said"})
    told = study.predict(survey, answers_by="position", where={"ok": True}, **options)
    assert told["p"].tolist() == found["p"][:2].tolist() and told["said"].tolist() == ["L", "2"]
    file = tmp_path / "survey.txt"
    survey.rename(columns={"said": "gewählt"}).to_csv(file, sep=";", encoding="latin-1", index=False)
    options["columns"]["chosen"] = "gewählt"
    assert study.predict(file, encoding="latin-1", **options)["p"].tolist() == [*told["p"], told["p"][0]]
    with pytest.raises(ValueError, match="got encoding, "):
        study.predict([nearer], encoding="latin-1")
    with pytest.raises(ValueError, match="^modell: unknown argument; did you mean model"):
        study.predict([nearer], modell="adds3")
    with pytest.warns(UserWarning, match=stating("1 … 3 … 2 … anchor")):
        assert study.predict([nearer, unknown, ("a", "a", "b")])["p"].isna().tolist() == [False, True, True]
    with pytest.raises(ValueError, match=stating("1 … anchor 'a', left 'a'")):
        study.predict([nearer, ("a", "a", "b")])
    with pytest.raises(NoModel, match="kernel_learning"):
        study.predict([nearer], "kernel_learning")


def test_a_participant_is_known_by_name_or_number(answers):
    """Frames hold names as integers too; what is not known of somebody is said, not passed over."""
    number = {f"w{each}": 70 + each for each in range(5)}
    few = answers[:2].assign(worker=[90, 90])
    study = se.read(pd.concat([answers.assign(worker=answers.worker.map(number)), few], ignore_index=True)).fit(
        "embedding", **QUICK
    )
    question = [("object 0", "object 3", "object 1")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group, guesser = study.predict(question), study.predict(question, participant=74)
        for same in ("74", 74.0, np.int64(74)):
            assert study.predict(question, participant=same).equals(guesser)
    assert not guesser["p"].equals(group["p"])
    for unknown, says in (
        ("7", "did you mean 7"),
        ("bob", "6 participants are named"),
        (90, "'90' has too few answers"),
    ):
        with pytest.warns(UserWarning, match=f"^predict: by the group's weights: [^\n]*{says}"):
            assert study.predict(question, participant=unknown)["p"].equals(study.predict(question, "embedding")["p"])
    fewer = study.exclude(74, "73")
    fewer.fit("embedding", **QUICK, participants="alike")
    assert fewer.published.excluded == ("73", "74") and fewer.include(73).published.excluded == ("74",)
    with pytest.warns(UserWarning, match="'74' is excluded"):
        fewer.predict(question, participant=74)
    for what in (study.exclude, fewer.include, lambda given: study.predict(question, participant=given)):
        with pytest.raises(ValueError, match=r"got the participant 1.5 \(float\), expected text or an integer"):
            what(1.5)


def test_questions(study, answers):
    asked = study.ask(20)
    assert len(asked) == 20
    assert set(asked["type"]) == {"pick"}
    assert asked["id"].is_unique
    assert asked.equals(study.ask(20)) and set(asked["sampler"]) == {"coverage"}
    assert not study.ask(20, "random")["propensity"].isna().any()
    of_seeds = [se.read(answers, seed=seed).ask(20, "random")["id"].tolist() for seed in (3, 3, 4)]
    assert of_seeds[0] == of_seeds[1] != of_seeds[2]
    answered = asked.assign(chosen=[shown[:1] for shown in asked["shown"]])
    assert len(se.read(answered)) == 20
    assert study.ask(5, "coverage", type="odd_one_out", objects=["new"]).columns.tolist()[:3] == [
        "id",
        "type",
        "objects",
    ]
    with pytest.raises(CannotAsk, match="'x'"):
        study.ask(5, type="x")


def test_the_report(answers, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "refit", partial(embedding.refit, evaluate=False))
    study, pages, real = se.read(answers), [], writing.write

    def noted(published, out, *more):
        done = real(published, out, *more)
        pages.append("Preliminary" in out.read_text())
        return done

    monkeypatch.setattr(writing, "write", noted)
    done = study.report(tmp_path / "out.html", tmp_path / "figures", workers=True, figure_width="120mm")
    page = (tmp_path / "out.html").read_text()
    assert done.page == tmp_path / "out.html"
    assert "object 11" in page
    assert "w4" in page
    assert pages == [True, False], "a quick map first, then the whole page"
    width = re.search(r'<svg [^>]*width="([\d.]+)pt"', (tmp_path / "figures" / "map.svg").read_text())
    assert float(width[1]) == pytest.approx(120 / 25.4 * 72, abs=1)
    assert set(study.fitted) >= {"embedding", "sdp_clustering"}


def test_objects(answers):
    study = se.read(answers, labels={f"object {i}": f"class {i % GROUPS}" for i in range(6)})
    few = study.objects()
    assert few["object"].tolist() == list(study.snapshot.objects) and "cluster" not in few
    assert few["answers"].sum() == 3 * 900 and few["label"].notna().sum() == 6
    study.fit("embedding", **QUICK, participants="alike").fit("sdp_clustering")
    study.fit("triplet_boost")
    written = exported(study, "objects")
    told = study.objects()
    assert {"cluster", "x", "y", "ellipse_a", "nearest_3", "predicted"} <= set(told)
    assert_same(told, written)


def assert_same(told: pd.DataFrame, written: pd.DataFrame) -> None:
    """Equal cells; what is missing is missing in both."""
    assert told.columns.tolist() == written.columns.tolist()
    cells = [frame.astype(object).where(frame.notna(), None) for frame in (told, written)]
    pd.testing.assert_frame_equal(*cells, check_dtype=False)


def exported(study, what) -> pd.DataFrame:
    """A table as `export` writes it to csv."""
    content = contents(what, study.published)[what]
    files = files_of(what, content, "csv", study.snapshot.objects)
    return pd.read_csv(io.BytesIO(files[f"{what}.csv"]), keep_default_na=False, na_values=[""])


def test_questions_are_those_of_the_export_and_can_be_read_again(answers):
    study = se.read(answers)
    asked = study.questions()
    assert_same(asked, exported(study, "questions"))
    again = se.read(asked)
    assert again.snapshot.counters["comparisons"] == study.snapshot.counters["comparisons"]
    assert sorted(again.questions()["n_near"]) == sorted(asked["n_near"])
    with pytest.warns(UserWarning, match="0 answers"):
        assert se.read([]).questions().columns.tolist() == asked.columns.tolist()


def test_a_study_is_saved_and_read(answers, tmp_path):
    study = se.read(answers).fit("embedding", **QUICK, participants="alike")
    assert study.save(tmp_path / "state") == tmp_path / "state"
    again = se.read(tmp_path / "state")
    assert again.snapshot.digest == study.snapshot.digest and again.fitted == ("embedding",)
    assert Store(tmp_path / "state").published().artifacts.keys() == {"embedding"}
    assert again.map().to_frame().equals(study.map().to_frame())
    with pytest.raises(ValueError, match="^save: "):
        study.save(tmp_path / "state")


def test_who_is_excluded_can_be_included_after_saving_and_reading(answers, tmp_path):
    study = se.read(answers.assign(worker=np.arange(len(answers)) % 3))
    fewer = study.exclude(1).fit("embedding", **QUICK, participants="alike")
    again = se.read(fewer.save(tmp_path / "state"))
    assert again.published.excluded == ("1",) and again.fitted == ("embedding",)
    assert again.snapshot.counters["comparisons"] == fewer.snapshot.counters["comparisons"]
    assert again.published.artifacts["embedding"].snapshot == again.snapshot.digest == study.snapshot.digest
    assert again.models()["seconds"].equals(fewer.models()["seconds"])
    everybody = again.include("1")
    assert everybody.published.excluded == () and everybody.fitted == ()
    assert everybody.snapshot.counters["comparisons"] == study.snapshot.counters["comparisons"]
    both = again.exclude("2").fit("embedding", **QUICK, participants="alike")
    assert excluded_of(both.published.artifacts["embedding"]) == ("1", "2")


@pytest.mark.parametrize(
    "holder, kind", [(pd.DataFrame, pd.DataFrame), (pl.from_pandas, pl.DataFrame), (pa.table, pa.Table)]
)
def test_what_comes_in_goes_out(answers, holder, kind):
    study = se.read(holder(answers))
    assert isinstance(study.objects(), kind) and isinstance(study.refused(), kind)
    assert isinstance(se.read(holder(answers), frames="arrow").objects(), pa.Table)
    assert isinstance(se.read([("a", "b", "c")]).objects(), pd.DataFrame)


@pytest.mark.parametrize("rows", [[], [("a", "b", "c")], [("a", "b", "c"), ("a", "c", "b")]])
def test_next_to_nothing_is_known(rows, tmp_path):
    """No answer, one, and only a contradiction: a frame, or one line that says what is missing."""
    with warnings.catch_warnings(action="error" if rows else "ignore"):
        study = se.read(rows)
    for ask in (
        study.objects,
        study.clusters,
        study.models,
        study.map,
        study.ask,
        lambda: study.predict([("a", "b", "c")]),
    ):
        try:
            ask()
        except ValueError as error:
            assert "\n" not in str(error) and "expected" in str(error)
    try:
        assert study.report(tmp_path / "out.html").size > 1000
    except ValueError as error:
        assert "expected" in str(error)


def test_what_a_study_does_stands_in_the_manual(study):
    page = (ROOT / "stream_engine" / "docs" / "python.md").read_text()
    calls = [name for name in dir(se.Study) if callable(getattr(se.Study, name)) and not name.startswith("_")]
    assert len(calls) > 10 and [name for name in calls if f"{name}(" not in page] == []
    with pytest.raises(ValueError, match="^details: got 'nothing'"):
        study.details("nothing")
