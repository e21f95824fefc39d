"""The first records of an input as columns of text: which values are empty, which tables are wide.

And which records are questions, as other columns tell: practice, instructions, catch trials, rows below the header.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from stream_engine.formats.cells import LIST_SEPARATOR, inside, is_bracketed, items_of
from stream_engine.formats.event_fields import PACE
from stream_engine.formats.field_values import DECIMAL_COMMA, name_text, number_of
from stream_engine.formats.vocabulary import LISTS, words_of

EMPTY = {"", "na", "n/a", "#n/a", "nan", "null", "none", "undefined", "nat"}  # in any case: no value
MOST_SUSPECTS = 8  # columns with such a text that are compared
_NUMBER = re.compile(r"[0-9]+")


class Column(NamedTuple):
    """One column: a text or several per record, None where there is none."""

    name: str
    values: list[tuple[str, ...] | None]
    empties: frozenset[str] = frozenset()  # texts other than "" that stand for no value here

    @property
    def texts(self) -> list[str | None]:
        """The values as single texts; several are joined as in a table of text."""
        return [None if value is None else LIST_SEPARATOR.join(value) for value in self.values]

    @property
    def distinct(self) -> set[str]:
        """The values that occur."""
        return {text for text in self.texts if text is not None}

    @property
    def items(self) -> set[str]:
        """The single texts that occur."""
        return {text for value in self.values for text in value or ()}

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its name in lower case.

        >>> Column("Input.stimulusLeft_2", []).words
        ('input', 'stimulus', 'left', '2')
        """
        return words_of(self.name)


class Records(NamedTuple):
    """Some first records: columns of equal length."""

    columns: dict[str, Column]
    size: int
    decimal_commas: bool = False  # whether numbers may have one: in CSV with another delimiter
    separators: Mapping[str, str] = {}  # of the lists in the cells of these columns

    def select(self, rows: Iterable[int]) -> "Records":
        """The records of these numbers."""
        rows = list(rows)
        columns = {
            name: each._replace(values=[each.values[row] for row in rows]) for name, each in self.columns.items()
        }
        return self._replace(columns=columns, size=len(rows))


def records_of(columns: Mapping[str, Sequence[Any]], decimal_commas: bool = False) -> Records:
    """Columns of cells, as a file or a frame has them. JSON in cells becomes columns of its own, names of no value stay
    where they can only be names, and lists are taken apart.

    >>> found = records_of({"a": ["x", "NA", 3.0], "b": [["x", "y"], "x|y", None], "c": ["['p', 'q']"] * 3})
    >>> found.columns["a"].values, sorted(found.columns["a"].empties), found.columns["b"].values
    ([('x',), None, ('3',)], ['NA'], [('x', 'y'), ('x', 'y'), None])
    >>> found.columns["c"].values[0], records_of({"j": ['{"k": "v"}']}).columns["j.k"].values
    (('p', 'q'), [('v',)])
    """
    reached: dict[str, Sequence[Any]] = {}
    for name, cells in columns.items():
        inner = [inside(cell) for cell in cells]
        if 2 * sum(map(bool, inner)) > sum(cell not in (None, "") for cell in cells):
            names = dict.fromkeys(f"{name}.{path}" for each in inner for path in each)
            reached |= {path: [each.get(path[len(name) + 1 :]) for each in inner] for path in names}
        else:
            reached[name] = cells
    separators = {name: found for name, cells in reached.items() if (found := _separator(name, cells, reached))}
    held = {
        name: Column(name, [_items(cell, separators.get(name)) for cell in cells]) for name, cells in reached.items()
    }
    named = _names_of_nothing(held)
    held = {name: _without_empty(each, named) for name, each in held.items()}
    return Records(held, max((len(each.values) for each in held.values()), default=0), decimal_commas, separators)


def _items(cell: Any, separator: str | None) -> tuple[str, ...] | None:
    """The texts of a cell; None where it holds nothing."""
    parts = cell if isinstance(cell, list) else items_of(cell, separator) if isinstance(cell, str) else [cell]
    texts = [_text(part) for part in parts]
    return tuple(text for text in texts if text) if texts and None not in texts and all(texts) else None


def _without_empty(column: Column, named: set[str]) -> Column:
    """The column without texts that stand for no value in it."""
    empties = {each for each in column.distinct if each.casefold() in EMPTY and each not in named}
    values = [
        None if value is not None and len(value) == 1 and value[0] in empties else value for value in column.values
    ]
    return column._replace(values=values, empties=frozenset(empties)) if empties else column


def _names_of_nothing(columns: Mapping[str, Column]) -> set[str]:
    """Texts such as NA that are names here: each of two columns with the same objects holds it where the other one
    holds an object, about as often as other objects; or a list has it among others."""
    held = [each for each in columns.values() if len(each.distinct) > 2]
    suspects = {text for each in held for text in each.distinct if text.casefold() in EMPTY}
    named = suspects & {text for each in held for value in each.values if value and len(value) > 1 for text in value}
    for text in suspects - named:
        having = [each for each in held if text in each.distinct]
        for one, other in combinations(having[:MOST_SUSPECTS], 2):
            common = one.distinct & other.distinct
            counts = Counter(value[0] for value in one.values if value and len(value) == 1)
            usual = sorted(counts.values())[len(counts) // 2]
            if len(common) > 2 and _alone(text, one, other) and _alone(text, other, one) and 5 * counts[text] > usual:
                named.add(text)
                break
    return named


def _alone(text: str, one: Column, other: Column) -> bool:
    return any(a == (text,) and b is not None and b != a for a, b in zip(one.values, other.values))


def _separator(name: str, cells: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> str | None:
    """The sign between the items of lists in the cells of a column: each has as many, and most of them again and again;
    a comma only where another column holds them alone, or the column is called a list."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell]
    if not texts or LIST_SEPARATOR in texts[0] or is_bracketed(texts[0]):
        return None
    for separator in (";", ","):
        parts = [[item.strip() for item in text.split(separator)] for text in texts[:200]]
        sizes, items = {len(each) for each in parts}, {item for each in parts for item in each}
        if len(sizes) != 1 or min(sizes) < 2 or "" in items or 2 * len(items) > len(parts) * min(sizes):
            continue
        beside = any(
            items.issuperset(filter(None, map(str, other[:200]))) for key, other in columns.items() if key != name
        )
        if (
            beside
            or (LISTS & set(words_of(name)) and separator == ";")
            or (LISTS & set(words_of(name)) and min(sizes) == 3)
        ):
            return separator
    return None


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, (dict, list)):
        return None
    if isinstance(cell, bool):
        return str(cell).lower()
    text = name_text(cell.strip() if isinstance(cell, str) else cell, text=True)
    return str(cell) if text is None else text


def melted(records: Records) -> list[Records]:
    """The records as a long table, for each way in which columns are numbered alike: `Q{n}_left` for Q1_left, Q2_left;
    the most columns first. Columns without a number are repeated.

    >>> wide = records_of({"id": ["p"], "Q1_a": ["x"], "Q1_b": ["y"], "Q2_a": ["z"], "Q2_b": ["x"]})
    >>> [(each.size, list(each.columns)) for each in melted(wide)]
    [(2, ['id', 'Q{n}_a', 'Q{n}_b'])]
    """
    groups: dict[str, dict[str, str]] = {}  # name without one of its numbers -> number -> name
    for name in records.columns:
        for found in _NUMBER.finditer(name):
            pattern = f"{name[: found.start()]}{{n}}{name[found.end() :]}"
            groups.setdefault(pattern, {})[found[0]] = name
    by_numbers: dict[tuple[str, ...], dict[str, dict[str, str]]] = {}
    for pattern, numbered in groups.items():
        if len(numbered) > 1:
            by_numbers.setdefault(tuple(numbered), {})[pattern] = numbered
    tables = []
    for numbers, patterns in sorted(by_numbers.items(), key=lambda each: -len(each[1])):
        used = {name for numbered in patterns.values() for name in numbered.values()}
        columns = {
            name: each._replace(values=[value for value in each.values for _ in numbers])
            for name, each in records.columns.items()
            if name not in used
        }
        for pattern, numbered in patterns.items():
            of_pattern = [records.columns[numbered[number]] for number in numbers]
            cells = [each.values[row] for row in range(records.size) for each in of_pattern]
            columns[pattern] = Column(pattern, cells, frozenset().union(*(each.empties for each in of_pattern)))
        tables.append(Records(columns, records.size * len(numbers)))
    return tables


def asked_in_header(records: Records) -> tuple[Records, str] | None:
    """A table whose header asks, "is lemon more like lime or like bread?", as a long one, with the name of the
    column of its answers: those that were given stand in the header, and so do the other objects, in one pattern.

    >>> wide = records_of({"more like a: b or c?": ["b", "c"], "more like b: a or c?": ["c", "a"]})
    >>> asked_in_header(wide)[1], asked_in_header(wide)[0].columns["{a}"].texts
    ('more like {a}: {b} or {c}?', ['a', 'b', 'a', 'b'])
    """
    rests = []
    for name, column in records.columns.items():
        inside = sorted((each for each in column.distinct if each in name), key=name.index)
        if len(column.distinct) == 2 == len(inside) and all(name.count(each) == 1 for each in inside):
            rests.append(re.sub("|".join(map(re.escape, sorted(inside, key=len, reverse=True))), "\0", name))
    if len(rests) < 2:
        return None
    begin, end = _shared(rests), _shared([each[::-1] for each in rests])[::-1]
    if end.count("\0") != 2 or not all(begin + "{a}" + end for _ in rests):
        return None
    between = end.split("\0")
    pattern = f"{begin}{{a}}{between[0]}{{b}}{between[1]}{{c}}{between[2]}"
    expression = re.compile("(.+?)".join(map(re.escape, (begin, *between))), re.DOTALL)
    asked = {name: match.groups() for name in records.columns if (match := expression.fullmatch(name))}
    fits = [name for name, (_, b, c) in asked.items() if records.columns[name].distinct <= {b, c}]
    if len(fits) < max(2, len(rests)) or len(fits) < len(asked):
        return None
    options = {each for name in fits for each in asked[name][1:]}
    if 2 * sum(asked[name][0] in options for name in fits) < len(fits):
        return None  # what stands there is no object
    columns = {
        name: each._replace(values=[value for value in each.values for _ in fits])
        for name, each in records.columns.items()
        if name not in asked
    }
    for place, variable in enumerate(("{a}", "{b}", "{c}")):
        values: list[tuple[str, ...] | None] = [(asked[name][place],) for name in fits]
        columns[variable] = Column(variable, values * records.size)
    columns[pattern] = Column(
        pattern, [records.columns[name].values[row] for row in range(records.size) for name in fits]
    )
    return Records(columns, records.size * len(fits)), pattern


def _shared(texts: list[str]) -> str:
    """What texts begin with alike, up to the end of a word."""
    first, last = min(texts), max(texts)
    size = next((place for place, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    while size and first[size - 1].isalnum():
        size -= 1
    return first[:size]


MOST_KINDS = 25  # values of a column that says what a record is
KIND = frozenset(
    words_of(
        "bedingung gruppe versuch durchgang phase "
        "type kind task zone screen block stage part section component sender condition name display routine "
        "event status set alg trial node round"
    )
)
_PRACTICE = re.compile(
    r"practi[cs]e.*|prac|warm.?up.*|demo.*|example.*|tutorial.*|familiari[sz]ation.*|(ü|ue)bung.*", re.I
)
_LOOP = re.compile(r"(.+)\.(thisN|thisRepN|thisTrialN|thisIndex|ran)")  # PsychoPy: empty outside of the loop
_TRAINING = re.compile(r"training.*", re.I)
_OTHER_HALF = re.compile(r"test.*|valid.*|hold.?out.*|check.*", re.I)
_CATCH = {"catch", "attention", "check", "gold", "sanity", "catchtrial"}
_CALLED_CATCH = re.compile(r"(catch|attention|check)([ _-]?\w*)?", re.I)
_TRUE, _FALSE = {"1", "true", "yes", "t"}, {"0", "false", "no", "f"}


class Filters(NamedTuple):
    """What leaves records out, or tells what they are, and why."""

    topic: str
    where: Mapping[str, str]
    why: str
    columns: Mapping[str, tuple[str, ...]] = {}
    doubt: str = ""


def is_boolean(column: Column) -> bool:
    """Whether a column says yes or no."""
    told = {text.casefold() for text in column.distinct}
    return bool(told) and told <= _TRUE | _FALSE


def header_rows(records: Records) -> tuple[dict[str, str], list[int]] | None:
    """The filter that leaves out rows below the header that describe columns (Qualtrics, SurveyMonkey), and previews;
    and the rows that stay. None where there are no such rows.

    >>> from stream_engine.formats.record_columns import records_of
    >>> header_rows(records_of({"Progress": ["Progress", '{"ImportId":"progress"}', "100"], "Q1": ["?", "{}", "a"]}))
    ({'Progress>=': '0'}, [2])
    """
    columns = list(records.columns.values())
    tops = [row for row in range(min(3, records.size)) if any(_describes(each, row) for each in columns)]
    if not tops:
        return None
    first = max(tops) + 1
    for column in sorted(columns, key=lambda each: not {"progress", "duration", "respondent"} & set(each.words)):
        texts = column.texts
        numbers = texts[first:] and all(text is not None and _is_number(text) for text in texts[first:])
        if numbers and not any(text and _is_number(text) for text in texts[:first]):
            filters = {f"{column.name}>=": "0"}
            break
    else:
        return None
    kept = list(range(first, records.size))
    for column in columns:
        if "Survey Preview" in column.distinct:
            filters[f"{column.name}!="] = "Survey Preview"
            kept = [row for row in kept if column.texts[row] != "Survey Preview"]
    return filters, kept


def _describes(column: Column, row: int) -> bool:
    text = column.texts[row] or ""
    return "ImportId" in text or text in ("Response", "Open-Ended Response")


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) is not None


def distinguishing_filters(records: Records, good: Sequence[bool], other: Sequence[bool]) -> Filters | None:
    """The column whose values tell questions from what is none, the one that is called so first."""
    found = []
    for name, column in records.columns.items():
        texts = column.texts
        of_good = {text for text, is_good in zip(texts, good) if is_good}
        of_other = {text for text, is_other in zip(texts, other) if is_other}
        if None in of_good or of_good & of_other or len(column.distinct) > MOST_KINDS or name.startswith("{"):
            continue
        called = bool(KIND & set(column.words))
        if called or len(of_good) == 1:
            found.append((not called, len(of_good), name, sorted(text for text in of_good if text)))
    if not found:
        return None
    _, _, name, values = min(found, key=lambda each: each[:2])
    why = f"{sum(other):,} records are something else"
    return Filters("questions", {name: LIST_SEPARATOR.join(values)}, why)


def with_answers(column: Column, codes: Sequence[str]) -> Filters:
    """Leave out what is no answer: another key, no key in time."""
    others = sorted(column.distinct - set(codes))[:3]
    return Filters("questions", {column.name: LIST_SEPARATOR.join(codes)}, f"no answers: {', '.join(others)}")


def practice(records: Records, objects: Sequence[str]) -> Filters | None:
    """The filter that leaves out practice trials, where there are others too."""
    if (loops := _practice_loops(records)) is not None:
        return loops
    for name, column in records.columns.items():
        if name in objects or not column.distinct or len(column.distinct) > MOST_KINDS or _LOOP.fullmatch(name):
            continue
        if is_boolean(column):
            called = {"practice", "training", "prac", "demo"} & set(column.words)
            true = sorted(text for text in column.distinct if text.casefold() in _TRUE)
            if called and true and len(column.distinct) > 1:
                return Filters("practice", {f"{name}!=": LIST_SEPARATOR.join(true)}, f"{name} says so")
            continue
        told = sorted(text for text in column.distinct if _PRACTICE.fullmatch(text))
        training = sorted(text for text in column.distinct if _TRAINING.fullmatch(text))
        rest = column.distinct - set(told) - set(training)
        if told and rest:
            return Filters("practice", {f"{name}!=": LIST_SEPARATOR.join(told)}, f"{name} is {', '.join(told)}")
        if training and rest:
            filters = Filters("practice", {f"{name}!=": LIST_SEPARATOR.join(training)}, f"{name} is {training[0]}")
            halves = any(_OTHER_HALF.fullmatch(text) for text in rest)
            doubt = f"{name} may say what is practice, or which part of the data to train models on"
            return (
                filters._replace(doubt=doubt)
                if halves and not _disjoint(records, objects, column, training)
                else filters
            )
    return None


def _practice_loops(records: Records) -> Filters | None:
    """The filter that leaves out loops of PsychoPy that are called practice: by the loop of all other trials, or else
    by the numbers in the loops of practice.

    >>> _practice_loops(records_of({"practice.thisN": ["0", "1", ""], "trials.thisN": ["", "", "0"]})).where
    {'trials.thisN>=': '0'}
    """
    loops: dict[str, list[Column]] = {}
    for name, column in records.columns.items():
        if (found := _LOOP.fullmatch(name)) and column.distinct:
            loops.setdefault(found[1], []).append(column)
    called = {loop for loop in loops if any(_PRACTICE.fullmatch(word) for word in (loop, *words_of(loop)))}
    inside = [any(each.values[row] for loop in called for each in loops[loop]) for row in range(records.size)]
    if not any(inside) or all(inside):
        return None
    why = f"{sum(inside):,} of {records.size:,} trials are in the loop {', '.join(sorted(called))}"
    others = [each for loop in loops if loop not in called for each in loops[loop]]
    for column in sorted(others, key=lambda each: not each.name.endswith(".thisN")):
        if [value is None for value in column.values] == inside:
            return Filters("practice", {f"{column.name}>=": "0"}, why)
    fewest = [min(loops[loop], key=lambda each: len(each.distinct)) for loop in sorted(called)]
    if any(len(each.distinct) > MOST_KINDS for each in fewest):
        return None
    return Filters("practice", {f"{each.name}!=": LIST_SEPARATOR.join(sorted(each.distinct)) for each in fewest}, why)


def _disjoint(records: Records, objects: Sequence[str], column: Column, values: Sequence[str]) -> bool:
    """Whether records with these values have objects of their own."""
    inside, outside = set[str](), set[str]()
    for row, text in enumerate(column.texts):
        into = inside if text in values else outside
        into.update(each for name in objects for each in records.columns[name].values[row] or ())
    return not inside & outside


def catch_trials(records: Records, fields: Mapping[str, tuple[str, ...]], own: bool = False) -> Filters | None:
    """Trials in which an option is the target judge the participant; others that are called so are excluded. In the
    engine's `own` format such a trial is an error, unless another column marks catch trials."""
    offered = fields.get("shown") or (*fields.get("near", ()), *fields.get("far", ()))
    targets = records.columns[fields["anchor"][0]].values if "anchor" in fields else [None] * records.size
    same = [
        target is not None and any(target[0] in (records.columns[name].values[row] or ()) for name in offered)
        for row, target in enumerate(targets)
    ]
    used = {name for names in fields.values() for name in names}
    marks = {name: values for name, each in records.columns.items() if name not in used and (values := _marks(each))}
    marked = any(text in values for name, values in marks.items() for text in _at(records.columns[name], same))
    columns = {"catch": fields["anchor"]} if any(same) and marked else {}
    where, why = {}, f"in {sum(same):,} questions the target is an option"
    for name, values in marks.items():
        column = records.columns[name]
        unknown = sum(text in values and not same[row] for row, text in enumerate(column.texts))
        if unknown and values < column.distinct:
            where[f"{name}!="] = LIST_SEPARATOR.join(sorted(values))
            why, columns = f"{name} marks {unknown:,} of them, and their right answers are not known", {}
    return Filters("catch trials", where, why, columns) if columns or where else None


def _at(column: Column, rows: Sequence[bool]) -> list[str | None]:
    return [text for text, here in zip(column.texts, rows) if here]


def _marks(column: Column) -> set[str]:
    """The values of a column that mark catch trials."""
    if is_boolean(column):
        called = _CATCH & {*column.words, "".join(column.words)}
        return {text for text in column.distinct if text.casefold() in _TRUE} if called else set()
    kinds = KIND & set(column.words) and len(column.distinct) <= MOST_KINDS
    return {text for text in column.distinct if _CALLED_CATCH.fullmatch(text)} if kinds else set()


RESPONSE_TIMES = ("responsetime", "reactiontime", "reaktionszeit")
UNITS = {
    "milliseconds": frozenset(("ms", "msec", "millis", "milliseconds")),
    "seconds": frozenset(("s", "sec", "secs", "seconds")),
}
LONGEST = 60.0  # median of seconds; a larger one is of milliseconds
LEAST_NUMBERS = 0.9  # share of the values


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
