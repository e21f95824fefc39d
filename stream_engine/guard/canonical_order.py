"""The order of a snapshot from counts alone: it does not depend on the order of arrival, nor on how shards were cut.

Each triplet key (anchor, lo, hi) with n_lo != n_hi is an edge {anchor, lo} - {anchor, hi} in the direction of the net
vote, weighing |n_lo - n_hi|; quadruplets likewise. To keep as much weight as an acyclic set can is the feedback arc set
problem (NP-hard). Here: (1) greedy by decreasing weight through the exact guard; (2) sift passes over its total order;
(3) everything that agrees with that order, then by decreasing weight whatever else closes no cycle, so that the result
is maximal. Equal weights go by the numbers of their objects: two snapshots of the same comparisons whose objects are
numbered differently agree but for such ties, and without ties entirely. O(m log m) sorting, two passes of the guard,
O(degree) a sift.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import Columns, net_triplets
from stream_engine.guard.exact_guard import Exact
from stream_engine.guard.pair_rows import canonical, lo_first, near_first
from stream_engine.guard.sifting_guard import Sifted

PASSES = 8
NOTHING = np.empty(0, np.int64)


class Weight(NamedTuple):
    """How much of the net vote weight a set of comparisons keeps."""

    kept: int
    total: int

    @property
    def fraction(self) -> float:
        """`kept / total`; 1.0 when there is nothing to keep."""
        return self.kept / self.total if self.total else 1.0


class CanonicalOrder(NamedTuple):
    """A maximal acyclic set of comparisons, and a total order that it agrees with."""

    kept: np.ndarray  # (m, 4) int32 canonical rows near_i, near_j, far_i, far_j
    order: np.ndarray  # (N, 2) int32 pairs, nearest first, lo before hi
    weight: Weight


class Quadruplets(NamedTuple):
    """Counted quadruplets: `votes[r]` answers gave row r. Opposite rows may both be there."""

    rows: np.ndarray  # (q, 4) int32 near_i, near_j, far_i, far_j
    votes: np.ndarray  # (q,) int64


def net_votes(columns: Columns, quadruplets: Quadruplets | None = None) -> tuple[np.ndarray, np.ndarray]:
    """`(rows, net)`: canonical rows in the direction of the net vote, and that vote > 0. Ties are left out.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> triplets = np.array([[0, 2, 1], [0, 2, 1], [0, 1, 2], [1, 0, 2], [1, 2, 0]])
    >>> rows, net = net_votes(columns_from_triplets(triplets, 3))
    >>> rows.tolist(), net.tolist()
    ([[0, 2, 0, 1]], [1])
    """
    triplets, net = net_triplets(columns)
    rows = lo_first(triplets[:, [0, 1, 0, 2]])
    if quadruplets is not None and len(quadruplets.rows):
        more, votes = _net_of_rows(quadruplets)
        rows, net = np.concatenate([rows, more]), np.concatenate([net, votes])
    rows, net = canonical(rows, net)
    return rows, net


def _net_of_rows(quadruplets: Quadruplets) -> tuple[np.ndarray, np.ndarray]:
    """Directed rows with net votes > 0, each pair of pairs once."""
    rows = lo_first(np.asarray(quadruplets.rows, np.int32))
    forward = near_first(rows)
    signed = np.where((forward == rows).all(axis=1), quadruplets.votes, -np.asarray(quadruplets.votes))
    forward, signed = canonical(forward, signed)
    first = np.ones(len(forward), bool)
    first[1:] = (forward[1:] != forward[:-1]).any(axis=1)
    rows, net = forward[first], np.add.reduceat(signed, np.flatnonzero(first))
    rows, net = rows[net != 0], net[net != 0]
    return np.where(net[:, None] < 0, rows[:, [2, 3, 0, 1]], rows), np.abs(net)


def canonical_order(columns: Columns, quadruplets: Quadruplets | None = None) -> CanonicalOrder:
    """The order that keeps most of the net votes, as far as greedy, sifting and maximalising find it; see the module.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> result = canonical_order(columns_from_triplets(np.array([[0, 1, 2], [0, 1, 2], [1, 2, 0], [2, 0, 1]]), 3))
    >>> result.kept.tolist(), result.weight
    ([[0, 1, 0, 2], [0, 2, 1, 2]], Weight(kept=3, total=4))
    """
    rows, net = net_votes(columns, quadruplets)
    heaviest = np.argsort(-net, kind="stable")
    greedy = Exact("first", 64, max(64, len(rows)))
    greedy.judge(rows[heaviest], NOTHING)
    sifted = Sifted.along(greedy.order(), rows, net)
    del greedy
    sifted.settle(PASSES)
    agreeing, order = sifted.kept(), sifted.order()
    del sifted
    whole = Exact.along(order, len(rows))
    whole.judge(agreeing, NOTHING)
    whole.judge(rows[heaviest], NOTHING)
    kept = whole.kept()
    return CanonicalOrder(kept, whole.order(), _weight(kept, rows, net))


def _weight(kept: np.ndarray, rows: np.ndarray, net: np.ndarray) -> Weight:
    """The net votes of those canonical rows that are among the kept ones."""
    both, votes = canonical(
        np.concatenate([rows, lo_first(np.asarray(kept, np.int32))]),
        np.concatenate([net, np.zeros(len(kept), np.int64)]),
    )
    twice = (both[1:] == both[:-1]).all(axis=1) if len(both) else np.empty(0, bool)
    # a row that stands twice is voted for and kept; one of the two entries carries the votes
    return Weight(int((votes[1:] + votes[:-1])[twice].sum()), int(net.sum()))


def weight_kept(kept: np.ndarray, columns: Columns, quadruplets: Quadruplets | None = None) -> Weight:
    """How much of the net vote weight (m, 4) kept rows hold: the sum of |n_lo - n_hi| over the keys whose net vote they
    agree with, beside the sum over all keys. A kept row against the net vote, or without votes, adds nothing.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> weight_kept(np.array([[0, 1, 0, 2]]), columns_from_triplets(np.array([[0, 1, 2], [0, 1, 2], [1, 2, 0]]), 3))
    Weight(kept=2, total=3)
    """
    return _weight(kept, *net_votes(columns, quadruplets))
