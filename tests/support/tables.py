"""Tables of a page of Markdown, each with the section that it stands in."""

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

MINUS = "\N{MINUS SIGN}"
_FENCED = re.compile(r"^```.*?^```", re.S | re.M)
_FIGURE = re.compile(rf"{MINUS}?(?:\d[\d,]*)?\.?\d+")


class Table(NamedTuple):
    """A table: the heading and the text of its section (to the next heading), its cells without the first line."""

    heading: str
    section: str
    rows: list[list[str]]


def sections(page: Path) -> list[tuple[str, str]]:
    """(heading, text up to the next heading) of a page, in order; what stands before all headings has none."""
    text = page.read_text(encoding="utf-8")
    blank = _FENCED.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)  # a # in a block is no heading
    starts = [0, *(found.start() for found in re.finditer(r"^#+ ", blank, re.M)), len(text)]
    parts = [text[a:b] for a, b in pairwise(starts)]
    return [(re.match(r"(?:#+ (.*))?", part)[1] or "", part) for part in parts]


def tables(page: Path) -> list[Table]:
    """All tables of a page, in order."""
    found = []
    for heading, text in sections(page):
        for block in re.findall(r"(?:^\|.*\n?)+", _FENCED.sub("", text), re.M):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]]
            found.append(Table(heading, text, rows))
    return found


def figures(cell: str) -> list[tuple[float, float]]:
    """The figures of a cell, each with half a unit of its last digit."""
    found = []
    for text in _FIGURE.findall(cell):
        digits = text.replace(MINUS, "-").replace(",", "")
        found.append((float(digits), 0.5 * 10.0 ** -len(digits.partition(".")[2])))
    return found
