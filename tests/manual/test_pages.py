"""Every block of code of the manual is run as it stands, or is of a kind of which this says why it is not."""

import re
from functools import partial

import pytest

from deploy.manual import PAGES as MADE
from stream_engine.refits import embedding, kernel_refits
from tests.conftest import ROOT
from tests.support.figures import MOST_BYTES, shown, style, unlike
from tests.support.pages import KINDS, blocks, run_page

DOCS = ROOT / "stream_engine" / "docs"
PAGES = {
    str(page.relative_to(ROOT)): page
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "stream_engine").rglob("*.md"))]
}
ELSEWHERE = {  # pages whose blocks another test runs, and which
    "README.md": "tests/house/test_readme.py",
    "stream_engine/docs/tour.md": "tests/house/test_readme.py",
    "stream_engine/docs/runbook.md": "tests/end_to_end/test_runbook.py",
    "stream_engine/docs/tutorials/kafka_to_grafana.md": "tests/kafka/test_tutorial.py",
    "stream_engine/docs/how-to/spark.md": "tests/spark/test_how_to.py",
    "stream_engine/docs/how-to/r.md": "tests/manual/test_r.py",
    "stream_engine/docs/how-to/live_answers.md": "tests/service/test_live_answers.py",
    "stream_engine/docs/how-to/experiment_software.md": "tests/collect/test_experiment_software.py",
    **{f"stream_engine/docs/{page}": "tests/manual/test_reference_pages.py" for page in MADE if page.endswith(".md")},
}
HERE = [page for page in PAGES if page not in ELSEWHERE and blocks(PAGES[page])]
NOT_RUN = {  # kinds of blocks that nothing runs, and why
    "math": "a formula",
    "text": "a drawing, a formula or a usage: nothing that could be run",
    "sh": "a command with names of one's own; its verbs and options are held against those that there are",
    "pycon": "made of docstrings, which doctest runs",
    "r": "of a page that tests/manual/test_r.py runs, where there is R",
    "html": "of a page on another site; tests/collect/test_jspsych.py has such a page",
    "js": "of a page on another site; tests/collect/test_jspsych.py has such a page",
    "toml": "read, and kept as a file that the commands of the page use",
}


FIGURES_OF_FITS = {  # of these pages; for the others, fits are not evaluated
    "stream_engine/docs/methods/features.md",
    "stream_engine/docs/tutorials/python.md",
    "stream_engine/docs/tutorials/survey.md",
}
SEVERAL = {"digits.svg"}  # two dimensions are too few for its objects: several maps are as good, but for rounding


@pytest.mark.parametrize("page", HERE)
def test_its_blocks_run_and_draw_what_it_shows(page, tmp_path, monkeypatch):
    if page not in FIGURES_OF_FITS:
        monkeypatch.setattr(embedding, "refit", partial(embedding.refit, evaluate=False))
        monkeypatch.setattr(kernel_refits.KernelEvaluation, "evaluate", lambda *_: None)
    with style():
        run_page(PAGES[page], tmp_path)
    for name in shown(PAGES[page]):
        stored = (PAGES[page].parent / name).read_text()
        different = unlike((tmp_path / name).read_text(), stored, places=name not in SEVERAL)
        assert different == "", "python -m tests.support.figures draws it anew"
        assert len(stored) <= MOST_BYTES


def test_every_picture_of_the_manual_is_drawn_by_the_page_that_shows_it():
    drawn = {page.parent / name for page in PAGES.values() for name in shown(page) if page.parent != ROOT}
    assert drawn == set(DOCS.rglob("*.svg"))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_of_a_kind_that_is_known(page):
    for block in blocks(PAGES[page]):
        assert block.kind in KINDS
        assert (
            block.kind != "text"
            or page.startswith("stream_engine/docs/reference")
            or not re.search(r"^(\$ )?(stream-engine|pip install|make) ", block.text, re.M)
        ), f"commands that nobody runs: {block.text}"


@pytest.mark.parametrize("page", ELSEWHERE)
def test_a_page_that_is_run_elsewhere_is_there_and_its_test_reads_it(page):
    test = (ROOT / ELSEWHERE[page]).read_text()
    assert PAGES[page].name in test or PAGES[page].stem in test or page.removeprefix("stream_engine/docs/") in MADE


def test_each_kind_is_run_or_has_a_reason():
    assert KINDS - NOT_RUN.keys() == {"console", "python"}
    assert len(HERE) >= 5
