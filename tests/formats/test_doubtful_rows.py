"""Rows that are read and perhaps should not be, and options that are added to what the file itself shows."""

import random
import re
import shlex

import pytest
from click.testing import CliRunner

from stream_engine.__main__ import main
from stream_engine.commands.preview import command
from stream_engine.report.findings.data import read as read_findings
from stream_engine.report.findings.facts import Facts
from stream_engine.state.store import Store

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


def test_a_header_in_another_order_is_refused_and_its_parts_are_read(tmp_path):
    rows = [[*row[:-1], "ab"[row[2:4].index(row[-1])]] for row in answers()[1:]]
    swapped = [[who, ref, b, a, answer] for who, ref, a, b, answer in rows[40:]]
    header, other = ["subject", "ref", "a", "b", "answer"], ["subject", "ref", "b", "a", "answer"]
    path = saved(tmp_path, [header, *rows[:40], other, *swapped])
    said = previewed(path)
    assert "line 42 names the columns in another order" in said and "head -n 41" in said and "events" not in said
    parts = tmp_path / "one.csv", tmp_path / "two.csv"
    for part, some in zip(parts, ([header, *rows[:40]], [other, *swapped])):
        part.write_text("".join(",".join(row) + "\n" for row in some))
    assert n_events(previewed(parts[0], str(parts[1]))) == 80
    options = ["--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer", "--answers-by", "position"]
    assert "names the columns in another order" in previewed(path, *options)
    ranks = [["p", "A", "B", "C", "D", "best", "second", "third", "last"]] + [[f"p{n}", *"wxyzBADC"] for n in range(30)]
    assert "another order" not in previewed(saved(tmp_path, ranks))


def test_answers_of_whole_participants_are_never_left_out_without_a_question(tmp_path):
    rows = answers(version=lambda n: "v1" if n < 40 else "v2")
    for row in rows[1:]:
        row[-1] = (("f", "j") if row[1] == "v1" else ("a", "b"))[row[3:5].index(row[-1])]
    said = previewed(saved(tmp_path, rows))
    assert "40 of 80 rows with objects and an answer, all of P0, P1, P2, P3, have other answers" in said
    assert "nothing is read until you choose" in said


def test_many_answers_that_a_column_leaves_out_are_named(tmp_path):
    rows = answers(task=lambda n: "rate" if n % 5 == 0 else "pick")
    for row in rows[1:]:
        row[-1] = "4" if row[1] == "rate" else row[-1]
    said = previewed(saved(tmp_path, rows))
    assert n_events(said) == 64 and "task=pick would leave them out: are they no questions?" in said


def test_numbers_of_trials_do_not_say_what_a_record_is(tmp_path):
    rows = answers(trial=lambda n: n % 10)
    rows[30][1], rows[30][-1] = "11", "none of them"
    assert "trial=" not in previewed(saved(tmp_path, rows))


PREVIEWS = [
    "Survey Preview",
    "Vista previa de la encuesta",
    "Umfragevorschau",
    "Aperçu de l'enquête",
    "Enquêtevoorbeeld",
]


@pytest.mark.parametrize("preview", PREVIEWS)
def test_previews_of_a_survey_are_left_out_in_any_language(tmp_path, preview):
    rows = answers(Status=lambda n: preview if n < 10 else "Dirección IP")
    below = [["ID", "Tipo de respuesta", "Modelo", "A", "B"], [f'"{{""ImportId"":""{n}""}}"' for n in range(5)]]
    below = [[*row, "¿Cuál?" if n == 0 else '"{""ImportId"":""Q""}"'] for n, row in enumerate(below)]
    assert n_events(previewed(saved(tmp_path, [rows[0], *below, *rows[1:]]))) == 70


def test_rows_of_exports_that_overlap_are_named_and_dropped(tmp_path):
    times = {"at": lambda n: f"2024-05-01 10:{n // 40:02d}:{n % 40:02d}"}
    rows = answers(file=lambda n: "monday", **times)
    friday = [[row[0], "friday", *row[2:]] for row in rows[1:31]]
    path = saved(tmp_path, [*rows, *friday])
    assert "30 of 110 rows are copies of others in every column but file, at too" in previewed(path)
    assert n_events(previewed(path, "--drop-duplicates")) == 80
    assert "overlap" not in previewed(saved(tmp_path, rows))


def restarting(name, values, **columns):
    """Four participants in each of two values of a column, whose trials are counted from 1."""
    rows = answers(**{name: lambda n: values[n // 40], "trial": lambda n: n % 10 + 1}, **columns)
    for number, row in enumerate(rows[1:]):
        row[0] = str(number // 10 % 4)
    return rows


def test_numbers_of_participants_that_begin_again_are_seen_by_the_numbers_of_trials(tmp_path):
    said = previewed(saved(tmp_path, restarting("locatie", ("Gent", "Utrecht"))))
    assert "the same numbers occur in several values of locatie (8 different pairs)" in said
    assert "the same numbers" not in previewed(saved(tmp_path, restarting("sesión", ("mañana", "tarde"))))


def test_a_participant_in_each_row_is_named(tmp_path):
    rows = answers()
    for number, row in enumerate(rows):
        row[0] = f"P{number}" if number else "participant"
    assert "participant differs in 80 of 80 rows" in previewed(saved(tmp_path, rows))
    assert "differs in" not in previewed(saved(tmp_path, answers()))


@pytest.mark.parametrize("error", ["#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!", "#N/A"])
def test_an_error_of_a_spreadsheet_is_no_object_and_no_answer(tmp_path, error):
    rows = answers()
    for place in (1, 2, 4):
        rows[10 * place][place] = error
    said = previewed(saved(tmp_path, rows))
    assert n_events(said) == 77 and "3 of 80 rows" in said
    options = ["--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer"]
    assert f"ref holds {error} in some rows: errors of a spreadsheet" in previewed(tmp_path / "answers.csv", *options)


def test_dates_and_ids_that_spreadsheets_made_are_named(tmp_path):
    rows = [[text.replace("otter", "MARCH1") for text in row] for row in answers()]
    rows = [[*row[:-1], row[-1].replace("MARCH1", "1-Mar")] for row in rows]
    assert "which spreadsheets make of names such as MARCH1" in previewed(saved(tmp_path, rows))
    rows = answers()
    for row in rows[1:]:
        row[0] = "5.60E+23" if row[0] < "P4" else "6.02E+23"
    options = ["--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer,participant=subject"]
    assert "ids in scientific notation (5.60E+23, 6.02E+23)" in previewed(saved(tmp_path, rows), *options)


def test_a_number_with_and_without_a_comma_is_named(tmp_path):
    numbers = {name: str(1020 + number) for number, name in enumerate(OBJECTS)}
    rows = [[numbers.get(text, text) for text in row] for row in answers()]
    for row in rows[1:]:
        row[1] = f'"{row[1][0]},{row[1][1:]}"'
    assert "in two spellings" in previewed(saved(tmp_path, rows))
    options = ["--type", "pick", "--columns", "anchor=ref,shown=a|b,chosen=answer"]
    assert "are read as two objects" in previewed(tmp_path / "answers.csv", *options)


@pytest.mark.parametrize("mark", ["essai à blanc", "proefronde", "ensayo de práctica"])
def test_practice_in_more_languages_is_left_out(tmp_path, mark):
    assert n_events(previewed(saved(tmp_path, answers(type=lambda n: mark if n % 10 == 0 else "principal")))) == 72


@pytest.mark.parametrize(
    "name, mark, usual",
    [
        *(
            ("sesión", "abandonada", "completa"),
            ("Sitzung", "abgebrochen", "vollständig"),
            ("fase", "ensayo", "prueba"),
        ),
        *(("temps_dépassé", "VRAI", "FAUX"), ("timed_out", "true", "false"), ("too_slow", "1", "0")),
    ],
)
def test_rows_that_were_broken_off_or_too_late_count_and_are_named(tmp_path, name, mark, usual):
    said = previewed(saved(tmp_path, answers(**{name: lambda n: mark if n % 10 == 0 else usual})))
    assert n_events(said) == 80 and f"8 of 80 rows count although {name} is {mark}" in said


def test_trials_before_the_first_and_trials_that_begin_again_are_named(tmp_path):
    said = previewed(saved(tmp_path, answers(trial=lambda n: n % 10 - 2)))
    assert "16 of 80 rows count although trial is below 0" in said and "begins again" not in said
    rows = answers(trial=lambda n: n % 10)
    again = [[*row[:-1], row[-2] if row[-1] == row[-3] else row[-3]] for row in rows[21:27]]
    said = previewed(saved(tmp_path, [*rows[:31], *again, *rows[31:]]))
    assert "trial begins again for P2, and for no other participant" in said


@pytest.mark.parametrize("name", ["hoort er niet bij", "gehört nicht dazu", "n'appartient pas", "no pertenece"])
def test_what_does_not_belong_is_the_odd_one(tmp_path, name):
    source = random.Random(2)
    rows = [["subject", "w1", "w2", "w3", name]]
    for number in range(60):
        shown = source.sample(OBJECTS, 3)
        rows.append([f"P{number // 10}", *shown, source.choice(shown)])
    assert "--type odd_one_out" in (said := previewed(saved(tmp_path, rows))) and n_events(said) == 60


@pytest.mark.parametrize("name", ["puesto", "rang", "Platz", "plaats"])
def test_objects_of_each_rank_are_read_in_more_languages(tmp_path, name):
    source = random.Random(2)
    rows = [["subject", "ref", *(f"{name}{n}" for n in (1, 2, 3, 4))]]
    rows += [[f"P{n // 10}", *source.sample(OBJECTS, 5)] for n in range(60)]
    assert "--type ranking" in (said := previewed(saved(tmp_path, rows))) and n_events(said) == 60


@pytest.mark.parametrize("code", ["-99", "99", "-9"])
def test_codes_of_missing_ranks_are_named_with_a_command_that_reads_the_others(tmp_path, code):
    source = random.Random(2)
    rows = [["subject", "ref", *"ABCD", *(f"rank_{n}" for n in "ABCD")]]
    for number in range(60):
        ranks = [code] * 4 if number % 10 == 0 else source.sample("1234", 4)
        rows.append([f"P{number // 10}", *source.sample(OBJECTS, 5), *ranks])
    said = previewed(saved(tmp_path, rows))
    assert f"hold {code!r} in 6 of 60 rows, which looks like a code for a missing answer" in said
    (where,) = re.findall(r"--where ('[^']+'|\S+)", said)
    assert n_events(previewed(tmp_path / "answers.csv", "--where", *shlex.split(where))) == 54


def timed_answers(n_people: int, n: int, seed: int = 5) -> list[list[str]]:
    """Rows of the same trials of everybody, who all answer alike; only times differ. A header first."""
    source = random.Random(seed)
    trials = [source.sample(OBJECTS, 3) for _ in range(n)]
    rows = [["subject", "trial", "ref", "a", "b", "answer", "rt"]]
    for who in (f"P{number}" for number in range(n_people)):
        rows += [[who, str(at), *three, three[1], str(source.randint(400, 4000))] for at, three in enumerate(trials)]
    return rows


def test_rows_of_one_participant_under_another_name_are_named_by_their_times(tmp_path):
    rows = timed_answers(12, 30)
    again = [["Q", *row[1:]] for row in rows if row[0] == "P4"]
    said = previewed(saved(tmp_path, rows + again))
    assert re.search(r"30 rows of Q .* P4 .* --where 'subject!=Q'", said), said
    rest = shlex.split(re.search(r"--where \S+", said)[0])
    assert "rows of Q" not in previewed(saved(tmp_path, rows + again), *rest)
    at_other_times = [[*row[:-1], str(401 + 7 * number)] for number, row in enumerate(again)]
    assert "rows of Q" not in previewed(saved(tmp_path, rows + at_other_times)), "people may agree"
    no_times = [row[:-1] for row in rows + again]
    assert "rows of Q" not in previewed(saved(tmp_path, no_times)), "all answer alike"


@pytest.mark.parametrize("drops", [False, True])
def test_trials_that_begin_again_in_copies_are_no_news(tmp_path, drops):
    rows = timed_answers(8, 30)
    again = [row for row in rows if row[0] == "P4"]
    said = previewed(saved(tmp_path, rows + again), *["--drop-duplicates"] * drops)
    assert "begins again" not in said and "30 responses were sent twice" in said
    repeated = [re.search("repeated .*", each)[0] for each in (said, previewed(saved(tmp_path, rows)))]
    assert repeated[0] == repeated[1], "copies are no repetitions of questions"
    others = [[*row[:-1], str(401 + 7 * number)] for number, row in enumerate(again)]
    assert "begins again for P4" in previewed(saved(tmp_path, rows + others), *["--drop-duplicates"] * drops)


@pytest.mark.parametrize("name", ["bloc", "block", "group", "Gruppe", "sesso", "list_2"])
def test_a_column_that_is_called_otherwise_is_not_offered_as_the_answer(tmp_path, name):
    """Objects on both sides, no answer, and a column of 1 and 2: it is asked for, and no reading is offered."""
    rows = answers(**{name: lambda number: 1 + number % 2})
    said = previewed(saved(tmp_path, [row[:-1] for row in rows]))
    assert f"chosen={name}" not in said and "--columns" in said and not re.search("events +[0-9]", said)


@pytest.mark.parametrize("time", ["1796000000000", "06.04.2026 9:05"])
def test_a_time_that_rejects_rows_is_named_with_the_option_that_leaves_it_out(tmp_path, time, capsys):
    """Where options leave `time` out, it is read; where the file itself shows how it is read, it is not, and the page
    says so."""
    path = saved(tmp_path, answers(time=lambda number: time))
    columns = "anchor=ref,shown=a|b,chosen=answer"
    state = tmp_path / "state"
    assert main(["run", str(path), "--state", str(state), "--no-refits", "--type", "pick", "--columns", columns])
    assert "time=-" in capsys.readouterr().err
    assert "time=-" in previewed(path, "--type", "pick", "--columns", columns)
    columns += ",time=-"
    assert n_events(previewed(path, "--type", "pick", "--columns", columns)) == 80
    assert not main(["run", str(path), "--state", str(state), "--no-refits"])
    told = {each.what for each in read_findings(Facts(Store(state).published()))}
    assert "unused_time" in told
