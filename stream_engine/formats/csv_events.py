"""CSV events with pyarrow: whole lines, and the header line that names their columns.

Columns are text without surrounding spaces; "05" stays "05", and only an integer written as a float ("16.0") becomes an
integer again. Lists are separated by `|`, and an empty cell is an absent value.
"""

from codecs import BOM_UTF8
from collections.abc import Sequence
from difflib import get_close_matches
from shlex import quote
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from stream_engine.data.comparisons import DecodedEvents, InvalidEvent
from stream_engine.data.csv_grammar import (
    WHOLE,
    Rows,
    column_names,
    delimiter_of,
    fields_in,
    header_line,
    likely_delimiter,
    mark_end,
    rows_of,
)
from stream_engine.formats.arrow_columns import arrow_table, stripped, with_paths
from stream_engine.formats.cells import paths_of
from stream_engine.formats.encodings import encoding_in_words
from stream_engine.formats.event_block import MAX_UNKNOWN, Block, nothing, unreadable
from stream_engine.formats.event_fields import COMPARED, NO_COLUMN, PACE, TRIPLET, VOTES, EventFields, fields_of
from stream_engine.formats.field_values import DECIMAL_COMMA
from stream_engine.formats.json_places import is_utf8
from stream_engine.formats.options import NOT_UTF8, EventOptions, UnreadableHeader
from stream_engine.formats.table_events import read_table
from stream_engine.formats.wide_columns import wide_questions

_NOT_UTF8 = -1  # beside the states of `csv_grammar`


class Layout(NamedTuple):
    """The columns of a table: their number, the delimiter, and which are read as which field."""

    width: int
    delimiter: int
    columns: dict[str, int]  # input field -> position, of the fields that are read
    unknown: frozenset[str]
    questions: list[tuple[EventFields, dict[str, str]]]  # of each row, and what of them the header says
    paths: tuple[str, ...] = ()  # input fields inside cells of JSON

    def numbers(self) -> set[str]:
        """The columns that are read as numbers alone."""
        numbers: set[str] = set()
        others: set[str] = set()
        for fields, _ in self.questions:
            numbers |= {fields.optional[name] for name in ("weight", "time", *PACE)}
            numbers |= {filter.source for filter in fields.where if filter.comparison in COMPARED}
            others |= {filter.source for filter in fields.where if filter.comparison not in COMPARED}
            others |= {name for kind in fields.kinds for field in fields.by_kind[kind] for name in field.inputs}
        return (numbers & self.columns.keys()) - others


# A row is rejected if its number of fields differs from the header's, if it is not UTF-8, or if it opens a quote that
# is never closed; its neighbours are read as if it were absent. A header that lacks required columns raises
# `UnreadableHeader`, as no row could be accepted. Numbers may have a decimal comma if the delimiter is another one.
def layout_of(header: bytes, options: EventOptions) -> Layout:
    """Which columns of a header are read; raises `UnreadableHeader` where it lacks one that no row can do without.

    >>> layout_of(b"rt,anchor,near,far", EventOptions()).columns
    {'anchor': 1, 'near': 2, 'far': 3}
    """
    try:
        names = [name.strip() for name in column_names(header)]
    except UnicodeDecodeError:
        raise UnreadableHeader(f"the header is no text, or not UTF-8; specify {encoding_in_words(header)}") from None
    except ValueError as error:
        raise UnreadableHeader(f"the header cannot be read: {error}") from None
    read: set[str] = set()
    used: set[str] = set()
    paths: dict[str, None] = {}
    questions = []
    for question in wide_questions(options, names):
        event_fields = fields_of(question.options, pairs=True)
        needed = dict.fromkeys(needed_columns(event_fields, question.options, names))
        inner = paths_of(event_fields.inputs, names)
        if lacking := [name for name in needed if name not in (*names, *question.constants, *inner)]:
            raise UnreadableHeader(_lacking(header, names, lacking, options))
        read |= _read_columns(event_fields) | {column for column, _ in inner.values()}
        used |= event_fields.inputs | {column for column, _ in inner.values()}
        paths |= dict.fromkeys(inner)
        questions.append((event_fields, question.constants))
    columns: dict[str, int] = {}
    for position, name in enumerate(names):
        if name in columns:
            raise UnreadableHeader(f"column {name!r} occurs twice; the header has {_shortened(names)}")
        if name in read:
            columns[name] = position
    return Layout(len(names), delimiter_of(header), columns, frozenset(names) - used, questions, tuple(paths))


def _lacking(header: bytes, names: list[str], lacking: list[str], options: EventOptions) -> str:
    """The error message about missing columns: what the header has instead, and what to do; a wrong delimiter, which
    explains it, first."""
    delimiter, line = chr(delimiter_of(header)), header[mark_end(header) :].lstrip(b"\r\n")
    likely = likely_delimiter(line)
    if len(names) == 1 and likely in line:
        return (
            f"with the delimiter {delimiter!r}, the header is a single column: {_shortened(names)}; "
            f"omit --delimiter, or use --delimiter {chr(likely)!r} ({_columns_are(lacking)} missing)"
        )
    if len(names) == 1 and (sign := _other_delimiter(line)):
        return (
            f"the header is a single column: {_shortened(names)}; its cells are perhaps separated by {sign!r}: use "
            f"--delimiter {quote(sign)} ({_columns_are(lacking)} missing)"
        )
    first = ", or skip lines before the header with --skip-rows" if len(names) == 1 else ""
    first += (
        ", or say --no-header if this line is a row"
        if any(name and name in names[:place] for place, name in enumerate(names))
        else ""
    )
    first += (
        ", and give the type of the rows unless they are triplets: --type odd_one_out, pick, ..."
        if options.type is None
        else ""
    )
    meant = _shortened([near for name in lacking if (near := nearest_name(name, names))])
    asked = f" (did you mean {meant}?)" if meant else ""
    return f"{_columns_are(lacking)} missing; the header has {_shortened(names)}; map them with --columns{asked}{first}"


def _other_delimiter(line: bytes) -> str:
    """The only character that is no part of a word and occurs more than once in a header; "" if there is none.

    >>> _other_delimiter(b"anchor:left:right:choice"), _other_delimiter(b"when was it?"), _other_delimiter(b"a:b/c:d/e")
    (':', '', '')
    """
    text = line.split(b"\n")[0].decode("utf-8", "replace").strip()
    signs = {c for c in text if c.isascii() and not c.isalnum() and c not in " _-." and text.count(c) > 1}
    return signs.pop() if len(signs) == 1 else ""


def nearest_name(name: str, names: list[str]) -> str | None:
    """The name that differs only in case and spaces, or the most similar one."""
    folded = {name.strip().casefold(): name for name in reversed(names)}
    near = get_close_matches(name.strip().casefold(), list(folded), 1, cutoff=0.8)
    return folded[near[0]] if near else None


def _read_columns(event_fields: EventFields) -> set[str]:
    """Input fields that are read (an id is not)."""
    names = {name for kind in event_fields.kinds for field in event_fields.by_kind[kind] for name in field.inputs}
    optional = {source for name, source in event_fields.optional.items() if name != "id"} | {*event_fields.votes}
    return names | optional | {event_fields.type_input, *_asked_inputs(event_fields)}


def needed_columns(event_fields: EventFields, options: EventOptions, names: list[str]) -> list[str]:
    """The columns that every row requires, and those that the options name except response times, which some files of a
    study may lack."""
    kinds = event_fields.kinds
    if event_fields.only_kind is None:
        kinds = () if event_fields.type_input in names else (TRIPLET,)
    needed = [name for kind in kinds for field in event_fields.by_kind[kind] for name in field.inputs]
    renamed = options.columns.keys() - PACE.keys()
    mapped = [source for name, source in event_fields.optional.items() if name in renamed and source != NO_COLUMN]
    mapped += [source for name, source in zip(VOTES, event_fields.votes, strict=True) if name in options.columns]
    return [*needed, *mapped, *_asked_inputs(event_fields)]


def _asked_inputs(event_fields: EventFields) -> list[str]:
    """Input fields that are read only because of the options: for catch trials, and for `--where`."""
    catch = [] if event_fields.catch_input is None else [event_fields.catch_input]
    return [*catch, *(filter.source for filter in event_fields.where), *event_fields.more]


def _columns_are(names: list[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"


def _shortened(names: list[str]) -> str:
    """The names in one line; a quoted name may contain line ends."""
    joined = " ".join(", ".join(names).split())
    return joined if len(joined) <= 200 else joined[:197] + "..."


class _WrongWidth(Exception):
    """A row has a different number of fields than the header."""


class Decoder:
    """Decodes blocks of whole CSV lines; remembers the last header and the unknown columns."""

    def __init__(self, options: EventOptions, fast: bool = True):
        """Without `fast`, every row is read by the definition."""
        self.options, self._fast = options, fast
        self._delimiter = None if options.delimiter is None else ord(options.delimiter)
        self.event_fields = fields_of(options, pairs=True)
        self.unknown: dict[str, None] = {}
        self._header: bytes | None = None
        self._layout: Layout | None = None

    def __call__(self, value: bytes | None, header: bytes = b"") -> DecodedEvents:
        """The events of `value`, whole lines below `header`; without a header, the first line of `value` is it.

        An empty value counts as `empty`. Raises `UnreadableHeader`.

        >>> Decoder(EventOptions())(b"05,5,a\\n", b"anchor,near,far\\n").names
        ('05', '5', 'a')
        """
        if not value:
            return nothing(1, frozenset(self.unknown), self.options.provenance)
        begin = 0
        if not header.strip(b"\r\n"):
            header, begin = header_line(value, self._delimiter)
            if not header:
                return nothing(0, frozenset(self.unknown), self.options.provenance)
        layout = self._read_header(header)
        block = Block(self.options.provenance, self.options)
        reading = _Rows(value[begin:] if begin else value, begin, layout)
        table, row = reading.table(layout, block)
        table = with_paths(table, layout.paths, True)
        if b"," in value and (layout.delimiter != ord(",") or b'"' in value):
            self._read_commas(table, layout)
        floats = b"." in value and b".0" in value  # one byte is looked for ten times as fast as two
        for fields, constants in layout.questions:
            columns = table | {name: pa.repeat(text, len(row)) for name, text in constants.items()}
            read_table(arrow_table(columns, len(row), fields, True, floats, self._fast), fields, block, row)
        return block.decoded(reading.locate, frozenset(self.unknown))

    def many(self, values: Sequence[bytes | None]) -> tuple[DecodedEvents, list[int]]:
        """Decode the first of these values, a complete table with its header, which is rejected as one event if it
        lacks required columns. See `formats.Decoder`."""
        try:
            done = self(values[0])
        except UnreadableHeader as error:
            done = unreadable(values[0] or b"", str(error), self.options.provenance)
        return done._replace(values=1), [0] * len(done.rejected)

    def _read_commas(self, table: dict[str, pa.Array], layout: Layout) -> None:
        """Write decimal commas as points. Between commas, "1,234" may be a thousand as well: response times with a
        comma that is not read are named beside the unknown columns."""
        for name in sorted(layout.numbers()) if layout.delimiter != ord(",") else ():
            table[name] = pc.replace_substring_regex(table[name], DECIMAL_COMMA, r"\1.\2")
        times = {fields.optional[name] for fields, _ in layout.questions for name in PACE}
        for name in sorted(times & table.keys()):
            if len(self.unknown) < MAX_UNKNOWN and pc.any(pc.match_substring(table[name], ",")).as_py():
                self.unknown[f"{name} where its numbers have commas"] = None

    def _read_header(self, header: bytes) -> Layout:
        if header != self._header or self._layout is None:
            self._layout = layout_of(header, self.options)
            self._header = header
            for name in sorted(self._layout.unknown):
                if len(self.unknown) < MAX_UNKNOWN:
                    self.unknown[name] = None
        return self._layout


class _Rows:
    """The lines of one value: as a table, and one by one for rejected events."""

    def __init__(self, value: bytes, begin: int, layout: Layout):
        self.value, self.begin, self.width, self.delimiter = value, begin, layout.width, layout.delimiter
        self._rows: Rows | None = None

    def table(self, layout: Layout, block: Block) -> tuple[dict[str, pa.Array], np.ndarray]:
        """The columns of the readable rows, and the numbers of these rows; the others are added to `block.refused`."""
        value = self.value
        if b'"' not in value and is_utf8(value):
            try:
                columns, size = _parsed(value, layout, quotes=False)
                return columns, np.arange(size)
            except _WrongWidth:
                pass  # find the rows, below
        rows = self.rows()
        state = rows.state.copy()
        if not is_utf8(value):
            for row in np.flatnonzero(state == WHOLE).tolist():
                if not is_utf8(value[rows.start[row] : rows.end[row]]):
                    state[row] = _NOT_UTF8
        for row in np.flatnonzero(state != WHOLE).tolist():
            block.refused.append((row, InvalidEvent("not_parseable", self._reason(row, int(state[row])))))
        good = np.flatnonzero(state == WHOLE)
        if len(good) < len(state):
            value = b"\n".join(value[rows.start[row] : rows.end[row]] for row in good)
        columns, size = _parsed(value, layout, quotes=True)
        if size != len(good):
            raise RuntimeError(f"CSV: pyarrow found {size} rows, the engine {len(good)}; please report this")
        return columns, good

    def rows(self) -> Rows:
        """The boundaries of the rows; computed once, and only if pyarrow's columns are not sufficient."""
        if self._rows is None:
            self._rows = rows_of(self.value, self.width, self.delimiter)
        return self._rows

    def locate(self, row: int) -> tuple[int, bytes]:
        """Start and bytes of a row, without its line end."""
        start, end = int(self.rows().start[row]), int(self.rows().end[row])
        return self.begin + start, self.value[start:end]

    def _reason(self, row: int, state: int) -> str:
        """Why a row cannot be read, from its first line alone: a block may end before the lines that made it
        invalid."""
        if state == _NOT_UTF8:
            return f"the row is {NOT_UTF8}"
        line = self.locate(row)[1]
        if (fields := fields_in(line, self.delimiter)) is not None:
            return f"the row has {fields} fields; the header has {self.width}"
        return f'a field opens a quote (") that is never closed in a row of {self.width} fields'


def _parsed(value: bytes, layout: Layout, quotes: bool) -> tuple[dict[str, pa.Array], int]:
    """The columns that are read, as text, and the number of rows. Raises `_WrongWidth`."""
    if not value:
        return {name: pa.array([], pa.string()) for name in layout.columns}, 0
    wrong = []

    def skip(row) -> str:
        wrong.append(row)
        return "skip"

    read = [str(position) for position in layout.columns.values()]
    if value.startswith(BOM_UTF8):
        value = b"\n" + value  # pyarrow passes over a byte order mark at the start of any data; here it is text
    table = pyarrow.csv.read_csv(
        pa.py_buffer(value),
        pyarrow.csv.ReadOptions(
            use_threads=False, block_size=len(value) + 1, column_names=[str(i) for i in range(layout.width)]
        ),
        pyarrow.csv.ParseOptions(delimiter=chr(layout.delimiter), newlines_in_values=quotes, invalid_row_handler=skip),
        pyarrow.csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(read, pa.string()),
            include_columns=read,
            null_values=[],
            strings_can_be_null=False,
        ),
    )
    if wrong:
        raise _WrongWidth
    columns = {name: _one_chunk(table.column(str(position))) for name, position in layout.columns.items()}
    if _has_spaces_around(value, layout.delimiter, quotes):
        columns = {name: stripped(column) for name, column in columns.items()}
    return columns, table.num_rows


def _has_spaces_around(value: bytes, delimiter: int, quotes: bool) -> bool:
    """False if certainly no field begins or ends with a space or a tab: a few searches of the bytes."""
    for space in (b" ", b"\t"):
        if space[0] == delimiter or space not in value:
            continue
        if quotes or value.startswith(space) or value.endswith(space):
            return True
        beside = bytes([delimiter]), b"\n", b"\r"
        if any(space + other in value or other + space in value for other in beside):
            return True
    return False


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which would copy a single one
