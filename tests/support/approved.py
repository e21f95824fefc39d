"""Documents that a person has approved: words and whole numbers exactly as they were, decimals to what another
processor may change, and without what differs from day to day and machine to machine."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.conftest import ROOT

DECIMAL = re.compile(r"-?(?:\d[\d,]*)?\.\d+(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")
RELATIVE, LAST_PLACES = 0.005, 3.0  # what a decimal may differ by: a share of it, units of its last place
CHANGES = (  # what changes from day to day and machine to machine, and what stands in its place
    (re.escape(str(ROOT)), "CHECKOUT"),
    (r"/[\w./-]*/(?:pytest-of-|approved-)\w+(?:/pytest-\d+|/[\w-]+\d)*", "FOLDER"),
    (r"\b[0-9a-f]{32,64}\b", "DIGEST"),
    (r"(?<![\w.])(?=\w*\d)[0-9a-f]{12,16}\b", "DIGEST"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)", "TIME"),
    (r"Report of \d{4}-\d\d-\d\d", "Report of DAY"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b(bytes|cpus|descriptors|free_memory_gb|host|pid|python|user|seconds|version)=[\w.+]+", r"\1=…"),
    (r"\b[\d,]+ (?=(?:kB|bytes)\b)", "SIZE "),
    (r"\b\d+\.\d+ (?=(?:s|ms|seconds|minutes)\b)", "SECONDS "),
    (r"(?m)^(  [a-z]\w*(?: +[\d.]+ %){2} +[\d.]+) +[\d.]+$", r"\1 SECONDS"),  # the table of models of `inspect`
    (r"\b(version|Python|NumPy) \d+(?:\.\w+)+(?:\+\w+)?", r"\1 VERSION"),
    (
        r"(?m)(^! \S+  preliminary; .* when these end: ).*(?:\n! \S+  preliminary; .*)*",
        r"\1REFITS",
    ),  # as long as each takes
)


def unchanging(text: str) -> str:
    """The text without what changes from day to day.

    >>> unchanging("12,345 bytes in 0.31 s; Python 3.11.7; version=0.1.dev5+g0a1b2c3 objects=13")
    'SIZE bytes in SECONDS s; Python VERSION; version=… objects=13'
    """
    for pattern, name in CHANGES:
        text = re.sub(pattern, name, text)
    return text


def is_near(one: str, other: str) -> bool:
    """Whether two decimals are the same but for rounding.

    >>> is_near("0.712", "0.713"), is_near("0.712", "0.722"), is_near("1,204.5", "1,206.1")
    (True, False, True)
    """
    places = one.partition("e")[0].partition(".")[2]
    unit = 10.0 ** (int(one.partition("e")[2] or 0) - len(places))
    a, b = (float(each.replace(",", "")) for each in (one, other))
    return abs(a - b) <= max(RELATIVE * abs(a), 1.001 * LAST_PLACES * unit)


def settled(line: str, approved: str) -> str:
    """The approved line where a line is the same but for rounding; else the line."""
    if DECIMAL.sub("#", line) != DECIMAL.sub("#", approved):
        return line
    return approved if all(map(is_near, DECIMAL.findall(approved), DECIMAL.findall(line))) else line


class Document(SingleFileSnapshotExtension):
    """A file of text, compared line by line."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"

    def matches(self, *, serialized_data: Any, snapshot_data: Any) -> bool:
        one, other = serialized_data.splitlines(), snapshot_data.splitlines()
        return len(one) == len(other) and all(map(_same, one, other))

    def diff_lines(self, serialized_data: Any, snapshot_data: Any) -> Iterator[str]:
        """What differs, without decimals that are near."""
        lines, approved = serialized_data.splitlines(), snapshot_data.splitlines()
        if len(lines) == len(approved):
            lines = list(map(settled, lines, approved))
        yield from super().diff_lines("\n".join(lines), "\n".join(approved))


def _same(line: str, approved: str) -> bool:
    return line == approved or settled(line, approved) == approved


def sentences(text: str) -> list[str]:
    """A paragraph, a sentence a line.

    >>> sentences("Three groups. p = .03. See below.")
    ['Three groups.', 'p = .03.', 'See below.']
    """
    return re.sub(r"(?<=[.?!]) +(?=[A-Z0-9p])", "\n", text).split("\n")


def number(value: Any) -> str:
    """A value of a document or a drawing."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(number, value)) + "]"
    if isinstance(value, float):
        if not 1e-5 < abs(value) < 1000:
            return "0.0" if abs(value) <= 1e-5 else f"{value:.4g}"
        return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.4f}"
    return str(value)


def rows(table: Any, most: int = 12) -> list[str]:
    """A table of Arrow, the first and the last of its rows."""
    columns = table.to_pydict()
    found = [" | ".join(map(number, row)) for row in zip(*columns.values())]
    found[most:-1] = [f"... {len(found) - most - 1} rows ..."] if len(found) > most + 2 else found[most:-1]
    return [" | ".join(columns), *found]


def outline(document: Any, depth: int = 0) -> Iterator[str]:
    """A JSON document, a value a line; a list of plain values is one."""
    blanks = "  " * depth
    if isinstance(document, Mapping):
        for key, value in document.items():
            if isinstance(value, Mapping | list | tuple) and value and not _is_plain(value):
                yield f"{blanks}{key}:"
                yield from outline(value, depth + 1)
            else:
                yield f"{blanks}{key}: {number(value)}"
    elif isinstance(document, list | tuple):
        for each in document:
            if _is_plain(each):
                yield f"{blanks}- {number(each)}"
            elif isinstance(each, Mapping) and all(map(_is_plain, each.values())):
                yield f"{blanks}- " + ", ".join(f"{key}: {number(value)}" for key, value in each.items())
            else:
                yield f"{blanks}-"
                yield from outline(each, depth + 1)
    else:
        yield f"{blanks}{number(document)}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return not isinstance(value, Mapping) or not value
