"""The exact acyclic guard: comparisons in order, each judged against all that are kept. first, drop-both, majority.

Invariant: the kept edges are acyclic, and each verdict is the one that a search of all kept edges would give, at that
moment. Under `first` nothing is ever taken away, so every comparison refused as a cycle closes one in the final order
too (McFee & Lanckriet 2011, Algorithm 1). Under `drop-both` and `majority` edges are taken away; a comparison refused
earlier is not reconsidered by itself then, only when it comes again.

State is what verdicts depend on (kept edges; directions seen or net votes), never labels, masks or node numbers.
About 0.3 microseconds a comparison on a dense small graph; 100 bytes a node and 30-50 a kept edge.
"""

from collections.abc import Callable, Mapping

import numpy as np

from stream_engine.data.container import Corrupt
from stream_engine.guard.exact_kernels import (
    DROP_BOTH,
    FIRST,
    MAJORITY,
    kept_edges,
    load_edges,
    offer,
    votes_for,
)
from stream_engine.guard.graph import SEEN_AB, SEEN_BA, grown, new_graph
from stream_engine.guard.hash_tables import ID_BITS, ID_MASK, key_columns, pair_keys
from stream_engine.guard.invariants import check_graph
from stream_engine.guard.order_maintenance import in_order
from stream_engine.guard.pair_nodes import create_nodes
from stream_engine.guard.pair_rows import canonical, lo_first, near_first, numbered, sorted_edges, sorted_nodes
from stream_engine.guard.reachability_masks import choose

POLICIES = {"first": FIRST, "drop-both": DROP_BOTH, "majority": MAJORITY}


class Exact:
    """A guard under one of the exact policies; see the module."""

    def __init__(self, policy: str, nodes: int = 64, edges: int = 64):
        self.policy = POLICIES[policy]
        self.graph = new_graph(nodes, edges, weighted=self.policy == MAJORITY, lasting=self.policy == FIRST)

    def judge(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(m,) int8 verdicts of (m, 4) int32 rows, in order; `weights` is (m,) int64 or empty for 1 each."""
        codes = np.empty(len(rows), np.int8)
        judged = 0
        while (judged := offer(self.graph, rows, weights, codes, judged, self.policy)) < len(rows):
            self.graph = grown(self.graph)
        return codes

    def _edges(self) -> np.ndarray:
        return kept_edges(self.graph)

    def kept(self) -> np.ndarray:
        """(m, 4) int32 canonical rows of the kept comparisons."""
        return sorted_edges(self.graph.key[1 : self.graph.n_nodes + 1], self._edges())[0]

    def order(self) -> np.ndarray:
        """(N, 2) int32: all pairs in the sequence that the searches maintain, which every kept comparison follows."""
        return key_columns(self.graph.key[in_order(self.graph.link, self.graph.n_nodes)])

    def capture(self) -> Callable[[], dict[str, np.ndarray]]:
        """What `state` is made from, copied; the function makes it, whatever is judged meanwhile."""
        g, edges = self.graph, self._edges()
        keys = g.key[1 : g.n_nodes + 1]  # not copied: a node's key never changes, and arrays that grow leave these
        if self.policy == FIRST:
            return lambda: {"kept": sorted_edges(keys, edges)[0]}
        taken = g.edge_key != 0
        remembered, mark = g.edge_key[taken], g.edge_mark[taken]
        if self.policy == DROP_BOTH:
            return lambda: _struck_state(keys, edges, remembered, mark)
        net = g.edge_net[taken]
        kept_net = votes_for(g, edges)
        return lambda: _voted_state(keys, edges, kept_net, remembered, mark, net)

    def state(self) -> dict[str, np.ndarray]:
        """`kept`; drop-both: `refused` (seen in one direction only, not kept) and `struck` (seen in both directions);
        majority: `refused` and the net votes `kept_net`, `refused_net`, > 0 in the direction of their row."""
        return self.capture()()

    @classmethod
    def along(cls, order: np.ndarray, n_edges: int) -> "Exact":
        """An empty `first` guard whose sequence starts as these (N, 2) int32 pairs, lo before hi."""
        self = cls("first", max(64, len(order)), max(64, n_edges))
        self._create(pair_keys(order))
        return self

    def _create(self, keys: np.ndarray) -> None:
        create_nodes(self.graph, keys)

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], policy: str) -> "Exact":
        """The guard that has this state: its nodes in a topological order of what is kept, then its edges. Raises
        `Corrupt` where there is no such order."""
        groups = [(name, kind) for kind, name in enumerate(("kept", "refused", "struck")) if name in state]
        edges = numbered(np.concatenate([state[name] for name, _ in groups]))
        n, m = len(edges.key), len(state["kept"])
        self = cls(policy, max(64, n), max(64, len(edges.near)))
        order = sorted_nodes(edges.near[:m], edges.far[:m], n)
        if len(order) < n:
            raise Corrupt(f"kept: a cycle through some of {n - len(order)} pairs, expected an order")
        number = np.empty(n, np.int32)
        number[order] = np.arange(1, n + 1)
        self._create(edges.key[order])
        us, vs, begin = number[edges.near], number[edges.far], 0
        for name, kind in groups:
            end = begin + len(state[name])
            votes = np.array(state.get(f"{name}_net", ()), np.int64)
            self._load(us[begin:end], vs[begin:end], votes, kind)
            begin = end
        if np.count_nonzero(self.graph.edge_key) != len(us):
            raise Corrupt("kept, refused, struck: a comparison stands twice")
        choose(self.graph)
        return self

    def _load(self, us: np.ndarray, vs: np.ndarray, votes: np.ndarray, kind: int) -> None:
        loaded = 0
        while (loaded := load_edges(self.graph, us, vs, votes, kind, self.policy, loaded)) < len(us):
            self.graph = grown(self.graph)

    @staticmethod
    def evidence(state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """`(rows, weights)` to offer to another guard: what is kept first, then what else the policy remembers."""
        rows = [state["kept"]]
        if "struck" in state:  # both directions were seen
            rows += [state["refused"], state["struck"], state["struck"][:, [2, 3, 0, 1]]]
            return np.concatenate(rows), np.empty(0, np.int64)
        if "kept_net" in state:
            return (
                np.concatenate([state["kept"], state["refused"]]),
                np.concatenate([state["kept_net"], state["refused_net"]]),
            )
        return state["kept"], np.empty(0, np.int64)

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i], canonical again."""
        out = {}
        for name in (name for name in ("kept", "refused", "struck") if name in state):
            rows = lo_first(np.asarray(new_id, np.int32)[state[name]])
            if name == "struck":
                rows = near_first(rows)
            beside = [f"{name}_net"] if f"{name}_net" in state else []
            out[name], *nets = canonical(rows, *(state[each] for each in beside))
            out |= dict(zip(beside, nets, strict=True))
        return out

    def check(self) -> None:
        """Assert every invariant of the graph."""
        check_graph(self.graph)


def _turned(remembered: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """(r, 2) nodes, from 0, of these entries of the edge table: a, b with a < b, or b, a where `backward`."""
    edges = np.stack([(remembered >> ID_BITS) - 1, (remembered & ID_MASK) - 1], axis=1).astype(np.int32)
    edges[backward] = edges[backward, ::-1]
    return edges


def _voted_state(keys, edges, kept_net, remembered, mark, net) -> dict[str, np.ndarray]:
    """The state under `majority`."""
    kept, kept_net = sorted_edges(keys, edges, kept_net)
    waiting = (mark == 0) & (net != 0)
    net = net[waiting]
    refused, refused_net = sorted_edges(keys, _turned(remembered[waiting], net < 0), np.abs(net))
    return {"kept": kept, "kept_net": kept_net, "refused": refused, "refused_net": refused_net}


def _struck_state(keys, edges, remembered, mark) -> dict[str, np.ndarray]:
    """The state under `drop-both`."""
    once, both = (mark == SEEN_AB) | (mark == SEEN_BA), mark == SEEN_AB | SEEN_BA
    struck = _turned(remembered[both], np.zeros(both.sum(), bool))
    struck = _turned(remembered[both], keys[struck[:, 0]] > keys[struck[:, 1]])
    return {
        "kept": sorted_edges(keys, edges)[0],
        "refused": sorted_edges(keys, _turned(remembered[once], mark[once] == SEEN_BA))[0],
        "struck": sorted_edges(keys, struck)[0],
    }
