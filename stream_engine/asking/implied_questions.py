"""Questions that need no answer: those that the accepted order of the guard implies (T-infinity of Heim et al. 2014).

What follows from participants' answers is as correct as these are: models skip such questions, the random share does
not.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from stream_engine.data.container import Corrupt
from stream_engine.order.implied import Order, answers, order_of
from stream_engine.state.snapshot import Snapshot

MAX_BLOCKED_COMPARISONS = 2_000_000  # of the order; by a larger one, no question is excluded


def implied_questions(snapshot: Snapshot) -> Callable[[np.ndarray], np.ndarray] | None:
    """A function from (m, 3) rows anchor, b, c to (m,) bool: whether the order says which of b and c is nearer. None if
    the snapshot has no order, or one of more than `MAX_BLOCKED_COMPARISONS`. The function raises `Corrupt` for an
    invalid order. The order is prepared for the first question, O(words of the order); then 10 ns to a microsecond a
    question."""
    state = snapshot.section("partial_order")
    if not state or max(map(len, state.values())) > MAX_BLOCKED_COMPARISONS:
        return None

    @cache
    def order() -> Order:
        try:
            return order_of(state["kept"])
        except ValueError as error:
            raise Corrupt(f"partial_order: {error}") from None

    return lambda rows: answers(order(), rows) != 0
