"""Whether a guard's state from a file is valid: canonical rows, sorted, none twice. Raises `Corrupt`. O(rows).

A cycle shows only when the graph is built, in `PartialOrder.from_state`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stream_engine.data.array_checks import check_arrays, check_rising, check_rows, ids
from stream_engine.data.container import Corrupt

POLICY = "first"  # what a snapshot's settings call the guard
FORMER = ("drop-both", "majority", "sift")  # other ways to treat contradictions, until version 0.2
CHANGED = "guard policy"  # what the history of a state says when it resumes with the guard of today


def always_first(policy: str | None, history: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the guard of a state, with this policy and history, never had a former policy."""
    return policy not in FORMER and all(deed["did"] != CHANGED for deed in history)


def check_state(state: Mapping[str, np.ndarray], n_objects: int) -> None:
    """Raise `Corrupt` unless the arrays can be the state of a guard over so many objects."""
    check_arrays({"kept": ids("kept", 4)}, state, objects=n_objects)
    rows = state["kept"]

    def canonical(part: slice) -> np.ndarray:
        i, j, k, l = rows[part].T
        return (i < j) & (k < l) & ((i != k) | (j != l))

    check_rows("kept", len(rows), canonical, "two pairs of two objects, the lower object first")
    check_rising("kept", *rows.T)


def without_former_policy(state: Mapping[str, np.ndarray], policy: str) -> dict[str, np.ndarray]:
    """What the guard goes on from where it was made under a former policy: the comparisons that it kept. All else that
    it remembered goes. Under `sift` these are the net votes that agree with its total order, hence acyclic."""
    if policy == "sift" and "kept" not in state:
        missing = {"order", "voted"} - state.keys()
        if missing:
            raise Corrupt(f"no {', '.join(sorted(missing))}, expected the order and the net votes of the policy sift")
        check_arrays(
            {"order": ids("pairs", 2), "voted": ids("voted", 4)},
            {name: state[name] for name in ("order", "voted")},
            objects=np.iinfo(np.int32).max,
        )
        return {"kept": _agreeing(state["order"], state["voted"])}
    return {name: array for name, array in state.items() if name == "kept"}


def _agreeing(order: np.ndarray, voted: np.ndarray) -> np.ndarray:
    """(m, 4) those rows of `voted` whose near pair stands before their far pair in `order` (N, 2)."""
    codes = _codes(order)
    at = np.argsort(codes)
    codes = codes[at]
    if not len(voted):
        return voted

    def place(pairs: np.ndarray) -> np.ndarray:
        wanted = _codes(pairs)
        entry = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
        if not len(codes) or (codes[entry] != wanted).any():
            raise Corrupt("order: a pair that was voted on is missing")
        return at[entry]

    return np.ascontiguousarray(voted[place(voted[:, :2]) < place(voted[:, 2:])])


def _codes(pairs: np.ndarray) -> np.ndarray:
    return pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1]
