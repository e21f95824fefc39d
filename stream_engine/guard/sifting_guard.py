"""The guard under policy `sift`: net votes, one live total order, and the comparisons that agree with it.

State: `order` (N, 2) pairs from front to back, `debt` and `votes` beside it, `voted` canonical rows in the direction of
their net vote and `net` > 0 beside them. Comparisons whose votes cancel out are the same as never seen.
"""

from collections.abc import Callable, Mapping

import numpy as np

from stream_engine.data.container import Corrupt
from stream_engine.guard.hash_tables import key_columns, pair_keys
from stream_engine.guard.invariants import check_votes
from stream_engine.guard.order_maintenance import in_order
from stream_engine.guard.pair_nodes import create_nodes
from stream_engine.guard.pair_rows import canonical, lo_first, sorted_edges
from stream_engine.guard.sifting_kernels import (
    DEBT,
    N_EDGES,
    VOTES,
    grown,
    load_votes,
    new_votes,
    offer_votes,
    sift_all,
    voted_edges,
)


class Sifted:
    """A total order that follows the net votes; see sifting_kernels."""

    def __init__(self, nodes: int = 64, edges: int = 64):
        self.votes = new_votes(nodes, edges)

    def judge(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(m,) int8 verdicts of (m, 4) int32 rows, in order; `weights` is (m,) int64 or empty for 1 each."""
        codes, judged = np.empty(len(rows), np.int8), 0
        while (judged := offer_votes(self.votes, rows, weights, codes, judged)) < len(rows):
            self.votes = grown(self.votes)
        return codes

    def _voted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return voted_edges(self.votes)

    def _keys(self) -> np.ndarray:
        return self.votes.key[1 : self.votes.n_nodes + 1]

    def kept(self) -> np.ndarray:
        """(m, 4) int32 canonical rows: every comparison whose net vote agrees with the order."""
        edges, _, agrees = self._voted()
        return sorted_edges(self._keys(), edges[agrees])[0]

    def order(self) -> np.ndarray:
        """(N, 2) int32: all pairs from nearest to farthest."""
        return key_columns(self.votes.key[in_order(self.votes.link, self.votes.n_nodes)])

    def settle(self, passes: int) -> int:
        """Sift every pair in turn, at most so many times or until nothing moves; returns the agreeing votes gained."""
        nodes, gained = np.arange(1, self.votes.n_nodes + 1), 0
        for _ in range(passes):
            gain = sift_all(self.votes, nodes)
            gained += gain
            if gain == 0:
                break
        return gained

    def capture(self) -> Callable[[], dict[str, np.ndarray]]:
        """What `state` is made from, copied; the function makes it, whatever is judged meanwhile."""
        order, node = in_order(self.votes.link, self.votes.n_nodes), self.votes.node
        edges, net, _ = self._voted()
        keys, debt, votes = self._keys().copy(), node[order, DEBT], node[order, VOTES]

        def state() -> dict[str, np.ndarray]:
            voted, sorted_net = sorted_edges(keys, edges, net)
            pairs = key_columns(keys[order - 1])
            return {"order": pairs, "debt": debt, "votes": votes, "voted": voted, "net": sorted_net}

        return state

    def state(self) -> dict[str, np.ndarray]:
        """See the module."""
        return self.capture()()

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> "Sifted":
        """The guard that has this state."""
        self = cls.along(state["order"], state["voted"], state["net"])
        n = len(state["order"])
        self.votes.node[1 : n + 1, DEBT] = state["debt"]
        self.votes.node[1 : n + 1, VOTES] = state["votes"]
        if len(np.unique(pair_keys(state["order"]))) != n or self.votes.n_nodes != n:
            raise Corrupt("order: a pair twice, or one that was voted on is missing")
        if self.votes.book[N_EDGES] != len(state["voted"]):
            raise Corrupt("voted: a comparison stands twice")
        return self

    @classmethod
    def along(cls, order: np.ndarray, voted: np.ndarray, net: np.ndarray) -> "Sifted":
        """A guard with these (N, 2) pairs in this order and these net votes between them; nothing is sifted."""
        self = cls(max(64, len(order)), max(64, len(voted)))
        create_nodes(self.votes, pair_keys(order))
        voted, net, loaded = np.array(voted, np.int32), np.array(net, np.int64), 0
        while (loaded := load_votes(self.votes, voted, net, loaded)) < len(voted):
            self.votes = grown(self.votes)
        return self

    @staticmethod
    def evidence(state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """`(rows, weights)` to offer to another guard."""
        return state["voted"], state["net"]

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i], canonical again; the order stays."""
        new_id = np.asarray(new_id, np.int32)
        voted, net = canonical(lo_first(new_id[state["voted"]]), state["net"])
        return {
            "order": lo_first(new_id[state["order"]]),
            "debt": np.array(state["debt"]),
            "votes": np.array(state["votes"]),
            "voted": voted,
            "net": net,
        }

    def check(self) -> None:
        """Assert every invariant of the order and the votes."""
        check_votes(self.votes)
