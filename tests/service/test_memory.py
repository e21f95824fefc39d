"""One budget of memory: who gets how much, and that the stream waits for what ends and for nothing else."""

import json

from stream_engine.data import available_memory
from stream_engine.service import memory
from stream_engine.service.memory import Memory
from stream_engine.service.metrics import Metrics
from stream_engine.state.store import Store
from tests.service.test_prediction_monitor import Lines
from tests.support.facts import states
from tests.support.process import engine

GB = 10**9
ASKED = [(a, b, c) for a in range(6) for b in range(6) for c in range(b, 6) if len({a, b, c}) == 3]
EVENTS = "".join(json.dumps({"anchor": a, "near": b, "far": c}) + "\n" for a, b, c in ASKED)


class World:
    """A budget of 10 GB over a process and refits whose sizes the test says."""

    def __init__(self, resident: float, refits: float = 0.0):
        self.sizes = {"self": resident * GB, 7: refits * GB}
        self.metrics, self.log, self.pauses = Metrics(), Lines(), 0
        self.beside = ["snapshot"] if not refits else ["hierarchy"]
        self.memory = Memory(10 * GB, self.metrics, self.log, lambda: [7], lambda pid: int(self.sizes[pid]))

    def wait(self, needed=0.0, ends_after=3, what="poll"):
        def pause(since):
            self.pauses += 1
            if self.pauses == ends_after:
                self.end()
            return self.pauses < 10

        return self.memory.wait(what, int(needed * GB), lambda: list(self.beside), pause, self.end)

    def end(self):
        self.beside, self.sizes[7] = [], 0

    def said(self):
        return [event for _, event, _ in self.log.said]


def test_shares_of_what_the_state_leaves():
    world = World(resident=2.5)
    assert world.memory.left() == 6 * GB
    assert world.memory.for_export() == 2.5 * GB  # a quarter of all
    assert world.memory.for_refit(3) == 2 * GB
    assert World(resident=7.5).memory.for_export() == 1 * GB
    assert World(resident=9).memory.for_export() == 0
    assert World(resident=2.5, refits=5).memory.for_refit(1) == 1 * GB  # the one that runs has the rest
    assert World(resident=2.5).memory.block_bytes(8 << 20) == 8 << 20 > World(8.4).memory.block_bytes(8 << 20) > 0
    value = world.metrics.registry.get_sample_value
    assert value("stream_engine_memory_bytes", {"of": "limit"}) == 10 * GB
    assert value("stream_engine_memory_bytes", {"of": "resident"}) == 2.5 * GB


def test_near_the_budget_the_stream_waits_for_a_refit_to_end():
    world = World(resident=5, refits=4)
    world.wait()
    assert world.pauses == 3 and len(world.said()) == 1
    assert world.metrics.registry.get_sample_value("stream_engine_memory_wait_seconds_total") > 0
    world = World(resident=5, refits=3)
    world.wait()
    assert world.pauses == 0 and not world.said()
    world.wait(needed=1, what="snapshot")  # the copy of the counts
    assert world.pauses == 3


def test_a_refit_that_holds_the_stream_up_for_too_long_is_cancelled(monkeypatch):
    monkeypatch.setattr(memory, "PATIENCE", 0.0)
    world = World(resident=5, refits=4)
    world.wait(ends_after=1000)
    assert world.pauses == 1 and len(world.said()) == 2  # waiting, and cancelled


def test_nothing_is_waited_for_where_the_state_itself_is_the_budget():
    world = World(resident=9)
    world.beside = []
    for _ in range(3):
        world.wait()
    assert world.pauses == 0 and len(world.said()) == 1  # said once
    assert "memory_gb" in world.said()[0]
    world = World(resident=9)
    world.wait(ends_after=2)  # a snapshot ends, and gives nothing back
    assert world.pauses == 2 and "memory_gb" in world.said()[-1]


def test_a_run_beyond_its_budget_goes_on_and_starts_no_refits(tmp_path):
    (tmp_path / "x.jsonl").write_text(EVENTS)
    options = ("--state", tmp_path / "s", "--memory-gb", "0.01", "--refit", "hierarchy", "--log-format", "json")
    done = engine("run", tmp_path / "x.jsonl", *options)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    short = [line for line in lines if "memory_gb" in line["event"]]
    assert [line["refit"] for line in short if "refit" in line] == ["hierarchy"]
    assert [line for line in short if "refit" not in line]
    assert Store(tmp_path / "s").latest().snapshot.counters["comparisons"] == EVENTS.count("\n")
    engine("run", tmp_path / "x.jsonl", "--state", tmp_path / "s", "--memory-gb", "-1", status=2)


def test_a_refit_gets_its_part_of_the_budget_and_minds_it(tmp_path):
    (tmp_path / "x.jsonl").write_text(EVENTS)
    state = ("--state", tmp_path / "s")
    engine("run", tmp_path / "x.jsonl", *state, "--refit", "hierarchy", "--memory-gb", "64")
    assert list(Store(tmp_path / "s").kinds()) == ["hierarchy"]
    try:
        available_memory.give(1000)
        done = engine("refit", *state, "hierarchy", status=1)
    finally:
        available_memory.give(None)
    assert states(done.stderr, "6 … 0 GB … --memory-gb")
