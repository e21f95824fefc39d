"""One budget of memory: who gets how much, and that the stream waits for what ends and for nothing else."""

from stream_engine.service import memory
from stream_engine.service.memory import Memory
from stream_engine.service.metrics import Metrics
from tests.support.served import Lines

GB = 10**9


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
