"""Who started what with which settings, and how it ended: two lines of the log, without secrets."""

import json
import os
import signal

import pytest

from connectors import SourceFailed
from stream_engine.input.settings.loading import load
from stream_engine.service.requests import Requests
from stream_engine.service.run import run
from tests.support.process import jsonl
from tests.support.served import Lines

TRIPLET = {"anchor": "a", "near": "b", "far": "c"}


def one(log: Lines, event: str) -> dict:
    """What was said with the only line of this event."""
    (more,) = (more for _, each, more in log.said if each == event)
    return more


def of(tmp_path, **overrides):
    overrides = {"state": str(tmp_path / "state"), "refits.kinds": [], **overrides}
    return load(None, overrides, {})


def test_a_run_says_what_it_is_and_what_it_did(tmp_path):
    source = str(jsonl(tmp_path / "e.jsonl", [TRIPLET, TRIPLET, {"anchor": "a"}]))
    log = Lines()
    run(of(tmp_path, source=[source], kafka={"sasl_plain_password": "hunter2"}, **{"snapshot.every": 7}), log=log)
    started, ended = one(log, "run started"), one(log, "run ended")
    assert started["sources"] == [source]
    assert started["state"] == str(tmp_path / "state")
    assert started["snapshot"] == 0
    expected = {"refits.kinds": (), "snapshot.every": 7, "kafka.sasl_plain_password": "***"}
    assert started["settings"] == expected and "hunter2" not in json.dumps(started, default=str)
    assert started["pid"] > 0
    assert started["user"]
    assert started["version"]
    assert started["descriptors"]
    assert (ended["why"], ended["records"], ended["events"], ended["rejected"])[1:] == (3, 2, 1)
    again = Lines()
    run(of(tmp_path, source=[source]), log=again)
    assert one(again, "run started")["snapshot"] == 1 and one(again, "run ended")["records"] == 0


def test_a_run_that_fails_says_why_it_ended(tmp_path):
    source = jsonl(tmp_path / "e.jsonl", [TRIPLET])
    run(of(tmp_path, source=[str(source)]), log=Lines())
    source.write_text("x\n")
    log = Lines()
    with pytest.raises(SourceFailed):
        run(of(tmp_path, source=[str(source)]), log=log)
    assert one(log, "run ended")["why"].startswith(f"SourceFailed: {source} ")


def test_the_signal_that_stopped_a_run_is_known():
    requests = Requests()
    with requests.from_signals():
        os.kill(os.getpid(), signal.SIGTERM)
    assert requests.stop and requests.stopped_by == "SIGTERM"
