"""Compiled loops of the reservoir of judgements: hashing a batch's judgements, entering some, finding the threshold.

A judgement is its comparisons in order, rows (i, j, k, l) for d(i, j) < d(k, l), with worker, time and sampler. O(1)
expected to enter one; hashing takes some 3 ns per comparison.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import mix64
from stream_engine.data.intrinsics import borrowed, prefetch
from stream_engine.data.slot_tables import find_slot

# The hash is that of the names: with N a name's hash (`data/hashing.py`), M the finaliser of SplitMix64 and A, B, C, D,
# W, S odd constants, all modulo 2^64,
#
#     h_0 = W N(worker) + M(bits of time) + S N(sampler), each 0 where it is not said
#     h_r = M(h_(r-1) + A N(i) + B N(j) + C N(l))              for a triplet (i, j, i, l), the r-th comparison
#     h_r = M(h_(r-1) + A N(i) + B N(j) + C N(k) + D N(l))     for a quadruplet.
ALL = 2**64 - 1  # the threshold of a reservoir that has thrown nothing away
_LAST = np.uint64(ALL - 1)  # hashes are at most this, so that each is below ALL
# odd; they must never change
_A, _B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_C, _D = np.uint64(0x165667B19E3779F9), np.uint64(0xD6E8FEB86659FD93)
OF_SIDES = _A, _B, _C, _D
OF_WORKER, OF_SAMPLER = np.uint64(0xA24BAED4963EE407), np.uint64(0x8EBC6AF09C88C6E3)
BUCKETS = 1 << 11
PREFETCHED_SLOTS = 32  # slots asked for at a time: as many waits for memory as a processor can have at once


class ResponseColumns(NamedTuple):
    """Judgements as columns, their comparisons one after the other."""

    hash: np.ndarray  # (c,) uint64
    size: np.ndarray  # (c,) int32: comparisons
    times: np.ndarray  # (c,) int64
    worker: np.ndarray  # (c,) int32, -1 where nobody is named
    time: np.ndarray  # (c,) int64: the bits of a float64
    sampler: np.ndarray  # (c,) int32
    rows: np.ndarray  # (r, 4) int32


class ReservoirSample(NamedTuple):
    """Room for judgements, each once."""

    hash: np.ndarray
    size: np.ndarray
    times: np.ndarray
    worker: np.ndarray
    time: np.ndarray
    sampler: np.ndarray
    rows: np.ndarray
    begin: np.ndarray  # (c,) int64: where its rows begin
    table: np.ndarray  # (s,) uint64: upper half of a hash, number + 1; see `hashing`


@njit(cache=True, nogil=True)
def single_below(triplets, of_event, origins, names, below, hashes, events, begins, ends):
    """`below_threshold` for triplets of which no two are of one event; how many."""
    count, numbered, has_origins = 0, len(of_event) > 0, len(origins) > 0
    h = np.uint64(0)
    for row in range(len(triplets)):
        h = _A * names[triplets[row, 0]] + _B * names[triplets[row, 1]] + _C * names[triplets[row, 2]]
        if has_origins:
            h += origins[of_event[row] if numbered else row]
        h = min(mix64(h), _LAST)
        if h < below:
            hashes[count], begins[count], ends[count] = h, row, row + 1
            events[count] = of_event[row] if numbered else row
            count += 1
    return count


@njit(cache=True, nogil=True)
def below_threshold(rows, of_event, origins, names, below, most, hashes, events, begins, ends):
    """The judgements whose hash is below the threshold, of those with at most `most` comparisons; (how many these are,
    how many have more).

    rows (m, 3 or 4) int32; of_event (m,) rising, empty where each comparison is an event; origins (e,) uint64, empty
    where no event says anything; names (n,) uint64. Writes the hash, the event and the rows of each.
    """
    count, larger, alone, has_origins, triplets = 0, 0, len(of_event) == 0, len(origins) > 0, rows.shape[1] == 3
    row = 0
    while row < len(rows):
        end, event = row + 1, row if alone else np.int64(of_event[row])
        if not alone:
            while end < len(rows) and of_event[end] == event:
                end += 1
        if end - row > most:
            larger += 1
        else:
            h = origins[event] if has_origins else np.uint64(0)
            for r in range(row, end):
                h += _A * names[rows[r, 0]] + _B * names[rows[r, 1]] + _C * names[rows[r, 2]]
                if not triplets:
                    h += _D * names[rows[r, 3]]
                h = mix64(h)
            h = min(h, _LAST)
            if h < below:
                hashes[count], events[count], begins[count], ends[count] = h, event, row, end
                count += 1
        row = end
    return count, larger


def copied_rows(rows: np.ndarray, begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The rows of some judgements, one after the other; triplets (anchor, near, far) as (anchor, near, anchor, far)."""
    ends = np.cumsum(sizes, dtype=np.int64)
    copied = rows[np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - sizes), sizes)]
    return copied[:, [0, 1, 0, 2]] if rows.shape[1] == 3 else copied


@njit(cache=True, nogil=True, inline="always")
def _is_judgement(entry, sought):
    h, sample, some, c, row = sought
    if entry >> np.uint64(32) != h >> np.uint64(32):
        return False
    i = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
    if sample.hash[i] != h or sample.size[i] != some.size[c] or sample.time[i] != some.time[c]:
        return False
    if sample.worker[i] != some.worker[c] or sample.sampler[i] != some.sampler[c]:
        return False
    for r in range(some.size[c]):
        for side in range(4):
            if sample.rows[sample.begin[i] + r, side] != some.rows[row + r, side]:
                return False
    return True


@njit(cache=True, nogil=True)
def enter(sample, n, used, some, at, row, below):
    """Add judgements from number `at` on, whose rows begin at `row`, as far as they are below the threshold; a
    judgement that is held is given once more. (judgements, comparisons, how far it came, the row it came to): it stops
    where there is no room left for the next one."""
    sample, some = borrowed(sample), borrowed(some)
    mask, table = np.uint64(len(sample.table) - 1), sample.table
    for c in range(at, len(some.hash)):
        if (c - at) % PREFETCHED_SLOTS == 0:
            for next_one in range(c, min(c + PREFETCHED_SLOTS, len(some.hash))):
                prefetch(table, np.int64(some.hash[next_one] & mask))
        h, size = some.hash[c], np.int64(some.size[c])
        if h < below:
            slot = find_slot(sample.table, h, _is_judgement, (h, sample, some, c, row))
            if sample.table[slot] == 0:
                if n == len(sample.hash) or used + size > len(sample.rows) or 2 * (n + 1) > len(sample.table):
                    return n, used, c, row
                sample.hash[n], sample.size[n], sample.times[n], sample.begin[n] = h, size, 0, used
                sample.worker[n], sample.time[n], sample.sampler[n] = some.worker[c], some.time[c], some.sampler[c]
                for r in range(size):
                    for side in range(4):
                        sample.rows[used + r, side] = some.rows[row + r, side]
                n, used = n + 1, used + size
                sample.table[slot] = (h >> np.uint64(32)) << np.uint64(32) | np.uint64(n)
            sample.times[np.int64(sample.table[slot] & np.uint64(0xFFFFFFFF)) - 1] += some.times[c]
        row += size
    return n, used, len(some.hash), row


@njit(cache=True, nogil=True, inline="always")
def _never(entry, sought):
    return False


@njit(cache=True, nogil=True)
def file_all(sample, n):
    """Enter the first n judgements into the table, which is empty."""
    sample = borrowed(sample)
    mask, table = np.uint64(len(sample.table) - 1), sample.table
    for i in range(n):
        if i % PREFETCHED_SLOTS == 0:
            for next_one in range(i, min(i + PREFETCHED_SLOTS, n)):
                prefetch(table, np.int64(sample.hash[next_one] & mask))
        slot = find_slot(sample.table, sample.hash[i], _never, sample.hash[i])
        sample.table[slot] = (sample.hash[i] >> np.uint64(32)) << np.uint64(32) | np.uint64(i + 1)


@njit(cache=True, nogil=True)
def keep_below(sample, n, below):
    """Move the judgements below a threshold to the front; (judgements, comparisons). The table is to be made anew."""
    sample = borrowed(sample)
    n_kept, used = 0, 0
    for i in range(n):
        if sample.hash[i] < below:
            begin, size = int(sample.begin[i]), int(sample.size[i])
            sample.hash[n_kept], sample.size[n_kept], sample.times[n_kept] = sample.hash[i], size, sample.times[i]
            sample.worker[n_kept], sample.time[n_kept], sample.sampler[n_kept] = (
                sample.worker[i],
                sample.time[i],
                sample.sampler[i],
            )
            sample.begin[n_kept] = used
            for r in range(size):
                for side in range(4):
                    sample.rows[used + r, side] = sample.rows[begin + r, side]
            n_kept, used = n_kept + 1, used + size
    return n_kept, used


@njit(cache=True, nogil=True)
def threshold(hashes, sizes, below, bound):
    """The smallest of these hashes h for which those up to and with h have more than `bound` comparisons; `below` where
    there is none. By buckets of the leading bits, then inside one bucket: O(judgements), two or three passes."""
    low, shift, room = np.uint64(0), 64, np.int64(bound)  # the hash sought lies in low ... low + 2^shift - 1
    counts = np.empty(BUCKETS, np.int64)
    first = True
    while shift > 0:
        step = min(shift, 11)
        if first:  # hashes are below `below`, so leading bits may all be zero
            while shift > step and below >> np.uint64(shift - 1) == 0:
                shift -= 1
            first = False
        next_shift = shift - step
        counts[:] = 0
        for i in range(len(hashes)):
            if shift == 64 or (hashes[i] >> np.uint64(shift)) == (low >> np.uint64(shift)):
                counts[(hashes[i] >> np.uint64(next_shift)) & np.uint64((1 << step) - 1)] += sizes[i]
        bucket = 0
        while bucket < (1 << step) and counts[bucket] <= room:
            room -= counts[bucket]
            bucket += 1
        if bucket == 1 << step:
            return below
        low |= np.uint64(bucket) << np.uint64(next_shift)
        shift = next_shift
    return low
