"""TripletBoost as a refit: a classifier of all objects, from triplet counts and the labels of some objects.

Perrot & von Luxburg (2019). The labelled objects are split into a training and a test set, stratified by label set.
Objects without a label are never references or examples, but they are predicted at every refit. With a single class
there is no triplet classifier: every object abstains and gets that class. Cost: about 1 microsecond per round and 2
bytes per triplet.

A small test set says little: below `CROSS_FIT_BELOW` objects, `held_out` of the report is pooled over fits that test
every labelled object once, each by classifiers trained on others. The published classifiers are the same as without it.

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
CROSS_FIT_BELOW = 100  # test objects: cross-fit (1 / `test` more fits) below this number


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
    """What is boosted on: counts about pairs of the subset, label sets of all, who is trained on, who is asked."""

    columns: Columns
    sets: np.ndarray  # (n, Y) bool
    classes: list[str]  # Y, those that can be learned first
    learned: int  # how many these are: a class that no object of the subset has is none
    parts: np.ndarray  # (n,) int8, see `labels`
    asked: np.ndarray  # (m,) ids: who gets a prediction


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
    world = _world(snapshot, params, seed, sets, classes)
    _require_memory(world, params.rounds)
    booster = _boosted(world, seed, params.rounds, progress)
    arrays, report = _outcome(booster, world)
    arrays |= _given_sets(booster, world) if params.multi_label else {}
    if 0 < report["test_part"]["objects"] < CROSS_FIT_BELOW:
        report["held_out"] = _cross_fitted(world, params, seed)
    report["multi_label"] = params.multi_label
    settings = plain_params(params)
    return Artifact("triplet_boost", snapshot.digest, snapshot.sequence, settings, seed, arrays, report)


def _world(snapshot: Snapshot, params: Params, seed: int, sets: np.ndarray, classes: list[str]) -> TrainingData:
    columns, everyone = snapshots.triplet_columns(snapshot), np.arange(len(snapshot.objects))
    if params.objects is None:
        parts = labels.split(sets, params.test, seed)
        return TrainingData(columns, sets, classes, len(classes), parts, everyone)
    try:
        ids = subset.ids_of(snapshot, params.objects)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"triplet_boost - {error} - expected names of the snapshot - see `export objects`") from None
    inside = np.isin(everyone, ids)
    if not sets[inside].any():
        raise CannotRefit(
            f"triplet_boost - no labelled object among the {len(ids)} chosen of {len(everyone)} - expected at least "
            "one - label some of these, or choose others in `objects`"
        )
    there = sets[inside].any(axis=0)
    order = np.argsort(~there, kind="stable")
    sets, classes = sets[:, order], [classes[c] for c in order.tolist()]
    asked = everyone if params.rest == "predicted" else ids
    columns = subset.restrict_columns(
        columns, np.where(inside, everyone, -1), np.where(np.isin(everyone, asked), everyone, -1)
    )
    parts = labels.split(sets, params.test, seed, inside)
    return TrainingData(columns, sets, classes, int(there.sum()), parts, asked)


def _boosted(world: TrainingData, seed: int, rounds: int, progress: Progress) -> Booster:
    """Fit on the training part, watching the test part."""
    known = world.sets[:, : world.learned] & np.isin(world.parts, [labels.TRAIN, labels.TEST])[:, None]
    watch = np.flatnonzero(world.parts == labels.TEST)
    return fit(world.columns, known, rounds, seed, watch=watch, progress=progress)


def _require_memory(world: TrainingData, rounds: int) -> None:
    n, n_labels = int((world.parts == labels.TRAIN).sum()), world.learned
    objects, asked = len(world.parts), len(world.asked)
    need = (
        bytes_needed(world.columns, n, asked)
        + state_bytes(n, n_labels)
        + 24 * asked * n_labels
        + 24 * objects
        + rounds * 3 * (16 + 2 * -(-n_labels // 8))
    )
    what = f"{objects} objects, {n_labels} classes, {len(world.columns.anchor)} triplet keys and {rounds} rounds"
    try:
        available_memory.require(
            f"triplet_boost of {what}",
            need,
            "take fewer rounds, choose objects (--set objects=500), or raise --memory-gb",
        )
    except available_memory.TooLarge as error:
        raise CannotRefit(str(error)) from None


def _asked(booster: Booster, world: TrainingData) -> tuple[Predictions, np.ndarray]:
    """Predictions and confidences (n, Y) of who is asked; all others: no label (-1), no weight, abstained."""
    n, ids = len(world.parts), world.asked
    votes = votes_of(booster, world.columns, ids)
    predictions, weight = decide(votes, ids, booster.seed), votes.confidence
    if len(ids) == n:
        return predictions, weight
    every = Predictions(np.full(n, -1, np.int32), np.zeros(n), np.zeros(n), np.ones(n, bool))
    for whole, rows in zip(every, predictions, strict=True):
        whole[ids] = rows
    confidence = np.zeros((n, weight.shape[1]))
    confidence[ids] = weight
    return every, confidence


class TestOutcomes(NamedTuple):
    """Of objects that were not trained on."""

    right: np.ndarray  # (q,) bool
    by_majority: np.ndarray  # (q,) bool: the class that most training objects have is right
    abstained: np.ndarray  # (q,) bool


def _answered(decided: Predictions, world: TrainingData, part: int) -> TestOutcomes:
    test = world.parts == part
    usual = int(world.sets[world.parts == labels.TRAIN].sum(axis=0).argmax())
    return TestOutcomes(world.sets[test, decided.label[test]], world.sets[test, usual], decided.abstained[test])


def _right(decided: Predictions, world: TrainingData, part: int) -> dict[str, Any]:
    """Accuracy on one part beside that of the class that most training objects have."""
    return _figures([_answered(decided, world, part)])


def _figures(fits: list[TestOutcomes]) -> dict[str, Any]:
    """Over all objects of these fits; the standard error as of as many coins, unknown for fewer than five objects."""
    each = TestOutcomes(*(np.concatenate(column) for column in zip(*fits)))
    objects = len(each.right)
    if not objects:
        return {"objects": 0, "error": None, "accuracy": None, "majority_class_accuracy": None, "abstained": None}
    right = float(each.right.mean())
    return {
        "objects": objects,
        "error": 1 - right,
        "accuracy": right,
        "standard_error": held_out.standard_error(each.right - right, objects),
        "majority_class_accuracy": float(each.by_majority.mean()),
        "abstained": float(each.abstained.mean()),
        "fits": len(fits),
    }


def _cross_fitted(world: TrainingData, params: Params, seed: int) -> dict[str, Any]:
    """How well objects are told by classifiers that were trained on others, every labelled one asked once."""
    fits = []
    for parts in labels.folds(world.sets, params.test, seed, world.parts != labels.OUTSIDE):
        fold = world._replace(parts=parts, asked=np.flatnonzero(parts == labels.TEST))
        booster = _boosted(fold, seed, params.rounds, no_progress)
        fits.append(_answered(_asked(booster, fold)[0], fold, labels.TEST))
    return _figures(fits)


def _outcome(booster: Booster, world: TrainingData) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and report of a booster: classifiers, predictions of all objects, curves, figures."""
    decided, confidence = _asked(booster, world)
    parts, sets, curve = world.parts, world.sets, booster.curve
    train = parts == labels.TRAIN
    margin_loss = np.logaddexp.reduce(np.where(sets[train, : world.learned], -1.0, 1.0) * confidence[train], axis=None)
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
        "classes": world.classes[: world.learned],
        "rounds": booster.rounds,
        "stored": len(booster.classifiers.alpha),
        "labelled": int((parts > 0).sum()),
        "trained_on": int(train.sum()),
        "predicted": len(world.asked),
        "train_error": float(1 - sets[train, decided.label[train]].mean()),
        "bound": float(np.exp(min(log_bound, 700.0))),
        "log_bound": log_bound,
        "held_out": (told := _right(decided, world, labels.TEST)),
        "test_part": told,
        "abstention_rate": float(decided.abstained[world.asked].mean()),
        **figures(booster, world.columns, confidence),
    }
    if world.learned < len(world.classes):
        report["other_classes"] = world.classes[
            world.learned :
        ]  # that no object of the subset has: given, never predicted
    if (parts == labels.OUTSIDE).any() and len(world.asked) == len(parts):
        report["outside"] = _right(decided, world, labels.OUTSIDE)  # labelled, not in the subset: never trained on
    return arrays, report


def _given_sets(booster: Booster, world: TrainingData) -> dict[str, np.ndarray]:
    """Packed label sets, given and predicted: predicted is what has more than half of the weight that voted."""
    given = world.sets[:, : world.learned]
    return {
        "given_sets": np.packbits(given, axis=1, bitorder="little"),
        "predicted_sets": np.packbits(_asked(booster, world)[1] > 0, axis=1, bitorder="little"),
    }
