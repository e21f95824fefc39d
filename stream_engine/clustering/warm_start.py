"""The ADMM's state inside an artifact, so that the next refit starts near its optimum."""

import numpy as np

from stream_engine.clustering.admm import State
from stream_engine.state.artifact import Artifact

# One upper triangle of float32 a state (2 n^2 bytes): a start, which the iteration corrects, not a result. It is stored
# by object id, so it survives new objects, whose rows begin at zero.
MIN_SHARED = 0.8  # share of the objects that an earlier state must contain; with fewer, a cold start is as good


def warm_arrays(states: dict[int, State], ids: np.ndarray) -> dict[str, np.ndarray]:
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


def warm_states(previous: Artifact | None, params, ids: np.ndarray) -> dict[int, State]:
    """States of the previous artifact for these objects, by k; none if it has none or is of another similarity."""
    if previous is None or "warm_v" not in previous.arrays or previous.params.get("similarity") != params.similarity:
        return {}
    old_ids = np.asarray(previous.arrays["warm_ids"])
    row_of = {int(object): at for at, object in enumerate(old_ids)}
    old_row = np.array([row_of.get(int(object), -1) for object in ids])
    shared = np.flatnonzero(old_row >= 0)
    if len(shared) < MIN_SHARED * len(ids):
        return {}
    upper, by_k = np.triu_indices(len(old_ids)), {}
    for row, k in enumerate(np.asarray(previous.arrays["warm_k"]).tolist()):
        V = np.zeros((len(old_ids), len(old_ids)))
        V[upper] = previous.arrays["warm_v"][row]
        V.T[upper] = V[upper]
        warm_V = np.zeros((len(ids), len(ids)))
        warm_V[np.ix_(shared, shared)] = V[np.ix_(old_row[shared], old_row[shared])]
        by_k[k] = State(warm_V, float(previous.arrays["warm_rho"][row]))
    return by_k
