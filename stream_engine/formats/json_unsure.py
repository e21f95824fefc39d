"""JSON events that are told apart: read a few at a time by structs, or else one by one by the definition.

The last two of the three ways of an event. Fast (`json_events`): many lines at once. Unsure (`UnsureEvents.read`): a
few at a time, so that an event that is not plain costs only its neighbours their speed. Slow (`read_by_definition`):
one event by `validate`, which accepts it or finds the reason against it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from stream_engine.data.comparisons import InvalidEvent
from stream_engine.formats.bounds import DEFAULT_BOUNDS, Bounds
from stream_engine.formats.event_block import Block
from stream_engine.formats.field_values import MISSING
from stream_engine.formats.json_lines import Items, too_many_elements
from stream_engine.formats.json_structs import FIELDS, Structs, add_mixed_structs
from stream_engine.formats.json_where import WhereFilter
from stream_engine.formats.validate import CatchTrial, Event, read_event

_FEW = 64  # events decoded at a time
_ANY = msgspec.json.Decoder()


class LeftOut(Exception):
    """The event is not among those that `--where` keeps."""


class UnsureEvents:
    """Reads events of one value, and collects them until `hand_over` gives them to the block together."""

    def __init__(self, structs: Structs, where: WhereFilter | None, block: Block, bounds: Bounds = DEFAULT_BOUNDS):
        self._structs, self._where, self._block, self._bounds = structs, where, block, bounds
        self._plain: list[msgspec.Struct] = []
        self._plain_rows: list[int] = []
        self._events: list[Event] = []
        self._event_rows: list[int] = []

    def read(self, items: Items, rows: Sequence[int]) -> None:
        """Read these events; `rows` says which of the value's events each is."""
        numbers: Sequence[int] = range(len(items.texts))
        if self._where is not None:
            numbers = self._where.possible(items.texts)
            self._block.filtered += len(items.texts) - len(numbers)
        for begin in range(0, len(numbers), _FEW):
            few = numbers[begin : begin + _FEW]
            if not self._read_few(items, few, rows):
                for number in few:
                    self._read_one(items.texts[number], items.plain[number], rows[number])

    def hand_over(self) -> None:
        """Give what was read to the block."""
        self._block.add_events(self._event_rows, self._events)
        add_mixed_structs(self._block, self._structs, np.array(self._plain_rows, np.int64), self._plain)

    def _read_few(self, items: Items, few: Sequence[int], rows: Sequence[int]) -> bool:
        """Read these events at once if all of them are plain; otherwise none is read."""
        if not all(map(items.plain.__getitem__, few)):
            return False
        structs = self._structs.decode_lines(b"\n".join([items.texts[number] for number in few]), len(few))
        if structs is None:
            return False
        self._plain += structs
        self._plain_rows += [rows[number] for number in few]
        return True

    def _read_one(self, text: bytes, plain: bool, row: int) -> None:
        """Read one event: by a struct if that takes it, else by the definition."""
        structs = self._structs.decode_lines(text, 1) if plain else None
        if structs is not None:
            self._plain += structs
            self._plain_rows.append(row)
            return
        try:
            event = read_by_definition(text, self._structs, self._where, self._bounds)
        except InvalidEvent as fault:
            self._block.refused.append((row, fault.with_traceback(None)))
        except LeftOut:
            self._block.filtered += 1
        except CatchTrial as trial:
            self._block.add_catch_trial(row, trial)
        else:
            self._events.append(event)
            self._event_rows.append(row)


def read_by_definition(
    text: bytes, structs: Structs, where: WhereFilter | None, bounds: Bounds = DEFAULT_BOUNDS
) -> Event:
    """One event; `structs` learn its fields. Raises `InvalidEvent` with the reason, `LeftOut`, `CatchTrial`."""
    if over := too_many_elements(text, bounds):
        raise InvalidEvent("too_large", over)
    fields = _fields(text)
    if where is not None and not where.keeps(fields):
        raise LeftOut
    structs.learn(fields)
    return read_event(lambda source: _value(fields, source), structs.event_fields, text=False)


def _fields(text: bytes) -> dict[str, msgspec.Raw]:
    """The fields of a JSON object, their values unread. Raises `InvalidEvent` with what is wrong."""
    try:
        text.decode()
        return FIELDS.decode(text)
    except UnicodeDecodeError as error:
        raise InvalidEvent("not_parseable", f"not UTF-8: {error.reason} (byte {error.start})") from None
    except RecursionError:
        raise InvalidEvent("not_parseable", "not JSON that can be read: nested too deeply") from None
    except msgspec.ValidationError as error:
        raise InvalidEvent("not_parseable", f"an event must be a JSON object ({error})") from None
    except msgspec.DecodeError as error:
        raise InvalidEvent("not_parseable", f"not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None


def _value(fields: dict[str, msgspec.Raw], source: str) -> Any:
    """The value of one field, or MISSING."""
    if source not in fields:
        return MISSING
    try:
        return _ANY.decode(fields[source])
    except msgspec.ValidationError:  # a number beyond all bounds, 1e999: no name, no weight, no time
        return np.inf
