"""Fitting and asking a booster on arrays: rounds in stretches, checked on the way, stopped early, continued.

A *check* is one point of the curves: rounds so far, Theorem 2's bound, the training error, the error on watched
objects. Invariant: what a booster holds after an early stop is exactly what it held at its best check.
O(rounds) + O(checks n |Y|).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.boosting import votes
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import Groups, group, label_sets
from stream_engine.boosting.rounds import (
    Classifiers,
    advance,
    confidences,
    errors,
    joined,
    log_bound,
    no_classifiers,
    start,
)
from stream_engine.data.triplet_columns import Columns


class Curve(NamedTuple):
    """One entry a check, in order; the first is before the first round. Ties and abstentions count as errors here."""

    rounds: np.ndarray  # int64
    log_bound: np.ndarray  # float64: log of Theorem 2's bound on train_error
    train_error: np.ndarray  # float64
    watched_error: np.ndarray  # float64; 0 where nothing is watched


class Booster(NamedTuple):
    """A strong classifier: weighted triplet classifiers over reference objects, and what they were fitted on.

    Attributes
    ----------
    classifiers : Classifiers
        The triplet classifiers with their weights.
    groups : Groups
        Training objects with equal label sets.
    rounds : int
        Number of rounds.
    carried : int
        Number of classifiers from an earlier booster.
    curve : Curve
        Errors during the fit.
    seed : int
        Random seed.
    """

    classifiers: Classifiers  # j and k are object ids
    groups: Groups  # the training examples
    rounds: int  # rounds of this fit; those behind carried classifiers are not counted
    carried: int  # how many classifiers come from an earlier booster
    curve: Curve
    seed: int


def fit(
    columns: Columns,
    y,
    rounds: int = 100_000,
    seed: int = 0,
    *,
    watch=(),
    patience: int = 0,
    checks: int = 100,
    earlier: Classifiers | None = None,
    progress: Callable = lambda done, total, **figures: None,
) -> Booster:
    """TripletBoost (Perrot & von Luxburg 2019, Algorithm 1) on triplet counts.

    About 1 microsecond per round, and 2 bytes per triplet.

    Parameters
    ----------
    columns : Columns
        Triplet counts.
    y : array, shape (n_objects,) or (n_objects, classes)
        Class indices, -1 for objects without a label; or a boolean matrix.
    rounds : int
        Number of rounds.
    seed : int
        Random seed.
    watch : sequence of int
        Labelled objects for validation, which are not trained on.
    patience : int
        If above 0, boosting ends when the validation error was last at its minimum `patience` checks ago, and the
        booster of that check is returned.
    checks : int
        Number of checks of the validation error.
    earlier : Classifiers, optional
        Classifiers (by object id) to continue from; those whose references are no longer training examples of different
        label sets are excluded.
    progress : callable
        Called with the progress.

    Returns
    -------
    Booster
        The fitted booster.

    Raises
    ------
    ValueError
        For invalid arguments.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> columns = columns_from_triplets([[2, 0, 1], [3, 1, 0], [4, 1, 0]], 5)
    >>> booster = fit(columns, [0, 1, 0, 1, -1], rounds=50)
    >>> predict(booster, columns).label[2:].tolist(), predict(booster, columns, [4]).abstained.tolist()
    ([0, 1, 1], [False])
    """
    sets = label_sets(y, columns.n_objects)
    watch = np.asarray(watch, np.int64)
    _check_arguments(sets, watch, rounds, patience, checks)
    training = np.asarray(sets.any(axis=1))
    training[watch] = False
    groups = group(sets, np.flatnonzero(training))
    codes = codes_from_columns(columns, groups, groups.example)
    watched = codes_from_columns(columns, groups, watch)
    return boost(groups, codes, rounds, seed, watched, sets[watch], patience, checks, earlier, progress)


def boost(
    groups,
    codes,
    rounds,
    seed,
    watched,
    watched_truth,
    patience=0,
    checks=100,
    earlier=None,
    progress=lambda done, total, **figures: None,
) -> Booster:
    """`fit` on columns that are laid out already; `watched` holds the anchors whose label sets are `watched_truth`."""
    n, n_labels = len(groups.example), groups.truth.shape[1]
    carried = _numbered(earlier, groups) if earlier is not None else no_classifiers(n_labels)
    before = votes.add(votes.no_votes(n, n_labels), carried, codes)
    heard = votes.add(votes.no_votes(len(watched_truth), n_labels), carried, watched)
    state = start(groups, seed, before.confidence)
    kept, best = [carried], 0
    curve: list[tuple[int, float, float, float]] = []  # rounds, log bound, training error, error on watched objects
    for done in sorted({rounds * i // checks for i in range(checks + 1)}):
        new = advance(state, codes, done - (curve[-1][0] if curve else 0))
        kept.append(new)
        votes.add(heard, new, watched)
        curve.append(
            (
                done,
                log_bound(state),
                errors(confidences(state), state.positive),
                errors(heard.confidence, watched_truth),
            )
        )
        best = len(curve) - 1 if curve[-1][3] <= curve[best][3] else best
        progress(done, rounds, log_bound=curve[-1][1], train_error=curve[-1][2], watched_error=curve[-1][3])
        if patience and len(curve) - 1 - best >= patience:
            break
    if patience and len(watched_truth):
        kept = kept[: best + 2]
    else:
        best = len(curve) - 1
    held = joined(kept)
    named = held._replace(j=groups.example[held.j], k=groups.example[held.k])
    return Booster(named, groups, curve[best][0], len(carried.alpha), _curve(curve), seed)


def _check_arguments(sets: np.ndarray, watch: np.ndarray, rounds: int, patience: int, checks: int) -> None:
    if rounds < 0 or patience < 0 or checks < 1:
        raise ValueError(f"rounds {rounds}, patience {patience}, checks {checks}: expected >= 0, >= 0 and >= 1")
    if len(watch) and (watch.min() < 0 or watch.max() >= len(sets) or not sets[watch].any(axis=1).all()):
        raise ValueError("watch has ids without a label or out of range; expected ids of labelled objects")
    if patience and not len(watch):
        raise ValueError(f"patience {patience} without objects to watch; pass their ids as watch, or patience=0")
    if not np.delete(sets, watch, axis=0).any():
        raise ValueError("no labelled object to train on; expected at least one y >= 0 that is not in watch")


def _curve(points: list[tuple]) -> Curve:
    rounds, *figures = (np.array(column) for column in zip(*points))
    return Curve(rounds.astype(np.int64), *(figure.astype(np.float64) for figure in figures))


def _numbered(earlier: Classifiers, groups: Groups) -> Classifiers:
    """The earlier classifiers whose references are still examples of different groups, with example numbers."""
    n = len(groups.example)
    size = 1 + max([-1, *(int(ids.max(initial=-1)) for ids in (earlier.j, earlier.k, groups.example))])
    number, of = np.full(size, -1, np.int32), np.full(size, -1)
    number[groups.example] = np.arange(n)
    of[groups.example] = np.repeat(np.arange(len(groups.truth)), np.diff(groups.start))
    usable = (number[earlier.j] >= 0) & (number[earlier.k] >= 0) & (of[earlier.j] != of[earlier.k])
    held = Classifiers(*(array[usable] for array in earlier))
    return held._replace(j=number[held.j], k=number[held.k])


def compacted(classifiers: Classifiers) -> Classifiers:
    """Classifiers with the same references and label sets as one, weights added: the same votes from fewer rows.

    >>> sets = np.zeros((3, 1), np.uint8)
    >>> c = Classifiers(np.array([1, 0, 1]), np.array([2, 1, 2]), np.array([.5, 1., .25]), sets, sets)
    >>> compacted(c).j.tolist(), compacted(c).alpha.tolist()
    ([0, 1], [1.0, 0.75])
    """
    if not len(classifiers.alpha):
        return classifiers
    columns = [*classifiers.o_k.T, *classifiers.o_j.T, classifiers.k, classifiers.j]
    order = np.lexsort(columns)
    differs = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    first = np.append(0, np.flatnonzero(differs) + 1)
    alpha = np.add.reduceat(classifiers.alpha[order], first)
    return Classifiers(*(array[order[first]] for array in classifiers))._replace(alpha=alpha)


def votes_of(booster: Booster, columns: Columns, objects: np.ndarray) -> votes.Votes:
    """Eq. (5) before the argmax: every label's weight for every asked object. O(K + C log C)."""
    codes = codes_from_columns(columns, booster.groups, objects)
    blank = votes.no_votes(len(objects), booster.groups.truth.shape[1])
    return votes.add(blank, _numbered(booster.classifiers, booster.groups), codes)


def predict(booster: Booster, columns: Columns, objects=None) -> votes.Predictions:
    """Predict labels of objects, eq. (5).

    If no classifier is applicable, the label is random and `abstained` is True; ties are resolved at random. Both
    depend on the booster's seed and the object's id only, so predictions do not depend on which other objects are
    requested.

    Parameters
    ----------
    booster : Booster
        The booster.
    columns : Columns
        Triplet counts.
    objects : sequence of int, optional
        Object ids; by default all.

    Returns
    -------
    Predictions
        label, score, margin and abstained, one row per object.
    """
    objects = np.arange(columns.n_objects) if objects is None else np.asarray(objects, np.int64)
    known = (objects >= 0) & (objects < columns.n_objects)
    if not known.all() or len(np.unique(objects)) != len(objects):
        raise ValueError(f"objects must be distinct ids in 0 ... {columns.n_objects - 1}")
    return votes.decide(votes_of(booster, columns, objects), objects, booster.seed)
