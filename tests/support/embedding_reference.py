"""An embedding's likelihood straight from the formula, one answer at a time, and little worlds that reach every
branch."""

import numpy as np

from stream_engine.embedding.questions import Questions, of_rows


def likelihood(points, rows, lapse, alpha) -> np.ndarray:
    """(m,) P(d(i, j) < d(k, l)) of each row, `lapse` one number a row; alpha 0: STE."""

    def kernel(a, b):
        squared = sum((points[a] - points[b]) ** 2)
        return np.exp(-squared) if alpha == 0 else (1 + squared / alpha) ** (-(alpha + 1) / 2)

    p = []
    for (i, j, k, l), rate in zip(rows, lapse, strict=True):
        near, far = kernel(i, j), kernel(k, l)
        p.append(rate / 2 + (1 - rate) * near / (near + far))
    return np.array(p)


def loss(points, questions: Questions, lapse, alpha) -> float:
    rows, rates = questions.rows, lapse[questions.worker]
    near, far = (likelihood(points, each, rates, alpha) for each in (rows, rows[:, [2, 3, 0, 1]]))
    return -sum(questions.near * np.log(near) + questions.far * np.log(far))


def world(seed: int, n: int = 7, m: int = 60, workers: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dense answers: `rows` (m, 4) with triplets and quadruplets, repeats and contradictions, how often, by whom."""
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < m:
        i, j, k, l = rng.integers(n, size=4)
        if rng.random() < 0.6:
            k = i
        if i != j and k != l and {i, j} != {k, l}:
            rows.append([i, j, k, l])
    return np.array(rows, np.int32), rng.integers(1, 4, m).astype(float), rng.integers(-1, workers, m).astype(np.int32)


def questions(seed: int, **sizes) -> Questions:
    rows, times, worker = world(seed, **sizes)
    return of_rows(rows, sizes.get("n", 7), times, worker)
