"""The page of a running engine over real sockets: what it says, to whom, how often, and what it costs the others."""

import io
import json
import time

import httpx
import pytest
from PIL import Image

from stream_engine.input.settings import BadSettings
from stream_engine.report.page import shell, shell_policy
from stream_engine.service.context import HttpContext
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.http.history import MAX_MOMENTS, SERIES, History
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.metrics import Metrics
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine as StateEngine
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.process import until
from tests.support.reported import QUICK, answers, state
from tests.support.served import predicted, served


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return state(tmp_path_factory.mktemp("live"), answers(10, 900), config=QUICK)


def messages(client: httpx.Client, n: int) -> list[dict]:
    """The first n messages that a viewer gets."""
    found = []
    with client.stream("GET", "/live") as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
                if len(found) == n:
                    return found
    return found


def test_the_shell_is_the_same_for_everybody_and_its_policy_is_a_header(tmp_path):
    with served(tmp_path) as run:
        answer = run.http.get("/")
        assert answer.status_code == 200 and answer.text == shell()
        policy = answer.headers["content-security-policy"]
        assert policy.startswith(shell_policy()) and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "connect-src 'self'" in policy


@pytest.mark.parametrize("tested, said", [(3, None), (49, None), (50, 1.0)])
def test_of_a_few_answers_no_accuracy_is_told(tested, said, tmp_path):
    """The best of those that were tested often enough."""
    figures = predicted(adds3=(1.0, tested), online=(0.9, tested))
    live = LiveMetrics(HttpContext(tmp_path, Metrics(), lambda: None, progressive=lambda: figures))
    assert live.now()["accuracy"] == said
    figures["predictors"]["online"]["all"]["current"]["tested"] = 50
    assert (live.now()["accuracy"], live.now()["accuracy_n"]) == (said or 0.9, 50)


def test_where_none_came_since_the_fit_the_accuracy_is_of_held_out_comparisons(tmp_path):
    """The figures of earlier predictors stay in the totals alone."""
    figures = {"predictors": {"embedding": {"all": {"total": {"accuracy": 0.95, "tested": 900}}}}}
    embedding = Artifact("embedding", "", 1, {}, 0, {}, {"accuracy": 0.66, "held_out_comparisons": 120})
    published = Published(StateEngine().snapshot(), {"embedding": embedding})
    now = LiveMetrics(HttpContext(tmp_path, Metrics(), lambda: published, progressive=lambda: figures)).now()
    assert (now["accuracy"], now["accuracy_n"], now["accuracy_of"]) == (0.66, 120, "held_out")


def test_what_moves_is_what_the_metrics_say(tmp_path):
    with served(tmp_path) as run:
        run.metrics.events.labels("triplet").inc(70)
        run.metrics.rejected.labels("not_distinct").inc(30)
        run.metrics.objects.set(12)
        run.metrics.lag.set("a", 5)
        run.metrics.lag.set("b", 7)
        run.metrics.set_refit_progress("sdp_clustering", {"done": 3, "total": 4, "gap": 0.5})
        run.progressive = predicted(online=(0.75, 80))
        run.running, run.why = ("sdp_clustering",), "source not reachable: x"
        run.failed = {"embedding": "embedding: no room\nand more"}
        (said,) = messages(run.http, 1)
    assert said["events"] == 70
    assert said["refused"] == 30
    assert said["objects"] == 12
    assert said["lag"] == 12
    assert not said["ready"]
    assert said["failed"] == ["embedding"]
    assert said["accuracy"] == 0.75
    assert not said["objects_shown"]
    away, failed = said["wrong"]
    assert "x" in away and states(failed, "embedding … no room")
    assert said["refits"] == [{"kind": "sdp_clustering", "done": 0.75, "gap": 0.5}]
    assert said["snapshot"] == 0
    assert said["age"] is None
    assert said["page"] is None


def test_while_the_first_block_is_compiled_the_page_says_that_it_starts_and_nothing_of_zeros(tmp_path):
    metrics, heartbeat = Metrics(), Heartbeat()
    metrics.lag.set("a", 0)
    live = LiveMetrics(HttpContext(tmp_path, metrics, lambda: None, heartbeat=heartbeat))
    assert live.now()["starting"] is False and live.now()["lag"] == 0
    with heartbeat.block():
        now = live.now()
    assert now["starting"] is True and now["lag"] is None
    heartbeat.warm = True
    with heartbeat.block():
        assert live.now()["starting"] is False


def test_rate_and_behind_follow_the_clock_and_refusing_the_metric(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    metrics = Metrics()
    figures = LiveMetrics(HttpContext(tmp_path, metrics, lambda: None))
    assert figures.now()["rate"] == 0.0
    now[0] += 2.0
    metrics.event_rate.add(50)
    metrics.lag.set("a", 100)
    first = figures.now()
    assert first["rate"] == 25.0
    assert not first["refusing"]
    assert not first["behind"]
    assert first["wrong"] == []
    metrics.lag.set("a", 25 * 60 + 1000)
    now[0] += 1.0
    metrics.event_rate.add(25)
    metrics.rejected_share.set(0.5)
    second = figures.now()
    assert second["refusing"] and second["behind"]
    behind, rejected = second["wrong"]
    assert states(behind, "2,500 … 2 minutes") and states(
        rejected, f"50 % … stream-engine dead-letters list --state {tmp_path}"
    )
    assert rejected.endswith(str(tmp_path))  # to be copied as it is
    metrics.lag.set("a", 0)
    metrics.stalled.set(1)
    now[0] += 1.0
    assert figures.now()["wrong"][0] not in second["wrong"]
    metrics.rejected_share.set(0.0)
    now[0] += 43.0
    later = figures.now()
    assert (later["rate"], later["quiet"], later["refusing"]) == (0.0, 44.0, False) and rejected not in later["wrong"]


def test_history_holds_the_whole_run_in_few_moments_and_the_newest_among_them():
    moments = iter(range(10**6))

    def figures() -> dict:
        number = next(moments)
        return {"time": number, "events": 2 * number, "refused": 0, "lag": None, "accuracy": 0.5, "drifts": 0}

    history = History(figures, every=3600.0)
    until(lambda: history.so_far()["time"])
    for _ in range(5 * MAX_MOMENTS):
        history.take()
        found = history.so_far()
        times = found["time"]
        assert len(times) < MAX_MOMENTS
        assert times == sorted(set(times))
        assert times[0] == 0
        assert found["events"] == [2 * t for t in times] and set(found["lag"]) == {None}
    assert times[-1] == 5 * MAX_MOMENTS and len(times) >= MAX_MOMENTS // 2 - 1
    history.close()


def test_history_is_served_and_grows(tmp_path):
    with served(tmp_path) as run:
        run.metrics.events.labels("triplet").inc(7)
        told = until(lambda: (got := run.http.get("/history").json()) and got["events"][-1:] == [7] and got)
    assert set(told) == set(SERIES) and len({len(values) for values in told.values()}) == 1


@pytest.fixture
def pictured(tmp_path):
    """A table of three objects: two with a picture, one of which is no picture; and a secret beside the folder."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGBA", (400, 200), (200, 0, 0, 128)).save(folder / "a.png")
    (folder / "b.png").write_text("<svg onload='alert(1)'></svg>")
    (tmp_path / "secret.png").write_bytes((folder / "a.png").read_bytes())
    (folder / "objects.csv").write_text("object,image,text\na & b,a.png,\nbroken,b.png,\ntold,,only <b>text</b>\n")
    return folder


def test_objects_are_shown_by_name_and_nothing_that_is_not_listed(tmp_path, pictured):
    with served(tmp_path, objects=str(pictured / "objects.csv")) as run:
        answer = run.http.get("/object/picture", params={"name": "a & b"})
        assert answer.headers["content-type"] == "image/jpeg" and answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'"
        with Image.open(io.BytesIO(answer.content)) as small:
            assert small.format == "JPEG" and small.size == (160, 80)
        assert run.http.get("/object/picture", params={"name": "a & b"}).content == answer.content
        assert run.http.get("/object", params={"name": "a & b"}).json() == {"picture": True, "text": ""}
        assert run.http.get("/object", params={"name": "told"}).json() == {"picture": False, "text": "only <b>text</b>"}
        assert run.http.get("/object", params={"name": "nobody"}).json() == {"picture": False, "text": ""}
        for name in ("nobody", "told", "broken", "a.png", "../secret.png", str(tmp_path / "secret.png"), ""):
            refused = run.http.get("/object/picture", params={"name": name})
            assert refused.status_code == 404 and refused.headers["content-type"].startswith("text/plain"), name
        assert run.http.get("/object/picture").status_code == 404
        assert run.http.get("/object/picture/..%2f..%2fsecret.png").status_code == 404
        assert messages(run.http, 1)[0]["objects_shown"]
        (pictured / "a.png").unlink()
        assert run.http.get("/object/picture", params={"name": "a & b"}).content == answer.content  # kept


def test_a_listed_picture_that_points_elsewhere_is_refused_at_the_start(tmp_path, pictured):
    (pictured / "c.png").symlink_to(tmp_path / "secret.png")
    (pictured / "objects.csv").unlink()
    with pytest.raises(BadSettings, match="http.objects: .*'c.png'"):
        served(tmp_path, objects=str(pictured)).__enter__()
    with pytest.raises(BadSettings, match="http.objects: .*No such file"):
        served(tmp_path, objects=str(tmp_path / "nowhere")).__enter__()


def test_the_page_is_made_when_somebody_looks_and_again_for_a_newer_snapshot(study):
    published = Store(study).published()
    with served(study) as run:
        assert run.http.get("/page").status_code == 404
        run.published = published
        with httpx.Client(base_url=f"http://{run.address}", timeout=400) as other:
            answer = other.get("/page")
            assert answer.status_code == 200
            assert 'id="data"' in answer.text
            assert "w9" not in answer.text
            again = other.get("/page", headers={"If-None-Match": answer.headers["etag"]})
            assert again.status_code == 304 and not again.content
            until(lambda: messages(other, 2)[-1]["page"] is not None)
            pdf = other.get("/figures/map.pdf")
            assert pdf.headers["content-type"] == "application/pdf" and pdf.content.startswith(b"%PDF")
            assert other.get("/figures/nothing.pdf").status_code == 404
            assert other.get("/figures/..%2Fpage.html").status_code == 404


def test_workers_are_shown_only_where_that_is_set(study):
    with served(study, show_workers=True) as run:
        run.published = Store(study).published()
        assert "w9" in run.http.get("/page").text
