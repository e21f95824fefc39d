"""Synthetic studies of continua and of groups: positions, and answers about them by several models.

P(d(i, j) < d(k, l)) = lapse / 2 + (1 - lapse) F(scale delta)
ste         delta = |x_k - x_l|^2 - |x_i - x_j|^2,   F logistic    (van der Maaten & Weinberger 2012)
t-ste       delta = log(1 + |x_k - x_l|^2 / v) - log(1 + |x_i - x_j|^2 / v),   F logistic; v the spread of the points
probit      delta = |x_k - x_l| - |x_i - x_j|,   F the normal distribution    (Thurstone 1927)
city block  as probit, with the sum of the differences along each axis for |.|,   F logistic    (Attneave 1950)
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from stream_engine.data.answers import Answers

MODELS = ("ste", "t-ste", "probit", "city block")
LAPSE = 0.08
GROWTH = (1.0, 1.4)  # distance of a new centre to an earlier one, in gaps
SPREADS = (0.7, 1.3)  # standard deviations within groups, before their mean is 1


def _spiral(rng: np.random.Generator, n: int) -> np.ndarray:
    turn = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.stack([turn * np.cos(turn), turn * np.sin(turn)], axis=1)


def _star(rng: np.random.Generator, n: int) -> np.ndarray:
    arm = 2 * np.pi * rng.integers(5, size=n) / 5
    return rng.random((n, 1)) * np.stack([np.cos(arm), np.sin(arm)], axis=1) + 0.03 * rng.normal(size=(n, 2))


def _ring(rng: np.random.Generator, n: int) -> np.ndarray:
    turn = 2 * np.pi * rng.random(n)
    return np.stack([np.cos(turn), np.sin(turn)], axis=1) + 0.05 * rng.normal(size=(n, 2))


CONTINUA: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "line": lambda rng, n: rng.random((n, 1)),
    "log-normal line": lambda rng, n: rng.lognormal(0, 0.5, (n, 1)),
    "band": lambda rng, n: rng.random((n, 2)) * [1, 0.2],
    "ring": _ring,
    "ellipse": lambda rng, n: _ring(rng, n) * [2, 1],
    "square": lambda rng, n: rng.random((n, 2)),
    "cube": lambda rng, n: rng.random((n, 3)),
    "gaussian 2": lambda rng, n: rng.normal(size=(n, 2)),
    "gaussian 3": lambda rng, n: rng.normal(size=(n, 3)),
    "gaussian 5": lambda rng, n: rng.normal(size=(n, 5)),
    "triangle": lambda rng, n: rng.dirichlet([1, 1, 1], n) @ np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]]),
    "exponential": lambda rng, n: rng.exponential(size=(n, 2)),
    "spiral": _spiral,
    "swiss roll": lambda rng, n: np.column_stack([_spiral(rng, n), 21 * rng.random(n)]),
    "star": _star,
}


def groups(rng: np.random.Generator, n: int, k: int, d: int, gap: float) -> tuple[np.ndarray, np.ndarray]:
    """(n, d) positions and (n,) labels of k groups of unequal size (3 objects at least) and spread, the nearest
    centres `gap` mean within-group standard deviations apart."""
    centres = np.zeros((1, d))
    while len(centres) < k:
        way = rng.normal(size=d)
        new = centres[rng.integers(len(centres))] + way / np.linalg.norm(way) * rng.uniform(*GROWTH)
        if (np.linalg.norm(centres - new, axis=1) >= 1).all():
            centres = np.concatenate([centres, new[None]])
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    centres *= gap / apart[~np.eye(k, dtype=bool)].min()
    sizes = 3 + rng.multinomial(n - 3 * k, rng.dirichlet(np.full(k, 4.0)))
    labels = rng.permutation(np.repeat(np.arange(k), sizes))
    spread = rng.uniform(*SPREADS, k)
    return centres[labels] + (spread / spread.mean())[labels, None] * rng.normal(size=(n, d)), labels


def differences(model: str, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(q,) delta of (q, 4) rows: above 0 where d(i, j) < d(k, l)."""
    one, other = (points[rows[:, at]] - points[rows[:, at + 1]] for at in (0, 2))
    if model == "city block":
        return np.abs(other).sum(axis=1) - np.abs(one).sum(axis=1)
    near, far = (one**2).sum(axis=1), (other**2).sum(axis=1)
    if model == "ste":
        return far - near
    if model == "probit":
        return np.sqrt(far) - np.sqrt(near)
    spread = max(float(points.var(axis=0).sum()), 1e-300)
    return np.log1p(far / spread) - np.log1p(near / spread)


def probabilities(model: str, delta: np.ndarray, correct: float) -> np.ndarray:
    """(q,) P(yes) without lapses; the scale is that with which a share `correct` of the answers is correct."""
    low, high = 1e-3, 1e4
    share = ndtr if model == "probit" else lambda x: 1 / (1 + np.exp(-np.clip(x, -500, 500)))
    unit = delta / max(float(np.abs(delta).mean()), 1e-300)
    for _ in range(40):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if share(middle * np.abs(unit)).mean() < correct else (low, middle)
    return share(low * unit)


def answers_about(
    rng: np.random.Generator, points: np.ndarray, count: int, model: str, correct: float, lapse: float = LAPSE
) -> Answers:
    """About `count` answers to random triplets."""
    n = len(points)
    anchor = rng.integers(n, size=count)
    one, other = ((anchor + rng.integers(1, n, size=count)) % n for _ in range(2))
    rows = np.stack([anchor, one, anchor, other], axis=1)[one != other].astype(np.int32)
    p = lapse / 2 + (1 - lapse) * probabilities(model, differences(model, points, rows), correct)
    rows = np.where((rng.random(len(rows)) < p)[:, None], rows, rows[:, [2, 3, 0, 1]])
    return Answers(rows, np.ones(len(rows)), np.full(len(rows), -1, np.int32), np.arange(len(rows)), n)
