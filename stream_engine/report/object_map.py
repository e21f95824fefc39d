"""The map: where the objects lie, with names, clusters, and regions of 95 %."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stream_engine.exports.object_places import Places, ellipses_of
from stream_engine.report import Section
from stream_engine.report.drawings import Axis, Drawing, Ellipses, Points, Segments
from stream_engine.report.material import Material
from stream_engine.report.words import percent, some

HEIGHT = 560
CLUSTERS, CONTINUUM = "clusters", "no clusters: a continuum"  # as `refits.cluster_verdict` says it, without how many
MOST_ELLIPSES = 400  # objects whose regions can still be told apart
ON_A_SCALE = 200  # objects that a scale in one dimension has lines for


def section(material: Material) -> Section:
    """The map of the embedding, and how many dimensions it has and why."""
    places = material.places
    if places is None:
        return Section(
            "The map",
            "There is no map yet: no embedding was fitted.",
            notes=(f"Fit one with: stream-engine refit --state {material.directory} embedding",),
        )
    known = np.isfinite(places.points[material.shown]).all(axis=1)
    ids = material.shown[known]
    if not len(ids):
        return Section("The map", "There is no map yet: nothing was asked about any object.")
    drawing = (scale if places.points.shape[1] == 1 else plane)(material, places, ids)
    artifact = material.published.artifacts["embedding"]
    says = _says(artifact.report, places, artifact.params.get("dimensions") is None)
    sure = _how_sure(places, drawing)
    notes = [text for text in (material.sampled, _left_out(material, places), sure, _groups(material)) if text]
    return Section("The map", says, (drawing,), (), tuple(notes))


def plane(material: Material, places: Places, ids: np.ndarray, first: int = 0, second: int = 1) -> Drawing:
    """Two axes of the map."""
    x, y = places.points[ids, first], places.points[ids, second]
    group = material.cluster[ids]
    number = np.searchsorted(material.shown, ids)
    marks: list = []
    if places.covariance is not None and len(ids) <= MOST_ELLIPSES:
        marks.append(
            Ellipses(
                x, y, *ellipses_of(places.covariance[ids][:, [first, second]][:, :, [first, second]]), number, group
            )
        )
    marks.append(Points(x, y, number, tuple(material.names[i] for i in ids.tolist()), group))
    explained = material.published.artifacts["embedding"].report.get("explained", [])
    label = [
        f"axis {axis + 1}" + (f" ({percent(explained[axis], 0)} of the spread)" if axis < len(explained) else "")
        for axis in (first, second)
    ]
    return Drawing(
        "map",
        "Map of the objects",
        f"{len(ids)} objects as points; near each other where people say that they are alike.",
        Axis(label[0]),
        Axis(label[1]),
        tuple(marks),
        equal=True,
        zooms=True,
        width=800,
        height=HEIGHT,
        groups=legend(material, ids),
    )


def scale(material: Material, places: Places, ids: np.ndarray) -> Drawing:
    """One axis: an object a line, in order, with its interval of 95 %."""
    order = ids[np.argsort(places.points[ids, 0], kind="stable")]
    number = np.searchsorted(material.shown, order)
    x, y, group = places.points[order, 0], np.arange(len(order), dtype=float), material.cluster[order]
    marks: list = []
    if places.covariance is not None:
        half = 1.96 * np.sqrt(places.covariance[order, 0, 0].astype(float))
        marks.append(Segments(np.stack([x - half, y, x + half, y], axis=1), group))
    marks.append(Points(x, y, number, tuple(material.names[i] for i in order.tolist()), group))
    return Drawing(
        "map",
        "Scale of the objects",
        f"{len(order)} objects on a scale of one dimension, the lowest first, each with its interval of 95 %.",
        Axis("scale value"),
        Axis("objects in order", ticks=()),
        tuple(marks),
        zooms=True,
        width=800,
        height=int(np.clip(14 * len(order) + 60, 240, 3000)) if len(order) <= ON_A_SCALE else HEIGHT,
        groups=legend(material, ids),
    )


def legend(material: Material, ids: np.ndarray) -> tuple[tuple[int, str], ...]:
    """What the colours and shapes stand for: clusters with their sizes, called groups where the verdict is another one;
    nothing where there are none."""
    groups, sizes = np.unique(material.cluster[ids], return_counts=True)
    if groups.max(initial=-1) < 0:
        return ()
    what = "cluster" if _verdict(material) in ("", CLUSTERS) else "group"
    return tuple(
        (group, f"{what} {group} ({size})" if group >= 0 else f"in no {what} ({size})")
        for group, size in zip(groups.tolist(), sizes.tolist())
    )


def _says(report: Mapping[str, Any], places: Places, chosen: bool) -> str:
    """`chosen`: nobody said how many dimensions it is to have."""
    d = places.points.shape[1]
    kernel = {"ste": "STE", "t-ste": "t-STE"}.get(report["kernel"], report["kernel"])
    says = f"Objects that people call alike lie near each other ({kernel}, {some(d, 'dimension')}"
    says += ", the first two drawn)." if d > 2 else ")."
    least = report.get("dimensions_at_least")
    if least is not None and least > 1:
        says += (
            f" At least {some(least, 'dimension is', 'dimensions are')} needed: with fewer, held-out answers are "
            f"foretold significantly worse.{_one_more(report, least)}"
        )
    elif str(report.get("dimensions_tested", "")).startswith("no: "):
        says += f" How many dimensions are needed was not tested: {report['dimensions_tested'].removeprefix('no: ')}."
    if least is not None and d > least and chosen:
        says += f" The map has {d}, the fewest of those tried that foretell held-out answers about as well as any."
    return says


def _one_more(report: Mapping[str, Any], least: int) -> str:
    """That the step after the last one shown is not shown, which proves nothing."""
    tested = report.get("dimensions_tested")
    p = tested.get("p_values", []) if isinstance(tested, Mapping) else []
    told = f" (p = {p[least - 1]:.2g})" if len(p) >= least and type(p[least - 1]) in (int, float) else ""
    return f" One more is not shown to be needed{told}: that rules nothing out, more answers may show it."


def _groups(material: Material) -> str:
    """What may be believed of the colours, where that is not what they seem to say."""
    verdict = _verdict(material)
    if verdict in ("", CLUSTERS):
        return ""
    found = "there is a continuum and no clusters" if verdict == CONTINUUM else "nobody can tell whether there are any"
    return f"Colours and shapes are the groups of the section Clusters, where {found}."


def _verdict(material: Material) -> str:
    """CLUSTERS, CONTINUUM, or that nobody can tell; "" where that was not asked."""
    artifact = material.artifact("sdp_clustering")
    said = str(artifact.report.get("verdict") or "") if artifact is not None else ""
    return CLUSTERS if said.removesuffix(CLUSTERS).strip().isdecimal() else said


def _left_out(material: Material, places: Places) -> str:
    missing = int((~np.isfinite(places.points).all(axis=1)).sum())
    what = some(missing, "object was not asked about", "objects were not asked about")
    return f"{what} when it was fitted, and not on it." if missing else ""


def _how_sure(places: Places, drawing: Drawing) -> str:
    if places.covariance is None:
        return "How sure each place is was not computed: there are too many objects and dimensions for it."
    drawn = {type(mark) for mark in drawing.marks}
    if Ellipses in drawn:
        return "An ellipse is where an object's place lies with 95 % probability, given the model."
    if Segments in drawn:
        return "A line is where an object's place lies with 95 % probability, given the model."
    return f"How sure each place is is drawn for up to {MOST_ELLIPSES} objects; the export objects has it for all."
