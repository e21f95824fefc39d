"""What is removed from a state, exactly or not at all: the comparisons about an object, or a worker's answers.

Counts are dropped or subtracted, sums over pairs by what the counts say was added. What was weighted, decayed or judged
in order of arrival raises `CannotForget`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.packed_names import pack_names, unpack_names
from stream_engine.data.triplet_columns import (
    canonical_counts,
    columns_from_keys,
    first_of_equal,
    net_vote,
    state_of_columns,
)

State = Mapping[str, np.ndarray]
TRIPLET, QUADRUPLET = ("lo", "hi", "anchor"), ("i", "j", "k", "l")
COUNTS = ("n_lo", "n_hi")


class CannotForget(ValueError):
    """A statistic that cannot be told apart from the rest; the message says why, beginning with its name."""


class Removal(NamedTuple):
    """Comparisons that leave, by the ids that they have in the state: one row a key, keys may repeat. None where the
    state does not hold them one by one."""

    triplets: State | None  # lo, hi, anchor, n_lo, n_hi
    quadruplets: State | None  # i, j, k, l, n_lo, n_hi
    gone: int = -1  # the object that all of them name
    worker: str | None = None  # who answered all of them

    @property
    def of_object(self) -> bool:
        """Whether an object leaves, and not a worker."""
        return self.gone >= 0


# Later ids are one lower afterwards: the state is that of a stream in which the object was never shown. O(keys).
def shifted(ids: np.ndarray, gone: int) -> np.ndarray:
    """The ids after object `gone` has left.

    >>> shifted(np.array([0, 1, 3]), 2).tolist()
    [0, 1, 2]
    """
    return (ids - (ids > gone)).astype(ids.dtype)


def rows_naming(state: State, ids: Sequence[str], gone: int) -> np.ndarray:
    """(K,) bool: which keys name an object."""
    return np.logical_or.reduce([state[name] == gone for name in ids])


def rows_where(state: State, rows: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Some rows of these columns."""
    return {name: state[name][rows] for name in names}


def keys_without(state: State, ids: Sequence[str], beside: Sequence[str], gone: int) -> dict[str, np.ndarray]:
    """The columns of keys `ids` and what stands beside them, without the keys that name an object."""
    stays = ~rows_naming(state, ids, gone)
    remaining = rows_where(state, stays, [*ids, *beside])
    return remaining | {name: shifted(remaining[name], gone) for name in ids}


def triplet_rows(state: State) -> dict[str, np.ndarray]:
    """Triplet counts, which stand as columns, as one row a key."""
    sizes = np.diff(state["start"])
    return {name: np.repeat(state[name], sizes) for name in ("lo", "hi")} | {
        name: state[name] for name in ("anchor", *COUNTS)
    }


def triplet_columns(rows: State) -> dict[str, np.ndarray]:
    """The inverse; keys increase."""
    lo, hi, anchor, n_lo, n_hi = (rows[name] for name in (*TRIPLET, *COUNTS))
    return state_of_columns(columns_from_keys(lo, hi, anchor, n_lo, n_hi, n_objects=0))


def triplets_without(state: State, gone: int) -> dict[str, np.ndarray]:
    """Triplet counts or sums without the keys that name an object."""
    return triplet_columns(keys_without(triplet_rows(state), TRIPLET, COUNTS, gone))


def with_canonical_counts(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same state; counts are int32 again where they can be."""
    return state | dict(zip(COUNTS, canonical_counts(state["n_lo"], state["n_hi"])))


def minus(rows: State, ids: Sequence[str], leaving: State) -> dict[str, np.ndarray]:
    """Counts by key less those that leave; keys that nobody answered any more are gone. Raises `CannotForget` where
    more would leave than there is."""
    columns = [np.concatenate([rows[name], leaving[name]]) for name in ids]
    order = np.lexsort(columns[::-1])
    columns = [column[order] for column in columns]
    first = first_of_equal(*columns)
    sums = []
    for name in COUNTS:
        counts = np.concatenate([rows[name].astype(np.int64), -leaving[name].astype(np.int64)])[order]
        sums.append(np.add.reduceat(counts, np.flatnonzero(first)) if len(counts) else counts)
    if any((column < 0).any() for column in sums):
        raise CannotForget("has fewer answers than worker_votes; `verify` shows details")
    stays = (sums[0] > 0) | (sums[1] > 0)
    votes = dict(zip(COUNTS, canonical_counts(sums[0][stays], sums[1][stays])))
    return {name: column[first][stays] for name, column in zip(ids, columns)} | votes


def pairs_minus(state: State, leaving: Removal, with_quadruplets: bool) -> dict[str, np.ndarray]:
    """AddS less what the comparisons that leave had added to it: +1 to each near pair, -1 to each far pair."""
    if leaving.triplets is None:
        raise CannotForget("is a sum over triplets, which this state does not hold one by one (triplet_counts does)")
    t = leaving.triplets
    net = net_vote(t["n_lo"].astype(np.int64), t["n_hi"].astype(np.int64))
    ends, added = [(t["anchor"], t["lo"]), (t["anchor"], t["hi"])], [net, -net]
    if with_quadruplets:
        if leaving.quadruplets is None:
            raise CannotForget(
                "is a sum over quadruplets too, which this state does not hold one by one"
                + (" (quadruplet_counts does)" if leaving.of_object else ", by worker")
            )
        q = leaving.quadruplets
        net = net_vote(q["n_lo"].astype(np.int64), q["n_hi"].astype(np.int64))
        ends, added = [*ends, (q["i"], q["j"]), (q["k"], q["l"])], [*added, net, -net]
    i = np.concatenate([state["i"], *(np.minimum(a, b) for a, b in ends)])
    j = np.concatenate([state["j"], *(np.maximum(a, b) for a, b in ends)])
    w = np.concatenate([state["w"], *(-columns for columns in added)])
    order = np.lexsort((j, i))
    i, j, w = i[order], j[order], w[order]
    first = first_of_equal(i, j)
    w = np.add.reduceat(w, np.flatnonzero(first)) if len(w) else w
    i, j, w = i[first][w != 0], j[first][w != 0], w[w != 0]
    if leaving.of_object:
        if ((i == leaving.gone) | (j == leaving.gone)).any():
            raise CannotForget("does not match the counts of the same comparisons; `verify` shows details")
        i, j = shifted(i, leaving.gone), shifted(j, leaving.gone)
    return {"i": i.astype(np.int32), "j": j.astype(np.int32), "w": w.astype(np.int64)}


def counted_triplets_without(state: State, leaving: Removal) -> dict[str, np.ndarray]:
    """Triplet counts without the keys of an object, or less the answers of a worker."""
    if leaving.of_object:
        return with_canonical_counts(triplets_without(state, leaving.gone))
    if leaving.triplets is None:
        raise CannotForget("does not know who answered (worker_votes does)")
    return triplet_columns(minus(triplet_rows(state), TRIPLET, leaving.triplets))


def counted_quadruplets_without(state: State, leaving: Removal) -> dict[str, np.ndarray]:
    """Quadruplet counts without the keys of an object."""
    if leaving.of_object:
        return with_canonical_counts(keys_without(state, QUADRUPLET, COUNTS, leaving.gone))
    if leaving.quadruplets is None:
        raise CannotForget("does not know who answered; worker_votes holds triplets only")
    return minus(state, QUADRUPLET, leaving.quadruplets)


def sums_without(state: State, leaving: Removal, by_key: bool) -> dict[str, np.ndarray]:
    """Float sums by key without those of an object."""
    if not by_key:
        raise CannotForget("is a sum of weights over pairs, in which one object's or participant's share is unknown")
    if not leaving.of_object:
        raise CannotForget("sums weights, and does not know whose")
    return triplets_without(state, leaving.gone)


def window_without(state: State, leaving: Removal) -> dict[str, np.ndarray]:
    """A window by time without the triplets of an object."""
    if not leaving.of_object:
        raise CannotForget("does not know who answered")
    stays = ~(state["rows"] == leaving.gone).any(axis=1)
    remaining = {"rows": shifted(state["rows"][stays], leaving.gone), "time": state["time"][stays]}
    return {name: np.array(array) for name, array in state.items()} | remaining


def votes_without(state: State, leaving: Removal, tallies: Sequence[str]) -> dict[str, np.ndarray]:
    """Votes by worker without those about an object, or without a worker and what was tallied of it."""
    about_workers = {name: np.array(state[name]) for name in ("utf8", "offsets", *tallies)}
    if leaving.of_object:
        return keys_without(state, TRIPLET, ("worker", *COUNTS), leaving.gone) | about_workers
    names = list(unpack_names(state["utf8"], state["offsets"]))
    if leaving.worker not in names:
        return dict(state)
    w = names.index(leaving.worker)
    votes = rows_where(state, state["worker"] != w, (*TRIPLET, "worker", *COUNTS))
    votes["worker"] = (votes["worker"] - (votes["worker"] > w)).astype(np.int32)
    return votes | pack_names(names[:w] + names[w + 1 :]) | {name: np.delete(state[name], w) for name in tallies}


def votes_of(state: State, worker: str) -> dict[str, np.ndarray]:
    """The triplets that a worker answered: `lo`, `hi`, `anchor`, `n_lo`, `n_hi`."""
    names = unpack_names(state["utf8"], state["offsets"])
    w = names.index(worker) if worker in names else -1
    return rows_where(state, state["worker"] == w, (*TRIPLET, *COUNTS))


def votes_with_worker_called(state: State, old: str, new: str, tallies: Sequence[str]) -> dict[str, np.ndarray]:
    """Votes by worker after one got another name; workers stand in the order of their names."""
    workers, number = workers_with_one_called(state, old, new, tallies)
    votes = rows_where(state, np.ones(len(state["lo"]), bool), (*TRIPLET, "worker", *COUNTS))
    votes["worker"] = number[votes["worker"]].astype(np.int32)
    order = np.lexsort((votes["worker"], votes["anchor"], votes["hi"], votes["lo"]))
    return {name: column[order] for name, column in votes.items()} | workers


def workers_with_one_called(
    state: State, old: str, new: str, beside: Sequence[str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """`(the names and what stands beside them, in order again; the new number of each worker)`."""
    names = [new if name == old else name for name in unpack_names(state["utf8"], state["offsets"])]
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    number = np.empty(len(names), np.int64)
    number[order] = np.arange(len(names))
    return pack_names([names[w] for w in order]) | {name: state[name][order] for name in beside}, number
