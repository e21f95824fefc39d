"""How clear are groups of points: empty borders, and little variance within? What tells clusters from a continuum that
was cut into pieces.

Cut into k pieces, points of a continuum lie on both sides of every cut and close to it, whatever its shape; clusters
leave the borders empty. For x in cluster a, with centres c, the way to the border towards b is

    t_b(x) = (|x - c_b|^2 - |x - c_a|^2) / (2 |c_a - c_b|^2),   1/2 at the centre, 0 on the border,

and the crowding of a partition's borders is mean_x exp(-(min_b t_b(x) / WIDTH)^2): near 0 at clusters that are points.
The share of the variance that is left within the groups, sum_x |x - c_a|^2 / sum_x |x - c|^2, says the rest: crowding
looks at the few points near borders, the share at all of them. By itself the share tells the shape (a ring cut into
three arcs has less of it than a disc), so a continuum to compare with must have the same (docs/design/clustering.md).
"""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

WIDTH = 0.25  # of a border, in distances between centres
LEAST_CROWDING, LEAST_SHARE = 1e-3, 1e-6  # are added, so that points that lie on each other have a logarithm
ROUNDS = 30  # of Lloyd's iteration


def partitions(points: np.ndarray, ks: tuple[int, ...]) -> list[np.ndarray]:
    """(n,) labels 0 .. k - 1 for each k: Ward's tree cut into k, then Lloyd's iteration. Deterministic;
    O(n^2 + n k d)."""
    return [labels for labels, _, _ in _cut(points, ks)]


def crowding(points: np.ndarray, ks: tuple[int, ...]) -> np.ndarray:
    """(len(ks),) of the borders of the partitions into each k; points (n, d), n > max(ks).

    >>> even, groups = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0.0], [0.1], [2.9], [3.0]])
    >>> crowding(even, (2,)).round(3).tolist(), crowding(groups, (2,)).round(3).tolist()
    ([0.184], [0.019])
    """
    return np.array([of_partition(*cut) for cut in _cut(points, ks)])


def looseness(points: np.ndarray, ks: tuple[int, ...]) -> np.ndarray:
    """(len(ks),) ln(crowding x share of the variance within groups) of the partitions into each k: the lower, the
    clearer the groups.

    >>> even, groups = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0.0], [0.1], [2.9], [3.0]])
    >>> looseness(even, (2,)).round(2).tolist(), looseness(groups, (2,)).round(2).tolist()
    ([-3.3], [-10.65])
    """
    whole = max(float(((points - points.mean(axis=0)) ** 2).sum()), 1e-300)
    found = []
    for labels, centres, squared in _cut(points, ks):
        within = float(squared[np.arange(len(labels)), labels].sum()) / whole
        crowded = of_partition(labels, centres, squared)
        found.append(np.log((crowded + LEAST_CROWDING) * (within + LEAST_SHARE)))
    return np.array(found)


def of_partition(labels: np.ndarray, centres: np.ndarray, squared: np.ndarray) -> float:
    """The crowding of the borders of a partition; `squared` (n, k) distances of points to centres."""
    own = squared[np.arange(len(labels)), labels]
    apart = ((centres[labels][:, None] - centres[None]) ** 2).sum(axis=-1)
    apart[np.arange(len(labels)), labels] = np.inf  # a cluster has no border with itself
    with np.errstate(invalid="ignore"):
        way = np.where(np.isinf(apart), np.inf, (squared - own[:, None]) / (2 * np.maximum(apart, 1e-300)))
    return float(np.exp(-((way.min(axis=1) / WIDTH) ** 2)).mean())


def _cut(points: np.ndarray, ks: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    tree = linkage(points, "ward")
    return [_settled(points, fcluster(tree, k, "maxclust") - 1) for k in ks]


def _settled(points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, centres (k, d) and squared distances (n, k) after Lloyd's iteration."""
    k = int(labels.max()) + 1
    for _ in range(ROUNDS):
        sizes = np.bincount(labels, minlength=k)
        sums = np.stack([np.bincount(labels, column, k) for column in points.T], axis=1)
        centres = sums / np.maximum(sizes, 1)[:, None]
        squared = ((points[:, None] - centres[None]) ** 2).sum(axis=-1)
        squared[:, sizes == 0] = np.inf
        moved = squared.argmin(axis=1)
        if (moved == labels).all():
            break
        labels = moved
    filled = np.flatnonzero(np.bincount(labels, minlength=k))
    return np.searchsorted(filled, labels), centres[filled], squared[:, filled]
