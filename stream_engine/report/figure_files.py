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
    rule_texts,
    shape_number,
)
from stream_engine.report.labels import placed

FORMATS = ("svg", "pdf")
MARKERS = ("o", "s", "^", "D", "X", "v", "P", "p")  # as `drawings.SHAPES`
INCH = 100.0  # pixels of the page
LETTER, LINE, LONGEST = 4.6, 9.0, 24  # pixels of a usual letter and of a line; letters of a name
LINES_UP_TO = 150  # objects, whose names are tied to them by lines where there is no room beside them
INSIDE = 0.86  # of a figure, inside its axes
POINTS = 72 / INCH  # typographic points of a pixel
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
    names = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…" for name in mark.names]
    x, y, within = _pixels(mark, drawing)
    widths = np.array([LETTER * len(each) + 2 for each in names])
    for name in placed(x, y, widths, LINE, within, lines=len(names) <= LINES_UP_TO):
        i = name.number
        away = (name.x - float(x[i])) * POINTS, (name.y - float(y[i])) * POINTS
        axes.annotate(
            names[i],
            (mark.x[i], mark.y[i]),
            away,
            textcoords="offset points",
            fontsize=5.5,
            ha={1: "left", 0: "center", -1: "right"}[name.side],
            va="center",
            zorder=4,
            arrowprops={"arrowstyle": "-", "lw": 0.3, "color": "#666666", "shrinkA": 0, "shrinkB": 2}
            if name.far
            else None,
        )


def _pixels(mark: Points, drawing: Drawing) -> tuple[np.ndarray, np.ndarray, tuple[float, float, float, float]]:
    """About where the points will lie, and the axes about them."""
    x0, x1, y0, y1 = extent(drawing)
    kx, ky = INSIDE * drawing.width / (x1 - x0), INSIDE * drawing.height / (y1 - y0)
    kx, ky = (min(kx, ky),) * 2 if drawing.equal else (kx, ky)
    return (mark.x - x0) * kx, (mark.y - y0) * ky, (0.0, (x1 - x0) * kx, 0.0, (y1 - y0) * ky)


def _ellipses(mark: Ellipses, axes: Any, drawing: Drawing) -> None:
    from matplotlib.patches import Ellipse

    for x, y, a, b, angle, group in zip(mark.x, mark.y, mark.a, mark.b, mark.angle, mark.group.tolist()):
        colour = _colour(group)
        axes.add_patch(Ellipse((x, y), 2 * a, 2 * b, angle=np.degrees(angle), fill=False, ec=colour, lw=0.4, alpha=0.6))


def _curve(mark: Curve, axes: Any, drawing: Drawing) -> None:
    style = {"color": "#666666", "ls": "--", "lw": 0.8} if mark.dashed else {"color": COLOURS[0], "lw": 1.2}
    marker = "o" if mark.marked else None
    axes.errorbar(mark.x, mark.y, mark.error, marker=marker, ms=3, elinewidth=0.7, capsize=2, label=mark.name, **style)
    if mark.hollow is not None:
        axes.plot(mark.x[mark.hollow], mark.y[mark.hollow], "o", ms=3, mec=COLOURS[0], mfc="white", zorder=5)


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
    _, _, y0, y1 = extent(drawing)
    x, above = rule_texts(drawing, mark, 14 * (y1 - y0) / drawing.height)
    for height, text, over in zip(mark.y, mark.names, above):
        axes.axhline(height, color="#666666", ls="--", lw=0.8)
        away = (0, 1 if over else -1.5)
        va = "bottom" if over else "top"
        axes.annotate(text, (x, height), away, textcoords="offset points", ha="center", va=va, fontsize=6.5)


_DRAWN_BY: dict[type, Callable[[Any, Any, Drawing], None]] = {
    Points: _points,
    Ellipses: _ellipses,
    Curve: _curve,
    Bars: _bars,
    Segments: _segments,
    Rules: _rules,
}
