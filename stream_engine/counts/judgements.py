"""Whole judgements (the comparisons of one answer), as many as fit, for splits that must not cut an answer apart.

A bottom-k sample (Cohen & Kaplan 2007): all judgements whose content hash lies below the largest threshold at which at
most `bound` comparisons are stored. It depends on the set of judgements alone, so reservoirs merge.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator, judgement_kernels
from stream_engine.counts.judgement_kernels import ALL, OF_SAMPLER, OF_WORKER, ReservoirSample, ResponseColumns
from stream_engine.counts.judgement_states import (
    NO_TIME,
    begins,
    canonical,
    check_judgements,
    response_columns,
    selected_rows,
    time_bits,
    without_rows,
)
from stream_engine.counts.removal import Removal
from stream_engine.data import array_checks
from stream_engine.data.comparisons import Batch, Provenance
from stream_engine.data.compiled import read_only
from stream_engine.data.hashing import hashes_of_numbers, name_hashes, splitmix64
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.triplet_columns import handed_over

_NOTHING = np.empty(0, np.int32)


class NumberedNames:
    """Names as numbers, in the order in which they are first asked for."""

    def __init__(self, names: Sequence[str] = ()):
        self.number = {name: i for i, name in enumerate(names)}

    def numbers(self, names: Sequence[str], column: np.ndarray) -> np.ndarray:
        """(c,) int32: the numbers here of names[column], -1 where that is -1. Names that stand nowhere get none."""
        new = np.full(len(names) + 1, -1, np.int32)  # the one at the end is nobody's
        for i in np.unique(column[column >= 0]).tolist():
            new[i] = self.number.setdefault(names[i], len(self.number))
        return new[column]

    def names(self) -> list[str]:
        """The names by number."""
        return list(self.number)


# Counts do not know which comparisons came from one answer (a pick of 4 among 12 makes 32), nor from whom. Judgements
# of equal content are stored once, with their number; equal hashes do not suffice. One of more than `most` comparisons
# is only counted (`larger`): it would take the room of thousands. A judgement keeps its hash when an object or worker
# is renamed or an object is forgotten, so the sample stays one by hash; the same content under the new name stands
# apart. 60 bytes per comparison at most, half as much again while it learns.
class Judgements(Accumulator):
    """`state()`: J judgements by rising hash, m comparisons. `hash` (J,) uint64; `size` (J,) int32 comparisons; `times`
    (J,) int32 (int64 from 2**30 on); `rows` (m, 4) int32, d(i, j) < d(k, l), a triplet as anchor, near, anchor, far;
    `worker`, `sampler` int32 and `time` float64 seconds, (J,) or empty where none says one, -1 and -inf where one does
    not; `worker_utf8`, `worker_offsets`, `sampler_utf8`, `sampler_offsets`: names, sorted; `below` () uint64 the
    threshold, 2**64 - 1 where nothing was thrown away; `larger` () int64: judgements too large to be held.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> kept = Judgements()
    >>> kept.update(empty_batch(4)._replace(triplets=np.array([[0, 1, 2], [3, 2, 1], [0, 1, 2]], np.int32)))
    >>> state = kept.state()
    >>> sorted(zip(state["rows"].tolist(), state["times"].tolist())), int(state["below"]) == ALL
    ([([0, 1, 0, 2], 2), ([3, 2, 3, 1], 1)], True)
    """

    needs_provenance = True
    needs_name_hashes = True
    bound: ClassVar[int] = 1 << 18  # comparisons held
    most: ClassVar[int] = 1 << 12  # comparisons of a judgement that is held
    HOLDS: ClassVar[Mapping[str, array_checks.ArraySpec]] = {
        "hash": array_checks.ArraySpec(("<u8",), ("judgements",)),
        "size": array_checks.counts("judgements", dtypes=("<i4",), least=1),
        "times": array_checks.counts("judgements", dtypes=("<i4", "<i8"), least=1),
        "rows": array_checks.ids("comparisons", 4),
        "worker": array_checks.ids("told", of="worker_names", least=-1),
        "time": array_checks.figures("timed", finite=False),
        "sampler": array_checks.ids("asked", of="sampler_names", least=-1),
        **{
            f"{who}_{key}": value
            for who in ("worker", "sampler")
            for key, value in (
                ("utf8", array_checks.ArraySpec(("|u1",), (f"{who}_bytes",))),
                ("offsets", array_checks.offsets(f"{who}_names")),
            )
        },
        "below": array_checks.ArraySpec(("<u8",), (), 1),
        "larger": array_checks.counts(),
    }

    def __init__(self) -> None:
        self._n, self._used, self._below, self._larger = 0, 0, ALL, 0
        self._sample, self._thrown_away = _room(64), False
        self._workers, self._samplers = NumberedNames(), NumberedNames()

    def update(self, batch: Batch) -> None:
        """Take in the judgements of a batch. The comparisons of one judgement stand side by side in it."""
        names = batch.name_hashes
        names = hashes_of_numbers(batch.n_objects) if names is None else names
        provenance, kinds = batch.provenance, batch.kinds
        if kinds is not None and (kinds.continues or kinds.goes_on):
            batch = self._without_parts(batch)
            provenance, kinds = batch.provenance, batch.kinds
        events = provenance or kinds  # else each comparison is a judgement
        origins = np.empty(0, np.uint64) if provenance is None else origins_of(provenance)
        for rows, of_event in (
            (batch.triplets, events.of_triplet if events else _NOTHING),
            (batch.quadruplets, events.of_quadruplet if events else _NOTHING),
        ):
            if len(rows):
                self._take_in(rows, of_event, origins, names, provenance)

    def _take_in(
        self,
        rows: np.ndarray,
        of_event: np.ndarray,
        origins: np.ndarray,
        names: np.ndarray,
        provenance: Provenance | None,
    ) -> None:
        """Rows (m, 3 or 4) with the event of each: those whose hash is below the threshold."""
        room = [np.empty(len(rows), dtype) for dtype in (np.uint64, np.int64, np.int64, np.int64)]
        rows, of_event = read_only(rows, np.int32), read_only(of_event, np.int32)
        judged = rows, of_event, origins, read_only(names), np.uint64(self._below)
        if rows.shape[1] == 3 and (of_event[1:] > of_event[:-1]).all():
            count = judgement_kernels.single_below(*judged, *room)
        else:
            count, larger = judgement_kernels.below_threshold(*judged, self.most, *room)
            self._larger += larger
        hashes, events, begins, ends = (column[:count] for column in room)
        sizes = (ends - begins).astype(np.int32)
        copied = judgement_kernels.copied_rows(rows, begins, sizes)
        nobody, never = np.full(count, -1, np.int32), np.full(count, NO_TIME)
        worker, time, sampler = nobody, never, nobody
        if provenance is not None and len(origins):
            worker = self._workers.numbers(provenance.workers, provenance.worker[events])
            time = time_bits(provenance.time[events])
            if len(provenance.sampler):
                sampler = self._samplers.numbers(provenance.samplers, provenance.sampler[events])
        self._enter(ResponseColumns(hashes, sizes, np.ones(count, np.int64), worker, time, sampler, copied))

    def _without_parts(self, batch: Batch) -> Batch:
        """The batch without comparisons of an event that has others in other batches, which is far too large."""
        kinds = batch.kinds
        assert kinds is not None
        last, of_triplet = len(kinds.kind) - 1, kinds.of_triplet
        self._larger += kinds.goes_on and not (kinds.continues and last == 0)
        whole = slice(
            int(np.searchsorted(of_triplet, 0, "right")) if kinds.continues else 0,
            int(np.searchsorted(of_triplet, last)) if kinds.goes_on else len(of_triplet),
        )
        provenance = batch.provenance
        return batch._replace(
            triplets=batch.triplets[whole],
            kinds=kinds._replace(of_triplet=of_triplet[whole]),
            provenance=provenance and provenance._replace(of_triplet=provenance.of_triplet[whole]),
        )

    def _enter(self, some: ResponseColumns) -> None:
        """Add judgements whose workers and samplers are numbered as here."""
        some = ResponseColumns(*(read_only(column) for column in some))  # one type, thus compiled once
        at = row = 0
        if not self._n:
            self._sample = _room(min(max(64, len(some.rows)), self.bound))
        while True:
            self._n, self._used, at, row = judgement_kernels.enter(
                self._sample, self._n, self._used, some, at, row, np.uint64(self._below)
            )
            if at == len(some.hash):
                break
            self._make_room(int(some.size[at]))
        self._drop_names()

    def _drop_names(self) -> None:
        """Give up the names of workers and samplers of whom nothing is held any more."""
        if self._thrown_away:
            sample, n = self._sample, self._n
            self._workers, sample.worker[:n] = _only_used(self._workers, sample.worker[:n])
            self._samplers, sample.sampler[:n] = _only_used(self._samplers, sample.sampler[:n])
            self._thrown_away = False

    def _make_room(self, size: int) -> None:
        """For one more judgement of so many comparisons, if there must be by throwing others away."""
        most = self.bound + max(self.bound // 2, size)
        if self._used + size > most:
            self._cut()
        need = max(2 * self._n, self._n + 1, self._used + size)
        if self._used + size > len(self._sample.rows) or self._n == len(self._sample.hash):
            self._sample = _room(min(max(need, 2 * self._used), most), self._sample, self._n, self._used)
            judgement_kernels.file_all(self._sample, self._n)

    def _cut(self) -> None:
        """Lower the threshold as far as it must be, and throw away what does not lie below it."""
        if self._used <= self.bound:
            return
        sample, n = self._sample, self._n
        self._below = int(
            judgement_kernels.threshold(sample.hash[:n], sample.size[:n], np.uint64(self._below), self.bound)
        )
        self._n, self._used = judgement_kernels.keep_below(sample, n, np.uint64(self._below))
        sample.table[:] = 0
        judgement_kernels.file_all(sample, self._n)
        self._thrown_away = True

    def merge(self, other: Self) -> None:
        """Add what another one holds: below the lower of both thresholds, both know every judgement."""
        self._add(other.state())

    def _add(self, state: Mapping[str, np.ndarray]) -> None:
        self._larger += int(state["larger"])
        below = int(state["below"])
        if below < self._below:
            self._below = below
            self._n, self._used = judgement_kernels.keep_below(self._sample, self._n, np.uint64(below))
            self._sample.table[:] = 0
            judgement_kernels.file_all(self._sample, self._n)
            self._thrown_away = True
        some = response_columns(state)
        worker = self._workers.numbers(unpack_names(state["worker_utf8"], state["worker_offsets"]), some.worker)
        sampler = self._samplers.numbers(unpack_names(state["sampler_utf8"], state["sampler_offsets"]), some.sampler)
        self._enter(some._replace(worker=worker, sampler=sampler))

    @property
    def workers(self) -> list[str]:
        """Who answered what is held."""
        return self._workers.names()

    @property
    def complete(self) -> bool:
        """Whether every judgement is held, each with its number."""
        return self._below == ALL and not self._larger

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        return sum(array.nbytes for array in self._sample)

    def state(self) -> dict[str, np.ndarray]:
        """The judgements below the threshold, by hash. O(J log J)."""
        self._cut()
        self._drop_names()
        sample, n = self._sample, self._n
        some = ResponseColumns(
            sample.hash[:n],
            sample.size[:n],
            sample.times[:n],
            sample.worker[:n],
            sample.time[:n],
            sample.sampler[:n],
            sample.rows,
        )
        begin, workers, samplers = sample.begin[:n], self._workers.names(), self._samplers.names()
        return handed_over(canonical(some, begin, workers, samplers, self._below, self._larger))

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless judgements are in order, below the threshold, and made of comparisons."""
        super().check_state(state, n_objects, **forgetting)
        check_judgements(state)

    @classmethod
    def answers(cls, state: Mapping[str, np.ndarray]) -> float:
        """Those of all judgements held."""
        return float(state["size"] @ state["times"].astype(float)) if len(state["size"]) else 0.0

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The reservoir that has this state."""
        judgements = cls()
        judgements._add(state)
        return judgements

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i has the number new_id[i]. Hashes are of names, and stay."""
        some = response_columns(state)
        rows = np.asarray(new_id, np.int32)[some.rows].reshape(-1, 4)
        return canonical(some._replace(rows=rows), begins(some.size), *_names_and_limits(state))

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state without the comparisons about an object (a judgement that is left with none is gone), or without
        the judgements of a worker. The threshold and the hashes stay. O(comparisons held)."""
        some = response_columns(state)
        if leaving.of_object:
            some = without_rows(some, leaving.gone)
        else:
            workers = unpack_names(state["worker_utf8"], state["worker_offsets"])
            stays = some.worker != (workers.index(leaving.worker) if leaving.worker in workers else -2)
            some = selected_rows(some, stays)
        return canonical(some, begins(some.size), *_names_and_limits(state))

    @classmethod
    def with_worker_called(cls, state: Mapping[str, np.ndarray], old: str, new: str) -> dict[str, np.ndarray]:
        """The same judgements by a worker of another name; their hashes stay. O(comparisons held)."""
        some = response_columns(state)
        workers, samplers, *bounds = _names_and_limits(state)
        workers = tuple(new if name == old else name for name in workers)
        return canonical(some, begins(some.size), workers, samplers, *bounds)


def origins_of(provenance: Provenance) -> np.ndarray:
    """(e,) uint64: h_0 of each event, what is hashed of who gave it, when, and how it was asked; empty where nothing
    is said."""
    # formats repeat one value at no cost (stride 0) where no event says anything
    worker, time, sampler = (
        column[:1] if column.strides == (0,) else column
        for column in (provenance.worker, provenance.time, provenance.sampler)
    )
    if not ((worker >= 0).any() or not np.isnan(time).all() or (sampler >= 0).any()):
        return np.empty(0, np.uint64)
    named, timed, asked = provenance.worker >= 0, ~np.isnan(provenance.time), provenance.sampler >= 0
    origins = np.zeros(len(provenance.kind), np.uint64)
    if named.any():
        origins[named] = OF_WORKER * name_hashes(provenance.workers)[provenance.worker[named]]
    if timed.any():
        origins[timed] += splitmix64(time_bits(provenance.time[timed]).view(np.uint64))
    if asked.any():
        origins[asked] += OF_SAMPLER * name_hashes(provenance.samplers)[provenance.sampler[asked]]
    return origins


def _names_and_limits(state: Mapping[str, np.ndarray]) -> tuple[tuple[str, ...], tuple[str, ...], int, int]:
    """Workers, samplers, threshold, and how many were too large, as `canonical` takes them."""
    workers, samplers = (unpack_names(state[f"{who}_utf8"], state[f"{who}_offsets"]) for who in ("worker", "sampler"))
    return workers, samplers, int(state["below"]), int(state["larger"])


def _room(size: int, before: ReservoirSample | None = None, n: int = 0, used: int = 0) -> ReservoirSample:
    """Room for so many judgements and comparisons, beginning with those that there are; an empty table."""
    slots = 128
    while slots < 2 * (size + 1):
        slots *= 2
    sample = ReservoirSample(
        np.empty(size, np.uint64),
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int32),
        np.empty((size, 4), np.int32),
        np.empty(size, np.int64),
        np.zeros(slots, np.uint64),
    )
    if before is not None:
        for mine, theirs in zip(sample[:8], before):
            keep = used if mine.ndim == 2 else n
            mine[:keep] = theirs[:keep]
    return sample


def _only_used(names: NumberedNames, column: np.ndarray) -> tuple[NumberedNames, np.ndarray]:
    """Only the names that stand in a column, and the column with their new numbers."""
    fewer = NumberedNames()
    return fewer, fewer.numbers(names.names(), column)
