"""Answers of participants in five folds by response, each predicted by the group's map of all other answers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import PRIOR_ANSWERS
from stream_engine.embedding.fit import LOOSE, Embedding, Setting, fit
from stream_engine.embedding.held_out import known_lapses
from stream_engine.embedding.questions import of_answers
from stream_engine.embedding.stacking import losses
from stream_engine.evaluation.answer_probabilities import log_odds, margins, probability

FOLDS = 5
SELECTION_ANSWERS = 5_000  # held-out answers that select weights: neighbouring settings then differ by .01 ± .002 nats
TEST_ANSWERS = 4 * SELECTION_ANSWERS  # that test them, where nothing else is predicted: half that error
MAX_SCALE = 10.0  # of margins, and 1 / MAX_SCALE the smallest
Progress = Callable[..., bool | None]


class ParticipantFolds:
    """Folds of the answers of all named participants, or with `only_weights` of as many as a test of weights needs.
    Units are responses, or of questions that several participants answered, the answers of each."""

    def __init__(
        self,
        answers: Answers,
        group_map: Embedding,
        setting: Setting,
        fixed_lapse: bool,
        only_weights: bool,
        progress: Progress,
    ):
        self.answers, self.group_map, self.setting, self.progress = answers, group_map, setting, progress
        self.options: dict[str, Any] = {"fixed_lapse": fixed_lapse}
        self.position = np.flatnonzero(answers.participant >= 0)  # of each target among all answers
        self.targets = answers.of(answers.participant >= 0)
        self.unit = _unit_numbers(self.targets)
        self.fold = _deal_units(self.unit, self.targets.participant)[self.unit]
        self.n_selection_folds, n_test_folds = (
            _folds_with(count, self.targets.times) for count in (SELECTION_ANSWERS, TEST_ANSWERS)
        )
        self.n_folds = n_test_folds if only_weights else FOLDS
        if only_weights:
            mask = self.fold < self.n_folds
            self.position, self.targets, self.fold = self.position[mask], self.targets.of(mask), self.fold[mask]
            self.unit = _unit_numbers(self.targets)
        self.n_selection_answers = float(self.targets.times[self.fold < self.n_selection_folds].sum())
        self.delta, self.lapse = np.empty(len(self.position)), np.empty(len(self.position))
        self.questions = [of_answers(self._without_fold(fold)) for fold in range(self.n_folds)]  # of the other folds
        self.maps = [self._fit_map(fold) for fold in range(self.n_folds)]
        self.log_odds = scaled_log_odds(self.delta, self.lapse, self.targets.times)[0]

    def _without_fold(self, fold: int) -> Answers:
        """The answers of all other folds, and those without a participant."""
        mask = np.ones(len(self.answers.rows), bool)
        mask[self.position[self.fold == fold]] = False
        return self.answers.of(mask)

    def _fit_map(self, fold: int) -> Embedding:
        """The group's map without a fold, whose margins and lapse rates it fills in."""
        kernel, d, ridge = self.setting
        questions, group_map = self.questions[fold], self.group_map
        options: dict[str, Any] = {"start": group_map.points, "lapse": group_map.lapse, "tolerance": LOOSE / 10}
        embedding = fit(questions, d, ridge, kernel=kernel, **(options | self.options))
        mask = self.fold == fold
        self.delta[mask] = margins(embedding.points, self.targets.rows[mask], embedding.alpha)
        self.lapse[mask] = known_lapses(embedding.lapse, questions)[self.targets.participant[mask] + 1]
        self.progress(fold + 1, self.n_folds)
        return embedding

    def gain_of_units(self, base: np.ndarray, log_odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(u,) what these log odds gain over `base` in a unit, in nats, and how many answers it has."""
        gain = self.targets.times * (losses(base) - losses(log_odds))
        return np.bincount(self.unit, gain), np.bincount(self.unit, self.targets.times)


def _unit_numbers(answers: Answers) -> np.ndarray:
    pair = answers.response * (1 + len(answers.participants)) + answers.participant
    return np.unique(pair, return_inverse=True)[1].reshape(-1)


def _deal_units(unit: np.ndarray, participant: np.ndarray) -> np.ndarray:
    """(u,) fold of each unit, the units of a participant dealt in their order."""
    owner = np.zeros(int(unit.max(initial=-1)) + 1, np.int64)
    owner[unit] = participant
    order = np.argsort(owner, kind="stable")
    fold = np.empty(len(owner), np.int64)
    fold[order] = (np.arange(len(owner)) - np.searchsorted(owner[order], owner[order])) % FOLDS
    return fold


def _folds_with(answers: float, times: np.ndarray) -> int:
    """How many folds have so many answers, or all."""
    return min(FOLDS, int(np.ceil(FOLDS * answers / max(float(times.sum()), 1.0))))


def scaled_log_odds(delta: np.ndarray, lapse: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, float]:
    """(m,) log odds of answers with these margins, by the lapse rate of who gave them, with the scale of the margins
    that has the least loss; and that scale."""

    def loss(log_scale: float) -> float:
        p = probability(np.exp(log_scale) * delta, lapse)
        return float(-(times @ np.log(np.maximum(p, 1e-300)))) + PRIOR_ANSWERS / 4 * log_scale**2

    bounds = (-np.log(MAX_SCALE), np.log(MAX_SCALE))
    scale = float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
    delta = scale * delta
    return np.sign(delta) * log_odds(probability(np.abs(delta), lapse)), scale


def mean_gain(gain: np.ndarray, answers: np.ndarray) -> tuple[float, float, float]:
    """The mean gain of an answer, its standard error over units, and the one-sided p-value; `gain` and `answers` (u,)
    of units."""
    total, units = float(answers.sum()), len(gain)
    mean = float(gain.sum()) / total
    error = float(np.sqrt(units / max(units - 1, 1) * ((gain - mean * answers) ** 2).sum())) / total
    return mean, error, float(ndtr(-mean / error)) if error > 0 else 1.0
