"""What a run answers over HTTP: every document, its metrics, and what the live page moves."""

import json
import re
import time

import pytest

from stream_engine.service.http.paths import READ, _is_json
from tests.support import told
from tests.support.approved import outline, unchanging
from tests.support.served import predicted, served

ASKED = {
    "/nearest": [{"object": "d", "k": 3}, {"object": "é"}, {"object": "nobody"}, {"object": "d", "k": 0}],
    "/object": [{"name": "d"}, {"name": "zz"}],
    "/ask": [{"n": 2}, {"n": 1, "participant": "w1"}, {"n": 999}],
}
QUESTIONS = [{"anchor": "d", "left": "a", "right": "c"}, {"near": ["d", "a"], "far": ["b", "f"]}]
SPEAKS = {"/openapi.json", "/history"}  # of the program, of the time
MOVING = ("age", "time", "rate", "quiet")  # with every second
OF_THE_MACHINE = re.compile(r"^(?:#|python_|process_)|_created|seconds|_bytes|_info|timestamp")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run that tells no two numbers alike; it read 100 events before it was started anew."""
    (tmp_path / "objects.csv").write_text("object,text\nd,a text\n")
    with served(tmp_path, objects=str(tmp_path / "objects.csv")) as run:
        before = {"events": 100, "comparisons": 300, "rejected": {"not_distinct": 7}}
        counted = {key: {} for key in ("kinds", "guard", "lost", "dead_letters")} | {"history": [], "empty": 0}
        metrics = run.metrics
        metrics.start_from(counted | before | {"triplets": 310, "quadruplets": 20})
        metrics.events.labels("triplet").inc(60)
        metrics.comparisons.labels("quadruplet").inc(21)
        metrics.rejected.labels("missing_field").inc(30)
        metrics.objects.set(12)
        metrics.lag.set("a", 5)
        metrics.lag.set("b", 8)
        metrics.drifts.labels("accuracy").inc(2)
        metrics.set_refit_progress("sdp_clustering", {"done": 3, "total": 4, "gap": 0.5})
        metrics.snapshot_time.set(time.time() - 50)
        run.published, run.running = told.published(), ("sdp_clustering", "embedding")
        run.failed = {"spectral": "spectral: why", "classify": "classify: why"}
        figures = predicted(online=(0.6, 70), adds3=(0.75, 60), embedding=(0.7, 80))
        figures["predictors"]["adds3"]["all"]["total"] = {"accuracy": 0.9, "tested": 99}
        monkeypatch.setattr(run, "progressive", figures)
        yield run


def test_documents(run, approved):
    lines = []
    for path in (path for path, each in READ.items() if _is_json(each.gives) and path not in SPEAKS):
        for more in ASKED.get(path, [{}]):
            if path == "/predict":
                answer = run.http.post(path, json={"questions": QUESTIONS})
            else:
                answer = run.http.get(path, params=more)
            lines += [f"## {path} {more or ''} {answer.status_code}", *said(answer), ""]
    assert unchanging("\n".join(lines)) == approved


def test_nothing_yet(tmp_path, approved):
    """Before the first snapshot."""
    lines = []
    with served(tmp_path) as run:
        run.why = "the source is not open yet"
        for path in (path for path, each in READ.items() if _is_json(each.gives) and path not in SPEAKS):
            answer = run.http.post(path, json={"questions": QUESTIONS}) if path == "/predict" else run.http.get(path)
            lines += [f"## {path} {answer.status_code}", *said(answer), ""]
        answer = run.http.get("/readyz")
        lines.append(f"/readyz {answer.status_code} {answer.text.strip()}")
    assert unchanging("\n".join(lines)) == approved


def test_live(run, approved):
    lines = []
    with run.http.stream("GET", "/live") as answer:
        said = next(line for line in answer.iter_lines() if line.startswith("data: "))
        moved = json.loads(said.removeprefix("data: "))
        lines += [*outline({key: each for key, each in moved.items() if key not in MOVING}), ""]
    for path in ("/healthz", "/readyz"):
        lines.append(f"{path}: {run.http.get(path).text.strip()}")
    scraped = run.http.get("/metrics").text.splitlines()
    lines += sorted(line for line in scraped if not OF_THE_MACHINE.search(line) and not line.endswith(" 0.0"))
    assert unchanging("\n".join(lines)) == approved


def said(answer) -> list[str]:
    """A document, or a refusal."""
    return [*outline(answer.json())] if answer.headers["content-type"].startswith("application/json") else [answer.text]
