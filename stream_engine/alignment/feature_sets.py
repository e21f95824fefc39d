"""Sets of features joined with the objects of a snapshot by name, and the similarities that they give as they are."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from stream_engine.alignment.feature_files import BadFeatures, FeatureTable

MEASURES = ("cosine", "euclidean", "dot product")
METRIC = MEASURES[:2]  # those whose order is that of a distance between points
MAX_EXACT_CELLS = 200_000_000  # n * n * d, up to which numbers have 64 bits
BLOCK_CELLS = 1 << 22  # cells of a mapped file that are looked at at once
MIN_OBJECTS = 3  # objects
RESERVED = "all sets"  # what the combination is called


class FeatureSet(NamedTuple):
    """One set over the n objects that every set has; dimensions that are constant over them are left out."""

    name: str
    values: np.ndarray  # (n, d) float32 or float64, as they are
    varies: np.ndarray  # (D,) bool: which dimensions of the file are in `values`
    row: np.ndarray  # (objects of the snapshot,) int64: the row of the file, -1: none
    table: FeatureTable
    report: dict[str, Any]

    def similarity(self, measure: str) -> np.ndarray:
        """(n, n) float64, larger is more similar; entries that differ by rounding alone may differ. O(n^2 d)."""
        if measure == "euclidean":
            return -squared_distances(self.values - self.values.mean(axis=0))
        x = unit(self.values) if measure == "cosine" else self.values
        return (x @ x.T).astype(np.float64)

    def points(self, measure: str) -> "Points":
        """The points whose Euclidean distances have the order of a measure."""
        x = unit(self.values) if measure == "cosine" else self.values
        mean = x.mean(axis=0)
        scale = 1.0 / max(float(np.sqrt(2.0 * ((x - mean) ** 2).sum() / len(x))), 1e-30)
        return Points((x - mean) * scale, mean, scale, measure)


class Points(NamedTuple):
    """Centred, with a mean squared distance of 1; new rows x are placed by `of`."""

    x: np.ndarray  # (n, d)
    mean: np.ndarray  # (d,)
    scale: float
    measure: str

    def of(self, rows: np.ndarray) -> np.ndarray:
        """The same of other rows of the file's varying dimensions."""
        x = unit(rows) if self.measure == "cosine" else rows
        return (x - self.mean) * self.scale


def unit(x: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    length = np.sqrt((x.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (x / np.where(length > 0, length, 1.0)).astype(x.dtype)


def squared_distances(x: np.ndarray) -> np.ndarray:
    """(n, n) float64 between the rows of x."""
    gram = (x @ x.T).astype(np.float64)
    squares = np.diag(gram)
    return np.maximum(squares[:, None] + squares[None, :] - 2.0 * gram, 0.0)


class Joined(NamedTuple):
    """The sets over the objects that all of them have: object c of them is `ids[c]` of the snapshot."""

    ids: np.ndarray  # (n,) int64, increasing
    sets: list[FeatureSet]


def joined(tables: Mapping[str, FeatureTable], objects: Sequence[str]) -> Joined:
    """The sets joined by name: the very name, or where none fits the file's name without folder and suffix. Raises
    `BadFeatures` for a name with two rows, numbers that are not finite, sets without three objects in common, sets
    whose dimensions are all constant."""
    rows, how = {}, {}
    for name, table in tables.items():
        if not name or name == RESERVED or set(name) & set("/\\\0"):
            raise BadFeatures(f"features {name!r}: expected another name of the set, without slashes, next: NAME=FILE")
        rows[name], how[name] = _rows(name, table, objects)
        _drop_empty(name, table, rows[name], objects)
    in_every_set = np.logical_and.reduce([row >= 0 for row in rows.values()])
    ids = np.flatnonzero(in_every_set)
    if len(ids) < MIN_OBJECTS:
        counts = ", ".join(f"{name} {int((row >= 0).sum()):,}" for name, row in rows.items())
        raise BadFeatures(
            f"features: got {len(ids)} of {len(objects):,} objects with features in every set ({counts}); expected at "
            f"least {MIN_OBJECTS}, next: check the names, such as {_first(objects)}"
        )
    return Joined(ids, [_set(name, table, rows[name], how[name], ids) for name, table in tables.items()])


def _rows(name: str, table: FeatureTable, objects: Sequence[str]) -> tuple[np.ndarray, str]:
    """(n,) the row of each object, and how names were joined."""
    row = {name: at for at, name in enumerate(table.names)}
    if len(row) < len(table.names):
        twice = next(name for at, name in enumerate(table.names) if row[name] != at)
        raise BadFeatures(f"features {name!r}: object {twice!r} has more than one row; expected one")
    if any(name in row for name in objects):
        return np.array([row.get(name, -1) for name in objects], np.int64), "name"
    stems = {PurePath(name).stem: at for at, name in enumerate(table.names)}
    numbers = np.array([stems.get(PurePath(name).stem, -1) for name in objects], np.int64)
    if len(stems) < len(table.names) or not (numbers >= 0).any():
        raise BadFeatures(
            f"features {name!r}: none of its objects ({_first(table.names)}) occurs in the answers ({_first(objects)})"
            "; expected names that match"
        )
    return numbers, "name without folder and suffix"


def _first(names: Sequence[str]) -> str:
    return ", ".join(map(repr, list(names)[:3])) + (", ..." if len(names) > 3 else "")


def _drop_empty(name: str, table: FeatureTable, row: np.ndarray, objects: Sequence[str]) -> None:
    """Mark objects without a single number as missing. Raises `BadFeatures` for other numbers that are not finite."""
    if table.values.dtype.kind != "f" or not table.values.size:
        return
    step, there = max(1, BLOCK_CELLS // max(table.values.shape[1], 1)), np.flatnonzero(row >= 0)
    for begin in range(0, len(there), step):
        block = there[begin : begin + step]
        finite = np.isfinite(table.values[row[block]])
        bad = ~finite.all(axis=1)
        empty = ~finite.any(axis=1)
        if (bad & ~empty).any():
            first = int(np.flatnonzero(bad & ~empty)[0])
            at = int(np.flatnonzero(~finite[first])[0])
            value = table.values[row[block[first]], at]
            raise BadFeatures(
                f"features {name!r}: object {objects[block[first]]!r} has {value} in dimension {at + 1}; expected "
                "finite numbers, next: fill it, or leave the object out"
            )
        row[block[empty]] = -1


def _set(name: str, table: FeatureTable, row: np.ndarray, how: str, ids: np.ndarray) -> FeatureSet:
    rows = table.values[row[ids]]
    exact = len(ids) ** 2 * rows.shape[1] <= MAX_EXACT_CELLS
    values = np.ascontiguousarray(rows, np.float64 if exact else np.float32)
    varies = values.max(axis=0) > values.min(axis=0) if values.size else np.zeros(rows.shape[1], bool)
    if not varies.any():
        raise BadFeatures(
            f"features {name!r}: all {rows.shape[1]} dimensions are constant over {len(ids):,} objects; expected "
            "numbers that distinguish them"
        )
    report = {
        "name": name,
        "file": table.file,
        "sha256": hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest(),
        "joined_by": how,
        "dimensions": int(rows.shape[1]),
        "constant_dimensions": int((~varies).sum()),
        "objects": int((row >= 0).sum()),
        "missing": int((row < 0).sum()),
        "not_compared": len(table.names) - int((row >= 0).sum()),
    }
    return FeatureSet(name, np.ascontiguousarray(values[:, varies]), varies, row, table, report)
