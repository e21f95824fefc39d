"""The msgspec structs by which plain JSON events are decoded, and from structs to columns of events.

A struct takes exactly what `validate` takes, or less: plain names, whole lists, good weights and times, no field that
is not known. Fields that turned up although nobody asked for them are added to all structs, unread, so that they stop
the fast path only once; after MAX_UNKNOWN of them structs take any field, and no more are named.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, MAX_LIST
from stream_engine.formats.event_block import MAX_UNKNOWN, Block
from stream_engine.formats.event_columns import FieldNames, Origins
from stream_engine.formats.event_fields import TRIPLET, VOTED, EventField, EventFields
from stream_engine.formats.field_values import AwareTime
from stream_engine.formats.json_lines import ERRORS, is_utf8
from stream_engine.formats.json_where import can_be_field

Name = str | int
Names = Annotated[list[Name], msgspec.Meta(max_length=MAX_LIST)]
FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAMES_OF_SIZE: dict[int | None, Any] = {None: Names, 2: tuple[Name, Name], 3: tuple[Name, Name, Name]}
_OPTIONAL: dict[str, Any] = {
    "id": Name | None,
    "worker": Name | None,
    "sampler": Name | None,
    "time": AwareTime | float | None,
    "weight": Annotated[float, msgspec.Meta(ge=0)] | None,
}


class Decoders(NamedTuple):
    """How events of one shape are decoded: one event a line, or an array of events."""

    lines: msgspec.json.Decoder
    array: msgspec.json.Decoder


class Structs:
    """Decoders of plain events.

    `shapes` holds them, the most promising first; `kind_of` tells an event's type by its class; `alone` does so for
    classes whose neighbours are of the same class; `unknown` names the ignored fields met so far, in their order.
    Without `fast` there are none, and nothing is a plain event.
    """

    def __init__(self, event_fields: EventFields, fast: bool = True):
        self.event_fields, self._fast = event_fields, fast
        self.unknown: dict[str, None] = {}
        self.kind_of: dict[type, int] = {}
        self.alone: dict[type, int] = {}
        self.shapes: list[Decoders] = []
        self._learned: dict[str, None] = {source: None for source, _ in event_fields.where}
        self._build()

    def decode_lines(self, text: bytes, lines: int) -> list[msgspec.Struct] | None:
        """Structs of `lines` events, one a line; None where any of them is not plain."""
        if not is_utf8(text):
            return None
        for position, shape in enumerate(self.shapes):
            try:
                structs = shape.lines.decode_lines(text)
            except ERRORS:
                continue
            if len(structs) == lines:
                self._promote(position)
                return structs
        return None

    def decode_new(self, line: bytes) -> list[msgspec.Struct] | None:
        """The struct of one line after its fields have been learned; None where it is not plain even so."""
        try:
            self.learn(FIELDS.decode(line))
        except ERRORS:
            return None
        return self.decode_lines(line, 1)

    def decode_array(self, value: bytes) -> list[msgspec.Struct] | None:
        """Structs of all events of one array that holds nothing but plain ones; None where it is not such a one."""
        if value[:1] != b"[" or not is_utf8(value):
            return None
        for position, shape in enumerate(self.shapes):
            try:
                structs = shape.array.decode(value)
            except ERRORS:
                continue
            self._promote(position)
            return structs
        return None

    def _promote(self, position: int) -> None:
        """Try this shape first from now on; a matter of speed alone."""
        if position:
            self.shapes.insert(0, self.shapes.pop(position))

    def learn(self, fields: Iterable[str]) -> None:
        """Remember the fields of an event that no fast path took: those that nobody asked for are named, and none of
        them stops the fast path again."""
        if len(self.unknown) >= MAX_UNKNOWN:
            return
        new = [name for name in fields if name not in self._learned]
        for name in new:
            self._learned[name] = None
            if name not in self.event_fields.known and len(self.unknown) < MAX_UNKNOWN:
                self.unknown[name if len(name) <= 200 else name[:200] + "..."] = None
        if new:
            self._build()

    def _build(self) -> None:
        """Structs of all event types with the fields learned so far, most promising first."""
        if not self._fast:
            return
        shapes: list[Any] = []
        if self.event_fields.only_kind is not None:
            shapes.append(self._struct(self.event_fields.only_kind, "ignored"))
        else:
            shapes.append(self._struct(TRIPLET, "default"))
            tagged = [struct for kind in range(len(EVENT_TYPES)) if (struct := self._struct(kind, "tag"))]
            if tagged:
                union = tagged[0]
                for struct in tagged[1:]:
                    union = union | struct
                shapes.append(union)
        self.alone |= {shape: self.kind_of[shape] for shape in shapes if shape in self.kind_of}
        self.shapes = [
            Decoders(msgspec.json.Decoder(shape), msgspec.json.Decoder(GenericAlias(list, (shape,))))
            for shape in shapes
            if shape
        ]

    def _struct(self, kind: int, type_field: str) -> Any:
        """A struct that accepts plain events of one kind; None where one input field would need two types.

        `type_field` says how the type stands in the event: as a "tag", as one that may be left out ("default"), or as
        anything ("ignored").
        """
        event_fields = self.event_fields
        types = _name_types(event_fields.by_kind[kind])
        if types is None:
            return None
        required = len(types)
        others = [*event_fields.optional.values(), event_fields.type_input]
        if event_fields.first_of is not None and any(field.shape.answer for field in event_fields.by_kind[kind]):
            return None  # positions are for the definition
        if event_fields.catch_input is not None:
            others.append(event_fields.catch_input)
        votes = [source for source in event_fields.votes if kind in VOTED]
        others += votes
        if len({*types, *others}) < required + len(others) or not all(map(can_be_field, [*types, *others])):
            return None
        types |= {source: _OPTIONAL[name] for name, source in event_fields.optional.items()}
        if event_fields.catch_input is not None:
            types[event_fields.catch_input] = None  # a catch trial is no plain event
        types |= dict.fromkeys(votes)  # neither is a question that says how often it was answered
        if type_field != "tag":
            types[event_fields.type_input] = Literal["triplet"] | None if type_field == "default" else msgspec.Raw
        unread = (name for name in self._learned if name not in types and can_be_field(name))
        types |= {name: msgspec.Raw for name in unread if name not in others}
        tagged = type_field == "tag"
        struct = msgspec.defstruct(
            EVENT_TYPES[kind].title(),
            [_attribute(number, type_, number < required) for number, type_ in enumerate(types.values())],
            rename={f"c{number}": source for number, source in enumerate(types)},
            forbid_unknown_fields=len(self.unknown) < MAX_UNKNOWN,
            gc=False,
            eq=False,
            tag_field=event_fields.type_input if tagged else None,
            tag=EVENT_TYPES[kind] if tagged else None,
        )
        self.kind_of[struct] = kind
        return struct


def _name_types(fields: tuple[EventField, ...]) -> dict[str, Any] | None:
    """Input field -> type, for the names of one event type; None where one input field would need two types."""
    types: dict[str, Any] = {}
    for field in fields:
        expected: Any = Name | None if field.shape.nullable else Name
        if field.stands_in_a_list:
            expected = _NAMES_OF_SIZE[field.shape.size]
        for source in field.inputs:
            if types.setdefault(source, expected) != expected:
                return None
    return types


def _attribute(number: int, type_: Any, required: bool) -> tuple:
    """What `defstruct` wants to know of one attribute: its name, its type and its default."""
    if required:
        return f"c{number}", type_
    return f"c{number}", type_, msgspec.Raw() if type_ is msgspec.Raw else None


# the first columns of structs; an attribute that is spelled out is read in half the time
_TAKE = (
    lambda structs: [e.c0 for e in structs],
    lambda structs: [e.c1 for e in structs],
    lambda structs: [e.c2 for e in structs],
)


def add_structs(block: Block, structs: Structs, rows: np.ndarray, events: list[msgspec.Struct]) -> None:
    """Events that were decoded together as pieces of the block, a piece a kind."""
    alone = structs.alone.get(type(events[0])) if events else None
    if alone is not None:
        _add_structs_of(alone, block, structs.event_fields, rows, events)
    else:
        add_mixed_structs(block, structs, rows, events)


def add_mixed_structs(block: Block, structs: Structs, rows: np.ndarray, events: list[msgspec.Struct]) -> None:
    """Events that were decoded at different times as pieces of the block, a piece a class of structs."""
    for kind, of_rows, of_kind in _by_kind(structs, rows, events):
        _add_structs_of(kind, block, structs.event_fields, of_rows, of_kind)


def _by_kind(
    structs: Structs, rows: np.ndarray, events: list[msgspec.Struct]
) -> Iterator[tuple[int, np.ndarray, list[msgspec.Struct]]]:
    """(kind, rows, events) of the events of each struct."""
    classes = dict.fromkeys(map(type, events))
    if len(classes) <= 1:
        for only in classes:
            yield structs.kind_of[only], rows, events
        return
    places: dict[type, list[int]] = {cls: [] for cls in classes}
    for place, event in enumerate(events):
        places[type(event)].append(place)
    for cls, of_class in places.items():
        yield structs.kind_of[cls], rows[of_class], [events[place] for place in of_class]


def _add_structs_of(
    kind: int, block: Block, event_fields: EventFields, rows: np.ndarray, events: list[msgspec.Struct]
) -> None:
    """Structs of one kind as a piece of the block, column by column; c0, c1, ... are its fields in `Structs`."""
    fields, n = event_fields.by_kind[kind], len(events)
    sources = dict.fromkeys(chain.from_iterable(field.inputs for field in fields))
    attributes = enumerate([*sources, *event_fields.optional.values()])
    get = {source: attrgetter(f"c{number}") for number, source in attributes}
    origins = None
    if block.provenance:
        said = ("worker", "weight", "time", "sampler")
        origins = _origins(block, *(list(map(get[event_fields.optional[name]], events)) for name in said))
    if not any(field.stands_in_a_list or field.shape.nullable for field in fields):
        names = [_TAKE[i](events) if i < len(_TAKE) else map(get[source], events) for i, source in enumerate(sources)]
        ids = {source: block.names.ids(column) for source, column in zip(sources, names, strict=True)}
        columns = [ids[source] for field in fields for source in field.inputs]
        block.add_columns(kind, rows, columns, len(fields[-1].inputs), origins)
    else:
        field_names = [_field_names(block, field, [map(get[i], events) for i in field.inputs], n) for field in fields]
        block.add(kind, rows, field_names, origins)


def _field_names(block: Block, field: EventField, columns: list[Iterable], n: int) -> FieldNames:
    """The names of one field, from the columns of its input fields."""
    if field.shape.nullable:
        values = list(columns[0])
        present = [name for name in values if name is not None]
        lengths = np.fromiter((name is not None for name in values), np.int64, n)
        return FieldNames(lengths, block.names.ids(present))
    if field.stands_in_a_list:
        lists = list(columns[0])
        lengths = np.fromiter(map(len, lists), np.int64, n)
        return FieldNames(lengths, block.names.ids(chain.from_iterable(lists)))
    ids = [block.names.ids(column) for column in columns]
    flat = ids[0] if len(ids) == 1 else np.stack(ids, axis=1).reshape(-1)
    return FieldNames(np.full(n, len(ids)), flat)


def _origins(block: Block, workers: list, weights: list, times: list, samplers: list) -> Origins:
    """These as they stand in the events: None where there is none, times as `AwareTime` reads."""
    seconds = [np.nan if t is None else t if isinstance(t, float) else t.timestamp() for t in times]
    return Origins(
        block.worker_numbers(workers),
        np.array([1.0 if w is None else w for w in weights], np.float64),
        np.array(seconds, np.float64),
        block.sampler_numbers(samplers),
    )
