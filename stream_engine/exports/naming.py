"""Objects by their names wherever somebody reads them: ids become names in tables, and files of arrays say the names.

An id means nothing outside its file: it is the place in the order of first appearance, and looks like the names of a
study whose objects are called 0, 1, 2.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_engine.data.packed_names import pack_names

MOST_BYTES = 1 << 28  # of a fixed-width array of names: one long name makes all of them long


class NameColumn:
    """A column of names, kept as ids until it is written; -1 is an empty cell."""

    def __init__(self, ids: np.ndarray, names: Sequence[str]):
        self.ids, self.names = np.asarray(ids), names

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return (self.names[i] if i >= 0 else None for i in self.ids.tolist())


def names_array(key: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The names under `key`, as texts of one width; as KEY_utf8 and KEY_offsets where that would be too large, or lose
    the end of a name (numpy drops zero characters there).

    >>> names_array("names", ["a", "bc"])["names"].tolist()
    ['a', 'bc']
    >>> sorted(names_array("names", ["a\\x00"]))
    ['names_offsets', 'names_utf8']
    """
    width = max(map(len, names), default=0)
    if 4 * width * len(names) <= MOST_BYTES and not any(name.endswith("\0") for name in names):
        return {key: np.array(names, np.str_)}
    return {f"{key}_{part}": array for part, array in pack_names(names).items()}


def merges(linkage: np.ndarray, leaves: Sequence[str]) -> Mapping[str, Any]:
    """Columns of a dendrogram in scipy's format (m - 1, 4) over named leaves: a row a merge. What it joins is an object
    by its name; or an earlier merge, and then the name is empty and `left_merge` or `right_merge`, 0 for an object,
    says which."""
    m, nodes = len(leaves), np.asarray(linkage)[:, :2].astype(np.int64)
    columns: dict[str, Any] = {"merge": np.arange(1, len(nodes) + 1)}
    for side, which in zip(("left", "right"), nodes.T):
        columns[side] = [leaves[node] if node < m else "" for node in which.tolist()]
        columns[f"{side}_merge"] = np.where(which < m, 0, which - m + 1)
    return columns | {"height": linkage[:, 2], "objects": linkage[:, 3].astype(np.int64)}
