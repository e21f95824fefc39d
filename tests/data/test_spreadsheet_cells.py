"""What a spreadsheet would run is shown; numbers stay numbers; `--raw` leaves all as it is."""

import csv
import io

import pyarrow as pa
import pytest

from stream_engine.data.spreadsheet_cells import shown, shown_table
from tests.support.process import engine, jsonl

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://x","y")']
HARMLESS = ["", "cat", "-1", "+2.5e3", "-.5", "1-2", "a=b", " =1", "'=1", "é"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text):
    assert shown(text) == f"'{text}"


@pytest.mark.parametrize("cell", [*HARMLESS, -1, -1.5, None, True])
def test_everything_else_stays(cell):
    assert shown(cell) is cell


def test_a_table_is_shown_as_its_cells_are():
    texts = [*FORMULAS, None, *HARMLESS]
    columns = [pa.array(texts), pa.array(texts).dictionary_encode(), pa.array(range(-1, len(texts) - 1))]
    made = shown_table(pa.Table.from_arrays(columns, names=["=a", "b", "-3"]))
    assert made.column_names == ["'=a", "b", "-3"]
    assert made.column(0).to_pylist() == made.column(1).to_pylist() == [shown(text) for text in texts]
    assert made.column(2).to_pylist() == list(range(-1, len(texts) - 1))


def test_exports_and_predictions_are_safe_to_open_unless_raw(tmp_path):
    names = ["=1+1", "@x", "-5"]
    events = jsonl(tmp_path / "e.jsonl", [dict(zip(("anchor", "near", "far"), names), worker="+w")])
    state = tmp_path / "state"
    engine("run", events, "--state", state, "--no-refits")
    for raw in ([], ["--raw"]):
        engine("export", "objects", "k1", "--format", "csv", "--state", state, "--out", tmp_path / "out", *raw)
        rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "objects.csv").read_text())))
        expected = names if raw else ["'=1+1", "'@x", "-5"]
        assert [row["object"] for row in rows] == expected
        head = next(csv.reader(io.StringIO((tmp_path / "out" / "k1.csv").read_text())))
        assert head[-3:] == expected
        questions = tmp_path / "q.csv"
        questions.write_text("anchor,left,right\n=1+1,@x,-5\n")
        answered = engine("predict", "--state", state, questions, *raw).stdout
        assert next(csv.DictReader(io.StringIO(answered)))["anchor"] == expected[0]
