"""A whole state directory of every released version is opened by this one, means the same, and goes on.

Each was made by that version's own code from tests/golden/events.jsonl, with the refit `sdp_clustering`.
"""

import json
import shutil

import numpy as np
import pytest

from stream_engine.data.packed_names import pack_names
from stream_engine.state.snapshot import decode, encode
from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support.process import engine, jsonl, summary

STATES = sorted((ROOT / "tests" / "golden").glob("state-*"))
MORE = [{"anchor": "o1", "near": "o2", "far": "o3"}, {"anchor": "x", "near": "x", "far": "y"}]


@pytest.fixture(params=STATES, ids=[state.name for state in STATES])
def state(request, tmp_path):
    shutil.copytree(request.param, tmp_path / "state")
    return tmp_path / "state"


def test_every_release_is_kept_and_small():
    assert "state-0.1.0" in {state.name for state in STATES}
    for state in STATES:
        assert sum(file.stat().st_size for file in state.rglob("*") if file.is_file()) < 100_000


def test_an_old_state_means_the_same(state, tmp_path):
    engine(
        "run",
        ROOT / "tests" / "golden" / "events.jsonl",
        "--state",
        tmp_path / "now",
        "--no-refits",
        "--max-reject-ratio",
        "1",
    )
    old, now = summary(state), summary(tmp_path / "now")
    (was,), (is_,) = (list(each.pop("positions").values()) for each in (old, now))
    assert was == is_ and old == now
    engine("verify", "--state", state)


def test_an_old_state_goes_on(state, tmp_path):
    before, letters = summary(state), next((state / "dead_letters").glob("*.jsonl"))
    kept = letters.read_bytes()
    engine("run", jsonl(tmp_path / "more.jsonl", MORE), "--state", state, "--no-refits", "--max-reject-ratio", "1")
    after = summary(state)
    assert after["comparisons"] == before["comparisons"] + 1
    assert len(after["positions"]) == 2 and before["positions"].items() <= after["positions"].items()
    assert letters.read_bytes().startswith(kept) and len(letters.read_bytes()) > len(kept)
    artifacts = json.loads(engine("inspect", "--state", state, "--json").stdout)["artifacts"]
    assert artifacts["sdp_clustering"]["snapshot"] == 1
    engine("export", "--state", state, "--out", tmp_path / "out", "clusters")
    assert list((tmp_path / "out").iterdir())
    engine("refit", "--state", state, "sdp_clustering")


def test_a_state_that_kept_a_running_reliability_opens_without_it(tmp_path):
    """The accumulator `worker_reliability` of version 0.1.0 is gone; its arrays are skipped and named in one line."""
    engine("run", jsonl(tmp_path / "a.jsonl", [{**MORE[0], "worker": "ann"}]), "--state", tmp_path / "s", "--no-refits")
    now = Store(tmp_path / "s").named("latest")
    estimate = {name: np.array([n], np.int32) for n, name in enumerate(("lo", "hi", "anchor"))}
    estimate |= {"odds": np.ones(1), "right": np.zeros(1), "informed": np.zeros(1, np.int64), **pack_names(["ann"])}
    old = now._replace(
        settings={**now.settings, "accumulators": [*now.settings["accumulators"], "worker_reliability"]},
        arrays={**now.arrays, **{f"worker_reliability/{name}": array for name, array in estimate.items()}},
    )
    chunks, _ = encode(old)
    opened = decode(b"".join(chunks))
    assert opened.ignored == ("worker_reliability",) and opened.settings == now.settings
    assert opened.arrays.keys() == now.arrays.keys()
    Store(tmp_path / "s").publish(old._replace(sequence=2))
    more = jsonl(tmp_path / "more.jsonl", MORE[:1])
    said = engine("run", more, "--state", tmp_path / "s", "--no-refits").stderr
    assert said.count("names=worker_reliability") == 1 and summary(tmp_path / "s")["comparisons"] == 2
    engine("verify", "--state", tmp_path / "s")
    assert "worker_reliability" not in engine("run", more, "--state", tmp_path / "s", "--no-refits").stderr
