"""[kernels] as a user meets it: one section, every refit that takes kernels, four kinds of file, one line for what is
wrong."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from stream_engine.state.store import Store
from tests.support import kernel_reference as reference
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line

N = 12
NAMES = [f"o{i}" for i in range(N)]
POINTS, TRIPLETS = reference.planted(3, N, 400, flip=0.0, dimensions=2)
FAST = ("--set", "lambda1=1.0", "--set", "lambda2=1.0", "--progress", "none")


def events(path, triplets=TRIPLETS):
    return jsonl(path, [dict(zip(("anchor", "near", "far"), (NAMES[i] for i in t))) for t in triplets.tolist()])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with counted events in `s`, and one auxiliary file of each kind in `aux`, rows in another order."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "aux").mkdir()
    at = np.random.default_rng(0).permutation(N)
    table = pa.table({"object": [NAMES[i] for i in at], "x": POINTS[at, 0], "y": POINTS[at, 1]})
    csv.write_csv(table, folder / "aux" / "taste.csv")
    parquet.write_table(table, folder / "aux" / "taste.parquet")
    np.savez(folder / "aux" / "taste.npz", objects=np.array(NAMES)[at], X=POINTS[at])
    np.save(folder / "aux" / "taste.npy", POINTS[at])
    (folder / "aux" / "names.json").write_text(json.dumps([NAMES[i] for i in at]))
    engine("run", events(folder / "events.jsonl"), "--state", folder / "s", "--no-refits", "--guard", "off")
    return folder


def test_a_run_with_kernels_of_every_kind_of_file_ends_in_artifacts(world, tmp_path):
    """Relative names are seen from the configuration file, not from the working directory."""
    (world / "engine.toml").write_text("""
        [kernels.from_csv]
        file = "aux/taste.csv"
        kind = "rbf"
        [kernels]
        from_parquet = { file = "aux/taste.parquet", kind = "rbf" }
        from_npz = { file = "aux/taste.npz", kind = "rbf" }
        from_npy = { file = "aux/taste.npy", objects = "aux/names.json", kind = "rbf" }
        [refits]
        kinds = ["kernel_learning", "partial_order_embedding"]
        [refits.params.kernel_learning]
        form = "mkl"
        lambda1 = 1.0
        lambda2 = 0.1
        [refits.params.partial_order_embedding]
        form = "diagonal"
        beta = 1000.0
        """)
    engine("run", world / "events.jsonl", "--state", tmp_path / "s", "--config", world / "engine.toml", cwd=tmp_path)
    for kind in ("kernel_learning", "partial_order_embedding"):
        report = Store(tmp_path / "s").latest_artifact(kind).report
        assert [each["file"] for each in report["kernels"]] == ["taste.csv", "taste.parquet", "taste.npz", "taste.npy"]
        assert [each["name"] for each in report["kernels"]] == ["from_csv", "from_parquet", "from_npz", "from_npy"]
        assert report["mu"].keys() == {each["name"] for each in report["kernels"]} and sum(report["mu"].values()) > 0
        assert {round(each["gamma"], 12) for each in report["kernels"]} == {round(report["kernels"][0]["gamma"], 12)}
        assert all(each["missing"] == 0 for each in report["kernels"])
    engine("export", "--state", tmp_path / "s", "--out", tmp_path / "out", "kernel")
    table = csv.read_csv(tmp_path / "out" / "kernel_weights.csv")
    made = Store(tmp_path / "s").latest_artifact("partial_order_embedding")
    assert table.column_names == ["object", *(each["name"] for each in made.report["kernels"])] and len(table) == N
    assert np.array_equal(table["from_npz"].to_numpy(), made.arrays["W"][2])
    held = np.load(tmp_path / "out" / "kernel.npz")
    mu = Store(tmp_path / "s").latest_artifact("kernel_learning").report["mu"]
    assert dict(zip(held["auxiliary"].tolist(), held["mu"].tolist())) == mu


def test_one_refit_takes_them_from_the_file_and_set_is_over_it(world, tmp_path):
    (tmp_path / "engine.toml").write_text(f"""
        [kernels.taste]
        file = "{world / "aux" / "taste.csv"}"
        kind = "rbf"
        [refits]
        seed = 7
        """)
    arguments = ("refit", "--state", world / "s", "kernel_learning", "--config", tmp_path / "engine.toml", *FAST)
    engine(*arguments)
    made = Store(world / "s").latest_artifact("kernel_learning")
    assert list(made.report["mu"]) == ["taste"]
    assert made.report["kernels"][0]["kind"] == "rbf"
    assert made.seed == 7
    engine(
        *arguments,
        "--set",
        "kernels.taste.kind=linear",
        "--set",
        "kernels.more.file=aux/taste.npz",
        "--set",
        "kernels.more.kind=rbf",
        "--seed",
        "8",
        cwd=world,
    )
    made = Store(world / "s").latest_artifact("kernel_learning")
    assert [each["kind"] for each in made.report["kernels"]] == ["linear", "rbf"] and made.seed == 8
    without = ("partial_order_embedding", "--config", tmp_path / "engine.toml", "--set", "form=order")
    engine("refit", "--state", world / "s", *without, "--set", "rest=none")
    assert "kernels" not in Store(world / "s").latest_artifact("partial_order_embedding").report


@pytest.mark.parametrize(
    "text, said",
    [
        ("fle = 'aux/taste.csv'", "kernels[...].fle"),
        ("file = 'aux/names.json'", ".csv, .parquet"),
        ("file = 'aux/taste.npy'\nobjects = 'aux/nams.json'", "kernels.taste.objects: got"),
    ],
    ids=range(3),
)
def test_an_unusable_configuration_ends_with_2(world, text, said):
    (world / "bad.toml").write_text("[kernels.taste]\n" + text)
    for command in (
        ("check-config", world / "bad.toml"),
        ("refit", "--state", world / "s", "kernel_learning", "--config", world / "bad.toml"),
        ("run", world / "events.jsonl", "--state", world / "never", "--config", world / "bad.toml"),
    ):
        assert states(one_line(engine(*command, status=2).stderr), said)
    assert not (world / "never").exists()
