"""Predictions of held-out answers by the models of the refit `embedding`, each fitted to all other answers."""

from typing import Any

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding import picture
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.choice import Choice
from stream_engine.embedding.differences import ParticipantModel, combined_log_odds
from stream_engine.embedding.fit import Embedding, with_setting
from stream_engine.embedding.held_out import known_lapses, population_lapse
from stream_engine.embedding.individual import weighted_margins
from stream_engine.embedding.posterior import Posterior
from stream_engine.embedding.questions import Questions, of_answers
from stream_engine.evaluation.answer_probabilities import log_odds, probabilities, probability
from stream_engine.evaluation.held_out import standard_error
from stream_engine.evaluation.learned import of_draws
from stream_engine.refits.embedding_models import (
    ParticipantModels,
    calibration_of,
    group_calibration,
    posterior_draws,
    without_rare_participants,
)

# Names of the models, as in the report: the map for an unknown participant, the model of the participant who answers,
# one map with the participant's lapse rate, and the picture of the map.
KIND, WITH_PARTICIPANT, ONE_MAP, PICTURE = "embedding", "knowing_worker", "one_map", "picture"
REVERSED = [2, 3, 0, 1]  # columns of the opposite answers
MAX_REVERSED_ANSWERS = 20_000  # above which no map is fitted to reversed answers
# Columns of `worker_predicted`: sums over the answers of a participant, each predicted by a map of others' answers.
PREDICTION_SUMS = ("answers", "right", "log_odds", "expected", "variance", "square")


class FoldPredictor:
    """Predicts held-out answers (`out`) by a model that is fitted to all others."""

    def __init__(self, targets: Answers, models: ParticipantModels, seed: int):
        self.targets, self.models, self.seed = targets, models, seed
        self.settings: list[dict[str, Any]] = []  # one a group of responses, with its lapse and scale
        self._last_choice: Choice | None = None
        # a row a response: how often it was predicted by a map of reversed answers, what that gained in log loss (over
        # its answers), how many of them it predicted, and how many a map of the answers as they are
        self.reversed_sums = np.zeros((int(targets.response.max(initial=-1)) + 1, 4))
        # a row a participant, filled when their answers are predicted by a map of other participants
        self.prediction_sums = np.zeros((len(models.answers.participants), len(PREDICTION_SUMS)))

    def response(self, chosen: Choice, out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds of held-out answers: for an unknown participant, as `predict` gives them; by the model of the
        participant who answers; by one map and this participant's lapse rate; and margins of the map's picture."""
        answers, questions, model = self._fit(chosen, out, only_weights=False)
        if model is None:
            return {}
        targets, calibration = self.targets.of_responses(out), calibration_of(chosen, model, questions)
        if len(answers.rows) <= MAX_REVERSED_ANSWERS:
            self._add_reversed(chosen, answers, questions, model, targets)
        if chosen is not self._last_choice:
            self.settings.append({**chosen.setting._asdict(), **calibration._asdict()})
            self._last_choice = chosen
        draws = posterior_draws(questions, model, chosen, self.seed)
        of_group_map = group_calibration(chosen, model.group_map, questions)
        odds = {KIND: _log_odds(model, calibration, of_group_map, draws, targets.rows)}
        if len(self.models.answers.participants):
            odds |= _log_odds_with_participant(targets, questions, chosen, model, draws)
        if chosen.setting.d > 2:
            flat_map = picture.picture(model.embedding.points, questions, chosen.setting.ridge)
            odds[PICTURE] = picture.margins(flat_map.points, targets.rows)
        return odds

    def participant(self, chosen: Choice, out: np.ndarray) -> dict[str, np.ndarray]:
        """Log odds of the answers of participants none of whose answers were fitted."""
        _, questions, model = self._fit(chosen, out, only_weights=True)
        if model is None:
            return {}
        targets, calibration = self.targets.of_responses(out), calibration_of(chosen, model, questions)
        draws = posterior_draws(questions, model, chosen, self.seed)
        of_group_map = group_calibration(chosen, model.group_map, questions)
        odds = _log_odds(model, calibration, of_group_map, draws, targets.rows)
        self._add_sums(targets, odds)
        return {KIND: odds}

    def _fit(
        self, chosen: Choice, out: np.ndarray, only_weights: bool
    ) -> tuple[Answers, Questions, ParticipantModel | None]:
        """The other answers, also as questions, and the model of them; None where there are none."""
        answers = without_rare_participants(self.models.answers.without(out))
        questions = of_answers(answers)
        if not len(questions.rows):
            return answers, questions, None
        group_map = with_setting(questions, chosen.setting, chosen.starts, **self.models.options.lapse_option)
        return answers, questions, self.models.fit_to_fold(chosen, answers, questions, group_map, only_weights)

    def _add_reversed(
        self, chosen: Choice, answers: Answers, questions: Questions, model: ParticipantModel, targets: Answers
    ) -> None:
        """Add to `reversed_sums` how a map of reversed answers predicts reversed held-out answers, compared with the
        map of the answers as they are. Both without draws and calibration."""
        reversed_questions = of_answers(answers._replace(rows=answers.rows[:, REVERSED]))
        reversed_map = with_setting(reversed_questions, chosen.setting, (), **self.models.options.lapse_option)
        odds = [
            log_odds(probabilities(fit.points, rows, population_lapse(fit.lapse, of), fit.alpha))
            for fit, rows, of in (
                (model.group_map, targets.rows, questions),
                (reversed_map, targets.rows[:, REVERSED], reversed_questions),
            )
        ]
        gain = np.logaddexp(0.0, -odds[0]) - np.logaddexp(0.0, -odds[1])
        columns = gain, *((each > 0) + (each == 0) / 2 for each in odds[::-1])
        for number, column in enumerate(columns, 1):
            np.add.at(self.reversed_sums[:, number], targets.response, targets.times * column)
        self.reversed_sums[np.unique(targets.response), 0] += 1

    def reversed_report(self) -> dict[str, Any] | None:
        """What a map of reversed answers gains: nats an answer, with its standard error over responses, and its
        accuracy on held-out answers beside that of a map of the answers `as_is`; means over the divisions of the
        answers. None where it was not fitted."""
        divisions = self.reversed_sums[:, 0].max(initial=0.0)
        if not divisions:
            return None
        times = np.bincount(self.targets.response, self.targets.times, len(self.reversed_sums))
        times = times * self.reversed_sums[:, 0] / divisions
        gain, right, right_as_is = self.reversed_sums[:, 1:].T / divisions
        total, there = float(times.sum()), times > 0
        mean = float(gain.sum()) / total
        error = standard_error(gain[there] - mean * times[there], total)
        figures, as_is = (
            {"accuracy": float(each.sum()) / total, "held_out_comparisons": round(total)}
            for each in (right, right_as_is)
        )
        return {"gain": mean, "standard_error": error, **figures, "as_is": as_is}

    def _add_sums(self, targets: Answers, odds: np.ndarray) -> None:
        """Add to `prediction_sums` what these log odds say about the answers of each participant."""
        if not len(self.prediction_sums):
            return
        certainty, square = np.abs(odds), odds**2
        expected = certainty * np.tanh(certainty / 2)
        columns = (1.0, (odds > 0) + (odds == 0) / 2, odds, expected, square - expected**2, square)
        named = targets.participant >= 0
        for number, column in enumerate(columns):
            values = (targets.times * column)[named]
            np.add.at(self.prediction_sums[:, number], targets.participant[named], values)


def _log_odds(
    model: ParticipantModel,
    calibration: Calibration,
    of_group_map: Calibration,
    draws: Posterior | None,
    rows: np.ndarray,
) -> np.ndarray:
    """(m,) log odds of answers of an unknown participant."""
    if draws is None:
        return log_odds(model.probabilities(rows, calibration, of_group_map))
    return log_odds(of_draws(draws.points, np.ones(len(model.embedding.points), bool), draws.lapse)(rows))


def _log_odds_with_participant(
    targets: Answers, questions: Questions, chosen: Choice, model: ParticipantModel, draws: Posterior | None
) -> dict[str, np.ndarray]:
    """Log odds of answers by who gave them: by one map, and by their own model where they have one."""
    by_map = _log_odds_by_map(targets, questions, chosen, model.group_map, draws)
    by_model, differences = by_map, model.differences
    if model.individual is not None and differences.weights is not None:
        weighted_map, of_unknown = model.individual.embedding, differences.weights.calibration
        row = targets.participant + 1
        lapse = known_lapses(weighted_map.lapse, questions, of_unknown.lapse if of_unknown else None)[row]
        delta = weighted_margins(weighted_map.points, model.individual.weights, targets.rows, row, weighted_map.alpha)
        by_model = log_odds(probability(differences.weights.scale * delta, lapse))
    if model.own_maps is not None and differences.stack is not None:
        own = model.own_maps.log_odds(targets.rows, targets.participant)
        by_model = combined_log_odds(by_model, own, differences.stack[targets.participant])
    return {ONE_MAP: by_map, WITH_PARTICIPANT: by_model}


def _log_odds_by_map(
    targets: Answers, questions: Questions, chosen: Choice, group_map: Embedding, draws: Posterior | None
) -> np.ndarray:
    """(m,) log odds by one map, or by the mean over its draws, and the lapse rate of the participant who answers."""
    participant = targets.participant
    calibration = group_calibration(chosen, group_map, questions)
    lapse = known_lapses(group_map.lapse, questions, calibration.lapse)
    if draws is None:
        p = probabilities(group_map.points, targets.rows, lapse, group_map.alpha, participant, calibration.scale)
        return log_odds(p)
    every_object = np.ones(len(group_map.points), bool)
    share = of_draws(draws.points, every_object, 0.0)(targets.rows)  # mean of sigma(Delta)
    p_unknown = of_draws(draws.points, every_object, draws.lapse)(targets.rows)
    has_answers = (np.bincount(questions.worker, minlength=len(lapse))[participant + 1] > 0) & (participant >= 0)
    own_lapse = lapse[participant + 1]
    return log_odds(np.where(has_answers, own_lapse / 2 + (1 - own_lapse) * share, p_unknown))
