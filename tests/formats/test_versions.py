"""Versions of a study in one table, of which one may have had swapped keys: said where the answers show it, or where
keys are answers and a column is called like counterbalancing."""

import random

import pytest

from tests.support.readings import inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole", "stoat", "crane"]


def answers(n_people, n_each, column, texts, *, swapped, keys="fj", in_blocks=False, seed=0):
    """Picks in a world of two dimensions, one in seven wrong; keys mean the other side for those with the second text
    of a column, if they are `swapped`."""
    draw = random.Random(seed)
    place = {name: complex(draw.gauss(0, 1), draw.gauss(0, 1)) for name in OBJECTS}
    rows = []
    for person in range(n_people):
        for trial in range(n_each):
            anchor, *sides = draw.sample(OBJECTS, 3)
            nearer = abs(place[sides[1]] - place[anchor]) < abs(place[sides[0]] - place[anchor])
            version = 2 * trial // n_each if in_blocks else person % 2
            pressed = keys[nearer ^ (draw.random() < 1 / 7) ^ (swapped and version)]
            row = {"who": f"P{person:02}", "trial": trial, "target": anchor, "left": sides[0], "right": sides[1]}
            rows.append(row | {"key": pressed, column: texts[version]})
    return rows


def warnings(folder, rows):
    prepared = inferred(saved(folder, rows)).raise_if_undecided()
    return [decision.why for decision in prepared.evidence if decision.topic == "in doubt"]


@pytest.mark.parametrize("column", ["counterbalance", "dept", "location"])
@pytest.mark.parametrize("keys", ["fj", ("left", "right")])
def test_a_version_whose_answers_contradict_the_others_is_named(tmp_path, column, keys):
    (said,) = warnings(tmp_path, answers(10, 40, column, ("north", "south"), swapped=True, keys=keys))
    assert f"where {column} is " in said and "answers contradict those of the other rows" in said
    assert "--answer-is farther" in said


def test_blocks_whose_answers_contradict_each_other_are_named(tmp_path):
    (said,) = warnings(tmp_path, answers(10, 40, "part", ("1", "2"), swapped=True, in_blocks=True))
    assert "where part is " in said


@pytest.mark.parametrize("seed", range(5))
def test_a_group_that_answers_as_the_others_do_is_not_named(tmp_path, seed):
    assert not warnings(tmp_path, answers(10, 40, "group", ("A", "B"), swapped=False, seed=seed))


def test_a_column_that_follows_from_each_answer_is_no_version(tmp_path):
    rows = answers(10, 40, "part", ("1", "2"), swapped=False)
    for row in rows:
        row["part"] = "usual" if random.Random(str(row)).random() < 0.5 else "strange"
        row["key"] = row["key"] if row["part"] == "usual" else {"f": "j", "j": "f"}[row["key"]]
    assert not warnings(tmp_path, rows)


@pytest.mark.parametrize(
    ("column", "texts", "keys", "is_named"),
    [
        ("counterbalance", ("A", "B"), "fj", True),
        ("condition", ("1", "2"), "fj", True),
        ("version", ("A", "B"), ("ArrowLeft", "ArrowRight"), True),
        ("task", ("normal", "reversed"), "fj", True),
        ("group", ("young", "old"), "fj", False),  # of people
        ("counterbalance", ("A", "B"), ("left", "right"), False),  # no keys: they say which
    ],
)
def test_a_column_like_counterbalancing_beside_keys_is_named_where_the_answers_do_not_decide(
    tmp_path, column, texts, keys, is_named
):
    said = warnings(tmp_path, answers(4, 6, column, texts, swapped=False, keys=keys))
    assert [f"answers are keys ({', '.join(keys)}), and {column} is {', '.join(texts)}" in text for text in said] == [
        True
    ] * is_named


@pytest.mark.parametrize(("column", "is_named"), [("reverse_keyed", True), ("image_inverted", False), ("flip", False)])
def test_rows_that_are_called_reversed_are_named(tmp_path, column, is_named):
    rows = answers(4, 6, column, ("yes", "no"), swapped=False, keys=("left", "right"))
    for row in rows:
        row["key"] = row[row["key"]]
    assert any(f"although {column} is yes" in text for text in warnings(tmp_path, rows)) == is_named
