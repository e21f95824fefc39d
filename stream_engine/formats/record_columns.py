"""The first records of an input as columns of text: which values are empty, which tables are wide.

And which records are questions, as other columns tell: practice, instructions, catch trials, rows below the header.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from stream_engine.formats.event_fields import LIST_SEPARATOR
from stream_engine.formats.field_values import name_text

EMPTY = {"", "na", "n/a", "#n/a", "nan", "null", "none", "undefined", "nat"}  # in any case: no value
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|\{n\}")
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


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case; digits are words."""
    return tuple(word.lower() for word in _WORDS.findall(name))


class Records(NamedTuple):
    """Some first records: columns of equal length."""

    columns: dict[str, Column]
    size: int
    decimal_commas: bool = False  # whether numbers may have one: in CSV with another delimiter

    def kept(self, rows: Iterable[int]) -> "Records":
        """The records of these numbers."""
        rows = list(rows)
        return Records(
            {name: each._replace(values=[each.values[row] for row in rows]) for name, each in self.columns.items()},
            len(rows),
            self.decimal_commas,
        )


def records_of(columns: Mapping[str, Sequence[Any]], decimal_commas: bool = False) -> Records:
    """Columns of cells, as a file or a frame has them.

    >>> found = records_of({"a": ["x", " NA", 3.0], "b": [["x", "y"], "x|y", None]})
    >>> found.columns["a"].values, sorted(found.columns["a"].empties), found.columns["b"].values
    ([('x',), None, ('3',)], ['NA'], [('x', 'y'), ('x', 'y'), None])
    """
    held = {name: _column(name, cells) for name, cells in columns.items()}
    return Records(held, max((len(each.values) for each in held.values()), default=0), decimal_commas)


def _column(name: str, cells: Sequence[Any]) -> Column:
    values: list[tuple[str, ...] | None] = []
    empties: set[str] = set()
    for cell in cells:
        parts = cell if isinstance(cell, list) else cell.split(LIST_SEPARATOR) if isinstance(cell, str) else [cell]
        texts = [_text(part) for part in parts]
        if len(texts) == 1 and texts[0] is not None and texts[0].casefold() in EMPTY:
            empties |= {texts[0]} - {""}
            texts = []
        values.append(tuple(text for text in texts if text is not None) if texts and None not in texts else None)
    return Column(name, values, frozenset(empties))


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
        "type kind phase task zone screen block stage part section component sender condition name display routine "
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

    decision: str
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
    columns = {"catch": fields["anchor"]} if any(same) and (marks or not own) else {}
    where, why = {}, f"in {sum(same):,} questions the target is an option"
    for name, values in marks.items():
        column = records.columns[name]
        unknown = sum(text in values and not same[row] for row, text in enumerate(column.texts))
        if unknown and values < column.distinct:
            where[f"{name}!="] = LIST_SEPARATOR.join(sorted(values))
            why, columns = f"{name} marks {unknown:,} of them, and their right answers are not known", {}
    return Filters("catch trials", where, why, columns) if columns or where else None


def _marks(column: Column) -> set[str]:
    """The values of a column that mark catch trials."""
    if is_boolean(column):
        called = _CATCH & {*column.words, "".join(column.words)}
        return {text for text in column.distinct if text.casefold() in _TRUE} if called else set()
    kinds = KIND & set(column.words) and len(column.distinct) <= MOST_KINDS
    return {text for text in column.distinct if _CALLED_CATCH.fullmatch(text)} if kinds else set()
