"""Which model serves best, and how well, by nested cross-validation over the objects with a label."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from stream_engine.boosting.probabilities import class_shares, decide_classes, losses, temperature

# Folds are stratified by class and drawn by a hash of names. What is reported of a fold comes from models, settings and
# temperatures that were chosen on the other folds alone, each of them held out in turn; so what chose is never what is
# reported, neither of a single model (its setting was chosen) nor of the choice among them. Of few objects every fold
# is reported on in turn and the answers pooled (cross-fitting); of many only the first. A model that held two folds out
# serves both of them, as the one reported on and the one that chooses: F (F - 1) / 2 + F fits of a setting for F folds.
FOLDS = 5
MIN_LABELLED_OBJECTS = 10  # below which nothing is held out


class Scorer(Protocol):
    """Scores of objects by a model with a setting, trained on some of the labelled objects."""

    def __call__(self, setting: float, train: np.ndarray, query_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`train` (l,) positions among the labelled objects, `query_ids` (m,) ids of objects: (m, Y) scores, (m,) bool
        abstained."""


class Model(NamedTuple):
    """A model and its candidate settings."""

    name: str
    settings: tuple[float, ...]
    score: Scorer


class Figures(NamedTuple):
    """Held-out figures: of objects on which neither the model was fitted nor its setting and temperature were
    chosen."""

    objects: int
    accuracy: float
    standard_error: float
    log_loss: float
    abstained: float

    @staticmethod
    def of(right: np.ndarray, losses: np.ndarray, abstained: np.ndarray) -> "Figures":
        """From arrays with one entry an object."""
        m, share = len(right), float(right.mean())
        error = float(np.sqrt(share * (1 - share) / max(m - 1, 1))) or 1.96 / (
            m + 1.96**2
        )  # Wilson's if all are right or all wrong
        return Figures(m, share, error, float(losses.mean()), float(abstained.mean()))


class Selection(NamedTuple):
    """The best model and its setting, with held-out figures; `best` and `majority` are None if too few objects have
    labels."""

    model: Model
    setting: float
    fold: np.ndarray  # (L,) int64 of each labelled object
    is_reported: np.ndarray  # (L,) bool
    best: Figures | None  # of the model that was chosen without the fold that is reported on
    majority: float | None  # accuracy of the class that most training objects had
    figures_by_model: dict[str, Figures]
    setting_by_model: dict[str, float]  # the setting of each model with the least mean loss over all folds
    losses: dict[str, float]  # of each model at that setting, on the inner folds


class HeldOutScores(NamedTuple):
    """A model's scores of labelled objects that it was not fitted to."""

    at: np.ndarray  # (m,) positions among the labelled objects
    scores: np.ndarray
    abstained: np.ndarray


def folds_of(labels: np.ndarray, draws: np.ndarray, folds: int = FOLDS) -> np.ndarray:
    """(L,) int64 in 0 .. folds - 1: class by class in the order of `draws` (L,), assigned in turn. O(L log L).

    >>> folds_of(np.array([0, 1, 0, 1, 0]), np.array([3, 1, 1, 2, 2]), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    fold = np.empty(len(labels), np.int64)
    fold[np.lexsort((draws, labels))] = np.arange(len(labels)) % max(folds, 1)
    return fold


class _Fits:
    """Scores by models that were fitted without some folds, each fitted once."""

    def __init__(self, models: list[Model], labels: np.ndarray, ids: np.ndarray, fold: np.ndarray, max_training: int):
        self.models, self.labels, self.ids, self.fold, self.max_training = models, labels, ids, fold, max_training
        self._held_out: dict[tuple[int, float, frozenset[int]], HeldOutScores] = {}

    def of(self, model: int, setting: float, left_out: set[int], fold: int) -> HeldOutScores:
        """The answers on `fold` of a fit to all folds but those in `left_out`."""
        key = (model, setting, frozenset(left_out))
        if key not in self._held_out:
            is_held_out = np.isin(self.fold, list(left_out))
            train, at = np.flatnonzero(~is_held_out)[: self.max_training], np.flatnonzero(is_held_out)
            scores, abstained = self.models[model].score(setting, train, self.ids[at])
            self._held_out[key] = HeldOutScores(at, scores, abstained)
        answers = self._held_out[key]
        in_fold = self.fold[answers.at] == fold
        return HeldOutScores(*(array[in_fold] for array in answers))

    def of_inner_folds(self, model: int, setting: float, outer: int) -> HeldOutScores:
        """The answers on all folds but `outer`, each by a fit to neither that fold nor `outer`."""
        parts = [self.of(model, setting, {outer, f}, f) for f in np.unique(self.fold).tolist() if f != outer]
        return HeldOutScores(*(np.concatenate(arrays) for arrays in zip(*parts)))


def choose(
    models: list[Model],
    labels: np.ndarray,
    classes: int,
    ids: np.ndarray,
    draws: np.ndarray,
    all_folds_up_to: int,
    train_at_most: int,
    progress: Callable[..., bool | None],
) -> Selection:
    """The best of the models for objects `ids` (L,) with `labels` (L,); `draws` (L,) decide the folds.

    Up to `all_folds_up_to` objects all folds are reported on. No fit of the cross-validation is trained on more than
    `train_at_most` objects.
    """
    fold = folds_of(labels, draws)
    settings = {model.name: model.settings[0] for model in models}
    nothing_reported = np.zeros(len(labels), bool)
    if len(labels) < MIN_LABELLED_OBJECTS or classes < 2:
        return Selection(models[0], models[0].settings[0], fold, nothing_reported, None, None, {}, settings, {})
    fits = _Fits(models, labels, ids, fold, train_at_most)
    outer = range(FOLDS if len(labels) <= all_folds_up_to else 1)
    losses_by_setting: dict[tuple[int, float], list[float]] = {}
    # rows of (right, loss, abstained) on the outer folds, by model; "" is the model that the inner folds chose
    answers_by_model: dict[str, list[tuple[np.ndarray, ...]]] = {"": [], **{model.name: [] for model in models}}
    majority_hits = []
    for outer_fold in outer:
        prior = class_shares(labels[fold != outer_fold], classes)
        majority_hits.append(labels[fold == outer_fold] == prior.argmax())
        best_loss = np.inf
        for number, model in enumerate(models):
            setting_losses = _setting_losses(fits, number, outer_fold, prior)
            for loss, setting, _ in setting_losses:
                losses_by_setting.setdefault((number, setting), []).append(loss)
            loss, setting, t = min(setting_losses)
            answers = _answers_on(fits.of(number, setting, {outer_fold}, outer_fold), labels, t, prior)
            answers_by_model[model.name].append(answers)
            if loss < best_loss:
                best_loss, best_answers = loss, answers
            progress(outer_fold * len(models) + number + 1, len(outer) * len(models), log_loss=loss)
        answers_by_model[""].append(best_answers)
    figures = {name: Figures.of(*map(np.concatenate, zip(*rows))) for name, rows in answers_by_model.items()}
    mean_loss = {key: float(np.mean(values)) for key, values in losses_by_setting.items()}
    by_model = [min((mean_loss[number, s], s) for s in model.settings) for number, model in enumerate(models)]
    winner = int(np.argmin([loss for loss, _ in by_model]))
    return Selection(
        models[winner],
        by_model[winner][1],
        fold,
        np.isin(fold, list(outer)),
        figures.pop(""),
        float(np.concatenate(majority_hits).mean()),
        figures,
        {model.name: setting for model, (_, setting) in zip(models, by_model)},
        {model.name: loss for model, (loss, _) in zip(models, by_model)},
    )


def _setting_losses(fits: _Fits, model: int, outer_fold: int, prior: np.ndarray) -> list[tuple[float, float, float]]:
    """(mean loss, setting, temperature) of every setting of a model, on all folds but `outer_fold`."""
    rows = []
    for setting in fits.models[model].settings:
        held_out = fits.of_inner_folds(model, setting, outer_fold)
        has_score, truth = ~held_out.abstained, fits.labels[held_out.at]
        t = temperature(held_out.scores[has_score], truth[has_score])
        loss = losses(held_out.scores, t, held_out.abstained, prior, truth)
        rows.append((float(loss.mean()), setting, t))
    return rows


def _answers_on(
    held_out: HeldOutScores, labels: np.ndarray, t: float, prior: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each object: whether the answer is right, its loss in nats, and whether the model abstained."""
    truth = labels[held_out.at]
    right = decide_classes(held_out.scores, held_out.abstained, prior) == truth
    return right, losses(held_out.scores, t, held_out.abstained, prior, truth), held_out.abstained


class FinalScores(NamedTuple):
    """Scores of all n objects."""

    scores: np.ndarray  # (n, Y)
    abstained: np.ndarray  # (n,)
    temperature: float


def score_all(selection: Selection, labels: np.ndarray, classes: int, ids: np.ndarray, n: int) -> FinalScores:
    """The best model's scores of all n objects: of labelled objects by fits without their fold, of all others by a fit
    to all labels. The temperature is fitted to the former."""
    scores, abstained = np.zeros((n, classes)), np.ones(n, bool)
    unlabelled = np.setdiff1d(np.arange(n), ids)
    all_labelled = np.arange(len(ids))
    if selection.best is None:
        all_objects = np.arange(n)
        scores, abstained = selection.model.score(selection.setting, all_labelled, all_objects)
        return FinalScores(scores, abstained, 1.0)
    for left_out in np.unique(selection.fold).tolist():
        is_held_out = selection.fold == left_out
        held_out, train = ids[is_held_out], np.flatnonzero(~is_held_out)
        scores[held_out], abstained[held_out] = selection.model.score(selection.setting, train, held_out)
    has_score = ~abstained[ids]
    t = temperature(scores[ids][has_score], labels[has_score])
    if len(unlabelled):
        scores[unlabelled], abstained[unlabelled] = selection.model.score(selection.setting, all_labelled, unlabelled)
    return FinalScores(scores, abstained, t)


def report(selection: Selection) -> list[dict[str, Any]]:
    """A row a model: its held-out figures, its setting with the least loss over all folds, and whether it is the
    best."""
    best, settings = selection.model.name, selection.setting_by_model
    return [
        {"model": name, "setting": settings[name], **figures._asdict(), "best": name == best}
        for name, figures in selection.figures_by_model.items()
    ]
