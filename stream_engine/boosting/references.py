"""Draws the references of a round of TripletBoost (Perrot & von Luxburg 2019, sec. 2.2)."""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import GOLDEN_GAMMA, mix64


@njit(cache=True)
def _uniform(rng):
    """A float64 in [0, 1) (SplitMix64, 53 bits)."""
    rng[0] += np.uint64(GOLDEN_GAMMA)
    return np.float64(mix64(rng[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True)
def draw(state, other_than):
    """An example from the marginal of the weights, given that its group is not `other_than` (-1: any group)."""
    # j is drawn from the marginal of the weights on the examples, k from the same marginal given another group than
    # j's, which is what redrawing k until the labels differ amounts to. By group totals -> block sums -> elements,
    # O(groups + sqrt n).
    sums = state.group_sum
    total = 0.0
    for g in range(len(sums)):
        total += sums[g] if g != other_than else 0.0
    remainder, group = _uniform(state.rng) * total, -1
    for g in range(len(sums)):
        if g != other_than:
            group = g
            if remainder < sums[g]:
                break
            remainder -= sums[g]
    # a total that is off by a rounding error may leave a remainder: the last candidate takes it, as it does below
    remainder = min(remainder, sums[group])
    block = state.first_block[group]
    while block < state.first_block[group + 1] - 1 and remainder >= state.block_sum[block]:
        remainder -= state.block_sum[block]
        block += 1
    x = state.first_example[block]
    while x < state.first_example[block + 1] - 1 and remainder >= state.mass[x]:
        remainder -= state.mass[x]
        x += 1
    return x
