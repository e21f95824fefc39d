"""`predict`: every format in and out, unknown objects, other fields, and what is wrong said in one line."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line

QUESTIONS = [
    {"trial": 1, "anchor": "0", "left": "1", "right": "4"},
    {"trial": 2, "anchor": "0", "left": "4", "right": "1"},
    {"trial": 3, "anchor": "5", "left": "nobody", "right": "0"},
]


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Objects 0 to 5 on a line, 400 answers, with an embedding."""
    folder = tmp_path_factory.mktemp("predict")
    rng = np.random.default_rng(0)
    events = []
    for _ in range(400):
        a, b, c = (int(each) for each in rng.choice(6, 3, replace=False))
        b, c = (b, c) if abs(a - b) < abs(a - c) or (abs(a - b) == abs(a - c) and rng.random() < 0.5) else (c, b)
        events.append({"anchor": a, "near": b, "far": c})
    engine("run", jsonl(folder / "events.jsonl", events), "--state", folder / "s", "--refit", "embedding")
    return folder / "s"


def rows_of(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    if path.suffix == ".csv":
        return [
            {**row, "p": float(row["p"]) if row["p"] else None} for row in csv.DictReader(io.StringIO(path.read_text()))
        ]
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(path, questions):
    frame, kind = pd.DataFrame(questions), path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        (frame.to_parquet if kind == "parquet" else frame.to_feather)(path)
    return path


@pytest.mark.parametrize(
    "name, into",
    [("q.csv", "jsonl"), ("q.jsonl", "parquet"), ("q.parquet", "csv"), ("q.arrow", "csv"), ("q.csv.gz", "csv")],
)
def test_every_format_gives_the_same(state, tmp_path, name, into):
    path, out = written(tmp_path / name, QUESTIONS), tmp_path / f"p.{into}"
    told = engine("predict", "--state", state, path, "--out", out).stderr
    rows = rows_of(out)
    assert "embedding" in told and "1 without p" in told
    assert [str(row["trial"]) for row in rows] == ["1", "2", "3"] and {row["model"] for row in rows} == {"embedding"}
    assert rows[0]["p"] > 0.8
    assert rows[0]["p"] + rows[1]["p"] == pytest.approx(1)
    assert rows[2]["p"] is None
    assert [row["left"] for row in rows] == ["1", "4", "nobody"]


def test_what_ask_writes_can_be_predicted(state, tmp_path):
    asked = {"id": "2f", "type": "pick", "anchor": "0", "shown": ["1", "4"]}
    path = jsonl(tmp_path / "q.jsonl", [asked, {"anchor": "0", "left": "1", "right": "4"}])
    one, other = (json.loads(line) for line in engine("predict", "--state", state, path).stdout.splitlines())
    assert one["p"] == other["p"]
    assert one["id"] == "2f"
    assert one["shown"] == ["1", "4"]


def test_a_model_by_name_and_columns_by_name(state, tmp_path):
    path = jsonl(tmp_path / "q.jsonl", [{"probe": "0", "a": "1", "b": "4"}])
    said = engine("predict", "--state", state, path, "--model", "k1", "--columns", "anchor=probe,left=a,right=b")
    row = json.loads(said.stdout)
    assert row["model"] == "k1"
    assert row["p"] > 0.7
    assert row["probe"] == "0"


SURVEY = [  # a column that nobody mapped, spaces, latin-1, a row that is refused
    "Prüfer; Probe ;Left;Right;Response;kept",
    "Zoë;0;1;4;left;yes",
    "Zoë; 0 ;4;1;right;yes",
    "Zoë;0;4;1;left;no",
    "Zoë;0;1;1;left;yes",
    "Zoë;5;0;2;2;yes",
]
OPTIONS = ["--encoding", "latin-1", "--type", "pick", "--columns", "anchor=Probe,shown=Left|Right,chosen=Response"]
OPTIONS += ["--answers-by", "position", "--where", "kept=yes"]


def test_a_survey_is_predicted_with_the_options_that_read_it(state, tmp_path):
    path = tmp_path / "survey.txt"
    path.write_bytes("\n".join(SURVEY).encode("latin-1"))
    assert "3" in engine("preview", path, *OPTIONS).stdout
    told = engine("predict", "--state", state, path, *OPTIONS, "--out", tmp_path / "p.csv").stderr
    rows = rows_of(tmp_path / "p.csv")
    assert [row["Probe"] for row in rows] == ["0", "0", "0", "5"] and rows[0]["Prüfer"] == "Zoë"
    assert rows[0]["p"] > 0.8 and rows[0]["p"] + rows[1]["p"] == pytest.approx(1), "the answers are not looked at"
    assert rows[2]["p"] is None and rows[3]["p"] < 0.5
    assert "1 of 4 rows " in told and "survey.txt line 5: shown: got 1, 1;" in told
    plain = jsonl(tmp_path / "q.jsonl", [{"anchor": "0", "left": "1", "right": "4"}])
    assert json.loads(engine("predict", "--state", state, plain).stdout)["p"] == rows[0]["p"]
    assert engine("predict", "--state", state, path, *OPTIONS).stdout == (tmp_path / "p.csv").read_text()


def test_an_event_that_asks_several_questions_has_a_row_for_each(state, tmp_path):
    """What was answered is not looked at: all that was asked is."""
    events = [
        {"type": "odd_one_out", "objects": ["0", "1", "4"], "odd": "4", "worker": "w"},
        {"type": "ranking", "anchor": "0", "ranked": ["1", "2", "5"]},
        {"type": "pick", "anchor": "0", "shown": ["4", "1"], "chosen": ["1"]},
        {"anchor": "0", "near": "1", "far": "4"},
    ]
    engine("predict", "--state", state, jsonl(tmp_path / "e.jsonl", events), "--out", tmp_path / "p.jsonl")
    rows = rows_of(tmp_path / "p.jsonl")
    asked = [[row.get(f"asked_{name}") for name in ("anchor", "left", "right")] for row in rows]
    assert asked[:3] == [["0", "1", "4"], ["1", "0", "4"], ["4", "0", "1"]] and rows[1]["worker"] == "w"
    assert asked[3:6] == [["0", "1", "2"], ["0", "1", "5"], ["0", "2", "5"]]
    assert asked[6:] == [[None] * 3] * 2
    lines = [dict(zip(("anchor", "left", "right"), each)) for each in [*asked[:6], ["0", "4", "1"], ["0", "1", "4"]]]
    engine("predict", "--state", state, jsonl(tmp_path / "q.jsonl", lines), "--out", tmp_path / "q.csv")
    assert [row["p"] for row in rows] == [row["p"] for row in rows_of(tmp_path / "q.csv")]


@pytest.mark.parametrize(
    "name, content, expected",
    [
        (
            "q.jsonl",
            b'{"anchor": "a", "left": "a", "right": "b"}',
            "q.jsonl line 1: got anchor 'a', left 'a', right 'b'",
        ),
        ("q.jsonl", b'\n{"anchor": "a", "left": "b"}', "line 2"),
        ("q.jsonl", b"{", "line 1: not JSON"),
        ("q.csv", b"anchor,left,right\n1,2\n", "line 2 … 2 fields"),
        ("q.parquet", b"junk", "q.parquet: "),
        ("q.parquet", pd.DataFrame([QUESTIONS[0], QUESTIONS[0] | {"left": "0"}]).to_parquet(), "q.parquet row 2: "),
        ("q.doc", b"", "'.doc'"),
    ],
)
def test_a_bad_file_is_one_line_and_writes_nothing(state, tmp_path, name, content, expected):
    (tmp_path / name).write_bytes(content)
    said = engine("predict", "--state", state, tmp_path / name, "--out", tmp_path / "p.csv", status=2)
    assert states(one_line(said.stderr), expected) and not (tmp_path / "p.csv").exists()


def test_bad_arguments_are_one_line(state, tmp_path):
    path = jsonl(tmp_path / "q.jsonl", [QUESTIONS[0]])
    assert "no.csv" in one_line(engine("predict", "--state", state, tmp_path / "no.csv", status=2).stderr)
    out = engine("predict", "--state", state, path, "--out", tmp_path / "p.txt", status=2)
    assert ".csv, .parquet" in one_line(out.stderr)
    out = engine("predict", "--state", state, path, "--model", "kernel_learning", status=1)
    assert "'kernel_learning': " in one_line(out.stderr)
