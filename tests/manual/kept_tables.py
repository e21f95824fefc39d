"""The tables of the manual whose results are kept beside the benchmarks: what each of their lines says, made anew of
the kept lines. A line is the figures of its cells in order, without those of the first cell."""

import json
import re
from collections.abc import Callable
from functools import cache
from statistics import mean
from typing import NamedTuple

from tests.benchmarks.cluster_verdicts import ANSWERS, CONTINUA
from tests.conftest import ROOT

KEPT = "tests/benchmarks"
CLUSTERS = "Cluster verdicts"
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


def _verdicts() -> tuple[list[dict], list[dict], list[dict]]:
    """The studies of continua, of groups, and the pairs of studies."""
    every = kept("cluster_verdicts.jsonl")
    single = [each for each in every if "true" not in each]
    return (
        [each for each in single if not each["apart"]],
        [each for each in single if each["apart"]],
        [each for each in every if "true" in each],
    )


def _told(studies: list[dict]) -> int:
    return sum(each["verdict"].endswith(" clusters") for each in studies)


def false_clusters() -> Lines:
    """Studies with clusters, of all, by kind of continuum and by model of answers."""
    continua, _, _ = _verdicts()
    lines = []
    for kind in (*CONTINUA, None):
        line: list[float] = []
        for model in (*ANSWERS, None):
            own = [each for each in continua if kind in (None, each["kind"]) and model in (None, each["answers"])]
            line += [_told(own), len(own)]
        lines.append(line)
    return lines


def found_groups() -> Lines:
    """Studies; clusters with the right number, with another number, a continuum, cannot tell; right k whatever is said,
    adjusted Rand index where clusters are said, the oracle's right k; by distance."""
    _, groups, _ = _verdicts()
    lines: Lines = []
    for apart in sorted({each["apart"] for each in groups}):
        own = [each for each in groups if each["apart"] == apart]
        right = [each for each in own if each["k"] == int(each["kind"])]
        told, found = _told(own), _told(right)
        unknown = sum(each["verdict"] == "cannot tell" for each in own)
        agreement = [mean(each["ari"] for each in own if each["ari"] is not None)] if told else []
        oracle = sum(each["oracle"] == int(each["kind"]) for each in own)
        lines.append(
            [len(own), found, told - found, len(own) - told - unknown, unknown, len(right), *agreement, oracle]
        )
    return lines


def agreement() -> Lines:
    """Pairs of studies, how well they agree, and what one says."""
    _, _, pairs = _verdicts()
    lines = []
    for kind in dict.fromkeys((each["kind"], each["apart"]) for each in pairs):
        own = [each for each in pairs if (each["kind"], each["apart"]) == kind]
        lines.append([len(own), mean(each["true"] for each in own), mean(each["said"] for each in own)])
    return lines


# (page, heading, which table of its section): the file of results that the section names, and what makes the lines
TABLES: dict[tuple[str, str, int], tuple[str, Callable[[], Lines]]] = {
    ("README.md", "Performance", 0): ("results.jsonl", how_fast),
    ("measurements.md", "Benchmarks of all stages", 0): ("results.jsonl", every_stage),
    ("measurements.md", CLUSTERS, 0): ("cluster_verdicts.jsonl", false_clusters),
    ("measurements.md", CLUSTERS, 1): ("cluster_verdicts.jsonl", found_groups),
    ("measurements.md", CLUSTERS, 2): ("cluster_verdicts.jsonl", agreement),
}
