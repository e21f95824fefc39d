"""Which features see the objects as people do: the accuracy of feature sets on people's answers (room `alignment`).

Each set is tested as it is (cosine, Euclidean, dot product), with learned weights of its dimensions, with a learned
linear map, and in a combination of all sets; what is learned is tested on responses and on objects that it did not
have. The artifact holds the transform of each set with the lowest log loss on unknown objects. `predict` uses the best
of them for objects that nobody compared.
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
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact import figure as figure_of
from stream_engine.state.artifact_schemas import OBJECTS, flags, floats, ids, numbers
from stream_engine.state.snapshot import Snapshot

KIND = "alignment"
LEAST = 20  # answers of a participant, of whom something is told, and of an object
SURE, WORST = 0.05, 20  # p-value of a majority; questions that are kept
CELLS = 1 << 25  # numbers of points of objects that nobody compared, at most
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
    """The artifact of sets that were read already. Raises `CannotRefit`, `BadFeatures`."""
    _require_answers(snapshot)
    with threadpool_limits(1):
        sets = joined(tables, snapshot.objects)
        whole = tested_answers.tested_responses(snapshot, seed)
        responses = whole._replace(answers=whole.answers.among(sets.ids))
        if not len(responses.answers.rows):
            raise CannotRefit(
                f"{KIND}: got 0 comparisons among the {len(sets.ids):,} objects with features; expected at least one, "
                "next: " + next_step(snapshot.counters["comparisons"], "triplet_counts and judgements")
            )
        names = [snapshot.objects[i] for i in sets.ids.tolist()]
        models = Models(sets.sets, responses, params.linear)
        made = Evaluated(models, responses, names, seed, progress)
        return _artifact(snapshot, params, seed, sets, made, float(whole.answers.times.sum()))


def _artifact(snapshot: Snapshot, params: Params, seed: int, sets: Joined, made: Evaluated, total: float) -> Artifact:
    answers, models, responses = made.answers, made.models, made.responses
    whole = len(sets.ids) == len(snapshot.objects)
    ceiling = noise_ceiling.ceiling(responses if whole else responses._replace(votes=None))
    rows = _rows(made)
    best, arrays = _transforms(snapshot, made, rows)
    arrays |= _failures(snapshot, sets, made, rows) | _participants(made)
    predicted = made.by_response.get((best["set"], best["transform"]))
    times, given = answers.times, float(answers.times.sum())
    figures = predicted and held_out.figures(predicted.margin, 1.0, times[predicted.at], answers.response[predicted.at])
    report = {
        "objects": len(snapshot.objects),
        "with_features": len(sets.ids),
        "answers": given,
        "without_features": total - given,
        "chosen_by_model": int(times[~made.fair].sum()),
        "sets": [each.report for each in models.sets],
        "rows": rows,
        "predicts": best,
        **HeldOut(responses.by, figures, None, ceiling).report(),
    }
    return Artifact(KIND, snapshot.digest, snapshot.sequence, plain_params(params), seed, arrays, report)


def _rows(made: Evaluated) -> list[dict[str, Any]]:
    """A row for each set and what is done with it: JSON values."""
    models, rows = made.models, []
    mixture = models.mixture(made.settings).tolist() if len(models.sets) > 1 else [1.0]
    for of, setting, weight in zip(models.sets, made.settings, mixture):
        for measure in MEASURES:
            row = {"set": of.name, "transform": measure, **made.as_is(of.name, measure)._asdict()}
            behind = made.behind(of.name, measure)
            row |= {"behind": behind.accuracy, "behind_standard_error": behind.standard_error}
            if measure == setting.measure:
                row |= _learned(made, (of.name, AS_IS), True) | {"weight": weight}
                if (adds := made.adds(of.name)) is not None:
                    row |= {"adds": adds.accuracy, "adds_standard_error": adds.standard_error}
            rows.append(row)
        rows += [
            {"set": of.name, "transform": kind, **_learned(made, (of.name, kind))} for kind in models.kinds[1:]
        ]  # fmt: skip
    if len(models.sets) > 1:
        rows.append({"set": ALL, "transform": "combination", **_learned(made, (ALL, "combination"))})
    return rows


def _learned(made: Evaluated, key: tuple[str, str], as_is: bool = False) -> dict[str, Any]:
    """Figures of held-out answers; those by response alone where nothing was held out by object, and the reverse."""
    told: dict[str, Any] = {"by_object": made.object_figures(key)}
    if (prediction := made.by_response.get(key)) is not None:
        accuracy, loss = made.response_figures(prediction)
        told |= {"log_loss": loss} | ({} if as_is else accuracy._asdict())
    return told


def _transforms(
    snapshot: Snapshot, made: Evaluated, rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Which set and transform predict, and the arrays of all sets."""
    models, every = made.models, made.models.answers(np.ones(len(made.answers.rows), bool))
    chosen: list[dict[str, str]] = []
    losses, arrays = [], dict[str, np.ndarray]()
    for at, (of, setting) in enumerate(zip(models.sets, made.settings)):
        kinds = dict.fromkeys(models.kinds, np.inf)
        for row in rows:
            if row["set"] == of.name and (kind := AS_IS if "weight" in row else row["transform"]) in kinds:
                kinds[kind] = _loss(row)
        kind = min(kinds, key=lambda each: kinds[each])
        points, by = models.points(of, setting.measure), models.transformed(kind, of, setting, every)
        arrays |= {f"mean_{at}": points.mean, f"map_{at}": by * points.scale, f"varies_{at}": of.varies}
        chosen.append({"set": of.name, "transform": kind, "measure": setting.measure})
        losses.append(kinds[kind])
    best = int(np.argmin(losses))
    of, points = models.sets[best], models.points(models.sets[best], chosen[best]["measure"])
    by, table, known = arrays[f"map_{best}"] / points.scale, of.table, of.row >= 0
    place = np.zeros((len(snapshot.objects), by.shape[-1]), np.float32)
    place[known] = moved(points.of(_values(of, of.row[known])), by)
    others = np.setdiff1d(np.arange(len(table.names)), of.row[known])[: CELLS // int(of.varies.sum())]
    values = _values(of, others)
    others, values = others[finite := np.isfinite(values).all(axis=1)], values[finite]
    more = pack_names([table.names[i] for i in others.tolist()])
    return {**chosen[best], "sets": chosen, "not_compared": len(others)}, arrays | {
        "points": place,
        "known": known,
        "more_points": moved(points.of(values), by).astype(np.float32),
        **{f"more_{key}": each for key, each in more.items()},
    }


def _values(of: FeatureSet, rows: np.ndarray) -> np.ndarray:
    """Rows of a file, without the dimensions that are left out."""
    return np.asarray(of.table.values[rows][:, of.varies], of.values.dtype)


def _loss(row: Mapping[str, Any]) -> float:
    """The log loss on unknown objects, or else on held-out responses."""
    loss = figure_of(row, "by_object", "log_loss")
    loss = figure_of(row, "log_loss") if loss is None else loss
    return np.inf if loss is None else loss


def _failures(snapshot: Snapshot, sets: Joined, made: Evaluated, rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """By object, how often the best row is right and how far people agree; and the questions with a clear majority
    against it, the most likely ones first."""
    answers, models, row = made.answers, made.models, best_row(rows)
    if row["transform"] in MEASURES:
        of = next(each for each in models.sets if each.name == row["set"])
        setting = made.settings[models.sets.index(of)]
        measure = row["transform"] if row["transform"] in METRIC else setting.measure
        margin = transforms.margins(models.points(of, measure).x, answers.rows)
        right = 0.5 * models.right[row["set"], row["transform"]]
        prediction = Prediction(np.arange(len(answers.rows)), margin, 0)
    else:
        prediction = made.by_response[row["set"], row["transform"]]
        right = prediction.right
    at, times = prediction.at, answers.times[prediction.at]
    others, one_way, other_way = (each[at] for each in tested_answers.agreement(made.units, answers.rows))
    asked, n = answers.rows[at], made.n

    def by_object(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, counts = (tested_answers.object_sums(asked, each, n) for each in (values * weight, weight))
        return np.where(counts > 0, sums / np.maximum(counts, 1e-300), -1.0), counts

    arrays = {name: np.full(len(snapshot.objects), -1.0) for name in ("object_accuracy", "object_agreement")}
    arrays["object_answers"] = np.zeros(len(snapshot.objects))
    arrays["object_accuracy"][sets.ids], arrays["object_answers"][sets.ids] = by_object(right, times)
    arrays["object_agreement"][sets.ids] = by_object(np.nan_to_num(others), times * ~np.isnan(others))[0]
    with np.errstate(invalid="ignore"):
        sure = wilson(one_way / (one_way + other_way), one_way + other_way)[0]
    wrong = np.flatnonzero((sure > 0.5) & (right == 0))
    first = np.unique(made.units.question[at][wrong], return_index=True)[1]
    wrong = wrong[first]
    worst = wrong[np.lexsort((prediction.margin[wrong], -sure[wrong]))][:WORST]
    return arrays | {
        "questions": sets.ids[asked[worst]].astype(np.int32),
        "question_votes": np.stack([one_way[worst], other_way[worst]], axis=1),
        "question_margin": prediction.margin[worst],
    }


def _participants(made: Evaluated) -> dict[str, np.ndarray]:
    """The accuracy of each set as it is on the answers of each participant with enough of them."""
    answers, models = made.answers, made.models
    who, times, people = answers.participant, answers.times, len(answers.participants)
    named = (who >= 0) & made.fair
    count = np.bincount(who[named], times[named], people)
    enough = np.flatnonzero(count >= LEAST)
    shares = [
        np.bincount(who[named], (0.5 * times * models.right[of.name, each.measure])[named], people)
        for of, each in zip(models.sets, made.settings)
    ]
    names = [answers.participants[i] for i in enough.tolist()]
    return {
        "participant_accuracy": np.stack(shares, axis=1)[enough] / count[enough, None],
        "participant_answers": count[enough].astype(np.float64),
        **{f"participant_{key}": each for key, each in pack_names(names).items()},
    }
