"""Test, then train: totals equal a plain count, a change is noticed, a stationary stream stays quiet."""

import numpy as np

from stream_engine.engine import Engine
from stream_engine.comparisons import Decoded
from stream_engine.progressive import Progressive
from tests.generators import as_batch, planted_triplets


def decoded(triplets, n):
    return Decoded([str(i) for i in range(n)], triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), [], {}, [])


def test_totals_equal_a_plain_count():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2))
    engine = Engine()
    engine.learn(decoded(planted_triplets(rng, points, 200, 0.2), 8))
    snapshot, observer, totals = engine.snapshot(), Progressive(), {}
    fresh = planted_triplets(rng, np.vstack([points, rng.normal(size=(1, 2))]), 300)
    assert not observer.observe(as_batch(fresh, 9), totals) and totals == {}
    observer.serve(snapshot)
    assert observer.observe(as_batch(fresh, 9), totals)
    w = np.zeros((8, 8), int)
    for a, b, c in engine_triplets(snapshot):
        w[a, b] += 1
        w[b, a] += 1
        w[a, c] -= 1
        w[c, a] -= 1
    margins = [w[a, b] - w[a, c] for a, b, c in fresh.tolist() if max(a, b, c) < 8]
    assert totals == {"adds3": {"tested": len(margins), "correct": sum(m > 0 for m in margins),
                                "undecided": sum(m == 0 for m in margins)}}
    assert 0 < totals["adds3"]["undecided"] < totals["adds3"]["tested"] < 300


def engine_triplets(snapshot):
    from stream_engine.columns import pair_of_entry
    from stream_engine.snapshot import triplet_columns

    columns = triplet_columns(snapshot)
    for entry, p in enumerate(pair_of_entry(columns)):
        lo, hi, anchor = columns.lo[p], columns.hi[p], columns.anchor[entry]
        yield from [(anchor, lo, hi)] * int(columns.n_lo[entry])
        yield from [(anchor, hi, lo)] * int(columns.n_hi[entry])


def test_a_change_is_noticed_and_a_stationary_stream_is_quiet():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 2))
    engine = Engine()
    engine.learn(decoded(planted_triplets(rng, points, 20_000, 0.1), 30))
    observer, totals = Progressive(), {}
    observer.serve(engine.snapshot())
    for _ in range(40):
        observer.observe(as_batch(planted_triplets(rng, points, 1_000, 0.1), 30), totals)
    assert observer.drifts == 0 and observer.rolling.get() > 0.7
    moved = rng.permutation(points)
    for _ in range(20):
        observer.observe(as_batch(planted_triplets(rng, moved, 1_000, 0.1), 30), totals)
    assert observer.drifts >= 1 and observer.rolling.get() < 0.7
