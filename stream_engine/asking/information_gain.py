"""Questions with the largest expected information about the coordinates, over an ensemble of the published embedding
(after Tamuz et al. 2011, "Adaptively learning the crowd kernel").

The gain is high if the samples disagree about an answer (the model is uncertain) and each sample is certain
(participants would agree): a question that is merely close gains nothing. Questions are diverse: each one taken narrows
the distributions of its three objects, and anchors take turns.
"""

import heapq

import numpy as np

from stream_engine.asking.ensemble import Ensemble, ensemble, narrow, score
from stream_engine.asking.knowledge import Knowledge, by_model
from stream_engine.asking.model import Model
from stream_engine.data.compiled import njit

POOL = 20_000  # random questions among which the best ones are chosen


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, the largest expected gain first; m < n without a model. O(POOL SAMPLES d + n log POOL)."""
    return by_model(knowledge, n, max(POOL, 20 * n), best, rng)


def best(model: Model, rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(min(n, m),) indices of the questions `rows` (m, 3) to ask, in this order."""
    ids, numbers = np.unique(rows, return_inverse=True)
    samples = ensemble(model, ids, rng)
    return greedily(samples, numbers.reshape(rows.shape).astype(np.int32), min(n, len(rows)))


def greedily(samples: Ensemble, rows: np.ndarray, n: int) -> np.ndarray:
    """(n,) indices of the questions taken from `rows` (m, 3), numbers of the ensemble; n <= m. Narrows the ensemble.

    No anchor comes more often than the quota, its fair share n / anchors rounded up; if all other anchors have run out
    of questions, the quota rises by one.
    """
    quota = -(-n // max(len(np.unique(rows[:, 0])), 1))
    return _greedily(*samples, rows, n, quota)


@njit(cache=True, nogil=True)
def _greedily(points, spread, away, alpha, lapse, scale, rows, n, quota):
    """A score is updated only when its question is the first in the heap: narrowing rarely raises a score."""
    heap = [
        (-score(points, away, alpha, lapse, scale, rows[t, 0], rows[t, 1], rows[t, 2])[1], t) for t in range(len(rows))
    ]
    heapq.heapify(heap)
    postponed = [(0.0, 0) for _ in range(0)]
    times = np.zeros(len(points), np.int64)
    slopes, shifts = np.empty((3, points.shape[1])), np.empty((3, points.shape[1]))
    taken = np.empty(n, np.int64)
    n_taken = 0
    while n_taken < n:
        if not len(heap):
            quota += 1
            heap, postponed = postponed, heap
            heapq.heapify(heap)
            continue
        previous_score, t = heapq.heappop(heap)
        a, b, c = rows[t, 0], rows[t, 1], rows[t, 2]
        if times[a] >= quota:
            postponed.append((previous_score, t))
            continue
        new_score = score(points, away, alpha, lapse, scale, a, b, c)[1]
        if len(heap) and new_score < -heap[0][0] - 1e-12:  # its objects were narrowed since: it returns to the heap
            heapq.heappush(heap, (-new_score, t))
            continue
        taken[n_taken] = t
        n_taken += 1
        times[a] += 1
        narrow(points, spread, away, alpha, lapse, scale, a, b, c, slopes, shifts)
    return taken
