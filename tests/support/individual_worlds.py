"""Answers of participants who weigh the axes of common coordinates differently, or alike."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.individual import weighted_margins
from stream_engine.evaluation.answer_probabilities import probability


class World(NamedTuple):
    points: np.ndarray  # (n, d)
    weights: np.ndarray  # (1 + people, d), row 0 nobody's
    answers: Answers


def world(
    seed: int,
    people: int = 10,
    each: int = 300,
    d: int = 2,
    n: int = 20,
    spread: float = 1.0,
    alpha: float = 0.0,
    lapse: float = 0.05,
) -> World:
    """Standard normal points, log weights with this standard deviation about the group's, each answer a unit."""
    rng = np.random.default_rng(seed)
    points, logs = rng.normal(size=(n, d)), spread * rng.normal(size=(people, d))
    weights = np.exp(np.concatenate([np.zeros((1, d)), logs - logs.mean(axis=0)]))
    anchor, one, other = np.argsort(rng.random((people * each, n)), axis=1)[:, :3].T
    rows = np.stack([anchor, one, anchor, other], axis=1).astype(np.int32)
    who = np.repeat(np.arange(people, dtype=np.int32), each)
    p = probability(weighted_margins(points, weights, rows, who + 1, alpha), lapse)
    turned = rng.random(len(rows)) > p
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    names = tuple(f"w{w}" for w in range(people))
    return World(points, weights, Answers(rows, np.ones(len(rows)), who, np.arange(len(rows)), n, names))


def split(answers: Answers, seed: int = 0, shares: tuple[float, float] = (0.6, 0.8)) -> list[Answers]:
    """Training, validation and test answers."""
    draw = np.random.default_rng(seed).random(len(answers.rows))
    return [answers.of((low <= draw) & (draw < high)) for low, high in pairwise((0.0, *shares, 1.0))]
