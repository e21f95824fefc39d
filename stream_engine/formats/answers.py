"""How columns of answers name the objects beside them: by name, number, place, key, or yes and no for each object.

`families`: the groups of columns that may hold what was shown. `answers_of`: the ways in which columns say which of
them was meant; several where the values do not decide.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from stream_engine.formats.event_fields import place_of
from stream_engine.formats.field_values import flag_of, number_of
from stream_engine.formats.options import FIRST_OF
from stream_engine.formats.question_texts import asked_in_name, is_question
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.trial_filters import RECORD_KIND_WORDS
from stream_engine.formats.unusable_rows import is_mark
from stream_engine.formats.vocabulary import (
    ANCHOR,
    ANSWER,
    CENTRAL,
    ENDS,
    GROUPS,
    LISTS,
    MATERIAL,
    NUMBERED,
    OBJECTS,
    OTHER,
    PLACES,
    ROUNDS,
    SIDES,
    SPATIAL,
    TRUTH,
    Places,
    place_in,
    sign_of,
    words_of,
)

RATINGS = frozenset(("rating", "similarity", "dissimilarity", "score", "slider", "distance", "urteil", "bewertung"))
MIN_FIT = 0.98  # share of the rows that an interpretation must make sense of
MIN_CODED = 0.7  # the same, where words of an order stand for the objects
MIN_ANSWERED = 0.4  # the same, where the others may be no answers
MIN_INDEX_ROWS = 20  # after which an index of three objects was 2, too
MIN_RIVAL = 0.1  # so often as its own codes, those of a second order make it doubtful which of the two is meant
PLACES_OR_NUMBERS = {word for order in (*PLACES, *NUMBERED) for synonyms in order for word in synonyms}
NUMBERED_FROM_1 = {len(order): order for order in NUMBERED if "1" in order[0]}
_KEYS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")  # the rows of a keyboard, each a little to the right
_CODED = {str(code): chr(code).lower() for code in range(65, 91)}  # jsPsych before version 7


class Answer(NamedTuple):
    """How answers name an object: `by` name, position, index or flag, through `codes` where they have their own."""

    columns: tuple[str, ...] = ()
    by: str = "name"
    codes: Mapping[str, str] = {}
    why: str = ""
    doubt: str = ""
    accepted: frozenset[str] | None = None  # values that name an object; None: whatever does

    def names(self, texts: Sequence[str], offered: Sequence[str]) -> bool:
        """Whether an answer names some of the objects offered, and not all."""
        if self.by == "flag":
            flags = [flag_of(text) for text in texts]
            return None not in flags and len(flags) == len(offered) and 0 < sum(map(bool, flags)) < len(flags)
        accepted = set(offered) if self.accepted is None else self.accepted
        return len(texts) > 0 and len(set(texts)) == len(texts) and accepted.issuperset(texts)

    def codes_of(self, column: Column) -> list[str]:
        """The values of a column of answers that name an object; none where answers are names."""
        return [text for text in sorted(column.distinct) if self.accepted is not None and text in self.accepted]


# ---- columns that belong together


def families(columns: Sequence[Column]) -> Iterator[tuple[list[Column], Places]]:
    """Groups of columns whose names differ in one word, which says where or the how manieth, the longest first; and
    single columns of lists.

    >>> some = [Column(name, [("x",)]) for name in ("imgL", "imgR", "image A", "image B", "image C", "rt")]
    >>> [[column.name for column in group] for group, _ in families(some)]
    [['imgL', 'imgR'], ['image A', 'image B', 'image C']]
    """
    slots: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, Column]] = {}
    for column in columns:
        for place, word in enumerate(column.words):
            slots.setdefault((column.words[:place], column.words[place + 1 :]), {}).setdefault(word, column)
    for words in slots.values():
        known, used = [word for word in words if word in PLACES_OR_NUMBERS], set[str]()
        for order in (*PLACES, *NUMBERED) if len(known) > 1 else ():
            matches = [[word for word in known if word in synonyms] for synonyms in order]
            roles = CENTRAL | ANCHOR  # of "center, left, middle, right", the middle one is a place
            matches = [[word for word in match if len(match) == 1 or word not in roles] for match in matches]
            specific = [match[0] for match in matches if len(match) == 1]
            if len(specific) == len(order) and not (used.issuperset(specific) and not ENDS.intersection(specific)):
                used.update(specific)
                yield [words[word] for word in specific], order
    by_name = {column.name: column for column in columns}
    for name, column in by_name.items():  # `stim, stim.1, stim.2`: as R and pandas call columns of one name
        again = [column, *takewhile(bool, (by_name.get(f"{name}.{number}") for number in range(1, 12)))]
        if len(again) > 1:
            yield [one for one in again if one], NUMBERED_FROM_1[len(again)]
    for column in columns:
        lengths = {len(value) for value in column.values if value is not None}
        if lengths and min(lengths) > 1 and (LISTS & set(column.words) or len(lengths) == 1):
            yield [column], ()


def shown_in(columns: Sequence[Column]) -> list[list[Column]]:
    """The families that may hold objects: called so or with values in common, and no fractions; those of text first."""
    shown = []
    for group, order in families(columns):
        values = [column.distinct for column in group]
        if not all(values) or any(is_fraction(text) for column in values for text in column):
            continue
        called = OBJECTS & {word for column in group for word in column.words} or LISTS & set(group[0].words)
        common = set.intersection(*values)
        single, alike = len(group) == 1, order in PLACES or len(common) > 1
        if not all(map(is_flags, group)) and (single or called or (alike and common)):
            shown.append(group)
    return sorted(shown, key=lambda group: (-is_textual(group), -len(group)))


def pairs_in(columns: Sequence[Column]) -> Iterator[tuple[list[list[Column]], Places]]:
    """Two pairs of columns, and the places that tell the pairs apart: `left1, left2, right1, right2`, in both ways."""
    slots: dict[tuple[str, ...], dict[tuple[str, str], Column]] = {}
    for column in columns:
        words = column.words
        for one in range(len(words)):
            for other in range(one + 1, len(words)):
                key = (*words[:one], "", *words[one + 1 : other], "", *words[other + 1 :])
                slots.setdefault(key, {})[words[one], words[other]] = column
    orders = [order for order in (*PLACES, *NUMBERED) if len(order) == 2]
    for pairs in slots.values():
        counts = [Counter(words) for words in zip(*pairs)]
        firsts, seconds = ([word for word, n_columns in counter.items() if n_columns > 1] for counter in counts)
        are_four = len(firsts) == len(seconds) == 2
        for first, (a, b) in _pairs_in_order(firsts, orders, are_four):
            for second, (c, d) in _pairs_in_order(seconds, orders, are_four):
                if {(a, c), (a, d), (b, c), (b, d)} <= pairs.keys():
                    yield [[pairs[a, c], pairs[a, d]], [pairs[b, c], pairs[b, d]]], first
                    yield [[pairs[a, c], pairs[b, c]], [pairs[a, d], pairs[b, d]]], second


def _pairs_in_order(
    words: Sequence[str], orders: Sequence[Places], own: bool
) -> Iterator[tuple[Places, tuple[str, str]]]:
    """The orders of two places that two of the words have, with these words; other words are their `own` order."""
    known = False
    for order in orders:
        matches = [[word for word in words if word in synonyms] for synonyms in order]
        if all(len(match) == 1 for match in matches):
            known = True
            yield order, (matches[0][0], matches[1][0])
    if not known and own:
        yield (frozenset(words[:1]), frozenset(words[1:])), (words[0], words[1])


def is_textual(group: Sequence[Column]) -> bool:
    """Whether columns hold more than whole numbers."""
    return not all(text.lstrip("-").isdecimal() for column in group for text in column.distinct)


def is_fraction(text: str) -> bool:
    """Whether a text is a number with decimals."""
    whole, point, decimals = text.replace(",", ".").partition(".")
    return bool(point) and whole.lstrip("-").isdecimal() and decimals.isdecimal()


def is_flags(column: Column) -> bool:
    return bool(column.distinct) and all(flag_of(text) is not None for text in column.distinct)


# ---- what answers mean


def offered(group: Sequence[Column], row: int) -> list[str]:
    """The objects in these columns."""
    return [text for column in group for text in column.values[row] or ()]


def named_share(column: Column, group: Sequence[Column]) -> float:
    """The share of the answers that are objects in their row."""
    are_shown = [set(value) <= set(offered(group, row)) for row, value in enumerate(column.values) if value]
    return sum(are_shown) / len(are_shown) if are_shown else 0.0


def answers_of(column: Column, group: Sequence[Column], by_index: bool = False) -> Iterator[Answer]:
    """The ways in which one column names one of the objects beside it: one where it is clear.

    >>> shown = [Column("left", [("a",), ("b",), ("c",)]), Column("right", [("b",), ("c",), ("a",)])]
    >>> [answer.by for answer in answers_of(Column("key", [("f",), ("j",), ("f",)]), shown)]
    ['position']
    >>> [answer.by for answer in answers_of(Column("choice", [("1",), ("1",), ("1",)]), shown)]
    ['position', 'index']
    >>> [answer.codes for answer in answers_of(Column("left_chosen", [("1",), ("0",), ("1",)]), shown)]
    [{'1': 'left', '0': 'right'}]
    """
    n_answers = sum(value is not None for value in column.values)
    share, numbers = named_share(column, group), all(text.isdecimal() for text in column.distinct)
    if n_answers and share >= MIN_ANSWERED and not (numbers and share < 1):
        why = f"{round(share * n_answers):,} of {n_answers:,} answers are one of the objects shown"
        coded = list(_coded(column, group, by_index)) if numbers and n_answers < 10 else []
        doubt = f"{column.name} could be names of objects or their numbers" if coded else ""
        yield Answer((column.name,), why=why, doubt=doubt)
        yield from (answer._replace(doubt=doubt) for answer in coded)
    elif not (by_side := list(_of_side(column, group))):
        yield from _coded(column, group, by_index)
    else:
        yield from by_side


def _of_side(column: Column, group: Sequence[Column]) -> Iterator[Answer]:
    """An answer that says yes or no of one of two objects: `left_chosen`."""
    if len(group) != 2 or not is_flags(column) or not column.distinct - {""}:
        return
    unique = [{word for word in one.words if word not in other.words} for one, other in (group, group[::-1])]
    orders = [order for order in PLACES if len(order) == 2 and all(place_in([*unique[p]], order) == p for p in (0, 1))]
    for side in {place_in(column.words, order) for order in orders} - {-1}:
        yes = {text: group[side if flag_of(text) else 1 - side].name for text in sorted(column.distinct, reverse=True)}
        why = ", ".join(f"{text} is {name}" for text, name in yes.items())
        yield Answer((column.name,), "position", yes, why, accepted=frozenset(yes))


def _coded(column: Column, group: Sequence[Column], by_index: bool) -> Iterator[Answer]:
    counts = Counter(text for text in column.texts if text is not None)
    size = max((len(value) for value in group[0].values if value), default=2) if len(group) == 1 else len(group)
    names = tuple(column.name for column in group)
    numbers = {int(text) for text in counts if text.isdecimal() and len(text) < 3}
    share = sum(n for text, n in counts.items() if text.isdecimal()) / max(1, counts.total())
    small = {number for number in numbers if number <= size}
    if share >= MIN_CODED and small == numbers and numbers:
        if size != 3 or numbers != {0, 1} or counts.total() < MIN_INDEX_ROWS:  # else it is about two of the three
            yield from _numbered(column.name, numbers, size, by_index)
        return
    if share == 1 and len(numbers) == len(counts) > size + 1 and numbers == {*range(min(numbers), max(numbers) + 1)}:
        return  # a scale
    is_of_side = any(place_in(column.words, order) >= 0 for order in SPATIAL)
    if is_of_side and all(map(str.isdecimal, counts)):
        return  # a rating of the object there
    good = _places(counts, size, names) or _keys(counts, size, names)
    if not _are_most(good, counts):
        return
    plain = "{" not in "".join(names) and all(
        place_of(text, names, 1) == place for text, place in good.items() if not text.isdecimal()
    )
    codes = {}
    if not plain or any(map(str.isdecimal, good)):
        by_number = len(group) == 1 or any("{" in name or set(name) & set(",|=") for name in names)
        codes = {text: str(place + 1) if by_number else names[place] for text, place in good.items()}
    why = ", ".join(f"{text} is {names[place] if len(group) > 1 else place + 1}" for text, place in good.items())
    keys = _keys(counts, size, names)
    initials = all(any(word[0] == text.casefold() for word in words_of(names[place])) for text, place in good.items())
    doubt = ""
    if keys.keys() == good.keys() and keys != good and not initials:
        doubt = f"{column.name} ({', '.join(good)}) could be letters for the sides, or keys as they lie on a keyboard"
        as_keys = {text: names[place] for text, place in keys.items()}
        yield Answer((column.name,), "position", as_keys, "the keys lie so", doubt, frozenset(keys))
    if _other_sides(good, names):
        doubt = f"{column.name} names other sides ({', '.join(good)}) than {', '.join(names)}"
        turned = {text: names[1 - place] for text, place in good.items()}
        yield Answer((column.name,), "position", turned, "the other way round", doubt, frozenset(good))
    yield Answer((column.name,), "position", codes, why, doubt, frozenset(good))


def _other_sides(places: Mapping[str, int], names: tuple[str, ...]) -> bool:
    """Whether answers are sides such as up and down, and two columns other ones, such as left and right."""
    is_side = all(ENDS & {*words_of(text)} and column_of(text, names) < 0 for text in places)
    orders = [order for order in SPATIAL if len(order) == 2]
    named = [order for order in orders if all(place_in(words_of(name), order) == n for n, name in enumerate(names))]
    are_same = any(all(place_in(words_of(text), order) >= 0 for text in places) for order in named)
    return is_side and len(names) == 2 and bool(named) and not are_same and len({*places.values()}) == 2


def _numbered(name: str, numbers: set[int], size: int, by_index: bool) -> Iterator[Answer]:
    """Positions count from 1, indices from 0: what occurs decides, or what the tool does."""
    position, index = 0 not in numbers, size not in numbers
    if by_index and index:
        position = False
    doubt = f"{name} could count from 0 or from 1" if position and index else ""
    for by, fits in (("position", position), ("index", index)):
        if fits:
            accepted = frozenset(str(number + (FIRST_OF[by] or 0)) for number in range(size))
            why = f"its values are {', '.join(map(str, sorted(numbers)))}: numbers from {FIRST_OF[by]}"
            yield Answer((name,), by, why=why, doubt=doubt, accepted=accepted)


def _are_most(places: Mapping[str, int], counts: Counter[str], least: float = MIN_ANSWERED) -> bool:
    """Whether these codes are given often enough to be the answers."""
    return bool(places) and sum(counts[text] for text in places) >= least * counts.total()


def _places(counts: Counter[str], size: int, names: tuple[str, ...]) -> dict[str, int]:
    """Which of the objects each code means: it names their column, or it is of an order of words that occur for every
    object (left, down, right). No two words of an order mean the same object; {} if two orders fit.

    >>> names = ("stim1", "stim2", "stim3")
    >>> _places(Counter(["right", "left", "up"]), 3, names), _places(Counter(["right", "up", "left", "down"]), 3, names)
    ({'left': 0, 'up': 1, 'right': 2}, {})
    """
    by_column = {text: place for text in counts if (place := column_of(text, names)) >= 0}
    readings = [by_column] if len(set(by_column.values())) > 1 else []
    for order in (order for order in PLACES if len(order) == size):
        worded = {text: place for text in counts if (place := _place_of_code(text, order)) >= 0}
        places = worded | {text: place for text, place in by_column.items() if place not in worded.values()}
        agree = all(by_column.get(text, place) == place for text, place in worded.items())
        if agree and (set(places.values()) == set(range(size)) or (len(set(places.values())) > 1 and size > 3)):
            readings.append(places)
    if not any(_are_most(places, counts, MIN_CODED) for places in readings):
        whole = len(set(by_column.values())) == size and _are_most(by_column, counts)
        return dict(sorted(by_column.items(), key=lambda item: item[1])) if whole else {}
    readings = [places for places in readings if _are_most(places, counts, MIN_CODED)]
    best = max(readings, key=lambda places: sum(counts[text] for text in places))
    for rival in readings:
        for_best, others = (
            sum(counts[text] for text, place in one.items() if other.get(text) != place)
            for one, other in ((best, rival), (rival, best))
        )
        if others > MIN_RIVAL * for_best:
            return {}
    return dict(sorted(best.items(), key=lambda item: item[1]))


def _folded(text: str) -> str:
    return "".join(words_of(text))


def _place_of_code(text: str, order: Places) -> int:
    whole = place_in([_folded(text)], order)
    return whole if whole >= 0 or len(words_of(text)) > 3 else place_in(words_of(text), order)


def column_of(text: str, names: tuple[str, ...]) -> int:
    """Which of the columns a word names, in full or by one word of it; -1 if none."""
    if not text.isdecimal() and (place := place_of(text, names, 1)) >= 0:
        return place
    if text[:1] == "-" and text[1:].isdecimal():
        return -1  # a step of a scale, on the side of the other object
    wanted, words = set(words_of(text)), [set(words_of(name)) for name in names]
    common = set[str].intersection(*words) if len(words) > 1 else set()
    unique = [group - common for group in words]
    worded = [n for n, group in enumerate(unique) if _folded(text) in group or (wanted and wanted <= words[n])]
    if not worded and len(wanted) == 2 and not all(map(str.isdecimal, wanted)):  # a letter and a column's number
        worded = [n for n, group in enumerate(unique) if any(word.isdecimal() for word in group & wanted)]
    return worded[0] if len(worded) == 1 else -1


def _keys(counts: Counter[str], size: int, names: tuple[str, ...]) -> dict[str, int]:
    """The two keys that were pressed most, in their order on the keyboard, where the objects lie left and right."""
    spatial = all(SIDES & set(words_of(name)) for name in names)
    return {text: place for place, text in enumerate(keys_in_order(counts))} if spatial and size == 2 else {}


def keys_in_order(counts: Counter[str]) -> list[str]:
    """The two keys that were pressed most, from left to right on the keyboard; [] where there are none.

    >>> keys_in_order(Counter(["j", "f", "j", "space"])), keys_in_order(Counter(["left", "right"]))
    (['f', 'j'], [])
    """
    keys = {text: _CODED.get(text, text.casefold()) for text in counts}
    places = {text: x for text, key in keys.items() if len(key) == 1 for row in _KEYS if (x := row.find(key)) >= 0}
    main = [text for text, _ in counts.most_common() if text in places][:2]
    return sorted(main, key=places.__getitem__) if len({places[text] for text in main}) == 2 else []


def is_answer(column: Column) -> bool:
    """Whether a column is called like an answer, or asks for one."""
    words = set(column.words)
    of_qualtrics = "q" in words and all(word in ("q", "{n}") or word.isdecimal() for word in words)
    called = bool((ANSWER | CENTRAL) & words) or sign_of(words) != 0 or (of_qualtrics and len(words) > 1)
    if called or not is_question(column.name):
        return called
    asked = asked_in_name(column.name)
    return asked.sign != 0 or asked.denies


def parallel(records: Records, group: Sequence[Column]) -> Iterator[list[Column]]:
    """Groups of as many columns as these, numbered or placed alike: `chosen1, chosen2` beside `opt1, opt2`."""
    names = [column.name for column in group]
    of_group = next(
        (order for some, order in families(list(records.columns.values())) if [*map(_name, some)] == names), ()
    )
    others = [column for column in records.columns.values() if column not in group and column.distinct]
    for some, order in families(others):
        alike = len(some) == len(group) and (order == of_group or (len(order) == len(of_group) and order in NUMBERED))
        if alike and len(group) > 1:
            yield some


def _name(column: Column) -> str:
    return column.name


def code_columns(records: Records, group: Sequence[Column]) -> list[Column]:
    """Columns of no known name that could say by codes which of these objects was chosen."""
    size = len(group)
    return [
        column
        for column in records.columns.values()
        if 1 < len(column.distinct) <= max(size, 2) + 1
        and column not in group
        and not is_mark(column)
        and not (RECORD_KIND_WORDS | ROUNDS | OTHER | TRUTH | MATERIAL | GROUPS) & set(column.words)
        and sum(value is not None for value in column.values) > 0.5 * records.size
        and _changes(column)
    ]


MIN_CHANGES = 0.1  # of answers from row to row, as a share of the rows: what changes less is of blocks or people
MIN_CHANGING_ROWS = 20  # from which this is looked at


def _changes(column: Column) -> bool:
    """Whether a column changes from row to row as answers do."""
    changes = sum(one != other for one, other in pairwise(column.texts))
    return len(column.texts) < MIN_CHANGING_ROWS or changes >= MIN_CHANGES * len(column.texts)


def is_rating(column: Column) -> bool:
    """Whether a column holds ratings: numbers, and it is called so."""
    if OTHER - ANSWER - {"rating"} & set(column.words):
        return False
    numbers = {number_of(text, text=True) for text in column.distinct}
    called = RATINGS & set(column.words)
    return (
        None not in numbers
        and (len(numbers) > 3 or bool(called and len(numbers) > 2))
        and bool(called or is_answer(column))
    )
