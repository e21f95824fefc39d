"""HTTP under load, on a real `stream-engine run --follow --listen`: what readers, silent connections and SIGTERM cost.

    python -m tests.hardening.http_load [--objects 4700] [--readers 12] [--idle 1000] [--requests 1000]

Readers download one export at once while idle sockets are open and the three probes are asked, one request a
connection as a kubelet does; then the engine gets SIGTERM in the middle of downloads.
"""

import argparse
import http.client
import json
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.support.process import jsonl, until
from tests.support.running_engine import Engine

PROBES = ("/metrics", "/healthz", "/readyz")


def events(objects: int) -> Iterator[dict]:
    """Every object compared with pairs of the same six: kernels without a zero, whose text is long."""
    rng, pairs = random.Random(0), list(combinations([f"o{i}" for i in range(6)], 2))
    for anchor in range(6, objects):
        for near, far in rng.sample(pairs, 13):
            yield {"anchor": f"o{anchor}", "near": near, "far": far}


class Loaded(Engine):
    """A running engine on one file."""

    def __init__(self, folder: Path, objects: int):
        file = jsonl(folder / "events.jsonl", events(objects))
        super().__init__(folder, str(file), "--follow", config="[snapshot]\ninterval = 1.0\n")
        host, _, port = self.address.rpartition(":")
        self.place = host, int(port)
        until(lambda: self.records() == 13 * (objects - 6), what="the snapshot")

    def records(self) -> int:
        """How many the newest snapshot has seen."""
        status, body = self.asked("/snapshot")
        return json.loads(body)["records"] if status == 200 else 0

    def asked(self, path: str) -> tuple[int, bytes]:
        """Status and body, over a connection of its own."""
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def memory(self) -> int:
        """Bytes that the process and its children hold, pages that they share counted once."""
        family = [self.process.pid]
        for pid in family:
            family += [int(n) for path in Path(f"/proc/{pid}/task").glob("*/children") for n in _text(path).split()]
        return sum(_pss(pid) for pid in family)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""


def _pss(pid: int) -> int:
    return sum(
        int(line.split()[1]) << 10
        for line in _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
        if line.startswith("Pss:")
    )


@contextmanager
def silent(engine: Loaded, count: int) -> Iterator[Callable[[], int]]:
    """So many connections that say nothing; what is called tells how many are still open."""
    opened = []
    for _ in range(count):
        opened.append(socket.create_connection(engine.place, timeout=5))
        opened[-1].setblocking(False)

    def still_open() -> int:
        return sum(_is_open(each) for each in opened)

    try:
        yield still_open
    finally:
        for each in opened:
            each.close()


def _is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False


READER = """
import hashlib, http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=300)
connection.request("GET", sys.argv[3])
answer = connection.getresponse()
digest, size, piece = hashlib.sha256(), 0, bytearray(1 << 20)
print("begun", flush=True)
while n := answer.readinto(piece):
    digest.update(memoryview(piece)[:n]); size += n
print(answer.status, size, digest.hexdigest())
"""


def readers(engine: Loaded, count: int, path: str) -> list[subprocess.Popen]:
    """Processes that download a file and say status, size and digest."""
    return [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", READER, engine.place[0], str(engine.place[1]), path],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]


class Watched:
    """The most memory in use while it is entered, beyond what was in use before."""

    def __init__(self, engine: Loaded):
        self._engine, self.before, self.growth = engine, engine.memory(), 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.2):
            self.growth = max(self.growth, self._engine.memory() - self.before)


def probed(engine: Loaded, requests: int, busy: Callable[[], bool]) -> dict[str, list[float]]:
    """Seconds of each request, the probes in turn: so many of each, and more for as long as `busy`."""
    seconds: dict[str, list[float]] = {path: [] for path in PROBES}
    while busy() or len(seconds[PROBES[0]]) < requests:
        for path in PROBES:
            began = time.monotonic()
            status, _ = engine.asked(path)
            seconds[path].append(time.monotonic() - began)
            assert status == 200, (path, status)
        time.sleep(0.002)
    return seconds


def under_downloads(engine: Loaded, path: str, count: int, idle: int, requests: int) -> None:
    """Readers, idle sockets and probes at once."""
    with silent(engine, idle) as still_open, Watched(engine) as watched:
        began = time.monotonic()
        engine.asked("/healthz")
        row("first answer behind them all", f"{time.monotonic() - began:.2f} s")
        began = time.monotonic()
        running = readers(engine, count, path)
        seconds = probed(engine, requests, lambda: any(each.poll() is None for each in running))
        said = [each.communicate()[0].split()[1:] for each in running]
        row(
            "downloads",
            f"{count} of {path}: "
            + ", ".join(sorted({f"{s[0]} {int(s[1]):,} bytes" if s else "failed" for s in said})),
        )
        row("all downloads equal", len({tuple(s) for s in said}) == 1)
        row("seconds for all", f"{time.monotonic() - began:.1f}")
        row("idle sockets still open", f"{still_open()} of {idle}")
    for each, times in seconds.items():
        p50, p99, worst = np.percentile(times, [50, 99, 100]) * 1000
        row(f"{each} p50, p99, worst", f"{p50:.1f} ms, {p99:.1f} ms, {worst:.0f} ms over {len(times):,} requests")
    row("memory before, growth", f"{watched.before / 1e6:.0f} MB, {watched.growth / 1e6:.0f} MB")


def row(what: str, value: object) -> None:
    """One line of the table."""
    print(f"| {what} | {value} |", flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (
        ("objects", 4700),
        ("readers", 12),
        ("idle", 1000),
        ("requests", 1000),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--path", default="/export/k1.csv")
    given = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    print("| what | measured |\n|---|---|")
    with TemporaryDirectory() as folder:
        engine = Loaded(Path(folder), given.objects)
        under_downloads(engine, given.path, given.readers, given.idle, given.requests)
        running = readers(engine, given.readers, given.path)
        for each in running:
            assert each.stdout.readline() == "begun\n"
        began = time.monotonic()
        engine.stop()
        row("SIGTERM amid downloads, seconds to the exit", f"{time.monotonic() - began:.1f}")
        for each in running:
            each.kill()
            each.communicate()
        said = engine.said.read_text()
        row("traceback in the log", "Traceback" in said or '"exception"' in said)
        row("log", f"{len(said):,} bytes")


if __name__ == "__main__":
    main()
