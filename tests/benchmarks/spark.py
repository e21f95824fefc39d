"""One process, static shards with merge, and Spark local[2] with its deltas taken in, side by side on the same files.

    python -m tests.benchmarks.spark [--events 1000000]

Each way runs twice, over a part of the files and over all of them; rates are comparisons per CPU second of the
difference, so that start-up (given by itself) is not in them. CPU is that of all processes of a way: user and system,
children included.
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


if __name__ == "__main__":
    main()
