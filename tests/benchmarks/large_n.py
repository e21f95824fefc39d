"""Many objects: counts, sparse similarity and what is made from them, far beyond what n^2 would allow.

    python -m tests.benchmarks.large_n [--objects 1000000] [--comparisons 100000000] [--landmarks 50]
    python -m tests.benchmarks.large_n --comparisons 30000000 --counts [--on-disk FOLDER [--above 16777216]]
    python -m tests.benchmarks.large_n --comparisons 30000000 --learned [--subset 500]

Every object is asked about pairs of a few landmarks (Kleindessner & von Luxburg 2017, sec. 2.3): the design for many
objects, since uniform triplets about 10^6 objects hardly ever meet. Prints CPU time, rate and the memory of the
process: all that is resident, and what of it is anonymous, which no kernel can page out without swap. `--counts` ends
with a snapshot written and restored, without exports and refits; `--learned` goes on with kernels, an embedding and a
booster of a subset, all other objects extended to or predicted, and how much of fresh comparisons without noise (of the
groups) these get right.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from stream_engine.accumulators.adds_similarity import AddS3
from stream_engine.accumulators.triplet_counts import TripletCounts
from stream_engine.data import mapped_arrays
from stream_engine.data.comparisons import empty_batch
from stream_engine.exports import contents
from stream_engine.prediction import predictor
from stream_engine.refits import refit_module
from stream_engine.state.engine import empty_counters
from stream_engine.state.object_index import ObjectIndex
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, frozen
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


def _written(snapshot: Snapshot, folder: str | None, said: Said) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as state:
        store = Store(state)
        named, size = store.publish(snapshot)
        said("snapshot written", f"{size / 1e9:.2f} GB, {named.digest[:16]}")
        again = TripletCounts.from_state(store.read(1).section("triplet_counts"))
        said("restored", f"{again.nbytes / 1e9:.2f} GB of triplet counts")


def _learned(snapshot: Snapshot, subset: int, landmarks: int, said: Said) -> None:
    n, rng = len(snapshot.objects), np.random.default_rng(1)
    labelled = {snapshot.objects[i]: f"group {i % GROUPS}" for i in range(n) if i < landmarks or i % 2}
    snapshot = snapshot._replace(labels=labelled)
    fresh = block(rng, n, landmarks)
    mine, other = (fresh[:, side] % GROUPS == fresh[:, 0] % GROUPS for side in (1, 2))
    fresh = np.where(mine[:, None], fresh, fresh[:, [0, 2, 1]])[mine != other][:, [0, 1, 0, 2]]
    runs = {
        "kernel_learning": {"form": "t", "rest": "placed", "tolerance": 1e-3},
        "partial_order_embedding": {"constraints": "raw", "multiples": (40.0,), "rest": "placed"},
        "triplet_boost": {"rounds": 20_000},
    }
    for kind, given in runs.items():
        module = refit_module(kind)
        made = module.refit(snapshot, module.Params(objects=subset, **given), 0)
        if kind == "triplet_boost":
            outside = made.report["outside"]
            figure = (
                f"{outside['accuracy']:.3f} of {outside['objects']:,} others right, "
                f"{outside['abstained']:.3f} abstained"
            )
        else:
            margin = predictor(kind, Published(snapshot, {kind: made})).margins(fresh)
            known = ~np.isnan(margin)
            figure = (
                f"{made.report['placed']:,} extended, {made.report['directions']} directions, gap at most "
                f"{made.report['placed_gap']:.1g}, {(margin[known] > 0).mean():.3f} of {known.sum():,} fresh right"
            )
        said(f"{kind}, objects = {subset}", figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10**6)
    parser.add_argument("--comparisons", type=int, default=10**8)
    parser.add_argument("--landmarks", type=int, default=50)
    parser.add_argument("--counts", action="store_true")
    parser.add_argument("--learned", action="store_true")
    parser.add_argument("--subset", type=int, default=500)
    parser.add_argument("--on-disk", metavar="FOLDER")
    parser.add_argument("--above", type=int, default=1 << 24, metavar="BYTES")
    given = parser.parse_args()
    allocation = mapped_arrays.IN_MEMORY
    if given.on_disk:
        allocation = mapped_arrays.on_disk(Path(given.on_disk) / "scratch", given.above)
    n, rng, said = given.objects, np.random.default_rng(0), Said()
    index = ObjectIndex()
    index.ids([f"object-{i:07d}" for i in range(n)])
    said(f"{n:,} names")
    accumulators = {"triplet_counts": TripletCounts(allocation=allocation), "adds3": AddS3(allocation=allocation)}

    def learn(batch) -> None:
        for accumulator in accumulators.values():
            said.look()
            accumulator.update(batch)

    done = counted(
        learn, lambda: empty_batch(n)._replace(triplets=block(rng, n, given.landmarks)), given.comparisons, said
    )
    arrays = {f"{name}/{key}": array for name in accumulators for key, array in accumulators[name].state().items()}
    arrays = frozen(arrays, allocation)
    keys, pairs = len(arrays["triplet_counts/anchor"]), len(arrays["adds3/w"])
    said("settled, as columns, frozen", f"{keys:,} keys, {pairs:,} nonzero pairs; n^2 would be {8e-9 * n * n:,.0f} GB")
    counters = empty_counters() | {"triplets": done, "comparisons": done}
    snapshot = Snapshot(
        1, {}, tuple(index.names), {}, counters, {"accumulators": ["adds3", "triplet_counts"], "guard": None}, arrays
    )
    if given.counts:
        _written(snapshot, given.on_disk, said)
        allocation.close()
        return
    published = Published(snapshot, {})
    accumulators.clear()
    if given.learned:
        _learned(snapshot, given.subset, given.landmarks, said)
        return
    for what in ("adds3", "k1"):
        made = contents(what, published)[what].arrays
        said(f"export {what}", ", ".join(f"{name} {array.shape}" for name, array in made.items()))
        del made
    spectral = refit_module("spectral")
    for params in (
        spectral.Params(k=5, objects=5000),
        spectral.Params(k=5, objects=5000, rest="nearest"),
        spectral.Params(k=5, similarity="k1", objects=5000),
        spectral.Params(k=5, similarity="k1"),
    ):
        made = spectral.refit(snapshot, params, 0)
        labels = made.arrays["labels"][given.landmarks :]
        known = np.flatnonzero(labels >= 0)
        table = np.zeros((5, GROUPS), int)
        np.add.at(table, (labels[known], (known + given.landmarks) % GROUPS), 1)
        said(
            f"spectral {params.similarity}, objects = {params.objects}, rest: {params.rest}",
            f"{len(known):,} clustered, {table.max(1).sum() / max(len(known), 1):.3f} as planted",
        )


if __name__ == "__main__":
    main()
