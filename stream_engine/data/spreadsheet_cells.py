"""Cells of CSV files that people open in a spreadsheet, which would run some texts as formulas.

Such a text gets an apostrophe before it, as a person would type it to have it shown. Numbers stay numbers, also -1 and
+2.5e3.
"""

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

_FORMULA = r"^[=+\-@\t\r\n]"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_is_formula, _is_number = re.compile(_FORMULA).match, re.compile(_NUMBER).match


def shown(cell: Any) -> Any:
    """The cell, safe to open.

    >>> shown("=HYPERLINK(1)"), shown("-5"), shown("-dog"), shown("cat"), shown(-5)
    ("'=HYPERLINK(1)", '-5', "'-dog", 'cat', -5)
    """
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell) and not _is_number(cell) else cell


def shown_row(row: Iterable[Any]) -> list[Any]:
    """The cells of a row, each safe to open."""
    return [shown(cell) for cell in row]


def csv_text(rows: Iterable[Iterable[Any]], raw: bool) -> str:
    """Rows as CSV, each cell safe to open, or with `raw` as it is."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows if raw else map(shown_row, rows))
    return text.getvalue()


def shown_table(table: Any) -> Any:
    """The `pyarrow.Table`, its texts and heads safe to open. O(texts), of a column of names O(names)."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
            chunks = [pa.DictionaryArray.from_arrays(c.indices, _shown_array(c.dictionary)) for c in column.chunks]
            column = pa.chunked_array(chunks, column.type)
        elif pa.types.is_string(column.type):
            column = pa.chunked_array([_shown_array(chunk) for chunk in column.chunks], column.type)
        columns.append(column)
    return pa.Table.from_arrays(columns, names=shown_row(table.column_names))


def _shown_array(texts: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    runs = pc.and_not(pc.match_substring_regex(texts, _FORMULA), pc.match_substring_regex(texts, _NUMBER))
    if not pc.any(runs).as_py():
        return texts
    return pc.if_else(runs, pc.binary_join_element_wise(pa.scalar("'"), texts, pa.scalar("")), texts)
