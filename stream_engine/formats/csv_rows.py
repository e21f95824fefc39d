"""Rows of a block of CSV: where each begins and ends by the rules of `csv_scanner`, and which of them can be read.

A stray quote must not swallow its neighbours: when a quoted field over several lines is never closed, or closed in the
middle of a field (then it met the opening quote of another one), or its row has a wrong number of fields, only the
first line is refused, and reading goes on at the second. O(bytes) unless quotes are stray; a quoted field holds at most
MAX_LINES line ends.
"""

from typing import NamedTuple

import numpy as np

from connectors.files.csv_scanner import CARRIAGE_RETURN, COMMA, LINE_FEED, MAX_LINES, QUOTE
from stream_engine.data.compiled import njit

WHOLE, WRONG_WIDTH, UNCLOSED = range(3)


class Rows(NamedTuple):
    """The rows of a value; `end` is without the line end."""

    start: np.ndarray  # (r,) int64
    end: np.ndarray  # (r,) int64
    fields: np.ndarray  # (r,) int64
    state: np.ndarray  # (r,) int8: WHOLE, WRONG_WIDTH or UNCLOSED


def rows_of(value: bytes, width: int, delimiter: int = COMMA) -> Rows:
    """The rows of `value`, of which those with `width` fields are WHOLE.

    >>> rows = rows_of(b'a,"b\\nc"\\n\\n"d,e\\nf,g\\n', 2)
    >>> rows.start.tolist(), rows.end.tolist(), rows.state.tolist() == [WHOLE, UNCLOSED, WHOLE]
    ([0, 9, 14], [7, 13, 17], True)
    """
    most = value.count(b"\n") + value.count(b"\r") + 1
    start, end, fields = (np.empty(most, np.int64) for _ in range(3))
    state = np.empty(most, np.int8)
    n = _split(np.frombuffer(value, np.uint8), width, delimiter, start, end, fields, state)
    return Rows(start[:n], end[:n], fields[:n], state[:n])


@njit(cache=True)
def _split(text, width, delimiter, start, end, fields, state):
    n, at, size = 0, 0, len(text)
    while at < size:
        if text[at] in (LINE_FEED, CARRIAGE_RETURN):
            at += 1
            continue
        stop, count, closed, first_end = _row(text, at, width, delimiter)
        start[n], end[n], fields[n] = at, stop, count
        if closed and count == width:
            state[n] = WHOLE
        else:
            state[n] = WRONG_WIDTH if closed else UNCLOSED
            end[n] = first_end
        at = end[n]
        n += 1
    return n


@njit(cache=True)
def _row(text, at, width, delimiter):
    """End of the row that begins at `at`, its number of fields, whether its quotes close, the end of its first line;
    beyond that line no more than `width` fields are looked at."""
    size = len(text)
    fields, lines, first_end = 1, 0, -1
    begins, quoted = True, False
    while at < size:
        c = text[at]
        line_end = c in (LINE_FEED, CARRIAGE_RETURN)
        if line_end and first_end < 0:
            first_end = at
        if first_end >= 0 and fields > width:
            return at, fields, False, first_end
        if quoted:
            if c == QUOTE:
                if at + 1 < size and text[at + 1] == QUOTE:
                    at += 1
                else:
                    quoted = False
                    if lines > 0 and at + 1 < size and text[at + 1] not in (delimiter, LINE_FEED, CARRIAGE_RETURN):
                        return at, fields, False, first_end
            elif line_end:
                lines += 1
                if lines > MAX_LINES:
                    return at, fields, False, first_end
        elif line_end:
            return at, fields, True, first_end
        elif c == delimiter:
            fields += 1
            lines = 0
            begins = True
            at += 1
            continue
        elif c == QUOTE and begins:
            quoted = True
        begins = False
        at += 1
    return size, fields, not quoted, first_end if first_end >= 0 else size
