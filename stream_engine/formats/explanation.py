"""Whether a reading explains the whole file, and what to say of a file that no reading explains.

`unexplained`: columns without a role that could bear on the answer. Harmless is what the values show to be so: the same
in all rows or for each participant, different in every row, a number that varies freely, a property of one object, or
what the reading says anyway. `contradicted`: words in questions and conditions that ask for the other direction.
`fact_of`: why records are no comparisons, or cannot be read as they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, islice

from stream_engine.formats.answers import (
    LEAST_FIT,
    Answer,
    column_of,
    is_answer,
    is_flags,
    is_textual,
    named_share,
    shown_in,
)
from stream_engine.formats.event_fields import filter_of, place_of
from stream_engine.formats.field_values import flag_of, number_of
from stream_engine.formats.record_columns import KIND, Column, Records
from stream_engine.formats.vocabulary import (
    ANCHOR,
    ANSWER,
    MATERIAL,
    OTHER,
    PLACES,
    ROUNDS,
    SHARE,
    SWAP,
    TRUTH,
    asks,
    place_in,
    sign_of,
    words_of,
)

FEW = 12  # different values of a column of codes
SHARED = 0.5  # of the values of a column, that are objects
RATINGS = frozenset(("rating", "similarity", "dissimilarity", "score", "slider", "distance", "urteil", "bewertung"))
LONG = 25  # characters, of comments and questions
_Row = tuple[list[str], list[str], list[str], list[str]]  # anchor, offered, nearer or chosen, the others


def unexplained(
    records: Records, fields: Mapping[str, tuple[str, ...]], answer: Answer, used: set[str], who: Column | None
) -> str:
    """The first column without a role that could bear on the answer, and why; "" where there is none. `records` are
    the questions alone.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"a": [*"pqr"], "b": [*"qrp"], "c": [*"rpq"], "d": [*"stu"], "odd": [*"qpr"], "id": [*"123"]}
    >>> fields = {"objects": ("a", "b", "c"), "odd": ("odd",)}
    >>> unexplained(records_of(rows), fields, Answer(("odd",)), {"a", "b", "c", "odd"}, None)
    ''
    """
    rows = [_row(records, row, fields, answer) for row in range(records.size)]
    objects = {text for anchor, offered, _, _ in rows for text in (*anchor, *offered)}
    group = [
        records.columns[name]
        for field in ("anchor", "shown", "objects", "near", "far", "ranked")
        for name in fields.get(field, ())
    ]
    for name, column in records.columns.items():
        if name in used or name.rpartition(".")[0] in used:
            continue
        told = _bearing(column, rows, objects, group, answer, who)
        if told:
            values = ", ".join(islice(sorted(column.distinct), 4))
            return f"column {name} ({values}) {told}, and no reading explains it"
    return ""


def _row(records: Records, row: int, fields: Mapping[str, tuple[str, ...]], answer: Answer) -> _Row:
    def texts(*names: str) -> list[str]:
        held = (records.columns[name].values[row] for field in names for name in fields.get(field, ()))
        return [text for value in held for text in value or ()]

    offered = texts("shown", "objects", "ranked") or texts("near", "far")
    said = [text for name in answer.columns for text in records.columns[name].values[row] or ()]
    if "near" in fields:
        chosen = texts("near")
    elif answer.by == "name":
        chosen = said
    elif answer.by == "flag":
        flags = [
            flag_of(text)
            for text in (
                said
                if len(answer.columns) == 1
                else [records.columns[name].texts[row] or "" for name in answer.columns]
            )
        ]
        chosen = [text for text, flag in zip(offered, flags) if flag]
    else:
        names = next((fields[field] for field in ("shown", "objects") if field in fields), ())
        places = [place_of(answer.codes.get(text, text), names, 0 if answer.by == "index" else 1) for text in said]
        chosen = [offered[place] for place in places if 0 <= place < len(offered)]
    return texts("anchor"), offered, chosen, [text for text in offered if text not in chosen]


def _bearing(
    column: Column, rows: Sequence[_Row], objects: set[str], group: Sequence[Column], answer: Answer, who: Column | None
) -> str:
    """How a column could bear on the answer; "" where it cannot."""
    words, values, texts = set(column.words), column.distinct, column.texts
    filled = [(row, text) for row, text in enumerate(texts) if text is not None]
    if len(values) < 2 or not filled:
        return ""
    called = is_answer(column) and not (OTHER - ANSWER) & words
    flags = is_flags(column)
    names_answer = answer.columns != () or bool(answer.codes)
    if TRUTH & words and not flags:
        return ""
    if flags and TRUTH & words:
        return "" if names_answer else "could say that an answer was wrong"
    if flags and SWAP & words and answer.by != "name":
        return "could say that sides were exchanged"
    share = len(column.items & objects) / len(column.items)
    if share >= SHARED and len(column.items & objects) > 1 and is_textual([column]) == is_textual(group):
        return _of_objects(column, rows, called)
    if who is not None and _constant(column, who):
        return ""
    if len(values) > FEW and all(number_of(text, text=True) is not None for text in values):
        return ""
    if any(_determined(column, other) for other in group) or (not called and _determined(column, _nearer(rows))):
        return ""
    if any(_determined(column, role) and _determined(role, column) for role in (_nearer(rows), _farther(rows))):
        return ""
    if flags:
        sides = any(place_in(column.words, order) >= 0 for order in PLACES[:5])
        return "says yes or no of something that could be an answer" if called or (sides and not KIND & words) else ""
    if len(values) <= FEW:
        if _agrees(column, rows):
            return ""
        places = [
            text for text in values if column_of(text, tuple(each.name for each in group)) >= 0 and not text.isdecimal()
        ]
        named = sum(any(place_in([text.casefold()], order) >= 0 for order in PLACES[:5]) for text in values)
        if len(places) == len(values) and (called or not KIND & words) and max(map(len, places)) > 1:
            return "names columns of objects"
        if called:
            return "is called like an answer" + ("" if share else ", and none of its values is an object")
        if named == len(values) and not (KIND | MATERIAL) & words:
            return "names sides"
        return ""
    unique = len(values) > 0.9 * len(filled)
    numeric = all(number_of(text, text=True) is not None for text in values)
    long = sum(map(len, values)) > LONG * len(values)
    return "is called like an answer" if called and not (unique or numeric or long) else ""


def _of_objects(column: Column, rows: Sequence[_Row], called: bool) -> str:
    """A column that holds objects: explained if it says what the reading says, or where things were shown."""
    filled = [(rows[row], set(value)) for row, value in enumerate(column.values) if value is not None]
    places = [] if called else range(len(filled[0][0][1]))
    roles = (
        *((lambda each: each[2]), (lambda each: each[3]), (lambda each: each[0])),
        *((lambda each, place=place: each[1][place : place + 1]) for place in places),
    )
    for role in roles:
        if sum(value == set(role(each)) for each, value in filled) >= LEAST_FIT * len(filled):
            return ""
    everything = [*(set(anchor) | set(shown) for (anchor, shown, _, _), _ in filled)]
    inside = sum(value <= all_of for all_of, (_, value) in zip(everything, filled))
    if inside < LEAST_FIT * len(filled):
        numbered = all(text.isdecimal() for text in column.distinct)
        return "" if numbered and ROUNDS & set(column.words) else "holds objects too"
    return "also names one of the objects shown, and not the same one" if called else ""


def _constant(column: Column, who: Column) -> bool:
    """Whether a column is the same in all rows of each participant, of whom there are several."""
    held: dict[str | None, set[str | None]] = {}
    for name, text in zip(who.texts, column.texts):
        held.setdefault(name, set()).add(text)
    return len(held) > 1 and 2 * len(held) < len(column.values) and all(len(texts) == 1 for texts in held.values())


def _determined(column: Column, other: Column) -> bool:
    """Whether the value of one column follows from that of another one, which repeats: a category, a file, a number."""
    held: dict[str | None, set[str | None]] = {}
    for of, text in zip(other.texts, column.texts):
        held.setdefault(of, set()).add(text)
    return 2 * len(held) <= len(column.values) and len(held) > 2 and all(len(texts) == 1 for texts in held.values())


def _nearer(rows: Sequence[_Row]) -> Column:
    return Column("", [tuple(chosen[:1]) or None for _, _, chosen, _ in rows])


def _farther(rows: Sequence[_Row]) -> Column:
    return Column("", [tuple(others[:1]) or None for _, _, _, others in rows])


def _agrees(column: Column, rows: Sequence[_Row]) -> bool:
    """Whether a column of codes says the same as the answer, in other words."""
    held: dict[str, set[int]] = {}
    for (_, offered, chosen, _), text in zip(rows, column.texts):
        if text is not None and len(chosen) == 1:
            held.setdefault(text, set()).add(offered.index(chosen[0]) if chosen[0] in offered else -1)
    places = [place for each in held.values() for place in each]
    return len(held) > 1 and len(places) == len(set(places))


def contradicted(records: Records, kind: str, used: set[str], farther: bool, said: Sequence[str]) -> str:
    """Which column, or text above the rows, asks for the other direction than the reading has; "" where none does."""
    expected = -1 if farther or kind == "odd_one_out" else 1
    for text in said:
        if kind != "odd_one_out" and asks(text) * expected < 0:
            return f'the question "{text[:60]}" asks for the other direction than the answers are read in'
    for name, column in records.columns.items():
        if name in used or OTHER & set(column.words) or 2 * len([*filter(None, column.values)]) < records.size:
            continue
        signs = Counter(asks(text) for text in islice(column.distinct, 300))
        if (
            signs[-expected]
            and (len(signs) > 1 or expected == 1)
            and not (kind == "odd_one_out" and not signs[expected])
        ):
            example = next(text for text in column.distinct if asks(text) == -expected)
            if kind == "odd_one_out" and " " not in example:
                continue
            mixed = " in some rows and something else in others" if len(signs) > 1 else ""
            return (
                f'column {name} says "{example[:60]}"{mixed}: answers could name the farther object, or the '
                "nearer one; say which with --answer-is, and which rows with --where"
            )
    return ""


def asked_sign(records: Records) -> int:
    """The direction that the question in every row asks for; 0 where there is none, or another in some rows."""
    signs = set()
    for column in records.columns.values():
        asked = {asks(text) for text in islice(column.distinct, 300)} if _is_text(column) else {0}
        signs |= asked if len(asked) == 1 else {0}
    signs -= {0}
    return signs.pop() if len(signs) == 1 else 0


def _is_text(column: Column) -> bool:
    """Whether a column holds a text in nearly every row: a question, no comment."""
    filled = sum(value is not None for value in column.values)
    return filled >= 0.9 * len(column.values) and any(" " in text for text in column.distinct)


def fact_of(records: Records, where: Mapping[str, str], kept: int, readable: bool) -> str:
    """Why records are not read of which no reading is proposed; "" where there is nothing to say. `kept` is how many
    rows `where` keeps, `readable` whether they are read without it.

    >>> from stream_engine.formats.record_columns import records_of
    >>> fact_of(records_of({"winner": ["gpt"], "loser": ["llama"]}), {}, 1, False)[:52]
    "columns winner, loser: got preferences ('a is better"
    >>> fact_of(records_of({"anchor": ["a"], "near": ["b"], "far": ["c"]}), {}, 1, False)
    ''
    """
    columns = records.columns
    compared = any(ANCHOR & set(each.words) for each in columns.values())
    for names in ("winner", "loser"), ("chosen", "rejected"), ("model_a", "model_b", "winner"):
        if set(names) <= set(columns) and not compared:
            return (
                f"columns {', '.join(names)}: got preferences ('a is better than b'), expected comparisons of "
                "distances ('a is more like b than like c'); next: choix or arena-rank rank by preferences"
            )
    if records.size and not kept and readable:
        sources = [filter_of(key, wanted).source for key, wanted in where.items()]
        some = [
            f"{name} ({', '.join(islice(dict.fromkeys(filter(None, columns[name].texts)), 5))})"
            for name in sources
            if name in columns
        ]
        told = ", ".join(f"{key}{'' if key[-1] in '=<>' else '='}{value}" for key, value in where.items())
        return (
            f"none of the first {records.size:,} rows has {told}; next: --where with a value that the column has: "
            f"{', '.join(some)}"
        )
    if {"anchor", "near", "far"} & set(columns) or len(columns) < 2 or records.size < 2:
        return ""
    return _of_kind(records)


def header_again(records: Records) -> list[int]:
    """The rows that repeat the header."""
    names = list(records.columns)
    if len(names) < 2:
        return []
    texts = [each.texts for each in records.columns.values()]
    return [row for row in range(records.size) if all(text[row] == name for text, name in zip(texts, names))]


def _of_kind(records: Records) -> str:
    columns = [each for each in records.columns.values() if each.distinct]
    if [*records.columns] == [str(number + 1) for number in range(len(records.columns))]:
        return (
            f"got {len(records.columns)} columns without names, expected 3 (anchor, near, far) or 4 (two pairs); next: "
            "say which are which with --type and --columns, such as --type triplet --columns anchor=1,near=2,far=3"
        )
    repeated = sum(name in each.distinct for name, each in records.columns.items())
    if 2 * repeated > len(columns) or (len(columns) == 1 and " " in columns[0].name):
        return "the first line holds answers, not names of columns: use --no-header, and --columns with 1, 2, 3"
    shares = [each for each in columns if SHARE & set(each.words) and all(map(_is_part, each.distinct))]
    if shares and len(shares[0].distinct) > 2:
        return f"column {shares[0].name} holds shares of votes, and no column says of how many"
    groups = [group for group in shown_in(columns) if is_textual(group)]
    ratings = [each for each in columns if is_rating(each)]
    answered = [each for each in columns if is_answer(each) and not (TRUTH | OTHER - ANSWER) & set(each.words)]
    if groups and len(groups[0]) == 2 and ratings and len(groups) == 1:
        return f"column {ratings[0].name} holds ratings, not comparisons: a number for each pair of objects"
    ranks = [each for each in columns if {"rank", "rang", "ranking"} & set(each.words) and _are_ranks(each)]
    if ranks:
        return _of_ranks(records, ranks[0])
    if groups and not answered and (codes := code_columns(records, groups[0])):
        values, name = ", ".join(sorted(codes[0].distinct)), codes[0].name
        return (
            f"column {name} ({values}) could be the answer, and nothing says what it means; next: --type, --columns "
            f"with chosen={name}, and --codes chosen:{sorted(codes[0].distinct)[0]}=COLUMN,..."
        )
    if groups and not answered:
        names = ", ".join(each.name for each in groups[0])
        return f"columns {names} hold objects, and no column an answer: this looks like a design"
    if answered and not groups:
        return f"column {answered[0].name} could be an answer, but no names of columns say which hold the objects shown"
    if answered and named_share(answered[0], groups[0]) >= LEAST_FIT:
        names, size = ", ".join(each.name for each in groups[0]), len(groups[0])
        if size > 3:
            return f"column {answered[0].name} names one of {size} objects ({names}): expected three, or an anchor"
        return f"column {answered[0].name} names one of {names}, and no column what they were compared with"
    if answered:
        values = ", ".join(islice(sorted(answered[0].distinct), 5))
        names = ", ".join(each.name for each in groups[0])
        return f"column {answered[0].name} ({values}) could be the answer, and does not name what columns {names} hold"
    return ""


def _are_ranks(column: Column) -> bool:
    return 1 < len(column.distinct) == max((int(text) for text in column.distinct if text.isdecimal()), default=0)


def _of_ranks(records: Records, rank: Column) -> str:
    """What to say of rankings with a row for each rank, and how to bring them into one row."""
    told = f"column {rank.name} holds one rank in each row; expected one row for each ranking, a column for each rank"
    keys = [each for each in records.columns.values() if each is not rank and each.distinct]
    for group in (some for size in (1, 2, 3) for some in combinations(keys, size)):
        ranking = _joined(group)
        items = [each for each in keys if is_textual([each]) and _are_different([ranking, each])]
        if (
            not _are_different([ranking, rank])
            or len(ranking.distinct) * len(rank.distinct) != records.size
            or not items
        ):
            continue
        index = [each.name for each in keys if _constant(each, ranking)]
        anchors = [name for name in index if ANCHOR & set(words_of(name))]
        if len(anchors) == 1:
            return (
                f"{told}; next: in pandas, table.pivot(index={index}, columns={rank.name!r}, values={items[0].name!r})"
                ".reset_index().to_csv('ranked.csv', index=False), then --type ranking "
                f"--columns 'anchor={anchors[0]},ranked={'|'.join(sorted(rank.distinct, key=int))}'"
            )
    return told


def _joined(columns: Sequence[Column]) -> Column:
    """Some columns as one, of text."""
    return Column("", [(repr(texts),) for texts in zip(*(each.texts for each in columns))])


def _are_different(columns: Sequence[Column]) -> bool:
    """Whether no two rows have the same values in all of these columns."""
    return len(_joined(columns).distinct) == len(columns[0].values)


def best_and_worst(records: Records) -> str:
    """What to say of answers that name the best and the worst of several objects; "" for anything else."""
    columns = [each for each in records.columns.values() if each.distinct]
    for group in (each for each in shown_in(columns) if len(each) > 2 and is_textual(each)):
        said = [each for each in columns if each not in group and named_share(each, group) >= LEAST_FIT]
        ends = [[each for each in said if sign_of(each.words) == sign] for sign in (1, -1)]
        if [*map(len, ends)] == [1, 1]:
            (best,), (worst,) = ends
            names, shown = (best.name, worst.name), "|".join(each.name for each in group)
            told = (
                f"columns {', '.join(names)} name the best and the worst of {len(group)} objects (best-worst scaling)"
            )
            anchors = [each.name for each in columns if ANCHOR & set(each.words) and each not in (*group, best, worst)]
            if len(anchors) != 1:
                return f"{told}, and no column what they were compared with; next: choix ranks by preferences"
            pick = f"--type pick --columns 'anchor={anchors[0]},shown={shown},chosen="
            return f"{told}; next: read one of the two: {pick}{names[0]}', or {pick}{names[1]}' --answer-is farther"
    return ""


def code_columns(records: Records, group: Sequence[Column]) -> list[Column]:
    """Columns of no known name that could say by codes which of these objects was chosen."""
    size = len(group)
    return [
        each
        for each in records.columns.values()
        if 1 < len(each.distinct) <= max(size, 2) + 1
        and each not in group
        and not (KIND | OTHER | TRUTH | MATERIAL | {"set", "sex", "gender"}) & set(each.words)
        and sum(value is not None for value in each.values) > 0.5 * records.size
    ]


def is_rating(column: Column) -> bool:
    """Whether a column holds ratings: numbers, and it is called so."""
    if OTHER - ANSWER - {"rating"} & set(column.words):
        return False
    numbers = {number_of(text, text=True) for text in column.distinct}
    called = RATINGS & set(column.words)
    return (
        None not in numbers
        and (len(numbers) > 3 or bool(called and len(numbers) > 2))
        and bool(called or is_answer(column))
    )


def _is_part(text: str) -> bool:
    number = number_of(text, text=True)
    return number is not None and 0 <= number <= 1
