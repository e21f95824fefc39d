"""Feature sets of a study: arrays, data frames, dicts and files."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from stream_engine.alignment.feature_files import BadFeatures, FeatureSpec, FeatureTable, checked, read
from stream_engine.api.frames import columns_of
from stream_engine.kernel_learning.auxiliary_files import BadKernel


def tables_of(features: Mapping[str, Any], names: Sequence[Any] | None) -> dict[str, FeatureTable]:
    """name -> table of a set, with the names of its rows. Raises `BadFeatures`."""
    if not isinstance(features, Mapping) or not features:
        raise BadFeatures(
            f"align: got {type(features).__name__}, expected a dict of feature sets, as {{'clip': array}}"
        )
    row_names = None if names is None else [str(data) for data in names]
    return {str(name): _table(str(name), data, row_names) for name, data in features.items()}


def _table(name: str, data: Any, names: list[str] | None) -> FeatureTable:
    """A set by its type: a file, {object: vector}, a frame by its index of texts or its first column, or an array."""
    try:
        if isinstance(data, str | PathLike):
            return read(name, FeatureSpec(str(data)))
        if isinstance(data, Mapping):
            return checked([str(object) for object in data], np.array([*data.values()]), "")
        if hasattr(data, "iloc") and data.index.dtype.kind not in "iu":  # of pandas
            return checked([str(object) for object in data.index], data.to_numpy(), "")
        if not isinstance(data, np.ndarray):
            table = columns_of(data)
            columns = [table.take(head).to_numpy(zero_copy_only=False) for head in table.names]
            if names is None:
                return checked([str(object) for object in columns[0].tolist()], np.stack(columns[1:], axis=1), "")
            return checked(names, np.stack(columns, axis=1), "")
        if names is None:
            raise BadKernel("got an array without names; next: names=[...] in row order, a data frame, or a dict")
        return checked(names, data, "")
    except (BadKernel, ValueError, TypeError) as error:
        raise BadFeatures(f"features {name!r}: {error}") from None
