"""Values of single fields: absent values, names, weights, times, and how values are shown in messages."""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from stream_engine.data.comparisons import MAX_WEIGHT, InvalidEvent
from stream_engine.formats.event_fields import PACE

AwareTime = Annotated[datetime, msgspec.Meta(tz=True)]
WHOLE_FLOAT = r"(-?[1-9][0-9]{0,15}|0)\.0"  # the text of an integer from a column of floats
MAX_VOTES = 1_000_000  # of one question, in each direction: they are in memory together
TIMES = -62_135_596_800.0, 253_402_300_800.0  # epoch seconds: the years 1 to 9999, as RFC 3339 can write them
MAX_WHOLE_FLOAT = 1e16  # whole floats up to here are written with all their digits
_ZONELESS = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
DECIMAL_COMMA = r"^([+-]?[0-9]+),([0-9]+([eE][+-]?[0-9]+)?)$"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE_FLOAT = re.compile(WHOLE_FLOAT)
_LEAP_SECOND = re.compile(r"(.{17})60(.*)", re.DOTALL)
_FINER = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}  # how many are a second
SINCE_1973 = 1e8  # seconds; less of a finer unit is a time of its own
_TYPES = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class MissingField:
    """The value of a field that the event does not have."""


MISSING = MissingField()


def is_absent(value: Any, text: bool) -> bool:
    """Whether an optional value is absent: missing, null or, in text, empty."""
    return value is MISSING or value is None or (text and value == "")


def is_nan(value: Any) -> bool:
    """Whether a value is the NaN that data frames write for a missing value in a column of floats."""
    return isinstance(value, float) and math.isnan(value)


def name_text(value: Any, text: bool = False) -> str | None:
    """The text of a name: a string, or an integer in decimal, including integral floats (with `text`, as text); None if
    the value is not a name.

    >>> name_text("05"), name_text(5), name_text(5.0), name_text(True), name_text(5.5), name_text("5.0", text=True)
    ('05', '5', '5', None, None, '5')
    """
    if isinstance(value, str):
        whole = _WHOLE_FLOAT.fullmatch(value) if text else None
        return whole[1] if whole else value
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_WHOLE_FLOAT:
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def optional_name(field: str, value: Any, text: bool = False) -> str | None:
    """An id or a worker, None if absent. Raises `InvalidEvent`."""
    if is_absent(value, text=True) or is_nan(value):
        return None
    name = name_text(value, text)
    if name is None:
        raise InvalidEvent("wrong_type", f"{field} holds {type_and_value(value)}; it must be a string or an integer")
    return name


def catch_passed(source: str, value: Any, text: bool) -> bool | None:
    """Whether a catch trial was passed; None if the event is an ordinary response. Raises `InvalidEvent`."""
    if is_absent(value, text):
        return None
    if isinstance(value, bool):
        return value
    if text and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InvalidEvent(
        "wrong_type",
        f"{source} (as catch) holds {type_and_value(value)}; it must be true (a passed catch trial), "
        "false (a failed one) or empty (an ordinary response)",
    )


def weight_of(value: Any, text: bool) -> float:
    """The weight of an event, by default 1: a number from 0 to MAX_WEIGHT. Raises `InvalidEvent`."""
    if is_absent(value, text):
        return 1.0
    number = number_of(value, text)
    if number is None or not 0 <= number <= MAX_WEIGHT:
        raise InvalidEvent("bad_weight", f"weight is {quoted(value)}; it must be a number from 0 to {MAX_WEIGHT:g}")
    return number


def votes_of(near: Any, far: Any, text: bool) -> tuple[int, int]:
    """The number of answers to a question as stated, and in the other direction: (1, 0) if no count is given; a missing
    second count is 0. Raises `InvalidEvent`.

    >>> votes_of(7, 3.0, text=False), votes_of("", "", text=True), votes_of(MISSING, 2, text=False)
    ((7, 3), (1, 0), (0, 2))
    """
    if all(is_absent(value, text) or is_nan(value) for value in (near, far)):
        return 1, 0
    return _count("n_near", near, text), _count("n_far", far, text)


def _count(field: str, value: Any, text: bool) -> int:
    if is_absent(value, text) or is_nan(value):
        return 0
    number = number_of(value, text)
    if number is None or not (0 <= number <= MAX_VOTES and number.is_integer()):
        raise InvalidEvent("bad_votes", f"{field} is {quoted(value)}; it must be an integer from 0 to {MAX_VOTES:,}")
    return int(number)


def shared_votes(share: Any, total: Any, text: bool) -> tuple[int, int]:
    """The number of answers each way, of the share (0 to 1) that answers as stated, and how many there are. Raises
    `InvalidEvent`.

    >>> shared_votes("0.6", "5", text=True), shared_votes(0.333, 3, text=False)
    ((3, 2), (1, 2))
    """
    part, votes = number_of(share, text), _count("votes", total, text)
    near = math.nan if part is None else part * votes
    if not (0 <= near <= votes) or abs(near - round(near)) > 0.02 * votes:
        raise InvalidEvent("bad_votes", f"share is {quoted(share)} of {votes:,} votes; it must be a share of them")
    return round(near), votes - round(near)


TRUE = frozenset(
    (
        *("1", "true", "yes", "t", "y", "on", "checked", "selected", "x", "ja", "oui", "si", "sí", "wahr", "vrai"),
        *("verdadero", "verdadeiro", "vero", "waar"),
    )
)
FALSE = frozenset(
    ("0", "false", "no", "f", "n", "off", "unchecked", "", "nein", "non", "falsch", "faux", "falso", "onwaar", "nee")
)


def flag_of(value: Any) -> bool | None:
    """Whether a value says yes; None where it says neither yes nor no. An empty one says no.

    >>> flag_of("1"), flag_of(False), flag_of(None), flag_of("left")
    (True, False, False, None)
    """
    if value is None or value is MISSING or is_nan(value):
        return False
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().casefold()
    return True if text in TRUE else False if text in FALSE else None


def time_of(value: Any, text: bool, latest: float = TIMES[1]) -> float:
    """Epoch seconds of a time; NaN if absent. Raises `InvalidEvent`.

    RFC 3339, the same as written by pandas and SQL (with a space, and optionally without an offset, which means UTC),
    or epoch seconds; from the year 1 up to `latest`.

    >>> time_of("1970-01-01T01:00:01+01:00", text=False), time_of("2016-12-31T23:59:60Z", text=False) % 86400
    (1.0, 0.0)
    >>> time_of("1970-01-01 00:00:02.500", text=False), time_of("1970-01-01 01:00:02+01", text=False)
    (2.5, 2.0)
    """
    if is_absent(value, text):
        return math.nan
    number = number_of(value, text)
    if number is None and isinstance(value, str):
        number = _rfc3339(value)
    if number is not None and TIMES[0] <= number <= min(latest, TIMES[1]):
        return number
    why = "" if number is None or not number > latest else _why_late(number, latest)
    raise InvalidEvent(
        "bad_time",
        f"time is {quoted(value)}{why}; it must be RFC 3339 (2024-05-01T12:00:00Z) or epoch seconds"
        ", or is left out by time=- in --columns",
    )


def _why_late(number: float, latest: float) -> str:
    """What a time is that lies in the future."""
    finer = [unit for unit, per_second in _FINER.items() if SINCE_1973 <= number / per_second <= latest]
    return (
        f", which looks like {finer[0]}: convert it to seconds"
        if finer
        else ", later than the clock allows (input.max_time_ahead)"
    )


def response_time(values: Mapping[str, Any], text: bool) -> float:
    """Seconds, of the first of `PACE` that holds a number of at least 0; NaN where none does. Never a reason to reject
    an answer.

    >>> response_time({"seconds": "", "milliseconds": "812"}, text=True), response_time({"seconds": -1.0}, text=False)
    (0.812, nan)
    """
    for name, value in values.items():
        number = None if is_absent(value, text) else number_of(value, text)
        if number is not None and 0.0 <= number < math.inf:
            return number * PACE[name]
    return math.nan


def type_and_value(value: object) -> str:
    """A value of the wrong type as it appears in a message: its type and the value.

    >>> type_and_value(1.5), type_and_value(None)
    ('a number (1.5)', 'null (None)')
    """
    return f"{_TYPES.get(type(value), f'a {type(value).__name__}')} ({quoted(value)})"


def quoted(value: object) -> str:
    """A value as it appears in a message: one line, never longer than a line.

    >>> quoted("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"
    """
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:51] + "...")
    if isinstance(value, int) and abs(value) > 10**60:
        return f"{'-' if value < 0 else ''}{'9' * 3}... (over 60 digits)"
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def number_of(value: Any, text: bool) -> float | None:
    """A number as a double, with `text` also the text of one; None for what is no number."""
    if isinstance(value, bool):
        return None
    if text and isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    if not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of a double
        return math.inf


def _rfc3339(value: str) -> float | None:
    if zoneless := _ZONELESS.fullmatch(value):
        day, clock, parts, zone, minutes = zoneless.groups()
        zone = "Z" if zone in (None, "Z", "z") else f"{zone[:3]}:{minutes[-2:] if minutes else '00'}"
        value = f"{day}T{clock}{(parts or '')[:7]}{zone}"
    leap = _LEAP_SECOND.fullmatch(value)  # RFC 3339, sec. 5.6: a minute may have a second 60
    try:
        seconds = msgspec.convert(f"{leap[1]}59{leap[2]}" if leap else value, AwareTime).timestamp()
    except msgspec.ValidationError:
        return None
    return seconds + 1 if leap else seconds
