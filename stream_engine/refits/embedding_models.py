"""Models that the refit `embedding` fits with a given setting, to all answers or to those outside a fold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.choice import Choice, Split
from stream_engine.embedding.differences import Differences, ParticipantModel, differences, fit_parts
from stream_engine.embedding.fit import ROUGH, Embedding, fit_carefully, with_setting
from stream_engine.embedding.held_out import population_lapse, unit_losses
from stream_engine.embedding.posterior import (
    MAX_AVERAGED_ANSWERS,
    Posterior,
    calibrated_scale,
    has_few_answers,
    posterior,
)
from stream_engine.embedding.questions import Questions, of_answers
from stream_engine.embedding.weight_selection import FOLD_TOLERANCE
from stream_engine.evaluation.answer_probabilities import probabilities
from stream_engine.evaluation.responses import PUBLISHED_SEED

# Few answers are averaged unless one fit predicts better by so many standard errors: its setting was selected by the
# same validation sets, and with all answers draws gain more. The errors are those of independent comparisons, as the
# draws take them: those of a response depend on each other, and so much the less is tolerated.
TOLERATED_ERRORS = 2.0
SELECTION_EVALUATIONS = 1_200  # of a chain whose draws are only compared with a fit
MIN_PARTICIPANT_ANSWERS = 20  # answers that a participant needs for a lapse rate of their own; others share one
# A setting is searched with at most so many answers, or so many an object where that is more: the ridge is a prior,
# and does not depend on the number of answers.
MAX_SEARCHED_ANSWERS, SEARCHED_ANSWERS_PER_OBJECT = 300_000, 200


class ModelOptions(NamedTuple):
    """What the parameters of the refit say about its models."""

    lapse: str  # "worker", "all" or "none"
    participants: str  # "test", "weights" or "alike"
    given_dimensions: bool
    given_setting: bool  # whether the dimensions, the kernel or the ridge are given

    @property
    def lapse_option(self) -> dict[str, Any]:
        """The option of a fit."""
        return {"fixed_lapse": self.lapse == "none"}


def without_rare_participants(answers: Answers) -> Answers:
    """The same answers; those of participants who gave fewer than `MIN_PARTICIPANT_ANSWERS` name no participant."""
    participant = answers.participant
    n_answers = np.bincount(participant + 1, answers.times, 1 + len(answers.participants))
    return answers._replace(participant=np.where(n_answers[participant + 1] < MIN_PARTICIPANT_ANSWERS, -1, participant))


class ParticipantModels:
    """Models of participants in addition to the group's map; selected anew for each group of held-out responses: what
    held-out answers had selected predicts them too well, even if little is selected by them (measurements.md)."""

    def __init__(self, answers: Answers, options: ModelOptions):
        self.answers, self.options = answers, options
        self._selections: dict[int, tuple[Choice, Differences]] = {}  # by the identity of a choice

    def fit(
        self, chosen: Choice, answers: Answers, questions: Questions, group_map: Embedding, **limits: Any
    ) -> ParticipantModel:
        """Selected by and fitted to these answers, to which `group_map` was fitted."""
        selection = self._select(chosen, answers, group_map, only_weights=False)
        return fit_parts(selection, answers, questions, group_map, **self.options.lapse_option, **limits)

    def fit_to_fold(
        self,
        chosen: Choice,
        answers: Answers,
        questions: Questions,
        group_map: Embedding,
        only_weights: bool = False,
    ) -> ParticipantModel:
        """Selected without all units of the group that the setting was chosen for, and fitted to these answers."""
        lapse_option = self.options.lapse_option
        if id(chosen) not in self._selections:
            available = self.answers if chosen.test_units is None else self.answers.without(chosen.test_units)
            frequent = without_rare_participants(available)
            map_of_group = group_map  # where no participant is named, nothing is selected
            if (frequent.participant >= 0).any():
                map_of_group = with_setting(of_answers(frequent), chosen.setting, (group_map.points,), **lapse_option)
            self._selections[id(chosen)] = chosen, self._select(chosen, frequent, map_of_group, only_weights)
        selection = self._selections[id(chosen)][1]
        return fit_parts(selection, answers, questions, group_map, tolerance=FOLD_TOLERANCE, **lapse_option)

    def _select(self, chosen: Choice, answers: Answers, group_map: Embedding, only_weights: bool) -> Differences:
        options = self.options
        if options.participants == "alike":
            return Differences("not requested")
        if options.lapse != "worker":
            return Differences(f"not requested: they need lapse rates of participants, and lapse is {options.lapse!r}")
        return differences(
            answers.sample(MAX_SEARCHED_ANSWERS),
            group_map,
            chosen.setting,
            given_d=options.given_dimensions,
            always=options.participants == "weights",
            only_weights=only_weights,
            **options.lapse_option,
        )


def scale_of_draws(chosen: Choice, splits: Sequence[Split], options: ModelOptions) -> float | None:
    """The calibrated scale of draws over which predictions are averaged; None where one fit predicts: with a setting
    that was given, with many answers, and where it predicts the validation sets better. The first split is that of the
    choice. Without a validation set few answers are averaged."""
    training, (kernel, d, ridge), calibration = splits[0].questions, chosen.setting, chosen.calibration
    if options.given_setting or options.lapse == "none" or training.answers > MAX_AVERAGED_ANSWERS:
        return None
    has_few = has_few_answers(training, d)
    if chosen.embedding is None or calibration is None:
        return 1.0 if has_few else None
    embeddings = [chosen.embedding]
    for split in splits[1:]:
        embeddings.append(fit_carefully(split.questions, d, ridge, kernel=kernel, tolerance=ROUGH)[0])
    draws = [
        posterior(split.questions, embedding.points, PUBLISHED_SEED, SELECTION_EVALUATIONS)
        for split, embedding in zip(splits, embeddings)
    ]
    validation = [split.validation for split in splits]
    scale = calibrated_scale([(each, answers.rows, answers.times) for each, answers in zip(draws, validation)])
    excess = []
    for each, embedding, answers in zip(draws, embeddings, validation):
        rows, lapse = answers.rows, calibration.lapse
        by_fit = probabilities(embedding.points, rows, lapse, embedding.alpha, scale=calibration.scale)
        unit = np.unique(answers.response, return_inverse=True)[1].reshape(-1)
        by_draws = each.scaled(scale).probabilities(rows)
        excess.append(unit_losses(by_draws, answers, unit) - unit_losses(by_fit, answers, unit))
    by_unit = np.concatenate(excess)
    tolerated = TOLERATED_ERRORS * by_unit.std() / np.sqrt(sum(answers.times.sum() for answers in validation))
    return scale if by_unit.mean() < (tolerated if has_few else 0.0) else None


def posterior_draws(questions: Questions, model: ParticipantModel, chosen: Choice, seed: int) -> Posterior | None:
    """Calibrated draws over which predictions of the group are averaged; None where one fit predicts, and with weights
    of participants."""
    if model.individual is not None or chosen.draw_scale is None:
        return None
    return posterior(questions, model.group_map.points, seed).scaled(chosen.draw_scale)


def calibration_of(chosen: Choice, model: ParticipantModel, questions: Questions) -> Calibration:
    """That of the map that is shown, for unknown participants."""
    weights = model.differences.weights
    if weights is not None and weights.calibration is not None:
        return weights.calibration
    return group_calibration(chosen, model.group_map, questions)


def group_calibration(chosen: Choice, group_map: Embedding, questions: Questions) -> Calibration:
    """That of the group's map, for unknown participants."""
    return chosen.calibration or Calibration(1.0, population_lapse(group_map.lapse, questions))
