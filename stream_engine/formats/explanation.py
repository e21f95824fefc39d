"""Columns without a role in a reading that could bear on the answer.

Harmless is what the values show to be so: the same in all rows or for each participant, different in every row, a
freely varying number, a property of one object, or what the reading says anyway.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from stream_engine.formats.answers import MIN_FIT, Answer, column_of, is_answer, is_flags, is_rating, is_textual
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.field_values import flag_of, number_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.shown_orders import listed, tokens_of
from stream_engine.formats.trial_filters import RECORD_KIND_WORDS
from stream_engine.formats.vocabulary import (
    ANSWER,
    MATERIAL,
    NUMBERED,
    OTHER,
    PLACES,
    POSITION,
    ROUNDS,
    SIDES,
    SPATIAL,
    SWAP,
    TRUTH,
    place_in,
)

MAX_CODES = 12  # different values of a column of codes
MIN_OBJECT_SHARE = 0.5  # of the values of a column, that are objects
MIN_COMMENT_LENGTH = 25  # characters, of comments and questions


_Row = tuple[list[str], list[str], list[str], list[str]]  # anchor, offered, nearer or chosen, the others


class Rival(NamedTuple):
    """A column without a role that could bear on the answer, and how; `is_answer`: it could be the answer itself."""

    column: Column
    why: str
    is_answer: bool = False

    @property
    def fact(self) -> str:
        """The column, some of its values, and how it could bear on the answer."""
        return f"column {self.column.name} ({', '.join(islice(sorted(self.column.distinct), 4))}) {self.why}"


def unexplained(
    records: Records, fields: Mapping[str, tuple[str, ...]], answer: Answer, used: set[str], who: Column | None
) -> Rival | None:
    """The first column without a role that could bear on the answer. `records` are the questions alone.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"a": [*"pqr"], "b": [*"qrp"], "c": [*"rpq"], "d": [*"stu"], "odd": [*"qpr"], "id": [*"123"]}
    >>> fields = {"objects": ("a", "b", "c"), "odd": ("odd",)}
    >>> unexplained(records_of(rows), fields, Answer(("odd",)), {"a", "b", "c", "odd"}, None) is None
    True
    """
    rows = [row_roles(records, row, fields, answer) for row in range(records.size)]
    objects = {text for anchor, offered, _, _ in rows for text in (*anchor, *offered)}
    group = [
        records.columns[name]
        for field in ("anchor", "shown", "objects", "near", "far", "ranked")
        for name in fields.get(field, ())
    ]
    answers = [records.columns[name] for name in answer.columns]
    codes = {text for column in answers for text in column.distinct}
    for name, column in records.columns.items():
        if name in used or name.rpartition(".")[0] in used:
            continue
        if why := _bearing(column, rows, objects, group, answer, codes, who):
            return _rival(column, why, answers)
    return None


def _rival(column: Column, why: str, answers: Sequence[Column]) -> Rival:
    """What a column could mean beside the columns that the reading takes for answers."""
    names = ", ".join(column.name for column in answers)
    if not _is_called_answer(column):
        return Rival(column, why)
    if is_rating(column):
        return Rival(column, f"holds ratings beside the answers in {names}" if names else "holds ratings")
    if SIDES & set(column.words) and any(column.distinct <= answer_column.distinct for answer_column in answers):
        return Rival(column, f"has the values of {names}, and could say which side they mean in each row")
    return Rival(column, f"could be the answer{f' as well as {names}' if names else ''}: it {why}", True)


def row_roles(records: Records, row: int, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> _Row:
    """What a row holds: its anchor, what it offers, what is nearer or chosen, and the others."""

    def texts(*names: str) -> list[str]:
        values = (records.columns[name].values[row] for field in names for name in fields.get(field, ()))
        return [text for value in values for text in value or ()]

    offered = texts("shown", "objects", "ranked") or texts("near", "far")
    answers = [text for name in answer.columns for text in records.columns[name].values[row] or ()]
    if "near" in fields:
        chosen = texts("near")
    elif answer.by == "name":
        chosen = answers
    elif answer.by == "flag":
        flags = [
            flag_of(text)
            for text in (
                answers
                if len(answer.columns) == 1
                else [records.columns[name].texts[row] or "" for name in answer.columns]
            )
        ]
        chosen = [text for text, flag in zip(offered, flags) if flag]
    else:
        names = next((fields[field] for field in ("shown", "objects") if field in fields), ())
        places = [place_of(answer.codes.get(text, text), names, 0 if answer.by == "index" else 1) for text in answers]
        chosen = [offered[place] for place in places if 0 <= place < len(offered)]
    return texts("anchor"), offered, chosen, [text for text in offered if text not in chosen]


def _bearing(
    column: Column,
    rows: Sequence[_Row],
    objects: set[str],
    group: Sequence[Column],
    answer: Answer,
    codes: set[str],
    who: Column | None,
) -> str:
    """How a column could bear on the answer; "" where it cannot."""
    words, values = set(column.words), column.distinct
    if len(values) < 2:
        return ""
    called, flags, numeric = _is_called_answer(column), is_flags(column), all(map(_is_number, values))
    if TRUTH & words:
        named = answer.columns != () or bool(answer.codes)
        return "could say that an answer was wrong" if flags and not named else ""
    if answer.by != "name" and ((flags and SWAP & words) or _arranges(column, codes, group)):
        return "could say in which rows sides were exchanged"
    coded = answer.by in ("position", "index") and not all(
        column_of(text, tuple(one.name for one in group)) >= 0 and not text.isdecimal() for text in codes
    )
    if coded and _is_order(column, rows):
        return "could say in which order objects were shown in each row"
    if coded and numeric and POSITION & words and len(values) <= len(group) and not _agrees(column, rows):
        return "could say where objects were shown in each row"
    share = len(column.items & objects) / len(column.items)
    if share >= MIN_OBJECT_SHARE and len(column.items & objects) > 1 and is_textual([column]) == is_textual(group):
        return _of_objects(column, rows, called, coded)
    if (who is not None and is_constant(column, who)) or (len(values) > MAX_CODES and numeric):
        return ""
    nearer, farther = _nearer(rows), _farther(rows)
    if any(is_determined(column, other) for other in group) or (not called and is_determined(column, nearer)):
        return ""
    if any(is_determined(column, role) and is_determined(role, column) for role in (nearer, farther)):
        return ""
    if flags:
        sides = any(place_in(column.words, order) >= 0 for order in SPATIAL)
        return "says yes or no" if called or (sides and not RECORD_KIND_WORDS & words) else ""
    if len(values) <= MAX_CODES:
        return "" if _agrees(column, rows) else _of_codes(column, group, called)
    filled = sum(text is not None for text in column.texts)
    long = sum(map(len, values)) > MIN_COMMENT_LENGTH * len(values)
    return "is called like one" if called and not (len(values) > 0.9 * filled or numeric or long) else ""


def _is_called_answer(column: Column) -> bool:
    return is_answer(column) and not (OTHER - ANSWER) & set(column.words)


def _is_number(text: str) -> bool:
    return number_of(text, text=True) is not None


def _arranges(column: Column, codes: set[str], group: Sequence[Column]) -> bool:
    """Whether a column holds orders such as AB and BA, where answers do not name the columns of objects themselves."""
    values = column.distinct
    if codes <= {column.name for column in group}:
        return False
    tokens = {tuple(sorted(tokens_of(value, len(group)))) for value in column.values if value}
    if len(values) > 1 and len(group) > 1 and len(tokens) == 1 and len({*tokens.copy().pop()}) == len(group):
        return True
    letters = {"".join(sorted(text)) for text in values}
    return len(values) > 1 and len(letters) == 1 and 1 < len(letters.pop()) <= len(group)


def _is_order(column: Column, rows: Sequence[_Row]) -> bool:
    """Whether a column lists what was offered, as names or as numbers, in another order in some rows."""
    filled = [(value, offered) for (_, offered, _, _), value in zip(rows, column.values) if value]
    orders = [
        ((*value[0].split(sign),) if len(value) == 1 and (sign := listed(value[0], offered)) else value, offered)
        for value, offered in filled
    ]
    if not all(len(value) == len(offered) > 1 for value, offered in orders):
        return False
    if all(text.isdecimal() for text in column.items) and len({tuple(sorted(value)) for value, _ in orders}) == 1:
        return len(column.distinct) > 1
    return all(set(value) == set(offered) for value, offered in orders) and any(
        [*value] != offered for value, offered in orders
    )


def _of_codes(column: Column, group: Sequence[Column], called: bool) -> str:
    """A column of a few codes that do not agree with the answer."""
    words, values, names = set(column.words), column.distinct, tuple(column.name for column in group)
    by_name = all(column_of(text, names) >= 0 and not text.isdecimal() for text in values)
    if by_name and (called or not RECORD_KIND_WORDS & words) and max(map(len, values)) > 1:
        return "names columns of objects"
    if called:
        return "is called like one"
    sides = all(any(place_in([text.casefold()], order) >= 0 for order in SPATIAL) for text in values)
    return "names sides" if sides and not (RECORD_KIND_WORDS | MATERIAL) & words else ""


def _of_objects(column: Column, rows: Sequence[_Row], called: bool, coded: bool) -> str:
    """A column that holds objects: explained if it says what the reading says, or where things were shown, unless
    answers are `coded` places."""
    filled = [(rows[row], set(value)) for row, value in enumerate(column.values) if value is not None]
    places = [] if called else range(len(filled[0][0][1]))
    roles = (
        *((lambda row: row[2]), (lambda row: row[3]), (lambda row: row[0])),
        *((lambda row, place=place: row[1][place : place + 1]) for place in places),
    )
    for role in roles:
        if sum(value == set(role(row)) for row, value in filled) >= MIN_FIT * len(filled):
            return ""
    everything = [*(set(anchor) | set(offered) for (anchor, offered, _, _), _ in filled)]
    inside = sum(value <= all_of for all_of, (_, value) in zip(everything, filled))
    if inside < MIN_FIT * len(filled):
        numbered = all(text.isdecimal() for text in column.distinct)
        return "" if numbered and ROUNDS & set(column.words) else "holds objects, and not only those shown in its row"
    if coded and any(place_in(column.words, order) >= 0 for order in (*PLACES, *NUMBERED)):
        return "could say which object was at the place that an answer means"
    return "names one of the objects shown, and another one in some rows" if called else ""


def is_constant(column: Column, who: Column) -> bool:
    """Whether a column is the same in all rows of each participant, of whom there are several."""
    texts_by: dict[str | None, set[str | None]] = {}
    for name, text in zip(who.texts, column.texts):
        texts_by.setdefault(name, set()).add(text)
    is_one = all(len(texts) == 1 for texts in texts_by.values())
    return is_one and len(texts_by) > 1 and 2 * len(texts_by) < len(column.values)


def is_determined(column: Column, other: Column) -> bool:
    """Whether the value of one column follows from that of another one, which repeats: a category, a file, a number."""
    texts_by: dict[str | None, set[str | None]] = {}
    for of, text in zip(other.texts, column.texts):
        texts_by.setdefault(of, set()).add(text)
    is_one = all(len(texts) == 1 for texts in texts_by.values())
    return is_one and len(texts_by) > 2 and 2 * len(texts_by) <= len(column.values)


def _nearer(rows: Sequence[_Row]) -> Column:
    return Column("", [tuple(chosen[:1]) or None for _, _, chosen, _ in rows])


def _farther(rows: Sequence[_Row]) -> Column:
    return Column("", [tuple(others[:1]) or None for _, _, _, others in rows])


def _agrees(column: Column, rows: Sequence[_Row]) -> bool:
    """Whether a column of codes says the same as the answer, in other words."""
    places_of: dict[str, set[int]] = {}
    for (_, offered, chosen, _), text in zip(rows, column.texts):
        if text is not None and len(chosen) == 1:
            places_of.setdefault(text, set()).add(offered.index(chosen[0]) if chosen[0] in offered else -1)
    places = [place for code_places in places_of.values() for place in code_places]
    return len(places_of) > 1 and len(places) == len(set(places))
