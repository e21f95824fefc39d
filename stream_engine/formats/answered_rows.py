"""Which rows are questions with an answer, and which are something else."""

from collections import Counter
from collections.abc import Mapping, Sequence

from stream_engine.formats.answers import Answer
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.changed_names import dates_of_names
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.trial_filters import Filters

MAX_OTHERS = 0.6  # share of the answers that may be no answers, and are named
MAX_LISTED_VALUES = 5  # of a column that are named
MAX_TIMEOUTS = 0.2  # share of the answers that are -1 where that is taken for none
_NO_ANSWER = frozenset(
    ("timeout", "timed out", "no response", "no_response", "noresponse", "none", "null", "", "space", "escape", "-1")
)


def answers_filter(records: Records, state: list[str], answer: Answer, doubt: str) -> tuple[Filters | None, str]:
    """The filter that leaves out what is no answer, and the doubt where it might be one: "can't tell"."""
    column = records.columns[answer.columns[0]]
    others = Counter(text for text, row_state in zip(column.texts, state) if row_state == "other" and text)
    asked = sum(row_state != "empty" for row_state in state)
    n, most = others.total(), [text for text, _ in others.most_common(MAX_LISTED_VALUES)]
    if (
        len(answer.columns) > 1
        or n > MAX_OTHERS * asked
        or len(others) > MAX_LISTED_VALUES
        or LIST_SEPARATOR in "".join(most)
    ):
        return None, doubt
    quoted = ", ".join(f'"{text}"' for text in most)
    coded = answer.accepted is not None and len(answer.codes_of(column)) > 0
    nothing = all(text.casefold() in _NO_ANSWER for text in most)
    nothing = nothing and not ("-1" in others and others["-1"] > MAX_TIMEOUTS * asked)  # or a side of -1, 0, 1
    key = (
        coded
        and 10 * n <= asked
        and not any(map(str.isdecimal, most))
        and all(len(text) <= 12 and " " not in text for text in most)
        and _is_key(column)
    )
    if nothing or key:
        wanted = LIST_SEPARATOR.join(answer.codes_of(column)) if coded else ""
        where = {column.name: wanted} if coded else {f"{column.name}!=": LIST_SEPARATOR.join(most)}
        return Filters("no answers", where, f"{n:,} rows are no answers: {quoted}"), doubt
    fact = f"{n:,} of {asked:,} answers ({n / asked:.0%}) in {column.name} are {quoted}, "
    fitting = {text for text, row_state in zip(column.texts, state) if row_state in ("fits", "catch")}
    fact += "which these rows did not show" if fitting & {*most} else "and no object is called so"
    if dates := dates_of_names({*column.distinct}):
        fact += f" ({dates}: write them in full, as the objects are called)"
    where = {f"{column.name}!=": LIST_SEPARATOR.join(most)}
    excluded = sum(text in others for text in column.texts)
    return Filters("no answers", where, f"{excluded:,} of {records.size:,} rows"), fact


def _is_key(column: Column) -> bool:
    return bool({"key", "keys", "keypress", "keyboard", "press", "resp"} & set(column.words)) or all(
        len(text) == 1 or text.startswith("arrow")
        for text in column.distinct - {" "}
        if text.casefold() not in _NO_ANSWER
    )


def half_empty(records: Records, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """What to say of questions that lack one object and have the others: a name that was taken for none."""
    objects = [name for names in fields.values() for name in names if name not in answer.columns]
    holes: Counter[str] = Counter()
    for row in range(records.size):
        empty = [
            name
            for name in objects
            if records.columns[name].values[row] is None
            and not any(text.startswith("#") for text in records.columns[name].empties)  # an error of a spreadsheet
        ]
        if len(empty) == 1 and len(objects) > 2:
            holes[empty[0]] += 1
    if len(holes) < 2 or any("{" in name for name in objects):
        return ""
    return (
        f"{holes.total():,} of {records.size:,} rows lack one object and have the others ({', '.join(holes)}): an "
        "object called NA, None or null may have been taken for a missing value; next: in pandas read_csv(..., "
        f"keep_default_na=False), or leave these rows out with --where '{next(iter(holes))}!='"
    )


def state_of(records: Records, row: int, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> str:
    """Whether a record is a question that `fits`, a `catch` trial, `empty`, or some `other` thing."""
    cells = {field: [records.columns[name].values[row] for name in names] for field, names in fields.items()}
    answers = [text for name in answer.columns for text in records.columns[name].values[row] or ()]
    required = [
        value for field, values in cells.items() for value in values if not (answer.by == "flag" and field in ANSWERS)
    ]
    if any(value is None for value in required):
        return "empty"
    texts = {field: [text for value in values for text in value or ()] for field, values in cells.items()}
    offered = texts.get("shown") or texts.get("ranked") or texts.get("objects") or [*texts["near"], *texts["far"]]
    if answer.by == "flag":
        answers = (
            [(records.columns[name].texts[row] or "") for name in answer.columns]
            if len(answer.columns) > 1
            else answers
        )
    if answer.columns and not answer.names(answers, offered) and "ranked" not in fields:
        return "other"
    everything = [*texts.get("anchor", ()), *offered]
    pairs = "near" in fields and len(fields["near"]) == 2
    return "fits" if len(set(everything)) == len(everything) or (pairs and len({*offered}) > 2) else "catch"


ANSWERS = ("chosen", "odd", "central")


def where_filled(records: Records, inputs: Sequence[str], answered: str | None) -> dict[str, str]:
    """Filters that leave out records without an object or an answer: as few as do; the empty answer of a wide table
    is excluded anyway."""
    filters: dict[str, str] = {}
    empty_so_far = list(range(records.size))
    for name in reversed(inputs):
        column = records.columns[name]
        empty = [row for row in empty_so_far if column.values[row] is None]
        if empty:
            empty_so_far = [row for row in empty_so_far if column.values[row] is not None]
            if name != answered or column.empties:
                filters[f"{name}!="] = LIST_SEPARATOR.join(["", *sorted(column.empties)])
    return {key: value for key, value in filters.items() if "{" not in key or not key.startswith("{")}


def have_all(records: Records, names: Sequence[str]) -> list[bool]:
    """Whether each record has all objects."""
    return [all(records.columns[name].values[row] for name in names) for row in range(records.size)]
