"""The map: where the objects lie, with names, clusters, and regions of 95 %."""

from collections.abc import Iterator

import numpy as np

from stream_engine.clustering.sentence import NOT_SEPARABLE, are_separated
from stream_engine.data.numbers_in_words import amount
from stream_engine.exports.object_places import PICTURE, ObjectCoordinates, ellipses_of
from stream_engine.report import Section
from stream_engine.report.drawings import Axis, Drawing, Ellipses, Points, Segments, extent
from stream_engine.report.findings import sentences
from stream_engine.report.findings.models import not_interpretable
from stream_engine.report.findings.words import listing, percent
from stream_engine.report.material import Material

HEIGHT = 440
TITLE = "Map"
MAX_ELLIPSES = 400  # objects whose regions can still be distinguished
ROOM_OF_NAMES = 1.12  # by which axes of several sets are longer than the largest set
MAX_SCALE_LINES = 200  # objects that a scale in one dimension has lines for


def section(material: Material) -> Section:
    """The map of the embedding, and how many dimensions it has and why."""
    places = material.drawn_map
    if places is None:
        return Section(
            TITLE,
            "There is no map yet: no embedding was fitted.",
            notes=(material.facts.commands.how_to_fit("embedding"),),
        )
    placed = np.isfinite(places.points[material.shown]).all(axis=1)
    ids = material.shown[placed]
    if not len(ids):
        return Section(TITLE, "There is no map yet: no object has an answer.")
    drawings = tuple(frames(material, places, ids))
    says = sentences(material.findings, "map")
    if places.name != PICTURE and places.points.shape[1] > 2:
        says += " The first two dimensions are drawn."
    uncertainty = _uncertainty(material, places, drawings[0])
    notes = [
        text
        for text in (
            material.sampled,
            _left_out(material, places),
            _uncertain(material, ids),
            uncertainty,
            _groups(material),
        )
        if text
    ]
    caution = material.facts.beats_chance is False or not material.facts.connected
    return Section(TITLE, says, drawings, (), tuple(notes), caution)


def frames(material: Material, places: ObjectCoordinates, ids: np.ndarray) -> Iterator[Drawing]:
    """A drawing of each set of objects, since the positions of sets that were never compared mean nothing beside each
    other; the largest set first."""
    draw = scale if places.points.shape[1] == 1 else plane
    sets = material.sets_of(ids)
    if len(sets) == 1:
        yield draw(material, places, ids)
        return
    centred = [places._replace(points=places.points - places.points[mine].mean(axis=0)) for mine in sets]
    yield from numbered(same_scale([draw(material, each, mine) for each, mine in zip(centred, sets)]))


def same_scale(drawings: list[Drawing]) -> list[Drawing]:
    """The drawings with axes as long as those of the largest."""
    extents = np.array([extent(drawing) for drawing in drawings])  # x0, x1, y0, y1
    room = ROOM_OF_NAMES * np.array([(extents[:, at + 1] - extents[:, at]).max() for at in (0, 2)]) / 2
    middle = (extents[:, ::2] + extents[:, 1::2]) / 2
    axes = ("x", "y") if drawings[0].equal else ("x",)
    return [
        drawing._replace(
            **{
                axis: getattr(drawing, axis)._replace(low=float(low), high=float(high))
                for axis, low, high in zip(axes, centre - room, centre + room)
            }
        )
        for drawing, centre in zip(drawings, middle)
    ]


def numbered(drawings: list[Drawing]) -> list[Drawing]:
    """A drawing of each set of objects, with its number where there are several."""
    if len(drawings) == 1:
        return drawings
    return [
        drawing._replace(
            name=drawing.name if number == 1 else f"{drawing.name}_{number}",
            title=f"{drawing.title}, set {number} of {len(drawings)}",
        )
        for number, drawing in enumerate(drawings, 1)
    ]


def plane(material: Material, places: ObjectCoordinates, ids: np.ndarray, first: int = 0, second: int = 1) -> Drawing:
    """Two axes of the map."""
    x, y = places.points[ids, first], places.points[ids, second]
    group = material.cluster[ids]
    number = np.searchsorted(material.shown, ids)
    marks: list = []
    if places.covariance is not None and len(ids) <= MAX_ELLIPSES:
        marks.append(
            Ellipses(
                x, y, *ellipses_of(places.covariance[ids][:, [first, second]][:, :, [first, second]]), number, group
            )
        )
    marks.append(Points(x, y, number, tuple(material.names[i] for i in ids.tolist()), group))
    report = material.published.artifacts["embedding"].report
    explained, label = report.get("explained", []), [f"axis {first + 1}", f"axis {second + 1}"]
    if places.name == PICTURE:
        label = [str(report["picture"]["by"]), "arbitrary units"]
    elif max(first, second) < len(explained) and material.facts.positions_comparable:
        label = [
            f"{text} ({percent(explained[axis], 0)} of the variance)" for text, axis in zip(label, (first, second))
        ]
    return Drawing(
        "map",
        "Map of the objects",
        f"{len(ids)} objects as points; {_uninterpretable(material) or CLOSENESS}.",
        Axis(label[0]),
        Axis(label[1]),
        tuple(marks),
        equal=True,
        zooms=True,
        width=800,
        height=HEIGHT,
        groups=legend(material, ids),
        about_groups=f"Parts: {caveat}." if (caveat := _caveat_of_groups(material)) else "",
        caveat=not_interpretable(material.facts) if _uninterpretable(material) else "",
    )


CLOSENESS = "close together where they are judged similar"


def _uninterpretable(material: Material) -> str:
    """That positions mean nothing where no model predicts the answers; "" where they do."""
    if material.facts.beats_chance is not False:
        return ""
    return "their places are not interpretable, since no model predicts the answers better than chance"


def scale(material: Material, places: ObjectCoordinates, ids: np.ndarray) -> Drawing:
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
        f"{len(order)} objects on a one-dimensional scale{_order_on_scale(material)}.",
        Axis("scale value"),
        Axis("objects in order", ticks=()),
        tuple(marks),
        zooms=True,
        width=800,
        height=int(np.clip(14 * len(order) + 60, 240, 3000)) if len(order) <= MAX_SCALE_LINES else HEIGHT,
        groups=legend(material, ids),
        about_groups=f"Parts: {caveat}." if (caveat := _caveat_of_groups(material)) else "",
        caveat=not_interpretable(material.facts) if _uninterpretable(material) else "",
    )


def _order_on_scale(material: Material) -> str:
    reason = _uninterpretable(material)
    return f"; {reason}" if reason else ", lowest first, each with its 95 % interval"


def legend(material: Material, ids: np.ndarray) -> tuple[tuple[int, str], ...]:
    """What the colours and shapes stand for: groups with their sizes, called parts where they are not separated;
    nothing where there are none."""
    groups, sizes = np.unique(material.cluster[ids], return_counts=True)
    if groups.max(initial=-1) < 0:
        return ()
    what = part_name(material)
    ungrouped = ids[material.cluster[ids] < 0]
    none = "too few comparisons" if len(ungrouped) and material.facts.too_few[ungrouped].all() else f"no {what}"
    sizes_of_all = material.facts.cluster_answer.get("sizes") or () if what == "group" else ()
    single = {group for group, size in enumerate(sizes_of_all) if size == 1}

    def name(group: int) -> str:
        if group in single:
            return f"{material.names[ids[material.cluster[ids] == group][0]]}, by itself"
        return f"{what} {group + 1}" if group >= 0 else none

    return tuple((group, f"{name(group)} ({size})") for group, size in zip(groups.tolist(), sizes.tolist()))


def part_name(material: Material) -> str:
    """What a part of the partition is called."""
    return "group" if are_separated(material.facts.cluster_answer) else "part"


def _groups(material: Material) -> str:
    """What may be believed of the colours, where that is not what they seem to say."""
    caveat = _caveat_of_groups(material)
    return f"Colours and shapes show the parts from the section Clusters; {caveat}." if caveat else ""


def _caveat_of_groups(material: Material) -> str:
    """Why the parts may be no groups; "" where they are, or where there are none."""
    if part_name(material) == "group" or (material.cluster < 0).all():
        return ""
    if material.facts.cluster_answer.get("grade") == NOT_SEPARABLE:
        return "they are not separable from parts of a continuum"
    return "it is not established that they are groups"


def _left_out(material: Material, places: ObjectCoordinates) -> str:
    missing = int((~np.isfinite(places.points).all(axis=1)).sum())
    what = amount(missing, "object had", "objects had")
    are = "is" if missing == 1 else "are"
    return f"{what} no answer when the map was fitted and {are} not shown." if missing else ""


def _uncertain(material: Material, ids: np.ndarray) -> str:
    """Which places are hardly known."""
    few = [material.names[i] for i in ids[material.facts.too_few[ids]].tolist()]
    if not few:
        return ""
    places = "The place of an object" if len(few) == 1 else f"The places of {len(few):,} objects"
    grey = "" if (material.cluster < 0).all() else " (grey)"
    return f"{places} with too few comparisons{grey} {'is' if len(few) == 1 else 'are'} uncertain: {listing(few)}."


def _uncertainty(material: Material, places: ObjectCoordinates, drawing: Drawing) -> str:
    if places.name == PICTURE:
        return ""
    if reason := material.facts.report("embedding").get("no_regions"):
        return f"No confidence regions are shown, because they may not cover 95 %: {str(reason)[:200]}."
    if places.covariance is None:
        return "Confidence regions were not computed: too many objects and dimensions."
    kinds = {type(mark) for mark in drawing.marks}
    if Ellipses in kinds:
        return "Ellipses: 95 % regions of the coordinates, given the model."
    if Segments in kinds:
        return "Lines: 95 % intervals of the coordinates, given the model."
    return f"95 % regions are drawn for up to {MAX_ELLIPSES} objects; the export `objects` has them for all."
