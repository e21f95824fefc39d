"""The constraint sets of a partial order embedding, and their weights: McFee & Lanckriet 2011, sec. 2.2, 5.2.

    raw         all answers, with multiplicities, contradictions included
    drop-both   without contradicted comparisons: of two that contradict each other, both go (the paper's "Length-2" in
                Table 2; also called "length2" here)
    canonical   the acyclic order of a snapshot from counts alone: independent of arrival
    algorithm1-reduced  drop-both, then Algorithm 1 in a random order that the seed determines (the paper's own, Fig.
                10), then the transitive reduction: fewer comparisons that imply the same

Weights "votes": raw and drop-both count every answer; an order counts the net vote of each comparison, and omits
comparisons without a positive net vote. Weights "one", as in the paper: every comparison has weight 1. Rows are near_i,
near_j, far_i, far_j.

Training and test comparisons for choosing beta with held-out objects, as in McFee & Lanckriet 2011, sec. 5.1.

Training comparisons are selected first and processed into the constraint set afterwards; test comparisons are never
processed beyond the majority vote. Held-out objects are determined by their names (`hash_split`).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import Columns, columns_from_rows, pair_of_entry
from stream_engine.evaluation import hash_split
from stream_engine.kernel_learning.pair_lists import triplet_rows, weighted_triplets
from stream_engine.order.canonical_order import Quadruplets, kept_of_votes, net_votes, votes_of
from stream_engine.order.partial_order import PartialOrder, transitive_reduction
from stream_engine.state.snapshot import Snapshot, triplet_columns

NAMES = ("raw", "drop-both", "canonical", "algorithm1-reduced")
WEIGHTS = ("votes", "one")


class Constraints(NamedTuple):
    rows: np.ndarray  # (m, 4) int32
    weight: np.ndarray  # (m,) float64 > 0: votes, or 1 each


Chooser = Callable[[np.ndarray], np.ndarray]  # (m, 4) rows -> (m,) bool; the same for a comparison and its reverse


def kept_columns(columns: Columns, keep: Chooser | None) -> Columns:
    """The counts of those comparisons that `keep` chooses. O(K log K)."""
    if keep is None:
        return columns
    pair = pair_of_entry(columns)
    lo, hi = columns.lo[pair], columns.hi[pair]
    chosen = keep(np.stack([columns.anchor, lo, columns.anchor, hi], axis=1))
    return columns_from_rows(
        columns.anchor[chosen], lo[chosen], hi[chosen], columns.n_lo[chosen], columns.n_hi[chosen], columns.n_objects
    )


def raw(snapshot: Snapshot, keep: Chooser | None = None) -> Constraints:
    """Triplets and quadruplets as they were counted. O(K)."""
    triplets, weight = weighted_triplets(triplet_columns(snapshot))
    quadruplets, times = weighted_quadruplets(snapshot)
    every = Constraints(np.concatenate([triplet_rows(triplets), quadruplets]), np.concatenate([weight, times]))
    return every if keep is None else of_mask(every, keep(every.rows))


def of_mask(comparisons: Constraints, keep: np.ndarray) -> Constraints:
    """The comparisons of a (m,) bool mask."""
    return Constraints(comparisons.rows[keep], comparisons.weight[keep])


def weighted_quadruplets(snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray]:
    """`((q, 4) int32, (q,) float64)`: every quadruplet that was counted, both directions of a contradiction."""
    counts = snapshot.section("quadruplet_counts")
    if not counts:
        return np.empty((0, 4), np.int32), np.empty(0)
    pairs = np.stack([counts[key] for key in ("i", "j", "k", "l")], axis=1).astype(np.int32)
    rows = np.concatenate([pairs, pairs[:, [2, 3, 0, 1]]])
    weight = np.concatenate([counts["n_lo"], counts["n_hi"]]).astype(np.float64)
    return rows[weight > 0], weight[weight > 0]


def without_contradictions(comparisons: Constraints) -> Constraints:
    """Only what was never said the other way round. O(m log m).

    >>> rows = np.array([[0, 1, 0, 2], [0, 2, 0, 1], [1, 2, 1, 0]], np.int32)
    >>> without_contradictions(Constraints(rows, np.ones(3))).rows.tolist()
    [[1, 2, 1, 0]]
    """
    if len(comparisons.rows) == 0:
        return comparisons
    rows = comparisons.rows.astype(np.int64)
    near, far = np.sort(rows[:, :2], axis=1), np.sort(rows[:, 2:], axis=1)
    as_said, reversed_ = np.concatenate([near, far], axis=1), np.concatenate([far, near], axis=1)
    _, number = np.unique(np.concatenate([as_said, reversed_]), axis=0, return_inverse=True)
    number = number.reshape(-1)
    return of_mask(comparisons, ~np.isin(number[len(rows) :], number[: len(rows)]))


def constraints(
    snapshot: Snapshot, which: str, keep: Chooser | None = None, weights: str = "votes", seed: int = 0
) -> Constraints:
    """The constraint set of that name, made from those comparisons that `keep` chooses (all of them by default).

    Choosing comes before processing, as in sec. 5.2.2: what is excluded of a processed set is by construction not
    implied by the rest, and would be a hopeless test. `seed` orders Algorithm 1. Cost: its definition's; a reduction
    O(m * nodes / 64) and less.
    """
    if which not in NAMES or weights not in WEIGHTS:
        raise ValueError(
            f"constraints: got {which!r}, weights {weights!r}; expected one of {', '.join(NAMES)}, and of "
            f"{', '.join(WEIGHTS)}"
        )
    made = _said(snapshot, which, keep, seed)
    if weights == "one":
        return Constraints(np.array(made.rows, np.int32), np.ones(len(made.rows)))
    return of_mask(made, made.weight > 0)


def _said(snapshot: Snapshot, which: str, keep: Chooser | None, seed: int) -> Constraints:
    """Weights are votes, not above 0 where no net vote is for a comparison of an order."""
    if which in ("raw", "drop-both"):
        said = raw(snapshot, keep)
        return said if which == "raw" else without_contradictions(said)
    columns, quadruplets = _counted(snapshot, keep)
    voted, net = net_votes(columns, quadruplets)
    if which == "canonical":
        kept = kept_of_votes(voted, net)[0]
        return Constraints(voted[kept], net[kept].astype(np.float64))
    rows = transitive_reduction(_at_random(snapshot, keep, seed))
    return Constraints(rows, votes_of(rows, voted, net).astype(np.float64))


def _counted(snapshot: Snapshot, keep: Chooser | None) -> tuple[Columns, Quadruplets]:
    rows, votes = weighted_quadruplets(snapshot)
    chosen = slice(None) if keep is None else keep(rows)
    quadruplets = Quadruplets(rows[chosen], votes[chosen].astype(np.int64))
    return kept_columns(triplet_columns(snapshot), keep), quadruplets


def _at_random(snapshot: Snapshot, keep: Chooser | None, seed: int) -> np.ndarray:
    """Algorithm 1 over what was said in one direction only: each comparison once, in random order, unless it closes a
    cycle with those before it."""
    rows = without_contradictions(raw(snapshot, keep)).rows
    guard = PartialOrder()
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    guard.offer_rows(rows[order])
    return guard.kept()


class ObjectFold(NamedTuple):
    """Train on `train` (ids within `inside`), test on `test` (all ids)."""

    inside: np.ndarray  # (n,) bool
    train: Constraints
    test: Constraints
    unit: np.ndarray  # (t,) int64: the held-out object, or the response, of each test comparison


def by_objects_out(
    snapshot: Snapshot, which: str, voted, folds: int, seed: int, weights: str = "votes"
) -> list[ObjectFold]:
    """Folds of objects; tests are majority triplets (i, j, k) with i held out, j and k not. `voted` is `net_triplets`.

    Folds that leave nothing to train or to test on are excluded.
    """
    splits = []
    fold = hash_split.object_folds(hash_split.name_hashes(snapshot.objects, seed), folds)
    triplets, votes = voted
    for number in range(folds):
        inside = fold != number
        ask = ~inside[triplets[:, 0]] & inside[triplets[:, 1]] & inside[triplets[:, 2]]
        train = constraints(snapshot, which, _all_inside(inside), weights, seed)
        if ask.any() and len(train.rows):
            new_id = np.cumsum(inside) - 1
            test = Constraints(triplet_rows(triplets[ask]), votes[ask].astype(np.float64))
            inner = train._replace(rows=new_id[train.rows].astype(np.int32))
            splits.append(ObjectFold(inside, inner, test, triplets[ask, 0].astype(np.int64)))
    return splits


def _all_inside(inside: np.ndarray) -> Chooser:
    """Chooses comparisons all of whose objects are in the (n,) bool mask."""
    return lambda rows: np.asarray(inside[rows].all(axis=1))
