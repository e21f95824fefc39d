"""Words that must not come back in texts for users: they sound translated, and the field has a word for each.

A text for users is a page of the manual, a cell of a notebook, a literal in the product (messages, help, reports; not
docstrings), a text of a web page, an alert or a dashboard. `stream_engine/docs/glossary.md` has the field's terms.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

INSTEAD = {  # what to look for -> what to write
    r"foret(?:ell|old)\w*": "predict, predicted",
    r"sureness": "confidence, calibrated probability",
    r"oftener": "more often",
    r"seldom": "rarely",
    r"\bof late\b": "recently",
    r"nobody seems": "No participant was flagged …",
    r"So many\.": "a noun: Number of events to read.",
    r"For programs\.": "Machine-readable output.",
    r"as people have them": "Input formats",
    r"whom was asked": "objects with the fewest answers",
    r"among strangers": "unattended operation",
    r"like a coin|a coin's": "at chance level, random answers",
    r"drawn anew": "bootstrap resamples",
    r"passed over": "skipped",
    r"told apart": "distinguished",
    r"in the minority": "disagree with the majority",
    r"(?:for|of) his (?:own|pay)|before he\b": "they, their",
    r"come so\b|came so\b": "occurred",
    r"since ever": "since the state was created",
    r"made anew|start anew|chosen anew": "recreated, again",
    r"never heard": "new participants",
    r"how far people": "inter-rater agreement",
    r"[Ww]ho sees it differently": "Individual differences",
    r"held against": "compared with",
    r"gone on with": "continued",
    r"(?:is|are|none) at work\b|run at work": "active",
    r"read(?:ing)? on from": "resume at",
    r"nobody (?:is named|gets|has started|reads|compared)": "say the positive, with the noun: no participant …",
    r"what is (?:wrong|said|told) (?:is|stands)": "name the thing: the error, the message",
}
PAGES = ("*.md", "*.html", "*.js", "*.toml", "*.yml", "*.yaml", "*.json", "*.ipynb", "*.txt")


def texts(path: Path) -> Iterator[str]:
    """The texts for users in a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield source
        return
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and is_said(node.body)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def is_said(body: list[ast.stmt]) -> bool:
    """Whether a body begins with a docstring."""
    return bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)


def faults(path: Path) -> list[str]:
    """Each word of the list in a file, with what to write instead."""
    return [
        f"{found[0]!r}: write {better!r}"
        for text in texts(path)
        for word, better in INSTEAD.items()
        for found in re.finditer(word, re.sub(r"\s+", " ", text))
    ]


def files() -> list[str]:
    """Every file with texts for users."""
    product = [*(ROOT / "stream_engine").rglob("*.py"), *(ROOT / "connectors").rglob("*.py")]
    pages = [path for folder in ("stream_engine", "deploy") for kind in PAGES for path in (ROOT / folder).rglob(kind)]
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "README.md", ROOT / "SECURITY.md", *product, *pages))


def test_no_text_for_users_has_a_word_of_the_list():
    found = {name: wrong for name in files() if (wrong := faults(ROOT / name))}
    assert not found, found


@pytest.mark.parametrize("text", ["It foretells answers.", "Accuracy of late", "Nobody seems\nto guess"])
def test_a_planted_word_is_found(tmp_path, text):
    (tmp_path / "page.md").write_text(text.lower())
    (tmp_path / "code.py").write_text(f'"""{text}"""\nmessage = """{text.lower()}"""\n')
    assert len(faults(tmp_path / "page.md")) == len(faults(tmp_path / "code.py")) == 1
