"""Float sums by key: the store behind weighted and decayed statistics.

Additions go to a log that is sorted into the base when it has grown as long: amortised O(log), 300 to 500 ns. Sums
agree with their definition to a relative 1e-9 of the sum of absolute values, as floats are added in order of arrival.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from stream_engine.counts import radix
from stream_engine.data.array_checks import (
    COLUMNS,
    LARGEST_SUM,
    ArraySpec,
    check_columns,
    check_rising,
    check_rows,
    figures,
    ids,
    weights,
)
from stream_engine.data.comparisons import MAX_WEIGHT
from stream_engine.data.compiled import njit
from stream_engine.data.symmetric_matrices import DENSE_LIMIT
from stream_engine.data.triplet_columns import columns_from_keys, first_of_equal, state_of_columns

LOG_FLOOR = 1 << 14  # entries; a shorter log is not worth sorting


class Sums:
    """`ids` (K, fields) int32 in increasing order and `values` (K, columns) float64, after `settle`."""

    def __init__(self, fields: int, columns: int, log_floor: int = LOG_FLOOR):
        self.ids, self.values = np.empty((0, fields), np.int32), np.empty((0, columns))
        self._log: list[tuple[np.ndarray, np.ndarray]] = []
        self._logged, self._floor = 0, log_floor

    @property
    def nbytes(self) -> int:
        """Bytes held, the log included."""
        return sum(a.nbytes + b.nbytes for a, b in [(self.ids, self.values), *self._log])

    def add(self, ids: np.ndarray, values: np.ndarray) -> None:
        """Add rows of values to rows of ids; the arrays become this object's own."""
        if not len(ids):
            return
        self._log.append((ids, values))
        self._logged += len(ids)
        if self._logged >= max(self._floor, len(self.ids)):
            self.settle()

    def settle(self) -> None:
        """Bring the log into the base."""
        if not self._log:
            return
        ids = np.concatenate([self.ids, *(a for a, _ in self._log)])
        values = np.concatenate([self.values, *(b for _, b in self._log)])
        self._log, self._logged = [], 0
        order = radix.argsort(list(ids.T), int(max(ids.max(initial=1), 1)).bit_length())
        ids, values = ids[order], values[order]
        first = first_of_equal(*ids.T)
        self.ids, self.values = ids[first], np.add.reduceat(values, np.flatnonzero(first), axis=0)

    def scale(self, factor: float, floor: float) -> None:
        """Multiply all sums; keys whose values all fall below `floor` are forgotten."""
        self.settle()
        values = self.values * factor
        keep = (np.abs(values) >= floor).any(axis=1)
        self.ids, self.values = self.ids[keep], values[keep]


@njit(cache=True, nogil=True)
def _add_dense(w, triplets, weight):
    """Near pair + weight, far pair - weight."""
    for e in range(len(triplets)):
        a, b, c = triplets[e, 0], triplets[e, 1], triplets[e, 2]
        w[min(a, b), max(a, b)] += weight[e]
        w[min(a, c), max(a, c)] -= weight[e]


class PairSums:
    """AddS-3 in floats: W_ij = sum of the weights of triplets with near pair {i, j} minus those with far pair {i, j}.

    An array up to the dense limit (5 ns a comparison), `Sums` above it. State: `i`, `j` int32 (i < j, in order), `w`
    float64, nonzero; `squares` float64: the sum of squared weights, the variance that pure noise would give W.
    """

    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {
        "i": ids("pairs"),
        "j": ids("pairs"),
        "w": weights("pairs"),
        "squares": figures(least=0.0, below=LARGEST_SUM * MAX_WEIGHT),
    }

    def __init__(self, dense_limit: int = DENSE_LIMIT, log_floor: int = LOG_FLOOR):
        self._dense_limit = dense_limit
        self._w = np.zeros((0, 0))
        self._pairs: Sums | None = None
        self._floor = log_floor
        self.squares = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._w.nbytes if self._pairs is None else self._pairs.nbytes

    def add(self, triplets: np.ndarray, weight: np.ndarray, n_objects: int) -> None:
        """Add triplets (m, 3) with weights (m,)."""
        self._fit(n_objects)
        self.squares += float(weight @ weight)
        if self._pairs is None:
            _add_dense(self._w, np.ascontiguousarray(triplets, np.int32), weight)
            return
        anchor, near, far = triplets.T
        i, j = np.concatenate([anchor, anchor]), np.concatenate([near, far])
        self._pairs.add(
            np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1), np.concatenate([weight, -weight])[:, None]
        )

    def _fit(self, n: int) -> None:
        if self._pairs is None and n > self._dense_limit:
            i, j = np.nonzero(self._w)
            self._pairs = Sums(2, 1, self._floor)
            self._pairs.add(np.stack([i, j], axis=1).astype(np.int32), self._w[i, j][:, None])
            self._w = np.zeros((0, 0))
        elif self._pairs is None and n > len(self._w):
            grown = np.zeros((min(max(n, 2 * len(self._w)), self._dense_limit),) * 2)
            grown[: len(self._w), : len(self._w)] = self._w
            self._w = grown

    def scale(self, factor: float, floor: float) -> None:
        """Multiply all sums; what falls below `floor` is forgotten."""
        self.squares *= factor * factor
        if self._pairs is not None:
            self._pairs.scale(factor, floor)
        else:
            self._w *= factor
            self._w[np.abs(self._w) < floor] = 0

    def state(self, factor: float = 1.0) -> dict[str, np.ndarray]:
        """The nonzero entries times `factor`."""
        i: np.ndarray
        j: np.ndarray
        if self._pairs is None:
            i, j = np.nonzero(self._w)
            w = self._w[i, j]
        else:
            self._pairs.settle()
            i, j = self._pairs.ids.T
            w = self._pairs.values[:, 0]
        w = w * factor
        keep = w != 0
        return {
            "i": i[keep].astype(np.int32),
            "j": j[keep].astype(np.int32),
            "w": w[keep],
            "squares": np.array(self.squares * factor * factor),
        }

    def load(self, state: Mapping[str, np.ndarray], factor: float = 1.0) -> None:
        """Add a state times `factor`."""
        self._fit(int(state["j"].max(initial=-1)) + 1)
        self.squares += float(state["squares"]) * factor * factor
        if self._pairs is None:
            self._w[state["i"], state["j"]] += state["w"] * factor
        else:
            self._pairs.add(np.stack([state["i"], state["j"]], axis=1).astype(np.int32), (state["w"] * factor)[:, None])

    @staticmethod
    def check(state: Mapping[str, np.ndarray]) -> None:
        """Raise `Corrupt` unless pairs are in order, i < j, and w is not 0."""
        i, j, w = (state[name] for name in "ijw")
        check_rows("i, j, w", len(w), lambda part: (i[part] < j[part]) & (w[part] != 0), "i < j, and w other than 0")
        check_rising("i, j", i, j)

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        new_id = np.asarray(new_id, np.int64)
        a, b = new_id[state["i"]], new_id[state["j"]]
        i, j = np.minimum(a, b), np.maximum(a, b)
        order = np.lexsort((j, i))
        return {
            "i": i[order].astype(np.int32),
            "j": j[order].astype(np.int32),
            "w": np.array(state["w"])[order],
            "squares": np.array(state["squares"]),
        }


class KeySums:
    """Triplet counts in floats: per (lo, hi, anchor) the weight of the answers that lo, and that hi, is nearer.

    State: `lo`, `hi`, `start`, `anchor` as in triplet_counts, `n_lo`, `n_hi` float64, not both zero. 28 bytes a key at
    rest.
    """

    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {
        **COLUMNS,
        **{name: weights("keys", least=0.0) for name in ("n_lo", "n_hi")},
    }

    def __init__(self, dense_limit: int = 0, log_floor: int = LOG_FLOOR):
        self._sums = Sums(3, 2, log_floor)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._sums.nbytes

    def add(self, triplets: np.ndarray, weight: np.ndarray, n_objects: int) -> None:
        """Add triplets (m, 3) with weights (m,)."""
        anchor, near, far = triplets.T
        lower = near < far
        ids = np.stack([np.minimum(near, far), np.maximum(near, far), anchor], axis=1)
        self._sums.add(ids, np.stack([np.where(lower, weight, 0.0), np.where(lower, 0.0, weight)], axis=1))

    def scale(self, factor: float, floor: float) -> None:
        """Multiply all sums; keys that fall below `floor` are forgotten."""
        self._sums.scale(factor, floor)

    def state(self, factor: float = 1.0) -> dict[str, np.ndarray]:
        """The columns, values times `factor`."""
        self._sums.settle()
        values = self._sums.values * factor
        return _columns(self._sums.ids, values)

    def load(self, state: Mapping[str, np.ndarray], factor: float = 1.0) -> None:
        """Add a state times `factor`."""
        ids, values = _rows(state)
        self._sums.add(ids, values * factor)

    @staticmethod
    def check(state: Mapping[str, np.ndarray]) -> None:
        """Raise `Corrupt` unless columns are as `triplet_columns` says, and no key has two sums of zero."""
        check_columns(state)
        n_lo, n_hi = state["n_lo"], state["n_hi"]
        check_rows("n_lo, n_hi", len(n_lo), lambda part: (n_lo[part] > 0) | (n_hi[part] > 0), "a weight above 0")

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        ids, values = _rows(state)
        ids = np.asarray(new_id, np.int32)[ids]
        flip = ids[:, 0] > ids[:, 1]
        ids[flip], values[flip] = ids[flip][:, [1, 0, 2]], values[flip][:, ::-1]
        order = np.lexsort(ids.T[::-1])
        return _columns(ids[order], values[order])


def _columns(ids: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    keep = values.any(axis=1)
    (lo, hi, anchor), (n_lo, n_hi) = ids[keep].T, np.ascontiguousarray(values[keep].T)
    return state_of_columns(columns_from_keys(lo, hi, anchor.copy(), n_lo, n_hi, n_objects=0))


def _rows(state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.diff(state["start"])
    ids = np.stack([np.repeat(state["lo"], sizes), np.repeat(state["hi"], sizes), state["anchor"]], axis=1)
    return ids.astype(np.int32), np.stack([state["n_lo"], state["n_hi"]], axis=1).astype(float)
