"""The table of whole commands in the measurements shows the last results that are kept beside the
benchmarks, to the last digit that they show. A line is the figures of its cells in order, without the first cell's."""

import json
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

from deploy.manual import DOCS
from tests.conftest import ROOT
from tests.support.tables import figures, sections, tables

KEPT = "tests/benchmarks/results.jsonl"
Lines = list[list[float]]


@cache
def kept() -> list[dict]:
    """The rows of all runs."""
    return [json.loads(line) for line in (ROOT / KEPT).read_text().splitlines()]


class Whole(NamedTuple):
    """A whole command, as it was last measured at full size: its figure, its rival's, and what its notes say."""

    ours: float
    rival: float
    notes: str

    def said(self, what: str) -> float:
        """A figure of the notes, such as `wall`."""
        return float(re.search(rf"{what} (-?[\d.]+)", self.notes)[1])


def whole(case: str, rival: str = "") -> Whole:
    """The last full row of a case, beside a rival whose name begins so."""
    rows = [row for row in kept() if row["full"] and row["stage"] in ("whole commands", "kafka")]
    row = [row for row in rows if row["case"] == case and (row.get("rival_name") or "").startswith(rival)][-1]
    return Whole(row["ours"], row["rival"], row.get("notes") or "")


ONE, MANY = "5,000,000, n = 1,000", "run jsonl, 5,000,000, n = 100,000"
JSONL, ARROW, PARQUET = (f"run {kind}, {ONE}" for kind in ("jsonl", "arrow", "parquet"))
OFF, ARROW_OFF = (f"run {kind}, guard off, {ONE}" for kind in ("jsonl", "arrow"))
FEW, LARGE = "run with refits, 1,000 comparisons about 943 objects", "run with refits, 1,000,000, n = 1,500"
FIRST, COLD = "run jsonl, 1,000, n = 20, after set-up", "run jsonl, 1,000, n = 20, nothing compiled before"
EXPORT = f"export of everything, {ONE}"


def peak(case: str) -> float:
    """GB of the largest process of a command."""
    return whole(case).said("peak memory")


def every_stage() -> Lines:
    """Whole commands, all rows."""
    asked = {name: whole(f"ask --strategy {name}, 200,000, n = 10,000").ours for name in STRATEGIES}
    inspect = whole(f"inspect, {ONE}")
    kafka = [
        [_ratio(whole(f"{topic}, {client}")) for topic in ("single, 200,000 events", *LARGER)]
        for client in ("kafka-python", "confluent")
    ]
    return [
        [
            *(whole(case).ours for case in (JSONL, PARQUET, ARROW)),
            *(whole(case, rival).rival for case, rival in ((JSONL, "duckdb"), (PARQUET, "duckdb"), (ARROW, "polars"))),
        ],
        [whole(OFF).ours, whole(ARROW_OFF).ours, whole(OFF).rival, whole(ARROW_OFF).rival],
        [whole(MANY).ours, peak(MANY), whole(MANY).rival],
        [whole(f"progressive validation in run jsonl, guard off, {ONE}").ours],
        [inspect.ours, inspect.said("wall"), whole(EXPORT).ours],
        [asked[name] for name in STRATEGIES[:3]],
        [asked[name] for name in STRATEGIES[3:]],
        [whole(FEW).ours, whole(LARGE).ours, whole(LARGE).said("wall")],
        [whole(f"refit {kind}, n = 400, 9,000").ours for kind in ("kernel_learning", "partial_order_embedding")],
        [whole(FIRST).ours, whole(COLD).ours],
        *kafka,
    ]


STRATEGIES = ("random", "landmark", "coverage", "uncertainty", "information-gain")
LARGER = ("json, 500,000 events", "arrow, 2,000,000 events")


def _ratio(row: Whole) -> float:
    return row.ours / row.rival


PAGES = {"measurements.md": DOCS / "measurements.md"}
TABLES: dict[tuple[str, str], Callable[[], Lines]] = {  # (page, heading): what makes the lines of its first table
    ("measurements.md", "Benchmarks of all stages"): every_stage,
}


def unlike(rows: list[list[str]], lines: list[list[float]]) -> list[str]:
    """Lines of a table that do not show the figures, each with those that it should."""
    wrong = [f"{len(rows)} lines, {len(lines)} are kept"] if len(rows) != len(lines) else []
    for (first, *cells), line in zip(rows, lines, strict=False):
        shown = [figure for cell in cells for figure in figures(cell)]
        if len(shown) != len(line) or any(
            abs(value - kept) > half * (1 + 1e-9) for (value, half), kept in zip(shown, line, strict=False)
        ):
            wrong.append(f"{first}: {', '.join(cells)}; kept: {', '.join(f'{kept:.4g}' for kept in line)}")
    return wrong


@pytest.mark.parametrize("page, heading", TABLES)
def test_a_table_shows_what_is_kept(page, heading):
    here = [table for table in tables(PAGES[page]) if table.heading == heading]
    assert unlike(here[0].rows, TABLES[page, heading]()) == []


def test_a_section_that_says_it_is_kept_is_compared_with_it():
    said = {(page, heading) for page, path in PAGES.items() for heading, text in sections(path) if f"`{KEPT}`" in text}
    assert said == TABLES.keys()
