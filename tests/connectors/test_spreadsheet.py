"""Workbooks as tables: the same events as the CSV that a person would have saved."""

import sys
from contextlib import closing
from datetime import datetime

import pytest

import stream_engine
from connectors import UnusableSource, open_source
from connectors.files.line_blocks import text_layout
from connectors.files.readers import LineNumbers
from stream_engine.formats.csv_events import Decoder
from stream_engine.formats.options import EventOptions
from stream_engine.input.settings import Settings
from stream_engine.service.preview import preview
from stream_engine.service.preview_text import as_text

HEADER = ["anchor", "near", "far", "worker", "time"]
ROWS = [
    ["cat", "dog", "owl", 7.0, datetime(2015, 5, 29, 3, 46, 14)],
    [16, 1.5, "x, y", None, None],
    [],
    ["a", 'say "b"', "two\nlines", "w", 12],
    ["a", "a", "b", None, None],
    ["a", "b", None],
]


def book(path, rows):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, of the extra [excel], is not installed")
    workbook = openpyxl.Workbook()
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            workbook.active.cell(number, column, value)
    workbook.create_sheet("another").cell(1, 1, "no")
    workbook.save(path)
    return path


def read(path, at=None, block_bytes=1 << 20, **layout):
    source, found, refused, ends = open_source(str(path), at or {}, layout=text_layout(**layout)), [], [], []
    decode = Decoder(EventOptions(provenance=True))
    while not source.finished():
        for record in source.poll(1.0):
            done = decode(record.value, record.header)
            found += [tuple(done.names[i] for i in row) for row in done.triplets.tolist()]
            refused += [(record.partition, record.offset + r.start, r.reason) for r in done.rejected]
            ends.append((done.provenance.workers, done.provenance.time.tolist()))
    source.close()
    return found, refused, ends


def test_a_sheet_is_what_it_would_be_as_csv(tmp_path):
    path = book(tmp_path / "survey.xlsx", [HEADER, *ROWS])
    found, refused, (said,) = read(path)
    assert found == [("cat", "dog", "owl"), ("16", "1.5", "x, y"), ("a", 'say "b"', "two\nlines")]
    assert [reason for *_, reason in refused] == ["not_distinct", "empty_name"]
    assert said[0] == ["7", "w"]
    assert said[1][0] == 1432871174.0
    assert said[1][2] == 12.0


def test_refused_rows_have_the_number_of_their_line(tmp_path):
    path = book(tmp_path / "survey.xlsx", [HEADER, ["a", "b", "c"], [], ["a", "a", "b"]])
    _, ((partition, offset, _),), _ = read(path)
    with closing(LineNumbers()) as lines:
        assert lines.at(partition, offset) == 4


def test_titles_above_the_header_are_skipped_and_rows_may_be_longer(tmp_path):
    path = book(tmp_path / "survey.xlsx", [["A survey"], [], HEADER[:3], ["a", "b", "c"], ["a", "b", "c", "d"]])
    found, refused, _ = read(path, skip_rows=2)
    assert found == [("a", "b", "c")] and [reason for *_, reason in refused] == ["not_parseable"]


def test_what_is_no_workbook_is_said_in_one_line(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl, of the extra [excel], is not installed")
    (tmp_path / "survey.xlsx").write_bytes(b"anchor,near,far\n")
    with pytest.raises(Exception, match="workbook"):
        read(tmp_path / "survey.xlsx")


def test_without_openpyxl_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "survey.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UnusableSource, match="pip install openpyxl"):
        read(tmp_path / "survey.xlsx")


def test_sheets_that_are_not_read_are_named(tmp_path):
    path = book(tmp_path / "survey.xlsx", [HEADER[:3], ["a", "b", "c"]])
    openpyxl = pytest.importorskip("openpyxl")
    workbook = openpyxl.load_workbook(path)
    workbook.create_sheet("void")
    workbook.save(path)
    shown = preview(Settings(source=(str(path),)), 1)
    assert "'another'" in as_text(shown, "") and "void" not in as_text(shown, "")
    with pytest.warns(UserWarning, match="'another'"):
        stream_engine.read(path)


@pytest.mark.parametrize("hidden", [(), (2, 4)])
def test_hidden_rows_are_read_and_counted(tmp_path, hidden):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, of the extra [excel], is not installed")
    workbook = openpyxl.Workbook()
    for row in [["anchor", "near", "far"], *(["a", "b", name] for name in "cdefg")]:
        workbook.active.append(row)
    for row in hidden:
        workbook.active.row_dimensions[row].hidden = True
    workbook.save(tmp_path / "hidden.xlsx")
    result = preview(Settings(source=(str(tmp_path / "hidden.xlsx"),)), 10)
    assert result.events == 5
    assert ("2 rows are hidden" in "".join(result.notices)) == bool(hidden)


def test_formulas_without_values_are_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl, of the extra [excel], is not installed")
    workbook = openpyxl.Workbook()
    workbook.active.append(["anchor", "near", "far", "sum"])
    for name in "cdefg":
        workbook.active.append(["a", "b", name, "=1+1"])
    workbook.save(tmp_path / "formulas.xlsx")
    result = preview(Settings(source=(str(tmp_path / "formulas.xlsx"),)), 10)
    assert result.events == 5 and "formulas have no values" in "".join(result.notices)
