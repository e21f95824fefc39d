"""Selection of the setting of each participant's own map, and of its weight beside the group's model.

A participant's answers of one fold are predicted by a map of those of the other folds (`own_maps`), averaged over draws
where answers are few, or else with the ridge and the number of dimensions that predict their held-out answers well. The
log odds of both models are stacked (`stacking`): (1, 0) is the group's model, (0, 1) their own.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.embedding.own_maps import AVERAGE, SETTINGS, own_maps, selected_maps
from stream_engine.embedding.participant_folds import FOLDS, ParticipantFolds
from stream_engine.embedding.stacking import GROUP, losses, stack_coefficients

AVERAGED_ANSWERS = 4_000  # of the participants with the fewest, whose maps are averaged over draws: .6 CPU s
MAX_AVERAGED = 2_000  # answers of one of them: of more, one fit is sure enough
MIN_SELECTION_ANSWERS = 100  # held-out answers of a participant by which the setting of their map is selected
NEGLIGIBLE = 0.05  # difference of coefficients from the group's: at most .0006 nats an answer, whatever its odds


class OwnMapOdds(NamedTuple):
    """Held-out answers of the n candidates for a map, and how maps of their other answers predict them."""

    position: np.ndarray  # (m,) of each among all held-out answers
    times: np.ndarray  # (m,)
    number: np.ndarray  # (m,) of the participant, from 0 to n - 1
    unit: np.ndarray  # (m,)
    fold: np.ndarray  # (m,)
    own: np.ndarray  # (m,) log odds
    setting: np.ndarray  # (n,) of `SETTINGS`, or `AVERAGE`
    candidates: np.ndarray  # (n,) their rows among all participants

    def select(self, base: np.ndarray, n_participants: int) -> tuple[np.ndarray, np.ndarray]:
        """(w, 2) coefficients of the log odds `base` of all held-out answers and of the own map's, and (w,) the setting
        of the map, -1 where it is not used."""
        of_candidates = self._coefficients(base, np.ones(len(self.position), bool))
        useful = np.maximum(np.abs(of_candidates[:, 0] - 1), of_candidates[:, 1]) >= NEGLIGIBLE  # below 0 is noise
        coefficients, setting = np.tile(GROUP, (n_participants, 1)), np.full(n_participants, -1)
        coefficients[self.candidates[useful]] = of_candidates[useful]
        setting[self.candidates[useful]] = self.setting[useful]
        return coefficients, setting

    def cross_fit(self, base: np.ndarray) -> np.ndarray:
        """(m,) log odds of all held-out answers, with the coefficients of the other folds."""
        log_odds = base.copy()
        for fold in range(FOLDS):
            test = self.fold == fold
            row = self._coefficients(base, ~test)[self.number[test]]
            log_odds[self.position[test]] = row[:, 0] * base[self.position[test]] + row[:, 1] * self.own[test]
        return log_odds

    def _coefficients(self, base: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """(n, 2) by the answers of a (m,) mask."""
        base, own, times = base[self.position[mask]], self.own[mask], self.times[mask]
        weight = times / _design_effect(base, own, times, self.unit[mask])
        return stack_coefficients(base, own, weight, self.number[mask], len(self.candidates))


class _Candidates(NamedTuple):
    """Held-out answers of the participants who may get a map."""

    rows: np.ndarray  # (m, 4)
    times: np.ndarray  # (m,)
    number: np.ndarray  # (m,) of the participant, from 0 to `n` - 1
    fold: np.ndarray  # (m,)
    n: int


def own_map_odds(folds: ParticipantFolds, candidates: np.ndarray) -> OwnMapOdds:
    """Maps of the participants in rows `candidates`, and their predictions."""
    targets, number = folds.targets, np.full(len(folds.answers.participants), -1)
    number[candidates] = np.arange(len(candidates))
    number_of_answer = number[targets.participant]
    at = np.argsort(number_of_answer, kind="stable")[np.count_nonzero(number_of_answer < 0) :]
    answers = _Candidates(
        targets.rows[at], targets.times[at], number[targets.participant[at]], folds.fold[at], len(candidates)
    )
    own, setting = _predict_own(folds, answers)
    return OwnMapOdds(at, answers.times, answers.number, folds.unit[at], answers.fold, own, setting, candidates)


def _predict_own(folds: ParticipantFolds, answers: _Candidates) -> tuple[np.ndarray, np.ndarray]:
    """(m,) log odds by a map of the answers of the other folds of who answered, and (p,) its setting: the best on as
    many folds as have `MIN_SELECTION_ANSWERS` answers."""
    rows, times, number, fold, n = answers
    # one block for each participant and fold, of the answers of the other folds
    at = np.concatenate([np.flatnonzero(fold != each) for each in range(FOLDS)])
    block = np.concatenate([number[fold != each] * FOLDS + each for each in range(FOLDS)])
    n_objects, n_blocks = folds.targets.n_objects, n * FOLDS
    count = np.bincount(number, times, n)
    average = np.zeros(n, bool)
    fewest = np.argsort(count, kind="stable")
    average[fewest[np.cumsum(count[fewest]) <= AVERAGED_ANSWERS]] = True
    average &= count <= MAX_AVERAGED
    log_odds, setting = np.zeros(len(rows)), np.full(n, AVERAGE)
    n_selection_folds = np.where(average, 0, np.ceil(FOLDS * MIN_SELECTION_ANSWERS / np.maximum(count, 1)))
    in_selection = block % FOLDS < n_selection_folds[block // FOLDS]
    selects, target_block = fold < n_selection_folds[number], number * FOLDS + fold
    if selects.any():
        answered = rows[at[in_selection]], times[at[in_selection]], block[in_selection]
        odds = np.stack(
            [
                np.nan_to_num(maps.log_odds(rows[selects], target_block[selects]))
                for maps in own_maps(*answered, n_blocks, n_objects)
            ]
        )
        folds.progress(1, 2)
        setting = np.where(average, AVERAGE, cautious_settings(losses(odds), times[selects], number[selects], n))
        log_odds[selects] = odds[setting[number[selects]], np.arange(odds.shape[1])]
    left = ~in_selection
    maps = selected_maps(rows[at[left]], times[at[left]], block[left], np.repeat(setting, FOLDS), n_objects)
    if maps is not None:
        log_odds[~selects] = np.nan_to_num(maps.log_odds(rows[~selects], target_block[~selects]))
    return log_odds, setting


def cautious_settings(loss: np.ndarray, times: np.ndarray, participant: np.ndarray, n: int) -> np.ndarray:
    """(p,) of `SETTINGS`, by the loss (s, m) of each in answers of `participant`: of those that are within one standard
    error of the participant's best (paired), the one with the largest ridge, and of these with the fewest dimensions:
    what predicts few answers best is often too sure of itself."""
    answers = np.maximum(np.bincount(participant, times, n), 1.0)

    def total(of_answers: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(participant, times * each, n) for each in of_answers])

    best = (total(loss) / answers).argmin(axis=0)
    excess = loss - loss[best[participant], np.arange(len(participant))]
    mean = total(excess) / answers
    error = np.sqrt(np.maximum(total(excess**2) / answers - mean**2, 0.0) / answers)
    order = sorted(range(len(SETTINGS)), key=lambda number: (-SETTINGS[number][1], SETTINGS[number][0]))
    return np.array(order)[(mean <= error + 1e-12)[order].argmax(axis=0)]


def _design_effect(base: np.ndarray, own: np.ndarray, times: np.ndarray, unit: np.ndarray) -> float:
    """How much more the slopes of units scatter than answers by themselves would (Kish 1965), at (1, 0)."""
    p_opposite = 1 / (1 + np.exp(np.clip(base, -500, 500)))
    number = np.unique(unit, return_inverse=True)[1].reshape(-1)
    of_answers = of_units = 0.0
    for slope in (p_opposite * base, p_opposite * own):
        of_answers += float(times @ slope**2)
        of_units += float((np.bincount(number, times * slope) ** 2).sum())
    return max(1.0, of_units / of_answers) if of_answers > 0 else 1.0
