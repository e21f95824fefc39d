"""Catch trials that nothing calls so: the few rows of which a column says what the right answer is."""

from collections import Counter
from shlex import quote

from stream_engine.formats.answers import Answer
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.explanation import row_roles
from stream_engine.formats.reading import IN_DOUBT, Decision, Fields
from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.trial_filters import Filters, is_boolean
from stream_engine.formats.vocabulary import TRUTH

MAX_EXPECTED = 0.4  # share of the rows with a right answer: where more have one, the whole task has
MIN_EXPECTED = 2  # such rows
MAX_NAMED = 50  # right answers that a filter names
N_NAMED = 5  # participants


def expected_answers(
    records: Records, fields: Fields, answer: Answer, who: Column | None
) -> tuple[Filters, list[Decision]] | None:
    """The filter that leaves out rows of which a column says what the right answer is, and what to say of participants
    who mostly gave others; None where no column does.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"a": [*"pqrst"], "b": [*"qrstp"], "said": [*"pqrsp"], "expected": ["p", "", "", "", "t"]}
    >>> fields = {"shown": ("a", "b"), "chosen": ("said",)}
    >>> expected_answers(records_of(rows), fields, Answer(("said",)), None)[0].where
    {'expected!=': 'p|t'}
    """
    used = {name for names in fields.values() for name in names}
    for name, column in records.columns.items():
        rows = [row for row, value in enumerate(column.values) if value]
        if name in used or not TRUTH & {*column.words} or not MIN_EXPECTED <= len(rows) <= MAX_EXPECTED * records.size:
            continue
        roles = {row: row_roles(records, row, fields, answer) for row in rows}
        given = {row: {*roles[row][2], *(records.columns[each].texts[row] for each in answer.columns)} for row in rows}
        why = f"{name} says in {len(rows):,} rows what the right answer is"
        if 2 * sum(bool({*roles[row][0]} & {*roles[row][1]}) for row in rows) > len(rows):
            return Filters(
                "catch trials", {}, f"{why}: an object that is its own target", {"catch": fields["anchor"]}
            ), []
        known = {text for row in rows for text in (*roles[row][1], *given[row])}
        texts = column.distinct
        if is_boolean(column) or not texts <= known or len(texts) > MAX_NAMED or LIST_SEPARATOR in "".join(texts):
            continue
        failed, asked = Counter[str](), Counter[str]()
        people = who.texts if who is not None else [None] * records.size
        for row in rows:
            person = people[row] or ""
            asked[person] += 1
            failed[person] += column.texts[row] not in given[row]
        poor = [person for person, n in failed.items() if 2 * n > asked[person] and person]
        return Filters("catch trials", {f"{name}!=": LIST_SEPARATOR.join(sorted(texts))}, why), [
            *_of_failed(poor, failed, asked, name, who)
        ]
    return None


def _of_failed(
    poor: list[str], failed: Counter[str], asked: Counter[str], name: str, who: Column | None
) -> list[Decision]:
    if not poor or who is None:
        return []
    people = ", ".join(f"{person} ({failed[person]} of {asked[person]})" for person in poor[:N_NAMED])
    where = quote(f"{who.name}!={LIST_SEPARATOR.join(poor)}")
    fact = f"rows of participants count who gave other answers than {name} has in most of its rows: {people}"
    return [Decision(IN_DOUBT, "counted", f"{fact}{', …' * (len(poor) > N_NAMED)}; to leave them out: --where {where}")]
