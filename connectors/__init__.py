"""Bytes and positions in, bytes out. Nothing here knows what the bytes mean, but for where a record of CSV ends.

A *source* hands out records in order, each with the position after it; an engine that stores that position together
with the record's effect, and opens the source at it again, misses nothing and repeats nothing. A *sink* takes bytes
and says when they are durable. One file per connector; registered here by URI scheme.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol


class Position(NamedTuple):
    """Where to go on in a partition: `offset` is *after the last read item*.

    `mark` is a check value over what lies before `offset`, chosen by the source (a file: CRC of its first bytes). A
    source that is opened at a position whose mark does not fit knows that the partition was replaced or cut.
    """

    offset: int
    mark: int = 0


class Record(NamedTuple):
    """One item, or one block of whole items, with its place in the stream.

    `unit` says what offsets count: "byte" (text files, decompressed), "row" (Parquet, Arrow), "message" (Kafka) or
    "batch" (deltas).
    `header` is the header line that belongs to a block of CSV. `problem` is set when the source could not deliver the
    item whole (an over-long line, say): the value is what there is, and it is to be rejected with that reason.
    `time` is the broker's or file's time of the record in epoch seconds where there is one.
    """

    value: Any  # bytes, a pyarrow.RecordBatch where the container is a table, or {name: pyarrow.Table} of a delta
    partition: str
    offset: int
    next_offset: int
    mark: int = 0
    format: str = "json"
    unit: str = "byte"
    header: bytes = b""
    key: bytes | None = None
    time: float | None = None
    problem: str = ""
    too_large: bool = False  # that is the problem


class Lost(NamedTuple):
    """What a source goes on without: it was gone before it was read, and going on was allowed."""

    partition: str
    offset: int  # where reading had got to
    going_on_at: int
    records: int | None  # how many are lost; None: nobody knows
    why: str


class Source(Protocol):
    """An ordered stream of records. Opening at a position and starting are the same code path.

    A source says that it is one (`class Files(Source)`) and has what follows, but for the members with a body: those
    are what most sources do. `one_by_one`: a partition is read to its end before the next one is begun, so those that
    wait are not stuck.
    """

    one_by_one: bool = False

    def poll(self, timeout: float) -> list[Record]:
        """The next records; `[]` when there are none within `timeout` seconds. Raises `SourceFailed`."""

    def finished(self) -> bool:
        """True when the end of the input is reached and nothing more will come (never when following)."""

    def ready(self) -> bool:
        """True while the input is reachable (a broker: partitions assigned)."""

    def lag(self) -> Mapping[str, int]:
        """Unread units per partition, as far as it is known."""

    def lag_seconds(self) -> Mapping[str, float]:
        """Age of the last delivered record of each partition with unread ones, 0 where all is read; as far as known."""
        return {}

    def opened(self) -> Mapping[str, Position]:
        """Starting points chosen since the last call for partitions that had no stored position, or lost it.

        They go into the snapshot before any record does, so that a partition in which nothing was read yet does not
        start elsewhere after a restart.
        """
        return {}

    def losses(self) -> list[Lost]:
        """What was lost since the last call; it enters the state together with the starting points of `opened`."""
        return []

    def published(self, positions: Mapping[str, Position]) -> None:
        """Told after a snapshot with these positions is durable; a courtesy to lag tools, never read back."""
        return

    def notices(self) -> list[str]:
        """Sentences for the log since the last call: rotation, truncation, new partitions."""
        return []

    def close(self) -> None: ...


class DeadLetter(NamedTuple):
    """A rejected event: where it stood, why it was refused, and its bytes."""

    partition: str
    offset: int  # of the event itself where the unit allows it, else of its record
    event_index: int  # which event inside the record
    reason: str  # a code from a closed set
    message: str  # one line for people
    value: bytes
    key: bytes | None = None


class Sink(Protocol):
    """Takes dead letters. What was appended before `flush` returned survives a crash."""

    def append(self, letters: list[DeadLetter]) -> None: ...

    def flush(self) -> Any:
        """Make everything appended durable; returns the position (a JSON value) to store in the snapshot that relies
        on it. Raises `SinkUnavailable` when that cannot be done now: nothing is lost, and nothing may be published."""

    def close(self) -> None: ...


class SourceFailed(RuntimeError):
    """The input cannot be read on; the message is one line: where, what, got, expected, next step."""


class SinkUnavailable(RuntimeError):
    """Dead letters cannot be made durable now; they are kept, and the same call may work later."""


class UnusableSource(ValueError):
    """The source cannot be opened as it was asked for: an argument or configuration error."""


# scheme -> "module:callable"; the callable takes (rest, positions, **options)
SOURCES = {
    "file": "connectors.files.source:FileSource",
    "stdin": "connectors.files.stdin:StdinSource",
    "kafka": "connectors.kafka.source:KafkaSource",
    "deltas": "connectors.spark_deltas:DeltaSource",
}
SINKS = {
    "file": "connectors.files.dead_letters:DeadLetterFile",
    "kafka": "connectors.kafka.dead_letter_sink:KafkaDeadLetters",
}


def resolve(name: str, registry: Mapping[str, str]) -> Any:
    """The object registered under `name`; an unknown name lists the known ones."""
    if name not in registry:
        raise UnusableSource(f"unknown scheme {name!r}; known: {', '.join(registry)}")
    module, _, attribute = registry[name].partition(":")
    return getattr(import_module(module), attribute)


def split_uri(uri: str) -> tuple[str, str]:
    """`(scheme, rest)` of a source or sink argument; a plain path is a file and `-` is standard input.

    >>> split_uri("data/*.csv.gz"), split_uri("-"), split_uri("kafka://h:9092/t")
    (('file', 'data/*.csv.gz'), ('stdin', '-'), ('kafka', 'h:9092/t'))
    """
    if uri == "-":
        return "stdin", uri
    scheme, separator, rest = uri.partition("://")
    return (scheme, rest) if separator else ("file", uri)


def open_source(uri: str, positions: Mapping[str, Position], **options: Any) -> Source:
    """Open `uri` at `positions` (partitions that are not in it start at their beginning)."""
    scheme, rest = split_uri(uri)
    return resolve(scheme, SOURCES)(rest, positions, **options)


def records_of(uris: Iterable[str], format: str | None = None) -> Iterator[Record]:
    """All records of sources that end, one source after the other, each from its beginning. Raises what they raise."""
    for uri in uris:
        source = open_source(uri, {}, **({} if format is None else {"format": format}))
        try:
            while not source.finished():
                yield from source.poll(1.0)
        finally:
            source.close()
