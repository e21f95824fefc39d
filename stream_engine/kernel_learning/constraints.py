"""The constraint sets of a partial order embedding, and their weights: McFee & Lanckriet 2011, sec. 2.2, 5.2."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import Columns, columns_from_rows, pair_of_entry
from stream_engine.kernel_learning.gram_comparisons import triplet_rows, weighted_triplets
from stream_engine.order.canonical_order import Quadruplets, kept_of_votes, net_votes, votes_of
from stream_engine.order.partial_order import PartialOrder, transitive_reduction
from stream_engine.state.snapshot import Snapshot, triplet_columns

# raw                 all answers, with multiplicities, contradictions included
# drop-both           without contradicted comparisons: of two that contradict each other, both go (the paper's
#                     "Length-2" in Table 2; also called "length2" here)
# canonical           the acyclic order of a snapshot from counts alone: independent of arrival
# algorithm1-reduced  drop-both, then Algorithm 1 in a random order that the seed determines (the paper's own, Fig. 10),
#                     then the transitive reduction: fewer comparisons that imply the same
NAMES = ("raw", "drop-both", "canonical", "algorithm1-reduced")
# votes: raw and drop-both count every answer; an order counts the net vote of each comparison, and omits comparisons
# without a positive net vote. one, as in the paper: every comparison has weight 1
WEIGHTS = ("votes", "one")


class Constraints(NamedTuple):
    """Weighted comparisons."""

    rows: np.ndarray  # (m, 4) int32: near_i, near_j, far_i, far_j
    weight: np.ndarray  # (m,) float64 > 0: votes, or 1 each


Chooser = Callable[[np.ndarray], np.ndarray]  # (m, 4) rows -> (m,) bool; the same for a comparison and its reverse


def chosen_columns(columns: Columns, keep: Chooser | None) -> Columns:
    """The counts of the comparisons that `keep` chooses. O(K log K)."""
    if keep is None:
        return columns
    pair = pair_of_entry(columns)
    lo, hi = columns.lo[pair], columns.hi[pair]
    mask = keep(np.stack([columns.anchor, lo, columns.anchor, hi], axis=1))
    return columns_from_rows(
        columns.anchor[mask], lo[mask], hi[mask], columns.n_lo[mask], columns.n_hi[mask], columns.n_objects
    )


def raw(snapshot: Snapshot, keep: Chooser | None = None) -> Constraints:
    """Triplets and quadruplets as they were counted. O(K)."""
    triplets, weight = weighted_triplets(triplet_columns(snapshot))
    quadruplets, times = weighted_quadruplets(snapshot)
    comparisons = Constraints(np.concatenate([triplet_rows(triplets), quadruplets]), np.concatenate([weight, times]))
    return comparisons if keep is None else of_mask(comparisons, keep(comparisons.rows))


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
    """The comparisons whose reverse was never answered. O(m log m).

    >>> rows = np.array([[0, 1, 0, 2], [0, 2, 0, 1], [1, 2, 1, 0]], np.int32)
    >>> without_contradictions(Constraints(rows, np.ones(3))).rows.tolist()
    [[1, 2, 1, 0]]
    """
    if len(comparisons.rows) == 0:
        return comparisons
    rows = comparisons.rows.astype(np.int64)
    near, far = np.sort(rows[:, :2], axis=1), np.sort(rows[:, 2:], axis=1)
    directions, reversed_directions = np.concatenate([near, far], axis=1), np.concatenate([far, near], axis=1)
    _, direction = np.unique(np.concatenate([directions, reversed_directions]), axis=0, return_inverse=True)
    direction = direction.reshape(-1)
    return of_mask(comparisons, ~np.isin(direction[len(rows) :], direction[: len(rows)]))


def constraints(
    snapshot: Snapshot, name: str, keep: Chooser | None = None, weights: str = "votes", seed: int = 0
) -> Constraints:
    """The constraint set of that name from the comparisons that `keep` chooses (by default, all).

    Choosing comes before processing, as in sec. 5.2.2: a comparison taken out of a processed set is by construction not
    implied by the others, and would be a hopeless test. `seed` orders Algorithm 1. A reduction costs at most
    O(m * nodes / 64).
    """
    if name not in NAMES or weights not in WEIGHTS:
        raise ValueError(
            f"constraints: got {name!r}, weights {weights!r}; expected one of {', '.join(NAMES)}, and of "
            f"{', '.join(WEIGHTS)}"
        )
    constraint_set = _constraint_set(snapshot, name, keep, seed)
    if weights == "one":
        return Constraints(np.array(constraint_set.rows, np.int32), np.ones(len(constraint_set.rows)))
    return of_mask(constraint_set, constraint_set.weight > 0)


def _constraint_set(snapshot: Snapshot, name: str, keep: Chooser | None, seed: int) -> Constraints:
    """The set with votes as weights; of an order they may be 0 or negative."""
    if name in ("raw", "drop-both"):
        answers = raw(snapshot, keep)
        return answers if name == "raw" else without_contradictions(answers)
    columns, quadruplets = _chosen_counts(snapshot, keep)
    rows, net = net_votes(columns, quadruplets)
    if name == "canonical":
        in_order = kept_of_votes(rows, net)[0]
        return Constraints(rows[in_order], net[in_order].astype(np.float64))
    reduced_rows = transitive_reduction(_random_order(snapshot, keep, seed))
    return Constraints(reduced_rows, votes_of(reduced_rows, rows, net).astype(np.float64))


def _chosen_counts(snapshot: Snapshot, keep: Chooser | None) -> tuple[Columns, Quadruplets]:
    """Counts of the triplets and quadruplets that `keep` chooses."""
    rows, votes = weighted_quadruplets(snapshot)
    mask = slice(None) if keep is None else keep(rows)
    quadruplets = Quadruplets(rows[mask], votes[mask].astype(np.int64))
    return chosen_columns(triplet_columns(snapshot), keep), quadruplets


def _random_order(snapshot: Snapshot, keep: Chooser | None, seed: int) -> np.ndarray:
    """Algorithm 1 over the uncontradicted comparisons: each in random order, unless it closes a cycle with earlier
    ones."""
    rows = without_contradictions(raw(snapshot, keep)).rows
    guard = PartialOrder()
    order = np.random.default_rng([seed, 1]).permutation(len(rows))
    guard.offer_rows(rows[order])
    return guard.kept()
