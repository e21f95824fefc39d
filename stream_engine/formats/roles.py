"""What names of columns suggest: the words of the field for anchors, options, answers and participants.

`answer_of`: how an answer says which of the objects shown was chosen: by name, position, index or a code of its own.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from stream_engine.formats.event_fields import PACE, place_of
from stream_engine.formats.field_values import DECIMAL_COMMA, number_of
from stream_engine.formats.options import FIRST_OF
from stream_engine.formats.record_columns import Column, Records, words_of


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ANCHOR = _words("anchor target center centre head probe reference ref referent standard query base cue focal sample")
NEAR = _words("near nearer winner closer similar positive")
FAR = _words("far farther further loser dissimilar negative")
ODD = _words("odd outlier different ooo oddone")
CENTRAL = _words("central")
ANSWER = _words(
    "answer answered response choice chosen selected selection pick picked said winner clicked button keys key press "
    "keypress keyboard resp decision judgment judgement label value"
)
NOT_ANSWER = _words(
    "correct expected truth solution rt time latency duration seconds ms onset started stopped index id timestamp "
    "accuracy"
)
OBJECTS = _words(
    "option opt choice alternative alt comparison candidate item stimulus stim image img picture pic object word name "
    "text photo face sound left right l r"
)
LISTS = _words("shown options choices images items alternatives candidates objects stimuli")
ORDERS = (
    *(("left", middle, "right") for middle in ("middle", "center", "centre")),
    *(("left", "right"), ("l", "r"), ("first", "second", "third"), ("first", "second"), ("top", "bottom")),
    *(("a", "b", "c"), ("a", "b"), ("one", "two", "three"), ("one", "two"), ("upper", "lower")),
    *(tuple(str(number) for number in range(first, first + size)) for size in range(8, 1, -1) for first in (0, 1)),
)
PARTICIPANTS = (
    *("worker", "workerid", "participantprivateid", "participantid", "participant", "participantcode", "subjectid"),
    *("subject", "subj", "subjectnr", "subjectnumber", "prolificpid", "prolificid", "participantpublicid", "pid"),
    *("puid", "participantuid", "respondentid", "respondent", "responseid", "userid", "user", "annotator", "rater"),
    *("completedby", "annotationscompletedby", "judge", "observer", "participation", "srid", "runid", "sessionid"),
    *("token", "id", "studyresultid", "emailaddress", "username"),
    *("vp", "vpn", "vpnr", "versuchsperson", "proband"),
)
RESPONSE_TIMES = ("responsetime", "reactiontime", "reaktionszeit")
UNITS = {"milliseconds": _words("ms msec millis milliseconds"), "seconds": _words("s sec secs seconds")}
LONGEST = 60.0  # median of seconds; a larger one is of milliseconds
LEAST_NUMBERS = 0.9  # share of the values


def family_of(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Groups of columns that may hold the objects of a question: their names differ in one word, which says where or
    the how manieth; and single columns of lists.

    >>> [[each.name for each in group] for group in family_of([Column(n, [("x",)]) for n in ("imgL", "imgR", "rt")])]
    [['imgL', 'imgR']]
    """
    slots: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, Column]] = {}
    for column in columns:
        for place, word in enumerate(column.words):
            slots.setdefault((column.words[:place], column.words[place + 1 :]), {}).setdefault(word, column)
    for (before, after), words in slots.items():
        taken: set[str] = set()
        for order in ORDERS:
            if set(order) <= words.keys() and not (set(order) <= taken and order[0].isdecimal()):
                group = [words[word] for word in order]
                if _objects(group, {*before, *after, *order}):
                    taken |= set(order)
                    yield group
    for column in columns:
        lengths = {len(value) for value in column.values if value is not None}
        if LISTS & set(column.words) and lengths and min(lengths) > 1:
            yield [column]


def _objects(group: Sequence[Column], words: set[str]) -> bool:
    """Whether columns hold objects: called so or with values in common, and no fractions."""
    values = [each.distinct for each in group]
    if not all(values) or any(_is_fraction(text) for each in values for text in each):
        return False
    common = set.intersection(*values)
    return bool(OBJECTS & words) or len(common) > 1


def _is_fraction(text: str) -> bool:
    whole, point, rest = text.replace(",", ".").partition(".")
    return bool(point) and whole.lstrip("-").isdecimal() and rest.isdecimal()


def participant(records: Records, wide: bool) -> Column | None:
    """The column that says who answered: called so, filled, and the same in several records."""
    found = []
    for name, column in records.columns.items():
        called = "".join(column.words)
        filled = sum(value is not None for value in column.values)
        if called in PARTICIPANTS and filled >= 0.9 * records.size and records.size:
            repeated = wide or len(column.distinct) < max(2, 0.9 * filled) or records.size < 10
            if repeated:
                found.append((PARTICIPANTS.index(called), name))
    return records.columns[min(found)[1]] if found else None


def response_times(records: Records) -> tuple[str, Column, str] | None:
    """`(field of an event, column, why)` of the column of response times, in seconds or milliseconds: as its name says,
    or as its median does, if it is called so and holds numbers. None where the fields themselves are there.

    >>> from stream_engine.formats.record_columns import records_of
    >>> field, column, why = response_times(records_of({"key_resp.rt": ["0.81", "1.2"], "time": ["5", "6"]}))
    >>> field, column.name, why
    ('seconds', 'key_resp.rt', 'its median is 1')
    """
    if PACE.keys() & records.columns.keys():
        return None
    for name, column in records.columns.items():
        called = "".join(column.words)
        said = "rt" in column.words or called == "latency" or any(each in called for each in RESPONSE_TIMES)
        if not said or set(name) & set(",|="):
            continue
        texts = [text for text in column.texts if text is not None]
        if records.decimal_commas:
            texts = [re.sub(DECIMAL_COMMA, r"\1.\2", text) for text in texts]
        values = [number_of(text, text=True) for text in texts]
        numbers = [value for value in values if value is not None and value >= 0.0]
        if not numbers or len(numbers) < LEAST_NUMBERS * len(values) or 2 * len(values) < records.size:
            continue
        if unit := next((unit for unit, words in UNITS.items() if words & set(column.words)), None):
            return unit, column, "its name says so"
        middle = median(numbers)
        return "milliseconds" if middle > LONGEST else "seconds", column, f"its median is {float(f'{middle:.3g}'):,g}"
    return None


MOST_OTHERS = 0.3  # share of the values that may be something else: no answer, another key
LEAST_RIVAL = 0.1  # so often as its own codes, those of a second family make it doubtful which of the two is meant
_LEFT = _words("left l arrowleft leftarrow 37")
_UP = _words("up top upper arrowup uparrow 38")
_RIGHT = _words("right r arrowright rightarrow 39")
_DOWN = _words("down bottom lower arrowdown downarrow 40")
_MIDDLE = _words("middle m center centre")
_FIRST, _SECOND, _THIRD = (
    _words(f"{word} num{n} numpad{n} digit{n}") for n, word in enumerate(("first", "second", "third"), 1)
)
_A, _B, _C = map(_words, "abc")
_FAMILIES = {  # number of objects -> words for the first, the second, …: in a family each object has words of its own
    2: ((_LEFT, _RIGHT), (_UP, _DOWN), (_FIRST, _SECOND), (_A, _B)),
    3: (
        *((_LEFT, middle, _RIGHT) for middle in (_MIDDLE, _DOWN, _UP)),
        *((_UP, _MIDDLE, _DOWN), (_FIRST, _SECOND, _THIRD), (_A, _B, _C)),
    ),
}
_KEYS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")  # the rows of a keyboard, each a little to the right
_CODED = {str(code): chr(code).lower() for code in range(65, 91)}  # jsPsych before version 7
_SPATIAL = {"left", "right", "l", "r"}


class Answer(NamedTuple):
    """How an answer names an object: `by` name, position or index, through `codes` where it has its own."""

    by: str
    codes: Mapping[str, str] = {}
    why: str = ""
    doubt: str = ""
    accepted: frozenset[str] | None = None  # codes that name an object; None: whatever does

    def names(self, said: str, offered: Sequence[str]) -> bool:
        """Whether an answer names one of the objects offered."""
        return said in offered if self.accepted is None else said in self.accepted

    def codes_of(self, column: Column) -> list[str]:
        """The values of a column of answers that name an object; none where answers are names."""
        return [text for text in sorted(column.distinct) if self.accepted is not None and text in self.accepted]


def answer_of(column: Column, group: Sequence[Column], by_index: bool = False) -> Iterator[Answer]:
    """The ways in which a column of answers names one of the objects beside it: one where it is clear.

    >>> shown = [Column("left", [("a",), ("b",), ("c",)]), Column("right", [("b",), ("c",), ("a",)])]
    >>> [answer.by for answer in answer_of(Column("key", [("f",), ("j",), ("f",)]), shown)]
    ['position']
    >>> [answer.by for answer in answer_of(Column("choice", [("1",), ("1",), ("1",)]), shown)]
    ['position', 'index']
    """
    said = [(value, row) for row, value in enumerate(column.values) if value]
    named = sum(set(value) <= _offered(group, row) for value, row in said)
    numbers = all(text.isdecimal() for text in column.distinct)
    if said and named >= 0.7 * len(said) and not (numbers and named < len(said)):
        why = f"{named:,} of {len(said):,} answers are one of the objects shown"
        coded = list(_coded(column, group, by_index)) if numbers and len(said) < 10 else []
        doubt = f"{column.name} could be names of objects or their numbers" if coded else ""
        yield Answer("name", why=why, doubt=doubt)
        yield from (each._replace(doubt=doubt) for each in coded)
    elif {*ANSWER, *ODD, *CENTRAL} & set(column.words):
        yield from _coded(column, group, by_index)


def _offered(group: Sequence[Column], row: int) -> set[str]:
    return {text for each in group for text in each.values[row] or ()}


def _coded(column: Column, group: Sequence[Column], by_index: bool) -> Iterator[Answer]:
    counts = Counter(text for text in column.texts if text is not None)
    size = max((len(value) for value in group[0].values if value), default=2) if len(group) == 1 else len(group)
    names = tuple(each.name for each in group)
    numbers = {int(text) for text in counts if text.isdecimal() and len(text) < 3}
    share = sum(n for text, n in counts.items() if text.isdecimal()) / max(1, counts.total())
    small = {number for number in numbers if number <= size}
    if share >= 1 - MOST_OTHERS and small == numbers and numbers:
        yield from _numbered(column.name, numbers, size, by_index)
        return
    good = _places(counts, size, names) or _keys(counts, size, names)
    if not _are_most(good, counts):
        return
    plain = all(place_of(text, names, 1) == place for text, place in good.items() if not text.isdecimal())
    codes = {}
    if not plain or any(map(str.isdecimal, good)):
        by_number = len(group) == 1 or any("{" in name for name in names)
        codes = {text: str(place + 1) if by_number else names[place] for text, place in good.items()}
    told = ", ".join(f"{text} is {names[place] if len(group) > 1 else place + 1}" for text, place in good.items())
    yield Answer("position", codes, told, "", frozenset(good))


def _numbered(name: str, numbers: set[int], size: int, by_index: bool) -> Iterator[Answer]:
    """Positions count from 1, indices from 0: what occurs decides, or what the tool does."""
    position, index = 0 not in numbers, size not in numbers
    if by_index and index:
        position = False
    doubt = f"{name} could count from 0 or from 1" if position and index else ""
    for by, fits in (("position", position), ("index", index)):
        if fits:
            first = FIRST_OF[by] or 0
            accepted = frozenset(str(number + first) for number in range(size))
            why = f"its values are {', '.join(map(str, sorted(numbers)))}: numbers from {first}"
            yield Answer(by, why=why, doubt=doubt, accepted=accepted)


def _are_most(places: Mapping[str, int], counts: Counter[str]) -> bool:
    """Whether these codes are given often enough to be the answers."""
    return bool(places) and sum(counts[text] for text in places) >= (1 - MOST_OTHERS) * counts.total()


def _places(counts: Counter[str], size: int, names: tuple[str, ...]) -> dict[str, int]:
    """Which of the objects each code means: it names their column, or it is of a family of words that occur for every
    object (left, down, right). No two words of a family mean the same object; {} if two families fit.

    >>> names = ("stim1", "stim2", "stim3")
    >>> _places(Counter(["right", "left", "up"]), 3, names), _places(Counter(["right", "up", "left", "down"]), 3, names)
    ({'left': 0, 'up': 1, 'right': 2}, {})
    """
    by_column = {text: place for text in counts if (place := _column_of(text, names)) >= 0}
    found = [by_column] if len(set(by_column.values())) > 1 else []
    for family in _FAMILIES.get(size, ()):
        worded = {text: place for text in counts for place, words in enumerate(family) if _folded(text) in words}
        places = worded | {text: place for text, place in by_column.items() if place not in worded.values()}
        agree = all(by_column.get(text, place) == place for text, place in worded.items())
        if agree and set(places.values()) == set(range(size)):
            found.append(places)
    found = [each for each in found if _are_most(each, counts)]
    if not found:
        return {}
    best = max(found, key=lambda each: sum(counts[text] for text in each))
    for each in found:
        own, others = (
            sum(counts[text] for text, place in one.items() if other.get(text) != place)
            for one, other in ((best, each), (each, best))
        )
        if others > LEAST_RIVAL * own:
            return {}
    return dict(sorted(best.items(), key=lambda each: each[1]))


def _folded(text: str) -> str:
    return text.casefold().replace(" ", "").replace("_", "")


def _column_of(text: str, names: tuple[str, ...]) -> int:
    """Which of the columns a word names, in full or by one word of it; -1 if none."""
    if not text.isdecimal() and (place := place_of(text, names, 1)) >= 0:
        return place
    told, words = set(words_of(text)), [set(words_of(name)) for name in names]
    worded = [place for place, own in enumerate(words) if _folded(text) in own or (told and told <= own)]
    return worded[0] if len(worded) == 1 else -1


def _keys(counts: Counter[str], size: int, names: tuple[str, ...]) -> dict[str, int]:
    """The two keys that were pressed most, in their order on the keyboard, where the objects lie left and right."""
    keys = {text: _CODED.get(text, text.casefold()) for text in counts}
    places = {text: x for text, key in keys.items() if len(key) == 1 for row in _KEYS if (x := row.find(key)) >= 0}
    main = [text for text, _ in counts.most_common() if text in places][:size]
    spatial = all(_SPATIAL & set(words_of(name)) for name in names)
    if size != 2 or len(main) < 2 or not spatial or places[main[0]] == places[main[1]]:
        return {}
    left, right = sorted(main, key=places.__getitem__)
    return {left: 0, right: 1}
