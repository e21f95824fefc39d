"""The second phase of a run: records in, comparisons counted, snapshots taken, until the input ends or a stop.

poll -> decode -> dead letters -> predict -> learn, one record after the other; between records, snapshots when they are
due. Decoding works ahead of this thread and the guard behind it (`stages`). A snapshot pauses the loop for the copy
only; what depends on its publication (telling the source, refits, HTTP) waits until it is durable.
"""

import time

from connectors import Lost, Source, SourceFailed, split_uri
from stream_engine.service.in_flight import FAILURES
from stream_engine.service.ingest import BLOCK_BYTES, Block
from stream_engine.service.memory import Surroundings
from stream_engine.service.open_run import OpenRun
from stream_engine.service.progress_bars import Bars
from stream_engine.service.run_failed import RunFailed
from stream_engine.service.snapshot_publisher import Publication
from stream_engine.service.source_health import POLL_SECONDS
from stream_engine.service.triggers import block_bytes
from stream_engine.state.engine import Engine
from stream_engine.state.labels import waiting


def consume(run: OpenRun, progress: Bars | None = None) -> None:
    """Read until the sources are finished or someone asks to stop; then the final snapshot.

    A source that fails does so after everything before it was taken in and snapshot. Raises `connectors.SourceFailed`,
    `RunFailed`.
    """
    try:
        failure = _read_on(run, progress)
        if not failure and not run.requests.stop:
            run.dead_letters.check_something_was_right(run.engine.sequence)
        _take_final_snapshot(run)
    except BaseException as error:
        run.ahead.close()  # or it would note what it is at work on
        if isinstance(error, FAILURES):
            run.in_flight.rest()
        raise
    if failure:
        raise failure


def _read_on(run: OpenRun, progress: Bars | None) -> SourceFailed | None:
    """Take in what there is until the sources are finished, or one fails, or someone asks to stop."""
    following = run.settings.follow or any(split_uri(uri)[0] == "kafka" for uri in run.settings.source)
    unfinished, failure = list(run.sources), None
    try:
        while unfinished and not run.requests.stop:
            if run.requests.paused:
                _learn_all(run, progress)
                _stand(run)
                continue
            for source in list(unfinished) if following else unfinished[:1]:
                _poll(run, source, POLL_SECONDS / len(unfinished) if following else POLL_SECONDS, progress)
                if source.finished():
                    unfinished.remove(source)
    except SourceFailed as error:
        failure = error
    _learn_all(run, progress)
    run.ahead.close()
    run.in_flight.rest()  # what was decoded and is not learned, because someone asked to stop
    return failure


def _stand(run: OpenRun) -> None:
    """Read nothing for a moment, because someone asked for it; what was published and refitted is still acted on."""
    run.metrics.paused.set(1)
    run.health.paused()
    _between_records(run)
    time.sleep(POLL_SECONDS)
    run.metrics.paused.set(run.requests.paused)


def _poll(run: OpenRun, source: Source, timeout: float, progress: Bars | None) -> None:
    """Take in what a source has now."""
    run.heartbeat.tick()
    run.memory.wait("poll", 0, _surroundings(run))
    run.ingest.block_bytes = run.memory.block_bytes(block_bytes(run.settings.snapshot.every, BLOCK_BYTES))
    run.health.polled(source)
    started = time.monotonic()
    records = source.poll(0.0 if run.ahead.polls else timeout)
    run.metrics.poll_seconds.inc(time.monotonic() - started)
    for notice in source.notices():
        run.log.warning(notice)
    opened, losses = source.opened(), source.losses()
    if opened or losses:
        _learn_all(run, progress)  # a starting point comes behind what was read before
    run.engine.positions |= opened  # starting points that the source chose belong to the state like those read
    run.metrics.expect(opened)
    for loss in losses:
        take_loss(run.engine, loss)
        run.metrics.follow(run.engine.counters)
    if records and not run.requests.stop:
        run.ahead.give(records)
        _learn_down_to(run, run.ahead.most_waiting() if run.memory.left() > 0 else 0, progress)
    else:
        _learn_all(run, progress)
    _between_records(run)
    run.health.look(source)


def take_loss(engine: Engine, loss: Lost) -> None:
    """Count what a source has lost with consent, and note where; the place alone where nobody knows how much it was."""
    if loss.records:
        engine.lost[loss.partition] = engine.lost.get(loss.partition, 0) + loss.records
    engine.note(
        "offsets lost",
        partition=loss.partition,
        at=loss.offset,
        to=loss.going_on_at,
        records=loss.records,
        why=loss.why,
    )


def _learn_all(run: OpenRun, progress: Bars | None) -> None:
    """Learn all that was read and have it judged, unless someone asks to stop."""
    _learn_down_to(run, 0, progress)
    _join(run)


def _learn_down_to(run: OpenRun, polls: int, progress: Bars | None) -> None:
    """Learn what was read, until only so many polls wait or someone asks to stop."""
    within = False  # a record of which a part was learned
    while run.ahead.polls > polls and (within or not run.requests.stop):
        block = _next(run)
        if block is None:
            continue
        within = block.more
        with run.heartbeat.block():
            _learn(run, block, progress)
            if not run.heartbeat.warm:
                _join(run)
        run.heartbeat.warm = True
        if not within:
            _between_records(run)


def _next(run: OpenRun) -> Block | None:
    """The next decoded block; None when the oldest poll has no other."""
    before = run.ahead.seconds
    with run.heartbeat.block():
        block = run.ahead.take()
    run.metrics.decode_seconds.inc(run.ahead.seconds - before)
    return block


def _join(run: OpenRun) -> None:
    """Wait until the guard has judged all that was learned; verdicts are counted then."""
    run.judging.join()
    run.metrics.follow(run.engine.counters)


def _learn(run: OpenRun, block: Block, progress: Bars | None) -> None:
    """Keep what was refused, learn the rest, and only then count both."""
    engine, metrics = run.engine, run.metrics
    run.dead_letters.keep(block, engine.sequence)
    started = time.monotonic()
    counts, positions = block.counts(), block.positions()
    if block.decoded.counted:
        run.judging.join()  # its votes go to the guard as they are
    for batch in engine.learn_in_pieces(block.decoded, positions, counts.total(), run.judging.offer):
        if run.monitor.observed(batch, engine.counters["progressive"]):
            run.requests.snapshot = "drift"
    run.judging.then(run.in_flight.ended)
    metrics.learn_seconds.inc(time.monotonic() - started)
    for partition, n in counts.items():
        metrics.records.labels(metrics.partitions.of(partition)).inc(n)
    for partition, position in positions.items():
        metrics.position.set(partition, position.offset)
    metrics.last_event.set_to_current_time()
    metrics.follow(engine.counters)
    metrics.objects.set(len(engine.objects))
    metrics.labels.set(len(engine.labels))
    if progress:
        progress.taken(engine.counters["comparisons"])


def _between_records(run: OpenRun) -> None:
    """What can happen between two records: act on what was published and refitted, take a snapshot when it is due."""
    _collect(run)
    asked, run.requests.snapshot = run.requests.snapshot, ""
    why = run.publisher.due(asked)
    if why and run.publisher.may_try():
        _take_snapshot(run, why)
    elif why and why == asked:
        run.requests.snapshot = asked


def _take_snapshot(run: OpenRun, why: str) -> None:
    """Begin to publish the state as it is now, after the publication before it has ended."""
    _join(run)
    _finish_publishing(run)
    run.memory.wait("snapshot", run.publisher.size, _surroundings(run))  # the counts are copied
    run.publisher.take(why)


def _surroundings(run: OpenRun) -> Surroundings:
    """What goes on while the stream waits for memory."""

    def under_way() -> list[str]:
        return (["snapshot"] if run.publisher.busy() else []) + run.refits.running()

    def pause(since: float) -> bool:
        time.sleep(POLL_SECONDS)
        _collect(run)
        run.health.held_up("memory", since)
        return not run.requests.stop

    return Surroundings(under_way, pause, run.refits.cancel)


def _finish_publishing(run: OpenRun) -> None:
    run.publisher.wait()
    _collect(run)


def _collect(run: OpenRun) -> None:
    """Act on what happened beside the loop: a publication that ended, refits that ended."""
    publication = run.publisher.collect()
    if publication:
        _published(run, publication)
    run.refits.collect()


def _published(run: OpenRun, publication: Publication) -> None:
    """A snapshot is durable: what has waited for it happens now."""
    snapshot, size, seconds = publication
    run.published.announce(snapshot)
    for source in run.sources:
        source.published(snapshot.positions)
    run.log.info(
        "snapshot published",
        sequence=snapshot.sequence,
        comparisons=snapshot.counters["comparisons"],
        objects=len(snapshot.objects),
        bytes=size,
        seconds=round(seconds, 3),
    )
    run.refits.start_due()


def _take_final_snapshot(run: OpenRun) -> None:
    """The final snapshot, if anything changed or there is none yet. Raises `RunFailed` when it cannot be written."""
    run.monitor.end()
    _finish_publishing(run)
    if run.publisher.changed() or run.published.newest is None:
        _take_snapshot(run, "end")
        _finish_publishing(run)
    if run.publisher.problem:
        raise RunFailed(
            f"{run.directory}: the final snapshot could not be written: {run.publisher.problem}; what was "
            "read since the one before will be read again by the next run"
        )
    without_comparison = waiting(run.engine.labels, run.engine.objects)
    if without_comparison:
        run.log.warning(
            "labels for objects that no comparison names; they wait",
            n=len(without_comparison),
            first=without_comparison[:3],
        )
