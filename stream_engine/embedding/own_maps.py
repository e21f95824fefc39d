"""Maps of single participants, each of that participant's answers alone.

A participant, or a part of their answers, is a *block*, and sees copies of the objects that it answered about. Each is
fitted by itself (STE with one lapse rate), along a path of falling ridges, each fit begun at the one before; or, where
answers are few, is `AVERAGE`: draws of its posterior, each with copies of its own, whose predictions are averaged.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from stream_engine.embedding import descent, starts
from stream_engine.embedding.fit import ROUGH, _descend
from stream_engine.embedding.fit_tables import FitTables
from stream_engine.embedding.gradient import paired
from stream_engine.embedding.lapse_prior import FIRST, LEAST, MOST
from stream_engine.embedding.posterior import posterior
from stream_engine.embedding.questions import Questions, of_rows
from stream_engine.evaluation.answer_probabilities import STE, margins, probability

DIMENSIONS, RIDGES = (2, 3, 5), (3.0, 1.0, 0.3)
SETTINGS = tuple((d, ridge) for d in DIMENSIONS for ridge in RIDGES)  # that are tried
AVERAGE = len(SETTINGS)  # the setting of who has draws instead of one fit
MAX_ITERATIONS = 300  # of a fit
EVALUATIONS, DRAWS = 1_200, 32  # of a chain


class OwnMaps(NamedTuple):
    """Copies of objects, by block, draw and object."""

    points: np.ndarray  # (c, d)
    block: np.ndarray  # (c,) int64
    object: np.ndarray  # (c,) int64
    lapse: np.ndarray  # (b,)
    draw: np.ndarray  # (c,) int64; 0 where there is one fit

    def log_odds(self, rows: np.ndarray, block: np.ndarray) -> np.ndarray:
        """(m,) log odds of (m, 4) answers as the map of each one's block predicts them, by the mean over its draws; NaN
        where the block has not heard of an object."""
        near, far, draws = np.zeros((3, len(rows)))
        if not len(self.points) or not len(rows):
            return draws + np.nan
        n, n_draws = 1 + max(int(self.object.max()), int(rows.max())), 1 + int(self.draw.max())
        keys = (self.block * n_draws + self.draw) * n + self.object
        for draw in range(n_draws):
            target = (np.asarray(block, np.int64)[:, None] * n_draws + draw) * n + rows
            at = np.minimum(np.searchsorted(keys, target), len(keys) - 1)
            known_rows = np.flatnonzero((keys[at] == target).all(axis=1))
            delta, lapse = margins(self.points, at[known_rows].astype(np.int32), STE), self.lapse[block[known_rows]]
            near[known_rows] += probability(delta, lapse)
            far[known_rows] += probability(-delta, lapse)
            draws[known_rows] += 1
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(draws > 0, np.log(near) - np.log(far), np.nan)


def own_maps(rows: np.ndarray, times: np.ndarray, block: np.ndarray, blocks: int, n_objects: int) -> Iterator[OwnMaps]:
    """Maps of blocks of answers (m, 4), `times` (m,) over, of `block` (m,), for each of `SETTINGS`. Deterministic;
    O(m d) an iteration."""
    by_block = []
    for number, objects, local, count in _blocks(rows, times, block):
        paths = _Paths(local, len(objects), count)
        by_block.append([_Map(number, objects, *each) for d in DIMENSIONS for each in paths.falling_ridges(d)])
    for (d, _), maps in zip(SETTINGS, zip(*by_block, strict=True), strict=True):
        yield _join(blocks, d, list(maps))


def selected_maps(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, setting: np.ndarray, n_objects: int
) -> OwnMaps | None:
    """As `own_maps`, each block with its own setting (b,): of `SETTINGS`, or `AVERAGE`, or -1: none. None where no
    block has any."""
    maps: list[_Map] = []
    for number in np.unique(setting[setting >= 0]).tolist():
        mask = setting[block] == number
        for owner, objects, local, count in _blocks(rows[mask], times[mask], block[mask]):
            if number == AVERAGE:
                maps.append(_posterior_map(owner, objects, local, count))
            else:
                d, ridge = SETTINGS[number]
                fits = _Paths(local, len(objects), count).falling_ridges(d)
                maps.append(_Map(owner, objects, *next(islice(fits, RIDGES.index(ridge), None))))
    maps.sort(key=lambda each: each.block)
    return _join(len(setting), max(DIMENSIONS), maps) if maps else None


class _Map(NamedTuple):
    """The map of one block."""

    block: int
    objects: np.ndarray  # (k,)
    points: np.ndarray  # (s, k, d)
    lapse: float


def _blocks(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Each block with its objects, its answers about these by their place among them, and their times."""
    order = np.argsort(block, kind="stable")
    numbers, first = np.unique(block[order], return_index=True)
    for number, at in zip(numbers.tolist(), np.split(order, first[1:])):
        objects, local = np.unique(rows[at], return_inverse=True)
        yield number, objects, local.reshape(-1, 4), times[at]


def _posterior_map(block: int, objects: np.ndarray, rows: np.ndarray, times: np.ndarray) -> _Map:
    (points,), _ = next(_Paths(rows, len(objects), times).falling_ridges(DIMENSIONS[0]))
    draws = posterior(of_rows(rows, len(objects), times), points, 0, evaluations=EVALUATIONS, draws=DRAWS)
    return _Map(block, objects, draws.points.astype(float), float(draws.lapse.mean()))


class _Paths:
    """Paths of fits to the answers of one block: a survey has thousands of them, so that they go without whatever of
    `fit` does not change the distances between objects."""

    def __init__(self, rows: np.ndarray, n: int, times: np.ndarray):
        self.questions = questions = Questions(
            rows.astype(np.int32), np.asarray(times, float), np.zeros(len(rows)), np.zeros(len(rows), np.int32), n
        )
        self.tables, self.lapse = FitTables(questions), np.full(1, FIRST)
        loss = self.tables.loss(STE)
        self.answers = loss.halves[0] if len(loss.halves) == 1 else paired(questions)
        self.tables.directions(max(DIMENSIONS))  # the most that will be asked for

    def falling_ridges(self, d: int) -> Iterator[tuple[np.ndarray, float]]:
        """Points (1, n, d) and the lapse rate for each of `RIDGES`, each begun at the one before, and fitted when it is
        asked for."""
        n, d = self.questions.n_objects, min(d, max(self.questions.n_objects - 1, 1))
        start = self.tables.start(d, STE, self.lapse, RIDGES[0])
        x = np.append(starts.widened(start, d, 0).ravel(), logit(FIRST))
        for ridge in RIDGES:
            state = descent.begin(x)
            _descend(*state, *self.answers, STE, ridge, self.lapse, False, n, ROUGH, MAX_ITERATIONS, MAX_ITERATIONS)
            x = descent.minimum(state).x
            yield x[:-1].reshape(1, n, d), float(np.clip(expit(x[-1]), LEAST, MOST))


def _join(blocks: int, d: int, maps: list[_Map]) -> OwnMaps:
    """The maps of all blocks, in their order, in d dimensions."""
    lapse = np.zeros(blocks)
    lapse[[each.block for each in maps]] = [each.lapse for each in maps]
    points = [_widened(each.points.reshape(-1, each.points.shape[2]), d) for each in maps]
    owner = np.repeat([each.block for each in maps], [len(copies) for copies in points])
    objects = np.concatenate([np.tile(each.objects, len(each.points)) for each in maps])
    draw = np.concatenate([np.repeat(np.arange(len(each.points)), len(each.objects)) for each in maps])
    return OwnMaps(np.concatenate(points), owner.astype(np.int64), objects.astype(np.int64), lapse, draw)


def _widened(points: np.ndarray, d: int) -> np.ndarray:
    """The points (c, k) with zeros up to d columns."""
    return points if points.shape[1] == d else np.pad(points, ((0, 0), (0, d - points.shape[1])))
