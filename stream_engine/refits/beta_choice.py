"""Selection of the beta of a partial order embedding: the least held-out log loss, smallest beta first.

Objects are held out as in McFee & Lanckriet 2011, sec. 5.1 (trained on comparisons among the rest, tested on (i, j, i,
k) with i held out and j, k not), or responses are.
"""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.evaluation import held_out
from stream_engine.evaluation.held_out import slope_of
from stream_engine.kernel_learning import mkpoe
from stream_engine.kernel_learning.constraints import Constraints, constraints
from stream_engine.kernel_learning.lambda_search import Losses
from stream_engine.kernel_learning.object_folds import ObjectFold, by_objects_out
from stream_engine.refits import CannotRefit, Progress, kernel_refits
from stream_engine.refits.kernel_refits import Task, TrainingSplit
from stream_engine.state.snapshot import Snapshot, triplet_columns

ROUGH_GAP = 1e-2  # relative gap of solves that only rank betas


class Inputs(NamedTuple):
    """The data of the program: comparisons, and kernels or features (LPOE)."""

    comparisons: Constraints
    names: list[str]  # of the kernels; "identity" without kernels, "features" with features, "sum" of summed kernels
    kernels: list[np.ndarray]  # (n, n)
    features: np.ndarray | None  # (n, p)
    report: list[dict[str, Any]]  # about the files


class Choice(NamedTuple):
    """The beta to embed with, and how it was selected."""

    beta: float
    smallest: float  # the smallest beta at which anything is learned from all comparisons
    how: str
    tried: list[dict[str, float]]  # candidates with their figures, for the report
    slope: float | None = None  # of the probabilities
    # The smallest beta at which anything is learned without the held-out answers: candidates are multiples of it, and
    # the selected multiple is applied to `smallest`.
    scale: float | None = None


class Attempt(NamedTuple):
    """One candidate: its losses, and the slope of margins in units of the kernel's scale."""

    beta: float
    losses: Losses
    slope: float


def constraints_of(task: Task, snapshot: Snapshot) -> Constraints:
    """The constraint set of these counts, by the parameters of the task."""
    return constraints(snapshot, task.params.constraints, weights=task.params.weights, seed=task.seed)


def fit(params: Any, inputs: Inputs, beta: float, **limits: Any) -> mkpoe.Embedding:
    """`mkpoe.fit`, or with features `mkpoe.fit_linear`, by the parameters of the refit."""
    rows, weight = inputs.comparisons
    options = {"diagonal": params.form == "diagonal", "weight": weight, **limits}
    if inputs.features is not None:
        return mkpoe.fit_linear(rows, inputs.features, beta, **options)
    return mkpoe.fit(rows, inputs.kernels, beta, **options)


# Candidates for beta, as multiples of the smallest one that learns anything.
MULTIPLES = (2.0, 8.0, 40.0, 200.0)


def choose(task: Task, inputs: Inputs, split: TrainingSplit | None, *, progress: Progress) -> Choice:
    """The given beta, or the one with the least held-out log loss; of equal ones the smallest. Raises `CannotRefit` if
    no beta learns anything."""
    params = task.params
    smallest = _smallest(params, inputs)
    if smallest is None:
        raise CannotRefit(
            "partial_order_embedding: no scaling of the kernels satisfies more comparisons than it violates, so W = "
            "0 is optimal at every beta; expected informative kernels, or none (K = I)"
        )
    if params.beta is not None:
        return Choice(params.beta, smallest, "given", [], _slope_of_given(task, inputs, split))
    scale = smallest  # below without the held-out answers, which must not determine the grid either
    if split is not None:
        outside = inputs._replace(comparisons=constraints_of(task, split.outside))
        scale = _smallest(params, outside) or smallest
    betas = [multiple * scale for multiple in MULTIPLES]
    folds, how = _folds(task, inputs, split)
    if not folds:
        return Choice(betas[len(betas) // 2], smallest, "too few comparisons for a validation set", [])
    trials: list[dict[str, float]] = []

    def attempt(beta: float) -> Attempt:
        trial, gauc = _attempt(params, inputs, beta, folds)
        trials.append({"beta": beta, "log_loss": trial.losses.mean, "gauc": gauc})
        progress(len(trials), max(len(trials), len(betas)) + 2, **trials[-1])
        return trial

    best = _best(attempt, betas, scale)
    beta = best.beta / scale * smallest  # the same multiple of the smallest beta of all comparisons
    return Choice(beta, smallest, how, trials, best.slope, scale)


def _slope_of_given(task: Task, inputs: Inputs, split: TrainingSplit | None) -> float | None:
    """The slope of the probabilities of a given beta, from the validation set."""
    if split is None or not split.can_choose:
        return None
    gram = _rough_gram(task, inputs, split.fitting, task.params.beta)
    return None if gram is None else kernel_refits.calibrated_slope(gram, split.validation)


def _smallest(params: Any, inputs: Inputs) -> float | None:
    """The smallest beta at which anything is learned; None if there is none."""
    rows, weight = inputs.comparisons
    if not len(rows):
        return None
    diagonal = params.form == "diagonal"
    return mkpoe.smallest_beta(rows, weight, inputs.kernels, diagonal=diagonal, features=inputs.features)


# Numbers of candidates above and below the grid that are tried while its edge is the best.
MAX_STEPS_ABOVE, MAX_STEPS_BELOW = 4, 2


def _best(attempt, betas: list[float], smallest: float) -> Attempt:
    """The least loss of the grid, smallest beta first until one is clearly worse; then beyond an edge while it is
    best."""
    best: Attempt | None = None
    for beta in betas:
        trial = attempt(beta)
        if best is not None and trial.losses.clearly_above(best.losses):
            break
        best = trial if best is None or trial.losses.mean < best.losses.mean else best
    assert best is not None
    if best.beta == betas[-1]:
        return _extended(attempt, best, lambda beta: beta * betas[-1] / betas[-2], MAX_STEPS_ABOVE)
    if best.beta == betas[0]:
        return _extended(attempt, best, lambda beta: float(np.sqrt(beta * smallest)), MAX_STEPS_BELOW)
    return best


def _extended(attempt, best: Attempt, next_beta, max_steps: int) -> Attempt:
    for _ in range(max_steps):
        trial = attempt(next_beta(best.beta))
        if trial.losses.mean >= best.losses.mean:
            break
        best = trial
    return best


FOLDS = 3  # folds of objects in the cross-validation


def _folds(task: Task, inputs: Inputs, split: TrainingSplit | None) -> tuple[list[ObjectFold], str]:
    """`(training and test comparisons, how they were held out, in words)`; by responses if no objects can be held
    out."""
    params = task.params
    outside = task.restricted if split is None else split.outside
    if inputs.names != ["identity"]:
        voted = net_triplets(triplet_columns(outside))
        folds = by_objects_out(outside, params.constraints, voted, FOLDS, task.seed, params.weights)
        if folds:
            return folds, f"cross-validation, {len(folds)} folds of objects held out"
    if split is None or not split.can_choose:
        return [], ""
    training = constraints_of(task, split.fitting)
    validation, everyone = split.validation, np.ones(len(outside.objects), bool)
    test = Constraints(validation.rows, validation.times)
    return [ObjectFold(everyone, training, test, validation.response)] if len(
        training.rows
    ) else [], f"held-out {split.by}"


def _attempt(params: Any, inputs: Inputs, beta: float, folds: list[ObjectFold]) -> tuple[Attempt, float]:
    """`(the losses of a beta over all folds, the mean GAUC)`, with one slope for all folds. GAUC, the generalised AUC
    of McFee & Lanckriet, is the share of test comparisons that the kernel satisfies."""
    # The hinge is no likelihood, so distances become probabilities by one slope of margins in units of the kernel's
    # scale, fitted to the margins that it is tested on. Figures of the selected beta are computed with this slope on
    # answers that neither fitted nor selected it (`kernel_refits`).
    margins = [kernel_refits.margins(gram_of_test(params, inputs, beta, fold), fold.test.rows) for fold in folds]
    margin, times = np.concatenate(margins), np.concatenate([fold.test.weight for fold in folds])
    unit = np.concatenate([fold.unit for fold in folds])  # an object tests in one fold only
    number = np.unique(unit, return_inverse=True)[1].reshape(-1)
    slope = slope_of(margin, times)
    sums = np.bincount(number, times * held_out.losses(margin, slope))
    gauc = np.mean([f.test.weight[m > 0].sum() / f.test.weight.sum() for f, m in zip(folds, margins)])
    return Attempt(beta, Losses(sums, np.bincount(number, times)), slope), float(gauc)


def gram_of_test(params: Any, inputs: Inputs, beta: float, fold: ObjectFold) -> np.ndarray:
    """(n, n) kernel learned from the fold's training comparisons; held-out objects are embedded by g(x) = N K_x."""
    inside = fold.inside
    training = inputs._replace(
        comparisons=fold.train,
        kernels=[k[np.ix_(inside, inside)] for k in inputs.kernels],
        features=None if inputs.features is None else inputs.features[inside],
    )
    learned = fit(params, training, beta, tolerance=ROUGH_GAP, max_iterations=2000)
    columns = [k[inside] for k in inputs.kernels] if inputs.features is None else [inputs.features.T]
    points = mkpoe.embed(learned, columns)
    return points @ points.T


def learned_from(task: Task, inputs: Inputs, choice: Choice, training: Snapshot) -> tuple[np.ndarray, float] | None:
    """`(the Gram matrix of some of the answers at the selected beta, its slope)`; None without constraints or a
    slope."""
    beta = choice.beta if choice.scale is None else choice.beta / choice.smallest * choice.scale
    gram = None if choice.slope is None else _rough_gram(task, inputs, training, beta)
    return None if gram is None or choice.slope is None else (gram, choice.slope)


def _rough_gram(task: Task, inputs: Inputs, restricted: Snapshot, beta: float) -> np.ndarray | None:
    """The Gram matrix of these answers; None if they give no constraints."""
    training = inputs._replace(comparisons=constraints_of(task, restricted))
    if not len(training.comparisons.rows):
        return None
    return fit(task.params, training, beta, tolerance=ROUGH_GAP, max_iterations=2000).gram
