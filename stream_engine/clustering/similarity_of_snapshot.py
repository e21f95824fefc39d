"""From a snapshot's counts to the similarity matrix that is clustered, and to resampled ones.

AddS-3 and AddS-4 are read as they stand (Perrot et al. 2020, sec. 4); k1 = MulK-3 and MulK-4 are made from the counts
(App. A). An object is clustered when W links it, with a nonzero entry, to enough others: one about which nothing is
known, or whose answers all cancel, gets no cluster rather than a coin toss.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.clustering import factored_kernel
from stream_engine.clustering.factored_kernel import Factored
from stream_engine.clustering.similarity_matrix import checked, from_triangle
from stream_engine.data.mapped_arrays import blocks
from stream_engine.data.triplet_columns import Columns, columns_from_rows, pair_of_entry
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics import kernels, weighted_counts
from stream_engine.statistics.subset import UnknownObjects, named

_WEIGHED = {f"{what}_{how}": how for what in ("adds3", "k1") for how in weighted_counts.HOWS}
SOURCES = ("adds3", "adds4", "k1", "mulk3", "mulk4", *_WEIGHED)
ADDITIVE = {
    "adds3": "adds3",
    "adds4": "adds4",
    "k1": "adds3",
    "mulk3": "adds3",
    "mulk4": "adds4",
    **{source: f"adds3_{how}" for source, how in _WEIGHED.items()},
}


class NoCounts(ValueError):
    """The snapshot does not keep what a similarity is made from; one line."""


class Evidence(NamedTuple):
    """W (n, n), zero diagonal (k1 of many objects: its factor), and how many comparisons it was made from (weighted: the sum
    of squared weights)."""

    W: np.ndarray | sparse.csr_array | Factored
    comparisons: int


def similarity(snapshot: Snapshot, source: str) -> Evidence:
    """The similarity named `source`. O(nnz) for AddS, as `kernels` says otherwise. Raises NoCounts, ValueError."""
    n, counters = len(snapshot.objects), snapshot.counters
    triplets = int(counters.get("triplets", 0))
    every = triplets + int(counters.get("quadruplets", 0))
    if source in ("adds3", "adds4"):
        room = _room(snapshot, source, source, triplets if source == "adds3" else every)
        return Evidence(from_triangle(room["i"], room["j"], room["w"], n), triplets if source == "adds3" else every)
    if source in _WEIGHED:
        try:
            if source.startswith("k1"):
                return Evidence(factored_kernel.k1(weighted_counts.counts(snapshot, _WEIGHED[source])), triplets)
            found = weighted_counts.adds3(snapshot, _WEIGHED[source])
        except weighted_counts.NotKept as error:
            raise NoCounts(f"similarity {source}: {error}") from None
        return Evidence(from_triangle(found.i, found.j, found.w, n), found.comparisons)
    if source == "mulk4":
        room = _room(snapshot, "quadruplet_counts", source, every)
        return Evidence(checked(kernels.mulk4(room, n)), every)
    _room(snapshot, "triplet_counts", source, triplets)
    return Evidence(factored_kernel.k1(triplet_columns(snapshot)), triplets)


def _room(snapshot: Snapshot, room: str, source: str, comparisons: int) -> dict[str, np.ndarray]:
    arrays = snapshot.section(room)
    if not arrays and comparisons:
        raise NoCounts(
            f"similarity {source}: the snapshot keeps no {room}, expected it among the accumulators; "
            "run the engine with it, or choose another similarity"
        )
    return arrays or {
        "i": np.empty(0, np.int32),
        "j": np.empty(0, np.int32),
        "k": np.empty(0, np.int32),
        "l": np.empty(0, np.int32),
        "w": np.empty(0, np.int64),
        "n_lo": np.empty(0, np.int64),
        "n_hi": np.empty(0, np.int64),
    }


def linked(W, minimum: int) -> np.ndarray:
    """Ids of the objects with a nonzero similarity to at least `minimum` others (at least 1), increasing;
    of a factor: those that answered so many questions.

    >>> linked(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.]]), 1).tolist()
    [0, 1]
    """
    if isinstance(W, Factored):
        return np.flatnonzero(W.said() >= max(minimum, 1))
    degree = np.diff(W.indptr) if sparse.issparse(W) else np.count_nonzero(W, axis=1)
    return np.flatnonzero(degree >= max(minimum, 1))


def chosen(snapshot: Snapshot, W, minimum: int, objects: int | tuple[str, ...] | None) -> np.ndarray:
    """Ids of the objects to be clustered, increasing: those `linked`; with a number the so many of them with the most evidence
    (sum of |W_ij| over j, ties by id), with names these only; and of a choice those that it links. O(nnz).

    Raises `NoCounts` for a name that no comparison has named.
    """
    ids = linked(W, minimum)
    if objects is None:
        return ids
    if isinstance(objects, int):
        ids = np.sort(ids[np.argsort(-_sizes(W)[ids], kind="stable")[:objects]])
    else:
        try:
            ids = np.intersect1d(ids, named(snapshot.objects, objects))
        except UnknownObjects as error:
            raise NoCounts(str(error)) from None
    return ids[linked(part(W, ids), minimum)]


def _sizes(W) -> np.ndarray:
    """(n,) sum of |W_ij| over j, of a factor the questions answered; in blocks of entries where W is sparse."""
    if isinstance(W, Factored):
        return W.said()
    if not sparse.issparse(W):
        return np.abs(W).sum(axis=1)
    sums = np.zeros(W.shape[0])
    for entries in blocks(W.nnz):
        first, end = np.searchsorted(W.indptr, (entries.start, entries.stop - 1), "right") - 1
        start = np.maximum(W.indptr[first : end + 1], entries.start) - entries.start
        rows = np.repeat(np.arange(first, end + 1), np.diff(start, append=entries.stop - entries.start))
        sums[first : end + 1] += np.bincount(rows - first, np.abs(W.data[entries]), end + 1 - first)
    return sums


def part(W, ids: np.ndarray):
    """W restricted to these objects, in this order."""
    if isinstance(W, Factored):
        return W.part(ids)
    return W[ids][:, ids] if sparse.issparse(W) else W[np.ix_(ids, ids)]


def resampled(snapshot: Snapshot, source: str, rng: np.random.Generator) -> np.ndarray | sparse.csr_array | None:
    """AddS of a bootstrap sample: each comparison counted a Poisson(1) number of times. None when the counts that this
    needs are not kept."""
    n = len(snapshot.objects)
    room = snapshot.section("triplet_counts")
    four = snapshot.section("quadruplet_counts") if source == "adds4" else {}
    missing = source == "adds4" and not four and snapshot.counters.get("quadruplets", 0)
    if not room or missing or source not in ("adds3", "adds4"):
        return None
    columns = triplet_columns(snapshot)
    net = rng.poisson(columns.n_lo) - rng.poisson(columns.n_hi)
    i, j, w = _pairs_of_triplets(columns, net)
    if four:
        votes = rng.poisson(four["n_lo"]) - rng.poisson(four["n_hi"])
        i = np.concatenate([i, four["i"], four["k"]])
        j = np.concatenate([j, four["j"], four["l"]])
        w = np.concatenate([w, votes, -votes])
    return from_triangle(np.minimum(i, j), np.maximum(i, j), w, n)


def resampled_like(snapshot: Snapshot, source: str, rng: np.random.Generator) -> np.ndarray | sparse.csr_array | None:
    """The similarity named `source`, a multiplicative kernel too, of a bootstrap sample; None as for `resampled`, and where
    comparisons have weights: their counts are not whole ones."""
    if source in ("adds3", "adds4"):
        return resampled(snapshot, source, rng)
    room = snapshot.section("quadruplet_counts" if source == "mulk4" else "triplet_counts")
    if not room or source in _WEIGHED:
        return None
    if source == "mulk4":
        votes = {side: rng.poisson(room[side]) for side in ("n_lo", "n_hi")}
        return checked(kernels.mulk4({**room, **votes}, len(snapshot.objects)))
    columns = triplet_columns(snapshot)
    n_lo, n_hi = rng.poisson(columns.n_lo), rng.poisson(columns.n_hi)
    kept, pair = (n_lo > 0) | (n_hi > 0), pair_of_entry(columns)
    return checked(
        kernels.k1(
            columns_from_rows(
                columns.anchor[kept],
                columns.lo[pair][kept],
                columns.hi[pair][kept],
                n_lo[kept],
                n_hi[kept],
                columns.n_objects,
            )
        )
    )


def _pairs_of_triplets(columns: Columns, net: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs and increments of AddS-3: {anchor, lo} gets the net vote, {anchor, hi} loses it."""
    pair = pair_of_entry(columns)
    anchor = np.concatenate([columns.anchor, columns.anchor])
    other = np.concatenate([columns.lo[pair], columns.hi[pair]])
    return anchor, other, np.concatenate([net, -net])
