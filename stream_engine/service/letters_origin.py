"""Where a dead letter came from says how its bytes are to be read: its format, and for a row of CSV its header.

A letter holds the bytes of one event as they stood in the input. A row of a table is kept as JSON. The header of a CSV
file is read from the file, which must still be the one that was read; else it has to be said.
"""

from collections.abc import Mapping
from typing import NamedTuple

from connectors import DeadLetter, Position, SourceFailed, UnusableSource
from connectors.files.readers import Sizes, kind_of, open_reader
from connectors.files.text_layout import PLAIN_TEXT, TextLayout
from stream_engine.data.comparisons import Rejected
from stream_engine.formats.options import EventOptions
from stream_engine.service.ingest import label_columns

_LABELS = "labels:"  # how the partition of a file of labels begins


class Origin(NamedTuple):
    """How the letters of a partition are read: by a decoder of this format and with these options, each after `prefix`,
    its header. `unit` is what their offsets count."""

    format: str
    options: EventOptions
    prefix: bytes = b""
    unit: str = "message"
    problem: str = ""  # why they cannot be read

    @property
    def is_message(self) -> bool:
        """Whether a record of the input is a message, not a line or row."""
        return self.unit == "message"

    def __hash__(self) -> int:
        return hash((self.format, self.options.type, self.prefix, self.unit))

    def letter(self, old: DeadLetter, refused: Rejected) -> DeadLetter:
        """The letter of what is refused again, with its place in the input."""
        within = {"byte": refused.start - len(self.prefix), "row": refused.index}.get(self.unit, 0)
        return old._replace(
            offset=old.offset + max(0, within),
            event_index=old.event_index + refused.index,
            reason=refused.reason,
            message=refused.message,
            value=refused.value or old.value,
        )


class Origins:
    """The origins of partitions, each found out once; `problems` has a line for each that cannot be read."""

    def __init__(
        self,
        options: EventOptions,
        positions: Mapping[str, Position],
        format: str | None = None,
        header: str | None = None,
        layout: TextLayout = PLAIN_TEXT,
    ):
        self._layout = layout
        self._options, self._positions, self._format = options, positions, format
        self._header = None if header is None else header.encode()
        self._known: dict[str, Origin] = {}
        self.problems: list[str] = []

    def of(self, partition: str) -> Origin:
        """How the letters of a partition are read."""
        if partition not in self._known:
            self._known[partition] = self._found(partition)
        return self._known[partition]

    def problem(self, text: str) -> None:
        """Something that hinders a whole partition, said once."""
        if text not in self.problems:
            self.problems.append(text)

    def _found(self, partition: str) -> Origin:
        path = partition.removeprefix(_LABELS)
        if not path.startswith("/"):
            return self._with_header(partition, self._format or "json", "message", b"")
        try:
            kind = kind_of(path, None).name
        except UnusableSource:
            kind = self._format or "json"
        if kind in ("parquet", "arrow"):
            return Origin(self._format or "json", self._options, unit="row")  # a refused row is kept as JSON
        return self._with_header(partition, self._format or kind, "byte", None)

    def _with_header(self, partition: str, format: str, unit: str, header: bytes | None) -> Origin:
        if format == "csv":
            header = self._header if self._header is not None else header
            if header is None:
                try:
                    header = self._header_of(partition)
                except (SourceFailed, UnusableSource) as error:
                    self.problem(f"{error}; its header can be said: --header NAME,NAME,...")
                    return Origin(format, self._options, unit=unit, problem=str(error))
        options = self._options
        if partition.startswith(_LABELS):
            columns = label_columns(header or b"", options.columns)
            options = options._replace(type="label", columns=columns, where={})
        prefix = header.rstrip(b"\r\n") + b"\n" if header else b""
        return Origin(format, options, prefix, unit)

    def _header_of(self, partition: str) -> bytes:
        """The header line of a file. Raises `SourceFailed` when it is not the file that was read."""
        path = partition.removeprefix(_LABELS)
        if path == partition:
            reader = open_reader(
                path, kind_of(path, "csv", self._layout), self._positions.get(partition, Position(0)), Sizes()
            )
            try:
                reader.check()
            finally:
                reader.close()
        layout = self._layout if path == partition else PLAIN_TEXT
        reader = open_reader(path, kind_of(path, "csv", layout), Position(0), Sizes())
        try:
            record = reader.read()
        finally:
            reader.close()
        return record.header if record else b""
