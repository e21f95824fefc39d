"""The solver's state inside an artifact: V carries primal and dual, so the next refit starts near its optimum.

One upper triangle of float32 a state (2 n^2 bytes): it is a start, which the iteration corrects, not a result. Kept by
object id, so it survives new objects: their rows begin at zero.
"""

import numpy as np

from stream_engine.clustering.admm import State
from stream_engine.state.artifact import Artifact

SHARED = 0.8  # of the objects must have been there before, else a cold start is as good


def arrays(states: dict[int, State], ids: np.ndarray) -> dict[str, np.ndarray]:
    """`warm_ids` (m,), `warm_k` (s,) with 0 for SDP-lambda, `warm_rho` (s,), `warm_v` (s, m (m + 1) / 2) float32."""
    if not states:
        return {}
    upper = np.triu_indices(len(ids))
    return {
        "warm_ids": np.asarray(ids, np.int32),
        "warm_k": np.array(list(states), np.int64),
        "warm_rho": np.array([state.rho for state in states.values()]),
        "warm_v": np.stack([state.V[upper].astype(np.float32) for state in states.values()]),
    }


def states(previous: Artifact | None, params, ids: np.ndarray) -> dict[int, State]:
    """States of the previous artifact for these objects, by k; none when it holds none or was of another similarity."""
    if previous is None or "warm_v" not in previous.arrays or previous.params.get("similarity") != params.similarity:
        return {}
    old_ids = np.asarray(previous.arrays["warm_ids"])
    place = {int(object): at for at, object in enumerate(old_ids)}
    known = np.array([place.get(int(object), -1) for object in ids])
    here = np.flatnonzero(known >= 0)
    if len(here) < SHARED * len(ids):
        return {}
    upper, by_k = np.triu_indices(len(old_ids)), {}
    for row, k in enumerate(np.asarray(previous.arrays["warm_k"]).tolist()):
        V = np.zeros((len(old_ids), len(old_ids)))
        V[upper] = previous.arrays["warm_v"][row]
        V.T[upper] = V[upper]
        grown = np.zeros((len(ids), len(ids)))
        grown[np.ix_(here, here)] = V[np.ix_(known[here], known[here])]
        by_k[k] = State(grown, float(previous.arrays["warm_rho"][row]))
    return by_k
