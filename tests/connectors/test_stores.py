"""Objects of a real S3 server and of a web server: as local files, through kills, replacement and outages."""

import functools
import http.server
import io
import json
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from connectors import Position, SourceFailed, UnusableSource, open_source
from connectors.stores import source as stores
from connectors.stores.source import WHOLE
from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.fetched_programs import Missing
from tests.support.object_store import ENVIRONMENT, SECRET, ObjectStore
from tests.support.process import ENVIRONMENT as PROCESSES
from tests.support.process import engine, one_line, records, started, state_of, summary, until
from tests.support.read_sources import drain


def events(n, first=0) -> bytes:
    names = [f"o{number}" for number in range(20)]
    rows = (
        {"anchor": names[i % 20], "near": names[(i + 3) % 20], "far": names[(i * 7 + 5) % 20 - (i % 20 == 0)]}
        for i in range(first, first + n)
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def object_store(folder: Path) -> ObjectStore:
    """A server of objects; the test is left out where there is none."""
    try:
        return ObjectStore(folder)
    except Missing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    store = object_store(tmp_path_factory.mktemp("s3"))
    store.start()
    yield store
    store.stop()


@pytest.fixture
def store(server, monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(PROCESSES, name, value)
    return server


def read(uri, at=None, **options):
    return drain(open_source(uri, at or {}, **options))


def test_a_prefix_and_a_glob_are_read_in_order_and_resumed_after_every_record(store):
    for number in range(3):
        store.put(f"answers/a/{number}.jsonl", events(100, 100 * number))
    store.put("answers/a/_SUCCESS", b"")
    store.put("answers/b/0.csv", b"x\n")
    whole = read(store.uri("answers/a"), block_bytes=2000)
    assert b"".join(r.value for r in whole) == events(300) and len(whole) > 6
    assert {r.partition for r in whole} == {f"s3://answers/a/{number}.jsonl" for number in range(3)}
    assert read(store.uri("answers/*/*.jsonl"), block_bytes=2000) == whole
    at = {}
    for number, record in enumerate(whole, 1):
        at[record.partition] = Position(record.next_offset, record.mark)
        assert read(store.uri("answers/a/"), dict(at), block_bytes=2000) == whole[number:]


def test_an_object_that_was_read_to_its_end_is_not_fetched_again_unless_it_changed(store, monkeypatch):
    store.put("again/a.jsonl", events(50))
    at = {r.partition: Position(r.next_offset, r.mark) for r in read(store.uri("again/"))}
    assert at["s3://again/a.jsonl"].mark & WHOLE
    copied = []
    monkeypatch.setattr(stores, "_in_thread", lambda each, made=stores._in_thread: copied.append(each) or made(each))
    assert read(store.uri("again/"), at) == [] and copied == []
    time.sleep(1.1)
    store.put("again/a.jsonl", events(50))  # another version of the same bytes
    assert read(store.uri("again/"), at) == [] and len(copied) == 1
    store.put("again/a.jsonl", events(80))  # more of them
    assert b"".join(r.value for r in read(store.uri("again/"), at)) == events(30, 50)
    store.put("again/a.jsonl", events(80, 1))
    with pytest.raises(SourceFailed, match=r"s3://again/a\.jsonl was replaced"):
        read(store.uri("again/"), at)


def test_folders_of_a_dataset_are_columns_of_its_tables(store):
    import pyarrow as pa
    from pyarrow import parquet

    for year in ("2025", "__HIVE_DEFAULT_PARTITION__"):
        out = io.BytesIO()
        parquet.write_table(pa.table({"anchor": ["a", "b"], "worker": ["w", "w"]}), out)
        store.put(f"set/year={year}/phase=main%20one/worker=x/0.parquet", out.getvalue())
    found = [row for record in read(store.uri("set")) for row in record.value.to_pylist()]
    assert [row["year"] for row in found] == ["2025", "2025", None, None]
    assert {row["phase"] for row in found} == {"main one"} and {row["worker"] for row in found} == {"w"}


def test_a_run_that_is_killed_goes_on_and_is_that_of_local_files(store, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(4):
        content = events(20_000, 20_000 * number) + b"{bad\n"
        store.put(f"killed/{number}.jsonl", content)
        (tmp_path / "in" / f"{number}.jsonl").write_bytes(content)
    run = ["run", store.uri("killed/"), "--state", tmp_path / "s", "--no-refits", "--snapshot-every", "3000"]
    for least in (1, 30_000, 50_000):
        running = started(*run)
        until(lambda least=least: records(tmp_path / "s") >= least, what=f"{least} records")
        running.send_signal(signal.SIGKILL)
        running.communicate()
    engine(*run)
    engine("run", tmp_path / "in" / "*.jsonl", "--state", tmp_path / "t", "--no-refits", "--snapshot-every", "3000")
    mine, local = summary(tmp_path / "s"), summary(tmp_path / "t")
    for key in ("comparisons", "events", "records", "rejected", "triplets"):
        assert mine[key] == local[key]
    counts = [Store(tmp_path / name).latest().snapshot.section("triplet_counts") for name in "st"]
    assert all((counts[0][name] == counts[1][name]).all() for name in counts[0])
    letters = [[(each["offset"], each["reason"]) for each in state_of(tmp_path / name)[1]] for name in "st"]
    assert letters[0] == letters[1] and len(letters[0]) > 4
    said = engine("verify", "--state", tmp_path / "s", run[1]).stdout
    assert "no problem found" in said


def test_preview_and_read_infer_from_an_object(store):
    import stream_engine as se

    store.put("survey/a.csv", b"target,left,right,response\n" + b"a,b,c,b\nb,c,a,c\nc,a,b,a\n" * 5)
    assert "15" in engine("preview", store.uri("survey/a.csv")).stdout
    assert len(se.read(store.uri("survey/a.csv")).snapshot.objects) == 3


def test_a_followed_prefix_brings_new_objects_and_survives_an_outage(store, monkeypatch):
    """Afterwards the server holds nothing of other tests."""
    monkeypatch.setattr(stores, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(stores, "PAUSE", (0.1, 0.2))
    store.put("follow/a.jsonl", events(10))
    with closing(open_source(store.uri("follow/"), {}, follow=True)) as source:
        found = []
        until(lambda: found.extend(source.poll(0.1)) or len(found) == 1, what="the first object")
        store.stop()
        try:
            until(lambda: source.poll(0.1) == [] and not source.ready(), what="the outage to be noticed")
            assert len(source.notices()) == 1
        finally:
            store.start()
        store.put("follow/a.jsonl", events(10))
        store.put("follow/b.jsonl", events(10, 10))
        until(lambda: found.extend(source.poll(0.1)) or len(found) == 2, what="the second object")
        assert found[1].value == events(10, 10)
        assert source.ready()
        assert not source.finished()


@pytest.mark.parametrize(
    "path, secret, said",
    [
        ("nobucket/a/", None, "s3://nobucket/a/ … the bucket does not exist"),
        ("answers/none.jsonl", None, "s3://answers/none.jsonl … no object is there"),
        ("answers/a/", "wrong-secret-of-mine", "s3://answers/a/ … access was denied"),
        ("me:hunter2@answers/a/", None, "s3://answers/a/ … without credentials"),
        ("", None, "BUCKET/KEY"),
    ],
    ids=range(5),
)
def test_what_cannot_be_read_is_one_line_without_secrets(store, monkeypatch, tmp_path, path, secret, said):
    store.put("answers/x/0.jsonl", b"")
    if secret:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    refused = engine("run", store.uri(path), "--state", tmp_path / "s", status=2)
    line = one_line(refused.stderr)
    assert states(line, said)
    assert not any(word in refused.stderr for word in (SECRET, "hunter2", "wrong-secret"))


# ---- web servers


@pytest.fixture
def web(tmp_path):
    (tmp_path / "www").mkdir()
    handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    server.folder = tmp_path / "www"
    yield server
    server.shutdown()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_file_of_a_web_server_is_read_and_resumed(web, tmp_path):
    (web.folder / "e.jsonl").write_bytes(events(500))
    address = f"http://127.0.0.1:{web.server_port}/e.jsonl"
    engine("run", address, "--state", tmp_path / "s", "--no-refits")
    assert list(summary(tmp_path / "s")["positions"]) == [address]
    with (web.folder / "e.jsonl").open("ab") as file:
        file.write(events(100, 500))
    engine("run", address, "--state", tmp_path / "s", "--no-refits")
    assert records(tmp_path / "s") == 600
    missing = engine("run", address.replace("e.jsonl", "f.jsonl"), "--state", tmp_path / "t", status=2)
    assert "404" in one_line(missing.stderr)
    signed = engine("run", f"{address}?X-Amz-Signature=s3cr3t", "--state", tmp_path / "t", status=2)
    assert "signed" in one_line(signed.stderr) and "s3cr3t" not in signed.stderr
    with pytest.raises(UnusableSource, match="without credentials"):
        open_source("https://me:hunter2@h/e.jsonl", {})
