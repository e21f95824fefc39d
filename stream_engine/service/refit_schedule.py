"""Refits of a run: started on the newest published snapshot, at most one of each kind at a time."""

import os
import time
from collections.abc import Callable
from typing import Any

from stream_engine.data.progress_bars import Bars
from stream_engine.input.settings import RefitSettings
from stream_engine.refits import NEEDED_ARTIFACT, REFITS
from stream_engine.service.context import Context
from stream_engine.service.memory import MIN_REFIT_BYTES, Memory
from stream_engine.service.published_state import PublishedState
from stream_engine.service.refit_workers import Outcome, RefitProcesses
from stream_engine.state.artifact import figure
from stream_engine.state.exclusion import excluded_of
from stream_engine.state.snapshot import Snapshot

OF_LABELS = ("triplet_boost", "classify")  # default refits that learn from labels
PATIENCE = 10.0  # seconds for a solver to end with the best so far
LULL = 8.0  # seconds without an end, about as long as a survey is fitted: each page costs two seconds
LOGGED_FIGURES = ("accuracy", "standard_error", "log_loss", "calibration_error")  # of held-out responses, in the log


class RefitSchedule:
    """Starts refits when they are due and processes their outcomes.

    If the stream is endless, each snapshot is refitted. If the input ends, only the end is refitted, because earlier
    refits would be repeated and would slow down reading. At most one refit per core runs at a time; the others wait.
    The one with the oldest artifact comes first, ties in the order of `REFITS`, fastest first. A refit that needs
    another one (`refits.NEEDED_ARTIFACT`) waits until that has ended.
    """

    def __init__(
        self,
        settings: RefitSettings,
        workers: RefitProcesses,
        published_state: PublishedState,
        memory: Memory,
        context: Context,
        params_of: Callable[[str], dict[str, Any]] = lambda kind: {},
        at_end: bool = False,
        cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0)),
    ):
        self._waits_for_end, self._cores = at_end, cores
        self._memory, self._heartbeat, self._params_of = memory, context.heartbeat, params_of
        self._settings, self._workers, self._published_state = settings, workers, published_state
        self._requests, self._metrics, self._log = context.requests, context.metrics, context.log
        self._without_room: dict[str, int] = {}  # refit -> newest snapshot without memory for it
        self.failed: dict[str, str] = {}  # refit -> why its last attempt failed
        self._started_on: dict[str, int] = {}  # refit -> newest snapshot it was started on

    def _start_asked(self) -> None:
        """Start requested refits on the newest published snapshot, whatever the settings are."""
        newest = self._published_state.newest
        while self._requests.refits and newest is not None:
            kind = self._requests.refits.pop()
            if kind not in self._workers.running and not self._requests.stop:
                self._workers.params.setdefault(kind, self._params_of(kind))
                self._workers.start(kind, newest.snapshot.sequence)
                self._started_on[kind] = newest.snapshot.sequence
                self._log.info("refit requested", refit=kind, snapshot=newest.snapshot.sequence)

    def start_due(self) -> None:
        """Start the refits that are due on the newest published snapshot, as far as cores are free."""
        newest = self._published_state.newest
        if not self._settings.all_kinds or self._requests.stop or self._waits_for_end or newest is None:
            return
        snapshot = newest.snapshot
        fitted_on = {
            kind: artifact.sequence
            for kind, artifact in newest.artifacts.items()
            if artifact.snapshot == snapshot.digest and excluded_of(artifact) == newest.excluded
        }
        latest_on, quickest = fitted_on | self._started_on, list(REFITS).index
        due = [kind for kind in self._kinds(snapshot) if latest_on.get(kind, 0) < snapshot.sequence]
        waits = {*due, *self._workers.running}
        due = [kind for kind in due if kind not in self._workers.running]  # at most one run of a kind
        due = [kind for kind in due if NEEDED_ARTIFACT.get(kind) not in waits]
        due.sort(key=lambda kind: (latest_on.get(kind, 0), quickest(kind)))
        for number, kind in enumerate(due):
            cores = self._cores() - len(self._workers.running)
            if cores <= 0:
                break
            share = self._memory.for_refit(min(cores, len(due) - number))
            if share < MIN_REFIT_BYTES:
                self._wait_for_memory(kind, snapshot.sequence, share)
                continue
            self._workers.start(kind, snapshot.sequence, share if self._memory.is_given else None)
            self._started_on[kind] = snapshot.sequence

    def _kinds(self, snapshot: Snapshot) -> list[str]:
        """The kinds in the settings; by default, refits that need labels only if there are labels."""
        kinds = list(self._settings.all_kinds)
        if self._settings.kinds == RefitSettings().kinds and not snapshot.labels:
            for kind in set(OF_LABELS) - set(self._settings.also):
                kinds.remove(kind)
                self._log.debug("refit not scheduled: no object has a label", refit=kind, snapshot=snapshot.sequence)
        return kinds

    def _wait_for_memory(self, kind: str, sequence: int, left: int) -> None:
        """Log once that there is no memory for a refit; it is tried again when another one ends, and at the next
        snapshot."""
        if self._without_room.get(kind, 0) < sequence:
            self._without_room[kind] = sequence
            self._log.warning(
                "refit not started: not enough memory; raise memory_gb",
                refit=kind,
                snapshot=sequence,
                left=max(0, left),
                needed=MIN_REFIT_BYTES,
            )

    def running(self) -> list[str]:
        return list(self._workers.running)

    def cancel(self) -> None:
        """Cancel the running refits; they are due again at the next snapshot."""
        self._workers.cancel()

    def collect(self) -> None:
        """Process refits that ended, and report the progress of the others; never waits."""
        for outcome in self._workers.watch():
            self._process_outcome(outcome)
        self._start_asked()
        for kind, figures in self._workers.progress().items():
            self._metrics.set_refit_progress(kind, figures)

    def _process_outcome(self, outcome: Outcome) -> None:
        if "done" in outcome.last_report:
            self._metrics.set_refit_progress(outcome.kind, outcome.last_report)
        if outcome.impossible or outcome.error:
            self.failed[outcome.kind] = outcome.error
        else:
            self.failed.pop(outcome.kind, None)
        if outcome.impossible:
            self._log.warning("refit not possible", refit=outcome.kind, snapshot=outcome.sequence, why=outcome.error)
        elif outcome.error:
            self._metrics.refit_failures.labels(outcome.kind).inc()
            self._log.error(
                "refit failed; the previous artifact remains in use",
                refit=outcome.kind,
                snapshot=outcome.sequence,
                problem=outcome.error,
            )
        else:
            self._metrics.refit_seconds.labels(outcome.kind).observe(outcome.seconds)
            self._published_state.renew_artifacts()
            seconds, note = round(outcome.seconds, 1), self._note(outcome.kind)
            self._log.info("refit published", refit=outcome.kind, snapshot=outcome.sequence, seconds=seconds, **note)
        self.start_due()

    def _note(self, kind: str) -> dict[str, Any]:
        """For the log: held-out accuracy and note of the newest artifact of a kind."""
        artifact = self._published_state.newest.artifacts.get(kind) if self._published_state.newest else None
        if artifact is None:
            return {}
        figures = {
            name: round(value, 4) for name in LOGGED_FIGURES if (value := figure(artifact.report, name)) is not None
        }
        return figures | ({"note": artifact.report["note"]} if artifact.report.get("note") else {})

    def finish(self, progress: Bars | None, meanwhile: Callable[[list[str]], None] | None = None) -> None:
        """Wait for the refits of the final snapshot; a request to stop ends them, those that can with the best so
        far. Refits of an older snapshot are cancelled, because they would be repeated immediately. `meanwhile` is
        called with the kinds of those that run, at once and `LULL` seconds after one ended."""
        self._waits_for_end = False
        newest = self._published_state.newest
        if newest is not None:
            for kind in self._workers.cancel(older_than=newest.snapshot.sequence):
                self._log.info("refit cancelled: the final snapshot is newer", refit=kind)
        self.start_due()
        last_end: float | None = None
        if meanwhile and self.running():
            meanwhile(self.running())
        while self._workers.running and not self._requests.stop:
            time.sleep(0.02)
            self._heartbeat.tick()
            running_before = self.running()
            self.collect()
            if not set(running_before) <= set(self.running()):
                last_end = time.monotonic()
            if meanwhile and last_end and self.running() and time.monotonic() - last_end > LULL:
                meanwhile(self.running())
                last_end = None
            if progress:
                progress.refits(self._workers.progress())
        if self._requests.stop:
            interrupted_kinds, until = set(self._workers.interrupt()), time.monotonic() + PATIENCE
            while interrupted_kinds & set(self.running()) and time.monotonic() < until:
                time.sleep(0.05)
                self.collect()
            for kind in self._workers.cancel():
                self._log.info("refit cancelled", refit=kind)

    def close(self) -> None:
        """Cancel the refits that are still running."""
        self._workers.cancel()
