"""One row an object: what was answered about it, where it lies, with whom, and what is predicted of it.

The table `objects` for people; the report's table of objects is made of the same columns. Columns of what the state
does not hold are left out. O(keys log keys + n log n). Numbers are masked where nothing is known.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.counts.confidence import ObjectAnswers, answers_by_object
from stream_engine.exports import NothingToExport
from stream_engine.exports.classes import predictions
from stream_engine.exports.naming import NameColumn
from stream_engine.exports.object_places import ellipses_of, nearest, of_embedding, of_picture
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns

AXES = ("x", "y", "z")  # of a place; further ones are axis_4, axis_5, ...
NEAREST = ("nearest_1", "nearest_2", "nearest_3")
MOST_NEAREST = 100_000  # objects, above which nobody's nearest are looked for: minutes in many dimensions
INTERVAL = 1.96  # standard deviations within which 95 % of a normal distribution lie


def table(published: Published) -> dict[str, Any]:
    """All objects, in the order of their ids. See `exports.declarations`."""
    if published.as_seen:  # an older artifact knows objects by the numbers that they had
        seen = published.as_seen.snapshot.objects
        row = {name: i for i, name in enumerate(seen)}
        order = np.array([row[name] for name in published.snapshot.objects], np.int64)
        return {head: _taken(values, order) for head, values in table(published.as_seen).items()}
    snapshot = published.snapshot
    known = None
    if snapshot.section("triplet_counts"):
        known = answers_by_object(triplet_columns(snapshot), snapshot.section("quadruplet_counts") or None)
    return columns(published, np.arange(len(snapshot.objects)), known)


def _taken(values: Any, order: np.ndarray) -> Any:
    if isinstance(values, NameColumn):
        return NameColumn(values.ids[order], values.names)
    return values[order] if isinstance(values, np.ndarray) else [values[i] for i in order.tolist()]


def columns(published: Published, ids: np.ndarray, known: ObjectAnswers | None) -> dict[str, Any]:
    """Rows of the objects `ids` (k,). `known` (n,) is what was answered, None where that is not counted."""
    names = published.snapshot.objects
    found: dict[str, Any] = {"object": NameColumn(ids, names)}
    if known is not None:
        found |= {name: getattr(known, name)[ids] for name in ("answers", "contradicted")}
        found["agreement"] = _where(~np.isnan(known.agreement[ids]), known.agreement[ids])
    found |= _clusters(published, ids)
    found |= _places(published, ids)
    labels: Mapping[str, str] = published.snapshot.labels
    if labels:
        found["label"] = [labels.get(name) for name in found["object"]]
    return found | _predicted(published, ids)


def _where(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(values, ~known)


def _clusters(published: Published, ids: np.ndarray) -> dict[str, Any]:
    artifact = published.artifacts.get("sdp_clustering")
    if artifact is None:
        return {}
    n, labels = len(published.snapshot.objects), artifact.arrays["labels"]
    cluster = np.full(n, -1)
    cluster[: len(labels)] = labels
    if not (cluster >= 0).any():
        return {}
    found = {"cluster": _where(cluster[ids] >= 0, cluster[ids])}
    if "stability" in artifact.arrays:
        stability = np.zeros(n)
        stability[: len(labels)] = artifact.arrays["stability"]
        found["stability"] = _where(cluster[ids] >= 0, stability[ids])
    return found


def _places(published: Published, ids: np.ndarray) -> dict[str, Any]:
    """The place, the region of 95 % in the first two axes (in one dimension: the interval), the nearest three."""
    names = published.snapshot.objects
    places = of_embedding(published, len(names))
    if places is None:
        return {}
    d = places.points.shape[1]
    there = np.isfinite(places.points[ids]).all(axis=1)
    found: dict[str, Any] = {head: _where(there, places.points[ids, axis]) for axis, head in enumerate(axis_heads(d))}
    if places.covariance is not None:
        covariance = places.covariance[ids][:, :2, :2]
        if d == 1:
            found["ellipse_a"] = _where(there, INTERVAL * np.sqrt(covariance[:, 0, 0]))
        elif d > 1:
            for head, values in zip(("ellipse_a", "ellipse_b", "ellipse_angle"), ellipses_of(covariance)):
                found[head] = _where(there, values)
    if (shown := of_picture(published, len(names))) is not None:
        found |= {f"picture_{head}": _where(there, shown.points[ids, axis]) for axis, head in enumerate("xy")}
    if len(names) > MOST_NEAREST:
        return found
    near = nearest(places.points, ids, len(NEAREST))
    return found | {head: NameColumn(column, names) for head, column in zip(NEAREST, near.T)}


def axis_heads(d: int) -> list[str]:
    """The columns of a place in d dimensions.

    >>> axis_heads(4)
    ['x', 'y', 'z', 'axis_4']
    """
    return [*AXES[:d], *(f"axis_{axis + 1}" for axis in range(len(AXES), d))]


def _predicted(published: Published, ids: np.ndarray) -> dict[str, list[Any]]:
    try:
        made = predictions(published)["predictions"].tables["predictions"]
    except NothingToExport:
        return {}
    of = dict(zip(made["object"], made["predicted"]))
    names = published.snapshot.objects
    return {"predicted": [of.get(names[i]) or None for i in ids.tolist()]}
