"""What the counting job is asked to do: its command line, checked before a cluster is asked. Imports no pyspark."""

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from connectors import UnusableSource, split_uri
from connectors.files import named_twice
from connectors.kafka.client import Address, parse_address
from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats import FORMATS
from stream_engine.formats.event_fields import fields_of, where_of
from stream_engine.formats.options import EventOptions, by_field
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.loading import mapping

SCRIPT = Path(__file__).with_name("counts.py")  # what is submitted


class Job(NamedTuple):
    """What is to be counted and where to; everything here can be sent to an executor."""

    sources: tuple[str, ...]
    out: str
    events: EventOptions
    format: str | None
    options: dict[str, str]  # of Spark's reader, beside ours
    start: str = "earliest"
    follow: bool = False
    every: float = 10.0  # seconds between batches when following
    per_batch: int | None = None  # files, or Kafka messages


def topics(sources: Iterable[str]) -> list[Address]:
    """The addresses of Kafka sources, none when all are files. Raises `UnusableSource`.

    >>> [address.topic for address in topics(["kafka://h:9092/a", "kafka://h:9092/b"])], topics(["events/*.jsonl"])
    (['a', 'b'], [])
    """
    schemes = {split_uri(source)[0] for source in sources}
    if schemes != {"kafka"} and schemes != {"file"}:
        raise UnusableSource(f"sources: got {', '.join(sources)}, expected files, or topics kafka://HOST:PORT/TOPIC")
    addresses = [parse_address(split_uri(source)[1]) for source in sources if schemes == {"kafka"}]
    if len({address.servers for address in addresses}) > 1 or any(address.partitions for address in addresses):
        raise UnusableSource("sources: several brokers or chosen partitions; one job reads whole topics of one cluster")
    return addresses


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the engine does."""

    def error(self, message: str) -> NoReturn:
        """Raise `BadSettings` in place of usage and exit."""
        raise BadSettings(f"spark-counts: {message}")


def arguments() -> argparse.ArgumentParser:
    """The job's own arguments; `stream-engine spark-counts` passes them on."""
    parser = Parser(prog=SCRIPT.name, description="Count comparisons by name on Spark, a delta a batch.")
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="files, globs, or kafka://HOST:PORT/TOPIC")
    parser.add_argument("--out", required=True, metavar="DIR", help="deltas, rejects and checkpoint")
    parser.add_argument("--type", choices=READABLE_TYPES, help="the type of every event")
    parser.add_argument("--columns", default="", metavar="A=B,...", help="names of fields in the input")
    parser.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help="only matching events")
    parser.add_argument("--format", choices=FORMATS, help="instead of going by the file name or the message")
    parser.add_argument(
        "--start", choices=("earliest", "latest"), help="Kafka: offset for the first start (default: earliest)"
    )
    parser.add_argument("--follow", action="store_true", help="keep reading new data")
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="seconds between batches, with --follow (default: 10)"
    )
    parser.add_argument("--per-batch", type=int, metavar="N", help="maximum number of files or messages per batch")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="of Spark's reader: kafka.security..."
    )
    return parser


def job_of(words: Sequence[str]) -> Job:
    """The job that a command line asks for: all that can be seen to be wrong is refused before a cluster is asked.

    Raises `BadSettings`, `UnusableSource`, `UnusableOptions`.
    """
    parsed = arguments().parse_args(words)
    columns = {
        field: tuple(names.split("|")) for field, names in by_field(mapping(parsed.columns, "--columns")).items()
    }
    events = EventOptions(parsed.type, columns, dict(map(where_of, parsed.where)))
    kafka = bool(topics(parsed.sources))
    fields_of(events)
    _check(parsed, kafka)
    return Job(
        tuple(parsed.sources),
        os.path.abspath(parsed.out),
        events,
        parsed.format,
        _pairs(parsed.option, "--option"),
        parsed.start or "earliest",
        parsed.follow,
        parsed.every or 10.0,
        parsed.per_batch,
    )


def _pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """KEY=VALUE each; values may hold commas."""
    return {key: value for text in texts for key, value in mapping(text, option, "\0").items()}


def _check(parsed: argparse.Namespace, kafka: bool) -> None:
    for name, value, most in (("--per-batch", parsed.per_batch, 2**31 - 1), ("--every", parsed.every, 86400)):
        if value is not None and not 0 < value <= most:
            raise BadSettings(f"{name}: got {value}, expected a number above 0, at most {most}")
    if parsed.start and not kafka:
        raise BadSettings("--start: without effect on files, which are counted whole; leave it out")
    if parsed.every and not parsed.follow:
        raise BadSettings("--every: without effect without --follow; leave it out")
    if "://" in parsed.out or (os.path.exists(parsed.out) and not os.path.isdir(parsed.out)):
        raise BadSettings(f"--out: got {parsed.out}, expected a folder, one path for driver, executors and the engine")
    if not kafka and (twice := named_twice(split_uri(source)[1] for source in parsed.sources)):
        raise UnusableSource(f"{twice}: named by two sources, its events would count twice; name it once")
