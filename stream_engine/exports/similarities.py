"""AddS-3, AddS-4, triplet counts and the kernels k1, k2 of a snapshot; AddS-3 and counts also in the forms of
`evaluation.weighted_counts`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from stream_engine.counts import kernels
from stream_engine.data.symmetric_matrices import DENSE_LIMIT, dense_matrix
from stream_engine.data.triplet_columns import by_anchor, pair_of_entry
from stream_engine.evaluation import weighted_counts
from stream_engine.exports import Content, NothingToExport
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns


def _adds(accumulator: str, how: str = "plain"):
    def contents(published: Published) -> dict[str, Content]:
        """Dense (n, n) up to `DENSE_LIMIT` objects, else entries i < j, w. Raises `NothingToExport`."""
        snapshot, n = published.snapshot, len(published.snapshot.objects)
        sums: Any = snapshot.section("adds4")
        if accumulator != "adds4":
            sums = _of_snapshot(weighted_counts.adds3, snapshot, how)._asdict()
        elif not sums:
            raise NothingToExport("adds4 is not in this state; add it to `accumulators`")
        name, entries = accumulator if how == "plain" else f"{accumulator}_{how}", {key: sums[key] for key in "ijw"}
        return {name: Content(entries if n > DENSE_LIMIT else {"W": dense_matrix(**entries, n_objects=n)})}

    return contents


def _counts(how: str = "plain"):
    def contents(published: Published) -> dict[str, Content]:
        """Rows anchor, lo, hi, n_lo, n_hi by anchor, lo, hi. Raises `NothingToExport`. O(keys log keys)."""
        columns = _of_snapshot(weighted_counts.counts, published.snapshot, how)
        pair, order = pair_of_entry(columns), by_anchor(columns)
        lo, hi = columns.lo[pair], columns.hi[pair]
        rows = {"anchor": columns.anchor, "lo": lo, "hi": hi, "n_lo": columns.n_lo, "n_hi": columns.n_hi}
        name = "triplet_counts" if how == "plain" else f"triplet_counts_{how}"
        return {name: Content({key: column[order] for key, column in rows.items()})}

    return contents


def _of_snapshot(make: Callable[[Snapshot, str], Any], snapshot: Snapshot, how: str) -> Any:
    try:
        return make(snapshot, how)
    except weighted_counts.NotKept as error:
        raise NothingToExport(str(error)) from None


adds3, adds4, triplet_counts = _adds("adds3"), _adds("adds4"), _counts()
adds3_window, adds3_decayed, adds3_weighted, adds3_trusted = (_adds("adds3", how) for how in weighted_counts.WEIGHTINGS)
triplet_counts_window, triplet_counts_decayed, triplet_counts_weighted, triplet_counts_trusted = map(
    _counts, weighted_counts.WEIGHTINGS
)


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
