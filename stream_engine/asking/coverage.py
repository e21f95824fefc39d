"""Where there are fewest answers: the anchor that was asked least, about the objects that it was compared with least.

Of an anchor its answered questions are counted; of an object beside it, how many of those showed the object, then how
many questions at all did. Ties fall at random. No model, so none can mislead it; new objects come first. What is chosen
counts as answered for the rest of the batch. O(K + n objects log objects).
"""

from itertools import combinations

import numpy as np

from stream_engine.asking.known import Knowledge, answered


def ask(known: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32."""
    objects, done = len(known.names), answered(known)
    shown = np.stack([done // objects % objects, done % objects], axis=1)  # by anchor: codes are ascending
    start = np.searchsorted(done, np.arange(objects + 1) * objects * objects)
    asked = np.diff(start)
    times = np.bincount(shown.ravel(), minlength=objects)
    pairs_of: dict[int, set] = {}
    rows: list[tuple[int, int, int]] = []
    full = (objects - 1) * (objects - 2) // 2
    while len(rows) < n:
        least = asked[asked < full].min()
        for a in rng.permutation(np.flatnonzero(asked == least))[: n - len(rows)].tolist():
            mine = pairs_of.setdefault(a, set(map(tuple, shown[start[a] : start[a + 1]].tolist())))
            b, c = _pair(a, mine, times, rng)
            mine.add((b, c))
            asked[a] += 1
            times[[b, c]] += 1
            rows.append((a, b, c))
    return np.array(rows, np.int32).reshape(-1, 3)


def _pair(anchor: int, mine: set, times: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    """The first pair lo < hi that is not in `mine`, objects by how little they were shown: at most len(mine) + 1 are
    tried."""
    beside = np.bincount(np.array(list(mine), np.int64).ravel(), minlength=len(times))
    order = np.lexsort((rng.random(len(times)), times, beside))
    free = order[order != anchor].tolist()
    return next(p for p in (tuple(sorted(pair)) for pair in combinations(free, 2)) if p not in mine)
