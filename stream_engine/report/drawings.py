"""What a figure shows, without saying how it is drawn: marks on two axes. `inline_svg` and `figure_files` draw it."""

import textwrap
from typing import NamedTuple, TypeAlias

import numpy as np

# distinguished without colour by their shapes: one for each group in turn
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "down", "plus", "pentagon")
# Okabe & Ito's eight colours, which colour-blind readers can tell apart, then a brown and a violet
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#f0e442",
    "#7f3b08",
    "#6a3d9a",
)


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
    """A line through points, with what it is; `error` (2, k) is how far its 95 % intervals reach down and up; `hollow`
    (k,) bool: points that rest on few answers."""

    x: np.ndarray
    y: np.ndarray
    name: str
    error: np.ndarray | None = None
    dashed: bool = False
    marked: bool = True
    hollow: np.ndarray | None = None


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
    about_groups: str = ""  # what may not be believed of the groups
    caveat: str = ""  # what may not be believed of the figure


def shape_number(group: int) -> int:
    """Which of `SHAPES` a group has; no group has the first. Groups with the same colour have different shapes.

    >>> shape_number(0), shape_number(9), shape_number(10), shape_number(-1)
    (0, 1, 3, 0)
    """
    return (group + group // len(COLOURS)) % len(SHAPES) if group >= 0 else 0


MAX_NAME_LETTERS = 24


def shortened(name: str) -> str:
    """The name of an object as figures show it: a long one without its end."""
    return name if len(name) <= MAX_NAME_LETTERS else f"{name[: MAX_NAME_LETTERS - 1]}…"


def without_regions(drawing: Drawing) -> Drawing:
    """The figure without ellipses."""
    return drawing._replace(marks=tuple(mark for mark in drawing.marks if not isinstance(mark, Ellipses)))


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
        return mark.x, np.concatenate([mark.y - mark.error[0], mark.y + mark.error[1]])
    return mark.x, mark.y


MAX_TICKS = 6


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between low and high, at most `MAX_TICKS` and a few less.

    >>> ticks(0.0, 1.0), ticks(-3.0, 41.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 10.0, 20.0, 30.0, 40.0])
    """
    span = high - low
    if not np.isfinite(span) or span <= 0:
        return [low]
    size = 10.0 ** float(np.floor(np.log10(span / MAX_TICKS)))
    step = next(size * k for k in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0) if span / (size * k) <= MAX_TICKS)
    first = int(np.ceil(low / step - 1e-9))
    return [round(k * step, 12) + 0.0 for k in range(first, int(np.floor(high / step + 1e-9)) + 1)]


RULE_LETTERS = 12  # in a line of a text beside a rule


def rule_texts(rules: Rules, line: float) -> list[tuple[list[str], int]]:
    """The lines of the texts to the right of rules, where no curve is, and how many lines each is to be raised: 0, or
    1 or -1 where another rule, below or above, lies within a text's height; a line is `line` high, in units of y."""
    texts = []
    for height, name in zip(rules.y, rules.names):
        near = [other - height for other in rules.y if 0 < abs(other - height) < 2 * line]
        side = 0 if not near else 1 if max(near) < 0 else -1
        texts.append((textwrap.wrap(name, RULE_LETTERS), side))
    return texts
