"""What a person sees of a reading that was inferred: preview, the last lines of a run, a state that remembers it."""

import json
from itertools import permutations

import numpy as np
import pandas
import pytest

import stream_engine as se
from stream_engine.api.frames import BadFrame
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, process, summary
from tests.support.survey_files import FILES, TRIALS, table


def written(path, name):
    path.write_text(FILES[name].text)
    return path


def test_preview_shows_evidence_examples_and_a_command_that_does_the_same(tmp_path):
    path = written(tmp_path / "data.csv", "jsPsych 7, keys f and j")
    found = json.loads(engine("preview", path, "--json").stdout)
    assert {decision for decision, *_ in found["evidence"]} >= {"objects", "answer", "participant", "empty cells"}
    first = TRIALS[0]
    said = f"{first.who} said {first.anchor} is more like {first.chosen} than like {first.triplet[2]}"
    assert found["first"][0] == said and "--codes chosen:f=left,j=right" in found["command"]
    done = engine("run", path, "--state", tmp_path / "s", "--no-refits")
    assert f"for example: {said}" in done.stderr and "--codes chosen:f=left,j=right" in done.stderr
    told = found["command"].split(" --state DIR ")[1].replace("'", "").split()
    engine("run", path, "--state", tmp_path / "said", "--no-refits", *told)
    assert summary(tmp_path / "said")["comparisons"] == summary(tmp_path / "s")["comparisons"] == len(TRIALS)


def test_preview_names_a_report_before_a_run(tmp_path):
    path = written(tmp_path / "data.csv", "jsPsych 7, keys f and j")
    report, run = engine("preview", path).stdout.splitlines()[-3:-1]
    assert states(report, f"command … stream-engine report {path} … --codes chosen:f=left,j=right")
    assert states(run, f"stream-engine run {path} --state DIR … --codes chosen:f=left,j=right")


def test_preview_says_what_each_column_is_read_as_and_which_are_not_used(tmp_path):
    rows = [
        {"user": f"p{k % 3}", "ts": 1.7e9 + k, "time": f"2026-01-01T00:00:{k:02}Z", "anchor": a, "near": b, "far": c}
        for k, (a, b, c) in enumerate([*permutations("abcd", 3)])
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    found = json.loads(engine("preview", tmp_path / "t.csv", "--json").stdout)
    assert found["used_as"] == {"user": "participant", "time": "time of the answer"} | {
        name: name for name in ("anchor", "near", "far")
    }
    shown = [" ".join(line.split()) for line in engine("preview", tmp_path / "t.csv").stdout.splitlines()]
    assert "not used ts" in shown and any("time of the answer: time" in line for line in shown)
    (tmp_path / "w.csv").write_text(
        table([{f"Q{n}_{part}": text for n in "12" for part, text in zip("abc", "xyz")}] * 3)
    )
    columns = "anchor=Q{n}_a,near=Q{n}_b,far=Q{n}_c"
    found = json.loads(engine("preview", tmp_path / "w.csv", "--columns", columns, "--json").stdout)
    assert found["used_as"]["Q2_a"] == "anchor" and found["used_as"]["Q1_b"] == "near"
    catch = ["--columns", "anchor=anchor,near=near,far=far,catch=anchor"]
    found = json.loads(engine("preview", tmp_path / "t.csv", "--json", *catch).stdout)
    assert found["used_as"]["anchor"] == "anchor and catch trials"


def test_a_filter_without_a_match_names_values_of_its_column(tmp_path):
    path = written(tmp_path / "data.csv", "PsychoPy, arrow keys")
    said = one_line(engine("preview", path, "--where", "participant=nobody", status=2).stderr)
    assert "participant=nobody" in said
    assert TRIALS[0].who in said
    assert "missing" not in said


def test_two_readings_are_listed_and_nothing_is_read(tmp_path):
    path = written(tmp_path / "data.csv", "0 or 1, but only 1 was answered")
    said = one_line(engine("run", path, "--state", tmp_path / "s", status=2).stderr)
    assert "--answers-by position" in said and "--answers-by index" in said
    assert not (tmp_path / "s" / "snapshots").exists()
    page = tmp_path / "page.html"
    said = one_line(process("report", path, "--out", page, "--font-size", "7pt", status=2).stderr)
    typed = f"stream-engine report {path} --out {page} --font-size 7pt --type pick"
    assert said.count(typed) == 2
    assert "--answers-by index" in said
    assert "--state" not in said
    assert not page.exists()
    found = json.loads(engine("preview", path, "--json", status=2).stdout)
    assert len(found["readings"]) == 2 and all(len(each[1].split()) > 3 for each in found["readings"])
    for run, _, report in found["readings"]:
        options = run.partition(" --type ")[2]
        assert (
            report == f"stream-engine report {path} --type {options}"
            and report in engine("preview", path, status=2).stdout
        )
    with pytest.raises(BadFrame, match="answers_by='index'"):
        se.read(
            [dict(Target="a", Option1="b", Option2="c", Choice=1), dict(Target="b", Option1="a", Option2="c", Choice=1)]
        )


def test_wide_json_is_refused_with_the_command_that_makes_a_table_of_it(tmp_path):
    record = {"worker": "w1"} | {f"q{q}_{part}": text for q in (1, 2) for part, text in zip("abc", "xyz")}
    (tmp_path / "wide.jsonl").write_text("".join(json.dumps(record) + "\n" for _ in range(3)))
    columns = "anchor=q{n}_a,near=q{n}_b,far=q{n}_c"
    done = engine("run", tmp_path / "wide.jsonl", "--state", tmp_path / "s", "--columns", columns, status=2)
    assert "to_csv" in one_line(done.stderr)


def test_a_state_remembers_its_reading_and_refuses_a_file_that_contradicts_it(tmp_path):
    path, state = written(tmp_path / "a.csv", "PsychoPy, arrow keys"), tmp_path / "s"
    engine("run", path, "--state", state, "--no-refits")
    only_left = [{"participant": "S9", "target": "cat", "left_img": "dog", "right_img": "owl", "key_resp.keys": "left"}]
    (tmp_path / "b.csv").write_text(table(only_left))
    engine("run", tmp_path / "b.csv", "--state", state, "--no-refits")
    assert summary(state)["comparisons"] == len(TRIALS) + 1
    other = written(tmp_path / "c.csv", "salmon, names")
    said = one_line(engine("run", other, "--state", state, "--no-refits", status=2).stderr)
    assert "anchor=target" in said and "anchor=head" in said
    assert summary(state)["comparisons"] == len(TRIALS) + 1


def test_a_question_that_is_asked_again_is_counted_whatever_the_answer(tmp_path):
    four = [("ab", "cd"), ("dc", "ab"), ("cd", "ba"), ("ac", "bd")]
    events = [{"type": "quadruplet", "near": [*near], "far": [*far]} for near, far in four]
    events += [{"type": "odd_one_out", "objects": [*shown], "odd": odd} for shown, odd in (("abc", "a"), ("cba", "b"))]
    events += [{"anchor": anchor, "near": near, "far": far} for anchor, near, far in ("abc", "bac", "bca", "bca")]
    found = json.loads(engine("preview", jsonl(tmp_path / "e.jsonl", events), "--json").stdout)
    assert (found["repeated"], found["repeated_alike"]) == (5, 2)


def test_excluded_practice_is_told_by_preview_and_run(tmp_path):
    doubtful = written(tmp_path / "either.csv", "PsychoPy, three keys that answer something")
    found = json.loads(engine("preview", doubtful, "--json", status=2).stdout)
    assert found["evidence"][0][:2] == ["practice", "trials.thisN>=0"] and len(found["readings"]) == 2
    assert "practice_loop" in engine("preview", doubtful, status=2).stdout
    clear = written(tmp_path / "odd.csv", "PsychoPy, odd one out, practice in its loop")
    assert ["practice", "trials.thisN>=0"] in [
        each[:2] for each in json.loads(engine("preview", clear, "--json").stdout)["evidence"]
    ]
    done = engine("run", clear, "--state", tmp_path / "s", "--no-refits")
    assert "practice_loop" in done.stderr and summary(tmp_path / "s")["events"] == len(TRIALS)


def test_frames_and_dicts_are_read_as_files_are(tmp_path):
    path = written(tmp_path / "data.csv", "Gorilla")
    frame = pandas.read_csv(path)
    for data in (path, frame, frame.astype(object).where(frame.notna(), None).to_dict("records")):
        with pytest.warns(UserWarning, match="Response!="):  # screens without an answer
            study = se.read(data, frames="arrow")
        assert len(study) == len(TRIALS) and "chosen" in study.read_as


def test_numbers_of_objects_are_not_taken_for_numbers_of_rounds(tmp_path):
    """Objects called 1 to 20, rounds 1 to 3, the most central of three below a header that also names a place."""
    rng = np.random.default_rng(0)
    shown = [rng.permutation(20)[:3] + 1 for _ in range(60)]
    rows = [f"{rng.choice(each)},{','.join(map(str, each))},{at // 20 + 1}" for at, each in enumerate(shown)]
    path = tmp_path / "central.csv"
    path.write_text("\n".join(["central,left,middle,right,survey_round", *rows]) + "\n")
    found = json.loads(engine("preview", path, "--json").stdout)
    assert "--type most_central" in found["command"] and "objects=left|middle|right" in found["command"]
    path = tmp_path / "triplets.csv"
    triplets = [f"{','.join(map(str, each))},{at // 20 + 1}" for at, each in enumerate(shown)]
    path.write_text("\n".join(["anchor,near,far,survey_round", *triplets]) + "\n")
    engine("run", path, "--state", tmp_path / "s", "--no-refits")
    assert summary(tmp_path / "s")["triplets"] == 60
    path.write_text("\n".join(["anchor,near,far,third", *triplets]) + "\n")
    assert "third" in one_line(engine("preview", path, status=2).stderr)


def test_filters_and_codes_of_the_command_line(tmp_path):
    rows = [
        {"t": "a", "one": "b", "two": "c", "key": key, "rt": rt, "phase": phase}
        for key, rt, phase in (("x", 500, "main"), ("b", 90, "main"), ("x", 700, "demo"), ("b", 800, "more"))
    ]
    (tmp_path / "k.csv").write_text(table(rows))
    done = engine(
        "preview", tmp_path / "k.csv", "--json", "--type", "pick", "--columns", "anchor=t,shown=one|two,chosen=key",
        "--codes", "chosen:x=one,b=two", "--where", "rt>100", "--where", "phase=main|more",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert states(found["first"][0], "a … b … c")
    assert states(found["first"][1], "a … c … b")
    assert found["filtered"] == 2


@pytest.mark.parametrize(
    "text", ["winner,loser\na,b\nb,c\n", "model_a,model_b,winner,judge\ngpt,llama,model_a,u1\n"], ids=["pairs", "arena"]
)
def test_preferences_are_no_comparisons_of_distances(tmp_path, text):
    path = tmp_path / "battles.csv"
    path.write_text(text)
    for verb in ("preview", path), ("run", path, "--state", tmp_path / "s"):
        said = one_line(engine(*verb, status=2).stderr)
        assert "battles.csv" in said
        assert "winner" in said
        assert "choix" in said
    assert not (tmp_path / "s" / "snapshots").exists()
    with pytest.raises(ValueError, match="choix"):
        se.read(str(path))


def test_small_numbers_in_time_are_no_events_of_1970(tmp_path):
    rows = [
        {"user": f"p{k % 3}", "time": 0.5 + k / 8, "anchor": a, "near": b, "far": c}
        for k, (a, b, c) in enumerate([*permutations("abcd", 3)])
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    found = json.loads(engine("preview", tmp_path / "t.csv", "--json").stdout)
    assert "time" not in found["used_as"] and "time=-" in found["command"]
    assert "time" in [decision for decision, *_ in found["evidence"]]
    told = ["--columns", "worker=user,time=-,seconds=time"]
    found = json.loads(engine("preview", tmp_path / "t.csv", "--json", *told).stdout)
    assert found["used_as"]["time"] == "response time in seconds" and found["events"] == len(rows)


def test_sides_without_an_answer_are_a_design_and_no_reading_is_offered(tmp_path):
    sides = [{"target": a, "img_left": b, "img_right": c} for a, b, c in permutations("abcd", 3)]
    (tmp_path / "t.csv").write_text(table(sides))
    said = engine("preview", tmp_path / "t.csv", status=2)
    assert "design" in said.stdout + said.stderr and "is more like" not in said.stdout + said.stderr


def test_dates_in_other_formats_are_not_used_and_no_answer_is_rejected(tmp_path):
    rows = [
        {"user": f"p{k % 3}", "time": f"0{1 + k % 9}.04.2026 9:05" if k % 2 else "2026-04-06T09:05:00", "anchor": a}
        | {"near": b, "far": c}
        for k, (a, b, c) in enumerate([*permutations("abcd", 3)])
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    found = json.loads(engine("preview", tmp_path / "t.csv", "--json").stdout)
    assert found["events"] == len(rows) and not found["refused"] and "time=-" in found["command"]
    assert any("04.2026 9:05" in why for _, _, why in found["evidence"])


def _repeated_objects(path, n: int = 60) -> None:
    """Answers of which every tenth compares an object with itself, and every fifteenth row is cut."""
    names = [*permutations("abcdef", 3)]
    rows = []
    for i in range(n):
        a, b, c = names[i % len(names)]
        row = [f"p{i % 4}", a, a if i % 10 == 9 else b, c, "left" if i % 2 else "right"]
        rows.append(",".join(row[:3] if i % 15 == 7 else row))
    path.write_text("\n".join(["participant,question,left,right,said", *rows]) + "\n")


def test_rows_with_equal_objects_add_up_with_cut_ones_and_a_command_excludes_them(tmp_path):
    _repeated_objects(path := tmp_path / "data.csv")
    said = one_line(engine("preview", path, status=2).stderr)
    assert "in 6 of 60 rows" in said and "4 further rows" in said
    told = said.split(" --state DIR ")[1].partition(" (")[0].replace("'", "").split()
    assert "catch=question" in " ".join(told)
    engine("run", path, "--state", tmp_path / "s", "--no-refits", *told)
    counts = summary(tmp_path / "s")
    assert (counts["events"], counts["filtered"], sum(counts["rejected"].values())) == (50, 6, 4)


def test_evidence_of_first_rows_only_says_so(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("who,probe,a,b,answer\n" + "p1,x,y,z,y\np2,y,x,z,z\np3,z,x,y,x\n" * 800)
    assert "first 2,000" in engine("preview", path).stdout
    assert json.loads(engine("preview", path, "--json").stdout)["examined"] == 2000


def test_a_preview_says_that_objects_fall_into_sets(tmp_path):
    file = tmp_path / "answers.csv"
    rows = ["a,b,c", "b,c,d", "e,f,g", "h,i,j"]
    file.write_text("anchor,near,far\n" + "".join(f"{row}\n" for row in rows))
    apart = json.loads(engine("preview", file, "--json").stdout)
    assert apart["sets"] == [4, 3, 3]
    assert states(engine("preview", file).stdout, "3 sets … 4, 3, 3")
    file.write_text(file.read_text() + "a,e,h\n")
    assert (
        json.loads(engine("preview", file, "--json").stdout)["sets"] == [10]
        and " sets" not in engine("preview", file).stdout
    )


def test_answers_that_were_not_shown_are_named_with_a_command(tmp_path):
    rng, rows = np.random.default_rng(0), []
    for number in range(60):
        a, b, c, other = (f"o{i}" for i in rng.choice(9, 4, replace=False))
        rows.append({"who": "p", "anchor": a, "left": b, "right": c, "choice": other if number % 3 == 0 else b})
    (tmp_path / "f.csv").write_text(table(rows))
    said = one_line(engine("preview", tmp_path / "f.csv", status=2).stderr)
    assert states(said, "20 of 60 answers in choice … left, right … anchor=anchor,shown=left|right,chosen=choice")
    (tmp_path / "g.csv").write_text(table(rows[1:3] + rows[4:6]).replace(",", ":"))
    said = one_line(engine("preview", tmp_path / "g.csv", status=2).stderr)
    assert "--delimiter :" in said and "--skip-rows" not in said
    assert json.loads(engine("preview", tmp_path / "g.csv", "--delimiter", ":", "--json").stdout)["events"] == 4


def test_evidence_of_the_first_rows_says_so_where_some_cannot_be_parsed(tmp_path):
    rows = [dict(zip(("who", "anchor", "left", "right"), ("p", *each))) for each in permutations("abcdef", 3)] * 18
    lines = table([{**row, "choice": row["left"]} for row in rows]).splitlines()
    lines[30] = "p,a"
    (tmp_path / "f.csv").write_text("\n".join(lines) + "\n")
    found = json.loads(engine("preview", tmp_path / "f.csv", "--json").stdout)
    assert found["events"] == len(rows) - 1 and found["examined"] == 1999
    assert "first 1,999 rows" in engine("preview", tmp_path / "f.csv").stdout
