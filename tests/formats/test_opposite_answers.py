"""Participants, or rows of a file, with opposite answers, and those who change half-way."""

import random
from math import dist

import numpy as np
import pytest
from click.testing import CliRunner

from stream_engine.commands.preview import command
from stream_engine.formats.opposite_answers import LIKELY, _change, opposite_answers

OBJECTS = [f"o{number}" for number in range(10)]


def judged(seed, reverses=lambda who, trial: False, n_people=20, n_trials=60, is_named=True, view="one"):
    """Answers of people about points on a plane with errors; some of them are reversed."""
    source = random.Random(seed)
    places = {name: (source.gauss(0, 1), source.gauss(0, 1)) for name in OBJECTS}
    own = [{name: (source.gauss(0, 1), source.gauss(0, 1)) for name in OBJECTS} for _ in range(n_people)]
    answers = []
    for who in range(n_people):
        for trial in range(n_trials):
            anchor, one, other = source.sample(OBJECTS, 3)
            at = own[who] if view == "own" or (view == "some own" and who % 3 == 0) else places
            is_one = dist(at[anchor], at[one]) + source.gauss(0, 0.5) < dist(at[anchor], at[other])
            is_one = source.random() < 0.5 if view == "chance" else is_one
            pair = (one, other) if is_one != reverses(who, trial) else (other, one)
            answers.append((f"p{who:02d}" if is_named else "", [(anchor, *pair)]))
    return answers


@pytest.mark.parametrize("view", ["one", "own", "some own", "chance"])
def test_nothing_is_said_of_answers_that_nobody_reversed(view):
    assert [opposite_answers(judged(seed, view=view)) for seed in range(10)] == [[]] * 10


@pytest.mark.parametrize(("every", "n_opposite"), [(2, 10), (3, 7), (5, 4)])
def test_participants_with_reversed_answers_are_named(every, n_opposite):
    (text,) = opposite_answers(judged(1, lambda who, trial: who % every == 0))
    assert f"({n_opposite} of 20)" in text and ("do not tell which" in text) == (every == 2)
    names = {f"p{who:02d}" for who in range(0, 20, every)}
    named = {word.strip(",") for word in text.split() if word.startswith("p")} & {f"p{who:02d}" for who in range(20)}
    assert named == names or (every == 2 and not named & names)


def test_participants_who_reverse_half_way_are_named_with_the_answer():
    (text,) = opposite_answers(judged(2, lambda who, trial: who in (3, 8) and trial >= 30))
    assert text.startswith("p03 (the other way round from about answer ") and "p08" in text and "2 of 20" in text
    assert all(25 <= int(part.split()[0]) <= 36 for part in text.split("about answer ")[1:])


def test_the_answer_from_or_until_which_it_is_so_is_the_first_or_last_of_these():
    agreement = np.repeat([1.0, -1.0], [34, 26])
    assert _change(agreement, LIKELY) == ("the other way round from", 35, 60)
    assert _change(-agreement, LIKELY) == ("the other way round until", 34, 60)


def test_a_part_of_a_file_without_participants_is_named():
    (text,) = opposite_answers(judged(3, lambda who, trial: who >= 14, is_named=False))
    assert text.startswith("answers 841 to 960, ") and "(3 of 10)" in text


def test_rows_of_one_ranking_count_once():
    """Answers about one anchor, one after another, may all agree or all disagree."""
    answers = [answer for answer in judged(1, lambda who, trial: who == 3, n_trials=30) for _ in range(6)]
    assert not opposite_answers(answers, by_anchor=True) and opposite_answers(answers)


@pytest.mark.parametrize("header", ["participant,anchor,near,far", "participant,anchor,left,right,chosen"])
def test_preview_names_those_whose_answers_are_reversed(tmp_path, header):
    rows = []
    for who, [(anchor, near, far)] in judged(4, lambda who, trial: who % 4 == 0):
        shown = sorted((near, far))
        rows.append(",".join([who, anchor, near, far] if "near" in header else [who, anchor, *shown, near]))
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    shown = CliRunner().invoke(command, [str(tmp_path / "a.csv")]).output
    assert "p00, p04, p08, p12, p16 (5 of 20) answer the other way round" in shown
