"""How crowded the borders between groups of points are. Few points lie near the borders of real clusters, whereas a
continuum that was cut into k pieces has points close to every cut, whatever its shape."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage

from stream_engine.data.compiled import njit

# For x in cluster a, with centres c, the position of x on the way to the border towards b is
#
#     t(x) = (|x - c_b|^2 - |x - c_a|^2) / (2 |c_a - c_b|^2),   1/2 at the centre, 0 on the border,
#
# and the crowding of the borders is the density of t at 0 over that of the smaller of the two clusters, over all
# borders,
#
#     (1/2 + sum_{a, b} sum_{x in a, b} exp(-(t(x) / w)^2) / (w sqrt(pi))) / sum_{a, b} min(n_a, n_b).
#
# It is 1 where a line is cut, .8 on a ring, 1.2 in a Gaussian and above where objects crowd at one end; two Gaussian
# groups 4, 5, 6 standard deviations apart have .6, .4, .25. Only borders between clusters that touch count: no third
# centre lies in the sphere between the two (Gabriel & Sokal 1969).
BORDER_WIDTH = 0.18  # w, in distances between centres
CROWDING_PRIOR = 0.5  # added to the density at the borders: few objects cannot show that borders are empty
SHARE_OFFSET = 1e-6  # added to a share of variance, so that coinciding points have a logarithm
MAX_SPREAD_RATIO = 1.1  # by which groups without single objects may be less compact
LLOYD_ROUNDS = 30


class Cut(NamedTuple):
    """Points cut into k groups: Ward's tree, then Lloyd's iteration.

    Lloyd's iteration starts without groups of a single object if `within_share` then is at most `MAX_SPREAD_RATIO`
    times as large."""

    labels: np.ndarray  # (n,) int32
    crowding: float  # of the borders
    within_share: float  # share of the variance that is left within the groups


def features(cuts_by_k: list[Cut]) -> np.ndarray:
    """(t, 2) of cuts into 2 to t + 2 groups, for all but the last: log crowding, and the elbow of `within_share` W,

        log W(k) - (log W(k - 1) + log W(k + 1)) / 2,   W(1) = 1.

    Both are small where groups are clear.

    >>> points = np.array([[0.0], [0.1], [0.2], [2.0], [2.1], [2.2], [4.0], [4.1], [4.2], [6.0], [6.1], [6.2]])
    >>> (features(cuts(points, (2, 3, 4, 5))).argmin(axis=0) + 2).tolist()
    [4, 4]
    """
    within_share = np.log(np.array([1.0, *(cut.within_share for cut in cuts_by_k)]) + SHARE_OFFSET)
    elbow = within_share[1:-1] - (within_share[:-2] + within_share[2:]) / 2
    return np.stack([np.log([cut.crowding for cut in cuts_by_k[:-1]]), elbow], axis=1)


def cuts(points: np.ndarray, ks: tuple[int, ...]) -> list[Cut]:
    """The points (n, d), n > max(ks), cut into each number of groups; deterministic. O(n^2 + sum_k (n k d + k^3)).

    >>> even, groups = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0.0], [0.1], [2.9], [3.0]])
    >>> [round(cuts(points, (2,))[0].crowding, 2) for points in (even, groups)]
    [0.71, 0.25]
    """
    points = np.ascontiguousarray(points, np.float64)
    tree = np.ascontiguousarray(linkage(points, "ward")[:, :2].astype(np.int64))
    middle, cuts_by_k = points.mean(axis=0), []
    for k in ks:
        labels = _tree_cut(tree, len(points), k)
        single = np.bincount(labels).min() == 1
        cut = Cut(labels, *_lloyd(points, middle, labels, k))
        if single:
            labels = _without_singles(points, tree, k)
            without_singles = Cut(labels, *_lloyd(points, middle, labels, k))
            cut = without_singles if without_singles.within_share <= MAX_SPREAD_RATIO * cut.within_share else cut
        cuts_by_k.append(cut)
    return cuts_by_k


def _without_singles(points: np.ndarray, tree: np.ndarray, k: int) -> np.ndarray:
    """(n,) labels of k groups with at least two objects, from a finer cut of the tree whose single objects join the
    nearest group; if no cut has k such groups, those of the plain cut."""
    n = len(points)
    for n_groups in range(k, min(n, 2 * k + 2)):
        labels = _tree_cut(tree, n, n_groups)
        sizes = np.bincount(labels, minlength=n_groups)
        groups = np.flatnonzero(sizes > 1)
        if len(groups) == k:
            centres = np.stack([np.bincount(labels, column, n_groups) for column in points.T], axis=1) / sizes[:, None]
            distances = ((points[:, None] - centres[groups]) ** 2).sum(axis=2)
            group_number = np.cumsum(sizes > 1) - 1
            return np.where(sizes[labels] > 1, group_number[labels], distances.argmin(axis=1)).astype(np.int32)
    return _tree_cut(tree, n, k)


def _tree_cut(tree: np.ndarray, n: int, k: int) -> np.ndarray:
    """(n,) labels of the k groups before the last k - 1 merges, numbered by first appearance."""
    parent = np.arange(2 * n - 1)
    parent[tree[: n - k].ravel()] = np.repeat(np.arange(n, 2 * n - k), 2)
    while (parent != (up := parent[parent])).any():
        parent = up
    _, first, inverse = np.unique(parent[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int32)


@njit(cache=True, nogil=True)
def _lloyd(points, middle, labels, k):
    """Lloyd's iteration on `labels`, in place; returns the crowding of the borders and the share of variance within.

    `middle` is the mean of all points.
    """
    n, d = points.shape
    centres, sizes, squares = np.empty((k, d)), np.empty(k), np.empty((n, k))
    for _ in range(LLOYD_ROUNDS):
        centres[:], sizes[:] = 0.0, 0.0
        for i in range(n):
            sizes[labels[i]] += 1.0
            for c in range(d):
                centres[labels[i], c] += points[i, c]
        for a in range(k):
            for c in range(d):
                centres[a, c] /= max(sizes[a], 1.0)
        any_change = False
        for i in range(n):
            best = labels[i]
            for a in range(k):
                total = 0.0
                for c in range(d):
                    total += (points[i, c] - centres[a, c]) ** 2
                squares[i, a] = total
            for a in range(k):
                if sizes[a] > 0.0 and squares[i, a] < squares[i, best]:
                    best = a
            if best != labels[i]:
                labels[i] = best
                any_change = True
        if not any_change:
            break
    kernel_sum, touching_size = 0.0, 0.0
    for a in range(k):
        for b in range(a + 1, k):
            if sizes[a] == 0.0 or sizes[b] == 0.0:
                continue
            centre_distance = 0.0
            for c in range(d):
                centre_distance += (centres[a, c] - centres[b, c]) ** 2
            if not _touch(centres, sizes, a, b, centre_distance):
                continue
            touching_size += min(sizes[a], sizes[b])
            for i in range(n):
                if labels[i] == a or labels[i] == b:
                    t = (squares[i, a] - squares[i, b]) / (2.0 * max(centre_distance, 1e-300)) / BORDER_WIDTH
                    kernel_sum += np.exp(-t * t)
    within_squares, total_squares = 0.0, 0.0
    for i in range(n):
        within_squares += squares[i, labels[i]]
        for c in range(d):
            total_squares += (points[i, c] - middle[c]) ** 2
    return (CROWDING_PRIOR + kernel_sum / (BORDER_WIDTH * np.sqrt(np.pi))) / max(
        touching_size, 1.0
    ), within_squares / max(total_squares, 1e-300)


@njit(cache=True, nogil=True)
def _touch(centres, sizes, a, b, centre_distance):
    """Whether clusters a and b touch: no third centre lies in the sphere with the two centres as its diameter."""
    for e in range(len(centres)):
        if e != a and e != b and sizes[e] > 0.0:
            to_a, to_b = 0.0, 0.0
            for c in range(centres.shape[1]):
                to_a += (centres[e, c] - centres[a, c]) ** 2
                to_b += (centres[e, c] - centres[b, c]) ** 2
            if to_a + to_b < centre_distance * (1.0 - 1e-9):
                return False
    return True
