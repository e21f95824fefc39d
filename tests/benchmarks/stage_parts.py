"""What whole commands are made of, a figure each: counting, the live order, clusters, kernels, boosting.

For `--against`: what did a change of one part cost? CPU time of one thread, fixed seeds, kernels compiled before.
"""

from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from stream_engine.alignment.feature_files import FeatureTable
from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from stream_engine.clustering.cascade import solve
from stream_engine.clustering.spur import spur
from stream_engine.kernel_learning.gram_comparisons import satisfied
from stream_engine.order.partial_order import PartialOrder, transitive_reduction
from stream_engine.refits import alignment, kernel_learning, partial_order_embedding, sdp_clustering
from stream_engine.state.engine import Engine
from stream_engine.testing.refits import as_batch, published
from tests.benchmarks.boosting_worlds import sampled_columns
from tests.benchmarks.rows import REPEATS, row, timed
from tests.support import kernel_reference
from tests.support.generators import planted_triplets
from tests.support.planted_similarities import adds3, planted

BATCH = 100_000


def distinct(rng, n: int, size: int) -> np.ndarray:
    """(size, 3) triplets of distinct objects."""
    anchor, one, other = rng.integers(n, size=size), rng.integers(1, n, size=size), rng.integers(1, n - 1, size=size)
    other += other >= one
    return np.stack([anchor, (anchor + one) % n, (anchor + other) % n], axis=1).astype(np.int32)


def counts(quick: bool) -> Iterator[dict]:
    """All accumulators: the rate, and how long a snapshot stops ingestion (it sorts in what is unsettled)."""
    size = 500_000 if quick else 5_000_000
    for n in (1_000, 100_000):
        engine, pauses, spent = Engine(("adds3", "adds4", "triplet_counts"), False), [], 0.0
        engine.objects.ids([f"object-{i}" for i in range(n)])
        triplets = distinct(np.random.default_rng(0), n, size)
        for part in (triplets[: size * 3 // 4], *np.array_split(triplets[size * 3 // 4 :], REPEATS)):
            for begin in range(0, len(part), BATCH):
                batch = as_batch(part[begin : begin + BATCH], n)
                spent += sum(timed(each.update, batch)[1] for each in engine.accumulators.values())
            np.empty(64 * size, np.uint8).fill(1)  # the first touch of a page that the host took back is not ours
            (_, whole), took = timed(engine.capture)
            pauses.append(took)
        arrays = whole().arrays
        keys = sum(len(arrays[name]) for name in ("triplet_counts/anchor", "adds3/w", "adds4/w"))
        case = f"counts, {size:,} over {n:,} objects"
        yield row("parts", case, size / spent / 1e6, "M comparisons/s")
        pause = 1e9 * max(pauses[1:]) / keys
        yield row("parts", f"{case}: a snapshot's pause", pause, "ns a key held", 25.0, "the promise", "<= 25")


def food_like(n: int, edges: int, flip: float) -> np.ndarray:
    """Triplets as (m, 4) edges over n points in the unit cube."""
    rng = np.random.default_rng(0)
    return planted_triplets(rng, rng.random((n, 3)), edges, flip)[:, [0, 1, 0, 2]]


def order(quick: bool) -> Iterator[dict]:
    """The guard over few, some and many objects and on a reversed chain, restoring it, and its reduction."""
    for n, m, target in (
        (100, 1_000_000, "<= 1.5 x first tenth"),
        (1_000, 5_000_000, "<= 1.5 x"),
        (100_000, 2_000_000, ""),
    ):
        rows, guard = food_like(n, m // 10 if quick else m, 0.15), PartialOrder()
        cost = np.array([1e6 * timed(guard.judge_rows, part)[1] / len(part) for part in np.array_split(rows, 20)])
        notes = "by fifth " + " ".join(f"{c.mean():.2f}" for c in np.split(cost, 5))
        case = f"guard, {len(rows):,} comparisons over {n:,} objects, 15% flips"
        yield row("parts", case, cost.mean(), "us/comparison", cost[:2].mean(), "first tenth", target, notes)
    state, spent = timed(guard.state)
    notes = f"from_state() {timed(PartialOrder.from_state, state)[1]:.2f} s"
    yield row("parts", f"guard, {len(state['kept']):,} kept: state()", spent, "s", notes=notes)
    at = 2 * np.arange(30_000, dtype=np.int32)[::-1]
    chain = np.stack([at, at + 1, at + 2, at + 3], axis=1)
    cost = 1e6 * timed(PartialOrder().judge_rows, chain)[1] / len(chain)
    yield row("parts", "guard, reversed chain of 30,000", cost, "us/comparison", target="<= 2")
    guard = PartialOrder()
    guard.judge_rows(food_like(*((500, 250_000) if quick else (1_000, 1_010_000)), 0.02))
    reduced, spent = timed(transitive_reduction, kept := guard.kept())
    yield row("parts", f"reduction of {len(kept):,} edges", spent, "s", target="<= 3", notes=f"{len(reduced):,} left")


def clusters(quick: bool) -> Iterator[dict]:
    """A refit that a certificate ends, SPUR, and a program from nothing and from the state before 5 % more answers."""
    triplets, _ = planted(1000, 4, 4.0)
    snapshot, W = published(as_batch(triplets, 1000), {}), adds3(triplets, 1000)
    _, spent = timed(sdp_clustering.refit, snapshot, sdp_clustering.Params(k=4), 0)
    yield row("parts", "clusters, certified refit, n = 1,000", spent, "s", target="<= .3")
    _, spent = timed(lambda: spur(W, len(triplets), tol=1e-3))
    yield row("parts", "clusters, SPUR, n = 1,000", spent, "s", target="<= 1")
    n, tol = (400, 1e-4) if quick else (1000, 1e-3)
    triplets, _ = planted(n, 4, 3.0)
    triplets = triplets[np.random.default_rng(0).permutation(len(triplets))]
    worlds = [adds3(some, n) for some in (triplets[: int(len(triplets) / 1.05)], triplets)]
    form = {"lam": 2 * np.sqrt(len(triplets) * np.log(n) / n), "tol": tol}
    before = solve(worlds[0], **form)
    first, cold = timed(lambda: solve(worlds[1], **form))
    again, warm = timed(lambda: solve(worlds[1], start=before.state, **form))
    notes = f"{again.iterations} its (cold {first.iterations}), gaps {again.gap:.1e} (cold {first.gap:.1e})"
    yield row("parts", f"clusters, SDP-lambda, n = {n:,}, warm", warm, "s", cold, "cold start", ">= 1", notes)


def learned_kernels(quick: bool) -> Iterator[dict]:
    """Whole refits with the default parameters, lambda or beta chosen, pictures made."""
    cases = [(kernel_learning, 400, 9000, 0.1), (partial_order_embedding, 400, 9000, 0.1)]
    for room, n, m, flip in cases + ([] if quick else [(kernel_learning, 1500, 220_000, 0.15)]):
        points, triplets = kernel_reference.planted(0, n, m, flip)
        test = kernel_reference.rows_of(planted_triplets(np.random.default_rng(99), points, 50_000))
        made, seconds = timed(room.refit, kernel_reference.snapshot_of(triplets, n), room.Params(), 0)
        error = 1 - (satisfied(made.arrays["K"], test) or 0.0)
        notes = f"gap {made.report['gap']:.1e}, {len(made.report['tried'])} tried, held-out error {error:.4f}"
        yield row("parts", f"refit {room.KIND} n={n} m={m}, defaults", seconds, "s", notes=notes)


def rounds(quick: bool) -> Iterator[dict]:
    """TripletBoost on overlapping rings of classes in the plane."""
    for n, labels, share in ((500, 2, 0.1), (1000, 10, 0.03) if quick else (3000, 10, 0.01)):
        rng = np.random.default_rng(0)
        y = rng.integers(labels, size=n)
        points = np.stack([np.cos(2 * np.pi * y / labels), np.sin(2 * np.pi * y / labels)], axis=1)
        points += rng.normal(0, 0.35, (n, 2))
        columns = sampled_columns(cdist(points, points).astype(np.float32), share, 0.1)
        groups = group(label_sets(y, n), np.arange(n))
        codes = codes_from_columns(columns, groups, groups.example)
        took = min(timed(boosting.advance, boosting.start(groups, 0), codes, 100_000)[1] for _ in range(REPEATS))
        case = f"boosting, n = {n:,}, {labels} classes, {len(columns.anchor) / 1e6:.1f} M triplets"
        yield row("parts", case, 10 * took, "us/round", target="<= 2")


def features(quick: bool) -> Iterator[dict]:
    """The refit `alignment` on odd-one-out responses: as it is, weights and the combination; and with linear maps."""
    n, d, sets, size = (200, 64, 2, 20_000) if quick else (1854, 1024, 12, 4_700_000)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 12)).astype(np.float32)
    shown = distinct(rng, n, size)
    a, b, c = points[shown].swapaxes(0, 1)
    like = -np.stack([((b - c) ** 2).sum(1), ((a - c) ** 2).sum(1), ((a - b) ** 2).sum(1)], axis=1) / 3
    odd = (like + rng.gumbel(size=like.shape)).argmax(axis=1)
    one, other, last = (np.take_along_axis(shown, ((odd + at) % 3)[:, None], 1)[:, 0] for at in (1, 2, 0))
    rows = np.concatenate([np.stack([one, other, last], axis=1), np.stack([other, one, last], axis=1)])
    engine, names = Engine(("triplet_counts",), False), [f"object-{i}" for i in range(n)]
    engine.objects.ids(names)
    for begin in range(0, len(rows), BATCH):
        for each in engine.accumulators.values():
            each.update(as_batch(rows[begin : begin + BATCH], n))
    engine.counters["comparisons"] = len(rows)
    maps = rng.normal(size=(sets, 12, d)).astype(np.float32)
    noise = rng.normal(size=(sets, n, d)).astype(np.float32)
    tables = {f"set {at}": FeatureTable(names, points @ maps[at] + noise[at]) for at in range(sets)}
    snapshot, case = engine.snapshot(), f"features, {sets} sets of {d:,} dimensions, {n:,} objects, {size:,} responses"
    for linear in (False, True):
        _, spent = timed(alignment.aligned, snapshot, tables, alignment.Params(linear=linear), 0)
        yield row("parts", f"{case}{', with linear maps' if linear else ''}", spent, "CPU s, two threads")


PARTS = (counts, order, clusters, learned_kernels, rounds, features)


def rows(quick: bool) -> list[dict]:
    """Half a minute, or some minutes. A first pass over little compiles what is timed."""
    with threadpool_limits(1):
        guard = PartialOrder()
        guard.judge_rows(food_like(12, 400, 0.2))
        transitive_reduction(PartialOrder.from_state(guard.state()).kept())
        Engine(("adds3", "adds4", "triplet_counts"), False).capture()
        solve(adds3(planted(40, 2, 2.0)[0], 40), k=3, tol=1e-2)
        return [row for part in PARTS for row in part(quick)]
