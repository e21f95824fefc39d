"""Orders of objects, and answers that name columns of objects, in words that are not known: asked which end is near."""

import random
from collections import Counter

import pytest

from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx"]
COLUMNS = [
    ("eerste", "tweede", "derde", "vierde"),
    ("primo", "secondo", "terzo", "quarto"),
    ("1st", "2nd", "3rd", "4th"),
    ("1st choice", "2nd choice", "3rd choice", "4th choice"),
]


def orders(n=40):
    """An anchor and four objects in order, of each row."""
    draw = random.Random(6)
    return [draw.sample(OBJECTS, 5) for _ in range(n)]


def said(nearest_first):
    """What orders say."""
    return Counter(
        ("P", anchor, *((near, far) if nearest_first else (far, near)))
        for anchor, *order in orders()
        for place, near in enumerate(order)
        for far in order[place + 1 :]
    )


@pytest.mark.parametrize("names", COLUMNS)
def test_columns_of_ordinals_are_an_order_of_either_direction(tmp_path, names):
    rows = [{"participant": "P", "doel": anchor, **dict(zip(names, order))} for anchor, *order in orders()]
    prepared = inferred(saved(tmp_path, rows))
    assert [comparisons(each) for each in prepared.rivals] == [said(True), said(False)]


@pytest.mark.parametrize("separator", [" > ", ">"])
def test_lists_with_signs_of_order_are_an_order_of_either_direction(tmp_path, separator):
    rows = [{"participant": "P", "doel": anchor, "rij": separator.join(order)} for anchor, *order in orders()]
    prepared = inferred(saved(tmp_path, rows))
    assert [comparisons(each) for each in prepared.rivals] == [said(True), said(False)]


@pytest.mark.parametrize("answered", ["gekozenst", "wynik", "most_similar"])
def test_answers_that_name_columns_of_objects_are_answers_in_any_language(tmp_path, answered):
    rows, meant = [], Counter()
    for row, (anchor, *three) in enumerate(shown[:4] for shown in orders()):
        rows.append({"participant": "P", "vergelijk": anchor, **dict(zip(("A1", "A2", "A3"), three))})
        rows[-1][answered] = f"A{row % 3 + 1}"
        meant.update(("P", anchor, three[row % 3], other) for other in three if other != three[row % 3])
    prepared = inferred(saved(tmp_path, rows))
    assert {each.input.type_ for each in prepared.rivals} == {"pick"}
    assert comparisons(prepared.rivals[0]) == meant
