"""`llms.txt`: every page of the manual with a line of what it is about, for programs that read Markdown
(https://llmstxt.org)."""

import re
from pathlib import Path

from deploy.manual import DOCS

SECTIONS = {
    "Tutorials": "tutorials",
    "How to": "how-to",
    "Methods": "methods",
    "Gallery": "gallery",
    "Pages": "",
    "Reference": "reference",
    "Design": "design",
}
INTRODUCTION = """# stream-engine

> A streaming online-learning engine for comparison data: triplets ("A is more like B than like C"), quadruplets,
> odd-one-out, most-central, pick-k, rankings, from files, frames or Kafka. Exact counts in one pass; embeddings,
> clusters, classifiers, kernels and partial orders from snapshots; a command line, Python, HTTP.

Paths are relative to this file. Each page is Markdown.
"""


def page() -> str:
    """The whole file."""
    lines = [INTRODUCTION]
    for section, folder in SECTIONS.items():
        lines += [f"## {section}", "", *(_line(path) for path in sorted((DOCS / folder).glob("*.md"))), ""]
    return "\n".join(lines).rstrip() + "\n"


def _line(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix("# ")
    plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    plain = re.sub(r"^(?:[#|!-].*|This page is generated .*)$", "", plain, flags=re.M)
    first = next((" ".join(part.split()) for part in plain.split("\n\n") if part.strip()), "")
    says = re.split(r"(?<=[.!?])\s", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first))[0].rstrip(":")
    return f"- [{title}]({path.relative_to(DOCS).as_posix()})" + (f": {says}" if says else "")
