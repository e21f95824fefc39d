"""What a run answers over HTTP: every document, its metrics, and what the live page moves."""

import io
import json
import os
import re
import time
from itertools import count

import pytest
from PIL import Image
from prometheus_client import CollectorRegistry, generate_latest

from stream_engine.service.http import live_questions
from stream_engine.service.http.history import SERIES, History
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.http.paths import READ, _is_json
from stream_engine.service.metrics import Metrics
from tests.support import told
from tests.support.approved import outline, unchanging
from tests.support.process import until
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


def test_newer(tmp_path, monkeypatch, approved):
    """Of snapshots that are newer than what was fitted, one after another; what is no question; files."""
    monkeypatch.setattr(live_questions, "MIN_SECONDS_BETWEEN", 3600.0)  # questions are not chosen anew
    lines, state = [], told.published()
    bodies = [
        {"questions": QUESTIONS, "model": "kernel_learning"},
        {"questions": [{"anchor": "d", "left": "a", "right": "zz"}]},
        {"questions": QUESTIONS, "model": "adds3"},
        {"questions": [{"anchor": "d", "left": "a"}]},
        {"questions": [{"anchor": "d", "left": "a", "right": "a"}]},
        {"question": QUESTIONS},
    ]
    files = ("cluster_answer.csv", "nothing.csv", "workers.csv")
    with served(tmp_path) as run:
        for sequence in (7, 9):
            snapshot = state.snapshot._replace(sequence=sequence, digest=f"{sequence:064}")
            run.published = state._replace(snapshot=snapshot)
            for path in ("/ask", "/ask", "/nearest"):
                answer = run.http.get(path, params={"n": 1} if path == "/ask" else {"object": "d", "k": 1})
                lines += [f"## {path} {answer.status_code}", *said(answer), ""]
        for body in bodies:
            answer = run.http.post("/predict", json=body)
            lines += [f"## /predict {body} {answer.status_code}", *said(answer), ""]
        answer = run.http.post("/predict", content="x")
        lines += [f"## /predict {answer.status_code}", *said(answer), ""]
        for headers in ({"Origin": "http://elsewhere"}, {"Content-Type": "text/plain"}, {"Host": "elsewhere"}):
            answer = run.http.post("/predict", content="{}", headers=headers)
            lines += [f"## /predict {headers} {answer.status_code}", *said(answer), ""]
        for name in files:
            answer = run.http.get(f"/export/{name}", follow_redirects=True)
            lines += [f"## /export/{name} {answer.status_code}", *answer.text.splitlines()[:3], ""]
        for path in ("/nothing", "/admin/pause", "/ask?m=3", "/object?name=d", "/object/picture?name=d"):
            answer = run.http.get(path)
            lines.append(f"{path} {answer.status_code} {answer.text.strip()[:200]}")
    assert unchanging("\n".join(lines)) == approved


def test_admin(tmp_path, approved):
    """What an operator asks for, and what a run that cannot do it says."""
    lines = []
    paths = ("snapshot", "pause", "resume", "refit?kind=spectral", "refit?kind=embedding", "refit?kind=x")
    with served(tmp_path, admin_token="a" * 40) as run:
        headers = {"Authorization": f"Bearer {'a' * 40}"}
        for published in (None, told.published()):
            run.published, run.running = published, ("embedding",)
            for path in (*paths, "log-level?level=loud"):
                answer = run.http.post(f"/admin/{path}", headers=headers)
                lines += [f"## {path} {answer.status_code}", *said(answer)]
                asked = run.requests
                lines += [f"asked: {asked.snapshot} {asked.paused} {sorted(asked.refits)}", ""]
        answer = run.http.post("/admin/pause")
        lines.append(f"without a token: {answer.status_code} {answer.text.strip()}")
    assert unchanging("\n".join(lines)) == approved


def test_metrics(approved):
    """Every counter of a state, from where a run began with it."""
    numbers = iter(range(3, 200, 4))
    before = {"events": 100, "comparisons": 300, "triplets": 310, "quadruplets": 20, "empty": 2, "history": []}
    before |= {"kinds": {"pick": 40}, "rejected": {"not_distinct": 7}, "guard": {"accepted": 90}, "lost": {"a": 5}}
    before |= {"dead_letters": {"lost": 1}}
    after = before | {name: before[name] + next(numbers) for name in ("triplets", "quadruplets", "empty")}
    after["kinds"] = {kind: 40 + next(numbers) for kind in ("triplet", "pick", "label")}
    after["rejected"] = {reason: 7 + next(numbers) for reason in ("not_distinct", "missing_field")}
    after["guard"] = {verdict: 90 + next(numbers) for verdict in ("accepted", "duplicate", "contradiction", "cycle")}
    after["lost"] = {partition: 5 + next(numbers) for partition in "ab"}
    after["dead_letters"] = {"lost": 1 + next(numbers), "removed": next(numbers)}
    after["history"] = [{"did": did} for did in ("seek", "forget", "seek")]
    metrics = Metrics(CollectorRegistry(), partitions=2)
    metrics.expect(["a", "c"], ["spectral"])
    metrics.start_from(before)
    metrics.follow(after)
    metrics.set_refit_progress("clusters", {"done": 3, "total": 12, "gap": 0.25, "name": "x", "impossible": True})
    metrics.start_at(11, os.stat_result((0, 0, 0, 0, 0, 0, 123, 0, 1_700_000_000, 0)))
    for name, value in {"a": 5, "b": 8, "c": 2}.items():
        metrics.lag.set(name, value)
        metrics.lag_seconds.set(name, 10 * value)
    shown = [line for line in generate_latest(metrics.registry).decode().splitlines() if not line.endswith(" 0.0")]
    assert "\n".join(line for line in shown if line.startswith("stream_engine") and "_build_" not in line) == approved


def test_problems(tmp_path, approved):
    """What a person should see to: sentences of the live page."""
    lines = []
    with served(tmp_path) as run:
        figures = LiveMetrics(run.context)
        for why, lag, stalled, share in (
            ("the source is not open yet", 0, 0, 0.0),
            ("", 90, 0, 0.05),
            ("", 900, 0, 0.26),
            ("", 0, 1, 0.0),
            ("", 30, 1, 0.0),
            ("", float("nan"), 0, 0.0),
        ):
            run.why = why
            run.metrics.lag.set("a", lag)
            run.metrics.stalled.set(stalled)
            run.metrics.rejected_share.set(share)
            now = figures.now()
            lines += [f"## {why or (lag, stalled, share)}", *outline({key: now[key] for key in PROBLEMS})]
    assert unchanging("\n".join(lines)) == approved


PROBLEMS = ("lag", "ready", "behind", "refusing", "objects", "snapshot", "accuracy", "wrong")


def test_history(approved):
    """The moments of a long run: every second one goes, and the newest stays."""
    moments = ({name: number * (10 + at) for at, name in enumerate(SERIES)} for number in count())
    history, lines = History(lambda: next(moments), every=3600), list[str]()
    until(lambda: history.so_far()["time"], what="the first moment")
    for size in (3, 235, 2, 60, 61):
        for _ in range(size):
            history.take()
        series = history.so_far()
        lines += [f"{name}: {len(each)}: {each[:3]} ... {each[-2:]}" for name, each in series.items()]
    history.close()
    assert "\n".join(lines) == approved


def test_pictures(tmp_path, approved):
    """Objects with a picture, with a text, with a file that is none."""
    Image.new("RGB", (300, 120), (200, 30, 30)).save(tmp_path / "d.png")
    Image.new("LA", (10, 40), (90, 128)).save(tmp_path / "a.png")
    (tmp_path / "c.png").write_text("none")
    (tmp_path / "b.txt").write_text("a text")
    lines = []
    with served(tmp_path, objects=str(tmp_path)) as run:
        for path in ("/object", "/object?name=d", "/object?name=b", "/object?name=x"):
            lines.append(f"{path} {run.http.get(path).text}")
        for name in "dacbx":
            answer = run.http.get("/object/picture", params={"name": name})
            lines.append(f"picture of {name}: {answer.status_code} {answer.headers['content-type']}")
            if answer.status_code == 200:
                made = Image.open(io.BytesIO(answer.content))
                lines.append(f"  {made.format} {made.size} {made.mode}")
            else:
                lines.append(f"  {answer.text.strip()}")
    assert unchanging("\n".join(lines)) == approved


def said(answer) -> list[str]:
    """A document, or a refusal."""
    return [*outline(answer.json())] if answer.headers["content-type"].startswith("application/json") else [answer.text]
