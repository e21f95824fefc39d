"""Triplet counts against the group-by of two data-frame engines, which see the whole stream at once, on one thread.

They are given packed keys and directions as ready columns, and only need to count; ours takes batches, and is asked for
its state once at the end. Equal counts are checked before anything is reported.
"""

import os
from time import process_time

import numpy as np

from tests.benchmarks.stage_counts import counted, landmark, row, uniform


def packed(triplets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m,) int64 keys (lo, hi, anchor) and int8: 1 where lo was nearer."""
    anchor, near, far = triplets.T.astype(np.int64)
    lo, hi = np.minimum(near, far), np.maximum(near, far)
    return lo << 42 | hi << 21 | anchor, (near < far).astype(np.int8)


def in_polars(key: np.ndarray, direction: np.ndarray) -> tuple[int, int]:
    """Keys, and times lo was nearer."""
    import polars as pl

    found = pl.DataFrame({"key": key, "lo": direction}).group_by("key").agg(pl.col("lo").cast(pl.Int64).sum(), pl.len())
    return found.height, int(found["lo"].sum())


def in_duckdb(key: np.ndarray, direction: np.ndarray) -> tuple[int, int]:
    """The same, through an Arrow table."""
    import duckdb
    import pyarrow as pa

    table = pa.table({"key": key, "lo": direction})
    with duckdb.connect() as session:
        session.execute("SET threads = 1")
        session.register("events", table)
        found = session.execute("SELECT key, sum(lo) AS lo, count(*) AS n FROM events GROUP BY key")
        counts = found.fetchnumpy()
    return len(counts["key"]), int(counts["lo"].sum())


def rows(quick: bool) -> list[dict]:
    """One row a workload and rival."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported, which happens below
    size = 500_000 if quick else 10_000_000
    cases = {
        "n = 100": (uniform(100, size), 100),
        "n = 1,000": (uniform(1_000, size), 1_000),
        "landmark 10,000 x 30": (landmark(10_000, 30, size), 10_000),
    }
    made = []
    counted(uniform(100, 1_000), 100).state()  # compile
    for case, (triplets, n) in cases.items():
        began = process_time()
        state = counted(triplets, n).state()
        ours = process_time() - began
        key, direction = packed(triplets)
        for name, rival in (("polars group_by", in_polars), ("duckdb GROUP BY", in_duckdb)):
            rival(key[:1_000], direction[:1_000])
            began = process_time()
            keys, nearer = rival(key, direction)
            taken = process_time() - began
            assert (keys, nearer) == (len(state["anchor"]), int(state["n_lo"].sum()))
            made.append(
                row(
                    "counts",
                    f"{case}, {size:,}, against the whole at once",
                    size / ours / 1e6,
                    size / taken / 1e6,
                    name,
                    taken / ours,
                    "M events/s",
                    "-",
                )
            )
    return made
