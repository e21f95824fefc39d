"""Positions without clusters: one cloud, as wide along each axis, as round and as lopsided as given points are.

Pearson's type II family (Fang, Kotz & Ng 1990, sec. 3.4): on its main axes x = R u with u uniform on the sphere and
R^2 / R_max^2 ~ Beta(q / 2, b). b = 0 is a ring (a shell), b = 1 a disc (a line with even density), b to infinity a
Gaussian: all of them continua. b follows from the kurtosis kappa = E|x|^4 / (E|x|^2)^2 of whitened points,

    b = q (q + 2) (kappa - 1) / (2 (q + 2 - kappa q)),    1 <= kappa <= (q + 2) / q,

in one dimension kappa >= 9/5, since below it even the cloud would be two groups. Each main axis is then bent by
x -> (exp(g x) - 1) / g (Tukey's g): objects crowd at one end of many scales, and a smooth map makes no gaps. Axes
narrower than `MAIN` of the widest are Gaussian and independent: they are mostly noise, which would hide a ring on the
others.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAIN = 1 / 3
ROUNDS, EACH = 4, 8  # of `matched`
LINE = 9 / 5  # the kurtosis of an even line
BEND = 1.0  # at most


class Shape(NamedTuple):
    """What points look like."""

    spread: np.ndarray  # (d,) standard deviation along each axis, widest first
    main: int  # the first q axes
    kurtosis: float  # on these
    skewness: np.ndarray  # (q,) absolute third moment of each, an axis having no sign


class Cloud(NamedTuple):
    """What positions are drawn from."""

    spread: np.ndarray  # (d,)
    kurtosis: float
    bend: np.ndarray  # (q,) g of each main axis


def shape_of(points: np.ndarray, main: int | None = None) -> Shape:
    """The shape of points (n, d), on so many main axes. O(n d^2).

    >>> square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> shape_of(square).kurtosis, shape_of(np.array([[0.0], [1.0], [2.0]])).main
    (1.0, 1)
    """
    middle = points - points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(middle, full_matrices=False)
    spread = np.zeros(points.shape[1])
    spread[: len(sizes)] = sizes / np.sqrt(len(points))
    q = main or max(1, int((spread >= MAIN * spread[0]).sum()))
    if not spread[q - 1]:
        return Shape(spread, q, (q + 2) / q, np.zeros(q))
    white = middle @ axes[:q].T / spread[:q]
    squares = (white**2).sum(axis=1)
    kurtosis = float((squares**2).mean() / squares.mean() ** 2)
    return Shape(spread, q, kurtosis, np.abs((white**3).mean(axis=0)))


def draw(rng: np.random.Generator, n: int, cloud: Cloud) -> np.ndarray:
    """(n, d) positions."""
    spread, kurtosis, bend = cloud
    q, points = len(bend), rng.normal(size=(n, len(spread)))
    least, most = _kurtoses(q)
    if kurtosis < most - 1e-9:
        kurtosis = max(kurtosis, least)
        b = q * (q + 2) * (kurtosis - 1) / (2 * (q + 2 - kurtosis * q))
        share = rng.beta(q / 2, b, n) if b > 1e-9 else np.ones(n)
        radius = np.sqrt(share * (q + 2 * b))  # E|x|^2 = q
        points[:, :q] *= (radius / np.linalg.norm(points[:, :q], axis=1))[:, None]
    for axis in np.flatnonzero(bend > 1e-3):
        bent = np.expm1(bend[axis] * points[:, axis]) / bend[axis]
        points[:, axis] = (bent - bent.mean()) / (bent.std() or 1.0)
    return points * spread


def matched(rng: np.random.Generator, found: np.ndarray, again: Callable[[np.ndarray], np.ndarray]) -> Cloud:
    """The cloud whose embeddings look like `found`: `again(positions)` fits points to answers that are drawn from them.

    A fit to few answers draws points together and blurs what is round; a cloud with the shape of `found` would so be
    narrower and rounder than it when fitted. Spread, kurtosis and bend are moved by what is missing (indirect
    inference: Gourieroux, Monfort & Renault 1993). ROUNDS * EACH fits.
    """
    aim = shape_of(found)
    least, most = _kurtoses(aim.main)
    cloud = Cloud(aim.spread, float(np.clip(aim.kurtosis, least, most)), np.clip(aim.skewness / 3, 0.0, BEND))
    for _ in range(ROUNDS):
        seen = [shape_of(again(draw(rng, len(found), cloud)), aim.main) for _ in range(EACH)]
        spread = np.mean([each.spread for each in seen], axis=0)
        factor = np.where(spread > 0, aim.spread / np.where(spread > 0, spread, 1.0), 1.0)
        kurtosis = cloud.kurtosis + aim.kurtosis - np.mean([each.kurtosis for each in seen])
        bend = cloud.bend + (aim.skewness - np.mean([each.skewness for each in seen], axis=0)) / 3
        cloud = Cloud(
            cloud.spread * np.clip(factor, 0.5, 2.0), float(np.clip(kurtosis, least, most)), np.clip(bend, 0.0, BEND)
        )
    return cloud


def _kurtoses(q: int) -> tuple[float, float]:
    """The smallest and the largest one in q dimensions: of a shell (a line in one) and of a Gaussian."""
    return (LINE if q == 1 else 1.0), (q + 2) / q
