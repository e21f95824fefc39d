"""Models that the refit `embedding` fits with a given setting, to all answers or to those outside a fold."""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.choice import Choice
from stream_engine.embedding.differences import Differences, ParticipantModel, differences, fit_parts
from stream_engine.embedding.fit import Embedding, with_setting
from stream_engine.embedding.held_out import population_lapse
from stream_engine.embedding.posterior import Posterior, has_few_answers, posterior
from stream_engine.embedding.questions import Questions, of_answers
from stream_engine.embedding.weight_selection import FOLD_TOLERANCE

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


def posterior_draws(
    questions: Questions, model: ParticipantModel, options: ModelOptions, chosen: Choice, seed: int
) -> Posterior | None:
    """Calibrated draws over which predictions of the group are averaged; None where one fit predicts: with enough
    answers, with weights of participants, and with a model that was given."""
    if model.individual is not None or not are_averaged(questions, model.group_map, options):
        return None
    return posterior(questions, model.group_map, seed).scaled(chosen.draw_scale)


def are_averaged(questions: Questions, group_map: Embedding, options: ModelOptions) -> bool:
    """Whether predictions by one map are averaged over draws."""
    if options.given_setting or options.lapse == "none":
        return False
    return has_few_answers(questions, group_map.points.shape[1])


def calibration_of(chosen: Choice, model: ParticipantModel, questions: Questions) -> Calibration:
    """The calibration for unknown participants."""
    weights = model.differences.weights
    if weights is not None and weights.calibration is not None:
        return weights.calibration
    return chosen.calibration or Calibration(1.0, population_lapse(model.group_map.lapse, questions))
