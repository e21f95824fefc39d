"""Simulated studies whose truth is known: who is predicted how well, who is flagged, how many groups and dimensions.

    python -m tests.benchmarks participants [TABLE ...] [--studies N] [--first SEED]

Every study has a seed of its own, from `--first` on. A table prints Markdown and appends its rows to
`participants.jsonl`. Tables:

predict     participant A with m answers beside 8,000 of B, who sees the objects differently: accuracy and log loss of
            A's next answers by the group's map, by A's answers alone, and as `predict --participant A` answers
alike       people who see the same: what the models of participants cost
coins       12 participants with 60 answers, one of whom tosses coins: how many are flagged
groups      two groups of ten, or one of twenty: how many are found
dimensions  20 objects, 1,900 answers, two to four dimensions: which number is chosen, and what it costs
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.evaluation.participants import checked
from stream_engine.evaluation.probability import of_participant
from stream_engine.refits import embedding
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.benchmarks.field import snapshot_of

KEPT = Path(__file__).with_name("participants.jsonl")
LAPSE = 0.05
Row = dict[str, float | int | str]


def asked(rng: np.random.Generator, points: np.ndarray, m: int, lapse: float = LAPSE) -> np.ndarray:
    """(m, 3) anchor, near, far of random questions, by STE."""
    three = np.argsort(rng.random((m, len(points))), axis=1)[:, :3]
    rows = three[:, [0, 1, 0, 2]].astype(np.int32)
    turned = rng.random(m) > probability(margins(points, rows), lapse)
    three[turned] = three[turned][:, [0, 2, 1]]
    return three


def table_of(answers: dict[str, np.ndarray]) -> pd.DataFrame:
    """What `field.snapshot_of` takes; every answer is a response."""
    rows = pd.concat(
        [pd.DataFrame(each, columns=["anchor", "near", "far"]).assign(worker=name) for name, each in answers.items()],
        ignore_index=True,
    )
    for name in ("anchor", "near", "far"):
        rows[name] = [f"o{each:03}" for each in rows[name]]
    return rows.assign(unit=np.arange(len(rows)))


def scores(snapshot: Snapshot, artifact: Artifact, name: str, test: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Accuracy, log loss and the losses of test answers as this participant answers."""
    number = {each: at for at, each in enumerate(snapshot.objects)}
    ids = np.array([number.get(f"o{each:03}", -1) for each in range(test.max() + 1)])[test]
    p = of_participant(artifact, name)[0](ids[:, [0, 1, 0, 2]].astype(np.int32))
    p = np.where(np.isnan(p), 0.5, p)
    loss = -np.log(np.maximum(p, 1e-12))
    return float(((p > 0.5) + (p == 0.5) / 2).mean()), float(loss.mean()), loss


def two_maps(rng: np.random.Generator, n: int = 25, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Two maps: other weights of the axes, and every object elsewhere by half of its spread."""
    one = rng.normal(size=(n, d)) * 0.9
    return one, (one + 0.5 * rng.normal(size=(n, d))) * np.exp(0.5 * rng.normal(size=d))


def predict(seeds: range) -> Iterator[Row]:
    """The table of two participants."""
    for m in (100, 300, 1000, 3000):
        made: dict[str, list[tuple[float, float]]] = {"group": [], "alone": [], "ours": []}
        error: dict[str, list[float]] = {"group": [], "alone": []}
        for seed in seeds:
            rng = np.random.default_rng([1, m, seed])
            b, a = two_maps(rng)
            mine, test = asked(rng, a, m), asked(rng, a, 5600)
            both = snapshot_of(table_of({"a": mine, "b": asked(rng, b, 8000)}))
            own = snapshot_of(table_of({"a": mine}))
            fits = {
                "group": (both, embedding.Params(participants="alike")),
                "alone": (own, embedding.Params()),
                "ours": (both, embedding.Params()),
            }
            losses = {}
            for name, (snapshot, params) in fits.items():
                artifact = embedding.refit(snapshot, params, seed, evaluate=False)
                accuracy, loss, losses[name] = scores(snapshot, artifact, "a", test)
                made[name].append((accuracy, loss))
            for name in error:
                gap = losses["ours"] - losses[name]
                error[name].append(float(gap.mean() / max(gap.std() / np.sqrt(len(gap)), 1e-12)))
        row: Row = {"m": m, "studies": len(seeds)}
        for name, each in made.items():
            row |= {f"{name} accuracy": float(np.mean(each, 0)[0]), f"{name} log loss": float(np.mean(each, 0)[1])}
        for name, gaps in error.items():
            row[f"worse than {name} by > .5 SE"] = int((np.array(gaps) > 0.5).sum())
        yield row


def alike(seeds: range) -> Iterator[Row]:
    """People who see the same map."""
    for people, each in ((2, 300), (10, 50), (40, 50), (20, 300)):
        gaps, named, seconds = [], 0, np.zeros(2)
        for seed in seeds:
            rng = np.random.default_rng([2, people, each, seed])
            points = rng.normal(size=(20, 2))
            answers = {f"p{who:02}": asked(rng, points, each) for who in range(people)}
            snapshot, test, made = snapshot_of(table_of(answers)), asked(rng, points, 4000), []
            for at, params in enumerate((embedding.Params(participants="alike"), embedding.Params())):
                begin = time.process_time()
                artifact = embedding.refit(snapshot, params, seed, evaluate=False)
                seconds[at] += time.process_time() - begin
                made.append(np.mean([scores(snapshot, artifact, name, test)[1] for name in list(answers)[:10]]))
            named += len(artifact.report["individual_differences"]["who"]) > 0
            gaps.append(made[1] - made[0])
        yield {
            "participants": people,
            "answers each": each,
            "studies": len(seeds),
            "log loss more": float(np.mean(gaps)),
            "worst": float(np.max(gaps)),
            "studies with somebody named": int(named),
            "CPU s": float(seconds[1] / len(seeds)),
            "CPU s, one map": float(seconds[0] / len(seeds)),
        }


def coins(seeds: range) -> Iterator[Row]:
    """One of twelve participants tosses coins; all give 60 answers about 20 objects in two dimensions."""
    flagged, by_adds, honest, honest_by_adds, told = 0, 0, 0, 0, []
    for seed in seeds:
        rng = np.random.default_rng([3, seed])
        points = 0.7 * rng.normal(size=(20, 2))
        answers = {f"p{who:02}": asked(rng, points, 60, 1.0 if who == 0 else LAPSE) for who in range(12)}
        snapshot = snapshot_of(table_of(answers))
        made = Published(snapshot, {"embedding": embedding.refit(snapshot, embedding.Params(), seed)})
        for at, published in enumerate((made, Published(snapshot, {}))):
            found = checked(published, False)
            assert found is not None
            who = [bool(reason) for reason in found.reasons]
            if at == 0:
                flagged, honest = flagged + who[0], honest + sum(who[1:])
                told.append(found.noticed or 0.0)
            else:
                by_adds, honest_by_adds = by_adds + who[0], honest_by_adds + sum(who[1:])
    yield {
        "studies": len(seeds),
        "coin-tossers flagged": flagged / len(seeds),
        "power told": float(np.mean(told)),
        "honest flagged": honest / (11 * len(seeds)),
        "coin-tossers flagged, AddS-3": by_adds / len(seeds),
        "honest flagged, AddS-3": honest_by_adds / (11 * len(seeds)),
    }


def groups(seeds: range) -> Iterator[Row]:
    """Two groups of ten who weigh two axes the other way round, or one group; 150 answers each."""
    for planted in (1, 2):
        counts = []
        for seed in seeds:
            rng = np.random.default_rng([4, planted, seed])
            points, answers = rng.normal(size=(20, 2)), {}
            for who in range(20):
                first = 1.0 if planted == 1 else 1.7 if who % 2 else 0.4
                logs = np.log([first, 2.1 - first]) + 0.2 * rng.normal(size=2)
                answers[f"p{who:02}"] = asked(rng, points * np.exp(logs / 2), 150)
            artifact = embedding.refit(snapshot_of(table_of(answers)), embedding.Params(), seed, evaluate=False)
            counts.append(int(artifact.report["individual_differences"]["groups"]["count"]))
        right = np.mean(np.array(counts) == planted)
        yield {"planted": planted, "studies": len(seeds), "right": float(right), "most found": max(counts)}


def dimensions(seeds: range) -> Iterator[Row]:
    """20 objects, 1,900 answers."""
    for d in (2, 3, 4):
        chosen, more = [], []
        for seed in seeds:
            rng = np.random.default_rng([5, d, seed])
            points = 0.8 * rng.normal(size=(20, d))
            snapshot, test, losses = snapshot_of(table_of({"": asked(rng, points, 1900)})), asked(rng, points, 8000), []
            for given in (None, d):
                params = embedding.Params(dimensions=given)
                artifact = embedding.refit(snapshot, params, seed, evaluate=False)
                losses.append(scores(snapshot, artifact, "", test)[1])
                if given is None:
                    chosen.append(int(artifact.report["d"]))
            more.append(losses[0] - losses[1])
        off = np.array(chosen) - d
        yield {
            "dimensions": d,
            "studies": len(seeds),
            "at most one too many": float((off <= 1).mean()),
            "too few": float((off < 0).mean()),
            "mean chosen": float(np.mean(chosen)),
            "log loss more than with d given": float(np.mean(more)),
            "worst": float(np.max(more)),
        }


TABLES: dict[str, tuple[Callable[[range], Iterator[Row]], int]] = {
    "predict": (predict, 5),
    "alike": (alike, 10),
    "coins": (coins, 20),
    "groups": (groups, 10),
    "dimensions": (dimensions, 10),
}


def main(arguments: list[str] | None = None) -> int:
    """Print tables and keep their rows."""
    parser = argparse.ArgumentParser(prog="participants", description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--studies", type=int, help="how many; default: as many as the kept results have")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first study")
    told = parser.parse_args(arguments)
    for name in told.tables or TABLES:
        made, studies = TABLES[name]
        begin, head = time.process_time(), False
        for row in made(range(told.first, told.first + (told.studies or studies))):
            if not head:
                print(f"\n| {' | '.join(row)} |\n|{'---|' * len(row)}", flush=True)
                head = True
            print(
                "| " + " | ".join(f"{x:.4f}" if isinstance(x, float) else f"{x:,}" for x in row.values()) + " |",
                flush=True,
            )
            with open(KEPT, "a") as kept:
                kept.write(json.dumps({"table": name, "first": told.first, **row}) + "\n")
        print(f"{name}: {time.process_time() - begin:.0f} CPU s", flush=True)
    return 0
