"""Random events of every type, good and bad in every field, as JSON-like values; many of them, quickly."""

import json
from random import Random
from typing import Any

from tests.support.event_worlds import COLUMNS, LISTS

NAMES = ["a", "b", "c", "d", "e", "é", "5", "a|b", 'q"', "x,y", " a", "l\nf", "", "日本"]
PLAIN_NAMES = ["a", "b", "c", "d", "e", "f", "g"]
ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    7,
    5,
    2**53 + 1,
    -0.0,
    1.5,
    1e100,
    "",
    "5",
    "a|b",
    "x" * 1025,
    "é" * 512,
    [],
    ["a", "b"],
    ["a", None],
    [1, 2.5],
    ["a", ["b"]],
    {"a": 1},
    "nan",
    "2024-05-01T12:00:00Z",
    "2024-05-01",
]
WEIGHTS: list[Any] = [0, 1, 2, 0.5, 1e9, 1e-300, 3.25, -1, -0.5, "1", "", None, True, "x", 2**60, 2e100]
TIMES: list[Any] = [
    0,
    1,
    -3,
    "2024-05-01T12:00:00Z",
    "2024-05-01T12:00:00.5+02:00",
    "2016-12-31T23:59:60Z",
    "1969-12-31T23:59:59Z",
    "2024-05-01",
    "yesterday",
    "",
    None,
    True,
    1_764_288_000_000,
    1e18,
    -1e18,
    -62_135_596_801,
    "9999-12-31T23:59:59+00:00",
]
PAIRS = {"near": ("near_i", "near_j"), "far": ("far_i", "far_j")}
KINDS = ["triplet", "quadruplet", "odd_one_out", "most_central", "pick", "ranking", "label"]


def some_event(rng: Random, odd: float = 0.2) -> dict[str, Any]:
    """An event; with the chance `odd` something of it is as it should not be."""
    kind = rng.choice(KINDS)
    anchor, *rest = rng.sample(PLAIN_NAMES, rng.randint(4, 6))
    if rng.random() < 0.3:
        rest[0] = rng.choice(NAMES)
    if rng.random() < 0.2:
        anchor = rng.randint(0, 9)
    event: dict[str, Any] = {} if kind == "triplet" and rng.random() < 0.6 else {"type": kind}
    if kind == "triplet":
        event |= {"anchor": anchor, "near": rest[0], "far": rest[1]}
    elif kind == "quadruplet":
        event |= {"near": rest[:2], "far": rest[1:3] if rng.random() < 0.3 else [anchor, rest[2]]}
    elif kind in ("odd_one_out", "most_central"):
        event |= {"objects": rest[:3], ("odd" if kind == "odd_one_out" else "central"): rng.choice(rest[:3])}
    elif kind == "pick":
        event |= {"anchor": anchor, "shown": rest, "chosen": rng.sample(rest, rng.randint(1, len(rest) - 1))}
    elif kind == "ranking":
        event |= {"anchor": anchor, "ranked": rest}
    else:
        event |= {"object": anchor, "label": rng.choice([None, "x", "y", 3])}
    if rng.random() < 0.3:
        event["worker"] = rng.choice(["u", "v", 7, "", None])
    if rng.random() < 0.3:
        event["weight"] = rng.choice(WEIGHTS[: 7 if rng.random() > odd else None])
    if rng.random() < 0.3:
        event["time"] = rng.choice(TIMES[: 8 if rng.random() > odd else None])
    if rng.random() < 0.1:
        event["id"] = rng.choice(["x1", 9, "", None])
    if rng.random() < odd:
        spoil(rng, event)
    return event


def spoil(rng: Random, event: dict[str, Any]) -> None:
    """Make one field of an event something else."""
    field = rng.choice(list(event))
    value = event[field]
    how = rng.random()
    if how < 0.2:
        del event[field]
    elif how < 0.4 and isinstance(value, list) and value:
        value = list(value)
        value[rng.randrange(len(value))] = rng.choice(ODD_VALUES)
        event[field] = value
    elif how < 0.5 and isinstance(value, list):
        event[field] = [*value, *value[:1]] if rng.random() < 0.5 else value[:-1]
    elif how < 0.6:
        event[field] = event.get("anchor", "a")
    elif how < 0.7:
        event["type"] = rng.choice(["duel", "", None, 3, *KINDS])
    else:
        event[field] = rng.choice(ODD_VALUES)
    if rng.random() < 0.1:
        event[rng.choice(["rt", "session", "objects", "near_i"])] = rng.choice(ODD_VALUES)


def quoted(cell: str) -> str:
    """A cell of CSV in quotes."""
    return '"' + cell.replace('"', '""') + '"'


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def cells_of(event: dict) -> dict[str, str] | None:
    """The cells of an event; None for what stands in no cell: objects, lists of lists, other lists than the table's."""
    cells = {}
    for key, value in event.items():
        if key not in COLUMNS or isinstance(value, dict):
            return None
        if isinstance(value, list):
            if not all(isinstance(item, (str, int, float, type(None))) for item in value):
                return None
            if event.get("type") == "quadruplet" and key in PAIRS and len(value) == 2:
                cells |= dict(zip(PAIRS[key], map(_text, value), strict=True))
                continue
            if key not in LISTS:
                return None
        cells[key] = "|".join(map(_text, value)) if isinstance(value, list) else _text(value)
    if event.get("type") == "quadruplet" and not {"near_i", "far_i"} <= cells.keys():
        return None
    return cells
