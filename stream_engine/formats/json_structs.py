"""The msgspec structs by which plain JSON events are decoded, and from structs to columns of events.

A struct takes exactly what `validate` takes, or less: plain names, whole lists, good weights and times, no field that
is not known. Fields that turned up although nobody asked for them are added to all structs, unread, so that they stop
the fast path only once; after MAX_UNKNOWN of them structs take any field, and no more are named.
"""

from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, MAX_LIST
from stream_engine.formats.event_columns import MAX_UNKNOWN, Block, FieldNames
from stream_engine.formats.event_fields import LABEL, TRIPLET, EventFields
from stream_engine.formats.validate import AwareTime

Name = str | int
Names = Annotated[list[Name], msgspec.Meta(max_length=MAX_LIST)]
_FIXED = {2: tuple[Name, Name], 3: tuple[Name, Name, Name]}
_OPTIONAL: dict[str, Any] = {
    "id": Name | None,
    "worker": Name | None,
    "time": AwareTime | float | None,
    "weight": Annotated[float, msgspec.Meta(ge=0)] | None,
}


class Structs:
    """Decoders of plain events. `shapes` holds (one event a line, array of events), the most promising first; `kind_of`
    tells an event's type by its class, `alone` does for those whose neighbours are of the same class; `unknown` names the ignored fields met so far, in their order."""

    def __init__(self, event_fields: EventFields):
        self.event_fields = event_fields
        self.unknown: dict[str, None] = {}
        self.kind_of: dict[type, int] = {}
        self.alone: dict[type, int] = {}
        self.shapes: list[tuple[msgspec.json.Decoder, msgspec.json.Decoder]] = []
        self._learned: dict[str, None] = {source: None for source, _ in event_fields.where}
        self._build()

    def promote(self, position: int) -> None:
        """Try this shape first from now on; a matter of speed alone."""
        if position:
            self.shapes.insert(0, self.shapes.pop(position))

    def learn(self, fields) -> None:
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
        self.shapes = [(msgspec.json.Decoder(shape), msgspec.json.Decoder(list[shape])) for shape in shapes if shape]

    def _struct(self, kind: int, type_field: str) -> Any:
        """A struct that accepts plain events of one kind; None where one input field would need two types."""
        event_fields, types = self.event_fields, {}
        for field in event_fields.by_kind[kind]:
            shape: Any = Name | None if field.shape.nullable else Name
            if field.stands_in_a_list:
                shape = _FIXED[field.shape.size] if field.shape.size else Names
            for source in field.inputs:
                if types.setdefault(source, shape) != shape:
                    return None
        required = len(types)
        optional = {source: _OPTIONAL[name] for name, source in event_fields.optional.items()}
        taken = [*types, *optional, event_fields.type_input]
        taken += [event_fields.catch_input] * (event_fields.catch_input is not None)
        if len(set(taken)) < required + len(event_fields.optional) + 1 + (
            event_fields.catch_input is not None
        ) or not all(map(_can_be_field, taken)):
            return None
        types |= optional
        if event_fields.catch_input is not None:
            types[event_fields.catch_input] = None  # a catch trial is no plain event
        if type_field != "tag":
            types[event_fields.type_input] = Literal["triplet"] | None if type_field == "default" else msgspec.Raw
        types |= {name: msgspec.Raw for name in self._learned if name not in taken and _can_be_field(name)}
        fields = [
            (f"c{i}", shape, *(() if i < required else (msgspec.Raw(),) if shape is msgspec.Raw else (None,)))
            for i, shape in enumerate(types.values())
        ]
        tag = {"tag_field": event_fields.type_input, "tag": EVENT_TYPES[kind]} if type_field == "tag" else {}
        struct = msgspec.defstruct(
            EVENT_TYPES[kind].title(),
            fields,
            rename={f"c{i}": source for i, source in enumerate(types)},
            forbid_unknown_fields=len(self.unknown) < MAX_UNKNOWN,
            gc=False,
            eq=False,
            **tag,
        )
        self.kind_of[struct] = kind
        return struct


# the first columns of structs; an attribute that is spelled out is read in half the time
_TAKE = (
    lambda events: [e.c0 for e in events],
    lambda events: [e.c1 for e in events],
    lambda events: [e.c2 for e in events],
)


def add_structs(block: Block, event_fields: EventFields, kind: int, rows: np.ndarray, events: list) -> None:
    """Structs of one kind as a piece of the block, column by column; c0, c1, ... are its fields in `Structs`."""
    sources = dict.fromkeys(chain.from_iterable(field.inputs for field in event_fields.by_kind[kind]))
    get = {source: attrgetter(f"c{i}") for i, source in enumerate([*sources, *event_fields.optional.values()])}
    judged: tuple = ()
    if block.judges:
        who, weight, time = (
            list(map(get[event_fields.optional[name]], events)) for name in ("worker", "weight", "time")
        )
        judged = (
            block.who(who),
            np.array([1.0 if w is None else w for w in weight], np.float64),
            np.array([np.nan if t is None else t if isinstance(t, float) else t.timestamp() for t in time], np.float64),
        )
    n, fields = len(events), event_fields.by_kind[kind]
    if kind != LABEL and not any(field.stands_in_a_list for field in fields):
        names = [_TAKE[i](events) if i < len(_TAKE) else map(get[source], events) for i, source in enumerate(sources)]
        ids = {source: block.names.ids(column, n) for source, column in zip(sources, names, strict=True)}
        columns = [ids[source] for field in fields for source in field.inputs]
        return block.add_columns(kind, rows, columns, len(fields[-1].inputs), *judged)
    one, found = np.ones(n, np.int64), []
    for field in fields:
        columns = [map(get[source], events) for source in field.inputs]
        if field.shape.nullable:
            said = [label for label in columns[0] if label is not None]
            lengths = (
                one
                if len(said) == n
                else np.fromiter((get[field.inputs[0]](e) is not None for e in events), np.int64, n)
            )
            found.append(FieldNames(lengths, block.names.ids(said, len(said))))
        elif field.shape.is_list and len(columns) == 1:
            lists = list(columns[0])
            lengths = np.fromiter(map(len, lists), np.int64, n)
            found.append(FieldNames(lengths, block.names.ids(chain.from_iterable(lists), int(lengths.sum()))))
        else:
            columns = [block.names.ids(column, n) for column in columns]
            found.append(
                FieldNames(
                    one * len(columns), columns[0] if len(columns) == 1 else np.stack(columns, axis=1).reshape(-1)
                )
            )
    block.add(kind, rows, found, *judged)


def where_decoder(event_fields: EventFields) -> msgspec.json.Decoder:
    """Reads the fields of `--where` alone, as they are written; an absent one is empty."""
    fields = [(f"c{i}", msgspec.Raw, msgspec.Raw()) for i in range(len(event_fields.where))]
    if not all(_can_be_field(source) for source, _ in event_fields.where):
        return msgspec.json.Decoder(
            msgspec.defstruct("Never", ["c0"], forbid_unknown_fields=True)
        )  # all go the long way
    return msgspec.json.Decoder(
        msgspec.defstruct(
            "Where", fields, rename={f"c{i}": source for i, (source, _) in enumerate(event_fields.where)}, eq=False
        )
    )


def _can_be_field(name: str) -> bool:
    """Whether msgspec takes this as the name of a struct's field: no quote, no backslash, no control character."""
    return not any(c in '"\\' or c < " " for c in name)
