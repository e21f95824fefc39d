"""What a task of the counting job does, in the executors: Arrow batches of records to rows of counts.

What an event means is said by the engine's own decoders. A task is an engine without a guard: it decodes its share of
the batch, counts it by id, and hands over its counts by *name*, lo and hi in the order of names (code point by code
point).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from connectors import Record, UnusableSource, records_of
from connectors.kafka.client import partition_name, sniff
from stream_engine.input.decoding import RecordDecoder
from stream_engine.spark.job_arguments import Job
from stream_engine.state.engine import Engine
from stream_engine.state.spark_deltas import COUNTS, objects_of, sums_of, table_of

ROWS_AT_ONCE = 1 << 16
Reader = Callable[[Job, Iterable], Iterator[list[Record]]]


class Share:
    """What one task has counted: an engine's accumulators and counters, and labels and refusals with their places."""

    def __init__(self, job: Job):
        self._ingest = RecordDecoder(job.events, job.format)
        self._engine = Engine(COUNTS, guard=False)
        self._labels: dict[str, tuple] = {}
        self._rejected: list[tuple] = []

    def count(self, records: list[Record]) -> None:
        """Decode records that follow each other and count what they say."""
        for block in self._ingest.blocks(records):
            self._engine.learn(block.decoded, records=block.counts().total())
            last = block.records[-1]
            for order, (name, label) in enumerate(block.decoded.labels):
                self._labels[name] = name, label, last.partition, last.offset, order, 1
            self._rejected += [(*letter, 1) for letter in block.dead_letters]

    def rows(self) -> Iterator[Any]:
        """The share as Arrow batches of `SCHEMA`."""
        for part, columns in self._parts():
            yield from table_of(part, columns).to_batches(max_chunksize=ROWS_AT_ONCE)

    def _parts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self._counts()
        yield "counters", _columns(counter_rows(self._engine.counters), "counter", "kind", "count")
        where = "partition", "offset"
        yield "labels", _columns(self._labels.values(), "object", "label", *where, "order", "count")
        yield (
            "rejected",
            _columns(self._rejected, *where, "event_index", "reason", "message", "value", "key", "count"),
        )

    def _counts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The states of the accumulators, with names for ids."""
        import numpy as np
        import pyarrow as pa

        seen_names = list(self._engine.objects.names)
        order = sorted(range(len(seen_names)), key=seen_names.__getitem__)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        names = pa.array([seen_names[i] for i in order], pa.string())
        for part, accumulator in self._engine.accumulators.items():
            state = dict(accumulator.renamed(accumulator.state(), rank))
            if part == "triplet_counts":
                sizes = np.diff(state["start"])
                state |= {"lo": np.repeat(state["lo"], sizes), "hi": np.repeat(state["hi"], sizes)}
            objects = {meaning: names.take(pa.array(state[meaning])) for meaning in objects_of(part)}
            if len(next(iter(objects.values()))):
                yield part, objects | {meaning: state[meaning] for meaning in sums_of(part)}


def counter_rows(counters: dict[str, Any]) -> list[tuple[str, str, int]]:
    """An engine's counters as rows that can be summed; the kinds of a table are the second column.

    >>> counter_rows({"events": 2, "empty": 0, "kinds": {"triplet": 2}, "unknown_fields": ["rt"], "guard": {}})
    [('events', '', 2), ('kinds', 'triplet', 2), ('unknown_fields', 'rt', 1)]
    """
    rows = []
    for name, value in counters.items():
        if isinstance(value, list):
            table = dict.fromkeys(value, 1)
        else:
            table = value if isinstance(value, dict) else {"": value}
        rows += [(name, kind, n) for kind, n in table.items() if isinstance(n, int) and n]
    return rows


def _columns(rows: Iterable[tuple], *meanings: str) -> dict[str, list]:
    return dict(zip(meanings, map(list, zip(*rows, strict=True))))


def partition_counter(job: Job, read: Reader) -> Callable[[Iterable], Iterator[Any]]:
    """What Spark maps over the partitions of a batch; `read(job, batches)` gives lists of the connectors' records."""

    def share(batches: Iterable) -> Iterator[Any]:
        mine = Share(job)
        for records in read(job, batches):
            mine.count(records)
        yield from mine.rows()

    return share


def messages(job: Job, batches: Iterable) -> Iterator[list[Record]]:
    """Rows of Spark's Kafka source as records, as the engine's own source gives them.

    Their columns are key, value, topic, partition, offset.
    """
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("key", "value", "topic", "partition", "offset"))
        yield [
            Record(
                value or b"",
                partition_name(topic, partition),
                offset,
                offset + 1,
                format=job.format or sniff(value),
                unit="message",
                key=key,
            )
            for key, value, topic, partition, offset in zip(*columns, strict=True)
        ]


def files(job: Job, batches: Iterable) -> Iterator[list[Record]]:
    """Rows path of Spark's file source; each file is read where it lies, by the engine's own reader."""
    for batch in batches:
        for uri in batch.column("path").to_pylist():
            scheme, colon, path = uri.partition(":")
            if scheme != "file" or not colon:
                raise UnusableSource(
                    f"{uri}: got a file system of its own, expected a path that all executors see; mount it"
                )
            for record in records_of(["/" + path.lstrip("/")], job.format):
                yield [record]
