"""The rules of CSV once more, one character after the other, over a whole file: the oracle for blocks and rows of CSV.

Written from the module docstring of stream_engine/data/csv_grammar.py. No speed, no sharing.
"""

from typing import NamedTuple

BOM, LINE_ENDS, MAX_LINES = b"\xef\xbb\xbf", b"\r\n", 1000


class Row(NamedTuple):
    """A record: where it stands in the file, and its fields; None: it is refused."""

    start: int
    end: int
    fields: list[bytes] | None


def rows_of_file(data: bytes) -> tuple[bytes, list[Row]]:
    """The header of a file and the records below it."""
    at = len(BOM) if data.startswith(BOM) else 0
    while at < len(data) and data[at] in LINE_ENDS:
        at += 1
    end, _, closed = fields_of_record(data, at + len(BOM) * data.startswith(BOM, at))
    end = end if closed else line_end(data, at)
    header = data[at:end]
    return header, rows_below(data, end, len(fields_of_record(header.removeprefix(BOM), 0)[1]))


def rows_below(data: bytes, at: int, width: int) -> list[Row]:
    """The records of `width` fields from `at` on."""
    rows = []
    while at < len(data):
        if data[at] in LINE_ENDS:
            at += 1
            continue
        end, fields, closed = fields_of_record(data, at)
        if closed and len(fields) == width:
            rows.append(Row(at, end, fields if is_text(b"".join(fields)) else None))
        else:
            end = line_end(data, at)
            rows.append(Row(at, end, None))
        at = end
    return rows


def line_end(data: bytes, at: int) -> int:
    while at < len(data) and data[at] not in LINE_ENDS:
        at += 1
    return at


def fields_of_record(data: bytes, at: int) -> tuple[int, list[bytes], bool]:
    """Where a record ends, its fields, whether all its quotes close as they must."""
    fields = []
    while True:
        field = b""
        if data[at : at + 1] == b'"':
            at += 1
            begin = at
            while True:
                if at >= len(data):
                    return at, fields, False
                if data[at : at + 2] == b'""':
                    field += b'"'
                    at += 2
                elif data[at : at + 1] == b'"':
                    break
                else:
                    field += data[at : at + 1]
                    at += 1
            at += 1
            line_ends = sum(c in LINE_ENDS for c in data[begin : at - 1])
            if line_ends > MAX_LINES or (line_ends and at < len(data) and data[at] not in b",\r\n"):
                return at, fields, False
        rest = at
        while at < len(data) and data[at] not in b",\r\n":
            at += 1
        fields.append(field + data[rest:at])
        if at >= len(data) or data[at] in LINE_ENDS:
            return at, fields, True
        at += 1


def is_text(field: bytes) -> bool:
    try:
        field.decode()
    except UnicodeDecodeError:
        return False
    return True
