"""An engine that learns at once and judges later: the guard of the partial order waits until somebody looks.

Counting a million answers of 2,000 objects takes half a second, offering them to the guard one to two, and most
questions put to a study never ask for the order. Invariant: `snapshot` is that of an engine that learned the same
blocks in the same order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from connectors import Position
from stream_engine.data.comparisons import Batch, Decoded
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot

WAITING = 1 << 23  # comparisons that wait at most, 16 bytes each


class Learning:
    """Everything that was read so far."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._waiting: list[Batch] = []
        self._rows = 0

    @property
    def counters(self) -> dict[str, Any]:
        """Those of the engine; the guard's are not done yet."""
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
        """How many objects were named."""
        return len(self._engine.objects)

    def learn(self, decoded: Decoded, positions: Mapping[str, Position] = {}, records: int = 1) -> None:
        """Take in a decoded block and the positions after it. O(comparisons) amortised."""
        for _ in self._engine.learn_in_pieces(decoded, positions, records, self._wait):
            pass

    def _wait(self, batch: Batch) -> None:
        self._waiting.append(batch._replace(provenance=None, kinds=None, name_hashes=None))
        self._rows += len(batch.triplets) + len(batch.quadruplets)
        if self._rows > WAITING:
            self._judge()

    def _judge(self) -> None:
        for batch in self._waiting:
            self._engine.judge(batch)
        self._waiting, self._rows = [], 0

    def snapshot(self) -> Snapshot:
        """The state now, every comparison judged."""
        self._judge()
        return self._engine.snapshot()
