"""Questions from frames, to be answered by a model."""

from typing import Any

import numpy as np

from stream_engine.prediction.questions import names_of
from stream_engine.study.frames import columns_of, is_dicts

WIDTHS = {3: ("anchor", "left", "right"), 4: ("near_i", "near_j", "far_i", "far_j")}  # of rows without names of columns


def rows_of(questions: Any) -> list[dict[str, Any]]:
    """The questions of a table, or of a list of dicts or of tuples (anchor, left, right), as dicts. Raises `BadFrame`.

    >>> rows_of([("a", "b", "c")])
    [{'anchor': 'a', 'left': 'b', 'right': 'c'}]
    """
    table = columns_of(questions)
    without_names = isinstance(questions, (list, tuple, np.ndarray)) and not is_dicts(questions)
    names = WIDTHS[len(table.names)] if without_names else table.names
    held = {name: table.take(here).to_pylist() for name, here in zip(names, table.names)}
    return [dict(zip(held, row)) for row in zip(*held.values())]


def names_in(rows: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    """i, j, k, l of each question: is d(i, j) < d(k, l)? Raises `BadQuestion`, which names the row, counted from 0."""
    return [names_of({name: _whole(value) for name, value in row.items()}, f"row {at}") for at, row in enumerate(rows)]


def _whole(value: Any) -> Any:
    """A whole number as one: a column of numbers with a gap holds floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
