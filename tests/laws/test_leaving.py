"""What leaves a statistic leaves it as if it had never come, or the statistic says that it cannot tell.

Over the registry, against each statistic's slow definition of the stream without what left; which statistics can is
written down, so that one that stops being able to, or a new one, is noticed.
"""

import numpy as np
import pytest

from stream_engine.counts import ACCUMULATORS, BY_ARRIVAL, BY_TIME, Forgetting, accumulator
from stream_engine.counts.quadruplet_counts import QuadrupletCounts
from stream_engine.counts.removal import (
    COUNTS,
    QUADRUPLET,
    CannotForget,
    Removal,
    rows_naming,
    rows_where,
    shifted,
    votes_of,
)
from stream_engine.counts.response_patterns import ResponsePatterns
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.counts.worker_votes import TALLIES, WorkerVotes, names_of
from stream_engine.data.comparisons import Batch
from stream_engine.data.hashing import hashes_of_numbers
from stream_engine.order.partial_order import PartialOrder
from stream_engine.order.removal import without_object, without_uncounted
from stream_engine.state.forgetting import _about_object
from stream_engine.state.snapshot import Snapshot
from tests.counts.definitions import definition
from tests.order.invariants import check_guard
from tests.support.generators import batch_of, concatenated, dense_batch, with_provenance

OBJECTS_CAN = {
    "adds3", "adds4", "triplet_counts", "quadruplet_counts", "triplet_counts_weighted", "triplet_counts_decayed",
    "worker_votes", "window", "judgements", "response_patterns",
}  # fmt: skip
WORKERS_CAN = {
    "adds3",
    "adds4",
    "triplet_counts",
    "quadruplet_counts",
    "worker_votes",
    "judgements",
    "response_patterns",
}
KINDS = {name: accumulator(name, BY_TIME) for name in ACCUMULATORS} | {
    f"{name} by arrival": accumulator(name, Forgetting("count")) for name in BY_ARRIVAL
}
N = 6


def world(seed: int, quadruplets: float = 0.3) -> Batch:
    """Comparisons of a few objects; the newest is not about the object that leaves, nor by the worker who does."""
    rng = np.random.default_rng(seed)
    batch = with_provenance(rng, concatenated([with_provenance(rng, dense_batch(rng, N, 80, quadruplets))]))
    time = batch.provenance.time.copy()
    stays = int(np.flatnonzero((batch.triplets != seed % N).all(axis=1))[0])
    time[batch.provenance.of_triplet[stays]] = 50.0
    return batch._replace(provenance=batch.provenance._replace(time=time))


def evidence(batch: Batch, gone: int) -> Removal:
    arrays = {}
    for name, kind in (("triplet_counts", TripletCounts), ("quadruplet_counts", QuadrupletCounts)):
        arrays |= {f"{name}/{key}": array for key, array in definition(kind, batch).items()}
    return _about_object(Snapshot(0, {}, (), {}, {"triplets": 1, "quadruplets": 1}, {}, arrays), gone)


def same(mine: dict, theirs: dict, tolerance: float) -> bool:
    assert sorted(mine) == sorted(theirs)
    return all(
        mine[key].dtype == theirs[key].dtype
        and np.shape(mine[key]) == np.shape(theirs[key])
        and np.allclose(mine[key], theirs[key], rtol=tolerance, atol=tolerance)
        for key in theirs
    )


@pytest.mark.parametrize("name", KINDS)
def test_an_object(name):
    kind = KINDS[name]
    for seed in range(8):
        batch, gone = world(seed), seed % N
        state, leaving = definition(kind, batch), evidence(batch, gone)
        if name not in OBJECTS_CAN:
            with pytest.raises(CannotForget):
                kind.without(state, leaving)
            continue
        if kind is ResponsePatterns:  # counts answers, whatever they are about
            assert same(kind.without(state, leaving), state, 0.0)
            continue
        stay = [np.flatnonzero((rows != gone).all(axis=1)) for rows in (batch.triplets, batch.quadruplets)]
        smaller = batch_of(batch, *stay)
        smaller = smaller._replace(
            triplets=shifted(smaller.triplets, gone),
            quadruplets=shifted(smaller.quadruplets, gone),
            n_objects=N - 1,
            name_hashes=np.delete(hashes_of_numbers(N), gone),
        )
        expected, found = dict(definition(kind, smaller)), kind.without(state, leaving)
        untold = [*TALLIES, "utf8", "offsets", "worker"] if kind is WorkerVotes else ["late", "untimed"]
        for key in set(untold) & expected.keys():
            found.pop(key), expected.pop(key)
        assert same(found, expected, kind.tolerance), seed
        assert not any((found[key] >= N - 1).any() for key in ("anchor", "j", "hi") if key in found)


def test_without_what_holds_them_one_by_one_sums_say_so():
    state = definition(KINDS["adds4"], world(0))
    one_by_one = evidence(world(0), 0)
    with pytest.raises(CannotForget, match="triplet_counts does"):
        KINDS["adds3"].without(state, one_by_one._replace(triplets=None))
    with pytest.raises(CannotForget, match="quadruplet_counts does"):
        KINDS["adds4"].without(state, one_by_one._replace(quadruplets=None))
    assert KINDS["adds3"].without(definition(KINDS["adds3"], world(0)), one_by_one._replace(quadruplets=None))
    with pytest.raises(CannotForget, match="verify"):
        KINDS["adds3"].without(state, one_by_one)


@pytest.mark.parametrize("name", KINDS)
def test_a_worker(name):
    kind = KINDS[name]
    for seed in range(8):
        batch = world(seed, quadruplets=0.0)
        votes = definition(WorkerVotes, batch)
        leaving = Removal(
            votes_of(votes, "v"),
            rows_where(definition(QuadrupletCounts, batch), slice(0), (*QUADRUPLET, *COUNTS)),
            worker="v",
        )
        if name not in WORKERS_CAN:
            with pytest.raises(CannotForget):
                kind.without(definition(kind, batch), leaving)
            continue
        by = batch.provenance.worker[batch.provenance.of_triplet]
        others = np.flatnonzero(by != batch.provenance.workers.index("v"))
        expected, found = (
            dict(definition(kind, batch_of(batch, others, np.empty(0, int)))),
            kind.without(definition(kind, batch), leaving),
        )
        if kind is WorkerVotes:
            assert names_of(found) == tuple(each for each in names_of(votes) if each != "v")
            before = dict(zip(names_of(votes), votes["events"].tolist()))
            assert found["events"].tolist() == [n for name, n in before.items() if name != "v"]
            for state in (found, expected):
                state["worker"] = np.array(names_of(state))[state["worker"]] == "u"
                for key in (*TALLIES, "utf8", "offsets"):
                    state.pop(key)
        assert same(found, expected, 0), seed


def test_a_worker_by_another_name():
    kind, batch = KINDS["worker_votes"], world(3)
    workers = ["aa" if each == "v" else each for each in batch.provenance.workers]
    renamed = batch._replace(provenance=batch.provenance._replace(workers=workers))
    assert same(kind.with_worker_called(definition(kind, batch), "v", "aa"), definition(kind, renamed), 0)


def test_the_guard_goes_on_without_an_object():
    for seed in range(6):
        guard, batch, gone = PartialOrder(), world(seed)._replace(provenance=None), seed % N
        guard.offer(batch)
        smaller = PartialOrder.from_state(without_object(guard.state(), gone))
        check_guard(smaller)
        kept = guard.kept()
        stays = kept[~(kept == gone).any(axis=1)]
        np.testing.assert_array_equal(smaller.kept(), shifted(stays, gone))
        state = smaller.state()
        assert all(rows.max(initial=0) < N - 1 for name, rows in state.items() if rows.ndim == 2)
        assert len(stays) < len(kept) and not rows_naming({"x": stays}, ["x"], gone).any()
        smaller.offer(dense_batch(np.random.default_rng(seed), N, 40))
        check_guard(smaller)


def test_the_guard_goes_on_without_what_nobody_answered_any_more():
    batch = world(2, quadruplets=0.0)._replace(provenance=None)
    guard = PartialOrder()
    guard.offer(batch)
    anchor, near, far = batch.triplets[::2].T
    left = without_uncounted(guard.state(), near, far, anchor)
    smaller = PartialOrder.from_state(left)
    check_guard(smaller)
    answered = {(*sorted((a, b)), *sorted((a, c))) for a, b, c in batch.triplets[::2].tolist()}
    expected = [row for row in guard.kept().tolist() if tuple(row) in answered]
    assert smaller.kept().tolist() == expected and 0 < len(expected) < len(guard.kept())
