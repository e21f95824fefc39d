"""What follows from an order: against a closure by repeated squaring, over dense little worlds, live and canonical."""

import numpy as np
import pytest

from stream_engine.order.implied import answers, order_of
from stream_engine.order.partial_order import PartialOrder, transitive_reduction
from tests.support.generators import dense_batch
from tests.support.order_reference import slow


def world(seed: int, n: int, size: int) -> np.ndarray:
    guard = PartialOrder()
    guard.offer(dense_batch(np.random.default_rng(seed), n, size))
    return guard.kept()


@pytest.mark.parametrize("seed", range(8))
def test_every_question_against_the_closure(seed):
    n = 4 + seed % 4
    rows = world(seed, n, 15 * (1 + seed))
    true = slow(rows, n)
    questions = np.array(list(true))
    for given in (rows, transitive_reduction(rows)):
        order = order_of(given)
        assert answers(order, questions).tolist() == list(true.values())
        assert answers(order, questions[:, [0, 2, 1]]).tolist() == [-value for value in true.values()]


def test_something_follows_somewhere():
    """The worlds above are no empty ones: chains through quadruplets alone, and Heim's own example."""
    chain = np.array([[0, 1, 2, 3], [2, 3, 0, 4]])  # two quadruplets make a triplet
    assert answers(order_of(chain), np.array([[0, 1, 4]])).tolist() == [1]
    heim = np.array([[0, 1, 0, 2], [0, 2, 1, 2]])  # (a, b, c) and (c, a, b) give (b, a, c)
    assert answers(order_of(heim), np.array([[1, 0, 2]])).tolist() == [1]
    for seed in range(4, 8):
        n = 4 + seed % 4
        rows = world(seed, n, 15 * (1 + seed))
        assert sum(map(bool, slow(rows, n).values())) > len(rows[[len({*row}) == 3 for row in rows.tolist()]])


def test_objects_nobody_compared_and_orders_without_comparisons():
    none = order_of(np.empty((0, 4), np.int32))
    assert answers(none, np.array([[0, 1, 2]])).tolist() == [0]
    assert answers(order_of(np.array([[0, 1, 0, 2]])), np.array([[0, 1, 9], [7, 8, 9], [0, 1, 2]])).tolist() == [
        0,
        0,
        1,
    ]
    with pytest.raises(ValueError, match="3 pairs"):
        order_of(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [1, 2, 0, 1]]))


def test_a_search_where_no_support_answers(monkeypatch):
    """With one word of supports and more nodes than that, paths past them are searched."""
    monkeypatch.setattr("stream_engine.order.reachability_masks.MAX_WORDS", 1)
    monkeypatch.setattr("stream_engine.order.reachability_masks.MIN_WORDS", 1)
    rng = np.random.default_rng(0)
    guard, n = PartialOrder(), 16
    guard.offer(dense_batch(rng, n, 250))
    rows = guard.kept()
    order, true = order_of(rows), slow(rows, n)
    assert order.supports.before.shape[1] == 1 and len(order.key) > 64
    assert answers(order, np.array(list(true))).tolist() == list(true.values())
