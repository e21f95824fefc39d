"""The kernel, the ridge and the number of dimensions, by the log loss of held-out units; what is given is not chosen.

Units (whole judgements) are fitted to, choose, or are reported on: never two of these. Log loss and not the share of
errors decides, because on easy data the latter says too little about the ridge. The ridge falls along a path, each fit
begun at the one before, and goes on below the grid while that helps. Of the dimensions the smallest counts that is
within one standard error (paired, by unit) of the best; larger ones are tried while they help. Some 20 fits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.embedding.fit import CAREFUL, KERNELS, LOOSE, Embedding, Setting, fit, fit_carefully
from stream_engine.embedding.gradient import margins
from stream_engine.embedding.held_out import (
    Answers,
    known_lapses,
    population_lapse,
    probabilities,
    unit_losses,
)
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


class Choice(NamedTuple):
    """What to fit with, all that was tried, and an embedding that is a good start."""

    setting: Setting
    by: str
    tried: list[dict[str, float | str]]
    begin: tuple[np.ndarray, ...]  # good points to begin a fit at
    sureness: Sureness | None = None  # of answers that chose; None: as sure as the fit


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
    best = min((search.path(each, first, ridges) for each in ([kernel] if kernel else KERNELS)), key=_loss)
    if d is None:
        best = search.dimensions(best, most)
        if ridge is None and best.setting.d != first:
            best = min((best, *search.beside(best)), key=_loss)
    tried = [{**each.setting._asdict(), "log_loss": each.log_loss} for each in search.tried]
    delta = margins(best.found.points, held.rows, best.found.alpha)
    made = sureness(delta, held.times, population_lapse(best.found.lapse, questions))
    return Choice(best.setting, "held-out log loss", tried, (best.found.points,), made)


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

    def attempt(self, setting: Setting, near: Tried | None = None) -> Tried:
        """Fit with a setting, begun at an answer nearby."""
        q, (kernel, d, ridge) = self.questions, setting
        start = lapse = wide = None
        if near is not None:
            start, lapse, wide = near.found.points, near.found.lapse, near.wide
        if len(q.rows) * d <= CAREFUL:
            found, wide = fit_carefully(q, d, ridge, kernel=kernel, start=start, wide=wide, lapse=lapse, **self.more)
        else:
            found, wide = (
                fit(q, d, ridge, kernel=kernel, start=start, lapse=lapse, max_iterations=self.most, **self.more),
                None,
            )
        lapse = known_lapses(found.lapse, q)
        p = probabilities(found.points, self.held.rows, lapse, found.alpha, self.held.worker)
        losses, answers = unit_losses(p, self.held)
        done = Tried(setting, float(losses.sum() / answers.sum()), losses, found, wide)
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

    def dimensions(self, first: Tried, most: int) -> Tried:
        """The smallest number of dimensions that is within one standard error of the best."""
        kernel, _, ridge = first.setting
        sizes = [d for d in DIMENSIONS if d <= most]
        done = {first.setting.d: first}
        for d in sizes:
            if d < first.setting.d:
                done[d] = self.attempt(Setting(kernel, d, ridge))
        for d in sizes:
            if d > max(done):
                if min(done.values(), key=_loss).setting.d != max(done):
                    break
                done[d] = self.attempt(Setting(kernel, d, ridge))
        best = min(done.values(), key=_loss)
        return next(done[d] for d in sorted(done) if _no_worse(done[d], best))

    def beside(self, chosen: Tried) -> list[Tried]:
        """The neighbouring ridges."""
        kernel, d, ridge = chosen.setting
        return [self.attempt(Setting(kernel, d, ridge * by), chosen) for by in (3.0, 0.3)]


def _no_worse(one: Tried, best: Tried) -> bool:
    """Whether the mean loss of a unit is within one standard error of the best one's, paired."""
    more = one.losses - best.losses
    return bool(more.mean() <= more.std() / np.sqrt(max(len(more) - 1, 1)))
