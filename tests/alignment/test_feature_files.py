"""Every file type and frame gives the same numbers; every bad input is one clear line."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from stream_engine.alignment.feature_files import BadFeatures, FeatureSpec, FeatureTable, read
from stream_engine.alignment.feature_sets import joined, unit
from stream_engine.api.features import tables_of
from stream_engine.commands.align import parsed
from tests.support.facts import stating

NAMES = ["ape", "bee", "cat", "dog"]
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def safetensors(path, arrays, **more):
    """As the format's description has it: 8 bytes of length, a JSON header, tensors."""
    header, data = dict(more), b""
    for name, array in arrays.items():
        kind = {"float32": "F32", "float16": "F16", "int64": "I64"}[str(array.dtype)]
        ends = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": ends}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def written(folder, kind):
    """A file of this kind, and its spec."""
    path = folder / f"x.{kind}"
    frame = pd.DataFrame(X, columns=list("abc")).assign(name=NAMES)[["name", *"abc"]]
    if kind in ("npy", "safetensors"):
        (folder / "x.txt").write_text("\n".join(NAMES))
    if kind == "npy":
        np.save(path, X)
    if kind == "safetensors":
        safetensors(path, {"x": X}, __metadata__={"format": "np"})
    if kind == "npz":
        np.savez(path, x=X, objects=np.array(NAMES))
    if kind == "csv":
        frame.to_csv(path, index=False)
    if kind == "parquet":
        parquet.write_table(pa.table(frame), path)
    return FeatureSpec(str(path))


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "parquet", "safetensors"])
def test_every_kind_of_file_gives_names_and_numbers(tmp_path, kind):
    table = read("x", written(tmp_path, kind))
    assert table.names == NAMES
    np.testing.assert_allclose(table.values, X, rtol=1e-6)
    assert isinstance(table.values, np.memmap) == (kind in ("npy", "safetensors"))
    sets = joined({"x": table}, ["dog", "eel", "ape", "cat"])
    assert sets.ids.tolist() == [0, 2, 3]
    np.testing.assert_allclose(sets.sets[0].values, X[[3, 0, 2]], rtol=1e-6)
    told = sets.sets[0].report
    assert (told["objects"], told["missing"], told["not_compared"], told["dimensions"]) == (3, 1, 1, 3)


def test_frames_dicts_and_arrays_are_alike(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"), index=NAMES)
    with_names = frame.reset_index(names="object")
    given = {
        "index": frame,
        "column": with_names,
        "polars": pl.DataFrame(with_names),
        "arrow": pa.table(with_names),
        "dict": dict(zip(NAMES, X)),
        "file": tmp_path / "x.npz",
    }
    written(tmp_path, "npz")
    tables = tables_of(given, None) | tables_of({"array": X}, NAMES)
    for name, table in tables.items():
        assert table.names == NAMES, name
        np.testing.assert_allclose(table.values, X, rtol=1e-6, err_msg=name)
    with pytest.raises(BadFeatures, match=stating("'array' … names")):
        tables_of({"array": X}, None)
    with pytest.raises(BadFeatures, match="dict"):
        tables_of(X, NAMES)


def test_only_rows_of_known_objects_of_a_large_file_are_read(tmp_path):
    """10 GB on a disk that stores no zeros: three of forty thousand rows."""
    path = tmp_path / "large.npy"
    rows, d = 40_000, 1 << 16
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, d)})
        start = file.tell()
        file.truncate(start + 4 * rows * d)
        for at in (7, 10_000, rows - 1):
            file.seek(start + 4 * at * d)
            file.write(np.full(d, at, np.float32).tobytes())
    assert path.stat().st_size > 10e9
    values = np.load(path, mmap_mode="r")
    table = FeatureTable([str(i) for i in range(rows)], values)
    kept = joined({"x": table}, ["7", "10000", str(rows - 1)]).sets[0]
    assert kept.values.shape == (3, d) and kept.values[:, 0].tolist() == [7, 10_000, rows - 1]


def test_names_of_files_are_joined_without_folder_and_suffix():
    table = FeatureTable([f"images/{name}.jpg" for name in NAMES], X)
    sets = joined({"x": table}, NAMES)
    assert len(sets.ids) == 4 and sets.sets[0].report["joined_by"] != "name"


def test_empty_rows_are_missing_and_constant_dimensions_are_left_out():
    x = np.column_stack([X, np.ones(4)])
    x[1] = np.nan
    told = joined({"x": FeatureTable(NAMES, x)}, NAMES)
    assert told.ids.tolist() == [0, 2, 3] and told.sets[0].values.shape == (3, 3)
    assert told.sets[0].report["constant_dimensions"] == 1 and told.sets[0].report["missing"] == 1


BAD_SETS = {
    "other names": (FeatureTable(["x", "y", "z", "w"], X), "'x', 'y', 'z', ... … 'ape'"),
    "a name twice": (FeatureTable(["ape", "bee", "ape", "dog"], X), "'ape' … more than one row"),
    "one object": (FeatureTable(["ape"], X[:1]), "1 of 4 objects … x 1"),
    "not a number": (FeatureTable(NAMES, np.where(np.arange(12).reshape(4, 3) == 7, np.nan, X)), "'cat' … nan … 2"),
    "infinite": (FeatureTable(NAMES, np.where(np.arange(12).reshape(4, 3) == 0, np.inf, X)), "'ape' … inf … 1"),
    "constant": (FeatureTable(NAMES, np.ones((4, 5))), "5 dimensions are constant"),
    "no dimension": (FeatureTable(NAMES, np.ones((4, 0))), "0 dimensions are constant"),
}


@pytest.mark.parametrize("what", BAD_SETS)
def test_a_bad_set_is_one_line(what):
    table, line = BAD_SETS[what]
    with pytest.raises(BadFeatures, match=stating(line)) as told:
        joined({"x": table}, NAMES)
    assert ("\n" not in str(told.value) and "'x'" in str(told.value)) or what == "one object"


def bad_files(folder):
    np.save(folder / "nameless.npy", X)
    np.save(folder / "deep.npy", np.zeros((2, 2, 2)))
    (folder / "deep.txt").write_text("a\nb")
    np.save(folder / "few.npy", X)
    (folder / "few.json").write_text(json.dumps(NAMES[:3]))
    (folder / "text.csv").write_text("object,a\nape,1\nbee,two\n")
    (folder / "answers.csv").write_text("anchor,near,far\nape,bee,cat\n")
    (folder / "broken.npy").write_bytes(b"\x93NUMPY nonsense")
    (folder / "broken.safetensors").write_bytes(b"\xff" * 30)
    (folder / "two.txt").write_text("\n".join(NAMES))
    safetensors(folder / "two.safetensors", {"a": X, "b": X})
    np.savez(folder / "two.npz", a=X, b=X, objects=np.array(NAMES))
    (folder / "x.pkl").write_bytes(b"")
    return {
        "nameless.npy": "no names … --names",
        "deep.npy": "(2, 2, 2) … two axes",
        "few.npy": "3 names for 4 rows",
        "text.csv": "'a' holds … expected numbers",
        "answers.csv": "near, far … answers",
        "broken.npy": "cannot be read as a numpy file",
        "broken.safetensors": "cannot be read as a safetensors file",
        "two.safetensors": "tensors a, b",
        "two.npz": "a, b … expected the name of one",
        "x.pkl": "'.pkl' … .npy",
        "gone.npy": "no such file",
    }


def test_a_bad_file_is_one_line(tmp_path):
    for name, line in bad_files(tmp_path).items():
        with pytest.raises(BadFeatures, match=stating(line)) as told:
            read("x", FeatureSpec(str(tmp_path / name)))
        assert "\n" not in str(told.value) and name in str(told.value)
    assert read("x", FeatureSpec(str(tmp_path / "two.safetensors"), array="b")).values.shape == (4, 3)


def test_sets_of_a_command_line(tmp_path):
    made = parsed(("clip=a/b.npz:image", "c.d.csv", "e.npy"), "names.txt")
    assert list(made) == ["clip", "c.d", "e"] and made["clip"] == FeatureSpec("a/b.npz", "names.txt", "image")
    assert made["c.d"].objects is None and made["e"].objects == "names.txt"
    with pytest.raises(BadFeatures, match="two sets"):
        parsed(("a/x.npy", "b/x.npy"), None)
    with pytest.raises(BadFeatures, match="another name"):
        joined({"all sets": FeatureTable(NAMES, X)}, NAMES)


def test_a_row_of_zeros_stays_when_rows_get_length_one():
    np.testing.assert_array_equal(unit(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0.0, 0.0], [0.6, 0.8]])
