"""A subset of a snapshot's objects: which ones, and the snapshot restricted to them.

Ids of a subset increase, so a refit of it runs as if there were no other objects. Nothing here costs O(n^2).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.triplet_columns import Columns, canonical_counts, state_of_columns
from stream_engine.state.snapshot import Snapshot, triplet_columns


class UnknownObjects(ValueError):
    """Names that no comparison has named; one line."""


class Subset(NamedTuple):
    """Some objects of a snapshot, and the snapshot restricted to them, in which object i is ids[i]."""

    ids: np.ndarray  # (n',) int64, increasing
    snapshot: Snapshot

    def all_of(self, whole: Snapshot) -> str:
        """Words for a message about the size of the subset; "" if it has all objects.

        >>> whole = Snapshot(1, {}, ("a", "b", "c"), {}, {}, {}, {})
        >>> Subset(np.array([2]), whole).all_of(whole)
        ' among the 1 chosen of 3 objects'
        """
        n = len(whole.objects)
        return "" if len(self.ids) == n else f" among the {len(self.ids):,} chosen of {n:,} objects"


def restrict(snapshot: Snapshot, objects: int | Sequence[str] | None, quadruplets: bool = False) -> Subset:
    """The snapshot restricted to a subset (None: as it is): counts of the triplets of which all objects are in it; with
    `quadruplets` also those counts. Raises `UnknownObjects`. O(keys + objects)."""
    if objects is None:
        return Subset(np.arange(len(snapshot.objects)), snapshot)
    ids = ids_of(snapshot, objects, quadruplets)
    new_id = renumbering(ids, len(snapshot.objects))
    columns = restrict_columns(triplet_columns(snapshot), new_id, new_id)._replace(n_objects=len(ids))
    arrays = {f"triplet_counts/{key}": array for key, array in state_of_columns(columns).items()}
    if quadruplets and (counts := snapshot.section("quadruplet_counts")):
        rows = np.stack([new_id[counts[key]] for key in "ijkl"], axis=1).astype(np.int32)
        is_inside = (rows >= 0).all(axis=1)
        arrays |= {f"quadruplet_counts/{key}": rows[is_inside, column] for column, key in enumerate("ijkl")}
        arrays |= {f"quadruplet_counts/{key}": counts[key][is_inside] for key in ("n_lo", "n_hi")}
    names = tuple(snapshot.objects[i] for i in ids.tolist())
    return Subset(ids, snapshot._replace(objects=names, arrays=arrays))


def ids_of(snapshot: Snapshot, objects: int | Sequence[str], quadruplets: bool = False) -> np.ndarray:
    """Ids of a subset, increasing: these names, or the N objects with the most `answers` (ties by id; one without any
    is never taken) to triplets, or to `quadruplets` too. Raises `UnknownObjects`. O(keys + n log n)."""
    if not isinstance(objects, int):
        return ids_of_names(snapshot.objects, objects)
    count = answers(triplet_columns(snapshot), snapshot.section("quadruplet_counts") if quadruplets else None)
    first = np.argsort(-count, kind="stable")[:objects]
    return np.sort(first[count[first] > 0])


def ids_of_names(names: Sequence[str], names_wanted: Sequence[str]) -> np.ndarray:
    """Ids of the names that are wanted, increasing, each once. Raises `UnknownObjects`. O(n).

    >>> ids_of_names(("a", "b", "c"), ("c", "a", "c")).tolist()
    [0, 2]
    """
    names_set = set(names_wanted)
    id_of = {name: i for i, name in enumerate(names) if name in names_set}
    if unknown := [name for name in names_wanted if name not in id_of]:
        raise UnknownObjects(
            f"objects: {len(unknown)} of {len(names_wanted)} names have no comparison; the first is {unknown[0]!r}"
        )
    return np.array(sorted(id_of.values()), np.int64)


def answers(columns: Columns, quadruplets: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
    """(n,) int64: how many answers, comparisons, name each object. O(K).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> answers(columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [3, 1, 0]]), 5)).tolist()
    [3, 3, 2, 1, 0]
    """
    count = np.zeros(columns.n_objects, np.int64)
    lo, hi, start, anchor, n_lo, n_hi = _read_only(columns)
    _add_answers(lo, hi, start, anchor, n_lo, n_hi, count)
    if quadruplets:
        votes = quadruplets["n_lo"] + quadruplets["n_hi"]
        for key in "ijkl":
            count += np.bincount(quadruplets[key], votes, len(count)).astype(np.int64)
    return count


def _read_only(columns: Columns) -> tuple[np.ndarray, ...]:
    return tuple(read_only(array) for array in columns[:6])


@njit(cache=True, nogil=True)
def _add_answers(lo, hi, start, anchor, n_lo, n_hi, count):
    for p in range(len(lo)):
        of_pair = 0
        for e in range(start[p], start[p + 1]):
            votes = np.int64(n_lo[e]) + n_hi[e]
            count[anchor[e]] += votes
            of_pair += votes
        count[lo[p]] += of_pair
        count[hi[p]] += of_pair


def renumbering(ids: np.ndarray, n: int) -> np.ndarray:
    """(n,) int32: the new id of each object in the subset `ids`, -1 where it is not in it.

    >>> renumbering(np.array([1, 3]), 4).tolist()
    [-1, 0, -1, 1]
    """
    new_id = np.full(n, -1, np.int32)
    new_id[ids] = np.arange(len(ids), dtype=np.int32)
    return new_id


def restrict_columns(columns: Columns, pair: np.ndarray, anchor: np.ndarray) -> Columns:
    """The keys whose lo and hi have a new id >= 0 in `pair` (n,) and whose anchor has one in `anchor` (n,), with these
    new ids, which increase with the old ones. `n_objects` stays. O(P + keys of the remaining pairs).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> columns = columns_from_triplets(np.array([[0, 1, 2], [3, 1, 2], [0, 2, 3]]), 4)
    >>> kept = restrict_columns(columns, renumbering(np.array([1, 2]), 4), np.arange(4, dtype=np.int32))
    >>> kept.lo.tolist(), kept.hi.tolist(), kept.start.tolist(), kept.anchor.tolist()
    ([0], [1], [0, 2], [0, 3])
    """
    pair, anchor = read_only(pair, np.int32), read_only(anchor, np.int32)
    lo, hi, old_start, old_anchor, n_lo, n_hi = _read_only(columns)
    count = np.zeros(len(lo), np.int64)
    _count_kept(lo, hi, old_start, old_anchor, pair, anchor, count)
    kept_pairs = np.flatnonzero(count)
    start = np.append(0, np.cumsum(count[kept_pairs])).astype(np.int64)
    new_anchor, new_lo, new_hi = (np.empty(start[-1], dtype) for dtype in (np.int32, n_lo.dtype, n_hi.dtype))
    _fill(kept_pairs, old_start, old_anchor, n_lo, n_hi, anchor, new_anchor, new_lo, new_hi)
    n_lo, n_hi = canonical_counts(new_lo, new_hi)
    return Columns(pair[lo[kept_pairs]], pair[hi[kept_pairs]], start, new_anchor, n_lo, n_hi, columns.n_objects)


@njit(cache=True, nogil=True)
def _count_kept(lo, hi, start, anchor, pair_number, anchor_number, count):
    for p in range(len(lo)):
        if pair_number[lo[p]] >= 0 and pair_number[hi[p]] >= 0:
            for e in range(start[p], start[p + 1]):
                count[p] += anchor_number[anchor[e]] >= 0


@njit(cache=True, nogil=True)
def _fill(kept_pairs, start, anchor, n_lo, n_hi, anchor_number, to_anchor, to_lo, to_hi):
    filled = 0
    for p in kept_pairs:
        for e in range(start[p], start[p + 1]):
            if anchor_number[anchor[e]] >= 0:
                to_anchor[filled], to_lo[filled], to_hi[filled] = anchor_number[anchor[e]], n_lo[e], n_hi[e]
                filled += 1


def common_positions(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(a, b)`: the positions of the common ids in two increasing arrays, first[a] == second[b].

    >>> [positions.tolist() for positions in common_positions(np.array([1, 4, 6]), np.array([0, 4, 6, 9]))]
    [[1, 2], [1, 2]]
    """
    return np.intersect1d(first, second, assume_unique=True, return_indices=True)[1:]


def learned_ids(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Ids of the objects of an artifact's K and K0: its `ids`, or else the first ones."""
    return np.asarray(arrays["ids"]) if "ids" in arrays else np.arange(len(arrays["K"]))
