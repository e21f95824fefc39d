"""The rules of CSV in one place: records, headers, names of columns."""

import csv
import re
from codecs import BOM_UTF8
from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit, read_only

# The rules are those of pyarrow and of Python's csv module (RFC 4180, read leniently), with a fallback for stray
# quotes:
#
# - A byte order mark at the start of a file is skipped; anywhere else it is text. So is a NUL, everywhere.
# - A line ends with a line feed, a carriage return, or both. Blank lines are not records.
# - The header begins with the first non-blank line. Its quoted names may contain up to MAX_LINES line ends each; a
#   header with an unclosed quote is rejected, and nothing below it is read.
# - Fields are separated by the delimiter. `delimiter_of` finds it in the header: the one of comma, semicolon, tab and
#   bar that occurs most often outside quotes (the first of these in a tie; a comma if there is none), or the one in a
#   line `sep=;` before the header, as written by Excel, which is not a record.
# - A quote opens a field only at its start; anywhere else it is text. In a quoted field, a doubled quote is one quote,
#   and delimiters and line ends are text. What follows the closing quote belongs to the field.
# - A quoted field over several lines must close before a delimiter, a line end or the end of the data, and contains at
#   most MAX_LINES line ends; and its record must have as many fields as the header. Otherwise, the quote is a stray
#   one: the record is its first line alone, which is rejected, and reading continues at the second line.
#
# A record depends on the bytes from its beginning, never on blocks; a block ends after a line feed that ends a record
# (files whose lines all end with a carriage return alone are rejected). Whether a quote is stray depends on no byte
# beyond the block. `tests/support/csv_reference.py` is a simple reference implementation. O(bytes), with stray quotes
# O(bytes of MAX_LINES lines) for each.
QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN = b'",\n\r'
DELIMITERS = b",;\t|"  # that are detected
MAX_LINES = 1000  # line ends in a quoted field
WHOLE, WRONG_WIDTH, UNCLOSED = range(3)

_ANY_WIDTH = 1 << 62
_FILLED_LINE = re.compile(rb"[^\r\n]+")
_MARK = re.compile(rb"(?:\xef\xbb\xbf)?+sep=([^\r\n])\r?\n")
_LINE_AND_QUOTED = re.compile(rb'(?:[^"\r\n]|"[^"]*+")*+')
_QUOTED = re.compile(rb'"[^"]*+"')


class Rows(NamedTuple):
    """The rows of a value; `end` is without the line end."""

    start: np.ndarray  # (r,) int64
    end: np.ndarray  # (r,) int64
    fields: np.ndarray  # (r,) int64
    state: np.ndarray  # (r,) int8: WHOLE, WRONG_WIDTH or UNCLOSED


def rows_of(value: bytes, width: int, delimiter: int = COMMA) -> Rows:
    """The rows of `value`, of which those with `width` fields are WHOLE.

    >>> rows = rows_of(b'a,"b\\nc"\\n\\n"d,e\\nf,g\\n', 2)
    >>> rows.start.tolist(), rows.end.tolist(), rows.state.tolist() == [WHOLE, UNCLOSED, WHOLE]
    ([0, 9, 14], [7, 13, 17], True)
    """
    max_rows = value.count(b"\n") + value.count(b"\r") + 1
    rows = Rows(
        np.empty(max_rows, np.int64),
        np.empty(max_rows, np.int64),
        np.empty(max_rows, np.int64),
        np.empty(max_rows, np.int8),
    )
    n = _split(_text(value, len(value)), width, delimiter, *rows)
    return Rows(*(column[:n] for column in rows))


def first_record_end(buffer: bytes | bytearray, size: int, width: int, delimiter: int = COMMA) -> int:
    """Where the first record of `width` fields ends, its line feed included, as far as the first `size` bytes tell;
    0 if they do not.

    >>> text = b'a,"b\\nc"\\nd,e\\n'
    >>> first_record_end(text, len(text), 2), first_record_end(text, len(text), 3), first_record_end(text, 7, 2)
    (8, 5, 0)
    """
    return _boundary(_text(buffer, size), width, delimiter, True)


def last_record_end(buffer: bytes | bytearray, size: int, width: int, delimiter: int = COMMA) -> int:
    """Where the last record that surely ends within the first `size` bytes does so; 0 if none does.

    >>> last_record_end(b'a,b\\nc,"d\\ne,f\\n', 13, 2)
    4
    """
    if buffer.find(b'"', 0, size) < 0:
        return buffer.rfind(b"\n", 0, size) + 1
    return _boundary(_text(buffer, size), width, delimiter, False)


def _text(buffer: bytes | bytearray, size: int) -> np.ndarray:
    return read_only(np.frombuffer(buffer, np.uint8, min(size, len(buffer))))


@njit(cache=True, nogil=True)
def _split(text, width, delimiter, start, end, fields, state):
    n, at, size = 0, np.int64(0), len(text)  # a literal 0 would be a type of its own: `_record` compiled twice
    while at < size:
        if text[at] in (LINE_FEED, CARRIAGE_RETURN):
            at += 1
            continue
        stop, count, is_closed, first_end = _record(text, at, width, delimiter)
        start[n], end[n], fields[n] = at, stop, count
        if is_closed and count == width:
            state[n] = WHOLE
        else:
            state[n] = WRONG_WIDTH if is_closed else UNCLOSED
            end[n] = first_end
        at = end[n]
        n += 1
    return n


@njit(cache=True, nogil=True)
def _boundary(text, width, delimiter, first):
    """The first or the last line feed that ends a record, and the byte after it; 0: none is sure. What is found out at
    the end of the text is not sure: more bytes could tell otherwise."""
    at = boundary = np.int64(0)
    while at < len(text) and not (first and boundary):
        if text[at] in (LINE_FEED, CARRIAGE_RETURN):
            at += 1
            boundary = at if text[at - 1] == LINE_FEED else boundary
            continue
        stop, count, is_closed, first_end = _record(text, at, width, delimiter)
        if stop == len(text) and not (count > width and first_end < stop):  # too many fields stay too many
            break
        at = stop if is_closed and count == width else first_end
    return boundary


@njit(cache=True, nogil=True)
def _record(text, at, width, delimiter):
    """End of the record that begins at `at`, its number of fields, whether its quotes close, the end of its first line;
    beyond that line no more than `width` fields are looked at."""
    size = len(text)
    fields, lines, first_end = 1, 0, -1
    begins, in_quotes = True, False
    while at < size:
        c = text[at]
        line_end = c in (LINE_FEED, CARRIAGE_RETURN)
        if line_end and first_end < 0:
            first_end = at
        if first_end >= 0 and fields > width:
            return at, fields, False, first_end
        if in_quotes:
            if c == QUOTE:
                if at + 1 < size and text[at + 1] == QUOTE:
                    at += 1
                else:
                    in_quotes = False
                    if lines > 0 and at + 1 < size and text[at + 1] not in (delimiter, LINE_FEED, CARRIAGE_RETURN):
                        return at, fields, False, first_end
            elif line_end:
                lines += 1
                if lines > MAX_LINES:
                    return at, fields, False, first_end
        elif line_end:
            return at, fields, True, first_end
        elif c == delimiter:
            fields += 1
            lines = 0
            begins = True
            at += 1
            continue
        elif c == QUOTE and begins:
            in_quotes = True
        begins = False
        at += 1
    return size, fields, not in_quotes, first_end if first_end >= 0 else size


def delimiter_of(header: bytes) -> int:
    """What separates the fields below a header: what its mark says, or else what separates its names.

    >>> [chr(delimiter_of(header)) for header in (b"a,b;c,d", b"a;b", b'"a,b,c";d', b"a", b"sep=|\\na,b,c")]
    [',', ';', ';', ',', '|']
    """
    mark = _MARK.match(header)
    return mark[1][0] if mark else likely_delimiter(header.removeprefix(BOM_UTF8).lstrip(b"\r\n"))


def likely_delimiter(buffer: bytes | bytearray, begin: int = 0) -> int:
    """The delimiter that stands most often outside quotes in the line that begins there.

    >>> chr(likely_delimiter(b"a;b,c;d\\n,,,,"))
    ';'
    """
    match = _LINE_AND_QUOTED.match(buffer, begin)
    line = _QUOTED.sub(b"", match[0]) if match else b""
    return max(DELIMITERS, key=line.count)


def marked(header: bytes, delimiter: int) -> bytes:
    """A header line that says its delimiter, by a mark where the line alone would say another one.

    >>> marked(b"a;b", ord(";")), marked(b"a,b", ord(";"))
    (b'a;b', b'sep=;\\na,b')
    """
    return header if delimiter_of(header) == delimiter else b"sep=%c\n" % delimiter + header


def mark_end(buffer: bytes | bytearray) -> int:
    """Where the mark ends that a table begins with; 0 if there is none.

    >>> mark_end(b"sep=;\\r\\na;b"), mark_end(b"sep,b")
    (7, 0)
    """
    mark = _MARK.match(buffer)
    return mark.end() if mark else 0


def header_line(value: bytes, delimiter: int | None = None) -> tuple[bytes, int]:
    """The header of a whole table, and where what is below it begins; b"" if there is none. One in which a quote does
    not close is its first line. With a `delimiter` other than the likely one, and below a mark, it is marked.

    >>> header_line(b"\\r\\na,b\\r\\n1,2\\r\\n"), header_line(b'"a\\nb",c\\n1,2'), header_line(b"sep=;\\na\\n1")
    ((b'a,b', 5), (b'"a\\nb",c', 7), (b'sep=;\\na', 7))
    """
    begin = mark_end(value)
    line = _FILLED_LINE.search(value, begin)
    if line is None:
        return b"", len(value)
    if begin and delimiter is None:
        delimiter = delimiter_of(value)
    if delimiter is None:
        delimiter = likely_delimiter(value, line.start() + len(BOM_UTF8) * value.startswith(BOM_UTF8, line.start()))
    end, _, is_closed = _names(value, line.start(), delimiter)
    return (
        (marked(value[line.start() : end], delimiter), end) if is_closed else (marked(line[0], delimiter), line.end())
    )


def header_end(buffer: bytes | bytearray, delimiter: int = COMMA) -> int:
    """Where the header ends, its line feed included; 0 where the buffer does not tell: all of it belongs to the header,
    or a quote does not close.

    >>> header_end(b'"a\\nb",c\\n1,2'), header_end(b'"a\\nb",c'), header_end(b'"a\\nb,c\\n')
    (8, 0, 0)
    """
    end, _, is_closed = _names(buffer, 0, delimiter)
    return buffer.find(b"\n", end) + 1 if is_closed and end < len(buffer) else 0


def is_header(line: bytes, delimiter: int = COMMA) -> bool:
    """Whether these are the names of columns, all quotes closed.

    >>> is_header(b'a,"b\\nc"'), is_header(b'a,"b""')
    (True, False)
    """
    end, _, is_closed = _names(line, 0, delimiter)
    return is_closed and end == len(line)


def fields_in(line: bytes, delimiter: int = COMMA) -> int | None:
    """How many fields a line has; None where a quoted one does not close in it.

    >>> fields_in(b'a,"b,c"d,e'), fields_in(b'a,"b""')
    (3, None)
    """
    _, fields, is_closed, _ = _record(_text(line, len(line)), 0, _ANY_WIDTH, delimiter)
    return fields if is_closed else None


def _names(buffer: bytes | bytearray, begin: int, delimiter: int) -> tuple[int, int, bool]:
    """(end, fields, whether the quotes close) of the header that begins there."""
    begin += len(BOM_UTF8) * buffer.startswith(BOM_UTF8, begin)
    return _record(_text(buffer, len(buffer)), begin, _ANY_WIDTH, delimiter)[:3]


def column_names(header: bytes, errors: str = "strict") -> list[str]:
    """The names in a header line, as they are written; a byte order mark, or the mark of a delimiter, is passed over.

    `errors` says what becomes of bytes that are no UTF-8, as in `bytes.decode`: "strict" raises `UnicodeDecodeError`.
    Raises `ValueError` for a line that cannot be read: a name beyond all bounds.

    >>> column_names(b'name,"first, or second", third\\r\\n'), column_names(b"a;b")
    (['name', 'first, or second', ' third'], ['a', 'b'])
    """
    line = header[mark_end(header) :].removeprefix(BOM_UTF8).decode(errors=errors).strip("\r\n")
    try:
        return next(csv.reader([line], delimiter=chr(delimiter_of(header))), [])
    except csv.Error as error:
        raise ValueError(str(error)) from None


def numbered_names(line: bytes, delimiter: int) -> bytes:
    """A header for a table without one: its columns by number, as many as its first line has fields.

    >>> numbered_names(b"cat;dog;owl", ord(";"))
    b'1;2;3\\n'
    """
    names = [b"%d" % (number + 1) for number in range(_names(line, 0, delimiter)[1])]
    return marked(bytes([delimiter]).join(names) + b"\n", delimiter)
