"""Objects with the fewest answers first: the anchor that was asked least, about the objects it was compared with
least; where only few objects have few comparisons, about the others."""

from itertools import combinations

import numpy as np

from stream_engine.asking.knowledge import Knowledge, answered_codes
from stream_engine.evaluation.few_comparisons import too_few


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32. O(K + n objects log objects)."""
    # An anchor's answered questions are counted; of the other objects, how many of these questions contain them, then
    # how many questions at all do. Ties are broken at random. Chosen questions count as answered for the rest of the
    # batch. There is no model that could mislead, and new objects come first.
    objects, codes = len(knowledge.names), answered_codes(knowledge)
    pairs_shown = np.stack([codes // objects % objects, codes % objects], axis=1)  # by anchor: codes are ascending
    start = np.searchsorted(codes, np.arange(objects + 1) * objects * objects)
    n_asked = np.diff(start)
    times = np.bincount(pairs_shown.ravel(), minlength=objects)
    unknown = too_few(np.bincount(codes // objects // objects, minlength=objects) + times, objects)
    pairs_of: dict[int, set] = {}
    rows: list[tuple[int, int, int]] = []
    max_pairs = (objects - 1) * (objects - 2) // 2
    while len(rows) < n:
        fewest = n_asked[n_asked < max_pairs].min()
        for a in rng.permutation(np.flatnonzero(n_asked == fewest))[: n - len(rows)].tolist():
            pairs = pairs_of.setdefault(a, set(map(tuple, pairs_shown[start[a] : start[a + 1]].tolist())))
            b, c = _pair(a, pairs, times, unknown, rng)
            pairs.add((b, c))
            n_asked[a] += 1
            times[[b, c]] += 1
            rows.append((a, b, c))
    return np.array(rows, np.int32).reshape(-1, 3)


def _pair(anchor: int, pairs: set, times: np.ndarray, unknown: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
    """The first pair lo < hi that is not in `pairs`, objects with the fewest questions first, but those last that are
    `unknown` (n,), and by which no other can be placed: at most len(pairs) + 1 are tried."""
    times_with_anchor = np.bincount(np.array(list(pairs), np.int64).ravel(), minlength=len(times))
    order = np.lexsort((rng.random(len(times)), times, times_with_anchor, unknown))
    free = order[order != anchor].tolist()
    return next(p for p in (tuple(sorted(pair)) for pair in combinations(free, 2)) if p not in pairs)
