"""The page: Markdown, and one HTML file with the figures inside. Rows in tables, a paper after the other."""

import base64
import html
import io
from collections import Counter
from pathlib import Path

from matplotlib.figure import Figure

from tests.benchmarks.papers.rows import VERDICTS, Drawing, Paper, Row

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
    "text-align:left;vertical-align:top}th{border-bottom:2px solid #888}.agrees{color:#0a6b2d}.differs{color:#b00020;"
    "font-weight:bold}.shown{color:#777}figure{margin:1.5em 0}figure img{max-width:100%}q{color:#555}"
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
    out += [f"- [{paper.title}](#{_anchor(paper.title)}): {counted(paper.rows)}" for paper in papers]
    for paper in papers:
        out += ["", f"## {paper.title}", "", paper.note, "", f"{counted(paper.rows)}.", ""]
        out += ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
        out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells_of(row)) + " |" for row in paper.rows]
        for drawing, name in zip(paper.drawings, figures[paper.title]):
            out += ["", f"![{drawing.place}]({name})", "", f"{drawing.place}: {drawing.caption}"]
    return "\n".join(out) + "\n"


def web_page(papers: list[Paper]) -> str:
    """The page as one HTML file that needs nothing else."""
    say = html.escape
    out = [f"<!doctype html><html lang='en'><meta charset='utf-8'><title>The five papers</title><style>{STYLE}</style>"]
    out += ["<h1>The five papers</h1>", f"<p>{say(ABOUT)}</p><ul>"]
    out += [f"<li><a href='#{_anchor(p.title)}'>{say(p.title)}</a>: {counted(p.rows)}</li>" for p in papers]
    out.append("</ul>")
    for paper in papers:
        out.append(f"<h2 id='{_anchor(paper.title)}'>{say(paper.title)}</h2><p>{say(paper.note)}</p>")
        out.append("<table><tr>" + "".join(f"<th>{head}</th>" for head in HEADS) + "</tr>")
        for row in paper.rows:
            kind = row.verdict.split()[0]
            inside = [say(cell) for cell in cells_of(row)]
            inside[2] = f"{say(row.paper)} <q>{say(row.quote)}</q>" if row.quote else say(row.paper)
            out.append("<tr>" + "".join(f"<td class='{kind if i == 5 else ''}'>{c}</td>" for i, c in enumerate(inside)))
        out.append("</table>")
        out += [_drawn(drawing) for drawing in paper.drawings]
    return "\n".join(out) + "</html>\n"


def _drawn(drawing: Drawing) -> str:
    picture = base64.b64encode(png(drawing.figure)).decode()
    caption = f"{html.escape(drawing.place)}: {html.escape(drawing.caption)}"
    return f"<figure><img alt='{html.escape(drawing.place)}' src='data:image/png;base64,{picture}'>" + (
        f"<figcaption>{caption}</figcaption></figure>"
    )


def png(figure: Figure) -> bytes:
    """The picture as bytes."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=90, bbox_inches="tight")
    return out.getvalue()


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def write(papers: list[Paper], out: Path) -> list[Path]:
    """`papers.md` with a PNG for each drawing, and `papers.html`."""
    out.mkdir(parents=True, exist_ok=True)
    names: dict[str, list[str]] = {}
    for paper in papers:
        stem = paper.text.split("-")[0] + paper.text.split("-")[1]
        for number, drawing in enumerate(paper.drawings, 1):
            name = f"{stem}-{number}.png"
            (out / name).write_bytes(png(drawing.figure))
            names.setdefault(paper.title, []).append(name)
        names.setdefault(paper.title, [])
    pages = {"papers.md": markdown(papers, names), "papers.html": web_page(papers)}
    for name, text in pages.items():
        (out / name).write_text(text)
    return [out / name for name in pages]
