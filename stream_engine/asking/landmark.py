"""Landmark questions: which of two landmarks is nearer, asked of every object (Kleindessner & von Luxburg 2017, 2.3).

Objects are comparable by k1 only if they have answers to the same pairs; a few landmarks ensure this. Pair by
pair, all objects. The landmarks are the objects whose names have the smallest CRC-32, so that they are the same in
every call and change little as objects come; their number grows like 2 sqrt(n), at least 3. When every question about
them has an answer the design is complete. Only the questions of the pairs that are asked about are listed: of the
others their number is enough.
"""

import zlib

import numpy as np

from stream_engine.asking.known import Knowledge, answered, codes, contained


def ask(known: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, m < n where the design is complete: the pair that most objects have answered already comes first,
    within a pair the objects at random. O(K log K + L^2 log L + n) for K answers about L landmarks' pairs."""
    chosen, objects = np.sort(landmarks(known.names)), len(known.names)
    first, second = np.triu_indices(len(chosen), 1)
    lo, hi = chosen[first], chosen[second]
    done = answered(known)
    missing = objects - 2 - _answers(done, lo * objects + hi, objects)
    order = np.lexsort((rng.random(len(lo)), missing))
    order = order[missing[order] > 0]
    order = order[: 1 + np.searchsorted(np.cumsum(missing[order]), n)]
    rows = [_left_of_pair(lo[p], hi[p], objects, done, rng) for p in order]
    return np.concatenate([np.empty((0, 3), np.int32), *rows])[:n]


def _answers(done: np.ndarray, pairs: np.ndarray, objects: int) -> np.ndarray:
    """(p,): how many of the answered questions `done` (codes) are about each of the ascending `pairs` lo n + hi."""
    asked = done % (objects * objects)
    place = np.minimum(np.searchsorted(pairs, asked), len(pairs) - 1)
    return np.bincount(place[pairs[place] == asked], minlength=len(pairs))


def _left_of_pair(lo: int, hi: int, objects: int, done: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32: the questions of one pair without an answer, anchors in random order."""
    anchors = rng.permutation(np.delete(np.arange(objects), [lo, hi]))
    rows = np.stack([anchors, np.full(objects - 2, lo), np.full(objects - 2, hi)], axis=1)
    return rows[~contained(codes(rows, objects), done)].astype(np.int32)


def landmarks(names: tuple[str, ...]) -> np.ndarray:
    """Ids of the landmarks: 2 sqrt(n) of n objects, rounded up, at least 3, by CRC-32 of the name.

    >>> landmarks(("a", "b", "c", "d")).tolist()
    [2, 1, 3, 0]
    """
    size = min(len(names), max(3, int(np.ceil(2 * np.sqrt(len(names))))))
    return np.array(sorted(range(len(names)), key=lambda i: (zlib.crc32(names[i].encode()), names[i]))[:size])
