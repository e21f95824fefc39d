"""Rows that are read, and perhaps should not be: another table below the answers, copies, tests of the study, and
numbers of participants that begin again."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, islice
from shlex import quote

from stream_engine.formats.answered_again import TIMES_OF_ONE, answered_again
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.changed_names import changed_by_spreadsheets, rounded_ids, spelt_in_several_ways
from stream_engine.formats.event_fields import NO_COLUMN, OPTIONAL, SCREEN
from stream_engine.formats.field_values import flag_of, number_of
from stream_engine.formats.reading import IN_DOUBT, Decision
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.screens import comparisons, numbers_several_anchors, screens, seems_of_screens
from stream_engine.formats.trial_filters import RECORD_KIND_WORDS
from stream_engine.formats.vocabulary import PARTICIPANTS, ROUNDS, SCREENS, words_of

MIN_ROWS_ABOVE = 10  # of another table
MIN_REPETITIONS = 3  # of the values of a column, on average, that are no numbers or texts of their own
MIN_SEEN = 5  # rows with each other object, where one that occurs in one row only is doubtful
MAX_EXPORTS = 25  # values of a column that says which file or site a row comes from
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


def other_header(records: Records) -> int | None:
    """The first row that names the columns, though not as the header does: another export with its columns in another
    order, below which each value belongs to another column.

    >>> from stream_engine.formats.record_columns import records_of
    >>> other_header(records_of({"who": ["p", "who"], "left": ["x", "right"], "right": ["y", "left"]}))
    1
    """
    names = (*records.columns,)
    rows = [*zip(*(column.texts for column in records.columns.values()))]
    headers = [row for row, cells in enumerate(rows) if _names_again(cells, names)]
    if headers and len(headers) < len(rows):
        below = {text for row in {*range(len(rows))} - {*headers} for text in rows[row]}
        if 2 * len({*names} - below) >= len(names):  # else the first line is no header
            return next((row for row in headers if rows[row] != names), None)
    return None


def _names_again(cells: Sequence[str | None], names: Sequence[str]) -> bool:
    again = {*cells} & {*names}
    return len(again) >= 3 and 3 * len(again) > 2 * len(names)


def other_header_in_words(records: Records, row: int, line: str) -> str:
    """What to say of a header that differs from the first one; `line`: where it is."""
    texts = ", ".join(column.texts[row] or "" for column in records.columns.values())
    fact = f"{line} names the columns in another order ({texts}) than the header ({', '.join(records.columns)}): below "
    return f"{fact}it, values would be read as those of other columns"


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
    keys = _keys(records, used, different)
    return (n_copies, min(keys)[1], not min(keys)[0]) if keys else (0, "", False)


def exported_again(records: Records, used: Sequence[str]) -> tuple[int, str, str]:
    """How many rows are copies of others in every column but one, such as the file that they come from; the name of
    that column, and of one with times that differ in all others. O(values times columns).

    >>> from stream_engine.formats.record_columns import records_of
    >>> times = [f"2024-05-01 10:0{number}:00" for number in range(6)]
    >>> rows = {"file": [*"aabbbbbb"], "at": times[:2] + times, "said": [*"xyxyxyxy"]}
    >>> exported_again(records_of(rows), ["said"])
    (2, 'file', 'at')
    """
    for name, column in records.columns.items():
        if name in used or not 2 <= len(column.distinct) <= MAX_EXPORTS or None in column.values:
            continue
        rest = records._replace(columns={key: other for key, other in records.columns.items() if key != name})
        n_copies, key, is_time = copies(rest, used)
        if n_copies > 1 and is_time and n_copies > copies(records, used)[0]:
            return n_copies, name, key
    return 0, "", ""


def _keys(records: Records, used: Sequence[str], different: Sequence[tuple[str | None, ...]]) -> list[tuple[bool, str]]:
    """The columns that differ in all of these rows, or, if they are times or number trials, in all of each
    participant; times first."""
    keys = []
    people = [name for name in records.columns if "".join(words_of(name)) in PARTICIPANTS]
    whose = [*records.columns].index(people[0]) if people else None
    for place, (name, column) in enumerate(records.columns.items()):
        texts = [row[place] for row in different]
        if name in used or None in texts:
            continue
        is_time = all(_TIME.fullmatch(text or "") for text in column.distinct)
        of_each = is_time or (SCREENS & set(words_of(name)) and all((text or "").isdecimal() for text in texts))
        own = {*zip(texts, (row[whose] for row in different))} if of_each and whose is not None else {*texts}
        if len(own) == len(texts):
            keys.append((not is_time, name))
    return keys


OF_OBJECTS = ("anchor", "near", "far", "objects", "shown", "ranked", "near_i", "near_j", "far_i", "far_j")


def columns_of(records: Records, columns: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The columns of each field that the records have: as options say, or as they are called themselves."""
    own = {name: (name,) for name in (*OF_OBJECTS, *OPTIONAL) if name not in columns}
    return {field: names for field, names in {**own, **columns}.items() if {*names} <= {*records.columns}}


def below_in_words(records: Records, begin: int) -> str:
    """What to say of another table that begins at a row."""
    texts = ", ".join(text for column in records.columns.values() if (text := column.texts[begin]))
    below, size = f"below the header look like another table or a summary ({texts})", records.size
    rows = f"rows {begin + 1:,} to {size:,}" if begin + 1 < size else f"rows from {size:,} on"
    return f"{rows} {below}: their values are in no row above"


def doubts(records: Records, options: Mapping[str, tuple[str, ...]], drops: bool) -> list[Decision]:
    """What to say of rows that count: `options` are the columns of the fields of the reading; `drops`: copies are
    dropped."""
    columns = columns_of(records, options)
    objects = [name for field in OF_OBJECTS for name in columns.get(field, ())]
    begin = other_table(records)
    below = [f"{below_in_words(records, begin)}; leave them out, or save them elsewhere"] if begin is not None else []
    again = other_header(records)
    if again is not None:
        below += [
            f"{other_header_in_words(records, again, f'row {again + 1:,} below the header')}; save them elsewhere"
        ]
    says = [*below, *_copies_in_words(records, columns, drops), *_objects_seen_once(records, objects)]
    answered = [name for field in ("chosen", "odd", "central") for name in columns.get(field, ())]
    says += changed_by_spreadsheets(records, [*objects, *answered])
    if SCREEN not in options:
        says += _of_screens(records, columns)
    who = records.columns["".join(columns["worker"])] if "worker" in columns else None
    if who is not None:
        roles = {name for names in columns.values() for name in names}
        says += [*who_tried(who), *_numbers_again(records, who), *rounded_ids(who), *spelt_in_several_ways(who)]
        says += [*answered_again(records, columns), *_sent_as_another(records, who, objects)]
        says += _trials_again(*_without_copies(records, who, columns), roles)
    return [Decision(IN_DOUBT, "counted", text) for text in says]


def _of_screens(records: Records, columns: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What to say of rows that depend on each other, and are counted as independent answers."""
    rows, used = comparisons(records, columns), {name for names in columns.values() for name in names}
    anchor, far = ("".join(columns.get(field, ())) for field in ("anchor", "far"))
    found = screens(records, rows, used, anchor, far) if rows else None
    if found is None:
        name = numbers_several_anchors(records, rows, used) if rows else ""
        text = (
            f"rows with the same {name} are about several objects, and count as independent: if they were answered on "
        )
        return [f"{text}one screen, every standard error is too small"] if name else []
    text = seems_of_screens(records.size, found)
    if found.is_called_so:
        text = (
            f"rows are of screens, as column {found.column} numbers them ({found.n_screens:,} in {records.size:,} rows)"
        )
    text += f", and count as independent: every standard error is too small. Add {SCREEN}={found.column} to --columns, "
    return [f"{text}or {SCREEN}={NO_COLUMN} if each row was answered by itself"]


def _copies_in_words(records: Records, columns: Mapping[str, tuple[str, ...]], drops: bool) -> list[str]:
    n_copies, key, is_time = copies(records, _of_answers(columns))
    timed = {"time", "seconds", "milliseconds"} & columns.keys() and "worker" in columns
    roles = [name for field in columns if field not in ("time", "seconds", "milliseconds") for name in columns[field]]
    n_exported, source, moment = exported_again(records, roles)
    if n_exported and not (drops and "worker" in columns):
        fact = f"{n_exported:,} of {records.size:,} rows are copies of others in every column but {source}, {moment} "
        return [f"{fact}too (exports that overlap?): to count them once: --drop-duplicates"]
    fact = (
        f"{n_copies:,} of {records.size:,} rows are copies of others in every column, {key} too (a file sent twice?): "
    )
    remove = "first remove them (of text: awk '!seen[$0]++' FILE > unique.csv)"
    if drops and not timed:
        needs = "a participant and a time (participant= and time= or seconds= in --columns)"
        nothing = f"--drop-duplicates drops nothing: it tells copies by {needs}"
        return [f"{nothing}; {fact}{remove}" if n_copies else nothing]
    if timed:  # the decoder tells of them
        return []
    if not n_copies:
        half = _repeated_half(records) if "worker" in columns else 0
        again = f"the last {half:,} of {records.size:,} rows are the first ones again, in the same order (a file sent "
        again += f"twice?): to count them once, keep the header and the first {half:,} rows"
        return [again] if half else []
    return [f"{fact}to count them once: {'--drop-duplicates' if is_time and 'worker' in columns else remove}"]


def _repeated_half(records: Records) -> int:
    """How many rows the first half has, where the second one repeats it and few of a half are equal; else 0."""
    rows, half = [*zip(*(column.texts for column in records.columns.values()))], records.size // 2
    is_repeated = records.size == 2 * half and rows[:half] == rows[half:]
    return half if is_repeated and len({*rows}) >= max(MIN_ROWS_ABOVE, half // 2) else 0


def _of_answers(columns: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The columns of what was compared and answered."""
    about = ("worker", "time", "seconds", "milliseconds", "id")
    return [name for field in columns if field not in about for name in columns[field]]


def _counters(records: Records, roles: Set[str]) -> Iterator[tuple[Column, list[float]]]:
    """The columns of whole numbers without a role, and their numbers."""
    for name, column in records.columns.items():
        if name in roles or len(column.distinct) < MIN_SEEN or None in column.values:
            continue
        numbers = [number_of(text, text=True) for text in column.texts]
        whole = [number for number in numbers if number is not None and number.is_integer()]
        if len(whole) == len(numbers):
            yield column, whole


def _without_copies(records: Records, who: Column, columns: Mapping[str, tuple[str, ...]]) -> tuple[Records, Column]:
    """The rows without copies, and their participants: the decoder tells copies by participant, times and answer;
    where there are no times, `copies` does."""
    if {"time", "seconds", "milliseconds"} & columns.keys():
        names = [*dict.fromkeys(name for of_field in columns.values() for name in of_field)]
    elif copies(records, _of_answers(columns))[0]:
        names = [*records.columns]
    else:
        return records, who
    first = {cells: row for row, cells in reversed([*enumerate(zip(*(records.columns[name].texts for name in names)))])}
    unique = records.select(sorted(first.values()))
    return unique, unique.columns[who.name]


MIN_ROWS_AGAIN = 20  # of a participant
MAX_IN_COMMON = 0.5  # share of the rows of a participant that those of others equal, in all columns that vary
MAX_COPIED_PEOPLE = 200  # participants above which it is not looked for


def _sent_as_another(records: Records, who: Column, objects: Sequence[str]) -> list[str]:
    """What to say of participants with the rows of another one in all columns that vary within participants, such as
    response times. Two participants may be given the same trials, and answer alike, but not take as long. Where trials
    alone show copies, `evaluation.copied_participants` finds them. O(participants^2 + rows of pairs).

    >>> from stream_engine.formats.record_columns import records_of
    >>> names, times = [f"P{row // 25}" for row in range(150)], [str(row * row % 997) for row in range(25, 175)]
    >>> rows = {"who": names + ["Q"] * 25, "seen": [*"abcde"] * 35, "said": [*"xxyxy"] * 35, "rt": times + times[:25]}
    >>> _sent_as_another(records_of(rows), records_of(rows).columns["who"], ["seen"])[0][:57]
    'the 25 rows of Q are those of P0 in all columns but who: '
    """
    people = len({*who.texts} - {None})
    others = [name for name in records.columns if name != who.name]
    varies = [name for name in others if len({*zip(who.texts, records.columns[name].texts)}) > 2 * people]
    copies = _same_rows(records, who, varies)
    known = _same_rows(records, who, [name for name in varies if name in objects]) if copies else {}
    says = []
    for copy, original in copies.items():
        if copy not in known:
            n_rows, where = who.texts.count(copy), quote(f"{who.name}!={copy}")
            fact = f"the {n_rows:,} rows of {copy} are those of {original} in all columns but {who.name}: one file "
            fact += "under two names? agreement and noise ceiling count it as answers of others"
            says.append(f"{fact}; to leave the copy out: --where {where}")
    return says


def _same_rows(records: Records, who: Column, names: Sequence[str]) -> dict[str, str]:
    """Participants whose different rows, in these columns, are all among those of another one: copy -> original. None
    where there are many, or where other pairs of participants have most of their rows in common."""
    rows_of: dict[str, set[tuple[str | None, ...]]] = {}
    for person, cells in zip(who.texts, zip(*(records.columns[name].texts for name in names))):
        if person:
            rows_of.setdefault(person, set()).add(cells)
    enough = [(person, rows) for person, rows in rows_of.items() if len(rows) >= MIN_ROWS_AGAIN]
    if len(enough) > MAX_COPIED_PEOPLE:
        return {}
    copies: dict[str, str] = {}
    for (one, rows), (other, other_rows) in combinations(enough, 2):
        n_common, smaller = len(rows & other_rows), min(len(rows), len(other_rows))
        if n_common == smaller:
            copy, original = (other, one) if len(rows) >= len(other_rows) else (one, other)
            copies.setdefault(copy, original)
        elif n_common > MAX_IN_COMMON * smaller:
            return {}
    return copies if 3 * len(copies) <= len(enough) else {}


def _trials_again(records: Records, who: Column, roles: Set[str]) -> list[str]:
    """Participants whose trial numbers begin again, though those of most do not; and trials before the first one."""
    says = []
    for column, numbers in _counters(records, roles):
        runs: Counter[str] = Counter()
        last: dict[str, float] = {}
        for person, number in zip(who.texts, numbers):
            if person and (person not in last or number <= last[person]):
                runs[person] += 1
            if person:
                last[person] = number
        if not runs or records.size < MIN_SEEN * runs.total():
            continue
        again = [person for person, n_runs in runs.items() if n_runs > 1]
        if again and 2 * len(again) < len(runs):
            named = ", ".join(again[:N_NAMED]) + (", …" if len(again) > N_NAMED else "")
            fact = (
                f"{column.name} begins again for {named}, and for no other participant: a run that was broken off and "
            )
            says.append(f"{fact}done again, or two people with one id? All of their rows count")
        early = sum(number < 0 for number in numbers)
        if 0 < 2 * early < len(numbers):
            where = quote(f"{column.name}>=0")
            fact = f"{early:,} of {records.size:,} rows count although {column.name} is below 0 (practice?); to leave "
            says.append(f"{fact}them out: --where {where}")
    return says


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


def _parts_numbers(records: Records, who: Column, column: Column) -> bool:
    """Whether a column of a few texts tells apart rows of the same participant with the same number of the trial, and
    most participants have such rows; and it is not called a part of the study."""
    words, texts = {*column.words}, column.distinct
    if words & (TIMES_OF_ONE | RECORD_KIND_WORDS | ROUNDS) or not 2 <= len(texts) <= MAX_EXPORTS:
        return False
    if None in column.values or any(
        number_of(text, text=True) is not None or flag_of(text) is not None for text in texts
    ):
        return False
    shared = Counter(person for person, _ in {*zip(who.texts, column.texts)})
    if 3 * sum(n > 1 for n in shared.values()) < 2 * len(shared):
        return False
    for counter, numbers in _counters(records, {who.name, column.name}):
        if not ROUNDS & {*counter.words} and not set(counter.words) & {"nr", "no", "number", "essai", "ensayo", "item"}:
            continue
        once = Counter(zip(who.texts, numbers))
        apart = {*zip(who.texts, numbers, column.texts)}
        if len(apart) == records.size and 2 * sum(n > 1 for n in once.values()) > len(once):
            return True
    return False


def _numbers_again(records: Records, who: Column) -> list[str]:
    """Numbers of participants that occur at several sites."""
    if not all(number_of(text, text=True) is not None for text in who.distinct):
        return []
    for name, column in records.columns.items():
        if name == who.name or not (_SITES & set(column.words) or _parts_numbers(records, who, column)):
            continue
        people = {(site, text) for site, text in zip(column.texts, who.texts) if site and text}
        if len(people) > len(who.distinct):
            fact = (
                f"participants are told apart by {who.name} alone ({len(who.distinct):,}), and the same numbers occur "
            )
            fact += f"in several values of {name} ({len(people):,} different pairs): if these are different people, "
            return [f"{fact}write both into one column first, such as {'-'.join(islice(sorted(people), 1).__next__())}"]
    return []
