"""A report as text: every sentence, note, cell and mark that its page shows."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stream_engine.report import Section, Table
from stream_engine.report.drawings import Axis, Drawing
from stream_engine.report.findings.words import cell
from stream_engine.report.material import Material
from stream_engine.report.page import title
from stream_engine.report.tiles import tiles
from tests.support.approved import number, sentences, unchanging

MEASURED = {"CPU seconds": "SECONDS"}  # columns, and what stands in their cells
OF_A_DAY = {"versions"}  # tables that are others with every release
SHOWN_ONCE = {  # where all is
    *("settings", "methods", "clearness", "dendrogram", "learning_curve", "calibration", "read", "guard", "questions"),
}
FIRST_ROWS, LAST_ROWS = 3, 1  # of a table, where not all is shown


def page_text(of: Material, sections: Mapping[str, Section], whole: bool = True, marks: bool = True) -> str:
    """The page; `whole`: with all tables, all rows, and the marks of drawings unless these are elsewhere."""
    lines = [title(of), *(f"[{tile.head}] {tile.value}: {tile.note}" for tile in tiles(of))]
    for name, section in sections.items():
        lines += ["", f"## {section.title} ({name}{', caution' if section.caution else ''})"]
        lines += sentences(section.says)
        for note in section.notes:
            lines += ["* " + "\n  ".join(sentences(note))]
        for table in section.tables:
            if table.name not in OF_A_DAY and (whole or table.about or table.name not in SHOWN_ONCE):
                lines += table_lines(table, whole)
        for drawing in section.drawings if whole or name == "map" else ():
            lines += drawing_lines(drawing, whole and marks)
    return unchanging("\n".join(lines)) + "\n"


def table_lines(table: Table, whole: bool = True) -> Iterator[str]:
    yield f"table {table.name}{' (folded)' if table.folded else ''}{': ' if table.about else ''}{table.about}"
    if not whole and table.name in SHOWN_ONCE:
        return
    columns = {"#": table.ids, **table.columns} if table.ids is not None else table.columns
    yield "  " + " | ".join(columns)
    rows = [
        "  " + " | ".join(MEASURED.get(head, cell(value)) for head, value in zip(columns, row))
        for row in zip(*map(_values, columns.values()))
    ]
    if not whole and len(rows) > FIRST_ROWS + LAST_ROWS + 1:
        rows[FIRST_ROWS:-LAST_ROWS] = [f"  ... {len(rows) - FIRST_ROWS - LAST_ROWS} rows ..."]
    yield from rows


def _values(column: Any) -> list[Any]:
    """Cells; what is zero but for rounding is zero."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [0.0 if isinstance(value, float) and abs(value) < 1e-9 else value for value in values]


def drawing_lines(drawing: Drawing, whole: bool = True) -> Iterator[str]:
    yield f"drawing {drawing.name}: {drawing.title}"
    yield from (f"  {line}" for line in sentences(drawing.about))
    for text in (drawing.about_groups, drawing.caveat):
        if text:
            yield f"  {text}"
    if not whole:
        return
    yield f"  {drawing.width} x {drawing.height}{', equal' * drawing.equal}{', zooms' * drawing.zooms}"
    yield f"  across: {_axis(drawing.x)}"
    yield f"  up: {_axis(drawing.y)}"
    for group, text in drawing.groups:
        yield f"  legend {group}: {text}"
    for mark in drawing.marks:
        columns = {name: value for name, value in mark._asdict().items() if value is not None}
        rows = {name: value for name, value in columns.items() if isinstance(value, np.ndarray | tuple)}
        fixed = {name: value for name, value in columns.items() if name not in rows}
        yield "  " + ", ".join([type(mark).__name__, *(f"{name} {number(value)}" for name, value in fixed.items())])
        yield "    " + " | ".join(rows)
        by_row = [value.T if name == "error" else value for name, value in rows.items()]
        for row in zip(*by_row):
            yield "    " + " | ".join(number(value if isinstance(value, str) else np.asarray(value)) for value in row)


def _axis(axis: Axis) -> str:
    ends = "" if axis.low is None and axis.high is None else f", from {number(axis.low)} to {number(axis.high)}"
    ticks = "" if axis.ticks is None else "; " + ", ".join(f"{number(place)} {text}" for place, text in axis.ticks)
    return f"{axis.label or '-'}{ends}{ticks}"
