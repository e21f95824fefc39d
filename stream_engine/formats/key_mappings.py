"""Which object a key means, where another column says so: in each row, if a study swaps keys between participants."""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import groupby
from typing import NamedTuple

from stream_engine.formats.answers import column_of
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ANSWER, PLACES, place_in, words_of

MAX_TEXTS = 12  # of a column that says what keys mean

Means = Mapping[str, int]  # an answer -> the place of the object that it means


class KeyMapping(NamedTuple):
    """A column that says which object each answer means: for each of its texts."""

    column: Column
    means: Mapping[str, Means]
    place: str = ""  # of a text that is in no column
    doubt: str = ""

    @property
    def name(self) -> str:
        """Where it stands."""
        return self.place or f"column {self.column.name}"

    @property
    def parts(self) -> list[tuple[list[str], Means]]:
        """The texts that mean the same, and what they mean."""
        texts_of: dict[tuple[tuple[str, int], ...], list[str]] = {}
        for text, means in self.means.items():
            texts_of.setdefault(tuple(sorted(means.items())), []).append(text)
        return [(texts, dict(means)) for means, texts in texts_of.items()]

    def differs(self, answers_by: str, codes: Mapping[str, str], names: Sequence[str]) -> bool:
        """Whether some answers are read as other objects than it says."""
        first = 0 if answers_by == "index" else 1
        return any(
            place_of(codes.get(answer, answer), tuple(names), first) != place
            for means in self.means.values()
            for answer, place in means.items()
        )

    def filters(self, texts: Sequence[str], who: Column | None) -> dict[str, str]:
        """The filter for the rows with these texts, or, if `--where` cannot name them, for their participants; {} if
        there is none."""
        if not any(LIST_SEPARATOR in text for text in texts):
            return {self.column.name: LIST_SEPARATOR.join(texts)}
        if who is None:
            return {}
        pairs = [*zip(who.texts, self.column.texts)]
        people = [*dict.fromkeys(name for name, text in pairs if name and text in texts)]
        others = {name for name, text in pairs if text not in texts}
        return {who.name: LIST_SEPARATOR.join(people)} if not others.intersection(people) else {}


def key_mapping(
    records: Records, names: Sequence[str], answers: Set[str], used: Set[str], beside: Sequence[tuple[str, str]] = ()
) -> KeyMapping | None:
    """The column that spells out which of the columns `names` each of the `answers` means, or one of the texts `beside`
    the cells, each with its place; None where none does.

    >>> from stream_engine.formats.record_columns import records_of
    >>> for column in ({"map": ["f=left, j=right", "j: left; f: right"]}, {"left_key": ["f", "j"]}, {"f": ["left"]}):
    ...     print(key_mapping(records_of(column), ("left", "right"), {"f", "j"}, set()).means)
    {'f=left, j=right': {'f': 0, 'j': 1}, 'j: left; f: right': {'j': 0, 'f': 1}}
    {'f': {'f': 0, 'j': 1}, 'j': {'j': 0, 'f': 1}}
    {'left': {'f': 0, 'j': 1}}
    >>> print(key_mapping(records_of({"note": ["left", "f"]}), ("left", "right"), {"f", "j"}, set()))
    None
    """
    if len(names) < 2 or len(answers) < 2:
        return None
    for name, column in records.columns.items():
        texts = [*dict.fromkeys(text for text in column.texts if text is not None)]
        if name in used or not texts or len(texts) > MAX_TEXTS or None in column.values:
            continue
        means = {text: _pairs(text, names, answers) or _of_one(text, column, names, answers) for text in texts}
        if not all(means.values()) and len(texts) > 1:  # one order alone may be of keys that are allowed
            means = {text: _in_order(text, names, answers) for text in texts}
        if all(means.values()):
            return KeyMapping(column, means)
    return next((book for place, text in beside if (book := _book(place, text, names, answers)) is not None), None)


def _book(place: str, text: str, names: Sequence[str], answers: Set[str]) -> KeyMapping | None:
    """What a text beside the cells says that answers mean; with a doubt where it does so for some of them alone, by a
    side that the names of the columns do not have, or in words that are not understood."""
    codes = [re.escape(answer) for answer in sorted(answers)]
    spelt = [code for code in codes if re.search(rf"(?<![^\W_]){code} ?(?:[=:)]|->) ?\w|[=:] ?{code}(?![^\W_])", text)]
    spelt = (
        spelt if len(spelt) == len(codes) else [code for code in codes if re.search(rf"(?<![^\W_]){code} ?= ?\w", text)]
    )
    means = _pairs(text, names, answers)
    is_book = bool(spelt) and bool((ANSWER | _BOOKS) & {*words_of(text)})
    if not means and not is_book:
        return None
    ordered = any(all(place_in(words_of(name), order) == n for n, name in enumerate(names)) for order in PLACES)
    doubt = ""
    if not means and len(spelt) < len(codes):
        doubt = "says of some answers alone what they mean"
    elif not means:
        doubt = "may say what answers mean, and is not understood"
    elif means.keys() != answers:
        doubt = f"says nothing of {', '.join(sorted(answers - means.keys()))}"
    elif not ordered and not _pairs(text, names, answers, by_side=False):
        doubt = f"names sides, and {', '.join(names)} may lie otherwise"
    return KeyMapping(Column("", []), {text: means}, place, doubt)


_BOOKS = frozenset(words_of("code codes coding coded codebook legend kodierung code codage codigo codice"))


def _pairs(text: str, names: Sequence[str], answers: Set[str], by_side: bool = True) -> Means:
    """What answers mean by a text such as `f=left, j=right`; {} for any other."""
    by_word = {answer.casefold(): answer for answer in answers}
    for words in (re.findall(r"[^\W_]+", text.casefold()), words_of(text)):
        parts = [by_word.get(word, _place(word, names) if by_side else column_of(word, tuple(names))) for word in words]
        parts = [part for part, _ in groupby(part for part in parts if part != -1)]
        for keys, places in ((parts[::2], parts[1::2]), (parts[1::2], parts[::2])):
            means = {key: place for key, place in zip(keys, places) if isinstance(key, str) and isinstance(place, int)}
            if len(means) == len(keys) == len(places) == len({*means.values()}) > 1:
                return means
    return {}


def _in_order(text: str, names: Sequence[str], answers: Set[str]) -> Means:
    """What keys mean by a text that has them in the order of the objects, such as `fj`; {} for any other."""
    by_word = {answer.casefold(): answer for answer in answers}
    if any(answer.isdecimal() or _place(answer.casefold(), names) >= 0 for answer in answers):
        return {}
    for words in ([*text.casefold()], re.findall(r"[^\W_]+", text.casefold())):
        if len(words) == len(names) == len(answers) and {*words} == by_word.keys():
            return {by_word[word]: place for place, word in enumerate(words)}
    return {}


def _of_one(text: str, column: Column, names: Sequence[str], answers: Set[str]) -> Means:
    """What two answers mean by a column such as `left_key` that holds f, or `key_f` that holds left; {} for others."""
    if len(names) != 2 or len(answers) != 2 or any(map(str.isdecimal, answers)):
        return {}
    places = {place for word in column.words if (place := _place(word, names)) >= 0}
    keys = {answer for answer in answers if answer.casefold() in column.words}
    if len(places) == 1 and text in answers:
        keys = {text}
    elif len(keys) == 1 and _place(text.casefold(), names) >= 0:
        places = {_place(text.casefold(), names)}
    else:
        return {}
    (place,), (key,) = places, keys
    (other,) = answers - {key}
    return {key: place, other: 1 - place}


def _place(word: str, names: Sequence[str]) -> int:
    """Which of the columns a word names, or which side in their order; -1 if none."""
    if (place := column_of(word, tuple(names))) >= 0:
        return place
    return next((place for order in PLACES if len(order) == len(names) and (place := place_in([word], order)) >= 0), -1)


def codes_of(means: Means, names: Sequence[str]) -> dict[str, str]:
    """What answers mean, as `--codes` has it."""
    return {answer: names[place] for answer, place in sorted(means.items(), key=lambda item: item[1])}
