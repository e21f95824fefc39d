"""Tables of other tasks than comparisons, or with the objects of an answer in other places, and what to do with them:
piles, positions of the mouse, ratings by a slider, loops of a survey, pairs in one cell, and a rank for each object."""

# ruff: noqa: RUF001

from collections.abc import Sequence

from stream_engine.formats.answers import is_textual, shown_in
from stream_engine.formats.field_values import number_of
from stream_engine.formats.long_tables import MIN_NUMBERED
from stream_engine.formats.participant_columns import participant
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ANCHOR, words_of

PILES = frozenset(
    words_of(
        "pile piles sort sorting group cluster category bin stapel haufen gruppe kategorie tas pile groupe categorie "
        "monton grupo categoria pila mucchio gruppo stapels groep hog hoeg grupp kasa grupa kategoria стопка группа"
    )
)
SLIDERS = frozenset(words_of("slider slide vas scale schieberegler regler curseur deslizador"))
RANKS = frozenset(words_of("rank rang ranking rango rangliste ranked place"))
SIGNS = (" - ", " – ", " — ", " vs. ", " vs ", " / ", " & ", " + ", "/", "_vs_", "&", "+", "–")
MAX_SIGNED = 11  # of numbers on both sides of 0, that say by degrees which of two objects it was
MIN_PAIRS = 10  # cells that hold two objects each
MIN_COORDINATES = 20  # different values of a position


def of_other_task(records: Records) -> str:
    """What to say of a table of another task; "" where it is none of them."""
    columns = [column for column in records.columns.values() if column.distinct]
    for says in (_piles, _piles_of_columns, _coordinates, _ranks_of_columns, _pairs_in_cells, _slider):
        if fact := says(records, columns):
            return fact
    return loop_of_answers(records)


_ASSUMPTION = (
    "that two objects of one pile are more alike than one of them and an object of another pile is an assumption, so "
    "nothing is read; next: if you assume it, write rows with participant, anchor, near (of the same pile) and far (of "
    "another one)"
)


def _piles(records: Records, columns: Sequence[Column]) -> str:
    """Each participant puts each object into one pile.

    >>> from stream_engine.formats.record_columns import records_of
    >>> words = ["dog", "cat", "bee", "cow"] * 2
    >>> rows = records_of({"participant": [*"ppppqqqq"], "word": words, "pile": [*"11222112"]})
    >>> _piles(rows, [*rows.columns.values()]).partition(":")[0]
    'columns word, pile look like piles (free sorting)'
    """
    who = participant(records, False)
    for pile in (column for column in columns if PILES & set(column.words) and column is not who):
        for objects in (column for column in columns if column is not pile and column is not who):
            people = [None] * records.size if who is None else who.texts
            sorted_objects = {*zip(people, objects.texts)}
            piles = {*zip(people, pile.texts)}
            if is_textual([objects]) and len(sorted_objects) == records.size and 2 * len(piles) <= records.size:
                return f"columns {objects.name}, {pile.name} look like piles (free sorting): {_ASSUMPTION}"
    return ""


def _numbers(column: Column) -> list[float] | None:
    numbers = [number_of(text, text=True) for text in column.texts if text is not None]
    return None if None in numbers or not numbers else [number for number in numbers if number is not None]


def _piles_of_columns(records: Records, columns: Sequence[Column]) -> str:
    """A column for each object, with the number of the pile that each participant put it into."""
    who = participant(records, False)
    of_objects = [column for column in columns if column is not who and _small(column) and column.name.isalpha()]
    rows = [*zip(*(column.texts for column in of_objects))]
    if len(of_objects) < 5 or len(of_objects) < len(columns) - 2 or any(len({*row}) == len(row) for row in rows):
        return ""
    names = ", ".join(column.name for column in of_objects[:3])
    fact = f"columns {names}, ... hold a small number for each object: ratings, or piles of a sorting task"
    return f"{fact}. If they are piles, {_ASSUMPTION}"


def _small(column: Column) -> bool:
    return all(text.isdecimal() and len(text) < 3 for text in column.distinct)


def _coordinates(records: Records, columns: Sequence[Column]) -> str:
    """Positions of the mouse or of clicks, and no objects.

    >>> from stream_engine.formats.record_columns import records_of
    >>> log = records_of({"x": [str(n) for n in range(30)], "y": [str(7 * n) for n in range(30)]})
    >>> _coordinates(log, [*log.columns.values()]).partition(":")[0]
    'columns x, y hold positions on a screen (of the mouse or of clicks), and no column names objects; next'
    """
    axes = [
        [column for column in columns if axis in column.words and len(column.distinct) >= MIN_COORDINATES]
        for axis in "xy"
    ]
    if not all(axes) or any(_numbers(column) is None for (column, *_) in axes):
        return ""
    x, y = axes[0][0].name, axes[1][0].name
    return (
        f"columns {x}, {y} hold positions on a screen (of the mouse or of clicks), and no column names objects; next: "
        "read the table of trials of the same experiment, which has the objects shown and the answer of each trial"
    )


def _ranks_of_columns(records: Records, columns: Sequence[Column]) -> str:
    """A column for each object, which holds its rank in each row.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = records_of({"target": [*"abc"], "rank_x": [*"123"], "rank_y": [*"231"], "rank_z": [*"312"]})
    >>> _ranks_of_columns(rows, [*rows.columns.values()])[:57]
    'columns rank_x, rank_y, rank_z hold the rank of an object'
    """
    ranks = [column for column in columns if RANKS & set(column.words) and _small(column)]
    rows = [[int(text) for text in row if text is not None] for row in zip(*(column.texts for column in ranks))]
    fixed = _fixed([column.name for column in ranks])
    if len(ranks) < 3 or not fixed or any(len({*row}) < len(row) or sorted(row)[-1:] > [len(row)] for row in rows):
        return ""
    method, text = fixed
    names = ", ".join(column.name for column in ranks[:3]) + (", ..." if len(ranks) > 3 else "")
    fact = f"columns {names} hold the rank of an object each"
    anchors = [column.name for column in columns if ANCHOR & set(column.words) and column not in ranks]
    if len(anchors) != 1:
        return f"{fact}, and no column what they were compared with; next: choix ranks by preferences"
    return (
        f"{fact}; next: one list for each ranking (rank 1 first, as the most similar), in pandas: ranks = [name for "
        f"name in table.columns if name.{'startswith' if method == 'removeprefix' else 'endswith'}({text!r})]; "
        f"table['ranked'] = table[ranks].apply(lambda row: '|'.join(name.{method}({text!r}) for name in "
        "row.dropna().sort_values().index), axis=1); table.drop(columns=ranks).to_csv('ranked.csv', index=False), then "
        f"stream-engine run ranked.csv --state DIR --type ranking --columns anchor={anchors[0]},ranked=ranked"
    )


def _fixed(names: Sequence[str]) -> tuple[str, str] | None:
    """What all names begin or end with, beside the names of objects, and the method of `str` that removes it."""
    if len(names) < 2:
        return None
    begin, end = _common(names), _common([name[::-1] for name in names])[::-1]
    if RANKS & set(words_of(begin)):
        return "removeprefix", begin
    return ("removesuffix", end) if RANKS & set(words_of(end)) else None


def _common(names: Sequence[str]) -> str:
    """What all names begin with, up to the last sign that is no letter.

    >>> _common(["rank_cat", "rank_cow"])
    'rank_'
    """
    same = 0
    while len({name[same : same + 1] for name in names}) == 1 and same < min(map(len, names)):
        same += 1
    while same and names[0][same - 1].isalnum():
        same -= 1
    return names[0][:same]


def _pairs_in_cells(records: Records, columns: Sequence[Column]) -> str:
    """Two objects in a cell, with a sign between them."""
    pairs = [(column, sign) for column in columns if (sign := _sign_within(column))]
    if not pairs:
        return ""
    (column, sign), *others = pairs
    for group in () if others else (some for some in shown_in(columns) if len(some) == 3 and is_textual(some)):
        three = [*zip(*(each.texts for each in group))]
        parts = [{part.strip() for part in (text or "").split(sign)} for text in column.texts]
        if all(len(pair) == 2 and pair <= {*shown} for pair, shown in zip(parts, three)):
            return _two_of_three(column.name, sign, [each.name for each in group], min(column.distinct))
    names = [each.name for each, _ in pairs]
    fact = f"column{'s' if others else ''} {', '.join(names)} hold{'' if others else 's'} two objects in a cell"
    fact += f" ({min(column.distinct)!r})"
    if not others and any(_numbers(each) and len(each.distinct) > 2 for each in columns if each is not column):
        return f"{fact}, and a number for each pair: {_RATED}"
    split = [
        f"table[[{name + '_1'!r}, {name + '_2'!r}]] = table[{name!r}].str.split({sign!r}, expand=True)"
        for name in names
    ]
    split.append(f"table.drop(columns={names}).to_csv('answers.csv', index=False)")
    line = f"{fact}; next: a column for each object, in pandas: {'; '.join(split)}, then "
    if others:
        line += "name the objects of the pair that is more alike near_i, near_j, and those of the other far_i, far_j: "
    return f"{line}stream-engine preview answers.csv"


def _two_of_three(name: str, sign: str, shown: Sequence[str], example: str) -> str:
    """What to say of answers that name two of three objects in a cell."""
    return (
        f"column {name} names two of the three objects in {', '.join(shown)} ({example!r}); next: if these two are the "
        f"ones that are most alike, write the third one, in pandas: table['odd'] = [({{*row[{[*shown]}]}} - "
        f"{{*map(str.strip, row[{name!r}].split({sign!r}))}}).pop() for _, row in table.iterrows()]; "
        f"table.drop(columns={name!r}).to_csv('answers.csv', index=False), then stream-engine preview answers.csv"
    )


def _sign_within(column: Column) -> str:
    """The sign that divides all texts of a column into two, which are objects that occur in several of them."""
    texts = [text for text in column.texts if text]
    for sign in SIGNS if len(texts) >= MIN_PAIRS else ():
        parts = [text.split(sign) for text in texts]
        objects = {part.strip() for each in parts for part in each}
        if all(len(each) == 2 and each[0].strip() and each[1].strip() for each in parts):
            are_words = any(part.isalpha() for part in objects)
            return sign if are_words and len(objects) < len(column.distinct) else ""
    return ""


_RATED = (
    "ratings of how alike two objects are, no comparisons; that a pair with a higher rating is more alike than one "
    "with a lower rating of the same participant is an assumption; next: if you assume it, write rows with "
    "participant, near_i, near_j (the pair with the higher rating), far_i, far_j, and leave out equal ratings"
)


def _slider(records: Records, columns: Sequence[Column]) -> str:
    """Numbers of a slider or a scale beside two objects, or an anchor and two objects."""
    who = participant(records, False)
    objects = [column for column in columns if column is not who and is_textual([column]) and len(column.distinct) > 2]
    for column in columns:
        numbers = _numbers(column)
        called = SLIDERS & {*column.words} or "similarity" in column.words
        if numbers is None or column is who or not (called or -min(numbers) == max(numbers) < MAX_SIGNED):
            continue
        if len({*numbers}) < (5 if called else 3):
            continue
        if len(objects) == 2:
            names = ", ".join(each.name for each in objects)
            return f"column {column.name} holds a number for each pair of objects ({names}): {_RATED}"
        if len(objects) == 3 and any(ANCHOR & set(each.words) for each in objects):
            middle = 0.0 if min(numbers) < 0 else (min(numbers) + max(numbers)) / 2
            left, right = [each.name for each in objects if not ANCHOR & set(each.words)][-2:]
            return (
                f"column {column.name} holds numbers from {min(numbers):g} to {max(numbers):g}, which may say by "
                f"degrees which of {left}, {right} is more similar; next: if less than {middle:g} means {left}, in "
                f"pandas: table = table[table[{column.name!r}] != {middle:g}]; table['answer'] = table[{left!r}].where("
                f"table[{column.name!r}] < {middle:g}, table[{right!r}]); table.drop(columns={column.name!r})"
                ".to_csv('answers.csv', index=False), then stream-engine preview answers.csv"
            )
    return ""


def loop_of_answers(records: Records) -> str:
    """What to say of the answers to a question that a survey repeats, without what was shown; "" of others.

    >>> from stream_engine.formats.record_columns import records_of
    >>> loop_of_answers(records_of({f"{n}_Q2": ["cat", "dog"] for n in range(1, 7)})).partition("(")[0]
    'columns 1_Q2, 2_Q2, ... repeat one question 6 times '
    """
    columns = [column for column in records.columns.values() if column.distinct]
    bodies: dict[str, list[str]] = {}
    for column in columns:
        number, _, rest = column.name.partition("_")
        if number.isdecimal() and rest:
            bodies.setdefault(rest, []).append(column.name)
    repeated = {rest: names for rest, names in bodies.items() if len(names) >= MIN_NUMBERED}
    if not repeated or any(is_textual([records.columns[names[0]]]) for names in repeated.values() if len(repeated) > 1):
        return ""
    names = [name.replace("{n}", "1") for name in next(iter(repeated.values()))]
    return (
        f"columns {', '.join(names[:2])}, ... repeat one question {len(names)} times (a loop of a survey, such as Loop "
        "& Merge of Qualtrics), and no columns hold the objects that were shown; next: export the fields of the loop, "
        "too (in Qualtrics as embedded data), as columns such as 1_anchor, 1_left, 1_right, 2_anchor, ..."
    )
