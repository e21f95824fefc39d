"""The counting job for Spark Structured Streaming: events in, one delta of counts by name out for each micro-batch.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION counts.py kafka://HOST:PORT/TOPIC --out DIR

Spark shards, shuffles, retries and checkpoints; what an event means is said by the engine's own decoders. A task is an
engine without a guard: it decodes its share of the batch, counts it by id, and hands over its counts by *name*, lo and hi
in the order of names (code point by code point). One shuffle sums the shares; see `SCHEMA` for the rows.

    DIR/delta/batch=0/part=triplet_counts/….parquet    one folder a batch, there whole or not at all
    DIR/delta/job.json                                 whose batches these are
    DIR/checkpoint                                     Spark's own: offsets and commits
    DIR/lock                                           held by the driver: one at a time

Exactly once: Spark gives a batch that it could not commit the same input and the same number again; a batch is written
beside, synced and renamed, and one that is already there is passed over. DIR and files of events are paths that driver
and executors all see. Order between the partitions of a batch is lost, as order is for counts; labels of a batch are
taken partition by partition.
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

FORMAT = 1  # of the deltas
COUNTED = ("adds3", "adds4", "triplet_counts", "quadruplet_counts")

# part                a, b, c, d                  at, nth          m, n
# adds3, adds4        i, j                                         w, 0
# triplet_counts      anchor, lo, hi                               n_lo, n_hi
# quadruplet_counts   i, j, k, l                                   n_lo, n_hi
# counters            counter, kind                                how many, 0
# labels              object, label, partition    offset, order    1, 0          label null: taken back
# rejected            partition, reason, message  offset, index    1, 0          with value and key
SCHEMA = (
    "part string, a string, b string, c string, d string, at long, nth long, value binary, key binary, m long, n long"
)
KEY = ("part", "a", "b", "c", "d", "at", "nth", "value", "key")
ROWS_AT_ONCE = 1 << 16


class Job(NamedTuple):
    """What is to be counted and where to; everything here can be sent to an executor."""

    sources: tuple[str, ...]
    out: str
    events: Any  # EventOptions
    format: str | None
    options: dict[str, str]  # of Spark's reader, beside ours
    start: str = "earliest"
    follow: bool = False
    every: float = 10.0  # seconds between batches when following
    per_batch: int | None = None  # files, or Kafka messages


# ---- in the executors: Arrow batches of records to rows of counts


class Share:
    """What one task has counted: an engine's accumulators and counters, and labels and refusals with their places."""

    def __init__(self, job: Job):
        from stream_engine.service.ingest import Intake
        from stream_engine.state.engine import Engine

        self._intake = Intake(job.events, job.format)
        self._engine = Engine(COUNTED, guard=None)
        self._labels: dict[str, tuple] = {}
        self._rejected: list[tuple] = []

    def count(self, records: list) -> None:
        """Decode records that follow each other and count what they say."""
        for block in self._intake.blocks(records):
            self._engine.learn(block.decoded, records=block.counts().total())
            last = block.records[-1]
            for nth, (name, label) in enumerate(block.decoded.labels):
                self._labels[name] = name, label, last.partition, last.offset, nth
            self._rejected += [
                (each.partition, each.reason, each.message, each.offset, each.event_index, each.value, each.key)
                for each in block.letters
            ]

    def rows(self) -> Iterator:
        """The share as Arrow batches of `SCHEMA`."""
        for part, columns in self._parts():
            table = table_of(part, columns)
            yield from table.to_batches(max_chunksize=ROWS_AT_ONCE)

    def _parts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        import numpy as np
        import pyarrow as pa

        engine = self._engine
        held = list(engine.objects.names)
        order = sorted(range(len(held)), key=held.__getitem__)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        names = pa.array([held[i] for i in order], pa.string())
        for part, each in engine.accumulators.items():
            state = each.renamed(each.state(), rank)
            if part == "triplet_counts":
                sizes = np.diff(state["start"])
                ids = state["anchor"], np.repeat(state["lo"], sizes), np.repeat(state["hi"], sizes)
            else:
                ids = tuple(state[key] for key in "ijkl" if key in state)
            counts = (
                (state["w"], np.zeros(len(state["w"]), np.int64)) if "w" in state else (state["n_lo"], state["n_hi"])
            )
            if len(ids[0]):
                yield (
                    part,
                    dict(zip("abcd", (names.take(pa.array(column)) for column in ids))) | dict(zip("mn", counts)),
                )
        yield "counters", _columns(counter_rows(engine.counters), "a", "b", "m")
        yield "labels", _columns([(*row, 1) for row in self._labels.values()], "a", "b", "c", "at", "nth", "m")
        yield (
            "rejected",
            _columns([(*row, 1) for row in self._rejected], "a", "b", "c", "at", "nth", "value", "key", "m"),
        )


def counter_rows(counters: dict[str, Any]) -> list[tuple[str, str, int]]:
    """An engine's counters as rows that can be summed; the kinds of a table are the second column.

    >>> counter_rows({"events": 2, "empty": 0, "kinds": {"triplet": 2}, "unknown_fields": ["rt"], "guard": {}})
    [('events', '', 2), ('kinds', 'triplet', 2), ('unknown_fields', 'rt', 1)]
    """
    rows = []
    for name, value in counters.items():
        table = (
            value if isinstance(value, dict) else dict.fromkeys(value, 1) if isinstance(value, list) else {"": value}
        )
        rows += [(name, kind, n) for kind, n in table.items() if isinstance(n, int) and n]
    return rows


def _columns(rows: list[tuple], *names: str) -> dict[str, list]:
    return dict(zip(names, map(list, zip(*rows, strict=True)))) if rows else {}


def table_of(part: str, columns: dict[str, Any]):
    """Columns as an Arrow table of `SCHEMA`; absent ones are null, absent counts zero."""
    import pyarrow as pa

    size = len(next(iter(columns.values()), ()))
    kinds = {"string": pa.string(), "long": pa.int64(), "binary": pa.binary()}
    made = {}
    for name, kind in (column.split() for column in SCHEMA.split(", ")):
        given = columns.get(name, [0] * size if name in "mn" else None)
        made[name] = pa.nulls(size, kinds[kind]) if given is None else pa.array(given, kinds[kind])
    made["part"] = pa.array([part] * size, pa.string())
    return pa.table(made)


def counted(job: Job, read):
    """What Spark maps over the partitions of a batch; `read(job, batches)` gives lists of the connectors' records."""

    def share(batches: Iterable) -> Iterator:
        mine = Share(job)
        for records in read(job, batches):
            mine.count(records)
        yield from mine.rows()

    return share


def messages(job: Job, batches: Iterable) -> Iterator[list]:
    """Rows key, value, topic, partition, offset of Spark's Kafka source as records, as the engine's own source gives them."""
    from connectors import Record
    from connectors.kafka.address import partition_name
    from connectors.kafka.client import sniff

    for batch in batches:
        key, value, topic, partition, offset = (
            batch.column(name).to_pylist() for name in ("key", "value", "topic", "partition", "offset")
        )
        yield [
            Record(v or b"", partition_name(t, p), at, at + 1, format=job.format or sniff(v), unit="message", key=k)
            for k, v, t, p, at in zip(key, value, topic, partition, offset, strict=True)
        ]


def files(job: Job, batches: Iterable) -> Iterator[list]:
    """Rows path of Spark's file source; each file is read where it lies, by the engine's own reader."""
    from connectors import UnusableSource, open_source

    for batch in batches:
        for uri in batch.column("path").to_pylist():
            scheme, colon, path = uri.partition(":")
            if scheme != "file" or not colon:
                raise UnusableSource(
                    f"{uri}: got a file system of its own, expected a path that all executors see; mount it"
                )
            source = open_source("/" + path.lstrip("/"), {}, format=job.format)
            try:
                while not source.finished():
                    if records := source.poll(1.0):
                        yield records
            finally:
                source.close()


# ---- in the driver: sources, batches, publication


def topics(sources: Iterable[str]) -> list:
    """The addresses of Kafka sources, none when all are files. Raises `UnusableSource`.

    >>> [address.topic for address in topics(["kafka://h:9092/a", "kafka://h:9092/b"])], topics(["events/*.jsonl"])
    (['a', 'b'], [])
    """
    from connectors import UnusableSource, split_uri
    from connectors.kafka.address import parse_address

    schemes = {split_uri(source)[0] for source in sources}
    if schemes != {"kafka"} and schemes != {"file"}:
        raise UnusableSource(f"sources: got {', '.join(sources)}, expected files, or topics kafka://HOST:PORT/TOPIC")
    addresses = [parse_address(split_uri(source)[1]) for source in sources if schemes == {"kafka"}]
    if len({address.servers for address in addresses}) > 1 or any(address.partitions for address in addresses):
        raise UnusableSource("sources: several brokers or chosen partitions; one job reads whole topics of one cluster")
    return addresses


def stream(spark, job: Job):
    """The streaming frame of the sources, and how its partitions are read."""
    from connectors import split_uri

    if addresses := topics(job.sources):
        reader = spark.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": ",".join(addresses[0].servers),
                "subscribe": ",".join(address.topic for address in addresses),
                "startingOffsets": job.start,
                "failOnDataLoss": "true",
                "kafka.isolation.level": "read_committed",
            }
        )
        if job.per_batch:
            reader = reader.option("maxOffsetsPerTrigger", job.per_batch)
        return reader.options(**job.options).load().select("key", "value", "topic", "partition", "offset"), messages
    frame = None
    for source in job.sources:
        reader = (
            spark.readStream.format("binaryFile")
            .options(**job.options)
            .schema("path string, modificationTime timestamp, length long, content binary")
        )  # what is not selected is not read
        if job.per_batch:
            reader = reader.option("maxFilesPerTrigger", job.per_batch)
        more = reader.load(as_glob(os.path.abspath(split_uri(source)[1]))).select("path")
        frame = more if frame is None else frame.unionAll(more)
    return frame, files


def as_glob(path: str) -> str:
    """What Spark's file source is to be given for a path: it takes folders and globs, but no single file.

    >>> as_glob("/events/*.jsonl"), as_glob(__file__).replace(os.path.dirname(__file__), "")
    ('/events/*.jsonl', '/[c]ounts.py')
    """
    if not os.path.isfile(path):
        return path
    folder, name = os.path.split(path)
    plain = next((at for at, letter in enumerate(name) if letter.isalnum()), 0)
    letters = ["\\" + letter if letter in "*?[]{}^,\\" else letter for letter in name]
    letters[plain] = f"[{name[plain]}]"
    return os.path.join(folder, "".join(letters))


class Deltas:
    """Where batches are published: `DIR/delta`. Invariant: `batch=N` is there whole, durable and once, or not at all."""

    def __init__(self, out: str | Path):
        self.folder = Path(out) / "delta"

    def claim(self, query: str) -> None:
        """Make the folder this query's. Another one counts from batch 0 again: its batches would pass for the old ones."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "job.json"
        if not path.exists():
            if any(self.folder.glob("batch=*")):
                raise RuntimeError(f"{path}: is gone, but there are batches; restore it, or name another --out")
            text = json.dumps({"format": FORMAT, "query": query}).encode()
            _published(path, lambda temporary: temporary.write_bytes(text))
        known = json.loads(path.read_text())["query"]
        if known != query:
            raise RuntimeError(
                f"{self.folder}: holds the batches of query {known}, this is {query}: the checkpoint was "
                "removed or is another one; restore it, or name another --out"
            )

    def publish(self, frame, number: int) -> bool:
        """Write the rows of a batch; False when it was there already (its commit was lost, not its rows)."""
        path = self.folder / f"batch={number}"
        if path.exists():
            return False
        for left in self.folder.glob(".batch=*"):  # by an attempt that died; a query has one driver
            shutil.rmtree(left)
        _published(path, lambda temporary: frame.write.partitionBy("part").parquet(str(temporary)))
        return True


class OutInUse(RuntimeError):
    """Another job writes to the folder: two drivers would write the same batches over each other."""


def owned(out: str | Path) -> int:
    """Take the folder for this driver, as long as the number is open or the process lives. Raises `OutInUse`, OSError."""
    Path(out).mkdir(parents=True, exist_ok=True)
    lock = os.open(Path(out) / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise OutInUse(f"--out {out}: another job writes there; wait for its end, or name another") from None
    return lock


def _published(path: Path, write) -> None:
    """Write under a name that no one reads, sync all of it, rename, sync the name."""
    from connectors.disk import Disk

    disk, temporary = Disk(), path.with_name(f".{path.name}")
    write(temporary)
    for folder, _, names in os.walk(temporary, topdown=False):
        for name in names:
            disk.fsync(os.path.join(folder, name))
        disk.fsync_dir(folder)
    if temporary.is_file():
        disk.fsync(temporary)
    disk.rename(temporary, path)
    disk.fsync_dir(path.parent)


def run(spark, job: Job) -> None:
    """Count until the input that is there is read, or, following, until the query is stopped."""
    from pyspark.sql import functions as f

    frame, read = stream(spark, job)
    deltas, checkpoint = Deltas(job.out), Path(job.out) / "checkpoint"

    def batch(events, number: int) -> None:
        deltas.claim(json.loads((checkpoint / "metadata").read_text())["id"])
        shares = events.mapInArrow(counted(job, read), SCHEMA)
        deltas.publish(shares.groupBy(*KEY).agg(f.sum("m").alias("m"), f.sum("n").alias("n")), number)

    # One file is one piece of work, however small: without this Spark packs small ones into one task.
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    trigger = {"processingTime": f"{job.every} seconds"} if job.follow else {"availableNow": True}
    query = (
        frame.writeStream.foreachBatch(batch).option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
    )
    query.awaitTermination()


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the engine does."""

    def error(self, message: str):
        """Raise `BadSettings` in place of usage and exit."""
        from stream_engine.service.settings import BadSettings

        raise BadSettings(f"spark-counts: {message}")


def parser() -> argparse.ArgumentParser:
    """The job's own arguments; `stream-engine spark-counts` passes them on."""
    from stream_engine.data.comparisons import EVENT_TYPES
    from stream_engine.formats import FORMATS

    made = Parser(prog="counts.py", description="Count comparisons by name on Spark, a delta a batch.")
    made.add_argument("sources", nargs="+", metavar="SOURCE", help="files, globs, or kafka://HOST:PORT/TOPIC")
    made.add_argument("--out", required=True, metavar="DIR", help="deltas, rejects and checkpoint")
    made.add_argument("--type", choices=EVENT_TYPES, help="the type of every event")
    made.add_argument("--columns", default="", metavar="A=B,...", help="names of fields in the input")
    made.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help="only matching events")
    made.add_argument("--format", choices=FORMATS, help="instead of going by the file name or the message")
    made.add_argument(
        "--start", choices=("earliest", "latest"), help="Kafka: where a first start begins; earliest if not said"
    )
    made.add_argument("--follow", action="store_true", help="keep counting what comes")
    made.add_argument("--every", type=float, metavar="SECONDS", help="between batches, with --follow; 10 if not said")
    made.add_argument("--per-batch", type=int, metavar="N", help="at most N files or messages a batch")
    made.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="of Spark's reader: kafka.security..."
    )
    return made


def job_of(arguments: list[str]) -> Job:
    """The job that a command line asks for. Raises `BadSettings`, `UnusableSource`, `UnusableOptions`: all that can be seen to be
    wrong before a cluster is asked."""
    from connectors import UnusableSource, split_uri
    from connectors.files.paths import named_twice
    from stream_engine.formats.event_fields import fields_of
    from stream_engine.formats.options import EventOptions
    from stream_engine.service.settings import BadSettings, mapping

    given = parser().parse_args(arguments)
    columns = {field: tuple(names.split("|")) for field, names in mapping(given.columns, "--columns").items()}
    where = {key: value for text in given.where for key, value in mapping(text, "--where", "\0").items()}
    options = {key: value for text in given.option for key, value in mapping(text, "--option", "\0").items()}
    events, kafka = EventOptions(given.type, columns, where), bool(topics(given.sources))
    fields_of(events)
    for name, value, most in (("--per-batch", given.per_batch, 2**31 - 1), ("--every", given.every, 86400)):
        if value is not None and not 0 < value <= most:
            raise BadSettings(f"{name}: got {value}, expected a number above 0, at most {most}")
    if given.start and not kafka:
        raise BadSettings("--start: without effect on files, which are counted whole; leave it out")
    if given.every and not given.follow:
        raise BadSettings("--every: without effect without --follow; leave it out")
    if "://" in given.out or (os.path.exists(given.out) and not os.path.isdir(given.out)):
        raise BadSettings(f"--out: got {given.out}, expected a folder, one path for driver, executors and the engine")
    if not kafka and (twice := named_twice(split_uri(source)[1] for source in given.sources)):
        raise UnusableSource(f"{twice}: named by two sources, its events would count twice; name it once")
    return Job(
        tuple(given.sources),
        os.path.abspath(given.out),
        events,
        given.format,
        options,
        given.start or "earliest",
        given.follow,
        given.every or 10.0,
        given.per_batch,
    )


def main(arguments: list[str] | None = None) -> int:
    """What `spark-submit counts.py` runs; the exit status."""
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import SparkSession

    from connectors import UnusableSource
    from stream_engine.formats.options import UnusableOptions
    from stream_engine.service.settings import BadSettings

    try:
        job = job_of(sys.argv[1:] if arguments is None else arguments)
    except (BadSettings, UnusableSource, UnusableOptions) as error:
        print(f"counts.py: {error}", file=sys.stderr)
        return 2
    try:
        lock = owned(job.out)
    except (OutInUse, OSError) as error:
        print(f"counts.py: {error}", file=sys.stderr)
        return 1
    spark = SparkSession.builder.appName("stream-engine counts").getOrCreate()
    try:
        run(spark, job)
    except StreamingQueryException as error:
        print(f"counts.py: {what_failed(str(error))}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
        os.close(lock)
    return 0


def what_failed(report: str) -> str:
    """The line that says it, out of all that Spark tells about a query that ended.

    >>> what_failed("Job aborted:\\n  File x\\nconnectors.SourceFailed: a.parquet: not a Parquet file\\n\\tat org.apache.spark")
    'a.parquet: not a Parquet file'
    >>> what_failed("[STREAM_FAILED] Query terminated\\nand more")
    '[STREAM_FAILED] Query terminated'
    """
    ours = re.findall(r"^(?:(?:connectors|stream_engine)[\w.]*|RuntimeError): (.+)$", report, re.MULTILINE)
    return ours[-1] if ours else report.strip().split("\n")[0]


if __name__ == "__main__":
    from stream_engine.spark import counts  # executors import it by this name, not as the script that it also is

    sys.exit(counts.main())
