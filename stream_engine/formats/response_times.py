"""Which column holds response times, and in which unit."""

import re
from collections.abc import Container
from itertools import pairwise
from statistics import median

from stream_engine.data.comparisons import InvalidEvent
from stream_engine.formats.event_fields import PACE
from stream_engine.formats.field_values import DECIMAL_COMMA, SINCE_1973, number_of, time_of
from stream_engine.formats.record_columns import Column, Records

NAMES = ("responsetime", "reactiontime", "reaktionszeit")
DURATIONS = frozenset(("dauer", "duree", "tiempo"))  # of an answer, or the time since a beginning: then they increase
MAX_INCREASING = 0.9  # share of the values that are larger than the one before
UNITS = {
    "milliseconds": frozenset(("ms", "msec", "millis", "milliseconds")),
    "seconds": frozenset(("s", "sec", "secs", "seconds")),
}
MAX_SECONDS = 60.0  # median of seconds; a larger one is of milliseconds
MIN_NUMERIC = 0.9  # share of the values


def seconds_of_no_date(records: Records) -> float | None:
    """The largest number of a column `time` that, as epoch seconds, would be a date before 1973: a response time, or
    the time since a beginning. None where there is no such column.

    >>> from stream_engine.formats.record_columns import records_of
    >>> seconds_of_no_date(records_of({"time": ["1.5", "732"]})), seconds_of_no_date(records_of({"time": ["1.7e9"]}))
    (732.0, None)
    """
    column = records.columns.get("time")
    values = [] if column is None else [value for value in _numbers(column, records) if value is not None]
    if column is None or not values or len(values) < MIN_NUMERIC * sum(text is not None for text in column.texts):
        return None
    return max(values) if max(values) < SINCE_1973 else None


def text_of_no_date(records: Records) -> str | None:
    """The first text of a column `time` that is no time that is read, where more than a tenth are such: dates of a
    spreadsheet. None where there is no such column.

    >>> from stream_engine.formats.record_columns import records_of
    >>> text_of_no_date(records_of({"time": ["06.04.2026 9:05", "2026-04-06 09:05:00"]}))
    '06.04.2026 9:05'
    """
    column = records.columns.get("time")
    texts = [] if column is None else _texts(column, records)
    unread = [text for text in texts if not _is_time(text)]
    return unread[0] if len(unread) > (1.0 - MIN_NUMERIC) * len(texts) else None


def _is_time(text: str) -> bool:
    try:
        time_of(text, text=True)
    except InvalidEvent:
        return False
    return True


def _numbers(column: Column, records: Records) -> list[float | None]:
    """The numbers of the cells that are not empty, None for other text."""
    return [number_of(text, text=True) for text in _texts(column, records)]


def _texts(column: Column, records: Records) -> list[str]:
    """The cells that are not empty, numbers with decimal points."""
    texts = [text for text in column.texts if text is not None]
    return [re.sub(DECIMAL_COMMA, r"\1.\2", text) for text in texts] if records.decimal_commas else texts


def _are_increasing(values: list[float | None]) -> bool:
    pairs = [(a, b) for a, b in pairwise(values) if a is not None and b is not None]
    return sum(a < b for a, b in pairs) > MAX_INCREASING * len(pairs)


def response_times(records: Records, varying: Container[str] | None = None) -> tuple[str, Column, str] | None:
    """`(field of an event, column, why)` of the column of response times, in seconds or milliseconds: as its name says,
    or as its median does, if it is called so and holds numbers. None where the fields themselves are there. `varying`:
    the columns that differ between the answers of a participant; a duration that does not is that of a whole study.

    >>> from stream_engine.formats.record_columns import records_of
    >>> field, column, why = response_times(records_of({"key_resp.rt": ["0.81", "1.2"], "time": ["5", "6"]}))
    >>> field, column.name, why
    ('seconds', 'key_resp.rt', 'its median is 1')
    """
    if PACE.keys() & records.columns.keys():
        return None
    plainest_first = sorted(records.columns.items(), key=lambda item: (len(item[1].distinct) < 2, len(item[1].words)))
    for name, column in plainest_first:  # `rt` before `practice_rt`, and what varies before what does not
        called = "".join(column.words)
        is_called_so = "rt" in column.words or called == "latency" or any(part in called for part in NAMES)
        is_duration = not is_called_so and not DURATIONS.isdisjoint(column.words)
        if not (is_called_so or is_duration) or set(name) & set(",|="):
            continue
        values = _numbers(column, records)
        varies = len(column.distinct) > 1 and (varying is None or name in varying)
        if is_duration and (not varies or _are_increasing(values)):
            continue
        numbers = [value for value in values if value is not None and value >= 0.0]
        if not numbers or len(numbers) < MIN_NUMERIC * len(values) or 2 * len(values) < records.size:
            continue
        if unit := next((unit for unit, words in UNITS.items() if words & set(column.words)), None):
            return unit, column, "its name says so"
        middle = median(numbers)
        return (
            "milliseconds" if middle > MAX_SECONDS else "seconds",
            column,
            f"its median is {float(f'{middle:.3g}'):,g}",
        )
    return None
