"""Kernel functions on the objects, from counts alone: k1, k2 (MulK-3) and MulK-4.

    k1: Phi(a)[{j,k}] = (#(a,j,k) - #(a,k,j)) / (#(a,j,k) + #(a,k,j))       what a, as the anchor, says about pairs
    k2: Phi(a)[(i,j)] = (#(i,a,j) - #(i,j,a)) / (#(i,a,j) + #(i,j,a))       where a lies, seen from other anchors
    k(a, b) = <Phi(a), Phi(b)> / (|Phi(a)| |Phi(b)|),   0/0 = 0

Kleindessner & von Luxburg 2017, sec. 2; MulK-4 from Perrot et al. 2020, App. A. Where products or leading eigenvectors
suffice, take the factor Phi (`features1`, `features2`, `eigenpairs`, `factors`): K need not exist.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stream_engine.counts import feature_space, gram_matrices
from stream_engine.counts.gram_matrices import Features
from stream_engine.data.compiled import njit, read_only
from stream_engine.data.triplet_columns import Columns

if TYPE_CHECKING:  # an export of counts does without scipy
    import scipy.sparse as sp

KERNEL_LIMIT = 16384  # objects: a kernel of 2 GB; above it kernels come as their factor
LANDMARK_SHARE = 0.25  # landmarks are at most this share of the objects
MAX_FEATURE_COLUMNS = 4096  # feature columns up to which eigenvectors are found in feature space


def k1(columns: Columns, rows: np.ndarray | None = None) -> np.ndarray:
    r"""The kernel k1: similarity of the rankings that two objects, as anchors, induce on all others.

    .. math:: k_1(a, b) = \frac{\langle \Phi_1(a), \Phi_1(b) \rangle}{\|\Phi_1(a)\| \, \|\Phi_1(b)\|}, \quad
    \Phi_1(a)_{\{i,j\}} = \begin{cases} 1 & d(a,i) < d(a,j) \\ -1 & d(a,i) > d(a,j) \\ 0 & \text{unknown} \end{cases}

    MulK-3 (Perrot et al. 2020) is this kernel. The cost is O(sum over pairs of squared column size) or BLAS, whichever
    is cheaper for a pair.

    Parameters
    ----------
    columns : Columns
        Triplet counts.
    rows : ndarray of int, optional
        Compute only these rows.

    Returns
    -------
    ndarray, shape (n, n) or (len(rows), n)
        The kernel; the diagonal is 1 for every anchor, else 0.

    Raises
    ------
    ValueError
        If the result does not fit into memory.

    References
    ----------
    Kleindessner & von Luxburg 2017, eq. (3).

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> c = columns_from_triplets(np.array([[0, 2, 3], [1, 2, 3], [1, 0, 2]]), 4)  # 0 and 1 agree on the pair {2, 3}
    >>> k1(c).round(3).tolist()
    [[1.0, 0.707, 0.0, 0.0], [0.707, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    return gram_matrices.gram(_raw1(columns), rows, unit=True, where="k1")


mulk3 = k1


def k2(columns: Columns, rows: np.ndarray | None = None) -> np.ndarray:
    r"""The kernel k2: similarity of the positions of two objects in the rankings of all anchors.

    .. math:: k_2(a, b) = \frac{\langle \Phi_2(a), \Phi_2(b) \rangle}{\|\Phi_2(a)\| \, \|\Phi_2(b)\|}, \quad
    \Phi_2(a)_{(i,j)} = \begin{cases} 1 & d(i,a) < d(i,j) \\ -1 & d(i,a) > d(i,j) \\ 0 & \text{unknown} \end{cases}

    The cost is that of `k1`, over feature columns (anchor, other object).

    Parameters
    ----------
    columns : Columns
        Triplet counts.
    rows : ndarray of int, optional
        Compute only these rows.

    Returns
    -------
    ndarray, shape (n, n) or (len(rows), n)
        The kernel; the diagonal is 1 for every object that was near or far, else 0.

    Raises
    ------
    ValueError
        If the result does not fit into memory.

    References
    ----------
    Kleindessner & von Luxburg 2017, eq. (5).

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> c = columns_from_triplets(np.array([[3, 0, 2], [3, 2, 1]]), 4)  # 0 nearer than 2, 1 farther than 2: they differ
    >>> k2(c).tolist()
    [[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    return gram_matrices.gram(_raw2(columns), rows, unit=True, where="k2")


def mulk4(counts: Mapping[str, np.ndarray], n_objects: int) -> np.ndarray:
    r"""The kernel MulK-4 from quadruplets, not normalised.

    .. math:: W_{ij} = \sum_r \sum_{k<l} s(i,r,k,l) \, s(j,r,k,l)

    where s(i,r,k,l) is 1 if {i,r} was ever nearer than {k,l}, minus 1 if {k,l} was ever nearer. Only comparisons of
    four distinct objects count.

    Parameters
    ----------
    counts : mapping of str to ndarray
        Quadruplet counts: i, j, k, l, n_lo, n_hi.
    n_objects : int
        Number of objects n.

    Returns
    -------
    ndarray, shape (n, n)
        W.

    References
    ----------
    Perrot et al. 2020, App. A; Ghoshdastidar et al. 2019.

    Examples
    --------
    >>> one = {name: np.array([x]) for name, x in zip(("i", "j", "k", "l", "n_lo", "n_hi"), (0, 1, 2, 3, 1, 0))}
    >>> mulk4(one, 4).diagonal().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    i, j, k, l = (np.asarray(counts[name], np.int64) for name in "ijkl")
    sign = (np.asarray(counts["n_lo"]) > 0).astype(np.int64) - (np.asarray(counts["n_hi"]) > 0)
    # Four features a key: object of one pair, at (its partner, the other pair); the sign turns with the side.
    sides = (j, k, l, i, sign), (i, k, l, j, sign), (l, i, j, k, -sign), (k, i, j, l, -sign)
    key = np.concatenate([(a * n_objects + b) * n_objects + c for a, b, c, _, _ in sides])  # below n^3
    owner, value = (np.concatenate(column) for column in list(zip(*sides))[3:])
    order = np.lexsort((owner, key)) if n_objects > 2**15 else np.argsort(key * n_objects + owner)
    key = key[order]
    start = np.append(np.flatnonzero(np.diff(key, prepend=-1)), len(key))
    return gram_matrices.gram(
        gram_matrices.features(start, owner[order], value[order], n_objects), unit=False, where="MulK-4"
    )


@njit(cache=True, nogil=True)
def _votes(n_lo, n_hi):
    """(K,) float64: (n_lo - n_hi) / (n_lo + n_hi)."""
    votes = np.empty(len(n_lo), np.float64)
    for e in range(len(n_lo)):
        votes[e] = (n_lo[e] - n_hi[e]) / (n_lo[e] + n_hi[e])
    return votes


def votes(columns: Columns) -> np.ndarray:
    """(K,) float64: (n_lo - n_hi) / (n_lo + n_hi) of each key. O(keys)."""
    return _votes(read_only(columns.n_lo), read_only(columns.n_hi))


def _raw1(columns: Columns) -> Features:
    return gram_matrices.features(columns.start, columns.anchor, votes(columns), columns.n_objects)


@njit(cache=True, nogil=True)
def _by_anchor(start, pair_lo, pair_hi, anchor, votes, first, pairs, value):
    """Counting transpose: keys ordered by anchor, and by pair within an anchor. `first` holds n + 1 zeros."""
    for a in anchor:
        first[a + 1] += 1
    for a in range(len(first) - 1):
        first[a + 1] += first[a]
    place = first[:-1].copy()
    for p in range(len(pair_lo)):
        for e in range(start[p], start[p + 1]):
            at = place[anchor[e]]
            place[anchor[e]] = at + 1
            pairs[at, 0], pairs[at, 1], value[at] = pair_lo[p], pair_hi[p], votes[e]


@njit(cache=True, nogil=True)
def _other_columns(first, pairs, votes, start, object, value):
    """Feature columns (anchor, j), in order of first appearance; returns how many.

    Keys of an anchor come sorted by (lo, hi), hence objects increase within a column: those below j, as `lo` of keys
    (lo, j), come before those above it, as `hi` of keys (j, hi).
    """
    n = len(first) - 1
    size, place, touched = np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    columns, at = 0, 0
    for anchor in range(n):
        distinct = 0
        for e in range(first[anchor], first[anchor + 1]):
            for side in range(2):
                j = pairs[e, side]
                touched[distinct] = j
                distinct += size[j] == 0
                size[j] += 1
        for t in range(distinct):
            j = touched[t]
            start[columns + t] = at
            place[j] = at
            at += size[j]
            size[j] = 0
        columns += distinct
        for e in range(first[anchor], first[anchor + 1]):
            lo, hi = pairs[e, 0], pairs[e, 1]
            object[place[hi]], value[place[hi]] = lo, votes[e]
            object[place[lo]], value[place[lo]] = hi, -votes[e]
            place[hi] += 1
            place[lo] += 1
    start[columns] = at
    return columns


def _raw2(columns: Columns) -> Features:
    n, size = columns.n_objects, len(columns.anchor)
    gram_matrices.check_memory(72 * size, f"k2 - features of {size} keys")
    start, anchor = read_only(columns.start, np.int64), read_only(columns.anchor, np.int32)
    lo, hi = read_only(columns.lo, np.int32), read_only(columns.hi, np.int32)
    first, pairs, value = np.zeros(n + 1, np.int64), np.empty((size, 2), np.int32), np.empty(size)
    _by_anchor(start, lo, hi, anchor, _raw1(columns).value, first, pairs, value)
    # At most 2 * size columns; only the pages of those that there are get touched.
    begins, objects, values = np.empty(2 * size + 1, np.int64), np.empty(2 * size, np.int32), np.empty(2 * size)
    count = _other_columns(first, pairs, value, begins, objects, values)
    return gram_matrices.features(begins[: count + 1], objects, values, n)


def factor(phi: Features) -> "sp.csc_array":
    """Phi (n, C) as sparse columns, rows scaled to length 1, zero ones kept. O(entries)."""
    from scipy.sparse import csc_array

    _, scale = gram_matrices.lengths(phi)
    value = phi.value * scale[phi.object]
    return csc_array((value, phi.object, phi.start), shape=(phi.n_objects, len(phi.start) - 1))


def features1(columns: Columns) -> "sp.csc_array":
    r"""Feature vectors of the kernel k1.

    .. math:: k_1 = \Phi_1 \Phi_1^\top

    12 bytes per key instead of 8 n^2, for products with K or its eigenvectors. O(keys).

    Parameters
    ----------
    columns : Columns
        Triplet counts.

    Returns
    -------
    scipy.sparse.csc_array, shape (n, pairs)
        Phi_1 with rows of length 1 or 0; column p belongs to the pair p of `columns`.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> features1(columns_from_triplets(np.array([[0, 2, 1], [0, 1, 3]]), 4)).toarray()[0].round(3).tolist()
    [-0.707, 0.707]
    """
    return factor(_raw1(columns))


def features2(columns: Columns) -> "sp.csc_array":
    r"""Feature vectors of the kernel k2. O(keys).

    .. math:: k_2 = \Phi_2 \Phi_2^\top

    Parameters
    ----------
    columns : Columns
        Triplet counts.

    Returns
    -------
    scipy.sparse.csc_array, shape (n, (anchor, other object) pairs)
        Phi_2 with rows of length 1 or 0. For landmark designs, `landmark_designs.features2` has fewer columns.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> features2(columns_from_triplets(np.array([[0, 2, 1], [0, 1, 3]]), 4)).toarray()[1].round(3).tolist()
    [0.0, -0.707, 0.707]
    """
    return factor(_raw2(columns))


def eigenpairs(phi: "sp.csc_array", k: int, centred: bool = False) -> tuple[np.ndarray, np.ndarray]:
    r"""The largest eigenvalues and eigenvectors of a kernel, without computing the kernel.

    .. math:: K = \Phi \Phi^\top \quad\text{or}\quad H K H,\; H = I - \tfrac{1}{n} 1 1^\top

    Parameters
    ----------
    phi : scipy.sparse.csc_array, shape (n, C)
        Feature vectors of the objects, see `features1` and `features2`.
    k : int
        Number of eigenpairs.
    centred : bool
        Whether to centre the kernel (kernel PCA).

    Returns
    -------
    values : ndarray, shape (k,)
        Eigenvalues, largest first.
    vectors : ndarray, shape (n, k)
        Eigenvectors; the largest entry of each is positive. If K has rank below k, the remaining ones are 0.

    Notes
    -----
    With at most FEW_COLUMNS feature columns C, and fewer than objects, in feature space: O(C^3) after one pass over
    Phi, and memory C^2 plus the result; otherwise by Lanczos, O(nonzeros) per step.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> values, vectors = eigenpairs(features1(columns_from_triplets(np.array([[0, 2, 3], [1, 2, 3]]), 4)), 1)
    >>> values.round(6).tolist(), vectors[:, 0].round(3).tolist()
    ([2.0], [0.707, 0.707, 0.0, 0.0])
    """
    n, width = phi.shape
    if not 0 <= k <= n:
        raise ValueError(f"eigenpairs - k - got {k} - expected 0 <= k <= {n}, the number of objects - ask for fewer")
    mean = np.asarray(phi.mean(axis=0)).reshape(-1) if centred and n else np.zeros(width)
    if width <= min(n, MAX_FEATURE_COLUMNS):
        values, right = _leading(phi, k, mean)
        vectors = feature_space.projected(phi, right, mean)
    elif k >= n - 1 or n <= 64:
        dense = phi @ phi.T
        low = phi @ mean
        values, vectors = np.linalg.eigh(dense.toarray() - low[:, None] - low + mean @ mean)
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    else:

        def times(x):
            y = phi.T @ x - mean * x.sum()
            return phi @ y - mean @ y

        from scipy.sparse import linalg  # here and below: a run that only predicts with k1 and k2 does without

        operator = linalg.LinearOperator((n, n), matvec=lambda x: times(x.reshape(-1)), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = linalg.eigsh(operator, k, v0=start) if k else (np.empty(0), np.empty((n, 0)))
        values, vectors = values[::-1], vectors[:, ::-1]
    return _tidy(values, vectors, k)


def factors(phi: "sp.csc_array", k: int) -> np.ndarray:
    r"""The best approximation of a kernel of rank k, as a factor.

    .. math:: F F^\top \approx K = \Phi \Phi^\top

    For landmark designs, with at most FEW_COLUMNS feature columns.

    Parameters
    ----------
    phi : scipy.sparse.csc_array, shape (n, C)
        Feature vectors of the objects.
    k : int
        Number of columns; exact (to float32) for k = C.

    Returns
    -------
    ndarray, shape (n, k), float32
        F: the rows of Phi on its k leading axes; the largest entry of each column is positive, columns sorted by
        length.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> F = factors(features1(columns_from_triplets(np.array([[0, 2, 3], [1, 2, 3]]), 4)), 1)
    >>> F.round(3).tolist(), F.dtype.name
    ([[1.0], [1.0], [0.0], [0.0]], 'float32')
    """
    width = phi.shape[1]
    if not 0 <= k <= width or width > MAX_FEATURE_COLUMNS:
        raise ValueError(
            f"factors - k, columns - got {k} of {width} - expected k up to the number of feature columns, and at most "
            f"{MAX_FEATURE_COLUMNS} of these - use eigenpairs where there are more"
        )
    _, right = _leading(phi, k, np.zeros(width))
    factor = feature_space.projected(phi, right, dtype=np.float32)
    _positive(factor)
    return factor


def _leading(phi: "sp.csc_array", k: int, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues, falling, and eigenvectors (C, k) of (Phi - 1 mean^T)^T (Phi - 1 mean^T), all C where k
    is more."""
    n, width = phi.shape
    k = min(k, width)
    if not k:
        return np.empty(0), np.empty((width, 0))
    from scipy.linalg import eigh

    values, right = eigh(
        feature_space.column_gram(phi) - n * np.outer(mean, mean), subset_by_index=[width - k, width - 1]
    )
    return values[::-1], right[:, ::-1]


def _positive(vectors: np.ndarray) -> None:
    """Turn columns, in place, so that the largest entry of each is positive."""
    for column in vectors.T if len(vectors) else ():
        if column[max(column.argmax(), column.argmin(), key=lambda at: abs(column[at]))] < 0:
            column[:] = 0 - column  # np.negative(out=) of numpy 2.4 leaves out entries of a strided array


def _tidy(values: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Exactly k columns of length 1 (0 beyond the rank), the largest entry of each positive; may use up `vectors`."""
    length = np.sqrt(np.einsum("nk,nk->k", vectors, vectors))
    keep = np.flatnonzero((values > 1e-12 * max(values.max(initial=0.0), 1e-300)) & (length > 0))
    tidy_values, tidy = np.zeros(k), vectors
    tidy_values[: len(keep)] = values[keep]
    if len(keep) < k or not vectors.flags.c_contiguous:
        tidy = np.zeros((len(vectors), k))
        tidy[:, : len(keep)] = vectors[:, keep]
    tidy[:, : len(keep)] /= length[keep]
    _positive(tidy[:, : len(keep)])
    return tidy_values, tidy


def shift(kernel: np.ndarray) -> tuple[np.ndarray, float]:
    r"""Reduce the diagonal dominance of a kernel. The result is still positive semidefinite. O(n^3).

    .. math:: K - \lambda_{\min}(K) \, I

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        A positive semidefinite kernel.

    Returns
    -------
    shifted : ndarray, shape (n, n)
        The shifted kernel.
    smallest : float
        The smallest eigenvalue; 0 if there are fewer features than objects, and nothing changes.

    References
    ----------
    Kleindessner & von Luxburg 2017, sec. 2.1.

    Examples
    --------
    >>> shifted, smallest = shift(np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> shifted.round(6).tolist(), round(smallest, 6)
    ([[0.5, 0.5], [0.5, 0.5]], 0.5)
    """
    if not len(kernel):
        return kernel.copy(), 0.0
    from scipy.linalg import eigvalsh

    smallest = float(eigvalsh(kernel, subset_by_index=[0, 0])[0])
    shifted = kernel.copy()
    shifted[np.diag_indices(len(kernel))] -= smallest
    return shifted, smallest


def landmarks(columns: Columns) -> np.ndarray:
    """The landmark objects of a landmark design for k1.

    In a landmark design, every anchor is compared only with pairs of a few landmarks (sec. 2.3): the objects in all
    pairs are at most a quarter of all objects, and at most a quarter of the pairs among them are incomplete. O(pairs).

    Parameters
    ----------
    columns : Columns
        Triplet counts.

    Returns
    -------
    ndarray of int32
        The landmarks, increasing; empty if this is not a landmark design.

    References
    ----------
    Kleindessner & von Luxburg 2017, sec. 2.3.

    Examples
    --------
    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> landmarks(columns_from_triplets(np.array([[a, 1, 2] for a in (0, 3, 4, 5, 6, 7)]), 8)).tolist()
    [1, 2]
    """
    in_pairs = np.union1d(columns.lo, columns.hi).astype(np.int32)
    pairs = len(in_pairs) * (len(in_pairs) - 1) // 2
    few = len(in_pairs) <= LANDMARK_SHARE * columns.n_objects
    return in_pairs if few and len(columns.lo) >= 0.75 * pairs else np.empty(0, np.int32)
