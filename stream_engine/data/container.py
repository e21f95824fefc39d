"""The one byte layout of everything the engine publishes: a JSON header, plain little-endian arrays, a SHA-256.

No pickle, no compression, arrays aligned to 64 bytes so that a reader can map them instead of copying. The layout is
drawn in DESIGN.md, "Snapshot byte format". Equal contents give equal bytes. O(bytes); hashing is most of it.
"""

import hashlib
import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"cmpstrm\n"
VERSION = 1
ALIGN = 64
_FIXED = 24  # magic, version, reserved, header length
_DIGEST = 32
_DTYPES = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"])


class Corrupt(ValueError):
    """The bytes are not a whole, unchanged container of a version that this engine reads. One line says which."""


class NewerVersion(Corrupt):
    """The file was written by a newer engine; it is whole, and to be left alone."""


def encode(kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> tuple[list[memoryview], str]:
    """`(chunks, digest)`: what to write, in order, and the SHA-256 (hex) that its last 32 bytes are.

    >>> chunks, digest = encode("demo", {"n": 2}, {"x": np.arange(2)})
    >>> kind, meta, arrays, again = decode(b"".join(chunks))
    >>> kind, meta, arrays["x"].tolist(), digest == again
    ('demo', {'n': 2}, [0, 1], True)
    """
    table: list[dict[str, Any]] = []
    data: list[memoryview] = []
    begin = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name]).reshape(np.shape(arrays[name]))  # keeps 0-d
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}; a container holds {', '.join(sorted(_DTYPES))}")
        table.append(
            {"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "at": begin, "bytes": array.nbytes}
        )
        padding = -array.nbytes % ALIGN
        data += [array.reshape(-1).view(np.uint8).data, memoryview(bytes(padding))]
        begin += array.nbytes + padding
    header = json.dumps(
        {"kind": kind, "meta": meta, "arrays": table},
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    ).encode()
    head = MAGIC + VERSION.to_bytes(4, "little") + bytes(4) + len(header).to_bytes(8, "little") + header
    chunks = [memoryview(head + bytes(-len(head) % ALIGN)), *data]
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return [*chunks, memoryview(digest.digest())], digest.hexdigest()


def decode(buffer: bytes | memoryview | mmap.mmap) -> tuple[str, dict[str, Any], dict[str, np.ndarray], str]:
    """`(kind, meta, arrays, digest)`; arrays are read-only views of `buffer`. Raises `Corrupt` or `NewerVersion`."""
    view = memoryview(buffer)
    if len(view) < _FIXED + _DIGEST or view[:8] != MAGIC:
        raise Corrupt(f"not a stream-engine file: {len(view)} bytes, starts with {bytes(view[:8])!r}")
    version = int.from_bytes(view[8:12], "little")
    if version > VERSION:
        raise NewerVersion(f"format version {version}, this engine reads {VERSION}")
    digest = hashlib.sha256(view[:-_DIGEST])
    if digest.digest() != view[-_DIGEST:]:
        raise Corrupt(f"checksum differs over {len(view)} bytes: damaged or cut short")
    size = int.from_bytes(view[16:24], "little")
    header = json.loads(bytes(view[_FIXED : _FIXED + size]))
    body = view[_FIXED + size + (-(_FIXED + size) % ALIGN) : -_DIGEST].toreadonly()
    arrays = {}
    for entry in header["arrays"]:
        if entry["dtype"] not in _DTYPES:
            raise Corrupt(f"array {entry['name']!r} has dtype {entry['dtype']!r}")
        raw = body[entry["at"] : entry["at"] + entry["bytes"]]
        arrays[entry["name"]] = np.frombuffer(raw, entry["dtype"]).reshape(entry["shape"])
    return header["kind"], header["meta"], arrays, digest.hexdigest()


def load(path: str | Path) -> tuple[str, dict[str, Any], dict[str, np.ndarray], str]:
    """`decode` of a file whose arrays stay mapped: processes that read the same snapshot share its pages."""
    with open(path, "rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise Corrupt("the file is empty") from None
    return decode(mapped)
