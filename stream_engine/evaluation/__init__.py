"""How well models predict: held-out designs, scores and calibration, participants' reliability, test-then-train, drift.

Predictors are registered here, one file a family.
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
    "repeats": "stream_engine.evaluation.repetitions:repeats",
}
# Made with the snapshot, so that alarms do not depend on when a thread has made the others.
WITH_SNAPSHOT = ("adds3", "adds4", "repeats")
COSTLY = ("k1", "k2")  # not O(n^2) to make: renewed only as often as the time budget allows
# The artifact that predicts objects by their features, also objects without answers.
FEATURE_MODEL = "alignment"
# Other artifacts that give answers a probability.
PROBABILITY_MODELS = ("embedding", "dimensions", "kernel_learning", "partial_order_embedding")

Margins = Callable[[np.ndarray], np.ndarray]  # from (m, 4) rows to (m,)
Probability = Callable[[np.ndarray], np.ndarray]  # from (m, 4) rows i, j, k, l to (m,) P(d(i, j) < d(k, l))


class NoModel(LookupError):
    """The state has no such model; the message says which there are and what makes one."""


class Predictor(NamedTuple):
    """Gives each comparison a margin: above 0 where it predicts the answer that was given, below 0 where it predicts
    the opposite, 0 where it is undecided, NaN where it does not apply (an unknown object, another kind of comparison).

    `margins` takes (m, 4) rows near_i, near_j, far_i, far_j (a triplet's anchor is near_i = far_i), gives (m,) float64.
    A predictor is made from a published snapshot or from its artifacts, so that it has not seen any later comparison.
    """

    margins: Margins
    scale: float = 1.0  # the size of a usual margin, so that a calibration can be kept when the model is replaced


def predictor(name: str, published: Published) -> Predictor | None:
    """The registered predictor; None if the published state lacks what it is made of."""
    module, _, function = PREDICTORS[name].partition(":")
    return getattr(import_module(module), function)(published)
