"""Filters that exclude nothing, because no row has the value that they are to leave out: most often a misspelt one."""

from collections.abc import Collection
from itertools import islice
from shlex import quote
from typing import Any

from msgspec import structs

from connectors import split_uri
from connectors.files import expand
from stream_engine.formats.event_fields import filter_of
from stream_engine.formats.record_columns import Records, records_of
from stream_engine.input.first_records import MAX_FILES, MAX_LATER_ROWS, all_rows, first_records
from stream_engine.input.settings import Settings

N_SHOWN = 5  # values of a column


def useless_filters(settings: Settings, given: Settings) -> list[str]:
    """A warning for each filter `!=` that was `given` with values that no row of the files has; `settings` have the
    layout of the files. Of streams nothing is known before they are read. O(rows), up to `MAX_LATER_ROWS`, if the first
    rows lack a value; else O(1)."""
    settings = structs.replace(settings, input=structs.replace(settings.input, where=given.input.where))
    filters = [filter_of(key, text) for key, text in settings.input.where.items()]
    wanted = {each.source: each.wanted for each in filters if each.comparison == "!=" and "" not in each.wanted}
    addresses = [split_uri(uri) for uri in settings.source]
    if not wanted or settings.follow or any(scheme != "file" for scheme, _ in addresses):
        return []
    first = first_records(settings)
    wanted = {name: values for name, values in wanted.items() if _missing(values, first, name)}
    if not wanted:
        return []
    cells: dict[str, list[Any]] = {name: [] for name in wanted}
    for row in islice(all_rows(settings), MAX_LATER_ROWS):
        for name, column in cells.items():
            column.append(row.get(name))
    records, n_files = records_of(cells), sum(len(expand(glob)) for _, glob in addresses)
    is_whole = records.size < MAX_LATER_ROWS and n_files <= MAX_FILES
    useless = list[str]()
    for name, values in wanted.items():
        if missing := _missing(values, records, name):
            where = quote(f"{name}!={'|'.join(missing)}")
            shown = ", ".join(islice(dict.fromkeys(filter(None, records.columns[name].texts)), N_SHOWN))
            fact = (
                f"none of the {'' if is_whole else 'first '}{records.size:,} rows has {name}={'|'.join(missing)}, so "
            )
            fact += f"--where {where} excludes no row; {name} has {shown}"
            useless.append(fact)
    return useless


def _missing(values: Collection[str], records: Records, name: str) -> list[str]:
    """The values that a column lacks; none where there is no such column."""
    column = records.columns.get(name)
    if column is None:
        return []
    seen = column.items | column.distinct | column.empties
    return [value for value in values if value not in seen and not (value.isdecimal() and f"{value}.0" in seen)]
