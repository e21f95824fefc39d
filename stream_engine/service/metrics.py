"""All Prometheus instruments. Labels are closed sets, never object names or participants."""

import os
import platform
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)

from stream_engine.data import installed_version
from stream_engine.data.comparisons import EVENT_TYPES, REASONS
from stream_engine.evaluation.drift import SIGNALS
from stream_engine.order.partial_order import VERDICTS
from stream_engine.service.event_rate import EventRate

# what an engine or an operator does to a state, and notes in it
DEEDS = ("seek", "offsets lost", "reshard", "dead letters lost", "forget")
_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800)

OTHER_PARTITIONS = "other"  # not the name of a partition: these are absolute paths, topic/number, or of a scheme


class PartitionLabels:
    """The label of each partition: its name for the first `most` of them, `OTHER_PARTITIONS` for the rest. It never
    changes within a process, so counters only increase."""

    def __init__(self, max_partitions: int):
        self._max_partitions = max_partitions
        self._labels: dict[str, str] = {}

    def of(self, partition: str) -> str:
        """The label of a partition, for the lifetime of the process.

        >>> labels = PartitionLabels(1)
        >>> labels.of("a"), labels.of("b"), labels.of("a")
        ('a', 'other', 'a')
        """
        label = self._labels.get(partition)
        if label is None:
            label = self._labels[partition] = (
                partition if len(self._labels) < self._max_partitions else OTHER_PARTITIONS
            )
        return label


class PartitionGauge:
    """A gauge by partition; `combine` (sum or max) combines the values of partitions without a series of their own."""

    def __init__(self, gauge: Gauge, labels: PartitionLabels, combine: Callable[[Iterable[float]], float]):
        self._gauge, self._labels, self._combine = gauge, labels, combine
        self._other_values: dict[str, float] = {}

    def set(self, partition: str, value: float) -> None:
        label = self._labels.of(partition)
        if label == OTHER_PARTITIONS:
            if not self._other_values:  # put together when it is asked for
                self._gauge.labels(OTHER_PARTITIONS).set_function(
                    lambda: self._combine(list(self._other_values.values()))
                )
            self._other_values[partition] = value
        else:
            self._gauge.labels(label).set(value)


class _Instruments:
    def __init__(self, registry: CollectorRegistry, partitions: PartitionLabels):
        self.registry, self.partitions = registry, partitions

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"stream_engine_{name}", text, labels, registry=self.registry)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"stream_engine_{name}", text, labels, registry=self.registry)

    def by_partition(self, name: str, text: str, combine: Callable[[Iterable[float]], float]) -> PartitionGauge:
        return PartitionGauge(self.gauge(name, text, "partition"), self.partitions, combine)

    def seconds(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"stream_engine_{name}", text, labels, buckets=_SECONDS, registry=self.registry)


class Metrics:
    """All instruments in one registry; at most `partitions` partitions have series of their own."""

    def __init__(self, registry: CollectorRegistry | None = None, partitions: int = 30):
        disable_created_metrics()  # a series beside every counter, of which no alert or panel makes use
        self.registry = registry = registry or CollectorRegistry()
        self.partitions = PartitionLabels(partitions)
        ProcessCollector(registry=registry)
        Info("stream_engine_build", "Versions of the engine and Python.", registry=registry).info(
            {"version": installed_version(), "python": platform.python_version()}
        )
        make = _Instruments(registry, self.partitions)
        self._make_input(make)
        self._make_progress(make)
        self._make_snapshots(make)
        self._make_refits(make)
        self._make_process(make)
        self.at_start: Mapping[str, int] = {}  # events, comparisons and rejected of the state that this run began with
        self._last_values: dict[tuple, float] = {}
        self.event_rate = EventRate()
        self._begin_at_zero()

    def _make_input(self, make: _Instruments) -> None:
        counter, gauge = make.counter, make.gauge
        self.records = counter("records", "Records read: lines, rows or messages.", "partition")
        self.events = counter("events", "Events accepted, by type.", "kind")
        self.comparisons = counter("comparisons", "Comparisons counted.", "kind")
        self.rejected = counter("rejected", "Rejected events, stored as dead letters.", "reason")
        self.rejected_share = gauge(
            "rejected_share",
            "Share of rejected events among the newest 100 of an input, or in its last block if that is larger; the "
            "largest of all inputs.",
        )
        self.lost = counter("records_lost", "Records skipped with consent: lost or moved offsets.", "partition")
        self.history = counter("history", "Operators' actions on the state, by kind, over its whole life.", "did")
        self.letters_lost = counter("dead_letters_lost", "Lost dead letters (lower bound).")
        self.letters_removed = counter("dead_letters_removed", "Dead letters removed to stay below the size limit.")
        self.disk_room = gauge("disk_room_bytes", "Free space on the state's disk plus the size of its snapshots.")
        self.disk_needed = gauge(
            "disk_needed_bytes", "Disk space that snapshots need: (keep + 1) times the size of the newest."
        )
        self.log_lines_lost = counter("log_lines_lost", "Log lines that could not be written: full disk, no reader.")
        self.commits_refused = counter("commits_refused", "Commits to the Kafka consumer group that were refused.")
        self.empty = counter("empty_values", "Messages without content read, tombstones among them.")
        self.guard = counter("guard_verdicts", "Verdicts of the partial-order guard.", "verdict")

    def _make_progress(self, make: _Instruments) -> None:
        counter, gauge, by_partition = make.counter, make.gauge, make.by_partition
        self.objects = gauge("objects", "Objects that occur in comparisons.")
        self.labels = gauge("labelled_objects", "Objects with a label.")
        self.lag = by_partition("lag_records", "Unread bytes, rows or messages of a partition; NaN at the start.", sum)
        self.lag_seconds = by_partition("lag_seconds", "Age of the newest record read, if records have a time.", max)
        self.position = by_partition("position", "Next offset of a partition.", sum)
        self.last_event = gauge("last_event_timestamp_seconds", "Time when the last record was processed.")
        self.poll_seconds = counter("poll_seconds", "Time spent waiting for and reading input.")
        self.decode_seconds = counter("decode_seconds", "Time spent decoding.")
        self.learn_seconds = counter("learn_seconds", "Time spent counting and in the guard.")

    def _make_snapshots(self, make: _Instruments) -> None:
        counter, gauge, seconds = make.counter, make.gauge, make.seconds
        self.ready = gauge("ready", "1 if the state is restored and the source is reachable.")
        self.stalled = gauge("stalled", "1 if there is lag or unsaved data, but no progress.")
        self.stalls = counter("stalls", "Number of stalls detected.")
        self.snapshot_sequence = gauge("snapshot_sequence", "Sequence number of the newest published snapshot.")
        self.snapshot_time = gauge(
            "snapshot_published_timestamp_seconds", "Time when the newest snapshot was published."
        )
        self.snapshot_bytes = gauge("snapshot_bytes", "Size of the newest snapshot.")
        self.snapshot_failures = counter("snapshot_failures", "Snapshots that could not be published.")
        self.pause_seconds = seconds("snapshot_pause_seconds", "Pause of ingestion for a snapshot.")
        self.publish_seconds = seconds("publish_seconds", "Time from the start of a snapshot until it is durable.")

    def _make_refits(self, make: _Instruments) -> None:
        counter, gauge, seconds = make.counter, make.gauge, make.seconds
        self.refit_seconds = seconds("refit_seconds", "Duration of successful refits.", "refit")
        self.refit_failures = counter("refit_failures", "Failed refits; the previous artifact remains in use.", "refit")
        self.refit_age = gauge(
            "refit_age_snapshots", "Number of snapshots published after the one of the current artifact.", "refit"
        )
        self.refit_progress = gauge("refit_progress_ratio", "Progress of the running refit, from 0 to 1.", "refit")
        self.refit_figure = gauge(
            "refit_figure",
            "Figures that a running refit last reported: done (iterations), gap, bound, ...",
            "refit",
            "figure",
        )
        self.results_sent_time = gauge(
            "results_sent_timestamp_seconds", "Time when the newest results reached the targets of [publish]."
        )
        self.results_failed = counter("results_failures", "Failed attempts to send results; each is retried.")
        of_predictions = ("predictor", "kind", "window")  # window: total, rolling or current
        self.progressive_accuracy = gauge(
            "progressive_accuracy", "Accuracy of predictions made before learning; ties count half.", *of_predictions
        )
        self.drifts = counter("drifts", "Detected drifts, by signal: loss or contradictions.", "signal")

    def _make_process(self, make: _Instruments) -> None:
        counter, gauge = make.counter, make.gauge
        self.loop_ticked = gauge("loop_ticked_timestamp_seconds", "Time of the last progress of the main loop.")
        self.paused = gauge("paused", "1 while the stream is paused by POST /admin/pause.")
        self.http_refused = counter(
            "http_refused", "Connections and requests that were refused or aborted, by reason.", "reason"
        )
        self.memory = gauge(
            "memory_bytes", "Memory: the limit, and the use of this process, its refits and its exports.", "of"
        )
        self.memory_wait_seconds = counter(
            "memory_wait_seconds", "Time that the stream waited because of the memory limit."
        )

    def _begin_at_zero(self) -> None:
        """Create the counters with closed sets of labels at the start, so that `increase()` sees the first
        increment."""
        closed = {
            self.events: EVENT_TYPES,
            self.comparisons: ("triplet", "quadruplet"),
            self.rejected: REASONS,
            self.guard: VERDICTS,
            self.drifts: SIGNALS,
            self.history: DEEDS,
            self.memory: ("limit", "resident", "refits"),
        }
        for instrument, labels in closed.items():
            for label in labels:
                instrument.labels(label)

    def expect(self, partitions: Iterable[str] = (), refits: Iterable[str] = ()) -> None:
        """Create the counters of losses of these partitions and failures of these refits."""
        for partition in partitions:
            self.lost.labels(self.partitions.of(partition))
        for kind in refits:
            self.refit_failures.labels(kind)

    def follow(self, counters: Mapping[str, Any]) -> None:
        """Add what the engine's exact counters gained since the last call.

        So a scrape and summary.json agree except for what happened before this process started.
        """
        for kind, n in counters["kinds"].items():
            self._add_increase(self.events.labels(kind), ("kinds", kind), n)
        for kind in ("triplets", "quadruplets"):
            self._add_increase(self.comparisons.labels(kind.removesuffix("s")), (kind,), counters[kind])
        for reason, n in counters["rejected"].items():
            self._add_increase(self.rejected.labels(reason), ("rejected", reason), n)
        for verdict, n in counters["guard"].items():
            self._add_increase(self.guard.labels(verdict), ("guard", verdict), n)
        for partition, n in counters["lost"].items():
            self._add_increase(self.lost.labels(self.partitions.of(partition)), ("lost", partition), n)
        for did, n in Tally(action["did"] for action in counters["history"]).items():
            self._add_increase(self.history.labels(did), ("history", did), n)
        for state, instrument in (("lost", self.letters_lost), ("removed", self.letters_removed)):
            self._add_increase(instrument, ("dead_letters", state), counters["dead_letters"].get(state, 0))
        self._add_increase(self.empty, ("empty",), counters["empty"])

    def set_refit_progress(self, kind: str, figures: Mapping[str, Any]) -> None:
        """Publish what a running refit last reported: its progress, and its own figures (our refits define their
        names)."""
        self.refit_progress.labels(kind).set(figures.get("done", 0) / max(1, figures.get("total", 1)))
        for figure, value in figures.items():
            if figure not in ("total", "impossible") and isinstance(value, int | float):
                self.refit_figure.labels(kind, figure).set(value)

    def start_from(self, counters: Mapping[str, Any]) -> None:
        """Take the counters of a restored state as the starting point, so that only later changes are added.

        Losses and operators' actions are added in full, so that those between two runs are visible.
        """
        probe = Metrics()
        probe.follow({**counters, "lost": {}, "history": []})
        self._last_values = probe._last_values
        self.at_start = {name: counters[name] for name in ("events", "comparisons")}
        self.at_start |= {"rejected": sum(counters["rejected"].values())}
        self.follow(counters)

    def start_at(self, sequence: int, file: os.stat_result) -> None:
        """Take the snapshot that was restored for the newest one, published when its file was written."""
        self.snapshot_sequence.set(sequence)
        self.snapshot_time.set(file.st_mtime)
        self.snapshot_bytes.set(file.st_size)

    def _add_increase(self, instrument: Counter, key: tuple, value: float) -> None:
        increase = value - self._last_values.get(key, 0)
        if increase:
            instrument.inc(increase)
            self._last_values[key] = value
