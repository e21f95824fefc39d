"""Stages of a run that work in threads beside the main thread: decoding ahead of it, and the guard behind it."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Semaphore

from connectors import Record
from stream_engine.data.comparisons import Batch
from stream_engine.input.decoding import Block
from stream_engine.order.partial_order import Verdicts
from stream_engine.state.engine import Engine

MAX_POLLS = 2  # that wait to be decoded or learned while another is read
MAX_BLOCKS = 2  # decoded, that wait to be learned
MAX_COMPARISONS, MAX_BATCHES = 500_000, 64  # that may wait to be judged; one batch may be larger


# Decoding, learning and judging are in parallel, with bounded queues between them:
#
#     main thread     poll -> hand over -> take decoded blocks -> dead letters, accumulators, predictions, snapshots
#     "decode"        records of later polls into blocks (`DecodeStage`)
#     "guard"         comparisons of earlier blocks into the partial order (`GuardStage`)
#
# Invariant: each stage works in order, and only the main thread changes the state that snapshots hold, except the
# partial order; call `GuardStage.join` before you read that. So the state after each block is the same as without
# threads, regardless of timing. An exception in a stage is raised in the main thread, at the block where it would have
# been raised, or later. The main thread waits without a tick of the heartbeat, so a stage that hangs makes the loop
# count as wedged.
def cpus() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class DecodeStage:
    """`give` the records of a poll, then `take` their blocks one by one: polls in order, None after the last block of
    each.

    `in_thread`: decode ahead in another thread; otherwise, a block is decoded when it is taken.
    """

    def __init__(self, blocks: Callable[[list[Record]], Iterator[Block]], in_thread: bool):
        self._blocks = blocks
        self._pool = ThreadPoolExecutor(1, "decode") if in_thread else None
        self._decoded_blocks: SimpleQueue[Block | BaseException | None] = SimpleQueue()
        self._room = Semaphore(MAX_BLOCKS)
        self._waiting_polls: deque[Iterator[Block]] = deque()  # without a thread
        self._is_closed = False
        self.polls = 0  # polls that were given and not completely taken
        self.seconds = 0.0  # spent decoding

    def give(self, records: list[Record]) -> None:
        """Decode these records after those given before."""
        self.polls += 1
        if self._pool:
            self._pool.submit(self._decode, records)
        else:
            self._waiting_polls.append(self._blocks(records))

    def take(self) -> Block | None:
        """The next block of the oldest poll; None if it has no more. Raises exceptions of decoding."""
        if self._pool:
            block = self._decoded_blocks.get()
            if isinstance(block, Block):
                self._room.release()
        else:
            block = self._next(self._waiting_polls[0])
        if isinstance(block, BaseException):
            self.polls = 0  # nothing follows a failure
            raise block
        if block is None:
            self.polls -= 1
            if not self._pool:
                self._waiting_polls.popleft()
        return block

    def max_waiting(self) -> int:
        """How many polls may wait while the next is read."""
        return MAX_POLLS if self._pool else 0

    def _next(self, blocks: Iterator[Block]) -> Block | None:
        began = time.monotonic()
        try:
            return next(blocks, None)
        finally:
            self.seconds += time.monotonic() - began

    def _decode(self, records: list[Record]) -> None:
        try:
            blocks = self._blocks(records)
            while not self._is_closed:
                self._room.acquire()
                block = None if self._is_closed else self._next(blocks)
                if block is None:
                    self._room.release()
                    self._decoded_blocks.put(None)
                    return
                self._decoded_blocks.put(block)
        except BaseException as error:
            self._is_closed = True  # nothing is decoded after a failure
            self._decoded_blocks.put(error)

    def close(self) -> None:
        """Wait until decoding has stopped; blocks that were not taken are dropped."""
        self._is_closed = True
        if self._pool:
            self._room.release()  # wakes the thread that waits for room
            self._pool.shutdown(cancel_futures=True)


class GuardStage:
    """`offer` batches to the guard of an engine and count its verdicts; `join` waits for all of them.

    `in_thread`: in another thread. The main thread counts the verdicts.
    """

    def __init__(self, engine: Engine, in_thread: bool):
        self._engine = engine
        self._pool = ThreadPoolExecutor(1, "guard") if in_thread and engine.guard else None
        self._waiting: deque[tuple[Future[Verdicts], int]] = deque()
        self._comparisons = 0  # comparisons in waiting batches
        self._actions: deque[tuple[int, Callable[[], None]]] = deque()  # to call after the n-th batch
        self._n_offered = self._n_judged = 0  # batches

    def offer(self, batch: Batch) -> None:
        """Have a batch judged, now or soon. Waits if too much is queued; raises exceptions of judging."""
        if not self._pool or not self._engine.guard:
            self._engine.judge(batch)
            return
        size = len(batch.triplets) + len(batch.quadruplets)
        while self._waiting and (
            self._waiting[0][0].done()
            or self._comparisons + size > MAX_COMPARISONS
            or len(self._waiting) >= MAX_BATCHES
        ):
            self._count_oldest()
        self._waiting.append((self._pool.submit(self._engine.guard.offer, batch), size))
        self._comparisons += size
        self._n_offered += 1

    def call_when_judged(self, do: Callable[[], None]) -> None:
        """Call `do` in the main thread once everything offered so far is judged."""
        if self._waiting:
            self._actions.append((self._n_offered, do))
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
        self._n_judged += 1
        while self._actions and self._actions[0][0] <= self._n_judged:
            self._actions.popleft()[1]()

    def close(self) -> None:
        """Wait until judging has stopped."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
