"""No file of any export is about objects without their names, and what is in it is what its declaration says.

Over all exports and formats, on a state that holds everything: each accumulator, an artifact of each refit.
"""

import io
import json
from functools import lru_cache

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.commands.by_name import by_name
from stream_engine.data.array_checks import pattern_of
from stream_engine.exports import Content
from stream_engine.exports.array_types import SCALARS, Array
from stream_engine.exports.clusters import OF_PARTITION
from stream_engine.exports.declarations import ARRAYS, LEFT_OUT, columns, declared
from stream_engine.exports.files import NameColumn
from stream_engine.exports.table_columns import TABLES
from stream_engine.refits import REFITS
from stream_engine.state import artifact as artifacts
from stream_engine.state.array_declarations import OBJECTS, SUBSET
from stream_engine.state.artifact_checks import schema_of
from stream_engine.state.published import Published
from tests.support.crafted_worlds import artifacts_of, state
from tests.support.export_files import ADDED, read
from tests.support.exported_bytes import encode

DOCUMENTS = {"objects", "summary"}
WITH_ARRAYS = [what for what in exports.all_exports() if what not in DOCUMENTS]


@pytest.fixture(scope="module")
def published() -> Published:
    """Objects are called 0 to 8, never by their own ids: who takes an id for a name is wrong."""
    snapshot = state()
    n = len(snapshot.objects)
    names = tuple(str((i + 4) % n) for i in range(n))
    new = dict(zip(snapshot.objects, names))
    snapshot = snapshot._replace(
        objects=names, labels={new[name]: label for name, label in snapshot.labels.items() if name in new}
    )
    made = {kind: artifacts.decode(data) for kind, data in artifacts_of(snapshot).items()}
    return Published(snapshot, made)


@pytest.fixture(scope="module")
def sorted_by_name(published) -> Published:
    return by_name(published)


@pytest.fixture(scope="module")
def everything(published) -> dict[str, tuple[str, Content]]:
    """File stem -> the export that makes it, its content."""
    return {
        stem: (what, content)
        for what in exports.all_exports()
        for stem, content in exports.contents(what, published).items()
    }


@lru_cache(maxsize=200)
def contents(at: int, what: str) -> dict[str, Content]:
    return exports.contents(what, WORLDS[at])


WORLDS: dict[int, Published] = {}  # by id: an export is made once for all laws


def files(published: Published, what: str, format: str) -> dict[str, bytes]:
    WORLDS[id(published)] = published
    return {
        file: data
        for name, content in contents(id(published), what).items()
        for file, data in encode(name, content, format, published.snapshot.objects).items()
    }


def sizes_of(entry: Array, array: np.ndarray, bound: dict[str, int]) -> bool:
    """Whether the shape is one of those that are declared; lengths that are not known yet become known."""
    for axes in entry.alternatives():
        if len(axes) != array.ndim:
            continue
        tried = dict(bound)
        for axis, size in zip(axes, array.shape):
            letter, _, shift = axis.partition(" ")
            length = size - int(shift.replace(" ", "") or 0)
            if letter.isdigit():
                tried[letter] = int(letter)
            if tried.setdefault(letter, length) != length:
                break
        else:
            bound |= tried
            return True
    return False


@pytest.mark.parametrize("what", WITH_ARRAYS)
def test_every_array_is_declared_and_has_the_shape_and_kind_that_are_said(what, published):
    for content in exports.contents(what, published).values():
        names = published.snapshot.objects if content.objects is None else content.objects
        bound = {"n": len(names), "s": len(names if content.subset is None else content.subset)}
        for key, array in content.arrays.items():
            entry = declared(what, key)
            assert entry is not None, f"{what}: {key} is not declared"
            assert array.dtype.kind in entry.kinds, f"{what}: {key} is {array.dtype}"
            assert sizes_of(entry, array, bound), f"{what}: {key} is {array.shape}, expected {entry.shape} with {bound}"


@pytest.mark.parametrize("what", WITH_ARRAYS)
def test_files_of_arrays_name_their_objects(what, published):
    for stem, content in exports.contents(what, published).items():
        held = dict(np.load(io.BytesIO(encode(stem, content, "npz", published.snapshot.objects)[f"{stem}.npz"])))
        entries = [declared(what, key) for key in content.arrays]
        if any(entry.names_objects for entry in entries) and what != "hierarchy":
            assert list(held["names"]) == list(published.snapshot.objects)
        if "ids" in held:
            assert list(held["subset_names"]) == [published.snapshot.objects[i] for i in held["ids"]]
        assert set(held) - ADDED == set(content.arrays) - ADDED


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("what", WITH_ARRAYS)
def test_tables_have_names_in_place_of_ids_and_lose_nothing(what, format, published):
    made = files(published, what, format)
    tables = {name.rpartition(".")[0]: read(name, data) for name, data in made.items() if not name.endswith(".json")}
    for stem, content in exports.contents(what, published).items():
        names = np.array(published.snapshot.objects)
        subset = names if content.subset is None else np.array(content.subset)
        told = json.loads(made.get(f"{stem}.{SCALARS}.json", b"{}"))
        for key, array in content.arrays.items():
            entry = declared(what, key)
            if entry.table == SCALARS:
                np.testing.assert_array_equal(np.array(told[key], float if array.dtype.kind == "f" else None), array)
                continue
            if entry.within in content.tables:
                continue  # below
            part = key if entry.table is None else entry.table
            table = tables[f"{stem}.{part}" if part else stem]
            first = (*entry.axes(array.ndim), "")[0]
            if first in ("n", "s"):
                assert text(table["object"]) == (names if first == "n" else subset).tolist(), key
            if entry.values == "ids" and first == "s":
                continue
            columns = [name for name in table.column_names if name not in ("object", "_object")]
            width = int(np.prod(array.shape[1:]))
            found = [table[name] for name in (columns if array.ndim > 1 else [key])]
            assert len(found) == width
            for column, values in zip(found, array.reshape(len(array), width).T):
                if entry.values == "ids":
                    assert text(column) == [names[i] if i >= 0 else "" for i in values.tolist()], key
                elif entry.values == "classes":
                    classes = content.arrays["classes"]
                    assert text(column) == [classes[i] if i >= 0 else "" for i in values.tolist()], key
                elif array.dtype.kind == "U":
                    assert text(column) == values.tolist(), key
                else:
                    np.testing.assert_allclose(column.to_numpy().astype(float), values.astype(float), rtol=1e-6)


def text(column) -> list[str]:
    """Texts of a column; CSV readers take 0, 1, 2 for numbers."""
    return ["" if value is None else str(value) for value in column.to_pylist()]


def rows_of(table, heads) -> list[tuple]:
    return sorted(tuple(map(said, row)) for row in zip(*(table[head].to_pylist() for head in heads)))


def said(value) -> str:
    """A cell, figures to so many digits as sums in another order agree in."""
    return f"{round(value, 5) + 0.0:.4g}" if isinstance(value, float) else str(value)


BY_ID = {  # tables whose rows or columns go by ids, not by what they say of objects, with the reason
    **dict.fromkeys((what for what in exports.all_exports() if what.startswith("triplet_counts")), "likewise"),
    "partial_order": "the first of a pair is the one with the lower id; ties of the canonical order go by ids",
    "hierarchy": "equal heights are merged by ids",
    "judgements": "the first of a pair is the one with the lower id",
}


@pytest.mark.parametrize("what", [what for what in exports.all_exports() if what not in BY_ID])
def test_tables_say_the_same_however_objects_are_numbered(what, published, sorted_by_name):
    """Ids that leaked into a table would be others when objects are numbered by name."""
    mine, theirs = (files(each, what, "parquet") for each in (published, sorted_by_name))
    assert list(mine) == list(theirs)
    for name in mine:
        if name.endswith(".json") or "linkage" in name:
            continue
        a, b = read(name, mine[name]), read(name, theirs[name])
        assert sorted(a.column_names) == sorted(b.column_names)
        assert rows_of(a, sorted(a.column_names)) == rows_of(b, sorted(a.column_names)), name


def test_a_tree_joins_the_same_objects_however_they_are_numbered(published):
    """Of merges at different heights; at equal ones the first by id is joined first."""
    tree = published.artifacts["hierarchy"]
    m = len(tree.arrays["linkage"])
    linkage = np.column_stack([tree.arrays["linkage"][:, :2], np.arange(m) + 0.5, tree.arrays["linkage"][:, 3]])
    distinct = tree._replace(arrays={**tree.arrays, "linkage": linkage})
    mine = published._replace(artifacts={**published.artifacts, "hierarchy": distinct})
    joined = []
    for each in (mine, by_name(mine)):
        table = exports.contents("hierarchy", each)["hierarchy"].tables["hierarchy"]
        under: list[frozenset] = []
        for row in zip(*(table[head] for head in ("left", "left_merge", "right", "right_merge"))):
            left, right = (under[merge - 1] if merge else frozenset([name]) for name, merge in (row[:2], row[2:]))
            under.append(left | right)
        joined.append(list(zip(under, np.asarray(table["height"]).tolist())))
    assert joined[0] == joined[1] and len(joined[0][-1][0]) == m + 1


def test_every_refit_has_an_export_and_every_array_of_it_is_declared_or_left_out_with_a_reason():
    """As the refit itself declares it: ids are ids, axes over objects are axes over objects."""
    exporting = {kind: what for what, kinds in exports.OF_REFITS.items() for kind in kinds}
    exporting |= {kind: kind for kind in exports.with_own_export()}
    assert set(exporting) == set(REFITS)
    said = {OBJECTS: "n", SUBSET: "s"}
    for kind, what in exporting.items():
        for array, spoken in schema_of(kind).axes.items():
            if pattern_of(array, LEFT_OUT.get(kind, {})) or (kind == "reliability" and what == "workers"):
                continue
            entry = declared(what, OF_PARTITION.get(array, array) if kind == "sdp_clustering" else array)
            assert entry is not None, f"{what}: {array} of {kind}"
            assert (entry.values == "ids") == (spoken.values == "ids"), (what, array)
            axes = entry.axes(len(spoken.axes)) if spoken.axes else ()
            for axis, letter in zip(spoken.axes or (), axes):
                assert axis not in said or letter == said[axis], (what, array)


def test_nothing_is_declared_that_is_not_there():
    assert set(ARRAYS) | exports.with_own_export().keys() == set(WITH_ARRAYS)


def is_of_kind(values, declared: Array) -> bool:
    """Whether a column holds what is declared; ids are names in tables, and an empty column is of any kind."""
    if isinstance(values, NameColumn):
        return declared.values == "ids" or declared.kinds == "U"
    if isinstance(values, list):
        values = [value for value in values if value is not None]
    kind = np.asarray(values).dtype.kind
    return not len(values) or kind in declared.kinds or (kind in "iu" and "f" in declared.kinds)


def test_every_table_is_described_and_registered(everything):
    made = {table for _, content in everything.values() for table in content.tables}
    assert set(TABLES) <= made | {"cluster_numbers"}  # not of so few objects
    for _, content in everything.values():
        for table, found in content.tables.items():
            known = columns(table)
            assert all(pattern_of(head, known) for head in found), (table, list(found))
            assert len({len(column) for column in found.values()}) == 1
            for head, values in found.items():
                assert is_of_kind(values, known[pattern_of(head, known)]), (table, head)
            assert exports.TABLES.get(table, table) in exports.all_exports()
    own = {table for table in made | {stem.split(".")[0] for stem in everything} if table not in exports.all_exports()}
    assert own | {"cluster_numbers"} == set(exports.TABLES)


@pytest.mark.parametrize("format", ["npz", "csv", "parquet"])
def test_the_name_of_a_file_says_what_makes_it(format, published):
    """As HTTP needs it: the export that the name leads to, in the format that it leads to, has a file of that name."""
    for what in exports.all_exports():
        for name in files(published, what, format):
            owner, of = exports.export_of(name)
            assert name in files(published, owner, of), name
    assert exports.export_of("nothing.csv") == exports.export_of("nothing") == ("", "")


def test_no_table_of_arrays_has_the_name_of_one_made_by_hand(everything, published):
    from stream_engine.exports.files import by_table

    for stem, (_, content) in everything.items():
        assert not set(by_table(stem, content, published.snapshot.objects)[0]) & set(content.tables), stem


@pytest.mark.parametrize("format", ["npz", "csv"])
def test_names_of_files_do_not_depend_on_what_else_is_there(format, published):
    """One kernel or two: that of kernel_learning is `kernel`, the other has its own name."""
    kernels = ("kernel_learning", "partial_order_embedding")
    assert set(exports.contents("kernel", published)) == {"kernel", "kernel.partial_order_embedding"}
    both = files(published, "kernel", format)
    alone = [
        files(
            published._replace(artifacts={k: a for k, a in published.artifacts.items() if k == kind}), "kernel", format
        )
        for kind in kernels
    ]
    assert alone[0] == {name: both[name] for name in both if "partial" not in name and "weights" not in name}
    other = {name: data for name, data in both.items() if name.startswith("kernel.partial")}
    assert other.items() <= alone[1].items() and "kernel_weights.csv" in alone[1]
    for what in ("clusters", "embedding", "hierarchy", "spectral"):
        only = {k: a for k, a in published.artifacts.items() if k in exports.OF_REFITS.get(what, (what,))}
        assert files(published._replace(artifacts=only), what, format) == files(published, what, format)


def test_an_object_called_object_and_one_with_a_long_name():
    content = Content({"W": np.arange(4).reshape(2, 2)})
    table = read("x.csv", encode("adds3", content, "csv", ("object", "b"))["adds3.csv"])
    assert table.column_names == ["_object", "object", "b"] and table["object"].to_pylist() == [0, 2]
    held = np.load(io.BytesIO(encode("adds3", content, "npz", ("a\0", "b"))["adds3.npz"]))
    assert bytes(held["names_utf8"]) == b"a\0b" and held["names_offsets"].tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    "what, limit", [("adds3", "similarities.DENSE_LIMIT"), ("k1", "similarities.kernels.KERNEL_LIMIT")]
)
def test_what_many_objects_have_in_place_of_a_matrix_names_them_too(what, limit, published, monkeypatch):
    monkeypatch.setattr(f"stream_engine.exports.{limit}", 3)
    content = exports.contents(what, published)[what]
    names = published.snapshot.objects
    bound = {"n": len(names)}
    assert all(sizes_of(declared(what, key), array, bound) for key, array in content.arrays.items())
    table = read(f"{what}.csv", encode(what, content, "csv", names)[f"{what}.csv"])
    for key in {"i", "j", "indices"} & set(content.arrays):
        assert text(table[key]) == [names[i] for i in content.arrays[key].tolist()]
    assert list(np.load(io.BytesIO(encode(what, content, "npz", names)[f"{what}.npz"]))["names"]) == list(names)
