"""A set of features in a file: names of objects in row order, and numbers.

.npy and .safetensors files are mapped into memory, so that only the rows of known objects are read; .npz, .csv and
.parquet are read whole (`kernel_learning.auxiliary_files`). Every problem is one `BadFeatures` line.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from stream_engine.data import available_memory
from stream_engine.kernel_learning.auxiliary_files import BadKernel, KernelSpec, read_names, read_table

SUFFIXES = (".npy", ".npz", ".csv", ".parquet", ".safetensors")
NAME_FILES = ("{stem}.txt", "{stem}.json", "names.txt", "file_names.txt")  # where the names of a mapped file may stand
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}
ANSWERS = ("near", "far", "odd", "chosen", "left", "right")  # columns of a file of answers


class BadFeatures(RuntimeError):
    """A set of features cannot be used; the message is one line: which set, what, got, expected, next step."""


class FeatureSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One set of features.

    `file`: .npy, .npz, .csv, .parquet or .safetensors, a row for each object. `objects`: a file with the names in row
    order (.json list, or one per line); by default NAME.txt, NAME.json, names.txt or file_names.txt beside the file, or
    an array `objects` of an .npz. `array`: the array of an .npz or .safetensors. `key`: the column of names of a table
    (default: the first). `columns`: which of the other columns to use (default: all).
    """

    file: str
    objects: str | None = None
    array: str | None = None
    key: str | None = None
    columns: tuple[str, ...] | None = None


class FeatureTable(NamedTuple):
    """Names in row order, and numbers; `file` for reports."""

    names: list[str]
    values: np.ndarray  # (N, d), mapped where the file allows it
    file: str = ""


def read(name: str, spec: FeatureSpec) -> FeatureTable:
    """A set by the suffix of its file. Raises `BadFeatures`."""
    path = Path(spec.file)
    try:
        if not path.is_file():
            raise BadKernel("no such file; expected one of features")
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            raise BadKernel(f"got a file ending in {path.suffix!r}; expected {', '.join(SUFFIXES)}")
        if suffix in (".npy", ".safetensors"):
            values = _mapped_numpy(path) if suffix == ".npy" else _mapped_tensor(path, spec.array)
            return checked(_names(path, spec), values, path.name)
        free = available_memory.available()
        if free is not None and 4 * path.stat().st_size > free:
            raise BadKernel(
                f"{path.stat().st_size / 1e9:.1f} GB of {suffix} are read whole and do not fit into memory; next: "
                "save it as .npy, of which only the rows of known objects are read"
            )
        _check_no_answers(path, suffix)
        table = read_table(
            KernelSpec(spec.file, "linear", None, spec.key, spec.columns, _names_file(path, spec), spec.array)
        )
        if table.names is None:
            raise _nameless(path)
        return checked(table.names, table.values, path.name)
    except BadKernel as error:
        raise BadFeatures(f"features {name!r} ({path.name}): {error}") from None


def _check_no_answers(path: Path, suffix: str) -> None:
    """Raise `BadKernel` for a table of answers."""
    if suffix == ".csv":
        with open(path, encoding="utf-8", errors="replace") as file:
            heads = [head.strip().strip('"') for head in file.readline().split(",")]
        if len(answers := [head for head in heads if head in ANSWERS]) > 1:
            raise BadKernel(
                f"got columns {', '.join(answers)}, which are answers; expected a row of numbers for each object, "
                "next: name the answers in --answers"
            )


def _mapped_numpy(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise BadKernel(f"cannot be read as a numpy file: {error}") from None


def _mapped_tensor(path: Path, wanted: str | None) -> np.ndarray:
    """A tensor of a .safetensors file: 8 bytes with the length of a JSON header, the header, the tensors."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length < 100_000_000:
                raise ValueError("its header has no valid length")
            header: dict[str, Any] = json.loads(file.read(length))
        tensors = {key: tensor for key, tensor in header.items() if key != "__metadata__"}
        name = wanted or next(iter(tensors), None)
        if name not in tensors or (wanted is None and len(tensors) > 1):
            raise BadKernel(f"got tensors {', '.join(tensors) or 'none'}; next: FILE:TENSOR names the one to use")
        kind, shape, (begin, end) = (tensors[name][key] for key in ("dtype", "shape", "data_offsets"))
        if kind not in KINDS:
            raise BadKernel(f"tensor {name!r} holds {kind}; expected one of {', '.join(KINDS)}, next: save as F32")
        if end - begin != math.prod(shape) * np.dtype(KINDS[kind]).itemsize:
            raise ValueError(f"tensor {name!r} has another size than its shape")
        return np.memmap(path, KINDS[kind], "r", 8 + length + begin, tuple(shape))
    except (ValueError, OSError, KeyError, TypeError, AttributeError) as error:
        raise BadKernel(f"cannot be read as a safetensors file: {error}") from None


def _names_file(path: Path, spec: FeatureSpec) -> str | None:
    """The file of names; of an .npz only one that is named, as its own array comes first."""
    if spec.objects is not None or path.suffix.lower() not in (".npy", ".safetensors"):
        return spec.objects
    files = (path.parent / pattern.format(stem=path.stem) for pattern in NAME_FILES)
    return next((str(file) for file in files if file.is_file()), None)


def _names(path: Path, spec: FeatureSpec) -> list[str]:
    file = _names_file(path, spec)
    if file is None:
        raise _nameless(path)
    return read_names(Path(file))


def _nameless(path: Path) -> BadKernel:
    return BadKernel(f"no names of the rows; next: --names FILE, or {path.stem}.txt beside it, one name per line")


def checked(names: list[str], values: np.ndarray, file: str) -> FeatureTable:
    """The table of names and numbers. Raises `BadKernel`."""
    if values.dtype.kind not in "fiub" or values.ndim != 2:
        raise BadKernel(f"got {values.dtype} with shape {values.shape}; expected numbers with two axes")
    if len(names) != len(values):
        raise BadKernel(f"got {len(names):,} names for {len(values):,} rows; expected one name per row")
    return FeatureTable(names, values, file)
