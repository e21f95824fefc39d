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


def counted(more: int) -> dict:
    """Counters of a state, no two of them alike, or so much more of each."""
    numbers = iter(range(100, 10_000, 7))

    def each(*names: str) -> dict[str, int]:
        return {name: next(numbers) + more for name in names}

    made = each("events", "comparisons", "triplets", "quadruplets", "empty")
    made |= {"kinds": each("triplet", "pick", "label"), "rejected": each("bad_time", "not_distinct")}
    made |= {"guard": each("accepted", "duplicate", "contradiction", "cycle"), "lost": each("votes/0", "votes/1")}
    made |= {"dead_letters": each("lost", "removed")}
    return made | {"history": [{"did": did} for did in ("seek", "forget", "forget", "seek", "seek") * (1 + (more > 0))]}


def series(counters: dict) -> dict[tuple, int]:
    """What /metrics has of counters: instrument and label -> number."""
    did = [each["did"] for each in counters["history"]]
    of = {"events": "kinds", "rejected": "rejected", "guard_verdicts": "guard", "records_lost": "lost"}
    found = {(name, label): n for name, what in of.items() for label, n in counters[what].items()}
    found |= {("comparisons", kind): counters[f"{kind}s"] for kind in ("triplet", "quadruplet")}
    found |= {("history", name): did.count(name) for name in did} | {("empty_values", ""): counters["empty"]}
    return found | {(f"dead_letters_{what}", ""): counters["dead_letters"][what] for what in ("lost", "removed")}


def scraped(metrics: Metrics) -> dict[tuple, float]:
    """The counters that are not 0, but of the process."""
    samples = [sample for family in metrics.registry.collect() if family.type == "counter" for sample in family.samples]
    return {
        (name, "".join(sample.labels.values())): sample.value
        for sample in samples
        if sample.value and (name := sample.name.removeprefix("stream_engine_").removesuffix("_total")) in NAMES
    }


NAMES = {name for name, _ in series(counted(0))}


def test_every_counter_of_a_state_has_its_series():
    metrics = Metrics()
    metrics.follow(counted(0))
    assert scraped(metrics) == series(counted(0))
    metrics.follow(counted(5))
    assert scraped(metrics) == series(counted(5))


def test_a_restored_state_counts_what_came_since_and_all_losses_and_deeds():
    metrics = Metrics()
    metrics.start_from(counted(0))
    whole = {each: n for each, n in series(counted(0)).items() if each[0] in ("records_lost", "history")}
    assert scraped(metrics) == whole
    assert metrics.at_start == {"events": 100, "comparisons": 107, "rejected": sum(counted(0)["rejected"].values())}
    metrics.follow(counted(5))
    later = {each: n for each, n in series(counted(5)).items() if each in whole}
    assert scraped(metrics) == dict.fromkeys(series(counted(0)), 5) | later


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
