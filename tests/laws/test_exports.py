"""Every registered export: nothing lost in any format, equal inputs give equal bytes, absence is said."""

import io

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from stream_engine import exports
from stream_engine.commands.by_name import by_name
from stream_engine.counts import ACCUMULATORS
from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.data.packed_names import pack_names
from stream_engine.exports import Content, NothingToExport, models
from stream_engine.exports.files import FORMATS, MEDIA_TYPES, encode
from stream_engine.refits import reliability
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published

ADDED = {"names", "subset_names"}  # by whoever writes the file
NAMES = ["a", "b, with comma", 'c "quoted"', "dé", "e\nf"]


def state() -> Published:
    engine = Engine(ACCUMULATORS)
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b, c, d = (NAMES[i] for i in rng.permutation(5)[:4])
        engine.learn_many([Triplet(a, b, c), Quadruplet((a, b), (c, d))])
    n = len(NAMES)
    made = {
        "sdp_clustering": Artifact(
            "sdp_clustering",
            "",
            1,
            {},
            0,
            {
                "labels": np.array([0, 1, 0, 1, -1], np.int32),
                "k": np.array(2),
                "lam": np.array(0.5),
                "objective": np.array(1.5),
                "criterion": np.array([0.9, 0.8]),
                "residuals": np.zeros(4),
            },
            {},
        ),
        "triplet_boost": Artifact(
            "triplet_boost",
            "",
            1,
            {},
            0,
            {
                "j": np.array([0], np.int32),
                "k": np.array([1], np.int32),
                "alpha": np.array([0.3]),
                "predicted": np.array([0, 1, 0, 1, 0], np.int32),
                "given": np.array([0, -1, 0, -1, -1], np.int32),
                "score": np.linspace(0, 1, n),
                "abstained": np.array([False] * 4 + [True]),
            },
            {"classes": ["x", "y|z"]},
        ),
        "kernel_learning": Artifact(
            "kernel_learning",
            "",
            1,
            {},
            0,
            {"K": np.eye(n), "mu": np.array([0.5]), "objective": np.array(2.0), "satisfied": np.array(0.9)},
            {
                "held_out": "judgements",
                "accuracy": 0.8,
                "log_loss": 0.4,
                "calibration_error": 0.01,
                "standard_error": 0.02,
                "by_worker": {"accuracy": 0.75, "standard_error": None, "clusters": 6},
                "ceiling": None,
            },
        ),
        "spectral": Artifact(
            "spectral", "", 1, {}, 0, {"labels": np.array([0, 1, 0, 1, -1], np.int32), "k": np.array(2)}, {}
        ),
        "hierarchy": Artifact(
            "hierarchy",
            "",
            1,
            {},
            0,
            {
                "linkage": np.array([[0, 2, 0.5, 2], [1, 3, 2.0, 3.0]]),
                "leaves": np.array([3, 0, 4], np.int32),
                "revenue": np.array(7.0),
            },
            {},
        ),
        "kernel_pca": Artifact(
            "kernel_pca",
            "",
            1,
            {},
            0,
            {
                "coordinates": np.linspace(-1, 1, 2 * n).reshape(n, 2),
                "mapped": np.arange(n) < n - 1,
                "eigenvalues": np.array([2.0, 1.0]),
                "lambda_min": np.array(0.25),
            },
            {},
        ),
        "dimensions": Artifact(
            "dimensions",
            "",
            1,
            {},
            0,
            {
                **dict.fromkeys(("X", "standard_error"), np.linspace(0, 1, 2 * n).reshape(n, 2)),
                "asked": np.arange(n) < n - 1,
                **dict.fromkeys(("reproducibility", "importance", "importance_error"), np.array([0.9, 0.4])),
            },
            {},
        ),
        "classify": Artifact(
            "classify",
            "",
            1,
            {},
            0,
            {
                "predicted": np.array([1, 1, 0, 1, 0], np.int32),
                "given": np.array([0, -1, 0, -1, -1], np.int32),
                "probability": np.array([[0.4, 0.6], [0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]),
                "score": np.array([0.6, 0.9, 0.8, 0.7, 0.5]),
                "abstained": np.array([False] * 4 + [True]),
            },
            {
                "classes": ["x", "y|z"],
                "held_out": {
                    "objects": 2,
                    "accuracy": 0.5,
                    "standard_error": 0.4,
                    "log_loss": 0.6,
                    "abstained": 0.0,
                    "majority_class_accuracy": 1.0,
                },
                "models": [
                    {
                        "model": "nearest neighbours, k1",
                        "setting": 3.0,
                        "objects": 2,
                        "accuracy": 0.5,
                        "standard_error": 0.4,
                        "log_loss": 0.6,
                        "abstained": 0.0,
                        "best": True,
                    }
                ],
            },
        ),
        "embedding": Artifact(
            "embedding",
            "",
            1,
            {},
            0,
            {
                "X": np.linspace(-1, 1, 2 * n).reshape(n, 2),
                "asked": np.arange(n) < n - 1,
                "lapse": np.array(0.1),
                "worker_lapse": np.array([0.2]),
                "worker_weights": np.array([[0.5, 2.0]]),
                "worker_group": np.array([0]),
                **pack_names(["ann"]),
            },
            {"alpha": 1.0, "individual_differences": {"verdict": "participants differ"}},
        ),
        "feature_metric": Artifact(
            "feature_metric",
            "",
            1,
            {},
            0,
            {
                **pack_names([*NAMES, "never compared"]),
                "points": np.linspace(-1, 1, 3 * (n + 1)).reshape(n + 1, 3),
                "compared": np.arange(n + 1) < n,
            },
            {"probability_slope": 1.0},
        ),
    }
    snapshot = engine.snapshot()
    made["reliability"] = reliability.refit(snapshot, reliability.Params(), 0)
    return Published(snapshot, made)


@pytest.fixture(scope="module")
def published():
    return state()


def files(what, published, format):
    out = {}
    for name, content in exports.contents(what, published).items():
        out |= encode(name, content, format, published.snapshot.objects)
    return out


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("what", exports.EXPORTS)
def test_equal_inputs_give_equal_bytes_of_a_known_kind(what, format, published):
    made = files(what, published, format)
    assert made and made == files(what, state(), format)
    assert all(name[name.rindex(".") :] in MEDIA_TYPES for name in made)


@pytest.mark.parametrize("what", [w for w in exports.EXPORTS if w not in ("objects", "summary")])
def test_npz_gives_the_arrays_back(what, published):
    for name, content in exports.contents(what, published).items():
        names = published.snapshot.objects
        loaded = np.load(io.BytesIO(encode(name, content, "npz", names)[f"{name}.npz"]), allow_pickle=False)
        assert set(content.arrays) - ADDED == set(loaded.files) - ADDED
        for key, array in content.arrays.items():
            np.testing.assert_array_equal(loaded[key], array)
            assert loaded[key].dtype == array.dtype


def read(name: str, data: bytes):
    if name.endswith(".parquet"):
        return pyarrow.parquet.read_table(io.BytesIO(data))
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    return pyarrow.csv.read_csv(io.BytesIO(data), parse_options=options)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_hold_every_object_and_value(format, published):
    w = exports.contents("adds3", published)["adds3"].arrays["W"]
    table = read(f"adds3.{format}", files("adds3", published, format)[f"adds3.{format}"])
    assert table.column_names == ["object", *published.snapshot.objects]
    assert table["object"].to_pylist() == list(published.snapshot.objects)
    np.testing.assert_array_equal(np.stack([table[name].to_numpy() for name in published.snapshot.objects], 1), w)
    counts = files("triplet_counts", published, format)[f"triplet_counts.{format}"]
    expected = exports.contents("triplet_counts", published)["triplet_counts"].arrays
    named = {key: [published.snapshot.objects[i] for i in expected[key].tolist()] for key in ("anchor", "lo", "hi")}
    plain = {key: a.tolist() for key, a in expected.items()}
    assert read(f"x.{format}", counts).to_pydict() == plain | named
    kept = files("partial_order", published, format)
    assert {f"partial_order.{array}.{format}" for array in ("kept", "reduced", "canonical")} <= set(kept)


def test_the_canonical_order_keeps_more_than_the_order_of_arrival(published):
    arrays = exports.contents("partial_order", published)["partial_order"].arrays
    assert 0 < arrays["weight_kept"] <= arrays["canonical_weight_kept"] <= 1
    engine = Engine(("triplet_counts", "quadruplet_counts"))
    engine.learn_many(
        [Quadruplet(("a", "b"), ("c", "d"))] * 2 + [Quadruplet(("c", "d"), ("a", "b")), Triplet("a", "b", "c")]
    )
    counted = exports.contents("partial_order", Published(engine.snapshot(), {}))["partial_order"].arrays
    assert counted["canonical"].tolist() == [[0, 1, 0, 2], [0, 1, 2, 3]] and counted["canonical_weight_kept"] == 1


def test_csv_tables_stand_beside_the_arrays(published):
    made = files("clusters", published, "npz")
    assert read("x.csv", made["clusters.csv"]).to_pydict() == {
        "object": list(published.snapshot.objects),
        "cluster": [1, 2, 1, 2, -1],
        "cluster_label": [0, 1, 0, 1, -1],
    }
    boosted = {kind: made for kind, made in published.artifacts.items() if kind != "classify"}
    only_boosted = published._replace(artifacts=boosted)
    table = read("x.csv", files("booster", only_boosted, "npz")["predictions.csv"]).to_pydict()
    assert table["predicted"] == ["x", "y|z", "x", "y|z", "x"] and table["abstained"][-1] is True
    assert table["label"][0] == "x" and table["label"][1] in ("", None)


def test_predictions_are_the_best_ones_whichever_export_writes_them(published):
    """Of `classify`, with the probabilities, unless the booster is of a newer snapshot."""
    wrote = [files(what, published, "npz")["predictions.csv"] for what in ("booster", "classify", "predictions")]
    assert wrote[0] == wrote[1] == wrote[2] == files("predictions", published, "csv")["predictions.csv"]
    table = read("x.csv", wrote[0]).to_pydict()
    assert table["object"] == list(published.snapshot.objects) and table["predicted"] == ["y|z", "y|z", "x", "y|z", "x"]
    assert table["probability_x"] == [0.4, 0.1, 0.8, 0.3, 0.5] and table["score"] == [0.6, 0.9, 0.8, 0.7, 0.5]
    newer = published.artifacts["triplet_boost"]._replace(sequence=2)
    table = exports.contents(
        "predictions", published._replace(artifacts={**published.artifacts, "triplet_boost": newer})
    )
    assert table["predictions"].tables["predictions"]["predicted"] == ["x", "y|z", "x", "y|z", "x"]


def test_trees_maps_clusters_and_classifiers_name_their_objects(published):
    names = list(published.snapshot.objects)
    tree = exports.contents("hierarchy", published)["hierarchy"]
    assert tree.arrays["names"].tolist() == [names[3], names[0], names[4]]
    assert [*tree.tables["hierarchy"]["left"]] == [names[3], names[0]]
    assert [*tree.tables["hierarchy"]["right"]] == [names[4], ""]
    assert tree.tables["hierarchy"]["right_merge"].tolist() == [0, 1]
    turned = exports.contents("hierarchy", by_name(published))["hierarchy"]
    assert turned.arrays["names"].tolist() == tree.arrays["names"].tolist()
    table = exports.contents("kernel_pca", published)["kernel_pca"].tables["kernel_pca"]
    assert table["object"] == names and table["axis_2"].tolist() == pytest.approx(np.linspace(-1, 1, 10)[1::2].tolist())
    assert exports.contents("spectral", published)["spectral"].tables["spectral"]["object"] == names
    rows = read("x.csv", files("classify", published, "npz")["classifiers.csv"]).to_pydict()
    assert rows["model"] == ["nearest neighbours, k1", "the best as chosen", "majority class"]
    assert rows["accuracy"] == [0.5, 0.5, 1.0] and rows["best"] == [True, False, False]


def test_triplet_counts_are_sorted_and_complete(published):
    t = exports.contents("triplet_counts", published)["triplet_counts"].arrays
    rows = list(zip(t["anchor"].tolist(), t["lo"].tolist(), t["hi"].tolist()))
    assert rows == sorted(rows) and (t["lo"] < t["hi"]).all()
    assert (t["n_lo"] + t["n_hi"]).sum() == published.snapshot.counters["triplets"]


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
        "kernel_pca",
        "dimensions",
        "kernel",
        "models",
        "workers",
        "adds3_window",
        "adds3_trusted",
        "triplet_counts_weighted",
        "evidence",
        "confidence",
    ):
        with pytest.raises(NothingToExport):
            exports.contents(what, bare)


def test_models_are_a_table_with_the_best_first(published):
    """Empty cells where a figure is not known; models that say nothing have no row."""
    said = published.artifacts["kernel_learning"]
    better = said._replace(kind="other", report=said.report | {"log_loss": 0.3, "ceiling": {"others": 0.85}})
    silent = said._replace(kind="another", report={"held_out": "none", "log_loss": None, "accuracy": None})
    made = published._replace(
        artifacts=published.artifacts | {"other": better, "another": silent}, seconds={"other": 1.5}
    )
    table = read("models.csv", files("models", made, "csv")["models.csv"])
    assert table.column_names == [
        "model", "accuracy", "standard_error", "accuracy_by_worker", "standard_error_by_worker", "workers",
        "comparisons", "log_loss", "calibration_error", "ceiling", "ceiling_at_most", "seconds",
    ]  # fmt: skip
    rows = table.to_pydict()
    assert {"adds3", "adds4", "k1", "k2", "majority", "chance"} < set(rows["model"])  # tests/prediction is about these
    mine = [at for at, name in enumerate(rows["model"]) if name in made.artifacts]
    rows = {name: [column[at] for at in mine] for name, column in rows.items()}
    assert rows["model"] == ["other", "kernel_learning", "another"] and rows["seconds"] == [1.5, None, None]
    assert rows["accuracy_by_worker"] == [0.75, 0.75, None] and rows["ceiling"] == [0.85, None, None]
    assert rows["standard_error"] == [0.02, 0.02, None] and rows["standard_error_by_worker"] == [None] * 3
    assert rows["workers"] == [6, 6, None]
    few = said._replace(report=said.report | {"by_worker": {"accuracy": 1.0, "standard_error": None, "clusters": 2}})
    (row,) = (each for each in models.table(published._replace(artifacts={"few": few})) if each["model"] == "few")
    assert row["accuracy_by_worker"] is None and row["workers"] == 2, "of two people it would be luck"
    accuracy = exports.contents("models", made)["models"].arrays["accuracy"]
    assert np.isnan(accuracy[mine]).tolist() == [False, False, True]


def test_arrays_that_nobody_declared_become_one_table_each_and_figures_one_document():
    made = encode("x", Content({"a": np.arange(3), "b": np.ones((2, 4)), "c": np.array(7)}), "csv", ())
    assert set(made) == {"x.a.csv", "x.b.csv", "x.scalars.json"}
    assert read("x.csv", made["x.b.csv"]).num_columns == 4
