"""What may be believed: held-out designs, scores and calibration, participants' reliability, test-then-train, drift.

Test, then train (prequential evaluation): each comparison is predicted before anything learns from it.

A *predictor* gives a comparison a margin: above 0 where it expects the answer that came, below 0 where it expects the
opposite, 0 where it cannot tell, NaN where it has nothing to say (an object it does not know, a kind it is not for).
All are made from a published snapshot or from artifacts of it, so that whatever comes later is unseen. One file per
family.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np

from stream_engine.state.published import Published

# predictor -> "module:function" giving `Predictor | None` from what is published
PREDICTORS = {
    "adds3": "stream_engine.evaluation.similarities:adds3",
    "adds4": "stream_engine.evaluation.similarities:adds4",
    "k1": "stream_engine.evaluation.similarities:k1",
    "k2": "stream_engine.evaluation.similarities:k2",
    "sdp_clustering": "stream_engine.evaluation.learned:clusters",
    "embedding": "stream_engine.evaluation.learned:embedding",
    "kernel_learning": "stream_engine.evaluation.learned:kernel_learning",
    "partial_order_embedding": "stream_engine.evaluation.learned:partial_order_embedding",
    "repeats": "stream_engine.evaluation.similarities:repeats",
}
AT_ONCE = ("adds3", "adds4", "repeats")  # made with the snapshot, so that alarms do not depend on a thread
LEARNED = ("embedding", "dimensions", "kernel_learning", "partial_order_embedding")  # artifacts with probabilities
COSTLY = ("k1", "k2")  # not O(n^2) to make: renewed only as often as the time budget allows


Margins = Callable[[np.ndarray], np.ndarray]


class NoModel(LookupError):
    """The state has no such model; the message says which there are and what makes one."""


class Predictor(NamedTuple):
    """`margins` takes (m, 4) rows near_i, near_j, far_i, far_j (a triplet's anchor is near_i = far_i), gives (m,)
    float64."""

    margins: Margins
    scale: float = 1.0  # the size of a usual margin, so that calibration outlives the model


def predictor(name: str, published: Published) -> Predictor | None:
    """The registered predictor, or None where what is published does not hold what it is made of."""
    module, _, function = PREDICTORS[name].partition(":")
    return getattr(import_module(module), function)(published)
