"""What a plain JSON line looks like: its bytes with a slot for each name, number and ignored value.

A template is made of one line that a struct has taken (`json_structs`), hence a valid event, and says which bytes must
be the same in another line and what may stand in the slots. Invariant: a line that fits a template, in text that is
UTF-8, is one that the struct takes, with the same fields. So what is allowed in a slot is less than what is valid:
strings without escapes, short numbers without exponents. Everything else in the line (keys and their order, spaces,
nulls, `type`, the marks of catch trials, the lengths of lists) stays as it was.
"""

import re
from typing import NamedTuple

import numpy as np

from stream_engine.formats.event_fields import LABEL, EventFields

NAME, ANYTHING, WEIGHT, TIME = range(4)  # what may stand in a slot
WORKER, NOWHERE, SAMPLER = -1, -2, -3  # where a name goes that is no member of the event

MOST_SLOTS, MOST_BYTES = 24, 4096  # of a template
_STRING = rb'"[^"\\\x00-\x1f]*"'
_NUMBER = rb"-?[0-9][0-9.eE+-]*"
_KEY = re.compile(rb"([ \t]*)(" + _STRING + rb")[ \t]*:[ \t]*")
_VALUE = re.compile(_STRING + rb"|" + _NUMBER + rb"|true|false|null")
_NEXT = re.compile(rb"[ \t]*([,\]}])[ \t]*")

_KEPT = {"worker": WORKER, "sampler": SAMPLER}


class Slot(NamedTuple):
    """A value that differs from line to line: its place in the line, what it may be, and which member it is."""

    begin: int
    end: int
    kind: int
    member: int = NOWHERE


class Template(NamedTuple):
    """Literal bytes and slots in turn, `len(slots) + 1` literals; `members` names an event, the last `last` of them
    the last field."""

    kind: int
    members: int
    last: int
    literals: list[bytes]
    slots: list[Slot]


def template_of(line: bytes, kind: int, event_fields: EventFields) -> Template | None:
    """The template of a line `{...}` that a struct of this kind has taken; None for lines of other looks.

    >>> from stream_engine.formats.event_fields import TRIPLET, fields_of
    >>> from stream_engine.formats.options import EventOptions
    >>> template_of(b'{"near": "b", "anchor":5, "far":"c"}', TRIPLET, fields_of(EventOptions())).literals
    [b'{"near": ', b', "anchor":', b', "far":', b'}']
    """
    values = None if len(line) > MOST_BYTES or kind == LABEL else _values(line)
    if values is None:
        return None
    member_of: dict[str, int] = {}
    members = last = 0
    for field in event_fields.by_kind[kind]:
        if field.stands_in_a_list:
            last = len(values.get(field.inputs[0], ()))
            inputs = {field.inputs[0]: members}
        else:
            last = len(field.inputs)
            inputs = {source: members + i for i, source in enumerate(field.inputs)}
        if inputs.keys() & member_of.keys() or len(inputs) != len(field.inputs):
            return None  # one value for two members
        member_of |= inputs
        members += last
    slots = _slots(line, values, member_of, event_fields)
    if slots is None or sum(slot.member >= 0 for slot in slots) != members:
        return None
    begins, ends = [slot.begin for slot in slots] + [len(line)], [0] + [slot.end for slot in slots]
    return Template(kind, members, last, [line[end:begin] for begin, end in zip(begins, ends, strict=True)], slots)


def _slots(
    line: bytes, values: dict[str, list[tuple[int, int]]], member_of: dict[str, int], event_fields: EventFields
) -> list[Slot] | None:
    """The slots of a line whose values stand in these places; None where it has values of a kind that no slot takes."""
    optional = {source: name for name, source in event_fields.optional.items()}
    fixed = {event_fields.catch_input, *event_fields.votes} | (
        {event_fields.type_input} if event_fields.only_kind is None else set()
    )
    slots = []
    for source, places in values.items():
        if source in fixed:
            continue
        for number, (begin, end) in enumerate(places):
            absent = line[begin:end] == b"null"
            if source in member_of:
                slots.append(Slot(begin, end, NAME, member_of[source] + number))
            elif source not in optional:
                slots.append(Slot(begin, end, ANYTHING))
            elif not absent:
                kind = {"weight": WEIGHT, "time": TIME}.get(optional[source], NAME)
                slots.append(Slot(begin, end, kind, _KEPT.get(optional[source], NOWHERE)))
        if source not in member_of and len(places) != 1:
            return None
    return slots if len(slots) <= MOST_SLOTS else None


def _values(line: bytes) -> dict[str, list[tuple[int, int]]] | None:
    """Field -> where its value stands, or each value of its list; None where a value is another one, or a field stands
    twice."""
    values: dict[str, list[tuple[int, int]]] = {}
    at, go_on = 1, b","
    while go_on == b",":
        key = _KEY.match(line, at)
        if key is None:
            return None
        name, at, places = key[2][1:-1].decode(), key.end(), []
        listed = line[at : at + 1] == b"["
        if listed:
            at = at + 1 + len(line[at + 1 :]) - len(line[at + 1 :].lstrip(b" \t"))
        more = True
        while more:
            value = _VALUE.match(line, at)
            follows = value and _NEXT.match(line, value.end())
            if not value or not follows:
                return None
            places.append(value.span())
            at, go_on = follows.end(), follows[1]
            more = listed and go_on == b","
        if listed:
            follows = _NEXT.match(line, at)
            if go_on != b"]" or not follows:
                return None
            at, go_on = follows.end(), follows[1]
        if name in values:
            return None
        values[name] = places
    return values if go_on == b"}" and at == len(line) else None


class Program(NamedTuple):
    """Templates as arrays, for the compiled loop of `json_matching`; template t has slots `first[t] : first[t + 1]`
    and one literal more, the literal before slot s being number s + t."""

    first: np.ndarray  # (t + 1,) int64
    members: np.ndarray  # (t,) int64
    kind_of_slot: np.ndarray  # (s,) int8
    member_of_slot: np.ndarray  # (s,) int64
    letters: np.ndarray  # (bytes,) uint8: all literals
    bounds: np.ndarray  # (s + t + 1,) int64: where each begins


def tells_origins(program: Program) -> bool:
    """Whether a template has a slot for a worker, a sampler, a weight or a time."""
    names = np.isin(program.member_of_slot, (WORKER, SAMPLER))
    return bool((names | np.isin(program.kind_of_slot, (WEIGHT, TIME))).any())


def program_of(templates: list[Template]) -> Program:
    """These templates as arrays."""
    literals = [literal for template in templates for literal in template.literals]
    slots = [slot for template in templates for slot in template.slots]
    return Program(
        np.cumsum([0, *(len(template.slots) for template in templates)]),
        np.array([template.members for template in templates], np.int64),
        np.array([slot.kind for slot in slots], np.int8),
        np.array([slot.member for slot in slots], np.int64),
        np.frombuffer(b"".join(literals), np.uint8),
        np.cumsum([0, *map(len, literals)]),
    )
