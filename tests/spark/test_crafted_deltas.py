"""Deltas that are whole Parquet files and hold what no job writes: one line that stops the source, nothing counted."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from connectors import Record, SourceFailed, UnusableSource, open_source
from stream_engine.state import spark_deltas
from stream_engine.state.engine import Engine
from stream_engine.state.spark_deltas import COLUMNS
from tests.support import spark_written
from tests.support.spark_written import messages

COUNTS = ("adds3", "adds4", "triplet_counts", "quadruplet_counts")


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> Record:
    batch = messages(np.random.default_rng(3), 60)
    batches = [[[r for r in batch if r.partition == f"t/{p}"] for p in (0, 1)]]
    folder = spark_written.deltas(tmp_path_factory.mktemp("deltas"), batches)
    (found,) = open_source(spark_written.source_of(folder), {}).poll(0)
    return found


def changed(column: pa.ChunkedArray) -> Iterator[tuple[str, pa.Array]]:
    """The column, wrong in each way that a column can be."""
    n, values = len(column), column.to_pylist()
    yield "nulls", pa.nulls(n, column.type)
    yield "one null", pa.array([None, *values[1:]], column.type)
    yield "lists", pa.array([[1]] * n)
    yield "a struct", pa.array([{"x": 1}] * n)
    yield "other text", pa.array([str(value) for value in values], pa.large_string())
    yield "a dictionary", pa.array([str(value) for value in values]).dictionary_encode()
    yield "floats", pa.array([float("nan")] * n)
    if pa.types.is_integer(column.type):
        for value in (-1, 0, 2**53, 2**62, -(2**63)):
            yield str(value), pa.array([value, *values[1:]], column.type)
        yield "int32", pa.array([1] * n, pa.int32())
    else:
        for value in (b"", b"x" * 1025):
            yield (
                f"{len(value)} bytes",
                pa.array([value, *[v or b"" for v in values[1:]]], pa.binary()).cast(column.type),
            )
        yield (
            "not UTF-8",
            pa.Array.from_buffers(
                column.type, n, [None, pa.py_buffer(np.arange(n + 1, dtype=np.int32)), pa.py_buffer(b"\xff" * n)]
            ),
        )
        yield "all the same", pa.array(["x"] * n).cast(column.type)


def crafted(tables: dict[str, pa.Table]) -> Iterator[tuple[str, dict[str, object]]]:
    for part, table in tables.items():
        for name in COLUMNS[part].values():
            place = table.column_names.index(name)
            for what, column in changed(table.column(name)):
                yield f"{part}.{name}: {what}", {**tables, part: table.set_column(place, name, column)}
            yield f"{part}.{name}: left out", {**tables, part: table.drop_columns([name])}
            yield f"{part}.{name}: twice", {**tables, part: table.append_column(name, table.column(name))}
        yield f"{part}: twice", {**tables, part: pa.concat_tables([table, table])}
        yield f"{part}: left out", {key: value for key, value in tables.items() if key != part}
        yield f"{part}: a row too few", {**tables, part: table.slice(1)}
    yield "a part too many", {**tables, "zzz": tables["counters"]}


def test_no_crafted_delta_does_harm(record):
    """Refused in one line; or taken, and then the counts are as counters say, and go on to a snapshot."""
    wrong_sums = {
        f"{part}.{COLUMNS[part][meaning]}: {how}"
        for part, how in product(record.value, ("one null", "floats", "int32"))
        for meaning in spark_deltas.sums_of(part)
    }
    seen = refused = 0
    for what, tables in crafted(record.value):
        seen += 1
        made = Engine(COUNTS, True)
        try:
            decoded, _ = spark_deltas.decode(record._replace(value=tables))
        except SourceFailed as error:
            assert "\n" not in str(error) and "restore it" in str(error), what
            refused += 1
            continue
        assert what not in wrong_sums
        made.learn(decoded)
        assert made.counters["triplets"] == sum(
            int(made.accumulators["triplet_counts"].state()[name].sum()) for name in ("n_lo", "n_hi")
        ), what
        made.snapshot()
    assert seen > 350 and refused > 0.8 * seen, (seen, refused)


@pytest.mark.parametrize(
    "job", [b"[" * 100_000, b"[]", b"\xff", b'{"query": 1}', b'{"query": "q", "format": [1]}', b"null"]
)
def test_a_crafted_job_file_is_one_line(job, tmp_path):
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "job.json").write_bytes(job)
    (tmp_path / "delta" / "batch=²").mkdir()
    with pytest.raises((SourceFailed, UnusableSource)) as raised:
        open_source(f"deltas://{tmp_path}", {}).poll(0)
    assert "\n" not in str(raised.value)
