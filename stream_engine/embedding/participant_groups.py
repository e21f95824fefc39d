"""Groups of participants who see alike: clusters of their log weights, with a test of every split.

A participant's log weights less their mean say which axes count for more and which for less. Ward's method splits them
in two; the test asks whether there are fewer participants between the two means than at both: it compares the dip of
their places on the line through these (Hartigan & Hartigan 1985: the distance from the nearest distribution with one
mode) with that of simulated participants from one normal distribution with the same mean and covariance, split
likewise. A few participants far from all others are no group. If a split is significant, both parts are tested, as long
as they have `MIN_PARTICIPANTS` participants. A part of m of p participants is split at the level
.05 (m - 1) / (p - 1), so that with a probability of .95 no split of all is one of a single group, however many there
are (Kimes, Liu, Hayes & Marron 2017). Simulations end early once p is above. O(participants^2) each.
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward

MIN_PARTICIPANTS, MAX_PARTICIPANTS = 10, 500  # participants with weights that groups are looked for in
N_SIMULATIONS = 199  # so that a part of a tenth of all can be split
LEVEL = 0.05


class ParticipantGroups(NamedTuple):
    """`group` (p,) int64 from 0 on, the largest group first; all 0 without a significant result."""

    verdict: str
    group: np.ndarray
    p_value: float | None = None  # of the first split

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=0)) + 1


def shares(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(p, d) share of each axis in the squared differences that participants see.

    >>> shares(np.array([[0.0, 0.0], [2.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 2.0]])).tolist()
    [[0.8, 0.2], [0.5, 0.5]]
    """
    centred = weights * points.var(axis=0)
    return centred / np.maximum(centred.sum(axis=1, keepdims=True), 1e-300)


def participant_groups(weights: np.ndarray, seed: int = 0) -> ParticipantGroups:
    """Groups of the participants with these weights (p, d)."""
    n_participants, d = weights.shape
    single = np.zeros(n_participants, np.int64)
    if d < 2 or not MIN_PARTICIPANTS <= n_participants <= MAX_PARTICIPANTS:
        return ParticipantGroups(
            f"not tested: expected two axes and {MIN_PARTICIPANTS} to {MAX_PARTICIPANTS} participants", single
        )
    logs = np.log(weights)
    centred = logs - logs.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    parts, finished, p_values = [np.arange(n_participants)], [], []
    while parts:
        part = parts.pop()
        level = LEVEL * (len(part) - 1) / (n_participants - 1)
        split, p = _test_split(centred[part], rng, level) if len(part) >= MIN_PARTICIPANTS else (part, 1.0)
        p_values.append(p)
        if p > level:
            finished.append(part)
        else:
            parts += [part[split == each] for each in (0, 1)]
    if len(finished) == 1:
        return ParticipantGroups("no separate groups of participants found", single, p_values[0])
    group = single
    for number, part in enumerate(sorted(finished, key=lambda each: (-len(each), each[0]))):
        group[part] = number
    return ParticipantGroups(f"{len(finished)} groups of participants", group, p_values[0])


def _test_split(centred: np.ndarray, rng: np.random.Generator, level: float) -> tuple[np.ndarray, float]:
    """The split in two, and its p-value; simulations end once that is above the level."""
    split, split_dip = _split(centred)
    mean, covariance = centred.mean(axis=0), np.cov(centred.T)
    above = finished = 0
    while finished < N_SIMULATIONS and (1 + above) / (1 + N_SIMULATIONS) <= level:
        above += _split(rng.multivariate_normal(mean, covariance, len(centred), method="eigh"))[1] >= split_dip
        finished += 1
    return split, (1 + above) / (1 + finished)


def _split(centred: np.ndarray) -> tuple[np.ndarray, float]:
    """The two groups of Ward's method, and the dip between them."""
    group = fcluster(ward(centred), 2, "maxclust") - 1
    if group.max() == 0:
        return group, 0.0
    return group, dip(centred @ (centred[group == 1].mean(axis=0) - centred[group == 0].mean(axis=0)))


def dip(values: np.ndarray) -> float:
    """How far the distribution of the values is from one with a single mode: at the best mode, half of the largest
    distance of the distribution function from the convex one below it on the left, or the concave one above it on the
    right. O(n log^2 n).

    >>> dip(np.array([0.0, 1.0, 2.0, 3.0])), round(dip(np.array([0.0, 0.1, 0.2, 3.0, 3.1, 3.2])), 2)
    (0.0, 0.15)
    """
    x = np.sort(values)
    low, high = 0, len(x) - 1
    best = 1.0
    while low <= high:
        mode = (low + high) // 2
        left, right = _above_convex(x[: mode + 1]) / len(x), _above_convex(-x[mode:][::-1]) / len(x)
        best = min(best, max(left, right) / 2)
        low, high = (mode + 1, high) if left < right else (low, mode - 1)
    return best


def _above_convex(x: np.ndarray) -> float:
    """How far the ranks of sorted values are at most above the largest convex function below them."""
    hull: list[int] = []
    places = x.tolist()
    for at, place in enumerate(places):
        while len(hull) > 1:
            first, second = hull[-2:]
            if (second - first) * (place - places[second]) < (at - second) * (places[second] - places[first]):
                break
            hull.pop()
        hull.append(at)
    return float((np.arange(len(x)) - np.interp(x, x[hull], hull)).max())
