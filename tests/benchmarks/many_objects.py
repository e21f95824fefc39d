"""Many objects: names, counts, sparse similarity and what is made from them, far beyond what n^2 would allow.

    python -m tests.benchmarks.many_objects [--objects 10000000] [--comparisons 100000000] [--landmarks 50]
    python -m tests.benchmarks.many_objects --guard 10000000
    python -m tests.benchmarks.many_objects --counts --on-disk FOLDER [--above 16777216]

Every object is asked about pairs of a few landmarks (Kleindessner & von Luxburg 2017, sec. 2.3): the design for many
objects, since uniform triplets about 10^6 objects hardly ever meet. An `Engine` learns blocks of names, as decoders
give them, is captured and published, thrown away, restored from the file, and goes on; then the verbs `export`,
`inspect` and `refit` run on that state as processes of their own. Prints CPU time, rate and memory: all that is
resident, and what of it is anonymous, which no kernel can page out without swap. `--counts` ends with the restart.
`--guard M`: the partial order of the first M comparisons beside it, by itself.
"""

import argparse
import contextlib
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from stream_engine.data import mapped_arrays
from stream_engine.data.comparisons import Decoded, empty_batch
from stream_engine.guard.partial_order import PartialOrder
from stream_engine.state.engine import Engine
from stream_engine.state.object_index import ObjectIndex
from stream_engine.state.store import Store

BLOCK = 1_000_000
GROUPS = 5


def resident(pid: int | str = "self") -> float:
    """GB now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e9


def anonymous(pid: int | str = "self") -> float:
    """GB of anonymous memory now (RssAnon); 0 for a process that has ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0) * 1024e-9


class Said:
    """One line a step: CPU seconds, memory after it, the highest so far (of anonymous memory: the highest seen)."""

    def __init__(self):
        self._at, self._most = time.process_time(), 0.0

    def look(self) -> None:
        """Notice how much anonymous memory there is."""
        self._most = max(self._most, anonymous())

    def __call__(self, what: str, figure: str = "") -> float:
        now = time.process_time()
        took, self._at = now - self._at, now
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        self.look()
        print(
            f"{what:54}{took:>8.1f} s{resident():>7.2f} GB, at most{peak:>6.2f}; "
            f"anonymous{anonymous():>6.2f} GB, at most{self._most:>6.2f}   {figure}",
            flush=True,
        )
        return took


def block(rng, n: int, landmarks: int) -> np.ndarray:
    """(m, 3) triplets: objects of a group are nearer to the landmarks of their own group, four times of five."""
    anchor = rng.integers(landmarks, n, BLOCK, dtype=np.int32)
    pair = rng.integers(0, landmarks, (BLOCK, 2), dtype=np.int32)
    pair = pair[(apart := pair[:, 0] != pair[:, 1])]
    anchor = anchor[apart]
    swap = (pair[:, 1] % GROUPS == anchor % GROUPS) & (pair[:, 0] % GROUPS != anchor % GROUPS)
    swap ^= rng.random(len(pair)) < 0.2
    pair[swap] = pair[swap][:, ::-1]
    return np.column_stack([anchor, pair])


def counted(learn, make, wanted: int, said: Said) -> int:
    """Learn batches until so many comparisons are; the rate is that of `learn` alone, without the making."""
    done, spent, wall = 0, 0.0, time.monotonic()
    while done < wanted:
        batch = make()
        begin = time.process_time()
        learn(batch)
        spent += time.process_time() - begin
        said.look()
        done += len(batch.triplets)
    said(
        f"{done:,} comparisons",
        f"{done / spent:,.0f} per CPU second (made in the rest of the time), "
        f"{done / (time.monotonic() - wall):,.0f} a second of the clock",
    )
    return done


def decoded(rows: np.ndarray) -> Decoded:
    """Comparisons of objects by number as a decoder gives a block: distinct names, and places among them."""
    numbers, places = np.unique(rows, return_inverse=True)
    none = empty_batch(0)
    return Decoded(
        [name(i) for i in numbers.tolist()],
        places.reshape(rows.shape).astype(np.int32),
        none.quadruplets,
        none.quadruplet_at,
        [],
        {"triplet": len(rows)},
        [],
    )


def name(i: int) -> str:
    return f"object-{i:08d}"


def verb(*arguments: str) -> str:
    """One verb as a process of its own: its time and the most memory that it had, as it was seen every 50 ms."""
    begin, most, whole = time.monotonic(), 0.0, 0.0
    process = subprocess.Popen([sys.executable, "-m", "stream_engine", *arguments], stdout=subprocess.PIPE, text=True)
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):  # it may end between the two
            most, whole = max(most, anonymous(process.pid)), max(whole, resident(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{arguments}: exit {process.returncode}")
    return (
        f"{time.monotonic() - begin:.1f} s, anonymous at most {most:.2f} GB, "
        f"resident {whole:.2f} (mapped snapshot included)"
    )


def guarded(index: ObjectIndex, rng, wanted: int, landmarks: int, said: Said) -> None:
    """What the partial order of so many comparisons holds."""
    guard, before, offered, spent = PartialOrder(), anonymous(), 0, 0.0
    while offered < wanted:
        batch = empty_batch(len(index))._replace(triplets=block(rng, len(index), landmarks))
        begin = time.process_time()
        guard.offer(batch)
        spent += time.process_time() - begin
        offered += len(batch.triplets)
    held = anonymous() - before
    said(
        f"guard: {offered:,} comparisons",
        f"{held:.2f} GB, {1e9 * held / offered:.0f} bytes a comparison, {offered / spent:,.0f} per CPU second",
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10**7)
    parser.add_argument("--comparisons", type=int, default=10**8)
    parser.add_argument("--landmarks", type=int, default=50)
    parser.add_argument("--choose", type=int, default=500, help="objects of the refit: those with the most answers")
    parser.add_argument("--guard", type=int, default=0, metavar="COMPARISONS")
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--on-disk", metavar="FOLDER")
    parser.add_argument("--above", type=int, default=1 << 24, metavar="BYTES")
    given = parser.parse_args()
    n, rng, said = given.objects, np.random.default_rng(0), Said()
    allocation = mapped_arrays.IN_MEMORY
    if given.on_disk:
        allocation = mapped_arrays.on_disk(Path(given.on_disk) / "scratch", given.above)
    said("start")
    engine, before = Engine(["adds3", "triplet_counts"], guard=False, allocation=allocation), anonymous()
    for begin in range(0, n, BLOCK):
        engine.objects.ids([name(i) for i in range(begin, min(begin + BLOCK, n))])
    said(f"{n:,} names", f"{1e9 * (anonymous() - before) / n:.0f} bytes each")
    if given.guard:
        guarded(engine.objects, rng, given.guard, given.landmarks, said)
    counted(engine.learn, lambda: decoded(block(rng, n, given.landmarks)), given.comparisons, said)
    for room, each in engine.accumulators.items():
        held = each.nbytes
        state = each.state()  # settles
        keys = len(state.get("anchor", state.get("w")))
        said(
            f"{room}, settled",
            f"{keys:,} keys, {each.nbytes / 1e9:.2f} GB at rest ({each.nbytes / keys:.0f} bytes a key), "
            f"{held / 1e9:.2f} GB with its log",
        )
        del state
    with tempfile.TemporaryDirectory(dir=given.on_disk) as state:
        store, begin = Store(state), time.monotonic()
        now, whole = engine.capture()
        said("captured (the loop pauses)", f"{time.monotonic() - begin:.1f} s of the clock")
        named, size = store.publish(whole())
        said("snapshot published", f"{size / 1e9:.2f} GB, {named.digest[:16]}")
        del engine, now, whole, named
        gc.collect()
        said("engine thrown away")
        begin = time.monotonic()
        engine = Engine.restore(store.latest().snapshot, allocation)
        said(
            "restarted from the snapshot",
            f"{time.monotonic() - begin:.1f} s of the clock, {engine.counters['comparisons']:,} comparisons",
        )
        counted(engine.learn, lambda: decoded(block(rng, n, given.landmarks)), BLOCK, said)
        del engine
        gc.collect()
        allocation.close()
        if given.counts:
            return
        print(
            f"export adds3: {verb('export', '--state', state, '--out', f'{state}/out', 'adds3')}, "
            f"{os.path.getsize(f'{state}/out/adds3.npz') / 1e9:.2f} GB",
            flush=True,
        )
        print(f"inspect: {verb('inspect', '--state', state)}", flush=True)
        for rest in ("none", "nearest"):
            chosen = ["--set", "k=5", "--set", f"objects={given.choose}", "--set", f"rest={rest}"]
            took = verb("refit", "--state", state, "spectral", *chosen)
            labels = Store(state).latest_artifact("spectral").arrays["labels"][given.landmarks :]
            known, table = np.flatnonzero(labels >= 0), np.zeros((5, GROUPS), int)
            np.add.at(table, (labels[known], (known + given.landmarks) % GROUPS), 1)
            print(
                f"refit spectral objects={given.choose} rest={rest}: {took}; {len(known):,} clustered, "
                f"{table.max(1).sum() / max(len(known), 1):.3f} as planted",
                flush=True,
            )


if __name__ == "__main__":
    main()
