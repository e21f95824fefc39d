"""Files of the engine's own format with a right checksum and wrong contents: `crafted(valid)` yields some thousand.

Every array is put out of range, negative, unsorted, doubled, of another shape and type, emptied; every field of the
header is left out, of another type, huge; the fixed part and the layout are bent; bytes are flipped. Nothing here uses
the reader that is tested: the format is taken apart and put together again by hand.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from stream_engine.data import container

MAGIC, ALIGN = b"cmpstrm\n", 64
VALUES: tuple[Any, ...] = (None, True, -1, 0, 1.5, 2**62, 2**70, -(2**70), "", "x", [], {}, [[]], {"x": -1})
DTYPES = ("|b1", "|i1", "|u1", "<i4", "<i8", "<u8", "<f8")

Make = Callable[[], bytes]
Parts = tuple[dict[str, Any], dict[str, np.ndarray]]


def opened(data: bytes) -> Parts:
    """Header and arrays of a valid file without a signature."""
    size = int.from_bytes(data[16:24], "little")
    header = json.loads(data[24 : 24 + size])
    body = data[-(-(24 + size) // ALIGN) * ALIGN : -32]
    arrays = {
        each["name"]: np.frombuffer(body[each["at"] : each["at"] + each["bytes"]], each["dtype"]).reshape(each["shape"])
        for each in header["arrays"]
    }
    return header, arrays


def sealed(header: bytes, body: bytes, version: int = 1, reserved: bytes = bytes(4), size: int | None = None) -> bytes:
    """A file of these parts, with the checksum that fits."""
    told = len(header) if size is None else size
    head = MAGIC + version.to_bytes(4, "little") + reserved + (told % 2**64).to_bytes(8, "little") + header
    whole = head + bytes(-len(head) % ALIGN) + body
    return whole + hashlib.sha256(MAGIC + (1).to_bytes(4, "little") + whole[12:]).digest()


def text(header: Any) -> bytes:
    """A header as an engine writes it; what JSON does not know is written all the same."""
    return json.dumps(header, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def put_together(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The file that holds these arrays under this header's kind and meta."""
    return b"".join(container.encode(header["kind"], header["meta"], arrays)[0])


def crafted(
    data: bytes, flips: int = 100, seed: int = 0, every: int = 1, first: int = 0
) -> Iterator[tuple[str, bytes]]:
    """(what is wrong, file), each from the same valid file and other than it. One of `every`, from the `first` on:
    making them costs more than reading them."""
    for what, make in islice(_crafted(data, flips, seed), first, None, every):
        if (made := make()) != data:
            yield what, made


def _crafted(data: bytes, flips: int, seed: int) -> Iterator[tuple[str, Make]]:
    header, arrays = opened(data)
    for name, array in arrays.items():
        for what, changed in changed_arrays(array):
            yield f"array {name}: {what}", partial(put_together, header, {**arrays, name: changed})
        without = {k: v for k, v in arrays.items() if k != name}
        yield f"array {name}: left out", partial(put_together, header, without)
    for extra in ("zzz", "adds3/zzz", "zzz/zzz", ""):
        yield f"array {extra!r} too many", partial(put_together, header, {**arrays, extra: np.arange(3)})
    yield from _fields(header, body_of(data))
    for what, made in (*_headers(header, body_of(data)), *_layouts(header, body_of(data))):
        yield what, partial(bytes, made)
    for number in range(flips):
        yield f"flip {number} of seed {seed}", partial(flipped, data, number, seed)


def body_of(data: bytes) -> bytes:
    """All arrays, padded."""
    size = int.from_bytes(data[16:24], "little")
    return data[-(-(24 + size) // ALIGN) * ALIGN : -32]


def changed_arrays(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The array, wrong in each way that an array can be wrong."""
    yield from _values(array)
    flat = array.reshape(-1)
    for dtype in DTYPES:
        if dtype != array.dtype.str:
            with np.errstate(invalid="ignore"):
                yield f"as {dtype}", array.astype(dtype)
    yield "empty", array[:0] if array.ndim else np.empty(0, array.dtype)
    yield "one axis more", array[..., None]
    yield "flat twice", np.concatenate([flat, flat])
    yield "no axis", np.array(flat[0] if len(flat) else 0, array.dtype)
    if array.ndim:
        yield (
            "one longer",
            np.concatenate([array, array[-1:] if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)]),
        )
        yield "one shorter", array[:-1]
        yield "backwards", array[::-1].copy()
        yield "first twice", np.concatenate([array[:1], array[:1], array[2:]])
        yield "rolled", np.roll(array, 1, axis=0)


def _values(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    kind, places = array.dtype.kind, sorted({0, array.size // 2, max(array.size - 1, 0)}) if array.size else []
    if kind == "f":
        bad: list[Any] = [np.nan, np.inf, -np.inf, -1.0, 1e300]
    elif kind in "iu":
        info = np.iinfo(array.dtype)
        bad = [info.max, info.max - 1, info.min, 255 if kind == "u" else -1, min(10**6, info.max), 0]
    else:
        return
    for value in bad:
        with np.errstate(over="ignore"):
            for place in places:
                changed = array.copy().reshape(-1)
                changed[place] = value
                yield f"{value} at {place}", changed.reshape(array.shape)
            yield f"all {value}", np.full_like(array, value)


def _paths(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Where every value of a header stands."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        if not (path == ("arrays",) and isinstance(key, int) and 2 <= key < len(value) - 1):
            yield from _paths(each, (*path, key))


def _fields(header: dict[str, Any], body: bytes) -> Iterator[tuple[str, Make]]:
    """Every field left out, of another type, huge."""
    for path in _paths(header):
        shown = ".".join(map(str, path))
        for value in VALUES:
            yield f"header {shown}: {value!r}", partial(_bent, header, body, path, value)
        yield f"header {shown}: left out", partial(_bent, header, body, path, None, drop=True)


def _bent(header: dict[str, Any], body: bytes, path: tuple, value: Any, drop: bool = False) -> bytes:
    return sealed(text(_with(header, path, value, drop)), body)


def _headers(header: dict[str, Any], body: bytes) -> Iterator[tuple[str, bytes]]:
    """What is no header of an engine, or none at all."""
    for value in (float("nan"), float("inf")):
        yield f"header: {value}", sealed(text(_with(header, ("meta", "sequence"), value)), body)
    whole = text(header)
    deep = b'{"meta":' + b"[" * 100_000 + b"]" * 100_000 + b"," + whole[1:]
    yield "header: a hundred thousand lists deep", sealed(deep, body)
    for depth in (33, 500, 990):
        nested = b'"meta":{"a":' + b'{"x":' * depth + b"1" + b"}" * depth + b","
        yield f"header: {depth} objects deep", sealed(whole.replace(b'"meta":{', nested, 1), body)
    yield "header: a key twice", sealed(b'{"kind":"x",' + whole[1:], body)
    yield "header: spaces", sealed(json.dumps(header, sort_keys=True).encode(), body)
    yield "header: not JSON", sealed(whole[:-1], body)
    yield "header: not UTF-8", sealed(whole.replace(b'"kind"', b'"k\xffnd"'), body)
    yield "header: a lone surrogate", sealed(whole.replace(b'"kind"', b'"k\\ud800nd"'), body)
    yield "header: a number of 5,000 digits", sealed(b'{"a":' + b"9" * 5000 + b"," + whole[1:], body)
    for other in (b"", b"null", b"[]", b"1", b'"x"'):
        yield f"header: {other!r}", sealed(other, body)


def _with(header: Any, path: tuple, value: Any, drop: bool = False) -> Any:
    changed = copy.deepcopy(header)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    if drop:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return changed


def _layouts(header: dict[str, Any], body: bytes) -> Iterator[tuple[str, bytes]]:
    """The fixed part, and where the arrays are said to be."""
    whole, table = text(header), header["arrays"]
    for version in (0, 2, 3, 2**32 - 1):
        yield f"version {version}", sealed(whole, body, version=version)
    yield "reserved", sealed(whole, body, reserved=b"\1\0\0\0")
    for size in (0, 1, len(whole) - 1, len(whole) + 1, len(whole) + ALIGN, 2**31, 2**63, 2**64 - 1):
        yield f"header of {size} bytes", sealed(whole, body, size=size)
    yield "bytes too many", sealed(whole, body + bytes(ALIGN))
    yield "a byte too many", sealed(whole, body + b"\0")
    yield "bytes too few", sealed(whole, body[:-ALIGN])
    yield "no bytes", sealed(whole, b"")
    yield "arrays the other way round", sealed(text({**header, "arrays": table[::-1]}), body)
    yield "an array twice", sealed(text({**header, "arrays": [*table, table[-1]]}), body)
    for key, value in (("at", 64), ("at", 1), ("bytes", 8), ("at", 2**40), ("bytes", 2**40)):
        for place in (0, len(table) // 2, len(table) - 1):
            if table[place][key] != value:
                changed = _with(header, ("arrays", place, key), value)
                yield f"array {place}: {key} = {value}", sealed(text(changed), body)
    for shape in ([2**31, 2**31, 2**31], [2**62, 4], [0, 2**62], [1] * 40, [-1, -8]):
        for place in (0, len(table) - 1):
            yield (
                f"array {place}: shape {shape[:3]}",
                sealed(text(_with(header, ("arrays", place, "shape"), shape)), body),
            )


def flipped(data: bytes, number: int, seed: int) -> bytes:
    """One to eight bytes changed anywhere, and the checksum made right again."""
    rng, changed = np.random.default_rng([seed, number]), bytearray(data[:-32])
    for place in rng.integers(len(changed), size=rng.integers(1, 9)).tolist():
        changed[place] = int(rng.integers(256))
    return bytes(changed) + hashlib.sha256(MAGIC + (1).to_bytes(4, "little") + bytes(changed[12:])).digest()
