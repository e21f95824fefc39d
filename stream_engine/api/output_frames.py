"""Results as frames of pandas, polars or Arrow."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

FRAMES = ("pandas", "polars", "arrow")


def frame_library(kind: str | None, library: str) -> str:
    """The kind of frames that a study returns: the requested one; else that of the table that was read; else pandas if
    it is installed, or Arrow. Raises ValueError for an unknown kind, or one that is not installed."""
    if kind is None:
        kind = library if library in FRAMES else "pandas" if _installed("pandas") else "arrow"
        kind = "arrow" if library == "pyarrow" else kind
    if kind not in FRAMES:
        raise ValueError(f"frames: got {kind!r}, expected one of {', '.join(FRAMES)}")
    if kind != "arrow" and not _installed(kind):
        raise ValueError(f"frames: got {kind!r}, which is not installed; expected one that is, or 'arrow'")
    return kind


def _installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ImportError:
        return False


def frame(columns: Mapping[str, Any], kind: str) -> Any:
    """Columns of equal length (None: missing) as a frame of this kind; integers remain integers if some are missing.

    >>> frame({"object": ["a", "b"], "cluster": [0, None]}, "arrow").to_pydict()
    {'object': ['a', 'b'], 'cluster': [0, None]}
    """
    table = pa.table({name: _array(values) for name, values in columns.items()})
    if kind == "arrow":
        return table
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    data = table.to_pandas()
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            data[name] = data[name].astype("Int64")
    return data


def _array(values: Any) -> pa.Array:
    """A column; one without any value has the type of numbers."""
    if isinstance(values, np.ma.MaskedArray):
        array = pa.array(np.ascontiguousarray(values.data), mask=np.ma.getmaskarray(values))
    else:
        array = pa.array(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else list(values))
    return array.cast(pa.float64()) if pa.types.is_null(array.type) else array
