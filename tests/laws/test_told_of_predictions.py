"""What a run says of its predictions before learning (`/progressive`, `/metrics`, `inspect`, the live page), counted
anew from the answers: of three parts, each predicted by the snapshot before it, in a window that holds the last two;
the newest snapshot predicted the last one alone."""

import json
from collections import defaultdict
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from stream_engine.commands.inspect import inspect, predictions
from stream_engine.evaluation import running_scores
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.input.settings import DriftSettings
from stream_engine.service.context import HttpContext
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.served import Lines, served
from tests.support.told import events, said

PARTS = (66, 101, 146, 200)  # events: the first are learned only, each part after them is predicted


def similarities(made: list[dict]) -> dict:
    """AddS-3 of the comparisons of three objects."""
    w: dict = defaultdict(int)
    for i, j, k, l in (rows for event in made for rows in said(event)):
        if i == k:
            for a, b, sign in ((i, j, 1), (j, i, 1), (i, l, -1), (l, i, -1)):
                w[a, b] += sign
    return w


@pytest.fixture(scope="module")
def run():
    """What a monitor of such a run says, its metrics, the counters of the state, and of each part the predictions of
    AddS-3: the kind of event, and 1 where the answer came as expected, 0 where it did not, 1/2 for a tie."""
    made, right = events(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running_scores, "WINDOW", 100)
        patch.setattr(running_scores, "WINDOW_PARTS", 4)
        metrics, engine = Metrics(CollectorRegistry()), Engine()
        monitor = PredictionMonitor(DriftSettings(), metrics, Lines())
        for begin, end in zip((0, *PARTS), PARTS):
            lines = "\n".join(map(json.dumps, made[begin:end])).encode()
            for batch in engine.learn_in_pieces(decoder("json", EventOptions())(lines)):
                monitor.observe(batch, engine.counters["progressive"])
            if begin:
                w = similarities(made[:begin])
                three = [
                    (event.get("type", "triplet"), rows)
                    for event in made[begin:end]
                    for rows in said(event)
                    if rows[0] == rows[2]
                ]
                margins = [(kind, w[a, near] - w[a, far]) for kind, (a, near, _, far) in three]
                right.append([(kind, 1.0 if m > 0 else 0.5 if m == 0 else 0.0) for kind, m in margins])
            if end == PARTS[-1]:
                monitor.end()  # nothing newer is served
            monitor.serve(engine.snapshot())
        figures = monitor.tell()
        monitor.close()
    yield SimpleNamespace(
        figures=figures, metrics=metrics, engine=engine, right=right, read=made[PARTS[0] :], made=made
    )


def expected(run) -> dict:
    """kind -> window -> the predictions of AddS-3."""
    windows = {"total": run.right, "rolling": run.right[1:], "current": run.right[2:]}
    found: dict = {}
    for window, parts in windows.items():
        for kind, share in (each for part in parts for each in part):
            for name in ("all", kind):
                found.setdefault(name, {}).setdefault(window, []).append(share)
    return found


def test_accuracies_are_those_of_each_kind_and_window(run):
    told = run.figures["predictors"]["adds3"]
    wanted = expected(run)
    assert len(wanted) == 4 and len({len(each["total"]) for each in wanted.values()}) == 4
    assert {kind: {*windows} for kind, windows in told.items()} == {kind: {*each} for kind, each in wanted.items()}
    for kind, windows in wanted.items():
        for window, shares in windows.items():
            found = told[kind][window]
            assert (found["tested"], found["accuracy"]) == (len(shares), pytest.approx(sum(shares) / len(shares)))


def test_figures_are_sums_over_bins(run):
    for predictor in run.figures["predictors"].values():
        for found in (each for windows in predictor.values() for each in windows.values()):
            bins, n = found["reliability"], found["tested"]
            assert sum(each["n"] for each in bins) == n
            assert sum(each["n"] * each["right"] for each in bins) == pytest.approx(n * found["accuracy"])
            apart = sum(each["n"] * abs(each["right"] - each["confidence"]) for each in bins)
            assert found["calibration_error"] == pytest.approx(apart / n)
            places = [each["confidence"] for each in bins]
            assert places == sorted(places) and places[0] >= 0.5 and places[-1] <= 1
            assert 0 < found["log_loss"] < 2


def test_all_comparisons_are_seen_and_so_few_all_sampled(run):
    seen = sum(len(said(event)) for event in run.read)
    assert (run.figures["seen"], run.figures["sampled"]) == (seen, seen)
    assert run.figures["drift"].keys() == {"loss", "contradictions"}
    assert all(each["alarms"] == 0 for each in run.figures["drift"].values())


def test_the_state_counts_what_the_newest_similarity_predicted(run):
    shares = [share for part in run.right for _, share in part]
    told = {"tested": len(shares), "correct": shares.count(1.0), "undecided": shares.count(0.5)}
    assert run.engine.counters["progressive"] == {"adds3": told}
    assert len({*told.values()}) == 3


def test_metrics_have_every_accuracy(run):
    found = {
        (each.labels["predictor"], each.labels["kind"], each.labels["window"]): each.value
        for family in run.metrics.registry.collect()
        if family.name.endswith("progressive_accuracy")
        for each in family.samples
    }
    assert found == {
        (name, kind, window): each["accuracy"]
        for name, kinds in run.figures["predictors"].items()
        for kind, windows in kinds.items()
        for window, each in windows.items()
    }


def test_http_says_what_the_run_noted(run, tmp_path):
    with served(tmp_path) as answering:
        answering.progressive = run.figures
        assert answering.http.get("/progressive").json() == json.loads(json.dumps(run.figures))


def test_inspect_shows_each_predictor_in_its_row(run, tmp_path):
    store = Store(tmp_path)
    store.publish(run.engine.snapshot()._replace(sequence=1))
    store.note("progressive", {"snapshot": 1, **run.figures})
    stated = inspect(str(tmp_path))["progressive"]
    assert stated == json.loads(json.dumps({"snapshot": 1, **run.figures}))
    about, _, *rows, alarms = predictions(stated)
    seen = sum(len(said(event)) for event in run.read)
    assert about == f"until snapshot 1; {seen} of {seen} comparisons sampled"
    assert alarms == "drift alarms: loss 0, contradictions 0"
    shown = {tuple(row.split()[:2]): row.split()[2:] for row in rows}
    for kind, windows in run.figures["predictors"]["adds3"].items():
        total, recent = windows["total"], windows["rolling"]
        three = (total["accuracy"], *(recent[name] for name in ("accuracy", "log_loss", "calibration_error")))
        assert shown["adds3", kind] == [str(total["tested"]), *(f"{each:.3f}" for each in three)]


def test_the_live_page_shows_the_best_that_was_tested_often_enough(run, tmp_path):
    """Since it was fitted, of all kinds together; what came before is not of the present model."""
    told = {"adds3": (0.91, 49), "adds4": (0.72, 50), "online": (0.68, 90)}
    figures: dict = {"predictors": {}}
    for name, (accuracy, n) in told.items():
        every = {"current": {"accuracy": accuracy, "tested": n}, "total": {"accuracy": 0.95, "tested": 900}}
        figures["predictors"][name] = {"all": every, "pick": {"current": {"accuracy": 0.97, "tested": n}}}
    live = LiveMetrics(
        HttpContext(tmp_path, Metrics(CollectorRegistry()), lambda: None, progressive=lambda: figures)
    ).now()
    assert (live["accuracy"], live["accuracy_n"], live["accuracy_of"]) == (0.72, 50, "since")
    embedding = Artifact("embedding", "", 1, {}, 0, {}, {"accuracy": 0.66})
    fitted = Published(run.engine.snapshot(), {"embedding": embedding})
    none = LiveMetrics(HttpContext(tmp_path, Metrics(CollectorRegistry()), lambda: fitted))
    assert (none.now()["accuracy"], none.now()["accuracy_of"]) == (0.66, "held_out")
