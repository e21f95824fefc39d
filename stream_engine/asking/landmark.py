"""Landmark questions: which of two landmarks is nearer, asked of every object (Kleindessner & von Luxburg 2017, 2.3).

Objects are comparable by k1 only if they have answers to the same pairs, which a few landmarks ensure: about 2 sqrt(n)
objects, those whose names have the smallest CRC-32, so that they hardly change while objects are added.
"""

import zlib

import numpy as np

from stream_engine.asking.knowledge import Knowledge, answered_codes, codes, contained


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, m < n if the design is complete: the pair of landmarks with the most answers first, within a pair
    the objects at random. O(K log K + L^2 log L + n) for K answers about the pairs of L landmarks."""
    # only the questions of the pairs that are asked about are listed; of the others, their number suffices
    landmark_ids, objects = np.sort(landmarks(knowledge.names)), len(knowledge.names)
    first, second = np.triu_indices(len(landmark_ids), 1)
    lo, hi = landmark_ids[first], landmark_ids[second]
    answered = answered_codes(knowledge)
    missing = objects - 2 - _answers(answered, lo * objects + hi, objects)
    order = np.lexsort((rng.random(len(lo)), missing))
    order = order[missing[order] > 0]
    order = order[: 1 + np.searchsorted(np.cumsum(missing[order]), n)]
    rows = [_left_of_pair(lo[p], hi[p], objects, answered, rng) for p in order]
    return np.concatenate([np.empty((0, 3), np.int32), *rows])[:n]


def _answers(answered: np.ndarray, pairs: np.ndarray, objects: int) -> np.ndarray:
    """(p,) the number of answered questions (codes) about each of the ascending `pairs` lo n + hi."""
    pair_code = answered % (objects * objects)
    position = np.minimum(np.searchsorted(pairs, pair_code), len(pairs) - 1)
    return np.bincount(position[pairs[position] == pair_code], minlength=len(pairs))


def _left_of_pair(lo: int, hi: int, objects: int, answered: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32 questions of one pair without an answer, anchors in random order."""
    anchors = rng.permutation(np.delete(np.arange(objects), [lo, hi]))
    rows = np.stack([anchors, np.full(objects - 2, lo), np.full(objects - 2, hi)], axis=1)
    return rows[~contained(codes(rows, objects), answered)].astype(np.int32)


def landmarks(names: tuple[str, ...]) -> np.ndarray:
    """Ids of the landmarks: 2 sqrt(n) of n objects, rounded up, at least 3, by CRC-32 of the name.

    >>> landmarks(("a", "b", "c", "d")).tolist()
    [2, 1, 3, 0]
    """
    size = min(len(names), max(3, int(np.ceil(2 * np.sqrt(len(names))))))
    return np.array(sorted(range(len(names)), key=lambda i: (zlib.crc32(names[i].encode()), names[i]))[:size])
