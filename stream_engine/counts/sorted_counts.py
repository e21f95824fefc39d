"""Two counts per key in a sorted base and an unsorted log: the store behind all exact counts.

An event appends one key, with its direction in the lowest bit, to the log; at LOG_RATIO times the base the log is
radix-sorted and merged in one linear pass. Base keys strictly increase, and base plus log is the multiset of events.
"""

from collections.abc import Callable, Sequence

import numpy as np

from stream_engine.counts import radix
from stream_engine.counts.radix import Keys
from stream_engine.data.compiled import for_size, njit
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation, blocks
from stream_engine.data.triplet_columns import COUNT_LIMIT, canonical_counts

LOG_FLOOR = 1 << 16  # events; below this a compaction costs less than a millisecond
LOG_CEILING = 1 << 28  # events: bounds the log at 2 GB, and the counts of one log below COUNT_LIMIT
LOG_RATIO = 1.4  # log events per base key: 16 + 16 * 1.4 bytes a key while a full log is sorted
MIN_GROWTH = 0.75  # new keys per base key, from which the log is kept while the result is written: 38 bytes a key
WIDE_BITS = 31
MAX_COUNT = 2**63 - 1
_NO_KEYS = np.empty(0, np.uint64)
_NO_BUFFER = _NO_KEYS, _NO_KEYS


class TooManyCounts(ValueError):
    """A sum of counts might exceed 64 bits. One line."""


def check_sum(mine: int, theirs: int) -> None:
    """Raise `TooManyCounts` where counts of up to `mine` and `theirs` might not fit into 64 bits when summed."""
    if mine + theirs > MAX_COUNT:
        raise TooManyCounts(f"got counts of up to {mine:,} and {theirs:,}; expected a sum of at most {MAX_COUNT:,}")


@njit(cache=True, nogil=True)
def _collapse(high, low, wide, size, n_lo, n_hi):
    """Sorted events to distinct keys without direction, in place; how many there are. Counts go to n_lo, n_hi."""
    one = np.uint64(1)
    last, here_lo, here_hi = -1, np.int32(0), np.int32(0)
    key, top = low[0] >> one, high[0]
    for e in range(size):
        away = np.int32(low[e] & one)
        fresh = last < 0 or low[e] >> one != key
        if wide:
            fresh |= high[e] != top
            top = high[e]
        key = low[e] >> one
        last += fresh
        here_lo = (np.int32(0) if fresh else here_lo) + (np.int32(1) - away)
        here_hi = (np.int32(0) if fresh else here_hi) + away
        low[last] = key
        if wide:
            high[last] = top
        n_lo[last] = here_lo
        n_hi[last] = here_hi
    return last + 1


@njit(cache=True, nogil=True)
def _add_known(high, low, wide, n_lo, n_hi, new_high, new_low, new_lo, new_hi, size):
    """Add the counts of keys that the base knows; pack the others together, in place, and return how many they are.

    Both lists increase strictly. Two walks, one from either end, meet: they do not wait for each other's loads, and no
    branch depends on the data.
    """
    one = np.uint64(1)
    i, p = np.uint64(0), np.uint64(len(low))
    j, q = np.uint64(0), np.uint64(size)
    front, back = j, q
    while i < p and j < q:
        a, b = low[i], new_low[j]
        if wide:
            new_high[front] = new_high[j]
            if high[i] != new_high[j]:
                a, b = high[i], new_high[j]
        same = a == b
        n_lo[i] += new_lo[j] if same else 0
        n_hi[i] += new_hi[j] if same else 0
        new_low[front], new_lo[front], new_hi[front] = new_low[j], new_lo[j], new_hi[j]
        front += np.uint64(b < a)
        i += np.uint64(a <= b)
        j += np.uint64(b <= a)
        if i == p or j == q:
            break
        end, new_end = p - one, q - one
        a, b = low[end], new_low[new_end]
        if wide:
            new_high[back - one] = new_high[new_end]
            if high[end] != new_high[new_end]:
                a, b = high[end], new_high[new_end]
        same = a == b
        n_lo[end] += new_lo[new_end] if same else 0
        n_hi[end] += new_hi[new_end] if same else 0
        new_low[back - one], new_lo[back - one], new_hi[back - one] = new_low[new_end], new_lo[new_end], new_hi[new_end]
        back -= np.uint64(b > a)
        p -= np.uint64(a >= b)
        q -= np.uint64(b >= a)
    for first, end in ((j, q), (back, np.uint64(size))):  # between the walks all are new; then what the last one kept
        for e in range(first, end):
            new_low[front], new_lo[front], new_hi[front] = new_low[e], new_lo[e], new_hi[e]
            if wide:
                new_high[front] = new_high[e]
            front += one
    return np.int64(front)


@njit(cache=True, nogil=True)
def _interleave(high, low, wide, n_lo, n_hi, new_high, new_low, new_lo, new_hi, size, to_high, to_low, to_lo, to_hi):
    """Merge two strictly increasing lists without a common key, from both ends at once.

    Masks instead of conditions: a condition becomes a branch that is guessed wrong every other time.
    """
    one = np.uint64(1)
    i, p, j, q = np.uint64(0), np.uint64(len(low)), np.uint64(0), np.uint64(size)
    front, back = np.uint64(0), np.uint64(len(to_low))
    while i < p and j < q:
        a, b = low[i], new_low[j]
        mine = a < b
        if wide:
            top, new_top = high[i], new_high[j]
            mine = top < new_top or (top == new_top and mine)
            to_high[front] = min(top, new_top)
        mask = -np.int64(mine)
        to_low[front] = a & np.uint64(mask) | b & np.uint64(~mask)
        to_lo[front] = n_lo[i] & mask | new_lo[j] & ~mask
        to_hi[front] = n_hi[i] & mask | new_hi[j] & ~mask
        front += one
        i += np.uint64(mine)
        j += np.uint64(not mine)
        if i == p or j == q:
            break
        end, new_end = p - one, q - one
        back -= one
        a, b = low[end], new_low[new_end]
        mine = a > b
        if wide:
            top, new_top = high[end], new_high[new_end]
            mine = top > new_top or (top == new_top and mine)
            to_high[back] = max(top, new_top)
        mask = -np.int64(mine)
        to_low[back] = a & np.uint64(mask) | b & np.uint64(~mask)
        to_lo[back] = n_lo[end] & mask | new_lo[new_end] & ~mask
        to_hi[back] = n_hi[end] & mask | new_hi[new_end] & ~mask
        p -= np.uint64(mine)
        q -= np.uint64(not mine)
    for e in range(i, p):
        to_low[front], to_lo[front], to_hi[front] = low[e], n_lo[e], n_hi[e]
        if wide:
            to_high[front] = high[e]
        front += one
    for e in range(j, q):
        to_low[front], to_lo[front], to_hi[front] = new_low[e], new_lo[e], new_hi[e]
        if wide:
            to_high[front] = new_high[e]
        front += one


@njit(cache=True, nogil=True)
def _repack(high, low, wide, bits, fields, to_high, to_low, to_wide, to_bits):
    """The same ids in another layout; `to_low` may be `low`."""
    bits, to_bits, none = np.uint64(bits), np.uint64(to_bits), np.uint64(0)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for e in range(len(low)):
        first, second = none, none
        for field in range(fields):
            word, fields_behind = (high[e], 1 - field) if wide and field < 2 else (low[e], fields - 1 - field)
            value = word >> np.uint64(fields_behind) * bits & mask
            if to_wide and field < 2:
                first = first << to_bits | value
            else:
                second = second << to_bits | value
        to_low[e] = second
        if to_wide:
            to_high[e] = first


# Amortised O(digits) per event; the longest pause is one compaction, under 25 ns per key (at least what LOG_FLOOR
# events take). Memory: 16 bytes per packed key at rest (after `settle`), under 40 at the peak. A key has `fields` ids
# of equal width: packed in one uint64 while they and the direction fit, else wide (two words, 31 bits per id, 24 bytes
# a key).
class SortedCounts:
    """Counts `(n_lo, n_hi)` of keys of `fields` ids: direction 0 adds to n_lo, direction 1 to n_hi.

    `key_bits` says how long a packed key and its direction may be, `log_floor` how short a log may be compacted,
    `allocation` where its arrays are.
    """

    def __init__(self, fields: int, key_bits: int = 64, log_floor: int = LOG_FLOOR, allocation: Allocation = IN_MEMORY):
        self.fields, self.key_bits, self.log_floor, self.allocation = fields, key_bits, log_floor, allocation
        self.bits, self.wide = 1, False
        self.low, self._high = _NO_KEYS, _NO_KEYS  # `_high` stays empty while keys are packed
        self.n_lo, self.n_hi = np.empty(0, np.int32), np.empty(0, np.int32)
        self._bound = 0  # no count is larger
        self._used = 0
        self._log: Keys = _NO_BUFFER
        self._spare: Keys = _NO_BUFFER

    def __len__(self) -> int:
        """Keys in the base."""
        return len(self.low)

    @property
    def high(self) -> np.ndarray:
        """The first word of wide keys; the only word of packed ones."""
        return self._high if self.wide else self.low

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        buffers = sum((high.nbytes if self.wide else 0) + low.nbytes for high, low in (self._log, self._spare))
        return self.low.nbytes + self._high.nbytes + self.n_lo.nbytes + self.n_hi.nbytes + buffers

    def fit(self, n_objects: int) -> None:
        """Make room for ids below n_objects: wider fields, then wide keys. Linear in the keys held, at most once for
        each doubling of n_objects."""
        bits = max(n_objects - 1, 1).bit_length()
        if bits <= self.bits:
            return
        if bits > WIDE_BITS:
            raise ValueError(f"counts - n_objects is {n_objects}; ids go up to 2**{WIDE_BITS} - 1; split the stream")
        self.settle()
        high, low, wide, old = self.high, self.low, self.wide, self.bits
        self._lay_out(bits)
        self.low = self.allocation.allocate(len(low), np.uint64) if self.wide else low
        self._high = self.allocation.allocate(len(low), np.uint64) if self.wide else _NO_KEYS
        if len(low):
            _repack(high, low, wide, old, self.fields, self.high, self.low, self.wide, self.bits)

    def _lay_out(self, bits: int) -> None:
        self.wide = self.fields * bits + 1 > self.key_bits
        self.bits = WIDE_BITS if self.wide else bits

    def append(self, size: int, encode: Callable[[Keys, int, int, int], None]) -> None:
        """Log `size` events: `encode((high, low), at, begin, end)` writes the keys of events begin .. end - 1 from
        position `at` on; it is called for as many pieces as compactions cut."""
        begin = 0
        while begin < size:
            if not len(self._log[1]):
                self._log = self._buffer(self._log_size())
            end = min(size, begin + len(self._log[1]) - self._used)
            encode(self._log, self._used, begin, end)
            self._used += end - begin
            begin = end
            if self._used == len(self._log[1]):
                self._compact()

    def _buffer(self, size: int) -> Keys:
        low = self.allocation.allocate(size, np.uint64)
        return (self.allocation.allocate(size, np.uint64), low) if self.wide else (low, low)

    def _compact(self) -> None:
        used, self._used = self._used, 0
        if not used:
            return
        if len(self._spare[1]) < used:
            self._spare = self._buffer(used)
        top = self.fields * self.bits + 1
        high_bits, low_bits = ((0, 2 * self.bits), (1, top - 2 * self.bits)) if self.wide else ((0, 0), (1, top))
        self._log, self._spare = radix.sort(self._log, self._spare, used, high_bits, low_bits)
        # The spare is free again, and two int32 fit where one key was. No name may hold on to it: see _absorb.
        fresh = [*self._log, *self._spare[1].view(np.int32)[: 2 * used].reshape(2, used)]
        distinct = for_size(_collapse, used)(fresh[0], fresh[1], self.wide, used, fresh[2], fresh[3])
        self._expect(used)
        self._absorb(fresh, distinct)
        if len(self._log[1]) < self._log_size():
            self._log = self._spare = _NO_BUFFER

    def _log_size(self) -> int:
        return min(max(self.log_floor, int(LOG_RATIO * len(self))), LOG_CEILING)

    def _expect(self, more: int) -> None:
        """Promote the counts to int64 before `more` events could take one of them to COUNT_LIMIT."""
        self._bound += more
        if self._bound < COUNT_LIMIT or self.n_lo.dtype == np.int64:
            return
        self._bound = max(self._largest()) + more
        if self._bound >= COUNT_LIMIT:
            self._promote()

    def _promote(self) -> None:
        self.n_lo, self.n_hi = (self.allocation.copied(counts, np.int64) for counts in (self.n_lo, self.n_hi))

    def _absorb(self, more: list[np.ndarray], size: int) -> None:
        """Add strictly increasing keys, given as [high, low, n_lo, n_hi]; uses up arrays and list."""
        base = self.high, self.low, self.wide, self.n_lo, self.n_hi
        unknown = _add_known(*base, more[0], more[1], more[2], more[3], size) if len(self) else size
        if not unknown:
            return
        total, allocate = len(self) + unknown, self.allocation.allocate
        if not len(self):
            copied = self.allocation.copied
            self.low, self._high = copied(more[1][:size]), copied(more[0][:size]) if self.wide else _NO_KEYS
            self.n_lo, self.n_hi = (copied(counts[:size], self.n_lo.dtype) for counts in more[2:])
            return
        if unknown < MIN_GROWTH * len(self):  # base, buffers and result at once would be too much memory for that
            low, n_lo, n_hi = (self.allocation.copied(array[:unknown]) for array in more[1:])
            more[:] = [self.allocation.copied(more[0][:unknown]) if self.wide else low, low, n_lo, n_hi]
            del low, n_lo, n_hi
            self._log = self._spare = _NO_BUFFER
        low = allocate(total, np.uint64)
        high = allocate(total, np.uint64) if self.wide else low
        n_lo, n_hi = allocate(total, self.n_lo.dtype), allocate(total, self.n_hi.dtype)
        _interleave(*base, more[0], more[1], more[2], more[3], unknown, high, low, n_lo, n_hi)
        self.low, self._high, self.n_lo, self.n_hi = low, high if self.wide else _NO_KEYS, n_lo, n_hi

    def settle(self) -> None:
        """Bring all events into the base and give the buffers back."""
        self._compact()
        self._log = self._spare = _NO_BUFFER

    def merge(self, other: "SortedCounts") -> None:
        """Add another one's counts. O(keys of both). Raises `TooManyCounts` before anything changes."""
        other.settle()
        self.settle()
        check_sum(max(self._largest()), max(other._largest()))
        self.fit(1 << max(other.bits, 1))
        high, low = self._buffer(len(other))  # a copy, because absorbing uses it up
        _repack(other.high, other.low, other.wide, other.bits, self.fields, high, low, self.wide, self.bits)
        self._expect(max(other._largest()))
        if other.n_lo.dtype == np.int64 and self.n_lo.dtype != np.int64:
            self._promote()
        counts = (self.allocation.copied(counts) for counts in (other.n_lo, other.n_hi))
        self._absorb([high, low, *counts], len(other))

    def _largest(self) -> tuple[int, int]:
        return int(self.n_lo.max(initial=0)), int(self.n_hi.max(initial=0))

    def load(self, ids: Sequence[np.ndarray], n_lo: np.ndarray, n_hi: np.ndarray) -> None:
        """Become these counts of strictly increasing keys, given as `fields` id columns. Copies."""
        self.settle()
        self._lay_out(max(int(column.max(initial=1)) for column in ids).bit_length())
        high, self.low = self._keys_of(ids)
        self._high = high if self.wide else _NO_KEYS
        self.n_lo, self.n_hi = (self.allocation.copied(counts) for counts in canonical_counts(n_lo, n_hi))
        self._bound = max(self._largest())

    def _keys_of(self, ids: Sequence[np.ndarray]) -> Keys:
        """`(high, low)` of id columns in this layout, without direction."""
        words = []
        for columns in (ids[:2], ids[2:]) if self.wide else (ids,):
            word = self.allocation.allocate(len(ids[0]), np.uint64)
            word[:] = 0
            for column in columns:
                word <<= np.uint64(self.bits)
                for part in blocks(len(word)):
                    word[part] |= column[part].astype(np.uint64)
            words.append(word)
        return words[0], words[-1]

    def ids(self) -> list[np.ndarray]:
        """The `fields` id columns (int32) of the base, in key order."""
        columns = [self.allocation.allocate(len(self), np.int32) for _ in range(self.fields)]
        for field, column in enumerate(columns):
            for part in blocks(len(self)):
                column[part] = self.field(field, part)
        return columns

    def field(self, field: int, part: slice) -> np.ndarray:
        """One id (uint64) of some keys of the base."""
        word = self.high if self.wide and field < 2 else self.low
        fields_behind = (2 if self.wide and field < 2 else self.fields) - 1 - field
        return word[part] >> np.uint64(fields_behind * self.bits) & np.uint64((1 << self.bits) - 1)

    def counts(self) -> dict[str, np.ndarray]:
        """`n_lo`, `n_hi` of the base in their canonical dtype, read-only; views of live memory where that is it."""
        views = [counts.view() for counts in canonical_counts(self.n_lo, self.n_hi)]
        for view in views:
            view.setflags(write=False)
        return {"n_lo": views[0], "n_hi": views[1]}
