"""The manual's page about exports, made of their declarations: `python -m deploy.manual` writes it."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from stream_engine import exports
from stream_engine.exports.array_types import SCALARS, VALUES, Array
from stream_engine.exports.declarations import LEFT_OUT, NAMES, SUBSET_NAMES, arrays_of, columns
from stream_engine.exports.table_columns import TABLES

PAGE = Path(__file__).parents[2] / "stream_engine" / "docs" / "exports.md"
WIDTH = 118
DOCUMENTS = {
    "objects": "`objects.json`: names of all objects; the index of a name is the id of the object. Table `objects`.",
    "summary": "`summary.json`: counts of events and comparisons, rejected events by reason, and results.",
}


def _names(what: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(what))


INTRODUCTION = f"""# Exports

`stream-engine export --state DIR --out DIR [--format npz|csv|parquet] [WHAT …]` writes files that other programs can
load: the named exports, or all but a few. A run with `--listen` serves the same files at `/export/NAME.FORMAT`. This
page is generated from the code and lists every array and every column.

- **Objects have names in every format.** CSV and Parquet contain tables, with names instead of ids. NPZ has one file
  per export, with ids and an array `names`: object `id` is `names[id]`. If `names` would be very large, it is replaced
  by `names_utf8`, the concatenated bytes, and `names_offsets`, the start of each name.
- **Tables** (`objects`, `models`, `clusters`, …) are also written as CSV next to the NPZ files.
- **Documents** (`objects.json`, `summary.json`) are JSON. With CSV and Parquet, the scalars of an export are in
  `NAME.{SCALARS}.json`.
- **File names** do not depend on what else a state contains.
- In CSV and Parquet, an array is a column of the table in brackets after it, or otherwise a table NAME.ARRAY. The first
  column of an array over objects is `object` (`_object` if an object has that name).
- **Written only if you name them:** {_names(exports.ON_REQUEST)} (about participants; never
  served); {_names(exports.FITTED_ANEW)} (estimate the reliability of participants);
  {_names(exports.EVERY_QUESTION)} (a row for each question).

Shapes: n is the number of objects, s the size of a subset (all objects, if there is no `subset_names`); any other
letter is one length throughout a file; () is a scalar.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, "## Exports", *_exports(), "", "## Tables", *_tables(), "", "## Not exported", *_left_out()]
    return "\n".join(lines) + "\n"


def _exports() -> Iterator[str]:
    for what in exports.all_exports():
        yield f"\n### {what}"
        if kinds := exports.OF_REFITS.get(what) or [kind for kind in exports.with_own_export() if kind == what]:
            made = " or ".join(f"`{kind}`" for kind in kinds)
            yield from _item(f"Of the refit {made}.", "")
        if what in DOCUMENTS:
            yield from _item(DOCUMENTS[what], "")
        known = dict(arrays_of(what))
        if any(each.names_objects for each in known.values()) and "names" not in known:
            known["names"] = NAMES
        if any("s" in axes for each in known.values() for axes in each.alternatives()):
            known["subset_names"] = SUBSET_NAMES
        for name, each in known.items():
            shape = each.shape.replace(" | ", " or ").removesuffix(" or ")
            yield from _item(f"`{name}` ({shape}) {_said(each)}{_where(what, each)}")


def _said(each: Array) -> str:
    return f"{each.type}{f', {each.unit}' if each.unit else ''}: {each.meaning}"


def _where(what: str, each: Array) -> str:
    if each.table == SCALARS:
        return ""
    table = f"{what}.{each.table}" if each.table else what if each.table == "" else ""
    return f" [{each.within or table}]" if each.within or table else ""


def _tables() -> Iterator[str]:
    yield from _item(
        "A table omits columns for which the state has no data. To get a table of another export, name that export: "
        "`export … clusters` also writes `cluster_answer.csv`.",
        "",
    )
    within = {each.within for what in exports.all_exports() for each in arrays_of(what).values()}
    for table in sorted({*TABLES, *within} - {""}):
        made = exports.TABLES.get(table, table)
        yield f"\n### Table {table}" if made == table else f"\n### Table {table}, of {made}"
        for column, each in columns(table).items():
            yield from _item(f"`{column}` {_said(each)}")


def _left_out() -> Iterator[str]:
    for kind, arrays in LEFT_OUT.items():
        told: dict[str, list[str]] = {}
        for name, why in arrays.items():
            told.setdefault(why, []).append(f"`{name}`")
        for why, names in told.items():
            yield from _item(f"{', '.join(names)} of `{kind}`: {why}")
    yield ""
    for values, says in VALUES.items():
        yield from _item(f"{values}: {says}")


def _item(text: str, bullet: str = "- ") -> list[str]:
    return wrap(text, WIDTH, initial_indent=bullet, subsequent_indent=" " * len(bullet), break_on_hyphens=False)
