"""AddS-3, AddS-4, triplet counts and the kernels k1, k2 of a snapshot."""

import numpy as np

from stream_engine.counts import kernels
from stream_engine.data.symmetric_matrices import DENSE_LIMIT, dense_matrix
from stream_engine.data.triplet_columns import by_anchor, pair_of_entry
from stream_engine.exports import Content, NothingToExport
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns


def _adds(published: Published, accumulator: str) -> dict[str, Content]:
    state, n = published.snapshot.section(accumulator), len(published.snapshot.objects)
    if not state:
        raise NothingToExport(f"this state has no {accumulator}; add it to `accumulators`")
    if n > DENSE_LIMIT:
        return {accumulator: Content({key: state[key] for key in ("i", "j", "w")})}
    return {accumulator: Content({"W": dense_matrix(state["i"], state["j"], state["w"], n)})}


def adds3(published: Published) -> dict[str, Content]:
    """W of AddS-3 (Perrot et al. 2020, sec. 4): (n, n) int64, or i, j, w above the dense limit."""
    return _adds(published, "adds3")


def adds4(published: Published) -> dict[str, Content]:
    """W of AddS-4."""
    return _adds(published, "adds4")


def triplet_counts(published: Published) -> dict[str, Content]:
    """anchor, lo, hi, n_lo, n_hi: one row a key, sorted by anchor, lo, hi."""
    columns = triplet_columns(published.snapshot)
    pair = pair_of_entry(columns)
    lo, hi = columns.lo[pair], columns.hi[pair]
    order = by_anchor(columns)
    rows = {"anchor": columns.anchor, "lo": lo, "hi": hi, "n_lo": columns.n_lo, "n_hi": columns.n_hi}
    return {"triplet_counts": Content({name: column[order] for name, column in rows.items()})}


def k1(published: Published) -> dict[str, Content]:
    """K of k1 (Kleindessner & von Luxburg 2017, sec. 2): (n, n) float64, or its factor above the kernel limit."""
    return {"k1": _kernel(published, kernels.k1, kernels.features1)}


def k2(published: Published) -> dict[str, Content]:
    """K of k2: (n, n) float64, or its factor above the kernel limit."""
    return {"k2": _kernel(published, kernels.k2, kernels.features2)}


def _kernel(published: Published, whole, factor) -> Content:
    """K, or where there are too many objects Phi with K = Phi Phi^T as `data`, `indices`, `indptr`, `shape` of a CSC
    matrix: 12 bytes a key, never n^2."""
    columns = triplet_columns(published.snapshot)
    if columns.n_objects <= kernels.KERNEL_LIMIT:
        return Content({"K": whole(columns)})
    phi = factor(columns)
    return Content({"data": phi.data, "indices": phi.indices, "indptr": phi.indptr, "shape": np.array(phi.shape)})
