"""Answers by position, vote counts, whole floats and times without a zone: every format and the slow twins alike."""

import json

import numpy as np
import pyarrow as pa
import pytest

from stream_engine.formats import decoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import EventOptions

NAMES = ["a", "b", "16", "é", "x y"]


def said(done):
    """What a block says, by name: comparisons in order, who gave them, and what was refused."""
    triplets = [tuple(done.names[i] for i in row) for row in done.triplets.tolist()]
    quads = [tuple(done.names[i] for i in row) for row in done.quadruplets.tolist()]
    given = done.provenance
    workers = [given.workers[i] if i >= 0 else None for i in given.worker.tolist()]
    return (
        triplets,
        quads,
        done.quadruplet_at.tolist(),
        given.of_triplet.tolist(),
        given.of_quadruplet.tolist(),
        workers,
        np.nan_to_num(given.time).tolist(),
        done.events,
        [(r.index, r.reason) for r in done.rejected],
    )


def cell(value):
    if isinstance(value, list):
        return "|".join(map(cell, value))
    return "" if value is None else str(value)


def all_ways(events, options):
    """The events through every decoder, fast and slow, from values and from tables."""
    options = options._replace(provenance=True)
    names = list(dict.fromkeys(name for event in events for name in event))
    lines = "".join(json.dumps(event) + "\n" for event in events).encode()
    rows = [";".join(cell(event.get(name)) for name in names) + "\n" for event in events]
    table = (";".join(names) + "\n" + "".join(rows)).encode()
    spaced = table.replace(b";", b" ; ").replace(b"|", b" |\t")
    batch = pa.RecordBatch.from_pylist([{name: event.get(name) for name in names} for event in events])
    for fast in (True, False):
        yield "json", JsonDecoder(options, fast)(lines)
        yield "csv", CsvDecoder(options, fast)(table)
        yield "csv with spaces", CsvDecoder(options, fast)(spaced)
        yield "arrow", decoder("arrow", options).__class__(options, fast)(batch)
    parts = table.split(b"\n")
    done = CsvDecoder(options)(b"\n".join(parts[1:3]) + b"\n", parts[0])
    assert said(done)[0] == said(CsvDecoder(options)(b"\n".join(parts[:3]) + b"\n"))[0]


def alike(events, options, expected=None):
    found = {}
    for number, (way, done) in enumerate(all_ways(events, options)):
        found[way, number] = said(done)
    first = next(iter(found.values()))
    for way, other in found.items():
        assert other == first, way
    if expected is not None:
        assert first == expected
    return first


@pytest.mark.parametrize("answers_by", ["position", "index"])
@pytest.mark.parametrize("kind", ["odd_one_out", "most_central", "pick"])
def test_answers_by_position_are_the_objects_at_these_places(kind, answers_by):
    rng, first = np.random.default_rng(7), {"position": 1, "index": 0}[answers_by]
    by_name, by_place = [], []
    for _ in range(60):
        shown = [str(name) for name in rng.permutation(NAMES)[: 3 if kind != "pick" else rng.integers(2, 5)]]
        places = rng.permutation(len(shown))[: rng.integers(1, len(shown))].tolist() if kind == "pick" else None
        event = {"worker": str(rng.choice(["u", "v"]))}
        if kind == "pick":
            event |= {"anchor": "anchor", "shown": shown}
            by_name.append(event | {"chosen": [shown[place] for place in places]})
            by_place.append(event | {"chosen": [place + first for place in places]})
        else:
            place, field = int(rng.integers(3)), "odd" if kind == "odd_one_out" else "central"
            by_name.append(event | {"objects": shown, field: shown[place]})
            by_place.append(event | {"objects": shown, field: place + first})
    named = alike(by_name, EventOptions(kind))
    assert named[0]
    alike(by_place, EventOptions(kind, answers_by=answers_by), named)


@pytest.mark.parametrize("kind", ["odd_one_out", "most_central", "pick"])
def test_an_answer_may_be_the_column_that_its_object_stands_in(kind):
    """As pages of two pictures write it: Left, Right, and left or right for an answer; numbers still are places."""
    columns = ("Left", "Right", "Middle")
    field = {"odd_one_out": "odd", "most_central": "central", "pick": "chosen"}[kind]
    options = EventOptions(kind, {"objects" if kind != "pick" else "shown": columns, field: ("Response",)})
    by_name, by_column = [], []
    for place, answer in enumerate(["left", "RIGHT", "Middle", "2", "0", "neither", "é"]):
        names = [NAMES[(place + step) % len(NAMES)] for step in range(3)]
        shown = dict(zip(columns, names)) | ({"anchor": "anchor"} if kind == "pick" else {})
        at = {"left": 0, "RIGHT": 1, "Middle": 2, "2": 1}.get(answer, -1)
        by_name.append(shown | {"Response": names[at] if at >= 0 else "nothing shown"})
        by_column.append(shown | {"Response": answer})
    named = alike(by_name, options)
    assert named[0] and named[-1] == [(4, "not_shown"), (5, "not_shown"), (6, "not_shown")]
    alike(by_column, options._replace(answers_by="position"), named)


@pytest.mark.parametrize(("answer", "hint"), [("o7", False), ("2", True), ("LEFT", True), ("7", False), ("up", False)])
@pytest.mark.parametrize("kind", ["odd_one_out", "pick"])
def test_only_an_answer_that_could_be_a_position_or_a_column_is_told_about_positions(kind, answer, hint):
    columns, field = ("Left", "Right", "Middle"), "odd" if kind == "odd_one_out" else "chosen"
    options = EventOptions(kind, {"objects" if kind != "pick" else "shown": columns, field: ("Response",)})
    event = {"anchor": "x y", "Left": "a", "Right": "b", "Middle": "é", "Response": answer}
    for way, done in all_ways([event], options):
        (refused,) = done.rejected
        assert (refused.reason, "--answers-by" in refused.message) == ("not_shown", hint), way


@pytest.mark.parametrize("kind", ["triplet", "quadruplet"])
def test_votes_are_so_many_answers_each_way(kind):
    rng = np.random.default_rng(3)
    events, times, one_by_one = [], [], []
    for _ in range(80):
        names = [str(name) for name in rng.permutation(NAMES)]
        near, far = (names[1], names[2]) if kind == "triplet" else (names[:2], names[rng.integers(1, 3) :][:2])
        event = {"type": kind, "near": near, "far": far} | ({"anchor": names[0]} if kind == "triplet" else {})
        counts = [None, 0, 1, 2, 3][rng.integers(5)], [None, 0, 1, 5][rng.integers(4)]
        events.append(event | {"n_near": counts[0], "n_far": counts[1]})
        each = (1, 0) if counts == (None, None) else tuple(count or 0 for count in counts)
        opposite = event | {"near": far, "far": near}
        one_by_one += [event] * each[0] + [opposite] * each[1]
        times.append(sum(each))
    given = JsonDecoder(EventOptions(provenance=True))
    done = given("".join(json.dumps(event) + "\n" for event in events).encode())
    singly = given("".join(json.dumps(event) + "\n" for event in one_by_one).encode())
    assert said(done)[:3] == said(singly)[:3]
    assert done.events == {kind: 80} and not done.rejected
    events_of = sorted([*done.provenance.of_triplet.tolist(), *done.provenance.of_quadruplet.tolist()])
    assert np.bincount(events_of, minlength=80).tolist() == times
    table = events if kind == "triplet" else [in_four_columns(event) for event in events]
    names = list(table[0])
    rows = [",".join(cell(event.get(name)) for name in names) for event in table]
    csv = CsvDecoder(EventOptions(provenance=True))("\n".join([",".join(names), *rows]).encode())
    floats = [{**event, "n_near": event["n_near"] and event["n_near"] * 1.0} for event in table]
    batch = pa.RecordBatch.from_pylist(floats)
    arrow = decoder("arrow", EventOptions(provenance=True))(batch)
    assert said(csv) == said(arrow) == said(done)


def in_four_columns(event):
    pairs = dict(zip(("near_i", "near_j", "far_i", "far_j"), (*event["near"], *event["far"]), strict=True))
    return {key: value for key, value in event.items() if key not in ("near", "far")} | pairs


@pytest.mark.parametrize("votes", [-1, 1.5, 1_000_001])
def test_a_count_that_cannot_be_is_refused(votes):
    good = {"anchor": "a", "near": "b", "far": "c", "n_near": 2}
    for way, done in all_ways([good, good | {"n_near": votes}], EventOptions()):
        assert [(r.index, r.reason) for r in done.rejected] == [(1, "bad_votes")], way
        assert len(done.triplets) == 2
    as_text = json.dumps(good | {"n_far": str(votes)}).encode()
    assert JsonDecoder(EventOptions())(as_text).rejected[0].reason == "bad_votes"
