"""A drawing as inline SVG: texts are texts, colours are classes of the page's style sheet, objects carry their ids.

What a mark is about stands in `data-i` (an object's number among those that are drawn), so that the page can show it,
find it and move it. Nothing has a `style` of its own, which the page's content security policy would refuse.
"""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import numpy as np

from stream_engine.report.drawings import (
    COLOURS,
    SHAPES,
    Axis,
    Bars,
    Curve,
    Drawing,
    Ellipses,
    Mark,
    Points,
    Rules,
    Segments,
    extent,
    rule_texts,
    shape_number,
    shortened,
    ticks,
    without_regions,
)
from stream_engine.report.labels import label_positions

LEFT, RIGHT, TOP, BOTTOM = 56, 14, 10, 44  # pixels about what is drawn; more at the left where texts there are long
LETTER, LINE = 6.2, 12.0  # pixels of a usual letter, and of a line
TICK_LETTER = 7.4  # of a letter beside the axis, which is larger on a phone
ANCHOR = {1: "", 0: ' text-anchor="middle"', -1: ' text-anchor="end"'}
PATHS = {  # about (0, 0), some 8 pixels large
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "square": "M-3.5-3.5h7v7h-7z",
    "triangle": "M0-4.5L4.2 3.2H-4.2z",
    "diamond": "M0-4.8L4.8 0L0 4.8L-4.8 0z",
    "cross": "M-3.8-2.2l1.6-1.6L0-1.6l2.2-2.2l1.6 1.6L1.6 0l2.2 2.2l-1.6 1.6L0 1.6l-2.2 2.2l-1.6-1.6L-1.6 0z",
    "down": "M0 4.5L4.2-3.2H-4.2z",
    "plus": "M-1.2-4.2h2.4v3h3v2.4h-3v3h-2.4v-3h-3v-2.4h3z",
    "pentagon": "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4z",
}


class _Scale:
    """From values to pixels."""

    def __init__(self, drawing: Drawing):
        self.drawing = drawing
        points = any(isinstance(mark, Points) for mark in drawing.marks)  # regions about them are shown on demand
        x0, x1, y0, y1 = extent(without_regions(drawing) if points else drawing)
        texts = [len(text) for _, text in drawing.y.ticks or ()]
        self.left = max(LEFT, int(TICK_LETTER * max(texts, default=0)) + 14)
        rules = [mark for mark in drawing.marks if isinstance(mark, Rules)]
        letters = [len(line) for mark in rules for lines, _ in rule_texts(mark, 0.0) for line in lines]
        self.right = max(RIGHT, int(TICK_LETTER * max(letters, default=0)) + 6)
        self.wide, self.high = drawing.width - self.left - self.right, drawing.height - TOP - BOTTOM
        if drawing.equal:
            unit = max((x1 - x0) / self.wide, (y1 - y0) / self.high)
            x0, x1 = (x0 + x1 - unit * self.wide) / 2, (x0 + x1 + unit * self.wide) / 2
            y0, y1 = (y0 + y1 - unit * self.high) / 2, (y0 + y1 + unit * self.high) / 2
        self.x0, self.x1, self.y0, self.y1 = x0, x1, y0, y1
        self.kx, self.ky = self.wide / (x1 - x0), self.high / (y1 - y0)

    def x(self, values: np.ndarray | float) -> np.ndarray:
        return self.left + (np.asarray(values, float) - self.x0) * self.kx

    def y(self, values: np.ndarray | float) -> np.ndarray:
        return TOP + self.high - (np.asarray(values, float) - self.y0) * self.ky


def svg(drawing: Drawing) -> str:
    """The figure as one `<svg>`, with title and description for those who have it read to them."""
    scale = _Scale(drawing)
    labels = f"{drawing.name}-title {drawing.name}-about"
    box = f'data-box="{scale.x0:.6g} {scale.y0:.6g} {scale.kx:.6g} {scale.ky:.6g}"'
    head = (
        f'<svg id="{drawing.name}-svg" role="img" aria-labelledby="{labels}" viewBox="0 0 {drawing.width} '
        f'{drawing.height}" width="{drawing.width}" height="{drawing.height}" {box}>'
        f'<title id="{drawing.name}-title">{escape(drawing.title)}</title>'
        f'<desc id="{drawing.name}-about">{escape(drawing.about)}</desc>'
    )
    shapes = "".join(f'<path id="{drawing.name}-{shape}" d="{PATHS[shape]}"/>' for shape in _shapes_of(drawing))
    inside = f'x="{scale.left}" y="{TOP}" width="{scale.wide}" height="{scale.high}"'
    clip = f'<clipPath id="{drawing.name}-clip"><rect {inside}/></clipPath>'
    marks = "".join(part for mark in drawing.marks for part in _mark(mark, scale))
    return (
        f"{head}<defs>{shapes}{clip}</defs>{''.join((*_axes(scale), *_texts_of_rules(scale)))}"
        f'<g clip-path="url(#{drawing.name}-clip)"><g class="marks">{marks}</g></g></svg>'
    )


def _shapes_of(drawing: Drawing) -> list[str]:
    groups = [mark.group for mark in drawing.marks if isinstance(mark, Points)]
    used = np.unique(np.concatenate(groups)) if groups else np.empty(0, int)
    return sorted({shape_of(int(group)) for group in used}, key=SHAPES.index)


def shape_of(group: int) -> str:
    return SHAPES[shape_number(group)]


def colour_class(group: int) -> str:
    """The class of a group's colour; that of no group is grey."""
    return f"c{group % len(COLOURS)}" if group >= 0 else "cn"


def _axes(scale: _Scale) -> Iterator[str]:
    drawing = scale.drawing
    bottom, right = TOP + scale.high, scale.left + scale.wide
    yield f'<rect class="frame" x="{scale.left}" y="{TOP}" width="{scale.wide}" height="{scale.high}"/>'
    for place, text in _ticks(drawing.x, scale.x0, scale.x1):
        x = float(scale.x(place))
        yield f'<path class="tick" d="M{x:.1f} {bottom}v4"/>'
        yield f'<text class="num" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(text)}</text>'
    for place, text in _ticks(drawing.y, scale.y0, scale.y1):
        y = float(scale.y(place))
        yield f'<path class="grid" d="M{scale.left} {y:.1f}H{right}"/>'
        yield f'<text class="num" x="{scale.left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    if drawing.x.label:
        where = f'x="{scale.left + scale.wide / 2:.0f}" y="{drawing.height - 8}"'
        yield f'<text class="label lx" {where} text-anchor="middle">{escape(drawing.x.label)}</text>'
    if drawing.y.label:
        middle = TOP + scale.high / 2
        yield (
            f'<text class="label ly" transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(drawing.y.label)}</text>"
        )


def _ticks(axis: Axis, low: float, high: float) -> list[tuple[float, str]]:
    if axis.ticks is not None:
        return list(axis.ticks)
    return [(place, f"{place:g}") for place in ticks(low, high)]


def _mark(mark: Mark, scale: _Scale) -> Iterator[str]:
    yield from _DRAWN_BY[type(mark)](mark, scale)


def _points(mark: Points, scale: _Scale) -> Iterator[str]:
    name, x, y = scale.drawing.name, scale.x(mark.x), scale.y(mark.y)
    yield '<g class="points">'
    for place, (i, group) in enumerate(zip(mark.ids.tolist(), mark.group.tolist())):
        yield (
            f'<use href="#{name}-{shape_of(group)}" class="{colour_class(group)}" x="{x[place]:.1f}" '
            f'y="{y[place]:.1f}" data-i="{i}"/>'
        )
    yield '</g><g class="names">'
    names = [shortened(text) for text in mark.names]
    within = scale.left, scale.left + scale.wide, -TOP - scale.high, -TOP
    for spot in label_positions(x, -y, np.array([LETTER * len(text) + 2 for text in names]), LINE, within):
        where = f'x="{spot.x:.1f}" y="{4 - spot.y:.1f}"{ANCHOR[spot.side]} data-i="{mark.ids[spot.number]}"'
        yield f"<text {where}>{escape(names[spot.number])}</text>"
    yield "</g>"


def _ellipses(mark: Ellipses, scale: _Scale) -> Iterator[str]:
    yield '<g class="ellipses">'
    x, y, turn = scale.x(mark.x), scale.y(mark.y), -np.degrees(mark.angle)
    for place, (i, group) in enumerate(zip(mark.ids.tolist(), mark.group.tolist())):
        yield (
            f'<ellipse class="{colour_class(group)}" data-i="{i}" rx="{mark.a[place] * scale.kx:.1f}" '
            f'ry="{mark.b[place] * scale.ky:.1f}" transform="translate({x[place]:.1f} {y[place]:.1f}) '
            f'rotate({turn[place]:.0f})"/>'
        )
    yield "</g>"


def _curve(mark: Curve, scale: _Scale) -> Iterator[str]:
    x, y = scale.x(mark.x), scale.y(mark.y)
    dashed = " dashed" if mark.dashed else ""
    line = " ".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y))
    yield f'<path class="curve{dashed}" d="M{line}"><title>{escape(mark.name)}</title></path>'
    if mark.error is not None:
        low, high = scale.y(mark.y - mark.error[0]), scale.y(mark.y + mark.error[1])
        for a, b, c in zip(x, low, high):
            yield f'<path class="error" d="M{a:.1f} {b:.1f}V{c:.1f}"/>'
    if mark.marked:
        hollow = np.zeros(len(x), bool) if mark.hollow is None else mark.hollow
        for a, b, few in zip(x, y, hollow.tolist()):
            yield f'<circle class="c0{" hollow" if few else ""}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>'


def _bars(mark: Bars, scale: _Scale) -> Iterator[str]:
    half = 0.4 * float(np.min(np.diff(np.sort(mark.x)), initial=1.0)) * scale.kx
    zero = float(scale.y(0.0))
    for a, b, chosen in zip(scale.x(mark.x), scale.y(mark.y), mark.marked):
        top, tall = min(b, zero), abs(zero - b)
        colour = "c1" if chosen else "c0"
        yield f'<rect class="{colour}" x="{a - half:.1f}" y="{top:.1f}" width="{2 * half:.1f}" height="{tall:.1f}"/>'


def _segments(mark: Segments, scale: _Scale) -> Iterator[str]:
    x, y = scale.x(mark.ends[:, [0, 2]]), scale.y(mark.ends[:, [1, 3]])
    for group in np.unique(mark.group).tolist():
        of = mark.group == group
        line = "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for (a, c), (b, d) in zip(x[of], y[of]))
        yield f'<path class="branch {colour_class(group)}" d="{line}"/>'


def _rules(mark: Rules, scale: _Scale) -> Iterator[str]:
    for y in scale.y(np.array(mark.y)).tolist():
        yield f'<path class="curve dashed" d="M{scale.left} {y:.1f}H{scale.left + scale.wide}"/>'


def _texts_of_rules(scale: _Scale) -> Iterator[str]:
    """To the right of the frame, one line of text after the other."""
    for mark in scale.drawing.marks:
        if isinstance(mark, Rules):
            for height, (lines, side) in zip(mark.y, rule_texts(mark, LINE / scale.ky)):
                first = float(scale.y(height)) + 4 - LINE * (len(lines) - 1) / 2 - side * LINE * len(lines) / 2
                for number, text in enumerate(lines):
                    at = f'x="{scale.left + scale.wide + 4}" y="{first + number * LINE:.1f}"'
                    yield f'<text class="num" {at}>{escape(text)}</text>'


_DRAWN_BY: dict[type, Callable[[Any, _Scale], Iterator[str]]] = {
    Points: _points,
    Ellipses: _ellipses,
    Curve: _curve,
    Bars: _bars,
    Segments: _segments,
    Rules: _rules,
}
