"""The whole scrape is a golden file: a renamed metric is seen. Counters follow the engine's exact counters."""

import re

import pytest

from stream_engine.data.comparisons import Triplet
from stream_engine.refits.sdp_clustering import solve
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
