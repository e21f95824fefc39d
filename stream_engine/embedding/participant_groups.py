"""Groups of participants who see alike: clusters of their log weights, with a test of every split.

A participant's log weights less their mean say which axes count for more and which for less. Ward's method splits them
in two; the test compares the mean silhouette (Rousseeuw 1987) with that of simulated participants from one normal
distribution with the same mean and covariance, which is what the fit supposes: a split is reported only if p <= .05,
and then both parts are tested likewise, as long as they have `LEAST` participants. So a number of groups is a number of
splits that were each significant. Simulations end early once that is impossible. O(participants^2) each.
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import pdist, squareform

LEAST, MOST = 10, 500  # participants with weights that groups are looked for in
SIMULATED = 99
LEVEL = 0.05


class ParticipantGroups(NamedTuple):
    """`group` (p,) int64 from 0 on, the largest group first; all 0 without a significant result."""

    verdict: str
    group: np.ndarray
    p_value: float | None = None
    silhouette: float | None = None

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=0)) + 1


def shares(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(p, d) share of each axis in the squared differences that participants see.

    >>> shares(np.array([[0.0, 0.0], [2.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 2.0]])).tolist()
    [[0.8, 0.2], [0.5, 0.5]]
    """
    seen = weights * points.var(axis=0)
    return seen / np.maximum(seen.sum(axis=1, keepdims=True), 1e-300)


def participant_groups(weights: np.ndarray, seed: int = 0) -> ParticipantGroups:
    """Groups of the participants with these weights (p, d)."""
    people, d = weights.shape
    alone = np.zeros(people, np.int64)
    if d < 2 or not LEAST <= people <= MOST:
        return ParticipantGroups(f"not tested: expected two axes and {LEAST} to {MOST} participants", alone)
    logs = np.log(weights)
    seen = logs - logs.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    split, found, p = _tested(seen, rng)
    if p > LEVEL:
        return ParticipantGroups("no separate groups of participants found", alone, p, found)
    parts, done = [np.flatnonzero(split == each) for each in (0, 1)], []
    while parts:
        part = parts.pop()
        inner, _, p_inner = _tested(seen[part], rng) if len(part) >= LEAST else (split, 0.0, 1.0)
        if p_inner > LEVEL:
            done.append(part)
        else:
            parts += [part[inner == each] for each in (0, 1)]
    group = alone
    for number, part in enumerate(sorted(done, key=lambda each: (-len(each), each[0]))):
        group[part] = number
    return ParticipantGroups(f"{len(done)} groups of participants", group, p, found)


def _tested(seen: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
    """The split in two, its mean silhouette, and the p-value; simulations end once it is above the level."""
    split, found = _best(seen)
    mean, covariance = seen.mean(axis=0), np.cov(seen.T)
    above = done = 0
    while done < SIMULATED and (1 + above) / (1 + SIMULATED) <= LEVEL:
        above += _best(rng.multivariate_normal(mean, covariance, len(seen), method="eigh"))[1] >= found
        done += 1
    return split, found, (1 + above) / (1 + done)


def _best(seen: np.ndarray) -> tuple[np.ndarray, float]:
    """The two groups of Ward's method, and their mean silhouette."""
    apart = pdist(seen)
    group = fcluster(ward(apart), 2, "maxclust") - 1
    return group, _silhouette(squareform(apart), group, 2) if group.max() == 1 else -1.0


def _silhouette(apart: np.ndarray, group: np.ndarray, count: int) -> float:
    """The mean silhouette; 0 for whoever is alone in a group."""
    member = np.eye(count)[group]
    size, sums, at = member.sum(axis=0), apart @ member, np.arange(len(group))
    own = sums[at, group] / np.maximum(size[group] - 1, 1)
    others = sums / size
    others[at, group] = np.inf
    nearest = others.min(axis=1)
    value = (nearest - own) / np.maximum(np.maximum(own, nearest), 1e-300)
    return float(np.where(size[group] > 1, value, 0.0).mean())
