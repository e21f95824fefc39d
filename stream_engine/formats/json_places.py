"""The locations of events in a JSON value: lines, elements of arrays on a line, a document over several lines.

Invariant: the location of every event is its first byte in the value. O(bytes).
"""

from codecs import BOM_UTF8
from typing import NamedTuple

import msgspec
import numpy as np

from stream_engine.formats.options import DEFAULT_BOUNDS, Bounds, OverBound, too_many_rows

_BLANK = b" \t\r\n"
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)
_COMMAS = 8  # an array with more commas for each allowed event holds too many events, or too much
ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class EventSpans(NamedTuple):
    """Where each event of a value begins and ends."""

    begins: np.ndarray  # (n,) int64
    ends: np.ndarray  # (n,) int64


class Lines(NamedTuple):
    """Where each line of a text begins and ends, without the line end, and whether it begins with { and ends with }:
    such a line is at most one event."""

    begins: np.ndarray  # (lines,) int64
    ends: np.ndarray  # (lines,) int64
    plain: np.ndarray  # (lines,) bool


def lines_of(value: bytes) -> Lines:
    """All lines of a value.

    >>> lines = lines_of(b'{"a":1}\\r\\n\\n{}\\n')
    >>> lines.begins.tolist(), lines.ends.tolist(), lines.plain.tolist()
    ([0, 9, 10], [7, 9, 12], [True, False, True])
    """
    text = np.frombuffer(value, np.uint8)
    feeds = np.flatnonzero(text == 10)
    ends = feeds if value.endswith(b"\n") or not value else np.append(feeds, len(text))
    begins = np.append(0, ends[:-1] + 1)[: len(ends)]
    if not len(ends):
        return Lines(begins, ends, begins > 0)
    last = text[ends - 1]  # of an empty line, the one before it or the very last one: it does not begin with {
    returned = (last == 13) & (ends > begins)
    if returned.any():
        ends = ends - returned
        last = text[ends - 1]
    plain = (last == 125) & (text[np.minimum(begins, len(text) - 1)] == 123) & (ends > begins)
    return Lines(begins, ends, plain)


def places_of(value: bytes, bounds: Bounds = DEFAULT_BOUNDS, most: int | None = None) -> EventSpans:
    """Where the events of a value stand, not yet read: lines, and the elements of arrays.

    An array of more elements than `bounds` allow stays one event, which `too_many_elements` knows. Raises `OverBound`
    where the value holds more than `most` lines and events.
    """
    lines = lines_of(value)
    if most is not None and len(lines.begins) > most:
        raise OverBound(too_many_rows("the message", len(lines.begins), "lines", bounds))
    if lines.plain.all():
        return EventSpans(lines.begins, lines.ends)
    if whole := _document_in(value):
        begin = value.index(whole)
        return _with_odd(
            Lines(np.array([begin]), np.array([begin + len(whole)]), np.zeros(1, bool)), value, bounds, most
        )
    return _with_odd(lines, value, bounds, most)


def _with_odd(lines: Lines, value: bytes, bounds: Bounds, most: int | None) -> EventSpans:
    """The places of the events of lines, of which those that are not plain are looked into."""
    odd = np.flatnonzero(~lines.plain)
    spans: list[tuple[int, int]] = []
    counts = np.ones(len(lines.plain), np.int64)
    for number, begin, end in zip(odd.tolist(), lines.begins[odd].tolist(), lines.ends[odd].tolist(), strict=True):
        before = len(spans)
        text = value[begin:end].strip(_BLANK).removeprefix(BOM_UTF8).strip(_BLANK)
        if text:
            spans += _events_in(text, begin + value[begin:end].index(text), bounds)
        counts[number] = len(spans) - before
        if most is not None and len(spans) > most:
            raise OverBound(too_many_rows("the message", len(spans), "events and more", bounds))
    first = np.cumsum(counts) - counts
    size = int(counts.sum())
    if most is not None and size > most:
        raise OverBound(too_many_rows("the message", size, "events", bounds))
    places = np.empty((2, size), np.int64)
    at_odd = np.ones(size, bool)
    at_odd[first[lines.plain]] = False
    places[:, first[lines.plain]] = lines.begins[lines.plain], lines.ends[lines.plain]
    places[:, at_odd] = np.array(spans, np.int64).reshape(-1, 2).T
    return EventSpans(*places)


def _events_in(text: bytes, begin: int, bounds: Bounds) -> list[tuple[int, int]]:
    """Where one event stands, or every event of an array."""
    elements = None if too_many_elements(text, bounds) else _elements(text)
    if elements is None:
        return [(begin, begin + len(text))]
    places, at = [], 1
    for element in map(bytes, elements):
        at = text.index(element, at)
        places.append((begin + at, begin + at + len(element)))
        at += len(element)
    return places


def _document_in(value: bytes) -> bytes:
    """The one JSON value over several lines that a value is, without what is blank around it; b"" where it is lines."""
    whole = value.strip(_BLANK).removeprefix(BOM_UTF8).strip(_BLANK)
    several = b"\n" in whole and not _is_document(whole[: whole.index(b"\n")])
    return whole if several and _is_document(whole) else b""


def _is_document(text: bytes) -> bool:
    try:
        _RAW.decode(text)
    except ERRORS:
        return False
    return True


def too_many_elements(text: bytes, bounds: Bounds) -> str:
    """The error message for an array of too many events; "" for everything else.

    An array that must be too long, judging by its commas, is not parsed to be counted.

    >>> too_many_elements(b"[1,2,3]", Bounds(max_rows=2)), too_many_elements(b"[1,2]", Bounds(max_rows=2))
    ('the array holds 3 events; the limit is 2', '')
    >>> too_many_elements(b"[" + b"[1,2,3]," * 7 + b"4]", Bounds(max_rows=8))  # 21 commas of 64
    ''
    """
    if text[:1] != b"[" or len(text) <= 2 * bounds.max_rows:
        return ""
    commas = text.count(b",")
    if commas >= _COMMAS * bounds.max_rows:
        return (
            f"the array holds {commas:,} commas; the limit is {_COMMAS} for each of the {bounds.max_rows:,} events "
            "allowed"
        )
    elements = _elements(text) or ()
    return too_many_rows("the array", len(elements), "events", bounds) if len(elements) > bounds.max_rows else ""


def is_utf8(text: bytes) -> bool:
    """Whether these bytes are UTF-8 text; almost free where they are ASCII."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _elements(text: bytes) -> list[msgspec.Raw] | None:
    """The elements of an array; None for what is none after all (it is refused as one event, with the reason)."""
    if text[:1] != b"[" or not is_utf8(text):
        return None
    try:
        return _ELEMENTS.decode(text)
    except ERRORS:
        return None
