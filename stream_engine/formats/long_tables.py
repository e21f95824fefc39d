"""Wide tables, with a question in each column, as long ones with a question in each row."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ANSWER, MATERIAL, OTHER, PLACES, TRUTH, place_in, sign_of, words_of
from stream_engine.formats.wide_columns import matches

MIN_NUMBERED = 4  # numbered columns of each question that make a table a wide one: an anchor, two choices, an answer
MIN_AGREEMENT = 0.2  # share of the rows in which two people give the same answer


def melted(records: Records) -> list[Records]:
    """The records as a long table, for each way in which columns are numbered alike: `Q{n}_left` for Q1_left, Q2_left;
    the most columns first. Columns without a number are repeated.

    >>> from stream_engine.formats.record_columns import records_of
    >>> wide = records_of({"id": ["p"], "Q1_a": ["x"], "Q1_b": ["y"], "Q2_a": ["z"], "Q2_b": ["x"]})
    >>> [(table.size, list(table.columns)) for table in melted(wide)]
    [(2, ['id', 'Q{n}_a', 'Q{n}_b'])]
    """
    groups: dict[str, dict[str, str]] = {}  # name without one of its numbers -> number -> name
    for name in records.columns:
        for number in re.finditer(r"[0-9]+", name):
            pattern = f"{name[: number.start()]}{{n}}{name[number.end() :]}"
            groups.setdefault(pattern, {})[number[0]] = name
    by_numbers: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for pattern, numbered in groups.items():
        if len(numbered) > 1:
            by_numbers.setdefault(tuple(numbered), {})[pattern] = numbered
    tables = []
    for numbers, patterns in sorted(by_numbers.items(), key=lambda item: -len(item[1])):
        used = {name for numbered in patterns.values() for name in numbered.values()}
        columns = {
            name: column._replace(values=[value for value in column.values for _ in numbers])
            for name, column in records.columns.items()
            if name not in used
        }
        for pattern, numbered in patterns.items():
            of_pattern = [records.columns[numbered[number]] for number in numbers]
            cells = [column.values[row] for row in range(records.size) for column in of_pattern]
            columns[pattern] = Column(pattern, cells, frozenset().union(*(column.empties for column in of_pattern)))
        tables.append(Records(columns, records.size * len(numbers), beside=records.beside))
    return tables


PARTICIPANT = "{participant}"  # of the name of a column with the answers of one of them
_PEOPLE = re.compile(
    r"(?:rater|annotator|coder|judge|participant|proband|subject|subj|sub|s|p|pp|ppt|vp|vpn|vpnr|tn|user|worker|observer"
    r"|respondent|person|student|child|teilnehmer|sujet|sujeto|participante|deelnemer|pid)[_ .-]?[0-9]+",
    re.I,
)


def answered_by_columns(records: Records) -> Iterator[tuple[Records, str, bool]]:
    """Tables whose columns hold answers of several people to the question of each row, `odd_rater1` and `odd_rater2`,
    as long ones; the name of the answer there, and whether the names are called people.

    >>> names = {"a": [*"xyz"], "odd_rater1": [*"xyz"], "odd_rater2": [*"xzy"]}
    >>> from stream_engine.formats.record_columns import records_of
    >>> [(table.size, *table.columns, *more) for table, *more in answered_by_columns(records_of(names))][:1]
    [(6, 'a', '{participant}', 'odd_{participant}', 'odd_{participant}', True)]
    """
    families: dict[str, dict[str, str]] = {}  # pattern -> what its placeholder stands for -> name
    for name in records.columns:
        parts = re.split(r"([_\-. ]+)", name)
        for place in range(0, len(parts), 2) if len(parts) > 1 else ():
            pattern = "".join([*parts[:place], PARTICIPANT, *parts[place + 1 :]])
            families.setdefault(pattern, {})[parts[place]] = name
        if (number := re.search(r"[0-9]+$", name)) and number.start() and len(parts[-1]) > len(number[0]):
            families.setdefault(name[: number.start()] + PARTICIPANT, {})[number[0]] = name
    for pattern, family in families.items():
        columns = [records.columns[name] for name in family.values()]
        if len(family) < 2 or {*matches(pattern, [*records.columns]).values()} != {*family.values()}:
            continue
        called = all(_PEOPLE.fullmatch(text) or _PEOPLE.fullmatch(name) for text, name in family.items())
        called = called or all(_PEOPLE.fullmatch("".join(words_of(name)[-2:])) for name in family.values())
        if any(map(_has_a_meaning, family)) or not _are_answers_of_one(columns, called):
            continue
        people = [*family]
        long = {
            name: column._replace(values=[value for value in column.values for _ in people])
            for name, column in records.columns.items()
            if name not in family.values()
        }
        who: list[tuple[str, ...] | None] = [(text,) for text in people]
        long[PARTICIPANT] = Column(PARTICIPANT, who * records.size)
        cells = [column.values[row] for row in range(records.size) for column in columns]
        long[pattern] = Column(pattern, cells, frozenset().union(*(column.empties for column in columns)))
        yield Records(long, records.size * len(people)), pattern, called


def _has_a_meaning(text: str) -> bool:
    """Whether a part of a name says which answer it is, or what of it: nearer, second, left, rt."""
    words = words_of(text)
    placed = any(place_in(words, order) >= 0 for order in PLACES) and not text.isdecimal()
    return placed or sign_of(words) != 0 or bool((OTHER | TRUTH | MATERIAL | ANSWER) & {*words})


def _are_answers_of_one(columns: Sequence[Column], called: bool) -> bool:
    """Whether columns hold the same values, and agree in some rows, as answers to one question do; unless they are
    `called` people, not in nearly all."""
    pairs = [*combinations(columns, 2)]
    if any(
        2 * len(one.distinct & other.distinct) < max(len(one.distinct), len(other.distinct), 2) for one, other in pairs
    ):
        return False
    both = [a == b for one, other in pairs for a, b in zip(one.texts, other.texts) if a is not None and b is not None]
    share = sum(both) / len(both) if both else 0.0
    return share >= MIN_AGREEMENT if called else MIN_AGREEMENT <= share <= 1 - MIN_AGREEMENT / 4


def asked_in_header(records: Records) -> tuple[Records, str] | None:
    """A table whose header asks, "is lemon more like lime or like bread?", as a long one, with the name of the
    column of its answers: those that were given stand in the header, and so do the other objects, in one pattern.

    >>> from stream_engine.formats.record_columns import records_of
    >>> wide = records_of({"more like a: b or c?": ["b", "c"], "more like b: a or c?": ["c", "a"]})
    >>> asked_in_header(wide)[1], asked_in_header(wide)[0].columns["{a}"].texts
    ('more like {a}: {b} or {c}?', ['a', 'b', 'a', 'b'])
    """
    rests = []
    for name, column in records.columns.items():
        inside = sorted((value for value in column.distinct if value in name), key=name.index)
        if len(column.distinct) == 2 == len(inside) and all(name.count(value) == 1 for value in inside):
            rests.append(re.sub("|".join(map(re.escape, sorted(inside, key=len, reverse=True))), "\0", name))
    if len(rests) < 2:
        return None
    begin, end = _shared(rests), _shared([frame[::-1] for frame in rests])[::-1]
    if end.count("\0") != 2 or not all(begin + "{a}" + end for _ in rests):
        return None
    between = end.split("\0")
    pattern = f"{begin}{{a}}{between[0]}{{b}}{between[1]}{{c}}{between[2]}"
    expression = re.compile("(.+?)".join(map(re.escape, (begin, *between))), re.DOTALL)
    asked = {name: match.groups() for name in records.columns if (match := expression.fullmatch(name))}
    fits = [name for name, (_, b, c) in asked.items() if records.columns[name].distinct <= {b, c}]
    if len(fits) < max(2, len(rests)) or len(fits) < len(asked):
        return None
    options = {option for name in fits for option in asked[name][1:]}
    if 2 * sum(asked[name][0] in options for name in fits) < len(fits):
        return None  # what stands there is no object
    columns = {
        name: column._replace(values=[value for value in column.values for _ in fits])
        for name, column in records.columns.items()
        if name not in asked
    }
    for place, variable in enumerate(("{a}", "{b}", "{c}")):
        values: list[tuple[str, ...] | None] = [(asked[name][place],) for name in fits]
        columns[variable] = Column(variable, values * records.size)
    columns[pattern] = Column(
        pattern, [records.columns[name].values[row] for row in range(records.size) for name in fits]
    )
    return Records(columns, records.size * len(fits), beside=records.beside), pattern


def _shared(texts: list[str]) -> str:
    """What texts begin with alike, up to the end of a word."""
    first, last = min(texts), max(texts)
    size = next((place for place, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    while size and first[size - 1].isalnum():
        size -= 1
    return first[:size]
