"""Rows of one version of a study that have their objects or answers in other columns than those of another one: both
are offered, and none is left out without a word."""

import random
from collections import Counter

import pytest

from stream_engine.formats.inference import understood
from stream_engine.input.first_records import first_records
from stream_engine.input.settings.loading import load
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx"]
PICK, ODD = ("target", "left", "right"), ("item1", "item2", "item3")
VERSIONS = {  # columns of the objects and of the answer in the first version, and in the second one
    "the answer": ((ODD, "odd"), (ODD, "odd_one_out")),
    "the chosen one": ((PICK, "choice"), (PICK, "answer")),
    "the objects": ((ODD, "odd"), (("img1", "img2", "img3"), "odd")),
    "all columns": ((PICK, "choice"), (("probe", "optionA", "optionB"), "response")),
}


def rows_of(versions, missing, is_first, coded=False):
    """Rows of two versions in one table, and what they say."""
    names = dict.fromkeys(name for objects, answer in versions for name in (*objects, answer))
    rows, meant, draw = [], Counter(), random.Random(1)
    for number in range(90):
        objects, answer = versions[0 if is_first(number) else 1]
        shown, who = draw.sample(OBJECTS, 3), f"P{number // 15}"
        row = {"participant": who, "version": 2 - is_first(number), **dict.fromkeys(names, missing)}
        row |= dict(zip(objects, shown))
        if objects[0] in ("target", "probe"):
            place = draw.randrange(2)
            chosen, other = shown[1 + place], shown[2 - place]
            row[answer] = objects[1 + place] if coded else chosen
            meant[who, shown[0], chosen, other] += 1
        else:
            row[answer] = odd = draw.choice(shown)
            one, two = (name for name in shown if name != odd)
            meant.update([(who, one, two, odd), (who, two, one, odd)])
        rows.append(row)
    return rows, meant


def offers(path):
    return understood(first_records(load(None, {"source": (str(path),)}, {}))).obstacle.offers


@pytest.mark.parametrize("what", VERSIONS)
@pytest.mark.parametrize("missing", ["", "NA"])
@pytest.mark.parametrize("is_first", [lambda number: number < 45, lambda number: number % 3 == 0])
def test_rows_with_other_columns_are_named_and_both_versions_are_read(tmp_path, what, missing, is_first):
    rows, meant = rows_of(VERSIONS[what], missing, is_first)
    path = saved(tmp_path, rows)
    prepared = inferred(path)
    n_other = sum(not is_first(number) for number in range(90))
    assert any(f"{n:,} of 90 rows have none of " in prepared.problem for n in (n_other, 90 - n_other))
    assert "versions of a study?" in prepared.problem and "stream-engine merge A B" in prepared.problem
    assert sum((comparisons(prepared.settings, offer) for offer in offers(path)), Counter()) == meant


def test_answers_that_name_sides_may_be_renamed_too(tmp_path):
    rows, meant = rows_of(VERSIONS["the chosen one"], "NA", lambda number: number < 45, coded=True)
    path = saved(tmp_path, rows)
    prepared = inferred(path)
    assert sum((comparisons(prepared.settings, offer) for offer in offers(path)), Counter()) == meant


def test_rows_without_an_answer_are_no_version(tmp_path):
    rows, meant = rows_of(VERSIONS["the answer"], "", lambda number: number < 45)
    answered = [row | {"odd_one_out": ""} for row in rows]
    assert comparisons(inferred(saved(tmp_path, answered)).raise_if_undecided().settings).total() == 90


@pytest.mark.parametrize("mark", ["practice_", "check_", "loop"])
def test_practice_and_checks_in_columns_of_their_own_are_no_version(tmp_path, mark):
    prefix = "" if mark == "loop" else mark
    names = (tuple(f"{prefix}{name}" for name in ("img1", "img2", "img3")), f"{prefix}odd_one_out")
    rows, meant = rows_of([(ODD, "odd"), names], "", lambda number: number % 15 > 2)
    if mark == "loop":
        for row in rows:
            row |= {"practice_trials.thisN": "" if row["odd"] else "0", "trials.thisN": "0" if row["odd"] else ""}
    assert comparisons(inferred(saved(tmp_path, rows)).raise_if_undecided().settings).total() == 2 * 72
