"""The event types, and the input fields that their fields are read from.

`SHAPES` is the contract's table of fields: which are lists, of which length, which may be null. `fields_of` combines it
with the options `--type`, `--columns` and `--where`.
"""

import operator
import re
import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from stream_engine.data import registered
from stream_engine.data.comparisons import DERIVED_TYPES, EVENT_TYPES, READABLE_TYPES
from stream_engine.formats.cells import LIST_SEPARATOR
from stream_engine.formats.event_types import DerivedType, Shape
from stream_engine.formats.options import ANSWER_IS, FIRST_OF, MAX_TIME_AHEAD, EventOptions, UnusableOptions

TRIPLET, QUADRUPLET, ODD_ONE_OUT, MOST_CENTRAL, PICK, RANKING, LABEL = range(len(EVENT_TYPES))
KIND = {name: kind for kind, name in enumerate(READABLE_TYPES)}
VOTES = ("n_near", "n_far")  # fields that triplets and quadruplets may have
VOTED = (TRIPLET, QUADRUPLET)
MORE = (
    "rank",
    "share",
    "votes",
)  # fields of some types: ranks of the objects; the share of answers for near, of how many
SIDES = ("near", "far")  # what the answer of a triplet or quadruplet chooses from
PACE = {"seconds": 1.0, "milliseconds": 1e-3}  # response times, in seconds
OPTIONAL = ("id", "worker", "sampler", "weight", "time", *PACE)  # fields that any event may have
SCREEN = "screen"  # the column of screens whose rows depend on each other: no field of an event (`formats.screens`)
NO_COLUMN = "-"  # as the column of an optional field: it is not read, not even from a column with its own name
COMPARED = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


def derived_type(name: str) -> DerivedType:
    """The type registered under a name in `DERIVED_TYPES`."""
    return registered(DERIVED_TYPES[name])


SHAPES: dict[str, tuple[Shape, ...]] = {
    "triplet": (Shape("anchor"), Shape("near"), Shape("far")),
    "quadruplet": (Shape("near", True, 2), Shape("far", True, 2)),
    "odd_one_out": (Shape("objects", True, 3), Shape("odd", answer=True)),
    "most_central": (Shape("objects", True, 3), Shape("central", answer=True)),
    "pick": (Shape("anchor"), Shape("shown", True, None), Shape("chosen", True, None, answer=True)),
    "ranking": (Shape("anchor"), Shape("ranked", True, None)),
    "label": (Shape("object"), Shape("label", nullable=True)),
    **{name: derived_type(name).shapes for name in DERIVED_TYPES},
}
_ALL_SHAPES = [shape for shapes in SHAPES.values() for shape in shapes]

# How text tables (CSV) write values other than a single name.
PAIR_COLUMNS = {shape.name: (f"{shape.name}_i", f"{shape.name}_j") for shape in _ALL_SHAPES if shape.size == 2}
NULLABLE_FIELDS = tuple(shape.name for shape in _ALL_SHAPES if shape.nullable)


class EventField(NamedTuple):
    """One field of one event type and its input fields; several `inputs` are names that are gathered into its list."""

    shape: Shape
    inputs: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.shape.name

    @property
    def stands_in_a_list(self) -> bool:
        """Whether its names are one list in one input field."""
        return self.shape.is_list and len(self.inputs) == 1


class Filter(NamedTuple):
    """Which events are read: those whose `source` is one of the `wanted` texts (or none of them), or a number that
    compares so."""

    source: str
    comparison: str  # "", "!=", "<=", ">=", "<" or ">"
    wanted: tuple[str, ...]

    def keeps(self, equal: Callable[[str], Any], absent: Any, numbers: Callable[[], Any]) -> Any:
        """Whether values are kept, as an array or for a single one. An absent value is no text; `!=` without text
        leaves it out.

        >>> import numpy as np
        >>> texts, numbers = np.array(["a", "b", ""]), np.array([1.0, 5.0, np.nan])
        >>> keeps = lambda *filter: Filter(*filter).keeps(lambda text: texts == text, texts == "", lambda: numbers)
        >>> [keeps("x", "!=", ("a", "")).tolist(), keeps("x", ">", ("2",)).tolist()]
        [[False, True, False], [False, True, False]]
        """
        if self.comparison in COMPARED:
            return COMPARED[self.comparison](numbers(), float(self.wanted[0]))
        matches = absent & ("" in self.wanted and self.comparison == "!=")
        for text in self.wanted:
            matches = matches | equal(text)
            if text.isdecimal():  # as pandas writes whole numbers beside missing ones
                matches = matches | equal(f"{text}.0")
        return matches ^ (self.comparison == "!=")


def where_of(text: str) -> tuple[str, str]:
    """A filter as it is written, as a key of `where` and its value. Raises `UnusableOptions`.

    >>> where_of("phase=test"), where_of("rt >= 300"), where_of("answer!=")
    (('phase', 'test'), ('rt>=', '300'), ('answer!=', ''))
    >>> where_of("choice (1=right)!=2"), where_of("smile=(="), where_of("note=(a!=b)")
    (('choice (1=right)!=', '2'), ('smile', '(='), ('note', '(a!=b)'))
    """
    parts = re.fullmatch(r"\s*((?:\([^()]*\)|\[[^][]*\]|.)+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", text, re.DOTALL)
    if parts is None or not (parts[3] or parts[2] == "!="):
        raise UnusableOptions(f"--where: got {text!r}, expected FIELD=VALUE, or != < <= > >= between them")
    return parts[1] + ("" if parts[2] == "=" else parts[2]), parts[3]


def filter_of(key: str, wanted: str) -> Filter:
    """The filter that a key of `--where` and its value say. Raises `UnusableOptions` for a bound that is no number.

    >>> filter_of("phase!=", "practice|demo")
    Filter(source='phase', comparison='!=', wanted=('practice', 'demo'))
    """
    source = key.rstrip("!=<> ")
    comparison = key[len(source) :].strip().removeprefix("==")
    if comparison not in ("", "!=", *COMPARED):
        raise UnusableOptions(f"--where {key}={wanted}: {comparison!r} is no comparison; known: = != < <= > >=")
    if comparison in COMPARED:
        try:
            float(wanted)
        except ValueError:
            raise UnusableOptions(f"--where {key}{wanted}: {wanted!r} is no number") from None
        return Filter(source, comparison, (wanted,))
    return Filter(source, comparison, tuple(wanted.split(LIST_SEPARATOR)))


class EventFields(NamedTuple):
    """The input fields that an event is read from."""

    only_kind: int | None  # the type of every event, if `--type` is given
    type_input: str
    by_kind: tuple[tuple[EventField, ...], ...]  # in the order of the contract
    optional: dict[str, str]  # each of `OPTIONAL` -> input field
    where: tuple[Filter, ...]
    inputs: frozenset[str]  # input fields that mean something; all others are ignored and named
    catch_input: str | None = None  # input field that marks catch trials, when `--columns` names one
    votes: tuple[str, str] = VOTES  # input fields of how often a question was answered each way
    first_of: int | None = None  # the number of the first object where answers are positions; None: they are names
    codes: Mapping[str, Mapping[str, str]] = {}  # of answers: what stands there -> position, or name of an input field
    farther: bool = False  # answers name the farther object
    flags: bool = False  # answers say yes or no of each object
    separator: str | None = None  # of the items of lists in cells
    side: str | None = None  # input field that says which side of a triplet or quadruplet is the nearer one
    ranks: tuple[str, ...] = ()  # input fields of the ranks of the objects
    share: tuple[str, str] | None = None  # input fields of the share of answers for near, and of their number
    max_time_ahead: float = MAX_TIME_AHEAD  # seconds that a time may be ahead of the clock

    @property
    def more(self) -> tuple[str, ...]:
        """Input fields that are read because of the options alone."""
        return (*([self.side] if self.side else ()), *self.ranks, *(self.share or ()))

    @property
    def by_definition(self) -> bool:
        """Whether every event is read by the definition alone: columns of names do not say what it means."""
        is_derived = self.only_kind is not None and self.only_kind >= len(EVENT_TYPES)
        return is_derived or self.farther or self.flags or self.separator is not None or bool(self.more)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The event types that can occur."""
        return tuple(range(len(READABLE_TYPES))) if self.only_kind is None else (self.only_kind,)

    def latest_time(self) -> float:
        """Epoch seconds of the latest time that an event may have now."""
        return time.time() + self.max_time_ahead


def fields_of(options: EventOptions, pairs: bool = False) -> EventFields:
    """The event fields for these `options`; with `pairs`, quadruplets are in near_i, near_j, far_i, far_j.

    Raises `UnusableOptions` for an unknown type or an unknown contract field.

    >>> options = EventOptions("most_central", {"objects": ("left", "middle", "right")})
    >>> fields_of(options).by_kind[MOST_CENTRAL][0].inputs
    ('left', 'middle', 'right')
    """
    if options.type is not None and options.type not in KIND:
        raise UnusableOptions(f"unknown event type {options.type!r}; known: {', '.join(READABLE_TYPES)}")
    columns = _checked_columns(options)
    only_kind = None if options.type is None else KIND[options.type]
    flags = options.answers_by == "flag"
    by_kind = tuple(
        tuple(_event_field(kind, shape, columns, pairs, flags) for shape in SHAPES[kind]) for kind in READABLE_TYPES
    )
    optional = {name: _single_input(name, columns) for name in OPTIONAL}
    type_input = _single_input("type", columns)
    by_column = "catch" in columns and not options.catch_by_anchor
    catch_input = _single_input("catch", columns) if by_column else None
    near, far = (_single_input(name, columns) for name in VOTES)
    if options.answer_is not in ANSWER_IS:
        raise UnusableOptions(f"unknown value {options.answer_is!r} of answer_is; known: {', '.join(ANSWER_IS)}")
    farther = options.answer_is == "farther"
    if farther and options.type in ("odd_one_out", "most_central", "label", *DERIVED_TYPES):
        raise UnusableOptions(f"answer_is: got farther with type {options.type}, whose answers have one meaning")
    if options.answers_by not in FIRST_OF:
        raise UnusableOptions(f"unknown value {options.answers_by!r} of answers_by; known: {', '.join(FIRST_OF)}")
    where = tuple(filter_of(key, wanted) for key, wanted in options.where.items())
    meaningful = {type_input, near, far, *optional.values(), *(filter.source for filter in where)}
    for fields in by_kind if only_kind is None else [by_kind[only_kind]]:
        meaningful.update(source for field in fields for source in field.inputs)
    if catch_input is not None:
        meaningful.add(catch_input)
    if SCREEN in columns:
        meaningful.add(_single_input(SCREEN, columns))
    side = (
        _single_input("chosen", columns) if options.type in ("triplet", "quadruplet") and "chosen" in columns else None
    )
    ranks = columns["rank"] if options.type == "ranking" and "rank" in columns else ()
    share = tuple(_single_input(name, columns) for name in ("share", "votes")) if "share" in columns else None
    meaningful |= {*ranks, *(share or ()), *([side] if side else ())}
    return EventFields(
        only_kind,
        type_input,
        by_kind,
        optional,
        where,
        frozenset(meaningful),
        catch_input,
        (near, far),
        1 if options.codes and FIRST_OF[options.answers_by] is None else FIRST_OF[options.answers_by],
        _checked_codes(options),
        farther,
        options.answers_by == "flag",
        options.separator,
        side,
        ranks,
        share,  # type: ignore[arg-type]  # of two names
        options.max_time_ahead,
    )


def place_of(answer: str, inputs: tuple[str, ...], first: int) -> int:
    """Which of the objects an answer means: by its number, of which the first is `first`, or by the name of its input
    field or one word of it, where the objects stand in several. -1: by neither, or beyond any list.

    >>> [place_of(answer, ("Left", "Right"), 1) for answer in ("2", "right", "middle", "0")]
    [1, 1, -1, -1]
    >>> [place_of(answer, ("image_left", "image_right"), 0) for answer in ("Right", "image", "image_left")]
    [1, -1, 0]
    """
    if answer.isascii() and answer.isdecimal():
        return int(answer) - first if len(answer) < 7 else -1
    answer, called = answer.casefold(), [name.casefold() for name in inputs] if len(inputs) > 1 else []
    if answer in called:
        return called.index(answer)
    worded = [place for place, name in enumerate(called) if answer in re.split(r"[\W_]+", name)]
    return worded[0] if len(worded) == 1 else -1


def _checked_codes(options: EventOptions) -> Mapping[str, Mapping[str, str]]:
    answers = {shape.name for shape in _ALL_SHAPES if shape.answer}
    if odd := [name for name in options.codes if name not in answers]:
        raise UnusableOptions(f"--codes names {odd[0]!r}, expected one of {', '.join(sorted(answers))}")
    return options.codes


def member_name(kind: int, split: int, position: int) -> str:
    """The contract's name of the member at `position` of an event whose last field begins at `split`.

    >>> [member_name(PICK, 4, position) for position in (0, 2, 4)], member_name(RANKING, 1, 1), member_name(LABEL, 1, 1)
    (['anchor', 'shown[1]', 'chosen[0]'], 'ranked[0]', 'label')
    """
    *first_shapes, last = SHAPES[EVENT_TYPES[kind]]
    begin = 0
    for shape in first_shapes:
        size = shape.size or split - begin  # a list of any length reaches up to the last field
        if position < begin + size:
            return f"{shape.name}[{position - begin}]" if shape.is_list else shape.name
        begin += size
    return f"{last.name}[{position - begin}]" if last.is_list else last.name


def _checked_columns(options: EventOptions) -> Mapping[str, tuple[str, ...]]:
    """The mapping of `--columns`; raises `UnusableOptions` for unknown contract fields and missing input fields."""
    fields = {shape.name for shape in _ALL_SHAPES} | {"type", "catch", SCREEN, *VOTES, *OPTIONAL, *MORE}
    fields.update(*PAIR_COLUMNS.values())
    for name, inputs in options.columns.items():
        if name not in fields:
            near = get_close_matches(name.casefold(), fields, 1, cutoff=0.8)
            asked = f"did you mean {near[0]}? " if near else ""
            raise UnusableOptions(
                f"--columns maps {name!r}, which is not a field of an event; {asked}known: {', '.join(sorted(fields))}"
            )
        if not inputs or not all(inputs):
            raise UnusableOptions(f"--columns has no input field for {name!r}; write {name}=INPUT")
    return options.columns


def _event_field(
    kind: str, shape: Shape, columns: Mapping[str, tuple[str, ...]], pairs: bool, flags: bool = False
) -> EventField:
    """The input fields of one field of one type; near_i ... far_j become `near` and `far`, which gather two inputs
    each."""
    pair = PAIR_COLUMNS.get(shape.name, ()) if kind == "quadruplet" else ()
    if pair and (any(part in columns for part in pair) or (pairs and shape.name not in columns)):
        return EventField(shape, tuple(_single_input(part, columns) for part in pair))
    inputs = tuple(columns.get(shape.name, (shape.name,)))
    if len(inputs) > 1 and not shape.is_list and not (shape.answer and flags):
        if kind == "triplet" and shape.name in PAIR_COLUMNS:
            return EventField(shape, (shape.name,))  # near=a|b maps a quadruplet's pair, not the name of a triplet
        raise UnusableOptions(f"--columns maps {', '.join(inputs)} to {shape.name!r}, which holds one name")
    return EventField(shape, inputs)


def _single_input(name: str, columns: Mapping[str, tuple[str, ...]]) -> str:
    inputs = columns.get(name, (name,))
    if len(inputs) > 1:
        raise UnusableOptions(f"--columns maps {', '.join(inputs)} to {name!r}, which holds one value")
    return inputs[0]
