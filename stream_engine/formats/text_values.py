"""Numbers and times in text, in one compiled pass: the simple ones; NaN for those left to `field_values`. O(bytes)."""

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.intrinsics import word_at

_MAX_EXACT = 1 << 53  # up to here a double holds every integer, and dividing it by such a power of ten rounds once
_POWERS = 10.0 ** np.arange(17)
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334])
_DAYS_OF = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def plain_numbers(text: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(q,) float64: the number >= 0 that text[begins[q] : ends[q]] is, of 16 digits at most and no exponent; else NaN.

    >>> plain_numbers(np.frombuffer(b"12.50-1", np.uint8), np.array([0, 5]), np.array([5, 7])).tolist()
    [12.5, nan]
    """
    out = np.empty(len(begins))
    _numbers(read_only(text), read_only(begins, np.int64), read_only(ends, np.int64), out)
    return out


def plain_times(text: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(q,) float64: epoch seconds of text[begins[q] : ends[q]], if that looks as 2024-05-01T12:00:00Z does, with at
    most six decimals; else NaN."""
    out = np.empty(len(begins))
    _times(read_only(text), read_only(begins, np.int64), read_only(ends, np.int64), out)
    return out


@njit(cache=True, nogil=True)
def _numbers(text, begins, ends, out):
    for q in range(len(begins)):
        value, digits, point, good = np.int64(0), 0, -1, True
        for at in range(begins[q], ends[q]):
            c = np.int64(text[at])
            if c == 46 and point < 0 and digits > 0:
                point = digits
            elif 48 <= c <= 57 and digits < 17 and value < _MAX_EXACT:
                value, digits = 10 * value + c - 48, digits + 1
            else:
                good = False
                break
        plain = good and digits > 0 and point != digits and value <= _MAX_EXACT and digits < 17
        places = digits - point if point >= 0 else 0
        out[q] = value / _POWERS[places] if plain else np.nan


@njit(cache=True, nogil=True)
def _two(text, at):
    """The number of two digits, or one that is too large for all uses."""
    tens, ones = np.int64(text[at]) - 48, np.int64(text[at + 1]) - 48
    return 10 * tens + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else 100_000


@njit(cache=True, nogil=True)
def _times(text, begins, ends, out):
    date, seconds = np.zeros(2, np.uint64), np.nan  # of the date before: most have it
    for q in range(len(begins)):
        at, end = begins[q], ends[q]
        out[q] = np.nan
        if end - at < 20 or end - at > 27:
            continue
        words = word_at(text, at), word_at(text, at + 3)
        if words[0] != date[0] or words[1] != date[1]:
            date[0], date[1], seconds = words[0], words[1], _date(text, at)
        out[q] = _clock(text, at + 11, end, seconds)


@njit(cache=True, nogil=True)
def _date(text, at):
    """Seconds from the epoch to a date, which a T follows; NaN where it is none."""
    if text[at + 4] != 45 or text[at + 7] != 45 or text[at + 10] != 84:
        return np.nan
    year, month, day = 100 * _two(text, at) + _two(text, at + 2), _two(text, at + 5), _two(text, at + 8)
    if not (1 <= year <= 9999 and 1 <= month <= 12):
        return np.nan
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS_OF[month - 1] + (1 if leap and month == 2 else 0):
        return np.nan
    past = year - 1
    days = 365 * past + past // 4 - past // 100 + past // 400 + _DAYS_BEFORE[month - 1] + day - 719163
    return 86400.0 * (days + 1 if leap and month > 2 else days)


@njit(cache=True, nogil=True)
def _clock(text, at, end, date):
    """Epoch seconds of 12:00:00Z, perhaps with decimals, on a date; NaN where it is no such time."""
    if text[end - 1] != 90 or text[at + 2] != 58 or text[at + 5] != 58 or np.isnan(date):
        return np.nan
    if end - at > 9 and (text[at + 8] != 46 or end - at == 10):
        return np.nan
    hour, minute, second = _two(text, at), _two(text, at + 3), _two(text, at + 6)
    if not (hour < 24 and minute < 60 and second < 60):
        return np.nan
    parts, unit = np.int64(0), 1_000_000
    for place in range(at + 9, end - 1):
        digit = np.int64(text[place]) - 48
        if not 0 <= digit <= 9:
            return np.nan
        unit //= 10
        parts += unit * digit
    total = (np.int64(date) + 3600 * hour + 60 * minute + second) * 1_000_000 + parts
    return total / 1e6 if abs(total) < 1 << 53 else np.nan
