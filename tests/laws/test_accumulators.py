"""Every accumulator is a commutative monoid that agrees with its slow definition: exactly, or to the tolerance it
states.

The laws run over the registry, so a new accumulator is tested by being registered; and over variants whose limits are
so low that little worlds cross every one of them: logs of a few events, dense to sparse, packed to wide keys. Laws
alone cannot catch a wrong statistic (two swapped columns are still a monoid): its definition does
(tests/counts/definitions.py). What they do not cover is scale: see tests/counts/test_triplet_counts.py.
"""

from functools import partial

import pytest

from stream_engine.counts import ACCUMULATORS, BY_ARRIVAL, Forgetting, accumulator
from stream_engine.counts.adds_similarity import AddS3
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.counts.worker_votes import WorkerVotes
from stream_engine.data.mapped_arrays import IN_MEMORY
from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.testing import check_accumulator
from tests.counts.definitions import definition
from tests.support.accumulator_variants import VARIANTS

every_variant = pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)


def definition_of(make):
    """The definition with the parameters that this accumulator is made with."""
    made = make()
    lengths = {field: float(made.state()[field]) for field in made.forgets}
    return partial(definition, type(made), **lengths)


@every_variant
def test_laws(make):
    check_accumulator(make, definition_of(make), seeds=range(12))


class CountsAnEventOncePerPiece(WorkerVotes):
    """What a newcomer may overlook: the first event of a batch may be the last one of the batch before."""

    def update(self, batch):
        told = batch.provenance
        super().update(batch if told is None else batch._replace(provenance=told._replace(continues=False)))


class ForgetsToAdd(TripletCounts):
    def merge(self, other):
        pass


class DependsOnOrder(AddS3):
    def update(self, batch):
        super().update(batch if len(batch.triplets) % 2 else batch._replace(triplets=batch.triplets[:, [1, 0, 2]]))


class KeepsWhatItWasGiven(TripletCounts):
    _given = None

    @classmethod
    def from_state(cls, state, allocation=IN_MEMORY):
        made = super().from_state(state, allocation)
        made._given = state
        return made

    def update(self, batch):
        self._given = None
        super().update(batch)

    def state(self):
        return dict(self._given or super().state())


@pytest.mark.parametrize("broken", [CountsAnEventOncePerPiece, ForgetsToAdd, DependsOnOrder, KeepsWhatItWasGiven])
def test_a_broken_accumulator_is_refused(broken):
    with pytest.raises(AssertionError, match="broken law"):
        check_accumulator(broken)


@pytest.mark.parametrize("name", BY_ARRIVAL)
def test_ledgers_are_not_merged(name):
    ledger = accumulator(name, Forgetting("count"))
    assert not ledger.mergeable and ACCUMULATORS.keys() >= BY_ARRIVAL.keys()
    engines = [Engine((name,), guard=False) for _ in range(2)]
    assert type(engines[0].accumulators[name]) is ledger
    with pytest.raises(OverlappingStates, match=name) as refused:
        engines[0].merge(engines[1])
    assert 'forgetting.by = "time" can' in str(refused.value)


@pytest.mark.parametrize("name", BY_ARRIVAL)
def test_what_forgets_by_time_is_merged(name):
    by_time = Forgetting("time")
    assert accumulator(name, by_time).mergeable and accumulator(name, by_time) is accumulator(name)
    engine = Engine((name,), guard=False, forgetting=by_time)
    engine.merge(Engine((name,), guard=False, forgetting=by_time))
    assert engine.settings()["forgetting"].keys() == {"by", *accumulator(name).forgets}
