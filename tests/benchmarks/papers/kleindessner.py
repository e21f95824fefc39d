"""Kleindessner & von Luxburg 2017: all of their figures and runtimes, by `tests/benchmarks/kleindessner.py`."""

import csv
import gzip
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stream_engine.clustering import partition
from stream_engine.counts import kernels, spectral
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.embedding import descent, gradient, starts
from stream_engine.embedding import fit as embedding_fit
from stream_engine.embedding.questions import of_rows
from stream_engine.kernel_learning import dual_proof, factored, gram_comparisons, mkpoe, pair_lists, problem
from stream_engine.kernel_learning.gram_comparisons import triplet_rows
from tests.benchmarks import kleindessner as bench
from tests.benchmarks.papers.kept import Cell, Kept
from tests.benchmarks.papers.rows import NOT_RUN, Paper, Row, missing, row
from tests.benchmarks.papers.rows import mean as mean_of

TEXT = "kleindessner-luxburg-2017-kernel-functions-from-triplets.txt"
COUNTS = (5_000, 10_000, 20_000, 40_000, 80_000)
SIZES = (1000, 2000)
KERNELS, WRONG = ("k1", "k2"), (0.0, 0.3)
RUNS = 3
MATLAB = "The paper's are of Matlab without sparse products on a laptop of 2016, ours CPU seconds of one thread. "
DRAWN = "drawn, without numbers"
EXPERIMENTS = ("counted", "crowd", "shapes", "usps", "size", "runtime", "embedding")
FIT = (embedding_fit, descent, gradient, starts)
RESTS_ON = dict.fromkeys(EXPERIMENTS, (kernels, spectral, partition, bench)) | {
    "counted": (),
    "usps": (kernels, spectral, partition, bench, *FIT),
    "size": (kernels, spectral, partition, bench, *FIT),
    "embedding": (bench, *FIT),
    "gnmds": (kernels, factored, dual_proof, problem, pair_lists, gram_comparisons, mkpoe, bench),
    "gnmds of food": (factored, dual_proof, problem, pair_lists, gram_comparisons, mkpoe),
    "far apart": (kernels,),
}
Cells = dict[tuple, list[Cell | None]]
mean = partial(mean_of, name="purity")


def folder() -> Path:
    """Where the data are."""
    return Path(os.environ["STREAM_ENGINE_DATA"])


def counted(key: dict[str, Any]) -> dict[str, int]:
    """Sizes of the two sets of people's answers."""
    with gzip.open(folder() / "food100" / "triplets_unique.csv.gz", "rt") as file:
        said = {tuple(line) for line in list(csv.reader(file))[1:]}
    with open(folder() / "car60" / "triplets_T_ALL.csv") as file:
        cars = [tuple(line) for line in list(csv.reader(file))[1:]]
    both = sum((anchor, far, near) in said for anchor, near, far in said) // 2
    return {"food": len(said), "food, pairs of contradictions": both, "cars": len(cars), "cars, unique": len(set(cars))}


def digits(key: dict[str, Any]) -> dict[str, Any]:
    """One clustering of digits: 1, 2, 3 by the number of triplets, or all ten by their number."""
    pixels, digit = bench.usps()
    rng = np.random.default_rng(key["seed"])
    of = np.flatnonzero(np.isin(digit, (1, 2, 3))) if key["experiment"] == "usps" else np.arange(len(pixels))
    at = rng.choice(of, key["n"], replace=False)
    return bench.clustered(
        pixels[at], digit[at], key["kernel"], key["marks"], key["asked"], key["wrong"], key["seed"], key["d"]
    )


def gnmds(key: dict[str, Any]) -> dict[str, Any]:
    """Purity of k1, of a random clustering, and of GNMDS (K = I) by beta on the same landmark triplets of the digits 1,
    2 and 3; with how long the points of landmarks and of others are."""
    pixels, digit = bench.usps()
    rng = np.random.default_rng(key["seed"])
    at = rng.choice(np.flatnonzero(np.isin(digit, (1, 2, 3))), key["n"], replace=False)
    points, truth = pixels[at], digit[at]
    marks = rng.choice(key["n"], key["marks"], replace=False)
    rows = bench.landmark_triplets(points, marks, "k1", key["asked"], key["wrong"], rng)
    clock = [time.process_time()]
    K = kernels.k1(columns_from_triplets(rows, key["n"]))
    clock.append(time.process_time())
    said, identity = triplet_rows(rows), [np.eye(key["n"])]
    least = mkpoe.smallest_beta(said, np.ones(len(said)), identity) or 1.0
    chosen, found = np.isin(np.arange(key["n"]), marks), []
    for multiple in key["multiples"]:
        began = time.process_time()
        made = mkpoe.fit(said, identity, multiple * least, tolerance=3e-2, max_iterations=3000)
        length = np.sqrt(np.diag(made.gram))
        found.append({"multiple": multiple, "purity": bench.purity(bench.kernel_k_means(made.gram, 3, 0), truth),
                      "gap": made.gap, "cpu": time.process_time() - began, "marks": length[chosen].mean(),
                      "others": length[~chosen].mean()})  # fmt: skip
    return {"k1": bench.purity(bench.kernel_k_means(K, 3, 0), truth), "k1 cpu": clock[1] - clock[0], "GNMDS": found,
            "random": bench.purity(rng.integers(0, 3, key["n"]), truth)}  # fmt: skip


def gnmds_of_food(key: dict[str, Any]) -> dict[str, float]:
    """CPU seconds of GNMDS on the food data, certified."""
    with gzip.open(folder() / "food100" / "triplets_unique.csv.gz", "rt") as file:
        said = list(csv.reader(file))[1:]
    number = {name: i for i, name in enumerate(sorted({name for line in said for name in line}))}
    rows = triplet_rows(np.array([[number[name] for name in line] for line in said], np.int32))
    identity, ones = [np.eye(len(number))], np.ones(len(rows))
    beta = key["multiple"] * (mkpoe.smallest_beta(rows, ones, identity) or 1.0)
    began = time.process_time()
    made = mkpoe.fit(rows, identity, beta, tolerance=3e-2, max_iterations=3000)
    return {"cpu": time.process_time() - began, "gap": made.gap, "satisfied": made.satisfied}


def embedded(key: dict[str, Any]) -> dict[str, float]:
    """CPU seconds of our STE embedding of so many digits, 150 n random triplets, 15 % of them wrong."""
    pixels, _ = bench.usps()
    rng, n = np.random.default_rng(0), key["n"]
    points = pixels[rng.integers(len(pixels), size=n)] + 0.05 * rng.normal(size=(n, pixels.shape[1]))
    a, b, c = rng.integers(n, size=(3, 150 * n)).astype(np.int32)
    keep = (a != b) & (a != c) & (b != c)
    a, b, c = a[keep], b[keep], c[keep]
    wrong = (((points[a] - points[b]) ** 2).sum(axis=1) > ((points[a] - points[c]) ** 2).sum(axis=1)) != (
        rng.random(len(a)) < 0.15
    )
    rows = np.stack([a, np.where(wrong, c, b), a, np.where(wrong, b, c)], axis=1).astype(np.int32)
    began = time.process_time()
    questions = of_rows(rows, n)
    embedding_fit.fit_carefully(questions, key["d"], 0.3, tolerance=1e-5)
    return {"cpu": time.process_time() - began, "triplets": len(rows)}


def far_apart(key: dict[str, Any]) -> dict[str, float]:
    """The example of Fig. 2: x1 and x2 far from n - 2 points in a row and from each other; all triplets, all right."""
    n = key["n"]
    row = np.arange(n - 2) / (n - 3)
    distance = np.abs(row[:, None] - row)
    distance = np.pad(distance, ((2, 0), (2, 0)))
    distance[0, 2:] = distance[2:, 0] = 2 + row  # d(x1, x3) < ... < d(x1, xn)
    distance[1, 2:] = distance[2:, 1] = 2.5 + 2 * row  # d(x2, x3) < ... < d(x2, xn)
    distance[0, 1] = distance[1, 0] = 9.0
    a, b, c = (index.ravel() for index in np.meshgrid(*[np.arange(n)] * 3, indexing="ij"))
    keep = (a != b) & (a != c) & (distance[a, b] < distance[a, c])
    K = kernels.k1(columns_from_triplets(np.stack([a, b, c], axis=1)[keep], n))
    return {"x1, x2": float(K[0, 1]), "x3, xn": float(K[2, n - 1])}


def new_rows(kept: Kept) -> list[Row]:
    """Fig. 2, and GNMDS on landmark triplets."""
    sizes = [kept.cell({"experiment": "far apart", "n": n}, far_apart) for n in (20, 60)]
    keys = [{"experiment": "gnmds", "n": 300, "marks": 15, "wrong": wrong, "seed": 0, "asked": 6000,
             "multiples": [1.1, 2.0, 5.0, 20.0, 60.0]} for wrong in WRONG]  # fmt: skip
    both = [kept.cell(key, gnmds) for key in keys]

    def ends(*f: dict[str, float]) -> tuple[str, bool]:
        told = "; ".join(f"n = {n}: {e['x1, x2']:.2f} and {e['x3, xn']:.2f}" for n, e in zip((20, 60), f))
        return told, f[1]["x1, x2"] > max(0.9, f[0]["x1, x2"]) and f[1]["x3, xn"] < min(-0.7, f[0]["x3, xn"])

    def beside(*f: dict[str, Any]) -> tuple[str, bool]:
        told = "; ".join(
            f"{w:.0%} wrong: random {e['random']:.2f}, k1 {e['k1']:.2f}, GNMDS "
            + ", ".join(f"{g['purity']:.2f} at x {g['multiple']:g}" for g in e["GNMDS"])
            for w, e in zip(WRONG, f)
        )
        return told, all(g["purity"] <= e["random"] + 0.1 for e in f for g in e["GNMDS"])

    def lengths(*f: dict[str, Any]) -> tuple[str, None]:
        told = "; ".join(f"x {g['multiple']:g}: {g['marks']:.2f} and {g['others']:.2f}" for g in f[0]["GNMDS"])
        return told, None

    return [
        row("Fig. 2", "k1 of the two farthest objects, and of two with many between them",
            "We end up with $k_1(x_1, x_2) \\rightarrow 1$", "1; -1", "above .9 and below -.7 at n = 60, and nearer "
            "than at 20", sizes, ends, "All triplets, all right. A limit that the paper derives.", identity=True),
        row("sec. 4.2", "GNMDS on landmark triplets, purity by beta, in multiples of the smallest that learns",
            "yields the same purity values as a random clustering when provided with the landmark triplets", "random",
            "within .1 of a random clustering at every beta", both, beside,
            "300 of the digits 1, 2, 3; 15 landmarks; 6,000 triplets; one draw. It is random where beta is small, and "
            "as good as k1 where it is large: see the next row. The paper does not say its regularisation."),
        row("sec. 4.2", "why: mean length of the points of landmarks and of the others, by beta, nothing wrong", "",
            "(not in the paper)", "", both, lengths,
            "All triplets have landmarks as near and far, and another object is in none but its own: the trace first "
            "pays for moving the landmarks, which all triplets share, and leaves the others at the origin, where a "
            "clustering of them is one by chance."),
    ]  # fmt: skip


def usps_cells(kept: Kept, which: str, d: int, counts: tuple[int, ...], runs: int) -> dict:
    """Figs. 5 and 7, rows 1 and 2: cells by share of wrong answers and number of triplets."""
    return {
        (wrong, asked): [
            kept.cell({"experiment": "usps", "kernel": which, "wrong": wrong, "asked": asked, "seed": seed, "n": 1000,
                       "marks": 15, "d": d}, digits)
            for seed in range(runs)
        ]
        for wrong in WRONG
        for asked in counts
    }  # fmt: skip


def size_cells(kept: Kept) -> Cells:
    """Figs. 5 and 7, row 3."""
    cells: Cells = {}
    for which in KERNELS:
        for n in SIZES:
            for seed in range(RUNS):
                key = {"experiment": "size", "kernel": which, "wrong": 0.15, "asked": 150 * n, "seed": seed}
                key |= {"n": n, "marks": 30, "d": 5 if which == "k1" and seed == 0 else 0}
                cells.setdefault((which, n), []).append(kept.cell(key, digits))
    return cells


def seconds(found: list[dict], what: str) -> float:
    """CPU seconds of the runtime experiment."""
    return next(each["cpu"] for each in found if each["what"] == what)


def part(name: str) -> Callable[[dict[str, Any]], Any]:
    """A part of the benchmark as an experiment."""

    def made(key: dict[str, Any]) -> Any:
        return bench.PARTS[name]()

    return made


def crowd_rows(kept: Kept) -> list[Row]:
    """Sec. 4.1: people's answers."""
    sizes = [kept.cell({"experiment": "counted"}, counted)]
    seen = [kept.cell({"experiment": "crowd"}, part("crowd"))]

    def size(name: str, paper: int):
        return lambda f: (str(f[name]), f[name] == paper)

    def food(f: list[dict]) -> tuple[str, bool]:
        told = [each for each in f if each["data"].startswith("food")]
        return "; ".join(f"{each['kernel']} {each['cpu']:.3f} s" for each in told), all(e["cpu"] <= 0.1 for e in told)

    def shared(f: list[dict]) -> tuple[str, None]:
        name = "share of the variance of sweetness that the clusters explain"
        return f"of the variance of sweetness the ten clusters explain {f[0][name]:.2f}", None

    def cars(f: list[dict]) -> tuple[str, bool]:
        told = {e["kernel"]: e for e in f if e["data"].startswith("cars")}["k2"]
        near, usual = told["nearest is of the same class"], told["largest class"]
        return f"nearest car of the same class {near:.2f} of the time, largest class {usual:.2f}", near > usual + 0.2

    return [
        row("sec. 4.1", "food, unique triplets", "190376 (unique) similarity triplets", "190376", "the same number",
            sizes, size("food", 190376), identity=True),
        row("sec. 4.1", "food, contradictions", "which contain 9349 pairs of contradicting triplets", "9349",
            "the same number", sizes, size("food, pairs of contradictions", 9349), identity=True),
        row("sec. 4.1", "cars, triplets", "We ended up with 13514 similarity triplets", "13514", "the same number",
            sizes, size("cars", 13514), identity=True),
        row("sec. 4.1", "cars, unique", "of which 12502 were unique", "12502", "the same number", sizes,
            size("cars, unique", 12502), identity=True),
        row("sec. 4.1", "k1 or k2 of the food data, seconds",
            "computation of k_1 or k_2 on this data set took about 0.1 seconds", "0.1 s", "no more", seen, food,
            MATLAB),
        row("sec. 4.1, Fig. 9", "GNMDS of the food data, seconds", "took 18 seconds (embedding dimension equaling "
            "two", "18 s", "no more",
            [kept.cell({"experiment": "gnmds of food", "multiple": 20.0}, gnmds_of_food)],
            lambda f: (f"{f['cpu']:.1f} s (gap {f['gap']:.1e}, {f['satisfied']:.0%} of the triplets)", f["cpu"] <= 18),
            MATLAB + "Ours is the convex program, which has no dimension, at 20 times the smallest beta."),
        row("Fig. 4 left", "ten clusters of complete linkage on k1 are homogeneous",
            "Each of the ten clusters depicted there contains pretty homogeneous images", "judged by eye", "", seen,
            shared, "The pictures are not at hand; a taste that people gave each dish stands for them."),
        row("Fig. 4 right", "cars arranged in groups by kernel PCA on k2",
            "with the cars arranged in groups of sports cars", "judged by eye",
            "neighbours of one class .2 more often than the largest class", seen, cars),
        missing("Supp. A.2", "nature data", "We performed similar experiments on the nature data set", "",
                "The nature data cannot be had here."),
    ]  # fmt: skip


def shape_rows(cells: list[Cell | None]) -> list[Row]:
    """Figs. 3 and 6."""

    def follow(*f: list[dict]) -> tuple[str, bool]:
        told = "; ".join(f"{e['data']} {e['k1']:.2f} and {e['k2']:.2f}" for e in f[0])
        return told, all(min(e["k1"], e["k2"]) > 0.4 for e in f[0])

    return [
        row("Figs. 3, 6", "k1 and k2 follow the distances on five sets of 400, a tenth of all triplets",
            "the kernel matrices reflect the block structures of the distance matrices", "judged by eye",
            "rank correlation with minus the distance above .4 everywhere", cells, follow,
            "The block model has a few different distances only: its correlation cannot be near 1."),
    ]  # fmt: skip


def usps_rows(cells: Cells, rivals: Cells) -> list[Row]:
    """Rows 1 and 2 of Fig. 5, and Fig. 7."""

    def curve(which: str, wrong: float) -> str:
        return ", ".join(f"{count:,}: {mean(cells[which, wrong, count]):.2f}" for count in COUNTS)

    def best(d: int, wrong: float, count: int) -> float:
        return max(mean(rivals[d, wrong, count], name=f"purity, STE {kind}") for kind in ("same", "rand"))

    def level(d: int):
        told = [(w, c, mean(cells["k1", w, c]), best(d, w, c)) for w in WRONG for c in (10_000, 40_000)]
        text = "; ".join(f"{c:,}, {w:.0%} wrong: {a:.2f} and {b:.2f}" for w, c, a, b in told)
        ours, rival = (all(x > y + 0.05 for x, y in pairs) for pairs in zip(*[((a, b), (b, a)) for *_, a, b in told]))
        return lambda *f: (text, not ours and not rival)

    every = [c for made in cells.values() for c in made]
    both = [c for d in (2, 10) for w in WRONG for n in (10_000, 40_000) for c in rivals[d, w, n]]
    usps = "The same data as the paper's; the rival is our STE, the better of the same and of random triplets. "
    rows = [
        row("Fig. 5, 7, rows 1, 2", f"purity of {which}, {wrong:.0%} wrong, by number of triplets", "", DRAWN, "",
            [c for n in COUNTS for c in cells[which, wrong, n]], lambda *f, a=which, b=wrong: (curve(a, b), None))
        for which in KERNELS for wrong in WRONG
    ]  # fmt: skip
    rows += [
        row("Fig. 5, row 1", "k1 beside an embedding in 2 dimensions, purity",
            "Based on the achieved purity values no method can be considered superior", "none superior",
            "neither ahead by more than .05 in all four settings", both, level(2), usps),
        row("Fig. 5, row 2", "k1 beside an embedding in 10 dimensions, purity",
            "Based on the achieved purity values no method can be considered superior", "none superior",
            "neither ahead by more than .05 in all four settings", both, level(10), usps),
        row("Fig. 7", "k2 slightly worse than k1", "Our kernel function k_2 performs slightly worse than k_1",
            "slightly worse", "mean purity over all settings lower", every,
            lambda *f: (f"k1 {overall(cells, 'k1'):.3f}, k2 {overall(cells, 'k2'):.3f}; nothing wrong, 80,000: "
                        f"{mean(cells['k1', 0.0, 80_000]):.2f}, {mean(cells['k2', 0.0, 80_000]):.2f}",
                        overall(cells, "k2") < overall(cells, "k1")),
            "Over all settings; where nothing is wrong and triplets are many, both are level here."),
        row("Fig. 5", "k1 beside an embedding, running time", "Our approach is highly superior regarding running time",
            "highly superior", "at least ten times faster",
            both, lambda *f: speed(f), MATLAB),
    ]  # fmt: skip
    return rows


def overall(cells: Cells, which: str) -> float:
    """Mean purity over all numbers of triplets and shares of wrong ones."""
    return float(np.mean([mean(cells[which, wrong, count]) for wrong in WRONG for count in COUNTS]))


def speed(found: tuple[dict, ...]) -> tuple[str, bool]:
    """CPU seconds of k1 and of the embedding of the same triplets, medians."""
    ours, rival = np.median([f["k1"] for f in found]), np.median([f["STE same cpu"] for f in found])
    return f"k1 {ours:.3f} s, STE {rival:.1f} s (medians)", bool(rival > 10 * ours)


def size_rows(kept: Kept, cells: Cells) -> list[Row]:
    """Row 3 of Fig. 5, and what the text says of runtimes."""
    whole = [kept.cell({"experiment": "runtime"}, part("runtime"))]
    instead = f"USPS for MNIST, {SIZES[-1]:,} at most. "

    def curve(which: str) -> str:
        return ", ".join(f"{n:,}: {mean(cells[which, n]):.2f}" for n in SIZES if cells[which, n] != [None])

    rows = [
        row("Fig. 5, row 3", f"purity of {which} by the number of digits", "", DRAWN, "",
            [c for n in SIZES for c in cells[which, n] if c] or [None], lambda *f, a=which: (curve(a), None),
            instead + "30 landmarks, 150 n triplets, 15 % wrong.")
        for which in KERNELS
    ]  # fmt: skip
    large = [c for n in SIZES for c in cells["k1", n] if c and c.found.get("purity, STE rand")]
    rows += [
        row("Fig. 5, row 3", "k1 competes with the best embedding for large n",
            "for large values of n our kernel function k_1 can compete with it", "it competes",
            "at the largest n made for both, purity at least the embedding's less .05", large[-1:] or [None],
            lambda f: (f"{f['triplets'] // 150:,} digits: k1 {f['purity']:.2f}, STE of random triplets "
                       f"{f['purity, STE rand']:.2f}, k-means on pixels {f['purity, points']:.2f}",
                       f["purity"] >= f["purity, STE rand"] - 0.05),
            instead + "GNMDS with random triplets is the paper's best; here our STE in five dimensions."),
    ]  # fmt: skip
    quote = "For 10000 points, computing k_1 or k_2 took 100 or 180 seconds"
    for which, paper in (("k1", 100), ("k2", 180)):
        rows.append(
            row("sec. 4.2", f"{which} of 10,000 digits, seconds", quote, f"{paper} s", "no more", whole,
                lambda f, a=which, b=paper: (f"{seconds(f, a):.1f} s", seconds(f, a) <= b), MATLAB)
        )  # fmt: skip
    rows += [
        row("sec. 4.2", "the fastest embedding of 10,000 digits, seconds",
            "even the fastest embedding algorithm ran for 2000 seconds", "2000 s",
            "ours at least ten times slower than k1",
            [*whole, kept.cell({"experiment": "embedding", "n": 10_000, "d": 5}, embedded)],
            lambda f, e: (f"STE in 5 dimensions {e['cpu']:.0f} s of {e['triplets']:,} random triplets, k1 "
                          f"{seconds(f, 'k1'):.1f} s", e["cpu"] >= 10 * seconds(f, "k1")),
            MATLAB + "STE is ours."),
        row("sec. 4.2, Fig. 8", "k1 of 20,000 digits, seconds", "computation of k_1 took 900 seconds", "900 s",
            "no more", whole, lambda f: (f"{seconds(f, 'kernel PCA'):.1f} s, kernel PCA included",
                                         seconds(f, "kernel PCA") <= 900),
            MATLAB + "USPS has 9,298 digits: drawn again with noise. The kernel is never an array here."),
        missing("sec. 4.2, Fig. 8", "GNMDS of 20,000 digits", "GNMDS ran for more than 6000 seconds", "6000 s",
                "It would need a day: the convex program's proof factors a dense matrix of 20,000 x 20,000 (3.2 GB) a "
                "round. The paper's is the non-convex one in two dimensions, in Matlab, which is not run.", NOT_RUN),
    ]  # fmt: skip
    return rows


def paper(kept: Kept) -> Paper:
    """All of the paper."""
    shapes = kept.cell({"experiment": "shapes"}, part("shapes"))
    crowd = crowd_rows(kept)
    cells = {(w, *at): each for w in KERNELS for at, each in usps_cells(kept, w, 0, COUNTS, RUNS).items()}
    rivals = {(d, *at): each for d in (2, 10) for at, each in usps_cells(kept, "k1", d, (10_000, 40_000), 1).items()}
    sizes = size_cells(kept)
    rows = shape_rows([shapes]) + crowd + new_rows(kept) + usps_rows(cells, rivals) + size_rows(kept, sizes)
    note = "The paper draws its purities and says no number but counts and runtimes; its text has no picture here."
    return Paper("Kleindessner & von Luxburg 2017, kernel functions based on triplet comparisons", TEXT, note, rows)
