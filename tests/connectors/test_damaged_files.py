"""Damage at every byte: whole items before it, one line that says what is wrong, and nothing lost when it is mended."""

import gzip
import io
import re

import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors import Position, SourceFailed
from connectors.files.source import FileSource
from tests.support.read_sources import LINES, TABLE, drain, failed, frame, ipc, written

PACKED = {
    "gz": gzip.compress(LINES[:300], mtime=0) + gzip.compress(LINES[300:], mtime=0),
    "zst": frame(LINES[:300]) + frame(LINES[300:]),
}


@pytest.mark.parametrize("suffix", PACKED)
def test_cut_at_every_byte_reads_the_whole_lines_before_and_goes_on_when_restored(suffix, tmp_path):
    path, whole, reached = tmp_path / f"x.jsonl.{suffix}", PACKED[suffix], set()
    ends = {len(whole)} | {
        i
        for i in range(len(whole))
        if whole[i:] == whole[len(whole) - len(whole[i:]) :] and i and whole[i : i + 4] == whole[:4]
    }
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        if cut in ends:  # between two parts: nothing is missing from what is there
            records = drain(FileSource(str(path), {}))
        else:
            records, message = failed(FileSource(str(path), {}))
            done = records[-1].next_offset if records else 0
            assert f"after {cut:,} compressed bytes" in message
            assert f"decompressed byte {done:,}" in message
        read = b"".join(record.value for record in records)
        assert LINES.startswith(read) and (read.endswith(b"\n") or not read or cut in ends)
        reached.add(len(read))
        path.write_bytes(whole)
        positions = {str(path): Position(records[-1].next_offset, records[-1].mark)} if records else {}
        rest = drain(FileSource(str(path), positions))
        if read.endswith(b"\n") or not read:
            assert read + b"".join(record.value for record in rest) == LINES
    assert len(reached) > (10 if suffix == "gz" else 1)


@pytest.mark.parametrize("suffix", PACKED)
def test_a_flipped_bit_does_not_become_another_line(suffix, tmp_path):
    """What a checksum does not vouch for is not delivered: the parts here are smaller than a block. The exception is a
    bit after which the data seem to go on beyond their end: that cannot be told from a cut."""
    path, noticed, kept, as_cut = tmp_path / f"x.jsonl.{suffix}", 0, 0, 0
    for i in range(len(PACKED[suffix])):
        damaged = bytearray(PACKED[suffix])
        damaged[i] ^= 1 << i % 8
        path.write_bytes(damaged)
        source, read = FileSource(str(path), {}), b""
        try:
            while not source.finished():
                read += b"".join(record.value for record in source.poll(0))
            assert read == LINES  # a bit that means nothing: a time, an operating system
        except SourceFailed as error:
            noticed += 1
            kept += len(read) > 200
            is_cut = len(re.findall("byte [0-9]", str(error))) < 3  # damage has a beginning and an end
            as_cut += is_cut
            if not is_cut:
                assert LINES.startswith(read) and read.endswith(b"\n" if read else b"")
        finally:
            source.close()
    assert noticed > len(PACKED[suffix]) * 0.8
    assert kept > 10
    assert as_cut < 0.1 * noticed


def test_zero_padding_after_gzip_is_no_damage_but_anything_else_is(tmp_path):
    path = written(tmp_path / "x.jsonl.gz", PACKED["gz"] + bytes(10_000))
    assert b"".join(r.value for r in drain(FileSource(path, {}))) == LINES
    records, message = failed(FileSource(written(tmp_path / "x.jsonl.gz", PACKED["gz"] + b"\0\0garbage"), {}))
    assert b"".join(r.value for r in records) == LINES and "incorrect header check" in message
    records, message = failed(FileSource(written(tmp_path / "e.jsonl.gz", b""), {}))
    assert records == [] and "0" in message


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_cut_anywhere_gives_its_whole_batches(new, tmp_path):
    whole, path, seen = ipc(new), tmp_path / "x.arrow", set()
    for cut in range(0, len(whole), 3):
        path.write_bytes(whole[:cut])
        source, records = FileSource(str(path), {}), []
        try:
            while not source.finished():
                records += source.poll(0)
            assert new is pa.ipc.new_stream and "end mark" in source.notices()[0]
        except SourceFailed as error:
            assert "x." in str(error) and "\n" not in str(error)
        source.close()
        rows = [row for record in records for row in record.value.to_pylist()]
        assert rows == TABLE.to_pylist()[: len(rows)]
        seen.add(len(rows))
        path.write_bytes(whole)
        if records:
            rest = drain(FileSource(str(path), {str(path): Position(records[-1].next_offset, records[-1].mark)}))
            assert rows + [row for record in rest for row in record.value.to_pylist()] == TABLE.to_pylist()
    assert seen == {0, 4, 8, 10}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_column_name_that_is_no_text_fails_in_one_line(tmp_path, suffix):
    out, table = io.BytesIO(), pa.table({"anchor": ["a"], "odd name": ["b"]})
    if suffix == "parquet":
        parquet.write_table(table, out, store_schema=False)
    else:
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    path = written(tmp_path / f"x.{suffix}", out.getvalue().replace(b"odd name", b"odd\xff\xfeame"))
    records, message = failed(FileSource(path, {}))
    assert records == [] and "UTF-8 (b'odd\\xff\\xfeame')" in message


def test_a_parquet_file_with_a_damaged_row_group_gives_those_before(tmp_path):
    out = io.BytesIO()
    parquet.write_table(TABLE, out, row_group_size=4, compression="gzip", use_dictionary=False)
    data = bytearray(out.getvalue())
    start = parquet.ParquetFile(out).metadata.row_group(1).column(0).data_page_offset
    data[start : start + 40] = bytes(40)
    records, message = failed(FileSource(written(tmp_path / "x.parquet", bytes(data)), {}))
    assert [r.next_offset for r in records] == [4] and "4 rows" in message
