"""Figures for papers: a drawing as SVG, PDF and PNG by matplotlib, fonts embedded, groups distinguished by shape and
colour. All text has the size that was asked for, whatever the width.

How wide figures for papers are, and in which font: what `--figure-width`, `--font` and `--font-size` say.
"""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from stream_engine.report.drawings import (
    COLOURS,
    Bars,
    Curve,
    Drawing,
    Ellipses,
    Points,
    Rules,
    Segments,
    extent,
    rule_texts,
    shape_number,
)
from stream_engine.report.labels import Box, OccupiedBoxes, holds, placed

WIDTHS = 30.0, 600.0  # millimetres, the narrowest and the widest
SIZES = 4.0, 36.0  # points
MILLIMETRES = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72}


class BadStyle(ValueError):
    """A figure cannot be made like that; the message is one line: option, what was got and expected."""


class FigureStyle(NamedTuple):
    """Width in millimetres, family of the font ("": matplotlib's own), its size in points, and whether regions of 95 %
    are drawn. By default a figure fits one column, and its text is not smaller than 8 points."""

    width: float = 85.0
    font: str = ""
    size: float = 8.0
    regions: bool = False


ONE_COLUMN = FigureStyle()


def style_of(width: str, font: str | None, size: str, regions: bool = False) -> FigureStyle:
    """The style that a person has asked for. Raises `BadStyle`.

    >>> style_of("17.4cm", None, "9pt")
    FigureStyle(width=174.0, font='', size=9.0, regions=False)
    >>> style_of("252pt", None, "8").width
    88.9
    """
    said, unit = _number(width, "|".join(MILLIMETRES))
    millimetres = round(said * MILLIMETRES.get(unit, float("nan")), 9)
    if not WIDTHS[0] <= millimetres <= WIDTHS[1]:
        expected = "expected 30mm to 600mm, such as 85mm, 17.4cm, 3.3in or 240pt"
        raise BadStyle(f"--figure-width: got {width[:40]!r}, {expected}")
    points, _ = _number(size, "(?:pt)?")
    if not SIZES[0] <= points <= SIZES[1]:
        raise BadStyle(f"--font-size: got {size[:40]!r}, expected 4pt to 36pt")
    return FigureStyle(millimetres, _installed(font) if font else "", points, regions)


def _number(text: str, units: str) -> tuple[float, str]:
    found = re.fullmatch(rf"\s*(\d{{1,6}}(?:\.\d{{1,6}})?)\s*({units})\s*", text)
    return (float(found[1]), found[2]) if found else (float("nan"), "")


def _installed(font: str) -> str:
    """A family that matplotlib finds here. Raises `BadStyle`."""
    from matplotlib import font_manager

    generic = {"serif", "sans-serif", "monospace"}
    families = {each.name for each in font_manager.fontManager.ttflist} | generic
    known = {each.lower(): each for each in families}
    if font.lower() not in known:
        usual = [each for each in sorted(families) if not each.startswith(("cm", "STIX", "Last Resort"))]
        more = f" and {len(usual) - 12} more" if len(usual) > 12 else ""
        raise BadStyle(
            f"--font: got {font[:40]!r}, which is not installed; expected one of {', '.join(usual[:12])}{more}"
        )
    return known[font.lower()]


FORMATS = ("svg", "pdf", "png")
DPI = 300  # of PNG, and of pictures in the others
MARKERS = ("o", "s", "^", "D", "X", "v", "P", "p")  # as `drawings.SHAPES`
TALL = 500  # pixels of a drawing, above which it has a line for each object
LINE_OF_PAGE = 11.0  # pixels of the text of such a line on the page
PAPER = 9.4 * 72  # points: the height of a page that a figure may fill
LONGEST = 24  # letters of a name
LOWEST, HIGHEST = 0.4, 1.2  # height of a map, in terms of its width
ROOM = 3.0  # times what all names of a map take that it has at least, so that few lines cross
LINES_UP_TO = 150  # objects, whose names are tied to them by lines where there is no room beside them
NONE = "#8b949e"  # of what is in no group
GREY = "#666666"
STYLE: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "pdf.compression": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "stream-engine",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
}  # equal figures, equal bytes
NO_PICTURES: Mapping[str, bytes] = MappingProxyType({})


class Markers(NamedTuple):
    """How points are drawn where it is not by groups: colours and sizes as matplotlib's `scatter` takes them, one for
    all or by the ids of the points, and its other keywords."""

    c: Any = None
    s: Any = None
    more: Mapping[str, Any] = MappingProxyType({})


BY_GROUP = Markers()


def encoded(
    drawing: Drawing, format: str, style: FigureStyle = ONE_COLUMN, pictures: Mapping[str, bytes] = NO_PICTURES
) -> bytes:
    """The bytes of one figure, "svg", "pdf" or "png". `pictures`: JPEGs by the names of objects, shown as marks."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not style.regions:
        drawing = drawing._replace(marks=tuple(mark for mark in drawing.marks if not isinstance(mark, Ellipses)))
    size = {"font.size": style.size, "axes.labelsize": style.size, "legend.fontsize": style.size}
    size |= {"xtick.labelsize": style.size, "ytick.labelsize": style.size}
    family = {"font.family": [style.font, "DejaVu Sans"]} if style.font else {}
    with matplotlib.rc_context(STYLE | size | family), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a letter that no font here has is a box
        figure = Figure(figsize=_inches(drawing, style, pictures), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        _marks(drawing, axes, style.size, lowest=_lowest(drawing, style, pictures))
        if drawing.groups:
            longest = max(len(text) for _, text in drawing.groups)
            columns = int(style.width / 25.4 * 72 / (style.size * (0.6 * longest + 2.5)))
            handles, texts = axes.get_legend_handles_labels()
            figure.legend(
                handles,
                texts,
                loc="outside lower center",
                frameon=False,
                ncols=max(min(columns, len(texts)), 1),
                columnspacing=0.8,
                handletextpad=0.1,
            )
        _fit_texts(axes, style.size)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # what follows stays inside the axes: everything has its place
        _name(drawing, axes, style.size, _thumbnails(drawing, axes, style.size, pictures), pictures)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=format, metadata=UNDATED[format], dpi=DPI)
    return buffer.getvalue()


def draw(
    drawing: Drawing,
    axes: Any,
    pictures: Mapping[str, bytes] = NO_PICTURES,
    labels: bool | Sequence[str] = True,
    markers: Markers = BY_GROUP,
) -> Any:
    """Draw on matplotlib's Axes, with matplotlib's present settings; returns them. `labels`: whether names stand beside
    points, or the texts that do, by the ids of the points."""
    import matplotlib

    size = float(matplotlib.rcParams["font.size"]) * 0.8
    _marks(drawing, axes, size, markers)
    if drawing.groups and markers.c is None:
        axes.legend(fontsize=size, frameon=False, loc="best")
    shown = _thumbnails(drawing, axes, size, pictures)
    if labels is not False:
        _name(drawing, axes, size, shown, pictures, None if labels is True else labels)
    return axes


def _lowest(drawing: Drawing, style: FigureStyle, pictures: Mapping[str, bytes]) -> float:
    """The least height of a map, in terms of its width: where all names are to be shown, they need room."""
    names = [name for mark in drawing.marks if isinstance(mark, Points) for name in mark.names]
    if len(names) > LINES_UP_TO:
        return LOWEST
    letters = sum(9 if name in pictures else min(len(name), LONGEST) + 1 for name in names)
    taken = letters * 0.6 * 1.15 * style.size**2
    return float(np.clip(ROOM * taken / (style.width / 25.4 * 72) ** 2, LOWEST, HIGHEST))


def _inches(drawing: Drawing, style: FigureStyle, pictures: Mapping[str, bytes]) -> tuple[float, float]:
    """Width and height: that of a map follows its extent and its names, that of a list its lines, up to a page."""
    width = style.width / 25.4
    if drawing.height > TALL:
        return width, min(drawing.height * style.size / LINE_OF_PAGE, PAPER) / 72
    ratio = drawing.height / drawing.width
    if drawing.equal:
        x0, x1, y0, y1 = extent(drawing)
        least = max(0.55, _lowest(drawing, style, pictures))
        ratio = float(np.clip((y1 - y0) / (x1 - x0), least, HIGHEST))
    room = 2.2 * style.size * len(drawing.groups) / 72 / 3  # of the legend
    return width, min(max(width * ratio, 12 * style.size / 72) + room, PAPER / 72)


def _marks(drawing: Drawing, axes: Any, size: float, markers: Markers = BY_GROUP, lowest: float = LOWEST) -> None:
    for mark in drawing.marks:
        if isinstance(mark, Points):
            _points(mark, axes, drawing, size, markers)
        else:
            _DRAWN_BY[type(mark)](mark, axes, drawing, size)
    x0, x1, y0, y1 = extent(drawing)
    if drawing.equal and drawing.x.low is None:  # names need room at the edges
        x0, x1 = x0 - 0.06 * (x1 - x0), x1 + 0.06 * (x1 - x0)
    if drawing.equal and (missing := (lowest * (x1 - x0) - (y1 - y0)) / 2) > 0:  # on a strip, no name has room
        y0, y1 = y0 - missing, y1 + missing
    axes.set_xlim(x0, x1)
    axes.set_ylim(y0, y1)
    if drawing.equal:
        axes.set_aspect("equal", adjustable="box")
    for axis, own, set_label in ((axes.xaxis, drawing.x, axes.set_xlabel), (axes.yaxis, drawing.y, axes.set_ylabel)):
        set_label(own.label)
        if own.ticks is not None or drawing.equal:  # the units of a map are arbitrary
            axis.set_ticks([place for place, _ in own.ticks or ()], [text for _, text in own.ticks or ()])


def _fit_texts(axes: Any, size: float) -> None:
    """Labels are not longer than their axes, nor texts of a list of lines taller than a line."""
    wide, high = (each * 72 - 5 * size for each in axes.figure.get_size_inches())
    for room, text, set_label in (
        (wide, axes.get_xlabel(), axes.set_xlabel),
        (high, axes.get_ylabel(), axes.set_ylabel),
    ):
        set_label(textwrap.fill(text, max(int(room / (0.55 * size)), 12)))
    if len(texts := axes.get_yticklabels()) > 12:
        axes.tick_params(axis="y", labelsize=min(size, 0.95 * high / len(texts)), length=0)


def _colour(group: int) -> str:
    return COLOURS[group % len(COLOURS)] if group >= 0 else NONE


def _points(mark: Points, axes: Any, drawing: Drawing, size: float, markers: Markers) -> None:
    s: Any = (0.5 * size) ** 2 if markers.s is None else _by_id(markers.s, mark)
    how = {"linewidths": 0.3, "edgecolors": "#333333", "zorder": 3, **markers.more}
    if markers.c is not None:
        axes.scatter(mark.x, mark.y, s=s, c=_by_id(markers.c, mark), **how)
        return
    said = dict(drawing.groups)
    for group in np.unique(mark.group).tolist():
        of = mark.group == group
        own = {"marker": MARKERS[shape_number(group)], "color": _colour(group), "label": said.get(group), **how}
        axes.scatter(mark.x[of], mark.y[of], s=s if np.ndim(s) == 0 else s[of], **own)


def _by_id(given: Any, mark: Points) -> Any:
    return given[mark.ids] if isinstance(given, np.ndarray) else given


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


def _thumbnails(drawing: Drawing, axes: Any, size: float, pictures: Mapping[str, bytes]) -> list[Box]:
    """Show pictures of objects in place of their points, none over another; returns where they are, in points."""
    shown: list[Box] = []
    marks = [mark for mark in drawing.marks if isinstance(mark, Points)] if pictures else []
    if not marks:
        return shown
    box = _laid_out(axes)
    for mark in marks:
        x, y = _at(mark, axes)
        side = thumbnail_side(x, y, 1.6 * size, 5 * size)
        taken, within = OccupiedBoxes(2 * side), (box.x0, box.x1, box.y0, box.y1)
        left, ties = list[int](), list[tuple[float, float, float, float]]()
        for i in (i for i, name in enumerate(mark.names) if name in pictures):
            at = (x[i] - side / 2, x[i] + side / 2, y[i] - side / 2, y[i] + side / 2)
            alone = (np.maximum(abs(x - x[i]), abs(y - y[i])) < side / 2).sum() == 1
            if alone and holds(within, at) and taken.free(at):
                taken.add(at)
                shown.append(at)
                _thumbnail(mark, i, (0.0, 0.0), axes, pictures, side)
            else:
                left.append(i)
        lines = len(left) <= LINES_UP_TO
        for each in placed(x[left], y[left], np.full(len(left), side), side, within, lines, shown):
            i = left[each.number]
            middle = each.x + each.side * side / 2
            shown.append((middle - side / 2, middle + side / 2, each.y - side / 2, each.y + side / 2))
            away = middle - float(x[i]), each.y - float(y[i])
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
    made = OffsetImage(np.asarray(image), zoom=0.9 * side / max(image.size), dpi_cor=True)
    frame = {"edgecolor": _colour(int(mark.group[i])), "linewidth": 0.8, "facecolor": "white"}
    place: dict[str, Any] = {"xybox": away, "boxcoords": "offset points", "zorder": 3.5}
    axes.add_artist(AnnotationBbox(made, (mark.x[i], mark.y[i]), pad=0.05, bboxprops=frame, **place))


def thumbnail_side(x: np.ndarray, y: np.ndarray, least: float, most: float) -> float:
    """The side of thumbnails at these places: about the distance of two neighbours, so that most have room."""
    if len(x) < 2:
        return most
    from scipy.spatial import cKDTree

    near = cKDTree(np.stack([x, y], axis=1)).query(np.stack([x, y], axis=1), 2)[0][:, 1]
    return float(np.clip(np.median(near), least, most))


def _name(
    drawing: Drawing,
    axes: Any,
    size: float,
    taken: list[Box],
    pictures: Mapping[str, bytes],
    texts: Sequence[str] | None = None,
) -> None:
    """Names of objects that have no picture, or `texts` instead, by id, beside their points; none over another or over
    a picture."""
    for mark in (mark for mark in drawing.marks if isinstance(mark, Points)):
        bare = np.array([i for i, name in enumerate(mark.names) if name not in pictures], np.intp)
        box = _laid_out(axes)
        unit = size / LINE_OF_PAGE  # points of a pixel, in which `placed` has its distances
        x, y = (each[bare] / unit for each in _at(mark, axes))
        whole = [mark.names[i] if texts is None else str(texts[mark.ids[i]]) for i in bare]
        names = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in whole]
        widths = np.array([_width(name, LINE_OF_PAGE) + 2 for name in names])
        within, *occupied = (tuple(edge / unit for edge in each) for each in ((box.x0, box.x1, box.y0, box.y1), *taken))
        ties = list[tuple[float, float, float, float]]()
        for name in placed(x, y, widths, 1.15 * LINE_OF_PAGE, within, len(names) <= LINES_UP_TO, occupied):
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


def _ellipses(mark: Ellipses, axes: Any, drawing: Drawing, size: float) -> None:
    from matplotlib.patches import Ellipse

    for x, y, a, b, angle, group in zip(mark.x, mark.y, mark.a, mark.b, mark.angle, mark.group.tolist()):
        colour = _colour(group)
        axes.add_patch(Ellipse((x, y), 2 * a, 2 * b, angle=np.degrees(angle), fill=False, ec=colour, lw=0.4, alpha=0.6))


def _curve(mark: Curve, axes: Any, drawing: Drawing, size: float) -> None:
    style = {"color": GREY, "ls": "--", "lw": 0.8} if mark.dashed else {"color": COLOURS[0], "lw": 1.2}
    marker = "o" if mark.marked else None
    axes.errorbar(mark.x, mark.y, mark.error, marker=marker, ms=3, elinewidth=0.7, capsize=2, label=mark.name, **style)
    if mark.hollow is not None:
        axes.plot(mark.x[mark.hollow], mark.y[mark.hollow], "o", ms=3, mec=COLOURS[0], mfc="white", zorder=5)


def _bars(mark: Bars, axes: Any, drawing: Drawing, size: float) -> None:
    width = 0.8 * float(np.min(np.diff(np.sort(mark.x)), initial=1.0))
    for chosen, colour, hatch in ((False, COLOURS[0], None), (True, COLOURS[1], "//")):
        of = mark.marked == chosen
        axes.bar(mark.x[of], mark.y[of], width, color=colour, hatch=hatch, edgecolor="white", linewidth=0.3)


def _segments(mark: Segments, axes: Any, drawing: Drawing, size: float) -> None:
    from matplotlib.collections import LineCollection

    ends = mark.ends.reshape(-1, 2, 2)
    axes.add_collection(LineCollection(list(ends), colors=[_colour(group) for group in mark.group.tolist()], lw=0.7))


def _rules(mark: Rules, axes: Any, drawing: Drawing, size: float) -> None:
    _, _, y0, y1 = extent(drawing)
    x, above = rule_texts(drawing, mark, 14 * (y1 - y0) / drawing.height)
    for height, text, over in zip(mark.y, mark.names, above):
        axes.axhline(height, color=GREY, ls="--", lw=0.8)
        away = (0, 1 if over else -1.5)
        va = "bottom" if over else "top"
        axes.annotate(text, (x, height), away, textcoords="offset points", ha="center", va=va, fontsize=size)


_DRAWN_BY: dict[type, Callable[[Any, Any, Drawing, float], None]] = {
    Ellipses: _ellipses,
    Curve: _curve,
    Bars: _bars,
    Segments: _segments,
    Rules: _rules,
}
