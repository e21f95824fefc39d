"""Questions from frames, dicts, tuples or files, to be answered by a model."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from stream_engine.api.frames import BadFrame, columns_of, is_dicts
from stream_engine.api.options import as_known, check_layout, paths_in, settings_of
from stream_engine.evaluation.questions import QuestionReader, Questions
from stream_engine.formats.options import EventOptions
from stream_engine.formats.record_columns import records_of

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


def questions_in(data: Any, options: EventOptions, layout: Mapping[str, Any]) -> Questions:
    """The questions of a table, of rows or of files, read by the options of events; a table's rows count from 0.
    Raises `BadFrame`, `BadQuestion`."""
    paths = paths_in(data)
    check_layout(layout, paths)
    if paths is not None:
        from stream_engine.service.inferred import read

        return read(settings_of(paths, options, layout))
    rows = rows_of(data)
    held = {name: [row.get(name) for row in rows[:1000]] for name in (rows[0] if rows else ())}
    with suppress(BadFrame):  # a question need not say what was answered
        options, _ = as_known(records_of(held), options)
    asking = QuestionReader(options)
    for number, row in enumerate(rows):
        asking.add(row, f"row {number}")
    return asking.questions()
