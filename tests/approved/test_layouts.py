"""What is said of tables that can be read in two ways, hold doubtful rows, or are of another task."""

import random
from collections.abc import Callable

from stream_engine.formats.reading import in_doubt
from tests.support.approved import sentences, unchanging
from tests.support.readings import inferred

OBJECTS = ["otter", "weasel", "heron", "magpie", "gecko", "newt", "bison", "tapir", "lynx", "vole"]
DRAW = random.Random(3)
TRIALS = [(*DRAW.sample(OBJECTS, 5), number * 7 % 5 % 2) for number in range(40)]  # five objects and a side
Rows = list[dict[str, object]]


def rows(of: Callable, people: str = "who") -> Rows:
    """A row of each trial: who, and what `of(number, a, b, c, d, side)` makes of it."""
    return [{people: f"p{n // 9}"} | of(n, a, b, c, d, side) for n, (a, b, c, d, _, side) in enumerate(TRIALS)]


def picks(**columns: Callable) -> Rows:
    """Picks of one of two by name, with further columns: functions of the number of a row."""
    return rows(
        lambda n, a, b, c, d, side: (
            {name: of(n) for name, of in columns.items()} | {"ref": a, "a": b, "b": c, "answer": (b, c)[side]}
        )
    )


def changed(made: Rows, *places: tuple[int, str, object]) -> Rows:
    """Rows, some of whose cells are others."""
    for number, name, value in places:
        made[number][name] = value
    return made


def each(of: Callable) -> Rows:
    """A row for each object of a trial."""
    return [
        {"who": f"p{n // 9}", "trial": n, "target": a, "item": name} | of(place, side)
        for n, (a, b, c, d, _, side) in enumerate(TRIALS)
        for place, name in enumerate((b, c, d))
    ]


def piles(n: int = 9) -> Rows:
    return [{"who": f"p{who}", "object": name, "pile": (who * 3 + at * at) % 4} for who in range(n)
            for at, name in enumerate(OBJECTS)]  # fmt: skip


TABLES = {
    "keys": lambda: rows(lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "key": "xm"[i]}),
    "keys, explained": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "key": "xm"[i], "key_for_left": "x"}
    ),
    "positions": lambda: rows(lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "choice": i + 1}),
    "positions, and where": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "optA": b, "optB": c, "on_left": (b, c)[n % 2], "response": i}
    ),
    "positions, or none": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "choice": 9 if n % 13 == 5 else i + 1}
    ),
    "signs of two questions": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "task": ("sim", "diff")[n % 3 // 2],
                                  "choice": (b, c)[i]}),
    "two questions": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c,
                                  "task": ("Which is more similar?", "Which is less similar?")[n % 3 // 2],
                                  "choice": (b, c)[i]}),
    "the farther one": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "most different": (b, c)[i]}
    ),
    "a slider": lambda: rows(lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "slider": 7 * i - n % 9}),
    "a slider of pairs": lambda: rows(lambda n, a, b, c, d, i: {"first": a, "second": b, "slider": n * 37 % 101}),
    "ratings of pairs": lambda: rows(lambda n, a, b, c, d, i: {"pair": f"{a} - {b}", "rating": n * 5 % 9 + 1}),
    "pairs in cells": lambda: rows(
        lambda n, a, b, c, d, i: {"pair_1": f"{a} - {b}", "pair_2": f"{c} - {d}",
                                  "more_similar": (f"{a} - {b}", f"{c} - {d}")[i]}),
    "right and wrong": lambda: rows(lambda n, a, b, c, d, i: {"sample": a, "match": b, "foil": c, "correct": "10"[i]}),
    "no answer": lambda: rows(lambda n, a, b, c, d, i: {"sample": a, "match": b, "foil": c}),
    "names in another form": lambda: rows(
        lambda n, a, b, c, d, i: {"target": f"s/{a}", "left": f"s/{b}", "right": f"s/{c}", "choice": (b, c)[i]}
    ),
    "answers that were not shown": lambda: changed(
        picks(), *((n, "answer", "yak" if n % 2 else "eel") for n in range(2, 35, 3))
    ),
    "best and worst": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "item1": b, "item2": c, "item3": d, "most_similar": (b, c, d)[i],
                                  "least_similar": (b, c, d)[i - 1]}),
    "two answers": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "optionA": b, "optionB": c, "choice1": (b, c)[i],
                                  "choice2": (b, c)[n % 2]}),
    "ratings beside answers": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "choice": (b, c)[i], "similarity": n % 7 + 1}
    ),
    "two ratings": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "rating_left": n % 7, "rating_right": n % 5}
    ),
    "how sure": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c,
                                  "choice": ("left", "right")[i] + (" sure", " unsure")[n % 2]}),
    "a scale of two sides": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "left": b, "right": c, "choice": (1, 2, 4, 5)[2 * i + n % 2]}
    ),
    "ranks in rows": lambda: each(lambda place, side: {"rank": (place + side) % 3 + 1}),
    "flags in rows": lambda: each(lambda place, side: {"chosen": int(place == side)}),
    "ranks of objects": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "o1": b, "o2": c, "o3": d, "r1": i + 1, "r2": 2 - i, "r3": 3}
    ),
    "an order": lambda: rows(
        lambda n, a, b, c, d, i: {"target": a, "most_similar": b, "second": c, "least_similar": d}
    ),
    "an order in a cell": lambda: rows(lambda n, a, b, c, d, i: {"target": a, "ranking": f"{b};{c};{d}"}),
    "odd ones": lambda: rows(lambda n, a, b, c, d, i: {"i1": a, "i2": b, "i3": c, "odd": (a, b, c)[(i + n) % 3]}),
    "odd ones by number": lambda: rows(lambda n, a, b, c, d, i: {"i1": a, "i2": b, "i3": c, "odd": (i + n) % 3}),
    "odd ones of four": lambda: rows(
        lambda n, a, b, c, d, i: {"i1": a, "i2": b, "i3": c, "i4": d, "odd": (a, b, c, d)[(i + n) % 4]}
    ),
    "two pairs": lambda: rows(
        lambda n, a, b, c, d, i: {"left_1": a, "left_2": b, "right_1": c, "right_2": d,
                                  "response": ("left", "right")[i]}
    ),
    "two of three": lambda: rows(
        lambda n, a, b, c, d, i: {"one": a, "two": b, "three": c, "pair": f"{a}, {(b, c)[i]}"}
    ),
    "piles": piles,
    "the mouse": lambda: [{"who": "p", "t": n, "mouse_x": n * 7 % 99, "mouse_y": n * 13 % 89} for n in range(99)],
    "counts": lambda: [
        {"anchor": a, "left": b, "right": c, "n_left": n % 4, "n_right": 3 - n % 3}
        for n, (a, b, c, *_) in enumerate(TRIALS)
    ],
    "raters": lambda: [
        {"anchor": a, "left": b, "right": c, "rater_1": (b, c)[i], "rater_2": (b, c)[n % 2], "rater_3": b}
        for n, (a, b, c, _, _, i) in enumerate(TRIALS)
    ],
    "practice": lambda: picks(phase=lambda n: "practice" if n % 9 == 2 else "main"),
    "trials below zero": lambda: picks(trial=lambda n: n % 9 - 2),
    "who tried the study": lambda: changed(picks(), *((n, "who", "test") for n in range(30, 35))),
    "machines": lambda: picks(source=lambda n: "LLM" if n % 8 == 3 else "prolific"),
    "spellings": lambda: changed(picks(), *((n, "who", f"P{n // 9} ") for n in range(4, 40, 11))),
    "a person in each row": lambda: changed(picks(), *((n, "who", f"x{n}") for n in range(40))),
    "errors of a spreadsheet": lambda: changed(picks(), (4, "ref", "#REF!"), (7, "a", "#N/A"), (9, "answer", "#NAME?")),
    "dates": lambda: [
        {name: "1-Mar" if cell == "otter" else cell for name, cell in row.items()} for row in picks()
    ],
    "copies": lambda: (made := picks(at=lambda n: f"2024-05-01 10:{n:02d}:00")) + made[3:9],
    "exports that overlap": lambda: (made := picks(file=lambda n: "monday", at=lambda n: f"2024-05-01 10:{n:02d}:00"))
    + [row | {"file": "friday"} for row in made[5:16]],
    "empty cells": lambda: changed(picks(), (7, "answer", ""), (9, "answer", ""), (12, "ref", "")),
    "an object once": lambda: changed(picks(), (7, "a", "Notes: lab was cold")),
    "a summary": lambda: [*picks(), {"who": "Total", "ref": "40", "a": "40", "b": "40", "answer": "40"}],
    "a header again": lambda: [*picks()[:20], {name: name for name in picks()[0]}, *picks()[20:]],
    "numbers that begin again": lambda: [
        row | {"who": str(n // 5 % 4), "site": ("Gent", "Bonn")[n // 20], "trial": n % 5 + 1}
        for n, row in enumerate(picks())
    ],
    "seconds": lambda: picks(rt=lambda n: 0.4 + n * 7 % 11 / 10),
    "milliseconds": lambda: picks(rt=lambda n: 400 + n * 77 % 1100),
    "too late": lambda: picks(timed_out=lambda n: "true" if n % 9 == 2 else "false"),
    "versions": lambda: rows(
        lambda n, a, b, c, d, i: {"version": "AB"[n // 9 % 2], "target": a, "left": b, "right": c,
                                  "choice": "fj"[i ^ (n // 9 % 2)]}),
    "a bar of choices": lambda: rows(
        lambda n, a, b, c, d, i: {"anchor": a, "options": f"{b} / {c}", "choice": (b, c)[i]}
    ),
    "a wide survey": lambda: [
        {"id": f"R_{n}"} | {f"{at}_Q2_{side}": "12"[(n + at) % 2] for at in range(1, 8) for side in (1, 2)}
        for n in range(9)
    ],
}  # fmt: skip


def test_tables(tmp_path, approved):
    lines = []
    for name, made in TABLES.items():
        table = made()
        path = tmp_path / "t.csv"
        cells = [[*table[0]], *([row.get(head, "") for head in table[0]] for row in table)]
        path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in cells))
        found = inferred(path)
        lines += [f"## {name}", *sentences(found.problem or found.line)]
        lines += [
            f"  {each.topic}: {each.choice}: {each.why}{' (?)' * bool(in_doubt([each]))}" for each in found.evidence
        ]
    assert unchanging("\n".join(lines).replace(str(tmp_path), "FOLDER")) == approved
