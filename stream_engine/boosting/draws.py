"""Drawing the references of a round: j from the marginal of the weights on the examples, k from the same marginal given
another group than j's, which is what redrawing k until the labels differ amounts to (Perrot & von Luxburg 2019,
sec. 2.2). By group totals -> block sums -> elements, O(groups + sqrt n).
"""

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
    sums = state.group_sum
    rest = 0.0
    for g in range(len(sums)):
        rest += sums[g] if g != other_than else 0.0
    left, chosen = _uniform(state.rng) * rest, -1
    for g in range(len(sums)):
        if g != other_than:
            chosen = g
            if left < sums[g]:
                break
            left -= sums[g]
    # a total that is off by a rounding error may leave a remainder: the last candidate takes it, as it does below
    left = min(left, sums[chosen])
    block = state.first_block[chosen]
    while block < state.first_block[chosen + 1] - 1 and left >= state.block_sum[block]:
        left -= state.block_sum[block]
        block += 1
    x = state.first_example[block]
    while x < state.first_example[block + 1] - 1 and left >= state.mass[x]:
        left -= state.mass[x]
        x += 1
    return x
