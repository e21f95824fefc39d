"""The page of a state that has a figure wherever a report can have one, and its drawings as a browser gets them."""

import re

import pytest

from stream_engine.report.inline_svg import svg
from stream_engine.report.material import material
from stream_engine.report.page import body, sections
from tests.support import told
from tests.support.approved import unchanging
from tests.support.approved_pages import page_text

DRIFT = {"drift": {"accuracy": {"alarms": 2}, "log_loss": {"alarms": 1}}}
BEHIND = ('<path class="tick"', '<path class="grid"', "<clipPath", "<rect", "<defs")  # what is behind the marks


@pytest.fixture(scope="module")
def of():
    return material(told.studied(), DRIFT, workers=True)


def test_page(of, approved):
    assert page_text(of, sections(of), marks=False) == approved


def test_drawings(of, approved):
    drawings = [
        drawing for section in sections(of).values() for drawing in section.drawings if drawing.name != "dendrogram"
    ]
    lines = []
    for drawing in drawings:
        tags = re.sub(r"(?<=>)(?=<(?!/))", "\n", rounded(svg(drawing))).split("\n")
        lines += [f"## {drawing.name}", *(tag for tag in tags if not tag.startswith(BEHIND)), ""]
    assert unchanging("\n".join(lines)) == approved


def test_tags(of, approved):
    """The page around what its sections say, and what its script works on."""
    page = body(of, sections(of), {"map": "figures/map.pdf"})
    tags = re.findall(r"<(?:section|nav|select|option|a |details|div class|button class)[^>]*>|\"data\">.*", page)
    lines = [tag for tag in tags if tag not in ('<div class="take">', '<div class="tile">', '<div class="tools">')]
    assert unchanging("\n".join(re.sub(r'(?<=[\]}"]),(?=["{])', ",\n", line) for line in lines)) == approved


def rounded(text: str) -> str:
    """Pixels, to a tenth."""
    return re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}", text)
