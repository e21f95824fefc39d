"""Auxiliary kernels: features or kernel matrices of objects from files, joined by object name.

Heim et al. 2014 and McFee & Lanckriet 2011 combine answers with other knowledge about the objects. Here, a file becomes
an (n, n) PSD kernel of unit trace over a snapshot's objects. Objects that are missing in the file get rows and columns
of the identity (McFee & Lanckriet, sec. 5.2.1: "we fill in the corresponding rows and columns of the kernel matrix with
the identity matrix"), after the kernel was scaled to a mean diagonal of 1 so that "identity" is meaningful.

If kernels are over a subset of the objects, `across` returns the columns K(subset, x) of any other object x in the
file, with the same features, gamma and scale, as required by g(x) = N K_x (McFee & Lanckriet, eq. 9).
"""

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
    "summed",
]

ASYMMETRY = 1e-8  # relative to the largest entry
NEGATIVE = 1e-8  # most negative eigenvalue that is rounding, relative to the largest


class AuxiliaryKernels(NamedTuple):
    """`kernels[a]` (n, n) float64, PSD, trace 1; `report[a]` describes it (JSON values)."""

    names: list[str]
    kernels: list[np.ndarray]
    report: list[dict[str, Any]]


class CrossKernel(NamedTuple):
    """One kernel (or features) between the subset and all other objects."""

    known: np.ndarray  # (n,) bool: objects in the file
    columns: Callable[[np.ndarray], np.ndarray]  # ids of q known objects -> (n', q) K(subset, x); features: (D, q)


def load(
    specs: Mapping[str, KernelSpec], objects: Sequence[str], every: Sequence[str] | None = None
) -> AuxiliaryKernels:
    """The kernels named in `specs` over `objects`, which may be a subset of `every` object of the snapshot. Raises
    `BadKernel` with one line for whatever is wrong with a file."""
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
    """Which rows of a table belong to objects, and a report about the others."""

    known: np.ndarray  # ids of the objects in the file
    rows: np.ndarray  # their rows of the table
    report: dict[str, Any]


def matched(table: Table, square: bool, objects: Sequence[str], every: Sequence[str] | None = None) -> MatchedRows:
    """Which rows belong to which objects; a table without names is of `every` object (none: of `objects`). Raises
    `BadKernel` for wrong shapes, repeated names, NaN, no object in common."""
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
    known = np.array([i for i, name in enumerate(objects) if name in row and not empty[row[name]]], np.int64)
    if len(known) == 0:
        raise BadKernel(
            f"unknown objects: none of its objects ({', '.join(map(repr, names[:3]))}, ...) occurs in the snapshot "
            f"({', '.join(map(repr, list(objects)[:3]))}, ...); expected names that match, next: check `key`"
        )
    there, inside = set(every), set(known.tolist())
    missing = [name for i, name in enumerate(objects) if i not in inside]
    unknown = [name for name in names if name not in there]
    report = {
        "objects": len(known),
        "missing": len(missing),
        "missing_as": "identity rows",
        "missing_names": missing[:20],
        "unknown": len(unknown),
        "unknown_names": unknown[:20],
    }
    return MatchedRows(known, np.array([row[objects[i]] for i in known.tolist()], np.int64), report)


def join(
    table: Table, spec: KernelSpec, objects: Sequence[str], every: Sequence[str] | None = None
) -> tuple[np.ndarray, dict[str, Any]]:
    """`((n, n) kernel of unit trace, what to report)` of a table over `objects` (a subset of `every`). Raises
    `BadKernel`. O(n^3) for its check.

    >>> k, report = join(Table(["b", "a"], np.array([[2.0], [1.0]])), KernelSpec("x.csv", "linear"), ["a", "b", "new"])
    >>> k.round(3).tolist(), report["missing"]
    ([[0.133, 0.267, 0.0], [0.267, 0.533, 0.0], [0.0, 0.0, 0.333]], 1)
    """
    joined = matched(table, spec.kind == "kernel", objects, every)
    kernel, figures = _kernel_of(table.values, joined.rows, spec)
    mean = float(np.trace(kernel)) / len(joined.known)
    if not mean > 0:
        raise BadKernel("its diagonal is zero for every object of the snapshot; expected some spread")
    out = np.eye(len(objects))
    out[np.ix_(joined.known, joined.known)] = (kernel + kernel.T) / (2 * mean)
    return out / np.trace(out), joined.report | figures


def across(specs: Mapping[str, KernelSpec], objects: Sequence[str], ids: np.ndarray) -> list[CrossKernel]:
    """Every kernel of `load(specs, subset)` between the subset (the objects of `ids`) and all others. Raises
    `BadKernel`.

    K(subset, x) has 0 where the file lacks an object of the subset. Memory: the table, and (n', q) a call.
    """
    kernels = []
    for name, spec in specs.items():
        try:
            table = read_table(spec)
            mine = matched(table, spec.kind == "kernel", [objects[i] for i in ids.tolist()], objects)
            rest = matched(table, False, objects)
            kernels.append(_across(table.values, spec, mine, rest, len(ids), len(objects)))
        except BadKernel as error:
            raise BadKernel(f"kernel {name!r} ({Path(spec.file).name}): {error}") from None
    return kernels


def summed(kernels: Sequence[CrossKernel], size: int) -> CrossKernel:
    """The unweighted sum of kernels (McFee & Lanckriet 2011, eq. 7) over a subset of that size: each adds what its
    file says of an object.

    >>> one = CrossKernel(np.array([True, True]), lambda ids: np.ones((2, len(ids))))
    >>> both = summed([one, CrossKernel(np.array([True, False]), lambda ids: np.ones((2, len(ids))))], 2)
    >>> both.columns(np.array([0, 1])).tolist()
    [[2.0, 1.0], [2.0, 1.0]]
    """

    def columns(ids: np.ndarray) -> np.ndarray:
        total = np.zeros((size, len(ids)))
        for each in kernels:
            there = each.known[ids]
            if there.any():
                total[:, there] += each.columns(ids[there])
        return total

    return CrossKernel(np.logical_or.reduce([each.known for each in kernels]), columns)


def _across(values, spec: KernelSpec, mine: MatchedRows, rest: MatchedRows, size: int, n: int) -> CrossKernel:
    own, figures = _kernel_of(values, mine.rows, spec)
    scale = len(mine.known) / (float(np.trace(own)) * size)  # as in `join`: a mean diagonal of 1, then unit trace
    row, known = np.full(n, -1, np.int64), np.zeros(n, bool)
    row[rest.known], known[rest.known] = rest.rows, True

    def columns(ids: np.ndarray) -> np.ndarray:
        out = np.zeros((size, len(ids)))
        out[mine.known] = scale * _kernel_between(values, mine.rows, row[ids], spec, figures.get("gamma", 0.0))
        return out

    return CrossKernel(known, columns)


def features_across(spec: KernelSpec, objects: Sequence[str], width: int) -> CrossKernel:
    """Features of all objects as columns, (width, q): those of the file, then zeros for the columns that objects of
    the subset without features have of their own. Raises `BadKernel`."""
    table = read_table(spec)
    values, rest = table.values, matched(table, False, objects)
    row, known = np.full(len(objects), -1, np.int64), np.zeros(len(objects), bool)
    row[rest.known], known[rest.known] = rest.rows, True

    def columns(ids: np.ndarray) -> np.ndarray:
        out = np.zeros((width, len(ids)))
        out[: values.shape[1]] = values[row[ids]].T
        return out

    return CrossKernel(known, columns)


def load_features(
    name: str, spec: KernelSpec, objects: Sequence[str], every: Sequence[str] | None = None
) -> tuple[np.ndarray, dict[str, Any]]:
    """`((n, D) features, what to report)` for LPOE, as they stand in the file, over a subset of `every` object. Raises
    `BadKernel`.

    An object without features gets a column of its own of average length: the identity row of their linear kernel.
    """
    try:
        table = read_table(spec)
        if spec.kind != "linear":
            raise BadKernel(f"got kind {spec.kind!r}; features are taken as they are, expected kind 'linear'")
        joined = matched(table, False, objects, every)
    except BadKernel as error:
        raise BadKernel(f"{name} ({Path(spec.file).name}): {error}") from None
    missing = np.setdiff1d(np.arange(len(objects)), joined.known)
    out = np.zeros((len(objects), table.values.shape[1] + len(missing)))
    out[joined.known, : table.values.shape[1]] = table.values[joined.rows]
    out[missing, table.values.shape[1] + np.arange(len(missing))] = np.sqrt(
        (table.values[joined.rows] ** 2).sum() / len(joined.rows)
    )
    digest = hashlib.sha256(Path(spec.file).read_bytes()).hexdigest()
    return out, {"name": name, "file": Path(spec.file).name, "sha256": digest, "kind": spec.kind, **joined.report}


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


def check_kernel(kernel: np.ndarray) -> None:
    """Square, symmetric and PSD up to rounding; else `BadKernel` that says by how much it is not. O(n^3)."""
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise BadKernel(
            f"wrong shape: got {kernel.shape}; expected a square kernel matrix, next: for features set `kind`"
        )
    if not np.isfinite(kernel).all():
        r, c = np.argwhere(~np.isfinite(kernel))[0]
        raise BadKernel(f"{kernel[r, c]} at ({r}, {c}); expected finite numbers")
    size = float(np.abs(kernel).max(initial=0.0))
    apart = np.abs(kernel - kernel.T)
    if apart.max(initial=0.0) > ASYMMETRY * size:
        r, c = np.unravel_index(np.argmax(apart), apart.shape)
        raise BadKernel(
            f"not symmetric: entries ({r}, {c}) and ({c}, {r}) differ by {apart[r, c]:.3g}; expected a symmetric "
            "kernel, next: average it with its transpose if that is what it should be"
        )
    if size == 0.0:
        return
    from scipy.linalg import eigh  # imported only if there is a kernel

    values = eigh((kernel + kernel.T) / 2, eigvals_only=True)
    if values[0] < -NEGATIVE * values[-1]:
        raise BadKernel(
            f"not positive semidefinite: smallest eigenvalue {values[0]:.4g}, {abs(values[0]) / size:.2g} of the "
            f"largest entry; expected >= 0, next: add {-values[0]:.4g} to its diagonal or give features instead"
        )


def _kernel_of(values: np.ndarray, rows: np.ndarray, spec: KernelSpec) -> tuple[np.ndarray, dict[str, Any]]:
    """The kernel between the rows `rows`, and the figures of its making."""
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
    values: np.ndarray, rows: np.ndarray, others: np.ndarray, spec: KernelSpec, gamma: float
) -> np.ndarray:
    """(len(rows), len(others)) float64: the kernel from these rows to other ones."""
    from sklearn.metrics import pairwise

    if spec.kind == "kernel":
        return values[np.ix_(rows, others)]
    x = values[rows]
    y = x if others is rows else values[others]
    return x @ y.T if spec.kind == "linear" else np.exp(-gamma * pairwise.euclidean_distances(x, y, squared=True))


def _median_heuristic(d: np.ndarray) -> float:
    """1 / median of the off-diagonal (squared) distances; 1 when more than half of them are 0."""
    off = d[np.triu_indices(len(d), 1)]
    middle = float(np.median(off)) if len(off) else 0.0
    return 1.0 / middle if middle > 0 else 1.0
