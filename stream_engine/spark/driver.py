"""The driver of the counting job: from sources to published batches, exactly once.

    DIR/delta/batch=0/part=triplet_counts/….parquet    one folder per batch, complete or absent
    DIR/delta/job.json                                 whose batches these are
    DIR/checkpoint                                     Spark's own: offsets and commits
    DIR/lock                                           held by the driver: one at a time

Spark repeats a batch that it could not commit, with its input and number: a batch is written under another name, synced
and renamed, and skipped if it exists. Labels of a batch come partition by partition.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from connectors import UnusableSource, split_uri
from connectors.disk import Disk, FolderInUse, FolderLock, write_whole
from connectors.kafka.client import Address
from connectors.spark_deltas import FORMAT
from stream_engine.formats.options import UnusableOptions
from stream_engine.input.settings import BadSettings
from stream_engine.spark.job_arguments import SCRIPT, Job, job_of, topics
from stream_engine.spark.task_counts import Reader, files, messages, partition_counter
from stream_engine.state.spark_deltas import KEY, SCHEMA, SUMMED


def stream(spark: Any, job: Job) -> tuple[Any, Reader]:
    """The streaming frame of the sources, and how its partitions are read."""
    addresses = topics(job.sources)
    return (_kafka_stream(spark, job, addresses), messages) if addresses else (_file_stream(spark, job), files)


def _kafka_stream(spark: Any, job: Job, addresses: list[Address]) -> Any:
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
    return reader.options(**job.options).load().select("key", "value", "topic", "partition", "offset")


def _file_stream(spark: Any, job: Job) -> Any:
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
    return frame


def as_glob(path: str) -> str:
    """What Spark's file source is to be given for a path: it takes folders and globs, but no single file.

    >>> as_glob("/events/*.jsonl"), as_glob(__file__).replace(os.path.dirname(__file__), "")
    ('/events/*.jsonl', '/[d]river.py')
    """
    if not os.path.isfile(path):
        return path
    folder, name = os.path.split(path)
    plain = next((position for position, letter in enumerate(name) if letter.isalnum()), 0)
    letters = ["\\" + letter if letter in "*?[]{}^,\\" else letter for letter in name]
    letters[plain] = f"[{name[plain]}]"
    return os.path.join(folder, "".join(letters))


class Deltas:
    """Where batches are published: `DIR/delta`.

    Invariant: `batch=N` is there whole, durable and once, or not at all.
    """

    def __init__(self, out: str | Path, disk: Disk | None = None):
        self.folder, self._disk = Path(out) / "delta", disk or Disk()

    def claim(self, query: str) -> None:
        """Make the folder this query's. Raises `RuntimeError` when it is another one's.

        Another query counts from batch 0 again: its batches would pass for the old ones.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "job.json"
        if not path.exists():
            if any(self.folder.glob("batch=*")):
                raise RuntimeError(f"{path}: is gone, but there are batches; restore it, or name another --out")
            text = json.dumps({"format": FORMAT, "query": query}).encode()
            write_whole(self._disk, path, [text])
        owner = json.loads(path.read_text())["query"]
        if owner != query:
            raise RuntimeError(
                f"{self.folder}: holds the batches of query {owner}, this is {query}: the checkpoint was "
                "removed or is another one; restore it, or name another --out"
            )

    def publish(self, frame: Any, number: int) -> bool:
        """Write the rows of a batch; False when it was there already (its commit was lost, not its rows)."""
        path = self.folder / f"batch={number}"
        if path.exists():
            return False
        for folder in self.folder.glob(".batch=*"):  # by an attempt that died; a query has one driver
            shutil.rmtree(folder)
        write_whole(self._disk, path, frame.write.partitionBy("part").parquet)
        return True


class OutInUse(RuntimeError):
    """Another job writes to the folder: two drivers would write the same batches over each other."""


def owned(out: str | Path) -> FolderLock:
    """Take the folder for this driver, until it is released or the process ends. Raises `OutInUse`, `OSError`."""
    try:
        return FolderLock(out)
    except FolderInUse:
        raise OutInUse(f"--out {out}: another job writes there; wait for its end, or name another") from None


def run(spark: Any, job: Job, disk: Disk | None = None) -> None:
    """Count until the input that is there is read, or, following, until the query is stopped."""
    from pyspark.sql import functions as f

    frame, read = stream(spark, job)
    deltas, checkpoint = Deltas(job.out, disk), Path(job.out) / "checkpoint"

    def batch(events: Any, number: int) -> None:
        deltas.claim(json.loads((checkpoint / "metadata").read_text())["id"])
        shares = events.mapInArrow(partition_counter(job, read), SCHEMA)
        deltas.publish(shares.groupBy(*KEY).agg(*(f.sum(name).alias(name) for name in SUMMED)), number)

    # One file is one piece of work, however small: without this Spark packs small ones into one task.
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    trigger = {"processingTime": f"{job.every} seconds"} if job.follow else {"availableNow": True}
    query = (
        frame.writeStream.foreachBatch(batch).option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
    )
    query.awaitTermination()


def main(arguments: list[str] | None = None, disk: Disk | None = None) -> int:
    """What `spark-submit counts.py` runs; the exit status. `disk`: where batches are published."""
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import SparkSession

    try:
        job = job_of(sys.argv[1:] if arguments is None else arguments)
    except (BadSettings, UnusableSource, UnusableOptions) as error:
        return _failed(error, 2)
    try:
        lock = owned(job.out)
    except (OutInUse, OSError) as error:
        return _failed(error, 1)
    spark = SparkSession.builder.appName("stream-engine counts").getOrCreate()
    try:
        run(spark, job, disk)
    except StreamingQueryException as error:
        return _failed(what_failed(str(error)), 1)
    finally:
        spark.stop()
        lock.release()
    return 0


def _failed(problem: object, status: int) -> int:
    """Tell a problem in one line on standard error; returns the exit status."""
    print(f"{SCRIPT.name}: {problem}", file=sys.stderr)
    return status


def what_failed(report: str) -> str:
    """The line that says it, out of all that Spark tells about a query that ended.

    >>> what_failed("Aborted:\\n  File x\\nconnectors.SourceFailed: a.parquet: not a Parquet file\\n\\tat org.apache")
    'a.parquet: not a Parquet file'
    >>> what_failed("[STREAM_FAILED] Query terminated\\nand more")
    '[STREAM_FAILED] Query terminated'
    """
    our_errors = re.findall(r"^(?:(?:connectors|stream_engine)[\w.]*|RuntimeError): (.+)$", report, re.MULTILINE)
    return our_errors[-1] if our_errors else report.strip().split("\n")[0]
