"""Bytes and positions in, bytes out: sources know nothing of the content, except where a CSV record ends.

A source returns records in order, each with the position after it; whoever stores the position together with the
effect of the record, and reopens the source there, neither misses nor repeats anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple, Protocol

from stream_engine.data import registered


class Position(NamedTuple):
    """Where to resume in a partition.

    Attributes
    ----------
    offset : int
        The offset *after the last item read*.
    mark : int
        A check value over the data before `offset`, chosen by the source (a file: CRC of its first bytes). If it does
        not match when the source is opened, the partition was replaced or truncated.
    """

    offset: int
    mark: int = 0


class Record(NamedTuple):
    """One item, or one block of whole items, with its location in the stream.

    Attributes
    ----------
    value : bytes, pyarrow.RecordBatch, or dict of str to pyarrow.Table
        The content; tables if the container is a table, or if it is a delta.
    partition : str
        The partition.
    offset : int
        Offset of the first item.
    next_offset : int
        Offset after the last item.
    mark : int
        Check value of the position after the record.
    format : str
        Format of the content.
    unit : {'byte', 'row', 'message', 'batch'}
        What offsets count: "byte" (text files, decompressed), "row" (Parquet, Arrow), "message" (Kafka) or "batch"
        (deltas).
    header : bytes
        The header line of a block of CSV.
    key : bytes or None
        Key of a message.
    time : float or None
        The broker's or file's time in epoch seconds, if there is one.
    problem : str
        Why the source could not deliver the complete item (an over-long line, for example): `value` is the available
        part, and the item is rejected with this reason.
    too_large : bool
        Whether the size is the problem.
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


class LostRecords(NamedTuple):
    """Records that a source skips with consent, because they were deleted before they were read."""

    partition: str
    offset: int  # position reached by reading
    going_on_at: int
    records: int | None  # how many are lost; None: unknown
    why: str


class Source(Protocol):
    """An ordered stream of records. A start and a resumption use the same code.

    A source inherits from this class (`class Files(Source)`) and implements the members without a body; the others have
    defaults that suit most sources. `one_by_one`: a partition is read to its end before the next one begins, so
    partitions that wait are not stalled.
    """

    one_by_one: bool = False

    def poll(self, timeout: float) -> list[Record]:
        """Read the next records.

        Parameters
        ----------
        timeout : float
            Seconds to wait for records.

        Returns
        -------
        list of Record
            The records; empty if there are none within `timeout`.

        Raises
        ------
        SourceFailed
            If the input cannot be read any further.
        """

    def finished(self) -> bool:
        """Whether the end of the input is reached and nothing more will come (never when following).

        Returns
        -------
        bool
            The answer.
        """

    def ready(self) -> bool:
        """Whether the input is reachable (for a broker: partitions are assigned).

        Returns
        -------
        bool
            The answer.
        """

    def away(self) -> str:
        """Why the input is not reachable.

        Returns
        -------
        str
            The reason in a few words; "" if the source cannot say.
        """
        return ""

    def lag(self) -> Mapping[str, int]:
        """Unread data.

        Returns
        -------
        mapping of str to int
            Unread units per partition, as far as known.
        """

    def lag_seconds(self) -> Mapping[str, float]:
        """Delay of reading.

        Returns
        -------
        mapping of str to float
            Age of the last delivered record of each partition with unread ones, 0 if all is read; as far as known.
        """
        return {}

    def opened(self) -> Mapping[str, Position]:
        """Starting points chosen since the last call for partitions whose stored position is missing or lost.

        They are stored in the snapshot before any record, so a partition from which nothing was read does not start
        elsewhere after a restart.

        Returns
        -------
        mapping of str to Position
            The starting points by partition.
        """
        return {}

    def losses(self) -> list[LostRecords]:
        """Records lost since the last call; they are stored in the state together with the starting points of `opened`.

        Returns
        -------
        list of LostRecords
            The losses.
        """
        return []

    def published(self, positions: Mapping[str, Position]) -> None:
        """Called when a snapshot with these positions is durable; informs lag tools, and is never read back.

        Parameters
        ----------
        positions : mapping of str to Position
            The positions.
        """
        return

    def refused_commits(self) -> int:
        """How often what `published` told was refused.

        Returns
        -------
        int
            Refusals since the last call.
        """
        return 0

    def notices(self) -> list[str]:
        """Messages for the log since the last call: rotation, truncation, new partitions.

        Returns
        -------
        list of str
            The messages.
        """
        return []

    def close(self) -> None:
        """Close the source."""


class DeadLetter(NamedTuple):
    """A rejected event: its location, the reason, and its bytes."""

    partition: str
    offset: int  # of the event itself if the unit allows it, else of its record
    event_index: int  # number of the event in the record
    reason: str  # a code from a closed set
    message: str  # one line for people
    value: bytes
    key: bytes | None = None


class Table(Protocol):
    """Rows by name, kept somewhere else; the callable takes (rest, options). All raise `SinkUnavailable`."""

    def open(self) -> None:
        """Shut out every earlier writer."""

    def rows(self) -> dict[bytes, bytes]:
        """The rows that it holds, by name."""

    def change(self, rows: Mapping[bytes, bytes | None], headers: Mapping[str, str]) -> None:
        """Write all of these rows, None for one that is gone, or none of them."""

    def close(self) -> None:
        """Let go of connections; nothing is written."""


class SourceFailed(RuntimeError):
    """The input cannot be read any further; the message is one line: where, what, got, expected, next step."""


class SinkUnavailable(RuntimeError):
    """Dead letters cannot be made durable now; they are kept, and the same call may succeed later."""


class UnusableSource(ValueError):
    """The source cannot be opened with these arguments: an argument or configuration error."""


# scheme -> "module:callable"; the callable takes (rest, positions, **options)
SOURCES = {
    "file": "connectors.files.source:FileSource",
    "stdin": "connectors.files.stdin:StdinSource",
    "kafka": "connectors.kafka.schema_registry:open_topic",
    "deltas": "connectors.spark_deltas:DeltaSource",
    "s3": "connectors.stores.source:S3",
    "gs": "connectors.stores.source:GoogleStorage",
    "https": "connectors.stores.source:Https",
    "http": "connectors.stores.source:Http",
}
STORES = ("s3", "gs", "https", "http")  # what is read as local files are
TABLES = {
    "kafka": "connectors.kafka.written_topics:TableTopic",
    "jsonl": "connectors.files.table_file:TableFile",
}


def resolve(name: str, registry: Mapping[str, str]) -> Any:
    """The object registered under `name`; an unknown name lists the known ones."""
    if name not in registry:
        raise UnusableSource(f"unknown scheme {name!r}; known: {', '.join(registry)}")
    return registered(registry[name])


def split_uri(uri: str) -> tuple[str, str]:
    """`(scheme, rest)` of an argument; a plain path is a file and `-` is standard input.

    >>> split_uri("data/*.csv.gz"), split_uri("-"), split_uri("kafka://h:9092/t")
    (('file', 'data/*.csv.gz'), ('stdin', '-'), ('kafka', 'h:9092/t'))
    """
    if uri == "-":
        return "stdin", uri
    scheme, separator, location = uri.partition("://")
    return (scheme, location) if separator else ("file", uri)


def open_source(uri: str, positions: Mapping[str, Position], **options: Any) -> Source:
    """Open `uri` at `positions` (other partitions start at their beginning)."""
    scheme, location = split_uri(uri)
    return resolve(scheme, SOURCES)(location, positions, **options)


def records_of(uris: Iterable[str], format: str | None = None) -> Iterator[Record]:
    """All records of finite sources, one source after the other, each from its beginning. Raises the sources'
    exceptions."""
    for uri in uris:
        with closing(open_source(uri, {}, **({} if format is None else {"format": format}))) as source:
            while not source.finished():
                yield from source.poll(1.0)
