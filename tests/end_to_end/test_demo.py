"""`make run`: the main job from built-in data to the page that a person reads."""

import re

import numpy as np

from stream_engine.commands import demo
from stream_engine.state.store import Store
from tests.support.process import engine
from tests.support.reported import held


def test_the_demo_ends_with_a_page_that_is_true(tmp_path, monkeypatch):
    """With fewer digits than are shipped: the refits take most of the time."""
    monkeypatch.setattr(demo, "PER_DIGIT", 8)
    monkeypatch.setattr(demo, "COMPARISONS", 30_000)
    page = engine("demo", "--state", tmp_path / "demo").stdout
    for line in (
        "objects",
        "events",
        "waited",
        "rejected",
        "contradictions",
        "guard",
        "clusters",
        "classifier",
        "snapshot",
        "export",
        "report",
    ):
        assert re.search(rf"^{line} ", page, re.M), page
    named = float(re.search(r"classifier +([\d.]+)%", page)[1])
    majority = float(re.search(r"majority class ([\d.]+)%", page)[1])
    assert named > 2 * majority
    assert float(re.search(r"(\d\.\d+)", page)[1]) > 0.3
    published = Store(tmp_path / "demo").published()
    clusters, best = published.artifacts["clusters"].report, published.artifacts["classify"].report["model"]
    assert f"clusters        {clusters['note']}" in page and f' "{best}" (' in page
    assert re.search(r"^run +[\d,]+ events .*events.jsonl.* 4 \w+ \(.*embedding", page, re.M)
    assert re.search(r"\.html.*browser\n*$", page)
    shown = held((tmp_path / "demo" / "report.html").read_text())
    assert len(shown["names"]) == len(shown["pictures"]) == 10 * demo.PER_DIGIT
    assert [each["name"] for each in shown["maps"]][:2] == ["picture", "embedding"] and len(shown["maps"]) == 4
    assert np.load(tmp_path / "demo" / "export" / "adds3.npz")["W"].sum() == 0
    assert "not_parseable" in page and "missing_field" in page and "unknown_type" in page and "not_distinct" in page
    waited = re.search(r"^waited +(\d+) s: (.*)", page, re.M)
    parts = [float(each.split()[-1]) for each in waited[2].split(", ")]
    assert len(parts) == 6 and abs(sum(parts) - int(waited[1])) < 1
    events, seconds, rate = re.search(r"^events +([\d,]+) read in ([\d.]+) s: ([\d,]+) events/s", page, re.M).groups()
    assert abs(int(events.replace(",", "")) / int(rate.replace(",", "")) - float(seconds)) < 0.06
