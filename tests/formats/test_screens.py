"""Rows that are comparisons of one screen: found by a column or by what one ranking implies, and held out together."""

import random
import warnings
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

import stream_engine
from stream_engine.__main__ import main
from stream_engine.commands.preview import command
from stream_engine.evaluation import responses
from stream_engine.evaluation.responses import responses_of
from stream_engine.formats.record_columns import records_of
from stream_engine.formats.screens import Comparison, numbers_several_anchors, screens
from stream_engine.report.findings import WARNING
from stream_engine.report.findings.data import read as read_findings
from stream_engine.report.findings.facts import Facts
from stream_engine.state.merging import are_of_screens, are_of_three
from stream_engine.state.store import Store

OBJECTS = [f"o{number:02d}" for number in range(13)]
HEADER = ["anchor", "near", "far", "participant"]


def of_rankings(n_screens, column, shown=7, near=4, seed=3):
    """Rows of random rankings of `shown` objects: those at the first places are nearer than all others."""
    source = random.Random(seed)
    rows = [["udgangspunkt", "tættest", "fjernest", "deltager", *([column] if column else [])]]
    for screen in range(n_screens):
        anchor, *ranked = source.sample(OBJECTS, shown + 1)
        for one in ranked[:near]:
            for other in ranked[near:]:
                rows.append([anchor, one, other, f"k{screen % 4}", *([f"s{screen}"] if column else [])])
    return rows


def saved(folder, rows):
    path = folder / "answers.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


def previewed(path, *options):
    return CliRunner().invoke(command, [str(path), *options]).output


def run(path, *options):
    """The snapshot that a run leaves."""
    state = path.parent / "state"
    assert main(["run", str(path), "--state", str(state), "--no-refits", *options]) == 0
    return Store(state).published().snapshot


def split_units(snapshot):
    """By participant and anchor, the units of the answers."""
    held_out = responses_of(snapshot, 0)
    units: dict[tuple[int, int], set[int]] = {}
    for row, who, unit in zip(held_out.answers.rows, held_out.answers.participant, held_out.answers.response):
        units.setdefault((int(who), int(row[0])), set()).add(int(unit))
    return units


@pytest.mark.parametrize("column", ["skærm", "trial_nr", "экран", ""])
def test_rows_of_one_screen_are_held_out_together(tmp_path, column):
    path = saved(tmp_path, of_rankings(30, column))
    snapshot = run(path)
    assert snapshot.counters["input"]["options"]["columns"]["screen"] == (column or "udgangspunkt")
    units = split_units(snapshot)
    assert all(len(of) == 1 for of in units.values())
    assert len({unit for of in units.values() for unit in of}) == len(units) > 13
    preview = previewed(path)
    assert ("30 screens" if column else "screens, 30 in") in preview and ("screen=-" in preview) == (not column)


def test_screens_that_a_person_denies_are_none(tmp_path):
    snapshot = run(saved(tmp_path, of_rankings(30, "")), "--columns", "screen=-")
    assert len(responses_of(snapshot, 0).draw) > 300


def test_screens_are_named_where_options_say_how_rows_are_read(tmp_path):
    """Nothing is added to options that a person gives, and what is missing is said."""
    options = ["--type", "triplet", "--columns", "anchor=udgangspunkt,near=tættest,far=fjernest,worker=deltager"]
    path = saved(tmp_path, of_rankings(30, "skærm"))
    assert "Add screen=skærm" in previewed(path, *options)
    options[-1] += ",screen=skærm"
    assert "screen=skærm to" not in previewed(path, *options)
    assert all(len(of) == 1 for of in split_units(run(path, *options)).values())


@pytest.mark.parametrize("order", ["by anchor", "shuffled"])
def test_independent_answers_stay_independent(tmp_path, order):
    """All questions about each anchor, one after another, and answers with errors: no ranking implies them."""
    source, rows = random.Random(5), []
    for who in range(4):
        for anchor in OBJECTS[:7]:
            for a in OBJECTS[:7]:
                for b in OBJECTS[:7]:
                    if a < b and anchor not in (a, b):
                        pair = (a, b) if source.random() < 0.9 else (b, a)
                        rows.append([anchor, *pair, f"k{who}"])
    if order == "shuffled":
        source.shuffle(rows)
    snapshot = run(saved(tmp_path, [["reference", "closer", "farther", "who"], *rows]), "--columns", "worker=who")
    assert "screen" not in snapshot.counters["input"]["options"]["columns"]
    assert len(responses_of(snapshot, 0).draw) > 0.9 * len(rows)


@pytest.mark.parametrize(
    "name",
    ["pessoa", "deltagare", "Henkilö", "uczestnik_id", "участник", "被试编号", "参加者", "참가자", "נבדק", "kişi"],
)
def test_participants_are_read_in_many_languages(tmp_path, name):
    source = random.Random(1)
    rows = [["anchor", "left", "right", "answer", name]]
    for number in range(60):
        anchor, a, b = source.sample(OBJECTS, 3)
        rows.append([anchor, a, b, source.choice((a, b)), f"Q{number % 3}"])
    snapshot = run(saved(tmp_path, rows))
    assert np.unique(responses_of(snapshot, 0).participant).tolist() == [0, 1, 2]


def test_picks_of_one_of_two_are_of_screens(tmp_path):
    """A column of screens beside the objects on both sides and the answer."""
    source, rows = random.Random(2), [["reference", "left", "right", "answer", "participant", "screen"]]
    for anchor, near, far, who, screen in of_rankings(20, "screen")[1:]:
        rows.append([anchor, *source.sample([near, far], 2), near, who, screen])
    assert all(len(of) == 1 for of in split_units(run(saved(tmp_path, rows))).values())


@pytest.mark.parametrize("named", [True, False])
def test_numbers_of_trials_of_a_list_that_everybody_answers_are_no_screens(tmp_path, named):
    source = random.Random(4)
    asked = [source.sample(OBJECTS, 3) for _ in range(40)]
    rows = [["reference", "left", "right", "answer", "trial", "participant"]]
    for who in range(6):
        rows += [
            [*question, source.choice(question[1:]), str(n), f"P{who}" if named else ""]
            for n, question in enumerate(asked)
        ]
    rows = rows if named else [row[:-1] for row in rows]
    assert "screen" not in run(saved(tmp_path, rows)).counters["input"]["options"]["columns"]


def test_screens_about_several_objects_are_a_doubt(tmp_path):
    source, rows = random.Random(7), [["anchor", "near", "far", "participant", "screen"]]
    for screen in range(20):
        shown = source.sample(OBJECTS, 5)
        rows += [[*source.sample(shown, 3), f"k{screen % 4}", str(screen)] for _ in range(6)]
    assert "rows with the same screen are about several objects" in previewed(saved(tmp_path, rows))


def test_screens_are_known_to_a_study_and_to_a_sum(tmp_path):
    path = saved(tmp_path, of_rankings(30, "screen"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = stream_engine.read(str(path))
    assert are_of_screens(study.published.snapshot.counters)
    (tmp_path / "other").mkdir()
    run(path)
    run(saved(tmp_path / "other", of_rankings(9, "", seed=8)), "--columns", "screen=-")
    folders = [str(tmp_path / "state"), str(tmp_path / "other" / "state")]
    assert main(["merge", *folders, "--out", str(tmp_path / "sum")]) == 0
    snapshot = Store(tmp_path / "sum").published().snapshot
    assert are_of_screens(snapshot.counters) and all(len(of) == 1 for of in split_units(snapshot).values())


def test_screens_of_nobody_are_together_by_anchor_unless_these_are_too_many(tmp_path, monkeypatch):
    path = saved(tmp_path, [[*row[:3], *row[4:]] for row in of_rankings(30, "screen")])
    snapshot = run(path)
    assert len(responses_of(snapshot, 0).draw) <= len(OBJECTS)
    monkeypatch.setattr(responses, "MAX_ANSWERS_OF_ANCHOR", 360 / len(OBJECTS) - 1)
    assert len(responses_of(snapshot, 0).draw) > 300
    told = {each.what: each for each in read_findings(Facts(Store(tmp_path / "state").published()))}
    assert told["screens"].level == WARNING


def judged(kind, noise, shown=3, seed=1, n_participants=20, n_blocks=20):
    """Blocks of rows about objects with places on a line: one answer of each (`choice`, `ranking`, `odd`), or each row
    answered by itself (`pairs`: all of the shown ones; `standard`: one with each other; `twice`: about two anchors)."""
    source = random.Random(seed)
    place = {name: source.gauss(0, 1) for name in OBJECTS}

    def nearer(anchor, *names):
        return sorted(names, key=lambda name: abs(place[anchor] - place[name]) + source.gauss(0, noise))

    def rows_of(anchor, *names):
        ranked = nearer(anchor, *names)
        match kind:
            case "choice":
                return [(anchor, ranked[0], far) for far in ranked[1:]]
            case "ranking":
                return [(anchor, *pair) for pair in combinations(ranked, 2)]
            case "odd":
                one, other, odd = nearer(anchor, anchor, *names[:2])
                return [(one, other, odd), (other, one, odd)]
            case "central":
                central, one, other = nearer(anchor, anchor, *names[:2])
                return [(one, central, other), (other, central, one)]
            case "pairs":
                return [(anchor, *nearer(anchor, *pair)) for pair in combinations(names, 2)]
            case "standard":
                return [(anchor, *nearer(anchor, names[0], far)) for far in names[1:]]
        return [(anchor, *nearer(anchor, *names[:2])), (names[0], *nearer(names[0], anchor, names[1]))]

    rows = [[*HEADER, "page"]]
    for block in range(n_participants * n_blocks):
        answers = rows_of(*source.sample(OBJECTS, shown + 1))
        rows += [[*answer, f"k{block // n_blocks}", f"b{block}"] for answer in answers]
    return rows


def screens_of(rows, column="", far="far"):
    """What is found in rows whose blocks a column numbers, or none."""
    comparisons = [Comparison(row[3], *row[:3]) for row in rows[1:]]
    columns = {column: [row[4] for row in rows[1:]]} if column else {"nr": [str(n) for n in range(len(comparisons))]}
    return screens(records_of(columns), comparisons, (), "anchor", far)


@pytest.mark.parametrize("column", ["", "ronda"])
@pytest.mark.parametrize(
    ("kind", "shown"), [("choice", 3), ("choice", 5), ("choice", 8), ("ranking", 4), ("odd", 3), ("central", 3)]
)
def test_blocks_of_one_answer_each_are_screens_though_their_anchors_repeat(kind, shown, column):
    found = screens_of(judged(kind, 0.3, shown), column)
    assert found.n_screens == 400 and found.are_certain
    assert found.column == ("far" if kind in ("odd", "central") else column or "anchor")


def test_answers_on_one_page_that_contradict_each_other_are_no_screens():
    assert screens_of(judged("ranking", 0.3), "page").is_called_so
    assert screens_of(judged("pairs", 0.5, 4), "page") is None


@pytest.mark.parametrize("column", ["", "pagina"])
@pytest.mark.parametrize("kind", ["pairs", "standard", "twice"])
@pytest.mark.parametrize("noise", [0.1, 0.3, 1.0])
def test_blocks_of_independent_answers_are_no_screens(kind, noise, column):
    assert screens_of(judged(kind, noise), column) is None


@pytest.mark.parametrize("kind", ["ranking", "pairs"])
def test_where_answers_are_without_errors_it_is_asked_whether_they_are_of_screens(tmp_path, kind):
    rows = [row[:4] for row in judged(kind, 0.0, n_blocks=10)]
    assert not screens_of(rows).are_certain
    shown = previewed(saved(tmp_path, rows))
    assert "rows may be comparisons of screens, 200 in the" in shown and "screen=-" in shown


def test_screens_of_several_sizes_are_told_from_each_other():
    rows = [HEADER]
    for size in (3, 4, 5, 6):
        rows += [row[:4] for row in judged("choice", 0.3, size, seed=size, n_participants=5)[1:]]
    assert 390 <= screens_of(rows).n_screens <= 400


def test_a_column_that_names_what_was_chosen_numbers_no_screens():
    """One participant: rows with the same answer are all that one choice implies, by construction."""
    rows = [[anchor, *pair, "k"] for anchor in OBJECTS for pair in combinations(OBJECTS, 2) if anchor not in pair]
    random.Random(3).shuffle(rows)
    rows = [[*row, f"{row[1]}.png"] for row in rows]
    assert screens_of([HEADER, *rows], "file") is None
    assert screens_of([HEADER, *[[*row[:4], f"{row[0]}-{row[1]}"] for row in rows]], "file") is None


def test_two_rows_of_one_odd_one_out_answer_are_held_out_together(tmp_path):
    path = saved(tmp_path, [row[:4] for row in judged("odd", 0.3)])
    assert "about the same three objects are held out together" in previewed(path)
    held_out = responses_of(run(path), 0).answers
    units: dict[tuple, set[int]] = {}
    for row, who, unit in zip(held_out.rows.tolist(), held_out.participant.tolist(), held_out.response.tolist()):
        units.setdefault((who, *sorted({*row})), set()).add(unit)
    assert all(len(of) == 1 for of in units.values()) and len(units) > 300
    told = {each.what: each for each in read_findings(Facts(Store(tmp_path / "state").published()))}
    assert "three objects" in told["screens"].text


def test_a_sum_of_states_of_odd_one_out_answers_holds_three_objects_together(tmp_path):
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        run(saved(tmp_path / str(number), [row[:4] for row in judged("odd", 0.3, seed=number)]))
    folders = [str(tmp_path / str(number) / "state") for number in range(2)]
    assert main(["merge", *folders, "--out", str(tmp_path / "sum")]) == 0
    snapshot = Store(tmp_path / "sum").published().snapshot
    assert are_of_screens(snapshot.counters) and are_of_three(snapshot.counters)
    held_out = responses_of(snapshot, 0)
    assert len(held_out.draw) <= len(held_out.answers.rows) / 2


def test_a_column_that_is_the_same_in_all_rows_numbers_no_screens():
    rows = [Comparison(f"p{row // 9}", f"a{row % 7}", "x", "y") for row in range(90)]
    assert not numbers_several_anchors(records_of({"display": ["trial"] * 90}), rows, ())
