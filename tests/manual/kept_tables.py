"""The tables of the manual whose results are kept beside the benchmarks: what each of their lines says, made anew of
the kept lines. A line is the figures of its cells in order, without those of the first cell."""

import json
import re
from collections.abc import Callable
from functools import cache
from statistics import mean
from typing import NamedTuple

from tests.conftest import ROOT

KEPT = "tests/benchmarks"
Lines = list[list[float]]


@cache
def kept(name: str) -> list[dict]:
    """The lines of a file of results."""
    return [json.loads(line) for line in (ROOT / KEPT / name).read_text().splitlines()]


class Whole(NamedTuple):
    """A whole command, as it was last measured at full size: its figure, its rival's, and what its notes say."""

    ours: float
    rival: float
    notes: str

    def said(self, what: str) -> float:
        """A figure of the notes, such as `wall`."""
        return float(re.search(rf"{what} (-?[\d.]+)", self.notes)[1])


def whole(case: str, rival: str = "") -> Whole:
    """The last full row of a case, beside a rival whose name begins so."""
    rows = [row for row in kept("results.jsonl") if row["full"] and row["stage"] in ("whole commands", "kafka")]
    row = [row for row in rows if row["case"] == case and (row.get("rival_name") or "").startswith(rival)][-1]
    return Whole(row["ours"], row["rival"], row.get("notes") or "")


ONE, MANY = "5,000,000, n = 1,000", "run jsonl, 5,000,000, n = 100,000"
JSONL, ARROW, PARQUET = (f"run {kind}, {ONE}" for kind in ("jsonl", "arrow", "parquet"))
OFF, ARROW_OFF = (f"run {kind}, guard off, {ONE}" for kind in ("jsonl", "arrow"))
FEW, LARGE = "run with refits, 1,000 comparisons about 943 objects", "run with refits, 1,000,000, n = 1,500"
FIRST, COLD = "run jsonl, 1,000, n = 20, after set-up", "run jsonl, 1,000, n = 20, nothing compiled before"
EXPORT = f"export of everything, {ONE}"


def peak(case: str) -> float:
    """GB of the largest process of a command: a row of its own."""
    return whole(f"{case}: peak memory").ours


def how_fast() -> Lines:
    """The README's: rates, duckdb's, memory."""
    return [
        [whole(JSONL).ours, whole(ARROW).ours, whole(JSONL, "duckdb").rival, peak(JSONL)],
        [whole(OFF).ours, whole(ARROW_OFF).ours, whole(OFF, "duckdb").rival, peak(OFF)],
        [whole(MANY).ours, whole(MANY, "duckdb").rival, peak(MANY)],
        [whole(FIRST).ours, whole(FEW).ours],
        [whole(LARGE).ours, whole(LARGE).said("wall")],
        [whole(EXPORT).ours, peak(EXPORT)],
    ]


def every_stage() -> Lines:
    """Whole commands, all rows."""
    asked = {name: whole(f"ask --strategy {name}, 200,000, n = 10,000").ours for name in STRATEGIES}
    inspect = whole(f"inspect, {ONE}")
    kafka = [
        [_ratio(whole(f"{topic}, {client}, engine")) for topic in ("single, 200,000 events", *LARGER)]
        for client in ("kafka-python", "confluent")
    ]
    return [
        [
            *(whole(case).ours for case in (JSONL, PARQUET, ARROW)),
            *(whole(case, rival).rival for case, rival in ((JSONL, "duckdb"), (PARQUET, "duckdb"), (ARROW, "polars"))),
        ],
        [whole(OFF).ours, whole(ARROW_OFF).ours, whole(OFF).rival, whole(ARROW_OFF).rival],
        [whole(MANY).ours, peak(MANY), whole(MANY).rival],
        [whole(f"progressive validation in run jsonl, guard off, {ONE}").ours],
        [inspect.ours, inspect.said("wall"), whole(EXPORT).ours],
        [asked[name] for name in STRATEGIES[:3]],
        [asked[name] for name in STRATEGIES[3:]],
        [whole(FEW).ours, whole(LARGE).ours, whole(LARGE).said("wall")],
        [whole(f"refit {kind}, n = 400, 9,000").ours for kind in ("kernel_learning", "partial_order_embedding")],
        [whole(FIRST).ours, whole(COLD).ours],
        [whole("demo").ours],
        *kafka,
    ]


STRATEGIES = ("random", "landmark", "coverage", "uncertainty", "information-gain")
LARGER = ("json, 500,000 events", "arrow, 2,000,000 events")


def _ratio(row: Whole) -> float:
    return row.ours / row.rival


def clusterings() -> Lines:
    """Ten digits of USPS by method and power of ln n, 1,000 objects, ten draws."""
    cells = [each for each in kept("usps_clusters.jsonl") if (each["which"], each["objects"]) == ("ten digits", 1000)]
    by_power = {power: [each["found"] for each in cells if each["power"] == power] for power in (2.0, 3.0, 4.0)}
    assert all(len(draws) == 10 for draws in by_power.values())
    return [[mean(f[method] for f in draws) for draws in by_power.values()] for method in ("AddS-3", "t-STE", "MulK-3")]


def verdicts() -> Lines:
    """Clusters or a continuum: worlds, verdicts, CPU seconds."""
    lines = []
    for kind in ("disc", "line", "ring", "gaussian", "exponential", "three", "close", "coins"):
        worlds = [each for each in kept("cluster_verdicts.jsonl") if each["kind"] == kind]
        told = [sum(said in each["verdict"] for each in worlds) for said in ("continuum", "cannot tell")]
        clusters = len(worlds) - sum(told)
        lines.append([len(worlds), clusters, *told, mean(each["cpu"] for each in worlds)])
    return lines


def boosted() -> Lines:
    """TripletBoost on USPS by metric and share of the triplets, none wrong."""
    rows = [each for each in kept("boosting_paper.jsonl") if each["data"] == "usps" and each["noise"] == 0]
    found = {(each["metric"], each["share"]): each["accuracy"] for each in rows}
    return [[found[metric, share] for share in (0.01, 0.05, 0.1)] for metric in ("euclidean", "cosine", "cityblock")]


def _of_kernels(experiment: str) -> list[dict]:
    return [each for each in kept("papers/kleindessner.jsonl") if each["key"]["experiment"] == experiment]


def runtimes() -> Lines:
    """Kleindessner & von Luxburg: their seconds and ours."""
    crowd = [each for each in _of_kernels("crowd")[-1]["found"] if "cpu" in each]
    return [[each["paper_seconds"], each["cpu"]] for each in crowd + _of_kernels("runtime")[-1]["found"]]


def purities() -> Lines:
    """Kernel k-means on digits by number of triplets: k1 and k2, none and 30 % wrong, means of ten draws."""
    lines = []
    for asked in (5_000, 10_000, 20_000, 40_000, 80_000):
        lines.append([])
        for wrong in (0.0, 0.3):
            for which in ("k1", "k2"):
                key = {"kernel": which, "wrong": wrong, "asked": asked, "d": 0}
                draws = [e["found"]["purity"] for e in _of_kernels("usps") if key.items() <= e["key"].items()]
                assert len(draws) == 10
                lines[-1].append(mean(draws))
    return lines


# (page, heading, which table of its section): the file of results that the section names, and what makes the lines
TABLES: dict[tuple[str, str, int], tuple[str, Callable[[], Lines]]] = {
    ("README.md", "How fast", 0): ("results.jsonl", how_fast),
    ("measurements.md", "Every stage beside a rival", 0): ("results.jsonl", every_stage),
    ("measurements.md", "Clustering", 0): ("usps_clusters.jsonl", clusterings),
    ("measurements.md", "Clusters, a continuum, or cannot tell", 0): ("cluster_verdicts.jsonl", verdicts),
    ("measurements.md", "Boosting", 0): ("boosting_paper.jsonl", boosted),
    ("measurements.md", "Kernels and classes", 0): ("papers/kleindessner.jsonl", runtimes),
    ("measurements.md", "Kernels and classes", 1): ("papers/kleindessner.jsonl", purities),
}
