"""Names to numbers by first appearance, directly from their UTF-8 bytes: the name table of all formats and of the
objects of a state."""

import os
from collections.abc import Iterable

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.hashing import folded_product, hash_bytes
from stream_engine.data.intrinsics import borrowed, first_bytes, prefetch, same_bytes, word_at
from stream_engine.data.packed_names import Names, pack_names
from stream_engine.data.slot_tables import find_slot

_SEED = int.from_bytes(os.urandom(8), "little")  # of this process: no input can be constructed whose names collide
ALL_BITS = 2**64 - 1
_NO_RECENT_NAMES = np.zeros((0, 3), np.uint64)
CACHED_SLOTS = 1 << 14  # of a table that is in the processor's cache anyway
NAMES_AT_ONCE = 32  # names that are searched at a time: as many waits for memory as a processor can have at once
RECENT_SLOTS = 1 << 13  # for recently seen names: 192 KB, which stay in the processor's cache
MAX_RECENT_BYTES = 16  # of such a name
RECENT_TRIAL = 512  # names per call after which recent names are no longer searched, if less than a quarter was found


@njit(cache=True, nogil=True, inline="always")
def _is_name(entry, sought):
    """Whether an entry of the table (upper half of a hash, number + 1) is that of the name data[begin:end]."""
    h, utf8, offsets, data, begin, end = sought
    if entry >> np.uint64(32) != h >> np.uint64(32):
        return False
    i = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
    first, length = offsets[i], end - begin
    return offsets[i + 1] - first == length and same_bytes(utf8, first, data, begin, length)


@njit(cache=True, nogil=True)
def _look_ahead(table, utf8, offsets, data, begins, ends, key, first, todo, n_names, hashes):
    """hashes[k] of name first + todo[k]; requests the memory that finding them will read."""
    mask = np.uint64(len(table) - 1)
    for k in range(n_names):
        q = first + todo[k]
        hashes[k] = hash_bytes(data, begins[q], ends[q], key[0]) & key[1]
    if len(table) < CACHED_SLOTS:
        return
    for k in range(n_names):
        prefetch(table, np.int64(hashes[k] & mask))
    for k in range(n_names):
        entry = np.int64(table[hashes[k] & mask] & np.uint64(0xFFFFFFFF))
        prefetch(offsets, max(entry - 1, 0))
    for k in range(n_names):
        entry = np.int64(table[hashes[k] & mask] & np.uint64(0xFFFFFFFF))
        prefetch(utf8, offsets[max(entry - 1, 0)])


@njit(cache=True, nogil=True)
def _find(table, utf8, offsets, data, begins, ends, key, ids):
    """ids[q] of the names data[begins[q] : ends[q]], -1 for unknown ones; returns how many are unknown."""
    table, utf8, offsets, data, begins, ends, ids = borrowed((table, utf8, offsets, data, begins, ends, ids))
    missing = 0
    for q in range(len(begins)):
        h = hash_bytes(data, begins[q], ends[q], key[0]) & key[1]
        slot = find_slot(table, h, _is_name, (h, utf8, offsets, data, begins[q], ends[q]))
        ids[q] = np.int64(table[slot] & np.uint64(0xFFFFFFFF)) - 1
        missing += ids[q] < 0
    return missing


@njit(cache=True, nogil=True, inline="always")
def _letters(data, begin, end):
    """The letters of a short name as two words; (first, second)."""
    length, second = end - begin, np.uint64(0)
    first = word_at(data, begin)
    if length > 8:
        second = first_bytes(word_at(data, begin + 8), length - 8)
    elif length < 8:
        first = first_bytes(first, length)
    return first, second


@njit(cache=True, nogil=True, inline="always")
def _place(first, second, seed):
    """The slot of a name of these letters among the recent names."""
    return np.int64(folded_product(first ^ seed, second ^ np.uint64(0xE7037ED1A0B428DB)) & np.uint64(RECENT_SLOTS - 1))


@njit(cache=True, nogil=True)
def _find_recent(recent, data, begins, ends, seed, ids, first, n_names, todo):
    """ids of those names first .. first + n_names - 1 that are recent; writes the places of the others to `todo`, and
    returns how many."""
    n_left = 0
    for k in range(n_names):
        begin, end = begins[first + k], ends[first + k]
        todo[n_left] = k
        if 0 < end - begin <= MAX_RECENT_BYTES:
            first_word, second_word = _letters(data, begin, end)
            at = _place(first_word, second_word, seed)
            same_length = (recent[at, 2] >> np.uint64(32)) == np.uint64(end - begin)
            ids[first + k] = np.int64(recent[at, 2] & np.uint64(0xFFFFFFFF))
            n_left += not (same_length and recent[at, 0] == first_word and recent[at, 1] == second_word)
        else:
            n_left += 1
    return n_left


@njit(cache=True, nogil=True)
def _number(table, utf8, offsets, n, recent, data, begins, ends, key, ids, at):
    """`_find` from name `at` on, with new names entered; returns (number of names, where it stopped): there is no room
    for the next name."""
    table, utf8, offsets, data, begins, ends, ids = borrowed((table, utf8, offsets, data, begins, ends, ids))
    hashes, todo = np.empty(NAMES_AT_ONCE, np.uint64), np.empty(NAMES_AT_ONCE, np.int64)
    n_not_recent, try_recent = 0, len(recent) > 0
    for first in range(at, len(begins), NAMES_AT_ONCE):
        n_left = n_names = min(NAMES_AT_ONCE, len(begins) - first)
        if try_recent:
            n_left = _find_recent(recent, data, begins, ends, key[0], ids, first, n_names, todo)
            n_not_recent += n_left
            try_recent = first - at < RECENT_TRIAL or 4 * n_not_recent <= first - at
        else:
            for k in range(n_names):  # assigning an array compiles a second longer, for an error that cannot occur
                todo[k] = k
        if n_left:
            _look_ahead(table, utf8, offsets, data, begins, ends, key, first, todo, n_left, hashes)
        for k in range(n_left):
            q = first + todo[k]
            begin, end, h = begins[q], ends[q], hashes[k]
            slot = find_slot(table, h, _is_name, (h, utf8, offsets, data, begin, end))
            if table[slot] == 0:
                n_bytes = offsets[n]
                if 2 * (n + 1) > len(table) or n + 1 >= len(offsets) or n_bytes + end - begin > len(utf8):
                    return n, q
                for place in range(end - begin):
                    utf8[n_bytes + place] = data[begin + place]
                n += 1
                offsets[n] = n_bytes + end - begin
                table[slot] = (h >> np.uint64(32)) << np.uint64(32) | np.uint64(n)
            ids[q] = np.int64(table[slot] & np.uint64(0xFFFFFFFF)) - 1
            if try_recent and 0 < end - begin <= MAX_RECENT_BYTES:
                first_word, second_word = _letters(data, begin, end)
                place_of_name = _place(first_word, second_word, key[0])
                recent[place_of_name, 0], recent[place_of_name, 1] = first_word, second_word
                recent[place_of_name, 2] = np.uint64(end - begin) << np.uint64(32) | np.uint64(ids[q])
    return n, len(begins)


@njit(cache=True, nogil=True, inline="always")
def _never(entry, sought):
    return False


@njit(cache=True, nogil=True)
def _enter(table, utf8, offsets, n, key):
    """Put all names, which are not in it, into the table."""
    for i in range(n):
        h = hash_bytes(utf8, offsets[i], offsets[i + 1], key[0]) & key[1]
        slot = find_slot(table, h, _never, h)
        table[slot] = (h >> np.uint64(32)) << np.uint64(32) | np.uint64(i + 1)


# Names are stored packed, as in a snapshot, and found through one hash table, without a Python object per name. Two
# names are equal if their bytes are. The bytes of new names are copied, so their source need not be kept. 25 to 45
# bytes per name in addition to its own bytes. Recently seen short names are also stored directly, as two words, and
# found without hashing: a third of the time if few names occur repeatedly.
#
# Invariant: `_table` (a power of two, at most half full) has the number of each name once, next to the upper half of
# its hash; packed names are only appended, so a view of the first n never changes.
class Interner:
    """The names seen so far: `names[number]`, and `ids` and `find` for the other direction.

    `hash_bits` limits the bits of a hash that are used: fewer bits make names collide, for tests.
    """

    def __init__(self, hash_bits: int = ALL_BITS):
        self._n, self._offsets, self._utf8 = 0, np.zeros(64, np.int64), np.empty(1024, np.uint8)
        self._table, self._key = np.zeros(128, np.uint64), np.array([_SEED, hash_bits], np.uint64)
        self._recent = _NO_RECENT_NAMES  # or (LATELY, 3): two words of letters, length and number; length 0: nobody

    def __len__(self) -> int:
        return self._n

    @property
    def names(self) -> Names:
        """All of them, by number; what is learned later does not change it. O(1)."""
        offsets = self._offsets[: self._n + 1]
        return Names(read_only(self._utf8[: offsets[-1]]), read_only(offsets))

    def find(self, data: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
        """(q,) int32 numbers of the names data[begins[q] : ends[q]], -1 for unknown ones; and how many are unknown.

        data (bytes,) uint8; begins and ends (q,) int64. O(bytes).
        """
        ids = np.empty(len(begins), np.int32)
        query = read_only(data), read_only(begins, np.int64), read_only(ends, np.int64)
        return ids, _find(self._table, self._utf8, self._offsets, *query, self._key, ids)

    def ids(self, data: np.ndarray, begins: np.ndarray, ends: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(q,) int32, in `out` where that is given; unknown names get the next numbers, in this order. O(bytes),
        amortised.

        >>> interner, text = Interner(), np.frombuffer(b"bad", np.uint8)
        >>> interner.ids(text, np.array([1, 0, 1]), np.array([2, 1, 3])).tolist(), interner.names
        ([0, 1, 2], ('a', 'b', 'ad'))
        """
        ids = np.empty(len(begins), np.int32) if out is None else out
        query = read_only(data), read_only(begins, np.int64), read_only(ends, np.int64)
        if not len(self._recent) and len(begins) >= RECENT_TRIAL:
            self._recent = np.zeros((RECENT_SLOTS, 3), np.uint64)
        at = 0
        while True:
            tables = self._table, self._utf8, self._offsets, self._n, self._recent
            self._n, at = _number(*tables, *query, self._key, ids, at)
            if at == len(begins):
                return ids
            self._make_room(int(ends[at] - begins[at]))

    def ids_of(self, names: Iterable[str]) -> np.ndarray:
        """(q,) int32: the same for names as Python has them, or `Names`."""
        packed = pack_names(names)
        return self.ids(packed["utf8"], packed["offsets"][:-1], packed["offsets"][1:])

    def _make_room(self, length: int) -> None:
        """For one more name of so many bytes at least."""
        n = self._n
        n_bytes = int(self._offsets[n])
        self._utf8 = _longer(self._utf8, n_bytes, n_bytes + length)
        self._offsets = _longer(self._offsets, n + 1, n + 2)
        if 2 * (n + 1) > len(self._table):
            self._table = np.zeros(4 * len(self._table), np.uint64)
            _enter(self._table, self._utf8, self._offsets, n, self._key)


def _longer(array: np.ndarray, n_used: int, size: int) -> np.ndarray:
    """The same array, or one half as long again whose first `n_used` entries are the same."""
    if size <= len(array):
        return array
    longer = np.empty(max(size, len(array) + len(array) // 2), array.dtype)
    longer[:n_used] = array[:n_used]
    return longer
