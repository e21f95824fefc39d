"""Readings of records of which no name of a column says anything: shown with their doubts, never chosen."""

from itertools import combinations

from stream_engine.formats.answers import MIN_FIT, Answer, is_textual, offered
from stream_engine.formats.asked_direction import asked_sign
from stream_engine.formats.completion import completed
from stream_engine.formats.event_fields import place_of
from stream_engine.formats.named_layouts import MIN_SHARED
from stream_engine.formats.reading import Proposal, Reading
from stream_engine.formats.record_columns import Records
from stream_engine.formats.shown_layouts import shared_values

MAX_TEXT_COLUMNS = 12  # columns of text among which those of objects are looked for
MIN_ROWS = 10  # after which an object that is never chosen may be an anchor


def candidates(records: Records) -> list[Reading]:
    """What records may be of which no name of a column says anything: three columns with the same values, and one that
    names an object beside it, or its column. Each has a doubt, and there are two of them: they are shown, never chosen.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"eins": [*"abcd"], "zwei": [*"bcda"], "drei": [*"cdab"], "Was": ["eins", "drei", "zwei", "drei"]}
    >>> [(reading.type, reading.columns["objects"], reading.answers_by) for reading in candidates(records_of(rows))]
    [('odd_one_out', ('eins', 'zwei', 'drei'), 'position'), ('most_central', ('eins', 'zwei', 'drei'), 'position')]
    """
    texts = [
        column
        for column in records.columns.values()
        if len(column.distinct) > 2
        and is_textual([column])
        and column.distinct == column.items
        and not set(column.name) & set(",|=")
    ]
    for group in combinations(texts[:MAX_TEXT_COLUMNS], 3):
        if all(shared_values(one, other) >= MIN_SHARED for one, other in combinations(group, 2)):
            names = tuple(column.name for column in group)
            for column in records.columns.values():
                if column.name not in names and (readings := _candidates_of(records, names, column.name)):
                    return readings
    return []


def _candidates_of(records: Records, names: tuple[str, ...], answered: str) -> list[Reading]:
    """The readings in which this column says which of three objects it was."""
    rows = [row for row in range(records.size) if all(records.columns[name].values[row] for name in (*names, answered))]
    within = records.select(rows)
    answers = within.columns[answered]
    three = [offered([within.columns[name] for name in names], row) for row in range(len(rows))]
    if sum(len(set(names_in_row)) == 3 for names_in_row in three) < MIN_FIT * len(rows) or len(answers.distinct) < 2:
        return []
    by_column = not any(text.isdecimal() or place_of(text, names, 1) < 0 for text in answers.distinct)
    places = [
        place_of(text, names, 1) if by_column else names_in_row.index(text) if text in names_in_row else -1
        for names_in_row, text in zip(three, answers.texts)
        if text is not None
    ]
    chosen = {place for place in places if place >= 0}
    if len(chosen) < 2 or sum(place < 0 for place in places) > (1 - MIN_FIT) * len(rows):
        return []
    why = f"they share values, and {answered} names {'their columns' if by_column else 'one of them'}"
    accepted = frozenset(answers.distinct) if by_column else None
    answer = Answer((answered,), "position" if by_column else "name", accepted=accepted)
    kinds: list[tuple[str, dict[str, tuple[str, ...]]]] = [
        ("odd_one_out", {"objects": names, "odd": (answered,)}),
        ("most_central", {"objects": names, "central": (answered,)}),
    ]
    meant = f"{answered} the odd one out or the most central object"
    if len(chosen) == 2 and len(rows) >= MIN_ROWS:
        anchor = next(name for place, name in enumerate(names) if place not in chosen)
        options = tuple(name for name in names if name != anchor)
        kinds = [("pick", {"anchor": (anchor,), "shown": options, "chosen": (answered,)}), kinds[0]]
        meant = f"{anchor} what the others are compared with, or {answered} the odd one out"
    doubt = f"columns {', '.join(names)} could be objects ({why}), and {meant}"
    farther = asked_sign(records) < 0
    proposals = [Proposal(kind, fields, answer, why, (), doubt, farther and kind == "pick") for kind, fields in kinds]
    ranked = [completed(records, proposal, False, ())[0][:1] for proposal in proposals]
    readings = [reading for group_readings in ranked for _, reading in group_readings]
    return readings if len(readings) > 1 else []
