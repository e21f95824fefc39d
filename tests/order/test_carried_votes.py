"""Votes and margins along reduced paths: against a slow search of all paths, and the inequality that justifies them."""

import numpy as np
import pytest

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.order.canonical_order import net_votes, votes_of
from stream_engine.order.partial_order import PartialOrder, transitive_reduction
from stream_engine.order.transitive_reduction import reduced_with_votes
from tests.support.generators import dense_batch


def world(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng, guard = np.random.default_rng(seed), PartialOrder()
    guard.offer(dense_batch(rng, 4 + seed % 4, 20 * (1 + seed)))
    rows = guard.kept()
    return rows, rng.integers(1, 6, len(rows)).astype(float)


def shortest(edges: set, source, target) -> int:
    """The length of a shortest path, by levels."""
    level, length = {source}, 0
    while target not in level:
        level = {far for near, far in edges if near in level}
        length += 1
    return length


def edge(row) -> tuple:
    return tuple(row[:2]), tuple(row[2:])


@pytest.mark.parametrize("seed", range(2, 6))
def test_each_vote_is_carried_once_along_a_shortest_path(seed):
    """What is not needed brings its votes to as many comparisons as a shortest path has, at 1 / length each: the sum of
    votes x margin is that of the whole, and the sum of votes that of votes x length."""
    rows, votes = world(seed)
    found = reduced_with_votes(rows, votes)
    assert np.array_equal(found.rows, transitive_reduction(rows))
    kept = {edge(row) for row in found.rows.tolist()}
    length = np.array([1 if edge(row) in kept else shortest(kept, *edge(row)) for row in rows.tolist()])
    assert found.votes.sum() == pytest.approx(votes @ length)
    assert (found.votes * found.margin).sum() == pytest.approx(votes.sum())
    assert (found.margin > 0).all() and (found.margin <= 1).all()
    own = {edge(row): vote for row, vote in zip(rows.tolist(), votes)}
    assert all(vote >= own[edge(row)] for row, vote in zip(found.rows.tolist(), found.votes))
    untouched = found.margin == 1
    assert all(vote == own[edge(row)] for row, vote in zip(found.rows[untouched].tolist(), found.votes[untouched]))


def test_worlds_have_long_paths():
    """Else the test above says nothing of lengths and margins."""
    margins = np.concatenate([reduced_with_votes(*world(seed)).margin for seed in range(8)])
    assert margins.min() < 0.5 and (margins == 1).any() and len(np.unique(margins.round(6))) > 20


def test_one_path_by_hand():
    """Three in a row and what follows from them: 4 votes along two comparisons, 9 along three."""
    rows = np.array([[0, 1, 0, 2], [0, 2, 0, 3], [0, 3, 0, 4], [0, 1, 0, 3], [0, 1, 0, 4]], np.int32)
    found = reduced_with_votes(rows, np.array([1.0, 2.0, 3.0, 4.0, 9.0]))
    assert found.rows.tolist() == rows[:3].tolist()
    assert found.votes.tolist() == [14.0, 15.0, 12.0]
    np.testing.assert_allclose(found.margin, [(1 + 2 + 3) / 14, (2 + 2 + 3) / 15, (3 + 3) / 12])


def test_net_votes_of_each_row():
    """Rows that were voted for, against, tied or never asked, in an order and without any."""
    columns = columns_from_triplets(np.array([[0, 1, 2]] * 3 + [[0, 2, 1], [1, 2, 0], [1, 0, 2], [2, 1, 0]]), 4)
    rows, net = net_votes(columns)  # the counts of {1; 0, 2} tie
    asked = np.array([[0, 1, 0, 2], [0, 1, 0, 3], [0, 1, 1, 2], [0, 2, 0, 1], [1, 2, 0, 2], [2, 3, 0, 3]], np.int32)
    assert votes_of(asked, rows, net).tolist() == [2, 0, 0, 0, 1, 0]
    assert votes_of(asked[:0], rows, net).tolist() == [] and not votes_of(asked, rows[:0], net[:0]).any()


def test_nothing_to_reduce_and_a_cycle():
    rows = np.array([[0, 1, 0, 2], [3, 4, 3, 5]], np.int32)
    found = reduced_with_votes(rows[::-1], np.array([5.0, 2.0]))
    assert found.rows.tolist() == rows.tolist() and found.votes.tolist() == [2.0, 5.0] and (found.margin == 1).all()
    with pytest.raises(ValueError, match="cycle"):
        reduced_with_votes(np.array([[0, 1, 0, 2], [0, 2, 0, 1]], np.int32), np.ones(2))
