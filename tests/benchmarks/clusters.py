"""How often the graded answer about clusters is right: fresh synthetic studies of continua and of groups.

Continua: every shape by every model of answers. Groups, "standard": 83 answers an object, 24 to 72 objects in 2 to 8
groups; "all sizes": 20 to 300 objects in 2 to 12 groups, 20 to 300 answers an object, 3 to 12 standard deviations
apart. Groups have unequal sizes and spreads, in 2 to 5 dimensions. A part of the standard studies is repeated with the
same positions (does the agreement come out as predicted?), with 2 % of the answers removed, and in another order of
objects and answers. No setting was chosen on these seeds.

Results of single studies go to a folder as they are made (--out), so that it can be stopped and resumed; the figures
are printed as tables and kept in results.jsonl.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from stream_engine.clustering import borders, position_fits
from stream_engine.clustering.graded import ClusterAnswer, grade_clusters
from stream_engine.clustering.sentence import CANNOT_TELL, GRADES, SEPARATED
from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import of_answers
from tests.benchmarks.rows import row, timed
from tests.support import cluster_scenarios as scenarios

SEED = 20_261_130
CONTINUA = 10  # of every shape and model
STANDARD, GAPS, AN_OBJECT, MOST_GROUPS = 60, (3.0, 4.0, 5.0, 6.0, 8.0, 12.0), 83, 8
ALL_SIZES = 120
REPEATED = 3  # every third of the standard studies
OBJECTS, ANSWERS, CORRECT, MOST_ANSWERS = (20, 300), (20, 300), (0.8, 0.95), 8_000
REMOVED = 0.02


def continuum(rng: np.random.Generator, shape: str, model: str) -> dict[str, Any]:
    n, count = _size(rng, 150)
    answers = scenarios.answers_about(rng, scenarios.CONTINUA[shape](rng, n), count, model, rng.uniform(*CORRECT))
    return _figures(answers)


def standard(rng: np.random.Generator, gap: float, model: str, again: bool) -> dict[str, Any]:
    k, d = int(rng.integers(2, MOST_GROUPS + 1)), int(rng.integers(2, 6))
    n = int(rng.integers(max(24, 4 * k), 73))
    points, labels = scenarios.groups(rng, n, k, d, gap)
    correct = rng.uniform(*CORRECT)
    answers = scenarios.answers_about(rng, points, AN_OBJECT * n, model, correct)
    found = grade_clusters(answers)
    figures = _figures(answers, labels, found)
    if again:
        other = scenarios.answers_about(rng, points, AN_OBJECT * n, model, correct)
        same_k = borders.cuts(position_fits.fits_of_answers(of_answers(other)).best.points, (found.k or 2,))[0].labels
        kept = answers.of(rng.random(len(answers.rows)) >= REMOVED)
        names, order = rng.permutation(n), rng.permutation(len(answers.rows))
        moved = answers.of(order)._replace(rows=names[answers.rows[order]].astype(np.int32))
        figures |= {
            "agreement": float(adjusted_rand_score(found.labels, same_k)),
            "fewer": grade_clusters(kept).grade,
            "reordered": _as_printed(grade_clusters(moved)) == _as_printed(found),
        }
    return figures


def all_sizes(rng: np.random.Generator, model: str) -> dict[str, Any]:
    k, d = int(rng.integers(2, 13)), int(rng.integers(2, 6))
    n, count = _size(rng, OBJECTS[1], 4 * k)
    points, labels = scenarios.groups(rng, n, k, d, rng.uniform(3, 12))
    return _figures(scenarios.answers_about(rng, points, count, model, rng.uniform(*CORRECT)), labels)


def _size(rng: np.random.Generator, most: int, least: int = OBJECTS[0]) -> tuple[int, int]:
    """Numbers of objects and of answers."""
    n = int(np.exp(rng.uniform(*np.log([max(least, OBJECTS[0]), most]))))
    return n, int(min(n * np.exp(rng.uniform(*np.log(ANSWERS))), MOST_ANSWERS))


def _figures(answers: Answers, labels: np.ndarray | None = None, found: ClusterAnswer | None = None) -> dict[str, Any]:
    seconds = 0.0
    if found is None:
        found, seconds = timed(grade_clusters, answers)
    figures = {
        "objects": answers.n_objects,
        "answers": found.answers,
        "grade": found.grade,
        "reason": found.reason,
        "k": found.k,
        "clearer": found.clearer_than,
        "limit": found.detection_limit,
        "replication": found.replication,
        "seconds": seconds,
    }
    if labels is None:
        return figures
    return figures | {"groups": int(labels.max()) + 1, "ari": float(adjusted_rand_score(labels, found.labels))}


def _as_printed(found: ClusterAnswer) -> tuple:
    return found.grade, found.k, round(found.clearer_than, 2), found.reason


def studies() -> Iterator[tuple[str, Callable[[np.random.Generator], dict[str, Any]]]]:
    """Names and makers of all."""
    models = scenarios.MODELS
    for repeat in range(max(CONTINUA, STANDARD)):
        for model in models:
            for shape in scenarios.CONTINUA:
                if repeat < CONTINUA:
                    yield f"continuum/{shape}/{model}/{repeat}", lambda rng, s=shape, m=model: continuum(rng, s, m)
        for number, gap in enumerate(GAPS):
            model, again = models[(repeat + number) % len(models)], repeat % REPEATED == 0
            yield (
                f"standard/{gap:g}/{model}/{repeat}",
                lambda rng, gap=gap, model=model, again=again: standard(rng, gap, model, again),
            )
        for number in range(repeat, ALL_SIZES, STANDARD):
            model = models[number // STANDARD % len(models)]
            yield f"all sizes//{model}/{number}", lambda rng, model=model: all_sizes(rng, model)


def made(folder: Path) -> dict[str, dict[str, Any]]:
    """All studies, those that the folder has, and the others made."""
    file = folder / "clusters.jsonl"
    kept = dict(json.loads(line) for line in file.read_text().splitlines()) if file.exists() else {}
    with file.open("a") as lines:
        for at, (name, make) in enumerate(studies()):
            if name not in kept:
                kept[name] = make(np.random.default_rng([SEED, at]))
                lines.write(json.dumps([name, kept[name]]) + "\n")
                lines.flush()
    return kept


def separated(each: dict[str, Any]) -> bool:
    return GRADES.index(each["grade"]) >= GRADES.index(SEPARATED)


def _share(values: list[bool]) -> float:
    return float(np.mean(values)) if values else float("nan")


def figures(kept: dict[str, dict[str, Any]]) -> list[dict]:
    """Rows of the results."""
    of = {
        kind: {k: v for k, v in kept.items() if k.split("/")[0] == kind}
        for kind in ("continuum", "standard", "all sizes")
    }
    rows = []

    def add(case: str, values: list, target: str = "", share: bool = True) -> None:
        unit = "share" if share else ""
        rows.append(row("clusters", case, _share(values), unit, target=target, notes=f"{len(values)} studies"))

    every = list(of["continuum"].values())
    add("continua: separated or better", [separated(each) for each in every], "<= .05")
    add("continua: cannot tell", [each["grade"] == CANNOT_TELL for each in every])
    for place, names in ((1, scenarios.CONTINUA), (2, scenarios.MODELS)):
        for name in names:
            own = [separated(v) for k, v in of["continuum"].items() if k.split("/")[place] == name]
            add(f"{name}: separated or better", own, "<= .10")
    for gap in GAPS:
        own = [v for k, v in of["standard"].items() if float(k.split("/")[1]) == gap]
        target = ">= .70" if gap == 6 else ">= .90" if gap >= 8 else ""
        add(f"{gap:g} sd: separated or better", [separated(each) for each in own])
        add(f"{gap:g} sd: right number, separated or better", [_right(e) and separated(e) for e in own], target)
        add(f"{gap:g} sd: right number is clearest", [_right(each) for each in own])
        add(f"{gap:g} sd: cannot tell", [each["grade"] == CANNOT_TELL for each in own])
        add(f"{gap:g} sd: ARI to the groups", [each["ari"] for each in own], share=False)
    wide = list(of["all sizes"].values())
    add("all sizes: separated or better", [separated(each) for each in wide])
    add("all sizes: right number is clearest", [_right(each) for each in wide])
    stated = [each for each in [*of["standard"].values(), *wide] if separated(each)]
    add("stated number wrong by more than one", [abs(each["k"] - each["groups"]) > 1 for each in stated], "<= .03")
    add("stated number wrong", [not _right(each) for each in stated])
    again = [each for each in of["standard"].values() if "agreement" in each and each["k"]]
    add("ARI of two studies", [each["agreement"] for each in again], share=False)
    add("ARI of two studies, predicted", [each["replication"] for each in again], share=False)
    steps = [abs(GRADES.index(each["fewer"]) - GRADES.index(each["grade"])) for each in again]
    add("2 % of the answers removed: more than one grade", [step > 1 for step in steps], "0")
    add("2 % of the answers removed: another grade", [step > 0 for step in steps])
    add("another order of objects and answers: the same answer", [each["reordered"] for each in again], "1")
    seconds = [each["seconds"] for each in kept.values() if each["seconds"]]
    rows.append(
        row("clusters", "an answer, mean", float(np.mean(seconds)), "CPU-s", notes=f"at most {max(seconds):.1f}")
    )
    return rows


def _right(each: dict[str, Any]) -> bool:
    return each["k"] == each["groups"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks clusters", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results of single studies")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    from tests.benchmarks.__main__ import keep, machine, table

    with threadpool_limits(1):
        rows = figures(made(given.out))
    print(table(rows))
    keep(rows, True, machine())
    return 0
