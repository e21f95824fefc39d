"""What a page of the papers is made of: rows (the paper's word beside ours), and a paper's cover."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.benchmarks.papers.kept import Cell

AGREES, DIFFERS = "agrees", "differs"
IDENTITY = "identity"  # holds by construction: data counted again, a setting that we chose, a theorem of the paper
SHOWN = "shown"  # the paper makes no claim in words that could hold or fail
NOT_RUN = "not run"  # could be built or run, and is not
NO_DATA = "no data"  # rests on data, a picture or a formula that cannot be had here
VERDICTS = (AGREES, DIFFERS, IDENTITY, SHOWN, NOT_RUN, NO_DATA)


class Row(NamedTuple):
    """One number or claim of a paper, and what we have for it.

    `quote` are the paper's words, letter for letter as in its text (empty where its text lost a formula or a figure has
    no number). `verdict` is one of `VERDICTS`; it follows from `rule` where there is one. `why` says why nothing is
    compared, or what stands in for data that cannot be had.
    """

    place: str
    what: str
    quote: str
    paper: str
    ours: str
    rule: str
    verdict: str
    why: str = ""
    made: str = ""


class Paper(NamedTuple):
    """A paper: its title, the file of its text, what has to be said before its rows, and the rows."""

    title: str
    text: str
    note: str
    rows: list[Row]


def missing(place: str, what: str, quote: str, paper: str, why: str, verdict: str = NO_DATA) -> Row:
    """What is not compared: `NO_DATA`, or `NOT_RUN`."""
    return Row(place, what, quote, paper, "", "", verdict, why)


def row(
    place: str,
    what: str,
    quote: str,
    paper: str,
    rule: str,
    cells: Sequence[Cell | None],
    judged,
    why: str = "",
    identity: bool = False,
) -> Row:
    """A row from cells: `judged(*found)` gives (ours, whether it agrees, or None). A cell that is missing or stale
    leaves the row not run. `identity`: agreeing would be by construction."""
    if not cells or any(cell is None for cell in cells):
        return Row(place, what, quote, paper, "", rule, NOT_RUN, ("not made by the present code. " + why).strip())
    ours, agrees = judged(*(cell.found for cell in cells if cell is not None))
    verdict = SHOWN if agrees is None else DIFFERS if not agrees else IDENTITY if identity else AGREES
    return Row(place, what, quote, paper, ours, rule, verdict, why, provenance(cells))


def provenance(cells: Sequence[Cell | None]) -> str:
    """When and with what the cells were made, how many, and their CPU seconds."""
    have = [cell for cell in cells if cell is not None]
    days = sorted({cell.made.get("date", "day not said") for cell in have})
    with_what = sorted({cell.made.get("with", "not said") for cell in have})
    with_what = with_what if len(with_what) < 3 else [with_what[0], f"{len(with_what) - 1} other versions"]
    seconds = [cell.made["cpu"] for cell in have if "cpu" in cell.made]
    told = [f"{len(have)} kept" if len(have) > 1 else "", " to ".join(dict.fromkeys((days[0], days[-1])))]
    told += [", ".join(with_what), f"{sum(seconds):.0f} CPU s" if len(seconds) == len(have) else ""]
    return "; ".join(part for part in told if part)


def found(cells: Sequence[Cell | None], name: str) -> list[float]:
    """One figure of all cells that are made and have it."""
    return [cell.found[name] for cell in cells if cell is not None and name in cell.found]


def clearly_above(one: Sequence[Cell | None], other: Sequence[Cell | None], name: str) -> bool:
    """Whether one's figure is above the other's by more than a standard error of the difference over paired cells."""
    apart = np.subtract(found(one, name), found(other, name))
    return bool(len(apart) > 1 and apart.mean() > np.std(apart, ddof=1) / np.sqrt(len(apart)) > 0)


def mean(cells: Sequence[Cell | None], name: str) -> float:
    """Mean of one figure over cells, not a number where none is made."""
    return float(np.mean(found(cells, name) or [np.nan]))
