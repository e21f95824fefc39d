"""AddS-3 and AddS-4: how much more often a pair of objects was nearer than farther (Perrot et al. 2020, sec. 4).

    AddS-3:  W_ij = sum_k ( #(i,j,k) - #(i,k,j) + #(j,i,k) - #(j,k,i) )
    AddS-4:  W_ij = sum_{k<l} ( #(i,j,k,l) - #(k,l,i,j) )

W is symmetric with zero diagonal; a comparison adds 1 to its near pair and -1 to its far pair, so W sums to zero.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from stream_engine.counts import Accumulator, radix
from stream_engine.counts.removal import Removal, pairs_minus
from stream_engine.counts.sorted_counts import LOG_FLOOR, SortedCounts, check_sum
from stream_engine.data.array_checks import LARGEST_COUNT, ArraySpec, check_rising, check_rows, ids
from stream_engine.data.comparisons import Batch
from stream_engine.data.compiled import for_size, njit, read_only
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation, blocks
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.data.triplet_columns import handed_over


class PairSums(NamedTuple):
    """The pairs {i, j} that the triplets name, as codes i n + j with i < j in increasing order, and the sum of each."""

    pair: np.ndarray  # (p,) int64
    w: np.ndarray  # (p,) int64 of whole weights, else float64
    near: np.ndarray  # (m,) int64: the entry of each triplet's near pair
    far: np.ndarray  # (m,) int64: of its far pair


def pair_sums(anchor: np.ndarray, near: np.ndarray, far: np.ndarray, weight: np.ndarray, n_objects: int) -> PairSums:
    """The sums, nonzero or not. O(m log m), or O(m) where there are n^2 triplets or more."""
    ends = np.concatenate([anchor, anchor]).astype(np.int64), np.concatenate([near, far]).astype(np.int64)
    code = np.minimum(*ends) * n_objects + np.maximum(*ends)
    pair, entry = _numbered(code, n_objects * n_objects)
    w = np.bincount(entry, np.concatenate([weight, -weight]), len(pair))
    if np.issubdtype(weight.dtype, np.integer):
        w = np.rint(w).astype(np.int64)
    return PairSums(pair, w, entry[: len(anchor)], entry[len(anchor) :])


def _numbered(code: np.ndarray, codes: int) -> tuple[np.ndarray, np.ndarray]:
    """`np.unique(code, return_inverse=True)` of codes below `codes`; by a table where there are at least as many."""
    if codes > len(code):
        return np.unique(code, return_inverse=True)
    there = np.zeros(codes, bool)
    there[code] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[code]


def adds3(
    anchor: np.ndarray, near: np.ndarray, far: np.ndarray, weight: np.ndarray, n_objects: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """i, j (int32, i < j, in order) and w: the nonzero entries.

    >>> [column.tolist() for column in adds3(*np.array([[0, 1, 2], [1, 0, 2]]).T, np.array([1, 1]), 3)]
    [[0, 0, 1], [1, 2, 2], [2, -1, -1]]
    """
    sums = pair_sums(anchor, near, far, weight, n_objects)
    keep, n = sums.w != 0, max(n_objects, 1)
    return (sums.pair[keep] // n).astype(np.int32), (sums.pair[keep] % n).astype(np.int32), sums.w[keep]


@njit(cache=True, nogil=True)
def _add_dense(w, rows):
    """Near pair + 1, far pair - 1, of rows (anchor, near, far) or (near_i, near_j, far_i, far_j). Unsigned, an index
    is not looked at for being negative: a fifth of the time."""
    triplets, last = rows.shape[1] == 3, rows.shape[1] - 1
    for e in range(len(rows)):
        i, j, l = np.uint32(rows[e, 0]), np.uint32(rows[e, 1]), np.uint32(rows[e, last])
        k = i if triplets else np.uint32(rows[e, 2])
        w[min(i, j), max(i, j)] += 1
        w[min(k, l), max(k, l)] -= 1


@njit(cache=True, nogil=True)
def _encode(rows, low, at, begin, end, bits):
    """Two events (i, j, side) a comparison; side 0 is the near pair. Events begin .. end - 1 from position `at` on."""
    bits, triplets = np.uint64(bits), rows.shape[1] == 3
    for event in range(begin, end):
        e, side = event >> 1, event & 1
        i = rows[e, 0] if triplets else rows[e, 2 * side]
        j = rows[e, 1 + side] if triplets else rows[e, 2 * side + 1]
        pair = np.uint64(min(i, j)) << bits | np.uint64(max(i, j))
        low[at + event - begin] = pair << np.uint64(1) | np.uint64(side)


# AddS-4 counts a triplet (i,j,k) as the quadruplet (i,j,i,k), which has exactly its increments. Up to DENSE_LIMIT
# objects W is an array (its upper triangle), above it a count per touched pair: 16 bytes a pair, never n^2. The state
# is the same: the nonzero entries i < j in order.
class _AddS(Accumulator):
    """The one matrix behind both; which comparisons count is all that differs."""

    QUADRUPLETS: ClassVar[bool]
    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {
        "i": ids("pairs"),
        "j": ids("pairs"),
        "w": ArraySpec(("<i8",), ("pairs",), 1 - LARGEST_COUNT, LARGEST_COUNT),
    }

    def __init__(self, dense_limit: int | None = None, log_floor: int = LOG_FLOOR, allocation: Allocation = IN_MEMORY):
        self._dense_limit = DENSE_LIMIT if dense_limit is None else dense_limit
        self._log_floor, self._allocation = log_floor, allocation
        self._w = np.zeros((0, 0), np.int64)
        self._pairs: SortedCounts | None = None  # instead of _w above the limit

    @classmethod
    def empty(cls, allocation: Allocation, **forgetting: Any) -> Self:
        """Nothing counted yet; counts of pairs are allocated as told."""
        return cls(allocation=allocation)

    def update(self, batch: Batch) -> None:
        """Add a batch. O(comparisons)."""
        self._fit(batch.n_objects)
        for rows in (batch.triplets, batch.quadruplets)[: 1 + self.QUADRUPLETS]:
            if not len(rows):
                continue
            rows = read_only(rows, np.int32)
            if self._pairs is None:
                for_size(_add_dense, len(rows))(self._w, rows)
            else:
                self._log(rows, self._pairs)

    @staticmethod
    def _log(rows: np.ndarray, pairs: SortedCounts) -> None:
        def encode(log, at, begin, end):
            _encode(rows, log[1], at, begin, end, pairs.bits)

        pairs.append(2 * len(rows), encode)

    def _fit(self, n: int) -> None:
        if self._pairs is None and n > self._dense_limit:
            state = self.state()
            self._pairs = SortedCounts(2, log_floor=self._log_floor, allocation=self._allocation)
            self._w = np.zeros((0, 0), np.int64)
            _load(self._pairs, state)
        if self._pairs is not None:
            self._pairs.fit(n)
        elif n > len(self._w):
            grown = np.zeros((min(max(n, 2 * len(self._w)), self._dense_limit),) * 2, np.int64)
            grown[: len(self._w), : len(self._w)] = self._w
            self._w = grown

    def merge(self, other: Self) -> None:
        """Add another one's W. O(its pairs), and once this one's when both are sparse."""
        theirs = other.state()
        self._fit(int(theirs["j"].max(initial=-1)) + 1)
        if self._pairs is None:
            check_sum(_largest(self._w), _largest(theirs["w"]))
            self._w[theirs["i"], theirs["j"]] += theirs["w"]
        else:
            pairs = SortedCounts(2, allocation=self._allocation)
            _load(pairs, theirs)
            self._pairs.merge(pairs)

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        return self._w.nbytes if self._pairs is None else self._pairs.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """`i`, `j` (int32, i < j) and `w` (int64): the nonzero entries in order. O(n^2) dense, O(pairs) sparse."""
        if self._pairs is None:
            of_row = [np.flatnonzero(row[a + 1 :]) + (a + 1) for a, row in enumerate(self._w)]
            i = np.repeat(np.arange(len(of_row), dtype=np.int32), [len(entries) for entries in of_row])
            j = np.concatenate([*of_row, i[:0]]).astype(np.int32)
            return handed_over({"i": i, "j": j, "w": self._w[i, j]})
        self._pairs.settle()
        plus, minus = self._pairs.n_lo, self._pairs.n_hi
        size = int(sum(np.count_nonzero(plus[part] != minus[part]) for part in blocks(len(plus))))
        i, j, w = (self._allocation.allocate(size, dtype) for dtype in (np.int32, np.int32, np.int64))
        filled = 0
        for part in blocks(len(plus)):
            keep = np.flatnonzero(plus[part] != minus[part])
            to = slice(filled, filled + len(keep))
            i[to], j[to] = (self._pairs.field(field, part)[keep] for field in (0, 1))
            w[to] = plus[part][keep].astype(np.int64) - minus[part][keep]
            filled = to.stop
        return handed_over({"i": i, "j": j, "w": w})

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless pairs are in order, i < j, w not 0, and all w sum to zero."""
        super().check_state(state, n_objects, **forgetting)
        i, j, w = (state[name] for name in "ijw")
        check_rows("i, j, w", len(w), lambda part: (i[part] < j[part]) & (w[part] != 0), "i < j, and w other than 0")
        check_rising("i, j", i, j)
        if (total := w.sum()) != 0:
            raise Corrupt(f"w: sums to {total}, expected 0: a comparison adds and takes away 1")

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The accumulator that has this state."""
        similarity = cls(allocation=allocation)
        similarity._take(state)
        return similarity

    def _take(self, state: Mapping[str, np.ndarray]) -> None:
        """Have this state; nothing was counted before."""
        self._fit(int(state["j"].max(initial=-1)) + 1)
        if self._pairs is None:
            self._w[state["i"], state["j"]] = state["w"]
        else:
            _load(self._pairs, state)

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]. O(pairs)."""
        new_id = np.asarray(new_id, np.int64)
        a, b = new_id[state["i"]], new_id[state["j"]]
        i, j = np.minimum(a, b), np.maximum(a, b)
        order = radix.argsort([i, j], int(max(new_id.max(initial=1), 1)).bit_length())
        return {"i": i[order].astype(np.int32), "j": j[order].astype(np.int32), "w": np.array(state["w"])[order]}

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state less what the comparisons that leave had added. O(pairs + keys that leave)."""
        return pairs_minus(state, leaving, cls.QUADRUPLETS)


def _largest(w: np.ndarray) -> int:
    """The largest |w|, as Python's int: that of -2**63 fits into no int64."""
    return max(int(w.max(initial=0)), -int(w.min(initial=0)))


def _load(pairs: SortedCounts, state: Mapping[str, np.ndarray]) -> None:
    """w as the difference of two counts, one of them zero."""
    w = state["w"]
    plus, minus = (pairs.allocation.allocate(len(w), w.dtype) for _ in range(2))
    np.maximum(w, 0, out=plus)
    np.subtract(plus, w, out=minus)
    pairs.load([state["i"], state["j"]], plus, minus)


class AddS3(_AddS):
    """W of the triplets.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> from stream_engine.data.symmetric_matrices import dense_matrix
    >>> w = AddS3()
    >>> w.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [1, 0, 2]], np.int32)))
    >>> dense_matrix(**w.state(), n_objects=3).tolist()
    [[0, 2, -1], [2, 0, -1], [-1, -1, 0]]
    """

    QUADRUPLETS = False


class AddS4(_AddS):
    """W of all comparisons, triplets included as the quadruplets that they are.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> w = AddS4()
    >>> w.update(empty_batch(4)._replace(quadruplets=np.array([[3, 2, 0, 1]], np.int32)))
    >>> {key: array.tolist() for key, array in w.state().items()}
    {'i': [0, 2], 'j': [1, 3], 'w': [-1, 1]}
    """

    QUADRUPLETS = True
    same: AddS3 | None = None  # has counted just what this one has, is told of each batch before, and holds W for both

    def stand_on(self, adds3: AddS3) -> None:
        """Hold nothing while only triplets come: W is that of `adds3`, which must be equal and be updated first."""
        self._w, self._pairs, self.same = np.zeros((0, 0), np.int64), None, adds3

    def stand_alone(self) -> None:
        """Have a W of its own, the one that both have now. O(pairs)."""
        if self.same is not None:
            state, self.same = self.same.state(), None
            self._take(state)

    def update(self, batch: Batch) -> None:
        """Add a batch. O(comparisons); O(quadruplets) while it stands on AddS-3, and O(pairs) once when they part."""
        if self.same is not None:
            if not len(batch.quadruplets):
                return
            self.stand_alone()
            batch = batch._replace(triplets=batch.triplets[:0])
        super().update(batch)

    def merge(self, other: Self) -> None:
        """Add another one's W. Must stand alone: AddS-3 may have been merged before."""
        assert self.same is None
        super().merge(other)

    def state(self) -> dict[str, np.ndarray]:
        """As that of AddS-3."""
        return super().state() if self.same is None else self.same.state()
