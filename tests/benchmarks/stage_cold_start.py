"""From `python -m stream_engine` to the first thousand comparisons learned: imports, and what the cache saves."""

import os
import subprocess
import sys
import tempfile
import time

FIRST = """
import time
began = time.perf_counter()
import stream_engine.service.run
imported = time.perf_counter()
from stream_engine.data.comparisons import Triplet
from stream_engine.state.engine import Engine
Engine().learn_many([Triplet(str(i % 7), str(i % 7 + 1), str(i % 7 + 2)) for i in range(1000)])
print(imported - began, time.perf_counter() - imported)
"""


def started(cache: str) -> tuple[float, float, float]:
    """(seconds of imports, of the first batch, of the whole process) with numba's cache at `cache`."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", FIRST],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    imports, first = map(float, done.stdout.split())
    return imports, first, time.perf_counter() - began


def rows(quick: bool) -> list[dict]:
    """Wall seconds, cold and warm."""
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = started(cache), min((started(cache) for _ in range(3)), key=lambda t: t[2])
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "stream_engine", "warm-up"],
            capture_output=True,
            check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
        )
        filled = time.perf_counter() - began
    return [
        {
            "stage": "cold start",
            "case": "first batch, cache warm",
            "ours": warm[1],
            "rival": cold[1],
            "rival_name": "cache empty",
            "unit": "s (wall)",
            "ratio": cold[1] / warm[1],
            "target": "< 2 s",
        },
        {"stage": "cold start", "case": "imports", "ours": warm[0], "unit": "s (wall)"},
        {"stage": "cold start", "case": "warm-up from an almost empty cache", "ours": filled, "unit": "s (wall)"},
    ]
