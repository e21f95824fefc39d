"""Questions from frames, dicts, tuples or files, to be predicted by a model."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from stream_engine.api.frames import BadFrame, columns_of, is_dicts
from stream_engine.api.options import check_layout, paths_in, settings_of, with_inferred_options
from stream_engine.evaluation.questions import QuestionReader, QuestionTable
from stream_engine.formats.options import EventOptions
from stream_engine.formats.record_columns import records_of

# Names of the columns of rows without names, by their number.
WIDTHS = {3: ("anchor", "left", "right"), 4: ("near_i", "near_j", "far_i", "far_j")}


def rows_of(questions: Any) -> list[dict[str, Any]]:
    """The questions of a table, or of a list of dicts or of tuples (anchor, left, right), as dicts. Raises `BadFrame`.

    >>> rows_of([("a", "b", "c")])
    [{'anchor': 'a', 'left': 'b', 'right': 'c'}]
    """
    table = columns_of(questions)
    without_names = isinstance(questions, (list, tuple, np.ndarray)) and not is_dicts(questions)
    names = WIDTHS[len(table.names)] if without_names else table.names
    columns = {name: table.take(numbers).to_pylist() for name, numbers in zip(names, table.names)}
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def questions_in(data: Any, options: EventOptions, layout: Mapping[str, Any]) -> QuestionTable:
    """The questions of a table, of rows or of files, read by the options of events; a table's rows count from 0.
    Raises `BadFrame`, `BadQuestion`."""
    paths = paths_in(data)
    check_layout(layout, paths, "model", "participant")
    if paths is not None:
        from stream_engine.input.question_files import read

        return read(settings_of(paths, options, layout))
    rows = rows_of(data)
    first_cells = {name: [row.get(name) for row in rows[:1000]] for name in (rows[0] if rows else ())}
    if first_cells.keys() != set(WIDTHS[3]):  # otherwise nothing is to be inferred
        with suppress(BadFrame):  # a question need not have an answer
            options, *_ = with_inferred_options(records_of(first_cells), options)
    reader = QuestionReader(options)
    for number, row in enumerate(rows):
        reader.add(row, f"row {number}")
    return reader.questions()
