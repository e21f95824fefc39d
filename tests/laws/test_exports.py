"""Every registered export: equal inputs give equal bytes, names of any kind are kept, absence is said."""

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.data.comparisons import Triplet
from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.files import FORMATS, MEDIA_TYPES
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.support.crafted_worlds import published as crafted
from tests.support.export_files import read
from tests.support.exported_bytes import encode

NAMES = ["a", "b, with comma", 'c "quoted"', "dé", "e\nf"]


def awkward() -> Published:
    """Of objects with names that files have to quote."""
    engine = Engine(("adds3", "triplet_counts"))
    rng = np.random.default_rng(0)
    engine.learn_many([Triplet(*(NAMES[i] for i in rng.permutation(5)[:3])) for _ in range(60)])
    return Published(engine.snapshot(), {})


@pytest.fixture(scope="module")
def published():
    return crafted()


def files(what, published, format):
    out = {}
    for name, content in exports.contents(what, published).items():
        out |= encode(name, content, format, published.snapshot.objects)
    return out


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("what", exports.all_exports())
def test_equal_inputs_give_equal_bytes_of_a_known_kind(what, format, published):
    made = files(what, published, format)
    assert made and made == files(what, crafted(), format)
    assert all(name[name.rindex(".") :] in MEDIA_TYPES for name in made)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_hold_every_object_and_value(format):
    published = awkward()
    names = published.snapshot.objects
    w = exports.contents("adds3", published)["adds3"].arrays["W"]
    table = read(f"adds3.{format}", files("adds3", published, format)[f"adds3.{format}"])
    assert table.column_names == ["object", *names] and table["object"].to_pylist() == list(names)
    np.testing.assert_array_equal(np.stack([table[name].to_numpy() for name in names], 1), w)
    counts = files("triplet_counts", published, format)[f"triplet_counts.{format}"]
    expected = exports.contents("triplet_counts", published)["triplet_counts"].arrays
    named = {key: [names[i] for i in expected[key].tolist()] for key in ("anchor", "lo", "hi")}
    plain = {key: a.tolist() for key, a in expected.items()}
    assert read(f"x.{format}", counts).to_pydict() == plain | named


def test_predictions_are_the_best_ones_whichever_export_writes_them(published):
    """Of `classify`, unless the booster is of a newer snapshot."""
    wrote = [files(what, published, "npz")["predictions.csv"] for what in ("booster", "classify", "predictions")]
    assert wrote[0] == wrote[1] == wrote[2] == files("predictions", published, "csv")["predictions.csv"]
    newer = published.artifacts["triplet_boost"]._replace(sequence=published.snapshot.sequence + 1)
    turned = newer._replace(arrays={**newer.arrays, "predicted": 1 - newer.arrays["predicted"]})
    for artifact in (published.artifacts["classify"], turned):
        made = published._replace(artifacts={**published.artifacts, artifact.kind: artifact})
        table = exports.contents("predictions", made)["predictions"].tables["predictions"]
        classes = artifact.report["classes"]
        assert list(table["predicted"]) == [classes[i] for i in artifact.arrays["predicted"].tolist()]


def test_similarities_above_the_dense_limit_come_sparse(published):
    from stream_engine.exports import similarities

    dense = exports.contents("adds4", published)["adds4"].arrays["W"]
    many = published.snapshot._replace(objects=tuple(str(i) for i in range(similarities.DENSE_LIMIT + 1)))
    sparse = exports.contents("adds4", published._replace(snapshot=many))["adds4"].arrays
    assert set(sparse) == {"i", "j", "w"} and (sparse["i"] < sparse["j"]).all()
    np.testing.assert_array_equal(dense[sparse["i"], sparse["j"]], sparse["w"])
    assert np.count_nonzero(np.triu(dense)) == len(sparse["w"])


def test_what_is_not_there_says_what_makes_it(published):
    bare = Published(Engine(("adds3",), False).snapshot(), {})
    for what in (
        "adds4",
        "partial_order",
        "clusters",
        "booster",
        "classify",
        "predictions",
        "spectral",
        "hierarchy",
        "dimensions",
        "kernel",
        "models",
        "workers",
        "adds3_window",
        "adds3_trusted",
        "triplet_counts_weighted",
        "evidence",
    ):
        with pytest.raises(NothingToExport):
            exports.contents(what, bare)


def test_arrays_that_nobody_declared_become_one_table_each_and_figures_one_document():
    made = encode("x", Content({"a": np.arange(3), "b": np.ones((2, 4)), "c": np.array(7)}), "csv", ())
    assert set(made) == {"x.a.csv", "x.b.csv", "x.scalars.json"}
    assert read("x.csv", made["x.b.csv"]).num_columns == 4
