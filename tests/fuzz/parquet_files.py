"""Parquet and Arrow files as sources: rows of odd types, damaged footers and pages; every row accounted for."""

import io
import tempfile
from pathlib import Path
from random import Random

import pyarrow as pa
from pyarrow import parquet

from connectors import SourceFailed, UnusableSource
from connectors.files.source import FileSource
from stream_engine.formats.arrow_events import Decoder
from stream_engine.formats.options import EventOptions
from tests.fuzz.arrow_messages import OPTIONS, some_table
from tests.fuzz.mutations import flipped, kept_case
from tests.fuzz.reading import alike, chance, seen

TRUSTED = False


def make(rng: Random) -> bytes:
    case = kept_case(rng, "parquet")
    while case is None:
        out, table = io.BytesIO(), some_table(rng)
        try:
            if rng.random() < 0.3:
                with pa.ipc.new_file(out, table.schema) as writer:
                    writer.write_table(table, max_chunksize=2)
            else:
                packing = rng.choice(("none", "snappy", "zstd", "gzip"))
                parquet.write_table(table, out, row_group_size=2, compression=packing, store_schema=rng.random() < 0.5)
        except pa.ArrowException:  # what Parquet does not hold
            continue
        case = out.getvalue()
        if rng.random() < 0.3:
            return case
    return flipped(rng, case, 3)


def check(data: bytes) -> str:
    options = chance(data).choice(OPTIONS)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / ("x.arrow" if data.startswith(b"ARROW1") else "x.parquet")
        path.write_bytes(data)
        return _read(path, options)


def _read(path: Path, options: EventOptions) -> str:
    rows, became = 0, "read"
    try:
        source = FileSource(str(path), {})
    except UnusableSource:
        return "unusable"
    try:
        while not source.finished():
            for record in source.poll(0):
                done = Decoder(options)(record.value)
                alike(done, Decoder(options, fast=False)(record.value))
                assert record.offset == rows and record.next_offset == rows + record.value.num_rows
                rows = record.next_offset
                whole = done.rejected and done.rejected[0].message.startswith("not a readable Arrow stream")
                assert whole or seen(done) == record.value.num_rows
    except SourceFailed as error:
        assert "\n" not in str(error)
        became = "failed"
    finally:
        source.close()
    return became
