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
from stream_engine.counts.adds_similarity import AddS3, AddS4
from stream_engine.counts.decayed_counts import DecayedAddS3, DecayedTripletCountsByArrival
from stream_engine.counts.judgements import Judgements
from stream_engine.counts.quadruplet_counts import QuadrupletCounts
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.counts.weighted_counts import WeightedAddS3, WeightedTripletCounts
from stream_engine.counts.worker_votes import WorkerVotes
from stream_engine.data.mapped_arrays import IN_MEMORY
from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.testing import check_accumulator
from tests.counts.definitions import definition


class FewJudgements(Judgements):
    """A reservoir that overflows in every world."""

    bound, most = 7, 3


class HardlyAnyJudgements(Judgements):
    """One that holds nothing after two."""

    bound, most = 1, 1


VARIANTS = {  # each takes `allocation` where its counts can be kept on disk
    **{name: accumulator(name) for name in ACCUMULATORS if not accumulator(name).forgets},
    "adds3 sparse": partial(AddS3, dense_limit=2, log_floor=3),
    "adds3 dense to sparse": partial(AddS3, dense_limit=5, log_floor=2),
    "adds4 dense to sparse": partial(AddS4, dense_limit=5, log_floor=7),
    "triplet_counts, short log": partial(TripletCounts, log_floor=2),
    "triplet_counts, wide": partial(TripletCounts, key_bits=1, log_floor=3),
    "triplet_counts, packed to wide": partial(TripletCounts, key_bits=8, log_floor=3),  # wide from five objects on
    "quadruplet_counts, short log": partial(QuadrupletCounts, log_floor=2),
    "quadruplet_counts, packed to wide": partial(QuadrupletCounts, key_bits=10, log_floor=3),
    # half-lives so short that every world rescales, windows that cut
    "adds3_decayed, by time": partial(accumulator("adds3_decayed"), half_life=0.4),
    "triplet_counts_decayed, by time": partial(accumulator("triplet_counts_decayed"), half_life=30.0),
    "window, by time": partial(accumulator("window"), window=9.0),
    "adds3_decayed, by count": partial(accumulator("adds3_decayed", Forgetting("count")), half_life=3.0),
    "window, by count": partial(accumulator("window", Forgetting("count")), window=7.0),
    "adds3_weighted dense to sparse": partial(WeightedAddS3, dense_limit=5, log_floor=3),
    "worker_votes, short log": partial(WorkerVotes, log_floor=2),
    "worker_votes, packed to wide": partial(WorkerVotes, key_bits=10, log_floor=3),
    "triplet_counts_weighted, short log": partial(WeightedTripletCounts, log_floor=2),
    "adds3_decayed by time, sparse": partial(DecayedAddS3, 0.4, dense_limit=2, log_floor=3),
    "judgements, few": FewJudgements,
    "judgements, hardly any": HardlyAnyJudgements,
    "triplet_counts_decayed by count, short log": partial(DecayedTripletCountsByArrival, 3.0, log_floor=2),
}
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
