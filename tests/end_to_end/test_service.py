"""A real process on real files: killed at random and restarted, followed, asked, stopped, scraped."""

import json
import os
import random
import signal
import time
from itertools import chain
from pathlib import Path

import pytest

from tests.support.event_worlds import stream
from tests.support.process import dead, engine, jsonl, one_line, signalled, started, stopped, summary, until
from tests.support.running_engine import Engine


def exported(state, out) -> dict[str, bytes]:
    engine("export", "--state", state, "--out", out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


def newest(state):
    """The number of the newest snapshot, 0 where there is none."""
    return max((int(path.stem) for path in (state / "snapshots").glob("*.snapshot")), default=0)


def test_killed_at_random_and_restarted_until_the_end_equals_uninterrupted(tmp_path):
    rng = random.Random(7)
    events = jsonl(tmp_path / "events.jsonl", stream(rng, 10_000))
    config = tmp_path / "engine.toml"
    config.write_text(
        "[snapshot]\nevery = 500\ninterval = 0\n[drift]\nenabled = false\n"
    )  # an alarm's snapshot comes where the observer remembers, which a crash forgets
    common = ("run", events, "--config", config, "--no-refits")
    engine(*common, "--state", tmp_path / "whole")
    kills, state = 0, tmp_path / "killed"
    while True:
        running = started(*common, "--state", state)
        if kills < 5:
            reached = newest(state) + rng.randrange(1, 4)  # snapshots are what a run leaves behind on its way
            while running.poll() is None and newest(state) < reached:
                time.sleep(0.001)
            time.sleep(rng.uniform(0.0, 0.05))
        if kills < 5 and running.poll() is None:
            running.kill()
            running.communicate()
            kills += 1
            continue
        _, said = running.communicate(timeout=200)
        assert running.returncode == 0, said
        break
    assert kills >= 1
    assert dead(tmp_path / "killed") == dead(tmp_path / "whole") and len(dead(tmp_path / "whole")) > 500
    whole, killed = exported(tmp_path / "whole", tmp_path / "a"), exported(tmp_path / "killed", tmp_path / "b")
    assert (
        whole.keys() == killed.keys() and {"summary.json", "adds3.npz", "k1.npz", "partial_order.npz"} <= whole.keys()
    )
    for name in whole:
        assert whole[name] == killed[name], name


def test_a_followed_file_is_read_on_and_backed_up_and_a_signal_asks_for_a_snapshot(tmp_path):
    events = jsonl(tmp_path / "events.jsonl", [{"anchor": "a", "near": "b", "far": "c"}] * 10)
    config = "[snapshot]\nevery = 0\ninterval = 0\n"
    running = Engine(tmp_path, str(events), "--follow", config=config)
    try:
        until(lambda: running.figure("comparisons_total{") == 10, what="ten comparisons")
        with events.open("a") as file:
            file.write('{"anchor": "a", "near": "c", "far": "b"}\n{"anchor": "c", "near"')
            file.flush()
            until(lambda: running.figure("comparisons_total{") == 11, what="the appended line")
            assert newest(running.state) == 0
            signalled(running.process, signal.SIGUSR1)
            until(lambda: newest(running.state) == 1, what="a snapshot")
            assert summary(running.state)["comparisons"] == 11
            engine("backup", "--state", running.state, "--to", tmp_path / "copies")
            file.write(': "a", "far": "b"}\n')
            file.flush()
            until(lambda: running.figure("comparisons_total{") == 12, what="the completed line")
    finally:
        running.stop()
    (copy,) = (tmp_path / "copies").iterdir()
    engine("verify", "--state", copy)
    for state in (running.state, copy):  # nothing is counted twice, nor is anything lost
        engine("run", events, "--state", state, "--no-refits")
        assert summary(state)["comparisons"] == 12


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_in_the_middle_of_a_refit(tmp_path, number):
    rng = random.Random(3)
    names = [str(i) for i in range(400)]
    events = jsonl(
        tmp_path / "events.jsonl", [dict(zip(("anchor", "near", "far"), rng.sample(names, 3))) for _ in range(20_000)]
    )
    state = tmp_path / "state"
    process = started("run", events, "--state", state, "--refit", "sdp_clustering", "--log-format", "json")
    for line in process.stderr:
        if "snapshot published" in line:
            break
    until(lambda: [*chain(*map(children, children(process.pid)))], what="the refit's process")
    said = stopped(process, number)
    assert process.returncode == 0, said
    assert "refit cancelled" in said and not list((state / "artifacts").rglob("*.artifact"))
    assert summary(state)["comparisons"] == 20_000


def test_two_processes_never_share_a_state(tmp_path):
    events = jsonl(tmp_path / "events.jsonl", [{"anchor": "a", "near": "b", "far": "c"}])
    process = started("run", events, "--state", tmp_path / "state", "--follow", "--no-refits")
    try:
        until(lambda: (tmp_path / "state" / "lock").exists() and (tmp_path / "state" / "lock").read_text().strip())
        said = one_line(engine("run", events, "--state", tmp_path / "state", status=1).stderr)
        assert f"process {process.pid}" in said
    finally:
        stopped(process)
    assert process.returncode == 0


def test_a_failed_refit_is_counted_and_keeps_the_old_artifact(tmp_path):
    events = jsonl(tmp_path / "events.jsonl", stream(random.Random(2), 400))
    state = tmp_path / "state"
    engine("run", events, "--state", state, "--refit", "sdp_clustering")
    kept = {path: path.read_bytes() for path in (state / "artifacts").rglob("*.artifact")}
    with events.open("a") as file:
        file.writelines(json.dumps(e) + "\n" for e in stream(random.Random(3), 50) if isinstance(e, dict))
    running = started("run", events, "--state", state, "--refit", "sdp_clustering")
    worker = until(lambda: [*chain(*map(children, children(running.pid)))], what="the refit's process")
    os.kill(worker[0], signal.SIGKILL)  # as the kernel does when memory runs out
    _, said = running.communicate(timeout=600)
    assert running.returncode == 0 and "refit failed" in said, said
    assert kept == {path: path.read_bytes() for path in (state / "artifacts").rglob("*.artifact")} and len(kept) == 1


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid`."""
    return [int(n) for task in Path(f"/proc/{pid}/task").iterdir() for n in (task / "children").read_text().split()]
