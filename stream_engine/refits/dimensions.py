"""Interpretable dimensions: non-negative, sparse weights of the objects, as SPoSE and VICE find them (`sparse_fit`).

For odd-one-out responses and triplets, also many of them: 1,854 objects and 4.7 million responses take minutes. The
sparsity is the largest whose log loss on a validation set is within one standard error of the best. Then fits begin at
several seeds, and the one with the smallest objective is published. A dimension is called reproducible if every other
fit has one that correlates with it by .9 or more, matched one to one. Its importance is the log loss that the test set
gains when the dimension is left out. The test set was neither fitted to nor selected by.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment

from stream_engine.embedding import sparse_fit
from stream_engine.embedding.odd_one_out import Responses, responses_of
from stream_engine.embedding.sparse_fit import REPRODUCIBLE, Sparse
from stream_engine.evaluation.hash_split import name_hashes
from stream_engine.evaluation.learned import of_dimensions
from stream_engine.refits import CannotRefit, Progress, next_step, no_progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import OBJECTS, flags, floats
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
SPARSITIES = (3.0, 10.0, 30.0)
USUAL = 10.0
SHARE, ENOUGH, FEW = 0.1, 100_000, 40  # of the validation set and of the test set: share, kinds of responses, at least
MOST_OBJECTS = 2_000_000  # three of them are numbered by one integer
THREADS = 2


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    dimensions : int
        Maximum number of dimensions; those that no object has are dropped.
    sparsity : float, optional
        Weight of the sum of all weights, in nats; default: by held-out log loss.
    fits : int
        Number of fits with different seeds, which tell what is reproducible.
    """

    dimensions: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 80
    sparsity: Annotated[float, msgspec.Meta(gt=0)] | None = None
    fits: Annotated[int, msgspec.Meta(ge=2, le=100)] = 4


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
    if len(snapshot.objects) > MOST_OBJECTS:
        raise CannotRefit(f"{KIND}: got {len(snapshot.objects):,} objects, expected at most {MOST_OBJECTS:,}")
    every = responses_of(triplet_columns(snapshot), name_hashes(snapshot.objects, seed))
    if not len(every.rows):
        raise CannotRefit(
            f"{KIND}: got 0 triplets of {len(snapshot.objects)} objects; expected at least one, next: "
            + next_step(snapshot.counters["comparisons"], "triplet_counts", "triplets or odd-one-out responses")
        )
    share = min(SHARE, ENOUGH / len(every.rows))
    test, validation = (every.of((low <= every.draw) & (every.draw < low + share)) for low in (0.0, share))
    outside, training = every.of(every.draw >= share), every.of(every.draw >= 2 * share)
    if min(test.times.sum(), validation.times.sum()) < FEW:
        test, outside = every.of(np.zeros(len(every.rows), bool)), every
    tried: list[dict[str, float]] = []
    most, sparsity = min(params.dimensions, max(len(snapshot.objects), 1)), params.sparsity or USUAL
    total = params.fits
    if params.sparsity is None and len(test.rows):
        total += len(SPARSITIES)
        losses = []
        for value, made in zip(SPARSITIES, _fits(training, most, [(each, seed) for each in SPARSITIES])):
            losses.append(validation.times * sparse_fit.losses(validation, made.weights))
            loss = float(losses[-1].sum() / validation.times.sum())
            tried.append({"sparsity": value, "log_loss": loss, "dimensions": made.weights.shape[1]})
            progress(len(tried), total, log_loss=loss)
        sparsity = SPARSITIES[_sparsest(np.array(losses))]
    seeds = np.random.default_rng(seed).integers(1 << 31, size=params.fits).tolist()
    found = []
    for made in _fits(outside, most, [(sparsity, each) for each in seeds]):
        found.append(made)
        progress(len(tried) + len(found), total, objective=made.objective)
    best = min(range(len(found)), key=lambda each: found[each].objective)
    weights, asked = found[best].weights, np.zeros(len(snapshot.objects), bool)
    asked[every.rows] = True
    matched = [reproduced(weights[asked], made.weights[asked]) for at, made in enumerate(found) if at != best]
    importance, error = importances(test, weights)
    arrays = {
        "X": np.where(asked[:, None], weights, 0.0).astype(np.float32),
        "standard_error": sparse_fit.standard_errors(outside, weights, sparsity).astype(np.float32),
        "asked": asked,
        "reproducibility": np.min(matched, axis=0),
        "importance": importance,
        "importance_error": error,
    }
    report = {
        "objects": len(snapshot.objects),
        "dimensions": weights.shape[1],
        "reproducible": int((arrays["reproducibility"] >= REPRODUCIBLE).sum()),
        "responses": float(every.times.sum()),
        "odd_one_out": float(every.times @ every.three / every.times.sum()),
        "sparsity": sparsity,
        "chosen_by": "given" if params.sparsity else "held-out log loss" if tried else "too few responses to hold out",
        "tried": tried,
        "fits": [{"dimensions": made.weights.shape[1], "objective": made.objective} for made in found],
        "passes": found[best].passes,
        **_figures(test, weights),
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _sparsest(losses: np.ndarray) -> int:
    """The last of (c, t) losses whose mean is within one standard error, paired, of the smallest."""
    more = losses - losses[np.argmin(losses.sum(axis=1))]
    return int(np.flatnonzero(more.mean(axis=1) <= more.std(axis=1) / np.sqrt(more.shape[1]))[-1])


def _fits(responses: Responses, d: int, settings: list[tuple[float, int]]) -> Iterator[Sparse]:
    """Fits with each sparsity and seed, in their order, two at once."""
    with ThreadPoolExecutor(THREADS, "dimensions") as pool:
        yield from pool.map(lambda each: sparse_fit.fit(responses, d, *each), settings)


def reproduced(weights: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(d,) correlation of each dimension with the one of another fit that it is matched to, one to one with the largest
    sum; 0 where there is none.

    >>> one = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> reproduced(one, one[:, ::-1]).round(6).tolist(), reproduced(one, one[:, 1:]).round(6).tolist()
    ([1.0, 1.0], [0.0, 1.0])
    """
    parts = [each - each.mean(axis=0) for each in (weights.astype(np.float64), others.astype(np.float64))]
    one, other = (each / np.maximum(np.sqrt((each**2).sum(axis=0)), 1e-300) for each in parts)
    correlation, out = one.T @ other, np.zeros(weights.shape[1])
    rows, columns = linear_sum_assignment(-correlation)
    out[rows] = correlation[rows, columns]
    return out


def importances(held: Responses, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(d,) nats a response that held-out responses lose without each dimension, and the standard errors."""
    d, total = weights.shape[1], float(held.times.sum())
    gain, error = np.zeros(d), np.zeros(d)
    whole = sparse_fit.losses(held, weights)
    for number in range(d if total else 0):
        less = weights.copy()
        less[:, number] = 0.0
        lost = sparse_fit.losses(held, less) - whole
        gain[number] = held.times @ lost / total
        error[number] = np.sqrt(((held.times * (lost - gain[number])) ** 2).sum()) / total
    return gain, error


def _figures(held: Responses, weights: np.ndarray) -> dict[str, Any]:
    """On the test set: share of responses that are the likeliest one, by kind, and log loss of responses and of
    comparisons. None without any."""
    told: dict[str, Any] = {"held_out_responses": float(held.times.sum())}
    for name, of in (("odd_one_out", held.of(held.three)), ("triplet", held.of(~held.three))):
        total = float(of.times.sum())
        right = sparse_fit.expected(of, weights)
        accuracy = float(of.times @ right) / total if total else None
        told[f"{name}_accuracy"] = accuracy
        error = np.sqrt(((of.times * (right - (accuracy or 0.0))) ** 2).sum()) / total if total else None
        told[f"{name}_standard_error"] = None if error is None else float(error)
        told[f"{name}_log_loss"] = float(of.times @ sparse_fit.losses(of, weights)) / total if total else None
    return told | _of_comparisons(held, weights)


def _of_comparisons(held: Responses, weights: np.ndarray) -> dict[str, float | None]:
    """Nats a comparison of two pairs, as other models have it: an odd-one-out response is two of them."""
    rows, three = held.rows, held.three
    rows = np.concatenate([rows[:, [0, 1, 0, 2]], rows[three][:, [0, 1, 1, 2]]])
    times = np.concatenate([held.times, held.times[three]]).astype(float)
    total = float(times.sum())
    if not total:
        return {"held_out_comparisons": 0.0, "log_loss": None}
    p = of_dimensions(weights, np.ones(len(weights), bool))(rows)
    loss = float(times @ -np.log(np.maximum(p, 1e-300)) / total)
    return {"held_out_comparisons": total, "log_loss": loss}
