"""Interpretable dimensions: non-negative, sparse weights of the objects, as in SPoSE and VICE (`sparse_fit`).

For odd-one-out responses and triplets, also many of them: 1,854 objects and 4.7 million responses take minutes. The
sparsity is the largest whose log loss on a validation set is within one standard error of the best; of fits from
several seeds, the one with the smallest objective is published. A dimension is reproducible if every other fit has one
that correlates with it by .9 or more, matched one to one; its importance is the log loss that a test set gains without
it.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment

from stream_engine.embedding import sparse_fit
from stream_engine.embedding.odd_one_out import Responses, responses_of
from stream_engine.embedding.sparse_fit import REPRODUCIBLE, Sparse
from stream_engine.evaluation.hash_split import name_hashes
from stream_engine.evaluation.learned import of_dimensions
from stream_engine.refits import CannotRefit, Progress, next_step, no_progress
from stream_engine.state.array_declarations import OBJECTS, flags, floats
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.snapshot import Snapshot, triplet_columns

KIND = "dimensions"
AXES = {
    "X": floats(OBJECTS, "dimensions", least=0),
    "standard_error": floats(OBJECTS, "dimensions", least=0),
    "asked": flags(OBJECTS),
    "reproducibility": floats("dimensions"),
    "importance": floats("dimensions"),
    "importance_error": floats("dimensions", least=0),
}
REQUIRED = tuple(AXES)
SPARSITIES, DEFAULT_SPARSITY = (3.0, 10.0, 30.0), 10.0  # candidates; the one without a validation set


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    dimensions : int
        Maximum number of dimensions; those that no object has are dropped.
    sparsity : float, optional
        Weight of the sum of all weights, in nats; default: by held-out log loss.
    fits : int
        Number of fits with different seeds, by which reproducibility is determined.
    """

    dimensions: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 80
    sparsity: Annotated[float, msgspec.Meta(gt=0)] | None = None
    fits: Annotated[int, msgspec.Meta(ge=2, le=100)] = 4


MAX_OBJECTS = 2_000_000  # three of them are numbered by one integer


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Find interpretable dimensions of a snapshot's objects.

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
        Called with the number of fits done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: `X` (n, d) float32: weights of the objects on the dimensions, 0 or above, dimensions by their sum;
        `standard_error` (n, d) of each weight, all others given; `asked` (n,) bool; `reproducibility` (d,), the
        smallest correlation with the matching dimension of another fit; `importance` (d,), the log loss that held-out
        responses gain without the dimension, and `importance_error` (d,), its standard error.

    Raises
    ------
    CannotRefit
        If the snapshot has no triplet counts.
    """
    if len(snapshot.objects) > MAX_OBJECTS:
        raise CannotRefit(f"{KIND}: got {len(snapshot.objects):,} objects, expected at most {MAX_OBJECTS:,}")
    responses = responses_of(triplet_columns(snapshot), name_hashes(snapshot.objects, seed))
    if not len(responses.rows):
        raise CannotRefit(
            f"{KIND}: got 0 triplets of {len(snapshot.objects)} objects; expected at least one, next: "
            + next_step(snapshot.counters["comparisons"], "triplet_counts", "triplets or odd-one-out responses")
        )
    split = _split(responses)
    max_dimensions = min(params.dimensions, max(len(snapshot.objects), 1))
    sparsity, total = params.sparsity or DEFAULT_SPARSITY, params.fits
    trials: list[dict[str, float]] = []
    if params.sparsity is None and len(split.test.rows):
        total += len(SPARSITIES)
        sparsity = _selected_sparsity(
            split, max_dimensions, seed, trials, lambda **figures: progress(len(trials), total, **figures)
        )
    seeds = np.random.default_rng(seed).integers(1 << 31, size=params.fits).tolist()
    fits = []
    for sparse in _fits(split.outside_test, max_dimensions, [(sparsity, fit_seed) for fit_seed in seeds]):
        fits.append(sparse)
        progress(len(trials) + len(fits), total, objective=sparse.objective)
    best = min(range(len(fits)), key=lambda number: fits[number].objective)
    weights, has_answers = fits[best].weights, np.zeros(len(snapshot.objects), bool)
    has_answers[responses.rows] = True
    correlations = [
        reproducibility(weights[has_answers], sparse.weights[has_answers])
        for number, sparse in enumerate(fits)
        if number != best
    ]
    importance, importance_error = importances(split.test, weights)
    arrays = {
        "X": np.where(has_answers[:, None], weights, 0.0).astype(np.float32),
        "standard_error": sparse_fit.standard_errors(split.outside_test, weights, sparsity).astype(np.float32),
        "asked": has_answers,
        "reproducibility": np.min(correlations, axis=0),
        "importance": importance,
        "importance_error": importance_error,
    }
    report = {
        "objects": len(snapshot.objects),
        "dimensions": weights.shape[1],
        "reproducible": int((arrays["reproducibility"] >= REPRODUCIBLE).sum()),
        "responses": float(responses.times.sum()),
        "odd_one_out": float(responses.times @ responses.three / responses.times.sum()),
        "sparsity": sparsity,
        "chosen_by": "given" if params.sparsity else "held-out log loss" if trials else "too few responses to hold out",
        "tried": trials,
        "fits": [{"dimensions": sparse.weights.shape[1], "objective": sparse.objective} for sparse in fits],
        "passes": fits[best].passes,
        **_figures(split.test, weights),
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


class _Split(NamedTuple):
    """The parts of the responses, by their draws."""

    test: Responses  # neither fitted nor used to select the sparsity; empty if it would be too small
    validation: Responses
    training: Responses
    outside_test: Responses  # the published dimensions are fitted to these


# The validation set and the test set have this share of the kinds of responses each, or so many kinds if that is less,
# and at least so many responses.
HELD_OUT_SHARE, ENOUGH_KINDS, MIN_RESPONSES = 0.1, 100_000, 40


def _split(responses: Responses) -> _Split:
    share, draw = min(HELD_OUT_SHARE, ENOUGH_KINDS / len(responses.rows)), responses.draw
    test, validation = (responses.of((begin <= draw) & (draw < begin + share)) for begin in (0.0, share))
    outside_test, training = responses.of(draw >= share), responses.of(draw >= 2 * share)
    if min(test.times.sum(), validation.times.sum()) < MIN_RESPONSES:
        test, outside_test = responses.of(np.zeros(len(responses.rows), bool)), responses
    return _Split(test, validation, training, outside_test)


def _selected_sparsity(
    split: _Split, d: int, seed: int, trials: list[dict[str, float]], report_trial: Callable[..., Any]
) -> float:
    """The largest sparsity whose log loss on the validation set is within one standard error of the best; candidates
    are added to `trials`."""
    losses = []
    for sparsity, sparse in zip(SPARSITIES, _fits(split.training, d, [(sparsity, seed) for sparsity in SPARSITIES])):
        losses.append(split.validation.times * sparse_fit.losses(split.validation, sparse.weights))
        loss = float(losses[-1].sum() / split.validation.times.sum())
        trials.append({"sparsity": sparsity, "log_loss": loss, "dimensions": sparse.weights.shape[1]})
        report_trial(log_loss=loss)
    return SPARSITIES[_sparsest(np.array(losses))]


def _sparsest(losses: np.ndarray) -> int:
    """The last row of (c, t) losses whose mean is within one standard error (paired) of the smallest."""
    excess_losses = losses - losses[np.argmin(losses.sum(axis=1))]
    return int(
        np.flatnonzero(excess_losses.mean(axis=1) <= excess_losses.std(axis=1) / np.sqrt(excess_losses.shape[1]))[-1]
    )


def _fits(responses: Responses, d: int, settings: list[tuple[float, int]]) -> Iterator[Sparse]:
    """Fits with each (sparsity, seed), in their order, two at a time."""
    with ThreadPoolExecutor(2, "dimensions") as pool:
        yield from pool.map(lambda setting: sparse_fit.fit(responses, d, *setting), settings)


def reproducibility(weights: np.ndarray, other_fit: np.ndarray) -> np.ndarray:
    """(d,) correlation of each dimension with the one of another fit that it is matched to, one to one with the largest
    sum; 0 without a match.

    >>> one = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> reproducibility(one, one[:, ::-1]).round(6).tolist(), reproducibility(one, one[:, 1:]).round(6).tolist()
    ([1.0, 1.0], [0.0, 1.0])
    """
    centred = [part - part.mean(axis=0) for part in (weights.astype(np.float64), other_fit.astype(np.float64))]
    first, second = (part / np.maximum(np.sqrt((part**2).sum(axis=0)), 1e-300) for part in centred)
    correlation, matched = first.T @ second, np.zeros(weights.shape[1])
    rows, columns = linear_sum_assignment(-correlation)
    matched[rows] = correlation[rows, columns]
    return matched


def importances(held_out: Responses, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`((d,) log loss in nats a response that held-out responses gain without each dimension, (d,) standard
    errors)`."""
    d, total = weights.shape[1], float(held_out.times.sum())
    gain, error = np.zeros(d), np.zeros(d)
    losses = sparse_fit.losses(held_out, weights)
    for number in range(d if total else 0):
        reduced = weights.copy()
        reduced[:, number] = 0.0
        loss_differences = sparse_fit.losses(held_out, reduced) - losses
        gain[number] = held_out.times @ loss_differences / total
        error[number] = np.sqrt(((held_out.times * (loss_differences - gain[number])) ** 2).sum()) / total
    return gain, error


def _figures(held_out: Responses, weights: np.ndarray) -> dict[str, Any]:
    """Figures of the test set: the share of responses that are the most probable one, by kind, and the log loss of
    responses and of comparisons; None without any."""
    figures: dict[str, Any] = {"held_out_responses": float(held_out.times.sum())}
    for name, responses in (("odd_one_out", held_out.of(held_out.three)), ("triplet", held_out.of(~held_out.three))):
        total = float(responses.times.sum())
        right = sparse_fit.hits(responses, weights)
        accuracy = float(responses.times @ right) / total if total else None
        figures[f"{name}_accuracy"] = accuracy
        error = np.sqrt(((responses.times * (right - (accuracy or 0.0))) ** 2).sum()) / total if total else None
        figures[f"{name}_standard_error"] = None if error is None else float(error)
        figures[f"{name}_log_loss"] = (
            float(responses.times @ sparse_fit.losses(responses, weights)) / total if total else None
        )
    return figures | _of_comparisons(held_out, weights)


def _of_comparisons(held_out: Responses, weights: np.ndarray) -> dict[str, float | None]:
    """Log loss in nats a comparison of two pairs, as for other models: an odd-one-out response is two comparisons."""
    rows, is_odd_one_out = held_out.rows, held_out.three
    rows = np.concatenate([rows[:, [0, 1, 0, 2]], rows[is_odd_one_out][:, [0, 1, 1, 2]]])
    times = np.concatenate([held_out.times, held_out.times[is_odd_one_out]]).astype(float)
    total = float(times.sum())
    if not total:
        return {"held_out_comparisons": 0.0, "log_loss": None}
    p = of_dimensions(weights, np.ones(len(weights), bool))(rows)
    loss = float(times @ -np.log(np.maximum(p, 1e-300)) / total)
    return {"held_out_comparisons": total, "log_loss": loss}
