"""Rows that are checks though nothing calls them so, answers of machines, and participants spelt in several ways."""

import random
import re

import pytest

from stream_engine.formats.reading import in_doubt
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]


def picks(n_each=14, **further):
    """Picks of four participants; `further`: a function of the number of a participant's row, for each column."""
    draw, rows = random.Random(9), []
    for number in range(4 * n_each):
        target, a, b = draw.sample(OBJECTS, 3)
        row = {
            "subject": f"P{number // n_each}",
            "target": target,
            "left": a,
            "right": b,
            "choice": draw.choice((a, b)),
        }
        rows.append({**row, **{name: of(number % n_each, row) for name, of in further.items()}})
    return rows


def doubts(folder, rows):
    prepared = inferred(saved(folder, rows))
    assert not prepared.problem
    return " ".join(in_doubt(prepared.evidence)), prepared.settings


def other(row):
    return row["left"] if row["choice"] == row["right"] else row["right"]


@pytest.mark.parametrize("name", ["expected", "correct_answer", "Gold"])
@pytest.mark.parametrize("by_side", [False, True])
def test_the_few_rows_with_a_right_answer_are_catch_trials(tmp_path, name, by_side):
    def right(number, row):
        text = "" if number % 7 else other(row) if row["subject"] == "P2" else row["choice"]
        return ("left" if text == row["left"] else "right") if by_side and text else text

    rows = picks(**{name: right})
    if by_side:
        rows = [{**row, "choice": "left" if row["choice"] == row["left"] else "right"} for row in rows]
    text, settings = doubts(tmp_path, rows)
    assert comparisons(settings).total() == len(rows) - 8
    assert "P2 (2 of 2)" in text and "subject!=P2" in text and "P1" not in text


def test_a_right_answer_in_most_rows_is_no_check(tmp_path):
    rows = picks(expected=lambda number, row: row["choice"] if number % 3 else other(row))
    assert comparisons(doubts(tmp_path, rows)[1]).total() == len(rows)


MACHINES = {"agent": ("human", "gpt-4"), "source": ("prolific", "LLM"), "rater_type": ("person", "model")}


@pytest.mark.parametrize("name", MACHINES)
def test_answers_of_machines_are_named(tmp_path, name):
    text, settings = doubts(tmp_path, picks(**{name: lambda number, row: MACHINES[name][number % 4 == 1]}))
    assert re.search(rf"16 of 56 rows count although {name} .*--where '{name}!={MACHINES[name][1]}'", text)
    assert comparisons(settings).total() == 56


@pytest.mark.parametrize("name", ["face", "source"])
def test_kinds_of_objects_are_no_machines(tmp_path, name):
    assert not doubts(tmp_path, picks(**{name: lambda number, row: ("people", "robots", "web")[number % 3]}))[0]


SPELLINGS = {"zeros": ("001", "1"), "case": ("Ann@x.org", "ann@x.org"), "prefix": ("S01", "s1"), "space": ("P 1", "P1")}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_participants_spelt_in_several_ways_are_named_and_not_merged(tmp_path, kind):
    rows = [{**row, "subject": SPELLINGS[kind][place % 2]} for place, row in enumerate(picks())]
    text, settings = doubts(tmp_path, rows)
    assert all(repr(spelling) in text for spelling in SPELLINGS[kind])
    assert len({who for who, *_ in comparisons(settings)}) == 2


def test_different_ids_are_not_named(tmp_path):
    for names in (("P1", "P10"), ("a1", "b1"), ("1", "11"), ("5f01ab", "5f1ab")):
        rows = [{**row, "subject": names[place % 2]} for place, row in enumerate(picks())]
        assert not doubts(tmp_path, rows)[0]
