"""What a run has published so far, for HTTP, predictors, and refits that are about to start."""

from structlog.typing import FilteringBoundLogger

from stream_engine.counts.removal import CannotForget
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


class PublishedState:
    """`newest` is the newest published snapshot with its artifacts; None before the first one."""

    def __init__(self, store: Store, monitor: PredictionMonitor, metrics: Metrics, log: FilteringBoundLogger):
        self._store, self._monitor, self._metrics, self._log = store, monitor, metrics, log
        self.newest: Published | None = None
        self._whole: Snapshot | None = None  # the newest, with participants who are excluded

    def set_newest(self, snapshot: Snapshot) -> None:
        """Make this snapshot, with its current artifacts, the newest; not if participants cannot be excluded from
        it: the run goes on."""
        self._whole = snapshot
        try:
            self.newest = newest = self._store.with_artifacts(snapshot)
        except CannotForget as error:
            self._log.error("the snapshot is not shown", problem=str(error))
            return
        self._monitor.use_published(newest)
        for kind, artifact in newest.artifacts.items():
            self._metrics.refit_age.labels(kind).set(snapshot.sequence - artifact.sequence)

    def renew_artifacts(self) -> None:
        """Reload the artifacts, because a refit has published one."""
        if self._whole is not None:
            self.set_newest(self._whole)

    def announce(self, snapshot: Snapshot) -> None:
        """Process a newly published snapshot: write the figures of predictions and the online embedding next to it,
        then serve it. Both files are for people and for the next run; no count depends on them."""
        figures = self._monitor.tell()
        artifact = self._monitor.online_artifact(snapshot)
        try:
            if figures["sampled"]:
                self._store.note("progressive", {"snapshot": snapshot.sequence, **figures})
            if artifact is not None:
                self._store.publish_artifact(artifact)
        except OSError as error:
            self._log.warning("could not write the figures of predictions", problem=str(error))
        self.set_newest(snapshot)
