"""The main loop of a run: read records, count comparisons, take snapshots, until the input ends or a stop is
requested."""

import time

from connectors import Source, SourceFailed
from stream_engine.data.progress_bars import Bars
from stream_engine.formats.options import UnusableOptions
from stream_engine.input.sources import block_bytes
from stream_engine.service.context import RunFailed
from stream_engine.service.learning import take_loss
from stream_engine.service.open_run import OpenRun
from stream_engine.service.source_health import POLL_SECONDS
from stream_engine.state.object_index import waiting


#     poll -> decode -> dead letters -> predict -> learn
#
# One record after the other; snapshots are taken between records. Decoding runs ahead of this thread and the guard
# behind it (`stages`). A snapshot pauses the loop only for the copy; whatever depends on its publication (acknowledging
# to the source, refits, HTTP) waits until it is durable.
def consume(run: OpenRun, progress: Bars | None = None) -> None:
    """Read the file of labels, and until the sources are finished or a stop is requested; then take the final snapshot.

    If a source fails, everything before the failure is counted and included in the snapshot. Raises
    `connectors.SourceFailed`, `RunFailed`.
    """
    learning = run.learning
    try:
        with run.context.heartbeat.long("the file of labels"):
            learning.start(run.settings)
        failure = _read_on(run, progress)
        if not failure and not run.context.requests.stop:
            learning.dead_letters.check_something_was_right(learning.engine.sequence)
        run.publishing.take_final()
    except BaseException as error:
        run.reading.decoding.close()  # or it would note what it is at work on
        if isinstance(error, (MemoryError, OSError, UnusableOptions, SourceFailed, RunFailed)):
            learning.in_flight.clear()
        raise
    if without_comparison := waiting(learning.engine.labels, learning.engine.objects):
        run.context.log.warning(
            "labels of objects without comparisons are kept for later",
            n=len(without_comparison),
            first=without_comparison[:3],
        )
    if failure:
        raise failure


def _read_on(run: OpenRun, progress: Bars | None) -> SourceFailed | None:
    """Process the input until the sources are finished, one of them fails, or a stop is requested."""
    reading, requests = run.reading, run.context.requests
    sources, failure = list(reading.sources), None
    try:
        while sources and not requests.stop:
            if requests.reload:
                _log_reload(run)
            if requests.paused:
                _stay_paused(run, progress)
                continue
            for source in list(sources) if reading.following else sources[:1]:
                _poll(run, source, POLL_SECONDS / (len(sources) if reading.following else 1), progress)
                if source.finished():
                    sources.remove(source)
    except SourceFailed as error:
        failure = error
    _learn_down_to(run, 0, progress)
    reading.decoding.close()
    run.learning.in_flight.clear()  # what was decoded and is not learned, because someone asked to stop
    return failure


def _log_reload(run: OpenRun) -> None:
    """Say that SIGHUP had its effect: the next log line opens the file, and the listener has read its certificate."""
    run.context.requests.reload = False
    run.context.log.info("reloaded", what="log file, TLS certificate")
    run.service_manager.tell_reloaded()


def _stay_paused(run: OpenRun, progress: Bars | None) -> None:
    """Wait briefly without reading, because the run is paused; publications and refits are still processed."""
    _learn_down_to(run, 0, progress)
    paused_metric = run.context.metrics.paused
    paused_metric.set(1)
    run.health.paused()
    run.publishing.between_records()
    time.sleep(POLL_SECONDS)
    paused_metric.set(run.context.requests.paused)


def _poll(run: OpenRun, source: Source, timeout: float, progress: Bars | None) -> None:
    """Process what a source has now."""
    reading, engine, metrics, memory = run.reading, run.learning.engine, run.context.metrics, run.publishing.memory
    run.context.heartbeat.tick()
    run.publishing.wait_for_memory("poll", 0)
    reading.ingest.block_bytes = memory.block_bytes(block_bytes(run.settings.snapshot.every))
    run.health.polled(source)
    began = time.monotonic()
    records = source.poll(0.0 if reading.decoding.polls else timeout)
    metrics.poll_seconds.inc(time.monotonic() - began)
    metrics.commits_refused.inc(source.refused_commits())
    for notice in source.notices():
        run.context.log.warning(notice)
    new_positions, losses = source.opened(), source.losses()
    if new_positions or losses:
        _learn_down_to(run, 0, progress)  # a starting point comes behind what was read before
    engine.positions |= new_positions  # starting points that the source chose belong to the state like those read
    metrics.expect(new_positions)
    for loss in losses:
        take_loss(engine, loss)
        metrics.follow(engine.counters)
    if records and not run.context.requests.stop:
        reading.decoding.give(records)
        _learn_down_to(run, reading.decoding.max_waiting() if memory.left() > 0 else 0, progress, join=False)
    else:
        _learn_down_to(run, 0, progress)
    run.publishing.between_records()
    run.health.look(source)


def _learn_down_to(run: OpenRun, polls: int, progress: Bars | None, join: bool = True) -> None:
    """Learn records until at most `polls` polls are waiting or a stop is requested; with `join`, also wait for the
    guard."""
    decoding, heartbeat, metrics = run.reading.decoding, run.context.heartbeat, run.context.metrics
    in_record = False  # a record of which a part was learned
    while decoding.polls > polls and (in_record or not run.context.requests.stop):
        seconds_before = decoding.seconds
        if not heartbeat.warm:
            run.health.starting()
        with heartbeat.block():
            block = decoding.take()
        metrics.decode_seconds.inc(decoding.seconds - seconds_before)
        if block is None:
            continue
        in_record = block.has_more_parts
        with heartbeat.block():
            run.learning.learn(block)
            if not heartbeat.warm:
                run.learning.join()
        heartbeat.warm = True
        if progress:
            progress.show_comparisons(run.learning.engine.counters["comparisons"])
        if not in_record:
            run.publishing.between_records()
    if join:
        run.learning.join()
