"""Accumulators beside their rivals: np.add.at and np.bincount for AddS-3; for the triplet counts a Python dict, a
one-shot sort, and the group-by of polars and duckdb, which see packed keys of the whole stream at once (that flatters
them). Then how long a snapshot stops ingestion.

CPU time of one core, best of interleaved runs, fixed seeds.
"""

import os
import tempfile
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np

from stream_engine.counts import radix
from stream_engine.counts.adds_similarity import AddS3
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.benchmarks.rows import REPEATS, best, row, timed
from tests.support.generators import as_batch

BATCH = 100_000
LARGE = 100_000  # keys held, from which pauses are looked at
ALL = ("adds3", "adds4", "triplet_counts")


def uniform(n: int, size: int, seed: int = 0) -> np.ndarray:
    """(size, 3) triplets of distinct objects."""
    rows = np.random.default_rng(seed).integers(n, size=(size + size // 8 * (n < 200) + 1000, 3), dtype=np.int32)
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    return np.ascontiguousarray(rows[:size])


def landmark(n: int, of: int, size: int, which: int = 1, seed: int = 0) -> np.ndarray:
    """The design of Kleindessner & von Luxburg 2017, sec. 2.3, for k1 or k2."""
    rng = np.random.default_rng(seed)
    marks, p = rng.choice(n, of, replace=False), rng.integers(of, size=size)
    first, second, other = marks[p], marks[(p + rng.integers(1, of, size=size)) % of], rng.integers(n, size=size)
    rows = np.stack([other, first, second] if which == 1 else [first, other, second], axis=1).astype(np.int32)
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    swap = rng.random(len(rows)) < 0.5
    rows[swap] = rows[swap][:, [0, 2, 1]]
    return rows


WORKLOADS = {
    "n = 100": lambda size: (uniform(100, size), 100),
    "n = 1,000": lambda size: (uniform(1000, size), 1000),
    "n = 100,000, all distinct": lambda size: (uniform(100_000, size), 100_000),
    "landmark 10,000 x 30": lambda size: (landmark(10_000, 30, size), 10_000),
}


def counted(triplets: np.ndarray, n: int, pauses: list[float] | None = None) -> TripletCounts:
    """The counts; `pauses` gets seconds a key held of each update of a large store."""
    counts = TripletCounts()
    for begin in range(0, len(triplets), BATCH):
        _, took = timed(counts.update, as_batch(triplets[begin : begin + BATCH], n))
        if pauses is not None and len(counts._counts) >= LARGE:
            pauses.append(took / len(counts._counts))
    return counts


def in_a_dict(triplets: np.ndarray) -> int:
    """The plain way: key -> [times lo was nearer, times hi was]."""
    counts: dict[tuple[int, int, int], list[int]] = {}
    for anchor, near, far in triplets.tolist():
        entry = counts.setdefault((min(near, far), max(near, far), anchor), [0, 0])
        entry[near > far] += 1
    return len(counts)


def in_polars(key: np.ndarray, nearer: np.ndarray) -> int:
    """Keys, of a group-by of ready columns."""
    import polars as pl

    grouped = pl.DataFrame({"key": key, "lo": nearer}).group_by("key")
    return grouped.agg(pl.col("lo").cast(pl.Int64).sum(), pl.len()).height


def in_duckdb(key: np.ndarray, nearer: np.ndarray) -> int:
    """The same, through an Arrow table, on one thread."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as session:
        session.execute("SET threads = 1")
        session.register("events", pa.table({"key": key, "lo": nearer}))
        found = session.execute("SELECT key, sum(lo) AS lo, count(*) AS n FROM events GROUP BY key")
        return len(found.fetchnumpy()["key"])


def sorted_once(key: np.ndarray, bits: int) -> None:
    """One radix sort of all keys."""
    keys, spare = key.copy(), np.empty_like(key)
    radix.sort((keys, keys), (spare, spare), len(keys), (0, 0), (0, bits))


def adds(quick: bool) -> Iterator[dict]:
    """AddS-3, n x n."""
    size = 200_000 if quick else 2_000_000
    for n in (100, 1000):
        triplets = uniform(n, size)
        batches = [as_batch(triplets[b : b + 10_000], n) for b in range(0, size, 10_000)]
        pairs = [[np.sort(b.triplets[:, [0, side]], axis=1).T for b in batches] for side in (1, 2)]
        flat = [np.concatenate([lo * n + hi for lo, hi in side]) for side in pairs]

        def ours(batches=batches):
            w = AddS3()
            for batch in batches:
                w.update(batch)

        def added(n=n, pairs=pairs):
            w = np.zeros((n, n), np.int64)
            for plus, minus in zip(*pairs, strict=True):
                np.add.at(w, tuple(plus), 1)
                np.add.at(w, tuple(minus), -1)

        def at_once(n=n, flat=flat):
            return np.subtract(*(np.bincount(index, minlength=n * n) for index in flat))

        ours()
        mine, *rivals = best(ours, added, at_once)
        for taken, name, target in zip(rivals, ("np.add.at", "np.bincount of all"), (">= 0.8", "-"), strict=True):
            case, rates = f"n = {n}, batches of 10,000", (size / mine / 1e6, size / taken / 1e6)
            yield row("AddS-3", case, rates[0], "M comparisons/s", rates[1], name, target)


def counts(quick: bool) -> Iterator[dict]:
    """Triplet counts: rates, bytes a key, the worst pause, merging."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is imported
    size, stage = 400_000 if quick else 10_000_000, "triplet counts"
    counted(uniform(50, 1000), 50).state()  # compiled
    for case, make in WORKLOADS.items():
        triplets, n = make(size)
        anchor, near, far = triplets.T.astype(np.int64)
        bits = (n - 1).bit_length()
        key, nearer = np.minimum(near, far) << 2 * bits | np.maximum(near, far) << bits | anchor, near < far
        worst: list[float] = []

        def ours():
            pauses: list[float] = []
            counted(triplets, n, pauses).state()  # noqa: B023
            worst.append(max(pauses, default=0.0))  # noqa: B023

        mine, sorting = best(ours, lambda: sorted_once(key.view(np.uint64), 3 * bits), memory=80 * size)  # noqa: B023
        keys = len(counted(triplets, n).state()["anchor"])
        rivals = {"one radix sort of all keys": (sorting, ">= 0.3")}
        for name, rival, given, target in (
            ("dict", in_a_dict, (triplets,), ">= 25"),
            ("polars group_by, the whole at once", in_polars, (key, nearer), "-"),
            ("duckdb GROUP BY, the whole at once", in_duckdb, (key, nearer), "-"),
        ):
            rival(*(each[:1000] for each in given))
            found, took = timed(rival, *given)
            assert found == keys, (name, found, keys)
            rivals[name] = took, target
        for name, (took, target) in rivals.items():
            rates = len(triplets) / mine / 1e6, len(triplets) / took / 1e6
            yield row(stage, case, rates[0], "M events/s", rates[1], name, target, "our state at the end included")
        pause = 1e9 * min(worst)
        yield row(stage, f"{case}: worst pause", pause, "ns a key held", 25.0, "the promise", "<= 25")
        tracemalloc.start()
        kept = counted(triplets, n)
        kept._counts.settle()
        for what, held, most in zip(("at rest", "peak"), tracemalloc.get_traced_memory(), (16.0, 40.0), strict=True):
            yield row(stage, f"{case}: {what}", held / keys, "bytes a key", most, "the promise", f"<= {most:.0f}")
        tracemalloc.stop()
        first, second = (counted(half, n) for half in np.array_split(triplets, 2))
        first.state(), second.state()
        _, merging = timed(first.merge, second)
        rates = keys / merging / 1e6, keys / mine / 1e6
        yield row(stage, f"{case}: two halves merged", rates[0], "M keys/s", rates[1], "reading all", "linear")


def snapshots(quick: bool) -> Iterator[dict]:
    """The pause is `Engine.capture`: what is unsettled is sorted in, and everything live is copied. Beside ingestion
    the partial order is sorted, everything encoded, hashed and written (wall time, with fsync)."""
    size = 500_000 if quick else 10_000_000
    for case, n, m, accumulators, guard in (
        ("triplet counts, n = 1,000", 1_000, size, ["triplet_counts"], False),
        ("all, n = 1,000", 1_000, size, ALL, True),
        ("all, n = 1,000,000", 1_000_000, size // 4, ALL, True),
    ):
        engine, pauses = Engine(accumulators, guard), []
        engine.objects.ids([f"object-{i}" for i in range(n)])
        triplets = uniform(n, m)
        for part in (triplets[: m * 3 // 4], *np.array_split(triplets[m * 3 // 4 :], REPEATS)):
            for begin in range(0, len(part), BATCH):
                batch = as_batch(part[begin : begin + BATCH], n)
                for each in engine.accumulators.values():
                    each.update(batch)
                if engine.guard:
                    engine.guard.offer(batch)
            np.empty(64 * m, np.uint8).fill(1)
            (_, whole), took = timed(engine.capture)
            pauses.append(took)
        snapshot, beside = timed(whole)
        sections = {"triplet_counts": "anchor", "adds3": "w", "adds4": "w", "partial_order": "kept"}
        keys = sum(len(snapshot.arrays.get(f"{room}/{name}", ())) for room, name in sections.items())
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            _, written = Store(folder).publish(snapshot)
            publish = time.perf_counter() - began
        notes = f"{keys:,} keys; beside ingestion: sorting the order {1e3 * beside:.0f} ms, publishing "
        notes += f"{written / 1e6:.0f} MB {1e3 * publish:.0f} ms (wall)"
        pause = 1e9 * max(pauses[1:]) / keys
        yield row("snapshot", f"{case}: the pause", pause, "ns a key held", 25.0, "the promise", "<= 25", notes)


def rows(quick: bool) -> list[dict]:
    """All figures of this stage; about four minutes, or ten seconds if quick."""
    return [row for part in (adds, counts, snapshots) for row in part(quick)]
