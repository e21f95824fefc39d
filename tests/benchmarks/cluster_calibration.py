"""The table of `clustering/clearness.json`: how clear groups are in continua, through the same fits as in a study.

Every shape of continuum by every model of answers, with numbers of objects, answers and errors drawn evenly on a log
scale. A table of its own is for positions that are given: shapes in more dimensions, with errors. Then regressions;
quantiles over all continua, moved up until at most a tenth of any shape is above the level of a twentieth of all; and
the power, by groups at many distances.

Results of single studies go to a folder as they are made (--out), so that it can be stopped and resumed.
"""

import argparse
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering import borders, clearness, position_fits
from stream_engine.clustering import position_errors as errors
from stream_engine.embedding import descent, fit, gradient, starts
from stream_engine.embedding.questions import of_answers
from tests.benchmarks.papers.digests import digest
from tests.conftest import ROOT
from tests.support import cluster_scenarios as scenarios

TABLE = ROOT / "stream_engine" / "clustering" / clearness.TABLE
SEED = 48
REPEATS = {clearness.FITS: 36, clearness.POSITIONS: 80}  # of every shape (and of every model, for fits)
OBJECTS, ANSWERS, CORRECT = (12, 120), (20, 200), (0.78, 0.95)
MOST_ANSWERS = 12_000
LARGE, OF_LARGE = (120, 300), 6  # objects of more studies of every shape and model, and how many
GIVEN_OBJECTS, ERROR = (12, 500), (1e-3, 0.4)
GIVEN_DIMENSIONS = (1, 2, 3, 5, 8, 12, 20)
A_GROUP = 8  # objects an average group has at least, for the power
GAPS = (3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0)
GROUPS = {clearness.FITS: 24, clearness.POSITIONS: 40}  # studies of every gap
LEVELS = (
    0.0,
    0.05,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.85,
    0.9,
    0.925,
    0.95,
    0.96,
    0.97,
    0.98,
    0.985,
    0.99,
    0.995,
)
OF_ALL, OF_ANY = 0.95, 0.9
RIDGE = 1e-2  # of the logistic regression


def rests_on() -> str:
    """The digest of the code that the table depends on."""
    return digest([borders, clearness, position_fits, errors, fit, descent, gradient, starts, scenarios])


class Trial(NamedTuple):
    """One study."""

    kind: str  # shape of the continuum; "" for groups
    gap: float
    n: int
    compared: tuple[clearness.Candidates, ...]  # without their labels but the first
    answers: int = 0  # 0: given positions


def continuum(rng: np.random.Generator, shape: str, model: str, objects: tuple[int, int] = OBJECTS) -> Trial:
    n, count, correct = _size(rng, objects)
    return _fitted(shape, 0.0, rng, scenarios.CONTINUA[shape](rng, n), count, model, correct)


def grouped(rng: np.random.Generator, gap: float, model: str) -> Trial:
    n, count, correct = _size(rng)
    points, _ = _groups(rng, n, gap, int(rng.integers(2, 6)))
    return _fitted("", gap, rng, points, count, model, correct)


def given_continuum(rng: np.random.Generator, shape: str) -> Trial:
    n, error = int(_log_uniform(rng, GIVEN_OBJECTS)), _log_uniform(rng, ERROR)
    points = scenarios.CONTINUA[shape](rng, n)
    least = points.shape[1]
    d = int(rng.choice([each for each in GIVEN_DIMENSIONS if each >= least]))
    if shape.startswith("gaussian"):
        points = rng.normal(size=(n, d)) * (1 + np.arange(d)) ** -rng.uniform(0, 1)
    return _given(shape, 0.0, rng, points, d, error)


def given_groups(rng: np.random.Generator, gap: float) -> Trial:
    n, error = int(_log_uniform(rng, GIVEN_OBJECTS)), _log_uniform(rng, ERROR)
    d = int(rng.choice(GIVEN_DIMENSIONS[1:]))
    points, _ = _groups(rng, n, gap, d)
    return _given("", gap, rng, points, d, error)


def _size(rng: np.random.Generator, objects: tuple[int, int] = OBJECTS) -> tuple[int, int, float]:
    n = int(_log_uniform(rng, objects))
    return n, int(min(n * _log_uniform(rng, ANSWERS), MOST_ANSWERS)), float(rng.uniform(*CORRECT))


def _groups(rng: np.random.Generator, n: int, gap: float, d: int) -> tuple[np.ndarray, np.ndarray]:
    return scenarios.groups(rng, n, int(rng.integers(2, max(2, min(8, n // A_GROUP)) + 1)), d, gap)


def _log_uniform(rng: np.random.Generator, limits: tuple[float, float]) -> float:
    return float(np.exp(rng.uniform(*np.log(limits))))


def _fitted(kind: str, gap: float, rng, points: np.ndarray, count: int, model: str, correct: float) -> Trial:
    fits = position_fits.fits_of_answers(of_answers(scenarios.answers_about(rng, points, count, model, correct)))
    return _trial(kind, gap, fits.candidates(), int(fits.questions.answers))


def _given(kind: str, gap: float, rng, points: np.ndarray, d: int, error: float) -> Trial:
    """Positions in d dimensions with errors that are this share of their variance."""
    n = len(points)
    wide = np.zeros((n, d))
    wide[:, : points.shape[1]] = points
    size = float(wide.var(axis=0).sum()) * error / (1 - error)
    return _trial(kind, gap, [clearness.candidates(wide + rng.normal(size=(n, d)) * np.sqrt(size / d), 1 - error)])


def _trial(kind: str, gap: float, compared: list[clearness.Candidates], answers: int = 0) -> Trial:
    n = len(compared[0].labels[0])
    return Trial(kind, gap, n, tuple(each._replace(labels=each.labels[:1]) for each in compared), answers)


def trials(of: str) -> Iterator[tuple[tuple, Callable[[np.random.Generator], Trial]]]:
    """Keys and makers of all studies of a table, in an order in which every beginning is balanced."""
    models = scenarios.MODELS if of == clearness.FITS else ("",)
    for repeat in range(max(REPEATS[of], GROUPS[of])):
        for at, model in enumerate(models):
            for number, shape in enumerate(scenarios.CONTINUA):
                if repeat < REPEATS[of]:
                    make = given_continuum if of == clearness.POSITIONS else continuum
                    more = (shape,) if of == clearness.POSITIONS else (shape, model)
                    yield (0, number, at, repeat), lambda rng, make=make, more=more: make(rng, *more)
                if repeat < OF_LARGE and of == clearness.FITS:
                    more = (shape, model, LARGE)
                    yield (2, number, at, repeat), lambda rng, more=more: continuum(rng, *more)
        for number, gap in enumerate(GAPS):
            if repeat < GROUPS[of]:
                make = given_groups if of == clearness.POSITIONS else grouped
                more = (gap,) if of == clearness.POSITIONS else (gap, models[(repeat + number) % len(models)])
                yield (1, number, 0, repeat), lambda rng, make=make, more=more: make(rng, *more)


def studies(of: str, folder: Path) -> list[Trial]:
    """All of them, those that the folder has from the same code, and the others made."""
    file = folder / f"{of}-{rests_on()}.pickle"
    kept: dict[tuple, Trial] = {}
    if file.exists():
        with file.open("rb") as lines:
            while True:
                try:
                    key, trial = pickle.load(lines)
                    kept[key] = trial
                except EOFError:
                    break
    asked = []
    with file.open("ab") as lines:
        for key, make in trials(of):
            if key not in kept:
                kept[key] = make(np.random.default_rng([SEED, of == clearness.FITS, *key]))
                pickle.dump((key, kept[key]), lines)
                lines.flush()
            asked.append(kept[key])
    return asked


def table_of(made: list[Trial]) -> dict[str, list]:
    """The surfaces, see `clearness`."""
    one_fit = [(each, one) for each in made if each.kind for one in each.compared]
    every = np.concatenate([clearness.terms_of_groups(one.k, each.n, one.d, one.precision) for each, one in one_fit])
    root = np.concatenate([np.full(len(one.k), 1 / np.sqrt(len(one.k))) for _, one in one_fit])
    features = np.concatenate([one.features for _, one in one_fit])
    mean = np.stack([_regression(every, column, root) for column in features.T])
    rest = features - every @ mean.T
    deviation = np.stack([_log_deviation(every, column, root) for column in rest.T])
    own = np.stack([clearness.terms_of_study(each.compared) for each in made])

    def largest(each: Trial) -> float:
        z = [
            clearness.standardise(
                one.features, clearness.terms_of_groups(one.k, each.n, one.d, one.precision), mean, deviation
            )
            for one in each.compared
        ]
        return float((clearness.weights(each.compared) @ np.array(z)).max())

    top = np.array([largest(each) for each in made])
    null = np.array([bool(each.kind) for each in made])
    largest_mean = _regression(own[null], top[null], np.ones(null.sum()))
    largest_deviation = _log_deviation(own[null], top[null] - own[null] @ largest_mean, np.ones(null.sum()))
    standard = (top - own @ largest_mean) / np.exp(own @ largest_deviation)
    quantiles = np.quantile(standard[null], LEVELS)
    limit = float(np.quantile(standard[null], OF_ALL))
    kinds = np.array([each.kind for each in made])
    of_shapes = {shape: float(np.quantile(standard[kinds == shape], OF_ANY)) for shape in scenarios.CONTINUA}
    limit_of_any = max(limit, *of_shapes.values())
    quantiles[np.array(LEVELS) >= 0.5] += limit_of_any - limit
    gap = np.log([max(each.gap, 1.0) for each in made])
    seen = np.stack([clearness.terms_of_power(each.compared, each.answers) for each in made])
    power = _power(np.column_stack([gap, seen])[~null], standard[~null] > limit_of_any)
    print(f"{null.sum()} continua, {(~null).sum()} with groups; limit {limit:.2f}, of any shape {limit_of_any:.2f}")
    print("  above the limit of all: ", _shares(kinds[null], standard[null] > limit))
    print("  above the limit of any: ", _shares(kinds[null], standard[null] > limit_of_any))
    for each in GAPS:
        at = np.array([trial.gap == each for trial in made])
        print(f"  groups {each:g} sd apart: above in {np.mean(standard[at] > limit_of_any):.2f}")
    names = clearness.Surface._fields
    values = (mean, deviation, largest_mean, largest_deviation, LEVELS, np.maximum.accumulate(quantiles), power)
    return {name: np.round(value, 5).tolist() for name, value in zip(names, values, strict=True)}


def _shares(kinds: np.ndarray, above: np.ndarray) -> str:
    return (
        ", ".join(f"{kind} {above[kinds == kind].mean():.2f}" for kind in scenarios.CONTINUA) + f"; {above.mean():.3f}"
    )


def _regression(x: np.ndarray, y: np.ndarray, root: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(x * root[:, None], y * root, rcond=1e-8)[0]


def _log_deviation(x: np.ndarray, rest: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Of a normal distribution: E log |rest| = log deviation - (log 2 + Euler's constant) / 2."""
    return _regression(x, np.log(np.abs(rest) + 1e-3) + (np.log(2) + np.euler_gamma) / 2, root)


def _power(x: np.ndarray, yes: np.ndarray) -> np.ndarray:
    """Logistic regression."""
    from scipy.optimize import minimize

    def cost(w: np.ndarray) -> float:
        return float(np.logaddexp(0, np.where(yes, -1, 1) * (x @ w)).sum() + RIDGE * (w**2).sum())

    return minimize(cost, np.zeros(x.shape[1])).x


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cluster_calibration", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the results of single studies")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        table = {of: table_of(studies(of, given.out)) for of in (clearness.POSITIONS, clearness.FITS)}
    TABLE.write_text(json.dumps({"code": rests_on(), **table}, indent=1) + "\n")
    return 0
