"""A reading as an example to change, for records that none explains: columns in the roles that their names suggest."""

from collections import Counter
from collections.abc import Sequence

from stream_engine.formats.answers import code_columns, is_answer, is_fraction, is_textual, keys_in_order, shown_in
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.long_tables import MIN_NUMBERED, melted
from stream_engine.formats.participant_columns import participant
from stream_engine.formats.reading import Reading
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import ANCHOR, OTHER, PARTICIPANTS, sign_of


def example_reading(records: Records) -> Reading | None:
    """What may be right of these records, or None where too few columns could have a role. Nobody knows that it is:
    it is for a person who does.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"id": ["p", "p"], "word": ["cat", "dog"], "A": ["dog", "owl"], "B": ["owl", "cat"], "key": ["x", "m"]}
    >>> found = example_reading(records_of(rows))
    >>> found.type, found.codes, found.columns["worker"]
    ('pick', {'chosen': {'x': 'A', 'm': 'B'}}, ('id',))
    """
    for table in melted(records):
        numbered = [column for column in table.columns.values() if "{n}" in column.name]
        if len(numbered) >= MIN_NUMBERED:
            return _with_participant(_of_columns(table, numbered), participant(table, True))
    return _with_participant(_of_columns(records, list(records.columns.values())), participant(records, False))


def _with_participant(reading: Reading | None, who: Column | None) -> Reading | None:
    if reading is None or who is None or who.name in sum(reading.columns.values(), ()):
        return reading
    return reading._replace(columns={**reading.columns, "worker": (who.name,)})


def _of_columns(records: Records, columns: Sequence[Column]) -> Reading | None:
    usable = [column for column in columns if column.distinct and not set(column.name) & set(",|=")]
    objects = [column for column in usable if not _is_about_the_trial(column)]
    if (by_columns := _answers_name_columns(usable, objects)) is not None:
        return by_columns
    groups = [group for group in shown_in(objects) if len(group) == 2]
    answers = [column for column in usable if is_answer(column) and not ANCHOR & set(column.words)]
    shown = groups[0] if groups else []
    if shown and not [column for column in answers if column not in shown]:
        answers = [column for column in code_columns(records, shown) if _keys(column)]
    answer = next((column for column in answers if column not in shown), None)
    if answer is not None and (pairs := _two_pairs(objects, answer)) is not None:
        return pairs
    others = [column for column in objects if column is not answer and column not in shown]
    others = [column for column in others if _may_be_object(column, shown or others)]
    anchors = sorted(others, key=lambda column: not ANCHOR & set(column.words))
    if not anchors or answer is None or len(shown or anchors[1:]) < 2:
        return None
    shown = shown or anchors[1:3]
    if any(_share_values(column, anchors[0]) for column in others if column is not anchors[0] and column not in shown):
        return None  # an object that no role is left for
    names = tuple(column.name for column in shown)
    fields = {"anchor": (anchors[0].name,), "shown": names, "chosen": (answer.name,)}
    values = sorted(answer.distinct)
    if answer.distinct <= {text for column in shown for text in column.distinct}:
        return Reading("pick", fields)
    if all(place_of(text, names, 1) in (0, 1) for text in values):
        return Reading("pick", fields, answers_by="position")
    codes = dict(zip(_keys(answer) or values, names)) if len(values) == len(names) else {}
    return Reading("pick", fields, codes={"chosen": codes}) if codes else None


def _keys(answer: Column) -> list[str]:
    """The two letters that all answers are, from left to right on a keyboard; [] for other answers."""
    keys = keys_in_order(Counter(filter(None, answer.texts)))
    return keys if {*keys} == answer.distinct and all(map(str.isalpha, keys)) else []


def _two_pairs(objects: Sequence[Column], answer: Column) -> Reading | None:
    """Four objects of which the answer names two: AB or CD."""
    columns = [column for column in objects if column is not answer]
    for four in zip(columns, columns[1:], columns[2:], columns[3:]):
        names = tuple(column.name for column in four)
        pairs = {names[0] + names[1]: "near", names[2] + names[3]: "far"}
        spelt = {text: pairs.get("".join(filter(str.isalnum, text)), "") for text in answer.distinct}
        if {*spelt.values()} == {"near", "far"} and all(_share_values(four[0], column) for column in four[1:]):
            fields = {"near": names[:2], "far": names[2:], "chosen": (answer.name,)}
            farther = "farther" if sign_of(answer.words) < 0 else "nearer"
            return Reading("quadruplet", fields, "position", {"chosen": spelt}, answer_is=farther)
    return None


def _answers_name_columns(columns: Sequence[Column], objects: Sequence[Column]) -> Reading | None:
    """Two columns of objects that the answers name: x or y; other answers are left out."""
    for answer in filter(is_answer, columns):
        shown = [column for column in objects if column.name in answer.distinct]
        anchors = [column for column in objects if ANCHOR & set(column.words)]
        if len(shown) == 2 and anchors and _share_values(*shown):
            names = tuple(column.name for column in shown)
            rest = answer.distinct - {*names}
            where = {f"{answer.name}!=": LIST_SEPARATOR.join(sorted(rest))} if rest else {}
            fields = {"anchor": (anchors[0].name,), "shown": names, "chosen": (answer.name,)}
            return Reading("pick", fields, "position", where=where)
    return None


def _share_values(column: Column, other: Column) -> bool:
    return 2 * len(column.items & other.items) > len(column.items | other.items)


def _may_be_object(column: Column, objects: Sequence[Column]) -> bool:
    """Whether a column is called like an anchor, or has values in common with columns of objects."""
    others = [other for other in objects if other is not column]
    alike = is_textual([column]) == is_textual(others or [column])
    return bool(ANCHOR & set(column.words)) or (
        alike
        and any(2 * len(column.items & other.items) >= min(len(column.items), len(other.items)) for other in others)
    )


def _is_about_the_trial(column: Column) -> bool:
    """Whether a column says who answered, when, or how fast, instead of what was compared."""
    called = "".join(column.words) in PARTICIPANTS or bool(OTHER & set(column.words))
    return called or any(map(is_fraction, column.distinct))
