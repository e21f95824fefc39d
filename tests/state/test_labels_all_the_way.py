"""Labels through a stream, a snapshot, restoring, merging and exports: the last one said wins, and of two states that
of the one that the other is merged into."""

import csv
import json
import random

import pytest

from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.support.process import engine, jsonl

DECODE = decoder("json", EventOptions())
OBJECTS, CLASSES = [*"abcdef", "nobody"], ["x", "y", None]


def said(seed: int, n: int = 60) -> list[dict]:
    """Labels and comparisons in turns; objects are labelled before, after and without a comparison."""
    drawn = random.Random(seed)
    events = []
    for _ in range(n):
        if drawn.random() < 0.5:
            events.append({"type": "label", "object": drawn.choice(OBJECTS), "label": drawn.choice(CLASSES)})
        else:
            events.append(dict(zip(("anchor", "near", "far"), drawn.sample(OBJECTS[:-1], 3), strict=True)))
    return events


def last_said(events) -> dict[str, str]:
    """By the contract: an object has the label that was said last, none where that was taken back."""
    held = {event["object"]: event["label"] for event in events if event.get("type") == "label"}
    return {name: label for name, label in held.items() if label is not None}


def learn(made: Engine, events) -> Engine:
    """Take in events, a few at a time."""
    for at in range(0, len(events), 3):
        made.learn(DECODE("".join(json.dumps(event) + "\n" for event in events[at : at + 3]).encode()))
    return made


def learned(events) -> Engine:
    return learn(Engine(("triplet_counts",), False), events)


@pytest.mark.parametrize("seed", range(5))
def test_the_last_label_wins_wherever_the_stream_is_cut_and_restored(seed):
    events = said(seed)
    for cut in (0, 7, 31, 60):
        first = learned(events[:cut])
        counts, whole = first.capture()
        kept = dict(first.labels)
        rest = Engine.restore(whole())
        for each in (first, rest):  # what goes on does not change what was captured
            learn(each, events[cut:])
        assert counts.labels == whole().labels == kept == last_said(events[:cut])
        assert first.labels == rest.labels == last_said(events)
        assert rest.counters["labels"] == sum("label" in event for event in events)


@pytest.mark.parametrize("seed", range(4))
def test_of_two_states_the_first_ones_label_stays_and_both_are_left_as_they_were(seed):
    one, other = learned(said(seed)), learned(said(seed + 100))
    before = dict(one.labels), dict(other.labels)
    merged = Engine.restore(one.snapshot())
    merged.merge(Engine.restore(other.snapshot()))
    assert merged.labels == before[1] | before[0] and (one.labels, other.labels) == before
    back = Engine.restore(other.snapshot())
    back.merge(one)
    assert back.labels == before[0] | before[1] and merged.labels.keys() == back.labels.keys()
    back.labels.clear()
    assert one.labels == before[0]


def test_a_run_a_merge_and_an_export_tell_the_same_labels(tmp_path):
    events = [said(1), said(2)]
    for n, each in enumerate(events):
        engine("run", jsonl(tmp_path / f"{n}.jsonl", each), "--state", tmp_path / f"s{n}", "--no-refits")
    engine("merge", tmp_path / "s0", tmp_path / "s1", "--out", tmp_path / "m")
    expected = last_said(events[1]) | last_said(events[0])
    snapshot = Store(tmp_path / "m").latest().snapshot
    assert snapshot.labels == expected and snapshot.counters["labels"] == sum(
        "label" in event for each in events for event in each
    )
    assert last_said(events[0]) != last_said(events[1])  # they do not agree, or nobody would see who wins
    engine("export", "--state", tmp_path / "m", "--out", tmp_path / "out", "--format", "csv", "objects")
    with (tmp_path / "out" / "objects.csv").open(newline="") as file:
        told = {row["object"]: row["label"] for row in csv.DictReader(file)}
    assert told == {name: expected.get(name, "") for name in snapshot.objects}  # "nobody" is in no comparison
    assert "nobody" not in told and {"x", "y"} <= {*told.values()}
