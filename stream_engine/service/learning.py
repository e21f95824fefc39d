"""What a run learns, and how it processes each block: dead letters first, then the counts.

Decoding, learning and judging are in parallel, with bounded queues between them:

    main thread     poll -> hand over -> take decoded blocks -> dead letters, accumulators, predictions, snapshots
    "decode"        records of later polls into blocks (`DecodeStage`)
    "guard"         comparisons of earlier blocks into the partial order (`GuardStage`)

Invariant: each stage works in order, and only the main thread changes the state that snapshots hold, except the partial
order; call `GuardStage.join` before you read that. So the state after each block is the same as without threads,
regardless of timing. An exception in a stage is raised in the main thread, at the block where it would have been
raised, or later. The main thread waits without a tick of the heartbeat, so a stage that hangs makes the loop count as
wedged.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Semaphore

from connectors import LostRecords, Record
from connectors.files.readers import LineNumbers
from stream_engine.data.comparisons import Batch
from stream_engine.input import label_files
from stream_engine.input.decoding import Block
from stream_engine.input.in_flight import InFlight
from stream_engine.input.settings import Settings
from stream_engine.input.sources import text_layout_of
from stream_engine.order.partial_order import Verdicts
from stream_engine.service.context import Context
from stream_engine.service.dead_letters import DeadLetters, opened_file, proven_inputs
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.source_health import SourceHealth
from stream_engine.state.engine import Engine

POLLS = 2  # polls that may wait to be decoded or learned while another is read
BLOCKS = 2  # decoded blocks that may wait to be learned
COMPARISONS, BATCHES = 500_000, 64  # comparisons that may wait to be judged; one batch may be larger


def cpus() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class DecodeStage:
    """`give` the records of a poll, then `take` their blocks one by one: polls in order, None after the last block of
    each.

    `beside`: decode ahead in another thread; otherwise, a block is decoded when it is taken.
    """

    def __init__(self, blocks: Callable[[list[Record]], Iterator[Block]], beside: bool):
        self._blocks = blocks
        self._pool = ThreadPoolExecutor(1, "decode") if beside else None
        self._decoded: SimpleQueue[Block | BaseException | None] = SimpleQueue()
        self._room = Semaphore(BLOCKS)
        self._undecoded: deque[Iterator[Block]] = deque()  # without a thread
        self._closed = False
        self.polls = 0  # polls that were given and not completely taken
        self.seconds = 0.0  # spent decoding

    def give(self, records: list[Record]) -> None:
        """Decode these records after those given before."""
        self.polls += 1
        if self._pool:
            self._pool.submit(self._decode, records)
        else:
            self._undecoded.append(self._blocks(records))

    def take(self) -> Block | None:
        """The next block of the oldest poll; None if it has no more. Raises exceptions of decoding."""
        if self._pool:
            block = self._decoded.get()
            if isinstance(block, Block):
                self._room.release()
        else:
            block = self._next(self._undecoded[0])
        if isinstance(block, BaseException):
            self.polls = 0  # nothing follows a failure
            raise block
        if block is None:
            self.polls -= 1
            if not self._pool:
                self._undecoded.popleft()
        return block

    def most_waiting(self) -> int:
        """How many polls may wait while the next is read."""
        return POLLS if self._pool else 0

    def _next(self, blocks: Iterator[Block]) -> Block | None:
        started = time.monotonic()
        try:
            return next(blocks, None)
        finally:
            self.seconds += time.monotonic() - started

    def _decode(self, records: list[Record]) -> None:
        try:
            blocks = self._blocks(records)
            while not self._closed:
                self._room.acquire()
                block = None if self._closed else self._next(blocks)
                if block is None:
                    self._room.release()
                    self._decoded.put(None)
                    return
                self._decoded.put(block)
        except BaseException as error:
            self._closed = True  # nothing is decoded after a failure
            self._decoded.put(error)

    def close(self) -> None:
        """Wait until decoding has stopped; blocks that were not taken are dropped."""
        self._closed = True
        if self._pool:
            self._room.release()  # wakes the thread that waits for room
            self._pool.shutdown(cancel_futures=True)


class GuardStage:
    """`offer` batches to the guard of an engine and count its verdicts; `join` waits for all of them.

    `beside`: in another thread. The main thread counts the verdicts.
    """

    def __init__(self, engine: Engine, beside: bool):
        self._engine = engine
        self._pool = ThreadPoolExecutor(1, "guard") if beside and engine.guard else None
        self._waiting: deque[tuple[Future[Verdicts], int]] = deque()
        self._comparisons = 0  # comparisons in waiting batches
        self._when_judged: deque[tuple[int, Callable[[], None]]] = deque()  # what is to be done after the n-th batch
        self._offered = self._judged = 0  # batches

    def offer(self, batch: Batch) -> None:
        """Have a batch judged, now or soon. Waits if too much is queued; raises exceptions of judging."""
        if not self._pool or not self._engine.guard:
            self._engine.judge(batch)
            return
        size = len(batch.triplets) + len(batch.quadruplets)
        while self._waiting and (
            self._waiting[0][0].done() or self._comparisons + size > COMPARISONS or len(self._waiting) >= BATCHES
        ):
            self._count_oldest()
        self._waiting.append((self._pool.submit(self._engine.guard.offer, batch), size))
        self._comparisons += size
        self._offered += 1

    def call_when_judged(self, do: Callable[[], None]) -> None:
        """Call `do` in the main thread once everything offered so far is judged."""
        if self._waiting:
            self._when_judged.append((self._offered, do))
        else:
            do()

    def join(self) -> None:
        """Wait until everything offered is judged and counted. Raises exceptions of judging."""
        while self._waiting:
            self._count_oldest()

    def _count_oldest(self) -> None:
        future, size = self._waiting[0]
        self._engine.count_verdicts(future.result())
        self._waiting.popleft()
        self._comparisons -= size
        self._judged += 1
        while self._when_judged and self._when_judged[0][0] <= self._judged:
            self._when_judged.popleft()[1]()

    def close(self) -> None:
        """Wait until judging has stopped."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)


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
        started = time.monotonic()
        counts, positions = block.counts(), block.positions()
        if block.decoded.counted:
            self.judging.join()  # its votes go to the guard as they are
        for batch in engine.learn_in_pieces(block.decoded, positions, counts.total(), self.judging.offer):
            if self.monitor.observed(batch, engine.counters["progressive"]):
                self.context.requests.snapshot = "drift"
        self.judging.call_when_judged(self.in_flight.finish_oldest)
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
    file = opened_file(settings, directory, engine.sinks)
    lines = LineNumbers(settings.input.format, text_layout_of(settings))
    stack.callback(lines.close)
    keep_bytes = settings.dead_letters_keep_bytes
    proven = proven_inputs(settings, engine)
    dead_letters = DeadLetters(file, settings.input.max_reject_ratio, health, context, keep_bytes, lines, proven)
    dead_letters.published(engine.sinks)
    judging = GuardStage(engine, beside=cpus() > 1 and not in_flight.suspects_of_crash)
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
