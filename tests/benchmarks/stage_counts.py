"""Accumulators against their rivals: np.add.at and np.bincount for AddS-3; a Python dict and a one-shot sort for the
triplet counts.

`rows(quick)` gives one dict a figure: stage, case, ours, rival, rival_name, ratio (above 1: we are faster or smaller),
unit, target, notes. CPU time of one core, best of REPEATS interleaved runs, fixed seeds. Where much memory is needed it
is touched right before each run, ours and the rival's alike: on a virtual machine the first touch of a page that the
host has taken back costs more than everything measured here.
"""

import tracemalloc
from time import process_time

import numpy as np

from stream_engine.accumulators import radix
from stream_engine.accumulators.adds_similarity import AddS3
from stream_engine.accumulators.triplet_counts import TripletCounts
from stream_engine.data.comparisons import Batch
from tests.support.generators import as_batch

REPEATS = 3
BATCH = 100_000
LARGE = 100_000  # keys held, from which pauses are looked at


def row(stage, case, ours, rival, rival_name, ratio, unit, target, notes="") -> dict:
    return dict(
        stage=stage,
        case=case,
        ours=ours,
        rival=rival,
        rival_name=rival_name,
        ratio=ratio,
        unit=unit,
        target=target,
        notes=notes,
    )


def touch(size: int) -> None:
    """Have the machine back `size` bytes with memory before anything is timed."""
    np.empty(size, np.uint8).fill(1)


def seconds(call) -> float:
    begin = process_time()
    call()
    return process_time() - begin


def best(*calls, memory: int = 0, runs: int = 1) -> list[float]:
    """The shortest time of each call, taken in turns of `runs` runs; `memory` bytes are touched before each turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEATS):
        for call, taken in zip(calls, times):
            touch(memory)
            taken += [seconds(call) for _ in range(runs)]
    return [min(taken) for taken in times]


def uniform(n: int, size: int, seed: int = 0) -> np.ndarray:
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


def counted(triplets: np.ndarray, n: int, log=None) -> TripletCounts:
    counts = TripletCounts()
    for begin in range(0, len(triplets), BATCH):
        batch = as_batch(triplets[begin : begin + BATCH], n)
        took = seconds(lambda: counts.update(batch))  # noqa: B023  (called at once)
        if log is not None and len(counts._counts):
            log.append((took, len(counts._counts)))
    return counts


def in_a_dict(triplets: np.ndarray) -> dict:
    """The plain way: key -> [times lo was nearer, times hi was]."""
    counts: dict[tuple[int, int, int], list[int]] = {}
    for begin in range(0, len(triplets), BATCH):
        for anchor, near, far in triplets[begin : begin + BATCH].tolist():
            key = (near, far, anchor) if near < far else (far, near, anchor)
            entry = counts.get(key)
            if entry is None:
                entry = counts[key] = [0, 0]
            entry[near > far] += 1
    return counts


def sort_keys(key: np.ndarray, bits: int) -> None:
    keys, spare = key.copy(), np.empty_like(key)
    radix.sort((keys, keys), (spare, spare), len(keys), (0, 0), (0, bits))


def adds(quick: bool):
    size = 200_000 if quick else 2_000_000
    for n in (100, 1000):
        triplets = uniform(n, size)
        batches = [as_batch(triplets[b : b + 10_000], n) for b in range(0, size, 10_000)]
        near = [(np.minimum(*b.triplets.T[[0, 1]]), np.maximum(*b.triplets.T[[0, 1]])) for b in batches]
        far = [(np.minimum(*b.triplets.T[[0, 2]]), np.maximum(*b.triplets.T[[0, 2]])) for b in batches]

        def ours(batches=batches):
            w = AddS3()
            for batch in batches:
                w.update(batch)

        def rival(n=n, near=near, far=far):
            w = np.zeros((n, n), np.int64)
            for plus, minus in zip(near, far):
                np.add.at(w, plus, 1)
                np.add.at(w, minus, -1)

        flat = [np.concatenate([lo * n + hi for lo, hi in pairs]) for pairs in (near, far)]

        def counted_at_once(n=n, flat=flat):
            plus, minus = (np.bincount(index, minlength=n * n) for index in flat)
            return plus - minus

        ours()
        mine, theirs, at_once = best(ours, rival, counted_at_once)
        for taken, name, notes in (
            (theirs, "np.add.at on the same indices", ""),
            (at_once, "np.bincount, the whole at once", "its indices are made before: that flatters it"),
        ):
            rates = size / mine / 1e6, size / taken / 1e6
            unit, target = "M comparisons/s", ">= 0.8" if taken is theirs else "-"
            yield row("AddS-3", f"n = {n}, batches of 10,000", *rates, name, taken / mine, unit, target, notes)


WORKLOADS = {
    "n = 100": lambda size: (uniform(100, size), 100),
    "n = 1,000": lambda size: (uniform(1000, size), 1000),
    "n = 100,000, all distinct": lambda size: (uniform(100_000, size), 100_000),
    "landmark 10,000 x 30": lambda size: (landmark(10_000, 30, size), 10_000),
}


def counts(quick: bool):
    size = 400_000 if quick else 10_000_000
    counted(uniform(50, 1000), 50).state()  # compiled
    for case, make in WORKLOADS.items():
        triplets, n = make(size)
        bits, logs = (n - 1).bit_length(), []
        key = np.random.default_rng(1).integers(2 ** (3 * bits), size=len(triplets), dtype=np.uint64)

        def ours():
            logs.append([])  # noqa: B023
            counted(triplets, n, logs[-1]).state()  # noqa: B023

        mine, sorting = best(ours, lambda: sort_keys(key, 3 * bits), memory=80 * size)  # noqa: B023
        plain = seconds(lambda: in_a_dict(triplets))  # noqa: B023
        rate, rival, sort = (len(triplets) / took / 1e6 for took in (mine, plain, sorting))
        yield row("triplet counts", case, rate, rival, "dict", rate / rival, "M events/s, snapshot included", ">= 25")
        yield row("triplet counts", case, rate, sort, "one radix sort of all keys", rate / sort, "M events/s", ">= 0.3")
        yield from memory(case, triplets, n)
        pause = 1e9 * min(max(took / keys for took, keys in log if keys >= LARGE) for log in logs)
        yield row(
            "triplet counts",
            f"{case}: worst pause",
            pause,
            25.0,
            "the promise",
            25.0 / pause,
            "ns a key held",
            "<= 25",
            f"updates of {BATCH:,} events, from {LARGE:,} keys on",
        )
        half = len(triplets) // 2
        yield shards(case, triplets[:half], triplets[half:], n)


def memory(case: str, triplets: np.ndarray, n: int):
    """Bytes a key, watched from outside by tracemalloc (in a run that is not timed)."""
    tracemalloc.start()
    kept = counted(triplets, n)
    kept._counts.settle()
    rest, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    keys = len(kept._counts)
    yield row(
        "triplet counts",
        f"{case}: at rest",
        rest / keys,
        16.0,
        "the promise",
        16.0 * keys / rest,
        "bytes a key",
        "<= 16",
        f"{keys:,} keys",
    )
    yield row(
        "triplet counts", f"{case}: peak", peak / keys, 40.0, "the promise", 40.0 * keys / peak, "bytes a key", "<= 40"
    )


def shards(case: str, first: np.ndarray, second: np.ndarray, n: int) -> dict:
    theirs = counted(second, n)
    theirs.state()
    merges = []
    for _ in range(REPEATS):
        mine = counted(first, n)
        mine.state()
        merges.append(seconds(lambda: mine.merge(theirs)))  # noqa: B023
    again = min(seconds(lambda: counted(second, n).state()) for _ in range(REPEATS))
    merged = min(merges)
    rates = len(mine._counts) / merged / 1e6, len(second) / again / 1e6
    return row(
        "triplet counts",
        f"{case}: two half shards",
        *rates,
        "reading the second half again (M events/s)",
        again / merged,
        "M keys/s merged",
        "linear",
    )


def single(quick: bool):
    """One comparison at a time, through the same update."""
    size = 2_000 if quick else 20_000
    triplets = uniform(1000, size)
    batches: list[Batch] = [as_batch(triplets[e : e + 1], 1000) for e in range(size)]
    for name, make in (("AddS-3", AddS3), ("triplet counts", TripletCounts)):
        kept = make()

        def ours():
            for batch in batches:
                kept.update(batch)  # noqa: B023

        mine, theirs = best(ours, lambda: in_a_dict(triplets))
        yield row(
            name,
            "one comparison at a time",
            mine / size * 1e6,
            theirs / size * 1e6,
            "dict",
            theirs / mine,
            "us a comparison",
            "-",
        )


def rows(quick: bool) -> list[dict]:
    """All figures of this stage; about three minutes, or a few seconds if quick."""
    found = [*adds(quick), *counts(quick), *single(quick)]
    return [{**one, "target": "-" if quick else one["target"]} for one in found]
