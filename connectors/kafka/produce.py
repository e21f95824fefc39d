"""Files of events to a Kafka topic, one event a message or many: `stream-engine produce`.

Lines of JSON are sent as they are, also bad ones. Rows of CSV, Parquet and Arrow become JSON objects, or stay columns
(`encoding="arrow"`: one Arrow IPC stream a message). Invariant: events keep their order within each partition of the
topic, and what is counted is acknowledged by all in-sync replicas; the idempotent producer's retries repeat none.
"""

import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from connectors import Record, UnusableSource, open_source
from connectors.files.csv_scanner import column_names, header_line
from connectors.kafka.address import parse_address
from connectors.kafka.producers import SENDERS

ENCODINGS = ("json", "arrow")
LISTS = ("objects", "shown", "chosen", "ranked")  # in a table's text: names separated by |
PAIRS = ("near", "far")  # in a table: near_i, near_j
NULLED = ("label",)  # an empty cell says null; elsewhere it is no field at all


class Produced(NamedTuple):
    """What was acknowledged; `skipped` items could not be read (over-long lines, CSV rows of another width)."""

    events: int
    messages: int
    bytes: int
    skipped: int
    seconds: float


class Message(NamedTuple):
    value: bytes
    events: int


def produce(
    paths: Iterable[str],
    uri: str,
    *,
    options: Mapping[str, Any] | None = None,
    batch: int = 1,
    encoding: str = "json",
    rate: float | None = None,
    client: str = "kafka-python",
    format: str | None = None,
    progress: Callable[[int], object] | None = None,
    patience: float = 60.0,
) -> Produced:
    """Send the events of `paths` (as the file source takes them) to `uri`, "kafka://host:port/topic".

    `batch` events go into one message: JSON lines, or with `encoding="arrow"` an Arrow IPC stream (these do not
    span two blocks of a file, so some are shorter). `rate` limits events per second. `progress(n)` hears of n events
    more. `options` are those of the [kafka] section; `client="confluent"` sends about ten times as fast.
    Raises `UnusableSource`, `SourceFailed`, and `SinkUnavailable` when nothing is acknowledged for `patience` seconds.
    """
    address = parse_address(uri.removeprefix("kafka://"))
    if encoding not in ENCODINGS or batch < 1 or (rate is not None and rate <= 0):
        raise UnusableSource(
            f"produce: got encoding {encoding!r}, batch {batch}, rate {rate}; expected one of "
            f"{', '.join(ENCODINGS)}, at least 1, and more than 0"
        )
    skipped: list[str] = []
    records = _records(paths, format)
    messages = (_arrow_messages if encoding == "arrow" else _json_messages)(records, batch, skipped)
    options = dict(options or {})
    client = options.pop("client", client)
    producer = SENDERS[client] if client in SENDERS else _unknown(client)
    began = time.monotonic()
    sent = size = count = 0
    with producer(address, options, patience) as sender:
        for message in messages:
            if rate is not None:
                time.sleep(max(0.0, began + sent / rate - time.monotonic()))
            sender.send(message.value)
            sent, size, count = sent + message.events, size + len(message.value), count + 1
            if progress is not None:
                progress(message.events)
        sender.flush()
    return Produced(sent, count, size, len(skipped), time.monotonic() - began)


def _unknown(client: str) -> Any:
    raise UnusableSource(f"kafka client: got {client!r}, expected one of {', '.join(SENDERS)}")


# ---- files to messages


def _records(paths: Iterable[str], format: str | None) -> Iterator[Record]:
    for path in paths:
        source = open_source(path, {}, **({} if format is None else {"format": format}))
        try:
            while not source.finished():
                yield from source.poll(1.0)
        finally:
            source.close()


def _json_messages(records: Iterable[Record], batch: int, skipped: list[str]) -> Iterator[Message]:
    lines = _lines(records, skipped)
    while chosen := list(islice(lines, batch)):
        yield Message(b"\n".join(chosen), len(chosen))


def _lines(records: Iterable[Record], skipped: list[str]) -> Iterator[bytes]:
    for record in records:
        if record.problem:
            skipped.append(record.problem)
        elif record.format == "json":
            yield from (line for line in map(bytes.strip, record.value.split(b"\n")) if line)
        else:
            yield from _objects(_table(record, skipped))


def _objects(table: Any) -> Iterator[bytes]:
    """The rows of a table as JSON objects, with lists and pairs as JSON events have them."""
    import msgspec

    encode = msgspec.json.Encoder().encode
    for some in table.to_batches(max_chunksize=10_000):
        for row in some.to_pylist():
            yield encode(_event(row))


def _event(row: dict[str, Any]) -> dict[str, Any]:
    """One row as an event.

    >>> _event({"type": "pick", "anchor": "a", "shown": "b|c", "chosen": "b", "label": None, "worker": None})
    {'type': 'pick', 'anchor': 'a', 'shown': ['b', 'c'], 'chosen': ['b'], 'label': None}
    >>> _event({"near_i": "a", "near_j": "b", "far_i": "c", "far_j": "d"})
    {'near': ['a', 'b'], 'far': ['c', 'd']}
    """
    event = {key: value for key, value in row.items() if value is not None or key in NULLED}
    for key in LISTS:
        if isinstance(event.get(key), str):
            event[key] = event[key].split("|")
    for key in PAIRS:
        if f"{key}_i" in event and f"{key}_j" in event:
            event[key] = [event.pop(f"{key}_i"), event.pop(f"{key}_j")]
    return event


def _arrow_messages(records: Iterable[Record], batch: int, skipped: list[str]) -> Iterator[Message]:
    for record in records:
        if record.problem:
            skipped.append(record.problem)
            continue
        table = _table(record, skipped)
        for at in range(0, table.num_rows, batch):
            part = table.slice(at, batch)
            yield Message(_stream(part), part.num_rows)


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def _table(record: Record, skipped: list[str]) -> Any:
    """A block of rows as a `pyarrow.Table`. Raises `UnusableSource` when its lines do not make columns."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.json

    place = f"{record.partition}@{record.offset}"
    try:
        if record.format == "arrow":
            return pa.Table.from_batches([record.value])
        if record.format == "json":
            return pa.json.read_json(io.BytesIO(record.value), pa.json.ReadOptions(use_threads=False))
        return _csv_table(record, skipped)
    except pa.ArrowException as error:
        line = str(error).splitlines()[0]
        raise UnusableSource(
            f"{place}: {line}; the block does not fit into columns, --encoding json sends its lines as they are"
        ) from error


def _csv_table(record: Record, skipped: list[str]) -> Any:
    """CSV rows with every column as text ("05" stays "05"); an empty cell is null."""
    import pyarrow as pa
    import pyarrow.csv

    def pass_over(row: Any) -> str:
        skipped.append(f"{row.actual_columns} fields, expected {row.expected_columns}")
        return "skip"

    names = column_names(record.header or header_line(record.value)[0])
    parse = pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=pass_over)
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    whole = io.BytesIO(record.header + record.value)
    return pa.csv.read_csv(whole, pa.csv.ReadOptions(use_threads=False), parse, convert)
