"""What a figure shows, without saying how it is drawn: marks on two axes. `inline_svg` and `figure_files` draw it."""

from typing import NamedTuple, TypeAlias

import numpy as np

# told apart without colour by their shapes: one for each group in turn
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "down", "plus", "pentagon")
# Okabe & Ito's colours, which people who see colours otherwise can tell apart; the first is for what has no group
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6000", "#666666")


class Axis(NamedTuple):
    """`label` with its unit; `ticks` are places and texts, those of whole numbers where there are none."""

    label: str = ""
    low: float | None = None  # of what is shown; None: of the marks
    high: float | None = None
    ticks: tuple[tuple[float, str], ...] | None = None


class Points(NamedTuple):
    """Objects in the plane. `group` (k,) int says the colour and shape, -1: none; `names` stand beside those that have
    room."""

    x: np.ndarray  # (k,)
    y: np.ndarray  # (k,)
    ids: np.ndarray  # (k,) which objects
    names: tuple[str, ...]
    group: np.ndarray  # (k,)


class Ellipses(NamedTuple):
    """Regions of 95 % about points: centre, half axes and angle of the first half axis in radians."""

    x: np.ndarray
    y: np.ndarray
    a: np.ndarray
    b: np.ndarray
    angle: np.ndarray
    ids: np.ndarray
    group: np.ndarray


class Curve(NamedTuple):
    """A line through points, with what it is; `error` (k,) is half of a 95 % interval."""

    x: np.ndarray
    y: np.ndarray
    name: str
    error: np.ndarray | None = None
    dashed: bool = False
    marked: bool = True


class Bars(NamedTuple):
    """One bar a place, from 0; `marked` (k,) bool: which of them stand out."""

    x: np.ndarray
    y: np.ndarray
    marked: np.ndarray


class Segments(NamedTuple):
    """Straight lines, (k, 4) x, y, x, y."""

    ends: np.ndarray
    group: np.ndarray  # (k,)


class Rules(NamedTuple):
    """Dashed lines across the whole figure at heights y, each with its text."""

    y: tuple[float, ...]
    names: tuple[str, ...]


Mark: TypeAlias = Points | Ellipses | Curve | Bars | Segments | Rules


class Drawing(NamedTuple):
    """A figure. `about` says in words what can be seen, for those who cannot see it."""

    name: str  # of its file
    title: str
    about: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    equal: bool = False  # one unit is as long on both axes
    zooms: bool = False
    width: int = 640  # pixels, of the page
    height: int = 400
    groups: tuple[tuple[int, str], ...] = ()  # group -> what the legend says


def shape_number(group: int) -> int:
    """Which of `SHAPES` a group has; no group has the first."""
    return group % len(SHAPES) if group >= 0 else 0


def extent(drawing: Drawing) -> tuple[float, float, float, float]:
    """low and high of x, low and high of y, of all marks with a margin, unless an axis says otherwise."""
    xs, ys = zip(*(_spread(mark) for mark in drawing.marks)) if drawing.marks else ((), ())
    ranges = []
    for axis, values in ((drawing.x, xs), (drawing.y, ys)):
        flat = np.concatenate([np.asarray(v, float).ravel() for v in values]) if values else np.empty(0)
        flat = flat[np.isfinite(flat)]
        low, high = (float(flat.min()), float(flat.max())) if len(flat) else (0.0, 1.0)
        room = 0.06 * (high - low) or 0.5
        ranges += [
            low - room if axis.low is None else axis.low,
            high + room if axis.high is None else axis.high,
        ]
    return ranges[0], ranges[1], ranges[2], ranges[3]


def _spread(mark: Mark) -> tuple[np.ndarray, np.ndarray]:
    """All x, and all y, that a mark reaches."""
    none = np.empty(0)
    if isinstance(mark, Ellipses):
        far = np.maximum(mark.a, mark.b)
        return np.concatenate([mark.x - far, mark.x + far]), np.concatenate([mark.y - far, mark.y + far])
    if isinstance(mark, Segments):
        return mark.ends[:, [0, 2]], mark.ends[:, [1, 3]]
    if isinstance(mark, Bars):
        half = 0.5 * float(np.min(np.diff(np.sort(mark.x)), initial=1.0))
        return np.concatenate([mark.x - half, mark.x + half]), np.append(mark.y, 0.0)
    if isinstance(mark, Rules):
        return none, np.array(mark.y)
    if isinstance(mark, Curve) and mark.error is not None:
        return mark.x, np.concatenate([mark.y - mark.error, mark.y + mark.error])
    return mark.x, mark.y


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between low and high, at most so many and a few less.

    >>> ticks(0.0, 1.0), ticks(-3.0, 41.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 10.0, 20.0, 30.0, 40.0])
    """
    span = high - low
    if not np.isfinite(span) or span <= 0:
        return [low]
    size = 10.0 ** float(np.floor(np.log10(span / most)))
    step = next(size * k for k in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if span / (size * k) <= most)
    first = int(np.ceil(low / step - 1e-9))
    return [round(k * step, 12) + 0.0 for k in range(first, int(np.floor(high / step + 1e-9)) + 1)]


CROWDED = 300  # places


def with_room(x: np.ndarray, y: np.ndarray, widths: np.ndarray, height: float) -> np.ndarray:
    """(k,) bool: which texts, right of the places (x, y) in pixels, are drawn so that none lies on another; those that
    come first win. Of more than `CROWDED` only those whose text covers no other place. O(k) by a grid."""
    own = list(zip((y // height).astype(int).tolist(), (x // height).astype(int).tolist()))
    taken: set[tuple[int, int]] = set(own) if len(x) > CROWDED else set()
    drawn = np.zeros(len(x), bool)
    for number in range(len(x)):
        row = int(y[number] // height)
        cells = range(int(x[number] // height), int((x[number] + widths[number]) // height) + 1)
        wanted = {(row, cell) for cell in cells}
        if len(x) > CROWDED:
            wanted.discard(own[number])
        if not wanted & taken:
            taken |= wanted | {(row + 1, cell) for cell in cells if y[number] % height > height / 2}
            drawn[number] = True
    return drawn
