"""Rows of a table that are one screen: one ranking, or one pick of several, written as a row for each comparison.

Such rows depend on each other, so they are held out together (`evaluation.responses`). What tells them is a column
called like screens or trials whose values are each about one anchor; or blocks of rows, one after another or with the
same value of any column, of which each is all that one ranking, or one choice of several, implies. Independent answers
are so only by chance: how often, the other rows tell (`_expected_against`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import exp, sqrt
from typing import NamedTuple

from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import SCREENS

MIN_ROWS_EACH = 2.0  # rows of a screen on average, from which a column of screens says that rows depend on each other
MIN_DIFFERENT = 0.9  # share of the rows of a column of screens that ask another question than others of their screen
MIN_IMPLIED = 0.9  # share of the rows in blocks that one ranking implies
MIN_WHOLE = 0.6  # share of the rows in blocks whose limits are known, without which no further ones are looked for
MAX_AGAINST = 0.005  # share of blocks that no ranking implies, up to which they may be mistakes of the file
MAX_BY_CHANCE = 0.001  # probability that independent answers are so often as one ranking implies
MIN_PAIRS = 30  # pairs of answers to one question, from which on it is known how many differ
# Comparisons that follow from others of their block, if one ranking implies all, or that name the same object as
# others, from which on it is asked whether rows that nothing contradicts are of screens.
MIN_REDUNDANT = 60


class Comparison(NamedTuple):
    """What a row says: a participant, and which of two objects is nearer to an anchor."""

    who: str | None
    anchor: str
    near: str
    far: str


class Screens(NamedTuple):
    """The column whose values are of one screen each, or that of the anchor; whether a column is called so, and whether
    answers given one by one would show otherwise."""

    column: str
    is_called_so: bool
    n_screens: int
    are_certain: bool = True


Block = Sequence[Comparison]


def screens(
    records: Records, rows: Sequence[Comparison | None], used: Iterable[str], anchor: str, far: str = ""
) -> Screens | None:
    """The column of screens of these records, `rows` by row; None where nothing says that rows depend on each other.
    `used`: columns that have other roles; `anchor`, `far`: the columns of the anchors and of the farther objects.
    O(values).

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
        if is_called_so and (n_screens := _of_one_anchor(column, rows)) and not _contradict_themselves(column, rows):
            return Screens(name, True, n_screens)
    candidates = [
        (name, blocks) for name, column in records.columns.items() if (blocks := _of_column(name, column, rows, taken))
    ]
    candidates.append((anchor, _divided(_runs(rows, lambda row: row.anchor))))
    if far:
        candidates.append((far, _divided(_runs(rows, lambda row: frozenset(row[1:])))))
    seen = [(name, *_screens_among(blocks, len(rows))) for name, blocks in candidates]
    likely = [Screens(name, False, n_screens, are_certain) for name, n_screens, are_certain in seen if n_screens]
    return max(likely, key=lambda each: each.are_certain, default=None)


def seems_of_screens(n_rows: int, found: Screens) -> str:
    """What to say of rows that one ranking after another implies; `n_rows` were looked at."""
    of_screens = f"comparisons of screens, {found.n_screens:,} in the {n_rows:,} rows that were looked at"
    implied = "the rows of each are all that one ranking, or one choice of several, implies"
    if found.are_certain:
        return f"rows seem to be {of_screens} ({implied})"
    return f"rows may be {of_screens}: {implied}, as they also are where people answer row by row with few errors"


def together_by(column: str, far: str) -> str:
    """What the rows of one screen are about, by the column that numbers screens and that of the farther objects."""
    return "the same three objects" if far and column == far else "an anchor"


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


def _contradict_themselves(column: Column, rows: Sequence[Comparison | None]) -> bool:
    """Whether rows with the same value of a column contradict each other (a is nearer than b, b than c, c than a) more
    often than by mistake: each was answered by itself, though on one page."""
    blocks: dict[tuple, list[tuple[str, str]]] = {}
    for text, row in zip(column.texts, rows):
        if row is not None:
            blocks.setdefault((text, row.who, row.anchor), []).append((row.near, row.far))
    circular = sum(map(_are_circular, blocks.values()))
    return circular > max(1, MAX_AGAINST * len(blocks))


def _are_circular(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether no order of the objects agrees with all pairs (nearer, farther).

    >>> _are_circular([("a", "b"), ("b", "c"), ("c", "a")]), _are_circular([("a", "b"), ("b", "c"), ("a", "c")])
    (True, False)
    """
    left = [*pairs]
    while left:
        nearer = {near for near, _ in left}
        rest = [(near, far) for near, far in left if far in nearer]
        if len(rest) == len(left):
            return True
        left = rest
    return False


def numbers_several_anchors(records: Records, rows: Sequence[Comparison | None], used: Iterable[str]) -> str:
    """A column called like screens of which each value is in several rows one after another, about several anchors:
    these depend on each other, and are not held out together. "" where there is none."""
    for name, column in records.columns.items():
        if name in {*used} or not SCREENS & set(column.words):
            continue
        if len(column.distinct) < 2:
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


def _of_column(name: str, column: Column, rows: Sequence[Comparison | None], taken: set[str]) -> list[Block]:
    """The rows with each value of a column that may number screens, each of one participant and about one anchor."""
    if name in taken or set(name) & set(",|=") or MIN_ROWS_EACH * len(column.distinct) > len(rows):
        return []
    blocks: dict[tuple, list[Comparison]] = {}
    for text, row in zip(column.texts, rows):
        if row is not None:
            blocks.setdefault((text, row.who), []).append(row)
    several = sum(len(block) for block in blocks.values() if len({row.anchor for row in block}) > 1)
    answers = [{(row.anchor, row[side], text) for text, row in zip(column.texts, rows) if row} for side in (2, 3)]
    of_answer = any(len({key[:2] for key in of_side}) == len(of_side) for of_side in answers)
    if several > (1 - MIN_IMPLIED) * len(rows) or (of_answer and len({*map(len, blocks.values())}) > 1):
        return []
    return [*blocks.values()]


def _runs(rows: Sequence[Comparison | None], about: Callable[[Comparison], object]) -> list[Block]:
    """Rows one after another of one participant and about the same."""
    runs = groupby(rows, key=lambda row: row and (row.who, about(row)))
    return [[row for row in run if row is not None] for key, run in runs if key is not None]


def _divided(runs: Sequence[Block]) -> list[Block]:
    """Blocks of runs of rows about one anchor: those of screens with the same anchor, one after another, are divided
    where most blocks have the same size, or where the first of them ends."""
    sizes = Counter(map(len, runs))
    size = max(sizes, key=lambda n: n * sizes[n], default=1)
    blocks: list[Block] = []
    others: list[Block] = []
    for run in runs:
        parts = [run[first : first + size] for first in range(0, len(run), size)] if len(run) % size == 0 else [run]
        if size > 1 and all(map(_is_implied, parts)):
            blocks += parts
        elif _is_implied(run):
            blocks.append(run)
        else:
            others.append(run)
    n_rows = sum(map(len, runs))
    if sum(map(len, blocks)) < MIN_WHOLE * n_rows:
        return [*blocks, *others]
    for run in others:
        while run:
            ends = [end for end in range(2, len(run) + 1) if _is_implied(run[:end])]
            end = max(ends, default=len(run))
            blocks.append(run[:end])
            run = run[end:]
    return blocks


def _is_implied(block: Block) -> bool:
    """Whether one ranking or choice implies all rows: of one anchor, or two of the odd or the most central one of three
    objects."""
    if len(block) == 2 and block[0].anchor != block[1].anchor:
        (_, *first), (_, anchor, near, far) = block
        return first in ([near, anchor, far], [far, near, anchor])
    one_anchor = len({row.anchor for row in block}) == 1
    return len(block) > 1 and one_anchor and _is_one_ranking([(row.near, row.far) for row in block])


def _screens_among(blocks: Sequence[Block], n_rows: int) -> tuple[int, bool]:
    """How many screens blocks of rows are, if each of nearly all is all that one ranking or one pick of several
    implies, 0 where they are not; and whether independent answers would be otherwise."""
    implied = [block for block in blocks if _is_implied(block)]
    if sum(map(len, implied)) < MIN_IMPLIED * n_rows:
        return 0, False
    size = Counter(map(len, implied)).most_common(1)[0][0]
    against = sum(len(block) >= size for block in blocks if not _is_implied(block))  # shorter ones lack rows
    expected = _expected_against(implied)
    by_chance, term = 0.0, exp(-expected)
    for n in range(against + 1):
        by_chance += term
        term *= expected / (n + 1)
    if against <= MAX_AGAINST * len(blocks) and by_chance < MAX_BY_CHANCE:
        return len(implied), True
    are_likely = not against and sum(map(_redundant, implied)) >= MIN_REDUNDANT
    return len(implied) if are_likely else 0, False


def _expected_against(blocks: Sequence[Block]) -> float:
    """How many of these blocks independent answers would make otherwise than one ranking or choice implies, at least.

    Of a choice, one answer would be the rarer one of its question in some row. In a ranking, the comparisons of three
    objects would be circular about as often as the square of the share of pairs of answers to one question that differ
    (1/4 where all are random), and blocks have as many such circles that do not depend on each other as objects but
    two."""
    differ = _share_different(blocks)
    rarer = (1 - sqrt(max(1 - 2 * differ, 0.0))) / 2
    expected = 0.0
    for block in blocks:
        nearer, farther = {row.near for row in block}, {row.far for row in block}
        is_ranking = nearer & farther
        n = len(nearer | farther) - 2 if is_ranking else len(block) - 1
        expected += 1 - (1 - (differ**2 if is_ranking else rarer)) ** n
    return expected


def _share_different(blocks: Sequence[Block]) -> float:
    """The share of the pairs of answers to one question, in different blocks, that differ: those of one participant
    where they are enough, or all; 0 where these are too few."""
    for of_one in (True, False):
        answers: dict[tuple, list[int]] = {}
        for row in (row for block in blocks for row in block):
            key = (row.anchor, *sorted((row.near, row.far)), row.who if of_one else None)
            answers.setdefault(key, [0, 0])[row.near < row.far] += 1
        pairs = sum((no + yes) * (no + yes - 1) // 2 for no, yes in answers.values())
        if pairs >= MIN_PAIRS:
            return sum(no * yes for no, yes in answers.values()) / pairs
    return 0.0


def _redundant(block: Block) -> int:
    """How many comparisons of a block follow from others, or name the same object."""
    nearer, farther = {row.near for row in block}, {row.far for row in block}
    is_one_choice = len(nearer) == 1 or len(farther) == 1
    return len(block) - 1 if is_one_choice else len(block) - len(nearer | farther) + 1


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
