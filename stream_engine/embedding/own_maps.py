"""Maps of single participants, each of that participant's answers alone.

A participant, or a part of their answers, is a *block*, and sees copies of the objects that it answered about. Each is
fitted by itself (STE with one lapse rate), along a path of falling ridges, each fit begun at the one before.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stream_engine.embedding.fit import ROUGH, Embedding, fit
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation.answer_probabilities import STE, log_odds, margins, probability

DIMENSIONS, RIDGES = (2, 3, 5), (3.0, 1.0, 0.3)
SETTINGS = tuple((d, ridge) for d in DIMENSIONS for ridge in RIDGES)  # that are tried


class OwnMaps(NamedTuple):
    """Copies of objects, by block and object."""

    points: np.ndarray  # (c, d)
    block: np.ndarray  # (c,) int64
    object: np.ndarray  # (c,) int64
    lapse: np.ndarray  # (b,)

    def log_odds(self, rows: np.ndarray, block: np.ndarray) -> np.ndarray:
        """(m,) log odds of (m, 4) answers as the map of each one's block predicts them; NaN where the block has not
        heard of an object."""
        out = np.full(len(rows), np.nan)
        if not len(self.points) or not len(rows):
            return out
        n = 1 + max(int(self.object.max()), int(rows.max()))
        keys, wanted = self.block * n + self.object, np.asarray(block, np.int64)[:, None] * n + rows
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = np.flatnonzero((keys[at] == wanted).all(axis=1))
        delta = margins(self.points, at[known].astype(np.int32), STE)
        out[known] = np.sign(delta) * log_odds(probability(np.abs(delta), self.lapse[block[known]]))
        return out


def own_maps(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, blocks: int, n_objects: int, d: int
) -> list[OwnMaps]:
    """Maps in d dimensions of blocks of answers (m, 4), `times` (m,) over, of `block` (m,), for each of `RIDGES`.
    Deterministic; O(m d) an iteration."""
    every = [(number, objects, list(path)) for number, objects, path in _paths(rows, times, block, n_objects, d)]
    return [
        _joined(blocks, d, [(number, objects, path[at]) for number, objects, path in every])
        for at in range(len(RIDGES))
    ]


def selected_maps(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, setting: np.ndarray, n_objects: int
) -> OwnMaps | None:
    """As `own_maps`, each block with its own of `SETTINGS` (b,), -1: none; None where no block has any."""
    each = []
    for number in np.unique(setting[setting >= 0]).tolist():
        d, ridge = SETTINGS[number]
        kept = setting[block] == number
        for owner, objects, path in _paths(rows[kept], times[kept], block[kept], n_objects, d):
            each.append((owner, objects, next(fitted for fitted in path if fitted.ridge == ridge)))
    each.sort(key=lambda one: one[0])
    return _joined(len(setting), max(DIMENSIONS), each) if each else None


def _paths(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, n_objects: int, d: int
) -> Iterator[tuple[int, np.ndarray, Iterator[Embedding]]]:
    """Each block with its objects and its fits, one for each of `RIDGES`, made when they are asked for."""
    order = np.argsort(block, kind="stable")
    numbers, first = np.unique(block[order], return_index=True)
    for number, mine in zip(numbers.tolist(), np.split(order, first[1:])):
        objects, local = np.unique(rows[mine], return_inverse=True)
        yield number, objects, _path(local.reshape(-1, 4), len(objects), times[mine], min(d, max(n_objects - 1, 1)))


def _path(rows: np.ndarray, n: int, times: np.ndarray, d: int) -> Iterator[Embedding]:
    questions, points, lapse = of_rows(rows, n, times), None, None
    for ridge in RIDGES:
        fitted = fit(questions, d, ridge, start=points, lapse=lapse, tolerance=ROUGH, max_iterations=300)
        points, lapse = fitted.points, fitted.lapse
        yield fitted


def _joined(blocks: int, d: int, each: list[tuple[int, np.ndarray, Embedding]]) -> OwnMaps:
    """The maps of all blocks, in their order, in d dimensions."""
    lapse = np.zeros(blocks)
    lapse[[number for number, _, _ in each]] = [float(fitted.lapse[0]) for _, _, fitted in each]
    points = [np.pad(fitted.points, ((0, 0), (0, d - fitted.points.shape[1]))) for _, _, fitted in each]
    owner = np.repeat([number for number, _, _ in each], [len(objects) for _, objects, _ in each])
    objects = [objects for _, objects, _ in each]
    return OwnMaps(np.concatenate(points), owner.astype(np.int64), np.concatenate(objects).astype(np.int64), lapse)
