"""One process, static shards with merge, and Spark local[2] with its deltas taken in, side by side on the same files.

    python -m tests.benchmarks.spark [--events 1000000]

Each way runs twice, over a part of the files and over all of them; rates are comparisons per CPU second of the
difference, so that start-up (given by itself) is not in them. CPU is that of all processes of a way: user and system,
children included. Then what a batch costs at least on Spark (the latency of a delta), and a projection by these rates.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_engine.accumulators.sorted_counts import SortedCounts
from tests.benchmarks.kafka import events
from tests.support import spark_cluster
from tests.support.process import ENVIRONMENT, process

FILES, PART = 8, 2
CONF = [
    f"--conf={key}={value}" for key, value in spark_cluster.CONF.items() if not key.endswith("JavaOptions")
]  # the JVM as it comes
TICK = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    cpu: float
    wall: float
    memory: float  # GB, all processes at once, at the peak


def measured(command: list, log: Path) -> Cost:
    """Run a command in a session of its own and add up what its processes used, looking ten times a second."""
    begin, used, peak = time.monotonic(), {}, 0
    with log.open("ab") as said:
        run = subprocess.Popen(
            [str(part) for part in command],
            env=ENVIRONMENT | spark_cluster.ENVIRONMENT,
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    while run.poll() is None:
        memory = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == run.pid:
                used[stat.parent.name] = (int(fields[11]) + int(fields[12])) / TICK
                memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        peak = max(peak, memory)
        time.sleep(0.1)
    assert run.returncode == 0, log.read_text(errors="replace")[-3000:]
    return Cost(sum(used.values()), time.monotonic() - begin, peak / 1e9)


def engine(*arguments) -> list:
    return [sys.executable, "-m", "stream_engine", *arguments]


def ways(folder: Path, files: list[Path], tag: str):
    """(way, [commands, one after the other, a list in it: at the same time])."""
    few = ["--no-refits", "--guard", "off"]
    half = len(files) // 2
    shards = [folder / f"{tag}-half{i}.jsonl" for i in (0, 1)]
    for shard, mine in zip(shards, (files[:half], files[half:])):
        shard.write_bytes(b"".join(file.read_bytes() for file in mine))
    yield "one process", [engine("run", *files, "--state", folder / f"{tag}-one", *few)]
    yield (
        "2 shards + merge",
        [engine("run", shard, "--state", folder / f"{tag}-{i}", *few) for i, shard in enumerate(shards)]
        + [engine("merge", folder / f"{tag}-0", folder / f"{tag}-1", "--out", folder / f"{tag}-sum")],
    )
    yield "Spark: the job", [engine("spark-counts", *files, "--out", folder / f"{tag}-out", *CONF)]
    yield (
        "Spark: deltas taken in",
        [engine("run", f"deltas://{folder}/{tag}-out", "--state", folder / f"{tag}-d", *few)],
    )


def cost_of(commands: list, log: Path) -> Cost:
    costs = [measured(command, log) for command in commands]
    return Cost(sum(c.cpu for c in costs), sum(c.wall for c in costs), max(c.memory for c in costs))


def latency(folder: Path, log: Path) -> float:
    """Seconds from one delta to the next where there is next to nothing to count: what a batch costs at least."""
    for number in range(5):
        (folder / f"tiny{number}.jsonl").write_text('{"anchor":"a","near":"b","far":"c"}\n')
    measured(engine("spark-counts", f"{folder}/tiny*.jsonl", "--out", folder / "tiny", "--per-batch", "1", *CONF), log)
    times = sorted(path.stat().st_mtime for path in (folder / "tiny" / "delta").glob("batch=*"))
    return float(np.median(np.diff(times)[1:]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    size = parser.parse_args().events
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name), Path(name) / "log"
        triplets, names = events(size)
        files = [folder / f"e{number}.jsonl" for number in range(FILES)]
        for file, part in zip(files, np.array_split(triplets, FILES)):
            file.write_text(
                "".join(
                    json.dumps({"anchor": names[a], "near": names[b], "far": names[c]}) + "\n"
                    for a, b, c in part.tolist()
                )
            )
        process("warm-up")
        small = {way: cost_of(commands, log) for way, commands in ways(folder, files[:PART], "part")}
        whole = {way: cost_of(commands, log) for way, commands in ways(folder, files, "all")}
        more = size * (FILES - PART) / FILES
        rate = {way: more / max(whole[way].cpu - small[way].cpu, 1e-9) for way in whole}
        print(f"{'':24}{'per CPU-s':>12}{'CPU s':>8}{'start':>8}{'wall s':>8}{'GB':>6}   of one process")
        for way, cost in whole.items():
            start = max(cost.cpu - size / rate[way], 0)
            print(
                f"{way:24}{rate[way]:>12,.0f}{cost.cpu:>8.1f}{start:>8.1f}{cost.wall:>8.1f}{cost.memory:>6.2f}"
                f"{rate[way] / rate['one process']:>10.2f}"
            )
        batch = latency(folder, log)
        print(f"a delta on Spark costs at least {batch:.1f} s; one process learns a poll within {0.2:.1f} s")
        project(rate, batch)


def project(rate: dict[str, float], batch: float) -> None:
    """10⁹ events a day, one comparison each, and what of 10⁷ objects stays on the one engine."""
    a_second = 1e9 / 86_400
    print(
        f"10^9 events a day are {a_second:,.0f} a second: {a_second / rate['one process']:.3f} cores of one process, "
        f"{a_second / rate['Spark: the job']:.3f} of Spark; one core of one process is full at "
        f"{rate['one process'] * 86_400:,.0f} a day"
    )
    counts = SortedCounts(3)
    counts.fit(10**7)
    wide = 24 if counts.wide else 16
    for keys in (1e8, 1e9):
        print(
            f"10^7 objects, {keys:.0e} distinct questions: {keys * wide / 1e9:.0f} GB of triplet counts at rest "
            f"(wide keys: {wide} bytes), {keys * 2 * 16 / 1e9:.0f} GB of AddS at most, "
            f"names about {1e7 * 120 / 1e9:.1f} GB; all on the engine"
        )


if __name__ == "__main__":
    main()
