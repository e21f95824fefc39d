"""The fold: batching does not matter, restoring goes on bit for bit, merging is counting both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import Position
from stream_engine.data.comparisons import InvalidEvent, Quadruplet, Triplet
from stream_engine.exports.summary import summary_of
from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.state.snapshot import decode, encode
from tests.order.invariants import check_guard

NAMES = st.sampled_from("abcde")
TRIPLETS = st.lists(NAMES, min_size=3, max_size=3, unique=True).map(lambda t: Triplet(*t))
QUADS = st.lists(NAMES, min_size=4, max_size=4, unique=True).map(lambda q: Quadruplet((q[0], q[1]), (q[2], q[3])))
STREAMS = st.lists(st.one_of(TRIPLETS, QUADS), max_size=40)


def learned(stream, guard=True, sizes=()):
    engine = Engine(guard=guard)
    start = 0
    for size in (*sizes, len(stream)):
        engine.learn_many(stream[start : start + size])
        start += size
    return engine


def bytes_of(engine):
    chunks, _ = encode(engine.snapshot())
    return b"".join(chunks)


@settings(max_examples=60, deadline=None)
@given(STREAMS, st.booleans(), st.lists(st.integers(0, 7), max_size=6))
def test_batching_does_not_matter(stream, guard, sizes):
    assert bytes_of(learned(stream, guard)) == bytes_of(learned(stream, guard, sizes))


@settings(max_examples=60, deadline=None)
@given(STREAMS, STREAMS, st.booleans())
def test_restored_goes_on_bit_for_bit(before, after, guard):
    whole = learned(before, guard)
    middle = bytes_of(whole)
    whole.learn_many(after)
    resumed = Engine.restore(decode(middle))
    resumed.learn_many(after)
    assert bytes_of(whole) == bytes_of(resumed)


@settings(max_examples=40, deadline=None)
@given(STREAMS, STREAMS)
def test_merge_is_counting_both(left, right):
    mine, other, both = learned(left), learned(right), learned(left + right)
    untouched = bytes_of(learned(right))
    mine.merge(other)
    assert untouched == bytes_of(other)
    for name in ("adds3", "adds4", "triplet_counts"):
        for key, array in both.accumulators[name].state().items():
            np.testing.assert_array_equal(mine.accumulators[name].state()[key], array)
    assert mine.objects.names == both.objects.names
    assert mine.counters["comparisons"] == both.counters["comparisons"]
    check_guard(mine.guard)


def test_merge_refuses_what_would_count_twice():
    one, two = learned([Triplet("a", "b", "c")]), learned([Triplet("a", "b", "c")])
    one.positions["t/0"] = two.positions["t/0"] = Position(1)
    with pytest.raises(OverlappingStates, match="t/0"):
        one.merge(two)
    with pytest.raises(OverlappingStates, match="different kinds"):
        learned([], False).merge(learned([]))


def test_a_snapshot_does_not_change_with_the_engine():
    engine = learned([Triplet("a", "b", "c")])
    snapshot = engine.snapshot()
    before = b"".join(encode(snapshot)[0])
    engine.learn_many([Triplet("a", "b", "c")] * 3)
    engine.arrays()  # counts that were known are added to in place when the state is next looked at
    engine.learn_many([Triplet("a", "c", "b"), Quadruplet(("a", "b"), ("c", "d"))])
    assert b"".join(encode(snapshot)[0]) == before
    for array in snapshot.arrays.values():
        assert not array.flags.writeable


@pytest.mark.parametrize("guard", [True, False])
def test_a_snapshot_can_be_finished_while_more_is_learned(guard):
    """What the run does: capture in the loop, sort and publish in a thread."""
    one, two = (
        learned([Triplet("a", "b", "c"), Triplet("a", "c", "d"), Triplet("a", "c", "b")], guard) for _ in range(2)
    )
    at_once = two.snapshot()
    now, whole = one.capture()
    assert not now.section("partial_order") and now.sequence == one.sequence == 1
    one.learn_many([Triplet("a", "d", "c"), Triplet("e", "b", "c"), Triplet("c", "b", "a"), Triplet("a", "b", "d")] * 3)
    assert b"".join(encode(whole())[0]) == b"".join(encode(at_once)[0])
    assert all(not array.flags.writeable for array in whole().arrays.values())


def test_the_last_snapshot_empties_the_guard_and_is_like_any_other():
    one, two = (learned([Triplet("a", "b", "c"), Triplet("a", "c", "d")]) for _ in range(2))
    _, whole = one.capture(last=True)
    assert one.guard.graph.n_nodes == 0 < two.guard.graph.n_nodes
    assert b"".join(encode(whole())[0]) == bytes_of(two)


def test_python_events_are_checked_before_anything_is_counted():
    engine = Engine()
    with pytest.raises(InvalidEvent, match="objects"):
        engine.learn_many([Triplet("a", "b", "c"), Triplet("a", "a", "b")])
    assert engine.counters["comparisons"] == 0 and len(engine.objects) == 0


def test_a_quadruplet_that_shares_an_object_is_a_triplet():
    one, two = learned([Quadruplet(("b", "a"), ("a", "c"))]), learned([Triplet("a", "b", "c")])
    assert one.counters["triplets"] == 1 and one.counters["quadruplets"] == 0
    np.testing.assert_array_equal(one.accumulators["adds3"].state()["w"], two.accumulators["adds3"].state()["w"])


def test_what_was_done_to_a_state_stays_in_it():
    engine, plain = learned([Triplet("a", "b", "c")]), learned([Triplet("a", "b", "c")])
    assert not {"history", "lost", "share"} & engine.snapshot().counters.keys()  # nothing to say costs no byte
    plain.snapshot()
    engine.note("seek", partition="t/0", to=7)
    engine.lost["t/0"] = 3
    engine.share = "0/2"
    again = Engine.restore(decode(bytes_of(engine)))
    assert (again.history[0]["did"], again.history[0]["to"], again.lost, again.share) == ("seek", 7, {"t/0": 3}, "0/2")
    told = summary_of(again.snapshot())
    assert (told["history"], told["lost"], told["share"]) == (again.history, {"t/0": 3}, "0/2")
    again.positions, plain.positions = {"t/0": Position(1)}, {"t/1": Position(1)}
    plain.lost["t/0"] = 1
    plain.merge(again)
    assert (plain.history, plain.lost, plain.share) == (again.history, {"t/0": 4}, None)


@pytest.mark.parametrize("policy, kept", [("first", True), ("off", False)])
def test_a_former_policy_of_the_guard_is_still_taken(policy, kept):
    with pytest.warns(FutureWarning, match="guard=True"):
        assert (Engine(guard=policy).guard is not None) == kept
