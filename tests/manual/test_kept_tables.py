"""Tables of figures whose results are kept say what these say, to the last digit that they show."""

import re

import pytest

from deploy.manual import DOCS
from tests.conftest import ROOT
from tests.manual.kept_tables import KEPT, TABLES
from tests.support.tables import MINUS, figures, sections, tables

PAGES = {"README.md": ROOT / "README.md", "measurements.md": DOCS / "measurements.md"}


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


@pytest.mark.parametrize("page, heading, number", TABLES)
def test_a_table_shows_what_is_kept(page, heading, number):
    here = [table for table in tables(PAGES[page]) if table.heading == heading]
    file, lines = TABLES[page, heading, number]
    assert unlike(here[number].rows, lines()) == []
    assert f"`{KEPT}/{file}`" in " ".join(here[number].section.split()), "the section does not say where it is kept"


def test_a_section_that_says_it_is_kept_is_held_against_it():
    for page, path in PAGES.items():
        said = {heading for heading, text in sections(path) if re.search(rf"`{KEPT}/[\w/]+\.jsonl`", text)}
        assert said == {heading for of, heading, _ in TABLES if of == page}


def test_a_planted_figure_is_found():
    assert unlike([["a", ".44; 1.2 M/s", f"{MINUS}3 %"]], [[0.4351, 1.2, -3.2]]) == []
    assert unlike([["a", ".43; 1.2 M/s", f"{MINUS}3 %"]], [[0.4351, 1.2, -3.2]])
    assert unlike([["a", ".44; 1.2 M/s", "3 %"]], [[0.4351, 1.2, -3.2]])
    assert unlike([["a", "1,300"]], [[1300.4]]) == [] and unlike([["a", "1,300"]], [[1301.0]])
    assert unlike([["a", "1"], ["b", "2"]], [[1.0]]) and unlike([["a", "1, 2"]], [[1.0]])
