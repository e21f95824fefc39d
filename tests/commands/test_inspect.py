"""`inspect`: a page for people, every figure for programs. What it states is recomputed in tests/findings."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from stream_engine.commands import inspect
from stream_engine.state.store import Lock
from tests.support.process import engine, jsonl
from tests.support.reported import QUICK, answers, state


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    refits = ("--refit", "embedding", "--refit", "clusters")
    return state(folder, [*answers(12, 600), {"anchor": "object 0", "near": "x", "far": "x"}], *refits, config=QUICK)


@pytest.fixture(scope="module")
def document(fitted):
    return json.loads(engine("inspect", "--state", fitted, "--json").stdout)


def plain(page: str) -> str:
    """A page without its line breaks."""
    return " ".join(page.split())


def test_the_page_shows_every_finding_once_and_every_model(fitted, document):
    page = plain(engine("inspect", "--state", fitted).stdout)
    for topic, some in document["findings"].items():
        for each in some:
            shown = (topic != "data" and topic != "connection") or each["level"] == "warning"
            assert page.count(plain(each["text"])) == shown, each
            assert not shown or each["command"] in page
    for row in document["models"]:
        assert f"{row['model']} {100 * row['accuracy']:.1f} %" in page
    assert document["warnings"][0] == "rejected" and f"objects {document['summary']['objects']}" in page


def test_json_has_the_summary_every_report_and_the_findings_with_their_figures(document):
    assert document["summary"]["events"] == 600 and document["summary"]["rejected"] == {"not_distinct": 1}
    assert {"embedding", "clusters"} == set(document["artifacts"]) and document["workers"] == 10
    accuracy = {each["what"]: each for each in document["findings"]["accuracy"]}["accuracy"]
    assert accuracy["figures"]["accuracy"] == max(row["accuracy"] for row in document["models"][:1])


def test_a_state_of_hardly_anything_says_what_is_missing(tmp_path):
    events = [{"anchor": "a", "near": "b", "far": "c"}]
    engine("run", jsonl(tmp_path / "e.jsonl", events), "--state", tmp_path / "s", "--no-refits")
    page = engine("inspect", "--state", tmp_path / "s").stdout
    for kind in ("embedding", "clusters"):
        assert f"stream-engine refit --state {tmp_path / 's'} {kind}" in page
    document = json.loads(engine("inspect", "--state", tmp_path / "s", "--json").stdout)
    assert document["models"] == [] and "models_left_out" not in document
    made = {each["what"] for some in document["findings"].values() for each in some}
    assert made >= {"no_embedding", "no_clusters", "participants_unknown"} and "accuracy" not in made


def test_no_refit_is_suggested_while_a_run_is_at_work(tmp_path):
    """The run fits what is missing: a person who did so too would wait twice as long for it."""
    engine("run", jsonl(tmp_path / "e.jsonl", answers(6, 40)), "--state", tmp_path / "s", "--no-refits")
    lock = Lock(tmp_path / "s")
    try:
        document = json.loads(engine("inspect", "--state", tmp_path / "s", "--json").stdout)
        page = tmp_path / "page.html"
        engine("report", "--state", tmp_path / "s", "--out", page)
    finally:
        lock.release()
    missing = [each for some in document["findings"].values() for each in some if each["what"].startswith("no_")]
    assert {each["what"] for each in missing} == {"no_embedding", "no_clusters"}
    assert not any(each["command"] for each in missing) and "<span>refit</span>" not in page.read_text()
    engine("report", "--state", tmp_path / "s", "--out", page)
    assert "<span>stream-engine</span> <span>refit</span>" in page.read_text()


def test_of_a_sample_of_responses_their_comparisons_are_counted(monkeypatch):
    """A response that was given three times counts three times."""
    kept = SimpleNamespace(times=np.array([1, 3, 2]), judgement=np.array([0, 1, 1, 2]), complete=False)
    monkeypatch.setattr(inspect, "kept_responses", lambda snapshot: kept)
    document = inspect._responses(SimpleNamespace(counters={"comparisons": 50}))
    assert document == {"kept": 6, "comparisons": 9, "of": 50, "complete": False}
    assert re.findall(r"\d+", inspect._sample_size(document)) == ["6", "9", "50"]


def test_partitions_beyond_those_that_are_listed_are_counted():
    text = inspect._positions({f"t/{at}": 10 * at for at in range(inspect.MAX_PARTITIONS_LISTED + 3)})
    assert re.findall(r"message (\d+)", text) == [str(10 * at) for at in range(inspect.MAX_PARTITIONS_LISTED)]
    assert re.findall(r"and (\d+) more", text) == ["3"]


@pytest.mark.parametrize(
    "partition, unit",
    [
        *(("-", "byte"), ("s3://b/a.csv", "byte"), ("labels:/l.csv", "byte"), ("t/0", "message")),
        *(("https://h/a.parquet?v=1", "row"), ("/a.npy", "row"), ("deltas:///d", "batch")),
    ],
)
def test_how_far_a_partition_was_read_is_told_in_its_unit(partition, unit):
    assert inspect._place(partition, 5) == f"{unit} 5"


def test_each_thing_done_to_a_state_has_a_line():
    summary = {"history": [{"did": "seek", "time": "1"}, {"did": "merge", "time": "2"}], "kinds": {}, "rejected": {}}
    numbers = ("events", "filtered", "objects", "comparisons", "unique_triplets", "contradicting_pairs")
    summary |= dict.fromkeys((*numbers, "labelled_objects"), 0) | {"positions": {}}
    lines = inspect._count_lines({"summary": summary, "workers": None})
    assert [re.search("did=(\\w+)", line)[1] for line in lines if line.startswith("history")] == ["seek", "merge"]


def test_the_interval_of_an_accuracy_is_that_of_95_percent():
    assert inspect._cell("standard_error", 0.1) == "19.6 %" and inspect._cell("accuracy", 0.1) == "10.0 %"
