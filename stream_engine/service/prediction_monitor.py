"""Predictions of a run: renew the predictors, report how well they predict, raise an alarm when that changes."""

import math
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from structlog.typing import FilteringBoundLogger

from stream_engine.alignment.feature_files import BadFeatures, FeatureSpec
from stream_engine.data.comparisons import Batch
from stream_engine.evaluation import COSTLY, PREDICTORS, WITH_SNAPSHOT, Predictor, predictor
from stream_engine.evaluation.observer import Observer
from stream_engine.input.settings import DriftSettings
from stream_engine.service.metrics import Metrics
from stream_engine.service.online_learning import OnlineLearning
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

if TYPE_CHECKING:  # it loads scipy, which a run without an online embedding does not need
    from stream_engine.embedding.online_predictor import Online

DELTA = 0.2  # of the detectors: a smaller value means fewer false alarms and later true ones
COOLDOWN = 100_000  # comparisons between alarms; drift detected in between is reported afterwards
BUDGET = 0.005  # share of the time for each slow predictor
TELL_SECONDS = 1.0  # between two renewals of the figures in the metrics

_NewPredictors = tuple[dict[str, tuple[Predictor | None, float]], dict[str, str]]


class PredictionMonitor:
    """The observer of one run with its thread, metrics and log lines. `figures` are the most recent figures.

    Predictors other than AddS and repeats are created in a separate thread from the newest published snapshot; slow
    ones (k1 and k2) only so often that their share of the time stays below `BUDGET`. Until new predictors are ready,
    the old ones continue.
    """

    def __init__(
        self,
        settings: DriftSettings,
        metrics: Metrics,
        log: FilteringBoundLogger,
        online: "Online | None" = None,
        features: Mapping[str, FeatureSpec] = MappingProxyType({}),
    ):
        self._observer = Observer(DELTA if settings.enabled else None, COOLDOWN)
        self._metrics, self._log = metrics, log
        self._pool = ThreadPoolExecutor(1, "predictors")
        self._features = features
        self._online = OnlineLearning(online, metrics, log) if online else None
        if self._online:
            self._observer.use({"online": self._online.predictor()})
        self._making: Future[_NewPredictors] | None = None
        self._next: Published | None = None
        self._cost: dict[str, tuple[float, float]] = {}  # costly predictor -> (seconds it took, when it was done)
        self._problems: set[str] = set()
        self._last_told = -math.inf
        self._input_ended = False
        self.figures: dict[str, Any] = {}

    def end(self) -> None:
        """The input has ended: no more predictors are created. Queued comparisons are still tested by the existing
        ones."""
        self._input_ended, self._next = True, None

    def serve(self, snapshot: Snapshot) -> None:
        """Predict with AddS and the repeats of this snapshot from now on."""
        if self._input_ended:
            self._observer.test()
        else:
            self._observer.serve(snapshot)
        if self._online:
            self._online.at_snapshot(snapshot.sequence)

    def use_published(self, published: Published) -> None:
        """Create the other predictors from this published state; a newer one replaces one that waits."""
        if not self._input_ended:
            self._next = published
            self._renew()
            if self._online:
                self._online.take(published)

    def observe(self, batch: Batch, totals: dict[str, Any]) -> bool:
        """Test a batch before others are predicted from it, then let the online embedding learn it; True if an alarm
        requests a snapshot."""
        self._renew()
        alarms = self._observer.observe(batch, totals)
        for signal in alarms:
            level = self._observer.detectors[signal].level
            self._metrics.drifts.labels(signal).inc()
            self._log.warning(
                "drift detected: the comparisons changed",
                signal=signal,
                wrong_now=round(level, 3),
                at_comparison=self._observer.seen,
            )
        if self._online:
            self._online.wait(batch)
            # comparisons must be tested before they are learned
            self._online.learn(but_last=self._observer.seen - self._observer.tested)
        if time.monotonic() - self._last_told >= TELL_SECONDS:
            self.tell()
        return bool(alarms)

    def tell(self) -> dict[str, Any]:
        """Update metrics and `figures`; returns the figures."""
        self._last_told = time.monotonic()
        self.figures = figures = self._observer.figures()
        metrics = self._metrics
        for name, kinds in figures["predictors"].items():
            for kind, windows in kinds.items():
                for window, scores in windows.items():
                    metrics.progressive_accuracy.labels(name, kind, window).set(scores["accuracy"])
        return figures

    def online_artifact(self, snapshot: Snapshot) -> Artifact | None:
        """The online embedding at the time of this snapshot, which is published by now; None without an online
        embedding."""
        if not self._online:
            return None
        online = self.figures.get("predictors", {}).get("online", {})
        return self._online.artifact(snapshot, online.get("triplet", {}).get("rolling", {}).get("accuracy"))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def renew(self) -> None:
        """Use predictors that are ready, though no comparison came; the figures are then of these."""
        if self._making and self._making.done() and not self._input_ended:
            self._renew()
            self.tell()

    def _renew(self) -> None:
        if self._making and self._making.done():
            by_name, problems = self._making.result()
            self._making = None
            self._observer.use({name: predictor for name, (predictor, _) in by_name.items()})
            now = time.monotonic()
            self._cost |= {name: (seconds, now) for name, (_, seconds) in by_name.items() if name in COSTLY}
            for name in problems.keys() - self._problems:
                self._log.warning("predictor not available", predictor=name, why=problems[name])
            self._problems |= problems.keys()
        if self._next is not None and self._making is None:
            published, self._next = self._next, None
            names = [name for name in PREDICTORS if name not in WITH_SNAPSHOT and self._affordable(name)]
            self._making = self._pool.submit(_make, names, published, self._features)

    def _affordable(self, name: str) -> bool:
        seconds, finished = self._cost.get(name, (0.0, 0.0))
        return name not in COSTLY or seconds <= BUDGET * (time.monotonic() - finished)


def _make(names: list[str], published: Published, features: Mapping[str, FeatureSpec]) -> _NewPredictors:
    """name -> (predictor, CPU seconds), and name -> error message for those that failed; a set of features is
    called `features NAME`."""
    by_name: dict[str, tuple[Predictor | None, float]] = {}
    problems: dict[str, str] = {}
    makers = {name: partial(predictor, name, published) for name in names}
    makers |= {f"features {name}": partial(of_features, published, name, spec) for name, spec in features.items()}
    for name, make in makers.items():
        began, artifact = time.thread_time(), None
        try:
            artifact = make()
        except (ValueError, MemoryError, BadFeatures) as error:  # kernels that would not fit into memory
            problems[name] = str(error)
        by_name[name] = artifact, time.thread_time() - began
    return by_name, problems


def of_features(published: Published, name: str, spec: FeatureSpec) -> Predictor | None:
    """The predictor of a feature set as it is. Raises `BadFeatures`."""
    from stream_engine.alignment.progressive import as_it_is  # it loads scipy, which a run without features does not

    return as_it_is(published.snapshot, name, spec)
