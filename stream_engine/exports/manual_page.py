"""The manual's page about exports, made of the dictionary: `python -m stream_engine.manual` writes it."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from stream_engine import exports
from stream_engine.exports.dictionary import entries
from stream_engine.exports.dictionary_entries import NAMES, SCALARS, SUBSET_NAMES, VALUES, Held
from stream_engine.exports.dictionary_of_models import LEFT_OUT, OF_REFITS
from stream_engine.exports.dictionary_of_tables import TABLE_COLUMNS

PAGE = Path(__file__).parent.parent / "docs" / "exports.md"
WIDTH = 118
DOCUMENTS = {
    "objects": "`objects.json`: the names, the place of each being its id. Table `objects`.",
    "summary": "`summary.json`: what was read, what was refused and why, what is known.",
}
KINDS = {"i": "whole", "u": "whole", "f": "real", "b": "yes or no", "U": "text"}
INTRODUCTION = f"""# Exports

`stream-engine export --state DIR --out DIR [--format npz|csv|parquet|json] [WHAT …]` writes files that other programs
load: all exports, or those named. A run with `--listen` serves the same files at `/export/NAME.FORMAT`. This page is
made of the code; every array and every column is on it.

- **Objects have names in every format.** csv and parquet hold tables, and names in place of ids. npz and json hold one
  file an export, with ids, and `names` beside them: object `id` is `names[id]`. Where `names` would be very large
  it is `names_utf8`, all bytes in a row, and `names_offsets`, where each begins.
- **Tables for people** (`objects`, `questions`, `models`, `clusters`, …) stand beside npz and json as csv.
- **Single figures** of an export are in one `NAME.{SCALARS}.json` beside its csv or parquet.
- **Names of files** do not depend on what else a state holds.
- In csv and parquet an array is in the table that stands in brackets behind it, else in one named NAME.ARRAY. The
  first column of what is over objects is `object` (`_object` where an object is called that).
- What is about people ({", ".join(f"`{name}`" for name in sorted(exports.ON_REQUEST))}) is
  written only when named, and never served. {" and ".join(f"`{name}`" for name in sorted(exports.FITTED_ANEW))} are
  written only when named: each estimates the reliability of workers anew.

Shapes: n objects, s of a subset (all, where `subset_names` is not there); another letter is one length throughout a
file, () a single figure.
"""


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION, "## Exports", *_exports(), "", "## Tables", *_tables(), "", "## Not exported", *_left_out()]
    return "\n".join(lines) + "\n"


def _exports() -> Iterator[str]:
    for what in exports.EXPORTS:
        yield f"\n### {what}"
        if what in OF_REFITS:
            made = " or ".join(f"`{kind}`" for kind in OF_REFITS[what])
            yield from _item(f"Of the refit {made}.", "")
        if what in DOCUMENTS:
            yield from _item(DOCUMENTS[what], "")
        known = entries(what)
        for name, entry in known.items():
            yield from _item(f"`{name}` {_about(what, entry)}: {entry.says}{_where(what, name, entry)}")
        if any(entry.names_objects for entry in known.values()) and "names" not in known:
            yield from _item(f"`names` {_about(what, NAMES)}: {NAMES.says}")
        if any("s" in axes for entry in known.values() for axes in entry.alternatives()):
            yield from _item(f"`subset_names` {_about(what, SUBSET_NAMES)}: {SUBSET_NAMES.says}")


def _about(what: str, entry: Held) -> str:
    kind = KINDS[entry.kinds[0]] if len({KINDS[each] for each in entry.kinds}) == 1 else "number"
    if entry.values != "numbers":
        kind = {"ids": "ids", "classes": "classes", "merges": "merges"}[entry.values]
    return f"({entry.shape.replace(' | ', ' or ').removesuffix(' or ')}) {kind}"


def _where(what: str, name: str, entry: Held) -> str:
    if entry.table == SCALARS:
        return ""
    if entry.within:
        return f" [{entry.within}]"
    if entry.table is not None:
        return f" [{what}.{entry.table}]" if entry.table else f" [{what}]"
    return ""


def _tables() -> Iterator[str]:
    yield from _item("Columns of what a state does not hold are left out.", "")
    for table, columns in TABLE_COLUMNS.items():
        made = exports.TABLES.get(table, table)
        yield f"\n### Table {table}" if made == table else f"\n### Table {table}, of {made}"
        for column, says in columns.items():
            yield from _item(f"`{column}`: {says}")


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


if __name__ == "__main__":
    PAGE.write_text(page())
