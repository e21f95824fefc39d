"""The kernel, the ridge and the number of dimensions, by the log loss of held-out units; what is given is not chosen.

Units (whole judgements) are fitted to, choose, or are reported on: never two of these. Log loss and not the share of
errors decides, because on easy data the latter says too little about the ridge. Each fit is judged as it would be
delivered, by its `sureness` of the same units: else one that orders better loses to one whose margins happen to be of
the right size (alien eggs: t-STE to STE). The ridge falls along a path, each fit begun at the one before, and goes on
below the grid while that helps. Of the dimensions the smallest counts in which either kernel is within one standard
error (paired, by unit) of the best; larger ones are tried while they help, smaller ones while they do. Some 20 fits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.embedding.fit import CAREFUL, KERNELS, LOOSE, Embedding, Setting, fit, fit_carefully
from stream_engine.embedding.gradient import margins, probability
from stream_engine.embedding.held_out import Answers, known_lapses, population_lapse, unit_losses
from stream_engine.embedding.questions import Questions
from stream_engine.embedding.starts import directions
from stream_engine.embedding.sureness import Sureness, sureness

RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1)
DIMENSIONS = (1, 2, 3, 5, 8, 12, 18, 27)
FIRST = 5  # dimensions in which the kernel and the ridge are chosen, where the dimensions are not given
BEYOND = 1e-3  # ridges below are not tried
GAIN = 1e-4  # nats an answer that a smaller ridge must gain to count as better
WITHOUT = 1  # ridges in a row that do not help, after which a path ends
FEW = 40.0  # answers that must choose at least
MANY, ENOUGH = 400_000, 10  # questions above which fits that only choose have so many iterations
USUAL = Setting("t-ste", 2, 0.3)  # where there are fewer


class Tried(NamedTuple):
    """One setting with its held-out log loss, in nats an answer."""

    setting: Setting
    log_loss: float
    losses: np.ndarray  # by unit
    found: Embedding
    wide: np.ndarray | None
    sure: Sureness  # by which the losses are


class Choice(NamedTuple):
    """What to fit with, all that was tried, and an embedding that is a good start."""

    setting: Setting
    by: str
    tried: list[dict[str, float | str]]
    begin: tuple[np.ndarray, ...]  # good points to begin a fit at
    sureness: Sureness | None = None  # of the answers that chose; None: as sure as the fit


def choose(
    questions: Questions,
    held: Answers,
    kernel: str | None = None,
    d: int | None = None,
    ridge: float | None = None,
    fixed_lapse: bool = False,
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> Choice:
    """The setting whose fit to `questions` foretells `held` best. O(20 q d iterations)."""
    most = max(questions.n_objects - 1, 1)
    if kernel is not None and d is not None and ridge is not None:
        return Choice(Setting(kernel, d, ridge), "given", [], ())
    if held.times.sum() < FEW or not len(questions.rows):
        usual = Setting(kernel or USUAL.kernel, d or min(USUAL.d, most), ridge or USUAL.ridge)
        return Choice(usual, "too few answers to hold any out", [], ())
    search = _Search(questions, held, fixed_lapse, progress)
    ridges = [ridge] if ridge is not None else _ridges(questions)
    first = d if d is not None else min(FIRST, most)
    paths = sorted((search.path(each, first, ridges) for each in ([kernel] if kernel else KERNELS)), key=_loss)
    best = paths[0]
    if d is None:
        best = search.dimensions(paths, most)
        if ridge is None and best.setting.d != first:
            best = min((best, *search.beside(best)), key=_loss)
    tried = [{**each.setting._asdict(), "log_loss": each.log_loss} for each in search.tried]
    return Choice(best.setting, "held-out log loss", tried, (best.found.points,), best.sure)


def _loss(tried: Tried) -> float:
    return tried.log_loss


def _ridges(questions: Questions) -> list[float]:
    """The grid, without ridges at which nothing is learned."""
    largest = directions(questions, 1).largest_ridge
    return [each for each in RIDGES if each < largest / 2] or [largest / 4 or 1.0]


class _Search:
    def __init__(self, questions: Questions, held: Answers, fixed: bool, progress: Callable[..., None]) -> None:
        self.questions, self.held, self.progress = questions, held, progress
        self.more: dict[str, Any] = {"fixed_lapse": fixed, "tolerance": LOOSE}
        self.most = ENOUGH if len(questions.rows) > MANY else 1000
        self.tried: list[Tried] = []
        self.unit = np.unique(held.unit, return_inverse=True)[1].reshape(-1)

    def attempt(self, setting: Setting, near: Tried | None = None) -> Tried:
        """Fit with a setting, begun at an answer nearby; in another number of dimensions only where two starts cost too
        much, because of few questions a fit from scratch is often the better one."""
        q, (kernel, d, ridge) = self.questions, setting
        start = lapse = wide = None
        careful = len(q.rows) * d <= CAREFUL
        if near is not None and (near.setting.d == d or not careful):
            start, lapse, wide = near.found.points, near.found.lapse, near.wide
        if careful:
            found, wide = fit_carefully(q, d, ridge, kernel=kernel, start=start, wide=wide, lapse=lapse, **self.more)
        else:
            found, wide = (
                fit(q, d, ridge, kernel=kernel, start=start, lapse=lapse, max_iterations=self.most, **self.more),
                None,
            )
        delta = margins(found.points, self.held.rows, found.alpha)
        sure = sureness(delta, self.held.times, population_lapse(found.lapse, q))
        lapse = known_lapses(found.lapse, q, sure.lapse)[self.held.worker + 1]
        losses = unit_losses(probability(sure.scale * delta, lapse), self.held, self.unit)
        done = Tried(setting, float(losses.sum() / self.held.times.sum()), losses, found, wide, sure)
        self.tried.append(done)
        self.progress(len(self.tried), len(self.tried) + 1, log_loss=done.log_loss)
        return done

    def path(self, kernel: str, d: int, ridges: list[float]) -> Tried:
        """The best of ever smaller ridges."""
        best = last = self.attempt(Setting(kernel, d, ridges[0]))
        worse, ridge = 0, ridges[0]
        while len(ridges) > 1 and worse <= WITHOUT and ridge > BEYOND:
            at = int(np.searchsorted(-np.array(ridges), -ridge)) + 1
            ridge = ridges[at] if at < len(ridges) else ridge * ridges[-1] / ridges[-2]
            last = self.attempt(Setting(kernel, d, ridge), last)
            better = last.log_loss < best.log_loss - GAIN
            worse, best = (0, last) if better else (worse + 1, best)
        return best

    def dimensions(self, firsts: list[Tried], most: int) -> Tried:
        """The smallest number of dimensions in which a kernel is within one standard error of the best; of the kernels
        that are, the better. `firsts`: each kernel's best in the same number of dimensions, the better one first; that
        one goes on in larger numbers while they help, all in smaller ones until none is within one standard error: what
        is too small for one number is for those below it."""
        sizes = [d for d in DIMENSIONS if d <= most]
        first = firsts[0].setting.d
        done = list(firsts)
        for d in reversed([d for d in sizes if d < first]):
            smaller = [self.attempt(each.setting._replace(d=d), each) for each in firsts]
            done += smaller
            if not any(_no_worse(each, firsts[0]) for each in smaller):
                break
        best = min(done, key=_loss)
        for d in sizes:
            if d > first and best.setting.d == max(each.setting.d for each in done):
                done.append(self.attempt(firsts[0].setting._replace(d=d), best))
                best = min(done, key=_loss)
        enough = [each for each in done if _no_worse(each, best)]
        return min(enough, key=lambda each: (each.setting.d, each.log_loss))

    def beside(self, chosen: Tried) -> list[Tried]:
        """The neighbouring ridges."""
        kernel, d, ridge = chosen.setting
        return [self.attempt(Setting(kernel, d, ridge * by), chosen) for by in (3.0, 0.3)]


def _no_worse(one: Tried, best: Tried) -> bool:
    """Whether the mean loss of a unit is within one standard error of the best one's, paired."""
    more = one.losses - best.losses
    return bool(more.mean() <= more.std() / np.sqrt(max(len(more) - 1, 1)))
