"""Where a CSV record ends, where its header line is, and what the columns are called: the rules of CSV, in one place.

The rules are those of pyarrow and of the module csv (RFC 4180, read leniently), with a way out of stray quotes:

- A file may begin with a byte order mark, which is passed over; anywhere else it is text. So is a NUL, everywhere.
- A line ends with a line feed, a carriage return, or both. Blank lines are no records.
- The header begins with the first line that is not blank. Its quoted names may hold up to `MAX_LINES` line ends each; a
  header in which a quote does not close is refused, and nothing below it is read.
- Fields are separated by the delimiter, which `delimiter_of` finds in the header: the one of comma, semicolon, tab and
  bar that is there most often outside quotes (of equals the first of these; a comma where there is none), or the one
  that a mark before the header names: a line `sep=;`, as Excel writes it, which is no record.
- A quote opens a field only at its start; anywhere else it is text. In a quoted field a doubled quote is one quote, and
  delimiters and line ends are text. What follows the closing quote belongs to the field.
- A quoted field over several lines must close before a delimiter, a line end or the end of the data, and holds at most
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
from typing import NamedTuple

QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN = b'",\n\r'
DELIMITERS = b",;\t|"  # that are found without being told
MAX_LINES = 1000

_LINE_END = re.compile(rb"[\r\n]")
_FILLED_LINE = re.compile(rb"[^\r\n]+")
_MARK = re.compile(rb"(?:\xef\xbb\xbf)?+sep=([^\r\n])\r?\n")
_LINE_AND_QUOTED = re.compile(rb'(?:[^"\r\n]|"[^"]*+")*+')
_QUOTED = re.compile(rb'"[^"]*+"')


class _Rules(NamedTuple):
    """What the parts of a record are, for one delimiter; possessive throughout, so that matching never backtracks."""

    field: bytes
    field_of_line: bytes
    line: bytes
    delimiter: bytes
    open_field: re.Pattern[bytes]
    whole_line: re.Pattern[bytes]
    names: re.Pattern[bytes]
    each_field: re.Pattern[bytes]


@lru_cache(maxsize=16)
def _rules(delimiter: int) -> _Rules:
    d = rb"\x%02x" % delimiter
    text = rb'[^"\r\n]*+(?:""[^"\r\n]*+)*+'
    one_line = rb'"' + text + rb'"[^' + d + rb"\r\n]*+"
    lines = rb'"' + text + rb"(?:[\r\n]" + text + rb"){1,%d}+" % MAX_LINES
    plain = rb'(?!")[^' + d + rb"\r\n]*+"
    field = rb"(?>" + one_line + rb"|" + lines + rb'"(?=[' + d + rb"\r\n]|\Z)|" + plain + rb")"
    of_line = rb"(?>" + one_line + rb"|" + plain + rb")"
    line = of_line + rb"(?:" + d + of_line + rb")*+"
    return _Rules(
        field,
        of_line,
        line,
        d,
        re.compile(d + rb'?+"' + text + rb"(?:[\r\n]" + text + rb"){0,%d}+" % MAX_LINES),
        re.compile(line),
        re.compile(field + rb"(?:" + d + field + rb")*+"),
        re.compile(rb"(?:\A|" + d + rb")" + of_line),
    )


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
    found = _LINE_AND_QUOTED.match(buffer, begin)
    line = _QUOTED.sub(b"", found[0]) if found else b""
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


def first_record_end(buffer: bytes | bytearray, size: int, width: int, delimiter: int = COMMA) -> int:
    """Where the first record of `width` fields ends, its line feed included, as far as the first `size` bytes tell;
    0 if they do not.

    >>> text = b'a,"b\\nc"\\nd,e\\n'
    >>> first_record_end(text, len(text), 2), first_record_end(text, len(text), 3), first_record_end(text, 7, 2)
    (8, 5, 0)
    """
    return _boundary(buffer, size, width, delimiter, first=True)


def last_record_end(buffer: bytes | bytearray, size: int, width: int, delimiter: int = COMMA) -> int:
    """Where the last record that surely ends within the first `size` bytes does so; 0 if none does.

    >>> last_record_end(b'a,b\\nc,"d\\ne,f\\n', 13, 2)
    4
    """
    if buffer.find(b'"', 0, size) < 0:
        return buffer.rfind(b"\n", 0, size) + 1
    return _boundary(buffer, size, width, delimiter, first=False)


def _boundary(buffer: bytes | bytearray, size: int, width: int, delimiter: int, first: bool) -> int:
    """The first or the last line feed that ends a record, and the byte after it; 0: none is sure."""
    one, run, fields, too_many = _records(width, delimiter)
    open_field = _rules(delimiter).open_field
    at = cut = 0
    while at < size:
        sure = (one if first else run).match(buffer, at, size)
        if sure and sure.end() > at:
            at, cut = sure.end(), max(cut, sure.end(1))
        else:
            at = _end_of_stray(buffer, at, size, fields, too_many, open_field)
            if not at:
                break
            if buffer[at - 1] == LINE_FEED:
                cut = at
        if first and cut:
            break
    return cut


@lru_cache(maxsize=64)
def _records(width: int, delimiter: int) -> tuple[re.Pattern[bytes], ...]:
    """One record whose quotes do not stray and the line end after it (or a line end alone), any number of them, up to
    `width` fields, and more than these; the group is empty, and stands after the last line feed."""
    rules = _rules(delimiter)
    field = rules.field
    more = rb"(?:" + rules.delimiter + field + rb"){%d,%d}+"
    others = max(0, width - 1)
    one = rb"(?>" + field + more % (others, others) + rb"(?=[\r\n])|" + rules.line + rb"(?=[\r\n]))?+(?:\n()|\r)"
    too_many = field + more % (others, others) + rules.delimiter
    patterns = one, rb"(?:" + one + rb")*+", field + more % (0, others), too_many
    return tuple(map(re.compile, patterns))


def _end_of_stray(
    buffer: bytes | bytearray,
    at: int,
    size: int,
    fields: re.Pattern[bytes],
    too_many: re.Pattern[bytes],
    open_field: re.Pattern[bytes],
) -> int:
    """Where the first line of a record ends whose quotes do stray, or whose fields over several lines are too few or
    too many; 0 when more bytes could tell otherwise."""
    if not too_many.match(buffer, at, size):
        found = fields.match(buffer, at, size)
        reached = found.end() if found else at
        opened = open_field.match(buffer, reached, size)
        # the end may come to double the last quote, or to follow it
        if (opened and opened.end() + (buffer[opened.end() : opened.end() + 1] == b'"') >= size) or reached == size:
            return 0
    end = _LINE_END.search(buffer, at, size)
    return end.end() if end else 0


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
    end = _names_end(value, line.start(), delimiter)
    if end == len(value) or value[end : end + 1] in (b"\r", b"\n"):
        return marked(value[line.start() : end], delimiter), end
    return marked(line[0], delimiter), line.end()


def header_end(buffer: bytes | bytearray, delimiter: int = COMMA) -> int:
    """Where the header ends, its line feed included; 0 where the buffer does not tell: all of it belongs to the header,
    or a quote does not close.

    >>> header_end(b'"a\\nb",c\\n1,2'), header_end(b'"a\\nb",c'), header_end(b'"a\\nb,c\\n')
    (8, 0, 0)
    """
    end = _names_end(buffer, 0, delimiter)
    return buffer.find(b"\n", end) + 1 if buffer[end : end + 1] in (b"\r", b"\n") else 0


def is_header(line: bytes, delimiter: int = COMMA) -> bool:
    """Whether these are the names of columns, all quotes closed.

    >>> is_header(b'a,"b\\nc"'), is_header(b'a,"b""')
    (True, False)
    """
    return _names_end(line, 0, delimiter) == len(line)


def _names_end(buffer: bytes | bytearray, begin: int, delimiter: int) -> int:
    names = _rules(delimiter).names.match(buffer, begin + len(BOM_UTF8) * buffer.startswith(BOM_UTF8, begin))
    return names.end() if names else begin


def quotes_close(line: bytes, delimiter: int = COMMA) -> bool:
    """Whether every quoted field of a line closes in it.

    >>> quotes_close(b'a,"b"c,d"'), quotes_close(b'a,"b""')
    (True, False)
    """
    return _rules(delimiter).whole_line.fullmatch(line) is not None


def fields_in(line: bytes, delimiter: int = COMMA) -> int:
    """How many fields a line has in which all quotes close.

    >>> fields_in(b'a,"b,c"d,e')
    3
    """
    return sum(1 for _ in _rules(delimiter).each_field.finditer(line))


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
    names = [b"%d" % (number + 1) for number in range(fields_in(line, delimiter))]
    return marked(bytes([delimiter]).join(names) + b"\n", delimiter)
