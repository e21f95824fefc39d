"""Questions whose answers the model cannot predict: P(b nearer), the mean over an ensemble of the published embedding,
is nearest to 1/2.

This is uncertainty sampling, for comparisons often a poor strategy: a question can be close because the model is
uncertain, or because b and c really are equally far, so that its answer is random; `information-gain` distinguishes the
two. As in round-robin samplers (Heim et al. 2015, "Active perceptual similarity modeling") the anchors take turns.
"""

import numpy as np

from stream_engine.asking.ensemble import ensemble, expected
from stream_engine.asking.knowledge import Knowledge, by_model
from stream_engine.asking.model import Model

POOL = 20_000  # random questions among which the closest ones are chosen


def ask(knowledge: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, the closest first; m < n without a model. O(POOL SAMPLES d)."""
    return by_model(knowledge, n, max(POOL, 10 * n), best, rng)


def best(model: Model, rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(min(n, m),) indices of the questions `rows` (m, 3) to ask, in this order."""
    ids, numbers = np.unique(rows, return_inverse=True)
    p = expected(ensemble(model, ids, rng), numbers.reshape(rows.shape))
    return in_turns(rows[:, 0], np.abs(p - 0.5))[:n]


def in_turns(anchor: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """(m,) order of questions: every anchor's smallest margin first, by margin; then every anchor's second; and so on.

    >>> in_turns(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 4.0, 3.0])).tolist()
    [0, 3, 1, 2]
    """
    order = np.lexsort((margin, anchor))
    first = np.searchsorted(anchor[order], anchor[order])
    turn = np.arange(len(order)) - first
    return order[np.lexsort((margin[order], turn))]
