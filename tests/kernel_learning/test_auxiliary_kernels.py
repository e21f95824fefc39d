"""Auxiliary kernels: every file type and kind against its formula, joining by name, and one clear line for every bad
input."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from stream_engine.kernel_learning import auxiliary_kernels
from stream_engine.kernel_learning.auxiliary_kernels import BadKernel, KernelSpec
from tests.support.facts import stating

NAMES = ["ape", "bee", "cat", "dog", "eel"]
RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(5, 3))) + 0.1
OBJECTS = ["dog", "ape", "cat", "bee", "eel"]  # another order than the files'
AT = [NAMES.index(name) for name in OBJECTS]


def one(spec, objects=OBJECTS):
    made = auxiliary_kernels.load({"k": spec}, objects)
    return made.kernels[0], made.report[0]


def unit(kernel):
    return kernel / np.trace(kernel)


def npz(path, **arrays):
    np.savez(path, **arrays)
    return str(path)


def by_definition(kind, x):
    """(n, n) by the formula, entry by entry."""
    n = len(x)
    out, d = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            a, b = x[i], x[j]
            d[i, j] = ((a - b) ** 2).sum()
            out[i, j] = a @ b
    if kind == "linear":
        return out
    return np.exp(-d / np.median(d[np.triu_indices(n, 1)]))


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_kinds_follow_their_formulas(tmp_path, kind):
    kernel, said = one(KernelSpec(npz(tmp_path / "x.npz", objects=np.array(NAMES), X=X), kind))
    np.testing.assert_allclose(kernel, unit(by_definition(kind, X[AT])), atol=1e-12)
    assert np.trace(kernel) == pytest.approx(1)
    assert said["missing"] == said["unknown"] == 0
    assert len(said["sha256"]) == 64


def test_gamma_given(tmp_path):
    path = npz(tmp_path / "x.npz", objects=np.array(NAMES), X=X)
    kernel, said = one(KernelSpec(path, "rbf", gamma=2.0))
    assert said["gamma"] == 2.0
    assert kernel[0, 1] == pytest.approx(np.exp(-2 * ((X[3] - X[0]) ** 2).sum()) / 5)
    with pytest.raises(BadKernel, match=stating("gamma -1.0 … > 0")):
        one(KernelSpec(path, "rbf", gamma=-1.0))


@pytest.mark.parametrize("way", ["npy", "npy json", "npz", "csv", "parquet"])
def test_every_file_type_says_the_same(tmp_path, way):
    objects = OBJECTS
    table = pa.table({"animal": NAMES, **{f"f{c}": X[:, c] for c in range(3)}, "word": ["a"] * 5})
    spec = KernelSpec(str(tmp_path / f"x.{way.split()[0]}"), "rbf", columns=("f0", "f1", "f2"))
    if way == "npy":  # no names: rows are the snapshot's objects
        np.save(spec.file, X)
        objects = NAMES
    elif way == "npy json":
        np.save(spec.file, X.astype(np.float32).astype(np.float64))
        (tmp_path / "names.json").write_text(json.dumps(NAMES))
        (tmp_path / "names.txt").write_text("\n".join(NAMES))
        np.save(spec.file, X)
        text = one(KernelSpec(spec.file, "rbf", objects=str(tmp_path / "names.txt")))[0]
        spec = KernelSpec(spec.file, "rbf", objects=str(tmp_path / "names.json"))
        assert np.array_equal(text, one(spec)[0])
    elif way == "npz":
        np.savez(spec.file, objects=np.array(NAMES), X=X, other=X * 0)
        spec = KernelSpec(spec.file, "rbf", array="X")
    elif way == "csv":
        csv.write_csv(table, spec.file)
    else:
        parquet.write_table(table.select(["f0", "f1", "f2", "animal"]), spec.file)
        spec = KernelSpec(spec.file, "rbf", key="animal")
    kernel, _ = one(spec, objects)
    x = X if way == "npy" else X[AT]
    np.testing.assert_allclose(kernel, unit(by_definition("rbf", x)), atol=1e-12)


def test_integer_names_and_boolean_features(tmp_path):
    (tmp_path / "x.csv").write_text("id,fins,legs\n1,true,0\n2,false,4\n")
    kernel, _ = one(KernelSpec(str(tmp_path / "x.csv"), "linear"), ["2", "1"])
    np.testing.assert_allclose(kernel, np.array([[16, 0], [0, 1]]) / 17)


def test_kernel_matrices_from_npy_and_from_a_table_in_any_column_order(tmp_path):
    matrix = X @ X.T
    np.save(tmp_path / "k.npy", matrix)
    kernel, _ = one(KernelSpec(str(tmp_path / "k.npy")), NAMES)
    np.testing.assert_allclose(kernel, unit(matrix))
    shuffled = {"name": NAMES, **{NAMES[c]: matrix[:, c] for c in (3, 1, 0, 4, 2)}}
    csv.write_csv(pa.table(shuffled), tmp_path / "k.csv")
    kernel, _ = one(KernelSpec(str(tmp_path / "k.csv")))
    np.testing.assert_allclose(kernel, unit(matrix[np.ix_(AT, AT)]))
    csv.write_csv(pa.table({"name": NAMES, **dict.fromkeys("vwxyz", X[:, 0])}), tmp_path / "bad.csv")
    with pytest.raises(BadKernel, match="5 rows.*5"):
        one(KernelSpec(str(tmp_path / "bad.csv")))


def test_missing_objects_are_identity_rows_and_said(tmp_path):
    """An object that the file does not have, or only as an empty row, is like nobody: mean diagonal, zeros beside
    it."""
    (tmp_path / "x.csv").write_text("name,sweet,salty\nape,1,2\nbee,,\ncat,3,1\nzebra,9,9\n")
    kernel, said = one(KernelSpec(str(tmp_path / "x.csv"), "linear"), ["bee", "cat", "ape", "yak"])
    inner = np.array([[10, 5], [5, 5.0]]) / 7.5
    expected = np.eye(4)
    expected[1:3, 1:3] = inner
    np.testing.assert_allclose(kernel, expected / 4)
    assert said["missing_names"] == ["bee", "yak"] and said["missing_as"] == "identity rows"
    assert said["unknown_names"] == ["zebra"] and said["objects"] == 2
    features, said = auxiliary_kernels.load_features(
        "f", KernelSpec(str(tmp_path / "x.csv"), "linear"), ["bee", "cat", "ape", "yak"]
    )
    np.testing.assert_allclose(features @ features.T, expected * 7.5)
    assert said["missing"] == 2 and features.shape == (4, 4)


def bad_files(folder):
    """(name of the case, spec, what its message says)."""
    matrix = X @ X.T
    skew, indefinite, hole = matrix.copy(), matrix - 0.5 * np.eye(5), matrix.copy()
    skew[0, 1] += 0.25
    hole[2, 3] = hole[3, 2] = np.nan
    np.save(folder / "wide.npy", X)
    np.save(folder / "few.npy", X[:4])
    np.save(folder / "zero.npy", np.zeros((5, 5)))
    np.save(folder / "pickled.npy", np.array([{"a": 1}]), allow_pickle=True)  # loading it could run anything
    for name, m in (("skew", skew), ("indefinite", indefinite), ("hole", hole)):
        npz(folder / f"{name}.npz", objects=np.array(NAMES), K=m)
    holes = X.copy()
    holes[1, 2] = np.nan
    npz(folder / "nan.npz", objects=np.array(NAMES), X=holes)
    npz(folder / "strange.npz", objects=np.array([f"x{i}" for i in range(5)]), X=X)
    npz(folder / "twice.npz", objects=np.array(["ape", "bee", "ape", "dog", "eel"]), X=X)
    npz(folder / "two.npz", objects=np.array(NAMES), X=X, Y=X)
    (folder / "torn.npy").write_bytes(b"\x93NUMPY\x01")
    (folder / "words.csv").write_text("name,colour\nape,red\nbee,blue\n")
    (folder / "x.txt").write_text("")
    spec = lambda name, *args, **more: KernelSpec(str(folder / name), *args, **more)  # noqa: E731
    least = np.linalg.eigvalsh(indefinite)[0]
    return [
        (spec("x.txt"), "'.txt'"),
        (spec("torn.npy", "linear"), "numpy"),
        (spec("pickled.npy"), "allow_pickle"),
        (
            spec("wide.npy"),
            r"\(5, 3\).*`kind`",
        ),
        (spec("few.npy", "linear"), "4 rows.*5 objects"),
        (spec("skew.npz"), r"\(0, 1\).*\(1, 0\).*0.25"),
        (spec("indefinite.npz"), f"semidefinite.*{least:.4g}"),
        (spec("hole.npz"), r"\(2, 3\)"),
        (spec("nan.npz", "linear"), "nan at row 'bee', column 2"),
        (
            spec("strange.npz", "rbf"),
            r"\('x0', 'x1', 'x2', ...\)",
        ),
        (spec("twice.npz", "rbf"), "object 'ape'"),
        (spec("two.npz", "rbf"), "`array`"),
        (spec("zero.npy"), "diagonal"),
        (
            spec("words.csv", "rbf"),
            "'colour'.*string.*`columns`",
        ),
        (spec("words.csv", "rbf", columns=("taste",)), "'taste'.*name, colour"),
    ]


def test_bad_files_get_one_clear_line(tmp_path):
    for spec, what in bad_files(tmp_path):
        with pytest.raises(BadKernel, match=what) as caught:
            one(spec, NAMES)
        said = str(caught.value)
        assert said.startswith(f"kernel 'k' ({spec.file.rpartition('/')[2]}): ")
        assert "\n" not in said
        assert len(said) < 400
    with pytest.raises(BadKernel, match="features .*'linear'"):
        auxiliary_kernels.load_features("features", KernelSpec(str(tmp_path / "nan.npz"), "rbf"), NAMES)


def test_rounding_is_not_an_error(tmp_path):
    """A kernel that is symmetric and PSD up to rounding passes; it comes out symmetric."""
    matrix = X @ X.T + 1e-13 * RNG.normal(size=(5, 5))
    kernel, _ = one(KernelSpec(npz(tmp_path / "k.npz", objects=np.array(NAMES), K=matrix)))
    assert np.array_equal(kernel, kernel.T)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_scale_decides_nothing_about_a_kernel(scale):
    auxiliary_kernels.check_kernel(scale * (np.ones((50, 50)) - 5e-8 * np.eye(50)))  # 1e-9 of the largest eigenvalue
    for bad in ([[1, 1, 0], [1, 1, 1], [0, 1, 1]], [[1, 0.1], [0, 1]]):
        with pytest.raises(BadKernel):
            auxiliary_kernels.check_kernel(scale * np.array(bad, float))


def test_all_names_are_counted_and_the_first_are_listed(tmp_path):
    (tmp_path / "x.csv").write_text("name,sweet\n" + "".join(f"n{i},{i}\n" for i in range(30)))
    objects = [*(f"o{i}" for i in range(25)), "n0", "n1"]
    _, said = one(KernelSpec(str(tmp_path / "x.csv"), "linear"), objects)
    assert (said["objects"], said["missing"], said["unknown"]) == (2, 25, 28)
    assert said["missing_names"] == objects[:20] and said["unknown_names"] == [f"n{i}" for i in range(2, 22)]
