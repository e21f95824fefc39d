"""Many names as two arrays instead of many Python strings: all their UTF-8 bytes, and where each begins. A snapshot
stores this and maps it from its file: nothing is decoded before it is used."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import index
from typing import SupportsIndex, overload

import numpy as np

from stream_engine.data.compiled import for_size, njit, read_only

BLOCK = 1 << 14  # names decoded at once


class Names(Sequence[str]):
    """A sequence of names that is never changed; equal to any other sequence of the same names, printed as a tuple.

    `utf8` (bytes,) uint8; name i is `utf8[offsets[i] : offsets[i + 1]]`, offsets (n + 1,) int64 rising. Item O(length);
    a slice of step 1 is a view, O(1); iterating 0.1 us a name.

    >>> names = Names(**pack_names(["car-1", "", "Vélo"]))
    >>> names, len(names), names[2], names[1:], list(names)
    (('car-1', '', 'Vélo'), 3, 'Vélo', ('', 'Vélo'), ['car-1', '', 'Vélo'])
    """

    __slots__ = ("_offsets", "_utf8")

    def __init__(self, utf8: np.ndarray, offsets: np.ndarray):
        self._utf8, self._offsets = utf8, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, place: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            begin, end, step = place.indices(len(self))
            if step == 1:
                return Names(self._utf8, self._offsets[begin : max(begin, end) + 1])
            return tuple(self[i] for i in range(begin, end, step))
        i, n = index(place), len(self)
        if not -n <= i < n:
            raise IndexError(f"name {i} of {n}")
        i %= n
        return self._utf8[self._offsets[i] : self._offsets[i + 1]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), BLOCK):
            offsets = self._offsets[begin : begin + BLOCK + 1]
            data, ends = self._utf8[offsets[0] : offsets[-1]].tobytes(), (offsets - offsets[0]).tolist()
            text = data.decode()
            if len(text) == len(data):  # ASCII: bytes are letters
                yield from (text[a:b] for a, b in pairwise(ends))
            else:
                yield from (data[a:b].decode() for a, b in pairwise(ends))

    def __eq__(self, other) -> bool:
        if not isinstance(other, (Names, tuple, list)):
            return NotImplemented
        return len(self) == len(other) and all(name == other_name for name, other_name in zip(self, other))

    __hash__ = None  # type: ignore[assignment]  # Python's own way to say unhashable, which typeshed does not know

    def __repr__(self) -> str:
        return repr(tuple(self))

    def taken(self, places: np.ndarray) -> "Names":
        """The names at these places, (q,) integers, in their order; a view where they are the first q. O(bytes).

        >>> Names(**pack_names(["a", "bc", "", "d"])).taken(np.array([3, 1]))
        ('d', 'bc')
        """
        if np.array_equal(places, np.arange(len(places))):
            return Names(self._utf8, self._offsets[: len(places) + 1])
        lengths = self._offsets[1:][places] - self._offsets[places]
        offsets = np.append(0, np.cumsum(lengths))
        utf8 = np.empty(int(offsets[-1]), np.uint8)
        for_size(_copy_names, len(utf8))(
            read_only(self._utf8), read_only(self._offsets), read_only(places, np.int64), utf8
        )
        return Names(utf8, offsets)

    def packed(self) -> dict[str, np.ndarray]:
        """The two arrays, offsets from 0 on; views where they are so already."""
        begin, end = int(self._offsets[0]), int(self._offsets[-1])
        return {"utf8": self._utf8[begin:end], "offsets": self._offsets - begin if begin else self._offsets}


def pack_names(names: Iterable[str]) -> dict[str, np.ndarray]:
    """Names as two arrays: all UTF-8 bytes, and the n + 1 offsets into them. O(bytes); nothing is kept per name.

    >>> {key: array.tolist() for key, array in pack_names(["a", "é"]).items()}
    {'utf8': [97, 195, 169], 'offsets': [0, 1, 3]}
    """
    if isinstance(names, Names):
        return names.packed()
    names = names if isinstance(names, (list, tuple)) else list(names)
    offsets, parts = np.zeros(len(names) + 1, np.int64), []
    for begin in range(0, len(names), BLOCK):
        block = names[begin : begin + BLOCK]
        text = "".join(block)
        if text.isascii():
            sizes, data = list(map(len, block)), text.encode()
        else:
            names_utf8 = [name.encode() for name in block]
            sizes, data = list(map(len, names_utf8)), b"".join(names_utf8)
        offsets[begin + 1 : begin + 1 + len(block)] = sizes
        parts.append(data)
    np.cumsum(offsets, out=offsets)
    return {"utf8": np.frombuffer(b"".join(parts), np.uint8), "offsets": offsets}


@njit(cache=True, nogil=True)
def _copy_names(utf8, offsets, places, out):
    """The letters of the names at these places, one after the other."""
    at = 0
    for place in places:
        for letter in range(offsets[place], offsets[place + 1]):
            out[at] = utf8[letter]
            at += 1


def unpack_names(utf8: np.ndarray, offsets: np.ndarray) -> tuple[str, ...]:
    """The inverse of `pack_names`, as strings.

    >>> unpack_names(**pack_names(["car-1", "", "Vélo"]))
    ('car-1', '', 'Vélo')
    """
    return tuple(Names(utf8, offsets))
