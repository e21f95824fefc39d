"""Which features predict people's answers: the accuracy of feature sets (room `alignment`).

Each set is tested as it is (cosine, Euclidean, dot product), with learned weights of its dimensions, with a learned
linear map, and in a combination of all sets; learned parameters are tested on held-out responses and on held-out
objects. The artifact holds the transform of each set with the lowest log loss on unknown objects, and `predict` uses
the best of them for objects without comparisons.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.alignment import answers as tested_answers
from stream_engine.alignment import transforms
from stream_engine.alignment.evaluation import ALL, AS_IS, Evaluated, Models, Prediction, moved
from stream_engine.alignment.feature_files import FeatureSpec, FeatureTable, read
from stream_engine.alignment.feature_sets import MEASURES, METRIC, FeatureSet, Joined, joined
from stream_engine.data.packed_names import pack_names
from stream_engine.evaluation import held_out, noise_ceiling
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.participants import wilson
from stream_engine.exports.alignment import COLUMNS as COLUMNS
from stream_engine.exports.alignment import EXPORTED as EXPORTED
from stream_engine.exports.alignment import best_row
from stream_engine.exports.alignment import export as export
from stream_engine.refits import CannotRefit, Progress, next_step, no_progress
from stream_engine.state.array_declarations import OBJECTS, flags, floats, ids, numbers
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact import figure as figure_of
from stream_engine.state.snapshot import Snapshot

KIND = "alignment"
AXES = {
    "points": floats(OBJECTS, "axes"),
    "more_points": floats("more", "axes"),
    "known": flags(OBJECTS),
    **numbers("more_utf8", "more_offsets", "participant_utf8", "participant_offsets"),
    **dict.fromkeys(("object_accuracy", "object_agreement"), floats(OBJECTS, least=-1)),
    "object_answers": floats(OBJECTS, least=0),
    "participant_accuracy": floats("participants", "sets"),
    "participant_answers": floats("participants", least=0),
    "questions": ids("worst", 4, least=0),
    "question_votes": floats("worst", 2, least=0),
    "question_margin": floats("worst"),
    **numbers("mean_*", "map_*", "varies_*"),
}
REQUIRED = ("points", "known", "more_points", "more_utf8", "more_offsets")


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    features : dict
        Name -> file, see `alignment.feature_files.FeatureSpec`. In a configuration: `[features.NAME]`.
    linear : bool
        Whether to learn linear maps, which takes longer than all the rest.
    """

    features: dict[str, FeatureSpec] = {}
    linear: bool = True


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Test feature sets on a snapshot's answers, and learn transforms of them.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, not used.
    progress : callable
        Called with the number of steps done, and their total.

    Returns
    -------
    Artifact
        Arrays: `points` (n, r) of the snapshot's objects in the space of the best transform, `known` (n,) bool, and
        `more_points` (k, r) of the file's other objects, named in `more_utf8`, `more_offsets`; `mean_S`, `map_S` and
        `varies_S` of set S; accuracy by object and by participant; the questions on which people agree and the features
        do not. The report's `rows` are those of the export.

    Raises
    ------
    CannotRefit
        If there are no feature sets, or no answers about their objects.
    BadFeatures
        If a set cannot be used.
    """
    if not params.features:
        raise CannotRefit(f"{KIND}: got no feature sets; expected some in `features`, next: `stream-engine align`")
    _require_answers(snapshot)
    tables = {name: read(name, spec) for name, spec in params.features.items()}
    return aligned(snapshot, tables, params, seed, progress)


def _require_answers(snapshot: Snapshot) -> None:
    if not snapshot.counters["comparisons"]:
        raise CannotRefit(f"{KIND}: got 0 comparisons; expected at least one, next: {next_step(0, 'triplet_counts')}")


def aligned(
    snapshot: Snapshot,
    tables: Mapping[str, FeatureTable],
    params: Params,
    seed: int,
    progress: Progress = no_progress,
) -> Artifact:
    """The artifact of feature sets that have been read. Raises `CannotRefit`, `BadFeatures`."""
    _require_answers(snapshot)
    with threadpool_limits(1):
        sets = joined(tables, snapshot.objects)
        all_responses = tested_answers.tested_responses(snapshot, seed)
        responses = all_responses._replace(answers=all_responses.answers.among(sets.ids))
        if not len(responses.answers.rows):
            raise CannotRefit(
                f"{KIND}: got 0 comparisons among the {len(sets.ids):,} objects with features; expected at least one, "
                "next: " + next_step(snapshot.counters["comparisons"], "triplet_counts and judgements")
            )
        names = [snapshot.objects[i] for i in sets.ids.tolist()]
        models = Models(sets.sets, responses, params.linear)
        evaluated = Evaluated(models, responses, names, seed, progress)
        return _artifact(snapshot, params, seed, sets, evaluated, float(all_responses.answers.times.sum()))


def _artifact(
    snapshot: Snapshot, params: Params, seed: int, sets: Joined, evaluated: Evaluated, total: float
) -> Artifact:
    answers, models, responses = evaluated.answers, evaluated.models, evaluated.responses
    all_have_features = len(sets.ids) == len(snapshot.objects)
    ceiling = noise_ceiling.ceiling(responses if all_have_features else responses._replace(votes=None))
    rows = _rows(evaluated)
    best, arrays = _transforms(snapshot, evaluated, rows)
    arrays |= _failures(snapshot, sets, evaluated, rows) | _participants(evaluated)
    prediction = evaluated.by_response.get((best["set"], best["transform"]))
    times, total_with_features = answers.times, float(answers.times.sum())
    figures = prediction and held_out.figures(
        prediction.margin, 1.0, times[prediction.at], answers.response[prediction.at]
    )
    report = {
        "objects": len(snapshot.objects),
        "with_features": len(sets.ids),
        "answers": total_with_features,
        "without_features": total - total_with_features,
        "chosen_by_model": int(times[~evaluated.fair].sum()),
        "sets": [feature_set.report for feature_set in models.sets],
        "rows": rows,
        "predicts": best,
        **HeldOut(responses.by, figures, None, ceiling).report(),
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _rows(evaluated: Evaluated) -> list[dict[str, Any]]:
    """A row for each set and transform: JSON values."""
    models, rows = evaluated.models, []
    mixture = models.mixture(evaluated.settings).tolist() if len(models.sets) > 1 else [1.0]
    for feature_set, setting, weight in zip(models.sets, evaluated.settings, mixture):
        for measure in MEASURES:
            row = {
                "set": feature_set.name,
                "transform": measure,
                **evaluated.as_is(feature_set.name, measure)._asdict(),
            }
            behind = evaluated.behind(feature_set.name, measure)
            row |= {"behind": behind.accuracy, "behind_standard_error": behind.standard_error}
            if measure == setting.measure:
                row |= _held_out_figures(evaluated, (feature_set.name, AS_IS), True) | {"weight": weight}
                if (adds := evaluated.adds(feature_set.name)) is not None:
                    row |= {"adds": adds.accuracy, "adds_standard_error": adds.standard_error}
            rows.append(row)
        for kind in models.kinds[1:]:
            figures = _held_out_figures(evaluated, (feature_set.name, kind))
            rows.append({"set": feature_set.name, "transform": kind, **figures})
    if len(models.sets) > 1:
        rows.append({"set": ALL, "transform": "combination", **_held_out_figures(evaluated, (ALL, "combination"))})
    return rows


def _held_out_figures(evaluated: Evaluated, key: tuple[str, str], as_is: bool = False) -> dict[str, Any]:
    """Figures of held-out objects, and of held-out responses; each of them only if such were held out."""
    figures: dict[str, Any] = {"by_object": evaluated.object_figures(key)}
    if (prediction := evaluated.by_response.get(key)) is not None:
        accuracy, loss = evaluated.response_figures(prediction)
        figures |= {"log_loss": loss} | ({} if as_is else accuracy._asdict())
    return figures


MAX_POINT_NUMBERS = 1 << 25  # size of the array of points of objects without comparisons


def _transforms(
    snapshot: Snapshot, evaluated: Evaluated, rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """`(the set and transform that predict, the arrays of all sets)`."""
    models, all_answers = evaluated.models, evaluated.models.answers(np.ones(len(evaluated.answers.rows), bool))
    chosen: list[dict[str, str]] = []
    losses, arrays = [], dict[str, np.ndarray]()
    for number, (feature_set, setting) in enumerate(zip(models.sets, evaluated.settings)):
        kinds = dict.fromkeys(models.kinds, np.inf)
        for row in rows:
            if row["set"] == feature_set.name and (kind := AS_IS if "weight" in row else row["transform"]) in kinds:
                kinds[kind] = _loss(row)
        kind = min(kinds, key=lambda candidate: kinds[candidate])
        points = models.points(feature_set, setting.measure)
        transform = models.transformed(kind, feature_set, setting, all_answers)
        arrays |= {
            f"mean_{number}": points.mean,
            f"map_{number}": transform * points.scale,
            f"varies_{number}": feature_set.varies,
        }
        chosen.append({"set": feature_set.name, "transform": kind, "measure": setting.measure})
        losses.append(kinds[kind])
    best = int(np.argmin(losses))
    feature_set, points = models.sets[best], models.points(models.sets[best], chosen[best]["measure"])
    transform, table, has_features = arrays[f"map_{best}"] / points.scale, feature_set.table, feature_set.row >= 0
    positions = np.zeros((len(snapshot.objects), transform.shape[-1]), np.float32)
    positions[has_features] = moved(points.of(_varying_values(feature_set, feature_set.row[has_features])), transform)
    max_rows = MAX_POINT_NUMBERS // int(feature_set.varies.sum())
    other_rows = np.setdiff1d(np.arange(len(table.names)), feature_set.row[has_features])[:max_rows]
    values = _varying_values(feature_set, other_rows)
    other_rows, values = other_rows[finite := np.isfinite(values).all(axis=1)], values[finite]
    packed = pack_names([table.names[i] for i in other_rows.tolist()])
    return {**chosen[best], "sets": chosen, "not_compared": len(other_rows)}, arrays | {
        "points": positions,
        "known": has_features,
        "more_points": moved(points.of(values), transform).astype(np.float32),
        **{f"more_{key}": array for key, array in packed.items()},
    }


def _varying_values(feature_set: FeatureSet, rows: np.ndarray) -> np.ndarray:
    """Rows of a file, without the dimensions that are constant."""
    return np.asarray(feature_set.table.values[rows][:, feature_set.varies], feature_set.values.dtype)


def _loss(row: Mapping[str, Any]) -> float:
    """The log loss on held-out objects, or else on held-out responses; infinite without either."""
    loss = figure_of(row, "by_object", "log_loss")
    loss = figure_of(row, "log_loss") if loss is None else loss
    return np.inf if loss is None else loss


KEPT_FAILURES = 20  # questions that are stored


def _failures(
    snapshot: Snapshot, sets: Joined, evaluated: Evaluated, rows: list[dict[str, Any]]
) -> dict[str, np.ndarray]:
    """The accuracy of the best row and the agreement of participants by object; and the questions with a significant
    majority against its prediction, the clearest majorities first."""
    answers, models, row = evaluated.answers, evaluated.models, best_row(rows)
    if row["transform"] in MEASURES:
        feature_set = next(candidate for candidate in models.sets if candidate.name == row["set"])
        setting = evaluated.settings[models.sets.index(feature_set)]
        measure = row["transform"] if row["transform"] in METRIC else setting.measure
        margin = transforms.margins(models.points(feature_set, measure).x, answers.rows)
        right = 0.5 * models.right[row["set"], row["transform"]]
        prediction = Prediction(np.arange(len(answers.rows)), margin, 0)
    else:
        prediction = evaluated.by_response[row["set"], row["transform"]]
        right = prediction.right
    answered, times = prediction.at, answers.times[prediction.at]
    agreements = tested_answers.agreement(evaluated.units, answers.rows)
    agreement, n_one_way, n_other_way = (column[answered] for column in agreements)
    answered_rows, n = answers.rows[answered], evaluated.n

    def by_object(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, counts = (tested_answers.object_sums(answered_rows, summand, n) for summand in (values * weight, weight))
        return np.where(counts > 0, sums / np.maximum(counts, 1e-300), -1.0), counts

    arrays = {name: np.full(len(snapshot.objects), -1.0) for name in ("object_accuracy", "object_agreement")}
    arrays["object_answers"] = np.zeros(len(snapshot.objects))
    arrays["object_accuracy"][sets.ids], arrays["object_answers"][sets.ids] = by_object(right, times)
    arrays["object_agreement"][sets.ids] = by_object(np.nan_to_num(agreement), times * ~np.isnan(agreement))[0]
    with np.errstate(invalid="ignore"):
        certainty = wilson(n_one_way / (n_one_way + n_other_way), n_one_way + n_other_way)[0]
    wrong = np.flatnonzero((certainty > 0.5) & (right == 0))
    first_of_question = np.unique(evaluated.units.question[answered][wrong], return_index=True)[1]
    wrong = wrong[first_of_question]
    worst = wrong[np.lexsort((prediction.margin[wrong], -certainty[wrong]))][:KEPT_FAILURES]
    return arrays | {
        "questions": sets.ids[answered_rows[worst]].astype(np.int32),
        "question_votes": np.stack([n_one_way[worst], n_other_way[worst]], axis=1),
        "question_margin": prediction.margin[worst],
    }


MIN_ANSWERS = 20  # answers that a participant needs for figures


def _participants(evaluated: Evaluated) -> dict[str, np.ndarray]:
    """The accuracy of each set as it is, on the answers of each participant with enough of them."""
    answers, models = evaluated.answers, evaluated.models
    participant, times, n_participants = answers.participant, answers.times, len(answers.participants)
    named = (participant >= 0) & evaluated.fair
    count = np.bincount(participant[named], times[named], n_participants)
    enough = np.flatnonzero(count >= MIN_ANSWERS)
    shares = [
        np.bincount(
            participant[named], (0.5 * times * models.right[feature_set.name, setting.measure])[named], n_participants
        )
        for feature_set, setting in zip(models.sets, evaluated.settings)
    ]
    names = [answers.participants[i] for i in enough.tolist()]
    return {
        "participant_accuracy": np.stack(shares, axis=1)[enough] / count[enough, None],
        "participant_answers": count[enough].astype(np.float64),
        **{f"participant_{key}": array for key, array in pack_names(names).items()},
    }
