"""The figure and the table of how cost grows: fitted, drawn and shown as they are kept. Nothing is run."""

import json

import numpy as np
import pytest

from deploy.manual import DOCS
from tests.benchmarks import growth
from tests.benchmarks.rows import Spent
from tests.support.figures import MOST_BYTES, unlike


@pytest.mark.parametrize("start, power", [(0.0, 0.5), (1.0, 1.0), (2.0, 2.0)])
def test_an_exponent_is_of_what_is_above_the_start(start, power):
    sizes = np.geomspace(10, 1e5, 7)
    made = growth.Fit.of(sizes, start + 9 * (sizes / 1e5) ** power)
    assert made.power == pytest.approx(power)
    assert made.at(np.array([0.0, 1.0])) == pytest.approx([start, start + 9])
    assert made.grows


def test_a_cost_that_does_not_double_does_not_grow():
    assert not growth.Fit.of([1, 10, 100, 1000], [2.0, 2.1, 2.0, 2.6]).grows


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Where points are kept."""
    monkeypatch.setattr(growth, "KEPT", tmp_path / "growth.jsonl")
    return tmp_path / "growth.jsonl"


def test_only_points_that_are_missing_and_short_are_measured(file, tmp_path, monkeypatch):
    asked = []

    def take(case):
        asked.append(case.size)
        return Spent(float(case.size), 1.0, 1000, "")

    panel = growth.Panel("", "objects", (4, 10, 50, 200, 900), lambda folder, size: folder, {"one": take})
    monkeypatch.setattr(growth, "PANELS", {"some": panel})
    file.write_text(json.dumps({"panel": "some", "line": "one", "size": 4, "cpu": 4.0, "peak": 1}) + "\n")
    growth.measure("some", None)
    growth.measure("some", None)
    assert asked == [10, 50]  # proportional to the size
    assert {size: row.get("left_out") for size, row in growth.kept("some", "one").items()} == {
        **dict.fromkeys((4, 10, 50)),
        200: "expected 200 CPU s",
    }


def test_what_is_kept_is_drawn(file, tmp_path):
    with file.open("w") as out:
        for size in growth.PANELS["cluster-objects"].sizes:
            row = {"panel": "cluster-objects", "line": "clusters", "size": size, "cpu": 1 + size**2 / 1e4, "peak": 3e8}
            out.write(json.dumps(row) + "\n")
    growth.draw(tmp_path / "growth.svg")
    drawn = (tmp_path / "growth.svg").read_text()
    assert "clusters: 2.0" in drawn
    assert "clusters: hardly grows" in drawn
    assert "2.00 (2.00 to 2.00)" in growth.table()


def test_the_manual_shows_what_is_kept(tmp_path):
    growth.draw(tmp_path / "growth.svg")
    stored = growth.FIGURE.read_text()
    assert unlike((tmp_path / "growth.svg").read_text(), stored) == ""
    assert len(stored) <= MOST_BYTES
    assert growth.table() in (DOCS / "measurements.md").read_text()
