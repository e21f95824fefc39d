"""The HTTP face over published files: what is served, what is not, and that it is made once."""

import threading

import numpy as np
import pytest

from stream_engine.data.signatures import Signing, in_environment
from stream_engine.exports import object_table
from stream_engine.service.http import built_files, downloads, listener
from stream_engine.state.artifact import Artifact
from stream_engine.state.store import Store
from tests.support.crafted_worlds import published as state
from tests.support.process import engine, until
from tests.support.served import served, stored


@pytest.fixture
def world(tmp_path):
    with served(tmp_path) as world:
        yield world


def test_published_files_and_nothing_else(world):
    client = world.http
    assert client.get("/snapshot").status_code == 404
    world.published = state()
    assert client.get("/snapshot").json()["triplets"] == state().snapshot.counters["triplets"]
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
        head = client.head(f"/export/{name}")
        assert head.content == b"" and head.headers["content-length"] == str(len(answer.content))
    for name in ("../../etc/passwd", "adds3.exe", "summary.npz", "nothing.json", "k1.json/x", "..%2f..%2flock"):
        assert client.get(f"/export/{name}").status_code == 404, name
    assert client.post("/snapshot").status_code == 405 and client.delete("/export/k1.npz").status_code == 405
    assert client.get("/admin/pause").status_code == 404 and client.post("/admin/pause").status_code == 404


def test_an_address_in_use_is_an_error(world, tmp_path):
    with pytest.raises(OSError, match="HOST:PORT"), served(tmp_path, world.address):
        pass


@pytest.mark.parametrize("objects, what", [(40, "triplet_counts.csv"), (800, "adds3.csv")])  # here; in a process
def test_an_export_has_the_bytes_of_the_command_and_is_made_once(world, tmp_path, objects, what):
    store = stored(tmp_path / "other", objects)
    world.published = stored(tmp_path, objects).published()
    bodies: list[bytes] = []
    askers = [
        threading.Thread(target=lambda: bodies.append(world.http.get(f"/export/{what}").content)) for _ in range(4)
    ]
    for each in askers:
        each.start()
    for each in askers:
        each.join()
    name, _, format = what.partition(".")
    engine("export", "--state", store.directory, "--out", tmp_path / "out", "--format", format, name)
    assert set(bodies) == {(tmp_path / "out" / what).read_bytes()} and len(bodies) == 4
    assert [path.name for path in (tmp_path / "served").iterdir()] == ["export-1"]
    part = world.http.get(f"/export/{what}", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, bodies[0][10:20])


def test_the_tag_of_an_export_follows_its_content(world, tmp_path, monkeypatch):
    monkeypatch.setattr(object_table, "any_beats_chance", lambda published: True)  # or no groups would be said
    store = stored(tmp_path, 40)
    world.published = store.published()
    first = world.http.get("/export/objects.json").headers["etag"]
    known = world.http.get("/export/objects.json", headers={"If-None-Match": f'W/"else", {first}'})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", first)
    assert world.http.get("/export/clusters.csv").status_code == 404  # nothing was refitted
    made = []
    for k in (2, 3):
        arrays = {"labels": np.arange(40, dtype=np.int32) % k, "k": np.array(k)}
        arrays |= {name: np.array(0.5) for name in ("lam", "objective", "criterion", "residuals")}
        store.publish_artifact(Artifact("sdp_clustering", world.published.snapshot.digest, 1, {}, 0, arrays, {}))
        made.append(store.published())
    tags = []
    for world.published in made:  # the same snapshot, another artifact
        for name in ("clusters.csv", "objects.csv", "clusters.scalars.json"):
            answer = world.http.get(f"/export/{name}", headers={"If-None-Match": ", ".join(tags)})
            assert answer.status_code == 200, name
            tags.append(answer.headers["etag"])
            assert world.http.get(f"/export/{name}", headers={"If-None-Match": tags[-1]}).status_code == 304
    assert len({*tags, first}) == 7
    assert world.http.get("/export/objects.json").headers["etag"] == first


def test_a_snapshot_that_was_pruned_is_said_and_what_cannot_be_made_too(world, tmp_path):
    store = stored(tmp_path, 800)
    world.published = store.published()
    assert world.http.get("/export/clusters.csv").status_code == 404  # said by the process
    store.snapshot_path(1).unlink()
    answer = world.http.get("/export/adds3.csv")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "no snapshot 1" in answer.text


def test_an_export_takes_the_memory_it_is_given_and_no_more(tmp_path):
    with served(tmp_path) as world:
        world.published = stored(tmp_path, 1500).published()
        world.memory = 2_000_000
        answer = world.http.get("/export/k1.npz")
        assert answer.status_code == 503
        assert "needs 0.0" in answer.text
        assert "GB" in answer.text
        world.memory = 1_000_000_000
        assert world.http.get("/export/k1.npz").status_code == 200


def test_a_signed_state_is_exported_with_its_key(tmp_path):
    signing = Signing(b"a key that is long enough to be one")
    with served(tmp_path, secrets=dict(in_environment(signing))) as world:
        world.published = stored(tmp_path, 800, signing=signing).published()
        assert world.http.get("/export/adds3.npz").status_code == 200
    with served(tmp_path) as world:
        world.published = Store(tmp_path, signing=signing).published()
        assert "sign" in world.http.get("/export/adds3.npz").text


def test_the_cache_is_bounded_and_forgets_what_is_old(tmp_path, monkeypatch):
    monkeypatch.setattr(built_files, "MAX_FOLDER_BYTES", 40_000)
    with served(tmp_path) as world:
        world.published = stored(tmp_path, 40).published()
        for what in ("adds3.npz", "triplet_counts.npz", "k1.npz", "objects.json"):
            assert world.http.get(f"/export/{what}").status_code == 200
        bytes_kept = sum(path.stat().st_size for path in (tmp_path / "served").rglob("*.*"))
        assert 0 < bytes_kept <= 40_000
        assert world.http.get("/export/k1.csv").status_code == 200 and world.refused("no_room") == 0
        world.published = stored(tmp_path, 120).published()
        answer = world.http.get("/export/adds3.npz")
        assert answer.status_code == 503 and "the limit is 40,000; use `stream-engine export`" in answer.text
        assert world.refused("no_room") == 1
        world.published = stored(tmp_path / "b", 40, last="o3").published()
        assert world.http.get("/export/objects.json").status_code == 200
        world.listener.close()
    assert not (tmp_path / "served").exists()


def test_few_are_waited_for_and_sent_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "MAX_DOWNLOADS", 2)
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 240.0)  # nobody is closed because this machine is slow
    with served(tmp_path) as world:
        world.published = stored(tmp_path, 1200).published()
        slow = [world.connect(receive=4096) for _ in range(2)]
        for each in slow:
            each.sendall(b"GET /export/adds3.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert each.recv(12) == b"HTTP/1.1 200"
        answer = world.http.get("/export/adds3.csv")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert world.http.get("/readyz").status_code == 200
        for each in slow:
            each.close()
        until(lambda: world.http.get("/export/adds3.csv").status_code == 200, what="the place of one who left")
