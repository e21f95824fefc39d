"""Learn, publish, refit, prune, crash, back up, restore, merge, forget in any order, against a list in plain Python."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stream_engine.data.comparisons import Triplet
from stream_engine.state import sweeping
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.forgetting import forget_object
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.state.store import Store
from tests.support.crashing_runs import copied_back, save
from tests.support.simulated_disk import SimDisk

COUNTED = ("adds3", "triplet_counts")
TRIPLETS = st.lists(st.permutations("abcdef").map(lambda names: Triplet(*names[:3])), min_size=1, max_size=4)


def said(snapshot: Snapshot) -> list[tuple]:
    """The triplets of a snapshot by name, sorted."""
    columns, names = triplet_columns(snapshot), snapshot.objects
    pair = np.repeat(np.arange(len(columns.lo)), np.diff(columns.start))
    rows = zip(columns.anchor, columns.lo[pair], columns.hi[pair], columns.n_lo, columns.n_hi)
    found = []
    for anchor, lo, hi, n_lo, n_hi in rows:
        found += [(names[anchor], names[lo], names[hi])] * int(n_lo) + [(names[anchor], names[hi], names[lo])] * int(
            n_hi
        )
    return sorted(found)


class AnyOrder(RuleBasedStateMachine):
    """`live` is what the engine has learned, `kept` what each snapshot on disk holds, `made` which have an artifact."""

    def __init__(self) -> None:
        super().__init__()
        self.disk, self.engine, self.copy = SimDisk(), Engine(COUNTED), None
        self.live: list[tuple] = []
        self.names: list[str] = []
        self.kept: dict[int, tuple[list[tuple], list[str]]] = {}
        self.made: set[int] = set()

    @property
    def store(self) -> Store:
        return Store("/state", self.disk)

    def learned(self, triplets: list[Triplet]) -> None:
        self.live += [tuple(each) for each in triplets]
        self.names += [name for name in dict.fromkeys(n for each in triplets for n in each) if name not in self.names]

    def back(self) -> None:
        """As a run begins: from the newest snapshot."""
        sweeping.finish("/state", self.disk)
        newest = max(self.kept)
        self.engine = Engine.restore(self.store.latest().snapshot)
        self.live, self.names = list(self.kept[newest][0]), list(self.kept[newest][1])

    @rule(triplets=TRIPLETS)
    def learn(self, triplets):
        self.engine.learn_many(triplets)
        self.learned(triplets)

    @rule(triplets=TRIPLETS)
    def merge(self, triplets):
        other = Engine(COUNTED)
        other.learn_many(triplets)
        self.engine.merge(other)
        self.learned(triplets)

    @rule(refits=st.lists(st.booleans(), min_size=1, max_size=4))
    def publish(self, refits):
        for with_a_refit in refits:
            published, _ = self.store.publish(self.engine.snapshot())
            assert published.sequence == max(self.kept, default=0) + 1
            self.kept[published.sequence] = sorted(self.live), list(self.names)
            if with_a_refit:
                self.refit()

    def refit(self):
        arrays = {"labels": np.full(len(self.kept[max(self.kept)][1]), -1, np.int32), "k": np.array(1)}
        self.store.publish_artifact(Artifact("spectral", "", max(self.kept), {}, 0, arrays, {}))
        self.made.add(max(self.kept))

    @rule(keep=st.integers(1, 3))
    def prune(self, keep):
        removed = self.store.prune(keep)
        assert sorted(removed) == sorted(self.kept)[:-keep]
        self.kept = {number: self.kept[number] for number in sorted(self.kept)[-keep:]}
        self.made = set(sorted(self.made)[-keep:])

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def crash(self, data):
        """What was removed without a sync may be there again; it is what is there that the next one starts from."""
        images = list(self.disk.images())
        self.disk = images[data.draw(st.integers(0, len(images) - 1))]
        there, artifacts = self.store.sequences(), self.store.artifact_sequences("spectral")
        assert set(there) >= self.kept.keys() and set(artifacts) >= self.made
        for number in set(there) - self.kept.keys():
            self.store_older(number)
        self.made = set(artifacts)
        self.back()

    def store_older(self, number: int) -> None:
        snapshot = self.store.read(number)
        self.kept[number] = said(snapshot), list(snapshot.objects)

    @precondition(lambda self: self.kept)
    @rule()
    def back_up(self):
        if self.copy is None or self.copy[1] != max(self.kept):
            newest = max(self.kept)
            made = save(self.disk)
            before = {number for number in self.made if number <= newest}
            self.copy = copied_back(self.disk, str(made.folder)), newest, self.kept[newest], max(before, default=None)

    @precondition(lambda self: self.copy)
    @rule()
    def copy_back(self):
        disk, newest, content, artifact = self.copy
        self.disk, self.kept = disk.copy(), {newest: content}
        self.made = set() if artifact is None else {artifact}
        self.copy = None
        self.back()

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def forget(self, data):
        """Of the newest snapshot; what was not published is read again later, and what was before it is removed."""
        content, names = self.kept[max(self.kept)]
        if not names:
            return
        name, newest = data.draw(st.sampled_from(names)), max(self.kept)
        self.store.replace(forget_object(self.store.latest().snapshot, name).snapshot)
        left = [each for each in content if name not in each]
        self.kept, self.made, self.copy = {newest + 1: (left, [each for each in names if each != name])}, set(), None
        self.back()

    @invariant()
    def the_disk_holds_what_it_should(self):
        assert self.store.sequences() == sorted(self.kept)
        assert self.store.artifact_sequences("spectral") == sorted(self.made)
        for number in self.kept:
            snapshot = self.store.read(number)
            assert (said(snapshot), list(snapshot.objects)) == self.kept[number]

    @invariant()
    def the_engine_has_learned_what_it_was_told(self):
        assert sorted(self.engine.objects.names) == sorted(self.names)
        assert self.engine.counters["comparisons"] == len(self.live)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
