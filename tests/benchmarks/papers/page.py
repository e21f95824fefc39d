"""The page: rows in tables, a paper after the other, in Markdown."""

from collections import Counter

from stream_engine.service.http.manual_pages import slug
from tests.benchmarks.papers.rows import VERDICTS, Paper, Row

HEADS = ("where", "what", "the paper", "here", "agrees when", "verdict", "why", "made")
ABOUT = (
    "Every table, figure and number of the five papers, beside what this engine gives. The texts at hand carry no "
    "page numbers and no pictures: a place is a section, figure or table, words in quotation marks are the paper's "
    "own, and of a curve only what the text says of it can be compared. A row agrees or differs by its rule; an "
    "identity holds by construction (the same data counted again, a setting that was chosen, a theorem, which fails "
    "only if the program is wrong) and is no agreement; what could be built or run and is not says so. 'Made' says "
    "when, with what and in how many CPU seconds."
)
COUNTED = dict(
    zip(VERDICTS, ("agree", "differ", "identities", "shown without a claim", "not built or run", "without data here"))
)


def counted(rows: list[Row]) -> str:
    """How many rows have each verdict."""
    verdicts = Counter(row.verdict for row in rows)
    return ", ".join(f"{verdicts[name]} {told}" for name, told in COUNTED.items() if verdicts[name])


def cells_of(row: Row) -> tuple[str, ...]:
    """A row's cells in the order of `HEADS`."""
    said = f"{row.paper} “{row.quote}”" if row.quote else row.paper
    return (row.place, row.what, said.strip(), row.ours, row.rule, row.verdict, row.why, row.made)


def markdown(papers: list[Paper]) -> str:
    """The page."""
    out = ["# The five papers", "", ABOUT, ""]
    out += [f"- [{paper.title}](#{slug(paper.title)}): {counted(paper.rows)}" for paper in papers]
    for paper in papers:
        out += ["", f"## {paper.title}", "", paper.note, "", f"{counted(paper.rows)}.", ""]
        out += ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
        out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells_of(row)) + " |" for row in paper.rows]
    return "\n".join(out) + "\n"
