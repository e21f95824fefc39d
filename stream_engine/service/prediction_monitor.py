"""What a run does beside counting: renew the predictors, say how well they predict, speak up when the world changes.

Predictors other than AddS and repeats are made in a thread of their own, from what was published last; k1 and k2 only as often as
their share of the time stays below BUDGET. Until new ones are there the old ones go on predicting.
"""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from stream_engine.data.comparisons import Batch
from stream_engine.prediction import COSTLY, PREDICTORS, Predictor, predictor
from stream_engine.prediction.observer import Progressive
from stream_engine.prediction.online_predictor import Online
from stream_engine.service.metrics import Metrics
from stream_engine.service.settings import DriftSettings
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

BUDGET = 0.005  # of the time, for each costly predictor
TELL_SECONDS = 1.0  # between two renewals of the figures in the metrics
_AT_ONCE = (
    "adds3",
    "adds4",
    "repeats",
)  # made with the snapshot itself, so that alarms do not depend on a thread's speed


class Watch:
    """The observer of one run with its thread, metrics and log lines. `figures` is what was told last."""

    def __init__(self, settings: DriftSettings, metrics: Metrics, log, online: Online | None = None):
        self._observer = Progressive(settings.delta if settings.enabled else None, settings.quiet)
        self._metrics, self._log = metrics, log
        self._pool = ThreadPoolExecutor(1, "predictors")
        self._online, self._held, self._kept = online, [], None
        if online is not None:
            self._observer.use({"online": online.predictor()})
        self._making: Future | None = None
        self._next: Published | None = None
        self._cost: dict[str, tuple[float, float]] = {}  # costly predictor -> (seconds it took, when it was done)
        self._problems: set[str] = set()
        self._told = 0.0
        self.figures: dict[str, Any] = {}

    def serve(self, snapshot: Snapshot) -> None:
        """Predict with AddS and the repeats of this snapshot from now on."""
        self._observer.serve(snapshot)
        if self._online is not None:
            self._learn(snapshot.objects)
            self._online.grow(snapshot.objects)
            self._kept = self._online.kept()
            if self._online.problem:
                self._log.warning("the online kernel waits", why=self._online.problem)

    def published(self, published: Published) -> None:
        """Make the other predictors of what is published now; a newer one takes the place of one that waits."""
        self._next = published
        self._renew()

    def observed(self, batch: Batch, totals: dict[str, Any], objects: Sequence[str] = ()) -> bool:
        """Test a batch before it serves to predict others, then let the online kernel learn it; True when an alarm asks
        for a snapshot. `objects` are the names of all that are known."""
        started = time.thread_time()
        self._renew()
        alarms = self._observer.observe(batch, totals)
        for signal in alarms:
            level = self._observer.detectors[signal].level
            self._metrics.drifts.labels(signal).inc()
            self._log.warning(
                "the comparisons changed", signal=signal, wrong_now=round(level, 3), at_comparison=self._observer.seen
            )
        self._metrics.predict_seconds.inc(time.thread_time() - started)
        if self._online is not None:
            self._held.append(batch.triplets)
            if not self._observer.waiting:  # what waits to be tested must not have been learned
                self._learn(objects)
        if time.monotonic() - self._told >= TELL_SECONDS:
            self.tell()
        return bool(alarms)

    def tell(self) -> dict[str, Any]:
        """Bring metrics and `figures` up to date; returns these."""
        self._told = time.monotonic()
        self.figures = found = self._observer.figures()
        metrics = self._metrics
        for name, kinds in found["predictors"].items():
            for kind, windows in kinds.items():
                for window, said in windows.items():
                    metrics.progressive_accuracy.labels(name, kind, window).set(said["accuracy"])
                    metrics.progressive_log_loss.labels(name, kind, window).set(said["log_loss"])
                    metrics.progressive_calibration.labels(name, kind, window).set(said["calibration_error"])
        for signal, said in found["drift"].items():
            metrics.drift_level.labels(signal).set(said["level"])
        metrics.progressive_sampled.set(found["sampled"] / max(found["seen"], 1))
        return found

    def online_artifact(self, snapshot: Snapshot) -> Artifact | None:
        """The online kernel of the moment of this snapshot, which is published by now; said in the log, too."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        live = (
            self.figures.get("predictors", {}).get("online", {}).get("triplet", {}).get("rolling", {}).get("accuracy")
        )
        self._log.info(
            "online kernel",
            snapshot=snapshot.sequence,
            objects=kept.report["objects"],
            learned=kept.report["learned"],
            skipped=kept.report["skipped"],
            live_accuracy=None if live is None else round(live, 4),
        )
        return self._online.artifact(kept, snapshot, live)

    def _learn(self, objects: Sequence[str]) -> None:
        started = time.thread_time()
        held, self._held = self._held, []
        if held:
            self._online.learn(np.concatenate(held), objects)
        self._metrics.online_seconds.inc(time.thread_time() - started)

    def close(self) -> None:
        """Wait for the thread."""
        self._pool.shutdown(cancel_futures=True)

    def _renew(self) -> None:
        if self._making and self._making.done():
            made, problems = self._making.result()
            self._making = None
            self._observer.use({name: each for name, (each, _) in made.items()})
            now = time.monotonic()
            self._cost |= {name: (seconds, now) for name, (_, seconds) in made.items() if name in COSTLY}
            self._metrics.predict_seconds.inc(sum(seconds for _, seconds in made.values()))
            for name in problems.keys() - self._problems:
                self._log.warning("no predictions by this one", predictor=name, why=problems[name])
            self._problems |= problems.keys()
        if self._next is not None and self._making is None:
            source, self._next = self._next, None
            names = [name for name in PREDICTORS if name not in _AT_ONCE and self._affordable(name)]
            self._making = self._pool.submit(_made, names, source)

    def _affordable(self, name: str) -> bool:
        seconds, ended = self._cost.get(name, (0.0, 0.0))
        return name not in COSTLY or seconds <= BUDGET * (time.monotonic() - ended)


def _made(names: list[str], published: Published) -> tuple[dict[str, tuple[Predictor | None, float]], dict[str, str]]:
    """name -> (predictor, CPU seconds), and name -> why there is none, where it was an error."""
    made, problems = {}, {}
    for name in names:
        started, one = time.thread_time(), None
        try:
            one = predictor(name, published)
        except (ValueError, MemoryError) as error:  # kernels that would not fit into memory
            problems[name] = str(error)
        made[name] = one, time.thread_time() - started
    return made, problems
