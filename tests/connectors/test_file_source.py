"""Files as users have them: framing against a slow reference, positions that do not fit, what cannot be read."""

import gzip
import os
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from connectors import Position, UnusableSource
from connectors.files import tables
from connectors.files.source import FileSource
from tests.support.csv_reference import fields_of_record, line_end
from tests.support.facts import states, stating
from tests.support.read_sources import LINES, TABLE, drain, failed, frame, ipc, written

# -- framing against the definition --------------------------------------------------------------------------------


def slow_end(data: bytes, start: int, limit: int) -> int:
    """Where the CSV record of one field at `start` ends by the plain rules; 0 when `limit` bytes do not tell."""
    seen = data[start : start + limit + 1]
    end, fields, closed = fields_of_record(seen, 0)
    if len(fields) + (not closed) < 2 and (end == len(seen) < len(data) - start or end > limit):
        return 0
    if not (closed and len(fields) == 1):
        end = line_end(seen, 0)
    return start + end + (end < len(seen))


def slow_items(data: bytes, start: int, limit: int, is_csv: bool):
    """`(item, whole)` after `start`: records, or where none ends in time the physical line, as it must be delivered."""
    while start < len(data):
        line = data.find(b"\n", start) + 1 or len(data)
        end = slow_end(data, start, limit) if is_csv else line
        whole = 0 < end <= start + limit
        end = end if whole else line
        yield data[start:end], whole
        start = end


def taken_apart(records, limit, is_csv):
    for record in records:
        if record.problem:
            yield record.value, False
        else:
            yield from slow_items(record.value, 0, limit, is_csv)


PIECES = st.lists(st.sampled_from([b'"', b"\n", b",", b"a", b'"\n', b'""', b'"a\n,"\n', b'b,"c"\n']), max_size=25)


@settings(max_examples=400, deadline=None)
@given(pieces=PIECES, block=st.integers(1, 30), limit=st.integers(3, 40))
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "csv.gz"])
def test_items_are_those_of_the_definition_for_all_block_sizes(suffix, tmp_path_factory, pieces, block, limit):
    is_csv, body = suffix.startswith("csv"), b"".join(pieces)
    start = b"h\n" if is_csv else b""
    pack = gzip.compress if suffix.endswith("gz") else bytes
    path = written(tmp_path_factory.mktemp("f") / f"x.{suffix}", pack(start + body))
    records = drain(FileSource(path, {}, block_bytes=block, max_item_bytes=limit))
    assert list(taken_apart(records, limit, is_csv)) == list(slow_items(start + body, len(start), limit, is_csv))
    assert b"".join(record.value for record in records) == body
    assert [r.offset for r in records] + [len(start + body)] == [len(start)] + [r.next_offset for r in records]
    for i in range(len(records)):  # blocks depend on where reading starts, on nothing else
        positions = {path: Position(records[i].offset, zlib.crc32((start + body)[: records[i].offset]))}
        assert drain(FileSource(path, positions, block_bytes=block, max_item_bytes=limit)) == records[i:]


def test_a_line_over_the_limit_is_one_problem_in_bounded_memory(tmp_path):
    long = b"x" * (30 << 20)
    path = written(tmp_path / "x.jsonl.zst", frame(b"1\n" + long + b"\n2\n"))
    tracemalloc.start()
    records = drain(FileSource(path, {}, block_bytes=1 << 20, max_item_bytes=4 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(r.offset, r.next_offset, len(r.value)) for r in records] == [
        (0, 2, 2),
        (2, len(long) + 3, 1 << 20),
        (len(long) + 3, len(long) + 5, 2),
    ]
    assert states(records[1].problem, "31,457,281 bytes … 4,194,304")
    assert peak < 12 << 20
    positions = {path: Position(records[1].next_offset, records[1].mark)}
    assert [r.value for r in drain(FileSource(path, positions))] == [b"2\n"]


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"a,b\r1,2\r", "CR alone"),
        (b'a,"b\n1,2\n', "quote"),
        (b'"' * 3 + b"\n" * 9, "close"),
    ],
)
def test_no_table_of_lines(tmp_path, data, expected):
    records, message = failed(FileSource(written(tmp_path / "x.csv", data), {}))
    assert records == []
    assert states(message, expected)
    assert "x.csv" in message


@pytest.mark.parametrize(
    "name, data",
    [
        ("x.jsonl", b""),
        ("x.csv", b""),
        ("x.csv", b"a,b"),
        ("x.csv", b"\n\r\na,b\r\n"),
        ("x.jsonl", b"\xef\xbb\xbf"),
        ("x.csv", b"\xef\xbb\xbf"),
        ("x.jsonl.gz", gzip.compress(b"", mtime=0)),
        ("x.csv.zst", frame(b"")),
        ("x.jsonl.zst", b"\x50\x2a\x4d\x18\1\0\0\0x"),
    ],
)
def test_nothing_in_it(tmp_path, name, data):
    source = FileSource(written(tmp_path / name, data), {})
    assert drain(source) == [] and not any(source.lag().values())


def test_header_and_byte_order_mark(tmp_path):
    path = written(tmp_path / "x.csv", b"\xef\xbb\xbf\na,b\r\n1,2\r\n")
    (record,) = drain(FileSource(path, {}))
    assert (record.header, record.value, record.offset, record.next_offset) == (b"a,b\r\n", b"1,2\r\n", 9, 14)
    path = written(tmp_path / "x.jsonl", b"\xef\xbb\xbf{}\n")
    (record,) = drain(FileSource(path, {}))
    assert (record.header, record.value, record.offset) == (b"", b"{}\n", 3)
    assert record.mark == zlib.crc32(b"\xef\xbb\xbf{}\n")


# -- positions that do not fit, and paths that cannot be read -------------------------------------------------------


def test_a_cut_beyond_the_first_bytes_and_a_table_of_another_length_are_refused(tmp_path):
    long = LINES * 50
    path = written(tmp_path / "x.jsonl.gz", gzip.compress(long))
    positions = {path: Position(len(long), zlib.crc32(long[:4096]))}
    assert drain(FileSource(path, positions)) == []
    records, message = failed(FileSource(written(tmp_path / "x.jsonl.gz", gzip.compress(long[:9000])), positions))
    assert records == [] and "9,000 bytes" in message
    for suffix, write in [
        ("parquet", lambda table, to: parquet.write_table(table, to)),
        ("arrow", lambda table, to: Path(to).write_bytes(ipc(pa.ipc.new_stream))),
    ]:
        path = str(tmp_path / f"x.{suffix}")
        write(TABLE, path)
        last = drain(FileSource(path, {}))[-1]
        assert drain(FileSource(path, {path: Position(last.next_offset, last.mark)})) == []
        assert "10 rows" in failed(FileSource(path, {path: Position(10, last.mark + 1)}))[1]
        _, message = failed(FileSource(path, {path: Position(11, last.mark)}))
        assert states(message, "10 rows … 11 rows")


def test_nothing_is_read_from_any_file_when_one_was_replaced(tmp_path):
    good, long = written(tmp_path / "a.jsonl", LINES), LINES * 20
    positions = {good: Position(100, zlib.crc32(LINES[:100]))}
    for content, offset in [(LINES[:50], 100), (b"other" + LINES, 100), (long[:5000], 8000)]:
        bad = written(tmp_path / "b.jsonl", content)
        positions[bad] = Position(offset, zlib.crc32(long[: min(4096, offset)]))
        source = FileSource(str(tmp_path / "*.jsonl"), positions)
        records, message = failed(source)
        assert records == []
        assert "b.jsonl was replaced" in message
        assert not source.ready()


def test_an_unterminated_last_line_that_has_grown_is_not_read_as_two(tmp_path):
    path = written(tmp_path / "x.jsonl", b"1\n{2")
    *_, last = drain(FileSource(path, {}))
    assert last.value == b"{2"
    positions = {path: Position(last.next_offset, last.mark)}
    for more, values, problems in [
        (b"", [], 0),
        (b"\n", [], 0),
        (b"\r\n3\n", [b"3\n"], 0),
        (b"}\n3\n", [b"}\n", b"3\n"], 1),
    ]:
        records = drain(FileSource(written(tmp_path / "x.jsonl", b"1\n{2" + more), positions))
        assert [r.value for r in records] == values and sum(bool(r.problem) for r in records) == problems


@pytest.mark.parametrize(
    "name, expected",
    [
        ("", "directory"),
        ("missing.jsonl", "No such file or directory"),
        ("x.parquet.gz", "text"),
        ("*.csv", "file"),
        ("x.log", "'.log' … CSV or Excel"),
        ("pipe.jsonl", "regular file"),
        ("*", "'.log'"),
    ],
)
def test_unusable(tmp_path, name, expected):
    (tmp_path / "x.log").write_text("1\n")
    os.mkfifo(tmp_path / "pipe.jsonl")
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(b"PAR1")
    if name == "*":
        os.unlink(tmp_path / "pipe.jsonl")
    with pytest.raises(UnusableSource) as refused:
        FileSource(str(tmp_path / name), {})
    assert states(str(refused.value), expected) and "\n" not in str(refused.value)


def test_the_format_can_be_named(tmp_path):
    path = written(tmp_path / "x.txt.gz", gzip.compress(b"a,b\n1,2\n"))
    assert drain(FileSource(path, {}, format="csv"))[0].header == b"a,b\n"
    assert drain(FileSource(path, {}, format="json"))[0].value == b"a,b\n1,2\n"
    with pytest.raises(UnusableSource, match=stating("'orc' … json … csv … parquet … arrow")):
        FileSource(path, {}, format="orc")
    with pytest.raises(UnusableSource, match="1"):
        FileSource(path, {}, format="csv", block_bytes=0)


def test_names_are_sorted_odd_names_are_names_and_partitions_are_text(tmp_path, monkeypatch):
    for name in ("b.jsonl", "a[1].jsonl", "c\udcff.jsonl"):
        (tmp_path / name).write_bytes(name.encode(errors="replace") + b"\n")
    monkeypatch.chdir(tmp_path)
    assert [r.value for r in drain(FileSource("a[1].jsonl", {}))] == [b"a[1].jsonl\n"]
    records = drain(FileSource("*.jsonl", {}))
    assert [r.partition for r in records] == [f"{tmp_path}/{n}.jsonl" for n in ("a[1]", "b", "c\\xff")]
    positions = {r.partition: Position(r.next_offset, r.mark) for r in records}
    assert drain(FileSource("*.jsonl", positions)) == []


def test_lag_is_what_is_unread_of_the_files_whose_size_says_so(tmp_path):
    """Text from its position on, compressed text as it lies there; not the rows of a table, nor a file that is gone."""
    paths = [f"{tmp_path}/{name}" for name in ("a.jsonl", "b.jsonl.gz", "c.parquet", "d.jsonl")]
    for path in (paths[0], paths[3]):
        Path(path).write_bytes(b"1\n22\n")
    Path(paths[1]).write_bytes(gzip.compress(b"1\n"))
    parquet.write_table(TABLE, paths[2])
    source = FileSource(f"{tmp_path}/*", {paths[0]: Position(2)})
    os.remove(paths[3])
    assert source.lag() == {paths[0]: 3, paths[1]: os.path.getsize(paths[1])}


@pytest.mark.parametrize("suffix, ends", [("parquet", [3, 6, 8, 10]), ("arrow", [3, 4, 7, 8, 10])])
def test_big_batches_are_cut_and_may_be_resumed_inside(tmp_path, monkeypatch, suffix, ends):
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    path = str(tmp_path / f"x.{suffix}")
    if suffix == "parquet":
        parquet.write_table(TABLE, path, row_group_size=8)
    else:
        Path(path).write_bytes(ipc(pa.ipc.new_file))
    source, lag = FileSource(path, {}), []
    records = []
    while not source.finished():
        records += source.poll(0)
        lag.append(source.lag().get(path))
    assert [r.next_offset for r in records] == ends
    assert [row for r in records for row in r.value.to_pylist()] == TABLE.to_pylist()
    assert lag == ([7, 4, 2, 0, 0] if suffix == "parquet" else [None] * 5 + [0])
    for start in range(11):
        rest = drain(FileSource(path, {path: Position(start, records[0].mark)}))
        assert [row for r in rest for row in r.value.to_pylist()] == TABLE.to_pylist()[start:]
