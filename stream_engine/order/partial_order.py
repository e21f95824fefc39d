"""The partial order: which comparisons can all hold at once.

A comparison "{i, j} is nearer than {k, l}" is an edge {i, j} -> {k, l} (McFee & Lanckriet 2011, sec. 2), refused if and
only if it closes a cycle with the kept ones (Algorithm 1). The result depends on the order of the comparisons.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import Batch, interleaved
from stream_engine.data.container import Corrupt
from stream_engine.order.canonical_order import CanonicalOrder, Weight, canonical_order, weight_kept
from stream_engine.order.graph import (
    N_EDGES,
    create_nodes,
    enter_edges,
    grown,
    kept_edges,
    load_edges,
    make_room,
    new_graph,
)
from stream_engine.order.judging import offer
from stream_engine.order.pair_rows import (
    canonical,
    first_invalid,
    lo_first,
    numbered,
    sorted_edges,
    sorted_nodes,
    topological_order,
)
from stream_engine.order.reachability_masks import choose
from stream_engine.order.transitive_reduction import transitive_reduction

__all__ = [
    "VERDICTS",
    "CanonicalOrder",
    "PartialOrder",
    "Verdicts",
    "Weight",
    "canonical_order",
    "topological_order",
    "transitive_reduction",
    "weight_kept",
]


VERDICTS = ("accepted", "duplicate", "contradiction", "cycle")  # by code


class Verdicts(NamedTuple):
    """How many comparisons got which verdict."""

    accepted: int
    duplicate: int
    contradiction: int
    cycle: int


# A fold, not a monoid, so there is no merge: two guards combine by offering what one has kept to the other. The state
# is the kept comparisons, never labels, masks or node numbers. About 0.3 us per comparison on a dense small graph, 1-6
# us at five million edges over two million pairs; 100 bytes per node and 20-50 per kept edge.
class PartialOrder:
    """A live guard; see the module.

    Verdict of a comparison p -> q, in this order: *duplicate* if p -> q is kept; *contradiction* if q -> p is kept;
    *cycle* if it would close a longer cycle; else *accepted*.

    >>> guard = PartialOrder()
    >>> triplets = np.array([[0, 1, 2], [0, 2, 3], [0, 1, 2], [0, 2, 1], [0, 3, 1]], np.int32)
    >>> guard.offer(Batch(triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), 4))
    Verdicts(accepted=2, duplicate=1, contradiction=1, cycle=1)
    >>> guard.kept().tolist()
    [[0, 1, 0, 2], [0, 2, 0, 3]]
    """

    def __init__(self, nodes: int = 64, edges: int = 64):
        """An empty guard with room for so many pairs and comparisons; it grows."""
        self.graph = new_graph(nodes, edges)

    def offer(self, batch: Batch) -> Verdicts:
        """Judge the comparisons of a batch in their order; keep what is accepted. Raises as `judge` does."""
        return _verdict_counts(self.judge(batch))

    def judge(self, batch: Batch) -> np.ndarray:
        """Like `offer`, but (m + q,) int8 verdicts, one a comparison, as indices into `VERDICTS`.

        Raises `ValueError`, with nothing done, for a comparison of a pair with itself or of an object with itself.
        """
        return self.judge_rows(interleaved(batch))

    def offer_rows(self, rows: np.ndarray) -> Verdicts:
        """Like `offer`, of (m, 4) rows near_i, near_j, far_i, far_j."""
        return _verdict_counts(self.judge_rows(rows))

    def judge_rows(self, rows: np.ndarray) -> np.ndarray:
        """Like `judge`, of (m, 4) rows."""
        rows = np.ascontiguousarray(rows, np.int32)
        if (bad := first_invalid(rows)) >= 0:
            raise ValueError(
                f"comparison {bad}: {tuple(rows[bad].tolist())} is not near_i, near_j, far_i, far_j of "
                "two different pairs of two different objects >= 0; nothing was offered"
            )
        codes, judged = np.empty(len(rows), np.int8), 0
        while (judged := offer(self.graph, rows, codes, judged)) < len(rows):
            self.graph = grown(self.graph)
        return codes

    def kept(self) -> np.ndarray:
        """(m, 4) int32 rows near_i, near_j, far_i, far_j with near_i < near_j, far_i < far_j, sorted."""
        return self.state()["kept"]

    def state(self) -> dict[str, np.ndarray]:
        """All that later verdicts depend on, `kept`, in one canonical form: equal guards, equal arrays. O(m + N log
        N)."""
        return self.capture()()

    def capture(self, last: bool = False) -> Callable[[], dict[str, np.ndarray]]:
        """What `state()` is made from, copied now, O(m + N); the function sorts it, at any time and in any thread.
        `last`: the guard is empty afterwards, and what is not copied is given back first."""
        edges, n_edges = self.graph.edge_table, int(self.graph.book[N_EDGES])
        keys = self.graph.key[1 : self.graph.n_nodes + 1]  # never change, and arrays that grow leave these
        if last:
            self.graph = new_graph()
        kept = kept_edges(edges, n_edges)
        return lambda: {"kept": sorted_edges(keys, kept)[0]}

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> "PartialOrder":
        """The guard that has this state: the same verdicts from here on, bit for bit. Empty: an empty guard. Raises
        `Corrupt` where the comparisons are no order."""
        if not state:
            return cls()
        edges = numbered(state["kept"])
        n = len(edges.key)
        self = cls(max(64, n), max(64, len(edges.near)))
        order = sorted_nodes(edges.near, edges.far, n)
        if len(order) < n:
            raise Corrupt(f"kept: a cycle through some of {n - len(order)} pairs, expected an order")
        number = np.empty(n, np.int32)
        number[order] = np.arange(1, n + 1)
        us, vs = number[edges.near], number[edges.far]
        create_nodes(self.graph, edges.key[order])
        make_room(self.graph, us, vs)
        load_edges(self.graph, us, vs)
        enter_edges(self.graph, us, vs)
        choose(self.graph)
        return self

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i] (injective); it commutes with offering."""
        return {"kept": canonical(lo_first(np.asarray(new_id, np.int32)[state["kept"]]))[0]}

    def merge_from(self, other: "PartialOrder", new_id: np.ndarray | None = None) -> Verdicts:
        """Offer to this guard what the other one has kept, object i of it being new_id[i] here; the other is unchanged.

        The result depends on which guard takes from which, as an order of arrival does.
        """
        state = other.state() if new_id is None else self.renamed(other.state(), new_id)
        return self.offer_rows(state["kept"])


def _verdict_counts(codes: np.ndarray) -> Verdicts:
    return Verdicts(*np.bincount(codes, minlength=len(VERDICTS)).tolist())
