"""The partial order kept by the guard, its transitive reduction, and the canonical order of the counts beside it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stream_engine.data.container import Corrupt
from stream_engine.exports import Content, NothingToExport
from stream_engine.order.canonical_order import Quadruplets, Weight, is_acyclic, kept_of_votes, net_votes, weight_among
from stream_engine.order.partial_order import transitive_reduction
from stream_engine.state.order_file import OrderFile
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns


def partial_order(published: Published) -> dict[str, Content]:
    """Rows near_i, near_j, far_i, far_j with near_i < near_j, far_i < far_j. Without triplet counts, only `kept` and
    `reduced` are there. Raises `NothingToExport`, `Corrupt`."""
    snapshot = published.snapshot
    state = snapshot.section("partial_order")
    if not state:
        raise NothingToExport("this state has no partial order: guard is off")
    kept_rows = state["kept"]
    with ThreadPoolExecutor(1) as executor:  # neither of the two needs the other, and kernels run at the same time
        reduced = executor.submit(_reduced, kept_rows)
        from_counts = _from_counts(published, kept_rows) if snapshot.section("triplet_counts") else {}
    return {"partial_order": Content({"kept": kept_rows, "reduced": reduced.result(), **from_counts})}


def _from_counts(published: Published, kept_rows: np.ndarray) -> dict[str, np.ndarray]:
    """The canonical order, and what it and the kept rows are worth."""
    snapshot = published.snapshot
    rows, net = net_votes(triplet_columns(snapshot), _quadruplets(snapshot))
    canonical = _canonical(rows, net, published.order_file)
    return {
        "canonical": rows[canonical],
        "weight_kept": np.array(weight_among(kept_rows, rows, net).fraction),
        "canonical_weight_kept": np.array(Weight(int(net[canonical].sum()), int(net.sum())).fraction),
    }


def _canonical(rows: np.ndarray, net: np.ndarray, file: OrderFile | None) -> np.ndarray:
    """(m,) bool: which of the net votes the canonical order keeps, from the file that remembers it, or made and kept
    there."""
    stored = None if file is None else file.read(net)
    if stored is not None and is_acyclic(rows[stored]):
        return stored
    if file is not None and stored is not None:
        file.say("holds a cycle")
    order = kept_of_votes(rows, net)[0]
    if file is not None:
        file.write(order, net)
    return order


def _reduced(kept_rows: np.ndarray) -> np.ndarray:
    """The transitive reduction. Raises `Corrupt` where there is none: reading a snapshot does not notice a cycle."""
    try:
        return transitive_reduction(kept_rows)
    except ValueError as error:
        raise Corrupt(f"partial_order: {error}") from None


def _quadruplets(snapshot: Snapshot) -> Quadruplets | None:
    """Counted quadruplets in both directions, or None when they are not counted."""
    counts = snapshot.section("quadruplet_counts")
    if not counts:
        return None
    rows = np.stack([counts[key] for key in "ijkl"], axis=1).astype(np.int32)
    directed = np.concatenate([rows, rows[:, [2, 3, 0, 1]]])
    votes = np.concatenate([counts["n_lo"], counts["n_hi"]]).astype(np.int64)
    return Quadruplets(directed[votes > 0], votes[votes > 0])
