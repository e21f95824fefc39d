"""The whole scrape is a golden file: a renamed metric is seen. Counters follow the engine's exact counters."""

import re

import pytest

from connectors import LostRecords
from stream_engine.data.comparisons import Triplet
from stream_engine.refits.sdp_clustering import solve
from stream_engine.service.learning import take_loss
from stream_engine.service.metrics import Metrics
from stream_engine.state.engine import Engine
from tests.conftest import ROOT
from tests.support.planted_similarities import planted_adds3

GOLDEN = ROOT / "tests" / "golden" / "scrape.txt"


def names(metrics: Metrics) -> str:
    """name, type and label names of every instrument, without values."""
    lines = []
    for family in metrics.registry.collect():
        if family.name.startswith("process_"):
            continue
        lines.append(f"{family.name} {family.type}")
    return "\n".join(sorted(lines)) + "\n"


def test_the_names_are_the_golden_ones():
    assert names(Metrics()) == GOLDEN.read_text()


def test_counters_follow_and_start_where_the_state_was():
    engine = Engine()
    metrics = Metrics()
    engine.learn_many([Triplet("a", "b", "c"), Triplet("a", "c", "b")])
    metrics.follow(engine.counters)
    metrics.follow(engine.counters)
    value = metrics.registry.get_sample_value
    assert value("stream_engine_comparisons_total", {"kind": "triplet"}) == 2
    assert value("stream_engine_guard_verdicts_total", {"verdict": "contradiction"}) == 1
    later = Metrics()
    later.start_from(engine.counters)
    engine.learn_many([Triplet("a", "c", "b")])
    later.follow(engine.counters)
    assert later.registry.get_sample_value("stream_engine_comparisons_total", {"kind": "triplet"}) == 1


def test_many_partitions_share_series_that_only_grow():
    """Whether a partition has series of its own is decided when it is first told of."""
    metrics, value = Metrics(partitions=2), {}
    for partition, lag, seconds in (("a", 1, 9), ("b", 2, 1), ("c", 4, 5), ("d", 8, 3), ("c", 16, 4), ("a", 0, 0)):
        metrics.records.labels(metrics.partitions.of(partition)).inc(lag)
        metrics.lag.set(partition, lag)
        metrics.position.set(partition, lag)
        metrics.lag_seconds.set(partition, seconds)
    for name in ("records_total", "lag_records", "position", "lag_seconds"):
        value[name] = {
            sample.labels["partition"]: sample.value
            for family in metrics.registry.collect()
            for sample in family.samples
            if sample.name == f"stream_engine_{name}"
        }
    assert value["records_total"] == {"a": 1, "b": 2, "other": 28}
    assert value["lag_records"] == value["position"] == {"a": 0, "b": 2, "other": 24}
    assert value["lag_seconds"] == {"a": 0, "b": 1, "other": 4}


def test_thousands_of_partitions_make_less_than_three_hundred_series():
    metrics, engine = Metrics(), Engine()
    engine.learn_many([Triplet("a", "b", "c")])
    engine.counters["lost"] = {f"topic/{n}": 1 for n in range(100)}
    metrics.follow(engine.counters)
    for n in range(3000):
        metrics.records.labels(metrics.partitions.of(f"topic/{n}")).inc()
        for gauge in (metrics.lag, metrics.lag_seconds, metrics.position):
            gauge.set(f"topic/{n}", n)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    assert len(samples) < 300 and not [sample for sample in samples if sample.name.endswith("_created")]


def test_a_running_refit_shows_its_iteration_its_gap_and_its_bound():
    metrics = Metrics()

    def tell(done, total, **figures):
        metrics.refit_told("sdp_clustering", {"done": done, "total": total} | figures)

    made = solve(planted_adds3(30, 3, 2.0)[0], k=5, tol=1e-4, progress=tell)
    value = metrics.registry.get_sample_value
    assert value("stream_engine_refit_progress_ratio", {"refit": "sdp_clustering"}) == made.iterations / 3000
    for figure, last in (("done", made.iterations), ("bound", made.upper_bound), ("objective", made.objective)):
        assert value("stream_engine_refit_figure", {"refit": "sdp_clustering", "figure": figure}) == pytest.approx(
            last, rel=1e-9
        )
    assert 0 < value("stream_engine_refit_figure", {"refit": "sdp_clustering", "figure": "gap"}) <= 1e-4
    metrics.refit_told("spectral", {"impossible": True})
    assert value("stream_engine_refit_figure", {"refit": "spectral", "figure": "impossible"}) is None


def test_naming_rules():
    for family in Metrics().registry.collect():
        if family.name.startswith("process_"):
            continue
        assert re.fullmatch(r"stream_engine_[a-z0-9_]+", family.name) and family.documentation.endswith(".")
        assert not re.search(r"(milliseconds|minutes|_kb|_mb)$", family.name)


def test_counters_of_closed_sets_are_there_at_zero():
    """`increase()` sees no first failure of a counter that begins with it."""
    metrics = Metrics()
    metrics.expect(["votes/0"], ["spectral"])
    there = {
        ("rejected", "reason", "bad_time"),
        ("events", "kind", "label"),
        ("comparisons", "kind", "quadruplet"),
        ("guard_verdicts", "verdict", "cycle"),
        ("drifts", "signal", "loss"),
        ("history", "did", "offsets lost"),
        ("records_lost", "partition", "votes/0"),
        ("refit_failures", "refit", "spectral"),
    }
    for name, label, value in there:
        assert metrics.registry.get_sample_value(f"stream_engine_{name}_total", {label: value}) == 0, name


def test_what_was_lost_or_done_between_two_runs_is_told_in_full():
    engine = Engine()
    engine.learn_many([Triplet("a", "b", "c")])
    engine.lost["votes/0"] = 7
    engine.note("seek", partition="votes/0")
    metrics = Metrics()
    metrics.start_from(Engine.restore(engine.snapshot()).counters)
    value = metrics.registry.get_sample_value
    assert value("stream_engine_records_lost_total", {"partition": "votes/0"}) == 7
    assert value("stream_engine_history_total", {"did": "seek"}) == 1
    assert value("stream_engine_comparisons_total", {"kind": "triplet"}) == 0


def test_a_loss_is_counted_and_noted_and_one_that_nobody_can_count_is_noted():
    engine, metrics = Engine(), Metrics()
    for records in (4, 3, None):
        take_loss(engine, LostRecords("votes/0", 1, 5, records, "retention has deleted it"))
    metrics.follow(engine.counters)
    assert engine.lost == {"votes/0": 7} and [deed["records"] for deed in engine.history] == [4, 3, None]
    assert engine.history[0].items() >= {"did": "offsets lost", "partition": "votes/0", "at": 1, "to": 5}.items()
    value = metrics.registry.get_sample_value
    assert value("stream_engine_records_lost_total", {"partition": "votes/0"}) == 7
    assert value("stream_engine_history_total", {"did": "offsets lost"}) == 3
