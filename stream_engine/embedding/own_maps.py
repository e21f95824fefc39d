"""Maps of single participants, each of that participant's answers alone.

A participant, or a part of their answers, is a *block*, and sees copies of the objects that it answered about. Each is
fitted by itself (STE with one lapse rate), along a path of falling ridges, each fit begun at the one before; or, where
answers are few, is `AVERAGE`: draws of its posterior, each with copies of its own, whose predictions are averaged.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stream_engine.embedding.fit import ROUGH, Embedding, fit
from stream_engine.embedding.posterior import posterior
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation.answer_probabilities import STE, margins, probability

DIMENSIONS, RIDGES = (2, 3, 5), (3.0, 1.0, 0.3)
SETTINGS = tuple((d, ridge) for d in DIMENSIONS for ridge in RIDGES)  # that are tried
AVERAGE = len(SETTINGS)  # the setting of who has draws instead of one fit
EVALUATIONS, DRAWS = 2_400, 32  # of a chain


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


def own_maps(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, blocks: int, n_objects: int, d: int
) -> list[OwnMaps]:
    """Maps in d dimensions of blocks of answers (m, 4), `times` (m,) over, of `block` (m,), for each of `RIDGES`.
    Deterministic; O(m d) an iteration."""
    paths = [
        (number, objects, list(_path(local, len(objects), count, d)))
        for number, objects, local, count in _blocks(rows, times, block)
    ]
    return [
        _join(blocks, d, [_Map.of(number, objects, path[at]) for number, objects, path in paths])
        for at in range(len(RIDGES))
    ]


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
                fits = _path(local, len(objects), count, d)
                maps.append(_Map.of(owner, objects, next(each for each in fits if each.ridge == ridge)))
    maps.sort(key=lambda each: each.block)
    return _join(len(setting), max(DIMENSIONS), maps) if maps else None


class _Map(NamedTuple):
    """The map of one block."""

    block: int
    objects: np.ndarray  # (k,)
    points: np.ndarray  # (s, k, d)
    lapse: float

    @classmethod
    def of(cls, block: int, objects: np.ndarray, embedding: Embedding) -> "_Map":
        return cls(block, objects, embedding.points[None], float(embedding.lapse[0]))


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
    questions = of_rows(rows, len(objects), times)
    begin = fit(questions, min(2, max(len(objects) - 1, 1)), 1.0, tolerance=ROUGH, max_iterations=300)
    draws = posterior(questions, begin, 0, evaluations=EVALUATIONS, draws=DRAWS)
    return _Map(block, objects, draws.points.astype(float), float(draws.lapse.mean()))


def _path(rows: np.ndarray, n: int, times: np.ndarray, d: int) -> Iterator[Embedding]:
    """Fits, one for each of `RIDGES`, made when they are asked for."""
    questions, points, lapse = of_rows(rows, n, times), None, None
    for ridge in RIDGES:
        embedding = fit(
            questions, min(d, max(n - 1, 1)), ridge, start=points, lapse=lapse, tolerance=ROUGH, max_iterations=300
        )
        points, lapse = embedding.points, embedding.lapse
        yield embedding


def _join(blocks: int, d: int, maps: list[_Map]) -> OwnMaps:
    """The maps of all blocks, in their order, in d dimensions."""
    lapse = np.zeros(blocks)
    lapse[[each.block for each in maps]] = [each.lapse for each in maps]
    points = [np.pad(each.points, ((0, 0), (0, 0), (0, d - each.points.shape[2]))).reshape(-1, d) for each in maps]
    owner = np.repeat([each.block for each in maps], [len(copies) for copies in points])
    objects = np.concatenate([np.tile(each.objects, len(each.points)) for each in maps])
    draw = np.concatenate([np.repeat(np.arange(len(each.points)), len(each.objects)) for each in maps])
    return OwnMaps(np.concatenate(points), owner.astype(np.int64), objects.astype(np.int64), lapse, draw)
