"""Answers in columns of their own: pairs that are called nearer and farther, a column for each rater, counts."""

import random
from collections import Counter

import pytest

from stream_engine.formats.reading import in_doubt
from tests.support.readings import comparisons, inferred, saved

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx"]
PAIRS = [
    ("near_a", "near_b", "far_a", "far_b"),
    ("near_i", "near_j", "far_i", "far_j"),
    ("similar1", "similar2", "dissimilar1", "dissimilar2"),
]


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("farther_first", [False, True])
def test_pairs_that_are_called_nearer_and_farther_are_quadruplets(tmp_path, names, farther_first):
    draw, rows, meant = random.Random(3), [], Counter()
    order = (*names[2:], *names[:2]) if farther_first else names
    for number in range(48):
        four = dict(zip(names, draw.sample(OBJECTS, 4)))
        rows.append({"participant": f"P{number // 12}", **{name: four[name] for name in order}})
        meant[f"P{number // 12}", *four.values()] += 1
    prepared = inferred(saved(tmp_path, rows))
    assert not prepared.problem and not in_doubt(prepared.evidence)
    assert comparisons(prepared.settings) == meant


def test_several_objects_beside_an_anchor_are_no_pairs(tmp_path):
    draw, names = random.Random(3), ("target", "near_1", "near_2", "far_1", "far_2")
    prepared = inferred(saved(tmp_path, [dict(zip(names, draw.sample(OBJECTS, 5))) for _ in range(48)]))
    assert prepared.settings.input.type_ != "quadruplet"


RATERS = {
    "odd_rater1": ("rater1", "odd_rater2", "odd_rater3"),
    "S01_odd": ("S01", "S02_odd", "S03_odd"),
    "oddAnnotator1": ("Annotator1", "oddAnnotator2", "oddAnnotator3"),
}


def rated(names, n=40):
    """Triads with the odd one of each rater in a column, and what each says."""
    draw, rows = random.Random(4), []
    for _ in range(n):
        three = draw.sample(OBJECTS, 3)
        usual = draw.choice(three)
        rows.append(dict(zip("abc", three)))
        rows[-1] |= {name: usual if draw.random() < 0.7 else draw.choice(three) for name in names}
    return rows


@pytest.mark.parametrize("first", RATERS)
def test_columns_of_raters_are_participants(tmp_path, first):
    names = (first, *RATERS[first][1:])
    rows, meant = rated(names), Counter()
    for row in rows:
        for name in names:
            one, other = (row[place] for place in "abc" if row[place] != row[name])
            meant.update([(one, other, row[name]), (other, one, row[name])])
    found = comparisons(inferred(saved(tmp_path, rows)).settings)
    assert sum(found.values()) == 2 * 3 * len(rows) and len({who for who, *_ in found}) == 3
    without_names = Counter()
    for (_, *answer), n in found.items():
        without_names[tuple(answer)] += n
    assert without_names == meant


def test_columns_that_may_be_of_people_or_of_times_are_asked_about(tmp_path):
    problem = inferred(saved(tmp_path, rated(("odd1", "odd2")))).problem
    assert "odd1, odd2" in problem and "odd=odd{participant},participant={participant}" in problem


def test_first_and_second_choices_are_of_one_person(tmp_path):
    draw, names = random.Random(3), ("target", "o1", "o2", "o3", "choice1", "choice2")
    five = [draw.sample(OBJECTS, 4) for _ in range(40)]
    rows = [dict(zip(names, [*four, *draw.sample(four[1:], 2)])) for four in five]
    assert "participant" not in str(inferred(saved(tmp_path, rows)).settings.input.columns)


def counted(numbers, n=40, **further):
    """Different triplets with a number each, beside what `further` says."""
    draw, rows = random.Random(7), {}
    while len(rows) < n:
        rows.setdefault(tuple(draw.sample(OBJECTS, 3)), draw.choice(numbers))
    return [{**further, **dict(zip(("anchor", "near", "far"), names)), "n": n} for names, n in rows.items()]


@pytest.mark.parametrize("name", ["n", "count", "Frequency", "n_votes"])
def test_answers_that_were_counted_count_so_often(tmp_path, name):
    rows = [{**row, name: row["n"]} for row in counted([1, 2, 3, 8])]
    rows = [{key: cell for key, cell in row.items() if key in ("anchor", "near", "far", name)} for row in rows]
    meant = {(row["anchor"], row["near"], row["far"]): row[name] for row in rows}
    found = comparisons(inferred(saved(tmp_path, rows)).settings)
    assert {answer: n for (_, *answer), n in found.items() for answer in [tuple(answer)]} == meant


def test_numbers_of_trials_and_of_one_answer_each_are_no_counts(tmp_path):
    for rows in (counted([1]), [{**row, "n": place + 1} for place, row in enumerate(counted([1]))]):
        assert comparisons(inferred(saved(tmp_path, rows)).settings).total() == len(rows)


def test_counted_picks_are_to_be_written_out(tmp_path):
    rows = [
        {"target": row["anchor"], "o1": row["near"], "o2": row["far"], "choice": row["near"], "count": row["n"]}
        for row in counted([1, 2, 3, 8])
    ]
    problem = inferred(saved(tmp_path, rows)).problem
    assert "index.repeat(table['count'])" in problem and "--type pick" in problem
    people = [{"participant": f"P{place // 10}", **row} for place, row in enumerate(rows)]
    prepared = inferred(saved(tmp_path, people))
    assert not prepared.problem and "index.repeat" in " ".join(in_doubt(prepared.evidence))
