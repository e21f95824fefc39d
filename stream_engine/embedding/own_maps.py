"""Maps of single participants, each of that participant's answers alone: all of them are fitted at once.

A participant, or a part of their answers, is a *block*. Each block sees copies of the objects that it answered about,
so that one descent over all copies fits every block (STE with one lapse rate a block). The ridge falls along a path,
each fit begun at the one before; the first begins at the block's own directions (`starts.directions`). O(q d) an
iteration for the questions of all blocks.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.embedding.descent import minimise
from stream_engine.embedding.fit import ROUGH, _objective
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.lapse_prior import FIRST
from stream_engine.embedding.questions import Questions, of_rows
from stream_engine.embedding.starts import SCALES, directions, widened
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
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, blocks: int, n_objects: int, d: int, least: float
) -> list[OwnMaps]:
    """Maps in d dimensions of blocks of answers (m, 4), `times` (m,) over, of `block` (m,); one fit of all for each of
    `RIDGES` down to the `least`. Deterministic."""
    pairs = np.asarray(block, np.int64)[:, None] * n_objects + rows
    keys, number = np.unique(pairs, return_inverse=True)
    owner, copied = keys // n_objects, keys % n_objects
    questions = of_rows(number.reshape(-1, 4), len(keys), times, block)._replace(n_workers=1 + blocks)
    d = min(d, max(n_objects - 1, 1))
    points, lapse, loss = _starts(questions, owner, blocks, d), np.full(1 + blocks, FIRST), Loss(questions, STE)
    made = []
    for ridge in (each for each in RIDGES if each >= least):
        objective, pack, unpack = _objective(loss, ridge, lapse, False, points.shape)
        found = minimise(objective, pack(points, lapse, FIRST), tolerance=ROUGH, max_iterations=300)
        points, lapse, _ = unpack(found.x)
        made.append(OwnMaps(points, owner, copied, lapse[1:]))
    return made


def selected_maps(
    rows: np.ndarray, times: np.ndarray, block: np.ndarray, setting: np.ndarray, n_objects: int
) -> OwnMaps | None:
    """As `own_maps`, each block with its own of `SETTINGS` (b,), -1: none; None where no block has any."""
    each, blocks, width = [], len(setting), max(DIMENSIONS)
    for number in np.unique(setting[setting >= 0]).tolist():
        d, ridge = SETTINGS[number]
        kept = setting[block] == number
        if kept.any():
            made = own_maps(rows[kept], times[kept], block[kept], blocks, n_objects, d, ridge)[-1]
            points = np.zeros((len(made.points), width))
            points[:, : made.points.shape[1]] = made.points
            each.append(made._replace(points=points))
    if not each:
        return None
    points, owner, copied = (np.concatenate(part) for part in zip(*(made[:3] for made in each)))
    order, lapse = np.lexsort((copied, owner)), each[0].lapse.copy()
    for made in each[1:]:
        lapse[np.unique(made.block)] = made.lapse[np.unique(made.block)]
    return OwnMaps(points[order], owner[order], copied[order], lapse)


def _starts(questions: Questions, owner: np.ndarray, blocks: int, d: int) -> np.ndarray:
    """(c, d) directions of each block, as long as a coarse grid finds best."""
    points = np.zeros((len(owner), d))
    begins = np.searchsorted(owner, np.arange(blocks + 1))
    first = np.searchsorted(questions.rows[:, 0], begins)  # questions are sorted by their first copy
    for low, high, begin, end in zip(begins, begins[1:], first, first[1:]):
        if end > begin:
            near, far = questions.near[begin:end], questions.far[begin:end]
            part = Questions(questions.rows[begin:end] - low, near, far, np.zeros(end - begin, np.int32), high - low)
            steep = widened(directions(part, min(d, high - low)).points, d, seed=0)
            points[low:high] = steep * np.sqrt((high - low) / max(float((steep**2).sum()), 1e-300))
    of, best, length = questions.worker, np.full(blocks + 1, np.inf), np.ones(blocks + 1)
    for scale in SCALES:
        p = probability(margins(points * scale, questions.rows, STE), FIRST)
        cost = np.bincount(of, -questions.near * np.log(p) - questions.far * np.log1p(-p), blocks + 1)
        better = cost < best
        best, length = np.where(better, cost, best), np.where(better, scale, length)
    return points * length[1:][owner][:, None]
