"""What answers mean, where a line above the table, the header, or another sheet of the workbook spells it out."""

from random import Random

import pytest

from stream_engine.formats.reading import in_doubt
from stream_engine.input.beside_tables import lines_around
from tests.support.readings import comparisons, inferred

BOOKS = (  # for 1 and 2, reversed
    ("choice", "# response codes: 1 = right, 2 = left"),
    ("choice", "# choice: 1=right; 2=left"),
    ("choice", "Legend of choice: right: 1 / left: 2"),
    ("choice (1=right, 2=left)", ""),
    ("choice [1: right, 2: left]", ""),
    ("choice_1right_2left", ""),
    ("answer (R=1, L=2)", ""),
)
UNSURE = (
    ("choice", "# choice: 1 = right"),
    ("choice", "# codes: 1 = the picture at the window, 2 = the picture at the door"),
)


def table(answered, above, columns=("left", "right"), n=40):
    """A table in which 1 means the second object, and the comparisons."""
    random, said = Random(0), set()
    lines = [f'participant,target,{",".join(columns)},"{answered}"']
    for number in range(n):
        target, *shown = random.sample([*"abcdefgh"], 1 + len(columns))
        place = random.randrange(len(columns))
        lines.append(f"p{number % 4},{target},{','.join(shown)},{len(columns) - place}")
        said |= {(f"p{number % 4}", target, shown[place], other) for other in shown if other != shown[place]}
    return "".join(f"{line}\n" for line in ([above] if above else []) + lines), said


def test_lines_above_a_table_have_their_numbers(tmp_path):
    (tmp_path / "a.csv").write_text(table("choice", "A study of cups\n\n# choice: 1=right; 2=left")[0])
    lines = lines_around(inferred(tmp_path / "a.csv").settings)
    assert [(each.place, each.text[:7]) for each in lines] == [("line 1", "A study"), ("line 3", "# choic")]


@pytest.mark.parametrize(("answered", "above"), BOOKS)
def test_codes_that_are_spelt_out_are_read(tmp_path, answered, above):
    text, said = table(answered, above)
    (tmp_path / "a.csv").write_text(text)
    found = inferred(tmp_path / "a.csv")
    assert {*comparisons(found.settings)} == said and not in_doubt(found.evidence)


def test_codes_of_three_objects_are_read(tmp_path):
    text, said = table("choice", "# codes: 1 = right, 2 = middle, 3 = left", ("left", "middle", "right"))
    (tmp_path / "a.csv").write_text(text)
    assert {*comparisons(inferred(tmp_path / "a.csv").settings)} == said


@pytest.mark.parametrize(("answered", "above"), UNSURE)
def test_codes_that_are_not_certain_are_asked_with_both_commands(tmp_path, answered, above):
    (tmp_path / "a.csv").write_text(table(answered, above)[0])
    found = inferred(tmp_path / "a.csv")
    assert above in found.problem and found.problem.count("stream-engine run") == 2


def test_sides_of_columns_that_are_not_called_so_are_asked(tmp_path):
    (tmp_path / "a.csv").write_text(table("choice (1=right, 2=left)", "", ("option1", "option2"))[0])
    found = inferred(tmp_path / "a.csv")
    assert "may lie otherwise" in found.problem and found.problem.count("stream-engine run") == 2


@pytest.mark.parametrize(
    ("answered", "above"),
    [("choice (1=left, 2=right)", ""), ("choice", "# confidence: 1 = very sure, 2 = not sure"), ("choice", "# 2 of 4")],
)
def test_books_that_say_nothing_new_or_of_something_else_change_nothing(tmp_path, answered, above):
    text, said = table(answered, above)
    (tmp_path / "a.csv").write_text(text)
    found = inferred(tmp_path / "a.csv")
    reversed_answers = {(who, target, other, one) for who, target, one, other in said}
    assert {*comparisons(found.settings)} == reversed_answers and not in_doubt(found.evidence)


@pytest.mark.parametrize("header", [("variable", "value", "label"), ("", "code", "meaning")])
def test_a_sheet_of_codes_is_read(tmp_path, header):
    openpyxl = pytest.importorskip("openpyxl")
    book, (text, said) = openpyxl.Workbook(), table("choice", "")
    for line in text.splitlines():
        book.active.append([cell.strip('"') for cell in line.split(",")])
    sheet = book.create_sheet("codebook")
    for row in (header, ("choice", 1, "right"), ("", 2, "left"), ("sex", 1, "female"), ("", 2, "male")):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    assert {*comparisons(inferred(tmp_path / "a.xlsx").settings)} == said


BESIDE = (
    ("codebook.csv", "variable,value,label\nchoice,1,right\nchoice,2,left\nsex,1,female\nsex,2,male\n"),
    ("README.txt", "Answers of a study.\nchoice: 1 = right, 2 = left\n"),
    ("study_DataDictionary.csv", 'Field,Choices\nchoice,"1, Right | 2, Left"\n'),
)


@pytest.mark.parametrize(("name", "text"), BESIDE)
def test_a_code_book_in_a_file_beside_the_answers_is_asked(tmp_path, name, text):
    (tmp_path / "a.csv").write_text(table("choice", "")[0])
    (tmp_path / name).write_text(text)
    problem = inferred(tmp_path / "a.csv").problem
    assert name in problem and problem.count("stream-engine run") == 2
    assert "--codes chosen:2=left,1=right" in problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.txt", "choice: 1 = left, 2 = right\n"),
        ("codebook.csv", "variable,value,label\nhand,1,right\nhand,2,left\n"),
        ("notes.txt", "choice: 1 = right, 2 = left\n"),
        ("README.md", "Made by hand; 40 rows, 4 participants.\n"),
    ],
)
def test_other_files_beside_the_answers_change_nothing(tmp_path, name, text):
    lines = table("choice", "")[0].splitlines()
    lines = [f"{line},{'hand' if not number else number % 2 + 1}" for number, line in enumerate(lines)]
    (tmp_path / "a.csv").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / name).write_text(text)
    found = inferred(tmp_path / "a.csv")
    assert not found.problem and not found.settings.input.codes


def test_a_code_book_below_the_table_is_read(tmp_path):
    below = "\nCodes:\nchoice 1 = right picture\nchoice 2 = left picture\n"
    (tmp_path / "a.csv").write_text(table("choice", "")[0] + below)
    assert inferred(tmp_path / "a.csv").settings.input.codes == {"chosen": {"1": "right", "2": "left"}}


def test_keys_that_were_exchanged_for_some_are_asked(tmp_path):
    above = "# 1 = left, 2 = right for odd numbers of participants; reversed for even ones"
    (tmp_path / "a.csv").write_text(table("choice", above)[0])
    problem = inferred(tmp_path / "a.csv").problem
    assert (
        above in problem and "1=left, 2=right" in problem and "stream-engine run" not in problem.partition("; next")[0]
    )


@pytest.mark.parametrize(
    "text",
    [
        "Press f if the right picture is more similar, j if the left one is.",
        "f = right picture more similar\nj = left picture more similar",
    ],
)
def test_a_file_that_could_say_what_keys_mean_is_named(tmp_path, text):
    rng = Random(5)
    rows = [(*rng.sample("abcdefgh", 3), rng.choice("fj")) for _ in range(60)]
    lines = ["participant,target,left,right,response", *(f"p{i % 4},{','.join(row)}" for i, row in enumerate(rows))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    (tmp_path / "codebook.txt").write_text(text)
    found = inferred(tmp_path / "a.csv")
    assert found.problem or any(
        "the file codebook.txt beside it could say" in each for each in in_doubt(found.evidence)
    )
    (tmp_path / "codebook.txt").write_text("response: f = left, j = right")
    assert not any("codebook" in each for each in in_doubt(inferred(tmp_path / "a.csv").evidence))
