"""Accumulators that weigh, forget and keep workers apart, beside plain ones on the same batches.

`rows(quick)`: nanoseconds a comparison (CPU of one core, best of the interleaved runs), the state included once at
the end, and the bytes held; ratio = plain / ours, so what it costs more. Batches of 10,000 with 200 workers, times
that are a little out of order, and weights.
"""

import numpy as np

from stream_engine.accumulators import Forgetting, accumulator, empty
from stream_engine.data.comparisons import Provenance
from tests.benchmarks.stage_counts import best, row, uniform
from tests.support.generators import as_batch

BATCH = 10_000
PLAIN = {
    "adds3_weighted": "adds3",
    "adds3_decayed": "adds3",
    "window": "adds3",
    "triplet_counts_weighted": "triplet_counts",
    "triplet_counts_decayed": "triplet_counts",
    "worker_votes": "triplet_counts",
}


def stream(n: int, size: int) -> list:
    """Batches of answers with workers, times and weights."""
    rng, triplets, found = np.random.default_rng(1), uniform(n, size), []
    names = [f"w{i}" for i in range(200)]
    for begin in range(0, size, BATCH):
        rows = triplets[begin : begin + BATCH]
        m = len(rows)
        provenance = Provenance(
            np.arange(m, dtype=np.int32),
            np.empty(0, np.int32),
            np.zeros(m, np.int8),
            rng.integers(200, size=m).astype(np.int32),
            names,
            rng.uniform(0.5, 1.5, m),
            begin + np.arange(m) + rng.normal(0, 50, m),
        )
        found.append(as_batch(rows, n)._replace(provenance=provenance))
    return found


def rows(quick: bool) -> list[dict]:
    """Half a minute, or a few seconds if quick."""
    size, found = 200_000 if quick else 2_000_000, []
    for n in (100, 1000):
        batches = stream(n, size)
        for name, plain in PLAIN.items():
            for by in ("count", "time") if accumulator(name).forgets else ("",):
                forgetting = Forgetting(by or "count", size / 4, size / 4)
                held = {}

                def learn(what, forgetting=forgetting, held=held):
                    kept = empty(what, forgetting)
                    for batch in batches:  # noqa: B023
                        kept.update(batch)
                    held[what] = kept.nbytes
                    kept.state()

                learn(name)
                learn(plain)
                ours, theirs = best(lambda: learn(name), lambda: learn(plain))  # noqa: B023
                found.append(
                    row(
                        name,
                        f"n = {n}" + (f", by {by}" if by else ""),
                        1e9 * ours / size,
                        1e9 * theirs / size,
                        plain,
                        theirs / ours,
                        "ns a comparison",
                        "-",
                        f"{held[name] / 1e6:.1f} MB, {plain} {held[plain] / 1e6:.1f} MB",
                    )
                )
    return found
