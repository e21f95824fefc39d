"""Avro files as JSON lines: every codec, every position, damage, and what a hostile schema or file could do."""

import io
import json
import zlib
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest

from connectors import Position, SourceFailed, open_source, records_of
from connectors.avro import CODECS, MAX_UNPACKED_BYTES, META, BadAvro, Schema
from tests.support.read_sources import drain

EVENT = {
    "type": "record",
    "name": "study.Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "who", "type": ["null", "string"], "default": None},
    ],
}
ROWS = [{"id": i, "name": f"öbject {i}", "who": None if i % 3 else "w"} for i in range(1000)]
SYNC = bytes(range(16))


def long(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def packed(codec: str, block: bytes) -> bytes:
    """A block as writers pack it; independent of the reader."""
    import bz2
    import lzma

    import pyarrow
    import zstandard

    if codec == "snappy":
        return pyarrow.compress(block, "snappy", asbytes=True) + zlib.crc32(block).to_bytes(4, "big")
    deflate = zlib.compressobj(wbits=-15)
    return {
        "null": lambda: block,
        "deflate": lambda: deflate.compress(block) + deflate.flush(),
        "bzip2": lambda: bz2.compress(block),
        "xz": lambda: lzma.compress(block),
        "zstandard": lambda: zstandard.ZstdCompressor().compress(block),
    }[codec]()


def container(blocks, schema=EVENT, codec="null") -> bytes:
    """A file of blocks (rows, bytes)."""
    out = io.BytesIO()
    out.write(b"Obj\x01")
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    fastavro.schemaless_writer(out, META, meta)
    out.write(SYNC)
    for rows, block in blocks:
        content = packed(codec, block)
        out.write(long(rows) + long(len(content)) + content + SYNC)
    return out.getvalue()


def encoded(rows, schema=EVENT) -> bytes:
    out = io.BytesIO()
    for row in rows:
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def blocks_of(rows, size=100):
    return [(len(rows[at : at + size]), encoded(rows[at : at + size])) for at in range(0, len(rows), size)]


def lines(path, at=None, **options):
    return drain(open_source(str(path), at or {}, **options))


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_the_rows(codec, tmp_path):
    path = tmp_path / "events.avro"
    path.write_bytes(container(blocks_of(ROWS), codec=codec))
    (record,) = lines(path)
    assert [json.loads(line) for line in record.value.splitlines()] == ROWS and record.format == "json"


def test_a_file_of_the_library_is_read_and_resumed_after_every_record(tmp_path):
    path = tmp_path / "events.bin"
    with open(path, "wb") as file:
        fastavro.writer(file, EVENT, ROWS, codec="deflate", sync_interval=2000)
    whole = lines(path, format="avro", block_bytes=3000)
    assert [json.loads(line) for r in whole for line in r.value.splitlines()] == ROWS and len(whole) > 5
    for number, record in enumerate(whole, 1):
        at = {record.partition: Position(record.next_offset, record.mark)}
        assert lines(path, at, format="avro", block_bytes=3000) == whole[number:]
    with open(path, "wb") as file:
        fastavro.writer(file, EVENT, [{**ROWS[0], "name": "other"}, *ROWS[1:]], codec="deflate", sync_interval=2000)
    with pytest.raises(SourceFailed, match="replaced"):
        lines(path, at, format="avro", block_bytes=3000)


def test_values_become_what_json_has(tmp_path):
    kinds = {
        "when": {"type": "long", "logicalType": "timestamp-millis"},
        "day": {"type": "int", "logicalType": "date"},
        "sure": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        "session": {"type": "string", "logicalType": "uuid"},
        "answer": {"type": "enum", "name": "Answer", "symbols": ["left", "right"]},
        "list": {"type": "array", "items": "string"},
        "more": {"type": "map", "values": ["int", "double"]},
    }
    schema = {"type": "record", "name": "E", "fields": [{"name": n, "type": kind} for n, kind in kinds.items()]}
    row = {
        "when": datetime(2026, 11, 1, 12, tzinfo=UTC),
        "day": date(2026, 11, 1),
        "sure": Decimal("0.75"),
        "session": UUID(int=7),
        "answer": "left",
        "list": ["a", "b"],
        "more": {"rt": 0.5, "trial": 3},
    }
    path = tmp_path / "e.avro"
    path.write_bytes(container([(1, encoded([row], schema))], schema))
    assert json.loads(lines(path)[0].value) == {
        "when": "2026-11-01T12:00:00Z",
        "day": "2026-11-01",
        "sure": 0.75,
        "session": "00000000-0000-0000-0000-000000000007",
        "answer": "left",
        "list": ["a", "b"],
        "more": {"rt": 0.5, "trial": 3},
    }


def test_a_file_that_was_cut_gives_its_whole_blocks_and_goes_on_once_it_is_whole(tmp_path):
    path, content = tmp_path / "e.avro", container(blocks_of(ROWS))
    path.write_bytes(content[: len(content) // 2])
    found = []
    with (
        closing(open_source(str(path), {})) as source,
        pytest.raises(SourceFailed, match=r"row \d00 is damaged or cut"),
    ):
        while True:
            found += source.poll(1.0)
    last = found[-1]
    path.write_bytes(content)
    found += lines(path, {last.partition: Position(last.next_offset, last.mark)})
    assert [json.loads(line) for r in found for line in r.value.splitlines()] == ROWS


BLOCK = encoded(ROWS[:5])


@pytest.mark.parametrize(
    "content, said",
    [
        (lambda: b"", "not an Avro"),
        (lambda: container([], codec="null").replace(b"null", b"lzop"), "'lzop'; expected one of null, deflate"),
        (lambda: container([(5, BLOCK)]).replace(SYNC, bytes(16), 1), "end where it says"),
        (lambda: container([(6, BLOCK)]), "not a value of its schema"),
        (lambda: container([(4, BLOCK)]), "bytes are left"),
        (lambda: container([(10**15, BLOCK)]), "1,000,000,000,000,000 rows"),
        (lambda: container([(5, BLOCK)])[:-20] + b"\xff" * 20, "end where it says"),
        (lambda: container([])[:-1] + b"\0" + b"\xff" * 12, "more than ten bytes"),
        (lambda: container([(1, bytes(MAX_UNPACKED_BYTES + 1))], "bytes", codec="deflate"), "smaller blocks"),
        (lambda: container([(1, b"x")], "string", codec="zstandard")[:-19] + b"???" + SYNC, "damaged"),
    ],
    ids=range(10),
)
def test_a_file_that_is_none_or_damaged_is_told_in_one_line(content, said, tmp_path):
    path = tmp_path / "e.avro"
    path.write_bytes(content())
    with pytest.raises(SourceFailed, match=said) as failure:
        list(records_of([str(path)]))
    assert "\n" not in str(failure.value)


def fields(*types):
    return [{"name": f"f{number}", "type": each} for number, each in enumerate(types)]


def doubling(depth):
    """A type of 2 ** depth values that takes no bytes."""
    inner = {"type": "record", "name": "T0", "fields": fields("null", "null")}
    for number in range(1, depth):
        inner = {"type": "record", "name": f"T{number}", "fields": fields(inner, f"T{number - 1}")}
    return inner


@pytest.mark.parametrize(
    "schema, said",
    [
        ({"type": "record", "name": "List", "fields": fields("string", ["null", "List"])}, "List contains itself"),
        ({"type": "array", "items": "null"}, "without bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, "without bytes"),
        (doubling(40), "more than 10,000 fields"),
        ("strong", "not an Avro schema"),
        ("strong" * 100, "not an Avro schema"),
    ],
    ids=range(6),
)
def test_a_schema_that_could_exhaust_the_process_is_refused(schema, said):
    with pytest.raises(BadAvro, match=said) as failure:
        Schema(json.dumps(schema))
    assert len(str(failure.value)) < 400


def test_types_that_are_named_twice_and_lists_of_records_are_read():
    pair = {"type": "record", "name": "Pair", "fields": fields("int", {"type": "enum", "name": "K", "symbols": ["x"]})}
    schema = {"type": "record", "name": "E", "fields": fields(pair, "Pair", {"type": "array", "items": "Pair"})}
    value = {"f0": 1, "f1": "x"}, {"f0": 2, "f1": "x"}
    row = {"f0": {"f0": 1, "f1": "x"}, "f1": {"f0": 2, "f1": "x"}, "f2": list(value)}
    assert json.loads(Schema(json.dumps(schema)).as_json(encoded([row], schema))) == row


def test_any_bytes_give_a_value_or_one_line():
    schema = Schema(json.dumps(EVENT))
    good = encoded([ROWS[0]])
    for cut in range(len(good)):
        for value in (good[:cut], good[:cut] + b"\xff" + good[cut + 1 :], good + good[:cut]):
            try:
                json.loads(schema.as_json(value))
            except BadAvro as error:
                assert "\n" not in str(error)
    with pytest.raises(BadAvro, match="left behind"):
        schema.as_json(good + b"\0")


def test_a_reader_has_its_own_fields():
    reader = {**EVENT, "fields": [EVENT["fields"][0], {"name": "object", "type": "string", "aliases": ["name"]}]}
    reader["fields"].append({"name": "phase", "type": "string", "default": "main"})
    read = Schema(json.dumps(EVENT)).as_json(encoded([ROWS[0]]), Schema(json.dumps(reader)))
    assert json.loads(read) == {"id": 0, "object": "öbject 0", "phase": "main"}
