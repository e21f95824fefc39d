"""The HTTP face over published files, without a process around it."""

import httpx
import pytest
from prometheus_client import CollectorRegistry

from stream_engine.service import http
from stream_engine.service.metrics import Metrics
from tests.laws.test_exports import state

pytestmark = pytest.mark.timeout(60)


class World:
    why, published = "starting", None


@pytest.fixture
def served():
    world = World()
    metrics = Metrics(CollectorRegistry())
    server = http.Server(http.app(metrics.registry, lambda: world.why, lambda: world.published), "127.0.0.1:0")
    with httpx.Client(base_url=f"http://{server.address}") as client:
        yield world, client, server
    server.close()


def test_ready_only_when_it_is(served):
    world, client, _ = served
    assert client.get("/healthz").status_code == 200
    assert (client.get("/readyz").status_code, client.get("/readyz").text) == (503, "starting\n")
    world.why = ""
    assert client.get("/readyz").status_code == 200


def test_published_files_and_nothing_else(served):
    world, client, _ = served
    assert client.get("/snapshot").status_code == 404
    world.published = state()
    assert client.get("/snapshot").json()["triplets"] == 60
    for name, kind in (
        ("adds3.npz", "application/octet-stream"),
        ("k1.csv", "text/csv; charset=utf-8"),
        ("clusters.csv", "text/csv; charset=utf-8"),
        ("predictions.csv", "text/csv; charset=utf-8"),
        ("partial_order.kept.parquet", "application/vnd.apache.parquet"),
        ("summary.json", "application/json"),
    ):
        answer = client.get(f"/export/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind), name
        assert answer.content == client.get(f"/export/{name}").content
    for name in ("../../etc/passwd", "adds3.exe", "summary.npz", "nothing.json", "..", "k1.json/x"):
        assert client.get(f"/export/{name}").status_code == 404, name
    assert client.post("/snapshot").status_code == 405 and client.delete("/export/k1.npz").status_code == 405


def test_an_address_in_use_is_an_error(served):
    _, _, server = served
    with pytest.raises(OSError, match="cannot listen on"):
        http.Server(http.app(CollectorRegistry(), lambda: "", lambda: None), server.address)
