"""Training and test comparisons for choosing beta with held-out objects, as in McFee & Lanckriet 2011, sec. 5.1.

Training comparisons are selected first and processed into the constraint set afterwards; test comparisons are never
processed beyond the majority vote. Held-out objects are determined by their names (`hash_split`).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.evaluation import hash_split
from stream_engine.kernel_learning.constraints import Chooser, Constraints, constraints
from stream_engine.kernel_learning.distance_operator import triplet_rows
from stream_engine.state.snapshot import Snapshot


class Split(NamedTuple):
    """Train on `train` (ids within `inside`), test on `test` (all ids)."""

    inside: np.ndarray  # (n,) bool
    train: Constraints
    test: Constraints
    unit: np.ndarray  # (t,) int64: which test comparisons hang together


def by_objects_out(snapshot: Snapshot, which: str, voted, folds: int, seed: int, weights: str = "votes") -> list[Split]:
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
            splits.append(Split(inside, inner, test, triplets[ask, 0].astype(np.int64)))
    return splits


def _all_inside(inside: np.ndarray) -> Chooser:
    """Chooses comparisons all of whose objects are in the (n,) bool mask."""
    return lambda rows: np.asarray(inside[rows].all(axis=1))
