"""The kernel, the ridge and the number of dimensions, selected by the log loss on a validation set of whole responses.

Log loss and not the share of errors decides, because on easy data the latter says too little about the ridge. Each fit
is evaluated with its `calibration` on the same responses: otherwise, a fit with a better order loses to one whose
margins have the right size by luck (alien eggs: t-STE to STE). The ridge falls along a path, each fit begun at the one
before, and goes on below the grid while that helps. Larger numbers of dimensions are tried while they help, smaller
ones, each with a few ridges, until they are much worse. The smallest number within one standard error (paired, by
response) and `TOLERATED_LOSS` of the best is selected: of many numbers that predict alike, the best on a validation set
is often a too large one. Within one standard error alone it would be too small where responses are few (food100, 370
responses: 1). There, one validation set is misled by luck, so the best settings are compared on further ones. What
matters to single participants has dimensions of its own (`differences`). Some 20 to 40 fits.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import Calibration, calibrate
from stream_engine.embedding.fit import CAREFUL, KERNELS, ROUGH, Embedding, Setting, fit, fit_carefully
from stream_engine.embedding.fit_tables import FitTables
from stream_engine.embedding.held_out import known_lapses, population_lapse, unit_losses
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import margins, probability

RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1)
DIMENSIONS = (1, 2, 3, 4, 5, 8, 12, 18, 27)
LARGER_DIMENSIONS = (*DIMENSIONS, 40, 60)  # where the search was in some of the questions
FIRST_DIMENSIONS = 5  # dimensions in which the kernel and the ridge are chosen, where the dimensions are not given
MIN_RIDGE = 1e-3  # ridges below are not tried
MIN_GAIN = 1e-4  # nats an answer that a smaller ridge must gain to count as better
MAX_CHEAP_SIZE = CAREFUL / 10  # questions times dimensions up to which more ridges are tried in few dimensions
TOLERATED_LOSS = 0.004  # nats an answer that fewer dimensions may cost
LARGER_GAIN = (
    0.001  # nats an answer that more dimensions must gain with all questions: each next number costs half more
)
CLEARLY_WORSE = 2.0  # standard errors by which a setting is worse, above which it is not compared on further splits
MUCH_WORSE = 4.0  # standard errors by which a number of dimensions is worse, below which no smaller one is tried
INTERVAL_ERRORS = 1.96  # standard errors of an interval of 95 %
MAX_WORSE_RIDGES = 1  # ridges in a row that do not help, after which a path ends
MIN_VALIDATION_ANSWERS = 40.0  # answers that must choose at least
LARGE_QUESTIONS = 400_000  # questions above which a fit that only chooses has at most `FEW_ITERATIONS`
FEW_ITERATIONS, MAX_ITERATIONS = 10, 1000
DEFAULT_SETTING = Setting("t-ste", 2, 0.3)  # where there are too few answers to choose


class Trial(NamedTuple):
    """One setting with its held-out log loss, in nats an answer."""

    setting: Setting
    log_loss: float
    losses: np.ndarray  # by unit
    embedding: Embedding
    wide_points: np.ndarray | None  # of a fit in more dimensions, at which the next one begins
    calibration: Calibration  # used for the losses


class Split(NamedTuple):
    """A training set and its validation set."""

    questions: Questions
    validation: Answers


class Choice(NamedTuple):
    """What to fit with, all that was tried, and an embedding that is a good start."""

    setting: Setting
    basis: str  # what the setting rests on
    trials: list[dict[str, float | str]]
    starts: tuple[np.ndarray, ...]  # good points to begin a fit at
    calibration: Calibration | None = None  # on the validation set; None: as fitted
    embedding: Embedding | None = None  # the fit to the training set, where settings were compared
    interval: tuple[int, int] | None = None  # numbers of dimensions that predict no worse than the best, at 95 %
    smallest: Trial | None = None  # the best in the smallest number within one standard error of the best
    draw_scale: float | None = None  # of the margins of draws, over which predictions are averaged (`posterior`)
    test_units: np.ndarray | None = None  # (U,) bool: in neither the training nor the validation set


def choose(
    questions: Questions,
    validation: Answers,
    kernel: str | None = None,
    d: int | None = None,
    ridge: float | None = None,
    fixed_lapse: bool = False,
    further: Sequence[Split] = (),
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Choice:
    """The setting whose fit to `questions` predicts `validation` best, of those tried until `progress` returned True.
    What predicts about as well as the best is compared again on `further` splits. O(20 q d iterations)."""
    max_dimensions = max(questions.n_objects - 1, 1)
    if kernel is not None and d is not None and ridge is not None:
        return Choice(Setting(kernel, d, ridge), "given", [], ())
    if validation.times.sum() < MIN_VALIDATION_ANSWERS or not len(questions.rows):
        setting = Setting(
            kernel or DEFAULT_SETTING.kernel,
            d or min(DEFAULT_SETTING.d, max_dimensions),
            ridge or DEFAULT_SETTING.ridge,
        )
        return Choice(setting, "too few answers for a validation set", [], ())
    search = _Search(questions, validation, fixed_lapse, progress, ridge is not None)
    ridges = [ridge] if ridge is not None else _ridges(search.tables)
    first_d = d if d is not None else min(FIRST_DIMENSIONS, max_dimensions)
    best_by_kernel = sorted(
        (search.try_falling_ridges(each, first_d, ridges) for each in ([kernel] if kernel else KERNELS)), key=_loss
    )
    if d is None and not search.stopped:
        search.try_dimensions(best_by_kernel, max_dimensions)
        if ridge is None and search.best().setting.d != first_d:
            search.try_neighbouring_ridges(search.best())
        search.compare_again(further)
    chosen = search.best() if d is not None else search.most_economical()
    return Choice(
        chosen.setting,
        "held-out log loss",
        search.figures(),
        (chosen.embedding.points,),
        chosen.calibration,
        chosen.embedding,
        interval=search.interval() if d is None else None,
        smallest=search.smallest(),
    )


def choose_larger(
    chosen: Choice,
    questions: Questions,
    validation: Answers,
    fixed_lapse: bool = False,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Choice:
    """A choice that was made with some of the questions, in more dimensions where all of them support it: each next
    number is tried with all while it predicts better by more than one standard error and `LARGER_GAIN`. O(q d
    iterations) a fit."""
    if chosen.embedding is None or chosen.calibration is None:
        return chosen
    search = _Search(questions, validation, fixed_lapse, progress, True)
    trial = Trial(chosen.setting, 0.0, np.empty(0), chosen.embedding, None, chosen.calibration)
    best = search.attempt(chosen.setting, trial)
    for d in LARGER_DIMENSIONS:
        if chosen.setting.d < d < questions.n_objects and not search.stopped:
            trial = search.attempt(chosen.setting._replace(d=d), best)
            if _no_worse(best, trial, 1.0) or trial.log_loss > best.log_loss - LARGER_GAIN:
                break
            best = trial
    return chosen._replace(
        setting=best.setting,
        trials=chosen.trials + search.figures(),
        starts=(best.embedding.points,),
        calibration=best.calibration,
        embedding=best.embedding,
        interval=search.interval(),
        smallest=search.smallest(),
    )


def _loss(trial: Trial) -> float:
    return trial.log_loss


def _ridges(tables: FitTables) -> list[float]:
    """The grid, without ridges at which nothing is learned."""
    largest = tables.directions(FIRST_DIMENSIONS).largest_ridge
    return [each for each in RIDGES if each < largest / 2] or [largest / 4 or 1.0]


class _Search:
    compared: list[Trial] | None = None  # on all splits, where there are further ones

    def __init__(
        self,
        questions: Questions,
        validation: Answers,
        fixed_lapse: bool,
        progress: Callable[..., bool | None],
        given_ridge: bool,
    ) -> None:
        self.questions, self.validation, self.progress, self.given_ridge = questions, validation, progress, given_ridge
        self.tables = FitTables(questions)
        self.options: dict[str, Any] = {"fixed_lapse": fixed_lapse, "tolerance": ROUGH}
        self.max_iterations = FEW_ITERATIONS if len(questions.rows) > LARGE_QUESTIONS else MAX_ITERATIONS
        self.trials: list[Trial] = []
        self.stopped = False  # by whoever listens to the progress
        self.unit = np.unique(validation.response, return_inverse=True)[1].reshape(-1)

    def figures(self) -> list[dict[str, float | str]]:
        """Every setting with its loss, for the report."""
        return [{**each.setting._asdict(), "log_loss": each.log_loss} for each in self.trials]

    def attempt(self, setting: Setting, neighbour: Trial | None = None) -> Trial:
        """Fit with a setting, begun at the fit with a similar one; in another number of dimensions only where two
        starts cost too much, because of few questions a fit from scratch is often the better one."""
        questions, validation = self.questions, self.validation
        embedding, wide_points = self._fit(setting, neighbour)
        delta = margins(embedding.points, validation.rows, embedding.alpha)
        calibration = calibrate(delta, validation.times, population_lapse(embedding.lapse, questions))
        lapse = known_lapses(embedding.lapse, questions, calibration.lapse)[validation.participant + 1]
        losses = unit_losses(probability(calibration.scale * delta, lapse), validation, self.unit)
        log_loss = float(losses.sum() / validation.times.sum())
        trial = Trial(setting, log_loss, losses, embedding, wide_points, calibration)
        self.trials.append(trial)
        self.stopped |= bool(self.progress(len(self.trials), len(self.trials) + 1, log_loss=log_loss))
        return trial

    def _fit(self, setting: Setting, neighbour: Trial | None) -> tuple[Embedding, np.ndarray | None]:
        """The fit, and the points of the one in more dimensions that it may have begun at."""
        questions, (kernel, d, ridge) = self.questions, setting
        careful = len(questions.rows) * d <= CAREFUL
        options: dict[str, Any] = {"kernel": kernel, "tables": self.tables, **self.options}
        if neighbour is not None and (neighbour.setting.d == d or not careful):
            options |= {"start": neighbour.embedding.points, "lapse": neighbour.embedding.lapse}
        if not careful:
            return fit(questions, d, ridge, max_iterations=self.max_iterations, **options), None
        if neighbour is not None and neighbour.setting.kernel == kernel:
            options["wide"] = neighbour.wide_points
        return fit_carefully(questions, d, ridge, **options)

    def try_falling_ridges(self, kernel: str, d: int, ridges: list[float]) -> Trial:
        """The best of ever smaller ridges."""
        best = last = self.attempt(Setting(kernel, d, ridges[0]))
        n_worse, ridge = 0, ridges[0]
        while len(ridges) > 1 and n_worse <= MAX_WORSE_RIDGES and ridge > MIN_RIDGE and not self.stopped:
            at = int(np.searchsorted(-np.array(ridges), -ridge)) + 1
            ridge = ridges[at] if at < len(ridges) else ridge * ridges[-1] / ridges[-2]
            last = self.attempt(Setting(kernel, d, ridge), last)
            better = last.log_loss < best.log_loss - MIN_GAIN
            n_worse, best = (0, last) if better else (n_worse + 1, best)
        return best

    def best(self) -> Trial:
        """What has the smallest loss."""
        return min(self._candidates(), key=_loss)

    def _candidates(self) -> list[Trial]:
        return self.compared or self.trials

    def compare_again(self, further: Sequence[Split]) -> None:
        """Fit the best setting of each kernel in each number of dimensions to the further training sets, unless it is
        worse than the best by `CLEARLY_WORSE` standard errors, and let the losses on all validation sets decide."""
        best = self.best()
        by_size: dict[tuple[str, int], Trial] = {}
        for trial in sorted(self.trials, key=_loss):
            if _no_worse(trial, best, CLEARLY_WORSE):
                by_size.setdefault((trial.setting.kernel, trial.setting.d), trial)
        if not further or self.stopped or len(by_size) < 2:
            return
        searches = [_Search(*split, self.options["fixed_lapse"], self.progress, self.given_ridge) for split in further]
        again = [(trial, [each.attempt(trial.setting) for each in searches]) for trial in by_size.values()]
        self.compared = [_pooled(trial, others, [self, *searches]) for trial, others in again]

    def most_economical(self) -> Trial:
        """In the smallest number of dimensions that costs next to nothing beside the best, the best: what is within one
        standard error and `TOLERATED_LOSS` is as likely as not the better one, and has fewer dimensions to explain."""
        best = self.best()
        candidates = [
            each
            for each in self._candidates()
            if each.log_loss <= best.log_loss + TOLERATED_LOSS and _no_worse(each, best, 1.0)
        ]
        return min(candidates, key=lambda each: (each.setting.d, each.log_loss))

    def smallest(self, errors: float = 1.0) -> Trial:
        """In the smallest number of dimensions that is within so many standard errors of the best, the best."""
        candidates = [each for each in self._candidates() if _no_worse(each, self.best(), errors)]
        return min(candidates, key=lambda each: (each.setting.d, each.log_loss))

    def interval(self) -> tuple[int, int]:
        """From the smallest number of dimensions that is not significantly worse than the best, to the best."""
        return self.smallest(INTERVAL_ERRORS).setting.d, self.best().setting.d

    def try_dimensions(self, best_by_kernel: list[Trial], max_dimensions: int) -> None:
        """Try other numbers of dimensions. `best_by_kernel`: each kernel's best in the same number, the better one
        first; that one goes on in larger numbers while they help, all in smaller ones until none is within `MUCH_WORSE`
        standard errors. What is the best ridge in five dimensions is not in one, so some are tried there."""
        sizes = [d for d in DIMENSIONS if d <= max_dimensions]
        best = best_by_kernel[0]
        first_d, trials = best.setting.d, list(best_by_kernel)
        for d in reversed([d for d in sizes if d < first_d]):
            smaller = [
                self.attempt(each.setting._replace(d=d, ridge=ridge), each)
                for each in best_by_kernel
                for ridge in self._ridges_in(d, each.setting.ridge)
            ]
            trials += smaller
            if self.stopped or not any(_no_worse(each, best, MUCH_WORSE) for each in smaller):
                break
        best = min(trials, key=_loss)
        for d in sizes:
            if not self.stopped and d > first_d and best.setting.d == max(each.setting.d for each in trials):
                trials.append(self.attempt(best_by_kernel[0].setting._replace(d=d), best))
                best = min(trials, key=_loss)

    def _ridges_in(self, d: int, ridge: float) -> list[float]:
        """Ridges that are tried in fewer dimensions than the one that it is best for; beyond few questions that one."""
        cheap = len(self.questions.rows) * d <= MAX_CHEAP_SIZE and not self.given_ridge
        return sorted({ridge, DEFAULT_SETTING.ridge, DEFAULT_SETTING.ridge / 3}) if cheap else [ridge]

    def try_neighbouring_ridges(self, chosen: Trial) -> None:
        """Try the neighbouring ridges."""
        kernel, d, ridge = chosen.setting
        for factor in (3.0, 0.3):
            self.attempt(Setting(kernel, d, ridge * factor), chosen)


def _pooled(trial: Trial, others: list[Trial], searches: list[_Search]) -> Trial:
    """The trial with its losses on all splits, and the mean calibration."""
    trials = [trial, *others]
    losses = np.concatenate([each.losses for each in trials])
    scale = np.exp(np.mean([np.log(each.calibration.scale) for each in trials]))
    lapse = np.mean([each.calibration.lapse for each in trials])
    return trial._replace(
        log_loss=float(losses.sum() / sum(each.validation.times.sum() for each in searches)),
        losses=losses,
        calibration=Calibration(float(scale), float(lapse)),
    )


def _no_worse(trial: Trial, best: Trial, errors: float) -> bool:
    """Whether the mean loss of a unit is within so many standard errors of the best one's, paired."""
    excess = trial.losses - best.losses
    return bool(excess.mean() <= errors * excess.std() / np.sqrt(max(len(excess) - 1, 1)))
