"""Feature sets tested on people's answers, as they are and after learning, by held-out responses and objects.

By response, folds are those of `evaluation.cross_fit`; by object, no tested answer names an object that was fitted or
that chose (`answers.ObjectFold`). Measure and ridges are chosen in each group of folds by validation log loss.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from stream_engine.alignment import answers as tested_answers
from stream_engine.alignment import transforms
from stream_engine.alignment.answers import Accuracy, Units
from stream_engine.alignment.feature_sets import MEASURES, METRIC, FeatureSet, Points
from stream_engine.alignment.feature_sets import RESERVED as ALL
from stream_engine.data.answers import Answers
from stream_engine.evaluation import cross_fit, held_out
from stream_engine.evaluation.cross_fit import CLEAR_ERRORS, FOLDS
from stream_engine.evaluation.responses import CHOOSE, FIT, Responses, asked_fairly, draws_again
from stream_engine.evaluation.similarities import differences

RIDGES = (10.0, 1.0, 0.1, 0.01, 0.001)  # in units of what all answers tell about a parameter, on average
MAX_FITTED_ANSWERS, MAX_CHOOSING_ANSWERS = 300_000, 100_000  # answers that one fit has, and that choose, at most
TIE_TOLERANCE = 1e-9  # of the largest similarity: below it, two are equal
THREADS = 2
AS_IS, WEIGHTS, LINEAR = "as it is", "weights", "linear map"
Progress = Callable[..., Any]


class Setting(NamedTuple):
    """What is chosen for a set: the measure, and ridges of weights and of the map in units of `RIDGES`."""

    measure: str
    weights: float
    linear: float


class Prediction(NamedTuple):
    """Log odds of the answers that a model was tested on, which are `at` of all; `folds` that were fitted."""

    at: np.ndarray
    margin: np.ndarray
    folds: int

    @property
    def right(self) -> np.ndarray:
        """1, 0, or one half for a tie."""
        return 0.5 + 0.5 * np.sign(self.margin)


Predictions = dict[tuple[str, str], Prediction]


class Models:
    """Everything that is fitted to answers (m, 4) about the objects of the sets."""

    def __init__(self, sets: Sequence[FeatureSet], responses: Responses, linear: bool):
        self.sets, self.every, self.linear = sets, responses.answers, linear
        self.rows, self.times = self.every.rows, self.every.times
        self._draw = draws_again(responses._replace(draw=draws_again(responses)))[self.every.response]
        with ThreadPoolExecutor(THREADS, "features") as pool:
            by_set = pool.map(self._right, sets)
            self.right = {(of.name, measure): right for of, row in zip(sets, by_set) for measure, right in row.items()}
        self._sample = self.answers(np.ones(len(self.rows), bool), transforms.SCALE_ANSWERS)
        self._points: dict[tuple[str, str], Points] = {}
        self._axes: dict[tuple[str, str], np.ndarray] = {}

    def _right(self, of: FeatureSet) -> dict[str, np.ndarray]:
        """(m,) int8 by measure: 2 where a set is right as it is, 1 for a tie."""
        right, tie = {}, TIE_TOLERANCE if of.values.dtype == np.float64 else 1e3 * TIE_TOLERANCE
        for measure in MEASURES:
            similarity = of.similarity(measure)
            margin, equal = differences(similarity, self.rows), tie * np.abs(similarity).max()
            right[measure] = (margin >= -equal).astype(np.int8) + (margin > equal)
        return right

    def points(self, of: FeatureSet, measure: str) -> Points:
        """The points of a set by a measure."""
        if (of.name, measure) not in self._points:
            self._points[of.name, measure] = of.points(measure)
        return self._points[of.name, measure]

    def axes(self, of: FeatureSet, measure: str) -> np.ndarray:
        """Their principal axes."""
        if (of.name, measure) not in self._axes:
            self._axes[of.name, measure] = transforms.components(self.points(of, measure).x)
        return self._axes[of.name, measure]

    def best_measure(self, of: FeatureSet, selected: np.ndarray | slice = slice(None)) -> str:
        """The measure that is right most often on some answers."""
        return max(METRIC, key=lambda measure: float(self.times[selected] @ self.right[of.name, measure][selected]))

    def answers(self, selected: np.ndarray, most: int = MAX_FITTED_ANSWERS) -> Answers:
        """Those of a (m,) mask, or a part of them by a hash of the responses."""
        at = np.flatnonzero(selected)
        if len(at) > most:
            at = at[self._draw[at] < most / len(at)]
        return self.every.of(at)

    def penalty(self, of: FeatureSet, measure: str, linear: bool) -> float:
        """The ridge of 1 in units of `RIDGES`: a constant of the data, for fits to more and to fewer of the answers."""
        x = self.points(of, measure).x
        curvature = transforms.information(x @ self.axes(of, measure) if linear else x, self._sample, linear)
        return float(self.times.sum()) * float(curvature.mean())

    def choose(self, training: np.ndarray, validation: np.ndarray) -> list[Setting]:
        """The settings of all sets."""
        with ThreadPoolExecutor(THREADS, "features") as pool:
            return list(pool.map(partial(self._setting, training, validation), self.sets))

    def _setting(self, training: np.ndarray, validation: np.ndarray, of: FeatureSet) -> Setting:
        measure = self.best_measure(of, training) if training.any() else METRIC[0]
        fitting, choosing = self.answers(training), self.answers(validation, MAX_CHOOSING_ANSWERS)
        if not (len(fitting.rows) and len(choosing.rows)):
            return Setting(measure, RIDGES[0], RIDGES[0])
        x, chosen = self.points(of, measure).x, []
        z = x @ self.axes(of, measure) if self.linear else x
        for linear, path in ((False, transforms.weights), (True, transforms.linear_maps))[: 1 + self.linear]:
            unit, best, ridge = self.penalty(of, measure, linear), np.inf, RIDGES[0]
            fits = path(z if linear else x, fitting, [unit * ridge for ridge in RIDGES], gain=transforms.ROUGH_GAIN)
            for factor, theta in zip(RIDGES, fits):
                moved = z @ theta.astype(z.dtype) if linear else x * np.sqrt(theta).astype(x.dtype)
                loss = float(choosing.times @ np.logaddexp(0.0, -transforms.margins(moved, choosing.rows)))
                if loss >= best:
                    break
                best, ridge = loss, factor
            chosen.append(ridge)
        return Setting(measure, chosen[0], chosen[-1])

    def transformed(self, kind: str, of: FeatureSet, setting: Setting, training: Answers) -> np.ndarray:
        """What multiplies the points of a set: a factor (d,), or a matrix (d, p) of a map."""
        x = self.points(of, setting.measure).x
        if kind == AS_IS:
            return np.full(x.shape[1], np.sqrt(transforms.slope(x, training)))
        unit = self.penalty(of, setting.measure, kind == LINEAR)
        if kind == WEIGHTS:
            return np.sqrt(next(transforms.weights(x, training, [unit * setting.weights])))
        axes = self.axes(of, setting.measure)
        return axes @ next(transforms.linear_maps(x @ axes, training, [unit * setting.linear]))

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is made of each set."""
        return (AS_IS, WEIGHTS, LINEAR) if self.linear else (AS_IS, WEIGHTS)

    def fit(
        self, training: np.ndarray, settings: list[Setting], tested: np.ndarray
    ) -> dict[tuple[str, str], np.ndarray]:
        """The log odds of the answers of a (m,) mask by everything that is fitted to those of another."""
        fitting, rows = self.answers(training), self.rows[tested]

        def of_set(pair: tuple[FeatureSet, Setting]) -> dict[tuple[str, str], np.ndarray]:
            of, setting = pair
            x = self.points(of, setting.measure).x
            fits = ((kind, self.transformed(kind, of, setting, fitting)) for kind in self.kinds)
            return {(of.name, kind): transforms.margins(moved(x, by), rows) for kind, by in fits}

        with ThreadPoolExecutor(THREADS, "features") as pool:
            margins = dict(item for of_set in pool.map(of_set, zip(self.sets, settings)) for item in of_set.items())
        return margins | self._combined(settings, fitting, rows)

    def _combined(self, settings: list[Setting], fitting: Answers, rows: np.ndarray) -> dict:
        """All sets together, and without each of them."""
        if len(self.sets) < 2:
            return {}
        pairs = list(zip(self.sets, settings))
        learned, asked = (
            np.stack([-transforms.margins(self.points(of, choice.measure).x, part) for of, choice in pairs], axis=1)
            for part in (fitting.rows, rows)
        )
        margins = {(ALL, "combination"): -asked @ transforms.combination(learned, fitting)}
        for number, (of, _) in enumerate(pairs):
            others = np.arange(len(pairs)) != number
            margins[ALL, f"without {of.name}"] = -asked[:, others] @ transforms.combination(learned[:, others], fitting)
        return margins

    def mixture(self, settings: list[Setting]) -> np.ndarray:
        """(A,) the shares of the sets in their combination, fitted to all answers."""
        every = self.answers(np.ones(len(self.rows), bool))
        pairs = zip(self.sets, settings)
        columns = [-transforms.margins(self.points(of, choice.measure).x, every.rows) for of, choice in pairs]
        mu = transforms.combination(np.stack(columns, axis=1), every)
        return mu / max(float(mu.sum()), 1e-300)


def moved(x: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Points times a factor for each dimension, or a matrix."""
    return x * by.astype(x.dtype) if by.ndim == 1 else x @ by.astype(x.dtype)


class Evaluated:
    """All predictions, and their figures."""

    def __init__(self, models: Models, responses: Responses, names: list[str], seed: int, progress: Progress):
        self.models, self.responses, self.answers, self.n = models, responses, responses.answers, len(names)
        planned, rows, response = cross_fit.plan(responses).responses, self.answers.rows, self.answers.response
        most = max(1, cross_fit.MAX_FITTED_COMPARISONS // max(len(rows), 1))
        folds = tested_answers.object_folds_of(names, rows, seed, most)
        total = len(planned) + len(folds) + 1
        tested_margins: list[tuple[np.ndarray, dict]] = []
        for number, group in enumerate(planned):
            part = group.part[response]
            settings = models.choose(part == FIT, part == CHOOSE)
            for out in group.folds:
                if (tested := out[response]).any() and not tested.all():
                    tested_margins.append((tested, models.fit(~tested, settings, tested)))
            progress(number + 1, total)
        self.by_response = _together(tested_margins)
        tested_margins, chosen = [], None
        for number, fold in enumerate(folds):
            settings = models.choose(fold.training, fold.validation)
            chosen = chosen or settings
            if fold.tested.any() and fold.outside.any():
                tested_margins.append((fold.tested, models.fit(fold.outside, settings, fold.tested)))
            progress(len(planned) + number + 1, total)
        self.by_object = _together(tested_margins)
        first = planned[0].part[response]
        chosen = chosen or models.choose(first == FIT, first == CHOOSE)
        self.settings = [choice._replace(measure=models.best_measure(of)) for of, choice in zip(models.sets, chosen)]

    @cached_property
    def units(self) -> Units:
        """Of all answers."""
        return tested_answers.units_of(self.answers)

    @cached_property
    def fair(self) -> np.ndarray:
        """(m,) bool: answers to questions that no model chose, as far as is known."""
        return asked_fairly(self.responses)[self.answers.response]

    @cached_property
    def fair_units(self) -> Units:
        """Of these."""
        return self.units if self.fair.all() else self.units.of(self.fair)

    def as_is(self, name: str, measure: str) -> Accuracy:
        """On all answers to questions that no model chose."""
        return self.fair_units.accuracy(0.5 * self.models.right[name, measure][self.fair])

    @cached_property
    def best(self) -> np.ndarray:
        """(m,) of the set and the measure that are right most often."""
        return max(self.models.right.values(), key=lambda hits: float(self.answers.times[self.fair] @ hits[self.fair]))

    def behind(self, name: str, measure: str) -> Accuracy:
        """How much less accurate than the best one, paired."""
        apart = self.best - self.models.right[name, measure]
        return self.fair_units.accuracy(0.5 * apart[self.fair])

    def response_figures(self, prediction: Prediction) -> tuple[Accuracy, float]:
        """Accuracy and log loss; the interval is that of dependent folds unless the model is clearly not at chance
        (see `cross_fit`)."""
        units = self._units_at(prediction)
        accuracy = units.accuracy(prediction.right)
        loss = float(units.times @ held_out.losses(prediction.margin, 1.0) / units.times.sum())
        corrected = accuracy.widened(float(np.sqrt(1.0 + prediction.folds / (FOLDS - 1.0))))
        clear = abs(accuracy.accuracy - 0.5) > CLEAR_ERRORS * (corrected.standard_error or 0.0)
        return (accuracy if clear else corrected), loss

    def _units_at(self, prediction: Prediction) -> Units:
        key = prediction.at.tobytes()
        if getattr(self, "_units", (None, None))[0] != key:
            self._units = key, self.units.of(prediction.at)
        return self._units[1]

    def object_figures(self, key: tuple[str, str]) -> dict[str, Any] | None:
        """Of objects that were never learned from."""
        prediction = self.by_object.get(key)
        if prediction is None:
            return None
        rows, times = self.answers.rows[prediction.at], self.answers.times[prediction.at]
        figures = tested_answers.over_objects(prediction.right, rows, times, self.n)
        return figures._asdict() | {"log_loss": float(times @ held_out.losses(prediction.margin, 1.0) / times.sum())}

    def adds(self, name: str) -> Accuracy | None:
        """What a set adds to the others: the gain in accuracy of their combination, paired."""
        whole, less = (self.by_response.get((ALL, which)) for which in ("combination", f"without {name}"))
        if whole is None or less is None:
            return None
        return self._units_at(whole).accuracy(whole.right - less.right)


def _together(tested_margins: list[tuple[np.ndarray, dict]]) -> Predictions:
    """The predictions of all folds."""
    if not tested_margins:
        return {}
    at = np.concatenate([np.flatnonzero(tested) for tested, _ in tested_margins])
    return {
        key: Prediction(at, np.concatenate([margins[key] for _, margins in tested_margins]), len(tested_margins))
        for key in tested_margins[0][1]
    }
