"""A run tells how well it predicts, and when that changes: metrics, log, a snapshot, the note beside it."""

import json
import threading
import time

import numpy as np
from prometheus_client import CollectorRegistry

from stream_engine.commands.inspect import as_page, inspect
from stream_engine.input.settings import DriftSettings
from stream_engine.service import prediction_monitor
from stream_engine.service.metrics import Metrics
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.drifting_events import events
from tests.support.generators import as_batch, decoded, planted_triplets
from tests.support.process import until
from tests.support.served import Lines, ran


def consumed(tmp_path, name, **drift):
    rule = {"snapshot.every": 10_000, "snapshot.keep": 20, "drift": drift}
    metrics, log = ran(tmp_path / name, tmp_path / "events.csv", **rule)
    return metrics, log.said


def watched(count, log=None):
    """A monitor that serves `count` comparisons of 12 points of the plane, and what it serves; it has made nothing."""
    rng = np.random.default_rng(0)
    points, engine = rng.normal(size=(12, 2)), Engine()
    engine.learn(decoded(planted_triplets(rng, points, count, 0.1), 12))
    monitor = prediction_monitor.PredictionMonitor(DriftSettings(), Metrics(CollectorRegistry()), log or Lines())
    published = Published(engine.snapshot(), {})
    monitor.serve(published.snapshot)
    return rng, points, monitor, published


def test_a_change_is_a_metric_a_line_and_a_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(prediction_monitor, "COOLDOWN", 1_000_000)
    events(tmp_path / "events.csv", seed=1)
    metrics, said = consumed(tmp_path, "on")
    _, unsaid = consumed(tmp_path, "off", enabled=False)
    value = metrics.registry.get_sample_value
    alarm = [more for level, event, more in said if level == "warning" and "signal" in more]
    assert 1 <= len(alarm) <= 2 and "loss" in {more["signal"] for more in alarm}
    assert all(
        30_000 < more["at_comparison"] + 10_000 < 60_000 for more in alarm
    )  # nothing was predicted before the first snapshot
    assert value("stream_engine_drifts_total", {"signal": "loss"}) == 1
    why = [more["why"] for _, event, more in said if event == "snapshot"]
    assert 1 <= why.count("drift") <= len(alarm) and why.count("comparisons") >= 4
    assert [more["why"] for _, event, more in unsaid if event == "snapshot"].count("drift") == 0
    assert not [more for _, _, more in unsaid if "signal" in more]
    for kind in ("all", "triplet"):
        labels = {"predictor": "adds3", "kind": kind, "window": "rolling"}
        assert value("stream_engine_progressive_accuracy", labels) > 0.6
    found = inspect(str(tmp_path / "on"))
    assert (
        found["progressive"]["snapshot"] == found["summary"]["snapshot"]
        and found["progressive"]["drift"]["loss"]["alarms"] == 1
    )
    assert "loss 1" in as_page(found)
    note = (tmp_path / "on" / "progressive.json").read_bytes()
    consumed(tmp_path, "on")  # nothing new: nothing changes
    assert (tmp_path / "on" / "progressive.json").read_bytes() == note
    (tmp_path / "on" / "progressive.json").write_text("{broken")
    assert inspect(str(tmp_path / "on"))["progressive"] == {}
    # what is counted does not depend on alarms
    one, two = ({**inspect(str(tmp_path / state))["summary"]} for state in ("on", "off"))
    for key in ("snapshot", "progressive"):
        one.pop(key), two.pop(key)
    assert one == two and json.dumps(found)


def test_a_run_that_ends_waits_for_the_predictors_that_are_being_made(tmp_path, monkeypatch):
    events(tmp_path / "events.csv", seed=1)
    begun, ended = [], []

    def slowly(names, published, features):
        begun.append(published.snapshot.sequence)
        time.sleep(0.3)
        ended.append(published.snapshot.sequence)
        return {}, {}

    monkeypatch.setattr(prediction_monitor, "_make", slowly)
    there = set(threading.enumerate())
    consumed(tmp_path, "on")
    assert begun and ended == begun
    assert set(threading.enumerate()) == there  # nor does any other thread go on


def test_a_predictor_that_does_not_fit_into_memory_is_said_once(monkeypatch):
    log = Lines()
    rng, points, monitor, published = watched(200, log)

    def refused(*arguments, **more):
        raise ValueError("k1 - needs 9 GB")

    monkeypatch.setattr("stream_engine.counts.kernels.k1", refused)
    for _ in range(2):
        monitor.use_published(published)
        monitor._making.result()
        for _ in range(2):
            monitor.observe(as_batch(planted_triplets(rng, points, 300), 12), {})
        assert "k2" in monitor.tell()["predictors"]  # as soon as it is made, not only with the next fit
    monitor.close()
    assert [more["predictor"] for _, _, more in log.said if "predictor" in more] == ["k1"]
    assert "k1" not in monitor.tell()["predictors"]


def test_without_events_the_figures_become_those_of_newer_predictors(monkeypatch):
    """What the predictor before it was tested on is not said of the one that replaced it."""
    rng, points, monitor, published = watched(3000)
    made = prediction_monitor.predictor("adds3", published)
    monkeypatch.setattr(prediction_monitor, "_make", lambda *_: ({"embedding": (made, 0.0)}, {}))

    def current() -> dict:
        return monitor.tell()["predictors"].get("embedding", {}).get("all", {}).get("current", {})

    monitor.use_published(published)
    until(lambda: monitor.renew() or "embedding" in monitor._observer.predictors)
    monitor.observe(as_batch(planted_triplets(rng, points, 2000, 0.1), 12), {})
    assert current()["tested"] > 0
    monitor.use_published(published)
    until(lambda: monitor.renew() or not monitor.figures["predictors"]["embedding"]["all"].get("current"))
    assert monitor.figures["predictors"]["embedding"]["all"]["total"]["tested"] > 0
    monitor.close()
