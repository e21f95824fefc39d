"""JSON of contents as `json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)` writes it, piece by piece.

What JSON cannot say (infinities, not-a-number) is null in arrays.
An (n, n) array as text is gigabytes of Python objects at once; here it is one block of numbers at a time. O(block).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

BLOCK = 1 << 16  # numbers turned into text at a time


def of_value(value: Any) -> Iterator[bytes]:
    """A document of Python values.

    >>> b"".join(of_value({"a": [1]}))
    b'{\\n "a": [\\n  1\\n ]\\n}\\n'
    """
    yield json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def of_arrays(arrays: Mapping[str, np.ndarray]) -> Iterator[bytes]:
    """A document of arrays by name: the bytes of `of_value({name: array.tolist(), ...})`.

    >>> b"".join(of_arrays({"w": np.array([[0, 1], [1, 0]])})) == b"".join(of_value({"w": [[0, 1], [1, 0]]}))
    True
    >>> json.loads(b"".join(of_arrays({"x": np.array([0.5, np.nan, np.inf])})))
    {'x': [0.5, None, None]}
    """
    if not arrays:
        yield b"{}\n"
        return
    begin = "{"
    for name, array in arrays.items():
        yield f"{begin}\n {json.dumps(name, ensure_ascii=False)}: ".encode()
        yield from _array(array, 1)
        begin = ","
    yield b"\n}\n"


def _array(array: np.ndarray, depth: int) -> Iterator[bytes]:
    """An array that stands `depth` deep."""
    if array.ndim == 0 or not len(array):
        yield json.dumps(_listed(array), indent=1, allow_nan=False).encode()
        return
    between = ",\n" + " " * (depth + 1)
    begin = "[" + between[1:]
    if array.ndim > 1:
        for row in array:
            yield begin.encode()
            yield from _array(row, depth + 1)
            begin = between
    else:
        for at in range(0, len(array), BLOCK):
            part = _listed(array[at : at + BLOCK])
            numbers = json.dumps(part, ensure_ascii=False, allow_nan=False, separators=(between, ""))
            yield (begin + numbers[1:-1]).encode()
            begin = between
    yield ("\n" + " " * depth + "]").encode()


def _listed(array: np.ndarray) -> Any:
    """`array.tolist()`, with None for what is no number."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return array.tolist()
    values = array.astype(object)
    values[~np.isfinite(array)] = None
    return values.tolist()
