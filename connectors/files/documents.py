"""A file that is one JSON document, as lines of JSON: one record per line, nested values under names with dots.

`{"data": {"left": "a"}, "annotations": [{"choice": 1}, {"choice": 2}]}` becomes two lines, each with `data.left` and
`annotations.choice`. An object of objects holds participants by name, which becomes the field `participation`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from connectors.files.streams import PIECE, ByteStream

MAX_DOCUMENT_BYTES = 1 << 28  # of a document that is taken apart; longer ones are read line by line
MAX_LINES_BYTES = 1 << 30  # what it may become
BY_NAME = "participation"


class Document(ByteStream):
    """The stream of a file, taken apart where it is a document of records that are nested or span several lines."""

    def __init__(self, stream: ByteStream):
        self._stream = stream
        self._pieces: Iterator[bytes] = iter(())
        self._opened = False

    def read(self) -> bytes:
        """The next piece of lines, one record each; empty at the end."""
        if not self._opened:
            self._opened, self._pieces = True, self._taken_apart()
        piece = next(self._pieces, b"")
        self.damage = self._stream.damage
        self.trusted += len(piece)
        return piece

    def unread(self) -> int:
        """Bytes of the file that were not read."""
        return self._stream.unread()

    def close(self) -> None:
        self._stream.close()

    def _taken_apart(self) -> Iterator[bytes]:
        pieces, size = [], 0
        while size <= MAX_DOCUMENT_BYTES and (piece := self._stream.read()):
            pieces.append(piece)
            size += len(piece)
        records = None if size > MAX_DOCUMENT_BYTES or self._stream.damage else records_of_document(b"".join(pieces))
        if records is None:
            yield from pieces
            while piece := self._stream.read():
                yield piece
            return
        encode, written = msgspec.json.Encoder().encode, 0
        while some := list(islice(records, 1000)):
            lines = b"".join(encode(record) + b"\n" for record in some)
            written += len(lines)
            if written > MAX_LINES_BYTES:
                self._stream.damage = f"a document that holds more than {MAX_LINES_BYTES:,} bytes once taken apart"
                return
            for begin in range(0, len(lines), PIECE):
                yield lines[begin : begin + PIECE]


def records_of_document(text: bytes) -> Iterator[dict[str, Any]] | None:
    """The records of a document; None where it is none, or needs nothing: flat records in a line.

    >>> list(records_of_document(b'{"p1": {"trials": [{"a": 1}, {"a": 2}]}}'))
    [{'participation': 'p1', 'trials.a': 1}, {'participation': 'p1', 'trials.a': 2}]
    >>> records_of_document(b'[{"a": 1}, {"a": 2}]') is None
    True
    """
    try:
        document = msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if (rows := _of_table(document)) is not None:
        return iter(rows)
    if isinstance(document, dict):
        if not any(isinstance(value, (dict, list)) for value in document.values()):
            return None
        if all(isinstance(value, dict) for value in document.values()):
            document = [{BY_NAME: name, **value} for name, value in document.items()]
        else:
            document = [document]
    if not isinstance(document, list) or not all(isinstance(record, dict) for record in document):
        return None
    nested = sum(any(_is_nested(value) for value in record.values()) for record in document)
    if 2 * nested > len(document):
        return (record for item in document for record in flattened(item))
    return iter(document) if b"\n" in text.strip() else None


def _of_table(document: Any) -> list[dict[str, Any]] | None:
    """The rows of a table that is not written as a list of records: as pandas writes it (`to_json`, orient "columns",
    "index", "split", "table", "values"), or lists of records in a list (JATOS); None for other documents.

    >>> _of_table({"a": {"0": "x", "1": "y"}}), _of_table({"0": {"a": "x"}}), _of_table([[{"a": "x"}], [{"a": "y"}]])
    ([{'a': 'x'}, {'a': 'y'}], [{'a': 'x'}], [{'a': 'x'}, {'a': 'y'}])
    >>> _of_table({"columns": ["a"], "index": [0], "data": [["x"]]}), _of_table([["a", "b"], ["x", "y"], ["y", "x"]])
    ([{'a': 'x'}], [{'a': 'x', 'b': 'y'}, {'a': 'y', 'b': 'x'}])
    """
    if isinstance(document, dict):
        columns, data = document.get("columns"), document.get("data")
        if isinstance(columns, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
            return [dict(zip(map(str, columns), row)) for row in data]
        if "schema" in document and isinstance(data, list) and all(isinstance(row, dict) for row in data):
            return data
        values = list(document.values())
        if not values or not all(isinstance(item, dict) and item.keys() == values[0].keys() for item in values):
            return None
        if any(isinstance(cell, (dict, list)) for row_object in values for cell in row_object.values()):
            return None
        if all(str(name).isdecimal() for name in values[0]):
            return [{name: column[row] for name, column in document.items()} for row in values[0]]
        return values if all(str(name).isdecimal() for name in document) else None
    if not isinstance(document, list) or not document or not all(isinstance(row_list, list) for row_list in document):
        return None
    inner = [item for row_list in document for item in row_list]
    if all(isinstance(item, dict) for item in inner):
        return inner
    if any(isinstance(item, (dict, list)) for item in inner) or len({len(row_list) for row_list in document}) > 1:
        return None
    first, below = document[0], document[1:]
    named = all(isinstance(name, str) for name in first) and len(set(first)) == len(first)
    if named and not any(name in row for name in first for row in below):
        return [dict(zip(first, row)) for row in below]
    return [{str(place): cell for place, cell in enumerate(row, 1)} for row in document]


def flattened(record: dict[str, Any], prefix: str = "", base: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """A nested record as flat ones: one for each of the objects in its lists."""
    values, lists = dict(base or {}), list[tuple[str, list[Any]]]()
    waiting = [(prefix, record)]
    while waiting:
        under, fields = waiting.pop()
        for name, value in fields.items():
            if isinstance(value, dict):
                waiting.append((f"{under}{name}.", value))
            elif _is_nested(value):
                lists.append((f"{under}{name}.", value))
            elif value != []:
                values[under + name] = value
    if not lists:
        yield values
    for under, items in lists:
        for item in items:
            yield from flattened(item if isinstance(item, dict) else {"value": item}, under, values)


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
