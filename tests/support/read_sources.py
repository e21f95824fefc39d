"""Reading sources to their end or to their failure, and small files to read."""

import io
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from connectors import SourceFailed


def drain(source):
    records = []
    with closing(source):
        while not source.finished():
            records += source.poll(0.5)
    return records


def failed(source):
    """The records before the failure, and what it says; it says it again."""
    records = []
    with pytest.raises(SourceFailed) as first:
        while True:
            records += source.poll(0.5)
    with pytest.raises(SourceFailed) as again:
        source.poll(0)
    assert str(first.value) == str(again.value) and "\n" not in str(first.value)
    source.close()
    return records, str(first.value)


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


LINES = b"".join(b'{"anchor": "%d"}\n' % (i * i) for i in range(40))
TABLE = pa.table(
    {"anchor": [f"a{i}" for i in range(10)], "near": pa.array([str(i) for i in range(10)]).dictionary_encode()}
)


def ipc(new):
    out = io.BytesIO()
    with new(out, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=4)
    return out.getvalue()
