"""Which questions need no asking: those that the accepted order answers, said or not (T-infinity of Heim et al. 2014).

The order is the one that the state's guard keeps; where none is kept nothing is known to follow.
What follows from people's answers is as right as these are: a model leaves such questions out, the random share does
not. The order is made ready when the first question comes, O(kept words), then some ns to us a question.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from stream_engine.data.container import Corrupt
from stream_engine.order.implied import Order, answers, order_of
from stream_engine.state.snapshot import Snapshot

MOST = 2_000_000  # accepted comparisons; of a larger order nothing is left out


def follows(snapshot: Snapshot) -> Callable[[np.ndarray], np.ndarray] | None:
    """(m, 3) rows anchor, b, c -> (m,) bool: whether the order says which of b and c is nearer; None where the snapshot
    has no order, or one of more than `MOST`. The function raises `Corrupt` where the order is none."""
    state = snapshot.section("partial_order")
    if not state or max(map(len, state.values())) > MOST:
        return None

    @cache
    def order() -> Order:
        try:
            return order_of(state["kept"])
        except ValueError as error:
            raise Corrupt(f"partial_order: {error}") from None

    return lambda rows: answers(order(), rows) != 0
