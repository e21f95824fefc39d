"""Which model should be the default? Regret to the best of each set of people's judgements, for every model.

    python -m tests.benchmarks.defaults [--sets NAME ...] [--answers 1000 5000] [--splits 3] [--stream 5000]

`judgements`: a random half of the workers (of the judgements, where nobody is named) is never heard; of the other half
so many answers, whole judgements drawn at random, are a snapshot that every model is fitted to as `predict` does
(`tests.benchmarks.calibration`). `stream`: one comparison of each judgement in a random order, each foretold by river's
`progressive_val_score` before it is learned; `ComparisonClassifier` of each similarity. Regret is the accuracy less
that of the best model of that set, ties one half; beside it that of the log loss. The last lines are means over sets.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.estimators import ComparisonClassifier
from stream_engine.prediction import NoModel
from stream_engine.prediction.probability import MODELS as ALL
from stream_engine.refits import CannotRefit
from stream_engine.statistics.held_out import figures
from stream_engine.statistics.judgements import judgements_of
from tests.benchmarks.calibration import SETS, answer, snapshot_of
from tests.benchmarks.river_curves import curve
from tests.conftest import human_judgements

MODELS = tuple(name for name in ALL if name != "feature_metric")  # nothing to go by here
STREAMED = {"online": None, "adds3": "adds3", "k1": "k1"}  # ComparisonClassifier's default and by name


def halves(events: list[dict], answers: int, rng: np.random.Generator) -> tuple[list[dict], list[dict]]:
    """(to learn from: as many whole judgements as make so many answers, to ask about: of other people)."""
    units = [event.get("worker", str(n)) for n, event in enumerate(events)]
    distinct = sorted(set(units))
    heard = set(rng.permutation(distinct)[: len(distinct) // 2].tolist())
    inside = [event for event, unit in zip(events, units) if unit in heard]
    outside = [event for event, unit in zip(events, units) if unit not in heard]
    some = [inside[i] for i in rng.permutation(len(inside))[:300]]
    each = snapshot_of(some).counters["comparisons"] / len(some)
    chosen = rng.permutation(len(inside))[: max(int(answers / each), 1)]
    asked = rng.permutation(len(outside))[:5000]
    return [inside[i] for i in chosen], [outside[i] for i in asked]


def fitted(events: list[dict], answers: int, splits: int) -> dict[str, tuple[float, float, float]]:
    """model -> (accuracy, log loss, CPU seconds), means over splits; a model that failed has none."""
    got: dict[str, list] = {name: [] for name in MODELS}
    for split in range(splits):
        train, test = map(snapshot_of, halves(events, answers, np.random.default_rng([split, 11])))
        for name in MODELS:
            try:
                said = answer(name, train, test)
            except (CannotRefit, NoModel, RuntimeError):
                continue
            made = figures(said.logits, 1.0, said.times, said.judgement)
            got[name].append((made.accuracy, made.log_loss, said.seconds))
    return {name: tuple(np.mean(found, axis=0)) for name, found in got.items() if len(found) == splits}


def streamed(events: list[dict], size: int) -> dict[str, tuple[float, float, float]]:
    """model -> (accuracy before learning, nan, CPU seconds)."""
    rng = np.random.default_rng(0)
    snapshot = snapshot_of([events[i] for i in rng.permutation(len(events))[: 2 * size]])
    kept = judgements_of(snapshot)
    order = rng.permutation(np.flatnonzero(kept.rows[:, 0] == kept.rows[:, 2]))
    one = order[np.unique(kept.judgement[order], return_index=True)[1]]
    rows = kept.rows[rng.permutation(one)[:size]]
    stream = [(snapshot.objects[a], snapshot.objects[b], snapshot.objects[c]) for a, b, _, c in rows.tolist()]
    out = {}
    for name, similarity in STREAMED.items():
        began = time.process_time()
        model = ComparisonClassifier() if similarity is None else ComparisonClassifier(similarity, refresh=200)
        _, total, _, _ = curve(model, stream, len(stream))
        out[name] = (total[-1], np.nan, time.process_time() - began)
    return out


def told(title: str, found: dict[str, tuple[float, float, float]]) -> dict[str, tuple[float, float]]:
    """Print a set's rows, the best first, and give the regrets."""
    accuracy, log_loss = max(f[0] for f in found.values()), min(f[1] for f in found.values())
    regret = {name: (f[0] - accuracy, f[1] - log_loss) for name, f in found.items()}
    for name, (right, loss, seconds) in sorted(found.items(), key=lambda each: -each[1][0]):
        print(f"{title:28}{name:26}{right:9.3f}{regret[name][0]:+9.3f}{loss:9.3f}{seconds:8.1f}", flush=True)
    return regret


def means(title: str, regrets: list[dict[str, tuple[float, float]]]) -> None:
    """Mean and worst regret of each model that was fitted to every set."""
    everywhere = set.intersection(*map(set, regrets)) if regrets else set()
    for name in sorted(everywhere, key=lambda each: -np.mean([regret[each][0] for regret in regrets])):
        accuracy, loss = np.array([regret[name] for regret in regrets]).T
        of_loss = "" if np.isnan(loss).any() else f"  log loss {loss.mean():+.3f}"
        print(f"{title:28}{name:26}{accuracy.mean():+9.3f} worst {accuracy.min():+.3f}{of_loss}  over {len(regrets)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--answers", nargs="+", type=int, default=[1000, 5000])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--stream", type=int, default=5000, help="comparisons; 0: none")
    given = parser.parse_args()
    if human_judgements() is None:
        parser.error("no human judgements: set STREAM_ENGINE_DATA")
    print(f"{'set':28}{'model':26}{'accuracy':>9}{'regret':>9}{'log loss':>9}{'CPU s':>8}")
    regrets: dict[str, list] = {f"{answers:,} answers": [] for answers in given.answers} | {"stream": []}
    with threadpool_limits(1):
        for name in given.sets:
            events = SETS[name](human_judgements())
            for answers in given.answers:
                found = fitted(events, answers, given.splits)
                regrets[f"{answers:,} answers"].append(told(f"{name}, {answers:,} answers", found))
            if given.stream:
                regrets["stream"].append(told(f"{name}, stream", streamed(events, given.stream)))
    for title, each in regrets.items():
        means(f"mean, {title}", each)


if __name__ == "__main__":
    main()
