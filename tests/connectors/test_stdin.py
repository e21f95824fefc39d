"""Standard input: from memory, from a pipe that is silent, cut short."""

import io
import os
import threading
import time

import pyarrow as pa
import pytest

from connectors import Position, UnusableSource
from connectors.files.stdin import StdinSource
from tests.support.read_sources import TABLE, drain, failed, ipc


def test_standard_input_from_memory_goes_on_from_its_position():
    text = StdinSource("-", {"-": Position(100)}, stream=io.BytesIO(b"1\n2"), block_bytes=2)
    assert [(r.partition, r.value, r.offset, r.next_offset) for r in drain(text)] == [
        ("-", b"1\n", 100, 102),
        ("-", b"2", 102, 103),
    ]
    (record,) = drain(StdinSource("-", {}, format="csv", stream=io.BytesIO(b"a,b\n1,2\n")))
    assert (record.header, record.value, record.offset, record.format) == (b"a,b\n", b"1,2\n", 4, "csv")
    batches = drain(StdinSource("-", {"-": Position(7)}, format="arrow", stream=io.BytesIO(ipc(pa.ipc.new_stream))))
    assert [(r.offset, r.next_offset, r.unit) for r in batches] == [(7, 11, "row"), (11, 15, "row"), (15, 17, "row")]
    assert [row for r in batches for row in r.value.to_pylist()] == TABLE.to_pylist()
    with pytest.raises(UnusableSource, match="json, csv, arrow.*'parquet'"):
        StdinSource("-", {}, format="parquet")
    cut = io.BytesIO(ipc(pa.ipc.new_stream)[:-100])
    records, message = failed(StdinSource("-", {}, format="arrow", stream=cut))
    assert len(records) == 2 and "standard input" in message and "8 rows" in message, message


@pytest.mark.parametrize("format", ["json", "arrow"])
def test_a_silent_pipe_does_not_hold_poll(format):
    data = b"1\n2\n3" if format == "json" else ipc(pa.ipc.new_stream)
    read, write = os.pipe()
    with open(read, "rb") as stream, open(write, "wb", buffering=0) as writer:
        source = StdinSource("-", {}, format=format, stream=stream)
        started = time.monotonic()
        assert source.poll(0.1) == [] and not source.finished() and time.monotonic() - started < 60
        writer.write(data[:4])
        first = source.poll(0.1)
        assert [r.value for r in first] == ([b"1\n2\n"] if format == "json" else [])
        writer.write(data[4:])
        assert source.poll(0.2 if format == "json" else 5.0) == [] or format == "arrow"
        threading.Timer(0.05, writer.close).start()
        rest = drain(source)
        assert [r.value for r in rest] == [b"3"] or (format == "arrow" and rest[-1].next_offset == 10)
