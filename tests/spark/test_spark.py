"""The job on real Spark: local with kills around the rename, then a standalone cluster that loses a worker.

Each run of Spark is seconds of start-up, so one run serves many assertions. The oracle is one process over the same
events: equal exports by name, equal counters, equal dead letters.
"""

import gzip
import json
import re
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
    """Six files of every format, good events and bad ones, and lines that are no events; named, and by a glob."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    for number in range(6):
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
    return [f"{folder}/e0.jsonl", f"{folder}/e[1-5]*"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The events, and what one process makes of them."""
    folder = tmp_path_factory.mktemp("spark")
    source = events(folder / "events")
    engine("run", *source, "--state", folder / "state", "--no-refits", "--max-reject-ratio", "1", "--guard", "off")
    return source, folder / "state"


def test_killed_before_and_after_the_rename_and_with_a_worker_lost_every_batch_counts_once(world, tmp_path):
    """local[2]: batch 0 is whole, batch 1 dies before its rename, is repeated, dies after it, and is passed over by a
    master and two workers on loopback, of whom one is killed with its executor when batch 2 is there."""
    source, state = world
    out, log = tmp_path / "out", tmp_path / "log"
    job = [*source, "--out", str(out), "--per-batch", "1"]
    submit = [
        spark_cluster.home() / "bin" / "spark-submit",
        "--master",
        "local[2]",
        "--driver-memory",
        "1g",
        *spark_cluster.conf(),
    ]
    for when, renamed in (("before", 1), ("after", 2)):
        run = spark_cluster.start([*submit, Path(spark_killed.__file__), when, "1", *job], log)
        run.wait(1200)
        spark_cluster.kill(run)
        assert len(list((out / "delta").glob("batch=*"))) == renamed, log.read_text(errors="replace")[-3000:]
        assert bool(list((out / "delta").glob(".batch=1*"))) == (when == "before")
    written = {path: path.stat().st_mtime_ns for path in (out / "delta").rglob("*.parquet")}
    spark = spark_cluster.Standalone(tmp_path)
    try:
        run = spark_cluster.job(log, *job, master=spark.url)
        until(
            lambda: (out / "delta" / "batch=2").exists() or run.poll() is not None, what="the next batch", seconds=400
        )
        spark.kill(0)
        spark_cluster.ended(run, log)
        used = [len(list((tmp_path / f"work-{n}").glob("*/*"))) for n in (0, 1)]
    finally:
        spark.close()
    assert used[0] and used[1], "both workers had an executor"
    assert all(path.stat().st_mtime_ns == time for path, time in written.items())
    batches = [f"batch={number}" for number in range(5)]  # the first file and the first of the glob, then one by one
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
