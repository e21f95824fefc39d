"""Responses that were sent twice, and those that only look as if they were."""

import json
from collections import Counter

import pytest

from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.formats.repeats import Repeats
from tests.support.facts import states

ANSWER = {"anchor": "a", "near": "b", "far": "c"}


@pytest.mark.parametrize(
    "times, drop, kept, said",
    [
        ([1, 1, 2, 2, 3, 3], True, 3, "3 responses … copies were dropped"),
        ([1, 1, 2, 2, 3, 3], False, 6, "3 responses … remove"),
        ([1, 1, 1, 1], True, 1, "--drop-duplicates dropped … 3 different times … 3, which may be answers"),
        ([1, 1, 1, 1], False, 4, ""),
        ([1, 2], True, 2, ""),
    ],
)
def test_what_is_dropped_is_told_and_whether_the_times_say_that_it_is_a_copy(times, drop, kept, said):
    events = [ANSWER | {"worker": "w", "time": at} for at in times]
    repeats = Repeats(drop)
    block = decoder("json", EventOptions(provenance=True))("\n".join(map(json.dumps, events)).encode())
    assert len(repeats.without(block).triplets) == kept
    assert states(repeats.in_words(), said) and bool(said) == bool(repeats.in_words())


def test_every_response_that_is_dropped_is_counted_as_a_copy():
    block = decoder("json", EventOptions(provenance=True))(
        "\n".join([json.dumps(ANSWER | {"worker": "w", "time": 1})] * 3).encode()
    )
    told = Repeats(True).without(block)
    assert (told.repeated, told.filtered) == (2, 2)


def test_copies_that_are_sure_and_not_are_told_apart():
    repeats = Repeats(True)
    people = [("sure", at) for at in (1, 2, 3, 3)] + [("unsure", at) for at in (1, 1, 1)]
    events = [ANSWER | {"worker": who, "time": at} for who, at in people]
    repeats.without(decoder("json", EventOptions(provenance=True))("\n".join(map(json.dumps, events)).encode()))
    assert states(repeats.in_words(), "1 responses … sure (1); the copies were dropped; … : 2, which may be")


def test_the_three_who_sent_most_are_named_and_the_others_counted():
    sent = Counter({"a": 4, "b": 9, "c": 2, "d": 7, "e": 3})
    repeats = Repeats(of_participant=sent, _times={who: {1.0, 2.0, 3.0} for who in sent})
    assert states(repeats.in_words(), "25 responses … by b (9), d (7), a (4) and 2 more")


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("by_anchor", [True, False])
def test_copies_of_catch_trials_are_dropped_with_those_of_answers(drop, by_anchor):
    """Two trials, one of which was sent twice; one without a time is no copy of another."""
    columns = {"catch": ("anchor",)} if by_anchor else {"catch": ("catch",)}
    catch = {"anchor": "a", "near": "a", "far": "c"} if by_anchor else ANSWER | {"catch": True}
    events = [catch | {"worker": "w", "time": at} for at in (1, 2, 1)] + [catch | {"worker": "w"}] * 2
    events += [ANSWER | {"worker": "w", "time": at} for at in (3, 4, 3)]
    read = decoder("json", EventOptions(provenance=True, columns=columns))
    told = Repeats(drop).without(read("\n".join(map(json.dumps, events)).encode()))
    assert told.provenance.catch_passed.tolist() == [True] * (4 if drop else 5)
    assert len(told.triplets) == (2 if drop else 3)
    alone = Repeats(drop)
    blocks = [alone.without(read(json.dumps(each).encode())) for each in events]
    assert sum(len(block.provenance.catch_passed) for block in blocks) == (4 if drop else 5)
