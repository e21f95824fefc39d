"""The partial order: which comparisons can all hold at once.

Vertices are unordered pairs {i, j}; a comparison "{i, j} is nearer than {k, l}" is an edge {i, j} -> {k, l}, triplets
and quadruplets alike (McFee & Lanckriet 2011, sec. 2). A guard is a fold over comparisons in their order: not a monoid,
so it has no merge; two guards combine by offering what one has kept to the other.

Invariant, for every policy: the kept comparisons are acyclic. Policies for a pair of opposite comparisons:
    first      the one that was there first counts (Algorithm 1). Exact: a comparison is refused if and only if it
               closes a cycle with what is kept, at that moment and for ever after.
    drop-both  once both directions have been answered neither counts, for good ("length-2" processing, sec. 7.3).
    majority   the net vote decides; a tie keeps neither.
    sift       one live total order follows the net votes; what agrees with it is kept (see sifting_kernels).
Under drop-both and majority edges are taken away; comparisons refused earlier are not reconsidered by themselves.
Cost per comparison: about 0.3 us dense, 1-6 us at five million edges over two million pairs; see cycle_search.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import Batch, interleaved
from stream_engine.guard.canonical_order import CanonicalOrder, Weight, canonical_order, weight_kept
from stream_engine.guard.exact_guard import Exact
from stream_engine.guard.pair_rows import first_invalid, topological_order
from stream_engine.guard.policies import POLICIES
from stream_engine.guard.sifting_guard import Sifted
from stream_engine.guard.stored_states import check_state
from stream_engine.guard.transitive_reduction import transitive_reduction

__all__ = [
    "POLICIES",
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


def _guard_class(policy: str) -> type[Sifted] | type[Exact]:
    if policy not in POLICIES:
        raise ValueError(f"guard policy {policy!r} is unknown; known: {', '.join(POLICIES)}")
    return Sifted if policy == "sift" else Exact


class PartialOrder:
    """A live guard; see the module for the policies.

    Verdict of a comparison p -> q, in this order: *duplicate* if p -> q is kept; *contradiction* if q -> p is kept
    (drop-both: if q -> p was ever said; majority and sift: also if the net vote, this one counted, is not for p -> q);
    *cycle* if it would close a longer cycle (sift: if it disagrees with the order); else *accepted*.

    >>> guard = PartialOrder()
    >>> triplets = np.array([[0, 1, 2], [0, 2, 3], [0, 1, 2], [0, 2, 1], [0, 3, 1]], np.int32)
    >>> guard.offer(Batch(triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), 4))
    Verdicts(accepted=2, duplicate=1, contradiction=1, cycle=1)
    >>> guard.kept().tolist()
    [[0, 1, 0, 2], [0, 2, 0, 3]]
    """

    def __init__(self, policy: str = "first"):
        kind = _guard_class(policy)
        self.policy = policy
        self._guard = Sifted() if kind is Sifted else Exact(policy)

    def offer(self, batch: Batch) -> Verdicts:
        """Judge the comparisons of a batch in their order; keep what is accepted. Raises as `judge` does."""
        return Verdicts(*np.bincount(self.judge(batch), minlength=len(VERDICTS)).tolist())

    def judge(self, batch: Batch) -> np.ndarray:
        """Like `offer`, but (m + q,) int8 verdicts, one a comparison, as indices into `VERDICTS`.

        Raises `ValueError`, with nothing done, for a comparison of a pair with itself or of an object with itself.
        """
        return self._judge_rows(interleaved(batch), np.empty(0, np.int64))

    def offer_votes(self, rows: np.ndarray, weights: np.ndarray) -> Verdicts:
        """Like `offer`, of (m, 4) int32 rows near_i, near_j, far_i, far_j, row r counted weights[r] times at once. The
        policies first and drop-both count it once."""
        return Verdicts(*np.bincount(self._judge_rows(rows, weights), minlength=len(VERDICTS)).tolist())

    def _judge_rows(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(rows, np.int32)
        if (bad := first_invalid(rows)) >= 0:
            raise ValueError(
                f"comparison {bad}: {tuple(rows[bad].tolist())} is not near_i, near_j, far_i, far_j of "
                "two different pairs of two different objects >= 0; nothing was offered"
            )
        return self._guard.judge(rows, weights)

    def kept(self) -> np.ndarray:
        """(m, 4) int32 rows near_i, near_j, far_i, far_j with near_i < near_j, far_i < far_j, sorted."""
        return self._guard.kept()

    def topological_order(self) -> np.ndarray:
        """(N, 2) int32 pairs, lo before hi: every kept comparison goes from an earlier to a later one. For `sift` this
        is the live order itself."""
        return self._guard.order() if isinstance(self._guard, Sifted) else topological_order(self.kept())

    def state(self) -> dict[str, np.ndarray]:
        """All that later verdicts depend on, in one canonical form: equal guards, equal arrays. O(m + N log N).

        `kept` rows always but for sift; drop-both adds `refused` (seen in one direction only, not kept) and `struck`
        (in both); majority adds `refused` and the net votes `kept_net`, `refused_net`; sift has `order`, `debt`,
        `votes`, `voted`, `net` (see sifting_guard).
        """
        return self._guard.state()

    def capture(self) -> Callable[[], dict[str, np.ndarray]]:
        """What `state()` is made from, copied now, O(m + N); the function sorts it, at any time and in any thread."""
        return self._guard.capture()

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], policy: str = "first") -> "PartialOrder":
        """The guard that has this state: the same verdicts from here on, bit for bit. Empty: an empty guard. Raises
        `Corrupt` where the comparisons are no order."""
        self = cls(policy)
        if state:
            self._guard = Sifted.from_state(state) if policy == "sift" else Exact.from_state(state, policy)
        return self

    @staticmethod
    def check_state(state: Mapping[str, np.ndarray], policy: str, n_objects: int) -> None:
        """Raise `Corrupt` unless the arrays, which come from a file, can be such a state: see `stored_states`."""
        check_state(state, policy, n_objects)

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray, policy: str = "first") -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i] (injective); it commutes with offering."""
        return _guard_class(policy).renamed(state, new_id)

    def merge_from(self, other: "PartialOrder", new_id: np.ndarray | None = None) -> Verdicts:
        """Offer to this guard what the other one holds, object i of it being new_id[i] here; the other is unchanged.

        `first` takes the other's kept comparisons; the other policies take what else it remembers too (net votes
        with their weight, both directions of what was struck), so that net votes and strikes add up exactly.
        The result depends on which guard takes from which, as an order of arrival does.
        """
        if other.policy != self.policy:
            raise ValueError(f"cannot merge a guard with policy {other.policy!r} into one with {self.policy!r}")
        state = other.state()
        if new_id is not None:
            state = self.renamed(state, new_id, self.policy)
        codes = self._judge_rows(*type(self._guard).evidence(state))
        return Verdicts(*np.bincount(codes, minlength=len(VERDICTS)).tolist())

    def check(self) -> None:
        """Assert every invariant, and say what is wrong where one fails. O(m + N), slow: for tests."""
        self._guard.check()
