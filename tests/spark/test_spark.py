"""The job on real Spark: local with kills around the rename, then a small cluster that loses an executor.

Each run of Spark is seconds of start-up, so one run serves many assertions. The oracle is one process over the same
events: equal exports by name, equal counters, equal dead letters.
"""

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from stream_engine.commands import spark_counts
from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.spark.job_arguments import SCRIPT, job_of
from tests.conftest import ROOT
from tests.support import spark_cluster, spark_killed
from tests.support.event_worlds import arrow_of, csv_of, some_event
from tests.support.process import engine, until
from tests.support.spark_states import check

pytestmark = pytest.mark.spark


def events(folder: Path) -> list[str]:
    """Five files of every format, good events and bad ones, and lines that are no events; named, and by a glob."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    for number in range(5):
        made = [some_event(rng, EVENT_TYPES[rng.integers(len(EVENT_TYPES))], True) for _ in range(200)]
        text = "".join(json.dumps(event) + "\n" for event in made) + "{\n"
        if number == 1:
            (folder / "e1.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        elif number == 2:
            header, rows = csv_of(made)
            (folder / "e2.csv").write_bytes(header + rows)
        elif number == 3:
            parquet.write_table(pa.Table.from_batches([arrow_of(made)]), folder / "e3.parquet")
        else:
            (folder / f"e{number}.jsonl").write_text(text)
    return [f"{folder}/e0.jsonl", f"{folder}/e[1-4]*"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The events, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("spark")
    source = events(folder / "events")
    engine("run", *source, "--state", folder / "state", "--no-refits", "--max-reject-ratio", "1", "--guard", "off")
    return source, folder / "state"


def executors(run: subprocess.Popen) -> set[int]:
    """The executors' processes of a job, which is the leader of its session."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"CoarseGrainedExecutorBackend" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
    return {pid for pid in found if os.path.exists(f"/proc/{pid}") and os.getsid(pid) == run.pid}


def test_killed_before_and_after_the_rename_and_with_an_executor_lost_every_batch_counts_once(world, tmp_path):
    """Batch 0 is whole, batch 1 dies before its rename, is repeated, dies after it, and is passed over by a driver with
    two executors, of which one is killed when batch 2 is there."""
    source, state = world
    out, log = tmp_path / "out", tmp_path / "log"
    job = [*source, "--out", str(out), "--per-batch", "1"]
    places: set[Path] = set()
    run = spark_cluster.submit(log, Path(spark_killed.__file__), "1", *job)
    try:
        until(lambda: spark_killed.SEEN in log.read_text() or run.poll() is not None, what="accidents", seconds=800)
        written = {path: path.stat().st_mtime_ns for path in (out / "delta").rglob("*.parquet")}
        there = until(lambda: len(found := executors(run)) == 2 and found, what="two executors", seconds=400)
        places |= {Path(f"/proc/{pid}/cwd").readlink().parent for pid in there}
        until(
            lambda: (out / "delta" / "batch=2").exists() or run.poll() is not None, what="the next batch", seconds=400
        )
        os.kill(min(there), signal.SIGKILL)
        spark_cluster.ended(run, log)
    finally:
        spark_cluster.kill(run)
        for each in places:  # within Spark's own folder
            shutil.rmtree(each)
    before, after = json.loads(re.search(f"{spark_killed.SEEN}(.*)", log.read_text())[1])
    [unfinished] = [name for name in before if name.startswith(".batch=1")]
    assert before == [unfinished, "batch=0", "job.json"]
    assert after == ["batch=0", "batch=1", "job.json"]
    assert all(path.stat().st_mtime_ns == time for path, time in written.items())
    batches = [f"batch={number}" for number in range(4)]  # the first file and the first of the glob, then one by one
    assert sorted(path.name for path in (out / "delta").iterdir()) == [*batches, "job.json"]
    check(out, state, tmp_path)


@pytest.mark.parametrize("script", sorted((ROOT / "deploy" / "spark").glob("*.sh")), ids=lambda path: path.stem)
def test_submit_scripts_name_what_is_there(script, spark_help):
    """Run with a `spark-submit` that prints its arguments: options that Spark knows, its version, a job there is."""
    stand_in = f'spark-submit() {{ printf \'%s\\n\' "$@"; }}; python() {{ {sys.executable} "$@"; }}; '
    text = script.read_text().replace("exec spark-submit", "spark-submit")
    done = subprocess.run(
        ["bash", "-c", stand_in + text], env=spark_cluster.ENVIRONMENT, capture_output=True, text=True, check=True
    )
    said = done.stdout.splitlines()
    (at,) = [number for number, word in enumerate(said) if word.endswith(f"stream_engine/spark/{SCRIPT.name}")]
    options = [word for word in said[:at] if word.startswith("--")]
    assert {"--master", "--packages"} <= set(options) <= set(re.findall(r"--[a-z-]+", spark_help))
    assert f"{spark_counts.KAFKA_PACKAGE}:{spark_counts.VERSION}" in said
    assert all(re.fullmatch(r"spark\.[\w.]+=\S+", said[n + 1]) for n, word in enumerate(said) if word == "--conf")
    assert job_of(said[at + 1 :]).follow and (script.stat().st_mode & 0o111)
    if said[at].startswith("/"):
        assert Path(said[at]).exists()


@pytest.fixture(scope="module")
def spark_help():
    done = subprocess.run(
        [spark_cluster.home() / "bin" / "spark-submit", "--help"],
        env=spark_cluster.ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    return done.stdout + done.stderr
