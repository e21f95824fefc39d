"""Votes of workers beside triplet counts hold nobody's votes no second time, and nothing is lost by that.

Held against the accumulator by itself, which keeps all of them, and its slow definition.
"""

import numpy as np
import pytest

from stream_engine.counts import DEFAULT_ACCUMULATORS
from stream_engine.counts.removal import COUNTS, TRIPLET
from stream_engine.counts.worker_votes import WorkerVotes, holds_nobody, names_of
from stream_engine.data.comparisons import Batch, DecodedEvents, Triplet
from stream_engine.evaluation.worker_reliability import votes_of
from stream_engine.input.settings.loading import load
from stream_engine.input.sources import accumulators_in_use
from stream_engine.refits import reliability
from stream_engine.service.repair.recount import empty_like
from stream_engine.service.resumed import restore_engine
from stream_engine.state.engine import Engine
from tests.support.generators import dense_batch, with_provenance

N = 6
OLDER = ("adds3", "adds4", "triplet_counts")
WITHOUT = (*OLDER, "judgements")
ALONE = ("worker_votes",)


def blocks(seed: int, named: bool = True) -> list[Batch]:
    """Comparisons of few objects, some by workers and some by nobody; the first block is nobody's altogether."""
    rng, found = np.random.default_rng(seed), []
    for number in range(4):
        batch = with_provenance(rng, dense_batch(rng, N, 40))
        told = batch.provenance
        if number == 0 or not named:
            nobody = {"workers": [], "worker": np.full_like(told.worker, -1)}
            told = told._replace(**nobody, catch_worker=np.full_like(told.catch_worker, -1))
        found.append(batch._replace(provenance=told))
    return found


def engine_of(batches: list[Batch], accumulators=DEFAULT_ACCUMULATORS) -> Engine:
    engine, names = Engine(accumulators, False), [f"o{i}" for i in range(N)]
    for b in batches:
        engine.learn(
            DecodedEvents(
                names, b.triplets, b.quadruplets, b.quadruplet_at, [], {"triplet": len(b.provenance.kind)}, [],
                provenance=b.provenance,
            ),
            records=len(b.triplets),
        )  # fmt: skip
    return engine


def votes(snapshot) -> list[tuple]:
    """Who answered what how often, as plain rows in order."""
    kept = votes_of(snapshot)
    who = np.array(kept.names, object)[kept.worker]
    return list(zip(map(tuple, kept.keys[kept.key].tolist()), who, kept.n_lo.tolist(), kept.n_hi.tolist()))


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[key], other[key]) and one[key].dtype == other[key].dtype for key in one
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_votes_are_those_of_the_accumulator_by_itself(seed):
    batches = blocks(seed)
    beside, alone = engine_of(batches).snapshot(), engine_of(batches, ALONE).snapshot()
    assert votes(beside) == votes(alone) and any(who == "" for _, who, *_ in votes(beside))
    mine, whole = beside.section("worker_votes"), alone.section("worker_votes")
    assert names_of(mine) == names_of(whole)
    assert all(np.array_equal(mine[tally], whole[tally]) for tally in ("events", "passed", "failed"))
    named = whole["worker"] > 0
    assert all(np.array_equal(mine[name], whole[name][named]) for name in (*TRIPLET, "worker", *COUNTS))
    assert holds_nobody(whole) and not holds_nobody(mine)
    WorkerVotes.check_state(mine, N)


def test_where_nobody_is_named_nothing_is_held():
    engine = engine_of(blocks(1, named=False))
    kept = engine.accumulators["worker_votes"]
    assert kept.nbytes < 100
    assert not kept.workers
    assert len(kept.state()["lo"]) == 0
    said = kept.state()["events"].tolist()
    assert said == [sum(len(b.provenance.kind) for b in blocks(1, named=False))]
    made = reliability.refit(engine.snapshot(), reliability.Params(), 0)
    assert made.arrays["comparisons"].tolist() == [engine.counters["triplets"]]
    untold = Engine()
    untold.learn_many([Triplet("a", "b", "c"), Triplet("a", "c", "b")])
    assert untold.accumulators["worker_votes"].state()["events"].tolist() == [2]


@pytest.mark.parametrize("cut", range(5))
def test_resumed_and_merged_are_whole(cut):
    batches = blocks(7)
    whole = engine_of(batches).snapshot().section("worker_votes")
    first = engine_of(batches[:cut])
    resumed = Engine.restore(first.snapshot())
    for batch in batches[cut:]:
        resumed.accumulators["worker_votes"].update(batch)
    assert same(resumed.accumulators["worker_votes"].state(), whole)
    first.merge(engine_of(batches[cut:]))
    assert same(first.snapshot().section("worker_votes"), whole)


def test_a_state_that_holds_nobodys_votes_twice_goes_on_without():
    batches = blocks(3)
    twice = engine_of(batches[:2]).snapshot()
    by_itself = engine_of(batches[:2], ALONE).snapshot().section("worker_votes")
    arrays = {**twice.arrays, **{f"worker_votes/{key}": array for key, array in by_itself.items()}}
    older = twice._replace(arrays=arrays)
    assert votes(older) == votes(twice)
    again = empty_like(older)
    for batch in batches[:2]:
        again.accumulators["worker_votes"].update(batch)
    assert same(again.accumulators["worker_votes"].state(), by_itself)
    resumed = Engine.restore(older)
    for batch in batches[2:]:
        resumed.accumulators["worker_votes"].update(batch)
    assert same(resumed.accumulators["worker_votes"].state(), engine_of(batches).snapshot().section("worker_votes"))


def test_a_state_stays_as_it_was_made_and_without_votes_if_named_so():
    defaults, off = load(None, {"source": ("x.csv",)}, {}), {"accumulators": WITHOUT}
    without = load(None, {"source": ("x.csv",), **off}, {})
    deltas = load(None, {"source": ("deltas://x",)}, {})
    assert accumulators_in_use(defaults, None) == DEFAULT_ACCUMULATORS
    assert accumulators_in_use(without, None) == WITHOUT and accumulators_in_use(deltas, None) == OLDER
    for made in (OLDER, WITHOUT, DEFAULT_ACCUMULATORS, (*OLDER, "worker_votes")):
        snapshot = Engine(made, False).snapshot()
        assert accumulators_in_use(defaults, snapshot) == made
    kept = Engine(DEFAULT_ACCUMULATORS, True).snapshot()
    assert accumulators_in_use(without, kept) == WITHOUT
    with pytest.raises(ValueError, match="worker_votes"):
        restore_engine(without, kept)
    own = load(None, {"source": ("x.csv",), "accumulators": ("adds3",)}, {})
    assert accumulators_in_use(own, Engine(OLDER, False).snapshot()) == ("adds3",)
