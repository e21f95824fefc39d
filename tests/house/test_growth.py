"""One file and one line add a thing of every kind: the dummies of tests/support/dummies.py go through every verb.

What runs in a process of its own (`run`, its refit workers) finds them registered by a `sitecustomize` of its own,
which is that one line and nothing else.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stream_engine.state.artifact import Artifact
from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support import dummies
from tests.support.process import ENVIRONMENT, engine, one_line

SETTINGS = """
source = ["dummy://numbers"]
accumulators = ["adds3", "triplet_counts", "dummy_accumulator"]
[refits]
kinds = ["dummy_refit"]
[refits.params.dummy_refit]
least = 2
"""


def with_dummies(folder: Path, *arguments) -> subprocess.CompletedProcess:
    """`stream-engine ARGUMENTS` where the dummies are registered from the start."""
    (folder / "sitecustomize.py").write_text("from tests.support import dummies\n\ndummies.register()\n")
    environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, "-m", "stream_engine", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a state that a run over the dummy source has made, its refit included."""
    folder = tmp_path_factory.mktemp("growth")
    (folder / "settings.toml").write_text(SETTINGS)
    done = with_dummies(folder, "run", "--config", folder / "settings.toml", "--state", folder / "state")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    dummies.register(monkeypatch.setitem)


def test_run_decodes_counts_and_refits(folder):
    state = json.loads(engine("inspect", "--state", folder / "state", "--json").stdout)
    assert state["summary"]["triplets"] == 3 and state["summary"]["rejected"] == {"missing_field": 1}
    assert state["artifacts"]["dummy_refit"]["report"] == {"objects": 5, "after": False}
    assert state["artifacts"]["dummy_refit"]["params"] == {"least": 2}
    assert "dummy_refit (snapshot" in engine("inspect", "--state", folder / "state").stdout


def test_refit_goes_on_from_the_one_before(folder):
    done = with_dummies(folder, "refit", "--state", folder / "state", "dummy_refit", "--set", "least=3", "--json")
    assert done.returncode == 0 and "after" in done.stdout, done.stderr
    assert Store(folder / "state").latest_artifact("dummy_refit").report == {"objects": 5, "after": True}
    refused = with_dummies(folder, "refit", "--state", folder / "state", "dummy_refit", "--set", "least=9")
    assert refused.returncode != 0 and one_line(refused.stderr).endswith("got 5 objects, expected at least 9")


def test_export_in_both_orders(folder):
    """By name: the artifact's arrays and the accumulator's entries stay with their objects."""
    facts = []
    for order in ("seen", "name"):
        out = folder / order
        wanted = ("--format", "npz", "--object-order", order, "objects", "dummy_export")
        engine("export", "--state", folder / "state", "--out", out, *wanted)
        names = json.loads((out / "objects.json").read_text())
        arrays = np.load(out / "dummy_export.npz")
        followers = [names[i] if i >= 0 else None for i in arrays["next_one"]]
        pairs = (out / "dummy_pairs.csv").read_text().splitlines()[1:]
        sorted_pairs = sorted((*sorted(line.split(",")[:2]), line.split(",")[2]) for line in pairs)
        facts.append((dict(zip(names, arrays["length"].tolist())), dict(zip(names, followers)), sorted_pairs))
        assert names == (list(dummies.NAMES) if order == "seen" else sorted(dummies.NAMES))
    assert facts[0] == facts[1]
    assert facts[0][1]["pear"] == "apple"
    assert facts[0][1]["kiwi"] is None
    engine("export", "--state", folder / "state", "--out", folder / "all", "--object-order", "name")
    assert (folder / "all" / "dummy_export.npz").exists()


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ({"surprise": np.zeros(2)}, "the array 'surprise'"),
        ({}, None),
    ],
)
def test_an_array_that_nothing_is_declared_of_is_said(folder, tmp_path, extra, line):
    snapshot = Store(folder / "state").latest().snapshot
    arrays = {"length": np.arange(5), "next_one": np.arange(5), **extra}
    shown = Store(tmp_path / "state")
    shown.publish(snapshot)
    shown.publish_artifact(Artifact("dummy_refit", snapshot.digest, snapshot.sequence, {}, 0, arrays, {}))
    done = engine(
        "export", "--state", tmp_path / "state", "--out", tmp_path, "--object-order", "name", "objects", status=None
    )
    assert (done.returncode == 0) == (line is None)
    assert line is None or line in one_line(done.stderr)
