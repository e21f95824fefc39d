"""alignment: how well feature sets predict the answers, where they fail, and the transforms that were learned."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_engine.exports import Content
from stream_engine.exports.array_types import array, figure, number, text
from stream_engine.exports.learned import artifact_of
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact import figure as figure_of
from stream_engine.state.published import Published

KIND = "alignment"
EXPORTED = {
    "*.varies": array("c", "b", "dimensions of the file that vary over the objects; the others are left out"),
    "*.mean": array("v", "f", "mean of the objects, after scaling to length 1 if cosine"),
    "*.map": array("v | v, r", "f", "what multiplies differences from the mean: a factor a dimension, or a matrix"),
    "*.cosine": figure("whether rows are scaled to length 1 first"),
}
COLUMNS = {
    "set": text("feature set; `all sets` is their combination; empty: chance, noise ceiling, and the map"),
    "transform": text("measure of similarity, or what was learned: weights, linear map, combination"),
    "accuracy": number("share of answers predicted correctly; of what was learned, of held-out responses"),
    "standard_error": number("over responses, questions and participants"),
    "low": number("lower end of the 95 % interval"),
    "high": number("upper end"),
    "answers": number("number of tested answers", "i"),
    "log_loss": number("held-out log loss", unit="nats per answer"),
    "by_object": number("accuracy on objects that were not learned from"),
    "by_object_standard_error": number("over objects"),
    "by_object_log_loss": number("log loss on these objects", unit="nats per answer"),
    "behind": number("of a row in which nothing was learned: how much less accurate it is than the best of these"),
    "behind_standard_error": number("standard error of the paired difference"),
    "weight": number("share of the set in the combination"),
    "adds": number("gain in accuracy of the combination by the set"),
    "adds_standard_error": number("its standard error"),
    "left": number("share of the gap to the noise ceiling that the map of the answers alone closes"),
}
QUESTION, VOTES = ("near_i", "near_j", "far_i", "far_j"), ("agree", "disagree")


def best_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row that is right most often."""
    return max(rows, key=lambda row: figure_of(row, "accuracy") or 0.0)


def as_is_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The best of those in which nothing was learned."""
    return best_row([row for row in rows if "behind" in row])


def too_good(report: Mapping[str, Any]) -> str:
    """A set that predicts more as it is, by its whole interval, than any model can that was not made from the answers;
    "" for none."""
    row, ceiling = as_is_row(report["rows"]), ceiling_of(report)
    low = figure_of(row, "low")
    return row["set"] if ceiling is not None and low is not None and low > ceiling else ""


def table(published: Published) -> dict[str, list[Any]]:
    """Columns of the export: the rows of the report, beside chance, the noise ceiling and the map of the answers."""
    report = artifact_of(published, KIND).report
    embedding = published.artifacts.get("embedding")
    further: list[dict[str, Any]] = [{"transform": "chance", "accuracy": 0.5}]
    if (ceiling := ceiling_of(report)) is not None:
        further.append({"transform": "noise ceiling", "accuracy": ceiling})
    map_accuracy = figure_of(embedding.report, "accuracy") if embedding else None
    if embedding is not None and map_accuracy is not None:
        figures = {
            "log_loss": figure_of(embedding.report, "log_loss"),
            "answers": embedding.report["held_out_comparisons"],
        }
        if (error := figure_of(embedding.report, "standard_error")) is not None:
            figures |= {
                "standard_error": error,
                "low": map_accuracy - 1.96 * error,
                "high": min(map_accuracy + 1.96 * error, 1.0),
            }
        further.append({"transform": "map", "accuracy": map_accuracy, **figures})
    rows = []
    for row in report["rows"]:
        by, share = row.get("by_object") or {}, figure_of(row, "accuracy")
        missing_share = None if share is None else left_of(share, map_accuracy, ceiling)
        flat = {f"by_object{suffix}": by.get(key) for suffix, key in (("", "accuracy"), *_OF_OBJECTS)}
        rows.append({**row, **flat, "left": missing_share})
    return {name: [row.get(name, "" if name == "set" else None) for row in (*rows, *further)] for name in COLUMNS}


_OF_OBJECTS = (("_standard_error", "standard_error"), ("_log_loss", "log_loss"))


def ceiling_of(report: Mapping[str, Any]) -> float | None:
    """The noise ceiling: what no model that answers alike for everybody exceeds. None where too few answers repeat a
    question: agreement of few with few is no ceiling, and a good map exceeds it."""
    return figure_of(report, "ceiling", "at_most")


def left_of(accuracy: float, of_map: float | None, ceiling: float | None) -> float | None:
    """The share of the gap between features and the ceiling that the map of the answers closes.

    >>> left_of(0.6, 0.7, 0.8), left_of(0.6, 0.55, 0.8), left_of(0.8, 0.7, 0.8)
    (0.5, 0.0, None)
    """
    if of_map is None or ceiling is None or ceiling - accuracy < 1e-9:
        return None
    return round(min(max((of_map - accuracy) / (ceiling - accuracy), 0.0), 1.0), 9)


def export(published: Published) -> dict[str, Content]:
    """Tables alignment, alignment_objects and alignment_questions; and of each set S the arrays S.varies, S.mean, S.map
    and S.cosine of `transform`: coordinates are (x[varies], of length 1 if cosine, - mean) @ map, or * map of one
    axis."""
    artifact, names = artifact_of(published, KIND), published.object_names.get(KIND, published.snapshot.objects)
    arrays = artifact.arrays
    transform: dict[str, np.ndarray] = {}
    for at, feature_set in enumerate(artifact.report["predicts"]["sets"]):
        transform |= {f"{feature_set['set']}.{key}": arrays[f"{key}_{at}"] for key in ("varies", "mean", "map")}
        transform[f"{feature_set['set']}.cosine"] = np.array(feature_set["measure"] == "cosine")
    tables = {KIND: table(published), **object_tables(artifact, names)}
    return {"transform": Content(transform, tables)}


def object_tables(artifact: Artifact, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Where it fails: by object, those first on which the best row is right least often, and by question."""
    arrays = artifact.arrays
    compared = np.flatnonzero(arrays["object_answers"] > 0)
    compared = compared[np.argsort(arrays["object_accuracy"][compared], kind="stable")]
    agreement = arrays["object_agreement"][compared]
    objects = {
        "object": [names[i] for i in compared.tolist()],
        "answers": arrays["object_answers"][compared].astype(np.int64),
        "accuracy": arrays["object_accuracy"][compared],
        "agreement": np.where(agreement < 0, np.nan, agreement),
    }
    questions: dict[str, Any] = {
        head: [names[i] for i in column.tolist()] for head, column in zip(QUESTION, arrays["questions"].T)
    }
    questions |= {head: column.astype(np.int64) for head, column in zip(VOTES, arrays["question_votes"].T)}
    return {"alignment_objects": objects, "alignment_questions": questions | {"log_odds": arrays["question_margin"]}}
