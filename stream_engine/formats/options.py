"""How events are to be read, what makes that impossible, and what the examples of a format are."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from stream_engine.data.comparisons import Label, Quadruplet, Triplet
from stream_engine.formats.bounds import DEFAULT_BOUNDS, Bounds

FIRST_OF = {"name": None, "position": 1, "index": 0}  # how answers are given -> the number of the first object


class UnusableOptions(ValueError):
    """The options cannot be used for any input: an argument error, one line."""


class UnreadableHeader(UnusableOptions):
    """No row of this table can be read: its header lacks columns that the options ask for. One line, an argument
    error: the columns that are missing, those that are there, and `--columns` to map them."""


class EventOptions(NamedTuple):
    """How events are to be read.

    `type` is the type of every event (None: each says its own, `triplet` by default). `columns` maps a contract field
    to the name(s) it has in the input; several names gather into one list. `where` keeps only events whose field has
    this text. `provenance` asks for workers, weights and times too. The contract field `catch` is looked at only when
    `columns` maps it: an event where it is true (passed) or false (failed) is a catch trial, left out of the answers.
    `bounds` says how much a message, a line or a row may hold. `delimiter` separates the fields of a CSV table that
    holds its own header (none: found in it). `answers_by` says how `odd`, `central` and `chosen` say which of
    the objects they are: by "name", by "position" (1 is the first of those shown) or by "index" (0 is); either of these
    two also by the name of the input field, where the objects stand in several: "left".
    """

    type: str | None = None
    columns: Mapping[str, tuple[str, ...]] = {}
    where: Mapping[str, str] = {}
    provenance: bool = False
    bounds: Bounds = DEFAULT_BOUNDS
    delimiter: str | None = None
    answers_by: str = "name"


class Accepts(NamedTuple):
    """An example of a format: what a value must decode to, comparisons first, then labels."""

    value: Any
    expected: list[Triplet | Quadruplet | Label]
    options: EventOptions = EventOptions()
    header: bytes = b""


class Rejects(NamedTuple):
    """An example of a format: a value of one event, the code it is refused with, words of the reason."""

    value: Any
    reason: str
    message: str
    options: EventOptions = EventOptions()
    header: bytes = b""
