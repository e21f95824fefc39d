"""Records of events as messages for a topic, with one or more events each: what `stream-engine produce` sends.

Lines of JSON are sent unchanged, even invalid ones; rows of CSV, Parquet and Arrow as columns (`encoding="arrow"`: one
Arrow IPC stream per message), lines too if they fit into columns. Invariant: the messages hold the events of the
records in order, and decode to the same events as the records.
"""

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from connectors import Record, UnusableSource
from connectors.kafka.produce import Message
from stream_engine.data.csv_grammar import column_names, delimiter_of, header_line

ENCODINGS = ("json", "arrow")


class EventMessages:
    """The messages of some records, to iterate over once; `skipped` counts what could not be read so far.

    Each message holds `batch` events: JSON lines, or with `encoding="arrow"` an Arrow IPC stream (these do not span two
    records, so some are shorter). Over-long lines and CSV rows of the wrong width are skipped. Raises `UnusableSource`,
    also during iteration: for a block that does not fit into columns, or rows that are to be lines.

    >>> lines = Record(b'{"anchor": "a", "near": "b", "far": "c"}\\n\\n{"anchor"\\n', "f.jsonl", 0, 52)
    >>> [message.value for message in EventMessages([lines])]
    [b'{"anchor": "a", "near": "b", "far": "c"}', b'{"anchor"']
    """

    def __init__(self, records: Iterable[Record], encoding: str = "json", batch: int = 1):
        if encoding not in ENCODINGS or batch < 1:
            raise UnusableSource(
                f"produce: got encoding {encoding!r}, batch {batch}; expected one of {', '.join(ENCODINGS)}, at least 1"
            )
        self._records, self._encoding, self._batch = records, encoding, batch
        self.skipped = 0

    def __iter__(self) -> Iterator[Message]:
        return self._arrow() if self._encoding == "arrow" else self._json()

    def _whole(self) -> Iterator[Record]:
        """The records without items that are incomplete."""
        for record in self._records:
            if record.problem:
                self.skipped += 1
            else:
                yield record

    def _json(self) -> Iterator[Message]:
        lines = self._lines()
        while together := list(islice(lines, self._batch)):
            yield Message(b"\n".join(together), len(together))

    def _lines(self) -> Iterator[bytes]:
        for record in self._whole():
            if record.format != "json":
                raise UnusableSource(
                    f"{record.partition}: got rows of a table, expected lines of JSON; --encoding arrow"
                )
            yield from (line for line in map(bytes.strip, record.value.split(b"\n")) if line)

    def _arrow(self) -> Iterator[Message]:
        for record in self._whole():
            table = self._table(record)
            for row in range(0, table.num_rows, self._batch):
                part = table.slice(row, self._batch)
                yield Message(_stream(part), part.num_rows)

    def _table(self, record: Record) -> Any:
        """A block of rows as a `pyarrow.Table`. Raises `UnusableSource` if its lines do not form columns."""
        import pyarrow as pa
        import pyarrow.json

        try:
            if record.format == "arrow":
                return pa.Table.from_batches([record.value])
            if record.format == "json":
                read = pa.json.ReadOptions(use_threads=False)
                table = pa.json.read_json(io.BytesIO(record.value), read)
                dated = [(each.name, text) for each in table.schema if (text := _as_text(each.type)) != each.type]
                names = [(name, text) for name, text in dated if name != "time"]
                if names:  # a name that looks like a date stays as it is written
                    parse = pa.json.ParseOptions(explicit_schema=pa.schema(names))
                    table = pa.json.read_json(io.BytesIO(record.value), read, parse)
                return table
            return self._csv_table(record)
        except pa.ArrowException as error:
            line = str(error).splitlines()[0]
            raise UnusableSource(
                f"{record.partition}@{record.offset}: {line}; the block does not fit into columns; "
                "use --encoding json to send its lines unchanged"
            ) from error

    def _csv_table(self, record: Record) -> Any:
        """CSV rows with every column as text ("05" stays "05"), and a schema that says so."""
        import pyarrow as pa
        import pyarrow.csv

        from stream_engine.formats.arrow_events import TEXT_CELLS

        def pass_over(row: Any) -> str:
            self.skipped += 1
            return "skip"

        header, begin = (record.header, 0) if record.header else header_line(record.value)
        names, delimiter = [name.strip() for name in column_names(header)], chr(delimiter_of(header))
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=pass_over)
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
        )
        rows = record.value[begin:]
        if not rows.strip():
            return pa.table({name: pa.array([], pa.string()) for name in names}).replace_schema_metadata(TEXT_CELLS)
        read = pa.csv.ReadOptions(use_threads=False, column_names=names)
        table = pa.csv.read_csv(io.BytesIO(rows), read, parse, convert)
        return table.replace_schema_metadata(TEXT_CELLS)


def _as_text(kind: Any) -> Any:
    """The type of a column of JSON, with text for what Arrow takes for dates."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    return pa.struct([(each.name, _as_text(each.type)) for each in kind]) if pa.types.is_struct(kind) else kind


def _stream(table: Any) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()
