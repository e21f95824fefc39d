"""Selection of the dimensions and the shrinkage of participants' weights, and a test of their gain over one map.

Weights need dimensions of their own: an axis that only a few use is noise in the map of all. Two groups who see things
differently look like one that sees and one that guesses: one map with lapse rates of their own can fit the larger group
only. So where a lapse rate is above `HIGH_LAPSE`, weights are also begun at `individual.pooled_map`, if that predicts
better. What takes most of a descent is to find the axes, so they are found once, and every fit begins at its own map,
turned onto them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_engine.embedding.calibration import Calibration, calibrate
from stream_engine.embedding.held_out import known_lapses, population_lapse
from stream_engine.embedding.individual import (
    SHRINKAGES,
    Individual,
    Weights,
    fit_weights,
    fit_with,
    weighted_margins,
)
from stream_engine.embedding.participant_folds import ParticipantFolds, mean_gain, scaled_log_odds
from stream_engine.embedding.questions import of_answers
from stream_engine.embedding.stacking import losses
from stream_engine.evaluation.answer_probabilities import margins, probability

LEVEL = 0.01  # of the test
MAP_SHARES = (0.5, 1.0)
FIRST_SHRINKAGE = SHRINKAGES[len(SHRINKAGES) // 2]
DIMENSIONS = (2, 3, 4, 5, 8, 12, 18, 27)
MIN_GAIN = 2e-3  # nats an answer by which another number must be better: the standard error of 5,000 answers
AXES_ANSWERS = 40_000  # to which the fit is made whose axes all others begin at
FOLD_TOLERANCE = 3e-4  # of a fit without a fold: one that went on predicted no better (food100, portraits36)
HIGH_LAPSE = 0.3  # a lapse rate that may be that of a participant who sees things differently,
MAX_POOLED_DIMENSIONS = 3  # and more dimensions have room for what either group sees


class WeightTest(NamedTuple):
    """The gain of weights over the group's map, in nats an answer."""

    weights: Weights | None  # None: not used
    gain: float
    p_value: float
    log_odds: np.ndarray  # (m,) of the held-out answers, by the group's map where weights are not used
    axes: np.ndarray | None = None  # (n, k) points on the axes that every fit with these weights begins at


def select_weights(folds: ParticipantFolds, given_d: bool, always: bool) -> WeightTest | None:
    """Select with some of the folds, and test on all; None where there are too few objects or dimensions. `given_d`:
    the number of dimensions stays; `always`: use weights whatever the test says."""
    first_d, n_objects = folds.setting.d if given_d else max(folds.setting.d, 2), folds.answers.n_objects
    if not 1 < first_d < max(n_objects, 3):
        return None
    search = _Search(folds)
    best = search.attempt(Weights(FIRST_SHRINKAGE, d=first_d))
    if folds.group_map.lapse.max() > HIGH_LAPSE and first_d <= MAX_POOLED_DIMENSIONS:
        best = min(best, search.attempt(best.setting._replace(pooled=True)), key=lambda each: each.loss)
    if not given_d:
        best = search.improve(best, "d", [d for d in DIMENSIONS if d < n_objects], MIN_GAIN)
    best = search.improve(best, "shrinkage", SHRINKAGES)
    best.predict(folds.n_folds)
    log_odds, scale = best.log_odds()
    gain, _, p_value = mean_gain(*folds.gain_of_units(folds.log_odds, log_odds))
    if p_value >= LEVEL and not always:
        return WeightTest(None, gain, p_value, folds.log_odds)
    calibration = calibrate(best.group_delta, folds.targets.times, float(np.mean(best.population_lapses)))
    weights = best.setting._replace(scale=scale, calibration=calibration)
    return WeightTest(_with_map_share(weights, folds, best.group_delta), gain, p_value, log_odds, best.axes)


def _with_map_share(weights: Weights, folds: ParticipantFolds, group_delta: np.ndarray) -> Weights:
    """With the share of the group's map in predictions for unknown participants: half or all, whichever predicts the
    held-out answers better if it is not said who gave them. `group_delta` (m,) are margins by the group's weights, with
    axes that few use: by these alone, answers of participants who are in the fit are predicted well, of others worse.
    """
    times, of_weights = folds.targets.times, weights.calibration or Calibration(1.0, 0.0)
    lapses = [population_lapse(each.lapse, questions) for each, questions in zip(folds.maps, folds.questions)]
    of_map = calibrate(folds.delta, times, float(np.mean(lapses)))
    by_weights, by_map = (
        probability(calibration.scale * delta, calibration.lapse)
        for calibration, delta in ((of_weights, group_delta), (of_map, folds.delta))
    )
    loss = [-times @ np.log(by_weights + share * (by_map - by_weights)) for share in MAP_SHARES]
    return weights._replace(map_share=MAP_SHARES[int(np.argmin(loss))])


class _Search:
    """Settings of weights with their predictions."""

    def __init__(self, folds: ParticipantFolds):
        self.folds = folds
        self.trials: dict[Weights, _Trial] = {}
        self.last_fits: dict[tuple[int, int, bool], Individual] = {}  # of a fold, with any shrinkage
        self._axes: dict[bool, np.ndarray] = {}

    def axes(self, setting: Weights) -> np.ndarray:
        """(n, k) points of a fit to answers of all folds, by whether it begins at the pooled map: a fold takes nothing
        from it but the directions of its axes, for which a part of many answers will do."""
        if setting.pooled not in self._axes:
            questions = of_answers(self.folds.answers.sample(AXES_ANSWERS))
            fit = fit_with(questions, self.folds.group_map, setting, **self.folds.options)
            self._axes[setting.pooled] = fit.embedding.points
        return self._axes[setting.pooled]

    def attempt(self, setting: Weights) -> "_Trial":
        """The predictions with a setting."""
        if setting not in self.trials:
            self.trials[setting] = _Trial(self, setting)
        return self.trials[setting]

    def improve(self, best: "_Trial", name: str, values: Sequence[float], min_gain: float = 0.0) -> "_Trial":
        """The best of larger or else smaller values of one part of `Weights`, as long as each predicts better than the
        one before, by `min_gain` nats an answer."""
        value, margin = getattr(best.setting, name), min_gain * self.folds.n_selection_answers
        larger = sorted(each for each in values if each > value)
        smaller = sorted((each for each in values if each < value), reverse=True)
        for direction in (larger, smaller):
            first = best
            for each in direction:
                change: dict[str, Any] = {name: each}
                trial = self.attempt(best.setting._replace(**change))
                if trial.loss >= best.loss - margin:
                    break
                best = trial
            if best is not first:
                break
        return best

    def fit(self, fold: int, setting: Weights, axes: np.ndarray | None) -> Individual:
        """The fit with weights to the answers of all other folds; the first one begins at the map, turned onto `axes`
        or else those of a part of the answers."""
        key, questions = (fold, setting.d, setting.pooled), self.folds.questions[fold]
        last, options = self.last_fits.get(key), {"tolerance": FOLD_TOLERANCE} | self.folds.options
        if last is None:
            axes = self.axes(setting) if axes is None else axes
            fit = fit_with(questions, self.folds.maps[fold], setting, axes, **options)
        else:
            fit = fit_weights(questions, last.embedding, setting.shrinkage, weights=last.weights, **options)
        self.last_fits[key] = fit
        return fit


class _Trial:
    """Predictions with weights, of as many folds as select; `loss` of all their answers."""

    def __init__(self, search: _Search, setting: Weights):
        self.search, self.folds, self.setting = search, search.folds, setting
        # margins by the participant's weights and by the group's, and the participant's lapse rate
        self.delta, self.group_delta, self.lapse = (np.empty(len(self.folds.position)) for _ in range(3))
        self.population_lapses: list[float] = []  # of unknown participants, one a fold
        self.axes: np.ndarray | None = None  # (n, d) points of the first fold's fit, on whose axes others begin
        self.predict(self.folds.n_selection_folds)
        mask = self.folds.fold < self.folds.n_selection_folds
        self.loss = float(self.folds.targets.times[mask] @ losses(self.log_odds(mask)[0]))

    def predict(self, n_folds: int) -> None:
        """Predict so many folds, each by a fit to all others."""
        targets = self.folds.targets
        for fold in range(len(self.population_lapses), n_folds):
            questions, fit = self.folds.questions[fold], self.search.fit(fold, self.setting, self.axes)
            self.axes = fit.embedding.points if self.axes is None else self.axes
            mask = self.folds.fold == fold
            points, alpha, row = fit.embedding.points, fit.embedding.alpha, targets.participant[mask] + 1
            self.delta[mask] = weighted_margins(points, fit.weights, targets.rows[mask], row, alpha)
            self.group_delta[mask] = margins(points, targets.rows[mask], alpha)
            self.lapse[mask] = known_lapses(fit.embedding.lapse, questions)[row]
            self.population_lapses.append(population_lapse(fit.embedding.lapse, questions))
            self.folds.progress(fold + 1, self.folds.n_folds)

    def log_odds(self, mask: Any = slice(None)) -> tuple[np.ndarray, float]:
        """Log odds of the answers of a mask, and the scale of the margins that is best for them."""
        return scaled_log_odds(self.delta[mask], self.lapse[mask], self.folds.targets.times[mask])
