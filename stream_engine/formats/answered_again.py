"""Rows in which a participant answers a question of another row again: clicks before the final answer, corrections."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from shlex import quote

from stream_engine.formats.field_values import number_of
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ROUNDS, SCREENS, words_of

MIN_RUNS = 10  # of rows with the same question, for a text that ends each
MAX_STEPS = 6  # texts of a column that says which step of an answer, or which attempt, a row is
MIN_TRIALS = 5  # different numbers of trials
MAX_PARTS = 25  # texts of a column that says in which part of a study, or when, a participant answered
TIMES_OF_ONE = frozenset(  # at which one participant is asked
    words_of(
        "sesion sessie sitzung seance sessione tag dag jour dia day week woche semaine semana welle ronde fase etape "
        "etapa bloque blok bloc taak tache tarea tipo soort moment zeitpunkt period periode messung"
    )
)
_PARTS = (ROUNDS | TIMES_OF_ONE | {"date", "datum", "fecha", "part", "phase", "run", "task", "timepoint"}) - {
    *("trial", "durchgang"),
}
_COUNTERS = SCREENS | {"nr", "no", "number", "nummer", "numero", "index"}
_NO_COUNTERS = _PARTS | {"type", "kind", "name", "list", "condition", "category", "duration", "rt"}

OF_QUESTION = {"objects", "shown", "ranked", "near", "far", "near_i", "near_j", "far_i", "far_j"}  # beside an anchor

Question = tuple[str | None, tuple[str | None, ...], frozenset[str]]  # a participant, an anchor, and all other objects


def answered_again(records: Records, columns: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What to say of rows that answer a question again; `columns` are those of the fields of the reading. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> cells = {"who": [*"pppppppp"], "a": [*"uvwxyzyz"], "odd": [*"uvwxyzzy"], "trial": [*"12345656"]}
    >>> fields = {"worker": ("who",), "objects": ("a",), "odd": ("odd",)}
    >>> answered_again(records_of(cells), fields)[0][:72]
    '2 of 8 rows answer a trial of an earlier row again (same who, trial and '
    """
    who = "".join(columns.get("worker", ()))
    if who not in records.columns or not records.size or not OF_QUESTION & columns.keys():
        return []
    used = {name for names in columns.values() for name in names}
    says = _steps(records, _questions(records, columns), used)
    rows = [*zip(*(column.texts for column in records.columns.values()))]
    first = {cells: row for row, cells in reversed([*enumerate(rows)])}
    unique = records.select(sorted(first.values()))  # copies are said of elsewhere
    return says or _corrected(unique, who, _questions(unique, columns), used)


def _questions(records: Records, columns: Mapping[str, tuple[str, ...]]) -> list[Question]:
    """The question of each row, whatever was answered."""
    names = [name for field in columns if field in OF_QUESTION for name in columns[field]]
    people, *anchors = (records.columns[name].texts for name in (*columns["worker"], *columns.get("anchor", ())))
    objects = zip(*(records.columns[name].values for name in names))
    sets = [frozenset(text for value in values for text in value or ()) for values in objects]
    return [*zip(people, zip(*anchors) if anchors else [()] * records.size, sets)]


def _steps(records: Records, questions: Sequence[Question], used: set[str]) -> list[str]:
    """What to say of a column with a text that ends each run of rows about one question, and others that never do."""
    runs = [[row for row, _ in run] for _, run in groupby(enumerate(questions), key=lambda each: each[1])]
    for column in _free(records, used) if MIN_RUNS <= len(runs) < records.size else ():
        texts = column.texts
        if _PARTS & {*column.words} or any(number_of(text or "", text=True) is not None for text in texts):
            continue
        final = texts[runs[0][-1]]
        n_final, n_ends = texts.count(final), sum(texts[run[-1]] == final for run in runs)
        n_others = records.size - n_final
        if None in texts or not n_others or n_ends < 0.95 * len(runs) or 10 * (len(runs) - n_ends) > n_others:
            continue
        if n_final > 1.1 * n_ends:
            continue
        others = ", ".join(sorted(column.distinct - {final or ""}))
        fact = f"{n_others:,} of {records.size:,} rows, in which {column.name} is {others}, come before one about the "
        fact += f"same question in which it is {final}, and count: if these are clicks before the final answer, count "
        return [f"{fact}that alone: --where {quote(f'{column.name}={final}')}"]
    return []


def _free(records: Records, used: set[str]) -> list[Column]:
    """The columns without a role that have a few texts."""
    columns = [column for name, column in records.columns.items() if name not in used and not set(name) & set(",|=")]
    return [column for column in columns if 2 <= len(column.distinct) <= MAX_STEPS]


def _corrected(records: Records, who: str, questions: Sequence[Question], used: set[str]) -> list[str]:
    """What to say of rows of a participant with the number of a trial, and the objects, of an earlier row."""
    counters, parts = [], []
    for name, column in records.columns.items():
        words = {*column.words}
        if name in used or None in column.values or set(name) & set(",|="):
            continue
        is_counter = len(column.distinct) >= MIN_TRIALS and all(re.search("[0-9]", text) for text in column.distinct)
        if words & _PARTS and len(column.distinct) <= MAX_PARTS:
            parts.append(column)
        elif words & _COUNTERS and not words & _NO_COUNTERS and is_counter:
            counters.append(column)
    rows_of: list[list[list[int]]] = []
    for counter in counters:
        of_key: dict[object, list[int]] = {}
        for row, key in enumerate(zip(questions, *(column.texts for column in (counter, *parts)))):
            of_key.setdefault(key, []).append(row)
        rows_of.append([*of_key.values()])
    if not rows_of or any(len(groups) == records.size for groups in rows_of):
        return []  # a column numbers each of them
    groups, counter = rows_of[0], counters[0]
    n_again = records.size - len(groups)
    names = [who, *(column.name for column in parts), counter.name]
    fact = (
        f"{n_again:,} of {records.size:,} rows answer a trial of an earlier row again (same {', '.join(names[:-1])}, "
    )
    fact += f"{counter.name} and objects), and all count: corrections, a second run, or trials that are repeated on "
    keep = f"in pandas, table.drop_duplicates({names}, keep='last')"
    first = _of_first(records, used, groups)
    return [
        f"{fact}purpose? To count the last answer alone: {keep}" + (f"; the first: --where {first}" if first else "")
    ]


def _of_first(records: Records, used: set[str], groups: Sequence[Sequence[int]]) -> str:
    """The filter for the first row of each group, where a column of attempts tells it from the others."""
    for column in _free(records, used):
        texts = column.texts
        first = {texts[rows[0]] for rows in groups}
        later = {texts[row] for rows in groups for row in rows[1:]}
        if len(first) == 1 and None not in first and not first & later:
            return quote(f"{column.name}={first.pop()}")
    return ""
