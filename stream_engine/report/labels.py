"""Names beside points so that no name lies on another name or on a point: each takes the first free side of eight.

Greedy in the order given, by a grid of cells: O(k) names. What finds no side is not drawn, and the page has it on hover
and in its table; on paper it goes farther out, to be tied to its point by a line. Point-feature labels by eight
positions: Imhof 1975; Christensen, Marks & Shieber 1995, section 2.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))  # right or left, up or down
RINGS, ANGLES = (16.0, 26.0, 38.0, 52.0, 68.0), 16  # pixels from a place that a line bridges, and directions
GAP, POINT = 6.0, 4.0  # pixels between a place and the name beside it; half of a point

Box = tuple[float, float, float, float]  # left, right, low, high


class LabelPosition(NamedTuple):
    """Where the name of place `number` stands: `x` is where it begins, or its middle or end by `side` (1, 0, -1: right
    of the place, above or below, left of it), `y` the middle of its height; `far`: it needs a line to its place."""

    number: int
    x: float
    y: float
    side: int
    far: bool = False


def placed(
    x: np.ndarray,
    y: np.ndarray,
    widths: np.ndarray,
    height: float,
    within: Box,
    lines: bool = False,
    occupied: Iterable[Box] = (),
) -> list[LabelPosition]:
    """The names that have room. `x`, `y` (k,) are places in pixels, y upwards; `widths` (k,) and `height` are of the
    texts; none reaches out of `within` or lies on what is `occupied`. `lines`: what has no room beside its place may go
    farther.

    >>> x, y = np.array([50.0, 50.0]), np.array([50.0, 54.0])
    >>> [each.side for each in placed(x, y, np.full(2, 30.0), 10.0, (0.0, 99.0, 0.0, 99.0))]
    [1, -1]
    """
    taken = OccupiedBoxes(2 * height)
    for there in occupied:
        taken.add(there)
    for px, py in zip(x.tolist(), y.tolist()):
        taken.add((px - POINT, px + POINT, py - POINT, py + POINT))
    found, left = [], list(range(len(x)))
    for candidates in (_beside, _around) if lines else (_beside,):
        waiting, left = left, []
        for number in waiting:
            for each in candidates(number, float(x[number]), float(y[number]), height):
                box = _box(each, float(widths[number]), height)
                if holds(within, box) and taken.free(box):
                    taken.add(box)
                    found.append(each)
                    break
            else:
                left.append(number)
    return found


def _beside(number: int, x: float, y: float, height: float) -> Iterator[LabelPosition]:
    for side, up in SIDES:
        away = height / 2 + POINT + 1.0 if side == 0 else 0.6 * height
        yield LabelPosition(number, x + side * GAP, y + up * away, side)


def _around(number: int, x: float, y: float, height: float) -> Iterator[LabelPosition]:
    for ring in RINGS:
        for k in range(ANGLES):
            across, up = np.cos(2 * np.pi * k / ANGLES), np.sin(2 * np.pi * k / ANGLES)
            side = 0 if abs(across) < 0.3 else 1 if across > 0 else -1
            yield LabelPosition(number, x + ring * float(across), y + ring * float(up), side, True)


def _box(name: LabelPosition, width: float, height: float) -> Box:
    left = name.x - {1: 0.0, 0: width / 2, -1: width}[name.side]
    return left, left + width, name.y - height / 2, name.y + height / 2


def holds(outer: Box, inner: Box) -> bool:
    """Whether one box lies inside another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[2] <= inner[2] and inner[3] <= outer[3]


class OccupiedBoxes:
    """Boxes, found by the cells of a grid that they touch."""

    def __init__(self, cell: float):
        self._cell = cell
        self._boxes: dict[tuple[int, int], list[Box]] = {}

    def add(self, box: Box) -> None:
        """Add a box."""
        for cell in self._cells(box):
            self._boxes.setdefault(cell, []).append(box)

    def free(self, box: Box) -> bool:
        """Whether no box lies on this one."""
        left, right, low, high = box
        return not any(
            left < other[1] and other[0] < right and low < other[3] and other[2] < high
            for cell in self._cells(box)
            for other in self._boxes.get(cell, ())
        )

    def _cells(self, box: Box) -> Iterator[tuple[int, int]]:
        first, last, low, high = (int(edge // self._cell) for edge in box)
        return ((column, row) for column in range(first, last + 1) for row in range(low, high + 1))
