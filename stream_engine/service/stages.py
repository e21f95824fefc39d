"""Stages of a run that work beside the main thread: decoding ahead of it, and the guard behind it."""

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
