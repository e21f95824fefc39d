"""Tables of events: columns of any format to events, without a Python object per event.

Names are numbered from the bytes of their columns, and rows are checked as arrays; `validate` reads uncertain rows. A
row is certain only if `validate` accepts it, with the same names.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, MAX_LIST, MAX_WEIGHT, InvalidEvent
from stream_engine.formats.event_block import Block
from stream_engine.formats.event_columns import FieldNames, KnownNames, Origins, Pool, slices_side_by_side
from stream_engine.formats.event_fields import PACE, TRIPLET, VOTED, EventField, EventFields, Filter, place_of
from stream_engine.formats.field_values import MAX_VOTES, TIMES
from stream_engine.formats.validate import CatchTrial, Event

_KINDS = KnownNames(EVENT_TYPES)


class ExcludedEvent(Exception):
    """The event is excluded by `--where`."""


class CertainNames(NamedTuple):
    """The names of one field in all rows, and which rows are certain; the names of the others are undefined."""

    lengths: np.ndarray  # (n,) int64
    flat: np.ndarray  # (f,) int32
    sure: np.ndarray  # (n,) bool

    def of_rows(self, rows: np.ndarray) -> FieldNames:
        """The names of these rows, (n,) bool."""
        if rows.all():
            return FieldNames(self.lengths, self.flat)
        start = np.cumsum(self.lengths) - self.lengths
        return FieldNames(self.lengths[rows], self.flat[slices_side_by_side(self.lengths[rows], start[rows])])


class Column(Protocol):
    """One input field in all rows of a table. Invalid names, numbers and times become -1 or NaN, never an exception."""

    def of_rows(self, rows: np.ndarray) -> "Column":
        """The column restricted to the rows with these numbers."""

    def absent(self) -> np.ndarray:
        """(n,) bool: whether an optional value is absent: missing, null or, in tables of text, empty."""

    def is_label_removal(self) -> np.ndarray:
        """(n,) bool: whether a label is removed: null or, in tables of text, empty."""

    def equal(self, wanted: str) -> np.ndarray:
        """(n,) bool: whether the value, as text, is `wanted`; False for nulls and values without text."""

    def names(self, pool: Pool) -> np.ndarray:
        """(n,) int32: numbers in the pool, -1 for invalid names."""

    def optional_names(self, pool: Pool | None) -> tuple[np.ndarray, np.ndarray]:
        """The same for an optional name, and (n,) bool: whether it is a valid name or absent. Without a pool, the
        numbers are undefined."""

    def lists(self, pool: Pool, answer: bool) -> CertainNames:
        """The names of lists; a single `answer` need not be in a list."""

    def numbers(self, missing: np.ndarray) -> np.ndarray:
        """(n,) float64; `missing` marks absent values."""

    def times(self, missing: np.ndarray) -> np.ndarray:
        """(n,) float64 epoch seconds."""


class Table(NamedTuple):
    """Columns of equal length. `event` reads a row by the definition, and raises `InvalidEvent`, `CatchTrial` or
    `ExcludedEvent`; it reads all rows that are not `readable` (None: all are readable)."""

    columns: Mapping[str, Column]
    size: int
    event: Callable[[int], Event]
    readable: np.ndarray | None = None


def read_table(table: Table, event_fields: EventFields, block: Block, row: np.ndarray) -> None:
    """Add the events of a table to `block`; `row` (n,) int64 is the number of each row's event in the value."""
    columns = _Columns(table, event_fields, block)
    matches, readable = columns.matches(), table.readable
    if readable is not None:
        matches |= ~readable
    block.filtered += int(table.size - matches.sum())
    kinds = columns.kinds()
    sure, certain = columns.origins()
    origins = certain if block.provenance else None
    sure &= matches & (kinds >= 0)
    if readable is not None:
        sure &= readable
    if (catch := columns.get(event_fields.catch_input)) is not None:
        sure &= catch.absent()
    votes, votes_sure = columns.votes()
    if votes is not None:
        sure &= votes_sure | ~np.isin(kinds, VOTED)
    unsure = matches & ~sure
    for kind in event_fields.kinds:
        rows = sure & (kinds == kind)
        if not rows.any():
            continue
        of_kind, part = (row, columns) if rows.all() else (row[rows], _Columns(table, event_fields, block, rows))
        names: list[CertainNames] = []
        inputs: tuple[str, ...] = ()  # where the objects stand that are answered about
        for field in event_fields.by_kind[kind]:
            by_position = field.shape.answer and event_fields.first_of is not None
            names.append(part.at_positions(field, inputs, names[-1]) if by_position else part.field(field))
            inputs = field.inputs
        sure_rows = np.logical_and.reduce([field.sure for field in names])
        of_origins = origins and _of_rows(origins, rows)
        voted = None if votes is None or kind not in VOTED else votes[rows]
        unsure[np.flatnonzero(rows)[~sure_rows]] = True
        block.add(
            kind,
            of_kind[sure_rows],
            [field.of_rows(sure_rows) for field in names],
            of_origins and _of_rows(of_origins, sure_rows),
            None if voted is None else voted[sure_rows],
        )
    _read_slowly(table, block, np.flatnonzero(unsure), row)


def kept_rows(filter: Filter, column: Column | None, size: int) -> np.ndarray:
    """(n,) bool: the rows whose value a filter keeps; a column that is not there is absent everywhere."""
    if column is None:
        nothing = np.zeros(size, bool)
        return np.asarray(filter.keeps(lambda text: nothing, ~nothing, lambda: np.full(size, np.nan)))
    absent = column.absent()
    return np.asarray(filter.keeps(column.equal, absent, lambda: np.where(absent, np.nan, column.numbers(absent))))


def _of_rows(origins: Origins, rows: np.ndarray) -> Origins:
    return origins if rows.all() else Origins(*(column[rows] for column in origins))


def _read_slowly(table: Table, block: Block, unsure: np.ndarray, row: np.ndarray) -> None:
    """Read rows one by one, by the definition of an event."""
    events: list[Event] = []
    event_rows = []
    for place, number in zip(unsure.tolist(), row[unsure].tolist(), strict=True):
        try:
            events.append(table.event(place))
            event_rows.append(number)
        except InvalidEvent as fault:
            block.refused.append((number, fault.with_traceback(None)))
        except CatchTrial as trial:
            block.add_catch_trial(number, trial)
        except ExcludedEvent:
            block.filtered += 1
    block.add_events(event_rows, events)


class _Columns:
    """The columns of a table, or of some `rows` (n,) bool of it; names are added to the block's."""

    def __init__(self, table: Table, event_fields: EventFields, block: Block, rows: np.ndarray | None = None):
        self._columns, self.event_fields, self.block = table.columns, event_fields, block
        self._rows = None if rows is None else np.flatnonzero(rows)
        self.size = table.size if self._rows is None else len(self._rows)
        self._names: dict[str, np.ndarray] = {}

    def get(self, source: str | None) -> Column | None:
        """The column of an input field, if it exists."""
        column = None if source is None else self._columns.get(source)
        return column if column is None or self._rows is None else column.of_rows(self._rows)

    def matches(self) -> np.ndarray:
        """(n,) bool: the rows that `--where` keeps."""
        keep = np.ones(self.size, bool)
        for filter in self.event_fields.where:
            keep &= kept_rows(filter, self.get(filter.source), self.size)
        return keep

    def kinds(self) -> np.ndarray:
        """(n,) int8: the type of each row, -1 for an unknown type."""
        if self.event_fields.only_kind is not None:
            return np.full(self.size, self.event_fields.only_kind, np.int8)
        column = self.get(self.event_fields.type_input)
        if column is None:
            return np.full(self.size, TRIPLET, np.int8)
        return np.where(column.absent(), np.int8(TRIPLET), column.names(_KINDS).astype(np.int8))

    def field(self, field: EventField) -> CertainNames:
        """The names of one field."""
        if field.shape.nullable:
            return self._nullable(field.inputs[0])
        if field.stands_in_a_list:
            column = self.get(field.inputs[0])
            if column is None:
                nothing = np.zeros(self.size, np.int64)
                return CertainNames(nothing, np.empty(0, np.int32), nothing > 0)
            lengths, flat, sure = column.lists(self.block.names, field.shape.answer)
            if field.shape.size is not None:
                sure = sure & (lengths == field.shape.size)
            return CertainNames(lengths, flat, sure & (lengths <= MAX_LIST))
        columns = [self.names(source) for source in field.inputs]
        if len(columns) == 1:
            one = np.broadcast_to(np.int64(1), self.size)
            return CertainNames(one, columns[0], columns[0] >= 0)
        lengths = np.full(self.size, len(columns))
        ids = np.stack(columns, axis=1)
        fits = np.full(self.size, field.shape.size in (None, len(columns)))
        return CertainNames(lengths, ids.reshape(-1), fits & np.all(ids >= 0, axis=1))

    def at_positions(self, field: EventField, inputs: tuple[str, ...], objects: CertainNames) -> CertainNames:
        """The names of answers that are positions among these objects, which are in `inputs`."""
        lengths, flat, sure = self.field(field)
        first, texts = self.event_fields.first_of or 0, self.block.names.texts()
        values, answer = np.unique(flat, return_inverse=True)
        codes = self.event_fields.codes.get(field.name, {})
        answers = [codes.get(texts[number], texts[number]) if number >= 0 else "" for number in values.tolist()]
        places = [place_of(answer, inputs, first) for answer in answers]
        rows = np.repeat(np.arange(self.size), lengths)
        place = np.array(places, np.int64)[answer]
        good = (place >= 0) & (place < objects.lengths[rows])
        starts = np.cumsum(objects.lengths) - objects.lengths
        at = np.where(good, starts[rows] + place, 0)
        named = np.where(good, objects.flat[at], -1) if len(objects.flat) else np.full(len(flat), -1)
        unsure = np.bincount(rows[named < 0], minlength=self.size) > 0
        return CertainNames(lengths, named.astype(np.int32), sure & ~unsure & objects.sure)

    def votes(self) -> tuple[np.ndarray | None, np.ndarray]:
        """(n, 2) int64 number of answers in each direction (None: once, as stated), and (n,) bool: the rows with
        valid counts."""
        size, columns = self.size, [self.get(source) for source in self.event_fields.votes]
        if all(column is None for column in columns):
            return None, np.ones(size, bool)
        counts, absent, sure = np.zeros((size, 2), np.int64), np.ones((size, 2), bool), np.ones(size, bool)
        for side, column in enumerate(columns):
            if column is None:
                continue
            absent[:, side] = missing = column.absent()
            values = column.numbers(missing)
            good = (values >= 0) & (values <= MAX_VOTES) & (values == np.floor(values)) & ~missing
            counts[:, side] = np.where(good, values, 0)
            sure &= good | missing
        counts[absent.all(axis=1)] = 1, 0
        return counts, sure

    def _nullable(self, source: str) -> CertainNames:
        """A label; an absent one removes the label."""
        column = self.get(source)
        if column is None:
            none = np.zeros(self.size, bool)
            return CertainNames(none.astype(np.int64), np.empty(0, np.int32), none)
        ids, is_label_removal = self.names(source), column.is_label_removal()
        sure = is_label_removal | (ids >= 0)
        has_label = sure & ~is_label_removal
        return CertainNames(has_label.astype(np.int64), ids[has_label], sure)

    def names(self, source: str) -> np.ndarray:
        """(n,) int32: the numbers of the names in a column, -1 without a name."""
        if source not in self._names:
            column = self.get(source)
            self._names[source] = np.full(self.size, -1, np.int32) if column is None else column.names(self.block.names)
        return self._names[source]

    def origins(self) -> tuple[np.ndarray, Origins]:
        """The rows with a certain id, worker, sampler, weight and time; and these values, except the id."""
        size, optional = self.size, self.event_fields.optional
        sure, latest = np.ones(size, bool), self.event_fields.latest_time()
        numbers: dict[str, np.ndarray] = {"weight": np.broadcast_to(1.0, size), "time": np.broadcast_to(np.nan, size)}
        for name in numbers:
            if (column := self.get(optional[name])) is not None:
                missing = column.absent()
                values = column.numbers(missing) if name == "weight" else column.times(missing)
                least, most = (TIMES[0], min(latest, TIMES[1])) if name == "time" else (0, MAX_WEIGHT)
                good = (values >= least) & (values <= most)
                sure &= missing | good
                numbers[name] = np.where(missing, numbers[name], values)
        pools = {"id": None, "worker": self.block.workers, "sampler": self.block.samplers}
        for name, pool in pools.items():
            numbers[name] = np.broadcast_to(np.int32(-1), size)
            if (column := self.get(optional[name])) is not None:
                numbers[name], good = column.optional_names(pool if self.block.provenance else None)
                sure &= good
        worker, weight, time, sampler = (numbers[name] for name in ("worker", "weight", "time", "sampler"))
        return sure, Origins(worker, weight, time, sampler, self._response_times())

    def _response_times(self) -> np.ndarray:
        """(n,) float64 seconds, NaN where none are given: see `field_values.response_time`."""
        seconds = np.broadcast_to(np.nan, self.size)
        for name, unit in PACE.items():
            if (column := self.get(self.event_fields.optional[name])) is not None:
                missing = column.absent()
                values = column.numbers(missing)
                good = (values >= 0.0) & (values < np.inf) & ~missing & np.isnan(seconds)
                seconds = np.where(good, values * unit, seconds)
        return seconds
