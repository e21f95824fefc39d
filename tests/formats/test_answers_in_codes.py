"""Codes for answers that no word explains: pairs, keys, flags in JSON, right and wrong, numbers from 0 or 1. What is
offered reads them rightly, and nothing else is offered."""

import json
import random
import re
import shlex
from collections import Counter

import pytest

from stream_engine.formats.inference import understood
from stream_engine.formats.record_columns import records_of
from stream_engine.input.first_records import first_records
from tests.support.process import engine
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx"]


def shown_in_rows(n_objects, n_rows=60):
    """For each row, who answered, the objects, and a number below 2."""
    draw = random.Random(4)
    return [(f"P{row // 10}", draw.sample(OBJECTS, n_objects), draw.randrange(2)) for row in range(n_rows)]


PAIRS = {  # columns of two pairs, the answers that mean them
    "numbered pairs": (("par1_a", "par1_b", "par2_a", "par2_b"), "12"),
    "other letters": (("para_1_x", "para_1_y", "para_2_x", "para_2_y"), "12"),
    "words of no known language": (("lewoskraj_1", "lewoskraj_2", "prawoskraj_1", "prawoskraj_2"),
                                   ("lewoskraj", "prawoskraj")),
    "letters for pairs": (("A1", "A2", "B1", "B2"), "AB"),
}  # fmt: skip


@pytest.mark.parametrize("how", PAIRS)
@pytest.mark.parametrize("answered", ["wynik", "qual_par"])
def test_two_pairs_of_columns_are_pairs_in_any_language(tmp_path, how, answered):
    names, codes = PAIRS[how]
    rows, meant = [], Counter()
    for row, (who, four, chosen) in enumerate(shown_in_rows(4)):
        rows.append({"participant": who, "próba": row % 10, **dict(zip(names, four)), answered: codes[chosen]})
        rows[-1]["blokada"] = 1 + row // 10 % 2  # two values as well, but in blocks
        meant[who, *(four if chosen == 0 else four[2:] + four[:2])] += 1
    prepared = inferred(saved(tmp_path, rows))
    assert [each.input.answer_is for each in prepared.rivals] == ["nearer", "farther"]
    assert all(each.input.type_ == "quadruplet" for each in prepared.rivals)
    assert comparisons(prepared.rivals[0]) == meant


def graded_rows(which, verdicts):
    """Rows of which a column says whether the answer was right, and another one which option is; and what was meant."""
    rows, meant, draw = [], Counter(), random.Random(5)
    for who, (anchor, *two), place in shown_in_rows(3):
        is_right = draw.random() < 0.7
        row = {"vp": who, "probe": anchor, "option_a": two[0], "option_b": two[1]}
        rows.append(row | {"correct_option": which(two, place), "response": verdicts[is_right]})
        chosen = place if is_right else 1 - place
        meant[who, anchor, two[chosen], two[1 - chosen]] += 1
    return rows, meant


@pytest.mark.parametrize("verdicts", [("incorrect", "correct"), ("falsch", "richtig"), ("wrong", "right")])
@pytest.mark.parametrize("which", [lambda two, place: "ab"[place], lambda two, place: f"option_{'ab'[place]}"])
def test_right_and_wrong_answers_are_read_by_what_was_right(tmp_path, verdicts, which):
    rows, meant = graded_rows(which, verdicts)
    prepared = inferred(saved(tmp_path, rows))
    assert "says whether an answer was right, and correct_option" in prepared.problem
    offers = understood(first_records(prepared.settings)).obstacle.offers
    assert sum((comparisons(prepared.settings, offer) for offer in offers), Counter()) == meant


@pytest.mark.parametrize("known", ["an object", "nothing"])
def test_right_and_wrong_answers_get_no_codes_where_a_row_decides_what_was_right(tmp_path, known):
    rows, _ = graded_rows(lambda two, place: two[place] if known == "an object" else "", ("incorrect", "correct"))
    problem = inferred(saved(tmp_path, rows)).problem
    assert "says whether an answer was right" in problem and "--codes" not in problem


def test_flags_in_json_by_number_are_read(tmp_path):
    rows, meant = [], Counter()
    for who, three, place in shown_in_rows(3):
        flags = json.dumps([{"odd": {str(number): number == place for number in range(3)}}])
        row = {"HITId": f"H{len(rows)}", "WorkerId": who, "AssignmentStatus": "Approved"}
        row |= {f"Input.{letter}": name for letter, name in zip("abc", three)}
        rows.append(row | {"Answer.taskAnswers": flags.replace('"', '""')})
        one, two = (name for name in three if name != three[place])
        meant.update([(who, one, two, three[place]), (who, two, one, three[place])])
    assert comparisons(inferred(saved(tmp_path, rows)).raise_if_undecided().settings) == meant


@pytest.mark.parametrize("column", ["AssignmentStatus", "ensaio", "osoba"])
def test_what_is_unlike_the_objects_is_no_anchor_of_an_example(tmp_path, column):
    texts = {"AssignmentStatus": lambda row: "Approved", "ensaio": str, "osoba": lambda row: f"K{row // 10}"}[column]
    rows = [
        {column: texts(row), "img1": two[0], "img2": two[1], "choice": ("x", "m")[place]}
        for row, (_, two, place) in enumerate(shown_in_rows(2))
    ]
    assert f"anchor={column}" not in inferred(saved(tmp_path, rows)).problem


def test_keys_after_columns_that_were_given_get_the_codes(tmp_path):
    rows = [
        {"bodziec": anchor, "lewoskraj": two[0], "prawoskraj": two[1], "klawisz": "fj"[place]}
        for _, (anchor, *two), place in shown_in_rows(3)
    ]
    options = ["--type", "pick", "--columns", "anchor=bodziec,shown=lewoskraj|prawoskraj,chosen=klawisz"]
    path = saved(tmp_path, rows)
    said = engine("preview", path, *options, status=None).stdout
    codes = shlex.split(re.search(r"--codes .*", said)[0])
    assert codes == ["--codes", "chosen:f=lewoskraj,j=prawoskraj"] and "leave them out" not in said
    read = engine("preview", path, *options, *codes).stdout
    assert re.search(r"events +60 ", read) and "rejected" not in read


@pytest.mark.parametrize(
    ("numbers", "given", "right"), [("012", "position", "index"), ("123", "index", "position"), ("12", "index", None)]
)
def test_answers_that_count_from_another_number_than_was_said_are_not_read(tmp_path, numbers, given, right):
    draw, rows = random.Random(0), []
    for _, three, _ in shown_in_rows(3):
        rows.append({f"图片{n + 1}": name for n, name in enumerate(three)} | {"不同的是": draw.choice(numbers)})
    options = ["--type", "odd_one_out", "--columns", "objects=图片1|图片2|图片3,odd=不同的是", "--answers-by"]
    said = engine("preview", saved(tmp_path, rows), *options, given, status=None)
    if right is None:
        assert re.search(r"events +60 ", said.stdout)
        return
    assert f"these count from {numbers[0]}" in said.stderr and f"--answers-by {right}" in said.stderr
    read = engine("preview", tmp_path / "answers.csv", *options, right).stdout
    assert re.search(r"events +60 ", read) and "rejected" not in read


def test_a_number_for_no_answer_is_no_sign_that_answers_count_from_it(tmp_path):
    rows = [
        {f"img{n + 1}": name for n, name in enumerate(three)} | {"odd": (0, 1, 2, 3)[row % 4]}
        for row, (_, three, _) in enumerate(shown_in_rows(3))
    ]
    options = ["--type", "odd_one_out", "--columns", "objects=img1|img2|img3,odd=odd", "--answers-by", "position"]
    assert re.search(r"events +45 ", engine("preview", saved(tmp_path, rows), *options, status=None).stdout)


def test_numbers_of_one_subject_are_no_part_of_the_name_of_a_value():
    cells = ['{"417": {"left": "a"}}', '{"418": {"left": "b"}}']
    assert [*records_of({"j": cells}).columns] == ["j.left"]
