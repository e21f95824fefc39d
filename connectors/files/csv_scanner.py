"""Where a CSV record ends, where its header line is, and what the columns are called: the rules of CSV, in one place.

The rules are those of pyarrow and of the module csv (RFC 4180, read leniently):

- Fields are separated by commas. A quote opens a field only at its start; inside, a doubled quote is one quote, and
  commas and line ends are text; what follows the closing quote belongs to the field as it is.
- A record ends with a line feed, which a carriage return may precede. Empty lines are no records.
- A carriage return alone ends a line too, but blocks are never cut there: files whose lines all end so are refused.

Blocks are cut by regular expressions here; the rows of a block are told apart by compiled code with these constants
(`stream_engine.formats.csv_rows`, which also finds its way out of stray quotes). A law says that the two agree.
O(bytes).
"""

import csv
import re
from codecs import BOM_UTF8

QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN = b'",\n\r'

# possessive throughout, so that matching never backtracks
_FIELD = rb'(?>"[^"]*+(?:""[^"]*+)*+"[^,\n]*+|(?!")[^,\n]*+)'
_RECORD = rb"(?>[^\"\n]*+\n|" + _FIELD + rb"(?:," + _FIELD + rb")*+\n)"
_ONE_RECORD, _ALL_RECORDS = re.compile(_RECORD), re.compile(rb"(?:" + _RECORD + rb")*+")
_FILLED_LINE = re.compile(rb"[^\r\n]+")


def first_record_end(buffer: bytes | bytearray) -> int:
    """Where the first record ends, its line end included; 0 if it does not end in `buffer`.

    >>> first_record_end(b'a,"b\\nc"\\nd\\n'), first_record_end(b'a,"b\\nc\\n')
    (8, 0)
    """
    record = _ONE_RECORD.match(buffer)
    return record.end() if record else 0


def last_record_end(buffer: bytes | bytearray, size: int) -> int:
    """Where the last record that ends within the first `size` bytes does so; 0 if none does.

    >>> last_record_end(b'a,b\\nc,"d\\ne,f\\n', 14)
    4
    """
    if buffer.find(b'"', 0, size) < 0:
        return buffer.rfind(b"\n", 0, size) + 1
    records = _ALL_RECORDS.match(buffer, 0, size)
    return records.end() if records else 0


def header_line(value: bytes) -> tuple[bytes, int]:
    """The first line of a whole table that is not empty, and where the lines below it begin; b"" if there is none.

    >>> header_line(b"\\r\\na,b\\r\\n1,2\\r\\n")
    (b'a,b', 5)
    """
    line = _FILLED_LINE.search(value)
    return (line[0], line.end()) if line else (b"", len(value))


def column_names(header: bytes, errors: str = "strict") -> list[str]:
    """The names in a header line, as they are written; a byte order mark is passed over.

    `errors` says what becomes of bytes that are no UTF-8, as in `bytes.decode`: "strict" raises `UnicodeDecodeError`.

    >>> column_names(b'name,"first, or second", third\\r\\n')
    ['name', 'first, or second', ' third']
    """
    return next(csv.reader([header.removeprefix(BOM_UTF8).decode(errors=errors).strip("\r\n")]), [])
