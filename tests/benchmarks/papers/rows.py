"""What a page of the papers is made of: rows (the paper's word beside ours), drawings, and a paper's cover."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from tests.benchmarks.papers.kept import Cell


class Row(NamedTuple):
    """One number or claim of a paper, and what we have for it.

    `quote` are the paper's words, letter for letter as in its text (empty where its text lost a formula or a figure has
    no number). `agrees` follows from `rule`; None where nothing can be compared, and `why` says why. `why` also says
    what stands in for data that cannot be had.
    """

    place: str
    what: str
    quote: str
    paper: str
    ours: str
    rule: str
    agrees: bool | None
    why: str = ""
    made: str = ""

    @property
    def verdict(self) -> str:
        """Agrees, differs, or cannot be told."""
        return {True: "agrees", False: "differs", None: "not compared"}[self.agrees]


class Drawing(NamedTuple):
    """A figure of ours, beside which figure of the paper it stands."""

    place: str
    caption: str
    figure: Figure


class Paper(NamedTuple):
    """A paper: its title, the file of its text, what has to be said before its rows, rows and drawings."""

    title: str
    text: str
    note: str
    rows: list[Row]
    drawings: list[Drawing]


def missing(place: str, what: str, quote: str, paper: str, why: str) -> Row:
    """What cannot be made here at all."""
    return Row(place, what, quote, paper, "", "", None, why)


def row(
    place: str,
    what: str,
    quote: str,
    paper: str,
    rule: str,
    cells: Sequence[Cell | None],
    judged,
    why: str = "",
) -> Row:
    """A row from cells: `judged(*found)` gives (ours, agrees). A cell that is not made yet leaves the row open."""
    if not cells or any(cell is None for cell in cells):
        return Row(place, what, quote, paper, "", rule, None, ("not made yet. " + why).strip())
    ours, agrees = judged(*(cell.found for cell in cells if cell is not None))
    return Row(place, what, quote, paper, ours, rule, None if agrees is None else bool(agrees), why, provenance(cells))


def provenance(cells: Sequence[Cell | None]) -> str:
    """When and with what the cells were made, how many, their CPU seconds, and which were of reduced size."""
    have = [cell for cell in cells if cell is not None]
    days = sorted({cell.made.get("date", "day not said") for cell in have})
    with_what = sorted({cell.made.get("with", "not said") for cell in have})
    with_what = with_what if len(with_what) < 3 else [with_what[0], f"{len(with_what) - 1} other versions"]
    seconds = [cell.made["cpu"] for cell in have if "cpu" in cell.made]
    told = [f"{len(have)} kept" if len(have) > 1 else "", " to ".join(dict.fromkeys((days[0], days[-1])))]
    told += [", ".join(with_what), f"{sum(seconds):.0f} CPU s" if len(seconds) == len(have) else ""]
    told += ["reduced size" if any(cell.reduced for cell in have) else ""]
    return "; ".join(part for part in told if part)
