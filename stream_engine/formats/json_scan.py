"""JSON events to cells: one compiled pass that finds the type and location of the value of each field.

What `scan_events` accepts is valid JSON in valid UTF-8; an event that is not certainly a JSON object is left to
`json_events`. Strings with escapes are written out behind the text. About 2 ns per byte.
"""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.intrinsics import borrowed, first_byte_set, same_bytes, word_at

# What stands in a cell. NULL to FALSE keep their place in the text, LIST that of its first item and the one behind its
# last; only texts and integers are items of a LIST, and any other list or object is OTHER.
ABSENT, NULL, TEXT, INTEGER, NUMBER, TRUE, FALSE, LIST, OTHER = range(9)

_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _SPACES = _ONES * np.uint64(34), _ONES * np.uint64(92), _ONES * np.uint64(32)
_MAX_INTEGER_DIGITS = 18  # digits; a longer one may exceed 64 bits
_MAX_DEPTH = 60  # nested objects and lists
_MAX_ORDERED_FIELDS = 64  # fields of an event that are expected in the order of the event before


class Fields(NamedTuple):
    """The names of fields, concatenated as UTF-8; the first `read` of them are columns of `Cells`."""

    utf8: np.ndarray  # (bytes,) uint8
    bounds: np.ndarray  # (fields + 1,) int64: where each begins, and the end
    read: int
    pass_over: bool  # fields that are not among them; else an event that has one is where the scan stops


class Cells(NamedTuple):
    """Arrays for the cells of up to n events."""

    kind: np.ndarray  # (read, n) int8; ABSENT all where an event is not readable
    begin: np.ndarray  # (read, n) int64
    end: np.ndarray  # (read, n) int64
    readable: np.ndarray  # (n,) bool
    used: np.ndarray  # (read,) bool: whether any event has the field
    item_begin: np.ndarray  # (items,) int64
    item_end: np.ndarray  # (items,) int64


@njit(cache=True, nogil=True)
def scan_events(text, begins, ends, first, fields, cells, items, most_items, free):
    """Scan the events text[begins[e] : ends[e]] from `first` on, whose cells are ABSENT; what stands in text[free:] is
    overwritten.

    Returns (the event it stopped at, or how many there are; items; free).
    """
    utf8, bounds, read, pass_over = fields
    kinds, cell_begin, cell_end, readable, used, item_begin, item_end = borrowed(cells)
    text, begins, ends, utf8, bounds = borrowed((text, begins, ends, utf8, bounds))
    order = np.full(_MAX_ORDERED_FIELDS, -1, np.int64)
    for e in range(first, len(begins)):
        at, end, before = begins[e], ends[e], (items, free)
        good = at < end and text[at] == 123
        at = _space(text, at + 1, end)
        position, more = 0, good and not (at < end and text[at] == 125)
        while more:
            more = good = False
            if at >= end or text[at] != 34:
                break
            expected = order[position] if position < _MAX_ORDERED_FIELDS else -1
            field, close = _field(text, at + 1, end, free, utf8, bounds, expected)
            if close < 0:
                break
            if field < 0 and not pass_over:
                kinds[:, e] = ABSENT
                return e, before[0], before[1]
            if position < _MAX_ORDERED_FIELDS:
                order[position] = field
            at = _space(text, close + 1, end)
            if at >= end or text[at] != 58:
                break
            at = _space(text, at + 1, end)
            if field < 0 or field >= read:
                at = _passed_over(text, at, end, free)
            elif kinds[field, e] != ABSENT:
                break  # twice
            elif at < end and text[at] == 91:
                first_item, begin, behind = items, at, free
                at, items, free = _list(
                    text, at, end, free, item_begin, item_end, items, min(items + most_items, len(item_begin))
                )
                kinds[field, e], cell_begin[field, e], cell_end[field, e] = LIST, first_item, items
                if at < 0:
                    items, free, kinds[field, e] = first_item, behind, OTHER
                    at = _passed_over(text, begin, end, free)
            elif at < end and text[at] == 123:
                kinds[field, e], at = OTHER, _passed_over(text, at, end, free)
            else:
                kind, cell_begin[field, e], cell_end[field, e], at, free = _scalar(text, at, end, free)
                kinds[field, e] = kind
            if at < 0:
                break
            if field >= 0 and field < read:
                used[field] = True
            at = _space(text, at, end)
            if at >= end:
                break
            good = text[at] == 125
            if text[at] == 44:
                at, position, more = _space(text, at + 1, end), position + 1, True
        readable[e] = good and _space(text, at + 1, end) == end
        if not readable[e]:
            items, free = before
            kinds[:, e] = ABSENT
    return len(begins), items, free


@njit(cache=True, nogil=True, inline="always")
def _field(text, at, end, free, utf8, bounds, expected):
    """(number, closing quote) of the name of a field whose first letter is at `at`; the number is -1 where it is none
    of these, and the quote where this is no string. The number that is `expected`, unless -1, is tried first."""
    field, close = expected, -1
    if field >= 0:
        close = at + bounds[field + 1] - bounds[field]
        if not (close < end and text[close] == 34 and same_bytes(text, at, utf8, bounds[field], close - at)):
            field = -1
    if field < 0:
        begin, close = at, _odd_byte(text, at)
        behind = close
        if close >= end or text[close] != 34:
            begin = free
            after, behind = _written_out(text, at, end, free)
            close = -1 if after < 0 or _odd_byte(text, begin) < behind else after - 1
        for k in range(len(bounds) - 1 if close >= 0 else 0):
            if behind - begin == bounds[k + 1] - bounds[k] and same_bytes(text, begin, utf8, bounds[k], behind - begin):
                field = k
                break
    return field, close


@njit(cache=True, nogil=True, inline="always")
def _space(text, at, end):
    """Where the next byte stands that is no white space."""
    while at < end and (text[at] == 32 or text[at] == 10 or text[at] == 13 or text[at] == 9):
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _odd_byte(text, at):
    """Where the first quote, backslash or control character stands, from `at` on. Eight bytes at a time: the lowest
    byte that stands out is found exactly (Warren, Hacker's Delight, 6-1)."""
    while True:
        word = word_at(text, at)
        quotes, escapes = word ^ _QUOTES, word ^ _BACKSLASHES
        odd = (((quotes - _ONES) & ~quotes) | ((escapes - _ONES) & ~escapes) | ((word - _SPACES) & ~word)) & _TOPS
        if odd:
            return at + first_byte_set(odd)
        at += 8


@njit(cache=True, nogil=True)
def _hexadecimal(text, at, end):
    """The number of four hexadecimal digits, -1 where they are none."""
    value = np.int64(0)
    for place in range(at, at + 4):
        c = np.int64(text[place] if place < end else 0)
        digit = c - 48 if 48 <= c <= 57 else (c | 32) - 87
        if not (48 <= c <= 57 or 97 <= (c | 32) <= 102):
            return np.int64(-1)
        value = 16 * value + digit
    return value


@njit(cache=True, nogil=True)
def _written_out(text, at, end, free):
    """Write the string whose first letter is at `at` to `free`, without escapes; (what follows its closing quote, what
    follows what was written), the first -1 where it is no string."""
    while at < end:
        c: Any = np.int64(text[at])
        if c == 34:
            return at + 1, free
        if c < 32:
            return -1, free
        at += 1
        if c == 92:
            c = np.int64(text[at] if at < end else 0)
            at += 1
            if c == 117:
                c = _hexadecimal(text, at, end)
                at += 4
                if 0xD800 <= c < 0xDC00 and at + 1 < end and text[at] == 92 and text[at + 1] == 117:
                    low = _hexadecimal(text, at + 2, end)
                    c = 0x10000 + ((c - 0xD800) << 10) + low - 0xDC00 if 0xDC00 <= low < 0xE000 else -1
                    at += 6
                if c < 0 or 0xD800 <= c < 0xE000:
                    return -1, free
                if c >= 0x80:
                    extra = 1 if c < 0x800 else 2 if c < 0x10000 else 3
                    text[free] = (0xF0 << 3 - extra | c >> 6 * extra) & 0xFF
                    for k in range(extra):
                        text[free + 1 + k] = 0x80 | c >> 6 * (extra - 1 - k) & 0x3F
                    free += 1 + extra
                    continue
            elif c == 98:
                c = 8
            elif c == 102:
                c = 12
            elif c == 110:
                c = 10
            elif c == 114:
                c = 13
            elif c == 116:
                c = 9
            elif not (c == 34 or c == 92 or c == 47):
                return -1, free
        text[free] = c
        free += 1
    return -1, free


@njit(cache=True, nogil=True, inline="always")
def _digits(text, at, end):
    while at < end and 48 <= text[at] <= 57:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _number(text, at, end):
    """(kind, what follows) of a number; the latter -1 where there is none. An INTEGER is in its one decimal form."""
    negative = at < end and text[at] == 45
    first = at + 1 if negative else at
    at = _digits(text, first, end)
    if at == first or (text[first] == 48 and at > first + 1):
        return NUMBER, -1
    whole = at - first <= _MAX_INTEGER_DIGITS and not (negative and text[first] == 48)
    if at < end and text[at] == 46:
        first, whole = at + 1, False
        at = _digits(text, first, end)
        if at == first:
            return NUMBER, -1
    if at < end and (text[at] == 101 or text[at] == 69):
        first, whole = at + 1, False
        if first < end and (text[first] == 43 or text[first] == 45):
            first += 1
        at = _digits(text, first, end)
        if at == first:
            return NUMBER, -1
    return INTEGER if whole else NUMBER, at


@njit(cache=True, nogil=True, inline="always")
def _scalar(text, at, end, free):
    """(kind, begin, end, what follows, free) of a value that is no list and no object; what follows is -1 where there
    is none."""
    c = text[at] if at < end else np.uint8(0)
    if c == 34:
        close = _odd_byte(text, at + 1)
        if close < end and text[close] == 34:
            return TEXT, at + 1, close, close + 1, free
        after, behind = _written_out(text, at + 1, end, free)
        return TEXT, free, behind, after, behind
    if c == 110 or c == 116 or c == 102:
        kind = NULL if c == 110 else TRUE if c == 116 else FALSE
        word, after = word_at(text, at), at + (5 if c == 102 else 4)
        wanted = np.uint64(0x6C6C756E) if c == 110 else np.uint64(0x65757274) if c == 116 else np.uint64(0x736C6166)
        same = (word & np.uint64(0xFFFFFFFF)) == wanted and after <= end and (c != 102 or text[at + 4] == 101)
        return kind, at, after, after if same else -1, free
    kind, after = _number(text, at, end)
    return kind, at, after, after, free


@njit(cache=True, nogil=True)
def _list(text, at, end, free, item_begin, item_end, items, most):
    """(what follows, items, free) of a list that begins at `at`; -1 where it holds anything but texts and integers, or
    more than room for `most` items in all."""
    at = _space(text, at + 1, end)
    if at < end and text[at] == 93:
        return at + 1, items, free
    while items < most:
        kind, item_begin[items], item_end[items], at, free = _scalar(text, at, end, free)
        if at < 0 or kind not in (TEXT, INTEGER):
            return -1, items, free
        items += 1
        at = _space(text, at, end)
        if at < end and text[at] == 93:
            return at + 1, items, free
        if at >= end or text[at] != 44:
            return -1, items, free
        at = _space(text, at + 1, end)
    return -1, items, free


@njit(cache=True, nogil=True)
def _passed_over(text, at, end, free):
    """What follows a value of any kind; -1 where there is none. What stands at `free` is overwritten."""
    depth, objects = 0, np.uint64(0)  # of what is open, the innermost in the lowest bit: is it an object?
    while True:
        opened = at < end and (text[at] == 123 or text[at] == 91)
        if opened:
            if depth == _MAX_DEPTH:
                return -1
            depth, objects = depth + 1, objects << np.uint64(1) | np.uint64(text[at] == 123)
            at = _space(text, at + 1, end)
        else:
            at = _scalar(text, at, end, free)[3]
            if at < 0:
                return -1
        fresh = opened
        while True:  # until the next value begins
            if depth == 0:
                return at
            at = _space(text, at, end)
            within = objects & np.uint64(1)
            if at < end and text[at] == (125 if within else 93):
                depth, objects, at, fresh = depth - 1, objects >> np.uint64(1), at + 1, False
                continue
            if not fresh:
                if at >= end or text[at] != 44:
                    return -1
                at = _space(text, at + 1, end)
            if within:
                if at >= end or text[at] != 34:
                    return -1
                at = _scalar(text, at, end, free)[3]
                at = _space(text, at, end) if at >= 0 else end
                if at >= end or text[at] != 58:
                    return -1
                at = _space(text, at + 1, end)
            break


@njit(cache=True, nogil=True)
def equal_cells(text, begin, end, wanted, same):
    """same[e]: whether text[begin[e] : end[e]] is `wanted`, where it was true before."""
    for e in range(len(begin)):
        if same[e]:
            same[e] = end[e] - begin[e] == len(wanted) and same_bytes(text, begin[e], wanted, 0, len(wanted))


@njit(cache=True, nogil=True)
def item_count(kind, begin, end, answer, lengths):
    """lengths[e]: how many names a list holds, 1 for an `answer` outside a list, -1 where neither stands; returns their
    sum without the latter."""
    total = 0
    for e in range(len(kind)):
        if kind[e] == LIST:
            lengths[e] = end[e] - begin[e]
        else:
            lengths[e] = 1 if answer and (kind[e] == TEXT or kind[e] == INTEGER) else -1
        total += max(lengths[e], 0)
    return total


@njit(cache=True, nogil=True)
def take_items(kind, begin, end, lengths, item_begin, item_end, begins, ends):
    """Where the names that `item_count` counted begin and end in the text, in the order of the events."""
    at = 0
    for e in range(len(kind)):
        for item in range(lengths[e]):
            listed = kind[e] == LIST
            begins[at] = item_begin[begin[e] + item] if listed else begin[e]
            ends[at] = item_end[begin[e] + item] if listed else end[e]
            at += 1
