"""When refits start: at the end of an input that ends, at each snapshot of one that goes on; no more than cores."""

from types import SimpleNamespace

import pytest

from stream_engine.input.settings import RefitSettings
from stream_engine.input.settings.loading import load
from stream_engine.input.sources import ends
from stream_engine.refits import ENDS_EARLY, REFITS
from stream_engine.service import refit_schedule
from stream_engine.service.context import Context
from stream_engine.service.memory import Memory
from stream_engine.service.metrics import Metrics
from stream_engine.service.refit_schedule import RefitSchedule
from stream_engine.service.refit_workers import Outcome
from stream_engine.service.requests import Requests
from tests.support.served import Lines

GB = 10**9


class FakeWorkers:
    """Refits that end when the test says so, or at the next look where `at_once`."""

    def __init__(self, at_once=False):
        self.running, self.params, self.started, self.at_once = {}, {}, [], at_once
        self.ending = []

    def start(self, kind, sequence, memory=None):
        self.running[kind] = SimpleNamespace(sequence=sequence)
        self.started.append((kind, sequence))

    def end(self, *kinds):
        self.ending += kinds

    def watch(self):
        ended, self.ending = list(self.running) if self.at_once else self.ending, []
        return [Outcome(kind, self.running.pop(kind).sequence, 0.1) for kind in ended]

    def cancel(self, older_than=None):
        kinds = [kind for kind, worker in self.running.items() if older_than is None or worker.sequence < older_than]
        for kind in kinds:
            del self.running[kind]
        return kinds

    def interrupt(self):
        self.ending += [kind for kind in self.running if kind in ENDS_EARLY]
        return list(self.ending)

    def progress(self):
        return {}

    def processes(self):
        return []


class World:
    """A schedule of some kinds over fake workers; `publish(n)` makes n the newest snapshot."""

    def __init__(self, kinds, at_end=False, cores=2, at_once=False, held=GB, also=()):
        self.workers, self.requests = FakeWorkers(at_once), Requests()
        self.published = SimpleNamespace(newest=None, renew_artifacts=lambda: None)
        memory = Memory(10 * GB, Metrics(), Lines(), tuple, lambda pid: held)
        self.schedule = RefitSchedule(
            RefitSettings(kinds=tuple(kinds), also=tuple(also)),
            self.workers,
            self.published,
            memory,
            Context(log=Lines(), requests=self.requests),
            at_end=at_end,
            cores=lambda: cores,
        )

    def publish(self, sequence):
        snapshot = SimpleNamespace(sequence=sequence, digest=f"digest {sequence}")
        self.published.newest = SimpleNamespace(snapshot=snapshot, artifacts={})
        self.schedule.start_due()


def test_a_refit_that_succeeds_has_failed_no_more():
    world = World(["spectral", "embedding"])
    for told, failed in (("no room", {"spectral", "embedding"}), ("", {"embedding"})):
        kinds = ("spectral", "embedding") if told else ("spectral",)
        for kind in kinds:
            world.schedule._process_outcome(Outcome(kind, 1, 0.1, told))
        assert world.schedule.failed.keys() == failed


def test_an_input_that_ends_is_refitted_at_its_end_and_once():
    world = World(["triplet_boost", "spectral"], at_end=True, at_once=True)
    for sequence in (1, 2, 3):
        world.publish(sequence)
    assert world.workers.started == []
    world.schedule.finish(None)
    assert world.workers.started == [("spectral", 3), ("triplet_boost", 3)]


def test_whoever_waits_for_the_end_hears_of_the_beginning_and_of_each_refit_but_the_last(monkeypatch):
    monkeypatch.setattr(refit_schedule, "LULL", 0.1)
    world, heard = World(["spectral", "embedding", "hierarchy"], at_end=True, cores=3), []
    world.publish(1)

    def meanwhile(running):
        heard.append(sorted(running))
        world.workers.end(heard[-1][0])

    world.schedule.finish(None, meanwhile)
    assert heard == [["embedding", "hierarchy", "spectral"], ["hierarchy", "spectral"], ["spectral"]]
    assert world.workers.running == {}


def test_refits_of_labels_wait_for_a_label():
    world = World(RefitSettings().kinds, cores=9)
    nobody = SimpleNamespace(sequence=1, digest="digest 1", labels={})
    world.published.newest = SimpleNamespace(snapshot=nobody, artifacts={})
    world.schedule.start_due()
    assert {kind for kind, _ in world.workers.started} == {"sdp_clustering", "embedding"}
    world.workers.end("embedding")
    world.schedule.collect()
    assert world.workers.started[2:] == [("clusters", 1)]  # which waits for the embedding
    somebody = SimpleNamespace(sequence=2, digest="digest 2", labels={"a": "x"})
    world.published.newest = SimpleNamespace(snapshot=somebody, artifacts={})
    world.schedule.start_due()
    assert {kind for kind, at in world.workers.started if at == 2} == {"embedding", "triplet_boost", "classify"}


def test_what_is_wanted_too_runs_beside_the_others():
    world = World(RefitSettings().kinds, cores=9, also=["reliability", "classify"])
    nobody = SimpleNamespace(sequence=1, digest="digest 1", labels={})
    world.published.newest = SimpleNamespace(snapshot=nobody, artifacts={})
    world.schedule.start_due()
    assert {kind for kind, _ in world.workers.started} == {"sdp_clustering", "embedding", "reliability", "classify"}


def test_what_someone_asks_for_does_not_wait_for_the_end():
    world = World(["spectral"], at_end=True)
    world.publish(1)
    world.requests.refits.add("hierarchy")
    world.schedule.collect()
    assert world.workers.started == [("hierarchy", 1)]


def test_a_stream_that_goes_on_is_refitted_at_each_snapshot():
    world = World(["spectral", "triplet_boost"])
    world.publish(1)
    assert world.workers.started == [("spectral", 1), ("triplet_boost", 1)]
    world.publish(2)  # both are busy
    world.workers.end("spectral")
    world.schedule.collect()
    assert world.workers.started[2:] == [("spectral", 2)]


def test_as_many_at_a_time_as_there_are_cores_the_quick_ones_first():
    kinds = ["partial_order_embedding", "sdp_clustering", "hierarchy", "kernel_learning", "spectral"]
    world = World(kinds, at_end=True, at_once=True)
    world.publish(1)
    world.schedule.finish(None)
    assert [kind for kind, _ in world.workers.started] == sorted(kinds, key=list(REFITS).index)
    world = World(kinds)
    world.publish(1)
    assert list(world.workers.running) == ["spectral", "hierarchy"]


def test_quick_refits_never_keep_a_slow_one_waiting_for_ever():
    world = World(["spectral", "sdp_clustering"], cores=1)
    for sequence in (1, 2, 3, 4):
        world.publish(sequence)
        world.workers.end(*world.workers.running)
        world.schedule.collect()
    assert ("sdp_clustering", 1) in world.workers.started
    assert [kind for kind, _ in world.workers.started] == ["spectral", "sdp_clustering"] * 2 + ["spectral"]


def test_a_request_to_stop_starts_nothing():
    world = World(["spectral"], at_end=True)
    world.publish(1)
    world.requests.stop = True
    world.schedule.finish(None)
    assert world.workers.started == []


def test_a_request_to_stop_takes_what_the_refits_have_so_far():
    world, renewed = World(["spectral", "embedding"]), []
    world.published.renew_artifacts = lambda: renewed.append(True)
    world.publish(1)
    world.requests.stop = True
    world.schedule.finish(None)
    assert world.workers.started == [("spectral", 1), ("embedding", 1)]
    assert renewed == [True] and not world.workers.running


def test_without_memory_nothing_is_started():
    world = World(["spectral"], held=9 * GB)
    world.publish(1)
    assert world.workers.started == []


@pytest.mark.parametrize(
    "source, follow, expected",
    [
        (["a.jsonl", "b.csv.gz"], False, True),
        (["deltas://folder"], False, True),
        (["a.jsonl"], True, False),
        (["-"], False, False),
        (["a.jsonl", "kafka://h:9092/t"], False, False),
    ],
)
def test_which_inputs_are_known_to_end(source, follow, expected):
    assert ends(load(None, {"source": source, "follow": follow or None})) is expected
