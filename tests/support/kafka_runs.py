"""Runs of the engine over a topic, in a process of their own or in this one."""

import json
import random
import threading
from contextlib import ExitStack

from stream_engine.input.settings.loading import load
from stream_engine.service.context import Context
from stream_engine.service.main_loop import consume
from stream_engine.service.metrics import Metrics
from stream_engine.service.open_run import open_run
from stream_engine.service.requests import Requests
from tests.support.process import records, started, stopped, summary, until

GOOD = [
    json.dumps(dict(zip(("anchor", "near", "far"), names))).encode() for names in ("abc", "bca", "cad", "dab", "acb")
]


def consumed(state, n: int, *arguments) -> str:
    """Run the engine on a topic until it has read n records, then stop it; returns what it said."""
    running = started(
        "run", *arguments, "--state", state, "--no-refits", "--log-format", "json", "--snapshot-interval", "0.2"
    )

    try:
        until(lambda: records(state) >= n, what=f"{n} records in {state}")
    finally:
        said = stopped(running)
    assert running.returncode == 0, said
    return said


def run(uri: str, state, records: int, **more) -> Metrics:
    """A run until the state has counted so many records, and one snapshot at its end; its metrics."""
    given = {"source": [uri], "state": str(state), "input.start": "earliest", "refits.kinds": []}
    settings = load(None, {**given, "snapshot.interval": 0, "snapshot.every": 0, **more}, {})
    requests, metrics = Requests(), Metrics()
    with ExitStack() as stack:
        opened = open_run(settings, state, Context(metrics, requests=requests), stack)

        def stop() -> None:
            try:
                until(lambda: opened.learning.engine.counters["records"] >= records, what=f"{records} records")
            finally:
                requests.stop = True

        stopping = threading.Thread(target=stop)
        stopping.start()
        consume(opened)
        stopping.join()
    assert summary(state)["records"] == records
    return metrics


def values(n: int) -> list[bytes]:
    drawn, names = random.Random(n), [f"object-{i}" for i in range(9)]
    events = [dict(zip(("anchor", "near", "far"), drawn.sample(names, 3))) for _ in range(n)]
    return [b"{broken" if number % 9 == 4 else json.dumps(event).encode() for number, event in enumerate(events)]
