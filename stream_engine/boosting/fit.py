"""Fits a booster on arrays, and predicts with it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.boosting import votes
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import Groups, group, label_sets
from stream_engine.boosting.rounds import (
    Classifiers,
    advance,
    concatenate,
    confidences,
    errors,
    log_bound,
    no_classifiers,
    start,
)
from stream_engine.data.triplet_columns import Columns


class Curve(NamedTuple):
    """Errors along the rounds: one entry a check, the first before the first round. Ties and abstentions are errors."""

    rounds: np.ndarray  # int64
    log_bound: np.ndarray  # float64: log of Theorem 2's bound on train_error
    train_error: np.ndarray  # float64
    watched_error: np.ndarray  # float64; 0 without validation objects


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
    curve : Curve
        Errors during the fit.
    seed : int
        Random seed.
    """

    classifiers: Classifiers  # j and k are object ids
    groups: Groups  # the training examples
    rounds: int
    curve: Curve
    seed: int


def fit(
    columns: Columns,
    y,
    rounds: int = 100_000,
    seed: int = 0,
    *,
    watch=(),
    checks: int = 100,
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
    checks : int
        Number of checks of the validation error.
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
    _check_arguments(sets, watch, rounds, checks)
    training = np.asarray(sets.any(axis=1))
    training[watch] = False
    groups = group(sets, np.flatnonzero(training))
    codes = codes_from_columns(columns, groups, groups.example)
    watch_codes = codes_from_columns(columns, groups, watch)
    return boost(groups, codes, rounds, seed, watch_codes, sets[watch], checks, progress)


def boost(
    groups,
    codes,
    rounds,
    seed,
    watch_codes,
    watch_truth,
    checks=100,
    progress=lambda n_rounds, total, **figures: None,
) -> Booster:
    """`fit` on codes; `watch_codes` are those of the validation objects, whose label sets are `watch_truth`.

    O(rounds) + O(checks n |Y|).
    """
    n_labels = groups.truth.shape[1]
    watch_votes = votes.no_votes(len(watch_truth), n_labels)
    state, parts = start(groups, seed), [no_classifiers(n_labels)]
    curve: list[tuple[int, float, float, float]] = []  # rounds, log bound, training error, error on watched objects
    for n_rounds in sorted({rounds * i // checks for i in range(checks + 1)}):
        new_classifiers = advance(state, codes, n_rounds - (curve[-1][0] if curve else 0))
        parts.append(new_classifiers)
        votes.add(watch_votes, new_classifiers, watch_codes)
        curve.append(
            (
                n_rounds,
                log_bound(state),
                errors(confidences(state), state.positive),
                errors(watch_votes.confidence, watch_truth),
            )
        )
        progress(n_rounds, rounds, log_bound=curve[-1][1], train_error=curve[-1][2], watched_error=curve[-1][3])
    classifiers = concatenate(parts)
    with_object_ids = classifiers._replace(j=groups.example[classifiers.j], k=groups.example[classifiers.k])
    return Booster(with_object_ids, groups, rounds, _curve(curve), seed)


def _check_arguments(sets: np.ndarray, watch: np.ndarray, rounds: int, checks: int) -> None:
    if rounds < 0 or checks < 1:
        raise ValueError(f"rounds {rounds}, checks {checks}: expected >= 0 and >= 1")
    if len(watch) and (watch.min() < 0 or watch.max() >= len(sets) or not sets[watch].any(axis=1).all()):
        raise ValueError("watch has ids without a label or out of range; expected ids of labelled objects")
    if not np.delete(sets, watch, axis=0).any():
        raise ValueError("no labelled object to train on; expected at least one y >= 0 that is not in watch")


def _curve(points: list[tuple]) -> Curve:
    rounds, *figures = (np.array(column) for column in zip(*points))
    return Curve(rounds.astype(np.int64), *(figure.astype(np.float64) for figure in figures))


def _with_example_numbers(classifiers: Classifiers, groups: Groups) -> Classifiers:
    """The classifiers with numbers of examples in place of ids."""
    number = np.zeros(1 + int(groups.example.max(initial=-1)), np.int32)
    number[groups.example] = np.arange(len(groups.example))
    return classifiers._replace(j=number[classifiers.j], k=number[classifiers.k])


def votes_of(booster: Booster, columns: Columns, objects: np.ndarray) -> votes.LabelVotes:
    """Eq. (5) before the argmax: every label's weight for every asked object. O(K + C log C)."""
    codes = codes_from_columns(columns, booster.groups, objects)
    blank = votes.no_votes(len(objects), booster.groups.truth.shape[1])
    return votes.add(blank, _with_example_numbers(booster.classifiers, booster.groups), codes)


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
    is_object = (objects >= 0) & (objects < columns.n_objects)
    if not is_object.all() or len(np.unique(objects)) != len(objects):
        raise ValueError(f"objects must be distinct ids in 0 ... {columns.n_objects - 1}")
    return votes.decide(votes_of(booster, columns, objects), objects, booster.seed)
