"""Are the engine's confidences true? Checked on answers that it has not seen, and on clusters that are known.

    python -m tests.benchmarks.confidence [--out DIR] [--seeds 5]

food100 (STREAM_ENGINE_DATA), a fifth of the screens held out whole, everything read through `export`:
`confidence`: `predicted` is the probability of an answer, so the share of held-out answers to the same question that
came so should equal it. (It is a little too sure: it is fitted to learned answers, whose margins hold the rest of
their own screens.)
`confidence` is the probability that more than half of all people would answer as the majority so far; how often
single held-out answers agree is another figure, which must grow with it. Its scale is checked on made answers, where
it is known which side most people are on (p uniform, as its prior says).
`evidence`: held-out accuracy of AddS-3 about each object, against its number of answers and its `agreement` (how far
the other answers predict its own), learned from a fiftieth of the screens up to all.
Cluster stability: made clusters (four of 30, 12.5 % of the answers wrong), from few comparisons to enough; does a low
stability (`sdp_clustering`, k = 4, 10 replicates) tell the objects in the wrong cluster, and `stability_ari` the runs
that are wrong? Writes confidence.md and confidence.png.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score, confusion_matrix, roc_auc_score

from stream_engine import exports
from stream_engine.data.comparisons import Decoded
from stream_engine.refits import refit_module
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.statistics import confidence
from tests.benchmarks.forgetting import food
from tests.conftest import human_judgements
from tests.support.planted_similarities import planted

SHARES = (0.02, 0.05, 0.15, 0.4, 1.0)  # of the screens that are not held out
POWERS = (2.0, 2.5, 2.75, 3.0, 3.25, 3.5)  # n (ln n)^power comparisons
OBJECTS, K = 120, 4


class Bins(NamedTuple):
    """What was said and what came, by what was said."""

    said: np.ndarray
    came: np.ndarray
    answers: np.ndarray


class Objects(NamedTuple):
    """A row an object: `share` of the screens that were learned, answers, agreement, held-out accuracy and its
    answers."""

    share: np.ndarray
    answers: np.ndarray
    agreement: np.ndarray
    accuracy: np.ndarray
    tested: np.ndarray


def published(triplets: np.ndarray, n: int, accumulators=("adds3", "triplet_counts")) -> Published:
    """What the engine publishes after these comparisons."""
    engine = Engine(accumulators, False)
    engine.learn(
        Decoded(
            [str(i) for i in range(n)],
            triplets.astype(np.int32),
            np.empty((0, 4), np.int32),
            np.empty(0, np.int64),
            [],
            {},
            [],
        )
    )
    return Published(engine.snapshot(), {})


def binned(said: np.ndarray, came: np.ndarray, edges: np.ndarray) -> Bins:
    """Means in bins that hold 30 answers or more; `came` holds one value an answer."""
    at = np.clip(np.digitize(said, edges) - 1, 0, len(edges) - 2)
    count = np.bincount(at, minlength=len(edges) - 1)
    held = count >= 30

    def mean(x):
        return np.bincount(at, x, len(edges) - 1)[held] / count[held]

    return Bins(mean(said), mean(came), count[held])


def off(bins: Bins) -> float:
    """Expected calibration error: the mean of |said - came| over answers."""
    return float(np.average(np.abs(bins.said - bins.came), weights=bins.answers))


def questions(triplets: np.ndarray, screen: np.ndarray, seeds: int) -> dict[str, Bins]:
    """Held-out answers to questions that were also asked in what was learned, pooled over seeds."""
    n = int(triplets.max()) + 1
    said: dict[str, list] = {"predicted": [], "confidence": []}
    came: dict[str, list] = {"predicted": [], "confidence": []}
    for seed in range(seeds):
        out = held_out(screen, seed)
        rows = exports.contents("confidence", published(triplets[~out], n))["confidence"].arrays
        counts = exports.contents("triplet_counts", published(triplets[~out], n))["triplet_counts"].arrays
        key = (rows["anchor"].astype(np.int64) * n + rows["lo"]) * n + rows["hi"]
        a, b, c = triplets[out].astype(np.int64).T
        asked = (a * n + np.minimum(b, c)) * n + np.maximum(b, c)
        place = np.minimum(np.searchsorted(key, asked), len(key) - 1)
        there = key[place] == asked
        place, lo_said = place[there], (b < c)[there]
        p = rows["predicted"][place]
        said["predicted"].append(np.maximum(p, 1 - p))
        came["predicted"].append(np.where(p == 0.5, 0.5, (p > 0.5) == lo_said))
        net = (counts["n_lo"].astype(int) - counts["n_hi"])[place]
        decided = net != 0
        said["confidence"].append(rows["confidence"][place][decided])
        came["confidence"].append(((net > 0) == lo_said)[decided])
    edges = {"predicted": np.linspace(0.5, 1, 11), "confidence": np.array([0.5, 0.6, 0.72, 0.8, 0.9, 0.95, 0.98, 1.0])}
    return {
        name: binned(np.concatenate(said[name]), np.concatenate(came[name]).astype(float), edges[name]) for name in said
    }


def made_majorities() -> Bins:
    """Questions whose share of answers for lo is uniform, one to eight answers each: is the majority that of all?"""
    rng = np.random.default_rng(0)
    p, answers = rng.random(200_000), rng.integers(1, 9, 200_000)
    n_lo = rng.binomial(answers, p)
    n_hi = answers - n_lo
    decided = n_lo != n_hi
    right = ((n_lo > n_hi) == (p > 0.5))[decided].astype(float)
    return binned(confidence.majority(n_lo, n_hi)[decided], right, np.linspace(0.5, 1, 11))


def held_out(screen: np.ndarray, seed: int) -> np.ndarray:
    """(m,) bool: a fifth of the screens, whole."""
    return (np.random.default_rng([seed, 11]).random(screen.max() + 1) < 0.2)[screen]


def objects(triplets: np.ndarray, screen: np.ndarray, seeds: int) -> Objects:
    """Evidence and held-out accuracy of each object, for growing shares of what may be learned."""
    n, parts = int(triplets.max()) + 1, []
    for seed in range(seeds):
        out = held_out(screen, seed)
        order = np.random.default_rng([seed, 12]).random(screen.max() + 1)[screen]
        a, b, c = test = triplets[out].T
        for share in SHARES:
            held = published(triplets[~out & (order < share)], n)
            w = exports.contents("adds3", held)["adds3"].arrays["W"]
            evidence = exports.contents("evidence", held)["evidence"].arrays
            margin = w[a, b] - w[a, c]
            right = (margin > 0) + 0.5 * (margin == 0)
            named, got = (sum(np.bincount(who, x, n) for who in test) for x in (np.ones(len(a)), right))
            parts.append((np.full(n, share), evidence["answers"], evidence["agreement"], got / named, named))
    return Objects(*(np.concatenate(column) for column in zip(*parts)))


class Clusters(NamedTuple):
    """A row a run, and rows of objects: the stability said and whether the object is in the right cluster."""

    power: np.ndarray
    ari: np.ndarray
    stability_ari: np.ndarray
    stability: np.ndarray  # (runs, OBJECTS)
    right: np.ndarray  # (runs, OBJECTS) bool


def clusters(seeds: int) -> Clusters:
    """`sdp_clustering` of made clusters from few comparisons to enough."""
    module, runs = refit_module("sdp_clustering"), []
    for power in POWERS:
        for seed in range(seeds):
            triplets, truth = planted(OBJECTS, K, power, seed)
            held = published(triplets, OBJECTS)
            made = module.refit(held.snapshot, module.Params(k=K, stability=10, max_iterations=300, tol=1e-2), seed)
            said = exports.contents("evidence", held._replace(artifacts={"sdp_clustering": made}))["evidence"].arrays
            labels = made.arrays["labels"]
            table = confusion_matrix(truth, labels, labels=range(K))
            of_truth, of_found = linear_sum_assignment(-table)
            name = np.empty(K, int)
            name[of_found] = of_truth
            runs.append(
                (
                    power,
                    adjusted_rand_score(truth, labels),
                    float(np.mean(made.arrays["stability_ari"])),
                    said["cluster_stability"],
                    name[labels] == truth,
                )
            )
    return Clusters(*(np.array(column) for column in zip(*runs)))


def lines(asked: dict[str, Bins], made: Bins, of: Objects | None, found: Clusters) -> list[str]:
    """Everything as tables."""
    out = []
    for name, bins in {**asked, "confidence, made answers": made}.items():
        what = "majority is that of all" if bins is made else "of held-out answers came so"
        out += [
            f"## {name}",
            "",
            f"| said | {what} | answers |",
            "|---|---|---|",
            *(f"| {s:.3f} | {c:.3f} | {m:,} |" for s, c, m in zip(*bins)),
            "",
            "(what is said is of the majority of all people, what came are single answers: it need not be equal)"
            if name == "confidence"
            else f"mean |said - came| {off(bins):.3f}",
            "",
        ]
    if of is not None:
        out += [
            "## evidence: objects of food100",
            "",
            "| screens learned | answers an object | agreement | held-out accuracy "
            "| Spearman of accuracy with answers | with agreement |",
            "|---|---|---|---|---|---|",
        ]
        for share in SHARES:
            mine = of.share == share
            with_answers, with_agreement = (
                spearmanr(x[mine], of.accuracy[mine]).statistic for x in (of.answers, of.agreement)
            )
            out.append(
                f"| {share:.0%} | {of.answers[mine].mean():,.0f} | {of.agreement[mine].mean():.3f} "
                f"| {of.accuracy[mine].mean():.3f} | {with_answers:+.2f} | {with_agreement:+.2f} |"
            )
        whole = [spearmanr(x, of.accuracy).statistic for x in (of.answers, of.agreement)]
        out += [f"| all of these | | | | {whole[0]:+.2f} | {whole[1]:+.2f} |", ""]
    out += [
        f"## cluster stability: {OBJECTS} objects, {K} made clusters",
        "",
        "| n (ln n)^ | ARI | stability_ari | stability of objects in the right cluster | in a wrong one "
        "| objects wrong | AUC |",
        "|---|---|---|---|---|---|---|",
    ]
    for power in POWERS:
        mine = found.power == power
        stable, right = found.stability[mine].ravel(), found.right[mine].ravel()
        both = 0 < right.mean() < 1
        out.append(
            f"| {power} | {found.ari[mine].mean():.3f} | {found.stability_ari[mine].mean():.3f} "
            f"| {stable[right].mean():.3f} | "
            + (f"{stable[~right].mean():.3f}" if both else "")
            + f" | {1 - right.mean():.1%} | "
            + (f"{roc_auc_score(~right, -stable):.2f}" if both else "")
            + " |"
        )
    stable, right = found.stability.ravel(), found.right.ravel()
    out += [
        "",
        f"All runs: AUC {roc_auc_score(~right, -stable):.2f} for objects in a wrong cluster; Spearman of ARI with "
        f"stability_ari {spearmanr(found.ari, found.stability_ari).statistic:+.2f} over {len(found.ari)} runs",
        "",
    ]
    return out


def draw(asked: dict[str, Bins], made: Bins, of: Objects | None, found: Clusters, path: Path) -> None:
    """Reliability, evidence, and the two of clusters."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(13, 10), layout="constrained")
    axis = axes[0, 0]
    axis.plot([0.5, 1], [0.5, 1], ":", color="grey")
    for name, label in (
        ("predicted", "predicted, from other answers: held-out answers, food100"),
        ("confidence", "confidence of the majority: held-out answers, food100"),
    ):
        if name in asked:
            bins = asked[name]
            twice = 2 * np.sqrt(bins.came * (1 - bins.came) / bins.answers)
            axis.errorbar(bins.said, bins.came, twice, fmt="o-", capsize=2, label=label)
    axis.plot(made.said, made.came, "s--", ms=4, label="confidence of the majority: majority of all, made answers")
    axis.set(xlabel="probability said", ylabel="share that came so", title="how sure of an answer")
    axis.legend(fontsize=8)
    axis = axes[0, 1]
    if of is None:
        axis.text(0.5, 0.5, "no human judgements at hand", ha="center")
    else:
        for share, colour in zip(SHARES, matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(SHARES)))):
            mine = of.share == share
            axis.scatter(
                of.answers[mine], of.accuracy[mine], s=9, alpha=0.5, color=colour, label=f"{share:.0%} of the screens"
            )
        axis.set(
            xscale="log",
            xlabel="evidence: answers that name the object",
            ylabel="held-out accuracy about the object",
            title="food100, a dot an object",
        )
        axis.legend(fontsize=8)
    axis = axes[1, 0]
    bins = binned(found.stability.ravel(), found.right.ravel().astype(float), np.linspace(0, 1, 11))
    axis.plot(bins.said, bins.came, "o-")
    for x, y, m in zip(*bins):
        axis.annotate(f"{m:,}", (x, y), textcoords="offset points", xytext=(4, -11), fontsize=7)
    axis.set(
        xlabel="cluster stability of the object",
        ylabel="share of objects in the right cluster",
        ylim=(0, 1.05),
        title="made clusters: objects (how many)",
    )
    axis = axes[1, 1]
    dots = axis.scatter(found.stability_ari, found.ari, c=found.power, s=25)
    axis.plot([0, 1], [0, 1], ":", color="grey")
    figure.colorbar(dots, ax=axis, label="n (ln n)^x comparisons")
    axis.set(
        xlabel="stability_ari: ARI of replicates to the clustering",
        ylabel="ARI to the truth",
        title="made clusters: runs",
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="confidence")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    data, asked, of = human_judgements(), {}, None
    if data is None:
        print(
            "no human judgements, made answers alone: set STREAM_ENGINE_DATA to the folder that holds them",
            file=sys.stderr,
        )
    else:
        triplets, screen = food(data)
        asked, of = questions(triplets, screen, given.seeds), objects(triplets, screen, given.seeds)
    made, found = made_majorities(), clusters(given.seeds)
    text = "\n".join(lines(asked, made, of, found))
    print(text)
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "confidence.md").write_text(text)
    draw(asked, made, of, found, out / "confidence.png")


if __name__ == "__main__":
    main()
