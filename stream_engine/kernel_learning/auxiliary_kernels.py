"""Auxiliary kernels (Heim et al. 2014; McFee & Lanckriet 2011): features or kernel matrices of objects from files,
joined by object name."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stream_engine.kernel_learning.auxiliary_files import BadKernel, KernelSpec, Table, read_table

__all__ = [
    "AuxiliaryKernels",
    "BadKernel",
    "CrossKernel",
    "KernelSpec",
    "Table",
    "across",
    "check_kernel",
    "features_across",
    "join",
    "load",
    "load_features",
    "sum_kernels",
]


class AuxiliaryKernels(NamedTuple):
    """`kernels[a]` (n, n) float64, PSD, trace 1; `report[a]` describes it (JSON values)."""

    names: list[str]
    kernels: list[np.ndarray]
    report: list[dict[str, Any]]


class CrossKernel(NamedTuple):
    """One kernel (or features) between the subset and all other objects."""

    in_file: np.ndarray  # (n,) bool: whether the file has the object
    columns: Callable[
        [np.ndarray], np.ndarray
    ]  # ids of q objects in the file -> (n', q) K(subset, x); features: (D, q)


def load(
    specs: Mapping[str, KernelSpec], objects: Sequence[str], every: Sequence[str] | None = None
) -> AuxiliaryKernels:
    """The kernels named in `specs` over `objects`, which may be a subset of `every` object of the snapshot. Raises
    `BadKernel` with one line for a problem with a file."""
    kernels, report = [], []
    for name, spec in specs.items():
        path = Path(spec.file)
        try:
            table = read_table(spec)
            kernel, figures = join(table, spec, objects, every)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except BadKernel as error:
            raise BadKernel(f"kernel {name!r} ({path.name}): {error}") from None
        kernels.append(kernel)
        report.append({"name": name, "file": path.name, "sha256": digest, "kind": spec.kind, **figures})
    return AuxiliaryKernels(list(specs), kernels, report)


class MatchedRows(NamedTuple):
    """The rows of a table that belong to objects, and a report about the others."""

    ids: np.ndarray  # of the objects in the file
    rows: np.ndarray  # their rows of the table
    report: dict[str, Any]


def match_rows(table: Table, square: bool, objects: Sequence[str], every: Sequence[str] | None = None) -> MatchedRows:
    """The rows that belong to objects. A table without names is of `every` object (None: of `objects`). Raises
    `BadKernel` for wrong shapes, repeated names, NaN, or no object in common."""
    every = objects if every is None else every
    size = len(table.values)
    names = list(every) if table.names is None else table.names
    if size != len(names):
        raise BadKernel(
            f"wrong shape: got {size} rows for {len(names)} objects; expected one row an object, next: name the "
            "rows in `objects`"
        )
    row = {name: r for r, name in enumerate(names)}
    if len(row) < len(names):
        twice = next(name for r, name in enumerate(names) if row[name] != r)
        raise BadKernel(f"object {twice!r} has more than one row; expected one")
    if square:
        check_kernel(table.values)
    _check_finite(table.values, names, square)
    empty = np.zeros(size, bool) if square else _empty_rows(table.values)
    ids = np.array([i for i, name in enumerate(objects) if name in row and not empty[row[name]]], np.int64)
    if len(ids) == 0:
        raise BadKernel(
            f"unknown objects: none of its objects ({', '.join(map(repr, names[:3]))}, ...) occurs in the snapshot "
            f"({', '.join(map(repr, list(objects)[:3]))}, ...); expected names that match, next: check `key`"
        )
    snapshot_names, found_ids = set(every), set(ids.tolist())
    missing = [name for i, name in enumerate(objects) if i not in found_ids]
    unknown = [name for name in names if name not in snapshot_names]
    report = {
        "objects": len(ids),
        "missing": len(missing),
        "missing_as": "identity rows",
        "missing_names": missing[:20],
        "unknown": len(unknown),
        "unknown_names": unknown[:20],
    }
    return MatchedRows(ids, np.array([row[objects[i]] for i in ids.tolist()], np.int64), report)


def join(
    table: Table, spec: KernelSpec, objects: Sequence[str], every: Sequence[str] | None = None
) -> tuple[np.ndarray, dict[str, Any]]:
    """`((n, n) PSD kernel of unit trace, its report)` from a table, over `objects` (a subset of `every`). Raises
    `BadKernel`. O(n^3) for its check.

    Objects that are missing in the file get rows and columns of the identity (McFee & Lanckriet, sec. 5.2.1: "we fill
    in the corresponding rows and columns of the kernel matrix with the identity matrix"), after the kernel was scaled
    to a mean diagonal of 1, so that "identity" is meaningful.

    >>> k, report = join(Table(["b", "a"], np.array([[2.0], [1.0]])), KernelSpec("x.csv", "linear"), ["a", "b", "new"])
    >>> k.round(3).tolist(), report["missing"]
    ([[0.133, 0.267, 0.0], [0.267, 0.533, 0.0], [0.0, 0.0, 0.333]], 1)
    """
    matches = match_rows(table, spec.kind == "kernel", objects, every)
    kernel, figures = _kernel_of(table.values, matches.rows, spec)
    mean = float(np.trace(kernel)) / len(matches.ids)
    if not mean > 0:
        raise BadKernel("its diagonal is zero for every object of the snapshot; expected some spread")
    kernel_of_all = np.eye(len(objects))
    kernel_of_all[np.ix_(matches.ids, matches.ids)] = (kernel + kernel.T) / (2 * mean)
    return kernel_of_all / np.trace(kernel_of_all), matches.report | figures


def across(specs: Mapping[str, KernelSpec], objects: Sequence[str], ids: np.ndarray) -> list[CrossKernel]:
    """Every kernel of `load(specs, subset)` between the subset (the objects of `ids`) and all others. Raises
    `BadKernel`.

    These are the columns K(subset, x), with the features, gamma and scale of the subset's kernel, as required by
    g(x) = N K_x (McFee & Lanckriet, eq. 9); 0 where the file lacks an object of the subset. Memory: the table, and
    (n', q) a call.
    """
    kernels = []
    for name, spec in specs.items():
        try:
            table = read_table(spec)
            subset_rows = match_rows(table, spec.kind == "kernel", [objects[i] for i in ids.tolist()], objects)
            all_rows = match_rows(table, False, objects)
            kernels.append(_across(table.values, spec, subset_rows, all_rows, len(ids), len(objects)))
        except BadKernel as error:
            raise BadKernel(f"kernel {name!r} ({Path(spec.file).name}): {error}") from None
    return kernels


def sum_kernels(kernels: Sequence[CrossKernel], size: int) -> CrossKernel:
    """The unweighted sum of kernels (McFee & Lanckriet 2011, eq. 7) over a subset of that size; an object that is
    missing in a file has zeros in that file's kernel.

    >>> one = CrossKernel(np.array([True, True]), lambda ids: np.ones((2, len(ids))))
    >>> both = sum_kernels([one, CrossKernel(np.array([True, False]), lambda ids: np.ones((2, len(ids))))], 2)
    >>> both.columns(np.array([0, 1])).tolist()
    [[2.0, 1.0], [2.0, 1.0]]
    """

    def columns(ids: np.ndarray) -> np.ndarray:
        total = np.zeros((size, len(ids)))
        for kernel in kernels:
            in_file = kernel.in_file[ids]
            if in_file.any():
                total[:, in_file] += kernel.columns(ids[in_file])
        return total

    return CrossKernel(np.logical_or.reduce([kernel.in_file for kernel in kernels]), columns)


def _across(
    values, spec: KernelSpec, subset_rows: MatchedRows, all_rows: MatchedRows, size: int, n: int
) -> CrossKernel:
    subset_kernel, figures = _kernel_of(values, subset_rows.rows, spec)
    scale = len(subset_rows.ids) / (
        float(np.trace(subset_kernel)) * size
    )  # as in `join`: a mean diagonal of 1, then unit trace
    row, in_file = np.full(n, -1, np.int64), np.zeros(n, bool)
    row[all_rows.ids], in_file[all_rows.ids] = all_rows.rows, True

    def columns(ids: np.ndarray) -> np.ndarray:
        out = np.zeros((size, len(ids)))
        out[subset_rows.ids] = scale * _kernel_between(
            values, subset_rows.rows, row[ids], spec, figures.get("gamma", 0.0)
        )
        return out

    return CrossKernel(in_file, columns)


def features_across(spec: KernelSpec, objects: Sequence[str], width: int) -> CrossKernel:
    """Features of all objects as columns, (width, q): those of the file, then zeros for the own columns of
    objects of the subset without features (`load_features`). Raises `BadKernel`."""
    table = read_table(spec)
    values, all_rows = table.values, match_rows(table, False, objects)
    row, in_file = np.full(len(objects), -1, np.int64), np.zeros(len(objects), bool)
    row[all_rows.ids], in_file[all_rows.ids] = all_rows.rows, True

    def columns(ids: np.ndarray) -> np.ndarray:
        out = np.zeros((width, len(ids)))
        out[: values.shape[1]] = values[row[ids]].T
        return out

    return CrossKernel(in_file, columns)


def load_features(
    name: str, spec: KernelSpec, objects: Sequence[str], every: Sequence[str] | None = None
) -> tuple[np.ndarray, dict[str, Any]]:
    """`((n, D) features, their report)` for LPOE, as they are in the file, over a subset of `every` object. Raises
    `BadKernel`.

    An object without features gets a column of its own of average length: the identity row of their linear kernel.
    """
    try:
        table = read_table(spec)
        if spec.kind != "linear":
            raise BadKernel(f"got kind {spec.kind!r}; features are taken as they are, expected kind 'linear'")
        matches = match_rows(table, False, objects, every)
    except BadKernel as error:
        raise BadKernel(f"{name} ({Path(spec.file).name}): {error}") from None
    missing = np.setdiff1d(np.arange(len(objects)), matches.ids)
    out = np.zeros((len(objects), table.values.shape[1] + len(missing)))
    out[matches.ids, : table.values.shape[1]] = table.values[matches.rows]
    out[missing, table.values.shape[1] + np.arange(len(missing))] = np.sqrt(
        (table.values[matches.rows] ** 2).sum() / len(matches.rows)
    )
    digest = hashlib.sha256(Path(spec.file).read_bytes()).hexdigest()
    return out, {"name": name, "file": Path(spec.file).name, "sha256": digest, "kind": spec.kind, **matches.report}


def _check_finite(values, names: list[str], square: bool) -> None:
    """No infinities; no NaN, except rows of features that are empty altogether (an object without this information)."""
    bad = ~np.isfinite(values)
    if not square:
        bad &= ~(np.isnan(values).all(axis=1, keepdims=True) & (values.shape[1] > 0))
    if bad.any():
        r, c = np.argwhere(bad)[0]
        raise BadKernel(
            f"{values[r, c]} at row {names[r]!r}, column {c}; expected finite numbers (or a row that is empty "
            "throughout, for an object without features)"
        )


def _empty_rows(values) -> np.ndarray:
    return np.isnan(values).all(axis=1) if values.shape[1] else np.ones(len(values), bool)


MAX_ASYMMETRY = 1e-8  # that is rounding, relative to the largest entry
MAX_NEGATIVE = 1e-8  # size of a negative eigenvalue that is rounding, relative to the largest


def check_kernel(kernel: np.ndarray) -> None:
    """Raise `BadKernel`, with the size of the deviation, unless a matrix is square, symmetric and PSD up to rounding.
    O(n^3)."""
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise BadKernel(
            f"wrong shape: got {kernel.shape}; expected a square kernel matrix, next: for features set `kind`"
        )
    if not np.isfinite(kernel).all():
        r, c = np.argwhere(~np.isfinite(kernel))[0]
        raise BadKernel(f"{kernel[r, c]} at ({r}, {c}); expected finite numbers")
    size = float(np.abs(kernel).max(initial=0.0))
    asymmetry = np.abs(kernel - kernel.T)
    if asymmetry.max(initial=0.0) > MAX_ASYMMETRY * size:
        r, c = np.unravel_index(np.argmax(asymmetry), asymmetry.shape)
        raise BadKernel(
            f"not symmetric: entries ({r}, {c}) and ({c}, {r}) differ by {asymmetry[r, c]:.3g}; expected a symmetric "
            "kernel, next: average it with its transpose if that is what it should be"
        )
    if size == 0.0:
        return
    from scipy.linalg import eigh  # imported only if there is a kernel

    values = eigh((kernel + kernel.T) / 2, eigvals_only=True)
    if values[0] < -MAX_NEGATIVE * values[-1]:
        raise BadKernel(
            f"not positive semidefinite: smallest eigenvalue {values[0]:.4g}, {abs(values[0]) / size:.2g} of the "
            f"largest entry; expected >= 0, next: add {-values[0]:.4g} to its diagonal or give features instead"
        )


def _kernel_of(values: np.ndarray, rows: np.ndarray, spec: KernelSpec) -> tuple[np.ndarray, dict[str, Any]]:
    """The kernel between the rows `rows`, and its parameters for the report."""
    from sklearn.metrics import pairwise

    if spec.kind != "rbf":
        return _kernel_between(values, rows, rows, spec, 0.0), {}
    gamma = spec.gamma
    if gamma is None:
        gamma = _median_heuristic(pairwise.euclidean_distances(values[rows], squared=True))
    if not gamma > 0:
        raise BadKernel(f"got gamma {gamma}; expected > 0")
    return _kernel_between(values, rows, rows, spec, gamma), {"gamma": float(gamma)}


def _kernel_between(
    values: np.ndarray, rows: np.ndarray, other_rows: np.ndarray, spec: KernelSpec, gamma: float
) -> np.ndarray:
    """(len(rows), len(others)) float64: the kernel from these rows to other ones."""
    from sklearn.metrics import pairwise

    if spec.kind == "kernel":
        return values[np.ix_(rows, other_rows)]
    x = values[rows]
    y = x if other_rows is rows else values[other_rows]
    return x @ y.T if spec.kind == "linear" else np.exp(-gamma * pairwise.euclidean_distances(x, y, squared=True))


def _median_heuristic(d: np.ndarray) -> float:
    """1 / median of the off-diagonal (squared) distances; 1 when more than half of them are 0."""
    distances = d[np.triu_indices(len(d), 1)]
    middle = float(np.median(distances)) if len(distances) else 0.0
    return 1.0 / middle if middle > 0 else 1.0
