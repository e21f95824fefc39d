"""In which order objects were shown, where another column says it: what answers mean if they are places in it.

A column of orders (`2-1-3`, `BA`, `dog|cat|owl`), of exchanges (`swapped`), or a column of places for each object.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stream_engine.formats.answers import column_of, is_flags, parallel
from stream_engine.formats.field_values import flag_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import PLACES, POSITION, SWAP, place_in, words_of

SEPARATORS = ("-", " ", "_", "/", "+", ".", ":")  # of orders, beside those of lists
Order = tuple[int, ...]  # which of the objects stood at each place


class ShownOrder(NamedTuple):
    """The orders that occur, each with the filters of its rows."""

    parts: Sequence[tuple[Mapping[str, str], Order]]
    note: str = ""  # how it is read if it says otherwise


def shown_order(records: Records, column: Column, names: Sequence[str]) -> ShownOrder | None:
    """What a column says about the order in which the objects of these columns were shown; None where it says nothing
    that is known.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = records_of({"order": ["2-1", "1-2"], "itemA": ["x", "y"], "itemB": ["y", "z"]})
    >>> shown_order(rows, rows.columns["order"], ("itemA", "itemB")).parts
    [({'order': '1-2'}, (0, 1)), ({'order': '2-1'}, (1, 0))]
    """
    if len(names) == 2 and is_flags(column) and SWAP & {*column.words}:
        exchanged = {text: (1, 0) if flag_of(text) else (0, 1) for text in column.distinct}
        return ShownOrder([({column.name: text}, order) for text, order in sorted(exchanged.items())])
    group = [records.columns[name] for name in names]
    for places in parallel(records, group):
        if column in places:
            return _of_places(records, places)
    raw = records.separators.get(column.name)
    texts = {
        value if raw is None else (raw.join(value),): tokens_of(value, len(names)) for value in column.values if value
    }
    orders = {text[0]: _order(tokens, names) for text, tokens in texts.items() if len(text) == 1}
    if len(orders) < len(texts) or not orders or None in orders.values():
        return None
    known = {text: order for text, order in orders.items() if order is not None}
    if POSITION & {*column.words} and len(names) > 2:
        known = {text: _inverse(order) for text, order in known.items()}
    others = [text for text, order in sorted(known.items()) if _inverse(order) != order]
    numbered = all(text.isdecimal() for tokens in texts.values() for text in tokens)
    note = (
        f"if it says at which place each object stood, exchange the --codes of {' and '.join(others)}" if others else ""
    )
    return ShownOrder([({column.name: text}, known[text]) for text in sorted(known)], note if numbered else "")


def tokens_of(value: Sequence[str], size: int) -> tuple[str, ...]:
    """The parts of an order of so many objects: items, words, or letters; () where there are not as many."""
    texts = tuple(value) if len(value) > 1 else words_of(value[0])
    if len(texts) != size and len(value) == 1:
        texts = tuple(value[0])
    return tuple(text.casefold() for text in texts) if len(texts) == size else ()


def listed(text: str, objects: Sequence[str]) -> str:
    """The separator with which a text lists these objects, in any order; "" where it does not."""
    for separator in SEPARATORS:
        if sorted(text.split(separator)) == sorted(objects):
            return separator
    return ""


def _order(tokens: Sequence[str], names: Sequence[str]) -> Order | None:
    """Which of the columns each part names, by number or by a word."""
    places = [column_of(token, tuple(names)) for token in tokens]
    if tokens and all(token.isdecimal() for token in tokens):
        first = min(map(int, tokens))
        places = [int(token) - first for token in tokens] if first in (0, 1) else []
    elif -1 in places:
        words = [order for order in PLACES if len(order) == len(names)]
        found = [[place_in([token], order) for token in tokens] for order in words]
        places = next((each for each in found if -1 not in each), [])
    return tuple(places) if sorted(places) == [*range(len(names))] else None


def _of_places(records: Records, columns: Sequence[Column]) -> ShownOrder | None:
    """The orders of columns that say at which place each object stood."""
    rows = {tuple(texts) for texts in zip(*(column.texts for column in columns))}
    if any(text is None or not text.isdecimal() for texts in rows for text in texts):
        return None
    first = min(int(text or 0) for texts in rows for text in texts)
    parts = []
    for texts in sorted(rows, key=str):
        order = tuple(int(text or 0) - first for text in texts)
        if sorted(order) != [*range(len(columns))]:
            return None
        parts.append(({column.name: text or "" for column, text in zip(columns, texts)}, _inverse(order)))
    return ShownOrder(parts)


def _inverse(order: Order) -> Order:
    """Where each of the objects stood.

    >>> _inverse((1, 2, 0))
    (2, 0, 1)
    """
    return tuple(order.index(place) for place in range(len(order)))
