"""Human judgements, straight from their files, no column renamed by hand: the counts that the literature states."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from tests.support.process import ENVIRONMENT, engine, summary

pytestmark = pytest.mark.data
QUICK = """
[refits.params.triplet_boost]
rounds = 3000
[refits.params.classify]
similarities = ["k1"]
rounds = 200
neighbours = [1, 3]
penalties = [1.0]
"""


def figures(state):
    found = summary(state)
    return tuple(found[key] for key in ("triplets", "unique_triplets", "contradicting_pairs", "objects"))


@pytest.fixture(scope="module")
def food(judgements, tmp_path_factory):
    """A state with the food triplets in it."""
    state = tmp_path_factory.mktemp("food") / "state"
    engine("run", judgements / "food100" / "triplets.csv.gz", "--state", state, "--no-refits")
    return state


def test_food_triplets(food):
    assert figures(food) == (250_320, 190_376, 9_349, 100)
    found = summary(food)
    assert sum(found["guard"].values()) == found["comparisons"] == 250_320
    assert found["unknown_fields"] == ["timer_ms"]  # `screen` says which rows depend on each other


def test_food_screens_are_the_same_judgements(food, judgements, tmp_path):
    engine(
        "run",
        judgements / "food100" / "screens.jsonl.gz",
        "--state",
        tmp_path / "s",
        "--no-refits",
        "--type",
        "pick",
        "--columns",
        "anchor=probe,shown=images,chosen=near",
        "--where",
        "is_catchtrial=false",
    )
    assert figures(tmp_path / "s") == (250_320, 190_376, 9_349, 100)
    assert summary(tmp_path / "s")["filtered"] == 3_830
    for what in ("adds3", "triplet_counts"):  # the same counts by name
        assert by_name(tmp_path / "s", tmp_path / what, what) == by_name(food, tmp_path / f"{what}-csv", what)


def by_name(state, out, what):
    engine("export", "--state", state, "--out", out, "objects", what)
    names = np.array(json.loads((out / "objects.json").read_text()))
    order = np.argsort(names)
    if what == "adds3":
        w = np.load(out / "adds3.npz")["W"]
        assert w.sum() == 0 and (w == w.T).all()
        return w[np.ix_(order, order)].tolist()
    t = np.load(out / "triplet_counts.npz")
    rows = {}
    for a, lo, hi, n_lo, n_hi in zip(*(t[k].tolist() for k in ("anchor", "lo", "hi", "n_lo", "n_hi"))):
        pair = sorted([(names[lo], n_lo), (names[hi], n_hi)])
        rows[names[a], pair[0][0], pair[1][0]] = pair[0][1], pair[1][1]
    return rows


@pytest.mark.parametrize(
    "file, options, expected",
    [
        ("car60/triplets_T_ALL.csv", [], (13_514, 12_502, 198, 60)),
        (
            "car60/central.csv",
            ["--type", "most_central", "--columns", "objects=left|middle|right,central=central"],
            (14_194, 13_152, 242, 60),
        ),
        (
            "animals37_rank8/rankings.csv",
            ["--type", "ranking", "--columns", "anchor=reference,ranked=ranked_most_similar_first"],
            (31_080, 7_863, 1_869, 37),
        ),
        ("alien_eggs300/triplets.csv.gz", [], (17_611, 17_581, 9, 300)),
    ],
)
def test_published_figures(judgements, tmp_path, file, options, expected):
    engine("run", judgements / file, "--state", tmp_path / "s", "--no-refits", *options)
    assert figures(tmp_path / "s") == expected


def test_cars_cluster_as_the_paper_reports(judgements, tmp_path):
    from sklearn.metrics import adjusted_rand_score

    state = tmp_path / "s"
    engine("run", judgements / "car60" / "triplets_T_ALL.csv", "--state", state, "--refit", "sdp_clustering")
    engine("export", "--state", state, "--out", tmp_path / "o", "clusters", "objects")
    assert int(np.load(tmp_path / "o" / "clusters.npz")["k"]) == 2
    engine("refit", "--state", state, "sdp_clustering", "--set", "k=3")
    engine("export", "--state", state, "--out", tmp_path / "o", "clusters")
    with open(judgements / "car60" / "labels.csv") as file:
        truth = {row["object"]: row["class"] for row in csv.DictReader(file)}
    with open(tmp_path / "o" / "clusters.csv") as file:
        found = {row["object"]: row["cluster"] for row in csv.DictReader(file)}
    kept = [name for name in found if truth[name] != "outlier"]
    classes, clusters = [truth[n] for n in kept], np.array([found[n] for n in kept])
    rng = np.random.default_rng(0)
    by_chance = max(adjusted_rand_score(classes, rng.permutation(clusters)) for _ in range(1000))
    assert adjusted_rand_score(classes, clusters) > 3 * by_chance > 0


def test_food_tastes_are_boosted_and_everything_is_exported(food, judgements, tmp_path):
    with open(judgements / "food100" / "labels.csv") as file, open(tmp_path / "sweet.csv", "w") as out:
        out.write("object,label\n")
        for row in csv.DictReader(file):
            if row["sweet"]:
                out.write(f"{row['object']},{'sweet' if int(row['sweet']) > 50 else 'not'}\n")
    command = [
        sys.executable,
        "-m",
        "stream_engine",
        "run",
        str(judgements / "food100" / "triplets.csv.gz"),
        "--state",
        str(food),
        "--labels",
        str(tmp_path / "sweet.csv"),
        *("--refit", "triplet_boost", "--refit", "classify", "--config", str(tmp_path / "engine.toml")),
    ]
    (tmp_path / "engine.toml").write_text(QUICK)
    watch = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", watch, *command], capture_output=True, text=True, env=ENVIRONMENT, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1_000_000  # kB: the engine and each refit stay under 1 GB
    names = engine("export", "--state", food, "--out", tmp_path / "o").stdout
    for file in ("booster.npz", "predictions.csv", "k1.npz", "k2.npz", "partial_order.npz"):
        assert file in names
    order = np.load(tmp_path / "o" / "partial_order.npz")
    assert 0 < len(order["reduced"]) < len(order["kept"])
