"""The cells that a scan of JSON found in one field, as a column of `table_events`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import InvalidEvent
from stream_engine.formats.event_columns import Pool
from stream_engine.formats.field_values import time_of
from stream_engine.formats.json_scan import (
    FALSE,
    INTEGER,
    NULL,
    NUMBER,
    TEXT,
    Cells,
    equal_cells,
    item_count,
    take_items,
)
from stream_engine.formats.table_events import CertainNames
from stream_engine.formats.text_values import plain_numbers, plain_times


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

    def taken_back(self) -> np.ndarray:
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
        self._parse((self.kind == INTEGER) | (self.kind == NUMBER), plain_numbers, float, values)
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
