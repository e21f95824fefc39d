"""A refit maps the snapshot that it reads instead of copying it, and no refit uses more than one BLAS thread."""

import mmap
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from stream_engine import Engine
from stream_engine.commands import refit
from stream_engine.data.comparisons import Triplet
from stream_engine.refits import spectral
from stream_engine.service import refit_workers
from stream_engine.service.forked_commands import ForkServer
from stream_engine.service.refit_workers import RefitProcesses
from stream_engine.state.store import Store


def backed_by(array) -> type:
    """What holds the array's memory in the end."""
    while isinstance(array, (np.ndarray, memoryview)):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return type(array)


def test_a_refit_maps_the_snapshots_arrays_and_runs_on_one_blas_thread(tmp_path, monkeypatch):
    engine = Engine()
    engine.learn_many([Triplet(*names) for names in ("abc", "bac", "dea", "edb")])
    Store(tmp_path).publish(engine.snapshot())
    seen = {}

    def watched(snapshot, *given):
        seen["memory"] = {backed_by(array) for array in snapshot.arrays.values() if array.size}
        seen["threads"] = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        return spectral.refit(snapshot, *given)

    monkeypatch.setattr(refit, "refit_module", lambda kind: SimpleNamespace(refit=watched))
    with threadpool_limits(2, user_api="blas"):
        made = refit.refit(Store(tmp_path), "spectral", "latest", {"k": 2}, 0)
    assert made.report["clustered"] == 5
    assert seen == {"memory": {mmap.mmap}, "threads": {1}}


def test_a_refit_that_says_nothing_ends_with_its_engine(tmp_path):
    """Its engine is killed: it does not go on for hours. Output that is no pipe does not end it."""
    engine = Engine()
    engine.learn_many([Triplet("a", "b", "c")])
    Store(tmp_path).publish(engine.snapshot())

    def command(seconds):
        return [
            sys.executable,
            "-c",
            f"""
import time
from types import SimpleNamespace
from stream_engine.commands import refit as command

def refit(*given):
    print("on", flush=True)
    time.sleep({seconds})
    raise SystemExit(7)

command.refit_module = lambda kind: SimpleNamespace(refit=refit)
command.refit(command.Store({str(tmp_path)!r}), "spectral", "latest", {{}}, 0, "json")
""",
        ]

    worker = subprocess.Popen(command(600), stdout=subprocess.PIPE)
    try:
        assert worker.stdout.readline() == b"on\n"
        worker.stdout.close()
        assert worker.wait(120) == 1
    finally:
        worker.kill()
    with open(tmp_path / "said", "w") as said:
        assert subprocess.run(command(0.3), stdout=said).returncode == 7


def test_a_refit_on_which_no_other_waits_gives_way_to_those_on_which_one_does(tmp_path):
    engine = Engine()
    engine.learn_many([Triplet(*names) for names in ("abc", "bac", "dea", "edb")])
    Store(tmp_path).publish(engine.snapshot())
    processes = RefitProcesses(tmp_path, 0, {})
    niceness = {}
    for kind in ("embedding", "spectral"):
        processes.start(kind, 1)
        niceness[kind] = os.getpriority(os.PRIO_PROCESS, processes.running[kind].process.pid)
    processes.cancel()
    assert niceness == {"embedding": os.getpriority(os.PRIO_PROCESS, 0), "spectral": niceness["embedding"] + 5}


def test_the_process_that_refits_are_forked_from_ends_when_none_ran_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(refit_workers, "ORIGIN", ForkServer([]))
    refit_workers.ORIGIN.begin()
    processes = RefitProcesses(tmp_path, 0, {})
    processes.watch()
    assert processes.processes() == [refit_workers.ORIGIN.pid]
    monkeypatch.setattr(refit_workers, "IDLE_SECONDS", 0.0)
    processes.watch()
    assert processes.processes() == []
