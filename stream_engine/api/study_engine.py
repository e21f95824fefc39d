"""The engine of a study: it counts at once, and judges by the guard later."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from connectors import Position
from stream_engine.data.comparisons import Batch, DecodedEvents
from stream_engine.evaluation.connection import smallest_reachable
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot

MAX_WAITING = 1 << 23  # comparisons that wait for the guard, 16 bytes each


class StudyEngine:
    """An engine whose guard of the partial order judges comparisons only when a snapshot is needed.

    Counting a million answers about 2,000 objects takes half a second, offering them to the guard one to two, and most
    results of a study do not need the order. Invariant: `snapshot` is that of an engine that learned the same blocks in
    the same order.
    """

    def __init__(self, engine: Engine):
        self._engine = engine
        self._waiting: list[Batch] = []
        self._rows = 0
        self._set_of_object = np.empty(0, np.int64)  # of each object, the smallest one that it is connected with

    @property
    def counters(self) -> dict[str, Any]:
        """The counters of the engine, without those of the guard."""
        return self._engine.counters

    @property
    def labels(self) -> dict[str, str]:
        """Classes of objects by name."""
        return self._engine.labels

    @property
    def names(self) -> Sequence[str]:
        """Objects by id."""
        return self._engine.objects.names

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return len(self._engine.objects)

    def learn(self, decoded: DecodedEvents, positions: Mapping[str, Position] = {}, records: int = 1) -> None:
        """Learn a decoded block and the positions after it. O(comparisons) amortised."""
        for _ in self._engine.learn_in_pieces(decoded, positions, records, self._wait):
            pass

    def sets(self) -> list[int]:
        """Sizes of the sets of objects that are not connected by comparisons, the largest first."""
        return sorted(np.bincount(self._set_of_object)[np.unique(self._set_of_object)].tolist(), reverse=True)

    def _join(self, batch: Batch) -> None:
        n, n_before = batch.n_objects, len(self._set_of_object)
        labels = np.concatenate([self._set_of_object, np.arange(n_before, n)])
        edges = [(batch.triplets[:, 0], batch.triplets[:, k]) for k in (1, 2)]
        edges += [(batch.quadruplets[:, 0], batch.quadruplets[:, k]) for k in (1, 2, 3)]
        row = np.concatenate([np.arange(n), *(edge_end for edge_end, _ in edges)])
        column = np.concatenate([labels, *(edge_end for _, edge_end in edges)])
        self._set_of_object = smallest_reachable(row, column, n)

    def _wait(self, batch: Batch) -> None:
        self._join(batch)
        self._waiting.append(batch._replace(provenance=None, kinds=None, name_hashes=None))
        self._rows += len(batch.triplets) + len(batch.quadruplets)
        if self._rows > MAX_WAITING:
            self._judge()

    def _judge(self) -> None:
        for batch in self._waiting:
            self._engine.judge(batch)
        self._waiting, self._rows = [], 0

    def snapshot(self) -> Snapshot:
        """The state with all comparisons judged."""
        self._judge()
        return self._engine.snapshot()
