"""How long a snapshot stops ingestion, and what goes on beside it: CPU nanoseconds per key, logs half full.

The pause is `Engine.capture`: what is unsettled is sorted in, and everything live is copied. Beside ingestion the
partial order is sorted, everything encoded, hashed and written (`publish`, wall time, with fsync).
"""

import tempfile
import time
from time import process_time

import numpy as np

from stream_engine.data.comparisons import Batch
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.benchmarks.stage_counts import BATCH, REPEATS, row, touch, uniform
from tests.support.generators import as_batch

PROMISE = 25.0


def engine_of(triplets: np.ndarray, n: int, accumulators, guard) -> Engine:
    engine = Engine(accumulators, guard)
    engine.objects.ids([f"object-{i}" for i in range(n)])
    return more(engine, triplets)


def more(engine: Engine, triplets: np.ndarray) -> Engine:
    for begin in range(0, len(triplets), BATCH):
        batch: Batch = as_batch(triplets[begin : begin + BATCH], len(engine.objects))
        for each in engine.accumulators.values():
            each.update(batch)
        if engine.guard:
            engine.guard.offer(batch)
    return engine


def held(arrays) -> int:
    """Keys in all rooms of a snapshot."""
    last = {"triplet_counts": "anchor", "adds3": "w", "adds4": "w", "partial_order": "kept"}
    return sum(len(arrays[f"{room}/{name}"]) for room, name in last.items() if f"{room}/{name}" in arrays)


def rows(quick: bool) -> list[dict]:
    """Counts alone, and the whole state, where it is dense and where every comparison is new."""
    size = 500_000 if quick else 10_000_000
    cases = {
        "triplet counts, n = 1,000": (1_000, size, ["triplet_counts"], None),
        "all, n = 1,000": (1_000, size, ("adds3", "adds4", "triplet_counts"), "first"),
        "all, n = 1,000,000": (1_000_000, size // 4, ("adds3", "adds4", "triplet_counts"), "first"),
    }
    made = []
    engine_of(uniform(50, 1_000), 50, ("adds3", "adds4", "triplet_counts"), "first").snapshot()  # compiled
    for case, (n, m, accumulators, guard) in cases.items():
        triplets = uniform(n, m)
        engine, pauses = engine_of(triplets[: m * 3 // 4], n, accumulators, guard), []
        for part in np.array_split(triplets[m * 3 // 4 :], REPEATS):
            more(engine, part)
            touch(64 * m)
            began = process_time()
            _, whole = engine.capture()
            pauses.append(process_time() - began)
            began = process_time()
            snapshot = whole()
            beside = process_time() - began
        keys = held(snapshot.arrays)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            _, written = Store(folder).publish(snapshot)
            publish = time.perf_counter() - began
        pause = 1e9 * max(pauses) / keys
        made.append(
            row(
                "snapshot",
                f"{case}: the pause",
                pause,
                PROMISE,
                "the promise",
                PROMISE / pause,
                "ns a key held",
                "<= 25",
                f"{keys:,} keys; pauses {', '.join(f'{1e3 * p:.0f}' for p in pauses)} ms; beside ingestion: sorting "
                f"the order {1e3 * beside:.0f} ms, publishing {written / 1e6:.0f} MB {1e3 * publish:.0f} ms (wall)",
            )
        )
    return [{**one, "target": "-" if quick else one["target"]} for one in made]
