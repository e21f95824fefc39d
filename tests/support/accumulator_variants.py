"""Every accumulator, with limits under which little worlds reach each of its branches."""

from functools import partial

from stream_engine.counts import ACCUMULATORS, Forgetting, accumulator
from stream_engine.counts.adds_similarity import AddS3, AddS4
from stream_engine.counts.decayed_counts import DecayedAddS3, DecayedTripletCountsByArrival
from stream_engine.counts.judgements import Judgements
from stream_engine.counts.quadruplet_counts import QuadrupletCounts
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.counts.weighted_counts import WeightedAddS3, WeightedTripletCounts
from stream_engine.counts.worker_votes import WorkerVotes


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
