"""The embedding's probabilities of the answers of one participant."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation import Probability
from stream_engine.evaluation.answer_probabilities import log_odds
from stream_engine.evaluation.learned import of_draws, of_embedding, of_points
from stream_engine.state.artifact import Artifact, figure


class ParticipantModel(NamedTuple):
    """Which parameters of their own a participant has; all others are the group's."""

    has_own: bool  # any of the following, or a lapse rate
    weighted: bool  # weights of the axes
    own_map: bool = False


def of_participant(
    artifact: Artifact, name: str, online: Artifact | None = None
) -> tuple[Probability, ParticipantModel]:
    """By an artifact of the refit `embedding`, as this participant answers: with their own lapse rate and weights of
    the axes, which are those of the `online` embedding if that has continued from this fit; combined with a map of
    their own, if they have one. By the group's weights and the mean lapse rate for an unknown participant."""
    arrays, report = artifact.arrays, artifact.report
    names, points = unpack_names(arrays["utf8"], arrays["offsets"]), np.asarray(arrays["X"])
    has_answers, alpha = np.asarray(arrays["asked"], bool), float(report["alpha"])
    online_weights = _online_weights(artifact, name, online)
    if name not in names and online_weights is None:
        return of_embedding(artifact), ParticipantModel(False, False)
    lapse, scale = float(arrays["lapse"]), figure(report, "scale") or 1.0
    weights, own_weights, number = arrays.get("worker_weights"), online_weights, -1
    if name in names:
        number = names.index(name)
        lapse = float(arrays["worker_lapse"][number])
        if own_weights is None and weights is not None and int(arrays["worker_group"][number]) >= 0:
            own_weights = np.asarray(weights)[number]
    weighted = own_weights is not None
    if own_weights is not None:
        points = points * np.sqrt(own_weights)
        scale = figure(report, "individual_differences", "scale") or 1.0
    has_own = weighted or lapse != float(arrays["lapse"])
    probability = of_points(points, has_answers, lapse, alpha, scale)
    if "draws" in arrays and not weighted:
        probability = of_draws(arrays["draws"], has_answers, lapse if has_own else arrays["draw_lapse"])
    if "own_X" in arrays and number >= 0 and (own_rows := np.asarray(arrays["own_worker"]) == number).any():
        return _stacked(artifact, probability, number, own_rows), ParticipantModel(True, weighted, True)
    return probability, ParticipantModel(has_own, weighted)


def _stacked(artifact: Artifact, group: Probability, number: int, own_rows: np.ndarray) -> Probability:
    """The weighted sum of the log odds by the group's map and by the participant's own map (stacking); by the group's
    map alone about objects that the own map lacks."""
    arrays = artifact.arrays
    draw = np.asarray(arrays["own_draw"])[own_rows] if "own_draw" in arrays else np.zeros(int(own_rows.sum()), int)
    objects, copy = np.unique(np.asarray(arrays["own_object"])[own_rows], return_inverse=True)
    points = np.zeros((len(np.unique(draw)), len(objects), arrays["own_X"].shape[1]))
    points[np.unique(draw, return_inverse=True)[1], copy] = np.asarray(arrays["own_X"])[own_rows]
    own_map = of_draws(points, np.ones(len(objects), bool), float(arrays["own_lapse"][number]))
    renumbered = np.full(len(arrays["X"]), -1, np.int32)
    renumbered[objects] = np.arange(len(objects))
    group_weight, own_weight = np.asarray(arrays["worker_stack"], float)[number]

    def stacked(rows: np.ndarray) -> np.ndarray:
        p, q = group(rows), own_map(np.where(rows < 0, -1, renumbered[rows]))
        own_log_odds = log_odds(np.where(np.isnan(q), 0.5, q))
        return np.where(np.isnan(q), p, expit(group_weight * log_odds(p) + own_weight * own_log_odds))

    return stacked


def _online_weights(artifact: Artifact, name: str, online: Artifact | None) -> np.ndarray | None:
    """(d,) weights of a participant, updated by the answers since the fit; None if the online embedding has none."""
    if online is None or "weights" not in online.arrays or online.report.get("fit") != artifact.digest:
        return None
    names = unpack_names(online.arrays["utf8"], online.arrays["offsets"])
    row = names.index(name) + 1 if name in names else 0
    return np.asarray(online.arrays["weights"])[row] if 0 < row < len(online.arrays["weights"]) else None
