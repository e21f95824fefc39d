"""Deltas as the job writes them, without Spark: its shares summed by pyarrow. What Spark adds is tested on Spark."""

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from connectors import Record
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.formats.options import EventOptions
from stream_engine.spark.driver import Deltas
from stream_engine.spark.job_arguments import Job
from stream_engine.spark.task_counts import partition_counter
from stream_engine.state.spark_deltas import KEY, SUMMED, table_of
from tests.support.event_worlds import some_event

DEFAULT = EventOptions()


def job(out: Path, options: EventOptions = DEFAULT, format: str | None = None) -> Job:
    return Job((), str(out), options, format, {})


def claimed(out: Path, query: str = "q") -> Deltas:
    """A folder of deltas that belongs to a query."""
    deltas = Deltas(out)
    deltas.claim(query)
    return deltas


def summed(rows: Iterable[pa.RecordBatch]) -> pa.Table:
    """What the job's one shuffle does."""
    table = pa.Table.from_batches(list(rows), table_of("counters", {}).schema)
    made = table.group_by(list(KEY)).aggregate([(name, "sum") for name in SUMMED])
    return made.rename_columns([*KEY, *SUMMED])


def write(out: Path, number: int, rows: pa.Table) -> None:
    """A batch in the job's layout, two files a part."""
    (out / "delta" / f"batch={number}").mkdir(parents=True)
    (out / "delta" / f"batch={number}" / "_SUCCESS").touch()
    for part in set(rows.column("part").to_pylist()):
        folder = out / "delta" / f"batch={number}" / f"part={part}"
        folder.mkdir(parents=True)
        mine = rows.filter(pc.equal(rows.column("part"), part)).drop_columns(["part"])
        half = mine.num_rows // 2
        for name, piece in (("b", mine.slice(0, half)), ("a", mine.slice(half))):
            parquet.write_table(piece, folder / f"part-{name}.parquet")


def deltas(out: Path, batches: Iterable[Iterable[list[Record]]], options: EventOptions = DEFAULT) -> Path:
    """Deltas of batches, each of some tasks, each of records that follow each other."""
    claimed(out)
    for number, tasks in enumerate(batches):
        rows: list[pa.RecordBatch] = []
        for records in tasks:
            rows += partition_counter(job(out, options), lambda _, given: given)([records])
        write(out, number, summed(rows))
    return out


def source_of(out: Path) -> str:
    return f"deltas://{out}"


def messages(rng, n: int, faults: bool = True) -> list[Record]:
    """Messages of two partitions in the order of one process: partition by partition would be another one."""
    at = {"t/0": 0, "t/1": 0}
    made = []
    for _ in range(n):
        event = some_event(rng, EVENT_TYPES[rng.integers(len(EVENT_TYPES))], faults)
        value = b"{" if faults and rng.random() < 0.1 else json.dumps(event).encode()
        name = f"t/{rng.integers(2)}"
        made.append(
            Record(value, name, at[name], at[name] + 1, unit="message", key=b"k" if rng.random() < 0.5 else None)
        )
        at[name] += 1
    return made
