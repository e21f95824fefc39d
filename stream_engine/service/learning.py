"""What a run learns, and how it processes each block: dead letters first, then the counts.

Only the main loop changes what a snapshot holds, except the partial order: `join` waits until the guard has judged
everything.
"""

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from connectors import LostRecords
from connectors.files.readers import LineNumbers
from stream_engine.service import ingest
from stream_engine.service.context import Context
from stream_engine.service.dead_letters import DeadLetters, opened_sinks
from stream_engine.service.ingest import Block, InFlight
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.settings import Settings
from stream_engine.service.source_health import SourceHealth
from stream_engine.service.sources import text_layout_of
from stream_engine.service.stages import GuardStage, cpus
from stream_engine.state.engine import Engine


@dataclass(frozen=True, slots=True)
class Learning:
    """The engine, the guard's thread, the sinks of rejected events, and the predictors that are tested before
    learning."""

    engine: Engine
    judging: GuardStage
    dead_letters: DeadLetters
    monitor: PredictionMonitor
    in_flight: InFlight
    context: Context

    def learn(self, block: Block) -> None:
        """Store the rejected events, learn the others, and only then count both."""
        engine, metrics = self.engine, self.context.metrics
        self.dead_letters.keep(block, engine.sequence)
        started = time.monotonic()
        counts, positions = block.counts(), block.positions()
        if block.decoded.counted:
            self.judging.join()  # its votes go to the guard as they are
        for batch in engine.learn_in_pieces(block.decoded, positions, counts.total(), self.judging.offer):
            if self.monitor.observed(batch, engine.counters["progressive"]):
                self.context.requests.snapshot = "drift"
        self.judging.then(self.in_flight.ended)
        metrics.learn_seconds.inc(time.monotonic() - started)
        for partition, n in counts.items():
            metrics.records.labels(metrics.partitions.of(partition)).inc(n)
        for partition, position in positions.items():
            metrics.position.set(partition, position.offset)
        metrics.last_event.set_to_current_time()
        metrics.follow(engine.counters)
        metrics.objects.set(len(engine.objects))
        metrics.labels.set(len(engine.labels))

    def join(self) -> None:
        """Wait until the guard has judged all comparisons; verdicts are counted then."""
        self.judging.join()
        self.context.metrics.follow(self.engine.counters)

    def start(self, settings: Settings) -> None:
        """Count lost dead letters, and learn the file of labels unless the state has already read this version of
        it."""
        self.dead_letters.count_lost(self.engine)
        path, engine = settings.input.labels, self.engine
        if not path:
            return
        columns = {field: tuple(names.split("|")) for field, names in settings.input.labels_columns.items()}
        partition = f"labels:{os.path.abspath(path)}"
        blocks, position = ingest.read_labels(path, columns)
        read_before = engine.positions.get(partition)
        if read_before == position:
            return
        if read_before:
            self.context.log.info("labels file changed; reading it again", file=path)
        for block in blocks:
            block = block._replace(records=[record._replace(partition=partition) for record in block.records])
            self.dead_letters.keep(block, engine.sequence)
            engine.learn(block.decoded, {partition: position}, block.counts().total())
        self.context.metrics.follow(engine.counters)


def open_learning(
    settings: Settings,
    directory: Path,
    engine: Engine,
    monitor: PredictionMonitor,
    in_flight: InFlight,
    health: SourceHealth,
    context: Context,
    stack: ExitStack,
) -> Learning:
    """Open the sinks of dead letters and the guard's thread; `stack` closes them."""
    sinks = opened_sinks(settings, directory, engine.sinks)
    for sink in sinks.values():
        stack.callback(sink.close)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    stack.callback(lines.close)
    keep_bytes = settings.dead_letters_keep_bytes
    dead_letters = DeadLetters(sinks, settings.input.max_reject_ratio, health, context, keep_bytes, lines)
    dead_letters.published(engine.sinks)
    judging = GuardStage(engine, beside=cpus() > 1 and not in_flight.suspected)
    stack.callback(judging.close)
    return Learning(engine, judging, dead_letters, monitor, in_flight, context)


def take_loss(engine: Engine, loss: LostRecords) -> None:
    """Count records that a source lost with consent, and record where; only the location if their number is unknown."""
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
