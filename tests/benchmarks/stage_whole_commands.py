"""Whole commands, as a user runs them: reading, counting, judging, publishing, exporting, refitting, asking.

Every figure is a process of its own, start-up included, on files on disk, with the defaults and one BLAS thread. CPU
seconds are those of the process and its children; wall and the memory of the largest process stand beside. Caches of
compiled code are filled before (`warm-up`), as setting up does; one row says what the first run takes without. The
rivals of a `run` read the same file and group by question, and do nothing else:
no validation, no guard, no snapshot. That flatters them; that our rate at small sizes holds a second of start-up
flatters nobody. Kafka is measured by `python -m tests.benchmarks.kafka`, which this stage calls with --full where a
broker can be started. What progressive validation costs is shown with the guard off, where it weighs most.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.rows import Spent, command_row, engine, least, row, spent
from tests.support.generators import planted_triplets

STAGE = "whole commands"
DIMENSIONS, NOISE = 5, 0.15
QUESTIONS = """
SELECT anchor, least(near, far) AS lo, greatest(near, far) AS hi, sum((near < far)::INT) AS n_lo, count(*) AS n
FROM {read} GROUP BY ALL"""
DUCKDB = (
    """
import sys, duckdb
read = {"jsonl": "read_json(?, format='newline_delimited', columns={anchor:'VARCHAR',near:'VARCHAR',far:'VARCHAR'})",
        "parquet": "read_parquet(?)"}[sys.argv[1].rsplit(".", 1)[1]]
print(duckdb.execute('''"""
    + QUESTIONS
    + """'''.format(read=read), [sys.argv[1]]).to_arrow_table().num_rows)
"""
)
POLARS = """
import sys, polars as pl
path = sys.argv[1]
names = ("anchor", "near", "far")
read = pl.scan_ndjson(path, schema=dict.fromkeys(names, pl.String)) if path.endswith("jsonl") else (
    pl.scan_parquet(path) if path.endswith("parquet") else pl.scan_ipc(path))
lo, hi = pl.min_horizontal("near", "far").alias("lo"), pl.max_horizontal("near", "far").alias("hi")
grouped = read.group_by("anchor", lo, hi).agg((pl.col("near") < pl.col("far")).sum(), pl.len().alias("n"))
print(grouped.collect().height)
"""
UNWATCHED = """
import sys
from stream_engine.service import open_run, prediction_monitor

class Silent(prediction_monitor.PredictionMonitor):
    def observed(self, *_):
        return False
    def serve(self, *_):
        pass
    def published(self, *_):
        pass

open_run.PredictionMonitor = Silent
from stream_engine.__main__ import main
sys.exit(main())
"""


def write(folder: Path, stem: str, n: int, size: int, tables: bool = False) -> Path:
    """FOLDER/STEM.jsonl with `size` triplets over n named points, and the same as .arrow and .parquet."""
    rng = np.random.default_rng(0)
    triplets = planted_triplets(rng, rng.normal(size=(n, DIMENSIONS)), size, NOISE)
    path = folder / f"{stem}.jsonl"
    with path.open("w") as file:
        for start in range(0, size, 100_000):
            block = triplets[start : start + 100_000].tolist()
            file.writelines(f'{{"anchor":"item-{a}","near":"item-{b}","far":"item-{c}"}}\n' for a, b, c in block)
    if tables:
        import pyarrow as pa
        from pyarrow import parquet

        names = pa.array([f"item-{i}" for i in range(n)])
        table = pa.table([names.take(pa.array(column)) for column in triplets.T], names=["anchor", "near", "far"])
        parquet.write_table(table, path.with_suffix(".parquet"))
        with pa.ipc.new_file(str(path.with_suffix(".arrow")), table.schema) as file:
            file.write_table(table, max_chunksize=1 << 20)
    return path


def python(code: str, *arguments: object) -> Spent:
    """A rival: a program of its own, whose start-up counts as ours does."""
    return spent(sys.executable, "-c", code, *arguments)


def run(source: object, state: Path, *more: object, most: float = 300.0) -> Spent:
    """`run SOURCE --state STATE`, from an empty state."""
    shutil.rmtree(state, ignore_errors=True)
    return engine("run", source, "--state", state, *more, most=most)


def reading(folder: Path, quick: bool) -> Iterator[dict]:
    """`run` without refits; leaves FOLDER/state of JSONL behind."""
    size, times = (1_000_000, 1) if quick else (5_000_000, 2)
    jsonl = write(folder, "n1000", 1000, size, tables=True)
    arrow, parquet = jsonl.with_suffix(".arrow"), jsonl.with_suffix(".parquet")
    duckdb = {path: least(lambda path=path: python(DUCKDB, path), times) for path in (jsonl, parquet)}
    polars = {path: least(lambda path=path: python(POLARS, path), times) for path in (jsonl, parquet, arrow)}
    world = f"{size:,}, n = 1,000"
    for path, target in ((jsonl, ">= 1.0; wall <= .65 CPU; ratio >= .4"), (parquet, ">= 1.5"), (arrow, ">= 1.5")):
        ours = least(lambda path=path: run(path, folder / f"state-{path.suffix[1:]}", "--no-refits"), times)
        overlap = f"wall / CPU {ours.wall / ours.cpu:.2f}"
        for name, rivals in (("duckdb, read and group", duckdb), ("polars, read and group", polars)):
            if path in rivals:
                yield command_row(f"run {path.suffix[1:]}, {world}", ours, rivals[path], name, target, overlap, size)
    for path, target in ((jsonl, ">= 3"), (arrow, ">= 5")):
        ours = least(lambda path=path: run(path, folder / "off", "--no-refits", "--guard", "off"), times)
        rival, name = (duckdb[path], "duckdb") if path in duckdb else (polars[path], "polars")
        case = f"run {path.suffix[1:]}, guard off, {world}"
        yield command_row(case, ours, rival, f"{name}, read and group", target, of=size)
    yield progressive(folder, jsonl, size, times)
    many = size // 2 if quick else size
    path = write(folder, "n100000", 100_000, many)
    ours = least(lambda: run(path, folder / "many", "--no-refits"), times)
    rival = python(DUCKDB, path)
    case, target = f"run jsonl, {many:,}, n = 100,000", ">= .5; peak memory <= 2 GB at 5 M"
    yield command_row(case, ours, rival, "duckdb, read and group", target, of=many)


def progressive(folder: Path, path: Path, size: int, times: int) -> dict:
    """What predicting before learning adds to a `run` with the guard off, in percent of its CPU seconds."""
    options = ("--no-refits", "--guard", "off")
    state = folder / "unwatched"

    def without() -> Spent:
        shutil.rmtree(state, ignore_errors=True)
        return python(UNWATCHED, "run", path, "--state", state, *options)

    turns = [(run(path, folder / "off", *options), without()) for _ in range(times + 1)]
    ours, rival = (min(each, key=lambda spent: spent.cpu) for each in zip(*turns, strict=True))
    case = f"progressive validation in run jsonl, guard off, {size:,}, n = 1,000"
    made = command_row(case, ours, rival, "the same without", "<= 5 % more", f"without {rival.cpu:.2f} s")
    return made | {"ours": 100 * (ours.cpu / rival.cpu - 1), "rival": None, "unit": "% more CPU"}


def afterwards(folder: Path, quick: bool) -> Iterator[dict]:
    """What is done with a state: `inspect`, `export` of everything, `ask`."""
    state, most = folder / "state-jsonl", 60.0 if quick else 300.0
    world = f"{1_000_000 if quick else 5_000_000:,}, n = 1,000"
    yield command_row(f"inspect, {world}", least(lambda: engine("inspect", "--state", state), 3), target="wall <= .4")
    ours = engine("export", "--state", state, "--out", folder / "out", most=most)
    yield command_row(f"export of everything, {world}", ours, target="<= 15 at 5 M", notes="the state of the first row")
    path = write(folder, "n10000", 10_000, 200_000)
    run(path, folder / "state-ask", "--no-refits")
    setting = (part for each in ("dimensions=2", "kernel=ste", "ridge=0.3") for part in ("--set", each))
    engine("refit", "--state", folder / "state-ask", "embedding", *setting, most=most)
    from stream_engine.asking import STRATEGIES

    for strategy in STRATEGIES:
        call = ("ask", "--state", folder / "state-ask", "--n", 10, "--strategy", strategy, "--out", folder / "asked")
        case = f"ask --strategy {strategy}, 200,000, n = 10,000"
        yield command_row(
            case, engine(*call, most=most), target="<= 1", notes="start-up and opening the state are in it"
        )


def refits(folder: Path, quick: bool) -> Iterator[dict]:
    """Runs with their default refits, and the learners of kernels."""
    most = 60.0 if quick else 600.0
    path = write(folder, "sparse", 943, 1_000)
    ours = run(path, folder / "sparse", most=most)
    yield command_row("run with refits, 1,000 comparisons about 943 objects", ours, target="<= 5")
    n, size = (500, 100_000) if quick else (1_500, 1_000_000)
    path = write(folder, "refits", n, size)
    ours = run(path, folder / "refits", most=most)
    yield command_row(f"run with refits, {size:,}, n = {n:,}", ours, target="wall <= 30 at n = 1,500, 1 M")
    for kind, n, size, target in (
        ("kernel_learning", 200 if quick else 400, 4_500 if quick else 9_000, "<= 2 at n = 400"),
        ("partial_order_embedding", 150 if quick else 400, 4_500 if quick else 9_000, "<= 15 at n = 400"),
    ):
        path = write(folder, kind, n, size)
        run(path, folder / kind, "--no-refits")
        ours = engine("refit", "--state", folder / kind, kind, most=most)
        yield command_row(f"refit {kind}, n = {n}, {size:,}", ours, target=target)


def starting(folder: Path, quick: bool) -> Iterator[dict]:
    """What there is to wait for before anything is done, and the demonstration."""
    yield command_row("--help", least(lambda: engine("--help"), 3), target="wall <= .2")
    yield command_row("run --help", least(lambda: engine("run", "--help"), 3), target="wall <= .2")
    few = write(folder, "few", 20, 1_000)
    ours = least(lambda: run(few, folder / "few", "--no-refits"), 3)
    yield command_row("run jsonl, 1,000, n = 20, after set-up", ours, target="wall <= 2.5", notes="set-up has compiled")
    shutil.rmtree(folder / "few")
    cold = engine("run", few, "--state", folder / "few", "--no-refits", NUMBA_CACHE_DIR=folder / "no-kernels-yet")
    yield command_row(
        "run jsonl, 1,000, n = 20, nothing compiled before", cold, notes="without set-up; the next is as above"
    )
    ours = engine("demo", "--state", folder / "demo")
    yield command_row("demo", ours, target="wall <= 20", notes="kernels compiled")


def kafka() -> list[dict]:
    """The rows of tests/benchmarks/kafka.py for both clients, or one that says why they are left out."""
    from tests.benchmarks import kafka as stage
    from tests.support.kafka_broker import BrokerMissing

    try:
        with stage.broker() as bootstrap:
            return [*stage.rows(bootstrap, "kafka-python", False), *stage.rows(bootstrap, "confluent", False)]
    except (BrokerMissing, OSError, subprocess.SubprocessError) as error:
        return [row(STAGE, "Kafka: left out", None, "", notes=str(error))]


def spark(folder: Path) -> Iterator[dict]:
    """The job on `local[2]` with its deltas taken in, beside one process on the same file."""
    from tests.support import spark_cluster

    try:
        spark_cluster.home()
    except spark_cluster.SparkMissing as error:
        yield row(STAGE, "Spark: left out", None, "", notes=str(error))
        return
    conf = [f"--conf={key}={value}" for key, value in spark_cluster.CONF.items()]
    few, size = ("--no-refits", "--guard", "off"), 1_000_000
    path, deltas = write(folder, "spark", 100, size), folder / "deltas"
    one = run(path, folder / "one", *few)
    counting = engine("spark-counts", path, "--out", deltas, *conf)
    taking = run(f"deltas://{deltas}", folder / "taken", *few)
    for case, ours in ((f"spark-counts, local[2], {size:,}", counting), ("run deltas://", taking)):
        yield command_row(case, ours, one, "one process", of=size)


def rows(quick: bool) -> list[dict]:
    """About three minutes, or a quarter of an hour; each command is stopped after a minute, or ten."""
    warm = engine("warm-up")
    notes = "wall is a minute or less where nothing was compiled before"
    found = [command_row("warm-up before all this", warm, notes=notes)]
    with tempfile.TemporaryDirectory(prefix="stream-engine-") as name:
        folder = Path(name)
        for part in (reading, afterwards, refits, starting):
            found += part(folder, quick)
        if not quick:
            found += spark(folder)
    return found + ([row(STAGE, "Kafka: left out", None, "", notes="say --full")] if quick else kafka())
