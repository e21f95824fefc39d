"""The kernel, the ridge and the number of dimensions, by the log loss of held-out units; what is given is not chosen.

Units (whole responses) are in the training, the validation or the test set: never in two of these. Log loss and not the
share of errors decides, because on easy data the latter says too little about the ridge. Each fit is evaluated with its
`calibration` on the same units: otherwise, a fit with a better order loses to one whose margins have the right size by
luck (alien eggs: t-STE to STE). The ridge falls along a path, each fit begun at the one before, and goes on below the
grid while that helps. Larger numbers of dimensions are tried while they help, smaller ones, each with a few ridges,
until they are much worse. The smallest number within one standard error (paired, by unit) and `LITTLE` of the best
predicts: of many numbers that predict alike, the best on a validation set is often a too large one. Within one
standard error alone it would be too small where units are few (food100, 370 responses: 1). What matters to single
participants has dimensions of its own (`differences`). Some 20 to 40 fits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import Calibration, calibrate
from stream_engine.embedding.fit import CAREFUL, KERNELS, ROUGH, Embedding, Setting, fit, fit_carefully
from stream_engine.embedding.held_out import known_lapses, population_lapse, unit_losses
from stream_engine.embedding.questions import Questions
from stream_engine.embedding.starts import directions
from stream_engine.evaluation.answer_probabilities import margins, probability

RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1)
DIMENSIONS = (1, 2, 3, 4, 5, 8, 12, 18, 27)
LARGER = (*DIMENSIONS, 40, 60)  # where the search was in some of the questions
FIRST = 5  # dimensions in which the kernel and the ridge are chosen, where the dimensions are not given
BEYOND = 1e-3  # ridges below are not tried
GAIN = 1e-4  # nats an answer that a smaller ridge must gain to count as better
CHEAP = CAREFUL / 10  # questions times dimensions up to which more ridges are tried in few dimensions
LITTLE = 0.004  # nats an answer that fewer dimensions may cost
FAR = 4.0  # standard errors by which a number of dimensions is worse, below which no smaller one is tried
SIGNIFICANT = 1.96  # standard errors of an interval of 95 %
WITHOUT = 1  # ridges in a row that do not help, after which a path ends
FEW = 40.0  # answers that must choose at least
MANY, ENOUGH = 400_000, 10  # questions above which fits that only choose have so many iterations
USUAL = Setting("t-ste", 2, 0.3)  # where there are fewer


class Trial(NamedTuple):
    """One setting with its held-out log loss, in nats an answer."""

    setting: Setting
    log_loss: float
    losses: np.ndarray  # by unit
    found: Embedding
    wide: np.ndarray | None
    calibration: Calibration  # used for the losses


class Choice(NamedTuple):
    """What to fit with, all that was tried, and an embedding that is a good start."""

    setting: Setting
    by: str
    tried: list[dict[str, float | str]]
    begin: tuple[np.ndarray, ...]  # good points to begin a fit at
    calibration: Calibration | None = None  # on the validation set; None: as fitted
    found: Embedding | None = None  # the fit to the training set, where settings were compared
    interval: tuple[int, int] | None = None  # numbers of dimensions that predict no worse than the best, at 95 %
    smallest: Trial | None = None  # the best in the smallest number within one standard error of the best
    outside: np.ndarray | None = None  # (U,) bool: units that neither chose nor were fitted to


def choose(
    questions: Questions,
    held: Answers,
    kernel: str | None = None,
    d: int | None = None,
    ridge: float | None = None,
    fixed_lapse: bool = False,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Choice:
    """The setting whose fit to `questions` predicts `held` best, of those tried until `progress` returned True.
    O(20 q d iterations)."""
    most = max(questions.n_objects - 1, 1)
    if kernel is not None and d is not None and ridge is not None:
        return Choice(Setting(kernel, d, ridge), "given", [], ())
    if held.times.sum() < FEW or not len(questions.rows):
        usual = Setting(kernel or USUAL.kernel, d or min(USUAL.d, most), ridge or USUAL.ridge)
        return Choice(usual, "too few answers for a validation set", [], ())
    search = _Search(questions, held, fixed_lapse, progress, ridge is not None)
    ridges = [ridge] if ridge is not None else _ridges(questions)
    first = d if d is not None else min(FIRST, most)
    paths = sorted((search.path(each, first, ridges) for each in ([kernel] if kernel else KERNELS)), key=_loss)
    if d is None and not search.stopped:
        search.dimensions(paths, most)
        if ridge is None and search.best().setting.d != first:
            search.beside(search.best())
    chosen = search.best() if d is not None else search.sparing()
    tried = [{**each.setting._asdict(), "log_loss": each.log_loss} for each in search.tried]
    return Choice(
        chosen.setting,
        "held-out log loss",
        tried,
        (chosen.found.points,),
        chosen.calibration,
        chosen.found,
        interval=search.interval() if d is None else None,
        smallest=search.smallest(),
    )


def larger(
    chosen: Choice,
    questions: Questions,
    held: Answers,
    fixed_lapse: bool = False,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Choice:
    """A choice that was made with some of the questions, in more dimensions where all of them support it: each next
    number is tried with all while it predicts better by more than one standard error. O(q d iterations) a fit."""
    if chosen.found is None or chosen.calibration is None:
        return chosen
    search = _Search(questions, held, fixed_lapse, progress, True)
    near = Trial(chosen.setting, 0.0, np.empty(0), chosen.found, None, chosen.calibration)
    best = search.attempt(chosen.setting, near)
    for d in LARGER:
        if chosen.setting.d < d < questions.n_objects and not search.stopped:
            tried = search.attempt(chosen.setting._replace(d=d), best)
            if _no_worse(best, tried, 1.0):
                break
            best = tried
    more = [{**each.setting._asdict(), "log_loss": each.log_loss} for each in search.tried]
    return chosen._replace(
        setting=best.setting,
        tried=chosen.tried + more,
        begin=(best.found.points,),
        calibration=best.calibration,
        found=best.found,
        interval=search.interval(),
        smallest=search.smallest(),
    )


def _loss(tried: Trial) -> float:
    return tried.log_loss


def _ridges(questions: Questions) -> list[float]:
    """The grid, without ridges at which nothing is learned."""
    largest = directions(questions, 1).largest_ridge
    return [each for each in RIDGES if each < largest / 2] or [largest / 4 or 1.0]


class _Search:
    def __init__(
        self, questions: Questions, held: Answers, fixed: bool, progress: Callable[..., bool | None], given_ridge: bool
    ) -> None:
        self.questions, self.held, self.progress, self.given_ridge = questions, held, progress, given_ridge
        self.more: dict[str, Any] = {"fixed_lapse": fixed, "tolerance": ROUGH}
        self.most = ENOUGH if len(questions.rows) > MANY else 1000
        self.tried: list[Trial] = []
        self.stopped = False  # by whoever listens to the progress
        self.unit = np.unique(held.response, return_inverse=True)[1].reshape(-1)

    def attempt(self, setting: Setting, near: Trial | None = None) -> Trial:
        """Fit with a setting, begun at an answer nearby; in another number of dimensions only where two starts cost too
        much, because of few questions a fit from scratch is often the better one."""
        q, (kernel, d, ridge) = self.questions, setting
        start = lapse = wide = None
        careful = len(q.rows) * d <= CAREFUL
        if near is not None and (near.setting.d == d or not careful):
            start, lapse = near.found.points, near.found.lapse
        if near is not None and near.setting.kernel == kernel:
            wide = near.wide
        if careful:
            found, wide = fit_carefully(q, d, ridge, kernel=kernel, start=start, wide=wide, lapse=lapse, **self.more)
        else:
            found, wide = (
                fit(q, d, ridge, kernel=kernel, start=start, lapse=lapse, max_iterations=self.most, **self.more),
                None,
            )
        delta = margins(found.points, self.held.rows, found.alpha)
        calibration = calibrate(delta, self.held.times, population_lapse(found.lapse, q))
        lapse = known_lapses(found.lapse, q, calibration.lapse)[self.held.participant + 1]
        losses = unit_losses(probability(calibration.scale * delta, lapse), self.held, self.unit)
        done = Trial(setting, float(losses.sum() / self.held.times.sum()), losses, found, wide, calibration)
        self.tried.append(done)
        self.stopped |= bool(self.progress(len(self.tried), len(self.tried) + 1, log_loss=done.log_loss))
        return done

    def path(self, kernel: str, d: int, ridges: list[float]) -> Trial:
        """The best of ever smaller ridges."""
        best = last = self.attempt(Setting(kernel, d, ridges[0]))
        worse, ridge = 0, ridges[0]
        while len(ridges) > 1 and worse <= WITHOUT and ridge > BEYOND and not self.stopped:
            at = int(np.searchsorted(-np.array(ridges), -ridge)) + 1
            ridge = ridges[at] if at < len(ridges) else ridge * ridges[-1] / ridges[-2]
            last = self.attempt(Setting(kernel, d, ridge), last)
            better = last.log_loss < best.log_loss - GAIN
            worse, best = (0, last) if better else (worse + 1, best)
        return best

    def best(self) -> Trial:
        """What has the smallest loss."""
        return min(self.tried, key=_loss)

    def sparing(self) -> Trial:
        """In the smallest number of dimensions that costs next to nothing beside the best, the best: what is within one
        standard error and `LITTLE` is as likely as not the better one, and has fewer dimensions to explain."""
        best = self.best()
        enough = [each for each in self.tried if each.log_loss <= best.log_loss + LITTLE and _no_worse(each, best, 1.0)]
        return min(enough, key=lambda each: (each.setting.d, each.log_loss))

    def smallest(self, errors: float = 1.0) -> Trial:
        """In the smallest number of dimensions that is within so many standard errors of the best, the best."""
        enough = [each for each in self.tried if _no_worse(each, self.best(), errors)]
        return min(enough, key=lambda each: (each.setting.d, each.log_loss))

    def interval(self) -> tuple[int, int]:
        """From the smallest number of dimensions that is not significantly worse than the best, to the best."""
        return self.smallest(SIGNIFICANT).setting.d, self.best().setting.d

    def dimensions(self, firsts: list[Trial], most: int) -> None:
        """Try other numbers of dimensions. `firsts`: each kernel's best in the same number, the better one first; that
        one goes on in larger numbers while they help, all in smaller ones until none is within `FAR` standard errors.
        What is the best ridge in five dimensions is not in one, so some are tried there."""
        sizes = [d for d in DIMENSIONS if d <= most]
        first = firsts[0].setting.d
        done = list(firsts)
        for d in reversed([d for d in sizes if d < first]):
            smaller = [
                self.attempt(each.setting._replace(d=d, ridge=ridge), each)
                for each in firsts
                for ridge in self._ridges_in(d, each.setting.ridge)
            ]
            done += smaller
            if self.stopped or not any(_no_worse(each, firsts[0], FAR) for each in smaller):
                break
        best = min(done, key=_loss)
        for d in sizes:
            if not self.stopped and d > first and best.setting.d == max(each.setting.d for each in done):
                done.append(self.attempt(firsts[0].setting._replace(d=d), best))
                best = min(done, key=_loss)

    def _ridges_in(self, d: int, ridge: float) -> list[float]:
        """Ridges that are tried in fewer dimensions than the one that it is best for; beyond few questions that one."""
        few = len(self.questions.rows) * d <= CHEAP and not self.given_ridge
        return sorted({ridge, USUAL.ridge, USUAL.ridge / 3}) if few else [ridge]

    def beside(self, chosen: Trial) -> None:
        """Try the neighbouring ridges."""
        kernel, d, ridge = chosen.setting
        for by in (3.0, 0.3):
            self.attempt(Setting(kernel, d, ridge * by), chosen)


def _no_worse(one: Trial, best: Trial, errors: float) -> bool:
    """Whether the mean loss of a unit is within so many standard errors of the best one's, paired."""
    more = one.losses - best.losses
    return bool(more.mean() <= errors * more.std() / np.sqrt(max(len(more) - 1, 1)))
