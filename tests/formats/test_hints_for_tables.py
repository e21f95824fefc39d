"""What is offered for tables that are not read at once reads them rightly: orders between ends, names that repeat."""

import random
from collections import Counter

import pytest

from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]
NEAREST_FIRST = [
    ("most_similar", "second", "third", "least_similar"),
    ("rank1 (closest)", "rank2", "rank3", "rank4 (farthest)"),
    ("4 most alike", "3", "2", "1 least alike"),
]


def orders(n=40):
    draw = random.Random(6)
    return [draw.sample(OBJECTS, 5) for _ in range(n)]


@pytest.mark.parametrize("names", NEAREST_FIRST)
@pytest.mark.parametrize("turned", [False, True])
def test_columns_from_one_end_to_the_other_are_the_whole_order(tmp_path, names, turned):
    rows, meant = [], Counter()
    for anchor, *order in orders():
        cells = [*zip(names, order)]
        rows.append({"subject": "P", "target": anchor, **dict(cells[::-1] if turned else cells)})
        meant.update(("P", anchor, near, far) for place, near in enumerate(order) for far in order[place + 1 :])
    prepared = inferred(saved(tmp_path, rows))
    assert not prepared.problem and comparisons(prepared.settings) == meant


def triads(names, n=48):
    """Rows with three objects each in columns of these names, the objects, and a source of answers."""
    draw = random.Random(8)
    shown = [draw.sample(OBJECTS, 3) for _ in range(n)]
    return [{"subject": f"P{row // 12}", **dict(zip(names, three))} for row, three in enumerate(shown)], shown, draw


def test_columns_as_r_numbers_names_that_repeat_are_three_objects(tmp_path):
    rows, shown, draw = triads(("stim", "stim.1", "stim.2"))
    places = [draw.randrange(3) for _ in shown]
    prepared = inferred(saved(tmp_path, [{**row, "odd": place + 1} for row, place in zip(rows, places)]))
    assert not prepared.problem and prepared.settings.input.type_ == "odd_one_out"
    meant = Counter()
    for row, (three, place) in enumerate(zip(shown, places)):
        one, other = (name for name in three if name != three[place])
        meant.update((f"P{row // 12}", *names, three[place]) for names in ((one, other), (other, one)))
    assert comparisons(prepared.settings) == meant


def test_an_object_that_is_never_the_answer_may_be_the_anchor(tmp_path):
    rows, shown, draw = triads(("stim1", "stim2", "stim3"))
    rows = [{**row, "response": draw.choice(three[1:])} for row, three in zip(rows, shown)]
    prepared = inferred(saved(tmp_path, rows))
    first = prepared.rivals[0]
    assert first.input.type_ == "pick" and first.input.columns["anchor"] == "stim1"
    assert {(who, anchor, near) for who, anchor, near, _ in comparisons(first)} == {
        (row["subject"], row["stim1"], row["response"]) for row in rows
    }


def text_of(rows, separator=","):
    return "".join(separator.join(map(str, row)) + "\n" for row in rows)


def test_names_that_repeat_tables_on_their_side_and_names_of_rows_are_said_to_be_so(tmp_path):
    rows, shown, _ = triads(("obj", "obj2", "obj3"), n=12)
    table = [["subject", "obj", "obj", "obj", "odd"], *([*row.values(), three[0]] for row, three in zip(rows, shown))]
    tables = {
        "several columns are called obj": table,
        "one cell more": [["subject", "a", "b", "c", "odd"], *([place, *row] for place, row in enumerate(table[1:]))],
    }
    tables["the table is on its side"] = [
        ["subject", *["P1"] * 6, *["P2"] * 6],
        ["trial", *range(12)],
        *(
            [name, *column]
            for name, column in zip(("a", "b", "c", "odd"), zip(*([*three, three[0]] for three in shown)))
        ),
    ]
    for fact, lines in tables.items():
        path = tmp_path / "table.csv"
        path.write_text(text_of(lines))
        problem = inferred(path).problem
        assert fact in problem and "to_csv('answers.csv'" in problem
    path = tmp_path / "table.txt"
    path.write_text(text_of(tables["one cell more"], " "))
    assert "one more than the header" in inferred(path).problem and "sep=' '" in inferred(path).problem


def test_names_that_repeat_by_a_delimiter_that_rows_have_not_are_none(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("subject,cat | dog | owl,owl | cat | dog,dog | owl | cat\nP1,cat,owl,dog\nP2,dog,owl,cat\n")
    assert "several columns" not in inferred(path).problem


def test_sentences_about_objects_are_not_taken_for_a_design(tmp_path):
    rows, shown, draw = triads(("target", "option1", "option2"))
    rows = [
        {**row, "answer": f"The {draw.choice(three[1:])} is closer to the {three[0]}"}
        for row, three in zip(rows, shown)
    ]
    prepared = inferred(saved(tmp_path, rows))
    assert not prepared.rivals and "sentences" in prepared.problem
