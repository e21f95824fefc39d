"""What a run learns from each block: dead letters first, then the counts, and the partial order behind them."""

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from connectors import LostRecords
from connectors.files.readers import LineNumbers
from stream_engine.input import label_files
from stream_engine.input.decoding import Block
from stream_engine.input.in_flight import InFlight
from stream_engine.input.settings import Settings
from stream_engine.input.sources import text_layout_of
from stream_engine.service.context import Context
from stream_engine.service.dead_letters import DeadLetters, open_file, proven_inputs
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.source_health import SourceHealth
from stream_engine.service.stages import GuardStage, cpus
from stream_engine.state.engine import Engine


@dataclass(frozen=True, slots=True)
class Learning:
    """The engine, the guard's thread, the dead letters, and the predictors that are tested before learning."""

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
        began = time.monotonic()
        counts, positions = block.counts(), block.positions()
        if block.decoded.counted:
            self.judging.join()  # its votes go to the guard as they are
        for batch in engine.learn_in_pieces(block.decoded, positions, counts.total(), self.judging.offer):
            if self.monitor.observe(batch, engine.counters["progressive"]):
                self.context.requests.snapshot = "drift"
        self.judging.call_when_judged(self.in_flight.finish_oldest)
        metrics.learn_seconds.inc(time.monotonic() - began)
        for partition, n in counts.items():
            metrics.records.labels(metrics.partitions.of(partition)).inc(n)
        for partition, position in positions.items():
            metrics.position.set(partition, position.offset)
        metrics.last_event.set_to_current_time()
        metrics.event_rate.add(sum(block.decoded.events.values()))
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
        blocks, position = label_files.read_labels(path, columns)
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
    """Open the folder of dead letters and the guard's thread; `stack` closes it."""
    file = open_file(settings, directory, engine.sinks)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    stack.callback(lines.close)
    keep_bytes = settings.dead_letters_keep_bytes
    is_proven = proven_inputs(settings, engine)
    dead_letters = DeadLetters(file, settings.input.max_reject_ratio, health, context, keep_bytes, lines, is_proven)
    dead_letters.after_publishing(engine.sinks)
    judging = GuardStage(engine, in_thread=cpus() > 1 and not in_flight.suspects_of_crash)
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
