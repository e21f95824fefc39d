"""Landmark questions: which of two landmarks is nearer, asked of every object (Kleindessner & von Luxburg 2017, 2.3).

Objects are comparable by k1 only where they answered the same pairs; a few landmarks make sure that they did. Pair by
pair, all objects. The landmarks are the objects whose names have the smallest CRC-32, so that they are the same in
every call and change little as objects come; their number grows like 2 sqrt(n), at least 3. When every question about
them has an answer the design is complete, and asking for more is an error.
"""

import zlib
from itertools import combinations

import numpy as np

from stream_engine.asking.known import CannotAsk, Known, answered, codes, contained


def ask(known: Known, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32: the pair that most objects have answered already comes first. O(n L^2) for L landmarks."""
    chosen, objects = landmarks(known.names), len(known.names)
    pairs = np.array(list(combinations(np.sort(chosen), 2)))
    rows = np.concatenate(
        [
            np.stack([np.delete(np.arange(objects), pair), *(np.full(objects - 2, i) for i in pair)], axis=1)
            for pair in pairs
        ]
    )
    of_pair = np.repeat(np.arange(len(pairs)), objects - 2)
    left = ~contained(codes(rows, objects), answered(known))
    if n > left.sum():
        raise CannotAsk(
            f"ask: landmark: got n = {n}, expected at most {left.sum()}: the questions that are left about "
            f"{len(chosen)} landmarks; use another strategy for more"
        )
    missing = np.bincount(of_pair[left], minlength=len(pairs))
    order = np.lexsort((rng.random(len(rows)), rng.permutation(len(pairs))[of_pair], missing[of_pair]))
    return rows[order[left[order]][:n]].astype(np.int32)


def landmarks(names: tuple[str, ...]) -> np.ndarray:
    """Ids of the landmarks: 2 sqrt(n) of n objects, rounded up, at least 3, by CRC-32 of the name.

    >>> landmarks(("a", "b", "c", "d")).tolist()
    [2, 1, 3, 0]
    """
    size = min(len(names), max(3, int(np.ceil(2 * np.sqrt(len(names))))))
    return np.array(sorted(range(len(names)), key=lambda i: (zlib.crc32(names[i].encode()), names[i]))[:size])
