"""The manual says what is there: every path, module and link that it names exists.

Commands are those of tests/manual/test_tables.py.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from stream_engine.service.http.manual_pages import slug
from tests.conftest import ROOT
from tests.house.floors import FLOORS

FOLDERS = ["connectors", "deploy", "stream_engine", "tests"]
PAGES = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])
NAMING = [page for page in PAGES if page.name != "CHANGELOG.md"]  # a changelog also names what is gone
BESIDE = [ROOT, ROOT / "stream_engine"]  # a path is written from one of these
FILES = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")}

FENCE = re.compile(r"^```.*?^```", re.S | re.M)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\]\(([^)\s#]*)#([^)]+)\)")
MODULE = re.compile(r"\b(?:stream_engine|connectors)(?:\.\w+)+")


def wrong_paths(text: str) -> list[str]:
    """Words in backticks that look like a path in the repository and lead nowhere. `NAME` stands for any name."""
    words = [word for code in CODE.findall(FENCE.sub("", text)) for word in code.split()]
    return [word for word in words if "NAME" not in word and _looks_like_a_path(word) and not _exists(word)]


def _looks_like_a_path(word: str) -> bool:
    if "://" in word or not re.fullmatch(r"[\w.*/-]+", word):
        return False
    return (word.partition("/")[0] in FOLDERS and "/" in word) or word.endswith(".py")


def _exists(word: str) -> bool:
    if "/" not in word:
        return word in FILES
    return any(next(folder.glob(word.rstrip("/")), None) is not None for folder in BESIDE)


def wrong_links(text: str, folder: Path) -> list[str]:
    """Links to files that do not exist beside the page."""
    return [link for link in LINK.findall(text) if "://" not in link and not (folder / link).exists()]


def wrong_anchors(text: str, page: Path) -> list[str]:
    """Links to a heading that its page has not."""
    wrong = []
    for path, anchor in ANCHORED.findall(FENCE.sub("", text)):
        aim = (page.parent / path).resolve() if path else page
        if (
            "://" not in path
            and aim.suffix == ".md"
            and (aim == page or aim.exists())
            and anchor not in _anchors(aim, text, page)
        ):
            wrong.append(f"{path}#{anchor}")
    return wrong


def _anchors(aim: Path, text: str, page: Path) -> set[str]:
    told = text if aim == page else aim.read_text()
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", told), re.M)}


def wrong_modules(text: str) -> list[str]:
    """Dotted names of the product that do not import."""
    return [name for name in MODULE.findall(LINK.sub("]", text)) if not _imports(name)]


def _imports(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)
every_naming_page = pytest.mark.parametrize("page", NAMING, ids=page_name)


@every_page
def test_links_lead_somewhere(page):
    assert wrong_links(page.read_text(), page.parent) == []


@every_page
def test_links_to_headings_lead_to_one(page):
    assert wrong_anchors(page.read_text(), page) == []


@every_naming_page
def test_paths_exist(page):
    assert wrong_paths(page.read_text()) == []


@every_naming_page
def test_modules_import(page):
    assert wrong_modules(page.read_text()) == []


def test_nothing_tells_to_install_a_package_of_that_name_from_an_index():
    """`stream-engine` on the package index is somebody else's."""
    files = [path for folder in ("connectors", "deploy", "stream_engine") for path in (ROOT / folder).rglob("*.*")]
    texts = [path for path in [*files, *PAGES] if path.suffix in {".md", ".py", ".sh", ".txt"}]
    named = [page_name(path) for path in texts if re.search(r"(install\s+|')stream-engine\[", path.read_text())]
    assert [name for name in named if name != "CHANGELOG.md"] == []


def linked_from(page: Path, seen: set[Path]) -> Iterable[Path]:
    """The pages that a reader reaches from `page` by links."""

    def visit(current: Path) -> Iterator[Path]:
        if current in seen or current.suffix != ".md" or not current.is_file():
            return
        seen.add(current)
        yield current
        for link in LINK.findall(current.read_text()):
            yield from visit((current.parent / link).resolve())

    return visit(page)


def test_every_page_of_the_manual_is_reached_from_the_readme():
    reached = set(linked_from(ROOT / "README.md", set()))
    manual = {page for page in PAGES if "stream_engine" in page.relative_to(ROOT).parts}
    assert manual - reached == set()


def test_every_page_of_the_manual_is_shipped_with_the_package():
    package = ROOT / "stream_engine"
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][
        "stream_engine"
    ]
    shipped = {path for pattern in patterns for path in package.glob(pattern)}
    read = {page for page in PAGES if package in page.parents}
    assert (read | {*package.rglob("*.svg"), package / "docs" / "llms.txt"}) - shipped == set()


def test_the_floors_that_the_design_draws_are_those_of_the_import_rules():
    picture = (ROOT / "stream_engine" / "DESIGN.md").read_text().partition("## Packages and layers")[2].split("```")[1]
    drawn = [set(line[:72].split()) for line in reversed(picture.strip("\n").splitlines())]
    assert drawn == [{room.removeprefix("stream_engine.") for room in floor} for floor in FLOORS[:-1]]
