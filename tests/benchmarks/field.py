"""The embedding with its defaults beside cblearn's five, by response and by participant, on every set of answers.

    STREAM_ENGINE_DATA=FOLDER python -m tests.benchmarks field --rivals PYTHON ... [--most 6000] [--only SET ...]

PYTHON is an interpreter with cblearn or salmon from PyPI (`field_rivals`). Responses, or participants with all of
theirs, are dealt to five folds by a fixed seed. Each fold is the test set once; all methods fit to the same others, at
most `--most` answers. Ours predicts the responses of participants whom it knows by their own weights. The margins of a
rival have the slope and its number of dimensions the accuracy that are best on a fifth of the training responses. The
best rival is picked by its test figure over all folds, for accuracy and for log loss separately. Differences are
paired; their standard errors are over responses, or over participants. Of few participants, much hangs on who is dealt
to which fold: `--deals N` repeats all with N seeds, and the figures are means over them. Prints a Markdown table.

Of answers with features, ours is the transform of the refit `alignment`, and the rivals are cosine, Euclidean distance
and scikit-learn's logistic regression on differences of squared differences. They need no other interpreter.
"""

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from stream_engine.alignment.feature_files import FeatureTable
from stream_engine.data.comparisons import DecodedEvents, Kinds, Provenance, empty_batch
from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.evaluation.answering import answered
from stream_engine.evaluation.participant_model import of_participant
from stream_engine.refits import alignment, embedding
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.support.individual_worlds import world

SETS = {
    "food100": "food100/triplets.csv.gz",
    "car60": "car60/triplets.csv",
    "alien_eggs300": "alien_eggs300/triplets.csv.gz",
    "animals37": "animals37_rank8/triplets.csv.gz",
    "portraits36": "portraits36/triplets_individual.csv.gz",
    "color-tm": "perceptual_kernels/color-tm.triplets.csv",
    "shape-tm": "perceptual_kernels/shape-tm.triplets.csv",
    "color-td": "perceptual_kernels/color-td.triplets.csv",
    "shape-td": "perceptual_kernels/shape-td.triplets.csv",
}
UNITS = ("trial", "screen", "order")  # columns that with the participant say which answers are of one response
# objects, dimensions, answers to fit to; as many again and more are there to be predicted
PLANTED = {"planted, d = 2": (40, 2, 2500), "planted, d = 5": (60, 5, 6000), "planted, few answers": (30, 2, 200)}
FEATURES = {  # set of answers, features
    "color-tm, Lab": ("color-tm", "perceptual_kernels/color.labels.csv", "index", ("hex",)),
    "food100, tastes": (
        "food100",
        "food100/labels.csv",
        "object",
        ("salty", "savory", "sour", "bitter", "sweet", "spicy"),
    ),
}
FOLDS, FRESH = 5, 5000  # splits; answers in the test set of each at most
PARTICIPANTS = 10  # at least, to hold out by participant
HEADS = ("set", "test", "responses", "ours (most often)", "accuracy", "rank", "best rival", "difference")
MORE_HEADS = ("log loss", "best rival", "difference", "calibration error", "CPU s", "CPU s of all rivals")


class Scored(NamedTuple):
    """One model on the test answers."""

    right: np.ndarray
    loss: np.ndarray

    @classmethod
    def of(cls, p: np.ndarray) -> "Scored":
        """By the probabilities of the answers that were given; .5 where a model says nothing."""
        p = np.where(np.isnan(p), 0.5, p)
        return cls((p > 0.5) + (p == 0.5) / 2, -np.log(np.maximum(p, 1e-12)))


def planted(n: int, d: int) -> pd.DataFrame:
    """Normal points, random triplets, lapse rate .1."""
    rng, m = np.random.default_rng([n, d]), 5 * FRESH
    anchor, near, far = np.argsort(rng.random((m, n)), axis=1)[:, :3].T
    rows = np.stack([anchor, near, anchor, far], axis=1).astype(np.int32)
    turned = rng.random(m) > probability(margins(rng.normal(size=(n, d)), rows), 0.1)
    return pd.DataFrame(
        {
            "anchor": anchor,
            "near": np.where(turned, far, near),
            "far": np.where(turned, near, far),
            "worker": "",
            "unit": np.arange(m),
        }
    )


def people_who_differ() -> pd.DataFrame:
    """Twelve participants with weights of their own on three axes, 300 answers each."""
    made = world(0, people=12, each=300, d=3, n=30).answers
    columns = dict(zip(("anchor", "near", "far"), made.rows[:, [0, 1, 3]].T))
    return pd.DataFrame({**columns, "worker": [f"p{who}" for who in made.participant], "unit": made.response})


def answers(path: Path) -> pd.DataFrame:
    """Columns anchor, near, far, worker, unit and, where the authors split, test; catch trials are left out."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        table = pd.read_csv(file)
    if "sampleAlg" in table:
        table = table[table.sampleAlg != "check"].rename(columns={"worker_id": "worker"})
        far = table.Left.where(table.Left != table.Answer, table.Right)
        table = table.assign(anchor=table.Center, near=table.Answer, far=far, test=table.sampleSet == "test")
    if "is_catch" in table:
        table = table[table.is_catch == 0]
    table = table[(table.near != table.far) & (table.near != table.anchor) & (table.far != table.anchor)]
    table = table.reset_index(drop=True).astype({"worker": str})
    names = ["anchor", "near", "far", "worker", *(["test"] if "test" in table else [])]
    return table[names].assign(unit=table.groupby(["worker", "order"]).ngroup() if "order" in table else table.index)


def loaded(name: str) -> pd.DataFrame:
    """Columns anchor, near, far, worker ("" where nobody is named), unit."""
    if name in PLANTED:
        return planted(*PLANTED[name][:2])
    if name not in SETS:
        return people_who_differ()
    path = Path(os.environ["STREAM_ENGINE_DATA"]) / SETS[name]
    if name in ("portraits36", "color-tm", "shape-tm"):
        return answers(path)
    table = pd.read_csv(path)
    table["worker"] = table["worker"].astype(str) if "worker" in table else ""
    by = [column for column in ("worker", "repeat", *UNITS) if column in table]
    return table[["anchor", "near", "far", "worker"]].assign(unit=table.groupby(by).ngroup())


def splits(
    table: pd.DataFrame, by: str, most: int, told: argparse.Namespace
) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Training and test answers of each fold of each deal."""
    column = "unit" if by == "response" else "worker"
    return [split(table, column, most, fold, deal) for deal in range(told.deals) for fold in range(told.folds)]


def split(table: pd.DataFrame, by: str, most: int, fold: int, deal: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test answers of one of `FOLDS` folds."""
    groups = np.random.default_rng(deal).permutation(table[by].unique())
    test, rng = table[by].isin(np.array_split(groups, FOLDS)[fold]), np.random.default_rng(fold)
    units = rng.permutation(table.unit[~test].unique())
    share = most / max(int((~test).sum()), 1)
    train = table[~test & table.unit.isin(units[: max(int(share * len(units)), 1)])]
    known = np.unique(train[["anchor", "near", "far"]].to_numpy().ravel())
    asked = table[test & table[["anchor", "near", "far"]].isin(known).all(axis=1)]
    few = rng.permutation(asked.unit.unique())[:FRESH]
    return train, asked[asked.unit.isin(few)]


def snapshot_of(train: pd.DataFrame) -> Snapshot:
    """What an engine counts that is told which answers are of one response, and whose."""
    columns = train[["anchor", "near", "far"]].astype(str).to_numpy()
    objects, places = np.unique(columns, return_inverse=True)
    _, first, event = np.unique(train.unit, return_index=True, return_inverse=True)
    names, worker = np.unique(train.worker.iloc[first].to_numpy(str), return_inverse=True)
    events, none, of = len(first), empty_batch(0), (event.astype(np.int32), np.empty(0, np.int32))
    kind, who = np.zeros(events, np.int8), worker.astype(np.int32)
    who = np.full(events, -1, np.int32) if "" in names else who
    told = Provenance(*of, kind, who, names.tolist(), np.ones(events), np.full(events, np.nan))
    rows = places.reshape(columns.shape).astype(np.int32)
    engine = Engine(("triplet_counts", "worker_votes", "judgements"), guard=False)
    given = {"provenance": told, "kinds": Kinds(*of, kind)}
    engine.learn(DecodedEvents(objects.tolist(), rows, none.quadruplets, none.quadruplet_at, [], {}, [], **given))
    return engine.snapshot()


def ours(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Scored, float, float, str]:
    """Scores, calibration error, CPU seconds, and what was chosen."""
    snapshot = snapshot_of(train)
    begin = time.process_time()
    artifact = embedding.refit(snapshot, embedding.Params(), 0, evaluate=False)
    seconds = time.process_time() - begin
    number = {name: at for at, name in enumerate(snapshot.objects)}
    rows = np.stack([test[name].astype(str).map(number) for name in ("anchor", "near", "anchor", "far")], axis=1)
    p = np.empty(len(test))
    for worker, at in test.groupby("worker").indices.items():
        p[at] = of_participant(artifact, str(worker))[0](rows[at].astype(np.int32))
    scored = Scored.of(p)
    sure = np.maximum(p, 1 - p)
    bins = np.minimum(((sure - 0.5) * 20).astype(int), 9)
    off = np.abs(np.bincount(bins, sure - scored.right, 10)).sum() / len(p)
    used = artifact.report["individual_differences"]
    people = "" if used["shrinkage"] is None else ", weights"
    people += f", {used['own_maps']} own maps" if used["own_maps"] else ""
    drawn = ", averaged" if "draws" in artifact.arrays else ""
    return scored, float(off), seconds, f"{artifact.report['kernel']} {artifact.report['d']}{people}{drawn}"


def lab(colours: Iterable[str]) -> np.ndarray:
    """(n, 3) CIE L*a*b* (D65) of sRGB colours #rrggbb."""
    rgb = np.array([[int(each[at : at + 2], 16) / 255 for at in (1, 3, 5)] for each in colours])
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    xyz = linear @ to_xyz.T / (0.9505, 1.0, 1.0888)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def features_of(name: str) -> FeatureTable:
    """The features of a set of `FEATURES`."""
    _, file, key, columns = FEATURES[name]
    table = pd.read_csv(Path(os.environ["STREAM_ENGINE_DATA"]) / file).dropna(subset=list(columns))
    values = lab(table["hex"]) if columns == ("hex",) else table[list(columns)].to_numpy(float)
    return FeatureTable(table[key].astype(str).tolist(), values)


def by_features(given: FeatureTable, train: pd.DataFrame, test: pd.DataFrame) -> tuple[dict[str, Scored], float, str]:
    """Scores of ours ("") and of each rival, CPU seconds, and what was chosen."""
    snapshot = snapshot_of(train)
    begin = time.process_time()
    artifact = alignment.aligned(snapshot, {"x": given}, alignment.Params(), 0)
    seconds = time.process_time() - begin
    names = [tuple(row) for row in test[["anchor", "near", "anchor", "far"]].astype(str).to_numpy().tolist()]
    p = answered(Published(snapshot, {"alignment": artifact}), names, "alignment").p
    place = {name: at for at, name in enumerate(given.names)}
    x = (given.values - given.values.mean(axis=0)) / given.values.std()
    unit = given.values / np.linalg.norm(given.values, axis=1, keepdims=True)
    parts = [each[["anchor", "near", "far"]].astype(str).map(place.get).to_numpy(int) for each in (train, test)]
    z, asked = ((x[a] - x[c]) ** 2 - (x[a] - x[b]) ** 2 for a, b, c in (part.T for part in parts))
    sign = np.where(np.arange(len(z)) % 2, 1.0, -1.0)
    fitted = LogisticRegression(fit_intercept=False, max_iter=1000).fit(z * sign[:, None], sign)
    a, b, c = parts[1].T
    cosine = (unit[a] * (unit[b] - unit[c])).sum(axis=1)
    odds = {"logistic": asked @ fitted.coef_[0], "cosine": cosine, "euclidean": asked.sum(axis=1)}
    made = {name: Scored.of(1 / (1 + np.exp(-each))) for name, each in odds.items()}
    return made | {"": Scored.of(p)}, seconds, artifact.report["predicts"]["transform"]


def feature_row(name: str, by: str, told: argparse.Namespace) -> str:
    """A line of the table."""
    given = features_of(name)
    table = loaded(FEATURES[name][0])
    known = table[["anchor", "near", "far"]].astype(str).isin(given.names).all(axis=1)
    table = table[known].reset_index(drop=True)
    folds = splits(table, by, told.most, told)
    made, seconds, chosen = zip(*(by_features(given, *fold) for fold in folds))
    scored = {method: joined(fold[method] for fold in made) for method in made[0]}
    mine, test = scored.pop(""), pd.concat([test for _, test in folds])
    right = max(scored, key=lambda method: scored[method].right.mean())
    loss = min(scored, key=lambda method: scored[method].loss.mean())
    rank = 1 + sum(other.right.mean() > mine.right.mean() for other in scored.values())
    cluster = test.unit if by == "response" else test.worker
    (often, times), responses = Counter(chosen).most_common(1)[0], np.mean([train.unit.nunique() for train, _ in folds])
    cells = [name, by, f"{responses:,.0f}", f"{often} ({times} of {len(folds)})", f"{mine.right.mean():.4f}", str(rank)]
    cells += [f"{right} {scored[right].right.mean():.4f}", paired(mine.right, scored[right].right, cluster)]
    cells += [f"{mine.loss.mean():.4f}", f"{loss} {scored[loss].loss.mean():.4f}"]
    cells += [paired(mine.loss, scored[loss].loss, cluster), "", f"{np.mean(seconds):.1f}", ""]
    return f"| {' | '.join(cells)} |"


def rivals(python: str, train: pd.DataFrame, test: pd.DataFrame, seconds: int) -> tuple[dict[str, Scored], float]:
    """Scores of each method, and their CPU seconds together."""
    names = np.unique(train[["anchor", "near", "far"]].to_numpy().ravel())
    rows = [np.searchsorted(names, each[["anchor", "near", "far"]].to_numpy()) for each in (train, test)]
    units = np.random.default_rng(1).permutation(train.unit.unique())
    validation = train.unit.isin(units[: max(len(units) // 5, 1)]).to_numpy()
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("in.npz", "out.npz")]
        np.savez(files[0], train=rows[0], test=rows[1], validation=validation, n=len(names))
        script = Path(__file__).with_name("field_rivals.py")
        subprocess.run([python, str(script), *files, str(seconds)], check=True, env={"OPENBLAS_NUM_THREADS": "1"})
        with np.load(files[1]) as found:
            made = {name: Scored.of(1 / (1 + np.exp(-found[name]))) for name in found.files if "_" not in name}
            return made, sum(float(found[name]) for name in found.files if name.endswith("_seconds"))


def paired(one: np.ndarray, other: np.ndarray, cluster: np.ndarray) -> str:
    """The mean difference and its standard error over clusters."""
    gap = one - other
    number = np.unique(cluster, return_inverse=True)[1]
    sums = np.bincount(number, gap - gap.mean())
    error = np.sqrt(len(sums) / max(len(sums) - 1, 1) * (sums**2).sum()) / len(gap)
    return f"{gap.mean():+.4f} ± {error:.4f}"


def joined(scored: Iterable[Scored]) -> Scored:
    """Over the test answers of all folds."""
    return Scored(*(np.concatenate(column) for column in zip(*scored)))


def row(name: str, by: str, told: argparse.Namespace) -> str:
    """A line of the table."""
    most, table = PLANTED[name][2] if name in PLANTED else told.most, loaded(name)
    folds = splits(table, by, most, told)
    each, off, seconds, chosen = zip(*(ours(*fold) for fold in folds))
    theirs = [[rivals(python, *fold, told.seconds) for python in told.rivals] for fold in folds]
    made = [dict(chain.from_iterable(scored.items() for scored, _ in fold)) for fold in theirs]
    taken = sum(spent for fold in theirs for _, spent in fold) / len(folds)
    mine, test = joined(each), pd.concat([test for _, test in folds])
    others = {method: joined(fold[method] for fold in made) for method in set.intersection(*map(set, made))}
    right = max(others, key=lambda method: others[method].right.mean())
    loss = min(others, key=lambda method: others[method].loss.mean())
    rank = 1 + sum(other.right.mean() > mine.right.mean() for other in others.values())
    cluster = test.unit if by == "response" else test.worker
    (often, times), responses = Counter(chosen).most_common(1)[0], np.mean([train.unit.nunique() for train, _ in folds])
    cells = [name, by, f"{responses:,.0f}", f"{often} ({times} of {len(folds)})", f"{mine.right.mean():.4f}", str(rank)]
    cells += [f"{right} {others[right].right.mean():.4f}", paired(mine.right, others[right].right, cluster)]
    cells += [f"{mine.loss.mean():.4f}", f"{loss} {others[loss].loss.mean():.4f}"]
    cells += [paired(mine.loss, others[loss].loss, cluster), f"{np.mean(off):.3f}"]
    cells += [f"{np.mean(seconds):.1f}", f"{taken:.0f}"]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="field", description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", default=(), nargs="+", metavar="PYTHON", help="interpreters with rivals")
    parser.add_argument("--most", type=int, default=6000, help="answers to fit to")
    parser.add_argument("--folds", type=int, default=FOLDS, choices=range(1, FOLDS + 1), help="how many are tested")
    parser.add_argument("--deals", type=int, default=1, help="how often they are dealt to folds")
    parser.add_argument("--by", nargs="+", default=["response", "participant"], choices=["response", "participant"])
    parser.add_argument("--seconds", type=int, default=30, help="for one fit of a rival")
    parser.add_argument("--only", nargs="+", default=[*SETS, *PLANTED, "planted, people differ", *FEATURES])
    told = parser.parse_args(arguments)
    heads = (*HEADS, *MORE_HEADS)
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for name in told.only:
        if name in FEATURES:
            for by in told.by:
                print(feature_row(name, by, told), flush=True)
            continue
        if not told.rivals:
            parser.error(f"{name}: expected --rivals")
        people = loaded(name).worker.nunique()
        for by in (by for by in told.by if by == "response" or people >= PARTICIPANTS):
            print(row(name, by, told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
