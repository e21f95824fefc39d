"""Landmark questions for k2: seen from a landmark, is an object or another landmark nearer? Asked of every object.

The second design of Kleindessner & von Luxburg (2017, sec. 2.3): d(x_j, x_i) < d(x_j, x_k) with x_j, x_k landmarks and
x_i any object. One pair (anchor x_j, landmark x_k) after the other, all objects. Landmarks are those of `landmark`, but
at most a quarter of the objects, so that `counts.landmark_designs` recognises the design.
"""

import numpy as np

from stream_engine.asking.known import Knowledge, answered, codes, contained
from stream_engine.asking.landmark import landmarks


def ask(known: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, m < n where the design is complete: the pair (anchor, landmark) with the fewest questions left
    comes first, within a pair the objects at random. O(K log K + L^2 log L + n) for K answers, L landmarks."""
    objects = len(known.names)
    marks = np.sort(chosen_landmarks(known.names))
    anchor, landmark = (each[~np.eye(len(marks), dtype=bool)] for each in np.meshgrid(marks, marks, indexing="ij"))
    done = answered(known)
    missing = _size(marks, anchor, landmark, objects) - _answers(done, marks, objects)
    order = np.lexsort((rng.random(len(anchor)), missing))
    order = order[missing[order] > 0]
    order = order[: 1 + np.searchsorted(np.cumsum(missing[order]), n)]
    rows = [_left_of_pair(anchor[p], landmark[p], marks, objects, done, rng) for p in order]
    return np.concatenate([np.empty((0, 3), np.int32), *rows])[:n]


def chosen_landmarks(names: tuple[str, ...]) -> np.ndarray:
    """Ids of the landmarks: those of `landmark`, at most a quarter of the objects, at least 3.

    >>> len(chosen_landmarks(tuple(map(str, range(40))))), len(chosen_landmarks(tuple(map(str, range(400)))))
    (10, 40)
    """
    return landmarks(names)[: max(3, len(names) // 4)]


def _of_pair(landmark: int, marks: np.ndarray, objects: int) -> np.ndarray:
    """Which objects are asked about with a landmark: of two landmarks the pair of the smaller one asks."""
    return np.setdiff1d(np.arange(objects), marks[marks <= landmark])


def _size(marks: np.ndarray, anchor: np.ndarray, landmark: np.ndarray, objects: int) -> np.ndarray:
    """(p,): how many questions each pair has."""
    later = len(marks) - 1 - np.searchsorted(marks, landmark)
    return objects - len(marks) + later - (anchor > landmark)


def _answers(done: np.ndarray, marks: np.ndarray, objects: int) -> np.ndarray:
    """(p,): how many of the answered questions (codes) belong to each pair (anchor, landmark)."""
    rank = np.full(objects, -1)
    rank[marks] = np.arange(len(marks))
    anchor, lo, hi = rank[done // objects // objects], rank[done // objects % objects], rank[done % objects]
    landmark = np.where(lo >= 0, lo, hi)
    inside = (anchor >= 0) & (landmark >= 0)
    counts = np.bincount(anchor[inside] * len(marks) + landmark[inside], minlength=len(marks) ** 2)
    return counts.reshape(len(marks), -1)[~np.eye(len(marks), dtype=bool)]


def _left_of_pair(anchor: int, landmark: int, marks: np.ndarray, objects: int, done: np.ndarray, rng) -> np.ndarray:
    """(m, 3) int32: the questions of one pair without an answer, objects in random order."""
    about = _of_pair(landmark, marks, objects)
    about = rng.permutation(about[about != anchor])
    rows = np.stack([np.full(len(about), anchor), about, np.full(len(about), landmark)], axis=1)
    return rows[~contained(codes(rows, objects), done)].astype(np.int32)
