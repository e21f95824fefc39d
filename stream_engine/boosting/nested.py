"""Which model serves best, and how well, by nested cross-validation over the objects with a label.

Folds are stratified by class and drawn by a hash of names. What is reported of a fold comes from models, settings and
temperatures that were chosen on the other folds alone, each of them held out in turn; so what chose is never what is
reported, neither of a single model (its setting was chosen) nor of the choice among them. Of few objects every fold is
reported on in turn and the answers pooled (cross-fitting); of many only the first. A model that held two folds out
serves both of them, as the one reported on and the one that chooses: F (F - 1) / 2 + F fits of a setting for F folds.

Scores as probabilities: P(c) = exp(t s_c) / sum_b exp(t s_b), with one t >= 0 (temperature scaling, Guo et al. 2017,
sec. 4.2), fitted to scores of objects that the model had not learned from. The order of the classes stays.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp, softmax


def temperature(scores: np.ndarray, truth: np.ndarray) -> float:
    """The t with the least log loss of (m, Y) scores; by bisection, the loss is convex in t. O(m Y) a step.

    One more object each way at a usual margin keeps t finite while all comes as expected.

    >>> round(temperature(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), np.array([0, 0, 1])), 4)  # log(3 / 2)
    0.4055
    """
    if not len(scores) or scores.shape[1] < 2:
        return 0.0
    top = np.sort(scores, axis=1)
    margin = float(np.sqrt(np.mean((top[:, -1] - top[:, -2]) ** 2)))
    if margin == 0.0:
        return 0.0
    own = scores[np.arange(len(scores)), truth]

    def rise(t: float) -> float:
        expected = (softmax(t * scores, axis=1) * scores).sum(axis=1)
        return float((own - expected).sum() - margin * np.tanh(t * margin / 2))

    low, high = 0.0, 1.0 / margin
    if rise(0.0) <= 0:
        return 0.0
    while rise(high) > 0 and high < 1e9 / margin:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rise(middle) > 0 else (low, middle)
    return (low + high) / 2


def probabilities(scores: np.ndarray, t: float, abstained: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(m, Y) of (m, Y) scores; where a model abstained the classes' shares `prior` (Y,)."""
    made = softmax(t * scores, axis=1)
    made[abstained] = prior
    return made


def losses(scores: np.ndarray, t: float, abstained: np.ndarray, prior: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(m,) -log P(truth), in nats."""
    at = np.arange(len(truth))
    said = logsumexp(t * scores, axis=1) - t * scores[at, truth]
    return np.where(abstained, -np.log(prior[truth]), said)


def decided(scores: np.ndarray, abstained: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(m,) int32 the class of the largest score; among equal ones, and where a model abstained, the one with the larger
    share (of equal shares the first).

    >>> decided(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([False, False]), np.array([0.75, 0.25])).tolist()
    [1, 0]
    """
    top = (scores == scores.max(axis=1, keepdims=True)) | abstained[:, None]
    return np.where(top, prior, -1.0).argmax(axis=1).astype(np.int32)


def shares(labels: np.ndarray, classes: int) -> np.ndarray:
    """(classes,) shares of the classes, each counted half a time more: none is impossible.

    >>> shares(np.array([0, 0, 1]), 2).tolist()
    [0.625, 0.375]
    """
    counts = np.bincount(labels, minlength=classes) + 0.5
    return counts / counts.sum()


FOLDS = 5
MIN_LABELLED_OBJECTS = 10  # objects with a label, below which nothing is held out


class Scorer(Protocol):
    """Scores of objects by a model with a setting, trained on some of the labelled objects."""

    def __call__(self, setting: float, train: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`train` (l,) positions among the labelled objects, `asked` (m,) ids of objects: (m, Y) scores, (m,) bool
        abstained."""


class Model(NamedTuple):
    """A model that can be asked, and the settings it is tried with."""

    name: str
    settings: tuple[float, ...]
    score: Scorer


class Figures(NamedTuple):
    """Of objects that the model, its setting and its temperature had not seen: shares, and nats an object."""

    objects: int
    accuracy: float
    standard_error: float
    log_loss: float
    abstained: float

    @staticmethod
    def of(right: np.ndarray, losses: np.ndarray, abstained: np.ndarray) -> "Figures":
        """From one entry an object."""
        m, share = len(right), float(right.mean())
        error = float(np.sqrt(share * (1 - share) / max(m - 1, 1))) or 1.96 / (m + 1.96**2)  # Wilson's where all agree
        return Figures(m, share, error, float(losses.mean()), float(abstained.mean()))


class Selection(NamedTuple):
    """The best model and its setting, and what is reported; figures are None where too few objects have labels."""

    model: Model
    setting: float
    fold: np.ndarray  # (L,) int64 of each labelled object
    reported: np.ndarray  # (L,) bool
    best: Figures | None  # of whatever was chosen without the fold that is reported on
    majority: float | None  # accuracy of the class that most training objects had
    each: dict[str, Figures]
    chosen: dict[str, float]  # the setting of each model that all folds together like best
    losses: dict[str, float]  # of each model at that setting, on the objects that chose


class HeldOutScores(NamedTuple):
    """A model's answers on some labelled objects."""

    at: np.ndarray  # (m,) positions among the labelled objects
    scores: np.ndarray
    abstained: np.ndarray


def folds_of(labels: np.ndarray, draws: np.ndarray, folds: int = FOLDS) -> np.ndarray:
    """(L,) int64 in 0 .. folds - 1: class by class in the order of `draws` (L,), dealt out in turn. O(L log L).

    >>> folds_of(np.array([0, 1, 0, 1, 0]), np.array([3, 1, 1, 2, 2]), 2).tolist()
    [0, 1, 0, 0, 1]
    """
    fold = np.empty(len(labels), np.int64)
    fold[np.lexsort((draws, labels))] = np.arange(len(labels)) % max(folds, 1)
    return fold


class _Fits:
    """Answers of models that held folds out, each fitted once."""

    def __init__(self, models: list[Model], labels: np.ndarray, ids: np.ndarray, fold: np.ndarray, most: int):
        self.models, self.labels, self.ids, self.fold, self.most = models, labels, ids, fold, most
        self._held: dict[tuple[int, float, frozenset[int]], HeldOutScores] = {}

    def of(self, model: int, setting: float, out: set[int], wanted: int) -> HeldOutScores:
        """The answers on the fold `wanted` of a fit that had none of the folds in `out`."""
        key = (model, setting, frozenset(out))
        if key not in self._held:
            held = np.isin(self.fold, list(out))
            train, at = np.flatnonzero(~held)[: self.most], np.flatnonzero(held)
            scores, abstained = self.models[model].score(setting, train, self.ids[at])
            self._held[key] = HeldOutScores(at, scores, abstained)
        answers = self._held[key]
        mine = self.fold[answers.at] == wanted
        return HeldOutScores(*(array[mine] for array in answers))

    def choosing(self, model: int, setting: float, outer: int) -> HeldOutScores:
        """The answers on all folds but `outer`, each by a fit that had neither."""
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

    Up to `all_folds_up_to` objects all folds are reported on, and no fit that chooses or is reported on has more than
    `train_at_most` to learn from.
    """
    fold = folds_of(labels, draws)
    settings = {model.name: model.settings[0] for model in models}
    nobody = np.zeros(len(labels), bool)
    if len(labels) < MIN_LABELLED_OBJECTS or classes < 2:
        return Selection(models[0], models[0].settings[0], fold, nobody, None, None, {}, settings, {})
    fits = _Fits(models, labels, ids, fold, train_at_most)
    outer = range(FOLDS if len(labels) <= all_folds_up_to else 1)
    by_setting: dict[tuple[int, float], list[float]] = {}
    pooled: dict[str, list[tuple[np.ndarray, ...]]] = {"": [], **{model.name: [] for model in models}}
    usual = []
    for done, out in enumerate(outer):
        prior = shares(labels[fold != out], classes)
        usual.append(labels[fold == out] == prior.argmax())
        best = np.inf
        for number, model in enumerate(models):
            tried = []
            for setting in model.settings:
                found = fits.choosing(number, setting, out)
                t = temperature(found.scores[~found.abstained], labels[found.at[~found.abstained]])
                each = losses(found.scores, t, found.abstained, prior, labels[found.at])
                tried.append((float(each.mean()), setting, t))
                by_setting.setdefault((number, setting), []).append(tried[-1][0])
            loss, setting, t = min(tried)
            asked = fits.of(number, setting, {out}, out)
            truth = labels[asked.at]
            answer = (
                decided(asked.scores, asked.abstained, prior) == truth,
                losses(asked.scores, t, asked.abstained, prior, truth),
                asked.abstained,
            )
            pooled[model.name].append(answer)
            if loss < best:
                best, best_answer = loss, answer
            progress(done * len(models) + number + 1, len(outer) * len(models), log_loss=loss)
        pooled[""].append(best_answer)
    figures = {name: Figures.of(*(np.concatenate(parts) for parts in zip(*those))) for name, those in pooled.items()}
    mean = {key: float(np.mean(values)) for key, values in by_setting.items()}
    by_model = [min((mean[number, s], s) for s in model.settings) for number, model in enumerate(models)]
    winner = int(np.argmin([loss for loss, _ in by_model]))
    return Selection(
        models[winner],
        by_model[winner][1],
        fold,
        np.isin(fold, list(outer)),
        figures.pop(""),
        float(np.concatenate(usual).mean()),
        figures,
        {model.name: setting for model, (_, setting) in zip(models, by_model)},
        {model.name: loss for model, (loss, _) in zip(models, by_model)},
    )


class FinalScores(NamedTuple):
    """What is told of all objects."""

    scores: np.ndarray  # (n, Y)
    abstained: np.ndarray  # (n,)
    temperature: float


def delivered(found: Selection, labels: np.ndarray, classes: int, ids: np.ndarray, n: int) -> FinalScores:
    """The best model's answers about all n objects: of one with a label by a fit without its fold, of all others by one
    on all labels. The temperature is fitted to the former."""
    scores, abstained = np.zeros((n, classes)), np.ones(n, bool)
    rest = np.setdiff1d(np.arange(n), ids)
    everybody = np.arange(len(ids))
    if found.best is None:
        everyone = np.arange(n)
        scores, abstained = found.model.score(found.setting, everybody, everyone)
        return FinalScores(scores, abstained, 1.0)
    for out in np.unique(found.fold).tolist():
        held = found.fold == out
        scores[ids[held]], abstained[ids[held]] = found.model.score(found.setting, np.flatnonzero(~held), ids[held])
    said = ~abstained[ids]
    t = temperature(scores[ids][said], labels[said])
    if len(rest):
        scores[rest], abstained[rest] = found.model.score(found.setting, everybody, rest)
    return FinalScores(scores, abstained, t)


def report(found: Selection) -> list[dict[str, Any]]:
    """A row a model: its held-out figures, the setting that all labels together like best, and whether it is the
    best."""
    return [
        {"model": name, "setting": found.chosen[name], **figures._asdict(), "best": name == found.model.name}
        for name, figures in found.each.items()
    ]
