"""Standard input: from memory, from a pipe that is silent."""

import io
import os
import threading
import time

import pytest

from connectors import Position, UnusableSource
from connectors.files.stdin import StdinSource
from tests.support.read_sources import drain


def test_standard_input_from_memory_goes_on_from_its_position():
    text = StdinSource("-", {"-": Position(100)}, stream=io.BytesIO(b"1\n2"), block_bytes=2)
    assert [(r.partition, r.value, r.offset, r.next_offset) for r in drain(text)] == [
        ("-", b"1\n", 100, 102),
        ("-", b"2", 102, 103),
    ]
    (record,) = drain(StdinSource("-", {}, format="csv", stream=io.BytesIO(b"a,b\n1,2\n")))
    assert (record.header, record.value, record.offset, record.format) == (b"a,b\n", b"1,2\n", 4, "csv")
    for format in ("arrow", "parquet"):
        with pytest.raises(UnusableSource, match=f"json or csv.*'{format}'"):
            StdinSource("-", {}, format=format)


def test_a_silent_pipe_does_not_hold_poll():
    read, write = os.pipe()
    with open(read, "rb") as stream, open(write, "wb", buffering=0) as writer:
        source = StdinSource("-", {}, stream=stream)
        started = time.monotonic()
        assert source.poll(0.1) == []
        assert not source.finished()
        assert time.monotonic() - started < 60
        writer.write(b"1\n2\n")
        assert [r.value for r in source.poll(0.1)] == [b"1\n2\n"]
        writer.write(b"3")
        assert source.poll(0.2) == []
        threading.Timer(0.05, writer.close).start()
        assert [r.value for r in drain(source)] == [b"3"]
