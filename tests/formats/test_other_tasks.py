"""Tables of other tasks: which one it is, and that what is offered reads the file."""

import random
import re
import shlex
import subprocess
import sys

import pandas
import pytest
from click.testing import CliRunner

from stream_engine.commands.preview import command
from stream_engine.input.settings import BadSettings

OBJECTS = ["dog", "cat", "wolf", "horse", "cow", "mouse", "eagle", "trout"]


def rows_of(kind, seed=2):
    source = random.Random(seed)
    people = [(f"p{who}", trial) for who in range(8) for trial in range(10)]
    shown = [(who, *source.sample(OBJECTS, 4)) for who, _ in people]
    ranked = [
        (who, a, dict(zip(source.sample([o for o in OBJECTS if o != a], 7), range(1, 8)))) for who, a, *_ in shown
    ]
    halves = [(f"{a} - {b}", f"{c} - {d}") for _, a, b, c, d in shown]
    return {
        "piles": [("who", "object", "pile"), *((f"p{n}", o, source.randint(1, 3)) for n in range(9) for o in OBJECTS)],
        "haufen": [("vp", "wort", "Stapel"), *((f"p{n}", o, source.choice("AB")) for n in range(9) for o in OBJECTS)],
        "wide piles": [("who", *OBJECTS), *((f"p{n}", *source.choices("123", k=len(OBJECTS))) for n in range(9))],
        "mouse": [("who", "t", "mouse_x", "mouse_y"), *(("p", n, n * 7 % 99, n * 13 % 89) for n in range(99))],
        "slider": [("who", "a", "b", "slider"), *((who, a, b, source.randint(0, 100)) for who, a, b, *_ in shown)],
        "rated": [("who", "pair", "rating"), *((who, f"{a} - {b}", source.randint(1, 9)) for who, a, b, *_ in shown)],
        "by degrees": [
            ("who", "anchor", "left", "right", "slider"),
            *((*each[:4], source.randint(-50, 50)) for each in shown),
        ],
        "pairs": [
            ("who", "pair_1", "pair_2", "more_similar"),
            *((each[0], *pair, source.choice(pair)) for each, pair in zip(shown, halves)),
        ],
        "options": [
            ("who", "anchor", "options", "choice"),
            *((who, a, f"{b} / {c}", source.choice((b, c))) for who, a, b, c, _ in shown),
        ],
        "loop": [
            ("id", *(f"{n}_Q2_{side}" for n in range(1, 21) for side in (1, 2))),
            *((f"R_{n}", *source.choices(("1", "2", ""), k=40)) for n in range(9)),
        ],
        "loop of names": [
            ("id", *(f"{n}_Q2" for n in range(1, 21))),
            *((f"R_{n}", *source.choices(OBJECTS, k=20)) for n in range(9)),
        ],
        "ranks": [
            ("who", "anchor", *(f"rank_{name}" for name in OBJECTS)),
            *((who, anchor, *(ranks.get(name, "") for name in OBJECTS)) for who, anchor, ranks in ranked),
        ],
        "ranks alone": [
            ("who", *(f"{name}_rank" for name in OBJECTS)),
            *((f"p{n}", *source.sample(range(1, 9), 8)) for n in range(20)),
        ],
    }[kind]


@pytest.mark.parametrize(
    ("kind", "fact"),
    [
        ("piles", "object, pile look like piles"),
        ("haufen", "wort, Stapel look like piles"),
        ("wide piles", "piles of a sorting task"),
        ("mouse", "positions on a screen"),
        ("slider", "slider holds a number for each pair"),
        ("rated", "two objects in a cell .* ratings"),
        ("by degrees", "slider holds numbers from -50 to 49"),
        ("pairs", "pair_1, pair_2, more_similar hold two objects in a cell"),
        ("options", "options holds two objects in a cell"),
        ("loop", "a loop of a survey"),
        ("loop of names", "1_Q2, 2_Q2, ... repeat one question 20 times"),
        ("ranks", "hold the rank of an object each"),
        ("ranks alone", "no column what they were compared with"),
    ],
)
def test_another_task_is_named_with_what_to_do(tmp_path, kind, fact):
    says = refusal(tmp_path, rows_of(kind))
    assert re.search(fact, says) and says.count("next: ") == 1, says


def refusal(folder, rows, *options):
    pandas.DataFrame(rows[1:], columns=rows[0]).to_csv(folder / "t.csv", index=False)
    result = CliRunner().invoke(command, [str(folder / "t.csv"), *options])
    assert isinstance(result.exception, BadSettings), result.output
    return str(result.exception)


def reshaped(folder, says):
    """Run the line that is offered."""
    line = re.search(r"in pandas: (.*), then", says)[1]
    code = f"import pandas; table = pandas.read_csv('t.csv'); {line}"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


def test_a_rank_for_each_object_is_reshaped_into_rankings(tmp_path):
    rows = rows_of("ranks")
    says = refusal(tmp_path, rows)
    reshaped(tmp_path, says)
    options = shlex.split(re.search(r"--type ranking.*", says)[0])
    shown = CliRunner().invoke(command, [str(tmp_path / "ranked.csv"), *options]).output
    assert f"{len(rows[1:]) * 21:,} comparisons" in shown  # all pairs of 7
    nearest = dict(zip(rows[1][2:], OBJECTS))
    assert f"{rows[1][1]} is more like {nearest[1]} than like {nearest[2]}" in shown


def test_degrees_of_a_side_and_pairs_in_cells_are_read_as_is_offered(tmp_path):
    reshaped(tmp_path, refusal(tmp_path, rows_of("by degrees")))
    shown = CliRunner().invoke(command, [str(tmp_path / "answers.csv")]).output
    assert re.search(r"(7\d|80) comparisons", shown)
    reshaped(tmp_path, refusal(tmp_path, rows_of("options")))
    assert "80 comparisons" in CliRunner().invoke(command, [str(tmp_path / "answers.csv")]).output
