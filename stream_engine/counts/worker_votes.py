"""Who answered what: triplet counts by worker, from which reliability is computed. Exact and mergeable.

A key is (lo, hi, anchor, worker); its counts are how often this worker found lo, and hi, nearer to the anchor. Per
worker also the number of events, and of catch trials passed and failed.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator, radix
from stream_engine.counts.removal import Removal, votes_with_worker_called, votes_without
from stream_engine.counts.sorted_counts import LOG_FLOOR, SortedCounts
from stream_engine.data.array_checks import (
    EXACT,
    PACKED,
    ArraySpec,
    check_counts,
    check_names,
    check_rising,
    check_rows,
    counts,
    ids,
)
from stream_engine.data.comparisons import Batch, Provenance
from stream_engine.data.compiled import for_size, njit, read_only
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.packed_names import pack_names, unpack_names

TALLIES = ("events", "passed", "failed")


@njit(cache=True, nogil=True)
def _encode(triplets, worker, high, low, wide, at, bits):
    """Events (lo, hi, anchor, worker, direction) from rows anchor, near, far."""
    bits, one = np.uint64(bits), np.uint64(1)
    for e in range(len(triplets)):
        near, far = triplets[e, 1], triplets[e, 2]
        pair = np.uint64(min(near, far)) << bits | np.uint64(max(near, far))
        tail = (np.uint64(triplets[e, 0]) << bits | np.uint64(worker[e])) << one | np.uint64(near > far)
        if wide:
            high[at + e] = pair
            low[at + e] = tail
        else:
            low[at + e] = pair << (bits + bits + one) | tail


# Comparisons without a worker belong to the worker "". Next to triplet counts their votes are not stored again
# (`leave_nobody_out`): they are the counts less all named votes. In the state, workers are numbered in the order of
# their names. 16 bytes per (key, worker) at rest, packed up to 2**15 objects and workers.
class WorkerVotes(Accumulator):
    """`state()`: `lo`, `hi`, `anchor`, `worker` (K,) int32 in key order, `n_lo`, `n_hi` (K,) int32 (int64 from 2**30
    on); `utf8`, `offsets`: the workers' names, sorted; `events`, `passed`, `failed` (workers,) int64.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> votes = WorkerVotes()
    >>> votes.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [0, 2, 1]], np.int32)))
    >>> state = votes.state()
    >>> names_of(state), [int(state[key][0]) for key in ("lo", "hi", "anchor", "worker", "n_lo", "n_hi")]
    (('',), [1, 2, 0, 0, 1, 1])
    """

    needs_provenance = True
    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {
        **{name: ids("keys") for name in ("lo", "hi", "anchor")},
        "worker": ids("keys", of="names"),
        **EXACT,
        **PACKED,
        **{tally: counts("names") for tally in TALLIES},
    }

    def __init__(self, key_bits: int = 64, log_floor: int = LOG_FLOOR, allocation: Allocation = IN_MEMORY):
        self._counts = SortedCounts(4, key_bits, log_floor, allocation)
        self._worker: dict[str, int] = {}
        self._tallies = np.zeros((len(TALLIES), 0), np.int64)
        self.keeps_nobody = True

    @classmethod
    def empty(cls, allocation: Allocation, **forgetting: Any) -> Self:
        """Nothing counted yet; the votes are allocated as told."""
        return cls(allocation=allocation)

    def update(self, batch: Batch) -> None:
        """Count the triplets of a batch by worker, and its workers' events and catch trials."""
        provenance, triplets = batch.provenance, read_only(batch.triplets, np.int32)
        if provenance is None:
            nobody = self._ids([""]) if len(triplets) + len(batch.quadruplets) else np.empty(0, np.int32)
            of_triplet = np.repeat(nobody, len(triplets))
            self._tallies[0, nobody] += len(triplets) + len(batch.quadruplets)
        else:
            ids = self._ids([*provenance.workers, ""] if self._names_nobody(provenance) else provenance.workers)
            of_event = ids[provenance.worker] if len(ids) else np.empty(0, np.int32)  # -1: the last one
            self._tally(0, of_event[1:] if provenance.continues else of_event)
            self._tally(1, ids[provenance.catch_worker[provenance.catch_passed]])
            self._tally(2, ids[provenance.catch_worker[~provenance.catch_passed]])
            of_triplet = (
                of_event[provenance.of_triplet] if self.keeps_nobody or provenance.workers else np.empty(0, np.int32)
            )
        if not self.keeps_nobody:
            triplets, of_triplet = self._named(triplets, of_triplet)
        if not len(triplets):
            return
        counts = self._counts
        counts.fit(max(batch.n_objects, len(self._worker)))
        triplets, worker = read_only(triplets), read_only(of_triplet, np.int32)

        def encode(log: radix.Keys, at: int, begin: int, end: int) -> None:
            for_size(_encode, end - begin)(triplets[begin:end], worker[begin:end], *log, counts.wide, at, counts.bits)

        counts.append(len(triplets), encode)

    def _named(self, triplets: np.ndarray, worker: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The triplets whose worker is named, and who; `worker` is empty where nobody is."""
        nobody = self._worker.get("")
        if nobody is None or not len(worker):
            return triplets[: len(worker)], worker
        named = worker != nobody
        return triplets[named], worker[named]

    def leave_nobody_out(self) -> None:
        """From now on keep no votes that name no worker, and give up those that are held: triplet counts beside have
        them. Tallies stay. O(1), or O(keys) where there are some."""
        self.keeps_nobody = False
        if "" in self._worker and len(self._counts):
            self._counts.settle()
            state = self.state()
            self._counts = SortedCounts(4, allocation=self._counts.allocation)
            self._worker, self._tallies = {}, np.zeros((len(TALLIES), 0), np.int64)
            self._add(state)

    @property
    def workers(self) -> list[str]:
        """The workers that were named, in the order in which they came."""
        return [name for name in self._worker if name]

    @staticmethod
    def _names_nobody(provenance: Provenance) -> bool:
        return bool((provenance.worker < 0).any() or (provenance.catch_worker < 0).any())

    def _ids(self, names: list[str]) -> np.ndarray:
        """The numbers of workers by name; new ones get the next."""
        ids = np.array([self._worker.setdefault(name, len(self._worker)) for name in names], np.int32)
        if len(self._worker) > self._tallies.shape[1]:
            grown = np.zeros((len(TALLIES), 2 * len(self._worker)), np.int64)
            grown[:, : self._tallies.shape[1]] = self._tallies
            self._tallies = grown
        return ids

    def _tally(self, which: int, worker: np.ndarray) -> None:
        counts = np.bincount(worker)
        self._tallies[which, : len(counts)] += counts

    def merge(self, other: Self) -> None:
        """Add another one's votes; workers of one name are one worker."""
        self._add(other.state())

    def _add(self, state: Mapping[str, np.ndarray]) -> None:
        ids = self._ids(list(names_of(state)))
        for which, tally in enumerate(TALLIES):
            np.add.at(self._tallies[which], ids, state[tally])
        theirs = SortedCounts(4, allocation=self._counts.allocation)
        worker = ids[state["worker"]] if len(ids) else state["worker"]
        columns = [state["lo"], state["hi"], state["anchor"], worker]
        counts = [state["n_lo"], state["n_hi"]]
        if not self.keeps_nobody and "" in self._worker:
            named = worker != self._worker[""]
            columns, counts = ([column[named] for column in some] for some in (columns, counts))
        order = _in_order(columns)
        theirs.load([column[order] for column in columns], *(column[order] for column in counts))
        self._counts.merge(theirs)

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        return self._counts.nbytes + self._tallies.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """The votes and the tallies, workers in the order of their names. O(keys * digits)."""
        names = sorted(self._worker)
        new = np.empty(len(names), np.int64)
        old = np.array([self._worker[name] for name in names], np.int64)
        new[old] = np.arange(len(names))
        self._counts.settle()
        counts = self._counts.counts()
        *columns, worker = self._counts.ids()
        columns.append(new[worker].astype(np.int32))
        order = _in_order(columns)
        return {
            **{name: column[order] for name, column in zip(("lo", "hi", "anchor", "worker"), columns)},
            "n_lo": counts["n_lo"][order],
            "n_hi": counts["n_hi"][order],
            **pack_names(names),
            **{tally: self._tallies[which][old] for which, tally in enumerate(TALLIES)},
        }

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless votes are in order and workers by name."""
        super().check_state(state, n_objects, **forgetting)
        check_names("worker", state["utf8"], state["offsets"], least=0, most=None, rising=True)
        lo, hi, anchor, worker = (state[name] for name in ("lo", "hi", "anchor", "worker"))

        def three(part: slice) -> np.ndarray:
            return (lo[part] < hi[part]) & (anchor[part] != lo[part]) & (anchor[part] != hi[part])

        check_rows("lo, hi, anchor", len(lo), three, "three objects, lo < hi")
        check_rising("lo, hi, anchor, worker", lo, hi, anchor, worker)
        check_counts(state["n_lo"], state["n_hi"])

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The accumulator that has this state."""
        votes = cls(allocation=allocation)
        votes._add(state)
        return votes

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]; workers stay who they are."""
        new_id = np.asarray(new_id, np.int32)
        a, b = new_id[state["lo"]], new_id[state["hi"]]
        columns, flip = [np.minimum(a, b), np.maximum(a, b), new_id[state["anchor"]], state["worker"]], a > b
        order = _in_order(columns)
        n_lo, n_hi = (np.where(flip, state[y], state[x])[order] for x, y in (("n_lo", "n_hi"), ("n_hi", "n_lo")))
        return {
            **{name: column[order] for name, column in zip(("lo", "hi", "anchor", "worker"), columns)},
            "n_lo": n_lo,
            "n_hi": n_hi,
            **{key: np.array(state[key]) for key in ("utf8", "offsets", *TALLIES)},
        }

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state without the votes about an object, or without a worker. Tallies count events, and stay. O(keys)."""
        return votes_without(state, leaving, TALLIES)

    @classmethod
    def with_worker_called(cls, state: Mapping[str, np.ndarray], old: str, new: str) -> dict[str, np.ndarray]:
        """The same votes by a worker of another name. O(keys log keys)."""
        return votes_with_worker_called(state, old, new, TALLIES)


def names_of(state: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The workers of a state, position = number."""
    return unpack_names(state["utf8"], state["offsets"])


def holds_nobody(state: Mapping[str, np.ndarray]) -> bool:
    """Whether votes of a state name nobody. Names are sorted, and the empty one is the first."""
    return bool((state["worker"] == 0).any()) and names_of(state)[0] == ""


def _in_order(columns) -> np.ndarray:
    return radix.argsort(columns, max(int(column.max(initial=1)) for column in columns).bit_length())
