"""Names to ids, by first appearance: a ledger. Ids are dense and never change within a state; states are merged by
name.

Names are compared as they are, code point by code point: two spellings of one word in different Unicode normal forms
are two objects, because the engine cannot know that they are one.

Names are held packed, as a snapshot has them, and found through one table of hashes: no Python object a name, so taking
a snapshot costs nothing for them, and ten million neither fill the memory with strings nor miss the cache several times
at each lookup. 25 to 45 bytes a name beside its own letters.
"""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.compiled import njit
from stream_engine.data.compiled_arguments import read_only
from stream_engine.data.integer_hash import hash_bytes
from stream_engine.data.open_addressing import find_slot
from stream_engine.data.packed_names import Names, pack_names

MAX_OBJECTS = 2**31 - 1
_SEED = int.from_bytes(os.urandom(8), "little")  # of this process: nobody outside can choose names that collide


@njit(cache=True, nogil=True, inline="always")
def _is_name(entry, sought):
    """Whether an entry of the table (upper half of a hash, id + 1) is that of the name asked[begin:end]."""
    h, utf8, offsets, asked, begin, end = sought
    if entry >> np.uint64(32) != h >> np.uint64(32):
        return False
    i = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
    first = offsets[i]
    length = end - begin
    if offsets[i + 1] - first != length:
        return False
    k = 0
    while k < length and utf8[first + k] == asked[begin + k]:
        k += 1
    return k == length


@njit(cache=True, nogil=True)
def _find(table, utf8, offsets, asked, starts, seed, ids):
    """ids[q] of the names asked[starts[q] : starts[q + 1]], -1 for unknown ones; returns how many are unknown."""
    utf8, offsets, asked = borrowed((utf8, offsets, asked))
    missing = 0
    for q in range(len(starts) - 1):
        begin, end = starts[q], starts[q + 1]
        h = hash_bytes(asked, begin, end, seed)
        slot = find_slot(table, h, _is_name, (h, utf8, offsets, asked, begin, end))
        ids[q] = np.int64(table[slot] & np.uint64(0xFFFFFFFF)) - 1
        missing += ids[q] < 0
    return missing


@njit(cache=True, nogil=True, inline="always")
def _never(entry, sought):
    return False


@njit(cache=True, nogil=True)
def _enter(table, utf8, offsets, first, end, seed):
    """Put the names first .. end - 1, which are not in it, into the table."""
    for i in range(first, end):
        h = hash_bytes(utf8, offsets[i], offsets[i + 1], seed)
        slot = find_slot(table, h, _never, h)
        table[slot] = (h >> np.uint64(32)) << np.uint64(32) | np.uint64(i + 1)


class ObjectIndex:
    """The names seen so far: `names[id]`, and `find` for the other way.

    Invariant: `_table` (a power of two, at most half full) holds the id of each name once, beside the upper half of its
    hash; packed names are only appended, so a view of the first n stays what it was.
    """

    def __init__(self, names: Sequence[str] = ()):
        self._n, self._offsets, self._utf8 = 0, np.zeros(1, np.int64), np.empty(0, np.uint8)
        self._table = np.zeros(64, np.uint64)
        if len(names):
            self._append(pack_names(names))

    def __len__(self) -> int:
        return self._n

    @property
    def names(self) -> Names:
        """All of them, by id; what is learned later does not change it. O(1)."""
        return Names(*self._held())

    def _held(self) -> tuple[np.ndarray, np.ndarray]:
        offsets = self._offsets[: self._n + 1]
        return read_only(self._utf8[: offsets[-1]]), read_only(offsets)

    def find(self, names: Iterable[str]) -> np.ndarray:
        """(len(names),) int32: their ids, -1 for unknown ones. O(bytes)."""
        return self._look_up(pack_names(names))[0]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.find([name])[0] >= 0)

    def _look_up(self, packed: dict[str, np.ndarray]) -> tuple[np.ndarray, int]:
        ids = np.empty(len(packed["offsets"]) - 1, np.int32)
        asked = read_only(packed["utf8"]), read_only(packed["offsets"])
        return ids, _find(self._table, *self._held(), *asked, np.uint64(_SEED), ids)

    def ids(self, names: Iterable[str]) -> np.ndarray:
        """(len(names),) int32; unknown names get the next ids, in the order given. O(bytes), amortised.

        >>> index = ObjectIndex()
        >>> index.ids(["b", "a", "b"]).tolist(), index.ids(["c", "a"]).tolist(), index.names
        ([0, 1, 0], [2, 1], ('b', 'a', 'c'))
        """
        names = names if isinstance(names, (list, tuple)) else list(names)
        ids, missing = self._look_up(pack_names(names))
        if missing:
            unknown = np.flatnonzero(ids < 0)
            strangers = [names[at] for at in unknown.tolist()]
            fresh = list(dict.fromkeys(strangers))
            if self._n + len(fresh) > MAX_OBJECTS:
                raise OverflowError(f"objects: {self._n + len(fresh)} names, at most {MAX_OBJECTS} fit an int32 id")
            self._append(pack_names(fresh))
            ids[unknown] = self.find(strangers)
        return ids

    def _append(self, packed: dict[str, np.ndarray]) -> None:
        """Take in names that are new and distinct."""
        n, used = self._n, int(self._offsets[self._n])
        more, size = len(packed["offsets"]) - 1, len(packed["utf8"])
        self._utf8 = _longer(self._utf8, used, used + size)
        self._utf8[used : used + size] = packed["utf8"]
        self._offsets = _longer(self._offsets, n + 1, n + 1 + more)
        self._offsets[n + 1 : n + 1 + more] = packed["offsets"][1:] + used
        self._n = n + more
        first = n
        if 2 * self._n > len(self._table):
            self._table, first = np.zeros(1 << (2 * self._n - 1).bit_length(), np.uint64), 0
        _enter(self._table, *self._held(), first, self._n, np.uint64(_SEED))


def _longer(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """The same array, or one half as long again whose first `used` entries are the same."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, len(array) + len(array) // 2, 64), array.dtype)
    longer[:used] = array[:used]
    return longer
