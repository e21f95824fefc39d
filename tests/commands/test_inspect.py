"""`inspect`: a page for people, every figure for programs. What it states is recomputed in tests/findings."""

import json

import pytest

from stream_engine.commands.inspect import as_page, predictions, short
from tests.support.facts import states
from tests.support.process import engine, jsonl
from tests.support.reported import answers, state


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    refits = ("--refit", "embedding", "--refit", "sdp_clustering")
    return state(folder, [*answers(12, 600), {"anchor": "object 0", "near": "x", "far": "x"}], *refits)


@pytest.fixture(scope="module")
def found(fitted):
    return json.loads(engine("inspect", "--state", fitted, "--json").stdout)


def plain(page: str) -> str:
    """A page without its line breaks."""
    return " ".join(page.split())


def test_the_page_shows_every_finding_once_and_every_model(fitted, found):
    page = plain(engine("inspect", "--state", fitted).stdout)
    for topic, some in found["findings"].items():
        for each in some:
            shown = (topic != "data" and topic != "connection") or each["level"] == "warning"
            assert page.count(plain(each["text"])) == shown, each
            assert not shown or each["command"] in page
    for row in found["models"]:
        assert f"{row['model']} {100 * row['accuracy']:.1f} %" in page
    assert found["warnings"][0] == "rejected" and f"objects {found['summary']['objects']}" in page


def test_json_has_the_summary_every_report_and_the_findings_with_their_figures(found):
    assert found["summary"]["events"] == 600 and found["summary"]["rejected"] == {"not_distinct": 1}
    assert {"embedding", "sdp_clustering"} == set(found["artifacts"]) and found["workers"] == 10
    accuracy = {each["what"]: each for each in found["findings"]["accuracy"]}["accuracy"]
    assert accuracy["figures"]["accuracy"] == max(row["accuracy"] for row in found["models"][:1])


def test_a_state_of_hardly_anything_says_what_is_missing(tmp_path):
    events = [{"anchor": "a", "near": "b", "far": "c"}]
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", tmp_path / "s", "--no-refits")
    page = engine("inspect", "--state", tmp_path / "s").stdout
    for kind in ("embedding", "sdp_clustering"):
        assert f"stream-engine refit --state {tmp_path / 's'} {kind}" in page
    made = {
        each["what"]
        for some in json.loads(engine("inspect", "--state", tmp_path / "s", "--json").stdout)["findings"].values()
        for each in some
    }
    assert made >= {"no_embedding", "no_sdp_clustering", "participants_unknown"} and "accuracy" not in made


def test_a_report_that_somebody_changed_is_no_harm(found):
    """What is no number is not shown; nothing else of the page is lost."""
    for wrong in ("x", None, [1], {"a": "b"}, -1e300):
        report = {key: wrong for kind in found["artifacts"].values() for key in kind["report"]}
        artifacts = {kind: {"snapshot": 1, "report": report} for kind in (*found["artifacts"], "kernel_learning")}
        page = as_page(found | {"artifacts": artifacts, "models": []})
        assert "kernel_learning" in page and f"snapshot {found['summary']['snapshot']}" in page


@pytest.mark.parametrize("n", [5, 6])
def test_as_many_partitions_as_fit_are_named(found, n):
    page = as_page(found | {"summary": found["summary"] | {"positions": {f"p{i}": i for i in range(n)}}})
    assert states(page, "p4 … 4") and "p5" not in page and ("1 more" in page) is (n > 5)


def test_how_predictions_went():
    recent = {"tested": 90, "accuracy": 0.5, "log_loss": 0.25, "calibration_error": 0.125}
    windows = {"total": {"tested": 900, "accuracy": 0.75}, "rolling": recent}
    kinds = {"all": windows, "triplet": windows}
    figures = {"snapshot": 4, "seen": 2_000, "sampled": 1_000, "predictors": {"k1": kinds}, "drift": {}}
    assert predictions({}) == []
    rows = [line.split() for line in predictions(figures)]
    assert rows[-1] == ["k1", "all", "900", "0.750", "0.500", "0.250", "0.125"] and len(rows) == 3
    several = predictions(figures | {"predictors": {"k1": kinds | {"odd_one_out": windows}}})
    assert [line.split()[:2] for line in several[2:]] == [["k1", kind] for kind in ("all", "triplet", "odd_one_out")]
    moved = predictions(figures | {"drift": {"loss": {"alarms": 2}}})
    assert "loss 2" in moved[-1]
    for wrong in ([1], {"snapshot": 4}, figures | {"seen": "x"}, figures | {"drift": [1]}):
        (line,) = predictions(wrong)
        assert "progressive.json" in line


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (1234, "1,234"),
        (True, "True"),
        (0.123456789, "0.123457"),
        ({"a": 1, "b": None}, "a=1  b=unknown"),
        (list(range(9)), "0, 1, 2, 3, 4, 5, 6, 7 …"),
    ],
)
def test_a_value_is_shown_on_one_line(value, text):
    assert short(value) == text
