"""Avro as JSON: the events of messages and of object container files as JSON text, which the decoder of JSON reads.

A record becomes one JSON object; a time a text of RFC 3339, a decimal a number, bytes base64; NaN and infinity are
kept (`json_floats`). Decoding is fastavro's
(the extra [avro]); checked here is what a hostile schema or file could do with it: a type that contains itself, items
without bytes (a billion of them fit into ten bytes), blocks that are small only while they are packed.
"""

import bz2
import io
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from connectors import UnusableSource
from connectors.files.streams import ByteStream
from stream_engine.data.json_floats import writable

MAX_VALUES = 10_000  # that one record may hold, lists apart
MAX_UNPACKED_BYTES = 1 << 28  # bytes of a block of a file
MAGIC, SYNC_BYTES = b"Obj\x01", 16
META = {"type": "map", "values": "bytes"}  # the header of a file
_ENCODE = msgspec.json.Encoder(decimal_format="number", enc_hook=str).encode
_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


class BadAvro(ValueError):
    """A schema or a value that cannot be read; one line."""


def library(what: str) -> Any:
    """fastavro. Raises `UnusableSource` where it is not installed."""
    try:
        import fastavro
    except ImportError:
        raise UnusableSource(f"{what}: reading Avro needs fastavro: pip install fastavro") from None
    return fastavro


class Schema:
    """A parsed schema whose values can be read in bounded time and memory.

    Parameters
    ----------
    text : str
        The schema as JSON.
    named : mapping of str to schema, optional
        Types that it refers to, by full name.

    Raises
    ------
    BadAvro
        If it is no schema, or one that is not read.
    """

    def __init__(self, text: str | bytes, named: Mapping[str, Any] | None = None):
        fastavro = library("schema")
        self.named = dict(named or {})
        try:
            self.parsed = fastavro.parse_schema(json.loads(text), self.named)
            _values(self.parsed, self.named, {})
            types = json.dumps([self.parsed, self.named], default=str)
            self._has_floats = '"float"' in types or '"double"' in types
        except BadAvro:
            raise
        except Exception as error:  # fastavro's, and those of JSON that is no schema
            raise BadAvro(f"not an Avro schema that can be read: {in_a_line(error)}") from None
        self._read = fastavro.schemaless_reader

    def as_json(self, value: bytes, reader: "Schema | None" = None) -> bytes:
        """One encoded value as JSON text; with `reader` as this schema has it: defaults filled in, fields by alias.

        Raises
        ------
        BadAvro
            If the bytes are not a value of the schema, or cannot be read as `reader` says.
        """
        file = io.BytesIO(value)
        text = self.next_as_json(file, reader)
        if surplus := len(value) - file.tell():
            raise BadAvro(f"{surplus:,} bytes are left behind the value; was it written with another schema?")
        return text

    def next_as_json(self, file: io.BytesIO, reader: "Schema | None" = None) -> bytes:
        """The same for the next value of several."""
        try:
            value = self._read(file, self.parsed, reader and reader.parsed)
            floats = self._has_floats or (reader is not None and reader._has_floats)
            return _ENCODE(writable(value) if floats else value)
        except MemoryError:
            raise
        except Exception as error:  # whatever damaged bytes make of it
            raise BadAvro(f"not a value of its schema: {in_a_line(error)}") from None


def in_a_line(error: Exception) -> str:
    """Type and text of an exception."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300].removesuffix(": ")


def _values(schema: Any, named: Mapping[str, Any], counts: dict[str, tuple[int, bool]]) -> tuple[int, bool]:
    """How many values one value of a schema holds, lists apart, and whether it takes bytes. Raises `BadAvro`."""
    if isinstance(schema, list):
        return max((_values(branch, named, counts)[0] for branch in schema), default=1), True
    if isinstance(schema, str):
        return (1, schema != "null") if schema in _PRIMITIVES else _values(named[schema], named, counts)
    kind = schema["type"]
    if kind in ("record", "error"):
        name = schema["name"]
        if name in counts:
            if not counts[name][0]:
                raise BadAvro(f"its type {name} contains itself")
            return counts[name]
        counts[name] = 0, True  # as long as its fields are looked at
        fields = [_values(field["type"], named, counts) for field in schema["fields"]]
        counts[name] = 1 + sum(number for number, _ in fields), any(takes for _, takes in fields)
        if counts[name][0] > MAX_VALUES:
            raise BadAvro(f"its type {name} has more than {MAX_VALUES:,} fields, those inside it included")
        return counts[name]
    if kind == "array":
        number, takes_bytes = _values(schema["items"], named, counts)
        if not takes_bytes:
            raise BadAvro("it has an array of items without bytes")
        return number, True
    if kind == "map":
        return _values(schema["values"], named, counts)[0], True
    if kind in ("enum", "fixed"):
        return 1, kind == "enum" or schema["size"] > 0
    return _values(kind, named, counts)


# ---- object container files


class Container(ByteStream):
    """The records of an Avro object container file as lines of JSON, one a record."""

    def __init__(self, path: str):
        library(path)
        self._size = os.path.getsize(path)
        self._file = open(path, "rb")  # noqa: SIM115 -- closed with the stream
        self._rows = 0
        try:
            self._schema, self._unpack, self._sync = self._header()
        except BadAvro as error:
            self._file.close()
            raise OSError(str(error)) from None
        except BaseException:
            self._file.close()
            raise

    def _header(self) -> tuple[Schema, Callable[[bytes], bytes], bytes]:
        if self._file.read(len(MAGIC)) != MAGIC:
            raise BadAvro("not an Avro object container file, which begins with Obj")
        fastavro = library("header")
        try:
            meta = fastavro.schemaless_reader(self._file, META, None)
            codec = meta.get("avro.codec", b"null").decode()
            schema = meta["avro.schema"]
        except Exception as error:  # whatever damaged bytes make of it
            raise BadAvro(f"not an Avro file: its header cannot be read ({in_a_line(error)})") from None
        if codec not in CODECS:
            raise BadAvro(f"its codec is {codec!r}; expected one of {', '.join(CODECS)}")
        return Schema(schema), CODECS[codec], self._file.read(SYNC_BYTES)

    def read(self) -> bytes:
        """The next block as lines; empty at the end."""
        while not self.damage and self._file.tell() < self._size:
            try:
                lines = b"".join(self._block())
            except (BadAvro, EOFError, OverflowError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                self.damage = f"the block behind row {self._rows:,} is damaged or cut ({in_a_line(error)})"
                break
            self.trusted += len(lines)
            self._rows += lines.count(b"\n")
            if lines:
                return lines
        return b""

    def _block(self) -> Iterator[bytes]:
        rows, size = self._long(), self._long()
        if not 0 <= size <= self._size:
            raise BadAvro(f"it says that it holds {size:,} bytes")
        packed = self._file.read(size)
        if len(packed) < size or self._file.read(SYNC_BYTES) != self._sync:
            raise BadAvro("it does not end where it says")
        unpacked = self._unpack(packed)
        if rows > len(unpacked):
            raise BadAvro(f"it says that it holds {rows:,} rows")
        values = io.BytesIO(unpacked)
        for _ in range(rows):
            yield self._schema.next_as_json(values) + b"\n"
        if values.tell() != len(unpacked):
            raise BadAvro("bytes are left behind its last row")

    def _long(self) -> int:
        """A zigzag number of at most ten bytes."""
        number = 0
        for shift in range(0, 70, 7):
            byte = self._file.read(1)
            if not byte:
                raise EOFError("the file ends")
            number |= (byte[0] & 127) << shift
            if byte[0] < 128:
                return (number >> 1) ^ -(number & 1)
        raise BadAvro("a number of more than ten bytes")

    def unread(self) -> int:
        """Bytes of the file behind the last block: how many rows they hold is not known."""
        return self._size - self._file.tell()

    def close(self) -> None:
        self._file.close()


def _bounded(decompress: Callable[[bytes, int], bytes]) -> Callable[[bytes], bytes]:
    """What makes at most `MAX_UNPACKED_BYTES` bytes of a block."""

    def unpack(packed: bytes) -> bytes:
        unpacked = decompress(packed, MAX_UNPACKED_BYTES + 1)
        if len(unpacked) > MAX_UNPACKED_BYTES:
            raise BadAvro(f"it holds more than {MAX_UNPACKED_BYTES:,} bytes: write the file in smaller blocks")
        return unpacked

    return unpack


def _snappy(packed: bytes, most: int) -> bytes:
    """Behind the block stand four bytes of its checksum; before it how much it holds, seven bits a byte."""
    import pyarrow

    size = 0
    for place, byte in enumerate(packed[:5]):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            break
    if size >= most:
        return bytes(most)
    unpacked: bytes = pyarrow.decompress(packed[:-4], size, "snappy", asbytes=True)
    if zlib.crc32(unpacked) != int.from_bytes(packed[-4:], "big"):
        raise BadAvro("its checksum is another one")
    return unpacked


def _zstd(packed: bytes, most: int) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            return reader.read(most)
    except zstandard.ZstdError as error:
        raise BadAvro(in_a_line(error)) from None


CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda packed: packed,
    "deflate": _bounded(lambda packed, most: zlib.decompressobj(-15).decompress(packed, most)),
    "bzip2": _bounded(lambda packed, most: bz2.BZ2Decompressor().decompress(packed, most)),
    "xz": _bounded(lambda packed, most: lzma.LZMADecompressor().decompress(packed, most)),
    "snappy": _bounded(_snappy),
    "zstandard": _bounded(_zstd),
}
