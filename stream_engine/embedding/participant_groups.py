"""Groups of participants who see alike: clusters of their log weights, with a test.

A participant's log weights less their mean say which axes count for more and which for less. They are clustered by
Ward's method; the number of groups is the one with the largest mean silhouette (Rousseeuw 1987). The test compares this
silhouette with the largest of simulated participants from one normal distribution with the same mean and covariance,
which is what the fit supposes: groups are reported only if p <= .05. Simulations end early once that is impossible.
O(participants^2) each.
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import pdist, squareform

LEAST, MOST = 10, 500  # participants with weights that groups are looked for in
GROUPS = (2, 3, 4, 5)
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
    group, found = _best(seen)
    rng = np.random.default_rng(seed)
    mean, covariance = seen.mean(axis=0), np.cov(seen.T)
    above = done = 0
    while done < SIMULATED and (1 + above) / (1 + SIMULATED) <= LEVEL:
        above += _best(rng.multivariate_normal(mean, covariance, people, method="eigh"))[1] >= found
        done += 1
    p = (1 + above) / (1 + done)
    if (1 + above) / (1 + SIMULATED) > LEVEL:
        return ParticipantGroups("no separate groups of participants found", alone, p, found)
    return ParticipantGroups(f"{int(group.max()) + 1} groups of participants", group, p, found)


def _best(seen: np.ndarray) -> tuple[np.ndarray, float]:
    """The groups with the largest mean silhouette, the largest group first, and that silhouette."""
    apart = pdist(seen)
    tree, square = ward(apart), squareform(apart)
    best, silhouette = np.zeros(len(seen), np.int64), -1.0
    for k in GROUPS:
        group = fcluster(tree, k, "maxclust") - 1
        if 1 < (count := int(group.max()) + 1) < len(seen) and (mean := _silhouette(square, group, count)) > silhouette:
            best, silhouette = group, mean
    order = np.argsort(-np.bincount(best), kind="stable")
    return np.argsort(order)[best], silhouette


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
