"""Rows of a table that are one screen: one ranking, or one pick of several, written as a row for each comparison.

Such rows depend on each other, so they are held out together (`evaluation.responses`). What tells them is a column
called like screens or trials whose values are each about one anchor; or rows that one ranking, or one choice of
several, implies, whether they stand one after another or a column of any name has a value for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import SCREENS

MIN_ROWS_EACH = 2.0  # rows of a screen on average, from which a column of screens says that rows depend on each other
MIN_DIFFERENT = 0.9  # share of the rows of a column of screens that ask another question than others of their screen
MIN_IMPLIED = 0.9  # share of the rows in screens that one ranking implies
# Comparisons that follow from others of their screen, if one ranking implies all, or that name the same object as
# others, if it was chosen of several: independent answers, of which one in ten is wrong, contradict at least one of so
# many with a probability of .99.
MIN_REDUNDANT = 60


class Comparison(NamedTuple):
    """What a row says: a participant, and which of two objects is nearer to an anchor."""

    who: str | None
    anchor: str
    near: str
    far: str


class Screens(NamedTuple):
    """The column whose values are of one screen each, or that of the anchor; whether a column is called so."""

    column: str
    is_called_so: bool
    n_screens: int


def screens(records: Records, rows: Sequence[Comparison | None], used: Iterable[str], anchor: str) -> Screens | None:
    """The column of screens of these records, `rows` by row; None where nothing says that rows depend on each other.
    `used`: columns that have other roles; `anchor`: the column of the anchors. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = [Comparison("p", f"a{row // 4}", f"n{row % 2}", f"f{row // 2 % 2}") for row in range(40)]
    >>> screens(records_of({"page_nr": [str(row // 4) for row in range(40)]}), rows, (), "a").column
    'page_nr'
    >>> print(screens(records_of({"nr": [str(row) for row in range(40)]}), rows, (), "a"))
    None
    """
    if sum(row is None for row in rows) > (1 - MIN_IMPLIED) * len(rows) or not rows:
        return None
    taken = {*used}
    for name, column in records.columns.items():
        is_called_so = name not in taken and SCREENS & set(column.words) and not set(name) & set(",|=")
        if is_called_so and (n_screens := _of_one_anchor(column, rows)):
            return Screens(name, True, n_screens)
    runs = (list(run) for _, run in groupby(rows, key=lambda row: row and (row.who, row.anchor)))
    if n_screens := _implied_by_rankings(runs, len(rows)):
        return Screens(anchor, False, n_screens)
    for name, column in records.columns.items():
        if name in taken or set(name) & set(",|=") or MIN_ROWS_EACH * len(column.distinct) > len(rows):
            continue
        groups: dict[tuple, list[Comparison | None]] = {}
        for text, row in zip(column.texts, rows):
            groups.setdefault((text, row and (row.who, row.anchor)), []).append(row)
        if n_screens := _implied_by_rankings(groups.values(), len(rows)):
            return Screens(name, False, n_screens)
    return None


def seems_of_screens(n_rows: int, n_screens: int) -> str:
    """What to say of rows that one ranking after another implies."""
    return (
        f"{n_rows:,} rows seem to be comparisons of {n_screens:,} screens (rows are all that one ranking, or one "
        "choice of several, implies)"
    )


def comparisons(records: Records, columns: Mapping[str, tuple[str, ...]]) -> list[Comparison | None]:
    """What the rows say by the columns of an anchor, the nearer and the farther object, or of the chosen one of two."""
    fields = {field: names[0] for field, names in columns.items() if len(names) == 1}
    texts = {field: records.columns[name].texts for field, name in fields.items() if name in records.columns}
    no_names = [None] * records.size
    if {"anchor", "near", "far"} <= texts.keys():
        rows = zip(texts.get("worker", no_names), texts["anchor"], texts["near"], texts["far"])
    elif {"anchor", "chosen"} <= texts.keys() and len(columns.get("shown", ())) == 2:
        shown = [*zip(*(records.columns[name].texts for name in columns["shown"]))]
        others = [pair[pair[0] == one] if one in pair else None for pair, one in zip(shown, texts["chosen"])]
        rows = zip(texts.get("worker", no_names), texts["anchor"], texts["chosen"], others)
    else:
        return []
    return [Comparison(who, anchor, near, far) if anchor and near and far else None for who, anchor, near, far in rows]


def _of_one_anchor(column: Column, rows: Sequence[Comparison | None]) -> int:
    """How many screens a column numbers, each of one participant and about one anchor; 0 where it does not. Of a list
    that everybody answers, rows with the same number ask the same question again."""
    questions: dict[tuple[str | None, str], set[tuple[str, frozenset[str]]]] = {}
    n_rows = 0
    for text, row in zip(column.texts, rows):
        if text is not None and row is not None:
            questions.setdefault((row.who, text), set()).add((row.anchor, frozenset((row.near, row.far))))
            n_rows += 1
    is_one = all(len({anchor for anchor, _ in of_screen}) == 1 for of_screen in questions.values())
    n_screens, n_questions = len(questions), sum(map(len, questions.values()))
    are_different = n_questions >= max(MIN_ROWS_EACH * n_screens, MIN_DIFFERENT * n_rows)
    return n_screens if is_one and n_screens > 1 and are_different else 0


def numbers_several_anchors(records: Records, rows: Sequence[Comparison | None], used: Iterable[str]) -> str:
    """A column called like screens of which each value is in several rows one after another, about several anchors:
    these depend on each other, and are not held out together. "" where there is none."""
    for name, column in records.columns.items():
        if name in {*used} or not SCREENS & set(column.words):
            continue
        keys = [(row and row.who, text) for row, text in zip(rows, column.texts)]
        anchors: dict[object, set[str]] = {}
        for key, row in zip(keys, rows):
            anchors.setdefault(key, set()).update([row.anchor] if row else [])
        n_runs = sum(1 for _ in groupby(keys))
        several = sum(len(names) > 1 for names in anchors.values())
        if n_runs == len(anchors) and len(rows) >= MIN_ROWS_EACH * n_runs and 2 * several > n_runs > 4:
            return name
    return ""


def _implied_by_rankings(groups: Iterable[Sequence[Comparison | None]], n_rows: int) -> int:
    """How many screens groups of rows make, each of one participant and anchor, if each of nearly all is all that one
    ranking or one pick of several implies; 0 where they do not."""
    n_implied = redundant = n_screens = 0
    for group in groups:
        pairs = [(row.near, row.far) for row in group if row is not None]
        nearer, farther = ({pair[side] for pair in pairs} for side in (0, 1))
        if len(pairs) > 2 and _is_one_ranking(pairs):
            n_implied += len(pairs)
            is_one_choice = len(nearer) == 1 or len(farther) == 1
            redundant += len(pairs) - 1 if is_one_choice else len(pairs) - len(nearer | farther) + 1
            n_screens += 1
    is_enough = n_implied >= MIN_IMPLIED * n_rows and redundant >= MIN_REDUNDANT
    return n_screens if is_enough else 0


def _is_one_ranking(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether pairs (nearer, farther) are all that one ranking implies: a position for each object, and a pair for
    every two objects at different ones.

    >>> _is_one_ranking([("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]), _is_one_ranking([("a", "x"), ("b", "y")])
    (True, False)
    >>> _is_one_ranking([("a", "b"), ("b", "c"), ("a", "c")]), _is_one_ranking([("a", "b"), ("b", "c"), ("c", "a")])
    (True, False)
    """
    farther: Mapping[str, set[str]] = {name: set() for pair in pairs for name in pair}
    for near, far in pairs:
        farther[near].add(far)
    by_position = Counter(len(names) for names in farther.values())
    beyond, n_farther = {}, 0
    for n_beyond in sorted(by_position):
        beyond[n_beyond] = n_farther
        n_farther += by_position[n_beyond]
    every_pair = all(len(names) == beyond[len(names)] for names in farther.values())
    ordered = all(len(farther[far]) < len(farther[near]) for near, far in pairs)
    return every_pair and ordered and len({*pairs}) == len(pairs)
