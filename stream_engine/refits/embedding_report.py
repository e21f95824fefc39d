"""The report of the refit `embedding`, and the arrays of participants that belong to it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.choice import Choice
from stream_engine.embedding.differences import ParticipantModel
from stream_engine.embedding.held_out import population_lapse
from stream_engine.embedding.participant_groups import participant_groups
from stream_engine.embedding.picture import Picture
from stream_engine.embedding.posterior import Posterior
from stream_engine.embedding.questions import Questions, asked_about
from stream_engine.evaluation import noise_ceiling
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.responses import Responses
from stream_engine.refits.embedding_models import calibration_of, group_calibration
from stream_engine.refits.embedding_predictions import KIND, ONE_MAP, PICTURE, WITH_PARTICIPANT

# Limits within which regions of 95 % were seen to cover as often: the number of dimensions at most, and answers an
# object at least.
MAX_REGION_DIMENSIONS, MIN_REGION_ANSWERS = 3, 75


class FinalFit(NamedTuple):
    """The model that is published, fitted to all answers."""

    answers: Answers
    questions: Questions
    chosen: Choice
    model: ParticipantModel
    draws: Posterior | None


def fit_report(fit: FinalFit, responses: Responses, figures: dict[str, HeldOut]) -> dict[str, Any]:
    """The setting and the fit, and how well held-out answers of `responses` are predicted."""
    embedding, questions, chosen = fit.model.embedding, fit.questions, fit.chosen
    calibration = calibration_of(chosen, fit.model, questions)
    variance = embedding.points.var(axis=0)
    no_figures = HeldOut(responses.by, None, None, noise_ceiling.ceiling(responses))
    with_participant = figures.get(WITH_PARTICIPANT, no_figures).judgement
    return {
        **chosen.setting._asdict(),
        "alpha": embedding.alpha,
        "chosen_by": chosen.basis,
        "tried": chosen.trials,
        **figures.get(KIND, no_figures).report(),
        WITH_PARTICIPANT: with_participant._asdict() if with_participant else None,
        "answers": questions.answers,
        "questions": len(questions.rows),
        "objects": questions.n_objects,
        "never_asked_about": int(questions.n_objects - asked_about(questions).sum()),
        "lapse": calibration.lapse,
        "lapse_fitted": population_lapse(embedding.lapse, questions),
        "scale": calibration.scale,
        "workers": len(fit.answers.participants),
        "guessers": embedding.guessers,
        "explained": (variance / (variance.sum() or 1.0)).tolist(),
        "objective": embedding.objective,
        "fitted_log_loss": -embedding.log_likelihood / questions.answers,
        "iterations": embedding.iterations,
        "evaluations": embedding.evaluations,
        "converged": embedding.converged,
        "slope": embedding.slope,
    }


def reason_for_no_regions(questions: Questions, chosen: Choice, given_dimensions: bool, d: int) -> str | None:
    """Why no confidence regions are drawn from the covariances; None where they are drawn. If the number of dimensions
    was selected, regions of 95 % have this coverage only with many answers, few dimensions, and a clear number."""
    if given_dimensions:
        return None
    if chosen.interval is None or d > MAX_REGION_DIMENSIONS:
        return f"more than {MAX_REGION_DIMENSIONS} dimensions" if chosen.interval else chosen.basis
    if questions.answers < MIN_REGION_ANSWERS * int(asked_about(questions).sum()):
        return f"there are fewer than {MIN_REGION_ANSWERS} times as many answers as objects"
    certain = chosen.smallest is not None and chosen.smallest.setting.d == d
    return None if certain else "the number of dimensions is uncertain"


def differences_report(
    model: ParticipantModel, participants: tuple[str, ...], objects: Sequence[str]
) -> dict[str, Any]:
    """The tests of individual differences, and who differs."""
    differences = model.differences
    weights, rows = differences.weights, differences.differing_participants
    report: dict[str, Any] = {
        "verdict": differences.verdict,
        "participants": differences.n_participants,
        "p_value": differences.p_value,
        "shrinkage": weights.shrinkage if weights else None,
        "scale": weights.scale if weights else 1.0,
        "gain_of_weights": differences.gain_of_weights,
        "p_of_weights": differences.p_of_weights,
        "own_maps": len(differences.map_owners),
        "who": [],
    }
    if differences.gain is not None and differences.standard_error is not None and differences.p_values is not None:
        statistics = (column[rows] for column in (differences.gain, differences.standard_error, differences.p_values))
        report["who"] = [
            {
                "participant": participants[row],
                "gain": float(gain),
                "standard_error": float(standard_error),
                "p_value": float(p),
                "objects": [objects[number] for number in numbers],
            }
            for row, gain, standard_error, p, numbers in zip(rows.tolist(), *statistics, differences.objects)
        ]
    return report


def group_map_report(fit: FinalFit) -> dict[str, float] | None:
    """How one map for everybody takes part in predictions for unknown participants; None where it is the only one."""
    model = fit.model
    if not model.map_share:
        return None
    calibration = group_calibration(fit.chosen, model.group_map, fit.questions)
    return {"share": model.map_share, "alpha": model.group_map.alpha, **calibration._asdict()}


def participant_arrays(
    model: ParticipantModel, questions: Questions, seed: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Groups of participants for the report, and the arrays of participants: weights and groups, -1: no weights; own
    maps, how they are stacked, and what the own model gains: mean, standard error and p-value."""
    arrays: dict[str, np.ndarray] = {}
    groups: dict[str, Any] = {"verdict": "not tested: one map for everybody", "count": 1}
    if model.individual is not None:
        weights = model.individual.weights[1:]
        has_answers = np.bincount(questions.worker, minlength=1 + len(weights))[1:] > 0
        group, grouping = np.where(has_answers, 0, -1), participant_groups(weights[has_answers], seed)
        group[has_answers] = grouping.group
        arrays |= {"worker_weights": weights, "worker_group": group}
        groups = {"verdict": grouping.verdict, "count": grouping.groups, "p_value": grouping.p_value}
    differences, maps = model.differences, model.own_maps
    if maps is not None and differences.stack is not None:
        arrays |= {"own_X": maps.points, "own_worker": maps.block, "own_object": maps.object, "own_lapse": maps.lapse}
        arrays |= {"own_draw": maps.draw, "worker_stack": differences.stack}
    if differences.gain is not None and differences.standard_error is not None and differences.p_values is not None:
        arrays["worker_gain"] = np.stack([differences.gain, differences.standard_error, differences.p_values], axis=1)
    return {"groups": groups}, arrays


def accuracy_with_participant(figures: dict[str, HeldOut]) -> dict[str, Any]:
    """The accuracies of the participants' own models and of one map with their lapse rates."""
    names = {"own": WITH_PARTICIPANT, "one_map": ONE_MAP}
    accuracies = {name: figures[model].judgement if model in figures else None for name, model in names.items()}
    return {name: accuracy and accuracy._asdict() for name, accuracy in accuracies.items()}


def picture_report(flat_map: Picture, figures: dict[str, HeldOut]) -> dict[str, Any]:
    """The method of the picture, its trustworthiness, and its accuracy on held-out answers."""
    accuracy = figures[PICTURE].judgement if PICTURE in figures else None
    return {
        "by": flat_map.by,
        "trustworthiness": flat_map.trustworthiness,
        "accuracy": accuracy.accuracy if accuracy else None,
    }
