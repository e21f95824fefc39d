"""Simulated studies whose truth is known: who is predicted how well, who is flagged, how many groups and dimensions.

    python -m tests.benchmarks participants [TABLE ...] [--studies N] [--first SEED] [--kept]

A study has a seed, from `--first` on, and is a line of `participants.jsonl`, so that a table that was interrupted goes
on at the next seed. A table prints Markdown: of all studies that are kept of a cell, the mean of each figure ± its
standard error, or the largest. `--kept` runs nothing. Tables:

predict     participant A with m answers beside 8,000 of B, who sees the objects elsewhere by `apart`: A's next answers
            by the group's map, by A's answers alone, by a logistic regression of both (`reference`), and as
            `predict --participant A`
thinned     the same of portraits36: m answers each of ten participants who are drawn, all answers of the others
alike       people who see the same: what the models of participants cost
coins       12 participants with 60 answers, one of whom tosses coins: is that one flagged, and who else?
groups      two groups of ten, or one of twenty: is their number found?
dimensions  20 objects, 1,900 answers, of nobody in particular or of 12 participants: which number is chosen, and what
            does it cost beside the best of one to eight?
regions     20 objects: how often regions of 95 % hold the true place, and where they are shown
models      does the refit predict that predicts new answers better, `embedding` or `dimensions`?
size        the same of 1,854 objects (many CPU minutes)
"""

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, logit

from stream_engine.embedding.ellipses import radius
from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.evaluation.participant_model import of_participant
from stream_engine.evaluation.participants import check_participants
from stream_engine.evaluation.probability import best
from stream_engine.refits import dimensions as sparse
from stream_engine.refits import embedding
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from tests.benchmarks.field import loaded, snapshot_of
from tests.support.embedding_worlds import covered
from tests.support.odd_one_out_worlds import odd_one_out, planted

KEPT = Path(__file__).with_name("participants.jsonl")
LAPSE = 0.05
FOLDS = 5  # of the reference
WIDTH = 1.0  # standard deviation of its coefficients about the group's map, (1, 0)
ONE_MAP, DEFAULT = embedding.Params(participants="alike"), embedding.Params()
Figures = dict[str, float]


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
        rows[name] = [f"o{each:04}" for each in rows[name]]
    return rows.assign(unit=np.arange(len(rows)))


def fitted(answers: dict[str, np.ndarray], params: embedding.Params, seed: int = 0) -> tuple[Snapshot, Artifact]:
    """The answers that were counted, and the refit."""
    snapshot = snapshot_of(table_of(answers))
    return snapshot, embedding.refit(snapshot, params, seed, evaluate=False)


def odds_of(made: tuple[Snapshot, Artifact], name: str, test: np.ndarray) -> np.ndarray:
    """Log odds of test answers as this participant answers; 0 about an object that nobody was asked about."""
    snapshot, artifact = made
    number = {each: at for at, each in enumerate(snapshot.objects)}
    ids = np.array([number.get(f"o{each:04}", -1) for each in range(test.max() + 1)])[test]
    p = of_participant(artifact, name)[0](ids[:, [0, 1, 0, 2]].astype(np.int32))
    return logit(np.clip(np.where(np.isnan(p), 0.5, p), 1e-12, 1 - 1e-12))


def losses(odds: np.ndarray) -> np.ndarray:
    """The log loss of each answer."""
    return -np.log(expit(odds))


def accuracy(odds: np.ndarray) -> float:
    """Ties are half right."""
    return float(((odds > 0) + (odds == 0) / 2).mean())


def given_as(artifact: Artifact) -> embedding.Params:
    """The setting that was chosen, and one map."""
    d, kernel, ridge = (artifact.report[name] for name in ("d", "kernel", "ridge"))
    return embedding.Params(dimensions=d, kernel=kernel, ridge=ridge, participants="alike")


def reference(mine: np.ndarray, others: dict[str, np.ndarray], group: Artifact, own: Artifact) -> np.ndarray:
    """(2,) coefficients of the log odds of the group's map and of A's, by maps of four fifths of A's answers that
    predict the rest: logistic regression, with a normal prior about the group's map."""
    parts, held = np.array_split(mine, FOLDS), []
    for out, part in enumerate(parts):
        rest = np.concatenate([each for at, each in enumerate(parts) if at != out])
        both = (others | {"a": rest}, given_as(group)), ({"a": rest}, given_as(own))
        held.append(np.stack([odds_of(fitted(*each), "a", part) for each in both], axis=1))
    odds = np.concatenate(held)

    def cost(w: np.ndarray) -> float:
        return float(losses(odds @ w).sum() + ((w - (1, 0)) ** 2).sum() / (2 * WIDTH**2))

    return minimize(cost, np.array([1.0, 0.0])).x


def compared(odds: dict[str, np.ndarray]) -> Figures:
    """Accuracy and log loss of each, and what ours is worse than the others."""
    figures: Figures = {}
    for name, each in odds.items():
        figures |= {f"{name} accuracy": accuracy(each), f"{name} log loss": float(losses(each).mean())}
    for name in odds.keys() - {"ours"}:
        gap = losses(odds["ours"]) - losses(odds[name])
        half = gap.std() / np.sqrt(len(gap)) / 2
        figures |= {f"worse than {name}": float(gap.mean()), f"by half an error, {name}": float(gap.mean() > half)}
    return dict(sorted(figures.items()))


def predict(rng: np.random.Generator, m: int, apart: float) -> Figures:
    """Maps of 25 objects in three dimensions: A has other weights of the axes, and sees every object elsewhere."""
    b = rng.normal(size=(25, 3)) * 0.9
    a = (b + apart * rng.normal(size=b.shape)) * np.exp(apart * rng.normal(size=3))
    mine, test, others = asked(rng, a, m), asked(rng, a, 5600), {"b": asked(rng, b, 8000)}
    both = others | {"a": mine}
    group, alone, ours = fitted(both, ONE_MAP), fitted({"a": mine}, DEFAULT), fitted(both, DEFAULT)
    odds = {name: odds_of(made, "a", test) for name, made in (("group", group), ("alone", alone), ("ours", ours))}
    weights = reference(mine, others, group[1], alone[1])
    return compared(odds | {"stack": weights[0] * odds["group"] + weights[1] * odds["alone"]})


def thinned(rng: np.random.Generator, m: int) -> Figures:
    """Ten of the 39 participants of portraits36."""
    table = loaded("portraits36")
    number = {name: at for at, name in enumerate(np.unique(table[["anchor", "near", "far"]].to_numpy().ravel()))}
    rows = table[["anchor", "near", "far"]].map(number.__getitem__).to_numpy()
    answers = {str(name): rng.permutation(rows[at]) for name, at in table.groupby("worker").indices.items()}
    few = rng.choice(list(answers), 10, replace=False).tolist()
    test = {name: answers[name][m:] for name in few}
    answers |= {name: answers[name][:m] for name in few}
    group, ours = fitted(answers, ONE_MAP), fitted(answers, DEFAULT)
    alone = {name: fitted({name: answers[name]}, DEFAULT) for name in few}
    made = {"group": dict.fromkeys(few, group), "alone": alone, "ours": dict.fromkeys(few, ours)}
    return compared(
        {key: np.concatenate([odds_of(each[name], name, test[name]) for name in few]) for key, each in made.items()}
    )


def alike(rng: np.random.Generator, people: int, each: int) -> Figures:
    """20 objects in two dimensions."""
    points = rng.normal(size=(20, 2))
    answers = {f"p{who:02}": asked(rng, points, each) for who in range(people)}
    test, made, seconds = asked(rng, points, 4000), [], []
    for params in (ONE_MAP, DEFAULT):
        begin = time.process_time()
        made.append(fitted(answers, params))
        seconds.append(time.process_time() - begin)
    loss = [np.mean([losses(odds_of(one, name, test)).mean() for name in list(answers)[:10]]) for one in made]
    who = made[1][1].report["individual_differences"]["who"]
    return {
        "log loss more": float(loss[1] - loss[0]),
        "most": float(loss[1] - loss[0]),
        "somebody named": float(len(who) > 0),
        "CPU s": seconds[1],
        "CPU s, one map": seconds[0],
    }


def coins(rng: np.random.Generator) -> Figures:
    """20 objects in two dimensions."""
    points = 0.7 * rng.normal(size=(20, 2))
    answers = {f"p{who:02}": asked(rng, points, 60, 1.0 if who == 0 else LAPSE) for who in range(12)}
    snapshot, figures = snapshot_of(table_of(answers)), {}
    made = Published(snapshot, {"embedding": embedding.refit(snapshot, DEFAULT, 0)})
    for by, published in (("", made), (", AddS-3", Published(snapshot, {}))):
        found = check_participants(published, False)
        assert found is not None
        flagged = [bool(reason) for reason in found.reasons]
        figures |= {f"flagged{by}": float(flagged[0]), f"honest flagged{by}": float(np.mean(flagged[1:]))}
        if not by:
            figures["power told"] = found.power or 0.0
    return figures


def groups(rng: np.random.Generator, planted: int) -> Figures:
    """150 answers each about 20 objects; groups weigh two axes the other way round."""
    points, answers = rng.normal(size=(20, 2)), {}
    for who in range(20):
        first = 1.0 if planted == 1 else 1.7 if who % 2 else 0.4
        logs = np.log([first, 2.1 - first]) + 0.2 * rng.normal(size=2)
        answers[f"p{who:02}"] = asked(rng, points * np.exp(logs / 2), 150)
    count = int(fitted(answers, DEFAULT)[1].report["individual_differences"]["groups"]["count"])
    return {"right": float(count == planted), "most": float(count)}


def dimensions(rng: np.random.Generator, d: int, people: int) -> Figures:
    """One to eight dimensions and the chosen number, each with the chosen kernel and ridge and one lapse rate, by test
    answers."""
    points = 0.8 * rng.normal(size=(20, d))
    answers = {f"p{who:02}" if people else "": asked(rng, points, 1900 // max(people, 1)) for who in range(people or 1)}
    test = asked(rng, points, 8000)
    report = fitted(answers, DEFAULT)[1].report
    chosen, made = int(report["d"]), {}
    for each in {*range(1, 9), chosen}:
        given = embedding.Params(each, report["kernel"], report["ridge"], "all")
        made[each] = float(losses(odds_of(fitted(answers, given), "", test)).mean())
    more = made[chosen] - min(made.values())
    return {
        "chosen": chosen,
        "at most one too many": float(chosen <= d + 1),
        "too few": float(chosen < d),
        "log loss more than the best": more,
        "most": more,
        "within .003": float(more <= 0.003),
    }


def regions(rng: np.random.Generator, d: int, each: int) -> Figures:
    """The true places, moved and turned onto the map in as many dimensions as that has."""
    points = rng.normal(size=(20, d))
    _, artifact = fitted({"": asked(rng, points, 20 * each, 0.1)}, DEFAULT)
    found = np.asarray(artifact.arrays["X"])
    covariance = np.asarray(artifact.arrays["covariance"], float)
    within = float(covered(points, found, covariance, radius(found.shape[1])).mean())
    shown = not artifact.report["no_regions"]
    return {
        "chosen": float(artifact.report["d"]),
        "coverage": within,
        "shown": float(shown),
        "coverage where shown": within if shown else np.nan,
    }


def models(rng: np.random.Generator, objects: int, responses: int, sparse_truth: bool) -> Figures:
    """Odd-one-out responses by sparse weights, or triplets by places in three dimensions."""
    if sparse_truth:
        weights = planted(int(rng.integers(1 << 31)), objects, max(objects // 30, 5))
        told, test = (odd_one_out(rng, weights, m) for m in (responses, 20_000))
        table = table_of({"": np.concatenate([told, told[:, [1, 0, 2]]])})
        table, test = table.assign(unit=table.unit % responses), np.concatenate([test, test[:, [1, 0, 2]]])
    else:
        points = rng.normal(size=(objects, 3))
        table, test = table_of({"": asked(rng, points, responses)}), asked(rng, points, 20_000)
    snapshot = snapshot_of(table)
    artifacts = {
        "embedding": embedding.refit(snapshot, DEFAULT, 0),
        "dimensions": sparse.refit(snapshot, sparse.Params(), 0),
    }
    number = {each: at for at, each in enumerate(snapshot.objects)}
    ids = np.array([number.get(f"o{each:04}", -1) for each in range(objects)])[test][:, [0, 1, 0, 2]].astype(np.int32)
    figures: Figures = {}
    for name, one in artifacts.items():
        model = best(Published(snapshot, {name: one}))
        assert model is not None and model.log_loss is not None
        p = np.nan_to_num(model.probability(ids), nan=0.5)
        figures |= {name: float(-np.log(np.clip(p, 1e-12, 1)).mean()), f"{name}, told": model.log_loss}
    used = best(Published(snapshot, artifacts))
    assert used is not None
    return figures | {"the better predicts": float(figures[used.name] == min(figures[name] for name in artifacts))}


class Table(NamedTuple):
    """A study of a generator and a cell; how many studies of each cell are kept."""

    study: Callable[..., Figures]
    cells: list[tuple[dict[str, float], int]]


TABLES = {
    "predict": Table(
        predict,
        [
            ({"m": m, "apart": apart}, studies)
            for apart in (0.5, 0.2)
            for m, studies in ((100, 12), (300, 8), (1000, 5), (3000, 4))
        ],
    ),
    "thinned": Table(thinned, [({"m": m}, 2) for m in (50, 100, 300)]),
    "alike": Table(
        alike,
        [({"people": people, "each": each}, 10) for people, each in ((2, 300), (10, 50), (40, 50), (20, 300))],
    ),
    "coins": Table(coins, [({}, 200)]),
    "groups": Table(groups, [({"planted": 1}, 50), ({"planted": 2}, 50)]),
    "dimensions": Table(dimensions, [({"d": d, "people": people}, 25) for people in (0, 12) for d in (1, 2, 3, 4)]),
    "regions": Table(regions, [({"d": d, "each": each}, 12) for d in (1, 2, 3, 4, 5) for each in (20, 50, 100)]),
    "models": Table(models, [({"objects": 60, "responses": 6_000, "sparse_truth": each}, 2) for each in (1, 0)]),
    "size": Table(models, [({"objects": 1854, "responses": 300_000, "sparse_truth": 1}, 1)]),
}


def summary(rows: list[dict]) -> str:
    """Cells of a line: the mean of each figure ± its standard error; "most": the largest."""
    told = [f"{value:g}" for value in rows[0]["cell"].values()] + [f"{len(rows)}"]
    for name in rows[0]["figures"]:
        values = np.array([row["figures"][name] for row in rows], float)
        values = values[np.isfinite(values)]
        if name == "most" or len(values) < 2:
            told.append(f"{values.max():.4f}" if len(values) else "")
        else:
            told.append(f"{values.mean():.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}")
    return f"| {' | '.join(told)} |"


def kept(name: str, cell: dict[str, float]) -> dict[int, dict]:
    """The studies of a cell that were run, by their seed."""
    rows = map(json.loads, KEPT.read_text().splitlines()) if KEPT.exists() else ()
    return {row["seed"]: row for row in rows if row["table"] == name and row["cell"] == cell}


def main(arguments: list[str] | None = None) -> int:
    """Run the studies that are not kept, and print tables."""
    parser = argparse.ArgumentParser(prog="participants", description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--studies", type=int, help="how many of each cell; default: as many as the manual has")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first study")
    parser.add_argument("--kept", action="store_true", help="run nothing, print what is kept")
    told = parser.parse_args(arguments)
    for name in set(told.tables) - TABLES.keys():
        parser.error(f"got {name}, expected of {', '.join(TABLES)}")
    for name in told.tables or TABLES:
        head = ""
        for cell, studies in TABLES[name].cells:
            done = kept(name, cell)
            begin = time.process_time()
            for seed in range(told.first, told.first + (0 if told.kept else told.studies or studies)):
                if seed in done:
                    continue
                place = zlib.crc32(json.dumps([name, cell]).encode())
                figures = TABLES[name].study(np.random.default_rng([place, seed]), **cell)
                done[seed] = {"table": name, "cell": cell, "seed": seed, "figures": figures}
                with open(KEPT, "a") as file:
                    file.write(json.dumps(done[seed], default=float) + "\n")
            if not done:
                continue
            rows = [done[seed] for seed in sorted(done)]
            if not head:
                head = f"| {' | '.join((*cell, 'studies', *rows[0]['figures']))} |"
                print(f"\n{name}\n\n{head}\n|{'---|' * (head.count('|') - 1)}", flush=True)
            print(summary(rows), flush=True)
            print(f"{name} {cell}: {time.process_time() - begin:.0f} CPU s", file=sys.stderr, flush=True)
    return 0
