"""Who sees the objects differently, and which model predicts each participant best.

1. *Score tests* at the fitted map (`score_test`) say whether anybody may differ. If nobody does, everybody has the
   group's map, and nothing else is fitted.
2. Every participant's answers are dealt to five folds by response. For each fold, the group's map is fitted to all
   other answers; if the axes' weights may differ, also with weights (`individual`), in as many dimensions and with the
   shrinkage that predict held-out answers best with weights: an axis that only a few use is noise in the map of all.
   Weights are used if they predict the held-out responses of all participants better (paired z-test, 1 %).
3. Whoever may differ, and gave at least as many answers as they saw objects, gets a map of their own of their other
   answers (`own_maps`) for each fold, averaged over draws where answers are few, or else with the ridge and the number
   of dimensions that predict their held-out answers well, and the two log odds are stacked (`stacking`): (1, 0) is the
   group's map, (0, 1) their own.
4. The gain of a participant over the group's map is measured fold by fold, with coefficients of the other folds.
   Participants are named for whom both are significant, the gain (one-sided z-test over responses) and the score test
   (5 %, Holm's correction of the larger p-value).

Two groups who see things differently look like one that sees and one that guesses: one map with lapse rates of their
own can fit the larger group only. So where a lapse rate is above `HIGH`, weights are also begun at
`individual.pooled_map`, if that predicts better.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import WORTH, calibrate
from stream_engine.embedding.fit import LOOSE, ROUGH, Embedding, Setting, fit
from stream_engine.embedding.held_out import known_lapses, population_lapse
from stream_engine.embedding.individual import (
    SHRINKAGES,
    Individual,
    Weights,
    begun,
    fit_weights,
    fit_with,
    weighted_margins,
)
from stream_engine.embedding.own_maps import AVERAGED, DIMENSIONS, SETTINGS, OwnMaps, own_maps, selected_maps
from stream_engine.embedding.questions import Questions, of_answers
from stream_engine.embedding.score_test import score_tests
from stream_engine.embedding.stacking import GROUP, losses, stacked
from stream_engine.evaluation.answer_probabilities import log_odds, margins, probability
from stream_engine.evaluation.response_checks import holm

FOLDS = 5
SCREEN = 0.1, 0.5  # levels of a participant's score test, between which no map of their own is fitted any more:
CHANCE = 2  # 0.1 with many participants, and where so many would pass by chance, up to 0.5
LEVEL, LEVEL_OF_WEIGHTS = 0.05, 0.01
AVERAGED_ANSWERS = 1_000  # of the participants with the fewest, whose maps are averaged over draws: 3 CPU s at most
ENOUGH = 100  # held-out answers of a participant by which the setting of their map is selected
NEGLIGIBLE = 0.05  # difference of coefficients from the group's: at most .0006 nats an answer, whatever its odds
MIDDLE = SHRINKAGES[len(SHRINKAGES) // 2]  # that is tried first
CHOOSING = 5_000  # held-out answers that select weights: neighbouring settings then differ by .01 ± .002 nats
TESTING = 4 * CHOOSING  # that test them, where nothing else is predicted: half that error
SIZES = (2, 3, 4, 5, 8, 12, 18, 27)  # numbers of dimensions
OBJECTS = 3  # that are named for each participant who differs
HIGH = 0.3  # a lapse rate that may be that of somebody who sees things differently,
FEW = 3  # dimensions: more have room for what either group sees
LARGEST = 4_000_000  # coordinates of all participants' copies of the objects, above which nothing is fitted: 32 MB
DIFFER, ALIKE = "participants differ", "no individual differences found"
Progress = Callable[..., bool | None]


class Differences(NamedTuple):
    """What was tested and selected. Gains are in nats an answer; rows of arrays are participants."""

    verdict: str  # `DIFFER`, `ALIKE`, or why there was no test
    participants: int = 0  # with enough answers for a map or weights of their own
    p_value: float | None = None  # that everybody sees one map (score test, all participants together)
    weights: Weights | None = None
    gain_of_weights: float | None = None
    p_of_weights: float | None = None
    stack: np.ndarray | None = None  # (w, 2) coefficients of the base's and of the own log odds
    setting: np.ndarray | None = None  # (w,) of the own map, of `SETTINGS`; -1 where there is none
    gain: np.ndarray | None = None  # (w,) over the group's map, NaN where not measured
    standard_error: np.ndarray | None = None
    p_values: np.ndarray | None = None  # (w,) corrected
    objects: tuple[list[int], ...] = ()  # of those who differ, the objects whose answers gain most

    @property
    def who(self) -> np.ndarray:
        """Rows of the participants who differ significantly."""
        return np.flatnonzero(self.p_values < LEVEL) if self.p_values is not None else np.zeros(0, np.int64)

    @property
    def own(self) -> np.ndarray:
        """Rows of the participants with maps of their own."""
        return np.flatnonzero(self.setting >= 0) if self.setting is not None else np.zeros(0, np.int64)


class Fitted(NamedTuple):
    """The parts of a model of participants beside one map; rows of lapses and weights as in `Questions`."""

    one: Embedding
    own: Individual | None
    maps: OwnMaps | None  # blocks are participants
    differences: Differences

    @property
    def embedding(self) -> Embedding:
        """The group's map."""
        return self.one if self.own is None else self.own.embedding


def differences(
    answers: Answers,
    one: Embedding,
    setting: Setting,
    given_d: bool = False,
    fixed_lapse: bool = False,
    always: bool = False,
    only_weights: bool = False,
    progress: Progress = lambda done, total, **figures: None,
) -> Differences:
    """Test and select; `one` was fitted to the answers. `always`: weights whatever the tests say; `only_weights`: no
    maps of single participants."""
    count = np.bincount(answers.participant + 1, minlength=1 + len(answers.participants))[1:]
    people = int((count > 0).sum())
    if people < 2:
        return Differences("fewer than two participants with enough answers", people)
    seen = (
        np.unique(answers.participant.astype(np.int64)[:, None] * answers.n_objects + answers.rows) // answers.n_objects
    )
    if len(seen) * setting.d > LARGEST:
        return Differences(f"more than {LARGEST:,} coordinates of participants", people)
    answers = _of_one_each(answers)
    of_map, of_axes = score_tests(one, answers)
    p_value = min(1.0, 2 * min(of_map.pooled, of_axes.pooled))
    smallest = np.where(count > 0, np.minimum(of_map.p_value, of_axes.p_value), np.nan)
    screened = np.flatnonzero(smallest < np.clip(CHANCE / people, *SCREEN))
    screened = screened[count[screened] >= np.bincount(seen[seen >= 0], minlength=len(count))[screened]]
    likely = p_value < LEVEL or bool(np.nanmin(holm(2 * smallest)) < LEVEL)
    if not likely and not len(screened) and not always:
        return Differences(ALIKE, people, p_value)
    tested = _Folds(answers, one, setting, given_d, fixed_lapse, always, only_weights, progress)
    found = Differences(ALIKE, people, p_value)
    if likely or always:
        found = tested.weights(found)
    if len(screened) and not only_weights:
        found = tested.stack(found, screened, 2 * smallest)
    significant = found.p_of_weights is not None and found.p_of_weights < LEVEL_OF_WEIGHTS
    if len(found.who) or significant:
        return found._replace(verdict=DIFFER)
    return found if found.weights or len(found.own) else Differences(ALIKE, people, p_value)


def _of_one_each(answers: Answers) -> Answers:
    """The same answers; where units are questions, which several participants may have answered, those of each are a
    unit by themselves."""
    pair = answers.response * (1 + len(answers.participants)) + answers.participant + 1
    return answers._replace(response=np.unique(pair, return_inverse=True)[1].reshape(-1))


def fitted(made: Differences, answers: Answers, one: Embedding, **limits: Any) -> Fitted:
    """The parts that were selected, fitted to these answers."""
    own = None if made.weights is None else fit_with(of_answers(answers), one, made.weights, **limits)
    maps = None
    if made.setting is not None and len(made.own):
        kept = answers.of(answers.participant >= 0)
        maps = selected_maps(kept.rows, kept.times, kept.participant, made.setting, kept.n_objects)
    return Fitted(one, own, maps, made)


def combined(base: np.ndarray, own: np.ndarray, stack: np.ndarray) -> np.ndarray:
    """(m,) log odds by those of the group's map and of the own one, NaN where it does not know an object, with each
    answer's coefficients (m, 2)."""
    return np.where(np.isnan(own), base, stack[:, 0] * base + stack[:, 1] * np.nan_to_num(own))


class _Folds:
    """Predictions of every participant's answers by fits that did not have them."""

    def __init__(
        self,
        answers: Answers,
        one: Embedding,
        setting: Setting,
        given_d: bool,
        fixed: bool,
        always: bool,
        only_weights: bool,
        progress: Progress,
    ):
        self.answers, self.one, self.setting = answers, one, setting
        self.given_d, self.always, self.progress = given_d, always, progress
        self.more: dict[str, Any] = {"fixed_lapse": fixed}
        self.known = np.flatnonzero(answers.participant >= 0)
        self.held = answers.of(answers.participant >= 0)
        self.unit = np.unique(self.held.response, return_inverse=True)[1].reshape(-1)
        self.fold = self.unit_folds()[self.unit]
        self.choosing, self.folds = (_folds_with(each, self.held.times) for each in (CHOOSING, TESTING))
        if only_weights:
            kept = self.fold < self.folds
            self.known, self.held, self.fold = self.known[kept], self.held.of(kept), self.fold[kept]
            self.unit = np.unique(self.held.response, return_inverse=True)[1].reshape(-1)
        else:
            self.folds = FOLDS
        self.delta, self.lapse = np.empty(len(self.known)), np.empty(len(self.known))
        self.maps = [self._one_map(fold) for fold in range(self.folds)]
        self.tried: dict[Weights, _Weighted] = {}
        self.begins: dict[tuple[int, int, bool], tuple[Questions, Embedding]] = {}
        self.fitted: dict[tuple[int, int, bool], Individual] = {}  # the last fit of a fold, with any shrinkage
        scale = _scale(self.delta, self.lapse, self.held.times)
        self.base = self.of_group = _odds(scale * self.delta, self.lapse)

    def unit_folds(self) -> np.ndarray:
        """(u,) fold of each unit, the units of a participant dealt in their order."""
        who = np.zeros(int(self.unit.max(initial=-1)) + 1, np.int64)
        who[self.unit] = self.held.participant
        order = np.argsort(who, kind="stable")
        fold = np.empty(len(who), np.int64)
        fold[order] = (np.arange(len(who)) - np.searchsorted(who[order], who[order])) % FOLDS
        return fold

    def outside(self, fold: int) -> Answers:
        """The answers of all other folds, and of nobody in particular."""
        kept = np.ones(len(self.answers.rows), bool)
        kept[self.known[self.fold == fold]] = False
        return self.answers.of(kept)

    def _one_map(self, fold: int) -> Embedding:
        kernel, d, ridge = self.setting
        questions = of_answers(self.outside(fold))
        more: dict[str, Any] = {"start": self.one.points, "lapse": self.one.lapse, "tolerance": LOOSE / 10} | self.more
        made = fit(questions, d, ridge, kernel=kernel, **more)
        out = self.fold == fold
        self.delta[out] = margins(made.points, self.held.rows[out], made.alpha)
        self.lapse[out] = known_lapses(made.lapse, questions)[self.held.participant[out] + 1]
        self.progress(fold + 1, self.folds)
        return made

    def weights(self, found: Differences) -> Differences:
        """Select the number of dimensions and the shrinkage, and test weights on all folds."""
        first = self.setting.d if self.given_d else max(self.setting.d, 2)
        if not 1 < first < max(self.answers.n_objects, 3):
            return found
        best = self._tried(Weights(MIDDLE, d=first))
        if self.one.lapse.max() > HIGH and first <= FEW:
            best = min(best, self._tried(best.used._replace(pooled=True)), key=lambda each: each.loss)
        best = self._better(best, "shrinkage", SHRINKAGES)
        if not self.given_d:
            best = self._better(best, "d", [d for d in SIZES if d < self.answers.n_objects])
            best = self._better(best, "shrinkage", SHRINKAGES)
        best.predict(self.folds)
        weighted, scale = best.odds()
        gain, _, p = _gain(*self._losses(self.of_group, weighted))
        found = found._replace(gain_of_weights=gain, p_of_weights=p)
        if p >= LEVEL_OF_WEIGHTS and not self.always:
            return found
        self.base = weighted
        unknown = calibrate(best.anybody, self.held.times, float(np.mean(best.unknown)))
        return found._replace(weights=best.used._replace(scale=scale, calibration=unknown))

    def _tried(self, used: Weights) -> "_Weighted":
        if used not in self.tried:
            self.tried[used] = _Weighted(self, used)
        return self.tried[used]

    def _better(self, best: "_Weighted", name: str, values: Sequence[float]) -> "_Weighted":
        """The best of larger or else smaller values of one part of `Weights`, as long as each predicts better than the
        one before."""
        now = getattr(best.used, name)
        larger = sorted(each for each in values if each > now)
        smaller = sorted((each for each in values if each < now), reverse=True)
        for way in (larger, smaller):
            begin = best
            for each in way:
                changed: dict[str, Any] = {name: each}
                tried = self._tried(best.used._replace(**changed))
                if tried.loss >= best.loss:
                    break
                best = tried
            if best is not begin:
                break
        return best

    def begun(self, fold: int, used: Weights) -> tuple[Questions, Embedding]:
        """The answers of all other folds, and the map of them that a fit with weights begins at."""
        key = fold, used.d, used.pooled
        if key not in self.begins:
            questions = of_answers(self.outside(fold))
            self.begins[key] = questions, begun(questions, self.maps[fold], used, **self.more)
        return self.begins[key]

    def _losses(self, one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(u,) what the second log odds gain in a unit, and how many answers it has."""
        more = self.held.times * (losses(one) - losses(other))
        return np.bincount(self.unit, more), np.bincount(self.unit, self.held.times)

    def stack(self, found: Differences, screened: np.ndarray, p_score: np.ndarray) -> Differences:
        """Maps of single participants, and how they are stacked with the base."""
        held, people = self.held, len(self.answers.participants)
        number = np.full(people, -1)
        number[screened] = np.arange(len(screened))
        mine = np.flatnonzero(number[held.participant] >= 0)
        who, fold = number[held.participant[mine]], self.fold[mine]
        rows, times = held.rows[mine], held.times[mine]
        own, chosen = self._own(rows, times, who, fold, len(screened))
        base = self.base[mine]
        worth = times / _design_effect(base, own, times, self.unit[mine])
        stack = np.tile(GROUP, (people, 1))
        each = stacked(*_each(who, len(screened), base, own, worth))
        differing = np.maximum(np.abs(each[:, 0] - 1), each[:, 1]) >= NEGLIGIBLE  # below 0 is noise
        stack[screened[differing]] = each[differing]
        predicted = np.empty(len(mine))
        for out in range(FOLDS):
            kept, left = fold != out, fold == out
            some = stacked(*_each(who[kept], len(screened), base[kept], own[kept], worth[kept]))[who[left]]
            predicted[left] = some[:, 0] * base[left] + some[:, 1] * own[left]
        setting = np.full(people, -1)
        setting[screened[differing]] = chosen[differing]
        every = self.base.copy()
        every[mine] = predicted
        return self._measured(found._replace(stack=stack, setting=setting), every, p_score)

    def _own(
        self, rows: np.ndarray, times: np.ndarray, who: np.ndarray, fold: np.ndarray, people: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(m,) log odds by a map of the answers of the other folds of who answered, and (p,) its setting: the best on
        as many folds as have `ENOUGH` answers."""
        # one block for each participant and fold, of the answers of the other folds
        at = np.concatenate([np.flatnonzero(fold != out) for out in range(FOLDS)])
        block = np.concatenate([who[fold != out] * FOLDS + out for out in range(FOLDS)])
        count = np.bincount(who, times, people)
        averaged = np.zeros(people, bool)
        fewest = np.argsort(count, kind="stable")
        averaged[fewest[np.cumsum(count[fewest]) <= AVERAGED_ANSWERS]] = True
        folds = np.where(averaged, 0, np.ceil(FOLDS * ENOUGH / np.maximum(count, 1)))
        choosing, blocks, n = fold < folds[who], people * FOLDS, self.held.n_objects
        some = block % FOLDS < folds[block // FOLDS]
        setting = np.full(people, AVERAGED)
        if not averaged.all():
            loss = []
            for d in DIMENSIONS:
                for made in own_maps(rows[at[some]], times[at[some]], block[some], blocks, n, d):
                    odds = np.nan_to_num(made.log_odds(rows[choosing], who[choosing] * FOLDS + fold[choosing]))
                    loss.append(losses(odds))
                self.progress(d, max(DIMENSIONS))
            cautious = _cautious(np.array(loss), times[choosing], who[choosing], people)
            setting = np.where(averaged, AVERAGED, cautious)
        found = selected_maps(rows[at], times[at], block, np.repeat(setting, FOLDS), n)
        own = np.zeros(len(rows)) if found is None else np.nan_to_num(found.log_odds(rows, who * FOLDS + fold))
        return own, setting

    def _measured(self, found: Differences, predicted: np.ndarray, p_score: np.ndarray) -> Differences:
        """The gain of each participant over the group's map, with its test; `p_score` (w,) of the score tests."""
        held, people = self.held, len(self.answers.participants)
        who = np.zeros(int(self.unit.max(initial=-1)) + 1, np.int64)
        who[self.unit] = held.participant
        gain, answers = self._losses(self.of_group, predicted)
        table = np.full((people, 3), np.nan)
        order = np.argsort(who, kind="stable")
        for each, at in zip(*_groups(who[order], order)):
            table[each] = _gain(gain[at], answers[at])
        p = np.nan_to_num(holm(np.maximum(table[:, 2], p_score)), nan=1.0)
        found = found._replace(gain=table[:, 0], standard_error=table[:, 1], p_values=p)
        one = held.times * (losses(self.of_group) - losses(predicted))
        objects = []
        for each in found.who:
            at, total = np.flatnonzero(held.participant == each), np.zeros(held.n_objects)
            for column in range(4):
                first = (held.rows[at, :column] != held.rows[at, column, None]).all(axis=1)
                total += np.bincount(held.rows[at[first], column], one[at[first]], held.n_objects)
            objects.append(np.argsort(-total, kind="stable")[:OBJECTS].tolist())
        return found._replace(objects=tuple(objects))


class _Weighted:
    """Predictions by a fit with weights, of as many folds as have `CHOOSING` answers; `loss` an answer."""

    def __init__(self, folds: _Folds, used: Weights):
        self.folds, self.used = folds, used
        self.delta, self.anybody, self.lapse = (np.empty(len(folds.known)) for _ in range(3))
        self.unknown: list[float] = []  # lapse rates of unknown participants, one a fold
        self.predict(folds.choosing)
        kept = folds.fold < len(self.unknown)
        self.loss = float(folds.held.times[kept] @ losses(self.odds(kept)[0]))

    def predict(self, folds: int) -> None:
        """Predict so many folds, each by a fit to all others."""
        held = self.folds.held
        for fold in range(len(self.unknown), folds):
            questions, begin = self.folds.begun(fold, self.used)
            near = self.folds.fitted.get((fold, self.used.d, self.used.pooled))
            more = {"tolerance": ROUGH} | self.folds.more
            if near is None:
                made = fit_with(questions, begin, self.used._replace(pooled=False), **more)
            else:
                made = fit_weights(questions, near.embedding, self.used.shrinkage, weights=near.weights, **more)
            self.folds.fitted[fold, self.used.d, self.used.pooled] = made
            out = self.folds.fold == fold
            points, alpha, who = made.embedding.points, made.embedding.alpha, held.participant[out] + 1
            self.delta[out] = weighted_margins(points, made.weights, held.rows[out], who, alpha)
            self.anybody[out] = margins(points, held.rows[out], alpha)
            self.lapse[out] = known_lapses(made.embedding.lapse, questions)[who]
            self.unknown.append(population_lapse(made.embedding.lapse, questions))
            self.folds.progress(fold + 1, FOLDS)

    def odds(self, kept: Any = slice(None)) -> tuple[np.ndarray, float]:
        """Log odds of the answers kept, and the scale of the margins that is best for them."""
        delta, lapse = self.delta[kept], self.lapse[kept]
        scale = _scale(delta, lapse, self.folds.held.times[kept])
        return _odds(scale * delta, lapse), scale


def _cautious(loss: np.ndarray, times: np.ndarray, who: np.ndarray, people: int) -> np.ndarray:
    """(p,) of `SETTINGS`, by the loss (s, m) of each in answers of `who`: of those that are within one standard error
    of the participant's best (paired), the one with the largest ridge, and of these with the fewest dimensions: what
    predicts few answers best is often too sure of itself."""
    answers = np.maximum(np.bincount(who, times, people), 1.0)

    def total(of_answers: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(who, times * each, people) for each in of_answers])

    best = (total(loss) / answers).argmin(axis=0)
    more = loss - loss[best[who], np.arange(len(who))]
    mean = total(more) / answers
    error = np.sqrt(np.maximum(total(more**2) / answers - mean**2, 0.0) / answers)
    order = sorted(range(len(SETTINGS)), key=lambda number: (-SETTINGS[number][1], SETTINGS[number][0]))
    return np.array(order)[(mean <= error + 1e-12)[order].argmax(axis=0)]


def _folds_with(answers: float, times: np.ndarray) -> int:
    """How many folds have so many answers, or all."""
    return min(FOLDS, int(np.ceil(FOLDS * answers / max(float(times.sum()), 1.0))))


def _groups(sorted_values: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    values, first = np.unique(sorted_values, return_index=True)
    return values, np.split(order, first[1:])


def _each(who: np.ndarray, people: int, *columns: np.ndarray) -> list[list[np.ndarray]]:
    """Each column as one array a participant."""
    order = np.argsort(who, kind="stable")
    cuts = np.searchsorted(who[order], np.arange(1, people))
    return [np.split(column[order], cuts) for column in columns]


def _odds(delta: np.ndarray, lapse: np.ndarray) -> np.ndarray:
    """(m,) log odds of answers with these margins, by the lapse rate of who gave them."""
    return np.sign(delta) * log_odds(probability(np.abs(delta), lapse))


def _scale(delta: np.ndarray, lapse: np.ndarray, times: np.ndarray) -> float:
    """The scale of the margins with the least loss."""

    def loss(log_scale: float) -> float:
        p = probability(np.exp(log_scale) * delta, lapse)
        return float(-(times @ np.log(np.maximum(p, 1e-300)))) + WORTH / 4 * log_scale**2

    return float(np.exp(minimize_scalar(loss, bounds=(-np.log(10.0), np.log(10.0)), method="bounded").x))


def _gain(gain: np.ndarray, answers: np.ndarray) -> tuple[float, float, float]:
    """The mean gain of an answer, its standard error over units, and the one-sided p-value."""
    total, units = float(answers.sum()), len(gain)
    mean = float(gain.sum()) / total
    error = float(np.sqrt(units / max(units - 1, 1) * ((gain - mean * answers) ** 2).sum())) / total
    return mean, error, float(ndtr(-mean / error)) if error > 0 else 1.0


def _design_effect(base: np.ndarray, own: np.ndarray, times: np.ndarray, unit: np.ndarray) -> float:
    """How much more the slopes of units scatter than answers by themselves would (Kish 1965), at (1, 0)."""
    off = 1 / (1 + np.exp(np.clip(base, -500, 500)))
    number = np.unique(unit, return_inverse=True)[1].reshape(-1)
    alone = together = 0.0
    for slope in (off * base, off * own):
        alone += float(times @ slope**2)
        together += float((np.bincount(number, times * slope) ** 2).sum())
    return max(1.0, together / alone) if alone > 0 else 1.0
