"""Many objects: names, counts, a snapshot and a restart, far beyond what n^2 would allow.

    python -m tests.benchmarks.many_objects [--objects 10000000] [--comparisons 100000000] [--on-disk FOLDER]

Every object is asked about pairs of 50 landmarks (Kleindessner & von Luxburg 2017, sec. 2.3): the design for many
objects, since uniform triplets about 10^6 objects hardly ever meet. An `Engine` learns blocks of names, as decoders
give them, is captured and published, thrown away, restored from the file, and goes on. Prints after each step CPU
time and memory that is anonymous, which no kernel can page out without swap.
"""

import argparse
import gc
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from stream_engine.data import mapped_arrays
from stream_engine.data.comparisons import Decoded, empty_batch
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store

BLOCK, LANDMARKS, WRONG = 1_000_000, 50, 0.2
ON_DISK_ABOVE = 1 << 24  # bytes of an array


def memory(what: str = "RssAnon") -> float:
    """GB of anonymous memory now; VmHWM: the most that was resident."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) * 1024e-9


class Said:
    """A line after each step: CPU seconds, anonymous memory, the most that was seen."""

    def __init__(self):
        self._at, self.most = time.process_time(), 0.0

    def __call__(self, what: str, figure: str = "") -> None:
        took = time.process_time() - self._at
        self._at, self.most = time.process_time(), max(self.most, memory())
        told = f"{took:>8.1f} s, anonymous{memory():>6.2f} GB, at most{self.most:>6.2f}"
        print(f"{what:32}{told}, resident at most{memory('VmHWM'):>6.2f}   {figure}", flush=True)


def name(i: int) -> str:
    return f"object-{i:08d}"


def block(rng: np.random.Generator, n: int) -> Decoded:
    """Triplets about landmarks as a decoder gives a block: distinct names, and places among them. An object is nearer
    to a landmark of its own residue modulo 5, four times of five."""
    anchor = rng.integers(LANDMARKS, n, BLOCK, dtype=np.int32)
    pair = rng.integers(0, LANDMARKS, (BLOCK, 2), dtype=np.int32)
    apart = pair[:, 0] != pair[:, 1]
    anchor, pair = anchor[apart], pair[apart]
    own = pair % 5 == anchor[:, None] % 5
    swap = (own[:, 1] & ~own[:, 0]) ^ (rng.random(len(pair)) < WRONG)
    pair[swap] = pair[swap][:, ::-1]
    rows = np.column_stack([anchor, pair])
    numbers, places = np.unique(rows, return_inverse=True)
    none, places = empty_batch(0), places.reshape(rows.shape).astype(np.int32)
    names = [name(i) for i in numbers.tolist()]
    return Decoded(names, places, none.quadruplets, none.quadruplet_at, [], {"triplet": len(rows)}, [])


def learned(engine: Engine, rng: np.random.Generator, n: int, wanted: int, said: Said) -> None:
    """Learn blocks until so many comparisons are; the rate is without the making of them."""
    done, spent = 0, 0.0
    while done < wanted:
        decoded = block(rng, n)
        begin = time.process_time()
        engine.learn(decoded)
        spent += time.process_time() - begin
        said.most = max(said.most, memory())
        done += len(decoded.triplets)
    said(f"{done:,} comparisons", f"{done / spent:,.0f} per CPU second")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10**7)
    parser.add_argument("--comparisons", type=int, default=10**8)
    parser.add_argument("--on-disk", metavar="FOLDER", help="keep counts there")
    given = parser.parse_args(arguments)
    n, rng, said = given.objects, np.random.default_rng(0), Said()
    allocation = mapped_arrays.IN_MEMORY
    if given.on_disk:
        allocation = mapped_arrays.on_disk(Path(given.on_disk) / "scratch", ON_DISK_ABOVE)
    engine, before = Engine(["adds3", "triplet_counts"], guard=False, allocation=allocation), memory()
    for begin in range(0, n, BLOCK):
        engine.objects.ids([name(i) for i in range(begin, min(begin + BLOCK, n))])
    said(f"{n:,} names", f"{1e9 * (memory() - before) / n:.0f} bytes each")
    learned(engine, rng, n, given.comparisons, said)
    for room, each in engine.accumulators.items():
        held, state = each.nbytes, each.state()  # settles
        keys = len(state.get("anchor", state.get("w")))
        sizes = f"{each.nbytes / keys:.0f} bytes a key at rest, {held / keys:.0f} with its log"
        said(f"{room}, settled", f"{keys:,} keys, {sizes}")
        del state
    with tempfile.TemporaryDirectory(dir=given.on_disk) as folder:
        store, began = Store(folder), time.monotonic()
        now, whole = engine.capture()
        said("captured (the loop pauses)", f"{time.monotonic() - began:.1f} s of the clock")
        named, size = store.publish(whole())
        said("snapshot published", f"{size / 1e9:.2f} GB, {named.digest[:16]}")
        del engine, now, whole, named
        gc.collect()
        began = time.monotonic()
        engine = Engine.restore(store.latest().snapshot, allocation)
        said("restarted from the snapshot", f"{time.monotonic() - began:.1f} s of the clock")
        learned(engine, rng, n, BLOCK, said)
        del engine
        gc.collect()
        allocation.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
