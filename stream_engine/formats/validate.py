"""The definition of one event that can be read: its fields, their types and sizes, weight and time.

Plain Python over one event's values, used for every event that a fast path was not sure of. Checked in this order, so
that an event with several faults is refused for the same one in every format: its type; its fields in the order of the
contract (missing, wrong type, list too long or of the wrong size); id, worker, weight, time. Names and distinctness
come after that, in `expand`, the same code for all formats. O(names of the event).
"""

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import msgspec

from stream_engine.data.comparisons import EVENT_TYPES, MAX_LIST, InvalidEvent
from stream_engine.formats.event_fields import KIND, LIST_SEPARATOR, TRIPLET, EventField, EventFields

AwareTime = Annotated[datetime, msgspec.Meta(tz=True)]
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LEAP = re.compile(r"(.{17})60(.*)", re.DOTALL)


class Missing:
    """The value of a field that the event does not have."""


MISSING = Missing()


class Said(NamedTuple):
    """One event as it was said: the names of each field in the order of the contract."""

    kind: int
    names: tuple[list[str], ...]
    worker: str | None
    weight: float
    time: float


class Caught(Exception):
    """The event is a catch trial: no judgement, but something about its worker."""

    def __init__(self, worker: str | None, passed: bool):
        super().__init__(worker, passed)
        self.worker, self.passed = worker, passed


def read_event(cell: Callable[[str], Any], event_fields: EventFields, text: bool) -> Said:
    """Read one event; `cell(input field)` gives its value or MISSING.

    With `text` a list may be written as text separated by `|`, and numbers and times as text (CSV cells, text columns).
    Raises `InvalidEvent`, or `Caught` for a catch trial (of which nothing but its worker is read).

    >>> event = {"anchor": 1, "near": "b", "far": "c"}
    >>> from stream_engine.formats import EventOptions
    >>> from stream_engine.formats.event_fields import fields_of
    >>> read_event(lambda name: event.get(name, MISSING), fields_of(EventOptions()), text=False).names
    (['1'], ['b'], ['c'])
    """
    if (
        event_fields.catch_input is not None
        and (passed := _passed(event_fields.catch_input, cell(event_fields.catch_input), text)) is not None
    ):
        raise Caught(_who("worker", cell(event_fields.optional["worker"])), passed)
    kind = _kind(cell(event_fields.type_input), text) if event_fields.only_kind is None else event_fields.only_kind
    names = tuple(_names(cell, kind, field, text) for field in event_fields.by_kind[kind])
    _who("id", cell(event_fields.optional["id"]))
    worker = _who("worker", cell(event_fields.optional["worker"]))
    return Said(
        kind,
        names,
        worker,
        weight_of(cell(event_fields.optional["weight"]), text),
        time_of(cell(event_fields.optional["time"]), text),
    )


def quoted(value: object) -> str:
    """A value as it appears in a message: one line, never longer than a line.

    >>> quoted("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"
    """
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:51] + "...")
    if isinstance(value, int) and abs(value) > 10**60:
        return f"{'-' if value < 0 else ''}{'9' * 3}... (over 60 digits)"
    shown = str(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _kind(value: Any, text: bool) -> int:
    if value is MISSING or value is None or (text and value == ""):
        return TRIPLET
    if isinstance(value, str) and value in KIND:
        return KIND[value]
    raise InvalidEvent("unknown_type", f"type {quoted(value)} is unknown; known: {', '.join(EVENT_TYPES)}")


def _names(cell, kind: int, field: EventField, text: bool) -> list[str]:
    if len(field.inputs) > 1:
        return _sized([_name(kind, field, source, cell(source)) for source in field.inputs], kind, field)
    source = field.inputs[0]
    value = cell(source)
    if not field.shape.is_list:
        if field.shape.nullable and value is None:
            return []
        return [_name(kind, field, source, value)]
    if value is MISSING:
        raise _missing(kind, field, source)
    if text and isinstance(value, str):
        value = value.split(LIST_SEPARATOR) if value else []
    if not isinstance(value, list):
        raise InvalidEvent(
            "wrong_type", f"{_called(field, source)} holds {_type(value)} ({quoted(value)}); it must be a list of names"
        )
    if len(value) > MAX_LIST:
        raise InvalidEvent(
            "list_too_long", f"{_called(field, source)} holds {len(value):,} entries; the limit is {MAX_LIST:,}"
        )
    return _sized([_name(kind, field, source, item) for item in value], kind, field)


def _name(kind: int, field: EventField, source: str, value: Any) -> str:
    if value is MISSING:
        raise _missing(kind, field, source)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidEvent(
        "wrong_type",
        f"{_called(field, source)} holds {_type(value)} ({quoted(value)}); a name is a string or an integer",
    )


def _sized(names: list[str], kind: int, field: EventField) -> list[str]:
    if field.shape.size is not None and len(names) != field.shape.size:
        raise InvalidEvent(
            "wrong_type", f"{field.name} holds {len(names)} names; {EVENT_TYPES[kind]} needs {field.shape.size}"
        )
    return names


def _missing(kind: int, field: EventField, source: str) -> InvalidEvent:
    return InvalidEvent("missing_field", f"{_called(field, source)} is missing; {EVENT_TYPES[kind]} needs it")


def _called(field: EventField, source: str) -> str:
    return field.name if source == field.name else f"{source} (as {field.name})"


def _type(value: object) -> str:
    names = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "a list",
        dict: "an object",
        type(None): "null",
    }
    return names.get(type(value), f"a {type(value).__name__}")


def _who(name: str, value: Any) -> str | None:
    if value is MISSING or value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidEvent(
        "wrong_type", f"{name} holds {_type(value)} ({quoted(value)}); it must be a string or an integer"
    )


def _passed(source: str, value: Any, text: bool) -> bool | None:
    """Whether a catch trial was passed; None where the event is an ordinary judgement."""
    if value is MISSING or value is None or (text and value == ""):
        return None
    if isinstance(value, bool):
        return value
    if text and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InvalidEvent(
        "wrong_type",
        f"{source} (as catch) holds {_type(value)} ({quoted(value)}); it must be true (a catch "
        "trial, passed), false (failed) or nothing (an ordinary judgement)",
    )


def weight_of(value: Any, text: bool) -> float:
    """The weight of an event, 1 where it gives none: a finite number >= 0. Raises `InvalidEvent`."""
    if value is MISSING or value is None or (text and value == ""):
        return 1.0
    number = _number(value, text)
    if number is None or not (math.isfinite(number) and number >= 0):
        raise InvalidEvent("bad_weight", f"weight is {quoted(value)}; it must be a finite number >= 0")
    return number


def time_of(value: Any, text: bool) -> float:
    """Epoch seconds of a time: RFC 3339 (with its offset) or epoch seconds; NaN where the event gives none.

    Raises `InvalidEvent`.

    >>> time_of("1970-01-01T01:00:01+01:00", text=False), time_of("2016-12-31T23:59:60Z", text=False) % 86400
    (1.0, 0.0)
    """
    if value is MISSING or value is None or (text and value == ""):
        return math.nan
    number = _number(value, text)
    if number is None and isinstance(value, str):
        number = _rfc3339(value)
    if number is None or not math.isfinite(number):
        raise InvalidEvent(
            "bad_time", f"time is {quoted(value)}; it must be RFC 3339 (2024-05-01T12:00:00Z) or epoch seconds"
        )
    return number


def _number(value: Any, text: bool) -> float | None:
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
    leap = _LEAP.fullmatch(value)  # RFC 3339, sec. 5.6: a minute may have a second 60
    try:
        at = msgspec.convert(f"{leap[1]}59{leap[2]}" if leap else value, AwareTime).timestamp()
    except msgspec.ValidationError:
        return None
    return at + 1 if leap else at
