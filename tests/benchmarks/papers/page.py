"""The page: Markdown, and one HTML file with the figures inside. Rows in tables, a paper after the other."""

import base64
import io
from collections import Counter
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from matplotlib.figure import Figure

from stream_engine.service.http.manual_pages import slug
from tests.benchmarks.papers.rows import VERDICTS, Paper, Row

HEADS = ("where", "what", "the paper", "here", "agrees when", "verdict", "why", "made")
ABOUT = (
    "Every table, figure and number of the five papers, beside what this engine gives. The texts at hand carry no "
    "page numbers and no pictures: a place is a section, figure or table, words in quotation marks are the paper's "
    "own, and of a curve only what the text says of it can be compared. A row agrees or differs by its rule; an "
    "identity holds by construction (the same data counted again, a setting that was chosen) and is no agreement; what "
    "could be built or run and is not says so. 'Made' says when, with what and in how many CPU seconds."
)
STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1300px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%;font-size:13px}th,td{border-bottom:1px solid #ddd;padding:4px 6px;"
    "text-align:left;vertical-align:top}th{border-bottom:2px solid #888}img{max-width:100%}"
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


def markdown(papers: list[Paper], figures: dict[str, list[str]]) -> str:
    """The page as Markdown; `figures` are the files of each paper's drawings."""
    out = ["# The five papers", "", ABOUT, ""]
    out += [f"- [{paper.title}](#{slug(paper.title)}): {counted(paper.rows)}" for paper in papers]
    for paper in papers:
        out += ["", f"## {paper.title}", "", paper.note, "", f"{counted(paper.rows)}.", ""]
        out += ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
        out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells_of(row)) + " |" for row in paper.rows]
        for drawing, name in zip(paper.drawings, figures[paper.title]):
            out += ["", f"![{drawing.place}]({name})", "", f"{drawing.place}: {drawing.caption}"]
    return "\n".join(out) + "\n"


def web_page(text: str, pictures: dict[str, bytes]) -> str:
    """The Markdown as one HTML file that needs nothing else."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.validateLink = lambda url: True  # pictures inside are links of a kind that is else refused
    for name, picture in pictures.items():
        text = text.replace(f"]({name})", f"](data:image/png;base64,{base64.b64encode(picture).decode()})")
    tokens = reader.parse(text)
    for token, told in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(told.content))
    head = f"<meta charset='utf-8'><title>The five papers</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang='en'>{head}{reader.renderer.render(tokens, reader.options, {})}</html>\n"


def png(figure: Figure) -> bytes:
    """The picture as bytes."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=90, bbox_inches="tight")
    return out.getvalue()


def write(papers: list[Paper], out: Path) -> list[Path]:
    """`papers.md` with a PNG for each drawing, and `papers.html`."""
    out.mkdir(parents=True, exist_ok=True)
    names: dict[str, list[str]] = {}
    pictures: dict[str, bytes] = {}
    for paper in papers:
        stem = "".join(paper.text.split("-")[:2])
        names[paper.title] = [f"{stem}-{number}.png" for number in range(1, len(paper.drawings) + 1)]
        pictures |= {name: png(each.figure) for name, each in zip(names[paper.title], paper.drawings, strict=True)}
    text = markdown(papers, names)
    pages = {"papers.md": text.encode(), "papers.html": web_page(text, pictures).encode()}
    for name, content in (pages | pictures).items():
        (out / name).write_bytes(content)
    return [out / name for name in pages]
