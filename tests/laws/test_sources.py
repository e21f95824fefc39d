"""Laws of every source: nothing lost, nothing repeated, resume after *every* record, positions that only grow.

A fixture writes items where its source finds them and opens it at positions: `FIXTURES` holds one entry each. What
these laws cannot catch: a source that loses the same items always, before it places them; test_file_source.py compares
with slow references for that.
"""

import csv
import gzip
import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from connectors import Position, Record, Source, open_source
from tests.support.memory_source import MemorySource, Pause

LAWS = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class World(NamedTuple):
    """Items that lie ready for a source; `items_of` takes a record apart again."""

    expected: dict[str, list[str]]  # partition -> its items in order
    open: Callable[[dict[str, Position]], Source]
    items_of: Callable[[Record], list[str]]
    ends: bool = True  # False: a source that waits for more is read until it has given what is there


def _path(folder: Path, name: str) -> str:
    return str((folder / name).absolute())


def _lines(record: Record) -> list[str]:
    assert not record.problem
    return [line.decode() for line in record.value.removesuffix(b"\n").split(b"\n")]


def lines(suffix: str = "", pack: Callable[[bytes], bytes] = bytes, follow: bool = False):
    def make(folder: Path, items: list[str], size: int) -> World:
        path, half = _path(folder, f"e.jsonl{suffix}"), len(items) // 2
        text = [("\n".join(part) + "\n").encode() if part else b"" for part in (items[:half], items[half:])]
        if not follow and size % 2 and items and items[-1]:
            text[1] = text[1][:-1]  # the last line ends with the file
        Path(path).write_bytes(b"".join(pack(part) for part in text))
        return World(
            {path: items}, lambda at: open_source(path, at, follow=follow, block_bytes=size), _lines, ends=not follow
        )

    return make


def _rows(record: Record) -> list[str]:
    assert record.header == b'"a,\nb",c\r\n' and not record.problem
    return [a + b for a, b in csv.reader(io.StringIO(record.value.decode(), newline=""))]


def csv_rows(suffix: str = "", pack: Callable[[bytes], bytes] = bytes):
    def make(folder: Path, items: list[str], size: int) -> World:
        path, out = _path(folder, f"e.csv{suffix}"), io.StringIO(newline="")
        writer = csv.writer(out, lineterminator="\n", quoting=(csv.QUOTE_MINIMAL, csv.QUOTE_ALL)[size % 2])
        for item in items:
            cut = len(item) // 2
            writer.writerow([item[:cut] + '"\n', item[cut:] + '",\n'])
        Path(path).write_bytes(pack(b'\xef\xbb\xbf"a,\nb",c\r\n' + out.getvalue().encode()))
        expected = [item[: len(item) // 2] + '"\n' + item[len(item) // 2 :] + '",\n' for item in items]
        return World({path: expected}, lambda at: open_source(path, at, block_bytes=size), _rows)

    return make


def _column(record: Record) -> list[str]:
    assert record.unit == "row" and record.value.num_rows == record.next_offset - record.offset
    return record.value.column("x").to_pylist()


def table(suffix: str):
    def make(folder: Path, items: list[str], size: int) -> World:
        path, out = _path(folder, f"e{suffix}"), io.BytesIO()
        data = pa.table({"x": pa.array(items, pa.string())})
        if ".parquet" in suffix:
            parquet.write_table(data, out, row_group_size=1 + size % 5)
        else:
            new = pa.ipc.new_stream if size % 2 else pa.ipc.new_file
            with new(out, data.schema) as writer:
                writer.write_table(data, max_chunksize=1 + size % 5)
        Path(path).write_bytes(out.getvalue())
        return World({path: items}, lambda at: open_source(path, at), _column)

    return make


def several_files(folder: Path, items: list[str], size: int) -> World:
    """A glob over files of different kinds, one of them empty."""
    half = len(items) // 2
    expected = lines(".gz", gzip.compress)(folder, items[:half], size).expected
    expected |= table(".parquet")(folder, items[half:], size).expected
    (folder / "e0.jsonl").write_bytes(b"")
    return World(
        expected,
        lambda at: open_source(_path(folder, "e*"), at, block_bytes=size),
        lambda record: _column(record) if record.unit == "row" else _lines(record),
    )


def memory(folder: Path, items: list[str], size: int) -> World:
    """Two partitions, and silences."""
    content: list[Any] = []
    for i, item in enumerate(items):
        content.append(item.encode() if i % 3 else Record(item.encode(), "other", 0, 0))
        content += [Pause()] * (i % size == 0)
    expected = {
        "memory": [item for i, item in enumerate(items) if i % 3],
        "other": [item for i, item in enumerate(items) if i % 3 == 0],
    }
    return World(
        {name: there for name, there in expected.items() if there},
        lambda at: MemorySource("memory", at, items=content, per_poll=size),
        lambda record: [record.value.decode()],
    )


def deltas(folder: Path, items: list[str], size: int) -> World:
    """Batches of a Spark job with one item in each of their rows; some are empty."""
    partition, pieces = (
        f"deltas://{folder}",
        [items[at : at + 1 + size % 3] for at in range(0, len(items), 1 + size % 3)],
    )
    (folder / "delta").mkdir()
    (folder / "delta" / "job.json").write_text('{"query": "q", "format": 1}')
    for number, piece in enumerate(pieces):
        part = folder / "delta" / f"batch={number}" / "part=x"
        part.mkdir(parents=True)
        parquet.write_table(pa.table({"x": pa.array(piece, pa.string())}), part / "one.parquet")
    return World(
        {partition: items},
        lambda at: open_source(partition, at),
        lambda record: record.value["x"].column("x").to_pylist(),
    )


def _frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


FIXTURES: dict[str, Callable[[Path, list[str], int], World]] = {
    "lines": lines(),
    "lines, two gzip members": lines(".gz", gzip.compress),
    "lines, two zstd frames": lines(".zst", _frame),
    "lines, followed": lines(follow=True),
    "csv": csv_rows(),
    "csv.gz": csv_rows(".gz", gzip.compress),
    "parquet": table(".parquet"),
    "arrow": table(".arrow"),
    "several files": several_files,
    "memory": memory,
    "deltas": deltas,
}

# No line ends of other kinds: files have "\n" (and "\r\n", which is a "\n")
ITEMS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"), max_size=12), max_size=12)
SIZES = st.integers(1, 80)


@pytest.fixture(params=FIXTURES, ids=lambda name: name.replace(" ", "_"))
def fixture(request):
    return FIXTURES[request.param]


def drain(world: World, source: Source, enough: int) -> list[Record]:
    """The records to the end, or, where there is no end, `enough` items and one look that finds no more."""
    records: list[Record] = []
    try:
        while not source.finished():
            had = sum(len(world.items_of(record)) for record in records)
            more = source.poll(1.0 if world.ends or had < enough else 0.0)
            records += more
            if not more and not world.ends and had >= enough:
                break
        if world.ends:
            assert source.poll(0.0) == [] and not any(source.lag().values())
    finally:
        source.close()
    return records


def by_partition(world: World, records: list[Record]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in records:
        found.setdefault(record.partition, []).extend(world.items_of(record))
    return found


def check(world: World) -> None:
    total = sum(map(len, world.expected.values()))
    records = drain(world, world.open({}), total)
    assert by_partition(world, records) == {name: items for name, items in world.expected.items() if items}
    at: dict[str, Position] = {}
    for i, record in enumerate(records):
        assert at.get(record.partition, Position(0)).offset <= record.offset < record.next_offset
        at[record.partition] = Position(record.next_offset, record.mark)
        left = by_partition(world, records[i + 1 :])
        rest = drain(world, world.open(dict(at)), sum(map(len, left.values())))
        assert by_partition(world, rest) == left, f"resumed after record {i} at {at}"


@LAWS
@given(items=ITEMS, size=SIZES)
def test_resume_after_every_record_gives_exactly_the_rest(fixture, tmp_path_factory, items, size):
    check(fixture(tmp_path_factory.mktemp("world"), items, size))


def test_resume_far_behind_the_first_bytes(fixture, tmp_path):
    """Beyond the first bytes that positions are checked with, and beyond a piece of compressed input."""
    check(fixture(tmp_path, [f"{i}:" + "ab"[i % 2] * (i * 7919 % 3000) for i in range(12)], 3000))


def test_lag_shrinks_to_nothing_in_every_partition(fixture, tmp_path):
    """Once it is known it does not grow; at the end it is known for all."""
    world = fixture(tmp_path, [f"item {i}" for i in range(40)], 50)
    source, lags, looks = world.open({}), [], 0
    try:
        while not (source.finished() or (not world.ends and lags and not any(lags[-1].values()))) and looks < 200:
            looks += 1
            if source.poll(0.1):
                lags.append(source.lag())
        lags.append(source.lag())
    finally:
        source.close()
    assert lags[-1].keys() >= world.expected.keys() and not any(lags[-1].values())
    for earlier, later in pairwise(lags):
        assert all(later[name] <= n for name, n in earlier.items())


@LAWS
@given(items=ITEMS, cut=st.integers(1, 30), size=SIZES)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_half_written_tail_is_not_consumed_until_it_is_whole(suffix, tmp_path_factory, items, cut, size):
    """Write in pieces that end anywhere: never is anything read but whole items, and in the end all of them."""
    world = (lines() if suffix == "jsonl" else csv_rows())(tmp_path_factory.mktemp("world"), items, 2 * size)
    (path,) = world.expected
    content = Path(path).read_bytes()
    Path(path).write_bytes(b"")
    source, records = open_source(path, {}, follow=True, block_bytes=size), []
    with open(path, "ab", buffering=0) as file:
        for at in range(0, len(content), cut):
            file.write(content[at : at + cut])
            while more := source.poll(0.0):
                records += more
            whole = [item for record in records for item in world.items_of(record)]
            assert whole == world.expected[path][: len(whole)]
            assert all(record.value.endswith(b"\n") for record in records)
            assert not records or records[-1].next_offset <= at + cut
    source.close()
    assert by_partition(world, records).get(path, []) == world.expected[path]
