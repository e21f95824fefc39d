"""Predictions of labels: the booster, the classifiers compared, and one table.

`predictions.csv` is the best that there is: of `classify`, which tries the booster too, unless a booster was made from
a newer snapshot. Whichever export writes it writes the same.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.exports import Content, NothingToExport
from stream_engine.exports.learned import artifact_of, names_of
from stream_engine.state.published import Published

KINDS = ("classify", "triplet_boost")


def booster(published: Published) -> dict[str, Content]:
    """The triplet classifiers; and the table of `predictions`."""
    artifact = artifact_of(published, "triplet_boost")
    classes = [*artifact.report["classes"], *artifact.report.get("other_classes", [])]
    arrays = {**artifact.arrays, "classes": np.array(classes, np.str_)}
    names = names_of(published, "triplet_boost", len(arrays["predicted"]))
    return {"booster": Content(arrays, {"predictions": _table(published)}, objects=tuple(names))}


def classify(published: Published) -> dict[str, Content]:
    """The predictions, and the table `classifiers`: a row a model; the class that most objects have, and the best as it
    was chosen without the objects that it is reported on."""
    artifact = artifact_of(published, "classify")
    held_out, report = artifact.report["held_out"], artifact.report
    rows = [dict(row) for row in report["models"]]
    if rows:
        best = {name: held_out[name] for name in ("objects", "accuracy", "standard_error", "log_loss", "abstained")}
        usual = {"objects": held_out["objects"], "accuracy": held_out["majority_class_accuracy"], "best": False}
        rows += [{"model": "the best as chosen", **best, "best": False}, {"model": "majority class", **usual}]
    text, numbers = ("model",), ("setting", "objects", "accuracy", "standard_error", "log_loss", "abstained")
    table: dict[str, Any] = {name: [row[name] for row in rows] for name in text}
    table |= {name: np.array([row.get(name, np.nan) for row in rows], np.float64) for name in numbers}
    table["best"] = np.array([bool(row["best"]) for row in rows])
    arrays = {**artifact.arrays, "classes": np.array(report["classes"], np.str_)}
    names = tuple(names_of(published, "classify", len(arrays["predicted"])))
    return {"classify": Content(arrays, {"predictions": _table(published), "classifiers": table}, objects=names)}


def predictions(published: Published) -> dict[str, Content]:
    """A row an object. Its own label is not used for its prediction by `classify`; by the booster it is, where the
    object was trained on."""
    columns = _table(published)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    return {"predictions": Content(arrays, {"predictions": columns}, objects=tuple(columns["object"]))}


def _table(published: Published) -> dict[str, Any]:
    artifacts = {kind: published.artifacts[kind] for kind in KINDS if kind in published.artifacts}
    if not artifacts:
        raise NothingToExport(
            "no predictions in this state; run `stream-engine refit --state DIR classify` (it needs labels)"
        )
    kind, artifact = max(artifacts.items(), key=lambda item: (item[1].sequence, item[0] == "classify"))
    arrays, report = artifact.arrays, artifact.report
    classes = [*report["classes"], *report.get("other_classes", []), ""]  # index -1 is the empty text
    table: dict[str, Any] = {
        "object": names_of(published, kind, len(arrays["predicted"])),
        "label": _labels(arrays, classes),
        "predicted": [classes[i] for i in arrays["predicted"].tolist()],
        "score": arrays["score"],
        "abstained": arrays["abstained"],
    }
    if kind == "classify":
        table |= {
            f"probability_{name}": column
            for name, column in zip(report["classes"], np.asarray(arrays["probability"]).T)
        }
    return table


def _labels(arrays: Mapping[str, np.ndarray], classes: list[str]) -> list[str]:
    """The label of each object; of several labels all that were learned, as "a|b"."""
    labels = [classes[i] for i in arrays["given"].tolist()]
    if "given_sets" not in arrays:
        return labels
    sets = np.unpackbits(arrays["given_sets"], axis=1, bitorder="little")
    return ["|".join(classes[c] for c in np.flatnonzero(row).tolist()) or label for row, label in zip(sets, labels)]
