"""Answers in columns of their own: pairs that are called nearer and farther, a column for each rater, counts."""

import random
from collections import Counter

import pytest

from stream_engine.formats.reading import in_doubt
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx"]
PAIRS = [
    ("near_a", "near_b", "far_a", "far_b"),
    ("near_i", "near_j", "far_i", "far_j"),
    ("similar1", "similar2", "dissimilar1", "dissimilar2"),
]


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("farther_first", [False, True])
def test_pairs_that_are_called_nearer_and_farther_are_quadruplets(tmp_path, names, farther_first):
    draw, rows, meant = random.Random(3), [], Counter()
    order = (*names[2:], *names[:2]) if farther_first else names
    for number in range(48):
        four = dict(zip(names, draw.sample(OBJECTS, 4)))
        rows.append({"participant": f"P{number // 12}", **{name: four[name] for name in order}})
        meant[f"P{number // 12}", *four.values()] += 1
    prepared = inferred(saved(tmp_path, rows))
    assert not prepared.problem and not in_doubt(prepared.evidence)
    assert comparisons(prepared.settings) == meant


def test_several_objects_beside_an_anchor_are_no_pairs(tmp_path):
    draw, names = random.Random(3), ("target", "near_1", "near_2", "far_1", "far_2")
    prepared = inferred(saved(tmp_path, [dict(zip(names, draw.sample(OBJECTS, 5))) for _ in range(48)]))
    assert prepared.settings.input.type_ != "quadruplet"
