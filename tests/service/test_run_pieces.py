"""The pieces of a run where a disk does not do as it is told."""

import re
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from connectors.disk import Disk
from connectors.files.dead_letters import DeadLetterFile, segment_name
from stream_engine import Engine, Triplet
from stream_engine.data.progress_bars import Bars
from stream_engine.input.settings import DriftSettings, SnapshotSettings
from stream_engine.service import source_health
from stream_engine.service.context import Context, RunFailed
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.repair import recount_differences
from stream_engine.service.snapshot_publisher import SnapshotPublisher
from stream_engine.service.source_health import SourceHealth
from stream_engine.state.store import Store
from tests.support.run_pieces import BusyFile, World, block_of
from tests.support.served import Lines


class FullDisk(Disk):
    """Refuses to write while `full`."""

    def __init__(self):
        self.full = True

    def write_new(self, path, chunks):
        if self.full:
            raise OSError(28, "No space left on device")
        super().write_new(path, chunks)


def test_a_full_disk_is_told_and_the_next_snapshot_is_due(tmp_path):
    disk, world = FullDisk(), World(BusyFile(0))
    monitor = PredictionMonitor(DriftSettings(), world.metrics, world.log)
    publisher = SnapshotPublisher(
        world.engine,
        Store(tmp_path, disk),
        SnapshotSettings(),
        world.dead_letters,
        monitor,
        world.health,
        world.context,
    )
    try:
        assert not publisher.has_changed() and publisher.due("signal") == ""
        assert publisher.seconds_until_due() == pytest.approx(SnapshotSettings().interval, abs=20)
        world.engine.learn_one(Triplet("a", "b", "c"))
        world.engine.positions = {"file": (1, 0)}
        assert publisher.due("signal") == "signal" and publisher.may_try()
        publisher.take("signal")
        publisher.wait()
        assert publisher.collect() is None and "No space left" in str(publisher.problem)
        assert publisher.has_changed() and not publisher.may_try()
        (failure,) = world.said("retry_seconds")
        assert failure["retry_seconds"] > 0 and world.metrics.registry.get_sample_value(
            "stream_engine_snapshot_failures_total"
        )
        disk.full = False
        publisher.take("signal")
        publisher.wait()
        publication = publisher.collect()
        assert publication.snapshot.sequence == 2
        assert publication.size > 0
        assert publisher.problem is None
        assert not publisher.has_changed() and publisher.collect() is None
        assert world.engine.sinks == {"file": 0}
    finally:
        publisher.close()
        monitor.close()


def test_a_full_disk_holds_the_stream_up_until_it_can_take_more(monkeypatch):
    monkeypatch.setattr(source_health, "STALL_SECONDS", 0.1)
    file = BusyFile(1)
    world = World(file)
    began = time.monotonic()
    world.dead_letters.keep(block_of([b'{"anchor": "a"}']), 0)
    assert time.monotonic() - began > 0.4
    assert [letter.reason for letter in file.letters] == ["missing_field"]  # once, although it was asked twice
    assert [more["problem"] for more in world.said("problem")] == ["full"]
    assert {more["where"] for more in world.said("where")} == {"dead letters"}


class ReadOnlyDisk(Disk):
    """Nothing can be removed."""

    def remove(self, path) -> None:
        raise OSError(30, "Read-only file system", path)


def test_dead_letters_that_cannot_be_removed_are_told(tmp_path):
    world = World(DeadLetterFile(tmp_path, disk=ReadOnlyDisk()))
    (tmp_path / segment_name(1)).touch()
    world.dead_letters.after_publishing({"removed_before": 1})
    assert not world.log.said
    world.dead_letters.after_publishing({"removed_before": 2})
    assert world.log.events("warning") and segment_name(1) in world.said("problem")[0]["problem"]


def test_a_dead_letter_that_is_missing_is_counted_as_lost_once(tmp_path):
    """Neither those that were removed nor those of an earlier loss again."""
    world = World(DeadLetterFile(tmp_path, 500))
    world.engine.counters["rejected"].update(not_json=7, not_distinct=3)
    world.engine.counters["dead_letters"] = {"lost": 3, "removed": 2}
    world.dead_letters.count_lost(world.engine)
    assert world.engine.counters["dead_letters"] == {"lost": 8, "removed": 2}
    assert world.said("letters")[0]["letters"] == 5


def test_a_request_to_stop_ends_the_waiting():
    world = World(BusyFile(1000))
    world.requests.stop = True
    world.dead_letters.keep(block_of([b'{"anchor": "a"}']), 0)
    assert world.health.not_ready() == "stopping"


def test_too_many_refusals_end_the_run():
    world = World(BusyFile(0))
    good, bad = b'{"anchor": "a", "near": "b", "far": "c"}', b'{"anchor": "a"}'
    world.dead_letters.keep(block_of([bad] * 99), 4)  # too few to judge
    world.dead_letters.keep(block_of([good] * 100), 4)
    world.dead_letters.keep(block_of([good]), 4)
    with pytest.raises(RunFailed, match="file: 102.*203.*4"):
        world.dead_letters.keep(block_of([bad] * 3), 4)
    assert len(world.said("reason")) == 1


def test_every_source_that_is_away_is_named():
    health = SourceHealth(Engine(), Context(Metrics(CollectorRegistry()), Lines()))
    for uri, ready, why in (("kafka://a", False, "no leader"), ("file:b", True, ""), ("http://c", False, "")):
        health.add(uri, SimpleNamespace(ready=lambda ready=ready: ready, away=lambda why=why: why))
    said = health.not_ready()
    assert "kafka://a (no leader)" in said
    assert "http://c" in said
    assert "file:b" not in said


class MemorySource:
    """All of it is in memory."""

    one_by_one = False

    def lag(self) -> dict[str, int]:
        return {"t/0": 0}

    def lag_seconds(self) -> dict[str, float]:
        return {}


def test_while_the_first_block_is_compiled_lag_is_unknown_instead_of_none():
    world = World(BusyFile(0))
    source = MemorySource()
    world.health.look(source)
    lag = partial(world.metrics.registry.get_sample_value, "stream_engine_lag_records", {"partition": "t/0"})
    assert lag() == 0
    world.health.starting()
    assert np.isnan(lag())
    world.health.look(source)
    assert lag() == 0


def test_a_bar_shows_what_is_done_of_what_is_to_do(monkeypatch):
    shown = []
    bars = Bars()
    monkeypatch.setattr(bars, "show", lambda *told: shown.append(told))
    bars.refits({"spectral": {"done": 2, "total": 5, "gap": 0.1}})
    assert shown == [("spectral", 2, 5, {"gap": 0.1})]


def test_a_recount_says_which_side_has_how_many_entries():
    ours, theirs = {"n": np.arange(3), "w": np.array([1, 2, 3, 4])}, {"n": np.arange(5), "w": np.array([1, 2, 9, 9])}
    lines = list(recount_differences._arrays("counts", ours, theirs))
    assert [re.findall(r"\d+", line) for line in lines] == [["3", "5"], ["2", "4"]]
