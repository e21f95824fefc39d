"""Questions whose answers should tell most about where the objects lie (after Tamuz et al. 2011, "Adaptively learning
the crowd kernel"): the largest gain over an ensemble of the delivered embedding (`ensemble`).

High if the samples disagree about an answer (the model is uncertain) and each sample is certain (participants would
agree): a question that is merely close gains nothing. Diverse by construction: questions are taken greedily, each one
taken narrows what is known of its three objects, so that the next ones look elsewhere; and no object is the anchor of
more than its fair share (`quota`). Among POOL random questions. O(POOL SAMPLES d + n log POOL).
"""

import heapq

import numpy as np

from stream_engine.asking.ensemble import Ensemble, ensemble, narrow, score
from stream_engine.asking.known import Knowledge, by_model
from stream_engine.asking.model import Model
from stream_engine.data.compiled import njit

POOL = 20_000


def ask(known: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, the largest expected gain first; m < n where the model knows no more."""
    return by_model(known, n, max(POOL, 20 * n), best, rng)


def best(model: Model, rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(min(n, m),): which of the questions `rows` (m, 3) to ask, in this order."""
    ids, at = np.unique(rows, return_inverse=True)
    made = ensemble(model, ids, rng)
    return greedily(made, at.reshape(rows.shape).astype(np.int32), min(n, len(rows)))


def greedily(made: Ensemble, rows: np.ndarray, n: int) -> np.ndarray:
    """(n,): indices of the questions taken from `rows` (m, 3), numbers of the ensemble; n <= m. Narrows the ensemble.

    No anchor comes more often than the quota, the fair share n / anchors rounded up; only when all others have run out
    of questions does it rise by one.
    """
    quota = -(-n // max(len(np.unique(rows[:, 0])), 1))
    return _greedily(*made, rows, n, quota)


@njit(cache=True, nogil=True)
def _greedily(points, spread, away, alpha, lapse, scale, rows, n, quota):
    """A score is looked at again only when it comes up: what was learned since seldom raises one."""
    heap = [
        (-score(points, away, alpha, lapse, scale, rows[t, 0], rows[t, 1], rows[t, 2])[1], t) for t in range(len(rows))
    ]
    heapq.heapify(heap)
    aside = [(0.0, 0) for _ in range(0)]
    times = np.zeros(len(points), np.int64)
    slopes, moved = np.empty((3, points.shape[1])), np.empty((3, points.shape[1]))
    taken = np.empty(n, np.int64)
    done = 0
    while done < n:
        if not len(heap):
            quota += 1
            heap, aside = aside, heap
            heapq.heapify(heap)
            continue
        old, t = heapq.heappop(heap)
        a, b, c = rows[t, 0], rows[t, 1], rows[t, 2]
        if times[a] >= quota:
            aside.append((old, t))
            continue
        now = score(points, away, alpha, lapse, scale, a, b, c)[1]
        if len(heap) and now < -heap[0][0] - 1e-12:  # its objects have been asked about since: it waits its turn
            heapq.heappush(heap, (-now, t))
            continue
        taken[done] = t
        done += 1
        times[a] += 1
        narrow(points, spread, away, alpha, lapse, scale, a, b, c, slopes, moved)
    return taken
