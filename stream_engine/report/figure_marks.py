"""Marks of a drawing on matplotlib's axes."""

from collections.abc import Callable, Mapping
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


class Markers(NamedTuple):
    """How points are drawn where it is not by groups: colours and sizes as matplotlib's `scatter` takes them, one for
    all or by the ids of the points, and its other keywords."""

    c: Any = None
    s: Any = None
    more: Mapping[str, Any] = MappingProxyType({})


BY_GROUP = Markers()


SHAPES = ("o", "s", "^", "D", "X", "v", "P", "p")  # as `drawings.SHAPES`
GREY = "#666666"


def colour(group: int) -> str:
    return COLOURS[group % len(COLOURS)] if group >= 0 else "#8b949e"


def _points(mark: Points, axes: Any, drawing: Drawing, size: float, markers: Markers) -> None:
    s: Any = (0.5 * size) ** 2 if markers.s is None else _by_id(markers.s, mark)
    how = {"linewidths": 0.3, "edgecolors": "#333333", "zorder": 3, **markers.more}
    if markers.c is not None:
        axes.scatter(mark.x, mark.y, s=s, c=_by_id(markers.c, mark), **how)
        return
    labels = dict(drawing.groups)
    for group in np.unique(mark.group).tolist():
        of = mark.group == group
        style = {"marker": SHAPES[shape_number(group)], "color": colour(group), "label": labels.get(group), **how}
        axes.scatter(mark.x[of], mark.y[of], s=s if np.ndim(s) == 0 else s[of], **style)


def _by_id(value: Any, mark: Points) -> Any:
    return value[mark.ids] if isinstance(value, np.ndarray) else value


def _ellipses(mark: Ellipses, axes: Any, drawing: Drawing, size: float) -> None:
    from matplotlib.patches import Ellipse

    for x, y, a, b, angle, group in zip(mark.x, mark.y, mark.a, mark.b, mark.angle, mark.group.tolist()):
        edge = colour(group)
        axes.add_patch(Ellipse((x, y), 2 * a, 2 * b, angle=np.degrees(angle), fill=False, ec=edge, lw=0.4, alpha=0.6))


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
    axes.add_collection(LineCollection(list(ends), colors=[colour(group) for group in mark.group.tolist()], lw=0.7))


def _rules(mark: Rules, axes: Any, drawing: Drawing, size: float) -> None:
    _, _, y0, y1 = extent(drawing)
    for height, (lines, side) in zip(mark.y, rule_texts(mark, 20 * (y1 - y0) / drawing.height)):
        axes.axhline(height, color=GREY, ls="--", lw=0.8)
        at = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "annotation_clip": False}
        va = {0: "center", 1: "bottom", -1: "top"}[side]
        axes.annotate("\n".join(lines), (1, height), (3, 0), ha="left", va=va, fontsize=size, **at)


_DRAWING_FUNCTIONS: dict[type, Callable[[Any, Any, Drawing, float], None]] = {
    Ellipses: _ellipses,
    Curve: _curve,
    Bars: _bars,
    Segments: _segments,
    Rules: _rules,
}


MIN_MAP_RATIO = 0.4  # height of a map, in terms of its width


def draw_marks(
    drawing: Drawing, axes: Any, size: float, markers: Markers = BY_GROUP, lowest: float = MIN_MAP_RATIO
) -> None:
    for mark in drawing.marks:
        if isinstance(mark, Points):
            _points(mark, axes, drawing, size, markers)
        else:
            _DRAWING_FUNCTIONS[type(mark)](mark, axes, drawing, size)
    x0, x1, y0, y1 = extent(drawing)
    if drawing.equal and drawing.x.low is None:  # names need room at the edges
        x0, x1 = x0 - 0.06 * (x1 - x0), x1 + 0.06 * (x1 - x0)
    if drawing.equal and (missing := (lowest * (x1 - x0) - (y1 - y0)) / 2) > 0:  # on a strip, no name has room
        y0, y1 = y0 - missing, y1 + missing
    axes.set_xlim(x0, x1)
    axes.set_ylim(y0, y1)
    if drawing.equal:
        axes.set_aspect("equal", adjustable="box")
    for axis, axis_spec, set_label in (
        (axes.xaxis, drawing.x, axes.set_xlabel),
        (axes.yaxis, drawing.y, axes.set_ylabel),
    ):
        set_label(axis_spec.label)
        if axis_spec.ticks is not None or drawing.equal:  # the units of a map are arbitrary
            axis.set_ticks([place for place, _ in axis_spec.ticks or ()], [text for _, text in axis_spec.ticks or ()])
