"""Answers about objects whose features are known: triplets by the sigmoid of differences of weighted squared distances,
by participants of different sharpness."""

from typing import NamedTuple

import numpy as np

from stream_engine.alignment.feature_files import FeatureTable
from stream_engine.data.comparisons import DecodedEvents, Kinds, Provenance, empty_batch
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot


class World(NamedTuple):
    features: np.ndarray  # (n, d)
    rows: np.ndarray  # (m, 4) int32
    worker: np.ndarray  # (m,)
    names: list[str]

    @property
    def table(self) -> FeatureTable:
        return FeatureTable(self.names, self.features)

    def snapshot(self) -> Snapshot:
        """What an engine counts of it, each answer a response."""
        m, of = len(self.rows), (np.arange(len(self.rows), dtype=np.int32), np.empty(0, np.int32))
        kind, people = np.zeros(m, np.int8), int(self.worker.max()) + 1
        called = [f"w{number}" for number in range(people)]
        told = Provenance(*of, kind, self.worker.astype(np.int32), called, np.ones(m), np.arange(m) * 1.0)
        none, engine = empty_batch(0), Engine(("triplet_counts", "worker_votes", "judgements"), guard=False)
        triplets = np.ascontiguousarray(self.rows[:, [0, 1, 3]])
        given = {"provenance": told, "kinds": Kinds(*of, kind)}
        engine.learn(DecodedEvents(self.names, triplets, none.quadruplets, none.quadruplet_at, [], {}, [], **given))
        return engine.snapshot()


def world(
    seed: int, n: int = 40, m: int = 2000, weights: tuple[float, ...] = (2.0, 1.0, 0.0, 0.0), people: int = 10
) -> World:
    """Normal features; participants differ in how sharply they distinguish."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(weights)))
    y = x * np.sqrt(np.array(weights))
    a, b, c = np.argsort(rng.random((m, n)), axis=1)[:, :3].T
    who = rng.integers(people, size=m)
    sharp = np.exp(0.8 * rng.normal(size=people))[who]
    margin = sharp * (((y[a] - y[c]) ** 2).sum(axis=1) - ((y[a] - y[b]) ** 2).sum(axis=1))
    turned = rng.random(m) > 1 / (1 + np.exp(-margin))
    b, c = np.where(turned, c, b), np.where(turned, b, c)
    return World(x, np.stack([a, b, a, c], axis=1).astype(np.int32), who, [f"o{i}" for i in range(n)])
