"""Names beside points so that no name covers another name or a point: each takes the first free side of eight.

On the page, a name without a free side is not drawn; on paper it goes farther out with a line, and all names are
arranged together. Imhof 1975; Christensen, Marks & Shieber 1995, sec. 2.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))  # right or left, up or down
RINGS, ANGLES = (14.0, 20.0, 26.0, 34.0, 42.0, 52.0, 64.0, 78.0), 16  # pixels that a line bridges, and directions
PARTS = np.linspace(0.06, 0.97, 16)  # of a line, where it is tested
SIDE_COSTS = (0.0, 1.0, 3.0, 3.0, 2.0, 2.0, 4.0, 4.0)  # how much worse than the first each side is, in pixels of a line
CROSSING, OVERLAP = 250.0, 10_000.0  # a line across a name or a line, a name on a name: in pixels of a line
SWEEPS = 12
ROUNDS, NEIGHBOURS, MOST_REARRANGED = 150, 7, 60  # of rearranging so many names, and names up to which there are some
NAME_GAP, POINT = 6.0, 4.0  # pixels between a place and the name beside it; half of a point

Box = tuple[float, float, float, float]  # left, right, low, high


class LabelPosition(NamedTuple):
    """Where the name of place `number` stands: `x` is where it begins, or its middle or end by `side` (1, 0, -1: right
    of the place, above or below, left of it), `y` the middle of its height; `far`: it needs a line to its place."""

    number: int
    x: float
    y: float
    side: int
    far: bool = False


def label_positions(
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
    farther, and the best of several orders is taken.

    >>> x, y = np.array([50.0, 50.0]), np.array([50.0, 54.0])
    >>> [spot.side for spot in label_positions(x, y, np.full(2, 30.0), 10.0, (0.0, 99.0, 0.0, 99.0))]
    [1, -1]
    """
    there = [*occupied, *((px - POINT, px + POINT, py - POINT, py + POINT) for px, py in zip(x.tolist(), y.tolist()))]
    if lines:
        return _arranged(x, y, widths, height, within, np.array(there))
    occupied_boxes, spots = OccupiedBoxes(2 * height), []
    for box in there:
        occupied_boxes.add(box)
    for number, (px, py) in enumerate(zip(x.tolist(), y.tolist())):
        for spot in _positions_beside(number, px, py, height):
            box = _box(spot, float(widths[number]), height)
            if holds(within, box) and occupied_boxes.free(box):
                occupied_boxes.add(box)
                spots.append(spot)
                break
    return spots


class _Candidates(NamedTuple):
    """Where a name may stand, and what is bad about it whatever the others do."""

    positions: list[LabelPosition]
    boxes: np.ndarray  # (c, 4)
    ends: np.ndarray  # (c, 2) of the line
    cost: np.ndarray  # (c,)

    def crowding(self, place: np.ndarray, others: np.ndarray, ends: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(c, k) what is bad about each beside `others` (k, 4), whose lines go from `places` to `ends` (k, 2)."""
        on = _overlap(self.boxes[:, None], others)
        along = place + (self.ends[:, None] - place) * PARTS[:, None]  # (c, parts, 2)
        across = _within(along[:, :, None], others).any(axis=1)  # (c, k)
        of_others = places[:, None] + (ends[:, None] - places[:, None]) * PARTS[:, None]  # (k, parts, 2)
        under = _within(of_others, self.boxes[:, None, None]).any(axis=2)
        lines = _cross(place, self.ends[:, None], places, ends)
        return OVERLAP * on + CROSSING * (across | under | lines)


class _Arrangement:
    """Which candidate each name has, of the names that were put so far."""

    def __init__(self, candidates: list[_Candidates], places: np.ndarray):
        self.candidates, self.places, self.chosen = candidates, places, dict[int, int]()
        self.boxes, self.ends = np.full((len(places), 4), np.nan), places.copy()
        self._crowding = dict[tuple[int, int, int], np.ndarray]()  # of a name's candidates beside another's candidate

    def costs(self, i: int) -> np.ndarray:
        """Of all candidates of a name, beside where the others stand."""
        others = [(i, k, at) for k, at in self.chosen.items() if k != i]
        its, new = self.candidates[i], [other for other in others if other not in self._crowding]
        if len(self.places) > MOST_REARRANGED:  # as many would fill the memory
            self._crowding.clear()
            new = others
        if new:
            k = [other for _, other, _ in new]
            crowding = its.crowding(self.places[i], self.boxes[k], self.ends[k], self.places[k])
            self._crowding.update(zip(new, np.ascontiguousarray(crowding.T)))
        return its.cost + sum(self._crowding[other] for other in others)

    def put(self, i: int, at: int) -> None:
        self.chosen[i] = at
        self.boxes[i], self.ends[i] = self.candidates[i].boxes[at], self.candidates[i].ends[at]

    def settle(self, order: list[int]) -> None:
        """Put these names one after the other, then move each to its best candidate until none moves."""
        for _ in range(SWEEPS):
            moved = False
            for i in order:
                costs = self.costs(i)
                at = int(costs.argmin())
                if i not in self.chosen or costs[at] < costs[self.chosen[i]]:
                    self.put(i, at)
                    moved = True
            if not moved:
                break

    def taken_out(self, some: list[int]) -> float:
        """Take these names out; what they cost."""
        cost = 0.0
        for i in some:
            cost += float(self.costs(i)[self.chosen[i]])
            del self.chosen[i]
        return cost

    def rearrange(self, some: list[int]) -> bool:
        """Put these names anew in this order if that is better; whether it was."""
        before = {i: self.chosen[i] for i in some}
        cost = self.taken_out(some)
        for i in some:
            costs = self.costs(i)
            self.put(i, int(costs.argmin()))
            cost -= float(costs.min())
        if cost <= 1e-9:
            for i, at in before.items():
                self.put(i, at)
        return cost > 1e-9


def _arranged(
    x: np.ndarray, y: np.ndarray, widths: np.ndarray, height: float, within: Box, there: np.ndarray
) -> list[LabelPosition]:
    """Names beside their places or tied to them by a line, by iterated conditional modes: each in turn takes the
    candidate that costs least beside where the others stand, until none moves. Then neighbours of a name that stands
    badly are put anew in random orders (large neighbourhood search). One that would lie on another is left out.
    O(sweeps * names^2 * candidates)."""
    places = np.stack([x, y], axis=1)
    candidates = [_candidates(i, places, float(widths[i]), height, within, there) for i in range(len(x))]
    numbers = np.array([i for i, of_name in enumerate(candidates) if of_name.positions], int)
    near = (abs(places[:, None] - places).max(axis=2) < 4 * height).sum(axis=1)
    crowded = numbers[np.argsort(-near[numbers], kind="stable")]
    arrangement, rng = _Arrangement(candidates, places), np.random.default_rng(0)
    arrangement.settle(crowded.tolist())
    changed, costs = True, np.zeros(len(numbers))
    for _ in range(ROUNDS if 1 < len(numbers) <= MOST_REARRANGED else 0):
        if changed:
            costs = np.array([arrangement.costs(i)[arrangement.chosen[i]] for i in numbers.tolist()])
        if not costs.any():
            break
        worst = places[rng.choice(numbers, p=costs / costs.sum())]
        around = numbers[np.argsort(np.hypot(*(places[numbers] - worst).T), kind="stable")[:NEIGHBOURS]]
        changed = arrangement.rearrange(rng.permutation(around).tolist())
    boxes = arrangement.boxes
    n_without_overlap: list[int] = []
    for i in crowded.tolist()[::-1]:  # the least crowded first
        if not n_without_overlap or not _overlap(boxes[i], boxes[n_without_overlap]).any():
            n_without_overlap.append(i)
    return [candidates[i].positions[arrangement.chosen[i]] for i in sorted(n_without_overlap)]


def _candidates(i: int, places: np.ndarray, width: float, height: float, within: Box, there: np.ndarray) -> _Candidates:
    x, y = places[i].tolist()
    positions = [*_positions_beside(i, x, y, height), *_around(i, x, y, height)]
    boxes = np.array([_box(position, width, height) for position in positions])
    inside = (boxes[:, 0] >= within[0]) & (boxes[:, 1] <= within[1])
    inside &= (boxes[:, 2] >= within[2]) & (boxes[:, 3] <= within[3])
    free = np.flatnonzero(inside & ~_overlap(boxes[:, None], there).any(axis=1))
    positions, boxes = [positions[k] for k in free.tolist()], boxes[free]
    ends = np.array([[position.x, position.y] if position.far else [x, y] for position in positions]).reshape(-1, 2)
    apart = there[~_within(places[i], there)]  # a place so near that it lies on this one is not in the way
    along = places[i] + (ends[:, None] - places[i]) * PARTS[:, None]
    cost = np.hypot(*(ends - places[i]).T) + CROSSING * _within(along[:, :, None], apart).any(axis=1).sum(axis=1)
    cost = cost + np.array(
        [0.0 if position.far else SIDE_COSTS[k % len(SIDE_COSTS)] for k, position in zip(free.tolist(), positions)]
    )
    return _Candidates(positions, boxes, ends, cost)


def _overlap(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether boxes (…, 4) lie on others."""
    return (
        (one[..., 0] < other[..., 1])
        & (other[..., 0] < one[..., 1])
        & (one[..., 2] < other[..., 3])
        & (other[..., 2] < one[..., 3])
    )


def _within(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Whether points (…, 2) lie in boxes (…, 4)."""
    x, y = points[..., 0], points[..., 1]
    return (boxes[..., 0] < x) & (x < boxes[..., 1]) & (boxes[..., 2] < y) & (y < boxes[..., 3])


def _cross(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Whether the lines a to b cross those from c to d, all (…, 2)."""

    def side(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])

    return (side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)


def _positions_beside(number: int, x: float, y: float, height: float) -> Iterator[LabelPosition]:
    for side, up in SIDES:
        away = height / 2 + POINT + 1.0 if side == 0 else 0.6 * height
        yield LabelPosition(number, x + side * NAME_GAP, y + up * away, side)


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
