"""Events to comparisons, against the contract written plainly: small worlds in which every branch is reached."""

import itertools

import numpy as np
import pytest

from stream_engine.data.comparisons import EVENT_TYPES, InvalidEvent, Quadruplet, Triplet
from stream_engine.formats import event_block
from stream_engine.formats import expand as room
from stream_engine.formats.event_block import Block
from stream_engine.formats.event_columns import FieldNames, Origins, untold
from stream_engine.formats.event_fields import KIND
from tests.support.event_reference import FIELDS, comparisons, reference_expand

NAMES = ["a", "b", "c", "d", "e"]


def every_event(kind):
    """All events of a kind over few names, lists of up to three."""
    lists = [list(p) for n in range(4) for p in itertools.product("abc", repeat=n)]
    pools = {
        "anchor": "abcd",
        "object": "a",
        "label": ["x", None],
        "odd": "abcd",
        "central": "abcd",
        "near": "abc",
        "far": "abc",
        "shown": lists,
        "chosen": [x for x in lists if len(x) < 3] + [["a", "b", "c"]],
        "ranked": lists,
        "objects": [x for x in lists if len(x) == 3],
    }
    if kind == "quadruplet":
        pools["near"] = pools["far"] = [list(p) for p in itertools.product("abcd", repeat=2)]
    for values in itertools.product(*(pools[field] for field in FIELDS[kind])):
        yield {"type": kind, **dict(zip(FIELDS[kind], values, strict=True))}


def expanded(events):
    """Comparisons by name of each event, or the reason against it, from one call over all of them."""
    block = Block(provenance=False)
    for row, event in enumerate(events):
        fields = [
            [] if event[f] is None else event[f] if isinstance(event[f], list) else [event[f]]
            for f in FIELDS[event["type"]]
        ]
        block.add(
            KIND[event["type"]],
            np.array([row]),
            [FieldNames(np.array([len(f)]), block.names.ids(f)) for f in fields],
        )
    done = block.decoded(lambda row: (row, b""))
    out = [[] for _ in events]
    for one in done.rejected:
        out[one.index] = one.reason
    return done, out


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_every_small_event(kind):
    events = list(every_event(kind))
    expected, reasons = [], []
    for event in events:
        try:
            expected.append(reference_expand(event))
            reasons.append([])
        except InvalidEvent as fault:
            reasons.append(fault.reason)
    done, found = expanded(events)
    assert found == reasons
    said = [x for one in expected for x in one]
    assert comparisons(done) + done.labels == said
    assert done.events == {kind: len(expected)}
    appear = dict.fromkeys(name for c in said if not hasattr(c, "label") for name in flat(c))
    assert done.names == list(appear)


def flat(c):
    return c if isinstance(c, Triplet) else (*c.near, *c.far)


def test_kinds_mixed_keep_their_order_and_their_events():
    rng = np.random.default_rng(3)
    pools = [list(every_event(kind)) for kind in EVENT_TYPES]
    events = [pool[rng.integers(len(pool))] for pool in pools * 120]
    said, kinds = [], []
    for event in events:
        try:
            one = reference_expand(event)
        except InvalidEvent:
            continue
        said += [(c, len(kinds)) for c in one if event["type"] != "label"]
        kinds.append(KIND[event["type"]])
    done, _ = expanded(events)
    assert comparisons(done) == [c for c, _ in said]
    assert any(isinstance(c, Quadruplet) for c, _ in said) and set(kinds) == set(range(len(EVENT_TYPES)))
    found = room.expand(*arrays(events))
    of = [(e, isinstance(c, Quadruplet)) for c, e in said]
    assert found.of_triplet.tolist() == [e for e, quad in of if not quad]
    assert found.of_quadruplet.tolist() == [e for e, quad in of if quad]


def arrays(events):
    index = {name: i for i, name in enumerate([*NAMES, "x"])}
    parts = [[[] if event[f] is None else list(event[f]) for f in FIELDS[event["type"]]] for event in events]
    size = np.array([sum(map(len, p)) for p in parts])
    start = np.concatenate([[0], np.cumsum(size)])
    split = start[1:] - np.array([len(p[-1]) for p in parts])
    members = np.array([index[name] for p in parts for field in p for name in field], np.int32)
    return (np.array([KIND[e["type"]] for e in events], np.int8), start, split, members, np.zeros(len(index), np.uint8))


def test_a_long_ranking_is_quadratic_and_exact():
    members = np.arange(301, dtype=np.int32)
    found = room.expand(
        np.array([KIND["ranking"]], np.int8), np.array([0, 301]), np.array([1]), members, np.zeros(301, np.uint8)
    )
    s, t = np.triu_indices(300, 1)
    assert (found.triplets == np.stack([0 * s, s + 1, t + 1], axis=1)).all()


@pytest.mark.parametrize("seed", range(40))
def test_plain_triplets_are_read_like_all_other_events(monkeypatch, seed):
    """The short way for blocks of triplets alone, beside the long one: the same block, and none where one is wrong."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d", "é", *(["x" * 1025] if seed % 8 == 1 else []), *([""] if seed % 8 == 2 else [])]
    rows = [rng.permutation(names)[:3].tolist() for _ in range(int(rng.integers(1, 8)))]
    if seed % 8 == 3:
        near, far = [(0, 1), (0, 2), (1, 2)][seed // 8 % 3]
        rows[-1][near] = rows[-1][far]

    def decoded():
        block = Block(provenance=seed % 8 == 4)
        block.names.ids(sorted(names))  # numbers that are not those of first appearance
        block.filtered = seed
        events = rows + ([["a", "b", "c", "b"]] if seed % 8 == 5 else [])
        for row, event in enumerate(events):
            kind = "triplet" if len(event) == 3 else "odd_one_out"
            columns = [FieldNames(np.array([1]), np.array([number])) for number in block.names.ids(event)]
            origins = untold(1) if block.provenance else None
            if seed == 12:
                nobody = np.array([-1], np.int32)
                origins = Origins(nobody, np.ones(1), np.zeros(1), nobody, np.full(1, np.nan))
            block.add(KIND[kind], np.array([row]), columns, origins)
        if seed % 8 == 6:
            block.refused.append((99, InvalidEvent("wrong_type", "no event")))
        return block.decoded(lambda row: (row, b""), frozenset("u"))

    short = decoded()
    monkeypatch.setattr(event_block, "plain_triplets", lambda events, texts: taken.append(0))
    taken = []
    long = decoded()
    assert [each.dtype for each in short[1:4]] == [each.dtype for each in long[1:4]] and len(taken) == (seed % 8 != 6)
    for one, other in zip(short[1:4] + short.kinds[:3], long[1:4] + long.kinds[:3], strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert (one == other).all()
    assert (short.provenance is None) == (long.provenance is None) == (seed % 8 != 4)
    for one, other in zip(short.provenance or (), long.provenance or (), strict=True):
        np.testing.assert_array_equal(one, other)
    assert short.kinds[3:] == long.kinds[3:] == (False, False)
    for field in ("names", "labels", "events", "rejected", "filtered", "empty", "unknown_fields", "rest", "values"):
        assert getattr(short, field) == getattr(long, field)
