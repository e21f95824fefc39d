"""Rows told apart by compiled code end where the scanner of `connectors` says that a record ends."""

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.data.csv_grammar import (
    MAX_LINES,
    UNCLOSED,
    WHOLE,
    column_names,
    first_record_end,
    header_line,
    last_record_end,
    rows_of,
)

QUICK = settings(max_examples=200, deadline=None)
CELLS = st.text(alphabet='ab,"\n\r\u00e9 ', max_size=6)


@QUICK
@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_what_a_csv_writer_writes_has_the_same_records_for_both(cells, line_end):
    out = io.StringIO()
    csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(cells)
    value = out.getvalue().encode()
    ends = [0]
    while ends[-1] < len(value):
        rest = value[ends[-1] :]
        ends.append(ends[-1] + first_record_end(rest, len(rest), 2))
    rows = rows_of(value, 2)
    assert rows.state.tolist() == [WHOLE] * len(cells)
    assert rows.start.tolist() == ends[:-1]
    assert (rows.end + len(line_end)).tolist() == ends[1:]
    for size in range(len(value) + 1):
        assert last_record_end(value, size, 2) == max(end for end in ends if end <= size)


@QUICK
@given(st.lists(CELLS.filter(lambda name: name == name.strip()), min_size=1, max_size=4))
def test_the_names_of_a_header_are_those_that_were_written(names):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(names)
    assert column_names(out.getvalue().encode()) == names


def test_the_header_line_is_the_first_that_is_filled():
    for value, header, begin in [
        (b"a,b\n1,2\n", b"a,b", 3),
        (b"\r\n\na,b\r\n1,2", b"a,b", 6),
        (b"a,b\r1,2\r", b"a,b", 3),
        (b"\r\n", b"", 2),
        (b"", b"", 0),
    ]:
        assert header_line(value) == (header, begin)


def test_a_quote_that_does_not_close_for_a_thousand_lines_costs_its_own_line():
    text = b'a,"b' + b"\nc,d" * (MAX_LINES + 1) + b'"\n'
    rows = rows_of(text, 2)
    assert rows.state[0] == UNCLOSED
    assert rows.end[0] == 4
    assert (rows.state[1:] == WHOLE).all()
    assert rows_of(b'a,"b' + b"\nc" * MAX_LINES + b'"\n', 2).state.tolist() == [WHOLE]
