"""TripletBoost (Perrot & von Luxburg 2019): a classifier of all objects, from triplet counts and labels of some
objects.

The labelled objects are split into a training and a test set, stratified by label set. Objects without a label are
never references or examples, but they are predicted at every refit. With a single class there is no triplet classifier:
every object abstains and gets that class. Cost: about 1 microsecond per round and 2 bytes per triplet.

With `objects`, only a subset serves as references and examples. Labels of other objects train nothing, so these objects
are an additional test set. They are predicted like unlabelled objects, from their answers as anchors about pairs of
references.
"""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from stream_engine.boosting import labels
from stream_engine.boosting.codes import bytes_needed
from stream_engine.boosting.fit import Booster, fit, predict, votes_of
from stream_engine.boosting.rounds import state_bytes
from stream_engine.boosting.theorems import abstention_bound, figures
from stream_engine.boosting.votes import Predictions, decide
from stream_engine.data import available_memory
from stream_engine.data.triplet_columns import Columns
from stream_engine.evaluation import held_out, subset
from stream_engine.refits import CannotRefit, Progress, no_progress
from stream_engine.state import snapshot as snapshots
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import TRIPLET_BOOST
from stream_engine.state.snapshot import Snapshot

__all__ = ["Booster", "Params", "abstention_bound", "fit", "predict", "refit"]

AXES = TRIPLET_BOOST.axes


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the boosting refit.

    Parameters
    ----------
    rounds : int
        Rounds of Algorithm 1 at this refit (the paper uses 10^6).
    test : float
        Share of the objects of every label set in the test set; 0: train on all.
    multi_label : bool
        Read a label "a|b" as the two labels a and b.
    objects : int or tuple of str, optional
        Use only these names as references and examples, or the given number of objects with the most answers.
    rest : {'none', 'predicted'}
        The other objects are predicted too, or get no prediction ("none").
    """

    rounds: Annotated[int, msgspec.Meta(ge=0, le=100_000_000)] = 100_000
    test: Annotated[float, msgspec.Meta(ge=0, le=0.9)] = 0.2
    multi_label: bool = False
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "predicted"] = "predicted"


class TrainingData(NamedTuple):
    """The input of a fit: counts about pairs of the subset, label sets of all objects, and their parts."""

    columns: Columns
    sets: np.ndarray  # (n, Y) bool
    classes: list[str]  # Y, those that an object of the subset has first
    n_learned: int  # number of these classes, which alone can be learned
    parts: np.ndarray  # (n,) int8: training set, test set, ..., see `labels`
    predicted_ids: np.ndarray  # (m,) ids of the objects that get a prediction


# A small test set says little: with fewer test objects, `held_out` of the report is pooled over 1 / `test` more fits
# that test every labelled object once. The published classifiers are the same.
CROSS_FIT_BELOW = 100


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Boost on a published snapshot and predict its objects.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, not used.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: Arrays with one row per object; `predicted` is -1 for an object without a prediction.

    Raises
    ------
    CannotRefit
        If no object of the comparisons has a label, or if memory does not suffice.
    """
    sets, classes = labels.parse(snapshot.objects, snapshot.labels, params.multi_label)
    if not classes:
        raise CannotRefit(
            f"triplet_boost - no labelled object among {len(snapshot.objects)}, {len(snapshot.labels)} "
            "labels given - expected at least one - give labels with label events or --labels FILE"
        )
    data = _training_data(snapshot, params, seed, sets, classes)
    _require_memory(data, params.rounds)
    booster = _boosted(data, seed, params.rounds, progress)
    arrays, report = _outcome(booster, data)
    arrays |= _given_sets(booster, data) if params.multi_label else {}
    if 0 < report["test_part"]["objects"] < CROSS_FIT_BELOW:
        report["held_out"] = _cross_fitted(data, params, seed)
    report["multi_label"] = params.multi_label
    settings = plain_params(params)
    return Artifact("triplet_boost", snapshot.digest, snapshot.sequence, settings, seed, arrays, report)


def _training_data(snapshot: Snapshot, params: Params, seed: int, sets: np.ndarray, classes: list[str]) -> TrainingData:
    columns, everyone = snapshots.triplet_columns(snapshot), np.arange(len(snapshot.objects))
    if params.objects is None:
        parts = labels.split(sets, params.test, seed)
        return TrainingData(columns, sets, classes, len(classes), parts, everyone)
    try:
        ids = subset.ids_of(snapshot, params.objects)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"triplet_boost - {error} - expected names of the snapshot - see `export objects`") from None
    in_subset = np.isin(everyone, ids)
    if not sets[in_subset].any():
        raise CannotRefit(
            f"triplet_boost - no labelled object among the {len(ids)} chosen of {len(everyone)} - expected at least "
            "one - label some of these, or choose others in `objects`"
        )
    in_classes = sets[in_subset].any(axis=0)
    order = np.argsort(~in_classes, kind="stable")
    sets, classes = sets[:, order], [classes[c] for c in order.tolist()]
    predicted_ids = everyone if params.rest == "predicted" else ids
    columns = subset.restrict_columns(
        columns, np.where(in_subset, everyone, -1), np.where(np.isin(everyone, predicted_ids), everyone, -1)
    )
    parts = labels.split(sets, params.test, seed, in_subset)
    return TrainingData(columns, sets, classes, int(in_classes.sum()), parts, predicted_ids)


def _boosted(data: TrainingData, seed: int, rounds: int, progress: Progress) -> Booster:
    """Fit on the training set, with the error on the test set in the curve."""
    label_sets = data.sets[:, : data.n_learned] & np.isin(data.parts, [labels.TRAIN, labels.TEST])[:, None]
    watch = np.flatnonzero(data.parts == labels.TEST)
    return fit(data.columns, label_sets, rounds, seed, watch=watch, progress=progress)


def _require_memory(data: TrainingData, rounds: int) -> None:
    n, n_labels = int((data.parts == labels.TRAIN).sum()), data.n_learned
    objects, n_predicted = len(data.parts), len(data.predicted_ids)
    bytes = (
        bytes_needed(data.columns, n, n_predicted)
        + state_bytes(n, n_labels)
        + 24 * n_predicted * n_labels
        + 24 * objects
        + rounds * 3 * (16 + 2 * -(-n_labels // 8))
    )
    what = f"{objects} objects, {n_labels} classes, {len(data.columns.anchor)} triplet keys and {rounds} rounds"
    try:
        available_memory.require(
            f"triplet_boost of {what}",
            bytes,
            "take fewer rounds, choose objects (--set objects=500), or raise --memory-gb",
        )
    except available_memory.TooLarge as error:
        raise CannotRefit(str(error)) from None


def _predictions(booster: Booster, data: TrainingData) -> tuple[Predictions, np.ndarray]:
    """`(predictions, confidences (n, Y))` of the objects that get a prediction; the others have no label (-1), no
    weight, and abstain."""
    n, ids = len(data.parts), data.predicted_ids
    votes = votes_of(booster, data.columns, ids)
    predictions, weight = decide(votes, ids, booster.seed), votes.confidence
    if len(ids) == n:
        return predictions, weight
    all_predictions = Predictions(np.full(n, -1, np.int32), np.zeros(n), np.zeros(n), np.ones(n, bool))
    for full, rows in zip(all_predictions, predictions, strict=True):
        full[ids] = rows
    confidence = np.zeros((n, weight.shape[1]))
    confidence[ids] = weight
    return all_predictions, confidence


class TestOutcomes(NamedTuple):
    """Predictions of objects outside the training set."""

    right: np.ndarray  # (q,) bool
    by_majority: np.ndarray  # (q,) bool: the majority class of the training set is correct
    abstained: np.ndarray  # (q,) bool


def _outcomes(decided: Predictions, data: TrainingData, part: int) -> TestOutcomes:
    test = data.parts == part
    majority_class = int(data.sets[data.parts == labels.TRAIN].sum(axis=0).argmax())
    return TestOutcomes(data.sets[test, decided.label[test]], data.sets[test, majority_class], decided.abstained[test])


def _part_figures(decided: Predictions, data: TrainingData, part: int) -> dict[str, Any]:
    """Accuracy on one part, and that of the majority class of the training set."""
    return _figures([_outcomes(decided, data, part)])


def _figures(fits: list[TestOutcomes]) -> dict[str, Any]:
    """Figures over all objects of these fits; the standard error is that of as many independent objects, None for fewer
    than five."""
    outcomes = TestOutcomes(*(np.concatenate(column) for column in zip(*fits)))
    objects = len(outcomes.right)
    if not objects:
        return {"objects": 0, "error": None, "accuracy": None, "majority_class_accuracy": None, "abstained": None}
    right = float(outcomes.right.mean())
    return {
        "objects": objects,
        "error": 1 - right,
        "accuracy": right,
        "standard_error": held_out.standard_error(outcomes.right - right, objects),
        "majority_class_accuracy": float(outcomes.by_majority.mean()),
        "abstained": float(outcomes.abstained.mean()),
        "fits": len(fits),
    }


def _cross_fitted(data: TrainingData, params: Params, seed: int) -> dict[str, Any]:
    """The accuracy of classifiers on objects that they were not trained on, over all labelled objects."""
    fits = []
    for parts in labels.folds(data.sets, params.test, seed, data.parts != labels.OUTSIDE):
        fold = data._replace(parts=parts, predicted_ids=np.flatnonzero(parts == labels.TEST))
        booster = _boosted(fold, seed, params.rounds, no_progress)
        fits.append(_outcomes(_predictions(booster, fold)[0], fold, labels.TEST))
    return _figures(fits)


def _outcome(booster: Booster, data: TrainingData) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """`(arrays, report)` of a booster: classifiers, predictions of all objects, curves, figures."""
    decided, confidence = _predictions(booster, data)
    parts, sets, curve = data.parts, data.sets, booster.curve
    train = parts == labels.TRAIN
    signs = np.where(sets[train, : data.n_learned], -1.0, 1.0)
    margin_loss = np.logaddexp.reduce(signs * confidence[train], axis=None)
    log_bound = float(margin_loss - np.log(2 * train.sum()))
    arrays = {
        **booster.classifiers._asdict(),
        "predicted": decided.label,
        "score": decided.score,
        "margin": decided.margin,
        "abstained": decided.abstained,
        "part": parts,
        "given": np.where(sets.any(axis=1), sets.argmax(axis=1), -1).astype(np.int32),
        "curve_rounds": curve.rounds,
        "log_bound": curve.log_bound,
        "bound": np.exp(curve.log_bound),
        "train_error": curve.train_error,
        "watched_error": curve.watched_error,
    }
    report: dict[str, Any] = {
        "classes": data.classes[: data.n_learned],
        "rounds": booster.rounds,
        "stored": len(booster.classifiers.alpha),
        "labelled": int((parts > 0).sum()),
        "trained_on": int(train.sum()),
        "predicted": len(data.predicted_ids),
        "train_error": float(1 - sets[train, decided.label[train]].mean()),
        "bound": float(np.exp(min(log_bound, 700.0))),
        "log_bound": log_bound,
        "held_out": (test_figures := _part_figures(decided, data, labels.TEST)),
        "test_part": test_figures,
        "abstention_rate": float(decided.abstained[data.predicted_ids].mean()),
        **figures(booster, data.columns, confidence),
    }
    if data.n_learned < len(data.classes):
        report["other_classes"] = data.classes[
            data.n_learned :
        ]  # that no object of the subset has: given, never predicted
    if (parts == labels.OUTSIDE).any() and len(data.predicted_ids) == len(parts):
        report["outside"] = _part_figures(
            decided, data, labels.OUTSIDE
        )  # labelled, not in the subset: never trained on
    return arrays, report


def _given_sets(booster: Booster, data: TrainingData) -> dict[str, np.ndarray]:
    """Packed label sets, given and predicted: a label is predicted with more than half of the weight that voted."""
    label_sets = data.sets[:, : data.n_learned]
    return {
        "given_sets": np.packbits(label_sets, axis=1, bitorder="little"),
        "predicted_sets": np.packbits(_predictions(booster, data)[1] > 0, axis=1, bitorder="little"),
    }
