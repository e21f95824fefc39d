"""Figures for papers: a drawing as SVG and PDF by matplotlib, fonts embedded, groups told apart by shape and colour."""

import io
import warnings
from collections.abc import Callable
from typing import Any

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
    shape_number,
    with_room,
)

FORMATS = ("svg", "pdf")
MARKERS = ("o", "s", "^", "D", "X", "v", "P", "p")  # as `drawings.SHAPES`
INCH = 100.0  # pixels of the page
LETTER, LINE, LONGEST = 5.0, 10.0, 24  # pixels of a usual letter and of a line; letters of a name
NONE = "#8b949e"  # of what is in no group
STYLE: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "stream-engine",
    "font.size": 8.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}  # equal figures, equal bytes


def encoded(drawing: Drawing, format: str) -> bytes:
    """The bytes of one figure, "svg" or "pdf"."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a letter that no font here has is a box
        figure = Figure(figsize=(drawing.width / INCH, drawing.height / INCH), layout="constrained")
        FigureCanvasAgg(figure)
        draw(drawing, figure.subplots())
        buffer = io.BytesIO()
        figure.savefig(buffer, format=format, metadata=UNDATED[format])
    return buffer.getvalue()


def draw(drawing: Drawing, axes: Any) -> Any:
    """Draw on matplotlib's Axes; returns them."""
    for mark in drawing.marks:
        _DRAWN_BY[type(mark)](mark, axes, drawing)
    x0, x1, y0, y1 = extent(drawing)
    axes.set_xlim(x0, x1)
    axes.set_ylim(y0, y1)
    if drawing.equal:
        axes.set_aspect("equal", adjustable="box")
    for axis, own, set_label in ((axes.xaxis, drawing.x, axes.set_xlabel), (axes.yaxis, drawing.y, axes.set_ylabel)):
        set_label(own.label)
        if own.ticks is not None:
            axis.set_ticks([place for place, _ in own.ticks], [text for _, text in own.ticks])
    if drawing.groups:
        axes.legend(fontsize=7, frameon=False, loc="best")
    return axes


def _colour(group: int) -> str:
    return COLOURS[group % len(COLOURS)] if group >= 0 else NONE


def _points(mark: Points, axes: Any, drawing: Drawing) -> None:
    said = dict(drawing.groups)
    for group in np.unique(mark.group).tolist():
        of = mark.group == group
        axes.scatter(
            mark.x[of],
            mark.y[of],
            s=14,
            marker=MARKERS[shape_number(group)],
            color=_colour(group),
            linewidths=0.3,
            edgecolors="white",
            label=said.get(group),
            zorder=3,
        )
    x0, x1, y0, y1 = extent(drawing)
    x, y = (mark.x - x0) / (x1 - x0) * drawing.width, (mark.y - y0) / (y1 - y0) * drawing.height
    widths = np.array([LETTER * min(len(name), LONGEST) + 6 for name in mark.names])
    for place in np.flatnonzero(with_room(x, y, widths, LINE)).tolist():
        where = mark.x[place], mark.y[place]
        axes.annotate(mark.names[place][:LONGEST], where, (3, -2), textcoords="offset points", fontsize=5.5, zorder=4)


def _ellipses(mark: Ellipses, axes: Any, drawing: Drawing) -> None:
    from matplotlib.patches import Ellipse

    for x, y, a, b, angle, group in zip(mark.x, mark.y, mark.a, mark.b, mark.angle, mark.group.tolist()):
        colour = _colour(group)
        axes.add_patch(Ellipse((x, y), 2 * a, 2 * b, angle=np.degrees(angle), fill=False, ec=colour, lw=0.4, alpha=0.6))


def _curve(mark: Curve, axes: Any, drawing: Drawing) -> None:
    style = {"color": "#666666", "ls": "--", "lw": 0.8} if mark.dashed else {"color": COLOURS[0], "lw": 1.2}
    marker = "o" if mark.marked else None
    axes.errorbar(mark.x, mark.y, mark.error, marker=marker, ms=3, elinewidth=0.7, capsize=2, label=mark.name, **style)


def _bars(mark: Bars, axes: Any, drawing: Drawing) -> None:
    width = 0.8 * float(np.min(np.diff(np.sort(mark.x)), initial=1.0))
    for chosen, colour, hatch in ((False, COLOURS[0], None), (True, COLOURS[1], "//")):
        of = mark.marked == chosen
        axes.bar(mark.x[of], mark.y[of], width, color=colour, hatch=hatch, edgecolor="white", linewidth=0.3)


def _segments(mark: Segments, axes: Any, drawing: Drawing) -> None:
    from matplotlib.collections import LineCollection

    ends = mark.ends.reshape(-1, 2, 2)
    axes.add_collection(LineCollection(list(ends), colors=[_colour(group) for group in mark.group.tolist()], lw=0.7))


def _rules(mark: Rules, axes: Any, drawing: Drawing) -> None:
    for height, text in zip(mark.y, mark.names):
        axes.axhline(height, color="#666666", ls="--", lw=0.8)
        axes.annotate(text, (1, height), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=6.5)


_DRAWN_BY: dict[type, Callable[[Any, Any, Drawing], None]] = {
    Points: _points,
    Ellipses: _ellipses,
    Curve: _curve,
    Bars: _bars,
    Segments: _segments,
    Rules: _rules,
}
