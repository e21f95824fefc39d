"""What embeddings are measured on: people's judgements with their units and workers, and planted worlds."""

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_engine.embedding.held_out import Answers
from tests.support.generators import planted_triplets


class World(NamedTuple):
    """Answers with units and workers, -1 for nobody; `test` is an own set of noiseless answers, or None."""

    name: str
    answers: Answers
    test: np.ndarray | None = None


REAL = {  # file, columns that name a judgement (none: a line is one), column that names the worker
    "food100": ("food100/triplets.csv.gz", ("screen",), "worker"),
    "car60": ("car60/triplets.csv", ("trial",), "survey_round"),
    "alien_eggs300": ("alien_eggs300/triplets.csv.gz", (), "worker"),
    "animals37": ("animals37_rank8/triplets.csv.gz", ("trial", "repeat"), None),
    "color": ("perceptual_kernels/color-tm.triplets.csv", (), "worker"),
    "shape": ("perceptual_kernels/shape-tm.triplets.csv", (), "worker"),
    "color odd": ("perceptual_kernels/color-td.triplets.csv", ("worker", "order"), "worker"),
    "shape odd": ("perceptual_kernels/shape-td.triplets.csv", ("worker", "order"), "worker"),
}


def real(folder: Path, name: str) -> World:
    """A data set of people's judgements."""
    path, unit, worker = REAL[name]
    with gzip.open(folder / path, "rt") if path.endswith("gz") else open(folder / path) as file:
        lines = [r for r in csv.DictReader(file) if r.get("phase", "test") == "test" and r.get("is_catch", "0") == "0"]
    names = sorted({line[key] for line in lines for key in ("anchor", "near", "far")})
    number = {each: i for i, each in enumerate(names)}
    rows = np.array([[number[line[key]] for key in ("anchor", "near", "anchor", "far")] for line in lines], np.int32)

    def numbered(columns: tuple[str, ...]) -> np.ndarray:
        return np.unique(["|".join(line[c] for c in columns) for line in lines], return_inverse=True)[1].reshape(-1)

    units = numbered(unit) if unit else np.arange(len(rows))
    who = numbered((worker,)).astype(np.int32) if worker else np.full(len(rows), -1, np.int32)
    return World(name, Answers(rows, np.ones(len(rows)), who, units, len(names), int(who.max()) + 1))


def planted(seed: int, n: int, d: int, m: int, flip: float = 0.15) -> World:
    """Gaussian points, `flip` of the answers turned; the test set is not."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    rows = planted_triplets(rng, points, m, flip)[:, [0, 1, 0, 2]]
    test = planted_triplets(rng, points, 20_000)[:, [0, 1, 0, 2]]
    answers = Answers(rows, np.ones(m), np.full(m, -1, np.int32), np.arange(m), n)
    return World(f"planted d = {d}, n = {n}, {m} answers", answers, test)


class Guessers(NamedTuple):
    """The same answers, said by 100 workers: as honest ones would, with 30 of them guessing, and of the 70 alone."""

    honest: Answers
    mixed: Answers
    others: Answers
    test: np.ndarray


def guessers(seed: int, n: int = 60, d: int = 2, each: int = 60, workers: int = 100, share: float = 0.3) -> Guessers:
    """Workers of `each` answers, 5 % of them turned; a guesser's are a coin's."""
    rng = np.random.default_rng(seed)
    points, m = rng.normal(size=(n, d)), each * workers
    rows = planted_triplets(rng, points, m, 0.05)[:, [0, 1, 0, 2]]
    who = np.repeat(np.arange(workers, dtype=np.int32), each)
    honest = Answers(rows, np.ones(m), who, np.arange(m), n, workers)
    guesses = (who < share * workers) & (rng.random(m) < 0.5)
    mixed = honest._replace(rows=np.where(guesses[:, None], rows[:, [2, 3, 0, 1]], rows))
    return Guessers(
        honest, mixed, mixed.of(who >= share * workers), planted_triplets(rng, points, 20_000)[:, [0, 1, 0, 2]]
    )
