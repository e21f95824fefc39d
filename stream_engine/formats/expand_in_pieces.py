"""The comparisons of a block in pieces of limited size: a ranking of 10,000 objects makes 50 million comparisons.

A block with more than `COMPARISONS_AT_ONCE` is divided between events, a larger event between its near objects. The
pieces concatenated are the comparisons of the block; an event goes on in the next piece if that has `continues`.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import DecodedEvents, Kinds, Provenance
from stream_engine.data.compiled import for_size
from stream_engine.data.packed_names import Names
from stream_engine.formats.event_columns import slices_side_by_side
from stream_engine.formats.event_fields import RANKING
from stream_engine.formats.expand import FINE, Comparisons, Faults, chosen_at, expand, first_appearance

COMPARISONS_AT_ONCE = 1 << 21  # about 200 MB while they are learned; 8 MiB of plain triplets are about 130,000


class EventArrays(NamedTuple):
    """The events of a block, as arguments of `expand`."""

    kind: np.ndarray  # (e,) int8
    start: np.ndarray  # (e + 1,) int64
    split: np.ndarray  # (e,) int64
    members: np.ndarray  # (f,) int32
    flags: np.ndarray  # (n,) uint8
    votes: np.ndarray | None = None  # (e, 2) int64, see `expand`

    def between(self, begin: int, end: int) -> "EventArrays":
        """The events from `begin` to `end`."""
        first = self.start[begin]
        return EventArrays(
            self.kind[begin:end],
            self.start[begin : end + 1] - first,
            self.split[begin:end] - first,
            self.members[first : self.start[end]],
            self.flags,
            None if self.votes is None else self.votes[begin:end],
        )


class AcceptedOrigins(NamedTuple):
    """Who gave the accepted events, with what weight, and when; and the catch trials."""

    worker: np.ndarray  # (a,) int32 into `workers`, -1 without a name
    weight: np.ndarray  # (a,) float64
    time: np.ndarray  # (a,) float64
    workers: list[str]
    sampler: np.ndarray  # (a,) int32 into `samplers`, -1 without a name
    samplers: list[str]
    catch_worker: np.ndarray  # (c,) int32
    catch_passed: np.ndarray  # (c,) bool
    catch_key: np.ndarray  # (c,) uint64
    seconds: np.ndarray  # (a,) float64


class Run(NamedTuple):
    """Events `begin` to `end`; or, for a single event, the comparisons with its near objects `first` to `last`."""

    begin: int
    end: int
    first: int = 0
    last: int | None = None
    goes_on: bool = False  # there are near objects after `last`


class Pieces:
    """The comparisons of a block as an iterable of blocks."""

    def __init__(self, events: EventArrays, faults: Faults, texts: Names, origins: AcceptedOrigins | None):
        self._events, self._faults, self._texts, self._origins = events, faults, texts, origins

    @cached_property
    def _accepted_before(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self._faults.fault == FINE)])

    @cached_property
    def _positions(self) -> tuple[np.ndarray, np.ndarray]:
        fine = self._faults.fault == FINE
        assert self._origins is not None
        named = self._origins.worker >= 0  # of the others they say nothing
        if not named.any():
            nowhere = np.broadcast_to(np.int32(0), len(named))
            return nowhere, nowhere
        among = fine.copy()
        among[fine] = named
        shown, position = chosen_at(*self._events[:4], among)
        return shown[fine], position[fine]

    def runs(self) -> list[Run]:
        """The content of each piece; at least one."""
        sizes = self._faults.size[:, 0] + self._faults.size[:, 1]
        if sizes.sum() <= COMPARISONS_AT_ONCE:
            return [Run(0, len(sizes))]
        runs, begin, ends = [], 0, np.cumsum(sizes)
        while begin < len(sizes):
            before = ends[begin] - sizes[begin]
            end = int(np.searchsorted(ends, before + COMPARISONS_AT_ONCE, side="right"))
            if end > begin:
                runs.append(Run(begin, end))
            else:
                runs += self._runs_within(begin)
            begin = max(end, begin + 1)
        return runs

    def _runs_within(self, event: int) -> list[Run]:
        near, far = self._near_and_far(event)
        ends = np.cumsum(_fars_of_each(self._events.kind[event], near, far))
        runs, first = [], 0
        while first < len(near):
            before = ends[first - 1] if first else 0
            last = int(np.searchsorted(ends, before + COMPARISONS_AT_ONCE, side="right"))
            last = max(last, first + 1)
            runs.append(Run(event, event + 1, first, last, last < len(near)))
            first = last
        return runs

    def of(self, runs: Sequence[Run]) -> "LazyBlocks":
        """The blocks of these runs, created on iteration."""
        return LazyBlocks(self, runs)

    def block(self, run: Run) -> DecodedEvents:
        """The comparisons of one run; the catch trials are with the first run."""
        if run.last is None:
            slices = Faults(*(column[run.begin : run.end] for column in self._faults))
            of_run = self._events.between(run.begin, run.end)
            comparisons = expand(*of_run[:5], slices, of_run.votes)
        else:
            comparisons = self._part_of_event(run)
        n_comparisons = len(comparisons.triplets) + len(comparisons.quadruplets)
        order = for_size(first_appearance, n_comparisons + len(self._texts))(
            comparisons.triplets, comparisons.quadruplets, comparisons.quadruplet_at, len(self._texts)
        )
        fine, kinds = comparisons.fault == FINE, self._events.kind[run.begin : run.end]
        kinds = kinds if fine.all() else kinds[fine]
        return DecodedEvents(
            self._texts.taken(order),
            comparisons.triplets,
            comparisons.quadruplets,
            comparisons.quadruplet_at,
            [],
            {},
            [],
            provenance=None if self._origins is None else self._provenance(run, comparisons, kinds),
            kinds=Kinds(comparisons.of_triplet, comparisons.of_quadruplet, kinds, run.first > 0, run.goes_on),
        )

    def _part_of_event(self, run: Run) -> Comparisons:
        """Some of the comparisons of one event: each near object of the run with all farther ones."""
        event = run.begin
        near, far = self._near_and_far(event)
        last = len(near) if run.last is None else run.last
        places = np.arange(run.first, last)
        if self._events.kind[event] == RANKING:
            lengths = len(far) - places
            far_of = far[slices_side_by_side(lengths, places)]
        else:
            lengths = np.full(len(places), len(far))
            far_of = np.tile(far, len(places))
        triplets = np.empty((len(far_of), 3), np.int32)
        triplets[:, 0] = self._events.members[self._events.start[event]]
        triplets[:, 1] = np.repeat(near[places], lengths)
        triplets[:, 2] = far_of
        none = np.empty(0, np.int64)
        return Comparisons(
            np.array([FINE], np.int8),
            np.zeros((1, 2), np.int64),
            triplets,
            np.empty((0, 4), np.int32),
            none,
            np.zeros(len(triplets), np.int32),
            none.astype(np.int32),
        )

    def _near_and_far(self, event: int) -> tuple[np.ndarray, np.ndarray]:
        """Of a ranking, all but the last and all but the first; of a pick, the chosen and the others as shown."""
        kind, start, split, members, *_ = self._events
        if kind[event] == RANKING:
            ranked = members[start[event] + 1 : start[event + 1]]
            return ranked[:-1], ranked[1:]
        shown, chosen = members[start[event] + 1 : split[event]], members[split[event] : start[event + 1]]
        return chosen, shown[~np.isin(shown, chosen)]

    def _provenance(self, run: Run, comparisons: Comparisons, kinds: np.ndarray) -> Provenance:
        origins = self._origins
        assert origins is not None
        accepted = slice(int(self._accepted_before[run.begin]), int(self._accepted_before[run.end]))
        begins = not run.begin and not run.first
        return Provenance(
            comparisons.of_triplet,
            comparisons.of_quadruplet,
            kinds,
            origins.worker[accepted],
            origins.workers,
            origins.weight[accepted],
            origins.time[accepted],
            origins.catch_worker if begins else origins.catch_worker[:0],
            origins.catch_passed if begins else origins.catch_passed[:0],
            run.first > 0,
            origins.sampler[accepted],
            origins.samplers,
            origins.seconds[accepted],
            *(column[accepted] for column in self._positions),
        )._replace(catch_key=origins.catch_key if begins else origins.catch_key[:0])


class LazyBlocks:
    """Blocks that are created at each iteration."""

    def __init__(self, pieces: Pieces, runs: Sequence[Run]):
        self._pieces, self._runs = pieces, runs

    def __iter__(self) -> Iterator[DecodedEvents]:
        return (self._pieces.block(run) for run in self._runs)


def _fars_of_each(kind: int, near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """The number of comparisons of each near object of an event."""
    return len(far) - np.arange(len(near)) if kind == RANKING else np.full(len(near), len(far))
