"""Check counts by key from a file against the rules of `triplet_columns`. Raises `Corrupt`; O(keys), in blocks."""

from collections.abc import Mapping

import numpy as np

from stream_engine.data.array_checks import (
    LARGEST_COUNT,
    ArraySpec,
    check_groups,
    check_offsets,
    check_rising,
    check_rows,
    ids,
    offsets,
)
from stream_engine.data.container import Corrupt
from stream_engine.data.mapped_arrays import BLOCK
from stream_engine.data.triplet_columns import COUNT_LIMIT

COLUMNS: dict[str, ArraySpec] = {
    "lo": ids("pairs"),
    "hi": ids("pairs"),
    "start": offsets("pairs"),
    "anchor": ids("keys"),
}
EXACT: dict[str, ArraySpec] = {
    name: ArraySpec(("<i4", "<i8"), ("keys",)) for name in ("n_lo", "n_hi")
}  # see check_counts
COUNT_COLUMNS = {**COLUMNS, **EXACT}


def check_columns(state: Mapping[str, np.ndarray]) -> None:
    """Pairs lo < hi in order, each with its anchors in order, which are neither of the two."""
    lo, hi, start, anchor = (state[name] for name in ("lo", "hi", "start", "anchor"))
    check_rows("lo, hi", len(lo), lambda part: lo[part] < hi[part], "lo < hi")
    check_rising("lo, hi", lo, hi)
    check_offsets("start", start, len(anchor), least=1)
    check_groups("anchor", start, anchor, lo, hi)


def check_counts(n_lo: np.ndarray, n_hi: np.ndarray) -> None:
    """Exact counts, in the one type that they are kept in, not both zero. Of two numbers one is negative, or both are
    zero, or one is 2^k or more, where their bits taken together are: one look at both."""
    if n_lo.dtype != n_hi.dtype:
        raise Corrupt(f"n_lo, n_hi: got {n_lo.dtype} and {n_hi.dtype}, expected one type")
    wide = n_lo.dtype.itemsize == 8
    limit = LARGEST_COUNT if wide else COUNT_LIMIT
    for begin in range(0, len(n_lo), BLOCK):
        bits = n_lo[begin : begin + BLOCK] | n_hi[begin : begin + BLOCK]
        if bits.min() <= 0 or bits.max() >= limit:
            raise Corrupt(f"n_lo, n_hi: expected counts from 0 up to {limit}, not both 0")
    if wide and max(n_lo.max(initial=0), n_hi.max(initial=0)) < COUNT_LIMIT:
        raise Corrupt(f"n_lo, n_hi: got int64 for counts below {COUNT_LIMIT}, expected int32")
