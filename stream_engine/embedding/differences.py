"""Who sees the objects differently, and which model predicts each participant best.

1. *Score tests* at the fitted map (`score_test`) say whether anybody may differ. If nobody does, everybody has the
   group's map, and nothing else is fitted.
2. Every participant's answers are dealt to five folds by response (`participant_folds`). If the axes' weights may
   differ, weights are fitted too, and used if they predict the held-out responses of all participants better than the
   group's map (`weight_selection`; paired z-test, 1 %).
3. Whoever may differ, and gave at least as many answers as they saw objects, gets a map of their own, which is stacked
   with the group's model (`own_map_selection`).
4. The gain of a participant over the group's map is measured fold by fold, with coefficients of the other folds.
   Participants are named for whom both are significant, the gain (one-sided z-test over responses) and the score test
   (5 %, Holm's correction of the larger p-value).
"""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding import weight_selection
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.fit import Embedding, Setting
from stream_engine.embedding.individual import Individual, Weights, fit_with
from stream_engine.embedding.own_map_selection import own_map_odds
from stream_engine.embedding.own_maps import OwnMaps, selected_maps
from stream_engine.embedding.participant_folds import ParticipantFolds, Progress, mean_gain
from stream_engine.embedding.questions import Questions
from stream_engine.embedding.score_test import score_tests
from stream_engine.embedding.stacking import losses
from stream_engine.embedding.weight_selection import select_weights
from stream_engine.evaluation.answer_probabilities import probabilities
from stream_engine.evaluation.response_checks import holm

LEVEL = 0.05
# The level of a participant's score test for a map of their own, by which so many pass by chance; at most one half.
CHANCE_PASSES, MAX_SCREEN_LEVEL = 2, 0.5
N_OBJECTS = 3  # that are named for each participant who differs
MAX_COORDINATES = 4_000_000  # of all participants' copies of the objects, above which nothing is fitted: 32 MB
DIFFER, ALIKE = "participants differ", "no individual differences found"


class Differences(NamedTuple):
    """What was tested and selected. Gains are in nats an answer; rows of arrays are participants."""

    verdict: str  # `DIFFER`, `ALIKE`, or why there was no test
    n_participants: int = 0  # with enough answers for a map or weights of their own
    p_value: float | None = None  # that everybody sees one map (score test, all participants together)
    weights: Weights | None = None
    gain_of_weights: float | None = None
    p_of_weights: float | None = None
    stack: np.ndarray | None = None  # (w, 2) coefficients of the group's and of the own log odds
    map_setting: np.ndarray | None = None  # (w,) of the own map, of `SETTINGS`; -1 where there is none
    gain: np.ndarray | None = None  # (w,) over the group's map, NaN where not measured
    standard_error: np.ndarray | None = None
    p_values: np.ndarray | None = None  # (w,) corrected
    objects: tuple[list[int], ...] = ()  # of those who differ, the objects whose answers gain most
    axes: np.ndarray | None = None  # (n, k) on which fits with weights begin

    @property
    def differing_participants(self) -> np.ndarray:
        """Rows of the participants who differ significantly."""
        return np.flatnonzero(self.p_values < LEVEL) if self.p_values is not None else np.zeros(0, np.int64)

    @property
    def map_owners(self) -> np.ndarray:
        """Rows of the participants with maps of their own."""
        return np.flatnonzero(self.map_setting >= 0) if self.map_setting is not None else np.zeros(0, np.int64)


class ParticipantModel(NamedTuple):
    """The group's map and what participants have beside it; rows of lapses and weights as in `Questions`."""

    group_map: Embedding
    individual: Individual | None  # with weights of participants
    own_maps: OwnMaps | None  # blocks are participants
    differences: Differences

    @property
    def embedding(self) -> Embedding:
        """The map that is shown: the group's, or that of the group's weights."""
        return self.group_map if self.individual is None else self.individual.embedding

    @property
    def map_share(self) -> float:
        """The share of the group's map beside weights in probabilities for an unknown participant."""
        weights = self.differences.weights
        return weights.map_share if self.individual is not None and weights is not None else 0.0

    def probabilities(self, rows: np.ndarray, calibration: Calibration, of_group_map: Calibration) -> np.ndarray:
        """(m,) P(d(i, j) < d(k, l)) of an unknown participant, with the calibration of the map that is shown and that
        of the group's map."""
        shown, group_map = (
            probabilities(each.points, rows, of.lapse, each.alpha, scale=of.scale)
            for each, of in ((self.embedding, calibration), (self.group_map, of_group_map))
        )
        return shown + self.map_share * (group_map - shown)


def differences(
    answers: Answers,
    group_map: Embedding,
    setting: Setting,
    given_d: bool = False,
    fixed_lapse: bool = False,
    always: bool = False,
    only_weights: bool = False,
    progress: Progress = lambda done, total, **figures: None,
) -> Differences:
    """Test and select; `group_map` was fitted to the answers. `always`: weights whatever the tests say; `only_weights`:
    no maps of single participants."""
    n_answers = np.bincount(answers.participant + 1, minlength=1 + len(answers.participants))[1:]
    n_participants = int((n_answers > 0).sum())
    if n_participants < 2:
        return Differences("fewer than two participants with enough answers", n_participants)
    n_seen, n_copies = _objects_seen(answers)
    if n_copies * setting.d > MAX_COORDINATES:
        return Differences(f"more than {MAX_COORDINATES:,} coordinates of participants", n_participants)
    map_test, axes_test = score_tests(group_map, answers)
    p_value = min(1.0, 2 * min(map_test.pooled, axes_test.pooled))
    smaller_p = np.where(n_answers > 0, np.minimum(map_test.p_value, axes_test.p_value), np.nan)
    candidates = np.flatnonzero(smaller_p < min(CHANCE_PASSES / n_participants, MAX_SCREEN_LEVEL))
    candidates = candidates[n_answers[candidates] >= n_seen[candidates]]
    likely = p_value < LEVEL or bool(np.nanmin(holm(2 * smaller_p)) < LEVEL)
    result = alike = Differences(ALIKE, n_participants, p_value)
    if not likely and not len(candidates) and not always:
        return alike
    folds = ParticipantFolds(answers, group_map, setting, fixed_lapse, only_weights, progress)
    base = folds.log_odds
    test = select_weights(folds, given_d, always) if likely or always else None
    if test is not None:
        result = alike._replace(gain_of_weights=test.gain, p_of_weights=test.p_value)
        result, base = result._replace(weights=test.weights, axes=test.axes), test.log_odds
    if len(candidates) and not only_weights:
        own_maps = own_map_odds(folds, candidates)
        stack, map_setting = own_maps.select(base, len(answers.participants))
        result = result._replace(stack=stack, map_setting=map_setting)
        result = _with_gains(result, folds, own_maps.cross_fit(base), 2 * smaller_p)
    if len(result.differing_participants) or (test is not None and test.p_value < weight_selection.LEVEL):
        return result._replace(verdict=DIFFER)
    return result if result.weights or len(result.map_owners) else alike


def _objects_seen(answers: Answers) -> tuple[np.ndarray, int]:
    """(w,) how many objects each participant answered about, and the sum, with those of answers without participant."""
    pairs = np.unique(answers.participant.astype(np.int64)[:, None] * answers.n_objects + answers.rows)
    participant = pairs // answers.n_objects
    return np.bincount(participant[participant >= 0], minlength=len(answers.participants)), len(pairs)


def _with_gains(result: Differences, folds: ParticipantFolds, log_odds: np.ndarray, p_score: np.ndarray) -> Differences:
    """With the gain of each participant over the group's map, its test, and the objects that gain most; `p_score` (w,)
    of the score tests."""
    targets, n_participants = folds.targets, len(folds.answers.participants)
    participant = np.zeros(int(folds.unit.max(initial=-1)) + 1, np.int64)  # of each unit
    participant[folds.unit] = targets.participant
    gain, n_answers = folds.gain_of_units(folds.log_odds, log_odds)
    table = np.full((n_participants, 3), np.nan)
    order = np.argsort(participant, kind="stable")
    rows, first = np.unique(participant[order], return_index=True)
    for row, units in zip(rows, np.split(order, first[1:])):
        table[row] = mean_gain(gain[units], n_answers[units])
    p = np.nan_to_num(holm(np.maximum(table[:, 2], p_score)), nan=1.0)
    result = result._replace(gain=table[:, 0], standard_error=table[:, 1], p_values=p)
    answer_gain = targets.times * (losses(folds.log_odds) - losses(log_odds))
    return result._replace(
        objects=tuple(_objects_that_gain(targets, answer_gain, row) for row in result.differing_participants)
    )


def _objects_that_gain(answers: Answers, gain: np.ndarray, participant: int) -> list[int]:
    """The objects with the largest sums of `gain` (m,) over a participant's answers about them."""
    at, total = np.flatnonzero(answers.participant == participant), np.zeros(answers.n_objects)
    for column in range(4):
        first = (answers.rows[at, :column] != answers.rows[at, column, None]).all(axis=1)
        total += np.bincount(answers.rows[at[first], column], gain[at[first]], answers.n_objects)
    return np.argsort(-total, kind="stable")[:N_OBJECTS].tolist()


def fit_parts(
    selection: Differences, answers: Answers, questions: Questions, group_map: Embedding, **limits: Any
) -> ParticipantModel:
    """The parts that were selected, fitted to these answers, of which the questions are."""
    individual = None
    if selection.weights is not None:
        individual = fit_with(questions, group_map, selection.weights, selection.axes, **limits)
    maps, setting = None, selection.map_setting
    if setting is not None and len(selection.map_owners):
        named = answers.of(answers.participant >= 0)
        maps = selected_maps(named.rows, named.times, named.participant, setting, named.n_objects)
    return ParticipantModel(group_map, individual, maps, selection)


def combined_log_odds(base: np.ndarray, own: np.ndarray, stack: np.ndarray) -> np.ndarray:
    """(m,) log odds by those of the group's model and of the own map, NaN where it does not know an object, with each
    answer's coefficients (m, 2)."""
    return np.where(np.isnan(own), base, stack[:, 0] * base + stack[:, 1] * np.nan_to_num(own))
