"""The table in an auxiliary file: names in row order, and numbers; .npy and .npz through numpy (never pickle), .csv and
.parquet through pyarrow."""

import json
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from zipfile import BadZipFile

import numpy as np
from msgspec import Meta, Struct

SUFFIXES = (".npy", ".npz", ".csv", ".parquet")  # of readable files
NO_FILE = (
    "no such file; expected one (a relative name is seen from the configuration file, with --set from the working "
    "directory)"
)


class BadKernel(RuntimeError):
    """An auxiliary file cannot be used; the message is one line: which kernel, what, got, expected, next step."""


class KernelSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One auxiliary kernel: a `file` (.npy, .npz, .csv or .parquet), and how to read it.

    `kind`: "kernel" (a kernel matrix), or a kernel computed from features: "linear" x'y; "rbf" exp(-gamma |x - y|^2).
    `gamma`: by default 1 / median distance. `key`: the CSV/Parquet column of object names (default: the first).
    `columns`: which of the other columns to use (default: all). `objects`: for .npy/.npz, a file with the names in row
    order (.json list, or one per line); an .npz can have an array `objects` instead; without either, rows are the
    snapshot's objects in id order. `array`: the name of the array in an .npz.
    """

    file: str
    kind: Literal["kernel", "linear", "rbf"] = "kernel"
    gamma: Annotated[float, Meta(gt=0)] | None = None
    key: str | None = None
    columns: tuple[str, ...] | None = None
    objects: str | None = None
    array: str | None = None


class Table(NamedTuple):
    """The content of a file: object names in row order (None: the snapshot's), and numbers."""

    names: list[str] | None
    values: np.ndarray  # (r, c) float64


def read_table(spec: KernelSpec) -> Table:
    """Read a file by its suffix. Raises `BadKernel`."""
    path = Path(spec.file)
    if not path.is_file():
        raise BadKernel(NO_FILE)
    if path.suffix in (".npy", ".npz"):
        return _read_numpy(path, spec)
    if path.suffix in (".csv", ".parquet"):
        return _read_columns(path, spec)
    raise BadKernel(f"got a file ending in {path.suffix!r}; expected {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def _read_numpy(path: Path, spec: KernelSpec) -> Table:
    names = None
    try:
        with open(path, "rb") as file:  # numpy would leave a damaged one open
            values = np.load(file, allow_pickle=False)
            if path.suffix == ".npz":
                names, values = _pick(dict(values), spec)
    except BadKernel:
        raise
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise BadKernel(f"cannot be read as a numpy file: {error}") from None
    if spec.objects is not None:
        names = read_names(Path(spec.objects))
    if values.dtype.kind not in "fiub" or values.ndim != 2:
        raise BadKernel(
            f"wrong shape: got an array of {values.dtype} with shape {values.shape}; expected numbers with two axes"
        )
    return Table(names, values.astype(np.float64))


def read_names(path: Path) -> list[str]:
    """Names in row order: a .json list, or another file with one a line. Raises `BadKernel`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        names = json.loads(text) if path.suffix == ".json" else text.splitlines()
    except (OSError, ValueError) as error:
        raise BadKernel(f"names cannot be read from {path.name}: {error}") from None
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise BadKernel(f"names in {path.name}: expected a JSON list of texts, or one name a line in another file")
    return names


def _pick(arrays: dict[str, np.ndarray], spec: KernelSpec) -> tuple[list[str] | None, np.ndarray]:
    """The names in an .npz, and the array that `spec` names or the only one."""
    names = arrays.pop("objects", None)
    array = spec.array or next(iter(arrays), None)
    if array not in arrays or (spec.array is None and len(arrays) > 1):
        raise BadKernel(
            f"got array {spec.array!r} of {', '.join(arrays) or 'none'}; expected the name of one in `array`"
        )
    return None if names is None else [str(x) for x in names.tolist()], arrays[array]


def _read_columns(path: Path, spec: KernelSpec) -> Table:
    import pyarrow as pa
    from pyarrow import csv, parquet

    try:
        table = csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadKernel(f"cannot be read as {path.suffix}: {str(error).splitlines()[0]}") from None
    key = spec.key or table.column_names[0]
    columns = [key, *(spec.columns if spec.columns is not None else [c for c in table.column_names if c != key])]
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise BadKernel(f"no column {missing[0]!r}; got columns {', '.join(table.column_names[:20])}")
    names = [str(x) for x in table[key].to_pylist()]
    for column in columns[1:]:
        kind = table[column].type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_null(kind)
        ):
            raise BadKernel(
                f"column {column!r} holds {kind}; expected numbers, next: name the numeric ones in `columns`"
            )
    values = [
        table[column]
        .cast(pa.float64() if not pa.types.is_boolean(table[column].type) else pa.int8())
        .to_numpy(zero_copy_only=False)
        .astype(np.float64)
        for column in columns[1:]
    ]
    if spec.kind == "kernel":
        return _square_by_name(names, columns[1:], values)
    return Table(names, np.stack(values, axis=1) if values else np.empty((len(names), 0)))


def _square_by_name(names: list[str], header: list[str], values: list[np.ndarray]) -> Table:
    """A kernel matrix as a table: its columns are named like its rows, in any order."""
    if sorted(header) != sorted(names):
        raise BadKernel(
            f"wrong shape: got {len(names)} rows and {len(header)} columns with other names; expected a kernel "
            "matrix with one column per row, named alike"
        )
    column = {name: c for c, name in enumerate(header)}
    return Table(names, np.stack([values[column[name]] for name in names], axis=1))
