"""Answers of the landmark design, and counts of triplets by their definition."""

import numpy as np

from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.data.comparisons import empty_batch
from stream_engine.data.triplet_columns import Columns
from stream_engine.state.snapshot import frozen


def counted(triplets: np.ndarray) -> dict[tuple, int]:
    seen: dict[tuple, int] = {}
    for row in triplets.tolist():
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    return seen


def share(plus: int, minus: int) -> float:
    return (plus - minus) / (plus + minus) if plus + minus else 0.0


def columns_of(triplets: np.ndarray, n: int) -> Columns:
    counts = TripletCounts()
    counts.update(empty_batch(n)._replace(triplets=triplets))
    return Columns(**frozen(counts.state()), n_objects=n)


def landmark_world(rng, n: int, of: int, size: int, which: int) -> tuple[np.ndarray, np.ndarray]:
    """Triplets of the design of sec. 2.3, for k1 or k2, answers at random."""
    marks = rng.choice(n, of, replace=False)
    p = rng.integers(of, size=size)
    q = (p + rng.integers(1, of, size=size)) % of
    other = rng.integers(n, size=size)
    rows = np.stack([other, marks[p], marks[q]] if which == 1 else [marks[p], other, marks[q]], axis=1)
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    swap = rng.random(len(rows)) < 0.5
    rows[swap] = rows[swap][:, [0, 2, 1]]
    return rows.astype(np.int32), np.sort(marks)
