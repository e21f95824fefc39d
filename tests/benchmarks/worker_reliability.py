"""Whom to trust, on human judgements: does estimated reliability go with the truth, and what does weighting by it do?

    python -m tests.benchmarks.worker_reliability [--out FOLDER]

Everything goes through the command line: `run` with the accumulator worker_votes, `refit reliability`, `export
workers`. food100: reliability against catch trials passed, 243 workers, in one table over all workers and over those
with enough catch trials; catch trials of different screen formats differ in difficulty (2 % fail "1 of 2", 30 % "4 of
12"), so the correlation is also given with the mean of each format taken out of both sides. alien_eggs300: against
the fraction of a worker's own answers that agree with the known scale, which no worker's estimate has seen.
Then accuracy on comparisons held out (a fifth of the screens or answers; eggs: judged by the known scale too), of
AddS-3 and its rank-2 form, plain and weighted, as the data are and with 30 % of the workers answering at random; and
on made clusters the agreement (ARI) of the clustering with the truth. Five splits, twenty made worlds. Writes
worker_reliability.json and worker_reliability.png.
"""

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import rankdata, spearmanr
from sklearn.metrics import adjusted_rand_score

from stream_engine.accumulators import empty
from stream_engine.refits import reliability, spectral
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics import worker_reliability
from tests.conftest import human_judgements
from tests.support.generators import as_batch, planted_triplets

SPLITS = 5
SPAM = 0.3


def engine(*arguments) -> None:
    subprocess.run([sys.executable, "-m", "stream_engine", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, which may be compressed by gzip."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as lines:
        return list(csv.DictReader(lines))


def judged(source: Path, folder: Path, *options) -> dict[str, list]:
    """The table of workers that the engine writes about a file of judgements."""
    config, state = folder / "engine.toml", folder / "state"
    config.write_text('accumulators = ["adds3", "triplet_counts", "worker_votes"]\n')
    engine("run", source, "--state", state, "--config", config, "--guard", "off", "--no-refits", *options)
    engine("refit", "--state", state, "reliability")
    engine("export", "--state", state, "--out", folder / "out", "workers")
    rows = rows_of(folder / "out" / "workers.csv")
    return {name: [float(row[name]) if name != "worker" else row[name] for row in rows] for name in rows[0]}


def food_screens(data: Path) -> list[dict]:
    """Screens as events; a catch trial says whether it was passed: all and only the known near ones were chosen."""
    with gzip.open(data / "food100" / "screens.jsonl.gz", "rt") as lines:
        screens = [json.loads(line) for line in lines]
    for screen in screens:
        answer = screen.pop("extra")["correct_answer"]
        if screen["is_catchtrial"]:
            screen["passed"] = {screen["images"][i] for i in answer} == set(screen["near"])
    return screens


def correlation(x, y) -> dict:
    found = spearmanr(x, y)
    return {"workers": len(x), "spearman": round(float(found.statistic), 3), "p": float(f"{found.pvalue:.2g}")}


def food(data: Path, folder: Path) -> tuple[list[dict], dict]:
    screens = food_screens(data)
    source = folder / "screens.jsonl"
    source.write_text("".join(json.dumps(screen) + "\n" for screen in screens))
    table = judged(source, folder, "--type", "pick", "--columns", "anchor=probe,shown=images,chosen=near,catch=passed")
    number = {name: at for at, name in enumerate(table["worker"])}
    accuracy, tried = np.array(table["accuracy"]), np.array(table["passed"]) + np.array(table["failed"])
    passed = np.array(table["passed"]) / tried

    def form(s):
        return len(s["images"]), len(s["near"])

    mean: dict = {}
    for s in screens:
        if s["is_catchtrial"]:
            mean.setdefault(form(s), []).append(s["passed"])
    beyond, forms = np.zeros(len(number)), [{} for _ in number]
    for s in screens:
        at = number[str(s["worker"])]
        forms[at][form(s)] = forms[at].get(form(s), 0) + 1
        if s["is_catchtrial"]:
            beyond[at] += s["passed"] - np.mean(mean[form(s)])
    mostly = [max(f, key=f.get) for f in forms]
    weight = np.array(table["comparisons"])
    groups = {f: np.array([m == f for m in mostly]) for f in set(mostly)}

    def within(x):
        return x - np.array([np.average(x[groups[m]], weights=weight[groups[m]]) for m in mostly])

    adjusted = within(accuracy)
    rows = []
    for least in (1, 4, 8):
        some = tried >= least
        rows.append(
            {
                "data": "food100",
                "against": f"catch trials passed, workers with {least} or more",
                **correlation(accuracy[some], passed[some]),
            }
        )
        rows.append(
            {
                "data": "food100",
                "against": f"the same, screen format taken out, {least} or more",
                **correlation(adjusted[some], (beyond / tried)[some]),
            }
        )
    agree = np.array(table["agreed"]) / np.maximum(np.array(table["agreed"]) + np.array(table["disagreed"]), 1)
    some = np.array(table["agreed"]) + np.array(table["disagreed"]) >= 20
    rows.append(
        {
            "data": "food100",
            "against": "leave-one-out agreement (20 or more decided)",
            **correlation(accuracy[some], agree[some]),
        }
    )
    return rows, {"x": adjusted, "y": beyond / tried, "size": tried}


def eggs(data: Path, folder: Path) -> tuple[list[dict], dict]:
    table = judged(data / "alien_eggs300" / "triplets.csv.gz", folder)
    value = {row["object"]: float(row["true_value"]) for row in rows_of(data / "alien_eggs300" / "labels.csv")}
    right: dict[str, list[bool]] = {}
    for row in rows_of(data / "alien_eggs300" / "triplets.csv.gz"):
        a, b, c = (value[row[key]] for key in ("anchor", "near", "far"))
        right.setdefault(row["worker"], []).append(abs(a - b) < abs(a - c))
    truth = np.array([np.mean(right[name]) for name in table["worker"]])
    accuracy = np.array(table["accuracy"])
    asked = np.array([len(right[name]) for name in table["worker"]])
    rows = [
        {"data": "alien_eggs300", "against": "answers that agree with the known scale", **correlation(accuracy, truth)},
        {
            "data": "alien_eggs300",
            "against": "the same, workers with 40 answers or more",
            **correlation(accuracy[asked >= 40], truth[asked >= 40]),
        },
    ]
    return rows, {"x": accuracy, "y": truth, "size": asked}


# ---- weighting: held-out accuracy and clustering


def snapshot_of(triplets, workers, names, n: int) -> Snapshot:
    """The votes of these triplets as a snapshot; `workers` index `names`."""
    from stream_engine.data.comparisons import Provenance

    votes = empty("worker_votes")
    m = len(triplets)
    provenance = Provenance(
        np.arange(m, dtype=np.int32),
        np.empty(0, np.int32),
        np.zeros(m, np.int8),
        workers.astype(np.int32),
        list(names),
        np.ones(m),
        np.full(m, np.nan),
    )
    votes.update(as_batch(triplets, n)._replace(provenance=provenance))
    arrays = {f"worker_votes/{key}": array for key, array in votes.state().items()}
    return Snapshot(1, {}, tuple(map(str, range(n))), {}, {"triplets": m}, {}, arrays, "0" * 64)


def accuracies(snapshot: Snapshot, tests: dict[str, np.ndarray]) -> dict[str, float]:
    """By test set and similarity: how often W[anchor, near] > W[anchor, far], ties one half."""
    from stream_engine.statistics.spectral import top_eigenpairs

    votes = worker_reliability.votes_of(snapshot)
    fitted = worker_reliability.vote_weight(reliability.refit(snapshot, reliability.Params(), 0).arrays["accuracy"])[
        votes.worker
    ]
    found = {}
    for how, weight in (("plain", np.ones(len(votes.key))), ("weighted", fitted)):
        w = worker_reliability.adds_matrix(votes, weight)
        values, vectors = top_eigenpairs(w, 2)
        for name, similarity in (("AddS-3", w.toarray()), ("rank 2", (vectors * np.maximum(values, 0)) @ vectors.T)):
            for test, (a, b, c) in ((test, rows.T) for test, rows in tests.items()):
                margin = similarity[a, b] - similarity[a, c]
                found[f"{test}, {name}, {how}"] = float((margin > 0).mean() + 0.5 * (margin == 0).mean())
    return found


def spammed(rng, triplets, workers, count: int) -> np.ndarray:
    """The answers when 30 % of the workers had guessed."""
    guess = rng.permutation(count) < SPAM * count
    turn = guess[workers] & (rng.random(len(triplets)) < 0.5)
    return np.where(turn[:, None], triplets[:, [0, 2, 1]], triplets)


def weighting(name: str, triplets, workers, names, unit, n: int, truth=None) -> list[dict]:
    """Held-out accuracies, plain and weighted; `unit` is what is held out whole."""
    rows = []
    for spam in (False, True):
        scores: list[dict] = []
        for split in range(SPLITS):
            rng = np.random.default_rng([split, spam])
            out = rng.random(unit.max() + 1)[unit] < 0.2
            said = spammed(rng, triplets, workers, len(names)) if spam else triplets
            tests = {"held-out answers": triplets[out]}
            if truth is not None:
                a, b, c = truth[triplets].T
                turned = np.abs(a - b) > np.abs(a - c)
                tests["held-out, known scale"] = np.where(turned[:, None], triplets[:, [0, 2, 1]], triplets)[out]
            scores.append(accuracies(snapshot_of(said[~out], workers[~out], names, n), tests))
        for case in [key.removesuffix(", plain") for key in scores[0] if key.endswith("plain")]:
            plain, ours = (np.array([s[f"{case}, {how}"] for s in scores]) for how in ("plain", "weighted"))
            rows.append(
                {
                    "data": name,
                    "case": case + (", 30 % of workers guess" if spam else ""),
                    "plain": plain.mean(),
                    "weighted": ours.mean(),
                    "gain": (ours - plain).mean(),
                    "worst_split": (ours - plain).min(),
                }
            )
    return rows


def clustering() -> list[dict]:
    """ARI of spectral clustering of made clusters, plain and weighted, over shares of guessing workers."""
    rows = []
    for spam in (0.0, 0.3, 0.5, 0.7):
        scores = []
        for split in range(4 * SPLITS):
            rng = np.random.default_rng([split, 7])
            n, k, workers, each = 60, 4, 60, 60
            labels = np.arange(n) % k
            points = rng.normal(0, 0.55, (n, 2)) + 1.5 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[labels]
            who = np.repeat(np.arange(workers), each)
            said = planted_triplets(rng, points, len(who), 0.1)
            turn = (who < spam * workers) & (rng.random(len(who)) < 0.5)
            said = np.where(turn[:, None], said[:, [0, 2, 1]], said)
            votes = snapshot_of(said, who, [f"w{i}" for i in range(workers)], n)
            plain = empty("adds3")
            plain.update(as_batch(said, n))
            both = votes._replace(arrays={**votes.arrays, **{f"adds3/{key}": a for key, a in plain.state().items()}})
            scores.append(
                [
                    adjusted_rand_score(labels, spectral.refit(both, spectral.Params(source, k=k), 0).arrays["labels"])
                    for source in ("adds3", "adds3_trusted")
                ]
            )
        plain, ours = np.array(scores).T
        rows.append(
            {
                "data": "made clusters",
                "case": f"ARI, {spam:.0%} of workers guess",
                "plain": plain.mean(),
                "weighted": ours.mean(),
                "gain": (ours - plain).mean(),
                "worst_split": (ours - plain).min(),
            }
        )
    return rows


def ids_of(rows: list[dict], keys) -> tuple[np.ndarray, dict[str, int]]:
    ids: dict[str, int] = {}
    return np.array([[ids.setdefault(row[key], len(ids)) for key in keys] for row in rows]), ids


def real_weighting(data: Path) -> list[dict]:
    found = []
    for name, unit in (("food100", "screen"), ("alien_eggs300", "order")):
        rows = rows_of(data / name / "triplets.csv.gz")
        triplets, objects = ids_of(rows, ("anchor", "near", "far"))
        workers, names = ids_of(rows, ("worker",))
        units, _ = ids_of(rows, (unit,) if name == "food100" else ("worker", unit))
        unit_of = units[:, 0] if name == "food100" else np.arange(len(rows))
        truth = None
        if name == "alien_eggs300":
            value = {r["object"]: float(r["true_value"]) for r in rows_of(data / name / "labels.csv")}
            truth = np.array([value[o] for o in objects])
        found += weighting(name, triplets.astype(np.int32), workers[:, 0], list(names), unit_of, len(objects), truth)
    return found


def figure(path: Path, clouds: dict[str, dict], gains: list[dict]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(15, 4.2), constrained_layout=True)
    titles = {
        "alien_eggs300": ("estimated reliability", "fraction of answers right (known scale)"),
        "food100": (
            "estimated reliability, beyond its screen format's mean (rank)",
            "catch trials passed, beyond the mean (rank)",
        ),
    }
    for ax, (name, cloud) in zip(axes, clouds.items()):
        x, y = (cloud["x"], cloud["y"]) if name == "alien_eggs300" else (rankdata(cloud["x"]), rankdata(cloud["y"]))
        ax.scatter(x, y, s=8 + 2 * np.sqrt(cloud["size"]), alpha=0.5)
        ax.set(title=f"{name}, a dot a worker", xlabel=titles[name][0], ylabel=titles[name][1])
    ax = axes[2]
    at = np.arange(len(gains))[::-1]
    ax.barh(at + 0.2, [g["plain"] for g in gains], 0.4, label="every vote counts once")
    ax.barh(at - 0.2, [g["weighted"] for g in gains], 0.4, label="weighted by reliability")
    ax.set_yticks(at, [f"{g['data']}: {g['case']}" for g in gains], fontsize=6)
    ax.set(xlim=(0, 1), title="accuracy, or ARI")
    ax.legend(fontsize=7)
    fig.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="worker-reliability", metavar="FOLDER", help="For the JSON and the PNG.")
    out = Path(parser.parse_args().out)
    data = human_judgements()
    if data is None:
        print("no human judgements: set STREAM_ENGINE_DATA to the folder that holds them", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    rows, clouds = [], {}
    for name, make in (("alien_eggs300", eggs), ("food100", food)):
        with tempfile.TemporaryDirectory() as folder:
            more, clouds[name] = make(data, Path(folder))
        rows += more
    for row in rows:
        print(
            f"{row['data']:14} {row['against']:66} n = {row['workers']:3}  "
            f"Spearman {row['spearman']:+.3f}  p = {row['p']:.2g}",
            flush=True,
        )
    gains = [*real_weighting(data), *clustering()]
    for row in gains:
        print(
            f"{row['data']:14} {row['case']:66} plain {row['plain']:.4f}  weighted {row['weighted']:.4f}  "
            f"gain {row['gain']:+.4f} (worst split {row['worst_split']:+.4f})"
        )
    report = json.dumps({"correlations": rows, "weighting": gains}, indent=1, default=float)
    (out / "worker_reliability.json").write_text(report)
    figure(out / "worker_reliability.png", clouds, gains)
    print(out / "worker_reliability.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
