"""Whether the state of a guard that comes from a file is one: canonical rows, sorted, with counts that a vote can have.

What compiled code relies on is checked here, in O(rows): ids, canonical form, order. What only a graph shows (a cycle,
a comparison that stands twice in other directions) is noticed where the graph is built, by `from_state`. All raise
`Corrupt`.
"""

from collections.abc import Mapping

import numpy as np

from stream_engine.data.array_checks import Held, check_arrays, check_rising, check_rows, counts, ids
from stream_engine.guard.sifting_kernels import GATE

HOLDS: dict[str, dict[str, Held]] = {
    "first": {"kept": ids("kept", 4)},
    "drop-both": {name: ids(name, 4) for name in ("kept", "refused", "struck")},
    "majority": {
        **{name: ids(name, 4) for name in ("kept", "refused")},
        **{f"{name}_net": counts(name, least=1) for name in ("kept", "refused")},
    },
    "sift": {
        "order": ids("pairs", 2),
        "debt": counts("pairs"),
        "votes": counts("pairs"),
        "voted": ids("voted", 4),
        "net": counts("voted", least=1),
    },
}


def check_state(state: Mapping[str, np.ndarray], policy: str, n_objects: int) -> None:
    """Raise `Corrupt` unless the arrays can be the state of a guard with this policy over so many objects."""
    check_arrays(HOLDS[policy], state, objects=n_objects)
    for name in ("kept", "refused", "struck", "voted"):
        if name in state:
            check_comparisons(name, state[name])
    if "struck" in state:
        rows = state["struck"]
        check_rows("struck", len(rows), lambda part: _near_first(rows[part]), "the lower pair first")
    if policy == "sift":
        order, debt, votes = state["order"], state["debt"], state["votes"]
        check_rows("order", len(order), lambda part: order[part, 0] < order[part, 1], "lo < hi")
        check_rows("debt", len(debt), lambda part: GATE * debt[part] <= votes[part], f"at most a {GATE}th of the votes")


def check_comparisons(name: str, rows: np.ndarray) -> None:
    """(m, 4) rows near_i < near_j, far_i < far_j of two pairs, sorted, none twice."""

    def canonical(part: slice) -> np.ndarray:
        i, j, k, l = rows[part].T
        return (i < j) & (k < l) & ((i != k) | (j != l))

    check_rows(name, len(rows), canonical, "two pairs of two objects, the lower object first")
    check_rising(name, *rows.T)


def _near_first(rows: np.ndarray) -> np.ndarray:
    i, j, k, l = rows.T
    return (i < k) | ((i == k) & (j < l))
