"""The loop: the only owner of clock, signals, threads and worker processes.

poll -> decode -> dead letters -> predict -> learn, one record after the other; between records, snapshots when they are
due. A snapshot pauses the loop for the copy only; encoding, hashing and fsync happen in a thread beside it, one at a
time, and what depends on publication (telling the source, refits, HTTP) waits for it.
"""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import structlog

from connectors import Sink, SinkUnavailable, Source, SourceFailed, split_uri
from connectors.files.paths import named_twice
from stream_engine import exports
from stream_engine.data import mapped_arrays
from stream_engine.service import http, ingest, wiring
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import Watch
from stream_engine.service.refit_workers import Outcome, Workers
from stream_engine.service.settings import BadSettings, Settings, params_of
from stream_engine.service.stall_watchdog import Stalls
from stream_engine.service.triggers import SnapshotRule, refits_due, snapshot_due, too_many_rejected
from stream_engine.state.labels import waiting
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Lock, Store

POLL_SECONDS = 0.2
RETRY_SECONDS = 10.0  # between attempts to publish while the disk refuses


class RunFailed(RuntimeError):
    """The run cannot go on; what was read up to the last snapshot is kept. One line."""


class Run:
    """One process that owns one state directory, from the first record to the last snapshot."""

    def __init__(self, settings: Settings, progress=None, log=None):
        self.settings = settings
        self.log = log or structlog.get_logger()
        self.progress = progress
        self.directory = Path(settings.state)
        self.metrics = Metrics()
        self.rule = SnapshotRule(settings.snapshot.every, settings.snapshot.interval)
        self.stopping = False
        self.asked = ""  # why a snapshot is wanted now: "signal" (SIGUSR1) or "drift"
        self.rejects: dict[str, list[int]] = {}  # partition -> [refused, seen] in this run
        self.published: exports.Published | None = None
        self._publishing: Future | None = None
        self._pool = ThreadPoolExecutor(1, "publish")
        self._retry_at = 0.0
        self._reading: list[Source] = []  # those that were polled
        self.stalls = Stalls(settings.input.stall_after, self.metrics, self.log)
        self._spoken_of: set[str] = set()  # partitions whose first refusal was logged
        self._tried: dict[str, int] = {}  # refit -> newest snapshot it was started on
        self._publish_error: Exception | None = None

    # ---- opening and closing

    def open(self) -> None:
        """Take the state directory, restore the newest whole snapshot, open sinks, labels and sources."""
        settings = self.settings
        self.lock = Lock(self.directory)
        self.store = Store(self.directory)
        if settings.counts.on_disk_above:
            mapped_arrays.keep_on_disk(self.directory / "scratch", settings.counts.on_disk_above)
        latest = self.store.latest()
        for line in latest.damaged:
            self.log.error("snapshot damaged, using the one before it", problem=line)
        if latest.damaged and latest.snapshot is None:
            raise RunFailed(
                f"{self.directory}: every snapshot is damaged ({latest.damaged[0]}); restore one from a copy, "
                "or start anew with another --state"
            )
        self.engine = wiring.restored(settings, latest.snapshot)
        self.snapshot = latest.snapshot
        self.watch = Watch(settings.drift, self.metrics, self.log, wiring.online(settings, self.store, latest.snapshot))
        if latest.snapshot:
            self.metrics.start_from(latest.snapshot.counters)
            self.watch.serve(latest.snapshot)
            self._serve(latest.snapshot)
        self.workers = Workers(
            self.directory, settings.refits.seed, {kind: params_of(settings, kind) for kind in settings.refits.kinds}
        )
        self.sinks = wiring.sinks(settings, self.engine.sinks)
        self.intake = ingest.Intake(wiring.event_options(settings), settings.input.format)
        self._mark_snapshot()
        if settings.input.labels:
            self._read_labels(settings.input.labels)
        if twice := named_twice(rest for scheme, rest in map(split_uri, settings.source) if scheme == "file"):
            raise BadSettings(f"source: {twice}: named by two sources, its events would count twice; name it once")
        self.sources = [wiring.source(settings, uri, self.engine.positions) for uri in settings.source]
        self.server = self._serve_http() if settings.listen else None

    def _read_labels(self, path: str) -> None:
        columns = {field: tuple(names.split("|")) for field, names in self.settings.input.labels_columns.items()}
        partition = f"labels:{os.path.abspath(path)}"
        blocks, position = ingest.read_labels(path, columns)
        known = self.engine.positions.get(partition)
        if known == position:
            return
        if known:
            self.log.info("labels file changed, reading it again", file=path)
        for block in blocks:
            block = ingest.Block([r._replace(partition=partition) for r in block.records], block.decoded, block.letters)
            self._bury(block)
            self.engine.learn(block.decoded, {partition: position}, block.counts().total())
        self.metrics.follow(self.engine.counters)

    def _serve_http(self) -> http.Server:
        application = http.app(
            self.metrics.registry, self._not_ready, lambda: self.published, lambda: self.watch.figures
        )
        server = http.Server(application, self.settings.listen)
        self.log.info("listening", address=server.address)
        return server

    def _not_ready(self) -> str:
        if self.stopping:
            return "stopping"
        away = [uri for uri, source in zip(self.settings.source, self.sources) if not source.ready()]
        return f"source not reachable: {', '.join(away)}" if away else ""

    def close(self) -> None:
        """Give everything back; safe after a failure anywhere."""
        for name in ("workers", "watch", "server", "sources", "sinks", "lock"):
            thing = getattr(self, name, None)
            if thing is None:
                continue
            if name == "workers":
                thing.cancel()
            elif name == "lock":
                self._pool.shutdown()
                mapped_arrays.keep_in_memory()
                thing.release()
            else:
                for each in thing if name == "sources" else thing.values() if name == "sinks" else [thing]:
                    each.close()

    # ---- the loop

    def consume(self) -> None:
        """Read until the sources are finished or someone asks to stop; then the final snapshot.

        A source that fails does so after everything before it was taken in and snapshot.
        """
        following = self.settings.follow or any(split_uri(uri)[0] == "kafka" for uri in self.settings.source)
        waiting_for = list(self.sources)
        failure = None
        try:
            while waiting_for and not self.stopping:
                for source in list(waiting_for) if following else waiting_for[:1]:
                    self._poll(source, POLL_SECONDS / len(waiting_for) if following else POLL_SECONDS)
                    if source.finished():
                        waiting_for.remove(source)
        except SourceFailed as error:
            failure = error
        self._snapshot_at_end()
        if failure:
            raise failure

    def _poll(self, source: Source, timeout: float) -> None:
        if source not in self._reading:
            self._reading.append(source)
        started = time.monotonic()
        records = source.poll(timeout)
        self.metrics.poll_seconds.inc(time.monotonic() - started)
        for notice in source.notices():
            self.log.warning(notice)
        if hasattr(source, "opened"):  # starting points chosen by the source belong to the state like positions read
            self.engine.positions |= source.opened()
        blocks = self.intake.blocks(records)
        while (block := self._decoded(blocks)) is not None:
            self._take(block)
            self._between()
            if self.stopping:
                return
        self._between()
        self._watch(source)

    def _decoded(self, blocks: Iterator[ingest.Block]) -> ingest.Block | None:
        started = time.monotonic()
        block = next(blocks, None)
        self.metrics.decode_seconds.inc(time.monotonic() - started)
        return block

    def _take(self, block: ingest.Block) -> None:
        """Bury what was refused, learn the rest, and only then count both."""
        self._bury(block)
        started = time.monotonic()
        counts = block.counts()
        batch = self.engine.learn(block.decoded, block.positions(), counts.total())
        if self.watch.observed(batch, self.engine.counters["progressive"], self.engine.objects.names):
            self.asked = "drift"
        metrics = self.metrics
        metrics.learn_seconds.inc(time.monotonic() - started)
        for partition, n in counts.items():
            metrics.records.labels(partition).inc(n)
        for partition, position in block.positions().items():
            metrics.position.labels(partition).set(position.offset)
        metrics.last_event.set_to_current_time()
        metrics.follow(self.engine.counters)
        metrics.objects.set(len(self.engine.objects))
        metrics.labels.set(len(self.engine.labels))
        if self.progress:
            self.progress.taken(self.engine.counters["comparisons"])

    def _bury(self, block: ingest.Block) -> None:
        """Refused events into every sink, before anything is learned from their neighbours."""
        if block.letters:
            for name, sink in self.sinks.items():
                self._append(name, sink, block.letters)
        first_record = block.records[0]
        where = first_record.partition.rpartition("/")[0] if first_record.unit == "message" else first_record.partition
        if block.letters and where not in self._spoken_of:
            self._spoken_of.add(where)
            first = block.letters[0]
            self.log.warning(
                "event refused, kept in the dead letters (said once per input)",
                at=f"{first.partition}@{first.offset}",
                reason=first.reason,
                message=first.message,
            )
        count = self.rejects.setdefault(where, [0, 0])
        count[0] += len(block.letters)
        count[1] += len(block.letters) + sum(block.decoded.events.values())
        ratio = self.settings.input.max_reject_ratio
        if too_many_rejected(ratio, *count):
            said = block.letters[0].message if block.letters else ""
            raise RunFailed(
                f"{where}: {count[0]} of {count[1]} events were refused ({said}), more than --max-reject-ratio "
                f"{ratio:g}: another format? Nothing since snapshot {self.engine.sequence} is kept; correct "
                "--type, --columns or --format and run again"
            )

    def _append(self, name: str, sink: Sink, buried: list) -> None:
        """Hand letters over. A sink that cannot take more holds the stream up (the letters stay with it) until it can,
        or until someone asks to stop."""
        waited, began = 0.0, time.monotonic()
        while True:
            try:
                sink.append(buried)
                break
            except SinkUnavailable as error:
                buried = []  # the sink has them; without it being flushed nothing is published
                if self.stopping:
                    return
                if not waited:
                    self.log.error("dead letters cannot be kept, waiting", sink=name, problem=str(error))
                waited = min(5.0, waited + 0.5)
                ends = time.monotonic() + waited
                while not self.stopping and time.monotonic() < ends:
                    time.sleep(POLL_SECONDS)
                    self._held_up(f"dead letters ({name})", began)
        self.stalls.goes_on(f"dead letters ({name})")

    def _between(self) -> None:
        """What can happen between two records: collect what was published and refitted, snapshot when due."""
        self._collect()
        counters = self.engine.counters
        asked, self.asked = self.asked, ""
        why = snapshot_due(
            self.rule,
            counters["comparisons"] - self._at_comparisons,
            time.monotonic() - self._at_time,
            asked,
            self._changed(),
        )
        if why and time.monotonic() >= self._retry_at:
            self.take_snapshot(why)
        elif why and why == asked:
            self.asked = asked

    def _watch(self, source: Source) -> None:
        self.stalls.look(source, self.engine.positions)
        self.metrics.ready.set(not self._not_ready())

    def _held_up(self, what: str, since: float) -> None:
        """What is done every now and then while the stream waits for a disk or a broker to take what it must keep."""
        for source in self._reading:
            self._watch(source)
        self.stalls.stands(what, since)

    def _awaited(self, what: str, future: Future) -> None:
        """Wait for work beside the loop, however slow the disk is, without losing sight of lag and readiness."""
        began = time.monotonic()
        while not wait([future], POLL_SECONDS).done:
            self._held_up(what, began)
        self.stalls.goes_on(what)

    # ---- snapshots

    def _changed(self) -> bool:
        return self.engine.positions != self._at_positions

    def _mark_snapshot(self) -> None:
        self._at_comparisons = self.engine.counters["comparisons"]
        self._at_positions = dict(self.engine.positions)
        self._at_time = time.monotonic()

    def take_snapshot(self, why: str) -> None:
        """Copy the state and publish it beside the loop. Waits for the publication before it: one at a time, so that
        which comparisons a snapshot holds never depends on the speed of the disk."""
        self._finish_publishing()
        started = time.monotonic()
        try:
            for name, sink in self.sinks.items():
                flushed = self._pool.submit(sink.flush)
                self._awaited(f"dead letters ({name})", flushed)
                self.engine.sinks[name] = flushed.result()
        except (SinkUnavailable, OSError) as error:
            return self._not_published(error)
        now, whole = self.engine.capture()
        self.watch.serve(now)
        self._mark_snapshot()
        self.metrics.pause_seconds.observe(time.monotonic() - started)
        self.log.debug("snapshot", sequence=now.sequence, why=why)
        self._publishing = self._pool.submit(self._publish, whole, started)

    def _publish(self, whole: Callable[[], Snapshot], started: float) -> tuple[Snapshot, int, float]:
        published, size = self.store.publish(whole())
        self.store.prune(self.settings.snapshot.keep, published.sequence)
        return published, size, time.monotonic() - started

    def _finish_publishing(self) -> None:
        if self._publishing:
            self._awaited("snapshot", self._publishing)
            self._collect()

    def _collect(self) -> None:
        """Act on what happened beside the loop: a publication that ended, refits that ended."""
        if self._publishing and self._publishing.done():
            future, self._publishing = self._publishing, None
            self._published(future)
        for outcome in self.workers.watch():
            self._refitted(outcome)
        for kind, said in self.workers.progress().items():
            self.metrics.refitting(kind, said)

    def _published(self, future: Future) -> None:
        error = future.exception()
        if isinstance(error, OSError):
            return self._not_published(error)
        snapshot, size, seconds = future.result()
        self._publish_error = None
        self.snapshot = snapshot
        self._note_predictions(snapshot)
        self.metrics.snapshot_sequence.set(snapshot.sequence)
        self.metrics.snapshot_time.set_to_current_time()
        self.metrics.snapshot_bytes.set(size)
        self.metrics.publish_seconds.observe(seconds)
        self._publish_online(snapshot)
        self._serve(snapshot)
        for source in self.sources:
            source.published(snapshot.positions)
        self.log.info(
            "snapshot published",
            sequence=snapshot.sequence,
            comparisons=snapshot.counters["comparisons"],
            objects=len(snapshot.objects),
            bytes=size,
            seconds=round(seconds, 3),
        )
        self.start_refits()

    def _note_predictions(self, snapshot: Snapshot) -> None:
        """How predictions went up to now, beside the snapshot: for people; losing it loses no count."""
        found = self.watch.tell()
        if found["sampled"]:
            try:
                self.store.note("progressive", {"snapshot": snapshot.sequence, **found})
            except OSError as error:
                self.log.warning("figures of the predictions could not be written", problem=str(error))

    def _publish_online(self, snapshot: Snapshot) -> None:
        """The online kernel as it was when the snapshot was taken, for readers and for the next run."""
        made = self.watch.online_artifact(snapshot)
        if made is not None:
            try:
                self.store.publish_artifact(made)
            except OSError as error:
                self.log.warning("the online kernel could not be written", problem=str(error))

    def _not_published(self, error: Exception) -> None:
        self.metrics.snapshot_failures.inc()
        self.log.error(
            "snapshot not published; the one before it stays valid", problem=str(error), retry_seconds=RETRY_SECONDS
        )
        self._at_positions = {}  # so that the next one is due although nothing more may come
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._publish_error = error

    def _snapshot_at_end(self) -> None:
        """The final snapshot, if anything changed or there is none yet."""
        self._finish_publishing()
        if self._changed() or self.snapshot is None:
            self.take_snapshot("end")
            self._finish_publishing()
        if self._publish_error:
            raise RunFailed(
                f"{self.directory}: the final snapshot could not be written: {self._publish_error}; what was "
                "read since the one before will be read again by the next run"
            )
        unknown = waiting(self.engine.labels, self.engine.objects)
        if unknown:
            self.log.warning(
                "labels for objects that no comparison names; they wait", n=len(unknown), first=unknown[:3]
            )

    def _serve(self, snapshot: Snapshot) -> None:
        found = {kind: self.store.latest_artifact(kind) for kind in self.store.kinds()}
        self.published = exports.Published(snapshot, {kind: made for kind, made in found.items() if made})
        self.watch.published(self.published)
        for kind, made in self.published.artifacts.items():
            self.metrics.refit_age.labels(kind).set(snapshot.sequence - made.sequence)

    # ---- refits

    def start_refits(self) -> list[str]:
        """Start what is due on the newest published snapshot; returns what was started."""
        settings = self.settings.refits
        if not settings.enabled or self.stopping or self.snapshot is None:
            return []
        done = {
            kind: made.sequence
            for kind, made in self.published.artifacts.items()
            if made.snapshot == self.snapshot.digest
        } | self._tried
        due = refits_due(settings.kinds, self.workers.running, done, self.snapshot.sequence)
        for kind in due:
            self.workers.start(kind, self.snapshot.sequence)
            self._tried[kind] = self.snapshot.sequence
        return due

    def _refitted(self, outcome: Outcome) -> None:
        if outcome.impossible:
            self.log.warning("refit not possible", refit=outcome.kind, snapshot=outcome.sequence, why=outcome.error)
        elif outcome.error:
            self.metrics.refit_failures.labels(outcome.kind).inc()
            self.log.error(
                "refit failed, the old artifact stays",
                refit=outcome.kind,
                snapshot=outcome.sequence,
                problem=outcome.error,
            )
        else:
            self.metrics.refit_seconds.labels(outcome.kind).observe(outcome.seconds)
            self._serve(self.snapshot)
            self.log.info(
                "refit published", refit=outcome.kind, snapshot=outcome.sequence, seconds=round(outcome.seconds, 1)
            )
        self.start_refits()

    def finish_refits(self) -> None:
        """Wait for the refits of the final snapshot; a request to stop cancels them. One that still runs on an older
        snapshot would be repeated at once: it is cancelled."""
        if self.snapshot is not None:
            for kind in self.workers.cancel(before=self.snapshot.sequence):
                self.log.info("refit cancelled, a newer snapshot is the last", refit=kind)
        self.start_refits()
        while self.workers.running and not self.stopping:
            time.sleep(0.05)
            self._collect()
            if self.progress:
                self.progress.refits(self.workers.progress())
        if self.stopping:
            for kind in self.workers.cancel():
                self.log.info("refit cancelled", refit=kind)


def run(settings: Settings, progress=None) -> None:
    """Consume, snapshot, refit, serve, until the input ends or SIGTERM/SIGINT asks to stop.

    Raises `BadSettings`, `connectors.UnusableSource`, `RunFailed`, `connectors.SourceFailed`, `StateInUse`, …
    """
    if not settings.state:
        raise BadSettings("state: not given; say --state DIR")
    if not settings.source and not settings.input.labels:
        raise BadSettings("source: none given; name a file, a glob, - or kafka://HOST:PORT/TOPIC")
    this = Run(settings, progress)
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1000)  # messages are many small objects and never cycles: a third less time an event

    def stop(number, frame):
        this.stopping = True

    def ask(number, frame):
        this.asked = "signal"

    before = {
        number: signal.signal(number, handler)
        for number, handler in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGUSR1, ask))
    }
    try:
        this.open()
        this.consume()
        this.finish_refits()
    finally:
        this.close()
        gc.set_threshold(*thresholds)
        for number, handler in before.items():
            signal.signal(number, handler)
