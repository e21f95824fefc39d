"""The notebooks of the gallery run in a clean folder without a warning; what they show is stored, and small."""

import json
import re

import pytest

from tests.support.notebooks import GALLERY, code, run_in

PAGES = sorted(GALLERY.glob("*.ipynb"))
MOST_BYTES = 200_000
OF_A_MACHINE = re.compile(r"/(tmp|work|root|home|Users)/|C:\\\\|site-packages|0x[0-9a-f]{6}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_runs_and_shows_what_is_stored(page, tmp_path):
    notebook = json.loads(page.read_text())
    shown = run_in(tmp_path, notebook)
    kinds = [[each["output_type"] for each in cell["outputs"]] for cell in code(notebook)]
    assert kinds == [[each["output_type"] for each in outputs] for outputs in shown]
    assert [cell["execution_count"] for cell in code(notebook)] == list(range(1, len(kinds) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_stored_is_small_and_of_no_machine(page):
    text = page.read_text()
    assert len(text) <= MOST_BYTES and not OF_A_MACHINE.search(re.sub(r'"image/png": ".*?"', "", text))
    notebook = json.loads(text)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


def test_there_are_the_two_that_the_manual_names():
    manual = (GALLERY.parent / "python.md").read_text()
    assert {f"(gallery/{page.name})" for page in PAGES} == set(re.findall(r"\(gallery/\w+\.ipynb\)", manual))
    assert len(PAGES) == 2
