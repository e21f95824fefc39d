"""How crowded are the borders between groups of points? What tells clusters from a continuum that was cut into pieces.

Cut into k pieces, points of a continuum lie on both sides of every cut and close to it, whatever its shape; between
clusters there are few. For x in cluster a, with centres c, the way to the border towards b is

    t(x) = (|x - c_b|^2 - |x - c_a|^2) / (2 |c_a - c_b|^2),   1/2 at the centre, 0 on the border,

and the crowding of the borders is the density of t at 0 over that of the smaller of the two clusters, over all borders,

    (1/2 + sum_{a, b} sum_{x in a, b} exp(-(t(x) / w)^2) / (w sqrt(pi))) / sum_{a, b} min(n_a, n_b),   w = WIDTH.

It is 1 where a line is cut, .8 on a ring, 1.2 in a Gaussian and above where objects crowd at one end; two Gaussian
groups 4, 5, 6 standard deviations apart have .6, .4, .25. Borders are looked at between clusters that touch: no third
centre lies in the sphere between the two (Gabriel & Sokal 1969).
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage

from stream_engine.data.compiled import njit

WIDTH = 0.18  # of a border, in distances between centres
ADDED = 0.5  # to the density at the borders: few objects cannot show that they are empty
LEAST_SHARE = 1e-6  # is added, so that points that lie on each other have a logarithm
LITTLE = 1.1
ROUNDS = 30  # of Lloyd's iteration


class Cut(NamedTuple):
    """Points cut into k groups: Ward's tree, then Lloyd's iteration; begun without groups of one object, if the share
    within is at most `LITTLE` times as large then."""

    labels: np.ndarray  # (n,) int32
    crowding: float  # of the borders
    within: float  # share of the variance that is left within the groups


def features(made: list[Cut]) -> np.ndarray:
    """(t, 2) of cuts into 2 to t + 2 groups, for all but the last: log crowding, and the elbow of the share within,

        log W(k) - (log W(k - 1) + log W(k + 1)) / 2,   W(1) = 1.

    Both are small where groups are clear.

    >>> points = np.array([[0.0], [0.1], [0.2], [2.0], [2.1], [2.2], [4.0], [4.1], [4.2], [6.0], [6.1], [6.2]])
    >>> (features(cuts(points, (2, 3, 4, 5))).argmin(axis=0) + 2).tolist()
    [4, 4]
    """
    within = np.log(np.array([1.0, *(cut.within for cut in made)]) + LEAST_SHARE)
    elbow = within[1:-1] - (within[:-2] + within[2:]) / 2
    return np.stack([np.log([cut.crowding for cut in made[:-1]]), elbow], axis=1)


def cuts(points: np.ndarray, ks: tuple[int, ...]) -> list[Cut]:
    """The points (n, d), n > max(ks), cut into each number of groups; deterministic. O(n^2 + sum_k (n k d + k^3)).

    >>> even, groups = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0.0], [0.1], [2.9], [3.0]])
    >>> [round(cuts(points, (2,))[0].crowding, 2) for points in (even, groups)]
    [0.71, 0.25]
    """
    points = np.ascontiguousarray(points, np.float64)
    tree = np.ascontiguousarray(linkage(points, "ward")[:, :2].astype(np.int64))
    middle, made = points.mean(axis=0), []
    for k in ks:
        labels = _tree_cut(tree, len(points), k)
        single = np.bincount(labels).min() == 1
        cut = Cut(labels, *_settle(points, middle, labels, k))
        if single:
            labels = _without_singles(points, tree, k)
            other = Cut(labels, *_settle(points, middle, labels, k))
            cut = other if other.within <= LITTLE * cut.within else cut
        made.append(cut)
    return made


def _without_singles(points: np.ndarray, tree: np.ndarray, k: int) -> np.ndarray:
    """(n,) labels of k groups of the tree with two objects at least, objects by themselves in the nearest one; or of
    its last k - 1 merges, where it has no such groups."""
    n = len(points)
    for cut in range(k, min(n, 2 * k + 2)):
        labels = _tree_cut(tree, n, cut)
        sizes = np.bincount(labels, minlength=cut)
        groups = np.flatnonzero(sizes > 1)
        if len(groups) == k:
            centres = np.stack([np.bincount(labels, column, cut) for column in points.T], axis=1) / sizes[:, None]
            away = ((points[:, None] - centres[groups]) ** 2).sum(axis=2)
            number = np.cumsum(sizes > 1) - 1
            return np.where(sizes[labels] > 1, number[labels], away.argmin(axis=1)).astype(np.int32)
    return _tree_cut(tree, n, k)


def _tree_cut(tree: np.ndarray, n: int, k: int) -> np.ndarray:
    """(n,) labels of the k groups that are left before the last k - 1 merges, by first appearance."""
    parent = np.arange(2 * n - 1)
    parent[tree[: n - k].ravel()] = np.repeat(np.arange(n, 2 * n - k), 2)
    while (parent != (up := parent[parent])).any():
        parent = up
    _, first, inverse = np.unique(parent[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int32)


@njit(cache=True, nogil=True)
def _settle(points, middle, labels, k):
    """Lloyd's iteration on `labels`, in place; the crowding of the borders, and the share within. `middle` of all."""
    n, d = points.shape
    centres, sizes, squared = np.empty((k, d)), np.empty(k), np.empty((n, k))
    for _ in range(ROUNDS):
        centres[:], sizes[:] = 0.0, 0.0
        for i in range(n):
            sizes[labels[i]] += 1.0
            for c in range(d):
                centres[labels[i], c] += points[i, c]
        for a in range(k):
            for c in range(d):
                centres[a, c] /= max(sizes[a], 1.0)
        moved = False
        for i in range(n):
            best = labels[i]
            for a in range(k):
                total = 0.0
                for c in range(d):
                    total += (points[i, c] - centres[a, c]) ** 2
                squared[i, a] = total
            for a in range(k):
                if sizes[a] > 0.0 and squared[i, a] < squared[i, best]:
                    best = a
            if best != labels[i]:
                labels[i] = best
                moved = True
        if not moved:
            break
    crowd, inside = 0.0, 0.0
    for a in range(k):
        for b in range(a + 1, k):
            if sizes[a] == 0.0 or sizes[b] == 0.0:
                continue
            apart = 0.0
            for c in range(d):
                apart += (centres[a, c] - centres[b, c]) ** 2
            if not _touch(centres, sizes, a, b, apart):
                continue
            inside += min(sizes[a], sizes[b])
            for i in range(n):
                if labels[i] == a or labels[i] == b:
                    t = (squared[i, a] - squared[i, b]) / (2.0 * max(apart, 1e-300)) / WIDTH
                    crowd += np.exp(-t * t)
    within, whole = 0.0, 0.0
    for i in range(n):
        within += squared[i, labels[i]]
        for c in range(d):
            whole += (points[i, c] - middle[c]) ** 2
    return (ADDED + crowd / (WIDTH * np.sqrt(np.pi))) / max(inside, 1.0), within / max(whole, 1e-300)


@njit(cache=True, nogil=True)
def _touch(centres, sizes, a, b, apart):
    """Whether no third centre lies in the sphere whose diameter the two are."""
    for e in range(len(centres)):
        if e != a and e != b and sizes[e] > 0.0:
            one, other = 0.0, 0.0
            for c in range(centres.shape[1]):
                one += (centres[e, c] - centres[a, c]) ** 2
                other += (centres[e, c] - centres[b, c]) ** 2
            if one + other < apart * (1.0 - 1e-9):
                return False
    return True
