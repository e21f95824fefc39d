"""Models that the refit `embedding` fits with a given setting, to all answers or to those outside a fold."""

from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.choice import Choice
from stream_engine.embedding.differences import Differences, ParticipantModel, differences, fit_parts
from stream_engine.embedding.fit import Embedding
from stream_engine.embedding.held_out import population_lapse
from stream_engine.embedding.posterior import Posterior, has_few_answers, posterior
from stream_engine.embedding.questions import Questions

FOLD_TOLERANCE = 3e-4  # of a fold's fit with weights: one that went on predicted no better (food100, portraits36)
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
    """Models of participants in addition to the group's map, selected once (`select`) and fitted to all answers, or to
    those outside a fold."""

    def __init__(self, options: ModelOptions):
        self.options = options
        self._selection = Differences("not selected")

    def select(self, chosen: Choice, answers: Answers, group_map: Embedding) -> None:
        """Select by all answers, to which `group_map` was fitted."""
        options = self.options
        if options.participants == "alike":
            self._selection = Differences("not requested")
        elif options.lapse != "worker":
            why = f"they need lapse rates of participants, and lapse is {options.lapse!r}"
            self._selection = Differences(f"not requested: {why}")
        else:
            self._selection = differences(
                answers.sample(MAX_SEARCHED_ANSWERS),
                group_map,
                chosen.setting,
                given_d=options.given_dimensions,
                always=options.participants == "weights",
                **options.lapse_option,
            )

    def fit(self, answers: Answers, questions: Questions, group_map: Embedding, **limits: Any) -> ParticipantModel:
        """Fitted to all answers, as `group_map` was."""
        return fit_parts(self._selection, answers, questions, group_map, **self.options.lapse_option, **limits)

    def fit_to_fold(
        self,
        answers: Answers,
        questions: Questions,
        group_map: Embedding,
        out: np.ndarray,
        only_weights: bool = False,
    ) -> ParticipantModel:
        """Fitted to the answers outside the responses `out` (U,), as `group_map` was. Answers in these select nothing
        but the few settings (`Differences.without`). `only_weights`: no maps of single participants."""
        selection = self._selection.without(out, only_weights)
        return fit_parts(
            selection, answers, questions, group_map, tolerance=FOLD_TOLERANCE, **self.options.lapse_option
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
