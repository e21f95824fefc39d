"""Rows that survey platforms mark as not to be used, participants by any name, and commands that work as printed."""

import csv
import io
import re
import shlex
from random import Random

import openpyxl
import pytest
from click.testing import CliRunner

from stream_engine.commands.preview import command
from stream_engine.formats.record_columns import records_of
from stream_engine.formats.record_filters import matching
from stream_engine.formats.unusable_rows import unusable

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]


def trials(n=120, who="participant", **columns):
    """Four trials of each participant, with further columns."""
    random = Random(3)
    rows = []
    for number in range(n):
        anchor, left, right = random.sample(OBJECTS, 3)
        row = {who: f"P{number // 4}", "anchor": anchor, "left": left, "right": right}
        further = {name: of(number) for name, of in columns.items()}
        rows.append({**row, "response": random.choice(("left", "right")), **further})
    return rows


def saved(folder, rows, encoding="utf-8"):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    path = folder / "answers.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def previewed(path, *options):
    """What `preview` says, and the error if there is one."""
    result = CliRunner().invoke(command, [str(path), *options])
    error = "" if result.exception is None or isinstance(result.exception, SystemExit) else str(result.exception)
    return result.output + error


def events(text):
    return int(re.search(r"events +([0-9,]+)", text)[1].replace(",", ""))


def commands(text):
    """The options of all commands in a text."""
    ends = r"(?= \([^()]*(?:said|is more like)|; if |, or stream|\n|$)"
    runs = re.findall(rf"stream-engine run \S+ --state DIR (.*?){ends}", text)
    return [shlex.split(options) for options in runs if "COLUMN" not in options]


OF_SOME = {
    "left out": [
        *(("status", "APPROVED", mark) for mark in ("REJECTED", "RETURNED", "TIMED-OUT", "SCREENED OUT")),
        *(("AssignmentStatus", "Submitted", "Rejected"), ("Reject", "", "too fast, no attention")),
        *(("exclude", "0", "1"), ("exclude", "0.0", "1.0"), ("excluded", "FALSE", "TRUE"), ("include", "1", "0")),
        *(("participant_excluded", "no", "yes"), ("exclude_from_analysis", "", "x"), ("consent", "ja", "nein")),
        *(("participant._is_bot", "0", "1"), ("was_cancelled", "False", "True")),
        *(("usable", "yes", "no"), ("Ausschluss", "nein", "ja"), ("Status", "IP Address", "Spam")),
    ],
    "named": [
        *(
            ("Finished", "True", "False"),
            ("Finished", "1", "0"),
            ("completed", "yes", "no"),
            *(("status", "OK", "Partial"), ("ended", "2024-05-01", ""), ("completed_at", "2024-05-01", "")),
        ),
        *(("attention_passed", "true", "false"), ("attention_check_failed", "0", "1"), ("IMC check", "pass", "fail")),
        *(("submitdate", "2024-05-01 10:00", ""), ("triplets_complete", "2", "0"), ("valid", "x", "")),
        ("status", "OK", "Partial"),
        *(("exclusion_reason", "", "fell asleep"), ("Finished", "1.0", "0.0")),
    ],
    "of no account": [
        *(("status", "single", "married"), ("status", "200", "404"), ("browser_status", "online", "offline")),
        *(("completed_school", "yes", "no"), ("valid_licence", "yes", "no"), ("check", "a", "b")),
    ],
}


@pytest.mark.parametrize("where", [True, False])
@pytest.mark.parametrize("kind, name, usual, mark", [(kind, *each) for kind in OF_SOME for each in OF_SOME[kind]])
def test_marks_leave_out_for_certain_or_are_named_with_the_filter(tmp_path, kind, name, usual, mark, where):
    by_participant = trials(**{name: lambda n: mark if n // 4 % 6 == 0 else usual})
    by_trial = trials(**{name: lambda n: mark if n % 6 == 0 else usual})
    path = saved(tmp_path, by_participant if where else by_trial)
    said = previewed(path)
    warned = re.search(r"to leave them out: --where ('[^']+'|\S+)", said)
    if kind == "left out":
        assert events(said) == 100 and "invalid trials" in said, said
    elif kind == "named":
        assert events(said) == 120 and "20 of 120 rows count although" in said, said
        assert events(previewed(path, *commands(said)[0], "--where", *shlex.split(warned[1]))) == 100
    elif "nothing was written" in said:
        assert events(said) == 120 and not warned, said


@pytest.mark.parametrize("columns", [{"exclude": "1"}, {"phase": "practice"}, {"status": "REJECTED"}])
def test_marks_far_down_in_a_file_are_seen(tmp_path, columns):
    ((name, mark),) = columns.items()
    usual = {"exclude": "0", "phase": "main", "status": "APPROVED"}[name]
    said = previewed(saved(tmp_path, trials(6000, **{name: lambda n: mark if n in (4800, 4801, 5900) else usual})))
    assert events(said) == 5997, said


NAMES = "ppt ppt_id ppnr pp vpn vp vpnr proband sujet sub subj sona_id PROLIFIC_PID WorkerId ResponseId respondent"
MORE_NAMES = (
    "participantNo id_sujet VP_Code StudentID Teilnehmer-Nr proefpersoon participante subID Versuchspersonennummer"
)


@pytest.mark.parametrize("name", [*NAMES.split(), *MORE_NAMES.split()])
def test_participants_are_seen_by_the_names_that_labs_give_them(tmp_path, name):
    assert "participants 30, 4 questions each" in previewed(saved(tmp_path, trials(who=name)))


@pytest.mark.parametrize("name", ["code", "subj_idx", "initials", "wer"])
def test_a_column_that_looks_like_participants_is_named(tmp_path, name):
    said = previewed(saved(tmp_path, trials(who=name)))
    assert f"add participant={name} to --columns" in said and "participants 30" not in said


TOLD = ["--type", "pick", "--columns", "shown=left|right,chosen=response"]
REFUSED = {
    "ties": (lambda n: {"response": "both"} if n % 5 == 0 else {}, []),
    "ties, as told": (
        lambda n: {"response": "both"} if n % 5 == 0 else {},
        TOLD,
    ),
    "a language": (
        lambda n: {"response": "rechts"},
        TOLD,
    ),
    "another answer": (lambda n: {"choice": ("left", "right")[n % 2]}, []),
    "yes or no": (lambda n: {"picked": n % 2}, []),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_command_that_is_printed_reads_the_file(tmp_path, name):
    of, options = REFUSED[name]
    path = saved(tmp_path, [{**row, **of(n)} for n, row in enumerate(trials())])
    said = previewed(path, *options)
    for each in commands(said):
        again = previewed(path, *each)
        assert events(again) > 50 and "rejected" not in again, (each, again)
    assert commands(said) or name == "a language"


@pytest.mark.parametrize("value", ["rechts", "RIGHT", "Right "])
def test_a_spelling_of_an_answer_is_never_proposed_to_be_left_out(tmp_path, value):
    rows = [{**row, "response": value if n % 2 else "left"} for n, row in enumerate(trials())]
    for options in ([], TOLD, [*TOLD, "--answers-by", "position"]):
        assert "!=" not in previewed(saved(tmp_path, rows), *options)


def test_objects_spelt_in_two_ways_are_named(tmp_path):
    rows = [{"probe": r["anchor"], "o1": r["left"], "o2": r["right"], "choice": r["left"].title()} for r in trials()]
    said = previewed(saved(tmp_path, rows))
    one = rows[0]["choice"]
    assert f"the objects shown (o1, o2) but for spaces or capitals ({one!r}, {one.lower()!r})" in said


def test_ids_and_indices_are_read(tmp_path):
    for first in (0, 1):
        rows = [
            {"user_id": n // 4, "anchor_id": r["anchor"], "left_id": r["left"], "right_id": r["right"]}
            | {"selected_index": first + (r["response"] == "right")}
            for n, r in enumerate(trials())
        ]
        said = previewed(saved(tmp_path, rows))
        assert f"--answers-by {('index', 'position')[first]}" in said and events(said) == 120
    said = previewed(saved(tmp_path, [{**row, "selected_index": 1} for row in rows]))
    assert "could count from 0 or from 1" in said


def test_columns_that_say_trial_are_read_beside_a_form_that_is_not_complete(tmp_path):
    rows = [
        {"record_id": n // 12, "trial_ref": r["anchor"], "trial_a": r["left"], "trial_b": r["right"]}
        | {"trial_choice": 1 + (r["response"] == "right"), "triplet_complete": 2 if n % 12 < 11 else 0}
        for n, r in enumerate(trials())
    ]
    said = previewed(saved(tmp_path, rows))
    assert events(said) == 120 and "10 of 120 rows count although triplet_complete is 0" in said, said


def test_columns_without_a_name_are_passed_over(tmp_path):
    path = saved(tmp_path, trials())
    path.write_text("".join(f"{line},,\n" for line in path.read_text().splitlines()))
    assert events(previewed(path)) == 120


def test_a_list_that_is_called_a_ranking_is_one(tmp_path):
    rows = [
        {"pp": n // 4, "probe": r["anchor"], "ranking": f"{r['left']}|{r['right']}"} for n, r in enumerate(trials())
    ]
    assert "--type ranking" in previewed(saved(tmp_path, rows))


def test_a_file_without_a_header_is_told_the_option(tmp_path):
    path = saved(tmp_path, [{**row, "again": row["left"]} for row in trials()])
    path.write_text("\n".join(path.read_text().splitlines()[1:]))
    assert "--no-header" in previewed(path)


def test_small_numbers_in_a_column_time_are_named(tmp_path):
    path = saved(tmp_path, trials(time=lambda n: n % 9 + 0.5))
    options = [*TOLD, "--answers-by", "position"]
    assert "time, up to 8.5, is read as seconds since 1970" in previewed(path, *options)
    options[3] += ",time=-,seconds=time"
    assert "1970" not in previewed(path, *options)


def test_a_filter_for_a_whole_number_is_also_for_its_float():
    records = records_of({"x": ["1", "0", "2.0"]})
    assert matching(records, {"x!=": "1"}).size == 2 and matching(records, {"x": "2"}).size == 1


def test_a_workbook_without_answers_in_its_first_sheet_names_the_others(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["A study of animals"])
    sheet = book.create_sheet("Data")
    for row in ([*trials()[0]], *([*row.values()] for row in trials())):
        sheet.append(row)
    book.save(tmp_path / "study.xlsx")
    assert "not read: 'Data': save the sheet" in previewed(tmp_path / "study.xlsx")


@pytest.mark.parametrize("name, left_out", [("attention_passed", "0"), ("attention_failed", "1")])
def test_those_who_passed_a_check_stay(name, left_out):
    _, (filters,) = unusable(records_of({name: ["1", "0", "1"]}), [])
    assert filters.where == {f"{name}!=": left_out}


def test_rows_of_a_training_stage_are_asked(tmp_path):
    rows = trials(stage=lambda number: "train" if number % 4 < 2 else "test")
    result = CliRunner().invoke(command, [str(saved(tmp_path, rows))])
    assert "stage may say what is practice" in result.output and "stage!=train" in result.output
    split = trials(split=lambda number: "train" if number % 4 < 2 else "test")  # of the data
    assert "read as" in CliRunner().invoke(command, [str(saved(tmp_path, split))]).output
    vehicles = trials(type=lambda number: ("train", "bus", "car")[number % 3])
    assert "excluded" not in CliRunner().invoke(command, [str(saved(tmp_path, vehicles))]).output


def test_a_session_that_a_platform_recorded_is_a_participant(tmp_path):
    result = CliRunner().invoke(command, [str(saved(tmp_path, trials(who="Rec_Session_Id")))])
    assert "participant=Rec_Session_Id" in result.output
