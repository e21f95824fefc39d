"""One row per object: its answers, place, group, neighbours and predictions.

The table `objects` and the report's table of objects. Columns that the state does not have are absent, and unknown
numbers are masked.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.counts.confidence import ObjectAnswers, answers_by_object
from stream_engine.evaluation.connection import are_connected, components
from stream_engine.evaluation.few_comparisons import comparisons_by_object, too_few
from stream_engine.exports import NothingToExport
from stream_engine.exports.clusters import grouping
from stream_engine.exports.files import NameColumn
from stream_engine.exports.label_predictions import predictions
from stream_engine.exports.models import any_beats_chance
from stream_engine.exports.object_places import ellipses_of, nearest, numbers, of_embedding, of_picture
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns

AXES = ("x", "y", "z")  # of a place; further ones are axis_4, axis_5, ...
NEAREST = ("nearest_1", "nearest_2", "nearest_3")
MAX_NEAREST_OBJECTS = 100_000  # objects, above which nobody's nearest are looked for: minutes in many dimensions
INTERVAL = 1.96  # standard deviations within which 95 % of a normal distribution lie


def table(published: Published) -> dict[str, Any]:
    """All objects, in the order of their ids. See `exports.declarations`."""
    if published.as_seen:  # an older artifact knows objects by the numbers that they had
        former_objects = published.as_seen.snapshot.objects
        row = {name: i for i, name in enumerate(former_objects)}
        order = np.array([row[name] for name in published.snapshot.objects], np.int64)
        columns_taken = {head: _reordered(values, order) for head, values in table(published.as_seen).items()}
        if "cluster_label" in columns_taken:  # of equal sizes, the one with the first object comes first
            labels = np.ma.filled(columns_taken["cluster_label"], -1)
            columns_taken["cluster"] = _where(labels >= 0, numbers(labels))
        return columns_taken
    snapshot = published.snapshot
    counts = None
    if snapshot.section("triplet_counts"):
        counts = answers_by_object(triplet_columns(snapshot), snapshot.section("quadruplet_counts") or None)
    known = any_beats_chance(published) if "embedding" in published.artifacts or grouping(published.artifacts) else None
    return columns(published, np.arange(len(snapshot.objects)), counts, known)


def _reordered(values: Any, order: np.ndarray) -> Any:
    if isinstance(values, NameColumn):
        return NameColumn(values.ids[order], values.names)
    return values[order] if isinstance(values, np.ndarray) else [values[i] for i in order.tolist()]


def columns(
    published: Published, ids: np.ndarray, object_answers: ObjectAnswers | None, beats_chance: bool | None
) -> dict[str, Any]:
    """Rows of the objects `ids` (k,). `object_answers` (n,) is what was answered, None where that is not counted.
    Without places, neighbours and groups if no model `beats_chance`, and without groups if there are several sets."""
    names = published.snapshot.objects
    table_columns: dict[str, Any] = {"object": NameColumn(ids, names)}
    if object_answers is not None:
        table_columns |= {name: getattr(object_answers, name)[ids] for name in ("answers", "contradicted")}
        table_columns["agreement"] = _where(~np.isnan(object_answers.agreement[ids]), object_answers.agreement[ids])
    sets = components(published.snapshot)
    if sets is not None and not are_connected(sets):
        table_columns["set"] = _where(sets[ids] >= 0, sets[ids] + 1)
    if beats_chance is not False:
        table_columns |= _clusters(published, ids) if are_connected(sets) else {}
        table_columns |= _places(published, ids, sets)
    labels: Mapping[str, str] = published.snapshot.labels
    if labels:
        table_columns["label"] = [labels.get(name) for name in table_columns["object"]]
    return table_columns | _predicted(published, ids)


def _where(defined: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(values, ~defined)


def _clusters(published: Published, ids: np.ndarray) -> dict[str, Any]:
    artifact = grouping(published.artifacts)
    if artifact is None:
        return {}
    n, labels = len(published.snapshot.objects), artifact.arrays["labels"]
    cluster = np.full(n, -1)
    cluster[: len(labels)] = labels
    if not (cluster >= 0).any():
        return {}
    grouped = cluster[ids] >= 0
    table_columns = {
        "cluster": _where(grouped, numbers(cluster)[ids]),
        "cluster_label": _where(grouped, cluster[ids]),
    }
    if "stability" in artifact.arrays:
        stability = np.zeros(n)
        stability[: len(labels)] = artifact.arrays["stability"]
        table_columns["stability"] = _where(grouped, stability[ids])
    return table_columns


def _places(published: Published, ids: np.ndarray, sets: np.ndarray | None) -> dict[str, Any]:
    """The place, the region of 95 % in the first two axes (in one dimension: the interval), the nearest three of those
    that have enough comparisons."""
    names = published.snapshot.objects
    places = of_embedding(published, len(names))
    if places is None:
        return {}
    d = places.points.shape[1]
    placed = np.isfinite(places.points[ids]).all(axis=1)
    cells: dict[str, Any] = {head: _where(placed, places.points[ids, axis]) for axis, head in enumerate(axis_heads(d))}
    for head, values in zip(axis_heads(d), _standard_errors(published, len(names))):
        cells[f"se_{head}"] = _where(placed, values[ids])
    if places.covariance is not None:
        covariance = places.covariance[ids][:, :2, :2]
        if d == 1:
            cells["ellipse_a"] = _where(placed, INTERVAL * np.sqrt(covariance[:, 0, 0]))
        elif d > 1:
            for head, values in zip(("ellipse_a", "ellipse_b", "ellipse_angle"), ellipses_of(covariance)):
                cells[head] = _where(placed, values)
    if (picture := of_picture(published, len(names))) is not None:
        cells |= {f"picture_{head}": _where(placed, picture.points[ids, axis]) for axis, head in enumerate("xy")}
    if len(names) > MAX_NEAREST_OBJECTS:
        return cells
    few = too_few(comparisons_by_object(published.snapshot), len(names))
    near = nearest(np.where(few[:, None], np.nan, places.points), ids, len(NEAREST), sets)
    return cells | {head: NameColumn(column, names) for head, column in zip(NEAREST, near.T)}


def _standard_errors(published: Published, n: int) -> np.ndarray:
    """(d, n) standard error of each coordinate, given the model; (0, n) where no covariances were computed."""
    artifact = published.artifacts["embedding"]
    if "covariance" not in artifact.arrays:
        return np.zeros((0, n))
    variance = np.diagonal(np.asarray(artifact.arrays["covariance"], float), axis1=1, axis2=2)
    errors = np.full((variance.shape[1], n), np.nan)
    errors[:, : len(variance)] = np.sqrt(np.maximum(variance, 0.0)).T
    return errors


def axis_heads(d: int) -> list[str]:
    """The columns of a place in d dimensions.

    >>> axis_heads(4)
    ['x', 'y', 'z', 'axis_4']
    """
    return [*AXES[:d], *(f"axis_{axis + 1}" for axis in range(len(AXES), d))]


def _predicted(published: Published, ids: np.ndarray) -> dict[str, list[Any]]:
    try:
        table_of_predictions = predictions(published)["predictions"].tables["predictions"]
    except NothingToExport:
        return {}
    of = dict(zip(table_of_predictions["object"], table_of_predictions["predicted"]))
    names = published.snapshot.objects
    return {"predicted": [of.get(names[i]) or None for i in ids.tolist()]}
