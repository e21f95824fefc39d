"""Answers d(i, j) < d(k, l): how often each was given, by whom, and in which response."""

from typing import NamedTuple

import numpy as np

from stream_engine.data.hashing import mix64


class Answers(NamedTuple):
    """m answers. A response is what one participant answered at one time: it is held out or fitted to as a whole.
    Answers whose response is not known have numbers of their own, from the number of responses on."""

    rows: np.ndarray  # (m, 4) int32: d(i, j) < d(k, l); a triplet is anchor, near, anchor, far
    times: np.ndarray  # (m,) float64: how often it was given
    participant: np.ndarray  # (m,) int32: index into participants; -1: not named
    response: np.ndarray  # (m,) int64
    n_objects: int
    participants: tuple[str, ...] = ()

    def of(self, mask: np.ndarray) -> "Answers":
        """The answers of a (m,) bool mask, or of indices."""
        rows, times, participant, response = (column[mask] for column in self[:4])
        return self._replace(rows=rows, times=times, participant=participant, response=response)

    def triplets(self) -> "Answers":
        """The answers about one anchor."""
        return self.of(self.rows[:, 0] == self.rows[:, 2])

    def quadruplets(self) -> "Answers":
        """The answers about two pairs without a common anchor in first place."""
        return self.of(self.rows[:, 0] != self.rows[:, 2])

    def among(self, ids: np.ndarray) -> "Answers":
        """The answers about objects `ids` alone, which are renumbered from 0 in this order.

        >>> one = Answers(np.array([[4, 1, 4, 2]], np.int32), np.ones(1), np.array([-1]), np.array([0]), 5)
        >>> one.among(np.array([1, 2, 4])).rows.tolist(), len(one.among(np.array([1, 2])).rows)
        ([[2, 0, 2, 1]], 0)
        """
        number = np.full(self.n_objects, -1, np.int32)
        number[ids] = np.arange(len(ids))
        rows = number[self.rows]
        inside = (rows >= 0).all(axis=1)
        return self.of(inside)._replace(rows=rows[inside], n_objects=len(ids))

    def in_responses(self, is_chosen: np.ndarray) -> np.ndarray:
        """(m,) bool: whether an answer is in a response of a (U,) bool mask of all U responses."""
        return np.append(is_chosen, False)[np.minimum(self.response, len(is_chosen))]

    def of_responses(self, is_chosen: np.ndarray) -> "Answers":
        """The answers in the responses of a (U,) bool mask."""
        return self.of(self.in_responses(is_chosen))

    def without(self, is_left_out: np.ndarray) -> "Answers":
        """The answers that are not in the responses of a (U,) bool mask."""
        return self.of(~self.in_responses(is_left_out))

    def sample(self, max_answers: int) -> "Answers":
        """All answers, or if they are more than `max_answers`, those of a share of the responses with about so many."""
        share = max_answers / max(len(self.rows), 1)
        return self if share >= 1 else self.of(mix64(self.response.astype(np.uint64)) < np.uint64(share * 2.0**64))


def anchored(rows: np.ndarray) -> np.ndarray:
    """(m, 4) comparisons with the object that both pairs share, if they share one, first in both.

    >>> anchored(np.array([[1, 0, 2, 0], [0, 1, 2, 3]])).tolist()
    [[0, 1, 0, 2], [0, 1, 2, 3]]
    """
    i, j, k, l = rows.T
    near = np.where(((j == k) | (j == l))[:, None], rows[:, [1, 0]], rows[:, :2])
    far = np.where(((l == i) | (l == j))[:, None], rows[:, [3, 2]], rows[:, 2:])
    return np.concatenate([near, far], axis=1)
