"""A running estimate of every worker's reliability: stepwise EM of the one-coin model (Dawid & Skene 1979; Cappe &
Moulines 2009), one step a comparison. Off by default.

A key (anchor, {lo, hi}) keeps its log-odds of lo being nearer, the sum over votes of +-log(r / (1 - r)) at the time of
each vote. A vote on a key that was voted on before is *informed*: with q = P(the vote's direction), own vote included,

    right_w += q,   informed_w += 1,   r_w = (8 + right_w) / (12 + informed_w)

A vote stays weighed as it was when it came: the batch EM of the refit `reliability`, which weighs all votes by the
final reliabilities, is better and is what statistics are weighted by; this one costs some 100 ns a comparison, follows
at once, and shows who guesses while a study is running. It learns from repeated questions only, and takes a repetition
by the same worker for a vote like others. A ledger. 24 to 64 bytes a key.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.accumulators import Ledger, radix
from stream_engine.accumulators.leaving_workers import workers_with_one_called
from stream_engine.data.array_checks import Held, check_rising, check_rows, counts, figures, ids
from stream_engine.data.comparisons import Batch
from stream_engine.data.compiled import njit
from stream_engine.data.integer_hash import mix64
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.name_checks import PACKED, check_names
from stream_engine.data.open_addressing import equals, find_slot
from stream_engine.data.packed_names import pack_names, unpack_names

RIGHT, SEEN = 8.0, 12.0  # the Beta prior of a worker: 8 right of 12
LIMIT = 0.99
BITS = 21  # an object's in a packed key


@njit(cache=True, nogil=True, inline="always")
def _slot(keys, key):
    """The slot that holds this key, or the empty one (0) that it gets; as lo < hi, no key is 0."""
    return find_slot(keys, mix64(key), equals, key)


@njit(cache=True, nogil=True)
def _move(keys, odds, to_keys, to_odds):
    for e in range(len(keys)):
        if keys[e] != np.uint64(0):
            slot = _slot(to_keys, keys[e])
            to_keys[slot] = keys[e]
            to_odds[slot] = odds[e]


@njit(cache=True, nogil=True)
def _learn(keys, odds, triplets, worker, right, informed):
    """One step a comparison, in order; returns how many keys are new."""
    fresh = 0
    for e in range(len(triplets)):
        near, far, w = triplets[e, 1], triplets[e, 2], worker[e]
        key = (
            (np.uint64(min(near, far)) << np.uint64(42))
            | (np.uint64(max(near, far)) << np.uint64(21))
            | np.uint64(triplets[e, 0])
        )
        slot = _slot(keys, key)
        r = min(max((8.0 + right[w]) / (12.0 + informed[w]), 0.01), 0.99)
        step = math.log(r / (1 - r))
        direction = 1.0 if near < far else -1.0
        if keys[slot] == key:
            odds[slot] += direction * step
            right[w] += 1 / (1 + math.exp(-direction * odds[slot]))
            informed[w] += 1
        else:
            keys[slot] = key
            odds[slot] = direction * step
            fresh += 1
    return fresh


class WorkerReliability(Ledger):
    """`state()`: `lo`, `hi`, `anchor` (K,) int32 in order, `odds` (K,) float64; a row a worker in the order of names
    (`utf8`, `offsets`): `right` float64, `informed` int64.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> online = WorkerReliability()
    >>> online.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [0, 1, 2]], np.int32)))
    >>> online.state()["informed"].tolist(), online.state()["right"].round(3).tolist()
    ([1], [0.8])
    """

    needs_provenance = True
    tolerance = 1e-9
    HOLDS: ClassVar[Mapping[str, Held]] = {
        **{name: ids("keys") for name in ("lo", "hi", "anchor")},
        "odds": figures("keys", finite=True),
        **PACKED,
        "right": figures("names", least=0.0, finite=True),
        "informed": counts("names"),
    }

    def __init__(self) -> None:
        self._keys, self._odds = np.zeros(64, np.uint64), np.zeros(64)
        self._used = 0
        self._worker: dict[str, int] = {}
        self._right, self._informed = np.zeros(0), np.zeros(0, np.int64)

    def update(self, batch: Batch) -> None:
        """One step for each triplet of a batch, in order. Raises ValueError beyond 2**21 objects."""
        triplets, given = np.ascontiguousarray(batch.triplets, np.int32), batch.provenance
        if not len(triplets):
            return
        if batch.n_objects > 1 << BITS:
            raise ValueError(
                f"worker_reliability - {batch.n_objects} objects - expected at most 2**{BITS}; leave it out"
            )
        names = [""] if given is None else [*given.workers, ""]
        of_triplet = np.zeros(len(triplets), np.int64) if given is None else given.worker[given.of_triplet]
        used, inverse = np.unique(of_triplet, return_inverse=True)
        ids = np.array([self._worker.setdefault(names[w], len(self._worker)) for w in used], np.int64)
        if len(self._worker) > len(self._right):
            more = 2 * len(self._worker) - len(self._right)
            self._right = np.concatenate([self._right, np.zeros(more)])
            self._informed = np.concatenate([self._informed, np.zeros(more, np.int64)])
        for begin in range(0, len(triplets), 1 << 16):
            part = slice(begin, begin + (1 << 16))
            self._make_room(len(triplets[part]))
            self._used += _learn(
                self._keys, self._odds, triplets[part], ids[inverse[part]], self._right, self._informed
            )

    def _make_room(self, more: int) -> None:
        if 2 * (self._used + more) > len(self._keys):
            size = 1 << (3 * (self._used + more)).bit_length()
            keys, odds = np.zeros(size, np.uint64), np.zeros(size)
            _move(self._keys, self._odds, keys, odds)
            self._keys, self._odds = keys, odds

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._keys.nbytes + self._odds.nbytes + self._right.nbytes + self._informed.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """Keys in order, workers in the order of their names. O(keys)."""
        there = self._keys != 0
        keys, odds = self._keys[there], self._odds[there]
        order = np.argsort(keys)
        lo, hi, anchor = (
            (keys[order] >> np.uint64(shift) & np.uint64((1 << BITS) - 1)).astype(np.int32) for shift in (42, 21, 0)
        )
        names = sorted(self._worker)
        old = np.array([self._worker[name] for name in names], np.int64)
        return {
            "lo": lo,
            "hi": hi,
            "anchor": anchor,
            "odds": odds[order],
            "right": self._right[old],
            "informed": self._informed[old],
            **pack_names(names),
        }

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless keys are in order, workers by name, and none right oftener than informed."""
        super().check_state(state, n_objects, **forgetting)
        check_names("worker", state["utf8"], state["offsets"], least=0, most=None, rising=True)
        lo, hi, anchor = (state[name] for name in ("lo", "hi", "anchor"))

        def three(part: slice) -> np.ndarray:
            return (lo[part] < hi[part]) & (anchor[part] != lo[part]) & (anchor[part] != hi[part])

        check_rows("lo, hi, anchor", len(lo), three, "three objects, lo < hi")
        check_rows("hi, anchor", len(lo), lambda part: (hi[part] | anchor[part]) >> BITS == 0, f"ids below 2**{BITS}")
        check_rising("lo, hi, anchor", lo, hi, anchor)
        right, informed = state["right"], state["informed"]
        check_rows("right", len(right), lambda part: right[part] <= informed[part] * (1 + 1e-9), "at most `informed`")

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The estimate that has this state, bit for bit, in memory."""
        estimate = cls()
        estimate._worker = {name: w for w, name in enumerate(unpack_names(state["utf8"], state["offsets"]))}
        estimate._right, estimate._informed = np.array(state["right"]), np.array(state["informed"])
        estimate._make_room(len(state["odds"]))
        keys = np.zeros(len(state["odds"]), np.uint64)
        for name in ("lo", "hi", "anchor"):
            keys = keys << np.uint64(BITS) | state[name].astype(np.uint64)
        _move(keys, np.array(state["odds"]), estimate._keys, estimate._odds)
        estimate._used = len(keys)
        return estimate

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        new_id = np.asarray(new_id, np.int32)
        a, b, anchor = new_id[state["lo"]], new_id[state["hi"]], new_id[state["anchor"]]
        lo, hi = np.minimum(a, b), np.maximum(a, b)
        order = radix.argsort([lo, hi, anchor], int(max(new_id.max(initial=1), 1)).bit_length())
        odds = np.where(a > b, -state["odds"], state["odds"])
        return {
            "lo": lo[order],
            "hi": hi[order],
            "anchor": anchor[order],
            "odds": odds[order],
            **{key: np.array(state[key]) for key in ("right", "informed", "utf8", "offsets")},
        }

    @classmethod
    def with_worker_called(cls, state: Mapping[str, np.ndarray], old: str, new: str) -> dict[str, np.ndarray]:
        """The same estimate of a worker of another name. O(workers log workers)."""
        return {**state, **workers_with_one_called(state, old, new, ("right", "informed"))[0]}

    @classmethod
    def definition(cls, batch: Batch, **forgetting: Any) -> dict[str, np.ndarray]:
        """One vote after the other, in plain Python."""
        given = batch.provenance
        odds: dict[tuple[int, int, int], float] = {}
        right: dict[str, float] = {}
        informed: dict[str, int] = {}
        for e, (anchor, near, far) in enumerate(batch.triplets.tolist()):
            name = "" if given is None else [*given.workers, ""][given.worker[given.of_triplet[e]]]
            right.setdefault(name, 0.0)
            informed.setdefault(name, 0)
            r = min(max((RIGHT + right[name]) / (SEEN + informed[name]), 1 - LIMIT), LIMIT)
            key, direction = (min(near, far), max(near, far), anchor), 1 if near < far else -1
            informs = key in odds
            odds[key] = odds.get(key, 0.0) + direction * math.log(r / (1 - r))
            if informs:
                right[name] += 1 / (1 + math.exp(-direction * odds[key]))
                informed[name] += 1
        keys, names = sorted(odds), sorted(right)
        rows = np.array(keys, np.int32).reshape(-1, 3)
        return {
            "lo": rows[:, 0].copy(),
            "hi": rows[:, 1].copy(),
            "anchor": rows[:, 2].copy(),
            "odds": np.array([odds[key] for key in keys], float),
            "right": np.array([right[n] for n in names], float),
            "informed": np.array([informed[n] for n in names], np.int64),
            **pack_names(names),
        }
