"""Options for reading events, and errors in them."""

from collections.abc import Mapping
from typing import NamedTuple

from stream_engine.formats.bounds import DEFAULT_BOUNDS, Bounds

FIRST_OF = {"name": None, "position": 1, "index": 0}  # how answers are given -> the number of the first object


class UnusableOptions(ValueError):
    """The options are invalid for any input: an argument error, one line."""


class UnreadableHeader(UnusableOptions):
    """No row of this table can be read, because its header lacks columns that the options require. One line, an
    argument error: the missing columns, the existing ones, and `--columns` to map them."""


class EventOptions(NamedTuple):
    """How events are to be read.

    `type` is the type of every event (None: each says its own, `triplet` by default). `columns` maps a contract field
    to the name(s) it has in the input; several names gather into one list. `where` keeps only events whose field has
    this text. `provenance` asks for workers, weights and times too. The contract field `catch` is looked at only when
    `columns` maps it: an event where it is true (passed) or false (failed) is a catch trial, left out of the answers.
    Where `catch` is given the field of `anchor`, a triplet or pick is a catch trial if its anchor is among its options
    too, and passed if that was chosen.
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

    @property
    def catch_by_anchor(self) -> bool:
        """Whether an event is a catch trial if its anchor is among its options too."""
        return self.columns.get("catch") == self.columns.get("anchor", ("anchor",))
