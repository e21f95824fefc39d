"""Which beta a partial order embedding has: the least held-out log loss, smallest first, beyond an edge that wins.

Objects are held out as in McFee & Lanckriet 2011, sec. 5.1 (trained on comparisons among the rest, tested on (i, j, i,
k) with i held out and j, k not), or judgements are. The hinge is no likelihood, so distances become probabilities by
one slope of margins in units of the kernel's scale, fitted where it is tested; what is reported of the chosen beta uses
that slope on answers that neither fitted it nor chose (`kernel_refits`).
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

ROUGH = 1e-2  # relative gap of solves that only rank betas
MULTIPLES = (2.0, 8.0, 40.0, 200.0)  # candidates for beta, as multiples of the smallest that learns anything
FOLDS = 3  # of objects, in the cross-validation
BEYOND, BELOW = 4, 2  # how many betas above the grid, and below it, are tried while its edge wins


class Inputs(NamedTuple):
    """What the program is solved over: comparisons, and kernels or features (LPOE)."""

    comparisons: Constraints
    names: list[str]
    kernels: list[np.ndarray]
    features: np.ndarray | None
    report: list[dict[str, Any]]


class Choice(NamedTuple):
    """The beta to embed with, the smallest at which anything is learned, how it was chosen, what was tried, the
    slope of its probabilities, and the smallest of the comparisons it was chosen by (all but those that are reported
    on)."""

    beta: float
    smallest: float
    how: str
    tried: list[dict[str, float]]
    slope: float | None = None
    scale: float | None = None


class Attempt(NamedTuple):
    """One beta with its losses and its slope of margins in their units."""

    beta: float
    losses: Losses
    slope: float


def held_to(task: Task, snapshot: Snapshot) -> Constraints:
    """The constraint set that the task asks for, of these counts."""
    return constraints(snapshot, task.params.constraints, weights=task.params.weights, seed=task.seed)


def fit(params: Any, inputs: Inputs, beta: float, **limits: Any) -> mkpoe.Embedding:
    """`mkpoe.fit`, or with features `mkpoe.fit_linear`, in the form that the refit was asked for."""
    rows, weight = inputs.comparisons
    said = {"diagonal": params.form == "diagonal", "weight": weight, **limits}
    if inputs.features is not None:
        return mkpoe.fit_linear(rows, inputs.features, beta, **said)
    return mkpoe.fit(rows, inputs.kernels, beta, **said)


def choose(task: Task, inputs: Inputs, split: TrainingSplit | None, *, progress: Progress) -> Choice:
    """beta as given, or the one with the least log loss on what is held out; of equal ones the smallest. Raises
    `CannotRefit` where no beta learns anything."""
    params = task.params
    smallest = _smallest(params, inputs)
    if smallest is None:
        raise CannotRefit(
            "partial_order_embedding: no scaling of the kernels satisfies more comparisons than it violates, so W = "
            "0 is optimal at every beta; expected informative kernels, or none (K = I)"
        )
    if params.beta is not None:
        return Choice(params.beta, smallest, "given", [], _slope_of_given(task, inputs, split))
    scale = smallest  # what is reported must not set the grid either
    if split is not None:
        outside = inputs._replace(comparisons=held_to(task, split.outside))
        scale = _smallest(params, outside) or smallest
    betas = [multiple * scale for multiple in MULTIPLES]
    folds, how = _folds(task, inputs, split)
    if not folds:
        return Choice(betas[len(betas) // 2], smallest, "too few comparisons for a validation set", [])
    tried: list[dict[str, float]] = []

    def attempt(beta: float) -> Attempt:
        done, gauc = _attempt(params, inputs, beta, folds)
        tried.append({"beta": beta, "log_loss": done.losses.mean, "gauc": gauc})
        progress(len(tried), max(len(tried), len(betas)) + 2, **tried[-1])
        return done

    best = _best(attempt, betas, scale)
    beta = best.beta / scale * smallest  # another set may only begin to learn elsewhere
    return Choice(beta, smallest, how, tried, best.slope, scale)


def _slope_of_given(task: Task, inputs: Inputs, split: TrainingSplit | None) -> float | None:
    """The slope of the probabilities of a beta that is not chosen."""
    if split is None or not split.can_choose:
        return None
    gram = _rough(task, inputs, split.fitting, task.params.beta)
    return None if gram is None else kernel_refits.calibrated_slope(gram, split.choosing)


def _smallest(params: Any, inputs: Inputs) -> float | None:
    """The smallest beta at which anything is learned; None where no beta learns anything."""
    rows, weight = inputs.comparisons
    if not len(rows):
        return None
    diagonal = params.form == "diagonal"
    return mkpoe.smallest_beta(rows, weight, inputs.kernels, diagonal=diagonal, features=inputs.features)


def _best(attempt, betas: list[float], smallest: float) -> Attempt:
    """The least loss of the grid, smallest first until one is clearly worse; then beyond an edge while that wins."""
    best: Attempt | None = None
    for beta in betas:
        done = attempt(beta)
        if best is not None and done.losses.clearly_above(best.losses):
            break
        best = done if best is None or done.losses.mean < best.losses.mean else best
    assert best is not None
    if best.beta == betas[-1]:
        return _grown(attempt, best, lambda beta: beta * betas[-1] / betas[-2], BEYOND)
    if best.beta == betas[0]:
        return _grown(attempt, best, lambda beta: float(np.sqrt(beta * smallest)), BELOW)
    return best


def _grown(attempt, best: Attempt, further, most: int) -> Attempt:
    for _ in range(most):
        done = attempt(further(best.beta))
        if done.losses.mean >= best.losses.mean:
            break
        best = done
    return best


def _folds(task: Task, inputs: Inputs, split: TrainingSplit | None) -> tuple[list[ObjectFold], str]:
    """What to train and to test on, and in words how it was held out; judgements where objects leave nothing."""
    params = task.params
    outside = task.restricted if split is None else split.outside
    if inputs.names != ["identity"]:
        voted = net_triplets(triplet_columns(outside))
        folds = by_objects_out(outside, params.constraints, voted, FOLDS, task.seed, params.weights)
        if folds:
            return folds, f"cross-validation, {len(folds)} folds of objects held out"
    if split is None or not split.can_choose:
        return [], ""
    train = held_to(task, split.fitting)
    asked, everyone = split.choosing, np.ones(len(outside.objects), bool)
    test = Constraints(asked.rows, asked.times)
    return [ObjectFold(everyone, train, test, asked.response)] if len(train.rows) else [], f"held-out {split.by}"


def _attempt(params: Any, inputs: Inputs, beta: float, folds: list[ObjectFold]) -> tuple[Attempt, float]:
    """The losses of a beta over all folds, with the one slope that fits them, and the mean GAUC."""
    margins = [kernel_refits.margins(gram_of_test(params, inputs, beta, fold), fold.test.rows) for fold in folds]
    margin, times = np.concatenate(margins), np.concatenate([fold.test.weight for fold in folds])
    unit = np.concatenate([fold.unit for fold in folds])  # an object tests in one fold only
    number = np.unique(unit, return_inverse=True)[1].reshape(-1)
    slope = slope_of(margin, times)
    sums = np.bincount(number, times * held_out.losses(margin, slope))
    gauc = np.mean([f.test.weight[m > 0].sum() / f.test.weight.sum() for f, m in zip(folds, margins)])
    return Attempt(beta, Losses(sums, np.bincount(number, times)), slope), float(gauc)


def gram_of_test(params: Any, inputs: Inputs, beta: float, fold: ObjectFold) -> np.ndarray:
    """(n, n) kernel learned from the fold's training comparisons, held-out objects embedded by g(x) = N K_x."""
    inside = fold.inside
    training = inputs._replace(
        comparisons=fold.train,
        kernels=[k[np.ix_(inside, inside)] for k in inputs.kernels],
        features=None if inputs.features is None else inputs.features[inside],
    )
    learned = fit(params, training, beta, tolerance=ROUGH, max_iterations=2000)
    columns = [k[inside] for k in inputs.kernels] if inputs.features is None else [inputs.features.T]
    points = mkpoe.embed(learned, columns)
    return points @ points.T


def learned_from(task: Task, inputs: Inputs, choice: Choice, training: Snapshot) -> tuple[np.ndarray, float] | None:
    """The Gram matrix that the chosen beta gives of some of the answers, and its slope; None without any constraints,
    or without a slope."""
    beta = choice.beta if choice.scale is None else choice.beta / choice.smallest * choice.scale
    gram = None if choice.slope is None else _rough(task, inputs, training, beta)
    return None if gram is None or choice.slope is None else (gram, choice.slope)


def _rough(task: Task, inputs: Inputs, restricted: Snapshot, beta: float) -> np.ndarray | None:
    """The Gram matrix that these answers give; None where they give no constraints."""
    training = inputs._replace(comparisons=held_to(task, restricted))
    if not len(training.comparisons.rows):
        return None
    return fit(task.params, training, beta, tolerance=ROUGH, max_iterations=2000).gram
