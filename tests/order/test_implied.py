"""What follows from an order: against a closure by repeated squaring, over dense little worlds, live and canonical."""

import numpy as np
import pytest

from stream_engine.order import implied as room
from stream_engine.order.implied import answers, implied, order_of
from stream_engine.order.partial_order import PartialOrder, transitive_reduction
from tests.support.generators import dense_batch


def world(seed: int, n: int, size: int) -> np.ndarray:
    guard = PartialOrder()
    guard.offer(dense_batch(np.random.default_rng(seed), n, size))
    return guard.kept()


def closure(rows: np.ndarray, n: int) -> np.ndarray:
    """(n^2, n^2) bool over codes lo * n + hi: what a path of one comparison or more leads to."""
    reach = np.zeros((n * n, n * n), bool)
    for i, j, k, l in np.sort(np.asarray(rows).reshape(-1, 2, 2), axis=2).reshape(-1, 4).tolist():
        reach[i * n + j, k * n + l] = True
    for _ in range(2 * n):
        reach |= (reach.astype(np.uint8) @ reach.astype(np.uint8)) > 0
    return reach


def slow(rows: np.ndarray, n: int) -> dict[tuple[int, int, int], int]:
    """Every question a, b < c: 1, -1 or 0 by Definition 1, straight from the closure."""
    reach, code = closure(rows, n), lambda a, b: min(a, b) * n + max(a, b)
    out = {}
    for a in range(n):
        for b in range(n):
            for c in range(b + 1, n):
                if a not in (b, c):
                    near, far = code(a, b), code(a, c)
                    out[a, b, c] = int(reach[near, far]) - int(reach[far, near])
    return out


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
    pair = lambda a, b: tuple(sorted((a, b)))  # noqa: E731
    said = {(pair(*row[:2]), pair(*row[2:])) for row in rows.tolist() if len(set(row)) == 3}
    follow = {
        (pair(a, b), pair(a, c)) if value > 0 else (pair(a, c), pair(a, b))
        for (a, b, c), value in true.items()
        if value
    }
    found = implied(rows)
    assert found.exact and found.number == found.low == found.high == len(follow - said) and found.said == len(said)
    assert implied(rows, transitive_reduction(rows)) == found
    named = {pair(*row[side : side + 2]) for row in rows.tolist() for side in (0, 2)}
    assert found.possible == found.questions == sum(pair(a, b) in named and pair(a, c) in named for a, b, c in true)


def test_something_follows_somewhere():
    """The worlds above are no empty ones: chains through quadruplets alone, and Heim's own example."""
    chain = np.array([[0, 1, 2, 3], [2, 3, 0, 4]])  # two quadruplets make a triplet
    assert implied(chain)[:4] == (1, 1, 1, True) and implied(chain).said == 0
    heim = np.array([[0, 1, 0, 2], [0, 2, 1, 2]])  # (a, b, c) and (c, a, b) give (b, a, c)
    assert answers(order_of(heim), np.array([[1, 0, 2]])).tolist() == [1]
    assert sum(implied(world(seed, 4 + seed % 4, 15 * (1 + seed))).number for seed in range(8)) > 50


def test_objects_nobody_compared_and_orders_without_comparisons():
    none = order_of(np.empty((0, 4), np.int32))
    assert answers(none, np.array([[0, 1, 2]])).tolist() == [0]
    assert implied(np.empty((0, 4), np.int32)) == room.ImpliedCount(0, 0, 0, True, 0, 0, 0)
    assert answers(order_of(np.array([[0, 1, 0, 2]])), np.array([[0, 1, 9], [7, 8, 9], [0, 1, 2]])).tolist() == [
        0,
        0,
        1,
    ]
    with pytest.raises(ValueError, match="3 pairs"):
        implied(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [1, 2, 0, 1]]))


def test_a_sample_is_said_to_be_one_and_its_interval_holds(monkeypatch):
    """95 % intervals over 60 draws from one world: the true number is in 50 of them at least, and the mean is near."""
    rows = world(3, 12, 500)
    true = implied(rows)
    monkeypatch.setattr(room, "EVERY", 10)
    monkeypatch.setattr(room, "SAMPLE", 400)
    drawn = [implied(rows, seed=seed) for seed in range(60)]
    assert true.exact and true.number > 100
    assert all(not each.exact and each.questions == 400 and each.possible == true.possible for each in drawn)
    assert sum(each.low <= true.number <= each.high for each in drawn) >= 50
    assert abs(np.mean([each.number for each in drawn]) - true.number) < 0.1 * true.number
    assert implied(rows, seed=1) == drawn[1]


def test_a_search_where_no_support_answers(monkeypatch):
    """With one word of supports and more nodes than that, paths past them are searched."""
    monkeypatch.setattr("stream_engine.order.reachability_masks.MOST_WORDS", 1)
    monkeypatch.setattr("stream_engine.order.reachability_masks.FEWEST_WORDS", 1)
    rng = np.random.default_rng(0)
    guard, n = PartialOrder(), 16
    guard.offer(dense_batch(rng, n, 250))
    rows = guard.kept()
    order, true = order_of(rows), slow(rows, n)
    assert order.supports.before.shape[1] == 1 and len(order.key) > 64
    assert answers(order, np.array(list(true))).tolist() == list(true.values())
