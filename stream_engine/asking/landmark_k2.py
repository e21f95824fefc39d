"""Landmark questions for k2: seen from a landmark, is an object or another landmark nearer? Asked of every object.

This is the second design of Kleindessner & von Luxburg (2017, sec. 2.3): d(x_j, x_i) < d(x_j, x_k) with x_j, x_k
landmarks and x_i any object. The landmarks are those of `landmark`, but at most a quarter of the objects, so that
`counts.landmark_designs` recognises the design.
"""

import numpy as np

from stream_engine.asking.knowledge import Knowledge, answered_codes, codes, contained
from stream_engine.asking.landmark import landmarks


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, m < n if the design is complete: the pair (anchor, landmark) with the fewest questions left first,
    within a pair the objects at random. O(K log K + L^2 log L + n) for K answers, L landmarks."""
    objects = len(knowledge.names)
    landmark_ids = np.sort(chosen_landmarks(knowledge.names))
    grids, distinct = np.meshgrid(landmark_ids, landmark_ids, indexing="ij"), ~np.eye(len(landmark_ids), dtype=bool)
    anchor, landmark = (grid[distinct] for grid in grids)
    answered = answered_codes(knowledge)
    missing = _size(landmark_ids, anchor, landmark, objects) - _answers(answered, landmark_ids, objects)
    order = np.lexsort((rng.random(len(anchor)), missing))
    order = order[missing[order] > 0]
    order = order[: 1 + np.searchsorted(np.cumsum(missing[order]), n)]
    rows = [_left_of_pair(anchor[p], landmark[p], landmark_ids, objects, answered, rng) for p in order]
    return np.concatenate([np.empty((0, 3), np.int32), *rows])[:n]


def chosen_landmarks(names: tuple[str, ...]) -> np.ndarray:
    """Ids of the landmarks: those of `landmark`, at most a quarter of the objects, at least 3.

    >>> len(chosen_landmarks(tuple(map(str, range(40))))), len(chosen_landmarks(tuple(map(str, range(400)))))
    (10, 40)
    """
    return landmarks(names)[: max(3, len(names) // 4)]


def _of_pair(landmark: int, landmark_ids: np.ndarray, objects: int) -> np.ndarray:
    """The objects of a landmark's questions: a question about two landmarks belongs to the smaller one."""
    return np.setdiff1d(np.arange(objects), landmark_ids[landmark_ids <= landmark])


def _size(landmark_ids: np.ndarray, anchor: np.ndarray, landmark: np.ndarray, objects: int) -> np.ndarray:
    """(p,) the number of questions of each pair."""
    later = len(landmark_ids) - 1 - np.searchsorted(landmark_ids, landmark)
    return objects - len(landmark_ids) + later - (anchor > landmark)


def _answers(answered: np.ndarray, landmark_ids: np.ndarray, objects: int) -> np.ndarray:
    """(p,) the number of answered questions (codes) of each pair (anchor, landmark)."""
    rank = np.full(objects, -1)
    rank[landmark_ids] = np.arange(len(landmark_ids))
    anchor, lo, hi = rank[answered // objects // objects], rank[answered // objects % objects], rank[answered % objects]
    landmark = np.where(lo >= 0, lo, hi)
    inside = (anchor >= 0) & (landmark >= 0)
    counts = np.bincount(anchor[inside] * len(landmark_ids) + landmark[inside], minlength=len(landmark_ids) ** 2)
    return counts.reshape(len(landmark_ids), -1)[~np.eye(len(landmark_ids), dtype=bool)]


def _left_of_pair(
    anchor: int, landmark: int, landmark_ids: np.ndarray, objects: int, answered: np.ndarray, rng
) -> np.ndarray:
    """(m, 3) int32 questions of one pair without an answer, objects in random order."""
    objects_asked = _of_pair(landmark, landmark_ids, objects)
    objects_asked = rng.permutation(objects_asked[objects_asked != anchor])
    rows = np.stack([np.full(len(objects_asked), anchor), objects_asked, np.full(len(objects_asked), landmark)], axis=1)
    return rows[~contained(codes(rows, objects), answered)].astype(np.int32)
