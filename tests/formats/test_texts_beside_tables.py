"""Lines above a table, and the names of its file and sheet, say what was asked as a column of questions does."""

from collections import Counter
from random import Random

import pytest

from tests.support.readings import comparisons, inferred

COLUMNS = ("participant", "target", "option1", "option2", "choice")
FARTHER = (
    "# Task: choose the item that is most dissimilar to the target",
    "Question: Which of the two is LESS similar to the target?,,,,",
    "Which one does not match the target?",
)


def table(above=""):
    """Answers that name the second option, as text, and as rows."""
    random, rows = Random(0), []
    for number in range(40):
        target, one, other = random.sample([*"abcdefgh"], 3)
        rows.append((f"p{number % 4}", target, one, other, other))
    return "".join(f"{line}\n" for line in ([above] if above else []) + [*map(",".join, (COLUMNS, *rows))]), rows


def nearer_is_chosen(settings, rows):
    near = Counter((who, target, other, one) for who, target, one, other, _ in rows)
    far = Counter((who, target, one, other) for who, target, one, other, _ in rows)
    return {tuple(near.items()): True, tuple(far.items()): False}.get(tuple(comparisons(settings).items()))


@pytest.mark.parametrize("above", FARTHER)
def test_a_line_above_the_header_says_the_direction(tmp_path, above):
    text, rows = table(above)
    (tmp_path / "a.csv").write_text(text)
    found = inferred(tmp_path / "a.csv")
    assert nearer_is_chosen(found.settings, rows) is False


@pytest.mark.parametrize(
    "above", ["# 12 different animals", "# exported 2024-05-01 by LabTool", "Which one is more like the target?"]
)
def test_other_lines_above_the_header_say_nothing(tmp_path, above):
    text, rows = table(above)
    (tmp_path / "a.csv").write_text(text)
    found = inferred(tmp_path / "a.csv")
    assert not found.problem and nearer_is_chosen(found.settings, rows) is True
    assert not [decision for decision in found.evidence if decision.topic == "in doubt"]


@pytest.mark.parametrize("name", ["most_different", "choose-least-similar", "triplets_dissimilarity", "farthest"])
def test_the_name_of_a_file_that_may_ask_for_the_farther_object_is_asked(tmp_path, name):
    (tmp_path / f"{name}.csv").write_text(table()[0])
    found = inferred(tmp_path / f"{name}.csv")
    assert name in found.problem and found.problem.count("stream-engine run") == 2


@pytest.mark.parametrize("name", ["most_similar", "different_birds", "odd_objects", "similarity_2024", "far_east"])
def test_other_names_of_files_say_nothing(tmp_path, name):
    (tmp_path / f"{name}.csv").write_text(table()[0])
    assert not inferred(tmp_path / f"{name}.csv").problem


@pytest.mark.parametrize(("title", "asks"), [("least similar", True), ("most similar", False), ("Sheet1", False)])
def test_the_name_of_a_sheet_may_ask_for_the_farther_object(tmp_path, title, asks):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = title
    for row in (COLUMNS, *table()[1]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert bool(inferred(tmp_path / "a.xlsx").problem) == asks


@pytest.mark.parametrize("name", ["most_different", "odd_one_out_task"])
def test_columns_that_are_called_near_and_far_need_no_other_name(tmp_path, name):
    rows = "".join(f"{target},{one},{other}\n" for _, target, one, other, _ in table()[1])
    (tmp_path / f"{name}.csv").write_text(f"anchor,near,far\n{rows}")
    assert not inferred(tmp_path / f"{name}.csv").problem


@pytest.mark.parametrize("versions", [("standard", "inverse"), ("normal", "reversed")])
def test_an_instruction_that_was_turned_for_some_participants_is_asked(tmp_path, versions):
    text, _ = table()
    lines = text.splitlines()
    lines = [f"{lines[0]},instruction", *(f"{line},{versions[line < 'p2']}" for line in lines[1:])]
    (tmp_path / "a.csv").write_text("".join(f"{line}\n" for line in lines))
    found = inferred(tmp_path / "a.csv")
    assert f"instruction={versions[1]}" in found.problem and "--answer-is farther" in found.problem


def test_a_question_in_a_table_of_unknown_columns_gives_the_direction_of_its_commands(tmp_path):
    random, lines = Random(0), ["kisi,eins,zwei,drei,soru,was"]
    for number in range(40):
        target, one, other = random.sample([*"abcdefgh"], 3)
        lines.append(f"p{number % 4},{target},{one},{other},Hangisi en az benziyor?,{random.choice((one, other))}")
    (tmp_path / "a.csv").write_text("".join(f"{line}\n" for line in lines))
    picks = [each for each in inferred(tmp_path / "a.csv").problem.split("stream-engine run") if "--type pick" in each]
    assert len(picks) == 1 and "--answer-is farther" in picks[0]
