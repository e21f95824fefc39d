"""The order of a snapshot from counts alone: it depends neither on the order of arrival nor on shards.

A triplet key (anchor, lo, hi) with n_lo != n_hi is an edge {anchor, lo} - {anchor, hi} in the direction of the net
vote, weighing |n_lo - n_hi|; quadruplets likewise. Keeping the most weight is the feedback arc set problem (NP-hard).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.intrinsics import borrowed
from stream_engine.data.triplet_columns import Columns, net_vote
from stream_engine.order.graph import (
    ALL_ARCS,
    N_NODES,
    ask_for_blocks,
    in_order,
    insert_one,
    load_edges,
    make_room,
    new_graph,
)
from stream_engine.order.hash_tables import key_columns
from stream_engine.order.judging import keep
from stream_engine.order.pair_rows import NumberedPairs, canonical, lo_first, near_first, numbered, sorted_nodes
from stream_engine.order.reachability_masks import choose
from stream_engine.order.sifting import sifted


# A guard without tables, for nodes 0 .. n - 1 that are numbered already: each edge is offered once and never against
# its opposite. Verdicts are those of `PartialOrder` for the same comparisons, at half the time; the order of the nodes
# is that of one with `ALL_ARCS`. Inside, nodes are one higher: node 0 is the sentinel.
class DistinctEdges:
    """A growing acyclic set of edges; see the module."""

    def __init__(self, order: np.ndarray, near: np.ndarray, far: np.ndarray):
        """No edges yet; (n,) `order` is the sequence of the nodes 0 .. n - 1 to begin with. All edges that will come
        are among near[e] -> far[e]: every node gets the room that its neighbours may need, once and for all."""
        self.graph = new_graph(max(64, len(order) + 1), max(64, len(near)))
        self.graph.book[ALL_ARCS] = 1  # the sequence depends on all edges, and not on when supports were chosen
        _line_up(self.graph, np.asarray(order, np.int32))
        make_room(self.graph, near + np.int32(1), far + np.int32(1))

    def load(self, near: np.ndarray, far: np.ndarray) -> None:
        """Keep edges that all go forward in the sequence."""
        load_edges(self.graph, near + np.int32(1), far + np.int32(1))
        choose(self.graph)

    def offer(self, near: np.ndarray, far: np.ndarray) -> np.ndarray:
        """(m,) bool: which of the edges near[e] -> far[e], in their order, are kept, as they close no cycle."""
        accepted = np.empty(len(near), bool)
        _offer(self.graph, near + np.int32(1), far + np.int32(1), accepted)
        return accepted

    def order(self) -> np.ndarray:
        """(n,) int32: the nodes in the sequence, which every kept edge follows."""
        return in_order(self.graph.link, self.graph.n_nodes) - np.int32(1)


@njit(cache=True, nogil=True)
def by_first_appearance(near, far, n):
    """(n,) int32: the nodes 0 .. n - 1 as they first appear in near[0], far[0], near[1], ... All must appear."""
    out, met, n_found = np.empty(n, np.int32), np.zeros(n, np.bool_), 0
    for e in range(len(near)):
        for x in (near[e], far[e]):
            if not met[x]:
                met[x] = True
                out[n_found] = x
                n_found += 1
    return out[:n_found]


@njit(cache=True, nogil=True)
def _line_up(graph, order):
    g = borrowed(graph)
    for x in order:
        insert_one(g.node, g.link, np.int64(g.link[0, 0]), np.int64(x) + 1)
    g.book[N_NODES] = len(order)


@njit(cache=True, nogil=True)
def _offer(graph, us, vs, accepted):
    """Judge edges between nodes numbered from 1."""
    g = borrowed(graph)
    for e in range(len(us)):
        ask_for_blocks(g, us, vs, e)
        accepted[e] = keep(g, np.int64(us[e]), np.int64(vs[e]))


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
    """`(rows, net)`: canonical rows in the direction of the net vote, and that vote > 0. Ties are excluded.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> triplets = np.array([[0, 2, 1], [0, 2, 1], [0, 1, 2], [1, 0, 2], [1, 2, 0]])
    >>> rows, net = net_votes(columns_from_triplets(triplets, 3))
    >>> rows.tolist(), net.tolist()
    ([[0, 2, 0, 1]], [1])
    """
    rows, net = _rows_of_columns(columns)
    if quadruplets is not None and len(quadruplets.rows):
        more, votes = _net_of_rows(quadruplets)
        rows, net = np.concatenate([rows, more]), np.concatenate([net, votes])
    rows, net = canonical(rows, net)
    return rows, net


def _rows_of_columns(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """(m, 4) int32 rows, lo before hi, of the keys that are no tie, near first by the net vote, and (m,) that vote."""
    net = net_vote(columns.n_lo, columns.n_hi)
    rows = np.empty((np.count_nonzero(net), 4), np.int32)
    _lay_rows(columns.lo, columns.hi, columns.start, columns.anchor, net, rows)
    return rows, np.abs(net[net != 0])


@njit(cache=True, nogil=True)
def _lay_rows(lo, hi, start, anchor, net, rows):
    """Fill the rows: {anchor, lo} is nearer than {anchor, hi} where net > 0."""
    r = 0
    for pair in range(len(lo)):
        for k in range(start[pair], start[pair + 1]):
            if net[k] == 0:
                continue
            near, far = lo[pair], hi[pair]
            if net[k] < 0:
                near, far = far, near
            a = anchor[k]
            rows[r, 0], rows[r, 1] = min(a, near), max(a, near)
            rows[r, 2], rows[r, 3] = min(a, far), max(a, far)
            r += 1


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
    return order_of_votes(*net_votes(columns, quadruplets))


# (1) Greedy by decreasing weight through the exact guard; (2) sift passes over its total order; (3) everything that
# agrees with that order, then by decreasing weight whatever else closes no cycle: the result is maximal. Equal weights
# go by the numbers of their objects, so differently numbered snapshots agree but for ties. O(m log m) sorting, two
# passes of the guard, O(degree) a sift.
def order_of_votes(rows: np.ndarray, net: np.ndarray) -> CanonicalOrder:
    """The same from what `net_votes` gives."""
    is_kept, pairs = kept_of_votes(rows, net)
    return CanonicalOrder(rows[is_kept], pairs, Weight(int(net[is_kept].sum()), int(net.sum())))


def kept_of_votes(rows: np.ndarray, net: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(kept, order)`: (m,) bool which of the rows the canonical order keeps, and (N, 2) int32 its pairs."""
    heaviest = np.argsort(-net, kind="stable")
    edges = numbered(rows)
    near, far = edges.near[heaviest], edges.far[heaviest]
    greedy = DistinctEdges(by_first_appearance(near, far, len(edges.key)), near, far)
    greedy.offer(near, far)
    order = greedy.order()
    del greedy
    order, agrees = sifted(edges, net, order)
    is_kept, order = _maximal(edges, order, agrees, heaviest)
    return is_kept, key_columns(edges.key[order])


def is_acyclic(rows: np.ndarray) -> bool:
    """Whether (m, 4) rows can all hold at once."""
    edges = numbered(rows)
    return len(sorted_nodes(edges.near, edges.far, len(edges.key))) == len(edges.key)


def _maximal(
    edges: NumberedPairs, order: np.ndarray, agrees: np.ndarray, heaviest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`(kept, order)`: (m,) which rows are kept, those that agree with the order and then by decreasing weight what
    closes no cycle, and the nodes in an order that all of them agree with."""
    whole = DistinctEdges(order, edges.near, edges.far)
    whole.load(edges.near[agrees], edges.far[agrees])
    others = heaviest[~agrees[heaviest]]
    is_kept = agrees.copy()
    is_kept[others] = whole.offer(edges.near[others], edges.far[others])
    return is_kept, whole.order()


def weight_among(kept_rows: np.ndarray, rows: np.ndarray, net: np.ndarray) -> Weight:
    """`weight_kept` from what `net_votes` gives: rows in canonical order with their net votes."""
    kept_rows = lo_first(np.asarray(kept_rows, np.int32).reshape(-1, 4))
    weight = _weight_found(kept_rows, rows, net)
    if weight < 0:
        weight = _weight_found(canonical(kept_rows)[0], rows, net)
    return Weight(int(weight), int(net.sum()))


@njit(cache=True, nogil=True)
def _weight_found(kept_rows, rows, net):
    """The sum of net[r] over the kept rows that are rows[r], both sorted, the latter distinct; -1 if `kept` is not
    sorted."""
    weight = np.int64(0)
    r = 0
    for k in range(len(kept_rows)):
        if k > 0 and _compared(kept_rows[k - 1], kept_rows[k]) > 0:
            return np.int64(-1)
        while r < len(rows) and _compared(rows[r], kept_rows[k]) < 0:
            r += 1
        if r < len(rows) and _compared(rows[r], kept_rows[k]) == 0:
            weight += net[r]
    return weight


def votes_of(rows: np.ndarray, voted: np.ndarray, net: np.ndarray) -> np.ndarray:
    """(m,) int64: the net vote for each canonical row (m, 4), from what `net_votes` gives; 0 where it is against the
    row, where answers tie, and where there are none. O(m + keys).

    >>> rows = np.array([[0, 1, 0, 2], [0, 2, 1, 2]], np.int32)
    >>> votes_of(rows, rows[1:], np.array([3])).tolist()
    [0, 3]
    """
    return _votes_of(np.ascontiguousarray(rows), np.ascontiguousarray(voted), np.asarray(net, np.int64))


@njit(cache=True, nogil=True)
def _votes_of(rows, voted, net):
    """Both sorted, each row once."""
    out, r = np.zeros(len(rows), np.int64), 0
    for k in range(len(rows)):
        while r < len(voted) and _compared(voted[r], rows[k]) < 0:
            r += 1
        if r < len(voted) and _compared(voted[r], rows[k]) == 0:
            out[k] = net[r]
    return out


@njit(cache=True, nogil=True, inline="always")
def _compared(a, b):
    """< 0, 0 or > 0 as row a stands before, with or behind row b."""
    for column in range(4):
        if a[column] != b[column]:
            return -1 if a[column] < b[column] else 1
    return 0


def weight_kept(kept_rows: np.ndarray, columns: Columns, quadruplets: Quadruplets | None = None) -> Weight:
    """How much of the net vote weight (m, 4) kept rows hold: the sum of |n_lo - n_hi| over the keys whose net vote they
    agree with, beside the sum over all keys. A kept row against the net vote, or without votes, adds nothing.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> weight_kept(np.array([[0, 1, 0, 2]]), columns_from_triplets(np.array([[0, 1, 2], [0, 1, 2], [1, 2, 0]]), 3))
    Weight(kept=2, total=3)
    """
    return weight_among(kept_rows, *net_votes(columns, quadruplets))
