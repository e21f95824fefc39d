"""Rows that are read and perhaps should not be, and options that are added to what the file itself shows."""

import random
import re
import shlex

import pytest
from click.testing import CliRunner

from stream_engine.__main__ import main
from stream_engine.commands.preview import command

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]


def answers(n=80, **columns):
    """Rows of answers to picks, ten of each participant, with further columns; a header first."""
    source = random.Random(5)
    rows = [["subject", *columns, "ref", "a", "b", "answer"]]
    for number in range(n):
        anchor, a, b = source.sample(OBJECTS, 3)
        further = [str(of(number)) for of in columns.values()]
        rows.append([f"P{number // 10}", *further, anchor, a, b, source.choice((a, b))])
    return rows


def saved(folder, rows, encoding="utf-8"):
    path = folder / "answers.csv"
    path.write_bytes("".join(",".join(row) + "\n" for row in rows).encode(encoding))
    return path


def previewed(path, *options):
    result = CliRunner().invoke(command, [str(path), *options])
    error = "" if result.exception is None or isinstance(result.exception, SystemExit) else str(result.exception)
    return result.output + error


def n_events(text):
    return int(re.search(r"events +([0-9,]+)", text)[1].replace(",", ""))


BELOW = {
    "another table": [["subject", "age", "gender", "country", "lang"], *(["P0", "3", "f", "UK", "en"],) * 4],
    "a summary": [["Total", "80", "80", "80", "80"], ["Comment", "the", "lab", "was", "cold"]],
}


@pytest.mark.parametrize("kind", BELOW)
def test_what_stands_below_the_answers_is_refused_with_a_command_that_leaves_it_out(tmp_path, kind):
    rows = answers()
    said = previewed(saved(tmp_path, [*rows, [], *BELOW[kind]]))
    told = previewed(tmp_path / "answers.csv", "--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer")
    assert "look like another table or a summary" in told
    last = 80 + len(BELOW[kind])
    assert f"rows 81 to {last} below the header look like another table or a summary" in said
    n_lines = int(re.search(r"head -n ([0-9]+) ", said)[1])
    assert n_events(previewed(saved(tmp_path, [*rows, *BELOW[kind]][:n_lines]))) == 80


def test_a_last_participant_from_another_site_is_no_other_table(tmp_path):
    rows = answers(site=lambda n: "Bonn" if n < 70 else "Jena", condition=lambda n: "slow" if n < 70 else "fast")
    assert n_events(previewed(saved(tmp_path, rows))) == 80


def test_an_object_in_one_row_only_is_named(tmp_path):
    rows = answers()
    rows[30] = ["P2", "otter", "weasle", "heron", "heron"]
    said = previewed(saved(tmp_path, rows))
    assert "'weasle' is in one row only (row 30 below the header)" in said
    assert "in one row only" not in previewed(saved(tmp_path, answers()))


@pytest.mark.parametrize("key", ["submitted_at", "response_id"])
def test_rows_sent_twice_are_counted_and_the_offered_command_removes_them(tmp_path, key):
    keys = {"submitted_at": lambda n: 1_700_000_000 + 7 * n, "response_id": lambda n: f"r{n}"}
    rows = answers(**{key: keys[key]})
    path = saved(tmp_path, [*rows, *rows[1:15]])
    said = previewed(path)
    assert f"14 of 94 rows are copies of others in every column, {key} too" in said
    dropped = previewed(path, "--drop-duplicates")
    if key == "submitted_at":
        assert "to count them once: --drop-duplicates" in said and n_events(dropped) == 80
    else:
        assert "awk" in said and n_events(dropped) == 94 and "--drop-duplicates drops nothing" in dropped


def test_equal_answers_without_a_column_that_tells_them_apart_are_no_copies(tmp_path):
    rows = answers()
    assert "copies" not in previewed(saved(tmp_path, [*rows, *rows[1:15]]))


@pytest.mark.parametrize("name", ["test", "TEST2", "debug", "pilot_1", "dummy", "admin", "preview", "Researcher"])
def test_participants_who_tried_the_study_are_named_with_a_filter(tmp_path, name):
    rows = answers()
    for row in rows[1:11]:
        row[0] = name
    said = previewed(saved(tmp_path, rows))
    assert f"10 of 80 rows count although subject is {name}" in said
    (where,) = re.findall(r"to leave them out: --where ('[^']+'|\S+)", said)
    assert n_events(previewed(tmp_path / "answers.csv", "--where", *shlex.split(where))) == 70


@pytest.mark.parametrize(
    "name, mark, usual", [("MODE", "admin", "interview"), ("DistributionChannel", "test", "email")]
)
def test_trials_of_the_study_by_its_makers_are_left_out(tmp_path, name, mark, usual):
    assert n_events(previewed(saved(tmp_path, answers(**{name: lambda n: mark if n < 10 else usual})))) == 70


LEFT_OUT = ["dry run", "try-out", "test run", "vigilance", "comprehension", "IMC", "sanity check", "instructed"]


@pytest.mark.parametrize("mark", LEFT_OUT)
def test_more_words_of_practice_and_checks_leave_out(tmp_path, mark):
    rows = answers(trial_type=lambda n: mark if n % 10 == 0 else "main")
    assert n_events(previewed(saved(tmp_path, rows))) == 72


@pytest.mark.parametrize(
    "name, mark, usual",
    [("block", "0", "1"), ("Probe", "ja", "nein"), ("data_quality", "bot", "human"), ("type", "filler", "main")],
)
def test_what_may_be_practice_or_a_check_counts_and_is_named(tmp_path, name, mark, usual):
    said = previewed(saved(tmp_path, answers(**{name: lambda n: mark if n % 10 == 0 else usual})))
    assert n_events(said) == 80 and f"8 of 80 rows count although {name} is {mark}" in said


@pytest.mark.parametrize("name", ["Name", "Initials"])
def test_a_column_of_names_is_offered_and_added_to_the_reading_that_is_found(tmp_path, name):
    rows = answers(n=40)
    rows[0][0] = name
    path = saved(tmp_path, rows)
    assert f"add participant={name} to --columns" in previewed(path)
    said = previewed(path, "--columns", f"participant={name}")
    assert "participants 4, 10 questions each" in said and "looks like them" not in said


def test_a_response_time_that_is_given_takes_the_place_of_the_one_that_is_found(tmp_path):
    rows = answers(rt=lambda n: 600 + 7 * n, reading_time=lambda n: 900 + 3 * n)
    said = previewed(saved(tmp_path, rows), "--columns", "milliseconds=reading_time")
    assert "milliseconds=reading_time" in said and "=rt" not in said and n_events(said) == 80


def test_numbers_of_participants_that_begin_again_at_each_site_are_named(tmp_path):
    rows = answers(site=lambda n: "Bonn" if n < 40 else "Jena")
    for number, row in enumerate(rows[1:]):
        row[0] = str(number // 10 % 4)
    assert "the same numbers occur in several values of site (8 different pairs)" in previewed(saved(tmp_path, rows))


def test_a_response_time_does_not_say_what_a_record_is(tmp_path):
    rows = answers(rt=lambda n: 3000 if n % 10 == 0 else 700)
    for row in rows[1:]:
        row[-1] = "-1" if row[1] == "3000" else str([*row[3:5]].index(row[-1]))
    said = previewed(saved(tmp_path, rows))
    assert n_events(said) == 72 and "--where rt" not in said


def test_a_short_file_of_which_most_is_rejected_ends_the_run(tmp_path, capsys):
    rows = answers(n=40)
    for row in rows[2:]:
        row[-1] = "neither"
    path = saved(tmp_path, rows)
    options = ["--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer"]
    assert main(["run", str(path), "--state", str(tmp_path / "state"), "--no-refits", *options])
    assert "39 of 40 events were rejected" in capsys.readouterr().err
    assert "a run        would stop: 98% of the events are rejected" in previewed(path, *options)


def test_rows_in_another_encoding_are_read_in_it_where_they_are_most(tmp_path):
    rows = [[text.replace("otter", "Öl").replace("e", "ë") for text in row] for row in answers()]
    rows[:2] = [answers()[0], ["P0", "vol", "bison", "gcko", "bison"]]
    said = previewed(saved(tmp_path, rows, "cp1252"))
    assert "--encoding cp1252" in said and n_events(said) == 80


def test_answers_by_place_are_asked_for_where_objects_stand_in_two_orders(tmp_path):
    rows = [["ppt", "sorted_1", "sorted_2", "sorted_3", "pos1", "pos2", "pos3", "response_pos"]]
    source = random.Random(2)
    for number in range(60):
        shown = source.sample(OBJECTS, 3)
        rows.append([f"P{number // 10}", *sorted(shown), *shown, str(source.randint(1, 3))])
    said = previewed(saved(tmp_path, rows))
    assert "objects=sorted_1|sorted_2|sorted_3" in said and "objects=pos1|pos2|pos3" in said


def test_pairs_that_answers_name_are_offered_as_quadruplets(tmp_path):
    rows = [["subj", "A", "B", "C", "D", "which_pair_is_more_different"]]
    source = random.Random(2)
    rows += [[f"P{n // 10}", *source.sample(OBJECTS, 4), source.choice(("AB", "CD"))] for n in range(60)]
    said = previewed(saved(tmp_path, rows))
    assert "--type quadruplet" in said and "near=A|B,far=C|D" in said and "--answer-is farther" in said


def test_columns_that_answers_name_are_offered(tmp_path):
    rows = [["rater", "anchor", "x", "y", "judgment"]]
    source = random.Random(2)
    rows += [[f"P{n // 10}", *source.sample(OBJECTS, 3), source.choice(("x", "y", "equal"))] for n in range(60)]
    said = previewed(saved(tmp_path, rows))
    assert "'anchor=anchor,shown=x|y,chosen=judgment,participant=rater' --where 'judgment!=equal'" in said


def test_paths_beside_names_are_no_objects(tmp_path):
    rows = [["subject", "label_1", "label_2", "label_3", "clicked_img"]]
    source = random.Random(2)
    for number in range(60):
        shown = source.sample(OBJECTS, 3)
        rows.append([f"P{number // 10}", *map(str.title, shown), f"img/{source.choice(shown)}_01.png"])
    said = previewed(saved(tmp_path, rows))
    assert "column clicked_img holds paths of files" in said and "COLUMN" not in said


def test_questions_in_a_header_are_refused_with_the_columns_that_a_row_must_have(tmp_path):
    header = [f"Which is more similar to {OBJECTS[n]}?" for n in range(8)]
    rows = [["subject", *header], *([f"P{n}", *(OBJECTS[(n + m) % 10] for m in range(8))] for n in range(12))]
    said = previewed(saved(tmp_path, rows))
    assert "write one row for each answer, with columns such as participant, anchor" in said and "COLUMN" not in said


def test_a_name_with_a_bar_is_no_answer_to_leave_out(tmp_path):
    rows = [[text.replace("otter", "a|b") for text in row] for row in answers()]
    options = ["--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer"]
    said = previewed(saved(tmp_path, rows), *options)
    assert "leave them out" not in said and "--separator with a sign that no name has" in said
    assert n_events(previewed(tmp_path / "answers.csv", *options, "--separator", "~")) == 80
