"""Tables of events: columns of text, integers and lists to events, without a Python object per event on the way.

Names are numbered from the buffers of their columns, or of the dictionaries of these, and rows are checked as
arrays. A row that the arrays are not sure of (a null, an empty list cell, a number that does not look like
one, a list of the wrong size) is read by the plain definition in `validate`, which accepts it or finds the reason.
Invariant: rows are sure only if `validate` accepts them, with the same names. O(rows + names in lists).
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stream_engine.data.comparisons import MAX_LIST, InvalidEvent
from stream_engine.formats.arrow_arrays import (
    coded,
    equal,
    holds_names,
    is_float,
    is_list,
    is_text,
    nulls,
    plain_value,
    stripped,
    times,
    weights,
    whole,
    whole_or_nan,
    without_zero_decimals,
)
from stream_engine.formats.event_block import Block
from stream_engine.formats.event_columns import FieldNames, Origins, Pool, slices_side_by_side
from stream_engine.formats.event_fields import (
    KIND,
    LABEL,
    LIST_SEPARATOR,
    TRIPLET,
    VOTED,
    EventField,
    EventFields,
    place_of,
)
from stream_engine.formats.field_values import MAX_VOTES, MISSING
from stream_engine.formats.validate import CatchTrial, Event, read_event

Parse = Callable[[pa.Array, np.ndarray, bool], tuple[np.ndarray, np.ndarray]]


class Table(NamedTuple):
    """Columns of equal length. In `text` tables (CSV) every column is text: an empty cell is an absent value, lists,
    numbers and times are written out; `floats` is False where surely no name is a whole number that a column of floats
    has written. In others (Arrow) text is text, and a null is an absent value."""

    columns: Mapping[str, pa.Array]
    size: int
    text: bool
    floats: bool = True


class SureNames(NamedTuple):
    """The names of one field over all rows, and the rows whose names are sure; of the others they mean nothing."""

    lengths: np.ndarray  # (n,) int64
    flat: np.ndarray  # (f,) int32
    sure: np.ndarray  # (n,) bool

    @property
    def one_each(self) -> bool:
        """Whether every row has one name."""
        return len(self.flat) == len(self.lengths) and bool((self.lengths == 1).all())

    def of_rows(self, rows: np.ndarray) -> FieldNames:
        """The names of these rows, (n,) bool."""
        if rows.all():
            return FieldNames(self.lengths, self.flat)
        start = np.cumsum(self.lengths) - self.lengths
        return FieldNames(self.lengths[rows], self.flat[slices_side_by_side(self.lengths[rows], start[rows])])


def read_table(table: Table, event_fields: EventFields, block: Block, row: np.ndarray, fast: bool = True) -> None:
    """Add the events of a table to `block`; `row` (n,) int64 says which event of the value each row is. Without `fast`
    every row is read by the definition."""
    columns = _Columns(table, event_fields, block)
    kept = columns.matches()
    block.filtered += int(table.size - kept.sum())
    kinds = columns.kinds()
    sure, origins = columns.origins()
    sure &= kept & (kinds >= 0) & fast
    sure &= ~columns.catch_trials()
    votes, votes_sure = columns.votes()
    sure &= votes_sure | ~np.isin(kinds, VOTED)
    unsure = kept & ~sure
    for kind in event_fields.kinds:
        rows = sure & (kinds == kind)
        if not rows.any():
            continue
        names: list[SureNames] = []
        inputs: tuple[str, ...] = ()  # where the objects stand that are answered about
        for field in event_fields.by_kind[kind]:
            by_position = field.shape.answer and event_fields.first_of is not None
            names.append(columns.at_positions(field, inputs, names[-1]) if by_position else columns.field(field))
            inputs = field.inputs
        voted = None if votes is None or kind not in VOTED else votes
        sure_rows = rows & np.logical_and.reduce([field.sure for field in names])
        unsure |= rows & ~sure_rows
        if sure_rows.all() and all(field.one_each for field in names):
            block.add_columns(
                kind, row, [field.flat for field in names], 1, origins if block.provenance else None, voted
            )
            continue
        block.add(
            kind,
            row[sure_rows],
            [field.of_rows(sure_rows) for field in names],
            _of_rows(origins, sure_rows) if block.provenance else None,
            None if voted is None else voted[sure_rows],
        )
    _read_slowly(columns, np.flatnonzero(unsure), row)


def _of_rows(origins: Origins, rows: np.ndarray) -> Origins:
    return origins if rows.all() else Origins(*(column[rows] for column in origins))


def _read_slowly(columns: "_Columns", unsure: np.ndarray, row: np.ndarray) -> None:
    """Read rows one by one, by the definition of an event."""
    block = columns.block
    events: list[Event] = []
    event_rows = []
    for place, number in zip(unsure.tolist(), row[unsure].tolist(), strict=True):
        try:
            events.append(read_event(columns.cell_of(place), columns.event_fields, columns.table.text))
            event_rows.append(number)
        except InvalidEvent as fault:
            block.refused.append((number, fault))
        except CatchTrial as trial:
            block.add_catch_trial(number, trial)
    block.add_events(event_rows, events)


class _Columns:
    """The columns of one table, each encoded once, into the names of one block."""

    def __init__(self, table: Table, event_fields: EventFields, block: Block):
        self.table, self.event_fields, self.block = table, event_fields, block
        self._names: dict[str, np.ndarray] = {}
        self._lists: dict[str, SureNames] = {}

    def matches(self) -> np.ndarray:
        """(n,) bool: the rows that `--where` keeps; a null never matches."""
        keep = np.ones(self.table.size, bool)
        for source, wanted in self.event_fields.where:
            column = self.table.columns.get(source)
            keep &= equal(column, wanted) if column is not None else False
        return keep

    def catch_trials(self) -> np.ndarray:
        """(n,) bool: the rows that say something in the field of catch trials."""
        source = self.event_fields.catch_input
        column = self.table.columns.get(source) if source is not None else None
        return np.zeros(self.table.size, bool) if column is None else ~self._absent(column)

    def kinds(self) -> np.ndarray:
        """(n,) int8: the type of each row, -1 where it says something that is no type."""
        if self.event_fields.only_kind is not None:
            return np.full(self.table.size, self.event_fields.only_kind, np.int8)
        column = self.table.columns.get(self.event_fields.type_input)
        if column is None:
            return np.full(self.table.size, TRIPLET, np.int8)
        pool = Pool()
        ids = coded(column, pool)
        known = KIND | {"": TRIPLET} if self.table.text else KIND
        kind_of = np.array([known.get(name, -1) for name in pool.texts()] + [-1], np.int8)
        kinds = kind_of[ids]
        kinds[nulls(column)] = TRIPLET
        return kinds

    def field(self, field: EventField) -> SureNames:
        """The names of one field."""
        if field.shape.nullable:
            return self._nullable(field.inputs[0])
        if field.stands_in_a_list:
            lengths, flat, sure = self.answers(field) if field.shape.answer else self.lists(field.inputs[0])
            if field.shape.size is not None:
                sure = sure & (lengths == field.shape.size)
            return SureNames(lengths, flat, sure & (lengths <= MAX_LIST))
        columns = [self.names(source) for source in field.inputs]
        if len(columns) == 1:
            one = np.broadcast_to(np.int64(1), self.table.size)
            return SureNames(one, columns[0], columns[0] >= 0)
        lengths = np.full(self.table.size, len(columns))
        ids = np.stack(columns, axis=1)
        fits = np.full(self.table.size, field.shape.size in (None, len(columns)))
        return SureNames(lengths, ids.reshape(-1), fits & np.all(ids >= 0, axis=1))

    def answers(self, field: EventField) -> SureNames:
        """The names of a list of answers; one answer need not stand in a list."""
        column = self.table.columns.get(field.inputs[0])
        if column is None or self.table.text or not (holds_names(column.type) or is_float(column.type)):
            return self.lists(field.inputs[0])
        ids = self.names(field.inputs[0])
        return SureNames(np.ones(self.table.size, np.int64), ids, ids >= 0)

    def at_positions(self, field: EventField, inputs: tuple[str, ...], objects: SureNames) -> SureNames:
        """The names of answers that are given by their positions among these objects, which stand in `inputs`."""
        lengths, flat, sure = self.field(field)
        first = self.event_fields.first_of or 0
        places = [place_of(text, inputs, first) for text in self.block.names.texts()]
        rows = np.repeat(np.arange(self.table.size), lengths)
        place = np.array([*places, -1], np.int64)[flat]
        good = (place >= 0) & (place < objects.lengths[rows])
        starts = np.cumsum(objects.lengths) - objects.lengths
        at = np.where(good, starts[rows] + place, 0)
        named = np.where(good, objects.flat[at], -1) if len(objects.flat) else np.full(len(flat), -1)
        unsure = np.bincount(rows[named < 0], minlength=self.table.size) > 0
        return SureNames(lengths, named.astype(np.int32), sure & ~unsure & objects.sure)

    def votes(self) -> tuple[np.ndarray | None, np.ndarray]:
        """(n, 2) int64 how often each event was answered each way (None: once, as it stands), and (n,) bool: the rows
        whose counts are good."""
        size, columns = self.table.size, [self.table.columns.get(source) for source in self.event_fields.votes]
        if all(column is None for column in columns):
            return None, np.ones(size, bool)
        counts, absent, sure = np.zeros((size, 2), np.int64), np.ones((size, 2), bool), np.ones(size, bool)
        for side, column in enumerate(columns):
            if column is None:
                continue
            absent[:, side] = self._absent(column)
            values, good = weights(column, absent[:, side], self.table.text)
            good = good & (values <= MAX_VOTES) & (values == np.floor(values))
            counts[:, side] = np.where(good & ~absent[:, side], values, 0)
            sure &= good | absent[:, side]
        counts[absent.all(axis=1)] = 1, 0
        return counts, sure

    def _nullable(self, source: str) -> SureNames:
        """A label; an absent one takes the label back."""
        if source not in self.table.columns:
            none = np.zeros(self.table.size, bool)
            return SureNames(none.astype(np.int64), np.empty(0, np.int32), none)
        ids, column = self.names(source), self.table.columns[source]
        taken_back = equal(column, "") if self.table.text else nulls(column)
        sure = taken_back | (ids >= 0)
        given = sure & ~taken_back
        return SureNames(given.astype(np.int64), ids[given], sure)

    def names(self, source: str) -> np.ndarray:
        """(n,) int32: the numbers of the names in a column, -1 where there is no name."""
        if source not in self._names:
            column = self.table.columns.get(source)
            self._names[source] = (
                np.full(self.table.size, -1, np.int32) if column is None else self._coded(column, self.block.names)
            )
        return self._names[source]

    def _coded(self, column: pa.Array, pool: Pool) -> np.ndarray:
        """(n,) int32: the numbers of the names in a column, those that are whole floats as the integers they are."""
        if self.table.text and self.table.floats and is_text(column.type):
            column = without_zero_decimals(column)
        return coded(column, pool)

    def lists(self, source: str) -> SureNames:
        """The names in a column of lists; in a text table, of text separated by `|`."""
        if source not in self._lists:
            self._lists[source] = self._split(self.table.columns.get(source))
        return self._lists[source]

    def _split(self, column: pa.Array | None) -> SureNames:
        nothing = np.zeros(self.table.size, np.int64), np.empty(0, np.int32), np.zeros(self.table.size, bool)
        if column is None:
            return SureNames(*nothing)
        sure = ~nulls(column)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if self.table.text and is_text(column.type):
            sure &= ~equal(column, "")
            column = pc.split_pattern(column, LIST_SEPARATOR)
        elif not is_list(column.type):
            return SureNames(*nothing)
        items = whole(pc.list_flatten(column))
        if self.table.text and is_text(items.type):
            items = stripped(items)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = self._coded(items, self.block.names)
        unknown_before = np.concatenate([[0], np.cumsum(flat < 0)])
        ends = np.cumsum(lengths)
        return SureNames(lengths, flat, sure & (unknown_before[ends] == unknown_before[ends - lengths]))

    def origins(self) -> tuple[np.ndarray, Origins]:
        """Which rows have a sure id, worker, sampler, weight and time; and all but the first of these."""
        size = self.table.size
        weight, weight_sure = self._number("weight", weights, 1.0)
        time, time_sure = self._number("time", times, np.nan)
        sure, numbers = weight_sure & time_sure, dict[str, np.ndarray]()
        pools = {"worker": self.block.workers, "sampler": self.block.samplers}
        for name in ("id", "worker", "sampler"):
            column = self.table.columns.get(self.event_fields.optional[name])
            if column is None:
                continue
            if is_float(column.type):
                sure &= nulls(column) | whole_or_nan(column)
            elif not holds_names(column.type):
                sure &= nulls(column)
            if name in pools and self.block.provenance and (holds_names(column.type) or is_float(column.type)):
                numbers[name] = self._coded(column, pools[name])
                numbers[name][equal(column, "")] = -1
        worker, sampler = (numbers.get(name, np.broadcast_to(np.int32(-1), size)) for name in pools)
        return sure, Origins(worker, weight, time, sampler)

    def _number(self, name: str, parse: Parse, absent: float) -> tuple[np.ndarray, np.ndarray]:
        """(n,) float64 with `absent` where there is no value, and (n,) bool where it is a good one."""
        column = self.table.columns.get(self.event_fields.optional[name])
        if column is None:
            return np.broadcast_to(absent, self.table.size), np.ones(self.table.size, bool)
        missing = self._absent(column)
        values, good = parse(column, missing, self.table.text)
        values[missing] = absent
        return values, good | missing

    def _absent(self, column: pa.Array) -> np.ndarray:
        """(n,) bool: where a value that may be left out is: null or, in text tables, empty."""
        return nulls(column) | equal(column, "") if self.table.text and is_text(column.type) else nulls(column)

    def cell_of(self, row: int) -> Callable[[str], Any]:
        """The values of one row as `validate` wants them: a label that is not there is taken back (None)."""
        label = self.event_fields.by_kind[LABEL][1].inputs[0] if LABEL in self.event_fields.kinds else None
        absent = "" if self.table.text else None

        def cell(source: str) -> Any:
            """The value of one input field in this row, `MISSING` where it is null or there is no such column."""
            if source not in self.table.columns:
                return MISSING
            value = plain_value(self.table.columns[source][row])
            if source == label and value == absent:
                return None
            return MISSING if value is None else value

        return cell
