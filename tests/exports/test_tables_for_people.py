"""Tables for people against what they say, counted and measured slowly: one row an object, one row a question."""

import csv
import io
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from stream_engine import exports
from stream_engine.commands.by_name import by_name
from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.exports import Content, object_table
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.exported_bytes import encode
from tests.support.process import engine

NAMES = ["10", "2", "b, with comma", "0", "é", "1", "late"]
KNOWN = 5  # objects that the artifacts have seen


def said(seed: int = 0, size: int = 40) -> list[Triplet]:
    rng = np.random.default_rng(seed)
    first = [Triplet("10", "2", "b, with comma"), Triplet("0", "é", "1")]  # numbers follow first appearance
    rows = [Triplet(*(NAMES[i] for i in rng.permutation(6)[:3])) for _ in range(size)]
    return [*first, *rows, Triplet("late", "10", "2")]


def made(d: int, covariance: bool = True, asked=(1, 1, 0, 1, 1)) -> Published:
    rng = np.random.default_rng(d)
    learned = Engine(("triplet_counts", "quadruplet_counts"), False)
    learned.learn_many([*said(), Quadruplet(("10", "2"), ("0", "1"))])
    roots = rng.normal(size=(KNOWN, d, d))
    arrays = {
        "X": rng.normal(size=(KNOWN, d)),
        "asked": np.array(asked, bool),
        "lapse": np.array(0.0),
        **({"covariance": np.einsum("nij,nkj->nik", roots, roots).astype(np.float32)} if covariance else {}),
    }
    clusters = {"labels": np.array([0, 1, -1, 0, 1], np.int32), "stability": np.linspace(0.1, 0.9, KNOWN)}
    booster = {
        "predicted": np.array([0, 1, -1, 0, 1], np.int32),
        "given": np.full(KNOWN, -1, np.int32),
        "score": np.ones(KNOWN),
        "abstained": np.zeros(KNOWN, bool),
    }
    kinds = {
        "embedding": (arrays, {"alpha": 0.0}),
        "sdp_clustering": (clusters, {}),
        "triplet_boost": (booster, {"classes": ["x", "y"]}),
    }
    snapshot = learned.snapshot()._replace(labels={"10": "x", "never compared": "y"})
    return Published(snapshot, {k: Artifact(k, "", 1, {}, 0, held, said) for k, (held, said) in kinds.items()})


def rows(published: Published, what: str = "objects") -> list[dict[str, str]]:
    for name, content in exports.contents(what, published).items():
        data = encode(name, content, "csv", published.snapshot.objects)[f"{what}.csv"]
    return list(csv.DictReader(io.StringIO(data.decode())))


@pytest.fixture(autouse=True)
def answers_are_not_random(monkeypatch):
    """So few answers cannot show that they are better than chance, without which no places are written."""
    monkeypatch.setattr(object_table, "any_beats_chance", lambda published: None)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_a_row_an_object(d):
    published = made(d)
    names = published.snapshot.objects
    artifact = published.artifacts["embedding"].arrays
    found = rows(published)
    assert [row["object"] for row in found] == list(names)
    counted = Counter(name for each in said() for name in each) + Counter(["10", "2", "0", "1"])
    asked = [i for i in range(KNOWN) if artifact["asked"][i]]
    axes = ["x", "y", "z", "axis_4", "axis_5"][:d]
    assert [head for head in found[0] if head in ("x", "y", "z") or head.startswith("axis")] == axes
    for i, row in enumerate(found):
        assert int(row["answers"]) == counted[row["object"]]
        there = i in asked
        assert row["cluster"] == ["1", "2", "", "1", "2", "", ""][i]
        assert row["cluster_label"] == ["0", "1", "", "0", "1", "", ""][i]
        assert (row["stability"] != "") == (row["cluster"] != "")
        assert row["predicted"] == ["x", "y", "", "x", "y", "", ""][i]
        assert row["label"] == ("x" if row["object"] == "10" else "")
        for axis, head in enumerate(axes):
            assert (row[head] == "") == (not there)
            assert not there or float(row[head]) == pytest.approx(artifact["X"][i, axis])
            assert (row[f"se_{head}"] == "") == (not there)
            if there:
                error = float(artifact["covariance"][i, axis, axis]) ** 0.5
                assert float(row[f"se_{head}"]) == pytest.approx(error, rel=1e-4)
        if not there:
            assert {row[f"nearest_{k}"] for k in (1, 2, 3)} == {""}
            continue
        near = sorted((np.linalg.norm(artifact["X"][i] - artifact["X"][j]), names[j]) for j in asked if j != i)
        assert [row[f"nearest_{k}"] for k in (1, 2, 3)] == [name for _, name in near[:3]]
        region(row, artifact["covariance"][i].astype(float), d)


def region(row: dict[str, str], covariance: np.ndarray, d: int) -> None:
    """Every point of the ellipse is as far from the middle, in standard deviations: the quantile of 95 %."""
    if d == 1:
        assert float(row["ellipse_a"]) == pytest.approx(1.96 * covariance[0, 0] ** 0.5) and "ellipse_b" not in row
        return
    a, b, angle = (float(row[head]) for head in ("ellipse_a", "ellipse_b", "ellipse_angle"))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for t in np.linspace(0, 6, 9):
        point = turn @ [a * np.cos(t), b * np.sin(t)]
        assert point @ np.linalg.solve(covariance[:2, :2], point) == pytest.approx(5.991, rel=1e-3)


def test_an_artifact_that_holds_nothing_of_anybody_makes_no_column():
    published = made(2)
    clusters = published.artifacts["sdp_clustering"]
    nobody = clusters._replace(arrays=clusters.arrays | {"labels": np.full(KNOWN, -1, np.int32)})
    heads = rows(published._replace(artifacts={**published.artifacts, "sdp_clustering": nobody}))[0]
    assert "cluster" not in heads
    assert "stability" not in heads
    assert "x" in heads


def test_an_object_that_came_after_the_clusters_is_in_none_for_sure():
    found = [float(row["cluster_stability"]) for row in rows(made(2), "evidence")]
    assert found == pytest.approx([*np.linspace(0.1, 0.9, KNOWN), 0.0, 0.0], abs=1e-6)


def test_what_was_forgotten_is_in_the_summary_where_anything_was():
    published = made(2)

    def told(*history: dict) -> dict | None:
        counters = {**published.snapshot.counters, "history": list(history)}
        state = published._replace(snapshot=published.snapshot._replace(counters=counters))
        return exports.contents("summary", state)["summary"].value.get("forgotten")

    assert told() is None and told({"did": "seek"}) is None
    assert told({"did": "forget", "what": "worker"}, {"did": "seek"}) == {"objects": 0, "workers": 1}


def test_columns_of_what_is_not_there_are_left_out():
    bare = Published(Engine(("adds3",), False).snapshot(), {})
    assert list(exports.contents("objects", bare)["objects"].tables["objects"]) == ["object"]
    heads = rows(made(2, covariance=False))[0]
    assert "x" in heads and "ellipse_a" not in heads
    alone = rows(made(2, asked=(1, 0, 0, 0, 0)))[0]
    assert alone["x"] and alone["nearest_1"] == ""


def test_objects_with_few_comparisons_are_nobodys_neighbours(monkeypatch):
    published = made(2, asked=(1, 1, 1, 1, 1))
    few, *others = published.snapshot.objects[:KNOWN]
    monkeypatch.setattr(object_table, "too_few", lambda *given: np.isin(published.snapshot.objects, few))
    near = {row["object"]: {row[head] for head in object_table.NEAREST} for row in rows(published)}
    assert [near[name] for name in others] == [{*others} - {name} for name in others]


def test_agreement_is_that_of_triplets_and_empty_without():
    learned = Engine(("triplet_counts", "quadruplet_counts"), False)
    learned.learn_many([Triplet("a", "b", "c"), Triplet("b", "a", "c"), Quadruplet(("d", "e"), ("f", "g"))])
    published = Published(learned.snapshot(), {})
    found = {row["object"]: (row["answers"], row["agreement"]) for row in rows(published)}
    assert found == dict.fromkeys("abc", ("2", "1")) | dict.fromkeys("defg", ("1", ""))
    assert [float(row["agreement"]) for row in rows(published, "evidence")] == [1.0] * 3 + [0.5] * 4


def test_of_very_many_objects_nobody_looks_for_the_nearest(monkeypatch):
    monkeypatch.setattr(object_table, "MAX_NEAREST_OBJECTS", len(NAMES) - 1)
    assert "nearest_1" not in rows(made(2))[0]


def test_by_name_the_rows_are_the_same_in_another_order():
    """Also of an artifact that is older than the newest objects."""
    published = made(2)
    mine, theirs = rows(published), rows(by_name(published))
    assert [row["object"] for row in theirs] == sorted(NAMES) != [row["object"] for row in mine]
    assert sorted(mine, key=lambda row: row["object"]) == theirs


def test_by_name_evidence_has_the_stability_of_the_same_object_after_newer_ones_came():
    counts = Engine(("triplet_counts",), False)
    for triplet in (Triplet("d", "b", "c"), Triplet("d", "b", "a")):
        counts.learn_one(triplet)
    snapshot = counts.snapshot()
    arrays = {name: np.zeros(3, np.int32) for name in ("labels", "second", "subgroup")}
    arrays |= {"k": np.array(1), "stability": np.array([0.1, 0.2, 0.3])}  # of d, b, c
    state = Published(snapshot, {"clusters": Artifact("clusters", "", 0, {}, 0, arrays, {})})
    for published in (state, by_name(state)):
        table = exports.contents("evidence", published)["evidence"].tables["evidence"]
        stability = dict(zip(table["object"], table["cluster_stability"].tolist()))
        assert stability == {"d": 0.1, "b": 0.2, "c": 0.3, "a": 0.0}


def test_questions_can_be_read_again_as_answers(tmp_path):
    """anchor, near, far, n_near, n_far is what a file of votes holds."""
    published = made(2)
    content = exports.contents("questions", published)["questions"]
    written = encode("questions", content, "csv", published.snapshot.objects)
    (tmp_path / "questions.csv").write_bytes(written["questions.csv"])
    engine("run", tmp_path / "questions.csv", "--state", tmp_path / "s", "--no-refits")
    engine("export", "--state", tmp_path / "s", "--out", tmp_path / "o", "questions")
    with open(tmp_path / "o" / "questions.csv") as again:
        assert {tuple(row.values()) for row in csv.DictReader(again)} == {
            tuple(row.values()) for row in rows(made(2), "questions")
        }


def test_an_export_of_everything_names_the_command_for_every_question(tmp_path):
    (tmp_path / "few.jsonl").write_text('{"anchor":"a","near":"b","far":"c"}\n')
    engine("run", tmp_path / "few.jsonl", "--state", tmp_path / "s", "--no-refits")
    done = engine("export", "--state", tmp_path / "s", "--out", tmp_path / "o")
    assert not list((tmp_path / "o").glob("questions*")) and not list((tmp_path / "o").glob("confidence*"))
    command = done.stderr.splitlines()[-1].partition("stream-engine ")[2].split()
    assert engine(*command).stdout.split() and (tmp_path / "o" / "questions.csv").exists()
    assert "questions" not in engine(*command).stderr


def test_a_matrix_takes_a_few_rows_of_memory_while_it_becomes_csv():
    n, before = 1500, pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    content = Content({"K": np.random.default_rng(0).random((n, n))})
    pa.set_memory_pool(pool)
    try:
        encode("k1", content, "csv", [f"o{i}" for i in range(n)])
    finally:
        pa.set_memory_pool(before)
    matrix = 8 * n * n
    assert matrix <= pool.max_memory() < 1.5 * matrix + 40e6, "the text, 20 bytes a number, was held at once"
