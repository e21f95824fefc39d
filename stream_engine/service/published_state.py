"""What a run has published by now: for HTTP, for the predictors, for refits that are to start."""

from structlog.typing import FilteringBoundLogger

from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


class PublishedState:
    """`newest` is the last published snapshot with its artifacts; None before there is one."""

    def __init__(self, store: Store, monitor: PredictionMonitor, metrics: Metrics, log: FilteringBoundLogger):
        self._store, self._monitor, self._metrics, self._log = store, monitor, metrics, log
        self.newest: Published | None = None

    def serve(self, snapshot: Snapshot) -> None:
        """This snapshot, with the artifacts that are there now, is the newest."""
        self.newest = published = self._store.with_artifacts(snapshot)
        self._monitor.published(published)
        for kind, artifact in published.artifacts.items():
            self._metrics.refit_age.labels(kind).set(snapshot.sequence - artifact.sequence)

    def renew_artifacts(self) -> None:
        """A refit has published an artifact."""
        if self.newest is not None:
            self.serve(self.newest.snapshot)

    def announce(self, snapshot: Snapshot) -> None:
        """A snapshot was published: write beside it how predictions went up to now, and the online embedding of that
        moment. Both are for people and for the next run; losing them loses no count. Then serve it."""
        figures = self._monitor.tell()
        artifact = self._monitor.online_artifact(snapshot)
        try:
            if figures["sampled"]:
                self._store.note("progressive", {"snapshot": snapshot.sequence, **figures})
            if artifact is not None:
                self._store.publish_artifact(artifact)
        except OSError as error:
            self._log.warning("figures of the predictions could not be written", problem=str(error))
        self.serve(snapshot)
