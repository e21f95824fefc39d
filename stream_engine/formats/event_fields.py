"""Where the fields of each event type stand in the input: the contract's table of fields, after `--columns`."""

from typing import NamedTuple

from stream_engine.data.comparisons import EVENT_TYPES
from stream_engine.formats.options import EventOptions, UnusableOptions

TRIPLET, QUADRUPLET, ODD_ONE_OUT, MOST_CENTRAL, PICK, RANKING, LABEL = range(len(EVENT_TYPES))
KIND = {name: kind for kind, name in enumerate(EVENT_TYPES)}
PAIRS = {"near": ("near_i", "near_j"), "far": ("far_i", "far_j")}
OPTIONAL = ("id", "worker", "weight", "time")

# type -> (field, holds a list, how many names it must hold). `label` may be null, which takes the label back.
_SHAPES = {
    "triplet": (("anchor", False, 1), ("near", False, 1), ("far", False, 1)),
    "quadruplet": (("near", True, 2), ("far", True, 2)),
    "odd_one_out": (("objects", True, 3), ("odd", False, 1)),
    "most_central": (("objects", True, 3), ("central", False, 1)),
    "pick": (("anchor", False, 1), ("shown", True, None), ("chosen", True, None)),
    "ranking": (("anchor", False, 1), ("ranked", True, None)),
    "label": (("object", False, 1), ("label", False, 1)),
}


class Field(NamedTuple):
    """One field of one event type; several `inputs` are names that gather into its list."""

    name: str
    inputs: tuple[str, ...]
    many: bool  # a list of names
    size: int | None  # how many names it must hold; None: any number


class Plan(NamedTuple):
    """Which input fields an event is read from."""

    fixed: int | None  # the type of every event, when `--type` says so
    type: str
    fields: tuple[tuple[Field, ...], ...]  # by kind, in the order of the contract
    optional: dict[str, str]  # id, worker, weight, time -> input field
    where: tuple[tuple[str, str], ...]
    known: frozenset[str]  # input fields that mean something; all others are ignored and named
    catch: str | None = None  # input field that marks catch trials, when `--columns` names one

    @property
    def kinds(self) -> tuple[int, ...]:
        """The event types that can occur."""
        return tuple(range(len(EVENT_TYPES))) if self.fixed is None else (self.fixed,)


def plan_of(options: EventOptions, pairs: bool = False) -> Plan:
    """The plan that `options` ask for; with `pairs`, quadruplets stand in near_i, near_j, far_i, far_j.

    Raises `UnusableOptions` for an unknown type or an unknown contract field.

    >>> plan_of(EventOptions("most_central", {"objects": ("left", "middle", "right")})).fields[3][0].inputs
    ('left', 'middle', 'right')
    """
    if options.type is not None and options.type not in KIND:
        raise UnusableOptions(f"unknown event type {options.type!r}; known: {', '.join(EVENT_TYPES)}")
    columns = _columns(options)
    fixed = None if options.type is None else KIND[options.type]
    fields = tuple(tuple(_field(kind, *shape, columns, pairs) for shape in _SHAPES[kind]) for kind in EVENT_TYPES)
    optional = {name: _single(name, columns) for name in OPTIONAL}
    type_input = _single("type", columns)
    used = {name for kind in (fields if fixed is None else [fields[fixed]]) for f in kind for name in f.inputs}
    catch = _single("catch", columns) if "catch" in columns else None
    known = frozenset(used | set(optional.values()) | {type_input} | set(options.where) | ({catch} if catch else set()))
    return Plan(fixed, type_input, fields, optional, tuple(options.where.items()), known, catch)


def _columns(options: EventOptions) -> dict[str, tuple[str, ...]]:
    """The mapping with near_i ... far_j folded into `near` and `far`, which then gather two input fields each."""
    columns = dict(options.columns)
    known = {name for shapes in _SHAPES.values() for name, _, _ in shapes} | {"type", "catch", *OPTIONAL}
    known.update(*PAIRS.values())
    for name, inputs in columns.items():
        if name not in known:
            raise UnusableOptions(
                f"--columns maps {name!r}, which is no field of an event; known: {', '.join(sorted(known))}"
            )
        if not inputs or not all(inputs):
            raise UnusableOptions(f"--columns gives {name!r} no input field; write {name}=INPUT")
    return columns


def _field(kind: str, name: str, many: bool, size: int | None, columns, pairs: bool) -> Field:
    parts = PAIRS.get(name, ()) if kind == "quadruplet" else ()
    if parts and (any(part in columns for part in parts) or (pairs and name not in columns)):
        return Field(name, tuple(_single(part, columns) for part in parts), many, size)
    inputs = tuple(columns.get(name, (name,)))
    if len(inputs) > 1 and not many and kind == "triplet" and name in PAIRS:
        return Field(name, (name,), many, size)  # near=a|b maps the pair of a quadruplet, not the name of a triplet
    if len(inputs) > 1 and not many:
        raise UnusableOptions(f"--columns gathers {', '.join(inputs)} into {name!r}, which holds one name")
    return Field(name, inputs, many, size)


def _single(name: str, columns) -> str:
    inputs = columns.get(name, (name,))
    if len(inputs) > 1:
        raise UnusableOptions(f"--columns gathers {', '.join(inputs)} into {name!r}, which holds one value")
    return inputs[0]
