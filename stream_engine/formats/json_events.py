"""JSON events: one event, an array of events, or JSON lines in one value.

`json_places` finds the events and `json_scan` the values of their fields, as columns for `table_events`; `validate`
reads an event that the scan is uncertain about. Up to MAX_UNKNOWN unknown fields are reported.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec
import numpy as np

from connectors.arrow_headers import STREAM_START
from stream_engine import formats
from stream_engine.data import json_floats
from stream_engine.data.comparisons import MAX_LIST, DecodedEvents, InvalidEvent
from stream_engine.data.compiled import is_worth_compiling
from stream_engine.formats.cells import inside, paths_of
from stream_engine.formats.event_block import MAX_UNKNOWN, Block, nothing, unreadable
from stream_engine.formats.event_columns import Pool
from stream_engine.formats.event_fields import Filter, fields_of
from stream_engine.formats.field_values import MISSING, time_of
from stream_engine.formats.json_places import ERRORS, EventSpans, is_utf8, lines_of, places_of, too_many_elements
from stream_engine.formats.json_scan import (
    ABSENT,
    FALSE,
    INTEGER,
    NULL,
    NUMBER,
    TEXT,
    Cells,
    Fields,
    equal_cells,
    item_count,
    scan_events,
    take_items,
)
from stream_engine.formats.options import EventOptions, OverBound, UnusableOptions, too_many_rows
from stream_engine.formats.table_events import CertainNames, ExcludedEvent, Table, read_table
from stream_engine.formats.text_values import plain_numbers, plain_times
from stream_engine.formats.validate import Event, read_event
from stream_engine.formats.wide_columns import has_placeholders

ENTRIES_PER_EVENT = 10  # that a loop in Python passes over while `validate` reads one event, see `is_worth_compiling`
ARROW_STREAM = b"\xff\xff\xff\xff"  # how an Arrow IPC stream begins; no JSON text does
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder()


class JsonColumn(NamedTuple):
    """A `Column` of some events; the types of the cells, and their locations in the text."""

    text: np.ndarray  # (bytes,) uint8
    kind: np.ndarray  # (n,) int8
    begin: np.ndarray  # (n,) int64
    end: np.ndarray  # (n,) int64
    cells: Cells  # for the items of lists

    def of_rows(self, rows: np.ndarray) -> "JsonColumn":
        return self._replace(kind=self.kind[rows], begin=self.begin[rows], end=self.end[rows])

    def absent(self) -> np.ndarray:
        return self.kind <= NULL

    def is_label_removal(self) -> np.ndarray:
        return self.kind == NULL

    def equal(self, wanted: str) -> np.ndarray:
        """Numbers are compared as they are written."""
        same = (self.kind >= TEXT) & (self.kind <= FALSE)
        equal_cells(self.text, self.begin, self.end, np.frombuffer(wanted.encode(), np.uint8), same)
        return same

    def names(self, pool: Pool) -> np.ndarray:
        return self._ids(pool, (self.kind == TEXT) | (self.kind == INTEGER))

    def optional_names(self, pool: Pool | None) -> tuple[np.ndarray, np.ndarray]:
        named = ((self.kind == TEXT) & (self.end > self.begin)) | (self.kind == INTEGER)
        none = np.broadcast_to(np.int32(-1), len(named))
        return none if pool is None else self._ids(pool, named), self.kind <= INTEGER

    def lists(self, pool: Pool, answer: bool) -> CertainNames:
        lengths, items = np.empty(len(self.kind), np.int64), (self.cells.item_begin, self.cells.item_end)
        names = item_count(self.kind, self.begin, self.end, answer, lengths)
        begins, ends = np.empty(names, np.int64), np.empty(names, np.int64)
        take_items(self.kind, self.begin, self.end, lengths, *items, begins, ends)
        return CertainNames(np.maximum(lengths, 0), pool.ids_of_bytes(self.text, begins, ends), lengths >= 0)

    def numbers(self, missing: np.ndarray) -> np.ndarray:
        values = np.full(len(self.kind), np.nan)
        self._parse((self.kind == INTEGER) | (self.kind == NUMBER), plain_numbers, json_floats.number, values)
        return values

    def times(self, missing: np.ndarray) -> np.ndarray:
        values = self.numbers(missing)
        self._parse(self.kind == TEXT, plain_times, _time, values)
        return values

    def _ids(self, pool: Pool, named: np.ndarray) -> np.ndarray:
        if named.all():
            return pool.ids_of_bytes(self.text, self.begin, self.end)
        ids = np.full(len(named), -1, np.int32)
        ids[named] = pool.ids_of_bytes(self.text, self.begin[named], self.end[named])
        return ids

    def _parse(
        self, some: np.ndarray, plain: Callable[..., np.ndarray], parse: Callable[[str], float], values: np.ndarray
    ) -> None:
        """values[some]: what these cells say, by the compiled `plain` or else by `parse`."""
        if not some.any():
            return
        begins, ends = self.begin[some], self.end[some]
        parsed = plain(self.text, begins, ends)
        for place in np.flatnonzero(np.isnan(parsed)).tolist():
            parsed[place] = parse(self.text[begins[place] : ends[place]].tobytes().decode())
        values[some] = parsed


def _time(text: str) -> float:
    try:
        return time_of(text, False)
    except InvalidEvent:
        return np.nan


def columns_of(sources: Sequence[str], text: np.ndarray, cells: Cells, events: int) -> dict[str, JsonColumn]:
    """The columns of the fields that any of the first `events` has."""
    return {
        source: JsonColumn(
            text, cells.kind[number, :events], cells.begin[number, :events], cells.end[number, :events], cells
        )
        for number, source in enumerate(sources)
        if cells.used[number]
    }


def _wide_names(options: EventOptions) -> str:
    """The names with placeholders, as a message shows them."""
    names = dict.fromkeys(name for name in sum(options.columns.values(), ()) if "{" in name)
    return ", ".join(names)


# A line is blank, one event, or one array of events, in UTF-8; a byte order mark at its start is skipped. One array or
# one object over several lines is read as such.
class Decoder:
    """Decodes values of JSON events. Its only state is the unknown fields (`unknown`); other results do not depend
    on them (law: the scan accepts nothing that `validate` rejects, and reads the same values)."""

    events_at_once = 1 << 18  # of messages: a rejected one takes a kilobyte
    scan_events, scan_bytes = 1 << 14, 1 << 20  # their cells stay in the processor's cache until they are converted

    def __init__(self, options: EventOptions, fast: bool = True):
        """Without `fast`, every event is read by the definition."""
        self.event_fields = fields_of(options)
        self.options, self._fast = options, fast and not self.event_fields.by_definition
        if has_placeholders(options):
            names = _wide_names(options)
            table = 'Save it as a table and read that: pandas.read_json("FILE", lines=True).to_csv("FILE.csv", '
            table += "index=False); without lines=True for a file that is one list"
            lists = "Of lists within records, save all lines as one list, and read that: jq -s . FILE > FILE.json"
            raise UnusableOptions(
                f"got several questions per record ({names}), expected one: JSON holds one question per record. "
                f"{lists if '.{n}.' in names else table}"
            )
        self.unknown: dict[str, None] = {}
        self._sources = [source for source in sorted(self.event_fields.inputs) if _is_plain(source)]
        self._passed_over: dict[str, None] = {}
        self._fields = self._scanned_fields()
        self._room: tuple[Cells, np.ndarray] | None = None
        self._arrow: formats.Decoder | None = None

    def __call__(self, value: bytes | None, header: bytes = b"") -> DecodedEvents:
        """The events of `value` (see the module); `header` is unused. An empty value counts as `empty`."""
        if value and value[:4] == STREAM_START:
            return self._arrow_decoder()(value)
        return self.lines(value)

    def lines(self, value: bytes | None) -> DecodedEvents:
        """The same for a block of a stream of lines, which is no Arrow stream whatever its first line begins with."""
        if not value:
            return nothing(1, frozenset(self.unknown), self.options.provenance)
        block = Block(self.options.provenance, self.options)
        begins, ends = places = places_of(value, self.options.bounds)
        self._read(value, places, block)

        def locate(row: int) -> tuple[int, bytes]:
            return int(begins[row]), value[begins[row] : ends[row]]

        return block.decoded(locate, frozenset(self.unknown))

    def many(self, values: Sequence[bytes | None]) -> tuple[DecodedEvents, list[int]]:
        """Many values at once, and for every refusal which value it was in; see `formats.Decoder`. No more of them than
        hold `events_at_once`, or one."""
        messages = [value or b"" for value in values]
        together = b"\n".join(messages)  # looked at as a whole: one message after the other takes a third of the time
        if STREAM_START[:1] in together and STREAM_START in together:  # up to where the other kind begins
            arrow = [message.startswith(STREAM_START) for message in messages]
            alike = next((n for n, schema in enumerate(arrow) if schema != arrow[0]), len(values))
            if arrow[0] or alike < len(values):
                decode = self._arrow_decoder() if arrow[0] else self
                done, refused_in = decode.many(values[:alike])
                return done._replace(values=done.values or alike), refused_in
        try:
            if together.count(b"\n") >= min(self.options.bounds.max_rows, self.events_at_once):
                messages = self._within_limits(messages)
            if separate := together.count(b"\n") == len(messages) - 1 and all(messages):  # a line each
                texts, text = messages, together
            else:
                texts = [message + b"\n" if message and message[-1] != 10 else message for message in messages[:-1]]
                texts += messages[-1:]
                text = b"".join(texts)
            starts = np.append(0, np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + separate))
            places, first_of = self._places_of_many(texts, text, starts)
        except OverBound as over:
            refused = unreadable(values[0] or b"", str(over), self.options.provenance, "too_large")
            return refused._replace(values=1), [0]
        block = Block(self.options.provenance, self.options)
        self._read(text, places, block)
        begins, ends = places
        done = block.decoded(lambda row: (int(begins[row]), text[begins[row] : ends[row]]), frozenset(self.unknown))
        refused_in = (np.searchsorted(first_of, [r.index for r in done.rejected], "right") - 1).tolist()
        rejected = [
            refused._replace(index=refused.index - int(first_of[number]), start=refused.start - int(starts[number]))
            for number, refused in zip(refused_in, done.rejected, strict=True)
        ]
        n_first = len(first_of)
        return done._replace(rejected=rejected, empty=texts[:n_first].count(b""), values=n_first), refused_in

    def _within_limits(self, values: list[bytes]) -> list[bytes]:
        """As many of these messages as have few enough lines. Raises `OverBound` if the first has too many."""
        bounds, total = self.options.bounds, 0
        for number, value in enumerate(values):
            lines = value.count(b"\n") + (not value.endswith(b"\n"))
            if lines > bounds.max_rows and not number:
                raise OverBound(too_many_rows("the message", lines, "lines", bounds))
            if number and (lines > bounds.max_rows or total + lines > self.events_at_once):
                return values[:number]
            total += lines
        return values

    def _places_of_many(self, texts: list[bytes], text: bytes, starts: np.ndarray) -> tuple[EventSpans, np.ndarray]:
        """Where the events of messages stand in the text of all of them, and the number of the first of each; of fewer
        messages where they hold too much. Raises `OverBound` if the first does."""
        bounds, lines = self.options.bounds, lines_of(text)
        first_line = np.searchsorted(lines.begins, starts)
        if lines.plain.all():
            return EventSpans(lines.begins, lines.ends), first_line[:-1]
        odd_before = np.append(0, np.cumsum(~lines.plain))
        odd = np.diff(odd_before[first_line]) > 0
        parts, first_of, total = [], [], 0
        for number, message in enumerate(texts):
            if total and odd[number] and total + len(message) // 2 > self.events_at_once:
                break
            try:
                part = places_of(message, bounds, bounds.max_rows) if odd[number] else None
            except OverBound:
                if number:
                    break  # what comes before it first
                raise
            if part is None:
                of_value = slice(first_line[number], first_line[number + 1])
                part = EventSpans(lines.begins[of_value], lines.ends[of_value])
            else:
                part = EventSpans(part.begins + starts[number], part.ends + starts[number])
            first_of.append(total)
            parts.append(part)
            total += len(part.begins)
        return EventSpans(*map(np.concatenate, zip(*parts, strict=True))), np.array(first_of)

    def _read(self, value: bytes, places: EventSpans, block: Block) -> None:
        """Read the events at these places into `block`, some at a time."""
        begins, ends = places
        if not is_utf8(value):  # nothing to scan in something that is not an event
            ends = ends.copy()
            for row, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
                if not is_utf8(value[begin:end]):
                    ends[row] = begin
        first, size = 0, len(begins)
        while first < size:
            last = int(np.searchsorted(places.ends, int(begins[first]) + self.scan_bytes, "right"))
            last = max(min(first + self.scan_events, last), first + 1)
            some = slice(first, last)
            table = self._table(value, places, EventSpans(begins[some], ends[some]), first)
            read_table(table, self.event_fields, block, np.arange(first, last))
            first = last

    def _table(self, value: bytes, places: EventSpans, some: EventSpans, first: int) -> Table:
        """The events from `first` on as a table; those that are too long to be scanned are left to the definition."""

        def event(row: int) -> Event:
            return self._by_definition(value[places.begins[first + row] : places.ends[first + row]])

        size, begin, end = len(some.begins), int(some.begins[0]), int(places.ends[first + len(some.begins) - 1])
        scans = self._fast and is_worth_compiling(scan_events, ENTRIES_PER_EVENT * size)
        if not scans or end - begin > self.scan_bytes:
            return Table({}, size, event, np.zeros(size, bool))
        cells, room = self._room_for(size)
        room[: end - begin] = np.frombuffer(value, np.uint8, end - begin, begin)
        cells.used[:], cells.kind[:, :size] = False, ABSENT
        begins, ends = some.begins - begin, some.ends - begin
        at, items, free, stopped = 0, 0, end - begin, -1
        while True:
            at, items, free = scan_events(room, begins, ends, at, self._fields, cells, items, MAX_LIST, free)
            if at == size:
                break
            if at == stopped or not self._learn_from(value[some.begins[at] : some.ends[at]]):
                cells.readable[at] = False
                at += 1
            stopped = at
        return Table(columns_of(self._sources, room, cells, size), size, event, cells.readable[:size])

    def _room_for(self, events: int) -> tuple[Cells, np.ndarray]:
        """Room for the cells of some events, and for their text twice."""
        if self._room is None or len(self._room[0].readable) < events:
            shape, items = (len(self._sources), self.scan_events), self.scan_bytes // 2
            of_fields = np.empty(shape, np.int8), np.empty(shape, np.int64), np.empty(shape, np.int64)
            used = np.empty(self.scan_events, bool), np.empty(len(self._sources), bool)
            cells = Cells(*of_fields, *used, np.empty(items, np.int64), np.empty(items, np.int64))
            self._room = cells, np.empty(2 * self.scan_bytes, np.uint8)
        return self._room

    def _by_definition(self, text: bytes) -> Event:
        """One event. Raises `InvalidEvent` with the reason, `ExcludedEvent`, `CatchTrial`."""
        if over := too_many_elements(text, self.options.bounds):
            raise InvalidEvent("too_large", over)
        fields = _fields_in(text)
        self._learn(fields)
        for filter in self.event_fields.where:
            if not _matches(filter, bytes(fields.get(filter.source, b""))):
                raise ExcludedEvent
        return read_event(lambda source: _value(fields, source), self.event_fields, text=False)

    def _learn_from(self, text: bytes) -> bool:
        """Learn the fields of an event; False where it is none."""
        try:
            self._learn(_FIELDS.decode(text))
        except ERRORS:
            return False
        return True

    def _learn(self, fields: Iterable[str]) -> None:
        """Name the fields that nobody asked for, and pass over them from now on."""
        if len(self.unknown) >= MAX_UNKNOWN:
            return
        new = [name for name in fields if name not in self.event_fields.inputs and name not in self._passed_over]
        for name in new:
            if len(self.unknown) < MAX_UNKNOWN:
                self._passed_over[name] = None
                self.unknown[name if len(name) <= 200 else name[:200] + "..."] = None
        if new:
            self._fields = self._scanned_fields()

    def _scanned_fields(self) -> Fields:
        names = [name.encode() for name in (*self._sources, *filter(_is_plain, self._passed_over))]
        bounds = np.array([0, *accumulate(map(len, names))], np.int64)
        utf8 = np.frombuffer(bytearray(b"".join(names)), np.uint8)
        return Fields(utf8, bounds, len(self._sources), len(self.unknown) >= MAX_UNKNOWN)

    def _arrow_decoder(self) -> formats.Decoder:
        if self._arrow is None:
            from stream_engine.formats.arrow_events import Decoder as ArrowDecoder  # load pyarrow only if needed

            self._arrow = ArrowDecoder(self.options, self._fast)
        return self._arrow


def _is_plain(name: str) -> bool:
    """Whether the name of a field is written without escapes; the scan knows no others."""
    return not any(c in '"\\' or c < " " for c in name)


def _fields_in(text: bytes) -> dict[str, msgspec.Raw]:
    """The fields of a JSON object, their values unread. Raises `InvalidEvent` with what is wrong."""
    try:
        text.decode()
        return _FIELDS.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidEvent("not_parseable", f"not UTF-8: {error.reason} (byte {error.start})") from None
    except RecursionError:
        raise InvalidEvent("not_parseable", "not readable as JSON: nested too deeply") from None
    except msgspec.ValidationError as error:
        raise InvalidEvent("not_parseable", f"an event must be a JSON object ({error})") from None
    except msgspec.DecodeError as error:
        raise InvalidEvent("not_parseable", f"not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None


def _value(fields: dict[str, msgspec.Raw], source: str) -> Any:
    """The value of one field, or MISSING."""
    if source not in fields:
        column, path = paths_of([source], list(fields)).get(source, ("", ""))
        return inside(_ANY.decode(fields[column])).get(path, MISSING) if column else MISSING
    try:
        return _ANY.decode(fields[source])
    except msgspec.ValidationError:  # a number that is too large, such as 1e999: not a name, weight or time
        raw = bytes(fields[source])
        return json_floats.number(raw.decode()) if raw[-1:].isdigit() else np.inf  # or a list with such a number


def _matches(filter: Filter, raw: bytes) -> bool:
    """Whether a filter keeps a JSON value; b"" where there is none."""

    def number() -> float:
        return json_floats.number(raw.decode()) if raw[:1].isdigit() or raw[:1] == b"-" else np.nan

    return bool(filter.keeps(lambda text: _has_text(raw, text), np.bool_(raw in (b"", b"null")), number))


def _has_text(raw: bytes, wanted: str) -> bool:
    """Whether a JSON value is this text: a string by its characters, a number as written, true, false; never null.

    >>> _has_text(b'"a"', "a"), _has_text(b"1.50", "1.50"), _has_text(b"1.5", "1.50"), _has_text(b"null", "null")
    (True, True, False, False)
    """
    if raw[:1] == b'"':
        return _ANY.decode(raw) == wanted
    return raw[:1] not in (b"", b"n", b"[", b"{") and raw.decode() == wanted
