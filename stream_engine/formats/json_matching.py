"""JSON lines matched against templates (`json_templates`), in one compiled pass over their bytes.

Each line is tried against the template of the line before it, then against the others. Where one fits, the places of
its names are noted; a line that fits none is passed over and noted as missed. Nothing is decided here about what an
event must hold: a slot takes less than the struct that its template was made of. The text must be UTF-8 as a whole.
O(bytes), some 2 ns a byte; releases the interpreter.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.byte_words import first_byte_set, same_bytes, word_at
from stream_engine.data.compiled import njit
from stream_engine.formats.json_templates import NAME, SAMPLER, TIME, WEIGHT, WORKER

_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _BACKSLASHES, _SPACES = _ONES * np.uint64(34), _ONES * np.uint64(92), _ONES * np.uint64(32)
_DIGITS = 15  # so many make an integer that a double holds, and dividing by a power of ten rounds once
_POWERS = 10.0 ** np.arange(_DIGITS + 1)
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
_DAYS_OF = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


class Found(NamedTuple):
    """Room for what is found in some lines; `begins` and `ends` for the members of all of them, one after the
    other."""

    line: np.ndarray  # (r,) int64: which line of the value
    template: np.ndarray  # (r,) int64
    begins: np.ndarray  # (f,) int64
    ends: np.ndarray  # (f,) int64
    worker: np.ndarray  # (r, 2) int64: where the worker's name begins and ends
    sampler: np.ndarray  # (r, 2) int64: the same of the sampler's
    weight: np.ndarray  # (r,) float64
    time: np.ndarray  # (r,) float64
    missed: np.ndarray  # (r, 3) int64: number, begin and end (line feed included) of lines that fit no template


def room_for(lines: int, members: int) -> Found:
    """Room for so many lines of at most so many members."""
    return Found(
        np.empty(lines, np.int64),
        np.empty(lines, np.int64),
        np.empty(lines * members, np.int64),
        np.empty(lines * members, np.int64),
        np.empty((lines, 2), np.int64),
        np.empty((lines, 2), np.int64),
        np.empty(lines),
        np.empty(lines),
        np.empty((lines, 3), np.int64),
    )


@njit(cache=True, nogil=True)
def match_lines(text, at, line, program, found, stop):
    """Match lines from byte `at`, line number `line`, on, until the room is full, the text ends or, with `stop`, a line
    fits no template; (place, line number, lines matched, members, lines missed)."""
    program, found = borrowed(program), borrowed(found)
    matched, members, misses, now = 0, 0, 0, 0
    while at < len(text) and matched < len(found.line) and misses < len(found.missed):
        end, last = -1, now
        for attempt in range(len(program.members)):
            now = last if attempt == 0 else attempt - 1 if attempt <= last else attempt
            end = _fits(text, at, now, program, found, matched, members)
            if end >= 0:
                break
        if end >= 0:
            found.line[matched], found.template[matched] = line, now
            members += program.members[now]
            matched += 1
        elif stop:
            break
        else:
            end = at
            while end < len(text) and text[end] != 10:
                end += 1
            end = min(end + 1, len(text))
            found.missed[misses, 0], found.missed[misses, 1], found.missed[misses, 2] = line, at, end
            misses += 1
        at, line = end, line + 1
    return at, line, matched, members, misses


@njit(cache=True, nogil=True, inline="always")
def _fits(text, at, t, program, found, row, members):
    """Where the line after this one begins if this one fits template t, else -1; what stands in its slots is noted as
    that of `row`, whose members begin at `members`."""
    found.worker[row, 0] = found.worker[row, 1] = 0
    found.sampler[row, 0] = found.sampler[row, 1] = 0
    found.weight[row], found.time[row] = 1.0, np.nan
    literal = program.bounds[program.first[t] + t]
    for s in range(program.first[t], program.first[t + 1]):
        after = program.bounds[s + t + 1]
        if not same_bytes(text, at, program.letters, literal, after - literal):
            return -1
        at, literal = at + after - literal, after
        if program.kind_of_slot[s] == NAME:
            begin, end, at = _name(text, at)
            member = program.member_of_slot[s]
            if member >= 0:
                found.begins[members + member], found.ends[members + member] = begin, end
            elif member == WORKER:
                found.worker[row, 0], found.worker[row, 1] = begin, end
            elif member == SAMPLER:
                found.sampler[row, 0], found.sampler[row, 1] = begin, end
        elif program.kind_of_slot[s] == WEIGHT:
            at, found.weight[row] = _number(text, at)
        elif program.kind_of_slot[s] == TIME:
            date = at < len(text) and text[at] == 34
            at, found.time[row] = _date(text, at) if date else _number(text, at)
        else:
            at = _anything(text, at)
        if at < 0:
            return -1
    length = program.bounds[program.first[t + 1] + t + 1] - literal
    return _line_end(text, at + length) if same_bytes(text, at, program.letters, literal, length) else -1


@njit(cache=True, nogil=True, inline="always")
def _line_end(text, at):
    """Where the next line begins if this one ends here, else -1."""
    if at == len(text):
        return at
    if text[at] == 10:
        return at + 1
    return at + 2 if at + 1 < len(text) and text[at] == 13 and text[at + 1] == 10 else -1


@njit(cache=True, nogil=True, inline="always")
def _quote(text, at):
    """Where the string whose first letter is at `at` has its closing quote; -1 where it has an escape, a control
    character or no end. Eight bytes at a time: the lowest byte that stands out is found exactly (Warren, Hacker's
    Delight, 6-1)."""
    while True:
        word = word_at(text, at)
        quotes, escapes = word ^ _QUOTES, word ^ _BACKSLASHES
        odd = (((quotes - _ONES) & ~quotes) | ((escapes - _ONES) & ~escapes) | ((word - _SPACES) & ~word)) & _TOPS
        if odd:
            place = at + first_byte_set(odd)
            return place if place < len(text) and text[place] == 34 else -1
        at += 8


@njit(cache=True, nogil=True, inline="always")
def _digits(text, at):
    while at < len(text) and 48 <= text[at] <= 57:
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _name(text, at):
    """(begin, end, what follows) of a string or an integer in its one decimal form; the last is -1 where it is none."""
    if at >= len(text):
        return at, at, -1
    if text[at] == 34:
        end = _quote(text, at + 1)
        return at + 1, end, end + 1 if end >= 0 else -1
    first = at + 1 if text[at] == 45 else at
    end = _digits(text, first)
    long = end - first
    if long == 0 or long > 18 or (text[first] == 48 and (long > 1 or first > at)):
        return at, at, -1
    return at, end, end


@njit(cache=True, nogil=True)
def _anything(text, at):
    """What follows a string, a number, true, false or null; -1 where there is none that is surely valid."""
    if at >= len(text):
        return -1
    c = text[at]
    if c == 34:
        end = _quote(text, at + 1)
        return end + 1 if end >= 0 else -1
    if c == 110 or c == 116 or c == 102:
        word = word_at(text, at)
        if (word & np.uint64(0xFFFFFFFF)) == np.uint64(0x6C6C756E) or (word & np.uint64(0xFFFFFFFF)) == np.uint64(
            0x65757274
        ):
            return at + 4
        return at + 5 if (word & np.uint64(0xFFFFFFFFFF)) == np.uint64(0x65736C6166) else -1
    return _number(text, at + 1 if c == 45 else at)[0]


@njit(cache=True, nogil=True)
def _number(text, at):
    """(what follows, value) of a number >= 0 of at most 15 digits without an exponent; -1 where there is none."""
    end = _digits(text, at)
    whole = end - at
    if whole == 0 or whole > _DIGITS or (whole > 1 and text[at] == 48):
        return -1, 0.0
    value = 0
    for place in range(at, end):
        value = 10 * value + int(text[place]) - 48
    places = 0
    if end < len(text) and text[end] == 46:
        begin = end + 1
        end = _digits(text, begin)
        places = end - begin
        if places == 0 or whole + places > _DIGITS:
            return -1, 0.0
        for place in range(begin, end):
            value = 10 * value + int(text[place]) - 48
    return end, value / _POWERS[places]


@njit(cache=True, nogil=True)
def _two(text, at):
    """The number of two digits, or one that is too large for all uses."""
    tens, ones = np.int64(text[at]) - 48, np.int64(text[at + 1]) - 48
    return 10 * tens + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else 100_000


@njit(cache=True, nogil=True)
def _date(text, at):
    """(what follows, epoch seconds) of "2024-05-01T12:00:00Z", with at most six decimals, quotes included; -1 where
    there is none."""
    if at + 22 > len(text) or text[at] != 34:
        return -1, 0.0
    at += 1
    if (text[at + 4] != 45 or text[at + 7] != 45 or text[at + 10] != 84) or (
        text[at + 13] != 58 or text[at + 16] != 58
    ):
        return -1, 0.0
    year, month, day = 100 * _two(text, at) + _two(text, at + 2), _two(text, at + 5), _two(text, at + 8)
    hour, minute, second = _two(text, at + 11), _two(text, at + 14), _two(text, at + 17)
    if not (1 <= year <= 9999 and 1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        return -1, 0.0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS_OF[month - 1] + (1 if leap and month == 2 else 0):
        return -1, 0.0
    past = year - 1
    days = 365 * past + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE[month - 1] + day - 719163
    if leap and month > 2:
        days += 1
    seconds, end, parts, unit = ((24 * days + hour) * 60 + minute) * 60 + second, at + 19, 0, 1_000_000
    if text[end] == 46:
        begin = end + 1
        end = _digits(text, begin)
        if end == begin or end - begin > 6:
            return -1, 0.0
        for place in range(begin, end):
            unit //= 10
            parts += unit * (int(text[place]) - 48)
    if end + 1 >= len(text) or text[end] != 90 or text[end + 1] != 34:
        return -1, 0.0
    total = seconds * 1_000_000 + parts
    return (end + 2, total / 1e6) if abs(total) < 1 << 53 else (-1, 0.0)
