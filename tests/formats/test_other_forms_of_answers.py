"""Answers by the farther object, sides, flags, ranks and shares, lists and JSON in cells: alike in all formats."""

import json

import pyarrow as pa
import pytest

import stream_engine as se
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions, UnusableOptions
from stream_engine.formats.repeats import Repeats

PICK = {"anchor": ("a",), "shown": ("l", "r"), "chosen": ("c",)}
SIDES = {"near": ("p", "q"), "far": ("s", "t"), "chosen": ("c",)}
FORMS = {
    "pick, farther": (
        EventOptions("pick", PICK, answer_is="farther"),
        {"a": "x", "l": "y", "r": "z", "c": "y"},
        [("x", "z", "y")],
    ),
    "pick_farthest": (
        EventOptions("pick_farthest", {"anchor": ("a",), "shown": ("l", "r"), "farthest": ("c",)}),
        {"a": "x", "l": "y", "r": "z", "c": "y"},
        [("x", "z", "y")],
    ),
    "triplet, farther": (
        EventOptions("triplet", answer_is="farther"),
        {"anchor": "x", "near": "y", "far": "z"},
        [("x", "z", "y")],
    ),
    "ranking, farthest first": (
        EventOptions("ranking", {"anchor": ("a",), "ranked": ("l", "r")}, answer_is="farther"),
        {"a": "x", "l": "y", "r": "z"},
        [("x", "z", "y")],
    ),
    "two pairs": (
        EventOptions("quadruplet", SIDES, codes={"chosen": {"one": "near", "two": "far"}}),
        {"p": "a", "q": "b", "s": "c", "t": "d", "c": "two"},
        [("c", "d", "a", "b")],
    ),
    "a triplet that was answered wrongly": (
        EventOptions(
            "triplet",
            {"anchor": ("a",), "near": ("p",), "far": ("n",), "chosen": ("ok",)},
            codes={"chosen": {"1": "near", "0": "far"}},
        ),
        {"a": "x", "p": "y", "n": "z", "ok": "0"},
        [("x", "z", "y")],
    ),
    "flags": (
        EventOptions("pick", {"anchor": ("a",), "shown": ("l", "r"), "chosen": ("fl", "fr")}, answers_by="flag"),
        {"a": "x", "l": "y", "r": "z", "fl": "0", "fr": "1"},
        [("x", "z", "y")],
    ),
    "ranks": (
        EventOptions("ranking", {"anchor": ("a",), "ranked": ("l", "r"), "rank": ("rl", "rr")}),
        {"a": "x", "l": "y", "r": "z", "rl": 2, "rr": 1},
        [("x", "z", "y")],
    ),
    "shares": (
        EventOptions("triplet", {"share": ("part",), "votes": ("n",)}),
        {"anchor": "x", "near": "y", "far": "z", "part": 0.5, "n": 2},
        [("x", "y", "z"), ("x", "z", "y")],
    ),
    "a separator": (
        EventOptions("odd_one_out", separator=";"),
        {"objects": "x;y;z", "odd": "z"},
        [("x", "y", "z"), ("y", "x", "z")],
    ),
    "a list of Python": (
        EventOptions("odd_one_out"),
        {"objects": "['x', 'y, y', 'z']", "odd": "z"},
        [("x", "y, y", "z"), ("y, y", "x", "z")],
    ),
    "JSON in cells": (
        EventOptions("pick", {"anchor": ("a",), "shown": ("d.l", "d.r"), "chosen": ("d.said",)}),
        {"a": "x", "d": '{"7": {"l": "y", "r": "z"}, "said": "z"}'},
        [("x", "z", "y")],
    ),
}


def comparisons(decoded):
    rows = [*decoded.triplets.tolist(), *decoded.quadruplets.tolist()]
    return [tuple(decoded.names[at] for at in row) for row in rows], [each.message for each in decoded.rejected]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_answers_says_the_same_in_all_formats(form):
    options, row, said = FORMS[form]
    cells = ",".join('"' + str(cell).replace('"', '""') + '"' for cell in row.values())
    assert comparisons(decoder("csv", options)(f"{','.join(row)}\n{cells}\n".encode())) == (said, [])
    assert comparisons(decoder("json", options)(json.dumps(row).encode())) == (said, [])
    assert comparisons(decoder("arrow", options)(pa.RecordBatch.from_pylist([row]))) == (said, [])


@pytest.mark.parametrize(
    ("options", "row", "told"),
    [
        (FORMS["two pairs"][0], {"p": "a", "q": "b", "s": "c", "t": "d", "c": "three"}, "near or far"),
        (FORMS["flags"][0], {"a": "x", "l": "y", "r": "z", "fl": "maybe", "fr": "1"}, "yes (1) or no (0)"),
        (FORMS["ranks"][0], {"a": "x", "l": "y", "r": "z", "rl": 1, "rr": 1}, "different number"),
        (FORMS["shares"][0], {"anchor": "x", "near": "y", "far": "z", "part": 0.4, "n": 2}, "share"),
    ],
)
def test_an_answer_that_says_nothing_is_rejected_with_the_reason(options, row, told):
    found, (message,) = comparisons(decoder("json", options)(json.dumps(row).encode()))
    assert not found and told in message


def test_an_odd_one_out_has_one_meaning():
    with pytest.raises(UnusableOptions, match="farther"):
        decoder("csv", EventOptions("odd_one_out", answer_is="farther"))


def rows(times):
    """Two people who give the same answer twice, at these times."""
    return "worker,anchor,near,far,seconds\n" + "".join(
        f"{who},x,y,z,{time}\n" for who in ("ann", "bob") for time in times
    )


@pytest.mark.parametrize(
    ("times", "again"), [((1.1, 1.2, 1.3, 1.1), 2), ((1.1, 1.2, 1.3), 0), (("", "", ""), 0), ((1, 1, 1), 0)]
)
def test_a_response_is_repeated_only_at_the_same_time(times, again):
    decode = decoder("csv", EventOptions(provenance=True))
    counted, dropping = Repeats(), Repeats(drop=True)
    whole = decode(rows(times).encode())
    looked_at = counted.without(whole)
    assert len(looked_at.triplets) == len(whole.triplets) and looked_at.repeated == again
    assert ("ann (1)" in counted.in_words()) == bool(again)
    if again:
        left = dropping.without(whole)
        assert len(left.triplets) == len(whole.triplets) - again == left.events["triplet"] and left.filtered == again


def test_each_file_is_one_participant(tmp_path):
    for who in ("p1", "p2"):
        (tmp_path / f"{who}.csv").write_text("anchor,near,far\na,b,c\nb,a,c\n")
    study = se.read(str(tmp_path / "*.csv"), participant_from="file")
    assert list(study.workers()["worker"]) == ["p1", "p2"]
