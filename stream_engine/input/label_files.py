"""Files of labels, which are read as a whole."""

import zlib
from collections.abc import Mapping

from connectors import Position, Record, records_of
from stream_engine.data.csv_grammar import column_names
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import Block, RecordDecoder


def read_labels(path: str, columns: Mapping[str, tuple[str, ...]]) -> tuple[list[Block], Position]:
    """The label events of a file, and the position that identifies its content: (size, CRC-32 of the whole file).

    In a CSV of exactly two columns, one of them `object`, the other one is the label whatever its name.
    """
    blocks: list[Block] = []
    size, check, ingest = 0, 0, None
    for record in records_of([path]):
        ingest = ingest or RecordDecoder(EventOptions("label", label_columns(record.header, columns)))
        blocks += ingest.blocks([record])
        size, check = record.next_offset, zlib.crc32(_bytes(record), check)
    return blocks, Position(size, check)


def _bytes(record: Record) -> bytes:
    return record.value if isinstance(record.value, bytes) else repr(record.value.to_pylist()).encode()


def label_columns(header: bytes, columns: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    """The columns of a file of labels that hold its fields: as given, or as the header shows."""
    names = [name.strip() for name in column_names(header, errors="replace")]
    if not columns and len(names) == 2 and "object" in names and "label" not in names:
        return {"label": (names[1 - names.index("object")],)}
    return columns
