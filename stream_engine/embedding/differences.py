"""Whether participants differ: do weights of their own predict held-out responses better than one map for everybody?

Candidates are fits to the training responses with a series of shrinkages, strongest first, each begun at the one
before; the series ends when two in a row do not help. Each predicts the validation set, with its margins scaled as for
`calibration`. The test is nested: the validation responses are dealt to ten folds, the candidate for each fold (or one
map) is selected on the other nine, and its gain over one map is measured on that fold. People differ if the mean gain of
a response is above 0 (one-sided z-test, p < .01). The shrinkage is then the best on all validation responses. Neither
uses the test set. Without a significant gain, everybody gets one map, and nothing is changed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from stream_engine.embedding.calibration import WORTH
from stream_engine.embedding.fit import Embedding
from stream_engine.embedding.gradient import probability
from stream_engine.embedding.held_out import Answers, known_lapses, unit_losses
from stream_engine.embedding.individual import Individual, copies_of, fit_weights, weighted_margins
from stream_engine.embedding.questions import NOBODY, Questions

SHRINKAGES = (100.0, 30.0, 10.0, 3.0, 1.0)
FOLDS = 10
LEVEL = 0.01
FEW = 40.0  # answers of participants with weights that the validation set needs
LARGEST = 4_000_000  # coordinates of all participants' copies of the objects, above which nothing is fitted: 32 MB


class Differences(NamedTuple):
    """The result of the test. Gains are in nats an answer."""

    verdict: str  # "people differ", "no individual differences found", or why there was no test
    participants: int = 0  # with enough answers for weights
    shrinkage: float | None = None  # None: one map
    gain: float | None = None  # nested, on the validation set
    standard_error: float | None = None
    p_value: float | None = None
    tried: tuple[dict[str, float], ...] = ()
    scale: float = 1.0  # of the margins of participants with weights

    @property
    def found(self) -> bool:
        """Whether weights are used."""
        return self.shrinkage is not None


DIFFER, ALIKE = "people differ", "no individual differences found"


def differences(
    one: Embedding,
    questions: Questions,
    held: Answers,
    fixed_lapse: bool = False,
    always: bool = False,
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> Differences:
    """Compare weights with the embedding of one map that was fitted to the same questions. `always`: use weights
    whatever the test says."""
    answered = np.bincount(questions.worker, questions.near + questions.far, questions.n_workers)
    answered[NOBODY] = 0.0
    people = int((answered > 0).sum())
    if people < 2:
        return Differences("fewer than two participants with enough answers", people)
    if copies_of(questions) * one.points.shape[1] > LARGEST:
        return Differences(f"more than {LARGEST:,} coordinates of participants", people)
    known = answered[held.worker + 1] > 0
    if held.times @ known < FEW:
        return Differences("too few answers for a validation set", people)
    held = held.of(known)
    unit = np.unique(held.unit, return_inverse=True)[1].reshape(-1)
    begin = Individual(one, np.ones((questions.n_workers, one.points.shape[1])), np.inf)
    losses, scales = [], []

    def evaluate(made: Individual) -> float:
        more, scale = _losses(made, questions, held, unit)
        losses.append(more)
        scales.append(scale)
        return float(more.sum())

    best, worse, last, tried = evaluate(begin), 0, begin, []
    for number, shrinkage in enumerate(SHRINKAGES):
        weights = None if last is begin else last.weights
        last = fit_weights(questions, last.embedding, shrinkage, weights=weights, fixed_lapse=fixed_lapse)
        loss = evaluate(last)
        tried.append({"shrinkage": shrinkage, "log_loss": loss / float(held.times.sum())})
        progress(number + 1, len(SHRINKAGES), log_loss=tried[-1]["log_loss"])
        best, worse = (loss, 0) if loss < best else (best, worse + 1)
        if worse > 1:
            break
    return _tested(np.array(losses), scales, tried, people, held, unit, always)


def _losses(made: Individual, questions: Questions, held: Answers, unit: np.ndarray) -> tuple[np.ndarray, float]:
    """(u,) log loss of each unit by the own weights and lapse of who answered, at the best scale, and that scale."""
    found = made.embedding
    delta = weighted_margins(found.points, made.weights, held.rows, held.worker + 1, found.alpha)
    lapse = known_lapses(found.lapse, questions)[held.worker + 1]

    def loss(log_scale: float) -> float:
        p = probability(np.exp(log_scale) * delta, lapse)
        return float(-(held.times @ np.log(np.maximum(p, 1e-300)))) + WORTH / 4 * log_scale**2

    scale = float(np.exp(minimize_scalar(loss, bounds=(-np.log(10.0), np.log(10.0)), method="bounded").x))
    return unit_losses(probability(scale * delta, lapse), held, unit), scale


def _tested(
    losses: np.ndarray,
    scales: list[float],
    tried: list[dict[str, float]],
    people: int,
    held: Answers,
    unit: np.ndarray,
    always: bool,
) -> Differences:
    """The verdict on losses (1 + tried, u), those of one map first."""
    fold = np.arange(losses.shape[1]) % FOLDS
    every, answers = losses.sum(axis=1), np.bincount(unit, held.times)
    gain = np.zeros(losses.shape[1])
    for out in range(FOLDS):
        chosen = int(np.argmin(every - losses[:, fold == out].sum(axis=1)))
        gain[fold == out] = (losses[0] - losses[chosen])[fold == out]
    total, units = float(answers.sum()), len(gain)
    mean = float(gain.sum()) / total
    error = float(np.sqrt(units / max(units - 1, 1) * ((gain - mean * answers) ** 2).sum())) / total
    p = float(ndtr(-mean / error)) if error > 0 else 1.0
    candidates = every if not always else np.append(np.inf, every[1:])
    best = int(np.argmin(candidates))
    found = best > 0 and (always or p < LEVEL)
    figures: dict[str, Any] = {"gain": mean, "standard_error": error, "p_value": p, "tried": tuple(tried)}
    if not found:
        return Differences(ALIKE, people, **figures)
    verdict = DIFFER if p < LEVEL else ALIKE
    return Differences(verdict, people, tried[best - 1]["shrinkage"], scale=scales[best], **figures)
