"""Filters on records, as `--where` writes them."""

from collections.abc import Mapping

import numpy as np

from stream_engine.formats.event_fields import Filter, filter_of
from stream_engine.formats.field_values import number_of
from stream_engine.formats.record_columns import Records


def matching(records: Records, where: Mapping[str, str]) -> Records:
    """The records that filters keep."""
    kept = keeps(records, where)
    return records if all(kept) else records.select(row for row, keep in enumerate(kept) if keep)


def keeps(records: Records, where: Mapping[str, str]) -> list[bool]:
    """Whether filters keep each record."""
    kept = [True] * records.size
    for key, wanted in where.items():
        filter = filter_of(key, wanted)
        column = records.columns.get(filter.source)
        if column is not None:
            kept = [keep and _keeps(filter, text) for keep, text in zip(kept, column.texts)]
    return kept


def _keeps(filter: Filter, text: str | None) -> bool:
    number = number_of(text, text=True)
    compared = np.nan if number is None else number
    return bool(filter.keeps(lambda wanted: text == wanted, np.bool_(text is None), lambda: compared))


def filters_as_text(where: Mapping[str, str]) -> str:
    """Filters as they are written."""
    return ", ".join(f"{key}{'' if key[-1] in '=<>' else '='}{value}" for key, value in where.items())
