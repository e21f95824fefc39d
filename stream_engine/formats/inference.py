"""How records without a description are read, as their content shows, or why they cannot be.

`LAYOUTS` propose readings; one is used only if it explains every column that could bear on the answer. Two that fit
equally well are both returned, and none is chosen.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stream_engine.data.comparisons import READABLE_TYPES
from stream_engine.formats.answered_rows import where_filled
from stream_engine.formats.answers import Answer
from stream_engine.formats.asked_direction import EITHER_END
from stream_engine.formats.completion import completed
from stream_engine.formats.doubtful_rows import OF_OBJECTS
from stream_engine.formats.graded_answers import graded
from stream_engine.formats.long_tables import PARTICIPANT, answered_by_columns, asked_in_header, melted
from stream_engine.formats.named_layouts import (
    named_fields,
    near_and_far,
    nearer_pairs,
    ranks_of_objects,
    triads,
    two_and_odd,
    two_pairs,
)
from stream_engine.formats.other_tasks import loop_of_answers
from stream_engine.formats.participant_columns import participant
from stream_engine.formats.rank_columns import ordinal_ranks
from stream_engine.formats.reading import FLIPPED, IN_DOUBT, Decision, Obstacle, Proposal, Ranked, Reading
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.record_filters import filters_as_text, keeps, matching
from stream_engine.formats.shown_layouts import shown_objects
from stream_engine.formats.spellings import other_spelling
from stream_engine.formats.trial_filters import CATCH_WORDS, header_rows, is_practice, practice
from stream_engine.formats.unnamed_layouts import candidates
from stream_engine.formats.unreadable import best_and_worst
from stream_engine.formats.vocabulary import sign_of, words_of
from stream_engine.formats.wide_columns import matches

FIELDS_OF_ANSWERS = (*OF_OBJECTS, "chosen", "odd", "central")
EVENT_FIELDS = {"n_near", "n_far"}
LAYOUTS: tuple[Callable[[Records], Iterator[Proposal]], ...] = (
    *(named_fields, near_and_far, nearer_pairs, two_pairs, ranks_of_objects, triads, shown_objects, two_and_odd),
)

_END_OF_ANCHOR = re.compile(r"[^\W\d_]|[:;?(\u2013\u2014]")  # between it and the options, where a list has a comma


class Understanding(NamedTuple):
    """The readings of records, the best ones alone; what keeps others from being taken."""

    readings: list[Reading]
    obstacle: Obstacle | None = None


def understood(records: Records, where: Mapping[str, str] = {}, answer_is: str = "nearer") -> Understanding:
    """The readings of records: one, if they decide it, several that fit equally well, or none; and what keeps others
    from being taken. Records that `where` leaves out are not looked at. With `answer_is` "farther", answers name the
    farther object whatever the records say of it. O(values).

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"Target": ["cat", "dog"], "Option1": ["dog", "owl"], "Option2": ["owl", "cat"], "Choice": ["2", "1"]}
    >>> [(found.type, found.columns, found.answers_by) for found in understood(records_of(rows)).readings]
    [('pick', {'anchor': ('Target',), 'shown': ('Option1', 'Option2'), 'chosen': ('Choice',)}, 'position')]
    """
    found = _of_questions(records, where)
    return _naming_farther(found) if answer_is == "farther" else found


def _naming_farther(found: Understanding) -> Understanding:
    """The readings in which answers name the farther object, as an option says, and not the records."""
    obstacle, readings = found.obstacle, found.readings
    if not readings and obstacle is not None and EITHER_END in obstacle.fact and not obstacle.by_rows:
        readings = [reading for reading in obstacle.offers if reading.answer_is == "farther"]
    fixed = [reading for reading in readings if reading.type not in ("pick", "quadruplet", "ranking")]
    if fixed:
        kind = fixed[0].type or "triplet"
        return Understanding([], Obstacle(f"--answer-is: got farther for {kind}, whose answers have one meaning"))
    farther = []
    for reading in readings:
        evidence = tuple(decision for decision in reading.evidence if FLIPPED not in decision.why)
        farther.append(reading._replace(answer_is="farther", evidence=evidence))
    return Understanding(farther, None if farther else obstacle)


def _of_questions(records: Records, where: Mapping[str, str]) -> Understanding:
    """`understood`, as the records alone say it."""
    of_events = "type" in records.columns and bool(records.columns["type"].distinct & {*READABLE_TYPES})
    if of_events or EVENT_FIELDS & set(records.columns):
        return Understanding([])
    records = matching(records, where)
    if (top := header_rows(records)) is None:
        return _understood(records)
    filters, rows_below_header = top
    understanding = _understood(
        records.select(rows_below_header), [text for row in range(3) for text in _row_texts(records, row)]
    )
    below = Decision("rows below the header", filters_as_text(filters), "they describe columns")

    def without(reading: Reading) -> Reading:
        return reading._replace(where={**filters, **reading.where}, evidence=(*reading.evidence, below))

    obstacle = understanding.obstacle
    if obstacle is not None and obstacle.reading is not None:
        obstacle = obstacle._replace(reading=without(obstacle.reading))
    return Understanding([*map(without, understanding.readings)], obstacle)


def _row_texts(records: Records, row: int) -> list[str]:
    return [text for column in records.columns.values() if row < records.size and (text := column.texts[row])]


def _understood(records: Records, questions: Sequence[str] = ()) -> Understanding:
    """`questions`: texts that ask, apart from the cells."""
    obstacles: list[Obstacle] = []

    def complete(
        table: Records, proposals: Iterable[Proposal], wide: bool, texts: Sequence[str] = questions
    ) -> list[Ranked]:
        ranked: list[Ranked] = []
        for proposal in proposals:
            readings, obstacle = completed(table, proposal, wide, texts)
            ranked += readings
            obstacles.extend([obstacle] if obstacle else [])
        return ranked

    if fact := other_spelling(records) or ordinal_ranks(records):
        return Understanding([], Obstacle(fact))
    for table in melted(records):
        if best := _best(complete(table, filter(_is_wide, _proposals(table)), True)):
            return Understanding(best)
    if (asked := asked_in_header(records)) is not None:
        table, answered = asked
        fields = {"anchor": ("{a}",), "shown": ("{b}", "{c}"), "chosen": (answered,)}
        farther = sign_of(_words_outside(answered)) < 0
        if farther and not _END_OF_ANCHOR.search(answered.partition("{a}")[2].partition("{b}")[0]):
            return Understanding([], Obstacle("the header asks about three objects, perhaps for the odd one out"))
        proposal = Proposal("pick", fields, Answer((answered,)), "the header asks the questions", farther=farther)
        return Understanding([_safe_names(reading) for _, reading in complete(table, [proposal], True, ())])
    best = _best(complete(records, _proposals(records), False))
    if (of_people := _of_people(records, complete, best)) is not None:
        return of_people
    if best and (other := _of_other_rows(records, best[0])) is not None:
        if len(best) == 1 and not best[0].doubt:
            return Understanding([], other)
        also = Decision(IN_DOUBT, "left out", other.fact)
        best = [reading._replace(evidence=(*reading.evidence, also)) for reading in best]
    if not best and (of_verdicts := graded(records)) is not None:
        return Understanding([], of_verdicts)
    if best or not obstacles:
        best = best or candidates(records)
    if not best and (fact := best_and_worst(records) or loop_of_answers(records)):
        return Understanding([], Obstacle(fact))
    return Understanding(best, None if best else next(iter(obstacles), None))


def _of_people(
    records: Records, complete: Callable[[Records, Iterable[Proposal], bool], list[Ranked]], best: Sequence[Reading]
) -> Understanding | None:
    """The readings of a table with a column of answers for each of several people, or what to say where these columns
    could be something else; None for any other table. `best`: the readings of the table as it is."""
    if participant(records, False) is not None:
        return None
    for table, answered, called in answered_by_columns(records):
        proposals = [each for each in _proposals(table) if each.answer.columns == (answered,)]
        readings = _best(complete(table, proposals, True))
        readings = [reading for reading in readings if reading.columns.get("worker") == (PARTICIPANT,)]
        if readings and called:
            return Understanding(readings)
        if len(readings) == 1 and not readings[0].doubt:
            names = ", ".join(matches(answered, [*records.columns]).values())
            fact = (
                f"columns {names} each hold an answer to the question of a row: of several people, or at several times?"
            )
            return Understanding([], Obstacle(fact, offers=(*readings, *best[:1])))
    return None


MIN_OTHER_ROWS = 5
MIN_COMMON = 0.5  # share of their objects that two versions of a study have in common


def _of_other_rows(records: Records, reading: Reading) -> Obstacle | None:
    """What to say if rows that this reading leaves out as empty have objects and answers in other columns: versions of
    a study that called them differently; and the readings of both."""
    inputs = _inputs(reading, FIELDS_OF_ANSWERS)
    rows = [row for row in range(records.size) if any(not records.columns[name].values[row] for name in inputs)]
    practised = practice(records, inputs)
    if practised is not None:
        kept = keeps(records, practised.where)
        rows = [row for row in rows if kept[row]]
    if len(rows) < MIN_OTHER_ROWS or len(rows) == records.size:
        return None
    others = _understood(records.select(rows)).readings
    if not others:
        return None
    names = _inputs(others[0], FIELDS_OF_ANSWERS)
    objects, of_others = (
        {text for name in _inputs(each, OF_OBJECTS) for text in records.columns[name].items}
        for each in (reading, others[0])
    )
    if len(objects & of_others) < MIN_COMMON * min(len(objects), len(of_others)) or {*names} <= {*inputs}:
        return None
    if any(is_practice(name, True) or CATCH_WORDS & {*words_of(name)} for name in names):
        return None
    new, old = (
        ", ".join(name for name in one if name not in other) for one, other in ((names, inputs), (inputs, names))
    )
    where = where_filled(records, names, None)
    others = [other._replace(where={**where, **other.where}) for other in others]
    fact = f"{len(rows):,} of {records.size:,} rows have none of {old}, and have {new} instead: versions of a study?"
    return Obstacle(fact, offers=(reading, *others), by_rows=len(others) == 1 and not others[0].doubt)


def _inputs(reading: Reading, fields: Sequence[str]) -> list[str]:
    return [name for field in fields for name in reading.columns.get(field, ())]


def _words_outside(pattern: str) -> list[str]:
    return list(Column(pattern.replace("{a}", " ").replace("{b}", " ").replace("{c}", " "), []).words)


def _is_wide(proposal: Proposal) -> bool:
    """Whether all that a question needs is numbered."""
    needed = [name for names in proposal.fields.values() for name in names]
    return all("{n}" in name for name in needed) and len(needed) > 2


def _best(ranked_readings: list[tuple[tuple[int, ...], Reading]]) -> list[Reading]:
    """The best readings, without those that say the same: one, if any is sure."""
    best = max((rank for rank, _ in ranked_readings), default=())
    by_meaning: dict[object, Reading] = {}
    for rank, reading in ranked_readings:
        if rank == best:
            meaning = (
                reading.type,
                tuple(reading.columns.items()),
                reading.answers_by,
                repr(reading.codes),
                repr(reading.where),
                reading.answer_is,
            )
            by_meaning.setdefault(meaning, reading)
    sure = [reading for reading in by_meaning.values() if not reading.doubt]
    return sure[:1] if sure else list(by_meaning.values())[:2]


def _proposals(records: Records) -> Iterator[Proposal]:
    """The proposals of all layouts, the best first."""
    proposals = [proposal for layout in LAYOUTS for proposal in layout(records)]
    yield from sorted(proposals, key=lambda proposal: proposal.rank, reverse=True)


def _safe_names(reading: Reading) -> Reading:
    """Without the characters in names of columns that mean something on a command line."""

    def safe(name: str) -> str:
        return "".join("*" if letter in ",|=" else letter for letter in name)

    columns = {field: tuple(map(safe, names)) for field, names in reading.columns.items()}
    return reading._replace(columns=columns)
