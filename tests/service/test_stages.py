"""Decoding, learning and judging beside each other: the same state as one after the other, whatever the timing, and
every stage that fails, stops or hangs is seen."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from connectors import Record
from stream_engine import Engine
from stream_engine.formats.options import EventOptions
from stream_engine.input.decoding import Block, RecordDecoder
from stream_engine.input.record_units import unit_of
from stream_engine.input.settings.loading import load
from stream_engine.service.context import Context
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.main_loop import consume
from stream_engine.service.metrics import Metrics
from stream_engine.service.open_run import OpenRun, open_run
from stream_engine.service.requests import Requests
from stream_engine.service.stages import MAX_BLOCKS, DecodeStage, GuardStage
from stream_engine.state.store import Store
from tests.support.event_worlds import stream
from tests.support.process import dead, jsonl, until
from tests.support.served import Lines

STAGES = "decode", "learn", "judge"
At = Callable[[str, int], None]  # called with a stage and the number of its block, before that is done


def nothing(stage: str, number: int) -> None:
    """No delay, no failure."""


class Run:
    """A run over a file in small blocks, whose stages call `at` before each block."""

    def __init__(self, state: Path, events: Path, beside: bool, at: At = nothing, format: str = "json", **more):
        self.state, self.beside, self.at = state, beside, at
        self.settings = load(
            None,
            {
                "source": [str(events)],
                "state": str(state),
                "snapshot.every": 300,
                "snapshot.interval": 0,
                "snapshot.keep": 1000,
                "refits.kinds": [],
                "input.max_reject_ratio": 1,
                **more,
            },
            {},
        )
        self.requests, self.opened = Requests(), None

    def __call__(self) -> Engine:
        with ExitStack() as stack:
            metrics = Metrics(CollectorRegistry())
            self.opened = opened = self._staged(
                open_run(self.settings, self.state, Context(metrics, Lines(), self.requests), stack), stack
            )
            before = opened.learning.engine.counters["guard"]["accepted"]
            consume(opened)
            told = metrics.guard.labels("accepted")._value.get()
            assert told == opened.learning.engine.counters["guard"]["accepted"] - before
            return opened.learning.engine

    def blocks(self, opened: OpenRun, records):
        return opened.reading.ingest.blocks(records)

    def _staged(self, opened: OpenRun, stack: ExitStack) -> OpenRun:
        engine, numbers = opened.learning.engine, dict.fromkeys(STAGES, 0)

        def noticed(stage: str, call: Callable) -> Callable:
            def called(*arguments):
                numbers[stage] += 1
                self.at(stage, numbers[stage])
                return call(*arguments)

            return called

        def blocks(records):
            each = noticed("decode", next)
            generator = self.blocks(opened, records)
            while (block := each(generator, None)) is not None:
                yield block

        engine.guard.offer = noticed("judge", engine.guard.offer)
        engine.batch = noticed("learn", engine.batch)
        ahead, judging = DecodeStage(blocks, self.beside), GuardStage(engine, self.beside)
        stack.callback(judging.close)
        stack.callback(ahead.close)
        return replace(
            opened,
            reading=replace(opened.reading, decoding=ahead),
            learning=replace(opened.learning, judging=judging),
            publishing=replace(opened.publishing, learning=replace(opened.learning, judging=judging)),
        )


@pytest.fixture(scope="module")
def events(tmp_path_factory) -> Path:
    return jsonl(tmp_path_factory.mktemp("events") / "e.jsonl", stream(random.Random(3), 2500))


@pytest.fixture(scope="module")
def alone(events, tmp_path_factory) -> Run:
    """The run without threads."""
    run = Run(tmp_path_factory.mktemp("alone"), events, beside=False)
    run()
    return run


def snapshots(state: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((state / "snapshots").iterdir())}


def same_end(one: Path, other: Path) -> None:
    """The newest snapshots of two states say the same, apart from their numbers."""
    a, b = Store(one).latest().snapshot, Store(other).latest().snapshot
    assert (a.positions, a.objects, a.labels) == (b.positions, b.objects, b.labels)
    assert {**a.counters, "progressive": 0} == {**b.counters, "progressive": 0}
    assert a.arrays.keys() == b.arrays.keys()
    assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)


@pytest.mark.parametrize("slow", [*STAGES, "all"])
def test_every_snapshot_is_that_of_a_run_without_threads_whatever_is_slow(alone, events, tmp_path, slow):
    rng = random.Random(slow)

    def delay(stage: str, number: int) -> None:
        if slow in (stage, "all"):
            time.sleep(rng.choice([0, 0, 0.001, 0.005]))

    run = Run(tmp_path, events, beside=True, at=delay)
    run()
    assert len(snapshots(alone.state)) > 5
    assert snapshots(tmp_path) == snapshots(alone.state) and dead(tmp_path) == dead(alone.state)
    assert not (tmp_path / "in_flight").exists()


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("failure", [ZeroDivisionError, MemoryError])
def test_what_fails_in_a_stage_ends_the_run_and_the_next_one_goes_on(alone, events, tmp_path, stage, failure, beside):
    def fail(at: str, number: int) -> None:
        if at == stage and number == failing_at:
            raise failure(f"{stage} {number}")

    for failing_at in (1, 40):
        with pytest.raises(failure, match=f"^{stage} {failing_at}$"):
            Run(tmp_path, events, beside, at=fail)()
        note = tmp_path / "in_flight"  # a bug is a death, a failure is none
        if stage != "decode":  # which fails outside of the records' own decoders here
            assert note.exists() == (failure is ZeroDivisionError)
        note.unlink(missing_ok=True)
    Run(tmp_path, events, beside)()
    same_end(tmp_path, alone.state)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("number", [1, 50])
def test_who_is_asked_to_stop_in_the_midst_of_a_stage_ends_with_a_snapshot(alone, events, tmp_path, stage, number):
    def stop(at: str, now: int) -> None:
        if (at, now) == (stage, number):
            run.requests.stop = True

    run = Run(tmp_path, events, True, stop)
    stopped = run()
    assert stopped.positions == Store(tmp_path).latest().snapshot.positions
    assert not (tmp_path / "in_flight").exists()  # what was decoded in vain is no suspect
    Run(tmp_path, events, True)()
    same_end(tmp_path, alone.state)


def test_a_record_that_comes_in_parts_is_not_left_half_learned_by_a_stop(events, tmp_path):
    class Halved(Run):
        def blocks(self, opened: OpenRun, records):
            for record in records:
                first, second = unit_of(record).parts(record)
                for part in (first, second):
                    opened.learning.in_flight.begins([part], alone=False)
                    opened.learning.in_flight.finish_oldest()
                    yield Block([part], *opened.reading.ingest.read(part), has_more_parts=part is first)

    def stop(at: str, number: int) -> None:
        if (at, number) == ("learn", 5):
            run.requests.stop = True

    run = Halved(tmp_path, events, True, stop)
    counted = run().counters["records"]
    (position,) = Store(tmp_path).latest().snapshot.positions.values()
    assert events.read_bytes()[: position.offset].count(b"\n") == counted > 0


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_hangs_makes_the_loop_count_as_wedged(events, tmp_path, monkeypatch, stage):
    monkeypatch.setattr(Heartbeat.__init__, "__defaults__", (0.3,))
    goes_on = threading.Event()

    def hang(at: str, number: int) -> None:
        if (at, number) == (stage, 20):
            goes_on.wait(600)

    run = Run(tmp_path, events, True, hang)
    running = threading.Thread(target=run)
    running.start()
    until(
        lambda: run.opened and run.opened.context.heartbeat.warm and run.opened.context.heartbeat.wedged(),
        what="a wedged loop",
    )
    goes_on.set()
    running.join(600)
    assert not running.is_alive()


def test_what_waits_between_the_stages_is_bounded():
    made = 0

    def blocks(records):
        nonlocal made
        for block in RecordDecoder(EventOptions()).blocks(records):
            made += 1
            yield block

    line = b'{"anchor":"a","near":"b","far":"c"}\n'
    ahead = DecodeStage(blocks, in_thread=True)
    records = [Record(line, "f", i, i + 1) for i in range(10)]
    for record in records:
        ahead.give([record])
    until(lambda: made == MAX_BLOCKS, what="blocks")
    time.sleep(0.05)
    assert made == MAX_BLOCKS
    taken = [ahead.take() for _ in range(20)]
    assert [block and block.records for block in taken] == [each for r in records for each in ([r], None)]
    ahead.give(records)
    ahead.close()  # with a poll that nobody takes
