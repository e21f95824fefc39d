"""Whether participants differ: do weights of their own predict held-out responses better than one map for everybody?

Candidates are fits to the training responses with a series of shrinkages, strongest first, each begun at the one
before; the series ends when two in a row do not help. Each predicts the validation set, with its margins scaled as for
`calibration`. The test is nested: the validation responses are dealt to ten folds, the candidate for each fold (or one
map) is selected on the other nine, and its gain over one map is measured on that fold. Participants differ if the mean
gain of a response is above 0 (one-sided z-test, p < .01). The shrinkage is then the best on all validation responses.
Neither uses the test set. Without a significant gain, everybody gets one map, and nothing is changed.

With weights, more dimensions can help than with one map. If people differ and the number is not given, larger numbers
are tried while each gains more than one standard error.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from stream_engine.embedding.calibration import WORTH, Calibration, calibrate
from stream_engine.embedding.choice import DIMENSIONS, Choice
from stream_engine.embedding.fit import LOOSE, Embedding, fit, with_setting
from stream_engine.embedding.held_out import Answers, known_lapses, population_lapse, unit_losses
from stream_engine.embedding.individual import SHRINKAGES, Individual, copies_of, fit_weights, weighted_margins
from stream_engine.embedding.questions import NOBODY, Questions
from stream_engine.evaluation.answer_probabilities import margins, probability

FOLDS = 10
LEVEL = 0.01
FEW = 40.0  # answers of participants with weights that the validation set needs
USUAL = 10.0  # the shrinkage where it cannot be selected
LARGEST = 4_000_000  # coordinates of all participants' copies of the objects, above which nothing is fitted: 32 MB


class Differences(NamedTuple):
    """The result of the test. Gains are in nats an answer."""

    verdict: str  # `DIFFER`, `ALIKE`, or why there was no test
    participants: int = 0  # with enough answers for weights
    shrinkage: float | None = None  # None: one map
    gain: float | None = None  # nested, on the validation set
    standard_error: float | None = None
    p_value: float | None = None
    tried: tuple[dict[str, float], ...] = ()
    scale: float = 1.0  # of the margins of participants with weights
    calibration: Calibration | None = None  # for unknown participants, by the group's weights
    losses: np.ndarray | None = None  # of the units of the validation set, with weights

    @property
    def found(self) -> bool:
        """Whether weights are used."""
        return self.shrinkage is not None

    def report(self) -> dict[str, Any]:
        """The fields of an artifact's report."""
        made = self._asdict()
        del made["calibration"], made["losses"]
        return made | {"tried": list(self.tried)}


DIFFER, ALIKE = "participants differ", "no individual differences found"


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
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> tuple[Choice, Differences]:
    """The choice of one map, tested against weights; if these are used, with the number of dimensions and the
    calibration that suit them. `questions` are the training, `held` the validation set of the choice."""
    more: dict[str, Any] = {"fixed_lapse": fixed_lapse, "tolerance": LOOSE}
    if reason := _untestable(questions, chosen.setting.d):
        return chosen, Differences(*reason)
    one = chosen.found or with_setting(questions, chosen.setting, chosen.begin, **more)
    best = differences(one, questions, held, fixed_lapse, always, progress)
    kernel, d, ridge = chosen.setting
    for wider in DIMENSIONS if best.losses is not None and not given_d else ():
        if not d < wider < questions.n_objects or _untestable(questions, wider):
            continue
        made = fit(questions, wider, ridge, kernel=kernel, start=one.points, **more)
        tried = differences(made, questions, held, fixed_lapse, always, progress)
        if tried.losses is None or not _better(tried.losses, best.losses):  # type: ignore[arg-type]  # both were tested
            break
        one, best, d = made, tried, wider
    if not best.found:
        return chosen, best
    setting = chosen.setting._replace(d=d)
    return chosen._replace(setting=setting, begin=(one.points,), calibration=best.calibration), best


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
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> Differences:
    """Compare weights with the embedding of one map that was fitted to the same questions. `always`: use weights
    whatever the test says."""
    answered = np.bincount(questions.worker, minlength=questions.n_workers) > 0
    answered[NOBODY] = False
    people, known = int(answered.sum()), held.of(answered[held.worker + 1])
    if known.times.sum() < FEW:
        few = Differences("too few answers for a validation set", people)
        return few._replace(shrinkage=USUAL) if always else few
    unit = np.unique(known.unit, return_inverse=True)[1].reshape(-1)
    total = float(known.times.sum())

    def evaluated(made: Individual) -> _Candidate:
        return _Candidate(made, *_losses(made, questions, known, unit))

    begin = evaluated(Individual(one, np.ones((questions.n_workers, one.points.shape[1])), np.inf))
    candidates, least, worse = [begin], float(begin.losses.sum()), 0
    for number, shrinkage in enumerate(SHRINKAGES):
        last = candidates[-1].made
        made = fit_weights(questions, last.embedding, shrinkage, weights=last.weights, fixed_lapse=fixed_lapse)
        candidates.append(evaluated(made))
        loss = float(candidates[-1].losses.sum())
        progress(number + 1, len(SHRINKAGES), log_loss=loss / total)
        least, worse = (loss, 0) if loss < least else (least, worse + 1)
        if worse > 1:
            break
    made, figures = _tested(candidates, np.bincount(unit, known.times), people, always)
    if not figures.found:
        return figures
    embedding = made.made.embedding
    delta = margins(embedding.points, held.rows, embedding.alpha)
    unknown = calibrate(delta, held.times, population_lapse(embedding.lapse, questions))
    return figures._replace(calibration=unknown)


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
    candidates: list[_Candidate], answers: np.ndarray, people: int, always: bool
) -> tuple[_Candidate, Differences]:
    """The verdict on candidates, one map first, and the one that is used; `answers` (u,) of each unit."""
    losses = np.array([each.losses for each in candidates])
    units, total, every = losses.shape[1], float(answers.sum()), losses.sum(axis=1)
    fold, gain = np.arange(units) % FOLDS, np.zeros(units)
    for out in range(FOLDS):
        chosen = int(np.argmin(every - losses[:, fold == out].sum(axis=1)))
        gain[fold == out] = (losses[0] - losses[chosen])[fold == out]
    mean = float(gain.sum()) / total
    error = float(np.sqrt(units / max(units - 1, 1) * ((gain - mean * answers) ** 2).sum())) / total
    p = float(ndtr(-mean / error)) if error > 0 else 1.0
    best = int(np.argmin(every[1:] if always else every)) + always
    tried = tuple(
        {"shrinkage": each.made.shrinkage, "log_loss": float(loss) / total} for each, loss in zip(candidates, every)
    )
    figures = Differences(DIFFER if p < LEVEL else ALIKE, people, None, mean, error, p, tried[1:])
    used = candidates[best]
    if best == 0 or (p >= LEVEL and not always):
        return candidates[0], figures
    return used, figures._replace(shrinkage=used.made.shrinkage, scale=used.scale, losses=used.losses)
