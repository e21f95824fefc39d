"""Odd-one-out responses, and triplets, recovered from triplet counts.

An odd-one-out response "c of {a, b, c}" is counted as two triplets: a is nearer to b than to c, and b to a. So of how
often each of the two was counted, the smaller number is that of the responses, and what is left were triplets. Triplets
that happen to be asked from both sides would be taken for odd-one-out responses, too: so counts that seldom come in
pairs are triplets altogether. O(K log K) for K counts.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.hashing import mix64
from stream_engine.data.triplet_columns import Columns, pair_of_entry

MIN_PAIRED_SHARE = 0.9  # share of the counts in pairs, from which on there are odd-one-out responses


class Responses(NamedTuple):
    """Responses, each kind once: of (a, b, c) the pair a, b was found more similar than a, c, and of odd-one-out
    responses also more than b, c."""

    rows: np.ndarray  # (t, 3) int32
    three: np.ndarray  # (t,) bool: odd-one-out, else a triplet with the anchor a
    times: np.ndarray  # (t,) float32
    draw: np.ndarray  # (t,) float64 in [0, 1), the same for all responses about three objects: held out together
    n_objects: int

    def of(self, mask: np.ndarray) -> "Responses":
        """Those of a (t,) bool mask."""
        return Responses(self.rows[mask], self.three[mask], self.times[mask], self.draw[mask], self.n_objects)


def responses_of(columns: Columns, hashes: np.ndarray) -> Responses:
    """The responses that were counted.

    Parameters
    ----------
    columns : Columns
        Triplet counts.
    hashes : ndarray, shape (n,)
        Of the objects, uint64; by them it is drawn what is held out.

    Returns
    -------
    Responses
        In the order of their objects.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_rows
    >>> counts = columns_from_rows([0, 1], [1, 0], [2, 2], [5, 5], [0, 0], 3)
    >>> responses = responses_of(counts, np.arange(3, dtype=np.uint64))
    >>> responses.rows.tolist(), responses.three.tolist(), responses.times.tolist()
    ([[0, 1, 2]], [True], [5.0])
    """
    pair, n = pair_of_entry(columns), columns.n_objects
    anchor, lo, hi = (np.asarray(each, np.int64) for each in (columns.anchor, columns.lo[pair], columns.hi[pair]))
    first, last = np.minimum(anchor, lo), np.maximum(anchor, hi)
    middle = anchor + lo + hi - first - last
    keys, number = np.unique((first * n + middle) * n + last, return_inverse=True)
    sorted_ = np.stack([keys // (n * n), keys // n % n, keys % n], axis=1).astype(np.int32)
    counts = np.zeros((len(keys), 3, 2), np.float32)  # by the position of the odd object, and by who of the others says
    at = np.where(anchor < lo, 0, np.where(anchor < hi, 1, 2))  # position of the anchor; lo and hi have the other two
    for odd, times in ((np.where(at == 2, 1, 2), columns.n_lo), (np.where(at == 0, 1, 0), columns.n_hi)):
        counts[number, odd, (at > 3 - at - odd).astype(int)] = times
    n_odd = counts.min(axis=2)
    if 2 * n_odd.sum(dtype=np.float64) < MIN_PAIRED_SHARE * counts.sum(dtype=np.float64):
        n_odd[:] = 0.0
    counts -= n_odd[:, :, None]
    draws = mix64(np.take(hashes, sorted_[:, 0]) + np.take(hashes, sorted_[:, 1]) + np.take(hashes, sorted_[:, 2]))
    parts: list[tuple[np.ndarray, ...]] = []  # rows, three, times, and of which three objects
    for out, (one, other) in enumerate(((1, 2), (0, 2), (0, 1))):
        for a, b, count, kind in (
            (one, other, n_odd[:, out], True),
            (one, other, counts[:, out, 0], False),
            (other, one, counts[:, out, 1], False),
        ):
            nonzero = np.flatnonzero(count)
            parts.append((sorted_[nonzero][:, [a, b, out]], np.full(len(nonzero), kind), count[nonzero], nonzero))
    rows, three, times, trio = (np.concatenate(each) for each in zip(*parts))
    order = np.argsort(trio, kind="stable")
    return Responses(rows[order], three[order], times[order], (draws / 2.0**64)[trio[order]], n)
