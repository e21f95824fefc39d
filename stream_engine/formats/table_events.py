"""Tables of events: columns of text, integers and lists to events, without a Python object per event on the way.

Each column is dictionary-encoded by pyarrow, the small dictionaries are united into the block's names, and rows are
checked as arrays. A row that the arrays are not sure of (a null, an empty list cell, a number that does not look like
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
    is_list,
    is_text,
    nulls,
    plain_value,
    times,
    weights,
    whole,
)
from stream_engine.formats.event_columns import Block, FieldNames, Pool, spread
from stream_engine.formats.event_fields import KIND, LABEL, LIST_SEPARATOR, TRIPLET, EventField, EventFields
from stream_engine.formats.validate import MISSING, Caught, read_event


class Table(NamedTuple):
    """Columns of equal length. In `text` tables (CSV) every column is text, and an empty cell is an absent value."""

    columns: Mapping[str, pa.Array]
    size: int
    text: bool


def read_table(table: Table, event_fields: EventFields, block: Block, row: np.ndarray) -> None:
    """Add the events of a table to `block`; `row` (n,) int64 says which event of the value each row is."""
    columns = _Columns(table, event_fields, block)
    keep = columns.matches()
    block.filtered += int(table.size - keep.sum())
    kinds = columns.kinds()
    unsure = keep & (kinds < 0)
    good, weight, time, worker = columns.judged()
    unsure |= keep & ~good
    caught = keep & columns.caught()
    unsure |= caught
    good &= ~caught
    for kind in event_fields.kinds:
        rows = keep & good & (kinds == kind)
        if not rows.any():
            continue
        fields = [columns.field(kind, field) for field in event_fields.by_kind[kind]]
        sure = rows & np.logical_and.reduce([ok for _, _, ok in fields])
        unsure |= rows & ~sure
        chosen = [_rows_of(lengths, flat, sure) for lengths, flat, _ in fields]
        judged = (worker[sure], weight[sure], time[sure]) if block.judges else ()
        block.add(kind, row[sure], chosen, *judged)
    said, said_rows = [], []
    for at in np.flatnonzero(unsure):
        try:
            said.append(read_event(columns.cell_of(int(at)), event_fields, text=True))
            said_rows.append(int(row[at]))
        except InvalidEvent as fault:
            block.refused.append((int(row[at]), fault))
        except Caught as catch:
            block.caught(int(row[at]), catch)
    block.add_said(said_rows, said)


def _rows_of(lengths: np.ndarray, flat: np.ndarray, rows: np.ndarray) -> FieldNames:
    if rows.all():
        return FieldNames(lengths, flat)
    start = np.cumsum(lengths) - lengths
    return FieldNames(lengths[rows], flat[spread(lengths[rows], start[rows])])


class _Columns:
    """The columns of one table, each encoded once, into the names of one block."""

    def __init__(self, table: Table, event_fields: EventFields, block: Block):
        self.table, self.event_fields, self.block = table, event_fields, block
        self._names: dict[str, np.ndarray] = {}
        self._lists: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._numbers: dict[str, np.ndarray] = {}

    def matches(self) -> np.ndarray:
        """(n,) bool: the rows that `--where` keeps; a null never matches."""
        keep = np.ones(self.table.size, bool)
        for source, wanted in self.event_fields.where:
            column = self.table.columns.get(source)
            keep &= equal(column, wanted) if column is not None else False
        return keep

    def caught(self) -> np.ndarray:
        """(n,) bool: the rows that say something in the field of catch trials."""
        column = self.table.columns.get(self.event_fields.catch_input)
        if column is None:
            return np.zeros(self.table.size, bool)
        return ~(nulls(column) | equal(column, "") if is_text(column.type) else nulls(column))

    def kinds(self) -> np.ndarray:
        """(n,) int8: the type of each row, -1 where it says something that is no type."""
        if self.event_fields.only_kind is not None:
            return np.full(self.table.size, self.event_fields.only_kind, np.int8)
        column = self.table.columns.get(self.event_fields.type_input)
        if column is None:
            return np.full(self.table.size, TRIPLET, np.int8)
        pool = Pool()
        ids = coded(column, pool)
        kind_of = np.array([TRIPLET if name == "" else KIND.get(name, -1) for name in pool.texts()[0]] + [-1], np.int8)
        kinds = kind_of[ids]
        kinds[nulls(column)] = TRIPLET
        return kinds

    def field(self, kind: int, field: EventField) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The names of one field: lengths (n,), flat indices, and which rows are sure."""
        one = np.ones(self.table.size, np.int64)
        if field.shape.nullable:
            return self._label(field.inputs[0])
        if not field.shape.is_list:
            ids = self.names(field.inputs[0])
            return one, ids, ids >= 0
        if len(field.inputs) > 1:
            ids = np.stack([self.names(source) for source in field.inputs], axis=1)
            sure = (ids >= 0).all(axis=1) & (field.shape.size in (None, len(field.inputs)))
            return one * len(field.inputs), ids.reshape(-1), sure
        lengths, flat, sure = self.lists(field.inputs[0])
        if field.shape.size is not None:
            sure = sure & (lengths == field.shape.size)
        return lengths, flat, sure & (lengths <= MAX_LIST)

    def _label(self, source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A label; an absent one takes the label back."""
        if source not in self.table.columns:
            none = np.zeros(self.table.size, bool)
            return none.astype(np.int64), np.empty(0, np.int32), none
        ids, column = self.names(source), self.table.columns[source]
        taken_back = equal(column, "") if self.table.text else nulls(column)
        sure = taken_back | (ids >= 0)
        said = sure & ~taken_back
        return said.astype(np.int64), ids[said], sure

    def names(self, source: str) -> np.ndarray:
        """(n,) int32: the numbers of the names in a column, -1 where there is no name."""
        if source not in self._names:
            column = self.table.columns.get(source)
            self._names[source] = (
                np.full(self.table.size, -1, np.int32) if column is None else coded(column, self.block.names)
            )
        return self._names[source]

    def lists(self, source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lengths (n,), flat numbers and sureness (n,) of a column of lists, or of text separated by `|`."""
        if source not in self._lists:
            self._lists[source] = self._split(self.table.columns.get(source))
        return self._lists[source]

    def _split(self, column: pa.Array | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nothing = np.zeros(self.table.size, np.int64), np.empty(0, np.int32), np.zeros(self.table.size, bool)
        if column is None:
            return nothing
        sure = ~nulls(column)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if is_text(column.type):
            sure &= ~equal(column, "")
            column = pc.split_pattern(column, LIST_SEPARATOR)
        elif not is_list(column.type):
            return nothing
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = coded(whole(pc.list_flatten(column)), self.block.names)
        bad = np.concatenate([[0], np.cumsum(flat < 0)])
        ends = np.cumsum(lengths)
        return lengths, flat, sure & (bad[ends] == bad[ends - lengths])

    def judged(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Which rows have a sure id, worker, weight and time, and the last three of these."""
        size = self.table.size
        weight, weight_ok = self._number("weight", weights, 1.0)
        time, time_ok = self._number("time", times, np.nan)
        good, worker = weight_ok & time_ok, np.full(size, -1, np.int32)
        for name in ("id", "worker"):
            column = self.table.columns.get(self.event_fields.optional[name])
            if column is None:
                continue
            if not holds_names(column.type):
                good &= nulls(column)
            elif name == "worker" and self.block.judges:
                worker = coded(column, self.block.workers)
                worker[equal(column, "")] = -1
        return good, weight, time, worker

    def _number(self, name: str, parse: Callable, absent: float) -> tuple[np.ndarray, np.ndarray]:
        """(n,) float64 with `absent` where there is no value, and (n,) bool where it is a good one."""
        column = self.table.columns.get(self.event_fields.optional[name])
        if column is None:
            return np.full(self.table.size, absent), np.ones(self.table.size, bool)
        missing = nulls(column) | (equal(column, "") if is_text(column.type) else False)
        values, good = parse(column, missing)
        values[missing] = absent
        self._numbers[self.event_fields.optional[name]] = values
        return values, good | missing

    def cell_of(self, row: int) -> Callable[[str], Any]:
        """The values of one row as `validate` wants them: a label that is not there is taken back (None)."""
        label = self.event_fields.by_kind[LABEL][1].inputs[0] if LABEL in self.event_fields.kinds else None
        absent = "" if self.table.text else None

        def cell(source: str) -> Any:
            if source not in self.table.columns:
                return MISSING
            value = plain_value(self.table.columns[source][row])
            if source == label and value == absent:
                return None
            return MISSING if value is None else value

        return cell
