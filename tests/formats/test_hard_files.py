"""Files as labs have them whose reading is easily wrong: right, or refused with the fact and commands that work."""

import csv
import io
import itertools
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from random import Random

import numpy as np
import pandas
import pytest

import stream_engine as se
from stream_engine.input.answers_in_words import answers
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.loading import load
from stream_engine.input.sources import event_options, source
from stream_engine.report.findings.facts import Facts
from tests.support.process import engine, summary

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]


def trials(n=40, shown=2):
    """Rows of anchor, objects shown, place of the chosen one."""
    random = Random(3)
    return [(*random.sample(OBJECTS, shown + 1), random.randrange(shown)) for _ in range(n)]


TRIALS = trials()


def table(rows, delimiter=","):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def comparisons(path, **options):
    """What is read of a file without further options."""
    settings = prepare(load(None, {"source": (str(path),), **options}, {})).raise_if_undecided().settings
    ingest, found = RecordDecoder(event_options(settings)._replace(provenance=True), settings.input.format), Counter()
    opened = source(settings, str(path), {})
    while not opened.finished():
        for block in ingest.blocks(opened.poll(1.0)):
            assert not block.dead_letters
            found.update(names for _, answer in answers(block.decoded) for names in answer)
    opened.close()
    return found


def chosen(rows=None, nearer=True):
    """The comparisons of trials of two."""
    places = [(a, (b, c)[i], (b, c)[1 - i]) for a, b, c, i in rows or TRIALS]
    return Counter(each if nearer else (each[0], each[2], each[1]) for each in places)


READ = {
    "French keys": [{"Modèle": a, "Image gauche": b, "Image droite": c, "Réponse": "gd"[i]} for a, b, c, i in TRIALS],
    "Spanish keys": [{"modelo": a, "izquierda": b, "derecha": c, "tecla key": "id"[i]} for a, b, c, i in TRIALS],
    "a question of Qualtrics": [{"reference": a, "img1": b, "img2": c, "Q12": i + 1} for a, b, c, i in TRIALS],
    "codes of LimeSurvey": [{"Vorlage": a, "Bild1": b, "Bild2": c, "Auswahl": f"A{i + 1}"} for a, b, c, i in TRIALS],
    "Salmon, with HTML": [
        {"head": a, "winner": (b, c)[i], "loser": (b, c)[1 - i], "winner_src": f"<{(b, c)[i]}>",
         "loser_src": f"<{(b, c)[1 - i]}>"}
        for a, b, c, i in TRIALS
    ],
    "an index called so": [{"target": a, "first": b, "second": c, "choice_index": i} for a, b, c, i in TRIALS],
    "wide, with words": [
        {f"{name}{n}": value for n, (a, b, c, i) in enumerate(TRIALS[row : row + 5]) for name, value in
         zip(("ref", "links", "rechts", "wahl"), (a, b, c, ("links", "rechts")[i]))}
        for row in range(0, 40, 5)
    ],
}  # fmt: skip


@pytest.mark.parametrize("what", READ)
def test_a_file_is_read_right(tmp_path, what):
    (tmp_path / "t.csv").write_text(table(READ[what]))
    assert comparisons(tmp_path / "t.csv") == chosen()


REFUSED = {
    "letters or keys": ([{"target": a, "left": b, "right": c, "key": "gd"[i]} for a, b, c, i in TRIALS], "keyboard"),
    "abbreviated tasks": (
        [{"target": a, "left": b, "right": c, "choice": (b, c)[i], "task": ("sim", "diff")[n % 2]}
         for n, (a, b, c, i) in enumerate(TRIALS)],
        "task",
    ),
    "a slider": (
        [{"target": a, "left": b, "right": c, "slider": 7 * i - n % 9} for n, (a, b, c, i) in enumerate(TRIALS)],
        "slider",
    ),
    "names in another form": (
        [{"target": f"s/{a}", "left": f"s/{b}", "right": f"s/{c}", "choice": (b, c)[i]} for a, b, c, i in TRIALS],
        "choice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_is_refused_with_the_fact(tmp_path, what):
    rows, fact = REFUSED[what]
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings, match=fact):
        comparisons(tmp_path / "t.csv")


def test_codes_that_nothing_explains_are_refused_with_a_whole_command_that_reads_them(tmp_path):
    rows = [{"vp": f"p{n % 4}", "word": a, "A": b, "B": c, "key": "xm"[i]} for n, (a, b, c, i) in enumerate(TRIALS)]
    (tmp_path / "t.csv").write_text(table(rows))
    said = engine("preview", tmp_path / "t.csv", status=None).stderr
    command = shlex.split(re.search(r"stream-engine run .*?(?= \()", said)[0])
    assert command[:3] == ["stream-engine", "run", str(tmp_path / "t.csv")] and "participant=vp" in " ".join(command)
    engine("run", *command[2:], "--state", tmp_path / "s", "--no-refits")
    assert summary(tmp_path / "s")["comparisons"] == 40


def test_where_rows_ask_for_different_directions_two_commands_read_each_its_rows(tmp_path):
    tasks = ("Which is more similar?", "Which is less similar?")
    rows = [{"target": a, "left": b, "right": c, "task": tasks[n % 2], "response": ("left", "right")[i]}
            for n, (a, b, c, i) in enumerate(TRIALS)]  # fmt: skip
    (tmp_path / "t.csv").write_text(table(rows))
    said = engine("preview", tmp_path / "t.csv", status=None).stderr
    _, copy = re.search(r"cp (\S+) (\S+),", said).groups()
    shutil.copy(tmp_path / "t.csv", copy)
    for command in re.findall(r"stream-engine run .*?(?= \()", said):
        engine(*shlex.split(command)[1:], "--no-refits", cwd=tmp_path)
    engine(*re.search(r"stream-engine (merge .*)", said)[1].split(), cwd=tmp_path)
    assert [summary(tmp_path / each)["comparisons"] for each in ("A", "B", "DIR")] == [20, 20, 40]


COMPETING = {
    "sides beside the order": ("order", {"resp_side": ("left", "right"), "order": ("AB", "BA")}),
    "a picture of another object": ("bonus_pic", {"choice": "name", "bonus_pic": "any"}),
    "two answers by side": ("final_choice", {"choice": ("optionA", "optionB"), "final_choice": ("optionA", "optionB")}),
    "two answers by name": ("choice2", {"choice1": "name", "choice2": "name"}),
    "ratings": ("similarity", {"choice": "name", "similarity": (*map(str, range(1, 8)),)}),
}


@pytest.mark.parametrize("what", COMPETING)
def test_a_column_that_competes_with_the_answer_is_named_with_the_reading_without_it(tmp_path, what):
    name, columns = COMPETING[what]
    random, rows = Random(3), []
    for trial, (anchor, one, other, _) in enumerate(TRIALS):
        values = {"name": (one, other), "any": OBJECTS}
        cells = {each: random.choice(values.get(of, of)) for each, of in columns.items()}
        rows.append({"who": f"p{trial % 4}", "target": anchor, "optionA": one, "optionB": other, **cells})
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings) as refused:
        comparisons(tmp_path / "t.csv")
    assert f"column {name} (" in str(refused.value) and f"if {name} says nothing about the answer" in str(refused.value)
    (options,) = options_in(str(refused.value).partition("; if it ")[0])
    answered = next(iter(columns))
    assert f"chosen={answered}" in options[options.index("--columns") + 1]
    assert json.loads(engine("preview", tmp_path / "t.csv", "--json", *options).stdout)["comparisons"] == 40
    without = table([{key: value for key, value in row.items() if key != name} for row in rows])
    (tmp_path / "u.csv").write_text(without)
    assert comparisons(tmp_path / "u.csv").total() == 40


def test_keys_that_no_column_explains_are_refused_with_the_column_that_may(tmp_path):
    rows = [{"target": a, "optionA": b, "optionB": c, "key": "fj"[i], "key_for_left": "fj"[n % 3 == 0]}
            for n, (a, b, c, i) in enumerate(TRIALS)]  # fmt: skip
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings, match=r"column key \(f, j\).*--codes chosen:f=.*key_for_left"):
        comparisons(tmp_path / "t.csv")


def test_a_matching_task_is_asked_about_and_needs_an_answer(tmp_path):
    rows = [{"sample": a, "match": b, "foil": c, "correct": "10"[i]} for a, b, c, i in TRIALS]
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings, match="correct could say") as refused:
        comparisons(tmp_path / "t.csv")
    (options,) = options_in(str(refused.value).partition(" (")[0])
    assert {"anchor=sample,near=match,far=foil,chosen=correct", "chosen:1=near,0=far"} <= {*options}
    (tmp_path / "u.csv").write_text(table([{key: row[key] for key in ("sample", "match", "foil")} for row in rows]))
    with pytest.raises(BadSettings, match="columns sample, match, foil hold the same objects"):
        comparisons(tmp_path / "u.csv")


def options_in(error):
    """The options of the commands that an error offers."""
    return [shlex.split(each) for each in re.findall(r"--type .*?(?=, or |$)", error)]


def test_the_commands_for_best_and_worst_read_the_file(tmp_path):
    rows = [
        {"target": a, "item1": b, "item2": c, "item3": d, "most_similar": (b, c, d)[i],
         "least_similar": (b, c, d)[i - 1]}
        for a, b, c, d, i in trials(shown=3)
    ]  # fmt: skip
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None)
    offered = options_in(refused.stderr.strip())
    assert len(offered) == 2
    for options in offered:
        assert json.loads(engine("preview", tmp_path / "t.csv", "--json", *options).stdout)["comparisons"] == 80


def test_rankings_with_a_row_for_each_rank_are_refused_with_what_reshapes_them(tmp_path):
    rows = [
        {"who": f"p{trial % 2}", "trial": trial, "target": a, "item": item, "rank": place + 1}
        for trial, (a, *items, _) in enumerate(trials(10, 4))
        for place, item in enumerate(items)
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings) as refused:
        comparisons(tmp_path / "t.csv")
    pivot, prefix = re.search(r"table\.pivot\((.*?)\)\.add_prefix\('(.*?)'\)\.reset_index", str(refused.value)).groups()
    index, values = re.search(r"index=\[(.*?)\]", pivot)[1], re.search(r"values='(.*?)'", pivot)[1]
    frame = pandas.read_csv(tmp_path / "t.csv")
    wide = frame.pivot(index=re.findall(r"'(.*?)'", index), columns="rank", values=values)
    wide = wide.add_prefix(prefix).reset_index()
    wide.to_csv(tmp_path / "ranked.csv", index=False)
    (options,) = options_in(str(refused.value).partition("; if 1 is the farthest")[0])
    assert json.loads(engine("preview", tmp_path / "ranked.csv", "--json", *options).stdout)["comparisons"] == 60


@pytest.mark.parametrize(
    "task", ["choose_farthest", "pick-most-different", "selectLeastSimilar", "dis", "difference", "Unterschied"]
)
def test_a_task_in_a_word_that_asks_for_the_farther_object_is_asked_about(tmp_path, task):
    rows = [{"ref": a, "left": b, "right": c, "task": task, "response": ("left", "right")[i]} for a, b, c, i in TRIALS]
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings, match="column task .*--answer-is"):
        comparisons(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(table([row | {"task": "choose_nearest"} for row in rows]))
    assert comparisons(tmp_path / "t.csv") == chosen(TRIALS)


def test_rows_without_an_answer_are_counted(tmp_path):
    rows = [{"target": a, "left": b, "right": c, "response": i} for a, b, c, i in TRIALS]
    rows[7]["response"] = rows[9]["response"] = None
    (tmp_path / "t.json").write_text(json.dumps(rows))
    asked = prepare(load(None, {"source": (str(tmp_path / "t.json"),)}, {}))
    (excluded,) = [each for each in asked.evidence if each.topic == "empty cells"]
    assert excluded.choice == "response!=" and excluded.why.startswith("2 of 40 rows")
    kept = [each for n, each in enumerate(TRIALS) if n not in (7, 9)]
    assert comparisons(tmp_path / "t.json") == chosen(kept)
    with pytest.warns(UserWarning, match="2 of 40 rows"):
        assert len(se.read(rows, frames="arrow")) == 38


def test_json_in_the_cells_of_a_frame_is_read_as_in_a_file(tmp_path):
    inside = [{"target": a, "left": b, "right": c, "choice": (b, c)[i]} for a, b, c, i in TRIALS]
    text = pandas.DataFrame({"WorkerId": "w", "answers": [json.dumps([each]) for each in inside]})
    text.to_csv(tmp_path / "t.csv", index=False)
    for data in (text, text.assign(answers=inside), str(tmp_path / "t.csv")):
        assert len(se.read(data)) == 40


@pytest.mark.parametrize("shape", [(40,), (4, 3, 3), (8, 5)])
def test_an_array_of_another_shape_is_refused_with_its_shape(tmp_path, shape):
    np.save(tmp_path / "t.npy", np.zeros(shape, int))
    told = engine("preview", tmp_path / "t.npy", status=None).stderr
    assert (str(shape) in told or f"{shape[-1]} columns" in told) and "--no-header" not in told


def test_responses_that_were_sent_twice_are_a_finding(tmp_path):
    rows = [
        {"worker": "w", "anchor": a, "near": b, "far": c, "seconds": n / 7} for n, (a, b, c, _) in enumerate(TRIALS)
    ]
    (tmp_path / "t.csv").write_text(table([*rows, *rows[:3]]))
    engine("run", tmp_path / "t.csv", "--state", tmp_path / "s", "--no-refits")
    assert summary(tmp_path / "s")["repeated"] == 3
    page = tmp_path / "r.html"
    engine("report", "--state", tmp_path / "s", "--out", page)
    assert "3 responses were sent twice" in page.read_text()
    for drop in (False, True):
        with pytest.warns(UserWarning, match="sent twice"):
            study = se.read(str(tmp_path / "t.csv"), drop_duplicates=drop)
        facts = Facts(study.published)
        assert (facts.copies_counted, facts.copies_dropped) == ((0, 3) if drop else (3, 0))


# ---- answers of real people


@pytest.mark.data
def test_central_answers_of_people_are_read(judgements):
    """Objects are numbers, and so are the rounds of the survey."""
    path = judgements / "car60" / "central.csv"
    with path.open() as file:
        rows = [*csv.DictReader(file)]
    found = comparisons(path)
    assert found.total() == 2 * len(rows)
    for row in rows[:50]:
        a, b = (row[side] for side in ("left", "middle", "right") if row[side] != row["central"])
        assert found[a, row["central"], b] and found[b, row["central"], a]


@pytest.mark.data
@pytest.mark.parametrize("name", ["odd.txt", "odd.npy"])
def test_triplets_of_people_in_the_form_of_spose_are_asked_for_and_read(judgements, tmp_path, name):
    with (judgements / "perceptual_kernels" / "color-td.odd_one_out.csv").open() as file:
        held = [*csv.DictReader(file)]
    held = [row for row in held if row["is_catch"] == "0" and row["a"].isdecimal()][:500]
    odd = np.array([[int(row[name]) for name in ("a", "b", "odd")] for row in held])
    odd = odd[[len(set(row)) == 3 for row in odd.tolist()]]
    np.save(tmp_path / name, odd) if name.endswith("npy") else np.savetxt(tmp_path / name, odd, "%d")
    asked = prepare(load(None, {"source": (str(tmp_path / name),)}, {}))
    (read,) = [each for each in asked.rivals if each.input.type_ == "odd_one_out"]
    layout = {"input.header": read.input.header, "input.delimiter": read.input.delimiter}
    options = {"input.type": "odd_one_out", "input.columns": dict(read.input.columns)}
    found = comparisons(tmp_path / name, **options, **{k: v for k, v in layout.items() if v is not None})
    assert found.total() == 2 * len(odd) and found[tuple(map(str, odd[0].tolist()))] > 0


@pytest.mark.data
def test_ratings_of_people_in_the_form_of_mlds_are_read(judgements, tmp_path):
    """Of three colours, whether the second interval was rated larger."""
    with (judgements / "perceptual_kernels" / "color-l9.ratings.csv").open() as file:
        rated = {(row["a"], row["b"]): float(row["dissimilarity"]) for row in csv.DictReader(file)}
    thirds = [(a, b, c) for a, b in rated for c in {key[1] for key in rated} if len({a, b, c}) == 3 and (b, c) in rated]
    rows = [{"resp": int(rated[b, c] > rated[a, b]), "S1": a, "S2": b, "S3": c} for a, b, c in thirds[:200]]
    (tmp_path / "mlds.csv").write_text(table(rows))
    found = comparisons(tmp_path / "mlds.csv")
    wanted = Counter((r["S2"], *((r["S1"], r["S3"]) if r["resp"] else (r["S3"], r["S1"]))) for r in rows)
    assert found == wanted and found.total() == len(rows) > 100


def marked(**columns):
    """Trials of ten participants, with further columns of the value for some rows, and for others."""
    rows = [
        {"participant": f"P{n // 4}", "anchor": a, "left": b, "right": c, "response": ("left", "right")[i]}
        for n, (a, b, c, i) in enumerate(TRIALS)
    ]
    return table([{**row, **{name: of(n) for name, of in columns.items()}} for n, row in enumerate(rows)])


@pytest.mark.parametrize(
    "name, value, other",
    [
        *(("practice", *pair) for pair in (("true", ""), ("WAHR", "FALSCH"), ("VRAI", "FAUX"), ("x", ""))),
        *(("attention_check", *pair) for pair in (("true", ""), ("ja", "nein"))),
        *(("phase", mark, "") for mark in ("practice", "triplet_practice", "Probedurchgang", "entraînement")),
        *(("phase", mark, "main") for mark in ("triplet-practice", "práctica", "oefening")),
        *(("catch", "catch", "normal"), ("catch_correct", "false", "")),
        *(("valid", "0", "1"), ("is_valid", "false", "true"), ("invalid", "1", "0")),
    ],
)
def test_practice_and_catch_trials_are_left_out_as_tools_and_languages_mark_them(tmp_path, name, value, other):
    path = tmp_path / "marked.csv"
    path.write_text(marked(**{name: lambda n: other if n % 4 else value}))
    assert comparisons(path) == chosen([trial for n, trial in enumerate(TRIALS) if n % 4])


@pytest.mark.parametrize(
    "name, values",
    [
        ("attention_passed", ("true", "true", "false")),
        ("attention_check", ("1", "0")),
        ("party", ("Democrat", "Republican")),
        ("condition", ("training", "control")),
        ("demo_student", ("true", "false")),
    ],
)
def test_what_participants_are_is_no_mark_of_their_trials(tmp_path, name, values):
    path = tmp_path / "people.csv"
    path.write_text(marked(**{name: lambda n: values[n // 4 % len(values)]}))
    assert comparisons(path) == chosen()


def test_an_id_that_is_the_same_in_all_rows_gives_way_to_one_of_each_participant(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text(marked(participant=lambda n: "001", PROLIFIC_PID=lambda n: f"5f{n // 4:022d}"))
    settings = prepare(load(None, {"source": (str(path),)}, {})).settings
    assert (
        settings.input.columns["participant" if "participant" in settings.input.columns else "worker"] == "PROLIFIC_PID"
    )


@pytest.mark.parametrize(
    "beside",
    [
        lambda n, b, c: {"on_left": (b, c)[n % 2]},
        lambda n, b, c: {"leftItem": (b, c)[n % 2], "rightItem": (c, b)[n % 2]},
        lambda n, b, c: {"posA": n % 2, "posB": 1 - n % 2},
        lambda n, b, c: {"counterbalance": n // 4 % 2},
    ],
)
def test_answers_by_place_beside_a_column_that_says_where_objects_were_are_asked_about(tmp_path, beside):
    rows = [
        {"anchor": a, "optA": b, "optB": c, **beside(n, b, c), "response": i ^ (n % 2)}
        for n, (a, b, c, i) in enumerate(TRIALS)
    ]
    path = tmp_path / "places.csv"
    path.write_text(table(rows))
    problem = prepare(load(None, {"source": (str(path),)}, {})).problem
    assert "could say wh" in problem, problem


@pytest.mark.parametrize("words", [("1", "0"), ("yes", "no")])
def test_a_row_for_each_object_is_reshaped_by_the_line_that_is_offered(tmp_path, words):
    rows = [
        {"pp": f"P{n % 2}", "block": n // 4, "trial": n % 4, "picture": name, "chosen_odd": words[k != i]}
        for n, (_, *shown, i) in enumerate(trials(shown=3))
        for k, name in enumerate(shown)
    ]
    (tmp_path / "long.csv").write_text(table(rows))
    with pytest.raises(
        BadSettings, match="one of the 3 objects of an answer .picture., and chosen_odd says which"
    ) as said:
        comparisons(tmp_path / "long.csv")
    reshape = re.search(r"in pandas: (.*), then", str(said.value))[1]
    code = f"import pandas; table = pandas.read_csv('long.csv'); {reshape}"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    expected = Counter()
    for _, *shown, i in trials(shown=3):
        odd, (one, other) = shown[i], [*shown[:i], *shown[i + 1 :]]
        expected.update([(one, other, odd), (other, one, odd)])
    assert comparisons(tmp_path / "wide.csv") == expected


def test_columns_of_a_fixed_width_are_told_from_a_first_line_of_answers(tmp_path):
    rows = [f"{anchor:12}{one:12}{other:12}{(one, other)[i]}" for anchor, one, other, i in TRIALS]
    path = tmp_path / "t.txt"
    path.write_text("\n".join([f"{'target':12}{'left':12}{'right':12}answer", *rows]) + "\n")
    with pytest.raises(BadSettings, match="columns have a fixed width") as said:
        comparisons(path)
    line = re.search(r"in pandas, (.*), and read", str(said.value))[1].replace("FILE", "t").replace("'t'", "'t.txt'")
    subprocess.run([sys.executable, "-c", f"import pandas; {line}"], cwd=tmp_path, check=True)
    assert comparisons(tmp_path / "t.csv") == chosen()
    path.write_text("\n".join(f"triads {one} {other} {anchor} {i + 1}" for anchor, one, other, i in TRIALS) + "\n")
    with pytest.raises(BadSettings, match="first line holds answers.*--no-header --delimiter space"):
        comparisons(path)


def test_answers_in_another_language_or_of_places_on_a_screen_are_no_codes(tmp_path):
    for value, said in (
        (lambda name: name[::-1], "one language and spelling"),
        (lambda name: len(name) * 31, "number means"),
    ):
        rows = [
            {"pp": f"P{n % 3}", "item1": b, "item2": c, "item3": d, "odd": f"{value((b, c, d)[i])}{'' if n % 2 else n}"}
            for n, (_, b, c, d, i) in enumerate(trials(shown=3))
        ]
        (tmp_path / "t.csv").write_text(table(rows))
        with pytest.raises(BadSettings, match=said) as problem:
            comparisons(tmp_path / "t.csv")
        assert "--codes" not in str(problem.value)


def test_answers_that_say_how_sure_they_are_are_read_by_the_codes_that_are_offered(tmp_path):
    rows = [
        {"probe": a, "left": b, "right": c, "rating": f"{('surely', 'perhaps')[n % 2]} {('left', 'right')[i]}"}
        for n, (a, b, c, i) in enumerate(TRIALS)
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    with pytest.raises(BadSettings) as problem:
        comparisons(tmp_path / "t.csv")
    codes = shlex.split(re.search(r"add (--codes '.*?')", str(problem.value))[1])[1]
    options = ["--type", "pick", "--columns", "anchor=probe,shown=left|right,chosen=rating", "--codes", codes]
    shown = json.loads(engine("preview", tmp_path / "t.csv", "--json", *options).stdout)
    assert shown["comparisons"] == 40 and shown["refused"] == {}


@pytest.mark.parametrize("steps", [(-2, -1, 1, 2), (-1, 0, 1)])
def test_steps_of_a_scale_with_two_sides_are_asked_about(tmp_path, steps):
    rows = [
        {"anchor": a, "opt0": b, "opt1": c, "response": steps[n % len(steps)]} for n, (a, b, c, _) in enumerate(TRIALS)
    ]
    path = tmp_path / "scale.csv"
    path.write_text(table(rows))
    prepared = prepare(load(None, {"source": (str(path),)}, {}))
    assert '"-1"' in prepared.problem or not prepared.settings.input.columns


@pytest.mark.parametrize("name", ["similarity", "score", "pos"])
def test_numbers_of_objects_that_are_not_called_ranks_are_asked_about(tmp_path, name):
    rows = [
        {
            "target": a,
            **{f"item_{k}": (b, c, d)[k] for k in range(3)},
            **{f"{name}_{k}": 3 - (k + i) % 3 for k in range(3)},
        }
        for a, b, c, d, i in trials(shown=3)
    ]
    path = tmp_path / "numbers.csv"
    path.write_text(table(rows))
    assert "1 for the nearest object, or for the farthest" in prepare(load(None, {"source": (str(path),)}, {})).problem


@pytest.mark.parametrize(
    "order",
    [
        lambda n, names: {"shown": json.dumps([names[(k + n) % 3] for k in range(3)])},
        lambda n, names: {"display_order": json.dumps([(k + n) % 3 for k in range(3)])},
        lambda n, names: {f"pos{k}": (k + n) % 3 for k in range(3)},
    ],
)
def test_an_index_beside_the_order_of_each_row_is_asked_about(tmp_path, order):
    rows = [
        {"stim0": b, "stim1": c, "stim2": d, **order(n, (b, c, d)), "odd_idx": i}
        for n, (_, b, c, d, i) in enumerate(trials(shown=3))
    ]
    path = tmp_path / "orders.csv"
    path.write_text(table(rows))
    assert "could say " in prepare(load(None, {"source": (str(path),)}, {})).problem


def test_what_was_not_selected_is_no_second_choice(tmp_path):
    rows = [
        {"target": a, "opt1": b, "opt2": c, "opt3": d, "selected": (b, c, d)[i],
         "unselected": "|".join(name for k, name in enumerate((b, c, d)) if k != i)}
        for a, b, c, d, i in trials(shown=3)
    ]  # fmt: skip
    path = tmp_path / "unselected.csv"
    path.write_text(table(rows))
    assert comparisons(path) == Counter(
        (a, (b, c, d)[i], other) for a, b, c, d, i in trials(shown=3) for k, other in enumerate((b, c, d)) if k != i
    )


def test_a_type_of_trials_is_no_type_of_events(tmp_path):
    path = tmp_path / "type.csv"
    path.write_text(marked(type=lambda n: "main" if n % 4 else "practice"))
    assert comparisons(path) == chosen([trial for n, trial in enumerate(TRIALS) if n % 4])


def test_participants_in_merged_cells_are_asked_about(tmp_path):
    path = tmp_path / "merged.csv"
    path.write_text(marked(participant=lambda n: "" if n % 4 else f"P{n // 4}"))
    assert "is empty in 30 of 40 rows" in prepare(load(None, {"source": (str(path),)}, {})).problem


def test_response_times_of_trials_come_before_those_of_practice(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text(marked(practice_rt=lambda n: 5, rt=lambda n: 1000 + n))
    assert prepare(load(None, {"source": (str(path),)}, {})).settings.input.columns["milliseconds"] == "rt"


def test_a_header_that_is_repeated_is_said_of_columns_with_the_names_of_fields(tmp_path):
    (tmp_path / "two.csv").write_text(2 * "anchor,near,far\na,b,c\nb,c,a\n")
    process = engine("preview", tmp_path / "two.csv", status=None)
    assert "the header is repeated at lines 4" in process.stderr and "anchor!=anchor" in process.stderr


def test_the_best_and_the_worst_by_position_are_no_ratings(tmp_path):
    rows = [
        {"target": a, "item1": b, "item2": c, "item3": d, "most": i + 1, "least": (i + n % 2 + 1) % 3 + 1}
        for n, (a, b, c, d, i) in enumerate(trials(shown=3))
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None)
    offered = options_in(refused.stderr.strip())
    assert "best-worst scaling" in refused.stderr and len(offered) == 2
    for options in offered:
        assert json.loads(engine("preview", tmp_path / "t.csv", "--json", *options).stdout)["comparisons"] == 80


def test_the_first_and_the_last_object_clicked_are_not_both_near(tmp_path):
    rows = [
        {"target": a, "item1": b, "item2": c, "item3": d, "first_click": (b, c, d)[i], "last_click": (b, c, d)[i - 1]}
        for a, b, c, d, i in trials(shown=3)
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    assert "last_click" in engine("preview", tmp_path / "t.csv", status=None).stderr


def test_two_of_three_objects_in_a_cell_are_no_rating(tmp_path):
    rows = [
        {"trial": number, "item1": b, "item2": c, "item3": d, "most_similar_pair": f"{b}+{c}" if i else f"{c}+{d}"}
        for number, (_, b, c, d, i) in enumerate(trials(shown=3))
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None).stderr
    assert "two of the three objects" in refused and "rating" not in refused


def test_a_log_of_eprime_and_an_archive_are_named(tmp_path):
    text = "*** Header Start ***\r\nSubject: 3\r\n*** Header End ***\r\n\tAnchor: cat\r\n\tSlide1.RESP: 1\r\n"
    (tmp_path / "log.txt").write_text(text, encoding="utf-16")
    assert "E-DataAid" in engine("preview", tmp_path / "log.txt", status=None).stderr
    (tmp_path / "a.zip").write_bytes(b"PK")
    assert "unpack it" in engine("preview", tmp_path / "a.zip", status=None).stderr


def test_sides_that_are_none_of_the_columns_are_asked(tmp_path):
    rows = [{"target": a, "left": b, "right": c, "answer": ("up", "down")[i]} for a, b, c, i in trials(shown=2)]
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None)
    codes = re.findall(r"--codes (\S+)", refused.stdout)
    assert {*codes} == {"chosen:up=left,down=right", "chosen:up=right,down=left"}


def test_a_third_object_that_no_position_names_may_be_what_the_others_are_compared_with(tmp_path):
    rows = [{"item1": b, "item2": a, "item3": c, "response": (1, 3)[i]} for a, b, c, i in trials(shown=2)]
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None)
    offered = [line for line in refused.stdout.splitlines() if "report" in line and "--type pick" in line]
    assert len(offered) == 1 and "chosen:1=item1,3=item3" in offered[0]


@pytest.mark.parametrize("form", ["name", "position", "column"])
def test_the_odd_one_of_four_is_refused_with_what_makes_threes_of_it(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    rows = []
    for n, (*four, _, i) in enumerate(trials(shown=4)):
        odd = {"name": four[i], "position": i + 1, "column": f"img{i + 1}"}[form]
        rows.append({"participant": n % 4, **{f"img{at}": name for at, name in enumerate(four, 1)}, "odd": odd})
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None).stderr
    line = refused.partition("in pandas, ")[2].partition(", then stream-engine")[0]
    exec(line, {"table": pandas.read_csv("t.csv"), "pandas": pandas, "itertools": itertools})
    found = json.loads(engine("preview", tmp_path / "threes.csv", "--json").stdout)
    assert "odd_one_out" in found["read_as"] and found["events"] == 120


def test_numbers_on_both_sides_of_zero_are_degrees(tmp_path):
    rows = [
        {"target": a, "left": b, "right": c, "preference": (-1, 1)[i] * (n % 3 + 1)}
        for n, (a, b, c, i) in enumerate(trials(shown=2))
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    assert "by degrees" in engine("preview", tmp_path / "t.csv", status=None).stderr


def test_a_scale_of_six_is_no_answer_with_other_answers(tmp_path):
    rows = [{"target": a, "left": b, "right": c, "answer": n % 6 + 1} for n, (a, b, c, _) in enumerate(trials(shown=2))]
    (tmp_path / "t.csv").write_text(table(rows))
    assert "--where" not in engine("preview", tmp_path / "t.csv", status=None).stderr


def test_a_zero_beside_positions_is_asked(tmp_path):
    rows = [
        {"target": a, "left": b, "right": c, "answer": 0 if n % 9 == 4 else i + 1}
        for n, (a, b, c, i) in enumerate(trials(shown=2))
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None).stderr
    assert "if 0 is no answer" in refused and "answer!=0" in refused
    found = json.loads(engine("preview", tmp_path / "t.csv", "--json", "--where", "answer!=0").stdout)
    assert found["comparisons"] == sum(row["answer"] > 0 for row in rows)


@pytest.mark.parametrize("numbers", [(7, 3), (6.5, 2.25)])
def test_ratings_of_each_of_two_objects_are_no_answers(tmp_path, monkeypatch, numbers):
    monkeypatch.chdir(tmp_path)
    rows = [
        {"target": a, "left": b, "right": c, "sim_left": numbers[i], "sim_right": numbers[1 - i]}
        for a, b, c, i in trials(shown=2)
    ]
    (tmp_path / "t.csv").write_text(table(rows))
    refused = engine("preview", tmp_path / "t.csv", status=None).stderr
    exec(refused.partition("in pandas, ")[2].partition(", then stream-engine")[0], {"table": pandas.read_csv("t.csv")})
    said = pandas.read_csv("answers.csv")["answer"]
    assert [*said] == [row["left"] if row["sim_left"] == numbers[0] else row["right"] for row in rows]


def test_a_line_that_says_what_one_means_is_asked(tmp_path):
    rows = [
        {"target": a, "left": b, "right": c, "choice_left": 1 - i, "choice_right": i} for a, b, c, i in trials(shown=2)
    ]
    (tmp_path / "t.csv").write_text(f"# 1 = rejected, 0 = kept\n{table(rows)}")
    assert "--answer-is farther" in engine("preview", tmp_path / "t.csv", status=None).stderr
