"""Rows that are read, and perhaps should not be: another table below the answers, copies, tests of the study, and
numbers of participants that begin again."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from shlex import quote

from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import OPTIONAL
from stream_engine.formats.field_values import number_of
from stream_engine.formats.reading import IN_DOUBT, Decision
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import words_of

MIN_ROWS_ABOVE = 10  # of another table
MIN_REPETITIONS = 3  # of the values of a column, on average, that are no numbers or texts of their own
MIN_SEEN = 5  # rows with each other object, where one that occurs in one row only is doubtful
N_NAMED = 5  # rows or objects
_TEST = re.compile(
    r"\b(?:tests?|tester|testing|debug|pilot|dummy|admin|preview|researcher|experimenter|versuchsleiter|demo)\b"
)
_TIME = re.compile(r"[0-9]{9,13}(\.[0-9]+)?|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}.*")
_SITES = frozenset(
    words_of("site lab laboratory labor standort location centre center school clinic country city room")
)


def other_table(records: Records) -> int | None:
    """The row with which another table or a summary begins: its values are in no other row, and the rows below it share
    at most one column with those above. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> answers = {"who": ["p", "q"] * 9, "a": ["x", "y"] * 9, "b": ["y", "x"] * 9}
    >>> ends = {"who": ["who", "p"], "a": ["age", "31"], "b": ["country", "DE"]}
    >>> other_table(records_of({name: answers[name] + ends[name] for name in answers}))
    18
    """
    size = records.size
    earliest = max(MIN_ROWS_ABOVE, size - size // 4)
    columns = [column.texts for column in records.columns.values()]
    columns = [texts for texts in columns if _repeats(texts[: max(1, size - size // 5)])]
    if len(columns) < 3:
        return None
    first = [{text: row for row, text in reversed([*enumerate(texts)])} for texts in columns]
    counts = [Counter(texts) for texts in columns]
    for begin in range(earliest, size):
        alone = all(texts[begin] and count[texts[begin]] == 1 for texts, count in zip(columns, counts))
        if alone and all(
            sum(texts[row] is not None and rows[texts[row]] < begin for texts, rows in zip(columns, first)) <= 1
            for row in range(begin, size)
        ):
            return begin
    return None


def _repeats(texts: Sequence[str | None]) -> bool:
    filled = [text for text in texts if text is not None]
    return len(filled) > 0.9 * len(texts) and MIN_REPETITIONS * len({*filled}) <= len(filled)


def copies(records: Records, used: Sequence[str]) -> tuple[int, str, bool]:
    """How many rows are copies of others in every column, one of which differs in all others: its name, and whether it
    is a time. `used`: columns of what was compared and answered. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"id": [*"aabcdef"], "said": [*"xxxxxxx"]}
    >>> copies(records_of(rows), ["said"]), copies(records_of({"said": [*"xxxxxxx"]}), ["said"])
    ((1, 'id', False), (0, '', False))
    """
    rows = [*zip(*(column.texts for column in records.columns.values()))]
    different = [*dict.fromkeys(rows)]
    n_copies = len(rows) - len(different)
    if len(different) < MIN_SEEN:
        return 0, "", False
    keys = []
    for place, (name, column) in enumerate(records.columns.items()):
        texts = [row[place] for row in different]
        if name not in used and None not in texts and len({*texts}) == len(texts):
            keys.append((not all(_TIME.fullmatch(text or "") for text in column.distinct), name))
    return (n_copies, min(keys)[1], not min(keys)[0]) if keys else (0, "", False)


OF_OBJECTS = ("anchor", "near", "far", "objects", "shown", "ranked", "near_i", "near_j", "far_i", "far_j")


def columns_of(records: Records, columns: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The columns of each field that the records have: as options say, or as they are called themselves."""
    own = {name: (name,) for name in (*OF_OBJECTS, *OPTIONAL) if name not in columns}
    return {field: names for field, names in {**own, **columns}.items() if {*names} <= {*records.columns}}


def below_in_words(records: Records, begin: int) -> str:
    """What to say of another table that begins at a row."""
    texts = ", ".join(text for column in records.columns.values() if (text := column.texts[begin]))
    fact = f"rows {begin + 1:,} to {records.size:,} below the header look like another table or a summary ({texts}): "
    return f"{fact}their values are in no row above"


def doubts(records: Records, options: Mapping[str, tuple[str, ...]], drops: bool) -> list[Decision]:
    """What to say of rows that count: `options` are the columns of the fields of the reading; `drops`: copies are
    dropped."""
    columns = columns_of(records, options)
    objects = [name for field in OF_OBJECTS for name in columns.get(field, ())]
    begin = other_table(records)
    below = [f"{below_in_words(records, begin)}; leave them out, or save them elsewhere"] if begin is not None else []
    says = [*below, *_copies_in_words(records, columns, drops), *_objects_seen_once(records, objects)]
    who = records.columns.get("".join(columns.get("worker", ())))
    if who is not None:
        says += [*who_tried(who), *_numbers_again(records, who)]
    return [Decision(IN_DOUBT, "counted", text) for text in says]


def _copies_in_words(records: Records, columns: Mapping[str, tuple[str, ...]], drops: bool) -> list[str]:
    about = ("worker", "time", "seconds", "milliseconds", "id")
    n_copies, key, is_time = copies(
        records, [name for field in columns if field not in about for name in columns[field]]
    )
    timed = {"time", "seconds", "milliseconds"} & columns.keys() and "worker" in columns
    fact = (
        f"{n_copies:,} of {records.size:,} rows are copies of others in every column, {key} too (a file sent twice?): "
    )
    remove = "first remove them (of text: awk '!seen[$0]++' FILE > unique.csv)"
    if drops and not timed:
        needs = "a participant and a time (participant= and time= or seconds= in --columns)"
        nothing = f"--drop-duplicates drops nothing: it tells copies by {needs}"
        return [f"{nothing}; {fact}{remove}" if n_copies else nothing]
    if not n_copies or timed:  # the decoder tells of them
        return []
    return [f"{fact}to count them once: {'--drop-duplicates' if is_time and 'worker' in columns else remove}"]


def _objects_seen_once(records: Records, names: Sequence[str]) -> list[str]:
    """Objects in one row only, where every other one is in several."""
    rows_of: dict[str, list[int]] = {}
    for row in range(records.size):
        for text in {text for name in names for text in records.columns[name].values[row] or ()}:
            rows_of.setdefault(text, []).append(row)
    once = [text for text, rows in rows_of.items() if len(rows) == 1]
    others = [len(rows) for rows in rows_of.values() if len(rows) > 1]
    if not once or len(others) < 3 or min(others) < MIN_SEEN or len(once) > len(others):
        return []
    numbers = sorted({rows_of[text][0] + 1 for text in once})
    rows = ", ".join(f"{number:,}" for number in numbers[:N_NAMED]) + (", …" if len(numbers) > N_NAMED else "")
    named = ", ".join(map(repr, once[:N_NAMED])) + (", …" if len(once) > N_NAMED else "")
    fact = f"{named} {'is' if len(once) == 1 else 'are'} in one row only (row {rows} below the header), and every "
    return [f"{fact}other object in {min(others):,} or more: a mistake, a comment or a summary? correct or remove it"]


def who_tried(who: Column) -> list[str]:
    """What to say of participants whose names say that somebody tried the study.

    >>> who_tried(Column("subject", [("P01",), ("TEST",), ("contestant",)]))
    ["1 of 3 rows count although subject is TEST (a test of the study?); to leave them out: --where 'subject!=TEST'"]
    """
    names = sorted(text for text in who.distinct if _TEST.search(" ".join(words_of(text))))
    if not names or len(names) == len(who.distinct) or LIST_SEPARATOR in "".join(names):
        return []
    n_rows = sum(text in names for text in who.texts)
    where = quote(f"{who.name}!={LIST_SEPARATOR.join(names)}")
    fact = f"{n_rows:,} of {len(who.texts):,} rows count although {who.name} is {', '.join(names[:N_NAMED])}"
    return [f"{fact} (a test of the study?); to leave them out: --where {where}"]


def _numbers_again(records: Records, who: Column) -> list[str]:
    """Numbers of participants that occur at several sites."""
    if not all(number_of(text, text=True) is not None for text in who.distinct):
        return []
    for name, column in records.columns.items():
        if name == who.name or not _SITES & set(column.words):
            continue
        people = {(site, text) for site, text in zip(column.texts, who.texts) if site and text}
        if len(people) > len(who.distinct):
            fact = (
                f"participants are told apart by {who.name} alone ({len(who.distinct):,}), and the same numbers occur "
            )
            fact += f"in several values of {name} ({len(people):,} different pairs): if these are different people, "
            return [f"{fact}write both into one column first, such as {'-'.join(islice(sorted(people), 1).__next__())}"]
    return []
