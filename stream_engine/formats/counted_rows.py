"""A column that says how often the answer of its row was given, in a table of answers that were counted."""

from collections.abc import Sequence
from itertools import pairwise

from stream_engine.formats.record_columns import Column, Records
from stream_engine.formats.vocabulary import VOTES, words_of

MIN_DIFFERENT = 0.95  # share of the rows that differ in what is asked and answered
MAX_STEPS = 0.5  # share of the rows with the number after that of the row before: these number rows
_COUNTS = (VOTES - {"num"}) | {*words_of("freq frequency frequencies times reps tally total anzahl haufigkeit aantal")}
_COUNTS |= {*words_of("frequence frecuencia frequenza conteggio occurrences")}
_OF_WHAT = {*words_of("of the answers responses judgments judgements participants raters people subjects total n num")}


def counts_of_rows(records: Records, inputs: Sequence[str], used: set[str]) -> Column | None:
    """The column that says how often each row was answered so; `inputs`: the columns of what was compared and answered.

    >>> from stream_engine.formats.record_columns import records_of
    >>> rows = {"anchor": [*"aabb"], "near": [*"bcac"], "far": [*"cbca"], "n": ["3", "1", "2", "5"]}
    >>> counts_of_rows(records_of(rows), ["anchor", "near", "far"], set()).name
    'n'
    >>> print(counts_of_rows(records_of({**rows, "n": [*"1234"]}), ["anchor", "near", "far"], set()))
    None
    """
    answers = {*zip(*(records.columns[name].texts for name in inputs if name in records.columns))}
    if len(answers) < MIN_DIFFERENT * records.size:
        return None
    for name, column in records.columns.items():
        words = {*column.words}
        if name in used or not _COUNTS & words or words - _COUNTS - _OF_WHAT or len(column.distinct) < 2:
            continue
        if None in column.values or not all(text.isdecimal() and int(text) > 0 for text in column.distinct):
            continue
        numbers = [int(text) for text in column.texts if text]
        if sum(other - one == 1 for one, other in pairwise(numbers)) <= MAX_STEPS * len(numbers):
            return column
    return None
