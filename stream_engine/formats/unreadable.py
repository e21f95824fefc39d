"""Why records are no comparisons, or cannot be read as they are, and what brings them into a form that can."""

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from shlex import quote

from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats.answers import (
    MIN_FIT,
    code_columns,
    is_answer,
    is_rating,
    is_textual,
    named_share,
    offered,
    shown_in,
)
from stream_engine.formats.changed_names import spelt_as_numbers
from stream_engine.formats.event_fields import filter_of, place_of
from stream_engine.formats.field_values import number_of
from stream_engine.formats.long_tables import MIN_NUMBERED, melted
from stream_engine.formats.other_tasks import of_other_task
from stream_engine.formats.participant_columns import participant
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.row_per_object import MAX_PLACES, are_ranks, of_ranks, row_per_object
from stream_engine.formats.shown_layouts import in_sentences, spelt_otherwise
from stream_engine.formats.vocabulary import ANCHOR, ANSWER, OTHER, PARTICIPANTS, SHARE, TRUTH, sign_of, words_of

RESHAPE = (  # of tables in which no columns hold the objects of one answer
    "next: this layout is not read; write one row for each answer, with columns such as participant, anchor, "
    "option_1, option_2, answer, which hold names of objects"
)
MAX_OF_ONE_ANSWER = 4  # columns of objects; more are answers to several questions
COMMAND = "stream-engine run FILE --state DIR"  # of what was not read; who knows its name writes it instead


def fact_of(records: Records, where: Mapping[str, str], n_kept: int, readable: bool) -> str:
    """Why records are not read of which no reading is proposed; "" where there is nothing to say. `n_kept` is how many
    rows `where` keeps, `readable` whether they are read without it.

    >>> from stream_engine.formats.record_columns import records_of
    >>> fact_of(records_of({"winner": ["gpt"], "loser": ["llama"]}), {}, 1, False)[:52]
    "columns winner, loser: got preferences ('a is better"
    >>> fact_of(records_of({"anchor": ["a"], "near": ["b"], "far": ["c"]}), {}, 1, False)
    ''
    """
    columns = records.columns
    compared = any(ANCHOR & set(column.words) for column in columns.values())
    for names in ("winner", "loser"), ("chosen", "rejected"), ("model_a", "model_b", "winner"):
        if set(names) <= set(columns) and not compared:
            return (
                f"columns {', '.join(names)}: got preferences ('a is better than b'), expected comparisons of "
                "distances ('a is more like b than like c'); next: choix or arena-rank rank by preferences"
            )
    if records.size and not n_kept and readable:
        sources = [filter_of(key, wanted).source for key, wanted in where.items()]
        some = [
            f"{name} ({', '.join(islice(dict.fromkeys(filter(None, columns[name].texts)), 5))})"
            for name in sources
            if name in columns
        ]
        filters = ", ".join(f"{key}{'' if key[-1] in '=<>' else '='}{value}" for key, value in where.items())
        return (
            f"none of the first {records.size:,} rows has {filters}; next: --where with a value that the column has: "
            f"{', '.join(some)}"
        )
    if "type" in columns and columns["type"].distinct & {*READABLE_TYPES}:
        return ""
    if pair := spelt_as_numbers(text for column in columns.values() for text in column.items):
        return f"{pair[0]!r} and {pair[1]!r} look like one number in two spellings; next: write each in one way"
    if fact := _of_missing_codes(records):
        return fact
    if not {"near", "far"} & set(columns) and (fact := _not_shown(records)):
        return fact
    if {"near", "far"} & set(columns) or {*columns} == {"anchor"} or (len(columns) < 2 and " " not in "".join(columns)):
        return ""
    for table in melted(records):
        if sum("{n}" in name for name in table.columns) >= MIN_NUMBERED:
            records = table
    return _of_kind(records) if records.size > 1 else ""


_CODES = {"-99", "99", "-999", "999", "9999", "-9999", "-9", "-999.0", "."}


def _of_missing_codes(records: Records) -> str:
    """What to say of codes for missing values beside a few small numbers: ranks, flags, places, ratings.

    >>> from stream_engine.formats.record_columns import records_of
    >>> _of_missing_codes(records_of({"odd": ["1", "2", "3", "1", "99"]})).partition(";")[0]
    "column odd holds '99' in 1 of 5 rows, which looks like a code for a missing answer"
    """
    coded: dict[str, list[str]] = {}
    for name, column in records.columns.items():
        others = column.distinct - _CODES
        codes = column.distinct & _CODES
        if len(codes) != 1 or not 1 < len(others) <= MAX_PLACES:
            continue
        if all(text.isdecimal() and len(text) < 3 for text in others):
            coded.setdefault(codes.pop(), []).append(name)
    for code, names in coded.items():
        column, plural = records.columns[names[0]], len(names) > 1
        if "".join(column.words) in PARTICIPANTS or set(names[0]) & set(",|="):
            continue
        fact = f"column{'s' if plural else ''} {', '.join(names)} hold{'' if plural else 's'} {code!r} in "
        fact += f"{column.texts.count(code):,} of {records.size:,} rows, which looks like a code for a missing answer"
        return f"{fact}; next: {COMMAND} --where {quote(f'{names[0]}!={code}')}"
    return ""


def _not_shown(records: Records) -> str:
    """That many answers name objects, but none of those that were shown, where there is an anchor; "" otherwise.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"anchor": ["a"] * 4, "left": ["b"] * 4, "right": list("cdef"), "choice": list("bbfc")}
    >>> _not_shown(records_of(rows)).partition(":")[0]
    '2 of 4 answers in choice are none of the objects shown (left, right), such as c beside b and f'
    """
    columns = [column for column in records.columns.values() if column.distinct]
    anchor = next((column for column in columns if ANCHOR & set(column.words)), None)
    answered = next((column for column in columns if is_answer(column) and column is not anchor), None)
    if anchor is None or answered is None:
        return ""
    for group in shown_in(columns):
        objects = {text for column in (anchor, *group) for text in column.distinct}
        if answered in group or anchor in group or not answered.distinct <= objects:
            continue
        given = {row: value for row, value in enumerate(answered.values) if value}
        wrong = [row for row, value in given.items() if not set(value) <= set(offered(group, row))]
        if len(wrong) > (1 - MIN_FIT) * len(given):
            names, options = [column.name for column in group], " and ".join(offered(group, wrong[-1]))
            fields = f"anchor={anchor.name},shown={'|'.join(names)},chosen={answered.name}"
            who = participant(records, False)
            fields += f",participant={who.name}" if who is not None else ""
            return (
                f"{len(wrong):,} of {len(given):,} answers in {answered.name} are none of the objects shown "
                f"({', '.join(names)}), such as {answered.texts[wrong[-1]]} beside {options}: perhaps they "
                f"belong to other rows; next: {COMMAND} --type pick --columns {quote(fields)} reads the other "
                "answers"
            )
    return ""


def _not_people(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if "".join(column.words) not in PARTICIPANTS]


def header_again(records: Records) -> list[int]:
    """The rows that repeat the header."""
    names = list(records.columns)
    if len(names) < 2:
        return []
    texts = [column.texts for column in records.columns.values()]
    return [row for row in range(records.size) if all(text[row] == name for text, name in zip(texts, names))]


def _of_kind(records: Records) -> str:
    columns = [column for column in records.columns.values() if column.distinct]
    if [*records.columns] == [str(number + 1) for number in range(len(records.columns))]:
        return (
            f"got {len(records.columns)} columns without names, expected 3 (anchor, near, far) or 4 (two pairs); next: "
            f"say which are which, such as {COMMAND} --type triplet --columns anchor=1,near=2,far=3"
        )
    if len(columns) == 1 and " " in columns[0].name:
        return _with_spaces(columns[0])
    repeated = sum(name in column.distinct for name, column in records.columns.items())
    if 2 * repeated > len(columns):
        return (
            "the first line holds answers, not names of columns; next: columns are called 1, 2, 3 then, as in "
            f"{COMMAND} --no-header --type triplet --columns anchor=1,near=2,far=3"
        )
    if fact := _paths_beside_names(columns) or row_per_object(records) or of_other_task(records):
        return fact
    shares = [column for column in columns if SHARE & set(column.words) and all(map(_is_part, column.distinct))]
    if shares and len(shares[0].distinct) > 2:
        return f"column {shares[0].name} holds shares of votes, and no column says of how many"
    groups = [group for group in shown_in(columns) if is_textual(group)]
    ratings = [column for column in columns if is_rating(column)]
    answered = [column for column in columns if is_answer(column) and not (TRUTH | OTHER - ANSWER) & set(column.words)]
    if groups and (fact := _rated_each(columns, groups[0])):
        return fact
    if groups and len(groups[0]) == 2 and ratings and len(groups) == 1:
        return f"column {ratings[0].name} holds ratings, not comparisons: a number for each pair of objects"
    ranks = [column for column in columns if {"rank", "rang", "ranking"} & set(column.words) and are_ranks(column)]
    if ranks:
        return of_ranks(records, ranks[0])
    if groups and not answered:
        return _without_answer(records, columns, groups[0])
    if answered:
        return _of_answer(records, answered, groups[0]) if groups else _without_objects(records, columns, answered)
    return ""


def _rated_each(columns: Sequence[Column], group: Sequence[Column]) -> str:
    """What to say of two columns with a number for each of two objects: sim_left and sim_right.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = records_of({"left": ["a"], "right": ["b"], "sim_left": ["7"], "sim_right": ["3"]})
    >>> columns = [*rows.columns.values()]
    >>> _rated_each(columns, columns[:2]).partition(":")[0]
    'columns sim_left, sim_right hold a number for each of left, right'
    """
    if len(group) != 2:
        return ""
    names, numbers = [column.name for column in group], []
    for one, other in (group, group[::-1]):
        sides = {*one.words} - {*other.words}
        rated = [column for column in columns if column not in group and sides & {*column.words}]
        numbers += [column.name for column in rated if None not in map(_number, column.distinct)]
    if len({*numbers}) != 2:
        return ""
    (left, right), (one_number, other_number) = names, (f"table[{name!r}]" for name in numbers)
    fact = f"columns {', '.join(numbers)} hold a number for each of {left}, {right}: ratings, no comparisons; next: if "
    fact += (
        f"the higher one is that of the more similar object, in pandas, table = table[{one_number} != {other_number}]; "
    )
    fact += f"table['answer'] = table[{left!r}].where({one_number} > {other_number}, table[{right!r}]); table.drop("
    return f"{fact}columns={numbers}).to_csv('answers.csv', index=False), then stream-engine preview answers.csv"


def _number(text: str) -> float | None:
    return number_of(text, text=True)


def _without_answer(records: Records, columns: Sequence[Column], group: Sequence[Column]) -> str:
    """What to say of columns of objects where none is called like an answer."""
    if fact := _with_confidence(columns, group) or _in_order(records, columns, group):
        return fact
    if codes := _not_people(code_columns(records, group)):
        values, name = ", ".join(sorted(codes[0].distinct)), codes[0].name
        return (
            f"column {name} ({values}) could be the answer, but is not called so, and nothing says what it means "
            f"(--codes chosen:{sorted(codes[0].distinct)[0]}=COLUMN,...)"
        )
    names = ", ".join(column.name for column in group)
    return f"columns {names} hold objects, and no column an answer: this looks like a design"


def _without_objects(records: Records, columns: Sequence[Column], answered: Sequence[Column]) -> str:
    """What to say of answers where no columns are those of the objects shown."""
    answer = answered[0]
    if same := _same_objects(answer, columns):
        names = ", ".join(column.name for column in same)
        fact = f"columns {names} hold the same objects, and no column says which of them was chosen"
        return f"{fact}; {RESHAPE}" if len(same) > MAX_OF_ONE_ANSWER else fact
    if (named := [name for name in records.columns if name in answer.distinct]) and len(named) > 1:
        return f"column {answer.name} names columns: {', '.join(named)}"
    fact = f"column {answer.name} could be an answer, but no names of columns say which hold the objects shown"
    names_of_answers = [column.name for column in answered]
    others = [column for column in columns if column.name not in names_of_answers and len(column.items) > 2]
    alike = sum(column.words[:-1] == answer.words[:-1] or " " in column.name for column in columns)
    return f"{fact}; {RESHAPE}" if alike > 2 or len(others) < 3 else fact


def _one_of_several(records: Records, answer: Column, group: Sequence[Column]) -> str:
    """What to say of an answer that names one of more than three objects, and nothing that they are compared with."""
    names = [column.name for column in group]
    fact = f"column {answer.name} names one of {len(group)} objects ({', '.join(names)}): expected three, or an anchor"
    if sign_of(answer.words) >= 0:
        return f"{fact}; next: if they were compared with an object, add a column with it, called anchor"
    who = f"'participant': row[{people.name!r}], " if (people := participant(records, False)) is not None else ""
    odd, named = f"row[{answer.name!r}]", ""
    if named_share(answer, group) < MIN_FIT:
        place = f"row[{names}].iloc[int({odd}) - 1]" if all(map(str.isdecimal, answer.distinct)) else f"row[{odd}]"
        named = f"table[{answer.name!r}] = [{place} for _, row in table.iterrows()]; "
    others = f"itertools.combinations([name for name in row[{names}] if name != {odd}], 2)"
    step = (
        f"{named}pandas.DataFrame([{{{who}'item1': one, 'item2': other, 'item3': {odd}, 'odd': {odd}}} for _, row in "
    )
    step += f"table.iterrows() for one, other in {others}]).to_csv('threes.csv', index=False)"
    fact += "; that any two of the others are more alike than one of them and the odd one is an assumption; next: if "
    return f"{fact}you assume it, in pandas, {step}, then stream-engine preview threes.csv"


def _of_answer(records: Records, answered: Sequence[Column], group: Sequence[Column]) -> str:
    """What to say of an answer beside the columns of objects that it may be about."""
    answer, names, size = answered[0], ", ".join(column.name for column in group), len(group)
    by_column = all(
        place_of(text, tuple(column.name for column in group), 1) in range(size) for text in answer.distinct
    )
    if size > 3 and (by_column or named_share(answer, group) >= MIN_FIT):
        return _one_of_several(records, answer, group)
    if named_share(answer, group) >= MIN_FIT:
        return f"column {answer.name} names one of {names}, and no column what they were compared with"
    if spelt := spelt_otherwise(answer, group):
        return (
            f"column {answer.name} spells objects in another way than {names}: {spelt[0]!r} and {spelt[1]!r}; "
            "next: write each in one way"
        )
    texts, shown = sorted(answer.distinct), frozenset().union(*(column.items for column in group))
    if in_sentences(answer, group):
        fact = f"column {answer.name} holds sentences with names of the objects ({texts[0]!r}), which are not read"
        return f"{fact}; next: write the name of the chosen object alone, one of those in {names}"
    many = len(texts) > MAX_PLACES or (len(texts) > size + 1 and is_textual([answer]))
    if many and not shown & answer.distinct:
        return _of_other_names(answer, group)
    if size > 1 and answer.distinct == {*map(str, range(size + 1))} and not set(answer.name) & set(",|="):
        fact = (
            f"column {answer.name} holds 0 in {answer.texts.count('0'):,} of {records.size:,} rows, and numbers up to "
        )
        fact += f"{size} beside {size} objects ({names}): no answer, or rows that count from 0 among others from 1?"
        return f"{fact} next: if 0 is no answer, {COMMAND} --where {quote(f'{answer.name}!=0')}"
    rivals = [column.name for column in answered[1:] if column.distinct == answer.distinct]
    unless = f", unless {rivals[0]} decides it in each row" if rivals else ""
    return (
        f"column {answer.name} ({', '.join(texts[:5])}) could be the answer, and does not name what columns"
        f" {names} hold; say what its values mean with --codes chosen:{texts[0]}=COLUMN,...{unless}"
    )


def _with_confidence(columns: Sequence[Column], group: Sequence[Column]) -> str:
    """What to say of answers that name a column of objects and how sure they are, such as "probably left".

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"left": [*"abc"], "right": [*"bca"], "said": ["sure left", "sure right", "probably left"]}
    >>> columns = [*records_of(rows).columns.values()]
    >>> _with_confidence(columns, columns[:2]).partition("--codes ")[2]
    "'chosen:probably left=left,sure left=left,sure right=right'"
    """
    for column in columns:
        sides = {
            text: [each.name for each in group if set(each.words) & set(words_of(text))]
            for text in sorted(column.distinct)
        }
        named = {names[0] for names in sides.values() if len(names) == 1}
        if len(named) == len(group) < len(sides) <= MAX_PLACES and all(len(names) == 1 for names in sides.values()):
            codes = ",".join(f"{text}={names[0]}" for text, names in sides.items())
            fact = f"column {column.name} ({', '.join(sides)}) names a side and how sure the answer is"
            return f"{fact}: if only the side is to count, add --codes {quote(f'chosen:{codes}')}"
    return ""


def _in_order(records: Records, columns: Sequence[Column], group: Sequence[Column]) -> str:
    """What to say of a column that lists what was shown in another order, by names or by numbers: a ranking, or the
    order on the screen.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = records_of({"a": [*"xyz"], "b": [*"yzx"], "c": [*"zxy"], "order": ["x>z>y", "y>x>z", "z>y>x"]})
    >>> columns = [*rows.columns.values()]
    >>> _in_order(rows, columns, columns[:3]).partition(":")[0]
    "column order ('x>z>y') lists the objects of a, b, c in some order"
    """
    names, shown = ", ".join(column.name for column in group), [offered(group, row) for row in range(records.size)]
    places = {str(place + 1) for place in range(len(group))}
    for column in columns if len(group) > 2 else ():
        texts = [*zip((re.split(r"\s*[^\w\s]\s*", text or "") for text in column.texts), shown)]
        by_name = all({*parts} == {*objects} and len(parts) == len(objects) for parts, objects in texts)
        by_number = all({*parts} == places and len(parts) == len(places) for parts, _ in texts)
        if column in group or not (by_name or by_number):
            continue
        separator = records.separators.get(column.name, "|")
        example = next(filter(None, column.texts)).replace("|", separator)
        what = "objects" if by_name else "numbers of the objects"
        fact = (
            f"column {column.name} ({example!r}) lists the {what} of {names} in some order: in which they were shown, "
        )
        fact += "or a ranking?"
        if by_number:
            return f"{fact} next: if it is a ranking, write the names of the objects instead of their numbers"
        anchors = [one.name for one in columns if ANCHOR & set(one.words) and one not in (*group, column)]
        fields = f"anchor={anchors[0] if anchors else 'COLUMN'},ranked={column.name}"
        fields += f",participant={who.name}" if (who := participant(records, False)) is not None else ""
        command = f"{COMMAND} --type ranking --columns {quote(fields)} --separator {quote(separator)}"
        return f"{fact} next: if it is a ranking with the nearest one first, {command}"
    return ""


def _of_other_names(answer: Column, group: Sequence[Column]) -> str:
    """What to say of an answer with many values, none of which is an object that was shown."""
    names, some = ", ".join(column.name for column in group), ", ".join(sorted(answer.distinct)[:3])
    fact = (
        f"column {answer.name} could be the answer, and holds {len(answer.distinct):,} values ({some}, ...), none of "
    )
    fact += f"which columns {names} hold ({', '.join(sorted(group[0].distinct)[:3])}, ...); next: "
    if is_textual([answer]):
        return f"{fact}write the objects and the answers in one language and spelling"
    return f"{fact}add a column with the name of the object that each number means"


def _with_spaces(column: Column) -> str:
    """What to say of lines whose fields spaces separate, so that they are read as one column.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = records_of({"triads kite iron 1": ["triads bear fork 2", "triads iron bear 1"]})
    >>> _with_spaces(rows.columns["triads kite iron 1"])[:57]
    'the first line holds answers, not names of columns; next:'
    """
    words = {word for text in column.texts for word in (text or "").split()}
    is_header = not words & {*column.name.split()}
    if any("  " in (text or "") for text in (column.name, *column.texts)):
        header = "" if is_header else ", header=None"
        how = f"in pandas, pandas.read_fwf('FILE'{header}).to_csv('FILE.csv', index=False)"
        return f"the columns have a fixed width; next: {how}, and read that"
    if is_header:
        cells = {len(row) for row in csv.reader(filter(None, column.texts), delimiter=" ")}
        if cells == {1 + len(next(csv.reader([column.name], delimiter=" ")))}:
            fact = "fields are separated by spaces, and each row has one more than the header (names of rows, as R "
            how = "pandas.read_csv('FILE', sep=' ').to_csv('FILE.csv', index=False)"
            return f"{fact}writes them?); next: in pandas, {how}, and read that"
        return f"fields are separated by spaces; next: {COMMAND} --delimiter space"
    how = f"{COMMAND} --no-header --delimiter space --type triplet --columns anchor=1,near=2,far=3"
    return f"the first line holds answers, not names of columns; next: columns are called 1, 2, 3 then, as in {how}"


_PATH = re.compile(r"(?:.*[/\\\\])?(.*?)[_ -]?[0-9]*\.[A-Za-z]{3,4}")


def _paths_beside_names(columns: Sequence[Column]) -> str:
    """What to say of answers that are paths of images, where other columns hold the names of the objects."""
    for column in columns:
        stems = [match[1].casefold() for text in column.items if (match := _PATH.fullmatch(text))]
        if len(stems) < max(3, len(column.items)):
            continue
        named = [
            other for other in columns if other is not column and {text.casefold() for text in other.items} >= {*stems}
        ]
        if len(named) > 1:
            names, path = ", ".join(other.name for other in named), min(column.items)
            return (
                f"column {column.name} holds paths of files ({path}), and {names} hold names ({min(named[0].items)}); "
                "next: write the names of the objects instead of the paths"
            )
    return ""


def _same_objects(column: Column, columns: Sequence[Column]) -> list[Column]:
    """The columns of text with the same values as this one, and itself; none where there is no other."""
    shared = [other for other in columns if 2 * len(other.items & column.items) > len(other.items | column.items)]
    return shared if len(shared) > 1 and is_textual(shared) and len(column.items) > 2 else []


def best_and_worst(records: Records) -> str:
    """What to say of answers that name the best and the worst of several objects; "" for anything else."""
    columns = [column for column in records.columns.values() if column.distinct]
    for group in (group for group in shown_in(columns) if len(group) > 2 and is_textual(group)):
        numbers = {str(place) for place in range(len(group) + 1)}
        answers = [
            column
            for column in columns
            if column not in group and (named_share(column, group) >= MIN_FIT or {*column.distinct} <= numbers)
        ]
        ends = [[column for column in answers if sign_of(column.words) == sign] for sign in (1, -1)]
        if [*map(len, ends)] == [1, 1]:
            (best,), (worst,) = ends
            names, options = (best.name, worst.name), "|".join(column.name for column in group)
            fact = (
                f"columns {', '.join(names)} name the best and the worst of {len(group)} objects (best-worst scaling)"
            )
            anchors = [
                column.name for column in columns if ANCHOR & set(column.words) and column not in (*group, best, worst)
            ]
            if len(anchors) != 1:
                return f"{fact}, and no column what they were compared with; next: choix ranks by preferences"
            who = f",participant={people.name}" if (people := participant(records, False)) is not None else ""
            pick = f"{COMMAND} --type pick --columns 'anchor={anchors[0]},shown={options}{who},chosen="
            by = ""
            if {*best.distinct, *worst.distinct} <= numbers:
                by = f" --answers-by {'index' if '0' in best.distinct | worst.distinct else 'position'}"
            both = f"{pick}{names[0]}'{by}, or {pick}{names[1]}'{by} --answer-is farther"
            return f"{fact}; next: read one of the two: {both}"
    return ""


def _is_part(text: str) -> bool:
    number = number_of(text, text=True)
    return number is not None and 0 <= number <= 1
