"""Proof that a partition is the optimum of the SDP, without solving it: a dual with rank-one blocks, adapted to
similarities from Iguchi, Mixon, Peterson & Villar 2017."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from stream_engine.clustering.similarity_matrix import Blocks, blocks
from stream_engine.counts.spectral import dense, size_of

# For a partition with sizes n_a, row sums R and block sums B of W, complementary slackness fixes the row sums of the
# multiplier N of X >= 0: for i in cluster a, b != a,
#
#   nu_ib = (N 1_b)_i = -R_ib + (n_b / n_a) R_ia - n_b B_aa / (2 n_a^2) + B_bb / (2 n_b) - lambda (n_b / (2 n_a) + 1/2)
#
# and N_ab = nu_.b nu_.a' / sum(nu_.b) has them. If nu >= 0 and lambda_max(Q(W + N)Q) <= lambda with Q = I - X_P, then
# X_P is optimal for SDP-lambda, and for SDP-k with k its number of clusters (lambda is then free, the multiplier of the
# trace). The condition is sufficient, not necessary. O(n^3 / 3) by a Cholesky factorisation, O(nnz) a Lanczos step for
# more objects.
CHOLESKY_UP_TO = 4000  # objects; above, the eigenvalue is an estimate from below, and `Certificate.by` says so
ROUNDING = 1e-10  # share of the size of W that counts as zero


class Dual(NamedTuple):
    """Row sums nu (n, k) of the multiplier for one lambda, clipped to nonnegative, and how far below zero they were."""

    labels: np.ndarray
    lam: float
    nu: np.ndarray
    totals: np.ndarray  # (k, k): T[a, b] = sum of nu_ib over i in a
    deepest: float


class Certificate(NamedTuple):
    """A proof that the partition is optimal at `lam`; `by` says how the eigenvalue condition was checked."""

    lam: float
    upper_bound: float  # on the SDP's value: the partition's own plus rounding
    by: str  # "partition" (Cholesky) or "partition, Lanczos"


def slopes(block_sums: Blocks) -> np.ndarray:
    """(k, k): by how much nu_ib falls per unit of lambda, for i in a: n_b / (2 n_a) + 1/2."""
    return block_sums.sizes[None, :] / (2 * block_sums.sizes[:, None]) + 0.5


def row_sums(labels: np.ndarray, block_sums: Blocks) -> np.ndarray:
    """nu at lambda = 0, (n, k); the own cluster's column is +inf (no condition there)."""
    own_sums, sizes = np.diag(block_sums.sums), block_sums.sizes
    at = np.arange(len(labels))
    ratio = sizes[None, :] / sizes[:, None]
    constant = own_sums[None, :] / (2 * sizes[None, :]) - sizes[None, :] * own_sums[:, None] / (2 * sizes[:, None] ** 2)
    nu = -block_sums.rows + ratio[labels] * block_sums.rows[at, labels][:, None] + constant[labels]
    nu[at, labels] = np.inf
    return nu


def largest_lambda(labels: np.ndarray, block_sums: Blocks) -> float:
    """The largest lambda at which nu >= 0; inf for a single cluster."""
    if len(block_sums.sizes) == 1:
        return np.inf
    return float((row_sums(labels, block_sums) / slopes(block_sums)[labels]).min())


def dual(labels: np.ndarray, block_sums: Blocks, lam: float) -> Dual:
    """The rank-one dual at `lam`, clipped where it is negative (then it proves nothing, but N >= 0 still bounds)."""
    k, at = len(block_sums.sizes), np.arange(len(labels))
    nu = row_sums(labels, block_sums) - lam * slopes(block_sums)[labels]
    nu[at, labels] = 0.0
    deepest = float(-nu.min(initial=0.0))
    np.maximum(nu, 0.0, out=nu)
    totals = np.zeros((k, k))
    np.add.at(totals, labels, nu)
    return Dual(labels, lam, nu, np.maximum(totals, totals.T), deepest)


def multiplier(rank_one: Dual) -> np.ndarray:
    """N as an (n, n) array: N_ij = nu_ib nu_ja / T_ab for i in a, j in b. O(n^2)."""
    inverse = np.divide(1.0, rank_one.totals, out=np.zeros_like(rank_one.totals), where=rank_one.totals > 0)
    crossed = rank_one.nu[:, rank_one.labels]  # nu_{i, b(j)}
    return crossed * crossed.T * inverse[rank_one.labels[:, None], rank_one.labels]


def certify(
    W, labels: np.ndarray, lam: float | None, lam_range: tuple[float, float] = (-np.inf, np.inf)
) -> Certificate | None:
    """A proof that the partition solves SDP-lambda at `lam`, or SDP-k (lam None); None when there is none of this kind.

    For SDP-k the multiplier of the trace may be any number in `lam_range`.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> certify(W, np.array([0, 0, 1, 1]), None).by, certify(W, np.array([0, 1, 1, 0]), None)
    ('partition', None)
    """
    block_sums = blocks(W, labels, int(labels.max()) + 1)
    zero = ROUNDING * max(size_of(W), np.finfo(float).tiny)
    for trial in _trials(W, labels, block_sums, lam, zero):
        if not lam_range[0] <= trial <= lam_range[1]:
            continue
        rank_one = dual(labels, block_sums, trial)
        if rank_one.deepest <= zero:
            by = _eigenvalue_proof(W, rank_one, block_sums, zero)
            if by:
                best = float((np.diag(block_sums.sums) / block_sums.sizes).sum()) - (lam or 0.0) * len(block_sums.sizes)
                return Certificate(trial, best + (len(labels) - len(block_sums.sizes)) * zero, by)
    return None


def _trials(W, labels: np.ndarray, block_sums: Blocks, lam: float | None, zero: float) -> list[float]:
    """The values of lambda at which a proof is tried. For SDP-k: the largest that nu allows, then less."""
    if lam is not None:
        return [lam]
    highest = largest_lambda(labels, block_sums)
    if np.isinf(highest):
        return [size_of(W)]
    if len(labels) == len(block_sums.sizes):
        return [highest]
    lowest = bulk(W, labels, block_sums, highest)
    return [] if lowest > highest + zero else [highest, (highest + lowest) / 2, lowest + 0.1 * (highest - lowest)]


def bulk(W, labels: np.ndarray, block_sums: Blocks, lam: float) -> float:
    """lambda_max(Q (W + N) Q) for the rank-one dual at `lam`: about the least lambda a proof can hold at."""
    return _largest_eigenvalue(W, dual(labels, block_sums, lam))


def _product(W, rank_one: Dual):
    """x -> Q (W + N) Q x without forming anything of size n^2."""
    labels, size = rank_one.labels, np.bincount(rank_one.labels).astype(float)
    k = len(size)
    inverse = np.divide(1.0, rank_one.totals, out=np.zeros_like(rank_one.totals), where=rank_one.totals > 0)

    def q(x):
        return x - (np.bincount(labels, x, k) / size)[labels]

    def apply(x):
        x = q(np.ravel(x))
        sums = np.zeros((k, k))  # sums[b, a] = sum of nu_ja x_j over j in b
        np.add.at(sums, labels, rank_one.nu * x[:, None])
        return q(W @ x + (rank_one.nu * (sums.T * inverse)[labels]).sum(axis=1))

    return apply


def _largest_eigenvalue(W, rank_one: Dual, tol: float = 1e-4) -> float:
    """lambda_max(Q (W + N) Q) on the range of Q, by Lanczos: an estimate from below."""
    n = len(rank_one.labels)
    shift = 2 * (size_of(W) + float(rank_one.nu.sum(axis=1).max(initial=0.0)))
    if shift == 0.0:
        return 0.0
    apply, sizes = _product(W, rank_one), np.bincount(rank_one.labels)
    if n <= 64:
        A = np.stack([apply(e) for e in np.eye(n)], axis=1)
        cluster_means = (rank_one.labels[:, None] == rank_one.labels) / sizes[rank_one.labels]
        return float(np.linalg.eigvalsh(A - shift * cluster_means)[-1])
    start = np.random.default_rng(n).standard_normal(n)

    def shifted_product(x):
        x = np.ravel(x)
        return apply(x) - shift * (np.bincount(rank_one.labels, x) / sizes)[rank_one.labels]

    operator = LinearOperator((n, n), matvec=shifted_product, dtype=np.float64)
    try:
        return float(eigsh(operator, 1, which="LA", v0=start, tol=tol, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return np.inf


def _eigenvalue_proof(W, rank_one: Dual, block_sums: Blocks, zero: float) -> str | None:
    """The method that proves lambda_max(Q (W + N) Q) <= lambda + zero; None if it does not hold."""
    n = len(rank_one.labels)
    if n == len(block_sums.sizes):
        return "partition"
    if n > CHOLESKY_UP_TO:
        return "partition, Lanczos" if _largest_eigenvalue(W, rank_one, 1e-9) <= rank_one.lam + zero else None
    A = multiplier(rank_one)
    A += dense(W)
    A = _project(A, rank_one.labels, block_sums.sizes)
    A *= -1.0
    # (lambda + zero) I - Q (W + N) Q, with something positive in place of lambda on the range of X_P
    shift = max(size_of(W), 1.0) - rank_one.lam - zero
    A += (rank_one.labels[:, None] == rank_one.labels) * (shift / block_sums.sizes[rank_one.labels])
    A[np.diag_indices(n)] += rank_one.lam + zero
    try:
        cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return "partition"


def _project(A: np.ndarray, labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Q A Q for symmetric A, with Q = I - X_P: cluster means taken off rows and columns."""
    k = len(sizes)
    one_hot = np.zeros((len(labels), k))
    one_hot[np.arange(len(labels)), labels] = 1.0
    rows = A @ (one_hot / sizes)  # (n, k) means over columns of each cluster
    means = (one_hot.T @ rows) / sizes[:, None]
    A = A - rows[:, labels]
    A -= rows.T[labels]
    A += means[labels[:, None], labels]
    return A
