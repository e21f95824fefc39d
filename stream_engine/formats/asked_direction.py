"""The direction that questions and conditions ask for: the nearer or the farther object."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import OTHER, asks


class Contradiction(NamedTuple):
    """That something asks for the other direction than the reading has: a fact; where only some rows do so, their texts
    in a `column`."""

    fact: str
    column: str = ""
    texts: tuple[str, ...] = ()


def contradicted(
    records: Records, kind: str, used: set[str], farther: bool, answers: Sequence[str]
) -> Contradiction | None:
    """Which column, or text above the rows, asks for the other direction than the reading has; None where none does."""
    expected = -1 if farther or kind == "odd_one_out" else 1
    for text in answers:
        if kind != "odd_one_out" and asks(text) * expected < 0:
            return Contradiction(
                f'the question "{text[:60]}" asks for the other direction than the answers are read in'
            )
    for name, column in records.columns.items():
        if name in used or OTHER & set(column.words) or 2 * len([*filter(None, column.values)]) < records.size:
            continue
        signs = Counter(asks(text) for text in islice(column.distinct, 300))
        if (
            signs[-expected]
            and (len(signs) > 1 or expected == 1)
            and not (kind == "odd_one_out" and not signs[expected])
        ):
            example = next(text for text in column.distinct if asks(text) == -expected)
            if kind == "odd_one_out" and " " not in example:
                continue
            mixed = " in some rows and something else in others" if len(signs) > 1 else ""
            texts = tuple(sorted(text for text in column.distinct if asks(text) == -expected)) if mixed else ()
            what = "answers could name the farther object, or the nearer one (--answer-is)"
            return Contradiction(f'column {name} says "{example[:60]}"{mixed}: {what}', name if mixed else "", texts)
    return None


def asked_sign(records: Records) -> int:
    """The direction that the question in every row asks for; 0 where there is none, or another in some rows."""
    signs = set()
    for column in records.columns.values():
        asked = {asks(text) for text in islice(column.distinct, 300)} if _is_text(column) else {0}
        signs |= asked if len(asked) == 1 else {0}
    signs -= {0}
    return signs.pop() if len(signs) == 1 else 0


def _is_text(column: Column) -> bool:
    """Whether a column holds a text in nearly every row: a question, no comment."""
    filled = sum(value is not None for value in column.values)
    return filled >= 0.9 * len(column.values) and any(" " in text for text in column.distinct)
