"""Values as files from the field hold them, each with what it means, through every format that has text, alone and in
company, by the quick path and by the definition.

The times of RFC 3339, section 5.8, and what pandas, SQL, R and spreadsheets write; blanks of Unicode in names; numbers
as text.
"""

import json
import re

import pyarrow as pa
import pytest

from stream_engine.formats.arrow_events import TEXT_CELLS
from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import EventOptions
from stream_engine.formats.record_columns import records_of
from stream_engine.formats.response_times import response_times

NO = "refused"
TIMES = {  # text -> seconds since 1970-01-01T00:00:00Z
    "1985-04-12T23:20:50.52Z": 482196050.52,
    "1996-12-19T16:39:57-08:00": 851042397.0,
    "1990-12-31T23:59:60Z": 662688000.0,
    "1990-12-31T15:59:60-08:00": 662688000.0,
    "1937-01-01T12:00:27.87+00:20": -1041337172.13,
    "2024-05-01T12:00:00+05:30": 1714545000.0,
    "2024-05-01T12:00:00-03:30": 1714577400.0,
    "2024-05-01 12:00:00+0545": 1714544100.0,
    "2024-05-01 12:00:00-0930": 1714599000.0,
    "2024-05-01T12:00:00-00:00": 1714564800.0,
    "2024-05-01 12:00:00+02": 1714557600.0,
    "2024-05-01 12:00:00": 1714564800.0,
    "2024-05-01T12:00:00.123456789Z": 1714564800.123456,
    "2024-02-29T00:00:00Z": 1709164800.0,
    "2000-02-29T23:59:59.9Z": 951868799.9,
    "1970-01-01T00:00:00Z": 0.0,
    "1969-12-31T23:59:59.5Z": -0.5,
    "0001-01-01T00:00:00Z": -62135596800.0,
    "9999-12-31T23:59:59Z": 253402300799.0,
    "1714564800": 1714564800.0,
    "1714564800.25": 1714564800.25,
    "1.7145648e9": 1714564800.0,
    "45413.5": 45413.5,
    "2023-02-29T00:00:00Z": NO,
    "1900-02-29T00:00:00Z": NO,
    "2024-05-01T24:00:00Z": NO,
    "2024-05-01T12:60:00Z": NO,
    "2024-05-01T12:00:61Z": NO,
    "2024-05-01T12:00:00+24:00": NO,
    "2024-05-01T12:00Z": NO,
    "2024-05-01t12:00:00.123456789z": 1714564800.123456,
    "2024-05-01T12:00:00-23:59": 1714651140.0,
    "2024-13-01T00:00:00Z": NO,
    "2024-05-01": NO,
    "01.05.2024 12:00": NO,
    "5/1/2024 12:00:00 PM": NO,
    "12:00:00": NO,
    "1\u00a0714\u00a0564": NO,
    "1714564800,25": NO,
    "\u0661": NO,
}
WEIGHTS = {
    "0": 0.0, "1": 1.0, "007": 7.0, "+2": 2.0, ".5": 0.5, "5.": 5.0, "1e-3": 1e-3, "2.50": 2.5, "1E2": 100.0, "-0": 0.0,
    "0.1": 0.1, "123456789.123456789": 123456789.123456789, " 1": 1.0, "1 ": 1.0,
}  # fmt: skip
WEIGHTS |= dict.fromkeys(
    ["-1", "1,5", "1.000,5", "1 000", "\u00bd", "nan", "NaN", "inf", "Infinity", "1e400", "1e"], NO
)
WEIGHTS |= dict.fromkeys(["0x10", "1_000", "\u0662", "12%"], NO)
ITSELF = [
    "a b",
    "05",
    "5.50",
    "1e3",
    "5.00",
    "-0.0",
    "12345678901234567.0",
    "NA",
    "None",
    "nan",
    "TRUE",
    "a'b",
    "x" * 300,
]
ITSELF += [
    "a\u00a0",
    "\u2003a",
    "\u200ba",
    "\u3000",
    "\u00e9",
    "e\u0301",
    "\u0085",
    "\u2028x",
    "\ufeffa",
    "a\x0b",
    "\u200f\u05d0",
]
NAMES = dict(zip(ITSELF, ITSELF))  # in a table, what a cell is the name of; elsewhere text is as it is written
NAMES |= {"  a": "a", "a  ": "a", "a\t": "a", " a\t b ": "a\t b", "5.0": "5", "-5.0": "-5", "": NO, "  ": NO, "\t": NO}
CORPUS = {"time": TIMES, "weight": WEIGHTS, "anchor": NAMES}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?")  # of JSON
OPTIONS = EventOptions(provenance=True, max_time_ahead=float("inf"))
HEADER = ["anchor", "near", "far", "time", "weight"]


def rows_of(field, texts):
    return [{"anchor": "A", "near": "B", "far": "C", field: text} for text in texts]


def lines_of(field, texts, quote='"'):
    return [",".join(quote + row.get(name, "") + quote for name in HEADER) for row in rows_of(field, texts)]


def as_csv(quote, end):
    def decode(field, texts, fast):
        return CsvDecoder(OPTIONS, fast)(
            (end.join(lines_of(field, texts, quote)) + end).encode(), ",".join(HEADER).encode()
        )

    return decode


def as_json(end, **how):
    return lambda field, texts, fast: JsonDecoder(OPTIONS, fast)(
        end.join(json.dumps(row, **how) for row in rows_of(field, texts)).encode()
    )


def as_numbers(field, texts, fast):
    return JsonDecoder(OPTIONS, fast)(
        "\n".join(f'{{"anchor":"A","near":"B","far":"C","{field}": {text} }}' for text in texts).encode()
    )


def as_arrow(text):
    def decode(field, texts, fast):
        batch = pa.RecordBatch.from_pylist(rows_of(field, texts))
        return ArrowDecoder(OPTIONS, fast)(batch.replace_schema_metadata(TEXT_CELLS if text else {}))

    return decode


TABLES = {
    "csv": as_csv('"', "\n"),
    "csv, blanks before the line's end": as_csv('"', " \t\n"),
    "csv of Windows": as_csv('"', "\r\n"),
    "csv, bare": as_csv("", "\n"),
    "arrow, of text": as_arrow(True),
}
VALUES = {
    "json": as_json("\n"),
    "json, spread out": as_json(" \r\n", separators=(" ,\t", "  : ")),
    "json, not escaped": as_json(" \t\n", ensure_ascii=False),
    "arrow": as_arrow(False),
}


def told(done, field, number):
    """What each row says: refused, or the value."""
    refused = {each.index for each in done.rejected}
    if field == "anchor":
        said = [done.names[row[0]] for row in done.triplets.tolist()]
    else:
        said = getattr(done.provenance, field).tolist()
    left = iter(said)
    return [NO if row in refused else next(left) for row in range(number)]


def wanted(field, table):
    """Of every text of the corpus. Text that is no cell of a table stands for itself, and is no number."""
    if table:
        return CORPUS[field]
    if field == "anchor":
        return {text: text or NO for text in NAMES}
    return {text: NO if field == "weight" or re.fullmatch("[0-9.e]+", text) else value for text, value in TIMES.items()}


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("way", [*TABLES, *VALUES])
@pytest.mark.parametrize("field", CORPUS)
def test_values_mean_what_they_mean(field, way, fast):
    decode, expected = (TABLES | VALUES)[way], wanted(field, way in TABLES)
    if field == "weight" and way in VALUES:
        expected = dict.fromkeys(WEIGHTS, NO)
    if way == "csv, bare":
        expected = {text: value for text, value in expected.items() if not set(text) & set(',"')}
    for texts in ([*expected], *([text] for text in expected)):
        found = told(decode(field, texts, fast), field, len(texts))
        assert [(text, each) for text, each in zip(texts, found) if each != expected[text]] == []


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("field", ["time", "weight"])
def test_numbers_of_json_are_themselves(field, fast):
    texts = [text for text in CORPUS[field] if NUMBER.fullmatch(text)]
    found = told(as_numbers(field, texts, fast), field, len(texts))
    assert len(texts) > 3 and found == [CORPUS[field][text] for text in texts]


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_decimal_comma_is_read_where_the_delimiter_is_another_character(delimiter, fast):
    rows = [["anchor", "near", "far", "weight", "seconds"], ["A,1", "B,1", "C,1", "2,5", "8,728"], [*"ABC", "1", "0,4"]]
    done = CsvDecoder(OPTIONS._replace(where={"seconds>": "0.5"}), fast)("\n".join(map(delimiter.join, rows)).encode())
    assert (list(done.names), done.filtered, done.rejected) == (["A,1", "B,1", "C,1"], 1, [])
    assert (done.provenance.weight.tolist(), done.provenance.seconds.tolist()) == ([2.5], [8.728])
    assert not done.unknown_fields


@pytest.mark.parametrize("text", ["anchor,near,far,seconds\nA,B,C,{}\n", "anchor;near;far;seconds\nA;B;C;{}\n"])
def test_response_times_whose_commas_are_ambiguous_are_named(text):
    done = CsvDecoder(OPTIONS)(text.format('"1,234,567"').encode())
    assert done.events == {"triplet": 1} and [name.split()[0] for name in done.unknown_fields] == ["seconds"]


def test_a_column_of_decimal_commas_is_recognised_as_response_times():
    columns = {"Target": ["a", "b"], "RT (s)": ["8,728", "2,969"]}
    assert response_times(records_of(columns)) is None  # of a frame, or between commas
    found = response_times(records_of(columns, decimal_commas=True))
    assert found is not None and (found[0], found[1].name) == ("seconds", "RT (s)")


@pytest.mark.parametrize("name", ["Dauer (ms)", "Reaktionszeit", "durée", "tiempo", "RT [ms]"])
def test_response_times_are_recognised_in_other_languages(name):
    found = response_times(records_of({name: ["500", "1200", "900"]}))
    assert found is not None and (found[0], found[1].name) == ("milliseconds", name)


def test_a_time_that_only_increases_is_no_response_time():
    assert response_times(records_of({"tiempo": ["500", "900", "1200", "2100"]})) is None


def test_one_pause_does_not_make_milliseconds_of_seconds():
    unit, _, why = response_times(records_of({"rt": ["0.8", "1.2", "95.5", "0.9"]}))
    assert (unit, why) == ("seconds", "its median is 1.05")
    assert response_times(records_of({"rt": ["800", "1200", "7", "900"]}))[0] == "milliseconds"
