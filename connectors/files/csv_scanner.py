"""Where a CSV record ends, where its header line is, and what the columns are called: the rules of CSV, in one place.

The rules are those of pyarrow and of the module csv (RFC 4180, read leniently), with a way out of stray quotes:

- A file may begin with a byte order mark, which is passed over; anywhere else it is text. So is a NUL, everywhere.
- A line ends with a line feed, a carriage return, or both. Blank lines are no records.
- The header begins with the first line that is not blank. Its quoted names may hold up to `MAX_LINES` line ends each; a
  header in which a quote does not close is refused, and nothing below it is read.
- Fields are separated by commas. A quote opens a field only at its start; anywhere else it is text. In a quoted field a
  doubled quote is one quote, and commas and line ends are text. What follows the closing quote belongs to the field.
- A quoted field over several lines must close before a comma, a line end or the end of the data, and holds at most
  `MAX_LINES` line ends; and its record must have as many fields as the header. Otherwise the quote was a stray one: the
  record is its first line alone, which is refused, and reading goes on at the second.

What a record is depends on the bytes from its beginning on, never on blocks; a block ends after a line feed that ends a
record (files whose lines all end with a carriage return alone are refused). Blocks are cut by regular expressions here;
the records of a block are told apart by compiled code (`stream_engine.formats.csv_rows`), which sees no more than the
block. `tests/support/csv_reference.py` says the same once more, plainly, and the fuzzer compares the three. O(bytes),
with stray quotes O(bytes of `MAX_LINES` lines) for each.
"""

import csv
import re
from codecs import BOM_UTF8
from functools import lru_cache

QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN = b'",\n\r'
MAX_LINES = 1000

# possessive throughout, so that matching never backtracks
_TEXT = rb'[^"\r\n]*+(?:""[^"\r\n]*+)*+'
_ONE_LINE = rb'"' + _TEXT + rb'"[^,\r\n]*+'
_LINES = rb'"' + _TEXT + rb"(?:[\r\n]" + _TEXT + rb"){1,%d}+" % MAX_LINES
_PLAIN = rb'(?!")[^,\r\n]*+'
_FIELD = rb"(?>" + _ONE_LINE + rb"|" + _LINES + rb'"(?=[,\r\n]|\Z)|' + _PLAIN + rb")"
_FIELD_OF_LINE = rb"(?>" + _ONE_LINE + rb"|" + _PLAIN + rb")"
_LINE = _FIELD_OF_LINE + rb"(?:," + _FIELD_OF_LINE + rb")*+"
_OPEN_FIELD = re.compile(rb',?+"' + _TEXT + rb"(?:[\r\n]" + _TEXT + rb"){0,%d}+" % MAX_LINES)
_WHOLE_LINE = re.compile(_LINE)
_FILLED_LINE = re.compile(rb"[^\r\n]+")
_NAMES = re.compile(_FIELD + rb"(?:," + _FIELD + rb")*+")
_LINE_END = re.compile(rb"[\r\n]")


def first_record_end(buffer: bytes | bytearray, size: int, width: int) -> int:
    """Where the first record of `width` fields ends, its line feed included, as far as the first `size` bytes tell;
    0 if they do not.

    >>> text = b'a,"b\\nc"\\nd,e\\n'
    >>> first_record_end(text, len(text), 2), first_record_end(text, len(text), 3), first_record_end(text, 7, 2)
    (8, 5, 0)
    """
    return _boundary(buffer, size, width, first=True)


def last_record_end(buffer: bytes | bytearray, size: int, width: int) -> int:
    """Where the last record that surely ends within the first `size` bytes does so; 0 if none does.

    >>> last_record_end(b'a,b\\nc,"d\\ne,f\\n', 13, 2)
    4
    """
    if buffer.find(b'"', 0, size) < 0:
        return buffer.rfind(b"\n", 0, size) + 1
    return _boundary(buffer, size, width, first=False)


def _boundary(buffer: bytes | bytearray, size: int, width: int, first: bool) -> int:
    """The first or the last line feed that ends a record, and the byte after it; 0: none is sure."""
    one, run, fields, too_many = _records(width)
    at = cut = 0
    while at < size:
        sure = (one if first else run).match(buffer, at, size)
        if sure and sure.end() > at:
            at, cut = sure.end(), max(cut, sure.end(1))
        else:
            at = _end_of_stray(buffer, at, size, fields, too_many)
            if not at:
                break
            if buffer[at - 1] == LINE_FEED:
                cut = at
        if first and cut:
            break
    return cut


@lru_cache(maxsize=64)
def _records(width: int) -> tuple[re.Pattern[bytes], ...]:
    """One record whose quotes do not stray and the line end after it (or a line end alone), any number of them, up to
    `width` fields, and more than these; the group is empty, and stands after the last line feed."""
    more = rb"(?:," + _FIELD + rb"){%d,%d}+"
    others = max(0, width - 1)
    one = rb"(?>" + _FIELD + more % (others, others) + rb"(?=[\r\n])|" + _LINE + rb"(?=[\r\n]))?+(?:\n()|\r)"
    patterns = one, rb"(?:" + one + rb")*+", _FIELD + more % (0, others), _FIELD + more % (others, others) + rb","
    return tuple(map(re.compile, patterns))


def _end_of_stray(
    buffer: bytes | bytearray, at: int, size: int, fields: re.Pattern[bytes], too_many: re.Pattern[bytes]
) -> int:
    """Where the first line of a record ends whose quotes do stray, or whose fields over several lines are too few or
    too many; 0 when more bytes could tell otherwise."""
    if not too_many.match(buffer, at, size):
        found = fields.match(buffer, at, size)
        reached = found.end() if found else at
        opened = _OPEN_FIELD.match(buffer, reached, size)
        # the end may come to double the last quote, or to follow it
        if (opened and opened.end() + (buffer[opened.end() : opened.end() + 1] == b'"') >= size) or reached == size:
            return 0
    end = _LINE_END.search(buffer, at, size)
    return end.end() if end else 0


def header_line(value: bytes) -> tuple[bytes, int]:
    """The header of a whole table, and where what is below it begins; b"" if there is none. One in which a quote does
    not close is its first line.

    >>> header_line(b"\\r\\na,b\\r\\n1,2\\r\\n"), header_line(b'"a\\nb",c\\n1,2')
    ((b'a,b', 5), (b'"a\\nb",c', 7))
    """
    line = _FILLED_LINE.search(value)
    if line is None:
        return b"", len(value)
    end = _names_end(value, line.start())
    if end == len(value) or value[end : end + 1] in (b"\r", b"\n"):
        return value[line.start() : end], end
    return line[0], line.end()


def header_end(buffer: bytes | bytearray) -> int:
    """Where the header ends, its line feed included; 0 where the buffer does not tell: all of it belongs to the header,
    or a quote does not close.

    >>> header_end(b'"a\\nb",c\\n1,2'), header_end(b'"a\\nb",c'), header_end(b'"a\\nb,c\\n')
    (8, 0, 0)
    """
    end = _names_end(buffer, 0)
    return buffer.find(b"\n", end) + 1 if buffer[end : end + 1] in (b"\r", b"\n") else 0


def is_header(line: bytes) -> bool:
    """Whether these are the names of columns, all quotes closed.

    >>> is_header(b'a,"b\\nc"'), is_header(b'a,"b""')
    (True, False)
    """
    return _names_end(line, 0) == len(line)


def _names_end(buffer: bytes | bytearray, begin: int) -> int:
    names = _NAMES.match(buffer, begin + len(BOM_UTF8) * buffer.startswith(BOM_UTF8, begin))
    return names.end() if names else begin


def quotes_close(line: bytes) -> bool:
    """Whether every quoted field of a line closes in it.

    >>> quotes_close(b'a,"b"c,d"'), quotes_close(b'a,"b""')
    (True, False)
    """
    return _WHOLE_LINE.fullmatch(line) is not None


def fields_in(line: bytes) -> int:
    """How many fields a line has in which all quotes close.

    >>> fields_in(b'a,"b,c"d,e')
    3
    """
    return sum(1 for _ in re.finditer(rb"(?:\A|,)" + _FIELD_OF_LINE, line))


def column_names(header: bytes, errors: str = "strict") -> list[str]:
    """The names in a header line, as they are written; a byte order mark is passed over.

    `errors` says what becomes of bytes that are no UTF-8, as in `bytes.decode`: "strict" raises `UnicodeDecodeError`.
    Raises `ValueError` for a line that cannot be read: a name beyond all bounds.

    >>> column_names(b'name,"first, or second", third\\r\\n')
    ['name', 'first, or second', ' third']
    """
    line = header.removeprefix(BOM_UTF8).decode(errors=errors).strip("\r\n")
    try:
        return next(csv.reader([line]), [])
    except csv.Error as error:
        raise ValueError(str(error)) from None
