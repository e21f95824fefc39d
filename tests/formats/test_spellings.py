"""Answers that spell the objects shown in another way: what makes them alike is said, and then they are read."""

import os
from collections import Counter
from random import Random

import pytest

from tests.support.readings import comparisons, inferred, saved

ANIMALS = ["Polar Bear", "Sea Lion", "Guinea Pig", "Fruit Fly", "House Cat", "Sun Bear"]
NUMBERS = [f"{number:03}" for number in (1, 2, 3, 10, 11, 12)]
SMALL = ["001", "002", "003", "004", "005"]
SPELLINGS = {  # objects, how they are shown, and how answers spell them
    "capitals": (ANIMALS, str, str.lower),
    "capitals in some rows": (ANIMALS, lambda name: name.upper() if name < "H" else name, str),
    "spaces": (ANIMALS, lambda name: name.replace(" ", "  "), str),
    "no-break spaces": (ANIMALS, str, lambda name: name.replace(" ", "\u00a0") if name > "G" else name),
    "zeros": (NUMBERS, str, lambda name: name.lstrip("0")),
    "zeros of small numbers": (SMALL, str, lambda name: name.lstrip("0")),
    "paths": (ANIMALS, lambda name: f"stimuli/set1/{name}.jpg", str),
    "endings": (ANIMALS, lambda name: f"{name}.png", str),
    "folders": (ANIMALS, lambda name: f"img\\{name}.png", lambda name: f"{name}.png"),
}


def trials(names, n=48):
    random = Random(0)
    return [(f"p{number % 4}", *random.sample(names, 3)) for number in range(n)]


@pytest.mark.parametrize("kind", SPELLINGS)
def test_answers_in_another_spelling_are_said_and_made_alike(tmp_path, monkeypatch, kind):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names, shown, spelt = SPELLINGS[kind]
    rows, said = [], Counter()
    for who, anchor, near, far in trials(names):
        two = [shown(near), shown(far)] if Random(near + far).random() < 0.5 else [shown(far), shown(near)]
        rows.append(
            {"participant": who, "target": shown(anchor), "option1": two[0], "option2": two[1], "choice": spelt(near)}
        )
        said[who, anchor, near, far] += 1
    found = inferred(saved(tmp_path, rows))
    line = found.problem.partition("in pandas: ")[2].partition(", then stream-engine preview alike.csv")[0]
    assert line, found.problem
    os.chdir(tmp_path)
    exec(line, {"pandas": pandas})
    read = comparisons(inferred(tmp_path / "alike.csv").settings)
    plain = Counter()
    for (who, *objects), n in said.items():
        plain[who, *(name.lstrip("0").lower() for name in objects)] += n
    got = Counter()
    for (who, *objects), n in read.items():
        got[who, *(name.removesuffix(".png").lower() for name in objects)] += n
    assert got == plain


def test_files_of_the_same_name_in_two_folders_are_not_made_alike(tmp_path):
    rows = [
        {
            "participant": who,
            "target": f"a/{anchor}.jpg",
            "option1": f"a/{near}.jpg",
            "option2": f"b/{far}.jpg",
            "choice": near,
        }
        for who, anchor, near, far in trials(ANIMALS)
    ]
    assert "alike.csv" not in inferred(saved(tmp_path, rows)).problem


@pytest.mark.parametrize("answer", ["1", "option1", "left"])
def test_other_answers_are_no_spellings(tmp_path, answer):
    rows = [
        {"participant": who, "target": anchor, "option1": near, "option2": far, "choice": answer if at % 2 else "2"}
        for at, (who, anchor, near, far) in enumerate(trials(NUMBERS))
    ]
    assert "alike.csv" not in inferred(saved(tmp_path, rows)).problem
