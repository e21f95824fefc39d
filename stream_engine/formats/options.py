"""Options for reading events, and errors in them.

Whether something exceeds a limit of `Bounds` depends only on the input and the settings, never on the machine. Running
out of memory therefore ends the run and rejects no event.
"""

import errno
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

Columns = TypeVar("Columns")
NOT_UTF8 = "not UTF-8; specify its --encoding"  # of a row, in messages; of which encoding: `encoding_in_words`
_OUT_OF_MEMORY = ("malloc of size", "realloc of size", "out of memory", "cannot allocate memory", "bad_alloc")
FIRST_OF = {
    "name": None,
    "position": 1,
    "index": 0,
    "flag": None,
}  # how answers are given -> number of the first object
ANSWER_IS = ("nearer", "farther")  # which object an answer names
PARTICIPANT_FROM = ("file",)
PARTICIPANT = "participant"  # as options call the field `worker`
MAX_TIME_AHEAD = 86_400.0  # a day: clocks differ, and so do time zones that were forgotten


class Bounds(NamedTuple):
    """Size limits. `max_bytes` of a message, line or row, decompressed and with its dictionaries written out, at
    least 8 bytes for every entry of a column; `max_rows`: events, lines or rows of a message, or elements of an
    array on a line."""

    max_bytes: int = 64 << 20
    max_rows: int = 1_000_000


DEFAULT_BOUNDS = Bounds()


class OverBound(Exception):
    """A message, line or row exceeds a size limit; one line with the figures."""


def too_many_bytes(what: str, size: int, bounds: Bounds) -> str:
    """The message for something that exceeds the limit in bytes.

    >>> too_many_bytes("the message", 3_000, Bounds(max_bytes=1_000))
    'the message holds 3,000 bytes; the limit is 1,000 (input.max_message_bytes)'
    """
    return f"{what} holds {size:,} bytes; the limit is {bounds.max_bytes:,} (input.max_message_bytes)"


def too_many_rows(what: str, rows: int, unit: str, bounds: Bounds) -> str:
    """The message for something that exceeds the limit in rows, which are called `unit`."""
    return f"{what} holds {rows:,} {unit}; the limit is {bounds.max_rows:,}"


def raise_if_out_of_memory(error: BaseException) -> None:
    """Raise `MemoryError` if that is what a library's error means; some of Arrow's errors say so only in their text.

    >>> raise_if_out_of_memory(ValueError("malloc of size 8000000000 failed"))
    Traceback (most recent call last):
    MemoryError: malloc of size 8000000000 failed
    """
    text = str(error)
    out = (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in text.lower() for words in _OUT_OF_MEMORY)
    )
    if out:
        raise MemoryError(text.partition("\n")[0]) from error


def by_field(columns: Mapping[str, Columns]) -> dict[str, Columns]:
    """The columns of `--columns` by the field of an event that they hold.

    >>> by_field({"anchor": "probe", "participant": "subject"})
    {'anchor': 'probe', 'worker': 'subject'}
    """
    return {"worker" if name == PARTICIPANT else name: value for name, value in columns.items()}


def in_words(columns: Mapping[str, Columns]) -> dict[str, Columns]:
    """The columns of `--columns` as they are printed.

    >>> in_words({"worker": "subject"})
    {'participant': 'subject'}
    """
    return {PARTICIPANT if name == "worker" else name: value for name, value in columns.items()}


class UnusableOptions(ValueError):
    """The options are invalid for any input: an argument error, one line."""


class UnreadableHeader(UnusableOptions):
    """No row of this table can be read, because its header lacks columns that the options require. One line, an
    argument error: the missing columns, the existing ones, and `--columns` to map them."""


class EventOptions(NamedTuple):
    """How events are to be read.

    `type` is the type of every event (None: each says its own, `triplet` by default). `columns` maps a contract field
    to the name(s) it has in the input; several names gather into one list. `where` keeps only events whose field has
    this text, or one of several ("a|b"); a key may end in a comparison: {"phase!=": "practice", "rt>": "300"}.
    `codes` maps what stands in an answer to a position or to the name of an input field: {"chosen": {"f": "left"}}.
    Names of columns with placeholders, `Q{n}_left`, read a table with several questions a row (`wide_columns`).
    `provenance` asks for workers, weights and times too. The contract field `catch` is looked at only when `columns`
    maps it: an event where it is true (passed) or false (failed) is a catch trial, excluded from the answers.
    Where `catch` is given the field of `anchor`, a triplet or pick is a catch trial if its anchor is among its options
    too, and passed if that was chosen.
    `bounds` says how much a message, a line or a row may hold. `delimiter` separates the fields of a CSV table that
    holds its own header (none: found in it). `answers_by` says how `odd`, `central` and `chosen` say which of
    the objects they are: by "name", by "position" (1 is the first of those shown) or by "index" (0 is); either of these
    two also by the name of the input field, where the objects stand in several: "left"; or by "flag": yes or no (1 or
    0) for each object, in as many columns or items. `answer_is`: whether answers name the nearer or the farther object.
    A triplet or quadruplet with `chosen` in `columns` says there which side, near or far, is the nearer one.
    `separator` separates the items of lists in cells (None: a bar, or as programs write lists). A name of `columns`
    with dots reaches into a cell of JSON (`cells`). `participant_from` "file": who answered is the name of the file;
    `drop_duplicates`: a response that was sent twice counts once (`repeats`). These two are for whoever reads whole
    inputs: a decoder does not look at them. `max_time_ahead`: seconds that the time of an event may be ahead of the
    clock.
    """

    type: str | None = None
    columns: Mapping[str, tuple[str, ...]] = {}
    where: Mapping[str, str] = {}
    provenance: bool = False
    bounds: Bounds = DEFAULT_BOUNDS
    delimiter: str | None = None
    answers_by: str = "name"
    codes: Mapping[str, Mapping[str, str]] = {}
    answer_is: str = "nearer"
    separator: str | None = None
    participant_from: str | None = None
    drop_duplicates: bool = False
    max_time_ahead: float = MAX_TIME_AHEAD

    @property
    def catch_by_anchor(self) -> bool:
        """Whether an event is a catch trial if its anchor is among its options too."""
        return self.columns.get("catch") == self.columns.get("anchor", ("anchor",))
