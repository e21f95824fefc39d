"""Training and test comparisons for choosing beta with held-out objects (McFee & Lanckriet 2011, sec. 5.1)."""

from typing import NamedTuple

import numpy as np

from stream_engine.evaluation import hash_split
from stream_engine.kernel_learning.constraints import Chooser, Constraints, constraints
from stream_engine.kernel_learning.gram_comparisons import triplet_rows
from stream_engine.state.snapshot import Snapshot


class ObjectFold(NamedTuple):
    """Training comparisons `train` (ids within `inside`) and test comparisons `test` (all ids)."""

    inside: np.ndarray  # (n,) bool
    train: Constraints
    test: Constraints
    unit: np.ndarray  # (t,) int64: the object that each test comparison is held out with, or its response


def by_objects_out(
    snapshot: Snapshot, name: str, net_triplets, folds: int, seed: int, weights: str = "votes"
) -> list[ObjectFold]:
    """Folds of objects; test comparisons are majority triplets (i, j, k) with i held out, j and k not.

    Training comparisons are chosen first and processed into the constraint set afterwards; test comparisons are not
    processed beyond the majority vote. `net_triplets` is the result of that function. Objects are held out by a hash of
    their names (`hash_split`). Folds without training or test comparisons are excluded.
    """
    splits = []
    fold = hash_split.object_folds(hash_split.name_hashes(snapshot.objects, seed), folds)
    triplets, votes = net_triplets
    for fold_number in range(folds):
        inside = fold != fold_number
        is_test = ~inside[triplets[:, 0]] & inside[triplets[:, 1]] & inside[triplets[:, 2]]
        train = constraints(snapshot, name, _all_inside(inside), weights, seed)
        if is_test.any() and len(train.rows):
            new_id = np.cumsum(inside) - 1
            test = Constraints(triplet_rows(triplets[is_test]), votes[is_test].astype(np.float64))
            train_inside = train._replace(rows=new_id[train.rows].astype(np.int32))
            splits.append(ObjectFold(inside, train_inside, test, triplets[is_test, 0].astype(np.int64)))
    return splits


def _all_inside(inside: np.ndarray) -> Chooser:
    """Chooses comparisons all of whose objects are in the (n,) bool mask."""
    return lambda rows: np.asarray(inside[rows].all(axis=1))
