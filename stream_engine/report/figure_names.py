"""Names and pictures of objects on matplotlib's axes, none over another."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_engine.report.drawings import Drawing, Points, shortened
from stream_engine.report.figure_marks import GREY, colour
from stream_engine.report.labels import Box, OccupiedBoxes, holds, label_positions

DPI = 300  # of PNG, and of pictures in the others
LINE_OF_PAGE = 11.0  # pixels of the text of a line on the page
MAX_TIED_NAMES = 150  # of a map whose names are tied to points by lines where there is no room beside them


def _laid_out(axes: Any) -> Any:
    """The box of the axes on the figure, in points, once everything around them has its place."""
    root = axes.figure.canvas.figure
    root.draw_without_rendering()
    return axes.get_window_extent().transformed(root.dpi_scale_trans.inverted()).transformed(_points_of_inch())


def _points_of_inch() -> Any:
    from matplotlib.transforms import Affine2D

    return Affine2D().scale(72)


def _at(mark: Points, axes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where points lie on the figure, in typographic points."""
    at = axes.transData.transform(np.stack([mark.x, mark.y], axis=1)) * 72 / axes.figure.canvas.figure.dpi
    return at[:, 0], at[:, 1]


def draw_thumbnails(drawing: Drawing, axes: Any, size: float, pictures: Mapping[str, bytes]) -> list[Box]:
    """Show pictures of objects in place of their points, none over another; returns where they are, in points."""
    shown: list[Box] = []
    marks = [mark for mark in drawing.marks if isinstance(mark, Points)] if pictures else []
    if not marks:
        return shown
    box = _laid_out(axes)
    for mark in marks:
        x, y = _at(mark, axes)
        side = thumbnail_side(x, y, 1.6 * size, 5 * size)
        occupied, within = OccupiedBoxes(2 * side), (box.x0, box.x1, box.y0, box.y1)
        tied, ties = list[int](), list[tuple[float, float, float, float]]()
        for i in (i for i, name in enumerate(mark.names) if name in pictures):
            at = (x[i] - side / 2, x[i] + side / 2, y[i] - side / 2, y[i] + side / 2)
            alone = (np.maximum(abs(x - x[i]), abs(y - y[i])) < side / 2).sum() == 1
            if alone and holds(within, at) and occupied.free(at):
                occupied.add(at)
                shown.append(at)
                _thumbnail(mark, i, (0.0, 0.0), axes, pictures, side)
            else:
                tied.append(i)
        lines = len(tied) <= MAX_TIED_NAMES
        for spot in label_positions(x[tied], y[tied], np.full(len(tied), side), side, within, lines, shown):
            i = tied[spot.number]
            middle = spot.x + spot.side * side / 2
            shown.append((middle - side / 2, middle + side / 2, spot.y - side / 2, spot.y + side / 2))
            away = middle - float(x[i]), spot.y - float(y[i])
            ties.append((mark.x[i], mark.y[i], *away))
            _thumbnail(mark, i, away, axes, pictures, side)
        _tie(ties, axes, 3.4)
    return shown


def _tie(ties: Sequence[tuple[float, float, float, float]], axes: Any, zorder: float) -> None:
    """Lines from places (x, y) of the axes to what stands so many points away from them. Much faster than one arrow
    each, whose ends matplotlib cuts at boxes by bisection."""
    from matplotlib.collections import LineCollection
    from matplotlib.transforms import Affine2D

    if ties:
        away = np.array([tie[2:] for tie in ties])
        begin = away * np.minimum(2.0 / np.maximum(np.hypot(*away.T), 2.0), 1.0)[:, None]  # beside the point, not on it
        lines = LineCollection(
            list(np.stack([begin, away], axis=1)),
            offsets=[tie[:2] for tie in ties],
            offset_transform=axes.transData,
            transform=Affine2D().scale(1 / 72) + axes.figure.canvas.figure.dpi_scale_trans,
            colors=GREY,
            linewidths=0.3,
            zorder=zorder,
        )
        axes.add_collection(lines, autolim=False)


def _thumbnail(
    mark: Points, i: int, away: tuple[float, float], axes: Any, pictures: Mapping[str, bytes], side: float
) -> None:
    """A picture, so many points `away` from its object."""
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage
    from PIL import Image

    image = Image.open(io.BytesIO(pictures[mark.names[i]]), formats=("JPEG",))
    image.thumbnail((int(np.ceil(side * DPI / 72)),) * 2)  # as large as it is printed
    picture = OffsetImage(np.asarray(image), zoom=0.9 * side / max(image.size), dpi_cor=True)
    frame = {"edgecolor": colour(int(mark.group[i])), "linewidth": 0.8, "facecolor": "white"}
    place: dict[str, Any] = {"xybox": away, "boxcoords": "offset points", "zorder": 3.5}
    axes.add_artist(AnnotationBbox(picture, (mark.x[i], mark.y[i]), pad=0.05, bboxprops=frame, **place))


def thumbnail_side(x: np.ndarray, y: np.ndarray, least: float, most: float) -> float:
    """The side of thumbnails at these places: about the distance of two neighbours, so that most have room."""
    if len(x) < 2:
        return most
    from scipy.spatial import cKDTree

    near = cKDTree(np.stack([x, y], axis=1)).query(np.stack([x, y], axis=1), 2)[0][:, 1]
    return float(np.clip(np.median(near), least, most))


def draw_names(
    drawing: Drawing,
    axes: Any,
    size: float,
    boxes: list[Box],
    pictures: Mapping[str, bytes],
    texts: Sequence[str] | None = None,
) -> None:
    """Names of objects that have no picture, or `texts` instead, by id, beside their points; none over another or over
    a picture."""
    for mark in (mark for mark in drawing.marks if isinstance(mark, Points)):
        bare = np.array([i for i, name in enumerate(mark.names) if name not in pictures], np.intp)
        box = _laid_out(axes)
        unit = size / LINE_OF_PAGE  # points of a pixel, in which `label_positions` has its distances
        x, y = (coordinate[bare] / unit for coordinate in _at(mark, axes))
        whole = [mark.names[i] if texts is None else str(texts[mark.ids[i]]) for i in bare]
        names = [shortened(name) for name in whole]
        widths = np.array([_width(name, LINE_OF_PAGE) + 2 for name in names])
        within, *occupied = (
            tuple(edge / unit for edge in box_edges) for box_edges in ((box.x0, box.x1, box.y0, box.y1), *boxes)
        )
        ties = list[tuple[float, float, float, float]]()
        for name in label_positions(x, y, widths, 1.15 * LINE_OF_PAGE, within, len(names) <= MAX_TIED_NAMES, occupied):
            i = name.number
            place, away = (mark.x[bare[i]], mark.y[bare[i]]), (name.x - float(x[i]), name.y - float(y[i]))
            if name.far:  # the line ends at the name's edge
                ends = away[0], away[1] - (0 if name.side else 0.5 * LINE_OF_PAGE * float(np.sign(away[1])))
                ties.append((*place, ends[0] * unit, ends[1] * unit))
            axes.annotate(
                names[i],
                place,
                (away[0] * unit, away[1] * unit),
                textcoords="offset points",
                fontsize=size,
                ha={1: "left", 0: "center", -1: "right"}[name.side],
                va="center",
                zorder=4,
            )
        _tie(ties, axes, 2.5)


def _width(text: str, size: float) -> float:
    """Of a text in the present font, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text.replace("$", r"\$"), size=size, prop=FontProperties()).get_extents().width)
