"""Responses as people give them: pick k of n and odd-one-outs about few objects, by workers who err a whole screen
long, so that comparisons of one judgement tell each other's answers."""

from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.kept_responses import KeptResponses
from stream_engine.state.snapshot import Snapshot, triplet_columns


class World(NamedTuple):
    """Responses and the points they are about."""

    points: np.ndarray  # (n, d)
    judgements: KeptResponses
    names: tuple[str, ...]  # of the objects

    def rows(self) -> np.ndarray:
        """(comparisons, 4) as often as they were said."""
        return np.repeat(self.judgements.rows, self.judgements.times[self.judgements.judgement], axis=0)


def picked(rng, points: np.ndarray, shown: int, near: int, noise: float) -> np.ndarray:
    """(near * (shown - near), 4) rows of one judgement: the `near` of `shown` images that look nearest to a probe,
    seen with noise that one screen shares."""
    probe, *images = rng.choice(len(points), shown + 1, replace=False).tolist()
    seen = points + noise * rng.normal(size=points.shape)
    distance = ((seen[images] - seen[probe]) ** 2).sum(axis=1)
    order = [images[place] for place in np.argsort(distance)]
    return np.array([[probe, a, probe, b] for a in order[:near] for b in order[near:]], np.int32)


def world(
    seed: int,
    n: int = 12,
    screens: int = 120,
    workers: int = 10,
    shown: int = 5,
    near: int = 2,
    noise: float = 0.5,
    quadruplets: float = 0.0,
    repeats: float = 0.1,
) -> World:
    """A world with repeated questions, judgements given more than once, workers without a name and without a time."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    asked, rows = [], []
    for _ in range(screens):
        if asked and rng.random() < repeats:
            made = asked[rng.integers(len(asked))]
        elif rng.random() < quadruplets:
            made = rng.choice(n, (1, 4), replace=False).astype(np.int32)
        else:
            made = picked(rng, points, shown, near, noise)
        asked.append(made)
        rows.append(made)
    judgement = np.repeat(np.arange(screens), [len(each) for each in rows]).astype(np.int32)
    times = np.where(rng.random(screens) < 0.1, 2, 1).astype(np.int64)
    worker = np.where(rng.random(screens) < 0.1, -1, rng.integers(0, max(workers, 1), screens)).astype(np.int32)
    if not workers:
        worker[:] = -1
    time = np.where(rng.random(screens) < 0.2, np.nan, rng.integers(0, 10**6, screens).astype(float))
    kept = KeptResponses(
        np.concatenate(rows),
        judgement,
        times,
        worker,
        tuple(f"worker {w}" for w in range(workers)),
        time,
        np.full(screens, -1, np.int32),
        (),
        True,
    )
    return World(points, kept, tuple(f"object {i}" for i in range(n)))


PEOPLE = [f"p{i:02}" for i in range(15)]


def counts(snapshot: Snapshot) -> dict[tuple[int, ...], int]:
    """How often each directed comparison was said."""
    columns, said = triplet_columns(snapshot), {}
    pair = pair_of_entry(columns)
    for a, lo, hi, n_lo, n_hi in zip(columns.anchor, columns.lo[pair], columns.hi[pair], columns.n_lo, columns.n_hi):
        said |= {(a, lo, a, hi): n_lo, (a, hi, a, lo): n_hi}
    four = snapshot.section("quadruplet_counts")
    for i, j, k, l, n_lo, n_hi in zip(*(four.get(name, ()) for name in ("i", "j", "k", "l", "n_lo", "n_hi"))):
        said |= {(i, j, k, l): n_lo, (k, l, i, j): n_hi}
    return {tuple(map(int, key)): int(times) for key, times in said.items() if times}
