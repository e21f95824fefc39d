"""Reliability of participants (workers) by one-coin Dawid & Skene (1979) with a predictor as prior, and weighted
counts.

A question is a key (anchor, {lo, hi}), its true direction is hidden, and participant w answers it correctly with
probability r_w. The cost is O(votes) a step of EM, and eigenvectors once a round and fold.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from stream_engine.counts.adds_similarity import adds3
from stream_engine.counts.removal import COUNTS, TRIPLET, CannotForget, minus, triplet_rows
from stream_engine.counts.spectral import top_eigenpairs
from stream_engine.counts.worker_votes import names_of
from stream_engine.data.container import Corrupt
from stream_engine.data.symmetric_matrices import sparse_matrix
from stream_engine.data.triplet_columns import Columns, columns_from_keys, first_of_equal, net_vote
from stream_engine.evaluation.hash_split import name_hashes, object_folds
from stream_engine.evaluation.held_out import Figures, figures
from stream_engine.state.snapshot import Snapshot

MAX_ACCURACY = 0.99  # r_w is at most this, and at least 1 minus this


class ParticipantVotes(NamedTuple):
    """Rows (key, participant) with the numbers of answers lo and hi; keys (lo, hi, anchor) in order."""

    keys: np.ndarray  # (K, 3) int32
    key: np.ndarray  # (V,) int64 into keys
    worker: np.ndarray  # (V,) int32 into names
    n_lo: np.ndarray  # (V,) int64
    n_hi: np.ndarray  # (V,) int64
    names: tuple[str, ...]
    n_objects: int


class Records(NamedTuple):
    """One row a participant, counted from the votes alone."""

    comparisons: np.ndarray  # (w,) int64
    agreed: np.ndarray  # (w,) int64: with the sign of the others' net vote on the same key
    disagreed: np.ndarray  # (w,) int64; where the others are absent or tied, an answer is in neither
    repeats: np.ndarray  # (w,) int64: answers to a question that the participant had answered before
    contradictions: np.ndarray  # (w,) int64: the smaller of the participant's own two counts, summed over keys


class Reliability(NamedTuple):
    """The estimates of EM."""

    accuracy: np.ndarray  # (w,) r_w: the estimated probability of a correct answer
    posterior: np.ndarray  # (V,) P(lo is nearer) of each vote's key, whose prior is made without the participant's fold
    slope: float  # log-odds per standard deviation of the predictor's margin; 0 without a predictor
    predicted: float | None  # share of votes that agree with the margin made without their fold; it selected the rank
    rank: int  # of the predictor; 0: none
    iterations: int


def votes_of(snapshot: Snapshot) -> ParticipantVotes:
    """The votes of a snapshot that keeps `worker_votes`; those without a participant have the name "". Empty if there
    are none. Raises `Corrupt` if they contain more answers than were counted. O(keys log keys)."""
    section = snapshot.section("worker_votes")
    if not section:
        empty = np.empty(0, np.int64)
        return ParticipantVotes(
            np.empty((0, 3), np.int32), empty, empty.astype(np.int32), empty, empty, (), len(snapshot.objects)
        )
    names = names_of(section)
    lo, hi, anchor, worker, n_lo, n_hi = (section[name] for name in (*TRIPLET, "worker", *COUNTS))
    if names and names[0] == "" and (counts := snapshot.section("triplet_counts")):
        named = worker > 0
        try:
            unnamed_votes = minus(
                triplet_rows(counts), TRIPLET, {name: section[name][named] for name in (*TRIPLET, *COUNTS)}
            )
        except CannotForget as error:
            raise Corrupt(f"triplet_counts {error}") from None
        workers = np.concatenate([np.zeros(len(unnamed_votes["lo"]), np.int32), worker[named]])
        columns = [np.concatenate([unnamed_votes[name], section[name][named]]) for name in (*TRIPLET, *COUNTS)]
        order = np.lexsort((workers, *columns[2::-1]))
        worker, (lo, hi, anchor, n_lo, n_hi) = workers[order], (column[order] for column in columns)
    rows = np.stack([lo, hi, anchor], axis=1)
    first = first_of_equal(*rows.T)
    key = np.cumsum(first) - 1
    return ParticipantVotes(
        rows[first], key, worker, n_lo.astype(np.int64), n_hi.astype(np.int64), names, len(snapshot.objects)
    )


def records(votes: ParticipantVotes) -> Records:
    """Agreement with the other participants, and contradictions of one's own answers. Exact integers, O(votes).

    A participant who answered lo n_lo times agrees n_lo times if the net vote of the others is for lo.
    """
    workers, net = len(votes.names), net_vote(votes.n_lo, votes.n_hi)
    net_of_others = _by_key(votes, net)[votes.key] - net
    answers = votes.n_lo + votes.n_hi
    agreed = np.where(net_of_others > 0, votes.n_lo, np.where(net_of_others < 0, votes.n_hi, 0))
    decided = np.where(net_of_others != 0, answers, 0)
    count = [answers, agreed, decided - agreed, answers - 1, np.minimum(votes.n_lo, votes.n_hi)]
    return Records(*(np.bincount(votes.worker, column, workers).astype(np.int64) for column in count))


def _by_key(votes: ParticipantVotes, values: np.ndarray) -> np.ndarray:
    return np.bincount(votes.key, values, len(votes.keys))


RANKS = (1, 2, 3, 5, 8)


def estimate(
    votes: ParticipantVotes,
    prior: tuple[float, float] = (8.0, 4.0),
    rank: int | None = None,
    folds: int = 5,
    rounds: int = 3,
    tol: float = 1e-6,
    max_iterations: int = 200,
    start: np.ndarray | None = None,
) -> Reliability:
    """Reliability of every participant by EM, at a maximum of the posterior under a Beta(a, b) prior on each r_w.

    `rank`: of the predictor; 0: none, votes on the same key alone (Dawid & Skene); None: that of `RANKS` whose margins
    agree best with the votes of participants in other folds. `rounds`: how often the predictor is made from the votes,
    which the last round has reweighted. `start` (w,): where EM begins.
    """
    # If questions are rarely repeated, votes alone say nothing about anybody. So the prior of a question comes from a
    # predictor that learned from other participants alone (Raykar et al. 2010 learn classifier and reliabilities
    # together): participants fall into folds by a hash of their names; the low-rank AddS-3 of the other folds' votes,
    # weighted by their reliability, gives a margin; and one slope, part of the same EM, turns margins into log-odds.
    workers = len(votes.names)
    accuracy = (
        np.full(workers, prior[0] / sum(prior)) if start is None else np.clip(start, 1 - MAX_ACCURACY, MAX_ACCURACY)
    )
    fold = np.array([crc32(name.encode()) % folds for name in votes.names], np.int64)
    if rank == 0 or not len(votes.key):
        accuracy, posterior, slope, steps = _em(
            votes, np.zeros(len(votes.key)), accuracy, 0.0, prior, tol, max_iterations
        )
        return Reliability(accuracy, posterior, slope, None, 0, steps)
    posterior, slope, predicted, best, iterations = np.full(len(votes.key), 0.5), 1.0, None, 0, 0
    for _ in range(rounds):
        margins = _margins(votes, fold, accuracy, RANKS if rank is None else (rank,))
        agreements = {r: _share_agreeing(votes, margin) for r, margin in margins.items()}
        best = max(agreements, key=lambda r: (agreements[r], -r))
        margin, predicted = margins[best], agreements[best]
        spread = margin.std()
        margin = margin / spread if spread > 0 else np.zeros(len(margin))
        accuracy, posterior, slope, steps = _em(votes, margin, accuracy, slope, prior, tol, max_iterations)
        iterations += steps
    return Reliability(accuracy, posterior, slope, predicted, best, iterations)


REPORTING_FOLDS = 5  # a fifth of the participants is held out for the report


def figures_of_unseen_workers(votes: ParticipantVotes, seed: int = 0, **options: Any) -> Figures | None:
    """How well the predictor agrees with the votes of held-out participants, with standard errors over them.

    A fifth of the participants, by a hash of their names, is held out. The votes of the others alone select the rank
    and the weights (`options` as of `estimate`), and give the margins. None if nobody is held out or there is no
    predictor. The cost of one more estimate.
    """
    is_unseen = object_folds(name_hashes(votes.names, seed), REPORTING_FOLDS)[votes.worker] == REPORTING_FOLDS - 1
    if not is_unseen.any() or is_unseen.all():
        return None
    reliability = estimate(_votes_where(votes, ~is_unseen), **options)
    if not reliability.rank:
        return None
    margin = _margin_of(votes, is_unseen, vote_weight(reliability.accuracy)[votes.worker], (reliability.rank,))[
        reliability.rank
    ]
    n_lo, n_hi, worker = (column[is_unseen] for column in (votes.n_lo, votes.n_hi, votes.worker))
    return figures(
        np.concatenate([margin, -margin]), 1.0, np.concatenate([n_lo, n_hi]).astype(float), np.tile(worker, 2)
    )


def _votes_where(votes: ParticipantVotes, rows: np.ndarray) -> ParticipantVotes:
    """The votes of a (V,) bool mask; keys and participants keep their numbers."""
    key, worker, n_lo, n_hi = (column[rows] for column in (votes.key, votes.worker, votes.n_lo, votes.n_hi))
    return votes._replace(key=key, worker=worker, n_lo=n_lo, n_hi=n_hi)


def _em(
    votes: ParticipantVotes,
    margin: np.ndarray,
    accuracy: np.ndarray,
    slope: float,
    prior: tuple[float, float],
    tol: float,
    max_iterations: int,
) -> tuple[np.ndarray, np.ndarray, float, int]:
    """`(accuracy, posterior, slope, iterations)` of EM at fixed margins, which alternates

        P(lo is nearer) = sigmoid(slope * margin + sum over votes of +-log(r_w / (1 - r_w)))
        r_w = (a + expected correct answers) / (a + b + answers)

    and, in each iteration, one Newton step of the slope's logistic regression; a slope of 0 stays 0."""
    workers, net, step = len(votes.names), net_vote(votes.n_lo, votes.n_hi), 0
    answers = np.bincount(votes.worker, votes.n_lo + votes.n_hi, workers)
    posterior = np.full(len(votes.key), 0.5)
    while step < max_iterations:
        step += 1
        weight = np.log(accuracy / (1 - accuracy))
        posterior = _sigmoid(slope * margin + _by_key(votes, net * weight[votes.worker])[votes.key])
        right = np.bincount(votes.worker, votes.n_lo * posterior + votes.n_hi * (1 - posterior), workers)
        previous = accuracy
        accuracy = np.clip((prior[0] + right) / (sum(prior) + answers), 1 - MAX_ACCURACY, MAX_ACCURACY)
        if slope:
            p = _sigmoid(slope * margin)
            slope = max(slope + float((posterior - p) @ margin) / max(float((p * (1 - p)) @ margin**2), 1e-9), 1e-6)
        if np.abs(accuracy - previous).max(initial=0) < tol:
            break
    return accuracy, posterior, slope, step


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _share_agreeing(votes: ParticipantVotes, margin: np.ndarray) -> float:
    """The share of answers that agree with the sign of the margin; margins of 0 count one half."""
    right = np.where(margin > 0, votes.n_lo, np.where(margin < 0, votes.n_hi, (votes.n_lo + votes.n_hi) / 2))
    return float(right.sum() / (votes.n_lo + votes.n_hi).sum())


def _margins(
    votes: ParticipantVotes, fold: np.ndarray, accuracy: np.ndarray, ranks: Sequence[int]
) -> dict[int, np.ndarray]:
    """rank -> (V,) the margin of each vote's key in the low-rank AddS-3 of the other folds."""
    of_vote, weight = fold[votes.worker], vote_weight(accuracy)[votes.worker]
    margins = {rank: np.zeros(len(votes.key)) for rank in ranks}
    for f in np.unique(of_vote):
        in_fold = of_vote == f
        for rank, margin in _margin_of(votes, in_fold, weight, ranks).items():
            margins[rank][in_fold] = margin
    return margins


def _margin_of(
    votes: ParticipantVotes, excluded: np.ndarray, weight: np.ndarray, ranks: Sequence[int]
) -> dict[int, np.ndarray]:
    """rank -> (v,) the margins of the keys of the votes `excluded` (V,) bool, in the low-rank AddS-3 of all others."""
    lo, hi, anchor = votes.keys[votes.key[excluded]].T
    max_rank = min(max(ranks), votes.n_objects - 1)
    w = adds_matrix(votes, np.where(excluded, 0.0, weight))
    if max_rank < 1 or not w.nnz:
        return {rank: np.zeros(len(lo)) for rank in ranks}
    values, vectors = top_eigenpairs(w, max_rank, tol=1e-4)
    scaled, difference = vectors[anchor] * np.maximum(values, 0.0), vectors[lo] - vectors[hi]
    return {rank: np.einsum("vr,vr->v", scaled[:, :rank], difference[:, :rank]) for rank in ranks}


def vote_weight(accuracy: np.ndarray) -> np.ndarray:
    """The weight of a participant's votes in sums of votes: max(0, 2r - 1). A vote is the truth times (2r - 1) plus
    noise of nearly the same variance for all, so the weight is in proportion to the signal; guesses have none."""
    return np.maximum(2 * accuracy - 1, 0.0)


def adds_matrix(votes: ParticipantVotes, weight: np.ndarray) -> sp.csr_array:
    """AddS-3 with a weight a vote row, as a symmetric scipy CSR array."""
    return sparse_matrix(*adds(votes, weight), votes.n_objects)


def adds(votes: ParticipantVotes, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """i, j (i < j, in order) and w, nonzero, of AddS-3 with a weight a vote row (V,)."""
    net = _by_key(votes, net_vote(votes.n_lo, votes.n_hi) * weight)
    lo, hi, anchor = votes.keys.T
    return adds3(anchor, lo, hi, net, votes.n_objects)


def counts(votes: ParticipantVotes, weight: np.ndarray) -> Columns:
    """Triplet counts with a weight a vote row (V,), float64, as columns; keys without weight are excluded."""
    n_lo, n_hi = _by_key(votes, votes.n_lo * weight), _by_key(votes, votes.n_hi * weight)
    keep = n_lo + n_hi > 0
    lo, hi, anchor = votes.keys[keep].T
    return columns_from_keys(lo, hi, anchor.copy(), n_lo[keep], n_hi[keep], votes.n_objects)
