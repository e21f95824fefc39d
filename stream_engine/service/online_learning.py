"""The online embedding of a run: comparisons are tested first, and learned afterwards."""

from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from stream_engine.data.comparisons import Batch
from stream_engine.evaluation import Predictor
from stream_engine.service.metrics import Metrics
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

if TYPE_CHECKING:  # it loads scipy, which a run without an online embedding does not need
    from stream_engine.embedding.online_predictor import ObserverState, Online, Rows


class OnlineLearning:
    """The embedding that is updated between fits: comparisons are tested first, and learned afterwards."""

    def __init__(self, embedding: "Online", metrics: Metrics, log: FilteringBoundLogger):
        self._embedding, self._metrics, self._log = embedding, metrics, log
        self._waiting: list[Rows] = []  # not learned yet, in order
        self._at_snapshot: ObserverState | None = (
            None  # the embedding as it was at the last snapshot, until that is published
        )

    def predictor(self) -> Predictor:
        """A predictor that uses the current embedding."""
        return self._embedding.predictor()

    def wait(self, batch: Batch) -> None:
        """Queue a batch for learning once it was tested."""
        self._waiting.append(self._embedding.rows_of(batch))

    def learn(self, but_last: int = 0) -> None:
        """Learn the queued comparisons, except the last `but_last`."""
        batches, due = [], []
        for rows, workers in reversed(self._waiting):
            end = max(len(rows) - but_last, 0)
            but_last -= len(rows) - end
            due.append((rows[:end], workers[:end]))
            batches.append((rows[end:], workers[end:]))
        self._waiting = [entry for entry in reversed(batches) if len(entry[0])]
        self._embedding.learn_rows([entry for entry in reversed(due) if len(entry[0])])

    def at_snapshot(self, sequence: int) -> None:
        """Learn the queued comparisons, and keep a copy for the artifact of this snapshot."""
        self.learn()
        self._embedding.mark(sequence)
        self._at_snapshot = self._embedding.state()

    def take(self, published: Published) -> None:
        """Continue from the published fit, if it is a new one."""
        artifact = published.artifacts.get("embedding")
        if artifact is None or artifact.sequence > published.snapshot.sequence:
            return
        if self._embedding.take(artifact):
            self._log.info("online embedding continues from a fit", snapshot=artifact.sequence)

    def artifact(self, snapshot: Snapshot, live: float | None) -> Artifact | None:
        """The embedding at the time of this snapshot, which is published by now; it is logged, too."""
        state, self._at_snapshot = self._at_snapshot, None
        if state is None:
            return None
        self._log.info(
            "online embedding",
            snapshot=snapshot.sequence,
            objects=state.report["objects"],
            learned=state.report["learned"],
            live_accuracy=None if live is None else round(live, 4),
        )
        return self._embedding.artifact(state, snapshot, live)
