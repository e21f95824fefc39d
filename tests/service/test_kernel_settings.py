"""[kernels] as a user meets it: one section, every refit that takes kernels, four kinds of file, one line for what is
wrong."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from stream_engine.service.settings import BadSettings
from stream_engine.service.settings.loading import load, params_of
from stream_engine.state.store import Store
from tests.support import kernel_reference as reference
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, process

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
    process("run", world / "events.jsonl", "--state", tmp_path / "s", "--config", world / "engine.toml", cwd=tmp_path)
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
    assert list(made.report["mu"]) == ["taste"] and made.report["kernels"][0]["kind"] == "rbf" and made.seed == 7
    engine(
        *arguments,
        "--set",
        "kernels.taste.kind=linear",
        "--set",
        "kernels.more.file=aux/taste.npz",
        "--set",
        "kernels.more.kind=cosine",
        "--seed",
        "8",
        cwd=world,
    )
    made = Store(world / "s").latest_artifact("kernel_learning")
    assert [each["kind"] for each in made.report["kernels"]] == ["linear", "cosine"] and made.seed == 8


def test_what_a_refit_is_told(world, tmp_path):
    text = """
        kernels.taste = { file = "aux/taste.csv", kind = "rbf" }
        [refits.params.partial_order_embedding]
        features = { file = "aux/taste.npz", kind = "linear" }
        """
    (world / "told.toml").write_text(text)
    found = load(str(world / "told.toml"), {}, {})
    assert params_of(found, "kernel_learning")["kernels"]["taste"]["file"] == str(world / "aux" / "taste.csv")
    assert params_of(found, "partial_order_embedding") == {
        "features": {"file": str(world / "aux" / "taste.npz"), "kind": "linear"}
    }
    assert params_of(found, "spectral") == {}
    own = {"kernels": {"mine": {"file": str(world / "aux" / "taste.npz")}}}
    found = load(str(world / "told.toml"), {"refits.params.kernel_learning": own}, {})
    assert params_of(found, "kernel_learning") == own
    shown = json.loads(engine("check-config", world / "told.toml").stdout)
    assert shown["kernels"]["taste"] == {
        "file": str(world / "aux" / "taste.csv"),
        "kind": "rbf",
        "gamma": None,
        "key": None,
        "columns": None,
        "objects": None,
        "array": None,
    }


@pytest.mark.parametrize(
    "text, said",
    [
        ("fle = 'aux/taste.csv'", "kernels[...].fle"),
        ("kind = 'rbf'", "kernels[...]: object missing required field `file`"),
        ("file = 'aux/taste.csv'\nkind = 'rfb'", "kernels[...].kind … 'rfb'"),
        ("file = 'aux/taste.csv'\ngamma = 0", "kernels[...].gamma: expected `float` > 0"),
        (
            "file = 'taste.csv'",
            "taste.csv'",
        ),
        ("file = 'aux/names.json'", ".csv, .parquet"),
        ("file = 'aux/taste.npy'\nobjects = 'aux/nams.json'", "kernels.taste.objects: got"),
    ],
    ids=range(7),
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


def test_unknown_keys_of_a_refits_own_kernels_are_named_too(world):
    with pytest.raises(BadSettings, match=r"kernels\[...\].kindd"):
        load(None, {"refits.params.kernel_learning": {"kernels": {"taste": {"file": "x.csv", "kindd": "rbf"}}}}, {})


def bad_kernels(folder):
    """file name -> what its line says."""
    good = reference.rbf(POINTS)
    skew, hole = good.copy(), good.copy()
    skew[0, 1] += 0.25
    hole[2, 3] = hole[3, 2] = np.nan
    below = good - 0.05 * np.eye(N)
    for name, k in (("wide", good[:, :5]), ("few", good[:5, :5]), ("skew", skew), ("hole", hole), ("below", below)):
        np.save(folder / f"{name}.npy", k)
    np.savez(folder / "strange.npz", objects=np.array([f"x{i}" for i in range(N)]), K=good)
    (folder / "torn.npy").write_bytes(b"\x93NUMPY\x01")
    return {
        "wide.npy": "(12, 5)",
        "few.npy": "5 rows … 12 objects",
        "skew.npy": "(0, 1) … (1, 0) … 0.25",
        "hole.npy": "nan at (2, 3)",
        "below.npy": f"semidefinite … {np.linalg.eigvalsh(below)[0]:.4g}",
        "strange.npz": "objects",
        "torn.npy": "numpy",
    }


def test_data_that_turns_out_bad_ends_with_1(world, tmp_path):
    """Kernels that no refit can use, and comparisons that teach nothing: one line each, for both refits."""
    for file, said in bad_kernels(tmp_path).items():
        for kind in ("kernel_learning", "partial_order_embedding"):
            done = engine(
                "refit",
                "--state",
                world / "s",
                kind,
                "--set",
                f"kernels.k.file={tmp_path / file}",
                "--progress",
                "none",
                status=1,
            )
            assert states(one_line(done.stderr), said) and file in done.stderr
    nothing, both = tmp_path / "nothing.jsonl", TRIPLETS[:20]
    nothing.write_text("")
    events(tmp_path / "contradictory.jsonl", np.concatenate([both, both[:, [0, 2, 1]]]))
    for file, said in (("nothing.jsonl", "got 0 "), ("contradictory.jsonl", " tie")):
        engine("run", tmp_path / file, "--state", tmp_path / file[:7], "--no-refits", "--guard", "off")
        for kind in ("kernel_learning", "partial_order_embedding"):
            done = engine("refit", "--state", tmp_path / file[:7], kind, "--progress", "none", status=1)
            assert states(one_line(done.stderr), said)


def test_names_that_cannot_be_read_are_said(world, tmp_path):
    for text, said in (("{", "names.json"), ("[1, 2]", "JSON")):
        (tmp_path / "names.json").write_text(text)
        done = engine(
            "refit",
            "--state",
            world / "s",
            "kernel_learning",
            "--progress",
            "none",
            "--set",
            f"kernels.k.file={world / 'aux' / 'taste.npy'}",
            "--set",
            f"kernels.k.objects={tmp_path / 'names.json'}",
            "--set",
            "kernels.k.kind=rbf",
            status=1,
        )
        assert states(one_line(done.stderr), said)
