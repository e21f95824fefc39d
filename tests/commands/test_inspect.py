"""`inspect`: a page for a scientist; all figures behind `--all` and `--json`."""

import json
import re

import pytest

from stream_engine.commands.inspect_page import as_page
from stream_engine.commands.inspect_text import as_text
from tests.support.process import engine, jsonl
from tests.support.reported import answers, state

INNER = ("probability_slope", "lapse_fitted", "warm_bytes", "residuals", "objective", "unique_triplets", "digest")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    refits = ("--refit", "embedding", "--refit", "sdp_clustering")
    return state(folder, [*answers(12, 600), {"anchor": "object 0", "near": "x", "far": "x"}], *refits)


def test_the_page_says_what_a_scientist_asks_in_words(fitted):
    page = engine("inspect", "--state", fitted).stdout
    found = json.loads(engine("inspect", "--state", fitted, "--json").stdout)
    assert not [word for word in INNER if word in page]
    summary, rows = found["summary"], {row["model"]: row for row in found["models"]}
    different = summary["unique_triplets"] - summary["contradicting_pairs"]
    assert re.search(r"objects +12\n", page) and re.search(rf"questions +{different:,} different ones", page)
    assert re.search(r"refused +1 not_distinct", page) and "1 refused events; why: stream-engine dead-letters" in page
    assert page.count("what one person said in one go") == 1
    assert f"{summary['contradicting_pairs']:,} questions were answered both ways" in page
    line = next(line for line in page.splitlines() if line.strip().startswith("embedding  "))
    assert line.split()[1:3] == [f"{100 * rows['embedding']['accuracy']:.1f}", "%"]
    assert f"people, at most   {100 * rows['embedding']['ceiling_at_most']:.1f} %" in page
    report = found["artifacts"]["sdp_clustering"]["report"]
    assert report["note"] in page and "p: the share of simulated studies without clusters that look as cl" in page
    tested, plain = report["verdict_test"], " ".join(page.split())
    assert f"{tested['p_continuum']:.2g} of {tested['drawn']} continua, {tested['p_coins']:.2g} of 99 answered" in plain
    assert "at random. Clusters are said where both are at most .05; else drawing ends early." in plain
    assert "majority: what most answered to the same question" in plain and "chance: a coin" in plain
    assert re.search(r"\.jsonl up to byte [\d,]+ of its text \(unpacked, in UTF-8\)", page)
    assert re.search(r"the partial order leaves out [\d,]+ comparisons: [\d,]+ say the opposite", page)
    assert "stream-engine report --state" in page.split("who guesses")[1]


def test_all_has_every_figure(fitted):
    told = engine("inspect", "--state", fitted, "--all").stdout
    found = json.loads(engine("inspect", "--state", fitted, "--json").stdout)
    for kind, artifact in found["artifacts"].items():
        assert f"{kind} (snapshot 1)" in told
        assert all(key in told for key in artifact["report"] if key not in ("certified", "certified_by"))
    assert all(key in told for key in found["summary"])


def test_a_state_of_hardly_anything_says_what_is_missing(tmp_path):
    events = [{"anchor": "a", "near": "b", "far": "c"}]
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", tmp_path / "s", "--no-refits")
    page = engine("inspect", "--state", tmp_path / "s").stdout
    assert "no map, and no model of it; make it: stream-engine refit --state" in page and "no clusters; make it" in page
    assert "events name no worker" in page and "Clusters\n" not in page and "right: share" not in page


def test_a_report_that_somebody_changed_is_no_harm(fitted):
    """What is no number is not told; nothing else of the page is lost."""
    found = json.loads(engine("inspect", "--state", fitted, "--json").stdout)
    for wrong in ("x", None, [1], {"a": "b"}, -1e300):
        report = {key: wrong for kind in found["artifacts"].values() for key in kind["report"]}
        artifacts = {kind: {"snapshot": 1, "report": report} for kind in (*found["artifacts"], "kernel_learning")}
        page = as_page(found | {"artifacts": artifacts, "models": []})
        assert "How consistent the answers are" in page and "kernel_learning" in page


def test_a_long_name_does_not_touch_its_value():
    report = {"predictor_agreement_error": None, "predictor_agreement_that_chose": 0.5}
    text = as_text(
        {"state": "", "snapshots": [], "summary": report, "artifacts": {"x": {"snapshot": 1, "report": report}}}
    )
    lines = [line.split() for line in text.splitlines() if "predictor" in line]
    assert [line[-1] for line in lines] == ["unknown", "0.5"] * 2 and {len(line) for line in lines} == {2}
