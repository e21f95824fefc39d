"""A JSON value taken apart into its events, not yet read: lines, arrays on a line, a document over several lines.

Invariant: the place of every event is where its first byte stands in the value. O(bytes).
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from stream_engine.formats.bounds import DEFAULT_BOUNDS, Bounds, OverBound, too_many_rows

_BLANK = b" \t\r\n"
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)
_COMMAS = 8  # an array of so many commas for each of the events that it may hold holds too many events, or too much
ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Items(NamedTuple):
    """Events of a value as bytes, not yet read, where they begin, and whether they begin with { and end with }."""

    texts: list[bytes]
    starts: list[int]
    plain: list[bool]

    def add(self, text: bytes, start: int) -> None:
        """Add one event."""
        self.texts.append(text)
        self.starts.append(start)
        self.plain.append(text[:1] == b"{" and text[-1:] == b"}")

    def extend(self, more: "Items") -> None:
        """Add the events of another value; their places stay those in their own value."""
        self.texts.extend(more.texts)
        self.starts.extend(more.starts)
        self.plain.extend(more.plain)

    def extend_plain(self, texts: list[bytes], starts: list[int]) -> None:
        """Add lines that begin with { and end with }."""
        self.texts.extend(texts)
        self.starts.extend(starts)
        self.plain.extend([True] * len(texts))


class LinesOfMany:
    """The lines of values that stand in one text with a line feed after each of them or between them, no line blank:
    to which value a line belongs, and where there.

    >>> lines = LinesOfMany([b"{1}\\n{22}", b"{3}"], b"{1}\\n{22}\\n{3}")
    >>> lines.most(), lines.place(1), lines.place(2), lines.locate(1)
    (2, (0, 1), (1, 0), (4, b'{22}'))
    """

    def __init__(self, values: Sequence[bytes], text: bytes):
        self._text = text
        feeds = np.frombuffer(text, np.uint8) == 10
        between = not text.endswith(b"\n")  # values: else each of them ends with a line feed of its own
        ends = list(accumulate([len(value) + between for value in values]))
        counts = map(np.count_nonzero, map(feeds.__getitem__, map(slice, [0, *ends], ends)))
        self._first = np.cumsum([0, *counts])  # of each value's lines
        self._first[-1] += between

    def most(self) -> int:
        """How many lines the value of the most lines has."""
        return int(np.diff(self._first).max())

    def place(self, line: int) -> tuple[int, int]:
        """To which value a line belongs, and which line it is there."""
        value = int(np.searchsorted(self._first, line, "right")) - 1
        return value, line - int(self._first[value])

    @cached_property
    def _starts(self) -> np.ndarray:
        ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == 10) + 1
        return np.concatenate([[0], ends, [len(self._text)]])

    def locate(self, line: int) -> tuple[int, bytes]:
        """Where a line begins in its value, and the line without its end."""
        begin, end = self._starts[line], self._starts[line + 1]
        of_value = self._starts[self._first[self.place(line)[0]]]
        return int(begin - of_value), self._text[begin:end].rstrip(b"\r\n")


def is_utf8(text: bytes) -> bool:
    """Whether these bytes are UTF-8 text; almost free where they are ASCII."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def ends_if_plain(value: bytes) -> np.ndarray:
    """Where each line ends (its line feed included), when each of them begins with { and ends with }; else none.

    >>> ends_if_plain(b'{"a":1}\\n{}\\n').tolist(), len(ends_if_plain(b'{"a":\\n1}')), len(ends_if_plain(b'{}\\n\\n{}'))
    ([8, 11], 0, 0)
    """
    none = np.empty(0, np.int64)
    if value[:1] != b"{" or not value.endswith((b"}", b"}\n", b"}\r\n")):
        return none
    text = np.frombuffer(value, np.uint8)
    ends = np.flatnonzero(text == 10)
    if value.endswith(b"\n"):
        ends = ends[:-1]
    last = text[ends - 1]
    last = np.where(last == 13, text[ends - 2], last)
    return np.append(ends + 1, len(value)) if (last == 125).all() and (text[ends + 1] == 123).all() else none


def items_of(value: bytes, bounds: Bounds = DEFAULT_BOUNDS, most: int | None = None) -> Items:
    """The events of a value, taken apart but not read: lines, and the elements of arrays.

    An array of more elements than `bounds` allow stays one event, which `too_many_elements` knows. Raises `OverBound`
    where the value holds more than `most` lines and events.
    """
    if most is not None and len(value) > most:
        ends = value.count(b"\n") + (not value.endswith(b"\n"))
        if ends > most:
            raise OverBound(too_many_rows("the message", ends, "lines", bounds))
    items = Items([], [], [])
    if whole := document_in(value):
        _add_item(items, whole, value.index(whole), bounds)
        return items
    lines, starts, plain = _lines(value)
    done = 0  # lines up to here are items
    for odd in np.flatnonzero(~plain).tolist():
        items.extend_plain(lines[done:odd], starts[done:odd])
        text = lines[odd].strip(_BLANK).removeprefix(BOM_UTF8).strip(_BLANK)
        if text:
            _add_item(items, text, starts[odd] + lines[odd].index(text), bounds)
            if most is not None and len(items.texts) > most:
                raise OverBound(too_many_rows("the message", len(items.texts), "events and more", bounds))
        done = odd + 1
    items.extend_plain(lines[done:], starts[done:])
    if most is not None and len(items.texts) > most:
        raise OverBound(too_many_rows("the message", len(items.texts), "events", bounds))
    return items


def document_in(value: bytes) -> bytes:
    """The one JSON value over several lines that a value is, without what is blank around it; b"" where it is lines."""
    whole = value.strip(_BLANK).removeprefix(BOM_UTF8).strip(_BLANK)
    several = b"\n" in whole and not _is_document(whole[: whole.index(b"\n")])
    return whole if several and _is_document(whole) else b""


def _lines(value: bytes) -> tuple[list[bytes], list[int], np.ndarray]:
    """The lines of a value, where they begin, and which of them begin with { and end with }."""
    text = np.frombuffer(value, np.uint8)
    ends = np.append(np.flatnonzero(text == 10), len(text))
    starts = np.append(0, ends[:-1] + 1)
    filled = ends > starts
    plain = filled.copy()
    plain[filled] = (text[starts[filled]] == 123) & (text[ends[filled] - 1] == 125)
    return value.split(b"\n"), starts.tolist(), plain


def _is_document(text: bytes) -> bool:
    try:
        _RAW.decode(text)
    except ERRORS:
        return False
    return True


def _add_item(items: Items, text: bytes, start: int, bounds: Bounds) -> None:
    """One event, or every event of an array."""
    elements = None if too_many_elements(text, bounds) else _elements(text)
    if elements is None:
        items.add(text, start)
        return
    place = 1
    for element in map(bytes, elements):
        place = text.index(element, place)
        items.add(element, start + place)
        place += len(element)


def too_many_elements(text: bytes, bounds: Bounds) -> str:
    """What is told of an array of more events than it may hold; "" of everything else.

    An array that cannot be short, by its commas, is not taken apart to be counted.

    >>> too_many_elements(b"[1,2,3]", Bounds(max_rows=2)), too_many_elements(b"[1,2]", Bounds(max_rows=2))
    ('the array holds 3 events; the limit is 2 (input.max_message_rows)', '')
    """
    if text[:1] != b"[" or len(text) <= 2 * bounds.max_rows:
        return ""
    commas = text.count(b",")
    if commas >= _COMMAS * bounds.max_rows:
        return (
            f"the array holds {commas:,} commas; the limit is {_COMMAS} for each of the {bounds.max_rows:,} events "
            "that it may hold (input.max_message_rows)"
        )
    elements = _elements(text) or ()
    return too_many_rows("the array", len(elements), "events", bounds) if len(elements) > bounds.max_rows else ""


def _elements(text: bytes) -> list[msgspec.Raw] | None:
    """The elements of an array; None for what is none after all (it is refused as one event, with the reason)."""
    if text[:1] != b"[" or not is_utf8(text):
        return None
    try:
        return _ELEMENTS.decode(text)
    except ERRORS:
        return None


def locator(items: Items | None, value: bytes, bounds: Bounds) -> Callable[[int], tuple[int, bytes]]:
    """Where the event of a row stands; the value is taken apart for it only when an event was refused."""

    def locate(row: int) -> tuple[int, bytes]:
        nonlocal items
        if items is None:
            items = items_of(value, bounds)
        return items.starts[row], items.texts[row]

    return locate
