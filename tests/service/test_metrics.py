"""The whole scrape is a golden file: a renamed metric is seen. Counters follow the engine's exact counters."""

from stream_engine.data.comparisons import Triplet
from stream_engine.service.metrics import Metrics
from stream_engine.state.engine import Engine
from tests.conftest import ROOT
from tests.support.process import jsonl
from tests.support.served import ran

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


def test_a_run_begins_with_the_gauges_of_its_state(tmp_path):
    """Nothing is published by a run that reads nothing new; objects and the newest snapshot are those of the state."""
    source = jsonl(
        tmp_path / "a.jsonl",
        ['{"anchor": "a", "near": "b", "far": "c"}', '{"type": "label", "object": "a", "label": "x"}'],
    )
    before, after = (ran(tmp_path / "s", source)[0].registry.get_sample_value for _ in range(2))
    for name in ("snapshot_sequence", "snapshot_bytes", "objects", "labelled_objects"):
        assert after(f"stream_engine_{name}") == before(f"stream_engine_{name}") > 0, name
    published = "stream_engine_snapshot_published_timestamp_seconds"
    assert abs(after(published) - before(published)) < 5
