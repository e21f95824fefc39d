"""The manual is built to a site without a warning: its navigation, formulas, figures and search, without network."""

import json
import re
import subprocess
import sys
import tomllib
from xml.etree import ElementTree

import pytest

from deploy.manual import DOCS
from tests.conftest import ROOT
from tests.support.process import ENVIRONMENT

FETCHED = re.compile(r'<(?:script|link|img|iframe|source|object)[^>]*(?:src|href|data)="((?:https?:)?//[^"]*)"')
STYLED = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')]*)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, which was built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    arguments = ["-q", "-W", "--keep-going", "-c", str(ROOT / "deploy" / "manual"), str(ROOT), str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return folder


def test_it_is_built_without_a_warning_and_is_read_without_network(site):
    built = {
        path.relative_to(site / "stream_engine" / "docs").with_suffix("")
        for path in site.rglob("*.html")
        if (site / "stream_engine" / "docs") in path.parents
    }
    assert {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")} <= built
    for page in site.rglob("*.html"):
        assert not FETCHED.findall(page.read_text(encoding="utf-8")), page
    for sheet in site.rglob("*.css"):
        assert not STYLED.findall(sheet.read_text(encoding="utf-8")), sheet


def test_every_page_has_the_sections_of_the_index_in_its_sidebar(site):
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    named = [
        section.partition("\n")[0]
        for section in re.split(r"^## ", index, flags=re.M)[1:]
        if re.search(r"\.md", section)
    ]
    for page in ("stream_engine/docs/index", "stream_engine/docs/methods/sdp", "README", "deploy/manual/pages"):
        text = (site / page).with_suffix(".html").read_text(encoding="utf-8")
        (sidebar,) = re.findall(r'<nav class="bd-links".*?</nav>', text, re.S)
        assert re.findall(r'class="caption-text">(.*?)</span>', sidebar) == named
        assert len(re.findall(r"<a ", sidebar)) >= len(set(re.findall(r"\]\(([^):#]+\.md)", index))) - 1


def test_every_formula_is_shown_as_one(site):
    formulas = tomllib.loads((ROOT / "deploy" / "manual" / "formulas.toml").read_text(encoding="utf-8"))["formula"]
    texts = {formula["text"] for formula in formulas}
    pages = sorted((DOCS / "methods").glob("*.md"))
    assert {re.search(r"```text\n(.*?)```", page.read_text(encoding="utf-8"), re.S)[1] for page in pages} == texts
    for page in pages:
        html = (
            (site / "stream_engine" / "docs" / "methods" / page.stem).with_suffix(".html").read_text(encoding="utf-8")
        )
        (shown,) = re.findall(r'<div class="formula">(.*?)</div>', html, re.S)
        plain = re.sub(r"&(?!lt|gt|amp)\w+;", " ", shown)  # entities that HTML has and XML has not
        assert len(ElementTree.fromstring(f"<all>{plain}</all>")) >= 1 and "merror" not in shown


@pytest.mark.browser
def test_search_finds_a_page_and_figures_are_dark_in_the_dark(site, browser):
    page = browser.new_page()
    try:
        page.goto(f"file://{site}/search.html?q=lapse")
        page.wait_for_selector("#search-results li a[href*='embedding']")
        page.goto(f"file://{site}/stream_engine/docs/methods/embedding.html")
        shown = "getComputedStyle(document.querySelector('.bd-content img')).filter"
        assert "invert" not in page.evaluate(shown)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert "invert" in page.evaluate(shown)
        box = json.loads(
            page.evaluate("JSON.stringify(document.querySelector('.formula math').getBoundingClientRect())")
        )
        assert box["width"] > 4 * box["height"]  # a line, not a heap of symbols
    finally:
        page.close()
