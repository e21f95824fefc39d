"""10^9 events a day (11,574 a second) into a file that grows, and the engine with its defaults that follows it.

    python -m tests.benchmarks.billion_a_day [--rate 11574] [--seconds 120] [--objects 100000] [--interval 30]

Events are JSON triplets about 50 landmarks, written ten times a second. The engine is the verb `run --follow` at nice
5, with its guard, predictions, a snapshot every `interval` seconds and /metrics, which is asked every second. Prints
the share of a core, the lag in seconds of stream (bytes not read yet over bytes a second), and memory.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

from tests.benchmarks.large_n import anonymous, block, resident
from tests.benchmarks.ten_million import name
from tests.support.kafka_broker import free_ports
from tests.support.process import until


def metric(said: str, which: str) -> float:
    """The sum of a metric's values."""
    return sum(
        float(line.rsplit(" ", 1)[1])
        for line in said.splitlines()
        if line.startswith(which) and line[len(which)] in " {"
    )


def cpu(pid: int) -> float:
    """Seconds of CPU of a process and its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=1e9 / 86400)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--interval", type=float, default=30)
    given = parser.parse_args()
    rows = block(np.random.default_rng(0), given.objects, 50)
    lines = [
        f'{{"anchor": "{name(a)}", "near": "{name(b)}", "far": "{name(c)}"}}\n'.encode() for a, b, c in rows.tolist()
    ]
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.jsonl")
        events.touch()
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "stream_engine",
                "run",
                str(events),
                "--follow",
                "--state",
                f"{folder}/s",
                "--listen",
                f"127.0.0.1:{port}",
                "--no-refits",
                "--snapshot-interval",
                str(given.interval),
            ],
            preexec_fn=lambda: os.nice(5),
        )

        def ask() -> str:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()

        def learned() -> bool:
            if process.poll() is not None:
                raise SystemExit(f"the engine ended with {process.returncode}")
            try:
                return metric(ask(), "stream_engine_comparisons_total") > 0
            except OSError:  # it does not listen yet
                return False

        try:
            with events.open("ab", buffering=0) as file:
                file.write(lines[0])
                until(learned, 120, "the first comparison, so that everything is compiled")
                begin, used, written, size, lags, next_look = time.monotonic(), cpu(process.pid), 0, 0, [], 1.0
                while (now := time.monotonic() - begin) < given.seconds:
                    due = int(now * given.rate) - written
                    data = b"".join(lines[(written + k) % len(lines)] for k in range(due))
                    file.write(data)
                    written, size = written + due, size + len(data)
                    if now >= next_look:
                        next_look = now + 1
                        lags.append(metric(ask(), "stream_engine_lag_records") / (size / now))
                    time.sleep(0.1)
                took = time.monotonic() - begin
                used = cpu(process.pid) - used
                memory = anonymous(process.pid), resident(process.pid)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
        lags = np.array(lags)
        print(
            f"{written:,} events in {took:.0f} s: {written / took:,.0f} a second; {used / took:.3f} of a core; "
            f"lag in the median {np.median(lags):.2f} s, at most {lags.max():.2f} s; "
            f"anonymous {memory[0]:.2f} GB, resident {memory[1]:.2f} GB; {given.objects:,} objects"
        )


if __name__ == "__main__":
    main()
