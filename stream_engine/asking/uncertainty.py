"""Questions whose answers the model cannot foretell: the smallest margin, P(b nearer) nearest to 1/2, under `model`.

The classic of active learning, and for comparisons often a poor one: a question can be close because little is known,
or because b and c really are equally far, when the answer is a coin and teaches nothing. `information-gain` tells the
two apart. As in round-robin samplers (Heim et al. 2015, "Active perceptual similarity modeling") the anchors take
turns: every anchor's closest question comes before any anchor's second. Among POOL random questions.
"""

import numpy as np

from stream_engine.asking import model
from stream_engine.asking.known import Known, unanswered

POOL = 100_000


def ask(known: Known, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32; after the closest ones those at random, see `model.believed`. O(POOL log POOL)."""
    rows = unanswered(known, max(POOL, 10 * n), rng)
    posterior = model.posterior(known, rng)
    order = in_turns(rows[:, 0], np.abs(model.differences(posterior.points, rows)))[: model.believed(posterior, n)]
    return rows[np.concatenate([order, np.setdiff1d(np.arange(len(rows)), order)])[:n]]


def in_turns(anchor: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """(m,): every anchor's smallest margin first, by margin; then every anchor's second; and so on.

    >>> in_turns(np.array([0, 0, 1, 1]), np.array([1.0, 2.0, 4.0, 3.0])).tolist()
    [0, 3, 1, 2]
    """
    order = np.lexsort((margin, anchor))
    first = np.searchsorted(anchor[order], anchor[order])
    turn = np.arange(len(order)) - first
    return order[np.lexsort((margin[order], turn))]
