"""Whether participants differ: do weights of their own predict held-out responses better than one map for everybody?

Candidates are one map, slopes (each participant's weights are equal on all axes), and weights with a series of
shrinkages, strongest first, each begun at the one before; the series ends when two in a row do not help. Each is fitted
to the training set and predicts the validation set, with its margins scaled as for `calibration`. Two tests are nested:
the validation responses are dealt to ten folds, the candidate for each fold is selected on the other nine, and its gain
is measured on that fold (one-sided z-tests of the mean gain of a response, p < .01).

1. All candidates against one map. Without a significant gain, everybody gets one map, and nothing is changed.
2. Weights against slopes. Without a significant gain, slopes are used: participants differ only in how sharply they
   distinguish.

The shrinkage is then the best on all validation responses. Neither test uses the test set.

With weights, another number of dimensions can be the best one. If weights are used and the number is not given, they
are also fitted in the smallest number that predicts within one standard error of the best with one map, and the better
ones are used; then larger numbers are tried while each gains more than one standard error.

Two groups who see things differently look like one that sees and one that guesses: one map with lapse rates of their
own can fit the larger group only. So where a lapse rate is above `HIGH`, the series of weights is also begun at
`individual.pooled_map`, and used where it predicts better.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from stream_engine.embedding.calibration import WORTH, calibrate
from stream_engine.embedding.choice import DIMENSIONS, Choice, Weights
from stream_engine.embedding.fit import LOOSE, Embedding, fit, with_setting
from stream_engine.embedding.held_out import Answers, known_lapses, population_lapse, unit_losses
from stream_engine.embedding.individual import (
    SHRINKAGES,
    Individual,
    copies_of,
    fit_weights,
    pooled_map,
    waiting,
    weighted_margins,
)
from stream_engine.embedding.questions import NOBODY, Questions
from stream_engine.evaluation.answer_probabilities import margins, probability

FOLDS = 10
LEVEL = 0.01
FEW = 40.0  # answers of participants with weights that the validation set needs
SLOPES = 3.0  # the shrinkage of slopes
USUAL = 10.0  # the shrinkage where it cannot be selected
HIGH = 0.3  # a lapse rate that may be that of somebody who sees things differently
LARGEST = 4_000_000  # coordinates of all participants' copies of the objects, above which nothing is fitted: 32 MB


class Differences(NamedTuple):
    """The result of the test. Gains are in nats an answer."""

    verdict: str  # `DIFFER`, `SHARPNESS`, `ALIKE`, or why there was no test
    participants: int = 0  # with enough answers for weights
    weights: Weights | None = None  # None: one map
    gain: float | None = None  # of the first test, on the validation set
    standard_error: float | None = None
    p_value: float | None = None
    p_of_weights: float | None = None  # of the second test
    tried: tuple[dict[str, float], ...] = ()
    losses: np.ndarray | None = None  # of the units of the validation set, with weights

    def report(self) -> dict[str, Any]:
        """The fields of an artifact's report; without a shrinkage, one map is used."""
        used = self.weights or Weights(np.nan, False)
        made = {**self._asdict(), "tried": list(self.tried), "slopes": used.slopes, "scale": used.scale}
        made["shrinkage"] = None if self.weights is None else used.shrinkage
        del made["weights"], made["losses"]
        return made


DIFFER, SHARPNESS = "participants differ", "participants differ only in how sharply they distinguish"
ALIKE = "no individual differences found"


class _Candidate(NamedTuple):
    made: Individual
    losses: np.ndarray  # by unit
    scale: float


def with_differences(
    chosen: Choice,
    questions: Questions,
    held: Answers,
    given_d: bool = False,
    fixed_lapse: bool = False,
    always: bool = False,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> tuple[Choice, Differences]:
    """The choice of one map, tested against weights; if these are used, with the number of dimensions and the
    calibration that suit them. `questions` are the training, `held` the validation set of the choice."""
    more: dict[str, Any] = {"fixed_lapse": fixed_lapse, "tolerance": LOOSE}
    if reason := _untestable(questions, chosen.setting.d):
        return chosen, Differences(*reason)
    one = chosen.found or with_setting(questions, chosen.setting, chosen.begin, **more)
    best = differences(one, questions, held, fixed_lapse, always, progress)
    pooled = best
    for d in _pooled_dimensions(chosen.setting.d, given_d) if one.lapse.max() > HIGH else ():
        if not 1 < d < questions.n_objects or _untestable(questions, d):
            break
        setting = chosen.setting._replace(d=d)
        begin = pooled_map(questions, setting)
        tried = differences(one, questions, held, fixed_lapse, always, progress, begin)
        if tried.losses is None or tried.weights is None or not tried.weights.pooled:
            break
        if pooled.losses is not None and not _better(tried.losses, pooled.losses):
            break
        pooled, chosen = tried, chosen._replace(setting=setting, begin=(begin.points,), weights=tried.weights)
    if pooled is not best:
        return chosen, pooled
    fewer = chosen.smallest
    if fewer is not None and fewer.setting.d < chosen.setting.d and best.losses is not None:
        tried = differences(fewer.found, questions, held, fixed_lapse, always, progress)
        if tried.losses is not None and tried.losses.sum() < best.losses.sum():
            one, best, chosen = (
                fewer.found,
                tried,
                chosen._replace(setting=fewer.setting, calibration=fewer.calibration),
            )
    kernel, d, ridge = chosen.setting
    for wider in () if given_d else DIMENSIONS:
        if best.weights is None or best.weights.slopes or best.losses is None:
            break  # fewer fits: a wider map is hardly better where weights are not
        if not d < wider < questions.n_objects or _untestable(questions, wider):
            continue
        made = fit(questions, wider, ridge, kernel=kernel, start=one.points, **more)
        tried = differences(made, questions, held, fixed_lapse, always, progress)
        if tried.weights is None or tried.losses is None or not _better(tried.losses, best.losses):
            break
        one, best, d = made, tried, wider
    if best.weights is None:
        return chosen, best
    setting = chosen.setting._replace(d=d)
    return chosen._replace(setting=setting, begin=(one.points,), weights=best.weights), best


def _pooled_dimensions(d: int, given: bool) -> list[int]:
    """The numbers of dimensions that are tried from a pooled map: at least two, as weights differ only there."""
    return [d] if given else [max(d, 2), *(wider for wider in DIMENSIONS if wider > max(d, 2))]


def _untestable(questions: Questions, d: int) -> tuple[str, int] | None:
    """Why weights are not fitted, and for how many participants; None where they can be."""
    people = len(np.unique(questions.worker[questions.worker != NOBODY]))
    if people < 2:
        return "fewer than two participants with enough answers", people
    if copies_of(questions) * d > LARGEST:
        return f"more than {LARGEST:,} coordinates of participants", people
    return None


def _better(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether one model's losses are below the other's by more than a standard error, paired by unit."""
    gain = other - one
    return bool(gain.mean() > gain.std() / np.sqrt(max(len(gain) - 1, 1)))


def differences(
    one: Embedding,
    questions: Questions,
    held: Answers,
    fixed_lapse: bool = False,
    always: bool = False,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
    pooled: Embedding | None = None,
) -> Differences:
    """Compare weights with the embedding of one map that was fitted to the same questions. `always`: use weights
    whatever the test says; `pooled`: begin the series of weights there, and let lapse rates wait."""
    answered = np.bincount(questions.worker, minlength=questions.n_workers) > 0
    answered[NOBODY] = False
    people, known = int(answered.sum()), held.of(answered[held.worker + 1])
    if known.times.sum() < FEW:
        few = Differences("too few answers for a validation set", people)
        return few._replace(weights=Weights(USUAL, False)) if always else few
    unit = np.unique(known.unit, return_inverse=True)[1].reshape(-1)
    total = float(known.times.sum())

    def evaluated(made: Individual) -> _Candidate:
        return _Candidate(made, *_losses(made, questions, known, unit))

    begin = evaluated(Individual(one, np.ones((questions.n_workers, one.points.shape[1])), np.inf))
    slopes = evaluated(fit_weights(questions, one, SLOPES, slopes=True, fixed_lapse=fixed_lapse))
    candidates, least, worse = [begin, slopes], np.inf if pooled else float(begin.losses.sum()), 0
    last = begin.made if pooled is None else Individual(pooled, np.ones((len(pooled.lapse), pooled.points.shape[1])), 0)
    for number, shrinkage in enumerate(SHRINKAGES if last.weights.shape[1] > 1 else ()):
        if pooled is not None:
            last = fit_weights(questions, waiting(last.embedding), shrinkage, weights=last.weights, fixed_lapse=True)
        made = fit_weights(
            questions,
            waiting(last.embedding) if pooled else last.embedding,
            shrinkage,
            weights=last.weights,
            fixed_lapse=fixed_lapse,
        )
        candidates.append(evaluated(made))
        last = made if pooled is None else last
        loss = float(candidates[-1].losses.sum())
        progress(number + 1, len(SHRINKAGES), log_loss=loss / total)
        least, worse = (loss, 0) if loss < least else (least, worse + 1)
        if worse > 1:
            break  # fewer fits: less shrinkage is hardly better
    used, figures = _tested(candidates, np.bincount(unit, known.times), people, always, pooled is not None)
    if figures.weights is None:
        return figures
    embedding = used.made.embedding
    delta = margins(embedding.points, held.rows, embedding.alpha)
    unknown = calibrate(delta, held.times, population_lapse(embedding.lapse, questions))
    return figures._replace(weights=figures.weights._replace(calibration=unknown))


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
    candidates: list[_Candidate], answers: np.ndarray, people: int, always: bool, pooled: bool
) -> tuple[_Candidate, Differences]:
    """The verdict on candidates (one map, slopes, weights), and the one that is used; `answers` (u,) of each unit."""
    losses = np.array([each.losses for each in candidates])
    every, total = losses.sum(axis=1), float(answers.sum())
    mean, error, p = _nested(losses, losses[0], answers)
    p_of_weights = _nested(losses[2:], losses[1], answers)[2] if len(losses) > 2 else 1.0
    tried = tuple(
        {"slopes": each.made.slopes, "shrinkage": each.made.shrinkage, "log_loss": float(loss) / total}
        for each, loss in zip(candidates, every)
    )
    verdict = ALIKE if p >= LEVEL else SHARPNESS if p_of_weights >= LEVEL else DIFFER
    figures = Differences(verdict, people, None, mean, error, p, p_of_weights, tried[1:])
    if verdict == ALIKE and not always:
        return candidates[0], figures
    used = candidates[2 + int(np.argmin(every[2:])) if (verdict == DIFFER or always) and len(losses) > 2 else 1]
    weights = Weights(used.made.shrinkage, used.made.slopes, used.scale, pooled=pooled and not used.made.slopes)
    return used, figures._replace(weights=weights, losses=used.losses)


def _nested(losses: np.ndarray, base: np.ndarray, answers: np.ndarray) -> tuple[float, float, float]:
    """Mean gain over `base` (u,) of the candidates (c, u) that are selected fold by fold, its standard error and
    one-sided p-value."""
    every, units = losses.sum(axis=1), len(base)
    fold, gain = np.arange(units) % FOLDS, np.zeros(units)
    for out in range(FOLDS):
        chosen = int(np.argmin(every - losses[:, fold == out].sum(axis=1)))
        gain[fold == out] = (base - losses[chosen])[fold == out]
    total = float(answers.sum())
    mean = float(gain.sum()) / total
    error = float(np.sqrt(units / max(units - 1, 1) * ((gain - mean * answers) ** 2).sum())) / total
    return mean, error, float(ndtr(-mean / error)) if error > 0 else 1.0
