"""Columns as the frame that a person works with: what came in goes out.

`pandas`, `polars` or `arrow`. Where nobody says: that of the table that was read, else pandas where it is installed,
else an Arrow table, which is always there (`to_pydict`, `to_pandas`).
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

FRAMES = ("pandas", "polars", "arrow")


def frame_library(wanted: str | None, library: str) -> str:
    """Which frames a study gives. Raises ValueError for an unknown one, or one that is not installed."""
    if wanted is None:
        wanted = library if library in FRAMES else "pandas" if _installed("pandas") else "arrow"
        wanted = "arrow" if library == "pyarrow" else wanted
    if wanted not in FRAMES:
        raise ValueError(f"frames: got {wanted!r}, expected one of {', '.join(FRAMES)}")
    if wanted != "arrow" and not _installed(wanted):
        raise ValueError(f"frames: got {wanted!r}, which is not installed; expected one that is, or 'arrow'")
    return wanted


def _installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ImportError:
        return False


def frame(columns: Mapping[str, Any], kind: str) -> Any:
    """Columns of one length (None: missing) as a frame of this kind; whole numbers stay whole where some are missing.

    >>> frame({"object": ["a", "b"], "cluster": [0, None]}, "arrow").to_pydict()
    {'object': ['a', 'b'], 'cluster': [0, None]}
    """
    table = pa.table({name: _array(values) for name, values in columns.items()})
    if kind == "arrow":
        return table
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    made = table.to_pandas()
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            made[name] = made[name].astype("Int64")
    return made


def _array(values: Any) -> pa.Array:
    """A column; one without any value holds numbers that are missing."""
    if isinstance(values, np.ma.MaskedArray):
        made = pa.array(np.ascontiguousarray(values.data), mask=np.ma.getmaskarray(values))
    else:
        made = pa.array(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else list(values))
    return made.cast(pa.float64()) if pa.types.is_null(made.type) else made
