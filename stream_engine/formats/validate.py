"""The definition of one readable event in plain Python, for every event that a fast path is uncertain about.

The order of the checks gives an event with several faults the same reason in every format: its type; its fields in the
order of the contract; id, worker, sampler, weight, time, votes. `expand` checks names and distinctness.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

from stream_engine.data.comparisons import EVENT_TYPES, MAX_LIST, READABLE_TYPES, InvalidEvent
from stream_engine.formats.cells import is_bracketed, items_of
from stream_engine.formats.event_fields import (
    KIND,
    PACE,
    PICK,
    RANKING,
    SIDES,
    TRIPLET,
    VOTED,
    EventField,
    EventFields,
    derived_type,
    place_of,
)
from stream_engine.formats.field_values import (
    MISSING,
    catch_passed,
    flag_of,
    is_absent,
    name_text,
    number_of,
    optional_name,
    quoted,
    response_time,
    shared_votes,
    time_of,
    type_and_value,
    votes_of,
    weight_of,
)
from stream_engine.formats.pick_farthest import others_of

Cell = Callable[[str], Any]  # input field -> its value, or MISSING


class Event(NamedTuple):
    """One event as read: the names of each field in the order of the contract."""

    kind: int
    names: tuple[list[str], ...]
    worker: str | None
    weight: float
    time: float
    sampler: str | None = None
    votes: tuple[int, int] = (1, 0)  # number of answers as stated, and in the other direction
    seconds: float = math.nan  # response time


class CatchTrial(Exception):
    """The event is a catch trial: not a response, but information about its worker."""

    def __init__(self, worker: str | None, passed: bool, key: int = 0):
        super().__init__(worker, passed)
        self.worker, self.passed = worker, passed
        self.key = key  # the same for copies of a trial, 0 where no time tells them


def trial_key(worker: str | None, time: float, seconds: float, objects: str) -> int:
    """The key of a catch trial: 0 without a participant or a time."""
    if not worker or (math.isnan(time) and math.isnan(seconds)):
        return 0
    digest = blake2b(f"{worker}\n{time!r}\n{seconds!r}\n{objects}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") | 1


def read_event(cell: Cell, event_fields: EventFields, text: bool) -> Event:
    """Read one event; `cell(input field)` returns its value or MISSING.

    With `text`, a list may be text separated by `|`, and numbers and times may be text (CSV cells, text columns).
    Raises `InvalidEvent`, or `CatchTrial` for a catch trial (of which only the worker is read).

    >>> event = {"anchor": 1, "near": "b", "far": "c"}
    >>> from stream_engine.formats.event_fields import fields_of
    >>> from stream_engine.formats.options import EventOptions
    >>> read_event(lambda name: event.get(name, MISSING), fields_of(EventOptions()), text=False).names
    (['1'], ['b'], ['c'])
    """
    optional = event_fields.optional
    if (source := event_fields.catch_input) is not None:
        passed = catch_passed(source, cell(source), text)
        if passed is not None:
            raise _catch_trial(cell, event_fields, text, passed)
    kind = event_fields.only_kind
    if kind is None:
        kind = _kind(cell(event_fields.type_input), text)
    names = _all_names(cell, kind, event_fields, text)
    if kind >= len(EVENT_TYPES):
        derived = derived_type(READABLE_TYPES[kind])
        kind, names = KIND[derived.counted_as], derived.translate(names)
    optional_name("id", cell(optional["id"]), text)
    worker = optional_name("worker", cell(optional["worker"]), text)
    sampler = optional_name("sampler", cell(optional["sampler"]), text)
    weight = weight_of(cell(optional["weight"]), text)
    time = time_of(cell(optional["time"]), text, event_fields.latest_time())
    votes = (1, 0)
    if kind in VOTED:
        near, far = event_fields.votes
        votes = votes_of(cell(near), cell(far), text)
        if event_fields.share is not None:
            share, total = event_fields.share
            votes = shared_votes(cell(share), cell(total), text)
    seconds = response_time({name: cell(optional[name]) for name in PACE}, text)
    return Event(kind, names, worker, weight, time, sampler, votes, seconds)


def _catch_trial(cell: Cell, event_fields: EventFields, text: bool, passed: bool) -> CatchTrial:
    """A catch trial: of its other fields, those that tell copies of it, if they can be read."""
    optional = event_fields.optional
    worker = optional_name("worker", cell(optional["worker"]), text)
    key = 0
    with suppress(InvalidEvent):
        time = time_of(cell(optional["time"]), text, event_fields.latest_time())
        seconds = response_time({name: cell(optional[name]) for name in PACE}, text)
        inputs = sorted({name for fields in event_fields.by_kind for field in fields for name in field.inputs})
        key = trial_key(worker, time, seconds, "\n".join(str(cell(name)) for name in inputs))
    return CatchTrial(worker, passed, key)


def _kind(value: Any, text: bool) -> int:
    if is_absent(value, text):
        return TRIPLET
    if isinstance(value, str) and value in KIND:
        return KIND[value]
    raise InvalidEvent("unknown_type", f"type {quoted(value)} is unknown; known: {', '.join(READABLE_TYPES)}")


def _all_names(cell: Cell, kind: int, event_fields: EventFields, text: bool) -> tuple[list[str], ...]:
    """The names of all fields, the nearer ones where the contract has them: answers become names. Raises
    `InvalidEvent`."""
    names: list[list[str]] = []
    inputs: tuple[str, ...] = ()
    for field in event_fields.by_kind[kind]:
        if field.shape.answer and event_fields.flags:
            names.append(_flagged(cell, kind, field, names[-1], event_fields, text))
            continue
        names_in_cell = _names(cell, kind, field, event_fields, text)
        if field.shape.answer and event_fields.first_of is not None:
            codes = event_fields.codes.get(field.name, {})
            answers = [codes.get(answer, answer) for answer in names_in_cell]
            names_in_cell = [
                _at_position(field, answer, inputs, names[-1], event_fields.first_of) for answer in answers
            ]
        names.append(names_in_cell)
        inputs = field.inputs
    if kind == RANKING and event_fields.ranks:
        names[1] = _by_rank(names[1], [cell(source) for source in event_fields.ranks], text)
    far_first = kind in VOTED and event_fields.side is not None and _side(cell, event_fields, text) == 1
    if kind in VOTED and far_first != event_fields.farther:
        names[-2:] = names[:-3:-1]
    elif kind == RANKING and event_fields.farther:
        names[1] = names[1][::-1]
    elif kind == PICK and event_fields.farther:
        names[2] = others_of(names[1], names[2])
    return tuple(names)


def _flagged(
    cell: Cell, kind: int, field: EventField, objects: list[str], event_fields: EventFields, text: bool
) -> list[str]:
    """The objects of which the answer says yes. Raises `InvalidEvent`."""
    values = [cell(source) for source in field.inputs]
    if len(values) == 1:
        whole = values[0]
        values = items_of(whole, event_fields.separator) if isinstance(whole, str) else whole
    flags = [flag_of(value) for value in values] if isinstance(values, list) else []
    if len(flags) != len(objects) or None in flags:
        raise InvalidEvent(
            "wrong_type",
            f"{_called(field, ', '.join(field.inputs))} holds {quoted(values)}; it must say yes (1) or no (0) of each "
            f"of the {len(objects)} objects",
        )
    return _sized([name for name, flag in zip(objects, flags) if flag], kind, field)


def _by_rank(names: list[str], ranks: list[Any], text: bool) -> list[str]:
    """The names in the order of their ranks, 1 first. Raises `InvalidEvent`."""
    numbers = [number_of(rank, text) for rank in ranks]
    if len(numbers) != len(names) or None in numbers or len(set(numbers)) < len(numbers):
        raise InvalidEvent("wrong_type", f"rank holds {quoted(ranks)}; it must be a different number for each object")
    return [name for _, name in sorted(zip(numbers, names))]


def _side(cell: Cell, event_fields: EventFields, text: bool) -> int:
    """0 if near is the nearer side as it is stated, 1 if far is. Raises `InvalidEvent`."""
    value = cell(event_fields.side or "")
    name = str(value).lower() if isinstance(value, bool) else None if value is MISSING else name_text(value, text)
    answer = event_fields.codes.get("chosen", {}).get(name or "", name or "")
    sides = [field.inputs for field in event_fields.by_kind[TRIPLET][1:]]
    first = 1 if event_fields.first_of is None else event_fields.first_of
    place = place_of(answer, SIDES, first)
    if not 0 <= place < 2:
        place = next((at for at, inputs in enumerate(sides) if answer in inputs), -1)
    if place < 0:
        raise InvalidEvent(
            "not_shown" if name else "missing_field",
            f"{event_fields.side} (as chosen) is {quoted(value)}; it must be near or far, {first} or {first + 1}, or "
            "one of the codes",
        )
    return place


def _at_position(field: EventField, answer: str, inputs: tuple[str, ...], objects: list[str], first: int) -> str:
    """The object at a position (`place_of`). Raises `InvalidEvent`."""
    place = place_of(answer, inputs, first)
    if 0 <= place < len(objects):
        return objects[place]
    by_name = f", or one of {', '.join(inputs)}" if len(inputs) > 1 else ""
    raise InvalidEvent(
        "not_shown",
        f"{field.name} is {quoted(answer)}; by position it must be a number from {first} to {len(objects) - 1 + first}"
        + by_name,
    )


def _names(cell: Cell, kind: int, field: EventField, event_fields: EventFields, text: bool) -> list[str]:
    """The names of one field; none for a null label. Raises `InvalidEvent`."""
    if len(field.inputs) > 1:
        return _sized([_name(kind, field, source, cell(source), text) for source in field.inputs], kind, field)
    source = field.inputs[0]
    value = cell(source)
    if not field.shape.is_list:
        return [] if field.shape.nullable and value is None else [_name(kind, field, source, value, text)]
    if value is MISSING:
        raise _missing(kind, field, source)
    separator = event_fields.separator
    if isinstance(value, str) and (text or separator or (is_bracketed(value) and not field.shape.answer)):
        value = items_of(value, separator) if value else []
    if field.shape.answer and name_text(value) is not None:
        value = [value]  # one answer need not be in a list
    if not isinstance(value, list):
        raise InvalidEvent(
            "wrong_type", f"{_called(field, source)} holds {type_and_value(value)}; it must be a list of names"
        )
    if len(value) > MAX_LIST:
        raise InvalidEvent(
            "list_too_long", f"{_called(field, source)} holds {len(value):,} entries; the limit is {MAX_LIST:,}"
        )
    return _sized([_name(kind, field, source, item, text) for item in value], kind, field)


def _name(kind: int, field: EventField, source: str, value: Any, text: bool) -> str:
    if value is MISSING:
        raise _missing(kind, field, source)
    name = name_text(value, text)
    if name is None:
        raise InvalidEvent(
            "wrong_type", f"{_called(field, source)} holds {type_and_value(value)}; a name is a string or an integer"
        )
    return name


def _sized(names: list[str], kind: int, field: EventField) -> list[str]:
    if field.shape.size is not None and len(names) != field.shape.size:
        raise InvalidEvent(
            "wrong_type", f"{field.name} holds {len(names)} names; {READABLE_TYPES[kind]} needs {field.shape.size}"
        )
    return names


def _missing(kind: int, field: EventField, source: str) -> InvalidEvent:
    return InvalidEvent("missing_field", f"{_called(field, source)} is missing; {READABLE_TYPES[kind]} needs it")


def _called(field: EventField, source: str) -> str:
    return field.name if source == field.name else f"{source} (as {field.name})"
