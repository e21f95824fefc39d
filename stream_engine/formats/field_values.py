"""Values of single fields: what is absent, what names somebody, what is a weight or a time; how a value is shown."""

import math
import re
from datetime import datetime
from typing import Annotated, Any

import msgspec

from stream_engine.data.comparisons import InvalidEvent

AwareTime = Annotated[datetime, msgspec.Meta(tz=True)]
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LEAP_SECOND = re.compile(r"(.{17})60(.*)", re.DOTALL)
_TYPES = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


class Missing:
    """The value of a field that the event does not have."""


MISSING = Missing()


def is_absent(value: Any, text: bool) -> bool:
    """Whether a value that may be left out is: it is not there, null or, in text, empty."""
    return value is MISSING or value is None or (text and value == "")


def name_text(value: Any) -> str | None:
    """The text of a name: a string, or an integer in decimal; None where the value is no name.

    >>> name_text("05"), name_text(5), name_text(5.0), name_text(True)
    ('05', '5', None, None)
    """
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def optional_name(field: str, value: Any) -> str | None:
    """An id or a worker, None where there is none. Raises `InvalidEvent`."""
    if is_absent(value, text=True):
        return None
    name = name_text(value)
    if name is None:
        raise InvalidEvent("wrong_type", f"{field} holds {shown(value)}; it must be a string or an integer")
    return name


def catch_passed(source: str, value: Any, text: bool) -> bool | None:
    """Whether a catch trial was passed; None where the event is an ordinary judgement. Raises `InvalidEvent`."""
    if is_absent(value, text):
        return None
    if isinstance(value, bool):
        return value
    if text and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InvalidEvent(
        "wrong_type",
        f"{source} (as catch) holds {shown(value)}; it must be true (a catch trial, passed), false (failed) or nothing "
        "(an ordinary judgement)",
    )


def weight_of(value: Any, text: bool) -> float:
    """The weight of an event, 1 where it gives none: a finite number >= 0. Raises `InvalidEvent`."""
    if is_absent(value, text):
        return 1.0
    number = number_of(value, text)
    if number is None or not (math.isfinite(number) and number >= 0):
        raise InvalidEvent("bad_weight", f"weight is {quoted(value)}; it must be a finite number >= 0")
    return number


def time_of(value: Any, text: bool) -> float:
    """Epoch seconds of a time: RFC 3339 (with its offset) or epoch seconds; NaN where the event gives none.

    Raises `InvalidEvent`.

    >>> time_of("1970-01-01T01:00:01+01:00", text=False), time_of("2016-12-31T23:59:60Z", text=False) % 86400
    (1.0, 0.0)
    """
    if is_absent(value, text):
        return math.nan
    number = number_of(value, text)
    if number is None and isinstance(value, str):
        number = _rfc3339(value)
    if number is None or not math.isfinite(number):
        raise InvalidEvent(
            "bad_time", f"time is {quoted(value)}; it must be RFC 3339 (2024-05-01T12:00:00Z) or epoch seconds"
        )
    return number


def shown(value: object) -> str:
    """A value of the wrong type as it appears in a message: what it is, and the value.

    >>> shown(1.5), shown(None)
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
    leap = _LEAP_SECOND.fullmatch(value)  # RFC 3339, sec. 5.6: a minute may have a second 60
    try:
        seconds = msgspec.convert(f"{leap[1]}59{leap[2]}" if leap else value, AwareTime).timestamp()
    except msgspec.ValidationError:
        return None
    return seconds + 1 if leap else seconds
