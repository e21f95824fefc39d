"""Judgements as the arrays of a state: their canonical form, what a file must hold, and what an object takes with it.

Judgements are sorted by hash, then by length, comparisons, worker, time and sampler. Workers and samplers that occur
are numbered in the order of their names; what no judgement says has no column.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from stream_engine.counts.judgement_kernels import ResponseColumns, copied_rows
from stream_engine.counts.removal import shifted
from stream_engine.data.array_checks import check_names, check_rising, check_rows
from stream_engine.data.container import Corrupt
from stream_engine.data.packed_names import pack_names
from stream_engine.data.triplet_columns import COUNT_LIMIT

State = Mapping[str, np.ndarray]
NO_TIME = int(np.array(-np.inf).view(np.int64))  # -inf stands for no time: unlike NaN it is equal to itself


def response_columns(state: State) -> ResponseColumns:
    """The judgements of a state, every column filled; arrays of the state are not changed through it."""
    n = len(state["hash"])
    worker, sampler = (state[key] if len(state[key]) else np.full(n, -1, np.int32) for key in ("worker", "sampler"))
    time = time_bits(state["time"]) if len(state["time"]) else np.full(n, NO_TIME)
    return ResponseColumns(
        state["hash"], state["size"], state["times"].astype(np.int64), worker, time, sampler, state["rows"]
    )


def time_bits(time: np.ndarray) -> np.ndarray:
    """(e,) int64: the bits of each time; of one zero, and of -inf where none is said.

    >>> time_bits(np.array([-0.0, 1.0, np.nan])).view(np.float64).tolist()
    [0.0, 1.0, -inf]
    """
    bits = (np.asarray(time, np.float64) + 0.0).view(np.int64)
    bits[np.isnan(time)] = NO_TIME
    return bits


def canonical(
    some: ResponseColumns, begin: np.ndarray, workers: Sequence[str], samplers: Sequence[str], below: int, larger: int
) -> dict[str, np.ndarray]:
    """The state of these judgements, in any order, whose rows begin at `begin` (c,). O(c log c)."""
    worker, worker_names = _by_name(some.worker, workers)
    sampler, sampler_names = _by_name(some.sampler, samplers)
    some = some._replace(worker=worker, sampler=sampler)
    order = _order(some, begin)
    size, times = some.size[order], some.times[order]
    rows = copied_rows(some.rows, begin[order], size)
    columns = {
        "worker": worker[order] if len(worker_names) else worker[:0],
        "sampler": sampler[order] if len(sampler_names) else sampler[:0],
        "time": (some.time[order] if (some.time != NO_TIME).any() else some.time[:0]).view(np.float64),
    }
    names = {
        f"{who}_{key}": array
        for who, called in (("worker", worker_names), ("sampler", sampler_names))
        for key, array in pack_names(called).items()
    }
    return {
        "hash": some.hash[order],
        "size": size,
        "times": times.astype(np.int32 if times.max(initial=0) < COUNT_LIMIT else np.int64),
        "rows": rows,
        **{name: np.array(column) for name, column in columns.items()},
        **names,
        "below": np.array(below, np.uint64),
        "larger": np.array(larger, np.int64),
    }


def _by_name(column: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """The names that stand in a column, sorted, and the column with their numbers."""
    used = sorted((names[i], i) for i in np.unique(column[column >= 0]).tolist())
    number = np.full(len(names) + 1, -1, np.int32)
    number[[i for _, i in used]] = np.arange(len(used))
    return number[column], [name for name, _ in used]


def _order(some: ResponseColumns, begin: np.ndarray) -> np.ndarray:
    order = np.argsort(some.hash)
    hashes = some.hash[order]
    again = np.flatnonzero(hashes[1:] == hashes[:-1])
    if len(again):  # about never: two contents with one hash
        places = np.unique([again, again + 1])

        def content(i: int) -> tuple:
            rows = some.rows[begin[i] : begin[i] + some.size[i]].tolist()
            return int(some.hash[i]), len(rows), rows, *(int(c[i]) for c in (some.worker, some.time, some.sampler))

        order[places] = sorted(order[places].tolist(), key=content)
    return order


def check_judgements(state: State) -> None:
    """Raise `Corrupt` unless the arrays, which have their types, shapes and ranges, are judgements in order."""
    hashes, size, rows = state["hash"], state["size"], state["rows"]
    n, m = len(hashes), int(size.sum(dtype=np.int64))
    if m != len(rows):
        raise Corrupt(f"rows: got {len(rows):,}, expected {m:,}, the sum of the sizes")
    check_rising("hash", hashes, twice=True)
    if n and hashes[-1] >= state["below"]:
        raise Corrupt(f"hash: got {hashes[-1]}, expected less than the threshold {state['below']}")
    for name in ("worker", "time", "sampler"):
        if len(state[name]) not in (0, n):
            raise Corrupt(f"{name}: got {len(state[name]):,}, expected none or {n:,}")
    time, zero = state["time"], np.signbit(state["time"]) & (state["time"] == 0)
    if not (time < np.inf).all() or zero.any() or (len(time) and time.max() == -np.inf):
        raise Corrupt("time: expected seconds, -inf where none are known and 0 without a sign, or nothing at all")
    if state["times"].dtype.itemsize == 8 and state["times"].max(initial=0) < COUNT_LIMIT:
        raise Corrupt(f"times: got int64 for counts below {COUNT_LIMIT}, expected int32")
    for who in ("worker", "sampler"):
        names = check_names(who, state[f"{who}_utf8"], state[f"{who}_offsets"], most=None, rising=True)
        used = np.bincount(state[who] + 1, minlength=names + 1)[1:]  # np.unique would load numpy.ma
        if not used.all() or (len(state[who]) and not names):
            raise Corrupt(f"{who}: expected {names:,} names, each used, or nothing at all")
    i, j, k, l = rows.T

    def comparisons(part: slice) -> np.ndarray:
        a, b, c, d = i[part], j[part], k[part], l[part]
        triplet = (a == c) & (a != b) & (a != d) & (b != d)
        return triplet | ((a != b) & (a != c) & (a != d) & (b != c) & (b != d) & (c != d))

    check_rows("rows", len(rows), comparisons, "an anchor twice and two others, or four objects")


def without_rows(some: ResponseColumns, gone: int) -> ResponseColumns:
    """Judgements without the comparisons that name an object; those that are left with none are gone. Later ids are one
    lower."""
    stays = ~(some.rows == gone).any(axis=1)
    size = np.bincount(np.repeat(np.arange(len(some.size)), some.size)[stays], minlength=len(some.size))
    fewer = some._replace(size=size.astype(np.int32), rows=shifted(some.rows[stays], gone))
    return selected_rows(fewer, fewer.size > 0)


def selected_rows(some: ResponseColumns, which: np.ndarray) -> ResponseColumns:
    """Those of the judgements, (c,) bool."""
    return ResponseColumns(
        some.hash[which],
        some.size[which],
        some.times[which],
        some.worker[which],
        some.time[which],
        some.sampler[which],
        some.rows[np.repeat(which, some.size)],
    )


def begins(size: np.ndarray) -> np.ndarray:
    """(c,) int64: where the rows of each begin that stand one after the other."""
    return np.cumsum(size, dtype=np.int64) - size
