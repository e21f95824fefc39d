"""Live answers beside a stream that counts: `python -m tests.benchmarks live_answers [--seconds 30] [--rate 500]`.

A real engine follows a growing file and serves the embedding of what it read before; another process asks it, 60 % for
predictions of ten questions, 20 % for five neighbours, 20 % for five questions. Requests are sent when they are due,
whether or not earlier ones are answered (open loop), over 20 connections; a latency counts from when its request was
due. Three streams: none, one of 50,000 events a second, and a backlog that is read as fast as can be. Goal: 500
requests a second, p99 < 20 ms, two cores.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tests.support.generators import planted_triplets
from tests.support.process import engine
from tests.support.running_engine import Engine

OBJECTS, FITTED, CONNECTIONS = 1000, 50_000, 20
STREAMS = {"no stream": 0, "50,000 events a second": 50_000, "a backlog": -1}
HALF = 0.5  # seconds between two appends to the stream


def lines(count: int, seed: int) -> list[str]:
    """Events about the objects, as JSON lines."""
    rng = np.random.default_rng(seed)
    rows = planted_triplets(rng, np.random.default_rng(0).normal(size=(OBJECTS, 3)), count, 0.15)
    return ['{{"anchor":"o{}","near":"o{}","far":"o{}"}}\n'.format(*row) for row in rows.tolist()]


def requests(count: int, host: str) -> list[bytes]:
    """What is asked, as bytes; from a seed."""
    rng, made = np.random.default_rng(1), []
    for kind in rng.random(count):
        if kind < 0.6:
            three = [rng.choice(OBJECTS, 3, replace=False) for _ in range(10)]
            asked = [dict(zip(("anchor", "left", "right"), (f"o{i}" for i in each))) for each in three]
            body = json.dumps({"questions": asked}).encode()
            head = f"POST /predict HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        else:
            body, path = b"", f"/nearest?object=o{rng.integers(OBJECTS)}" if kind < 0.8 else "/ask?n=5"
            head = f"GET {path} HTTP/1.1"
        made.append(f"{head}\r\nHost: {host}\r\n\r\n".encode() + body)
    return made


async def asked(host: str, rate: float, seconds: float) -> tuple[list[float], int]:
    """Latencies in seconds, from when each request was due; and how many were not answered by 200."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    latencies, failed = [], 0

    async def connection() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection(*host.split(":"))
        while True:
            due, request = await waiting.get()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            size = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(size)
            latencies.append(time.monotonic() - due)
            failed += not head.startswith(b"HTTP/1.1 200")
            waiting.task_done()

    working = [asyncio.create_task(connection()) for _ in range(CONNECTIONS)]
    begin = time.monotonic() + 0.5
    for number, request in enumerate(requests(int(rate * seconds), host)):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        waiting.put_nowait((due, request))
    await waiting.join()
    for each in working:
        each.cancel()
    return latencies, failed


def feed(path: Path, rate: int, end: threading.Event) -> None:
    """Append to the stream until the end."""
    some = "".join(lines(int(rate * HALF), 2))
    due = time.monotonic()
    while not end.is_set():
        with path.open("a") as out:
            out.write(some)
        due += HALF
        end.wait(max(0.0, due - time.monotonic()))


def measured(stream: str, rate: float, seconds: float) -> str:
    """Latencies beside this stream, in words."""
    with tempfile.TemporaryDirectory() as name:
        folder, end = Path(name), threading.Event()
        first, path = folder / "first.jsonl", folder / "stream.jsonl"
        first.write_text("".join(lines(FITTED, 1)))
        engine("run", first, "--state", folder / "s", "--no-refits")
        engine("refit", "--state", folder / "s", "embedding", "--set", "dimensions=3")
        path.write_text("".join(lines(15_000_000, 2)) if STREAMS[stream] < 0 else "")
        running = Engine(folder, str(path), "--follow")
        feeding = threading.Thread(target=feed, args=(path, STREAMS[stream], end))
        try:
            if STREAMS[stream] > 0:
                feeding.start()
            for each in ("/nearest?object=o1", "/ask"):
                running.get(each)
            before, cpu = running.figure("events_total"), running.cpu()
            command = [
                sys.executable,
                "-m",
                "tests.benchmarks.live_answers",
                "--ask",
                running.address,
                str(rate),
                str(seconds),
            ]
            began = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
            took, read = time.monotonic() - began, running.figure("events_total") - before
            used = (running.cpu() - cpu) / took
        finally:
            end.set()
            if feeding.is_alive():
                feeding.join()
            running.stop()
    latencies, failed = json.loads(done.stdout)
    p50, p99, most = (1000 * float(np.quantile(latencies, q)) for q in (0.5, 0.99, 1.0))
    return (
        f"p50 {p50:.1f}, p99 {p99:.1f}, most {most:.0f} ms; {len(latencies):,} requests, {failed} failed; "
        f"{read / took:,.0f} events/s counted; {used:.2f} cores used by the engine"
    )


def main(arguments: list[str] | None = None) -> int:
    if arguments and arguments[0] == "--ask":
        print(json.dumps(asyncio.run(asked(arguments[1], float(arguments[2]), float(arguments[3])))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=500.0)
    given = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for stream in STREAMS:
        print(f"{stream}: {measured(stream, given.rate, given.seconds)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
