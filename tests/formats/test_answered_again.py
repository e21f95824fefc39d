"""Rows that answer a question of another row again: clicks before the final answer, corrections, files pasted twice."""

import random
import re

import pytest

from stream_engine.formats.reading import in_doubt
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings.loading import load
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]


def answers(n_each=12, n_people=4, **further):
    """Picks of participants, numbered for each; and further columns with a text in each row."""
    draw, rows = random.Random(9), []
    for number in range(n_each * n_people):
        target, a, b = draw.sample(OBJECTS, 3)
        row = {"subject": f"P{number // n_each}", "trial": number % n_each + 1, "target": target, "left": a, "right": b}
        rows.append({**row, **further, "choice": draw.choice((a, b))})
    return rows


def other(row):
    """The row with the other answer."""
    return {**row, "choice": row["left"] if row["choice"] == row["right"] else row["right"]}


def doubts(folder, rows):
    """What is said of the rows, and the settings that read them."""
    prepared = inferred(saved(folder, rows))
    assert not prepared.problem
    return " ".join(in_doubt(prepared.evidence)), prepared.settings


def wheres(text):
    return re.findall(r"--where (\S+?)(?=$|[;, ])", text)


@pytest.mark.parametrize(("step", "final"), [("select", "submit"), ("change", "confirm")])
def test_clicks_before_the_final_answer_are_named_with_the_filter_for_it(tmp_path, step, final):
    rows = [
        {**each, "event": name}
        for row in answers()
        for each, name in ((other(row), step), (row, step), (row, final))[random.Random(row["trial"]).randrange(2) :]
    ]
    text, _ = doubts(tmp_path, [{name: cell for name, cell in row.items() if name != "trial"} for row in rows])
    assert wheres(text) == [f"event={final}"]
    assert f"{sum(row['event'] == step for row in rows)} of {len(rows)} rows" in text


def test_corrected_answers_are_counted_and_named(tmp_path):
    rows = answers(note="")
    third = ({**row, "note": "again"} for row in rows[::12])
    text, _ = doubts(tmp_path, [*rows, *map(other, rows[::6]), *third])
    assert "12 of 60 rows" in text and "['subject', 'trial']" in text and not wheres(text)


def test_further_attempts_are_named_with_the_filter_for_the_first_ones(tmp_path):
    rows = answers(attempt=1)
    text, _ = doubts(tmp_path, [*rows, *({**other(row), "attempt": 2} for row in rows[::6])])
    assert wheres(text) == ["attempt=1"] and "8 of 56 rows" in text


@pytest.mark.parametrize("part", [{"session": (1, 2)}, {"block": ("a", "b")}, {"trial_index": None}])
def test_trials_of_several_sessions_and_blocks_are_no_corrections(tmp_path, part):
    rows, (name, texts) = answers(), *part.items()
    again = [other(row) if row["trial"] % 3 else row for row in rows]
    twice = [
        {name: texts[time] if texts else 12 * time + row["trial"], **row}
        for time in (0, 1)
        for row in (rows, again)[time]
    ]
    assert doubts(tmp_path, twice)[0] == ""


@pytest.mark.parametrize("numbered", [True, False])
def test_a_file_that_was_pasted_twice_is_named_without_times_too(tmp_path, numbered):
    rows = [{name: cell for name, cell in row.items() if numbered or name != "trial"} for row in answers()]
    text, settings = doubts(tmp_path, [*rows, *rows])
    assert "48 of 96 rows" in text and comparisons(settings).total() == 96
    assert doubts(tmp_path, rows)[0] == ""


@pytest.mark.parametrize("timed", [True, False])
def test_copies_below_a_repeated_header_are_left_out_by_what_is_offered(tmp_path, timed):
    rows = answers()
    if timed:
        rows = [{**row, "at": f"2024-05-01 10:{number:02}:07"} for number, row in enumerate(rows)]
    path = saved(tmp_path, [*rows, {name: name for name in rows[0]}, *rows])
    problem = inferred(path).problem
    assert "48 of the 96 rows are copies" in problem
    assert ("--drop-duplicates" in problem) == timed and ("awk" in problem) != timed
    if timed:
        options = {"input.where": {"choice!=": "choice"}, "input.drop_duplicates": True}
        prepared = prepare(load(None, {"source": (str(path),), **options}, {}))
        assert prepared.settings.input.columns["time"] == "at"
