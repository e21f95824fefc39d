"""Every instrument of /metrics and every label of it, driven by real runs and recounted from events, files and state.

The list of instruments is the registry itself: one that nothing here drives fails the test. What only a topic gives is
driven on a real broker by tests/kafka/test_instruments.py, and named here.
"""

import json
import os
import resource
import shutil
import signal
import socket
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import httpx

from connectors.files.follow import FollowedFiles
from stream_engine.data import installed_version
from stream_engine.data.comparisons import EVENT_TYPES, REASONS
from stream_engine.data.logs import OUTPUT
from stream_engine.formats import json_events
from stream_engine.formats.options import EventOptions
from stream_engine.input import sources as settings_of_sources
from stream_engine.input.settings import loading as configuration
from stream_engine.refits import NEEDED_ARTIFACT, REFITS
from stream_engine.service import prediction_monitor, source_health
from stream_engine.service.http import built_files, listener, live_page
from stream_engine.service.http.refusals import REASONS as REFUSALS
from stream_engine.service.metrics import Metrics
from stream_engine.service.run import run
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.formats.json_examples import REJECTS
from tests.support.drifting_events import events as drifting_events
from tests.support.forked_commands import forking
from tests.support.instruments import ON_KAFKA, PREFIX, Driven, named
from tests.support.process import engine, jsonl, until
from tests.support.served import Lines, closed_by_server, ran, served

ELSEWHERE = {"http_refused_total reason=slow_reader": "test_a_reader_that_does_not_read_is_cut"}  # takes megabytes
TOKEN, ADMIN = "a-readers-token-here", "an-admins-token-here"
TRIPLET = '{"anchor": "a", "near": "b", "far": "c"}'


def positive(value: float) -> bool:
    return value > 0


# -- files that end --------------------------------------------------------------------------------------------------

ACCEPTED = [
    *[TRIPLET] * 2,
    '{"anchor": "a", "near": "c", "far": "b"}',  # contradicts it
    '{"anchor": "c", "near": "a", "far": "b"}',  # ca < cb, and then
    '{"anchor": "b", "near": "c", "far": "a"}',  # bc < ba: with ab < ac that is a circle
    '{"type": "quadruplet", "near": ["a", "b"], "far": ["c", "d"]}',
    '{"type": "odd_one_out", "objects": ["a", "d", "e"], "odd": "e"}',
    '{"type": "most_central", "objects": ["a", "d", "e"], "central": "d"}',
    '{"type": "pick", "anchor": "e", "shown": ["a", "b", "c"], "chosen": ["b"]}',
    '{"type": "ranking", "anchor": "e", "ranked": ["a", "b", "c"]}',
    '{"type": "label", "object": "a", "label": "x"}',
    '{"type": "label", "object": "nobody", "label": "y"}',
    '{"type": "label", "object": "b", "label": "y"}',
    '{"type": "label", "object": "b", "label": null}',
]
COMPARISONS = {"triplet": 5 + 2 + 2 + 2 + 3, "quadruplet": 1}  # of those: one, two of each set, three of the ranking
LIMIT = 60_000


def rejected_lines() -> dict[str, bytes]:
    """A line for each reason that a decoder gives."""
    lines: dict[str, bytes] = {}
    for each in REJECTS:
        if each.options == EventOptions() and b"\n" not in each.value:
            lines.setdefault(each.reason, each.value)
    return lines | {"too_large": b'{"anchor": "' + b"x" * LIMIT + b'"}', "decoder_failed": b'{"poison": 1}'}


def of_files(driven: Driven, folder: Path, monkeypatch) -> None:
    """Two runs over three files, of which two have no series of their own; the first ends within a line."""
    lines, decode = rejected_lines(), json_events.Decoder.lines
    assert {*lines} | {"incomplete", "process_died"} == {*REASONS}

    def failing(self, value):
        if b"poison" in value:
            raise TypeError("planted")
        return decode(self, value)

    monkeypatch.setattr(json_events.Decoder, "lines", failing)
    a, b, c, state = folder / "a.jsonl", folder / "b.jsonl", folder / "c.jsonl", folder / "s"
    killer = TRIPLET.replace('"c"', '"killer"').encode() + b"\n"
    a.write_bytes(killer + "\n".join(ACCEPTED).encode() + b"\n" + b"\n".join(lines.values()) + b"\n" + TRIPLET.encode())
    b.write_text(f"{TRIPLET}\n" * 3)
    c.write_text(f"{TRIPLET}\n" * 4)
    state.mkdir()
    (state / "in_flight").write_text(json.dumps({"refused": [{str(a): [0, len(killer)]}]}) + "\n")
    options = {"input.max_message_bytes": LIMIT, "input.max_reject_ratio": 1}
    metrics, _ = ran(state, [a, b, c], 1, **options)
    with a.open("a") as file:
        file.write(" and more\n")
    began = time.monotonic()
    again, _ = ran(state, [a, b, c], 1, **options)
    counters = Store(state).latest().snapshot.counters
    assert counters["rejected"] == dict.fromkeys(REASONS, 1)
    for reason in REASONS:
        driven.check(again if reason == "incomplete" else metrics, 1, "rejected_total", reason=reason)
    kinds = Counter(json.loads(line).get("type", "triplet") for line in ACCEPTED) + Counter(triplet=1 + 3 + 4)
    assert kinds.keys() == {*EVENT_TYPES}
    for kind, n in kinds.items():
        driven.check(metrics, n, "events_total", kind=kind)
        assert not driven.value(again, "events_total", kind=kind)  # counted by the run before
    for kind, n in COMPARISONS.items():
        driven.check(metrics, n + 8 * (kind == "triplet"), "comparisons_total", kind=kind)
    for verdict, n in counters["guard"].items():
        driven.check(metrics, n, "guard_verdicts_total", verdict=verdict)
    assert min(counters["guard"].values()) > 0 and sum(counters["guard"].values()) == sum(COMPARISONS.values()) + 8
    driven.check(metrics, 1 + len(ACCEPTED) + len(lines) + 1, "records_total", partition=str(a))
    driven.check(metrics, 7, "records_total", partition="other")
    driven.check(metrics, b.stat().st_size + c.stat().st_size, "position", partition="other")
    driven.check(again, a.stat().st_size, "position", partition=str(a))
    for partition in (str(a), "other"):
        driven.check(metrics, 0, "lag_records", partition=partition)
    driven.check(metrics, 5, "objects")
    driven.check(metrics, 2, "labelled_objects")
    for name in ("poll_seconds_total", "decode_seconds_total", "learn_seconds_total"):
        driven.check(metrics, positive, name)
    newest = Store(state).snapshot_path(2).stat()
    driven.check(again, 2, "snapshot_sequence")
    driven.check(again, newest.st_size, "snapshot_bytes")
    driven.check(again, lambda time: abs(time - newest.st_mtime) < 600, "snapshot_published_timestamp_seconds")
    driven.check(metrics, lambda time: abs(time - newest.st_mtime) < 600, "last_event_timestamp_seconds")
    driven.check(metrics, lambda time: abs(time - newest.st_mtime) < 600, "loop_ticked_timestamp_seconds")
    first, free = Store(state).snapshot_path(1).stat().st_size, shutil.disk_usage(state).free
    driven.check(again, (3 + 1) * first, "disk_needed_bytes")  # for the second
    driven.check(again, lambda room: abs(room - free - first) < free / 2, "disk_room_bytes")
    for name in ("snapshot_pause_seconds", "publish_seconds"):
        driven.check(again, 1, f"{name}_count")
        driven.check(again, positive, f"{name}_sum")
    assert driven.value(again, "snapshot_pause_seconds_sum") <= driven.value(again, "publish_seconds_sum")  # its part
    assert driven.value(again, "publish_seconds_sum") <= time.monotonic() - began
    driven.check(
        metrics, 1, "build_info", version=installed_version(), python=".".join(map(str, os.sys.version_info[:3]))
    )


def of_predictions(driven: Driven, folder: Path, monkeypatch) -> None:
    """A stream that changes: every figure is the one of the note beside the last snapshot."""
    source, state = drifting_events(folder / "d.csv", seed=1), folder / "d"
    rule = {"snapshot.every": 10_000}
    monkeypatch.setattr(prediction_monitor, "COOLDOWN", 1_000_000)
    metrics, log = ran(state, source, **rule)
    note = json.loads((state / "progressive.json").read_text())
    alarms = Counter(more["signal"] for _, event, more in log.said if "signal" in more)
    for watched, drift in note["drift"].items():
        assert drift["alarms"] == alarms[watched] > 0
        driven.check(metrics, alarms[watched], "drifts_total", signal=watched)
    for predictor, kinds in note["predictors"].items():
        for kind, windows in kinds.items():
            for window, scores in windows.items():
                labels = {"predictor": predictor, "kind": kind, "window": window}
                driven.check(metrics, scores["accuracy"], "progressive_accuracy", **labels)
    assert {"adds3", "repeats"} <= note["predictors"].keys()


def of_refits(driven: Driven, folder: Path) -> None:
    """One that fails, then one that ends well, and all of them without memory."""
    names = "abcdefghij"
    asked = [{"anchor": x, "near": y, "far": z} for x in names for y in names for z in names if x < y < z or z < x < y]
    source, state = jsonl(folder / "r.jsonl", asked), folder / "r"
    refitted = {"refits.kinds": ["spectral"]}
    failed, _ = ran(state, source, **refitted, **{"refits.seed": -1})  # which no generator of numbers takes
    metrics, _ = ran(state, source, **refitted)
    driven.check(metrics, 1, "refit_seconds_count", refit="spectral")
    driven.check(metrics, positive, "refit_seconds_sum", refit="spectral")
    driven.check(failed, 1, "refit_failures_total", refit="spectral")
    driven.check(metrics, 0, "refit_failures_total", refit="spectral")
    driven.check(metrics, 1, "refit_progress_ratio", refit="spectral")
    driven.check(metrics, 3, "refit_figure", refit="spectral", figure="done")
    driven.check(metrics, 0, "refit_age_snapshots", refit="spectral")
    with source.open("a") as file:
        file.write(TRIPLET + "\n")
    small = {"memory_gb": 0.1, "refits.kinds": list(REFITS), "input.labels": None}
    later, log = ran(state, source, **small)
    driven.check(later, 1, "refit_age_snapshots", refit="spectral")
    driven.check(later, positive, "memory_wait_seconds_total")
    driven.check(later, 100_000_000, "memory_bytes", of="limit")
    driven.check(later, positive, "memory_bytes", of="refits")  # the process that they would be forked from
    pages = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    driven.check(later, lambda held: pages / 3 < held < pages * 3, "memory_bytes", of="resident")
    assert len([line for line in log.events("warning") if "memory_gb" in line]) == len(REFITS) - len(NEEDED_ARTIFACT)


def of_results(driven: Driven, folder: Path) -> None:
    """Tables that reach a file, and some that cannot."""
    source = jsonl(folder / "t.jsonl", [TRIPLET])
    metrics, _ = ran(folder / "t", source, publish={"objects": f"jsonl://{folder}/objects.jsonl"})
    driven.check(metrics, positive, "results_sent_timestamp_seconds")
    driven.check(metrics, 0, "results_failures_total")
    assert len((folder / "objects.jsonl").read_text().splitlines()) == 3
    failed, log = ran(folder / "u", source, publish={"objects": f"jsonl://{source}/objects.jsonl"})
    driven.check(failed, positive, "results_failures_total")
    assert len(log.events("warning")) == 1


def of_deeds(driven: Driven, folder: Path, monkeypatch) -> None:
    """What is done to a state between two runs, and dead letters that go."""
    source = jsonl(
        folder / "h.jsonl", [TRIPLET, TRIPLET.replace('"c"', '"gone"'), "broken", TRIPLET.replace("anchor", "probe")]
    )
    states = [folder / "h0", folder / "h1"]
    rule = {"input.max_reject_ratio": 1}
    ran(states[0], source, **rule)
    other = jsonl(folder / "g.jsonl", [TRIPLET] * 4)
    ran(states[1], other, **rule)
    engine("merge", *states, "--into", 1, "--out", folder / "n")
    [state] = (folder / "n").glob("*")
    ran(state, [source, other], **rule)
    engine("forget", "--state", state, "--object", "gone")
    with source.open("a") as file:
        file.write(f"{TRIPLET}\n" * 3)
    moved = Engine.restore(Store(state).newest())
    moved.lost[str(source)] = 2
    moved.note("seek", partition=str(source))
    Store(state).publish(moved.snapshot())
    shutil.rmtree(state / "dead_letters")
    again, _ = ran(state, [source, other], **rule)
    counters = Store(state).latest().snapshot.counters
    did = Counter(deed["did"] for deed in counters["history"])
    for deed in ("seek", "reshard", "dead letters lost", "forget"):
        driven.check(again, lambda n, deed=deed: n == did[deed] > 0, "history_total", did=deed)
    driven.check(again, 2, "records_lost_total", partition=str(source))
    lost = sum(deed["letters"] for deed in counters["history"] if deed["did"] == "dead letters lost")
    driven.check(again, lambda n: n == lost > 0, "dead_letters_lost_total")
    burst, _ = ran(folder / "share", jsonl(folder / "share.jsonl", [TRIPLET, "refused"] * 60), **rule)
    driven.check(burst, 0.5, "rejected_share")
    source = jsonl(folder / "k.jsonl", [TRIPLET, "refused", "refused too"] * 12)
    monkeypatch.setattr(settings_of_sources, "MIN_BLOCK_BYTES", 200)
    limited = {"dead_letters_keep_bytes": 1000, "snapshot.every": 1}
    metrics, _ = ran(folder / "k", source, **limited, **rule)
    gone = Store(folder / "k").latest().snapshot.counters["dead_letters"]
    left = b"".join(path.read_bytes() for path in (folder / "k" / "dead_letters").iterdir())
    assert 24 - left.count(b"\n") == gone["removed"] > 0 and gone["removed_bytes"] > 50 * gone["removed"]
    driven.check(metrics, gone["removed"], "dead_letters_removed_total")


# -- a run that goes on, with people beside it ------------------------------------------------------------------------


def of_a_run_that_goes_on(driven: Driven, folder: Path, monkeypatch) -> None:
    """Held and let go, without progress and with it, asked too much, its disk gone for a while."""
    monkeypatch.setattr(live_page, "MAX_VIEWERS", 1)
    monkeypatch.setattr(source_health, "STALL_SECONDS", 0)
    monkeypatch.setattr(built_files, "MAX_FOLDER_BYTES", 1200)
    source, state, metrics = jsonl(folder / "l.jsonl", [TRIPLET] * 5), folder / "l", Metrics()
    monkeypatch.setenv("READERS", TOKEN)
    monkeypatch.setenv("ADMINS", ADMIN)
    given = {
        "source": [str(source)],
        "state": str(state),
        "follow": True,
        "listen": "127.0.0.1:0",
        "refits.kinds": [],
        "snapshot.interval": 0,
        "http.token": {"env": "READERS"},
        "http.admin_token": {"env": "ADMINS"},
    }
    log, failed, refusals = Lines(), [], iter([1])

    def value(name: str, **labels: str) -> float:
        return driven.value(metrics, name, **labels) or 0

    def is_now(expected, name: str, **labels: str) -> None:
        until(lambda: value(name, **labels) == expected, what=f"{name} {labels} to be {expected}")
        driven.check(metrics, expected, name, **labels)

    def beside() -> None:
        is_now(1, "ready")
        (address,) = [more["address"] for _, event, more in log.said if event == "listening"]
        until(lambda: value("comparisons_total", kind="triplet") == 5, what="five comparisons")
        reader = {"headers": {"Authorization": f"Bearer {TOKEN}"}, "timeout": 60}
        owner = {"headers": {"Authorization": f"Bearer {ADMIN}"}, "timeout": 60}
        with (
            httpx.Client(base_url=f"http://{address}", **reader) as http,
            httpx.Client(base_url=f"http://{address}", **owner) as admin,
        ):
            with http.stream("GET", "/live") as looking:
                message = looking.iter_bytes()
                assert next(message)
                with http.stream("GET", "/live") as another:
                    assert another.status_code == 503
            is_now(1, "http_refused_total", reason="busy")
            stopped_and_stalled(admin)
            asked_too_much(http)

    def stopped_and_stalled(admin: httpx.Client) -> None:
        admin.post("/admin/pause")
        is_now(1, "paused")
        is_now(0, "ready")
        admin.post("/admin/resume")
        is_now(0, "paused")
        is_now(1, "ready")
        with source.open("a") as file:
            file.write(TRIPLET[:9])
        is_now(9, "lag_records", partition=str(source))
        is_now(1, "stalled")
        stalls = [event for level, event, _ in log.said if level == "error" and event.startswith("stalled")]
        driven.check(metrics, lambda n: n >= len(stalls) > 0, "stalls_total")
        with source.open("a") as file:
            file.write(TRIPLET[9:] + "\n")
        is_now(0, "stalled")
        is_now(0, "lag_records", partition=str(source))
        is_now(source.stat().st_size, "position", partition=str(source))
        admin.post("/admin/snapshot")
        is_now(1, "snapshot_sequence")
        (state / "snapshots").rename(state / "aside")
        (state / "snapshots").write_text("")
        with source.open("a") as file:
            file.write(TRIPLET + "\n")
        is_now(source.stat().st_size, "position", partition=str(source))
        admin.post("/admin/snapshot")
        is_now(1, "snapshot_failures_total")
        (state / "snapshots").unlink()
        (state / "aside").rename(state / "snapshots")

    def asked_too_much(http: httpx.Client) -> None:
        assert http.get("/export/objects.json").status_code == 200
        with httpx.Client(base_url=http.base_url, timeout=60) as stranger:
            assert stranger.get("/snapshot").status_code == 401
            assert stranger.get("/healthz", headers={"Host": "elsewhere"}).status_code == 421
            assert stranger.post("/predict", headers={"Origin": "http://elsewhere"}).status_code == 403
            assert stranger.get("/healthz", headers={"X": "y" * (16 << 10)}).status_code == 431
        is_now(1, "http_refused_total", reason="token")
        is_now(1, "http_refused_total", reason="host")
        is_now(1, "http_refused_total", reason="origin")
        is_now(1, "http_refused_total", reason="head")
        OUTPUT.open("/dev/full")
        OUTPUT.write("nobody reads this\n")
        OUTPUT.open(None)
        is_now(1, "log_lines_lost_total")
        monkeypatch.setattr(FollowedFiles, "refused_commits", lambda self: next(refusals, 0))
        is_now(1, "commits_refused_total")
        assert http.get("/export/triplet_counts.npz").status_code == 503  # larger than the cache may be
        is_now(1, "http_refused_total", reason="no_room")

    def watched() -> None:
        try:
            beside()
        except BaseException as error:
            failed.append("".join(traceback.format_exception(error)))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=watched)
    thread.start()
    with forking(built_files):
        run(configuration.load(None, given), metrics=metrics, log=log)
    thread.join()
    assert not failed, failed[0]
    driven.check(metrics, 0, "ready")


def of_a_crowd(driven: Driven, folder: Path, monkeypatch) -> None:
    """More connections than there are places, and than the process may open."""
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 1.0)
    monkeypatch.setattr(live_page, "MAX_VIEWERS", 200)
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 2)
    with served(folder / "c") as world:
        with world.http.stream("GET", "/live") as one, world.http.stream("GET", "/live") as other:
            messages = [each.iter_bytes() for each in (one, other)]
            assert all(map(next, messages)) and world.http.get("/metrics").status_code == 503
        driven.check(world.metrics, 1, "http_refused_total", reason="full")
        until(lambda: world.connections() == 0, what="the places of those who looked")
        silent = [world.connect() for _ in range(3)]
        until(lambda: world.refused("gave_way") == 1, what="the longest silent one to give way")
        assert all(map(closed_by_server, silent))
        driven.check(world.metrics, 1, "http_refused_total", reason="gave_way")
        driven.check(world.metrics, 2, "http_refused_total", reason="silent")
        later, (soft, hard) = world.connect(), resource.getrlimit(resource.RLIMIT_NOFILE)
        assert closed_by_server(later)
        with socket.socket() as asking:
            used = set(map(int, os.listdir("/proc/self/fd")))
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(set(range(len(used) + 1)) - used), hard))
            try:
                asking.connect(("127.0.0.1", int(world.address.rpartition(":")[2])))
                until(lambda: world.refused("descriptors"), what="the refusal")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        driven.check(world.metrics, positive, "http_refused_total", reason="descriptors")


def test_every_instrument_and_every_label_of_it_tells_what_happened(tmp_path, monkeypatch):
    driven = Driven()
    of_files(driven, tmp_path, monkeypatch)
    of_predictions(driven, tmp_path, monkeypatch)
    of_refits(driven, tmp_path)
    of_results(driven, tmp_path)
    of_deeds(driven, tmp_path, monkeypatch)
    of_a_run_that_goes_on(driven, tmp_path, monkeypatch)
    of_a_crowd(driven, tmp_path, monkeypatch)
    wanted, families = set(), set()
    metrics = Metrics()
    for family in metrics.registry.collect():
        if family.name.startswith(PREFIX):
            families.add(family.name.removeprefix(PREFIX))
            samples = [each for each in family.samples if not each.name.endswith("_bucket")]
            wanted |= {named(each.name.removeprefix(PREFIX), each.labels) for each in samples}
    wanted |= {named("http_refused_total", {"reason": reason}) for reason in REFUSALS}
    assert wanted - driven.right - ON_KAFKA - ELSEWHERE.keys() == set()
    found = {
        each.split()[0].removesuffix("_total").removesuffix("_count").removesuffix("_sum") for each in driven.right
    }
    assert families - {each.removesuffix("_info") for each in found} == {"lag_seconds", "empty_values"}
    there = "".join(path.read_text() for path in Path(__file__).parent.glob("test_http*.py"))
    assert all(f"def {test}" in there for test in ELSEWHERE.values())
