"""Questions whose answers the model cannot predict: P(b nearer), the mean over an ensemble of the delivered embedding,
nearest to 1/2.

The classic of active learning, and for comparisons often a poor one: a question can be close because little is known,
or because b and c really are equally far, when the answer is a coin and teaches nothing. `information-gain` tells the
two apart. As in round-robin samplers (Heim et al. 2015, "Active perceptual similarity modeling") the anchors take
turns: every anchor's closest question comes before any anchor's second. Among POOL random questions.
"""

import numpy as np

from stream_engine.asking.ensemble import ensemble, expected
from stream_engine.asking.known import Knowledge, by_model
from stream_engine.asking.model import Model

POOL = 20_000


def ask(known: Knowledge, n: int, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) int32, the closest first; m < n where there is no model. O(POOL SAMPLES d)."""
    return by_model(known, n, max(POOL, 10 * n), best, rng)


def best(model: Model, rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """(min(n, m),): which of the questions `rows` (m, 3) to ask, in this order."""
    ids, at = np.unique(rows, return_inverse=True)
    p = expected(ensemble(model, ids, rng), at.reshape(rows.shape))
    return in_turns(rows[:, 0], np.abs(p - 0.5))[:n]


def in_turns(anchor: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """(m,): every anchor's smallest margin first, by margin; then every anchor's second; and so on.

    >>> in_turns(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 4.0, 3.0])).tolist()
    [0, 3, 1, 2]
    """
    order = np.lexsort((margin, anchor))
    first = np.searchsorted(anchor[order], anchor[order])
    turn = np.arange(len(order)) - first
    return order[np.lexsort((margin[order], turn))]
